"""Nodes that an adapter takes to newer versions compute the same bytes there."""

from pathlib import Path

import numpy as np
import pytest

from tests.opsets.opset_models import (
    Case,
    assert_moves_mean_the_same,
    numbers,
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
    Case(
        "out of range",
        9,
        "Slice",
        (X,),
        {"starts": [-2, -100], "ends": [2**31 - 1, 2**63 - 1], "axes": [1, 2]},
    ),
    Case("empty", 9, "Slice", (X,), {"starts": [3, 2], "ends": [9, -4], "axes": [0, 1]}),
    Case("from the end", 9, "Slice", (X,), {"starts": [-3, 1, 0], "ends": [-1, 9, -2]}),
    Case(
        "whole numbers", 9, "Slice", (numbers(4, 3, type="int64"),), {"starts": [1], "ends": [3], "axes": [1]}
    ),
]

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


def upsampling(name: str, mode: str, *scales: float) -> Case:
    return Case(
        name, 9, "Upsample", (numbers(1, 2, 4, 5),), {"mode": mode}, (np.array([1, 1, *scales], np.float32),)
    )


UPSAMPLE = [
    upsampling("nearest", "nearest", 2, 3),
    upsampling("nearest by fractions", "nearest", 1.5, 2.3),
    upsampling("nearest by hardly anything", "nearest", 1.01, 1.0),
    upsampling("linear", "linear", 2, 3),
    upsampling("linear by fractions", "linear", 1.7, 2.4),
    Case("scales that are fed", 9, "Upsample", (numbers(1, 1, 3, 3), np.array([1, 1, 2, 1.5], np.float32))),
    Case("attribute", 7, "Upsample", (numbers(1, 1, 3, 3),), {"scales": [1.0, 1.0, 2.0, 2.0]}),
]


def resizing(name: str, mode: str, *scales: float) -> Case:
    return Case(
        name, 10, "Resize", (numbers(1, 2, 7, 9),), {"mode": mode}, (np.array([1, 1, *scales], np.float32),)
    )


NOTHING = np.zeros(0, np.float32)
RESIZE = [
    resizing("nearest", "nearest", 2, 1.4),
    resizing("nearest smaller", "nearest", 0.6, 0.35),
    resizing("nearest halves", "nearest", 0.5, 0.5),
    resizing("nearest smaller in one dimension", "nearest", 1, 0.3),
    resizing("linear", "linear", 2.5, 1.3),
    resizing("linear smaller", "linear", 0.6, 0.9),
    resizing("linear both ways", "linear", 0.5, 2),
    Case("sizes", 11, "Resize", (numbers(1, 1, 4, 4),), {}, (NOTHING, NOTHING, np.array([1, 1, 6, 3]))),
    Case(
        "scales of 11",
        11,
        "Resize",
        (numbers(1, 1, 4, 4),),
        {"mode": "cubic"},
        (NOTHING, np.array([1, 1, 2, 2], np.float32)),
    ),
]

CHANNELS = tuple(np.abs(numbers(4, seed=seed)) + np.float32(0.1) for seed in range(4))
BATCH_NORMALIZATION = [
    Case("plain", 9, "BatchNormalization", (numbers(2, 4, 3),), {}, CHANNELS),
    Case(
        "attributes",
        9,
        "BatchNormalization",
        (numbers(2, 4, 3, 2),),
        {"epsilon": 0.01, "momentum": 0.5},
        CHANNELS,
    ),
    Case("spatial", 7, "BatchNormalization", (numbers(2, 4, 3),), {"spatial": 1}, CHANNELS),
]

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
    Case(
        node, 9, node, (numbers(3, 2, 4),), {"hidden_size": 5, "direction": "bidirectional"},
        (numbers(2, gates * 5, 4, seed=1), numbers(2, gates * 5, 5, seed=2), numbers(2, gates * 10, seed=3)),
    )
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


@pytest.mark.onnxruntime
@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(cases, id=cases[0].node)
        for cases in (
            CLIP, SLICE, TOP_K, PAD, UPSAMPLE, RESIZE, BATCH_NORMALIZATION, COERCED, AXES, REDUCED, DROPOUT,
            ONE_HOT, RECURRENT, POOLS, LATER, WIDENED,
        )
    ],
)  # fmt: skip
def test_moved_up(cases: list[Case], tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pairs = [
        (case, opset)
        for case in cases
        for opset in UP
        if case.opset < opset <= LAST.get(case.node, NEWEST_OF_RUNTIME)
    ]
    assert_moves_mean_the_same(pairs, tmp_path)
