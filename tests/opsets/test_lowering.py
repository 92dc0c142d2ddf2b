"""Nodes compute the same bytes at older versions, or are refused with the reason."""

from pathlib import Path

import numpy as np
import pytest
from onnx import helper, numpy_helper

from tests.opsets.opset_models import (
    Case,
    assert_moves_mean_the_same,
    model_of,
    moved,
    numbers,
    type_of,
)

X = numbers(3, 4, 6)
BACK = np.array([-1], np.int64)
INT64 = 7

CASES = [
    Case("sum", 18, "ReduceSum", (X,), {"keepdims": 0, "noop_with_empty_axes": 0}, (np.array([1, -1]),)),
    Case("sum of all", 18, "ReduceSum", (X,), {}, (np.array([], np.int64),)),
    Case("mean", 20, "ReduceMean", (X,), {}, (BACK,)),
    Case("mean of all", 20, "ReduceMean", (X,)),
    Case("unsqueezed", 21, "Unsqueeze", (X,), {}, (np.array([0, 4]),)),
    Case("squeezed", 21, "Squeeze", (numbers(1, 3, 1),), {}, (np.array([2]),)),
    Case("split", 18, "Split", (X,), {"axis": 2}, (np.array([1, 2, 3]),), outputs=3),
    Case("split evenly", 18, "Split", (X,), {"axis": 1, "num_outputs": 2}, outputs=2),
    Case("reshaped", 21, "Reshape", (X,), {"allowzero": 0}, (np.array([0, -1]),)),
    Case("reshaped without zeros", 21, "Reshape", (X,), {"allowzero": 1}, (np.array([12, -1]),)),
    Case("softmax", 21, "Softmax", (X,), {"axis": -1}),
    Case("softmax by default", 21, "LogSoftmax", (X,)),
    Case("softmax of unknown rank", 21, "Softmax", (X,), {"axis": -1}, ranks=False),
    Case("softmax before ones", 21, "Softmax", (numbers(3, 4, 1),), {"axis": 1}),
    Case("clipped", 13, "Clip", (X,), {}, (np.array(-0.5, np.float32), np.array(0.5, np.float32))),
    Case("clipped below", 13, "Clip", (X,), {}, (np.array(-0.5, np.float32),)),
    Case("dropped", 13, "Dropout", (X,), {"seed": 3}, (np.array(0.3, np.float32), np.array(False))),
    Case("padded", 24, "Pad", (X,), {"mode": "reflect"}, (np.array([0, 1, 1, 0, 1, 1]),)),
    Case("pooled", 21, "AveragePool", (np.round(numbers(1, 2, 6, 6)),), {"kernel_shape": [2, 2], "dilations": [1, 1]}),
    Case("shape", 24, "Shape", (X,), {"start": 0}, output_types=(INT64,)),
    Case("resized", 21, "Resize", (numbers(1, 1, 4, 4),), {"mode": "linear"}, (None, np.array([1, 1, 2, 2], np.float32))),
    Case("resized to sizes", 21, "Resize", (numbers(1, 1, 4, 4),), {"mode": "nearest"}, (None, None, np.array([1, 1, 6, 2]))),
    Case("sampled", 22, "GridSample", (numbers(1, 1, 4, 4), numbers(1, 2, 2, 2, seed=1)), {"mode": "linear"}),
    Case("recurrent", 22, "LSTM", (numbers(3, 2, 4),), {"hidden_size": 5, "layout": 0}, (numbers(1, 20, 4), numbers(1, 20, 5))),
    Case("normalized", 15, "BatchNormalization", (numbers(2, 3, 4),), {"training_mode": 0}, tuple(np.abs(numbers(3, seed=n)) for n in range(4))),
    Case("gathered", 13, "Gather", (X,), {}, (np.array([0, 2]),)),
    Case("top", 24, "TopK", (X,), {"largest": 0}, (np.array([2]),), outputs=2, output_types=(1, INT64)),
    Case("aligned", 16, "RoiAlign", (numbers(1, 1, 5, 5), np.array([[0, 0, 4, 4]], np.float32)), {"coordinate_transformation_mode": "output_half_pixel"}, (np.array([0]),)),
    Case("transformed", 20, "DFT", (numbers(1, 8, 1),), {}, (None, np.array(1))),
    Case("constant", 21, "Mod", (np.array([7, -7]),), {"fmod": 0}, (np.array([3, 3]),), output_types=(INT64,)),
]  # fmt: skip

LIMITS = {"GridSample": 16, "DFT": 17, "Mod": 13, "TopK": 11, "Resize": 11, "Pad": 11, "Clip": 11}
"""The oldest opset that these can go to; the others reach 11."""


@pytest.mark.onnxruntime
@pytest.mark.parametrize("opset", [18, 17, 16, 13, 11])
def test_moved_down(opset: int, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    cases = [case for case in CASES if LIMITS.get(case.node, 11) <= opset < case.opset]
    assert len(cases) > 10
    assert_moves_mean_the_same([(case, opset) for case in cases], tmp_path)


def test_there_and_back() -> None:
    """What became an input becomes the attribute that it was."""
    for case in (
        Case("axes", 11, "ReduceSum", (X,), {"axes": [1, -1], "keepdims": 0}),
        Case("lengths", 11, "Split", (X,), {"axis": 1, "split": [1, 3]}, outputs=2),
        Case("new dimensions", 11, "Unsqueeze", (X,), {"axes": [0]}),
    ):
        proto = case.proto()
        (node,) = moved(moved(proto, 21), 11).graph.node[1:]
        assert sorted(node.attribute, key=lambda written: written.name) == sorted(
            proto.graph.node[0].attribute, key=lambda written: written.name
        )
        assert list(node.input) == ["x0"]


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
