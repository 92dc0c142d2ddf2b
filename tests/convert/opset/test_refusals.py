"""Nodes that have no equal in the other version are named, with the reason."""

import numpy as np
import pytest
from onnx import TensorProto

from tests.convert.opset.opset_models import Case, numbers, reasons

X = numbers(2, 4, 6, 6)
FLOAT, INT64, INT8 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT8
CHANNELS = tuple(numbers(4, seed=number) for number in range(4))
KERNEL = {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}

UP = [
    (Case("mask", 9, "Dropout", (X,), outputs=2), 10, "its output 1 is read, and has another type"),
    (Case("features", 7, "BatchNormalization", (X,), {"spatial": 0}, CHANNELS), 9, "spatial is 0, expected 1 in newer versions"),
    (Case("training", 9, "BatchNormalization", (X,), {}, CHANNELS, outputs=3), 14, "the other version has other outputs for training"),
    (Case("padding", 9, "ConvTranspose", (X,), {"auto_pad": "SAME_UPPER"}, (numbers(4, 1, 2, 2),)), 11, "if the padding is odd, the other version puts the larger half at the other end"),
    (Case("shape", 9, "ConvTranspose", (X,), {"output_shape": [8, 8]}, (numbers(4, 1, 2, 2),)), 11, "if the padding is odd, the other version puts the larger half at the other end"),
    (Case("both ways", 10, "Resize", (X,), {}, (np.array([1, 1, 2, 0.5], np.float32),)), 11, "it rounds up and down in different dimensions, which newer versions cannot express"),
    (Case("unknown scales", 10, "Resize", (X, numbers(4))), 11, "whether it rounds up or down depends on its scales, which are not constant"),
    (Case("other mode", 10, "Resize", (X,), {"mode": "cubic"}, (np.ones(4, np.float32),)), 11, "the mode is 'cubic', expected nearest or linear"),
    (Case("coordinates", 11, "Resize", (X,), {"coordinate_transformation_mode": "tf_half_pixel_for_nn"}, (np.zeros(0, np.float32), np.ones(4, np.float32))), 13, "newer versions have no coordinate_transformation_mode 'tf_half_pixel_for_nn'"),
    (Case("two types", 13, "QuantizeLinear", (np.array([3], np.int32),), {}, (np.array(2, np.float32),), output_types=(2,)), 19, "QuantizeLinear-19 needs one type for all of T1, and there are two"),
    (Case("lost type", 9, "Erf", (np.array([1]),), output_types=(INT64,)), 13, "Erf-13 does not accept tensor(int64) for input"),
    (Case("fractions", 9, "OneHot", (numbers(3),), {}, (np.array(3), np.array([0.0, 1.0], np.float32))), 11, "negative indices count from the end in newer versions, and are illegal in this one"),
    (Case("ceiling", 19, "AveragePool", (X,), KERNEL | {"pads": [0, 0, 1, 1]}), 22, "with ceil_mode, newer versions omit windows that start after the input"),
    (Case("ceiling of the same size", 12, "MaxPool", (X,), KERNEL | {"auto_pad": "SAME_UPPER"}), 22, "with ceil_mode, newer versions omit windows that start after the input"),
    (Case("ceiling with gaps", 12, "MaxPool", (X,), KERNEL | {"strides": [2, 4]}), 22, "with ceil_mode, newer versions omit windows that start after the input"),
    (Case("counting", 11, "AveragePool", (X,), KERNEL | {"count_include_pad": 1}), 19, "with ceil_mode and count_include_pad, the specification does not say what counts as padding"),
    (Case("attribute of a later version", 13, "Reshape", (X,), {"allowzero": 1}, (np.array([-1]),)), 14, "its attribute allowzero is undefined in Reshape-13, but has a meaning in newer versions"),
    (Case("word of a later version", 18, "Pad", (X,), {"mode": "wrap"}, (np.ones(8, np.int64),)), 19, "newer versions have no mode 'wrap'"),
    (Case("input of a later version", 9, "Slice", (X,), {"starts": [0], "ends": [1]}, (np.array([0]),)), 10, "it has 2 inputs, expected at most 1 in Slice-1"),
    (Case("infinity", 19, "Cast", (X,), {"to": TensorProto.FLOAT8E4M3FNUZ}, output_types=(TensorProto.FLOAT8E4M3FNUZ,)), 24, "infinity becomes the greatest number in newer versions, and NaN in older ones"),
    (Case("no axes", 11, "Squeeze", (X,), {"axes": []}), 13, "its axes is an empty list, which the specification does not define"),
    (Case("groups", 18, "GroupNormalization", (X,), {"num_groups": 2}, (numbers(2), numbers(2))), 21, "scale and bias have one number per channel now, and had one per group before"),
    (Case("deprecated", 9, "Scatter", (X,), {}, (np.zeros((1, 4, 6, 6), np.int64), X[:1])), 11, "the operator is deprecated since then"),
    (Case("no operator", 9, "Scatterer", (X,)), 11, "Scatterer is not an operator of ONNX"),
    (Case("too new", 9, "Range", (np.array(0), np.array(3), np.array(1))), 11, "Range is new in opset 11, expected an operator of opset 9"),
    (Case("too old", 6, "Add", (X, X)), 7, "versions before opset 7 are unknown, and this is Add-6"),
    (Case("axis", 9, "Hardmax", (X,), {"axis": 4}), 13, "its axis is 4, expected one of 4 dimensions"),
]  # fmt: skip

DOWN = [
    (Case("pixels", 16, "RoiAlign", (X, numbers(1, 4)), {}, (np.array([0]),)), 13, "its coordinate_transformation_mode is not 'output_half_pixel', the only value that older versions support"),
    (Case("zeros", 21, "Reshape", (X,), {"allowzero": 1}, (np.array([0, -1]),)), 13, "its attribute allowzero is 1, which Reshape-13 cannot express"),
    (Case("zeros that are not known", 21, "Reshape", (X, np.array([4])), {"allowzero": 1}), 13, "its attribute allowzero is 1, which Reshape-13 cannot express"),
    (Case("uneven", 18, "Split", (X,), {"axis": 1, "num_outputs": 3}, outputs=3), 13, "its parts may differ in length, which older versions do not support"),
    (Case("maybe uneven", 18, "Split", (X,), {"axis": 1, "num_outputs": 2}, outputs=2, knows_shapes=False), 13, "its parts may differ in length, which older versions do not support"),
    (Case("one axis", 13, "Softmax", (X,), {"axis": 1}), 11, "it works along axis 1; older versions work along all dimensions from that axis on"),
    (Case("axis of unknown rank", 13, "Softmax", (X,), {"axis": 3}, ranks=False), 11, "it works along axis 3; older versions work along all dimensions from that axis on"),
    (Case("axes that are fed", 18, "ReduceMax", (X, np.array([1]))), 13, "its input axes is not constant, and is an attribute in older versions"),
    (Case("no axes", 18, "ReduceMax", (X,), {"noop_with_empty_axes": 1}), 13, "its attribute noop_with_empty_axes is 1, which ReduceMax-13 cannot express"),
    (Case("operator", 24, "TensorScatter", (X, X[:, :, :1])), 18, "TensorScatter is new in opset 24"),
    (Case("dilations", 19, "AveragePool", (X,), {"kernel_shape": [2, 2], "dilations": [2, 1]}), 18, "its dilations is [2, 1], expected 1 in older versions"),
    (Case("reduction", 18, "ScatterElements", (X,), {"reduction": "max"}, (np.zeros((1, 4, 6, 6), np.int64), X[:1])), 16, "older versions have no reduction 'max'"),
    (Case("sum", 16, "ScatterElements", (X,), {"reduction": "add"}, (np.zeros((1, 4, 6, 6), np.int64), X[:1])), 13, "its attribute reduction is add, which ScatterElements-13 cannot express"),
    (Case("type", 14, "Add", (np.array([1], np.int8), np.array([2], np.int8)), output_types=(INT8,)), 13, "Add-13 does not accept tensor(int8) for A"),
    (Case("new input", 18, "Pad", (X,), {}, (np.array([1, 1]), None, np.array([1]))), 13, "it has 4 inputs, expected at most 3 in Pad-13"),
    (Case("older than others", 11, "Slice", (X,), {}, (np.array([0]), np.array([1]))), 9, "no node is converted back to Slice-10, from before opset 11"),
    (Case("training", 13, "Dropout", (X,), {}, (None, np.array(True))), 11, "the older version has no training mode"),
    (Case("crossed", 13, "Clip", (X,), {}, (np.array(1, np.float32), np.array(0, np.float32))), 11, "the older version does not specify a min above max"),
    (Case("limits that do not fit", 13, "Clip", (X,), {}, (np.zeros(2, np.float32), np.ones(3, np.float32))), 11, "the older version does not specify a min above max"),
    (Case("axes of another type", 18, "ReduceMax", (X,), {}, (np.array([True]),)), 13, "its axes does not have the type that the operator's specification requires"),
    (Case("dimensions", 20, "GridSample", (numbers(1, 1, 2, 2, 2), numbers(1, 1, 1, 1, 3)), {}), 16, "the older version accepts 4 dimensions only"),
    (Case("scales", 13, "DequantizeLinear", (np.zeros((2, 3), np.int8),), {"axis": 0}, (np.ones(2, np.float32),), output_types=(FLOAT,)), 11, "the older version accepts one scale only"),
]  # fmt: skip


def name_of(row: object) -> str | None:
    return f"{row.node} {row.name}" if isinstance(row, Case) else None


@pytest.mark.parametrize(("case", "opset", "reason"), [*UP, *DOWN], ids=name_of)
def test_refused(case: Case, opset: int, reason: str) -> None:
    (found,) = reasons(case.proto(), opset)
    assert found.startswith(reason) if reason.endswith("type") else found == reason


@pytest.mark.parametrize(("case", "opset"), [(case, opset) for case, opset, _ in UP], ids=name_of)
def test_the_version_named_is_the_one_that_changes_the_meaning(case: Case, opset: int) -> None:
    between = range(case.opset + 1, opset)
    always = {"no operator", "too new"}
    assert [step for step in between if reasons(case.proto(), step)] == (
        list(between) if case.name in always else []
    )
