"""Nodes compute the same bytes at newer and older versions; those that cannot are in `test_refusals`."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper, version_converter

from tests.convert.opset.opset_models import (
    Case,
    assert_moves_mean_the_same,
    model_of,
    moved,
    numbers,
    type_of,
)

NEWEST_OF_RUNTIME = 26
UP = (11, 12, 13, 18, 21, NEWEST_OF_RUNTIME)
LAST = {"RoiAlign": 21}
"""The newest opset at which onnxruntime has a kernel."""
X = numbers(3, 4, 5)
EXTREMES = np.array([[-np.inf, np.inf, 3.0e38, -3.4e38], [0.5, -0.5, 1e-30, -0.0]], np.float32)
LARGEST = 3.4028234663852886e38

CLIP = [
    Case("both", 9, "Clip", (X,), {"min": -0.5, "max": 0.25}),
    Case("min", 9, "Clip", (X,), {"min": 0.0}),
    Case("max", 9, "Clip", (EXTREMES,), {"max": 6.0}),
    Case("none", 9, "Clip", (EXTREMES,)),
    Case("written defaults", 9, "Clip", (EXTREMES,), {"min": -LARGEST, "max": LARGEST}),
]

SLICE = [
    Case("axes", 9, "Slice", (X,), {"starts": [0, 1], "ends": [2, 3], "axes": [0, 2]}),
    Case("fewer than dimensions", 9, "Slice", (X,), {"starts": [1], "ends": [3]}),
    Case("out of range", 9, "Slice", (X,), {"starts": [-2, -100], "ends": [2**31 - 1, 2**63 - 1], "axes": [1, 2]}),
    Case("empty", 9, "Slice", (X,), {"starts": [3, 2], "ends": [9, -4], "axes": [0, 1]}),
    Case("from the end", 9, "Slice", (X,), {"starts": [-3, 1, 0], "ends": [-1, 9, -2]}),
    Case("whole numbers", 9, "Slice", (numbers(4, 3, type="int64"),), {"starts": [1], "ends": [3], "axes": [1]}),
]  # fmt: skip

INT64 = 7
TOP_K = [
    Case("last axis", 9, "TopK", (X,), {"k": 3}, outputs=2, output_types=(1, INT64)),
    Case("axis", 9, "TopK", (X,), {"k": 2, "axis": 0}, outputs=2, output_types=(1, INT64)),
    Case("whole", 9, "TopK", (X,), {"k": 4, "axis": 1}, outputs=2, output_types=(1, INT64)),
    Case("ties", 9, "TopK", (np.round(X),), {"k": 4, "axis": 2}, outputs=2, output_types=(1, INT64)),
    Case("of 10", 10, "TopK", (X,), {"axis": 1}, (np.array([2]),), outputs=2, output_types=(1, INT64)),
]

PAD = [
    Case("constant", 9, "Pad", (X,), {"pads": [0, 1, 2, 3, 0, 1]}),
    Case("value", 9, "Pad", (X,), {"pads": [1, 0, 0, 0, 0, 2], "value": 1.25}),
    Case("reflect", 9, "Pad", (X,), {"pads": [1, 1, 0, 0, 1, 2], "mode": "reflect"}),
    Case("edge", 9, "Pad", (X,), {"pads": [1, 1, 0, 0, 1, 2], "mode": "edge", "value": 3.0}),
    Case("negative", 9, "Pad", (X,), {"pads": [-1, 2, 0, 0, -1, 0], "value": -1.0}),
    Case("double", 9, "Pad", (X.astype(np.float64),), {"pads": [0, 0, 1, 0, 0, 1], "value": 0.1}),
]


def scaled(node: str, name: str, mode: str, *scales: float) -> Case:
    opset, data = (9, numbers(1, 2, 4, 5)) if node == "Upsample" else (10, numbers(1, 2, 7, 9))
    return Case(name, opset, node, (data,), {"mode": mode}, (np.array([1, 1, *scales], np.float32),))


UPSAMPLE = [
    scaled("Upsample", "nearest", "nearest", 2, 3),
    scaled("Upsample", "nearest by fractions", "nearest", 1.5, 2.3),
    scaled("Upsample", "nearest by hardly anything", "nearest", 1.01, 1.0),
    scaled("Upsample", "linear", "linear", 2, 3),
    scaled("Upsample", "linear by fractions", "linear", 1.7, 2.4),
    Case("scales that are fed", 9, "Upsample", (numbers(1, 1, 3, 3), np.array([1, 1, 2, 1.5], np.float32))),
    Case("attribute", 7, "Upsample", (numbers(1, 1, 3, 3),), {"scales": [1.0, 1.0, 2.0, 2.0]}),
]


NOTHING = np.zeros(0, np.float32)
RESIZE = [
    scaled("Resize", "nearest", "nearest", 2, 1.4),
    scaled("Resize", "nearest smaller", "nearest", 0.6, 0.35),
    scaled("Resize", "nearest halves", "nearest", 0.5, 0.5),
    scaled("Resize", "nearest smaller in one dimension", "nearest", 1, 0.3),
    scaled("Resize", "linear", "linear", 2.5, 1.3),
    scaled("Resize", "linear smaller", "linear", 0.6, 0.9),
    scaled("Resize", "linear both ways", "linear", 0.5, 2),
    Case("sizes", 11, "Resize", (numbers(1, 1, 4, 4),), {}, (NOTHING, NOTHING, np.array([1, 1, 6, 3]))),
    Case("scales of 11", 11, "Resize", (numbers(1, 1, 4, 4),), {"mode": "cubic"}, (NOTHING, np.array([1, 1, 2, 2], np.float32))),
]  # fmt: skip

CHANNELS = tuple(np.abs(numbers(4, seed=seed)) + np.float32(0.1) for seed in range(4))
BATCH_NORMALIZATION = [
    Case("plain", 9, "BatchNormalization", (numbers(2, 4, 3),), {}, CHANNELS),
    Case("attributes", 9, "BatchNormalization", (numbers(2, 4, 3, 2),), {"epsilon": 0.01, "momentum": 0.5}, CHANNELS),
    Case("spatial", 7, "BatchNormalization", (numbers(2, 4, 3),), {"spatial": 1}, CHANNELS),
]  # fmt: skip

COERCED = [
    Case(f"{node} {name}", 9, node, (numbers(*shape, seed=number),), {} if axis is None else {"axis": axis}, knows_shapes=known, ranks=ranks)
    for node in ("Softmax", "LogSoftmax", "Hardmax")
    for number, (name, shape, axis, known, ranks) in enumerate(
        (
            ("of a matrix", (3, 4), None, True, True),
            ("of the last axis", (3, 4, 5), 2, True, True),
            ("of the last axis of unknown dimensions", (3, 4, 5), 2, False, True),
            ("with ones behind", (3, 4, 1, 1), None, True, True),
            ("with dimensions behind", (3, 4, 5), None, True, True),
            ("with unknown dimensions behind", (3, 4, 5), None, False, True),
            ("with dimensions of no rank behind", (3, 4, 5), 1, True, False),
            ("of everything", (3, 4, 5), 0, True, True),
            ("of a vector", (6,), 0, True, True),
            ("from the end", (3, 4, 5), -2, True, True),
            ("of the last from the end", (3, 4, 5), -1, True, True),
        )
    )
]  # fmt: skip

ONES = numbers(1, 3, 1, 4)
AXES = [
    Case("squeezed", 9, "Squeeze", (ONES,), {"axes": [0, 2]}),
    Case("all squeezed", 9, "Squeeze", (ONES,)),
    Case("squeezed from the end", 11, "Squeeze", (ONES,), {"axes": [-2]}),
    Case("unsqueezed", 9, "Unsqueeze", (X,), {"axes": [0, 4]}),
    Case("unsqueezed from the end", 11, "Unsqueeze", (X,), {"axes": [-1, 1]}),
    Case("split", 9, "Split", (numbers(6, 4),), {"split": [1, 2, 3]}, outputs=3),
    Case("split evenly", 9, "Split", (numbers(6, 4),), {"axis": 1}, outputs=2),
    Case("split from the end", 11, "Split", (numbers(6, 4),), {"axis": -1, "split": [1, 3]}, outputs=2),
    Case("split of unknown length", 9, "Split", (numbers(6, 4),), outputs=3, knows_shapes=False),
]

REDUCED = [
    Case(f"{node} {name}", 11, node, (np.abs(X) + np.float32(0.5),), attributes)
    for node in (
        "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
        "ReduceProd", "ReduceSum", "ReduceSumSquare",
    )
    for name, attributes in (
        ("axes", {"axes": [1]}),
        ("two axes", {"axes": [-1, 0], "keepdims": 0}),
        ("all", {}),
        ("all without dimensions", {"keepdims": 0}),
    )
]  # fmt: skip

DROPOUT = [
    Case("of 9", 9, "Dropout", (X,), {"ratio": 0.3}),
    Case("without ratio", 9, "Dropout", (X,)),
    Case("of 10", 10, "Dropout", (X,), {"ratio": 0.75}),
]

VALUES = np.array([2.0, 9.0], np.float32)
ONE_HOT = [
    Case("int64", 9, "OneHot", (np.array([[0, 4], [5, 2]]),), {}, (np.array(5), VALUES), output_types=(1,)),
    Case("axis", 9, "OneHot", (np.array([[0, 4], [7, 2]]),), {"axis": 1}, (np.array([5]), VALUES), output_types=(1,)),
    Case("int32", 9, "OneHot", (np.array([1, 3], np.int32),), {"axis": 0}, (np.array(4, np.int32), VALUES), output_types=(1,)),
]  # fmt: skip

# Sums of these are exact: how onnxruntime adds up is not the same at every opset.
EIGHTHS = np.round(numbers(1, 2, 6, 7) * 8) / np.float32(8)

RECURRENT = [
    Case(node, 9, node, (numbers(3, 2, 4),), {"hidden_size": 5, "direction": "bidirectional"}, (numbers(2, gates * 5, 4, seed=1), numbers(2, gates * 5, 5, seed=2), numbers(2, gates * 10, seed=3)))
    for node, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1))
]  # fmt: skip

POOLS = [
    Case(f"{node} {name}", 19, node, (EIGHTHS,), {"ceil_mode": 1, **attributes})
    for node in ("MaxPool", "AveragePool")
    for name, attributes in (
        ("without strides", {"kernel_shape": [2, 4]}),
        ("without padding", {"kernel_shape": [3, 3], "strides": [2, 3]}),
        ("of valid windows", {"kernel_shape": [2, 3], "strides": [1, 2], "auto_pad": "VALID"}),
    )
]

BOX = np.array([[0, 0.5, 3, 3.5]], np.float32)
LATER = [
    Case("aligned", 10, "RoiAlign", (numbers(1, 1, 5, 5), BOX), {"output_height": 2, "output_width": 2}, (np.array([0]),)),
    Case("sampled", 16, "GridSample", (numbers(1, 1, 4, 4), numbers(1, 2, 2, 2, seed=1)), {"mode": "bilinear"}),
    Case("sampled by default", 16, "GridSample", (numbers(1, 1, 4, 4), numbers(1, 2, 2, 2, seed=1))),
    Case("sampled by cubes", 16, "GridSample", (numbers(1, 1, 4, 4), numbers(1, 2, 2, 2, seed=1)), {"mode": "bicubic"}),
    Case("transformed", 17, "DFT", (numbers(2, 8, 3, 1),)),
    Case("transformed along an axis", 17, "DFT", (numbers(2, 8, 3, 2),), {"axis": 2, "inverse": 1}),
    Case("transformed to a length", 17, "DFT", (numbers(2, 8, 1),), {"onesided": 1}, (np.array(6),)),
]  # fmt: skip

WIDENED = [
    Case("gather", 9, "Gather", (X,), {"axis": 1}, (np.array([[2, 0]]),)),
    Case("product", 9, "Gemm", (numbers(3, 4),), {"alpha": 0.5, "transB": 1}, (numbers(5, 4), numbers(5))),
    Case("cast", 9, "Cast", (X,), {"to": INT64}, output_types=(INT64,)),
    Case("greatest", 9, "ArgMax", (np.round(X),), {"axis": 2}, output_types=(INT64,)),
    Case("flattened", 9, "Flatten", (X,), {"axis": 2}),
    Case("average", 9, "AveragePool", (EIGHTHS,), {"kernel_shape": [2, 2], "strides": [2, 3], "auto_pad": "SAME_UPPER"}),
    Case("average of valid", 9, "AveragePool", (EIGHTHS,), {"kernel_shape": [2, 2], "strides": [3, 2], "auto_pad": "VALID"}),
    Case("maximum", 9, "MaxPool", (numbers(1, 2, 6, 6),), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    Case("transposed convolution", 9, "ConvTranspose", (numbers(1, 2, 4, 4),), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}, (numbers(2, 3, 3, 3),)),
    Case("power", 9, "Pow", (np.abs(X),), {}, (np.array(2.5, np.float32),)),
]  # fmt: skip


RAISED = [
    *CLIP, *SLICE, *TOP_K, *PAD, *UPSAMPLE, *RESIZE, *BATCH_NORMALIZATION, *COERCED, *AXES, *REDUCED, *DROPOUT,
    *ONE_HOT, *RECURRENT, *POOLS, *LATER, *WIDENED,
]  # fmt: skip


@pytest.mark.onnxruntime
def test_moved_up(tmp_path: Path) -> None:
    """All in one process of onnxruntime: to start it takes longer than to ask it."""
    pytest.importorskip("onnxruntime")
    pairs = [
        (case, opset)
        for case in RAISED
        for opset in UP
        if case.opset < opset <= LAST.get(case.node, NEWEST_OF_RUNTIME)
    ]
    assert_moves_mean_the_same(pairs, tmp_path)


GROUPS_AS_ONNX_HAS_THEM = (TOP_K, AXES, REDUCED, LATER, WIDENED)
"""Where the converter of onnx keeps what nodes mean, and says it in the same words."""


@pytest.mark.parametrize("opset", [13, 21])
def test_the_converter_of_onnx_agrees(opset: int) -> None:
    cases = [case for group in GROUPS_AS_ONNX_HAS_THEM for case in group if case.opset < opset]
    assert len(cases) > 20
    for case in cases:
        proto = case.proto()
        expected = version_converter.convert_version(proto, opset)
        assert said(moved(proto, opset)) == said(expected), case


def said(proto: ModelProto) -> list[object]:
    """Return operators, inputs and attributes, constants as numbers in the places where they are read."""
    known = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    found: list[object] = []
    for node in proto.graph.node:
        if node.op_type == "Constant":
            known[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
            continue
        inputs = [
            (str(known[name].dtype), known[name].tolist()) if name in known else name for name in node.input
        ]
        attributes = {written.name: helper.get_attribute_value(written) for written in node.attribute}
        found.append((node.op_type, inputs, attributes))
    return found


DATA = numbers(3, 4, 6)
BACK = np.array([-1], np.int64)
LOWERED = [
    Case("sum", 18, "ReduceSum", (DATA,), {"keepdims": 0, "noop_with_empty_axes": 0}, (np.array([1, -1]),)),
    Case("sum of all", 18, "ReduceSum", (DATA,), {}, (np.array([], np.int64),)),
    Case("mean", 20, "ReduceMean", (DATA,), {}, (BACK,)),
    Case("mean of all", 20, "ReduceMean", (DATA,)),
    Case("unsqueezed", 21, "Unsqueeze", (DATA,), {}, (np.array([0, 4]),)),
    Case("squeezed", 21, "Squeeze", (numbers(1, 3, 1),), {}, (np.array([2]),)),
    Case("split", 18, "Split", (DATA,), {"axis": 2}, (np.array([1, 2, 3]),), outputs=3),
    Case("split evenly", 18, "Split", (DATA,), {"axis": 1, "num_outputs": 2}, outputs=2),
    Case("reshaped", 21, "Reshape", (DATA,), {"allowzero": 0}, (np.array([0, -1]),)),
    Case("reshaped without zeros", 21, "Reshape", (DATA,), {"allowzero": 1}, (np.array([12, -1]),)),
    Case("softmax", 21, "Softmax", (DATA,), {"axis": -1}),
    Case("softmax by default", 21, "LogSoftmax", (DATA,)),
    Case("softmax of unknown rank", 21, "Softmax", (DATA,), {"axis": -1}, ranks=False),
    Case("softmax before ones", 21, "Softmax", (numbers(3, 4, 1),), {"axis": 1}),
    Case("clipped", 13, "Clip", (DATA,), {}, (np.array(-0.5, np.float32), np.array(0.5, np.float32))),
    Case("clipped below", 13, "Clip", (DATA,), {}, (np.array(-0.5, np.float32),)),
    Case("dropped", 13, "Dropout", (DATA,), {"seed": 3}, (np.array(0.3, np.float32), np.array(False))),
    Case("padded", 24, "Pad", (DATA,), {"mode": "reflect"}, (np.array([0, 1, 1, 0, 1, 1]),)),
    Case("pooled", 21, "AveragePool", (np.round(numbers(1, 2, 6, 6)),), {"kernel_shape": [2, 2], "dilations": [1, 1]}),
    Case("shape", 24, "Shape", (DATA,), {"start": 0}, output_types=(INT64,)),
    Case("resized", 21, "Resize", (numbers(1, 1, 4, 4),), {"mode": "linear"}, (None, np.array([1, 1, 2, 2], np.float32))),
    Case("resized to sizes", 21, "Resize", (numbers(1, 1, 4, 4),), {"mode": "nearest"}, (None, None, np.array([1, 1, 6, 2]))),
    Case("sampled", 22, "GridSample", (numbers(1, 1, 4, 4), numbers(1, 2, 2, 2, seed=1)), {"mode": "linear"}),
    Case("recurrent", 22, "LSTM", (numbers(3, 2, 4),), {"hidden_size": 5, "layout": 0}, (numbers(1, 20, 4), numbers(1, 20, 5))),
    Case("normalized", 15, "BatchNormalization", (numbers(2, 3, 4),), {"training_mode": 0}, tuple(np.abs(numbers(3, seed=n)) for n in range(4))),
    Case("gathered", 13, "Gather", (DATA,), {}, (np.array([0, 2]),)),
    Case("top", 24, "TopK", (DATA,), {"largest": 0}, (np.array([2]),), outputs=2, output_types=(1, INT64)),
    Case("aligned", 16, "RoiAlign", (numbers(1, 1, 5, 5), np.array([[0, 0, 4, 4]], np.float32)), {"coordinate_transformation_mode": "output_half_pixel"}, (np.array([0]),)),
    Case("transformed", 20, "DFT", (numbers(1, 8, 1),), {}, (None, np.array(1))),
    Case("constant", 21, "Mod", (np.array([7, -7]),), {"fmod": 0}, (np.array([3, 3]),), output_types=(INT64,)),
]  # fmt: skip

OLDEST = {"GridSample": 16, "DFT": 17, "Mod": 13, "TopK": 11, "Resize": 11, "Pad": 11, "Clip": 11}
"""The oldest opset that these can go to; the others reach 11."""


@pytest.mark.onnxruntime
def test_moved_down(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pairs = [
        (case, opset)
        for opset in (18, 17, 16, 13, 11)
        for case in LOWERED
        if OLDEST.get(case.node, 11) <= opset < case.opset
    ]
    assert min(Counter(opset for _, opset in pairs).values()) > 10
    assert_moves_mean_the_same(pairs, tmp_path)


def test_there_and_back() -> None:
    """What became an input becomes the attribute that it was."""
    for case in (
        Case("axes", 11, "ReduceSum", (DATA,), {"axes": [1, -1], "keepdims": 0}),
        Case("lengths", 11, "Split", (DATA,), {"axis": 1, "split": [1, 3]}, outputs=2),
        Case("new dimensions", 11, "Unsqueeze", (DATA,), {"axes": [0]}),
    ):
        proto = case.proto()
        (node,) = moved(moved(proto, 21), 11).graph.node[1:]
        assert sorted(node.attribute, key=lambda written: written.name) == sorted(
            proto.graph.node[0].attribute, key=lambda written: written.name
        )
        assert list(node.input) == ["x0"]


def test_a_slice_of_no_axes() -> None:
    proto = moved(Case("nowhere", 9, "Slice", (X,), {"starts": [], "ends": [], "axes": []}).proto(), 13)
    arrays = [numpy_helper.to_array(node.attribute[0].t) for node in proto.graph.node[:-1]]
    assert [array.size for array in arrays] == [0, 0, 0]


def test_numbers_of_a_constant_become_a_tensor() -> None:
    for name, value, expected in (
        ("value_int", 3, np.array(3, np.int64)),
        ("value_ints", [1, 2], np.array([1, 2], np.int64)),
        ("value_float", 0.5, np.array(0.5, np.float32)),
        ("value_floats", [0.5, 1.5], np.array([0.5, 1.5], np.float32)),
        ("value_strings", ["a", "b"], np.array(["a", "b"], object)),
    ):
        node = helper.make_node("Constant", [], ["y"])
        node.attribute.append(helper.make_attribute(name, value))
        output = helper.make_tensor_value_info("y", type_of(expected), expected.shape)
        proto = moved(model_of([node], [], [output], opset=13), 11)
        (attribute,) = proto.graph.node[0].attribute
        assert attribute.name == "value"
        array = numpy_helper.to_array(attribute.t)
        assert array.shape == expected.shape
        assert array.tolist() == expected.tolist()
