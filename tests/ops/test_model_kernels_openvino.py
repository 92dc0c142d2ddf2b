"""Operators of networks in an IR against OpenVINO's CPU plugin, on drawn numbers."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter.ops.general import ROWS
from tests.ops.arrays import FLAGS, count, demand_close, f32, i32, i64, run

openvino = pytest.importorskip("openvino")
from openvino import (  # noqa: E402
    opset1,
    opset2,
    opset3,
    opset4,
    opset5,
    opset6,
    opset7,
    opset8,
    opset9,
    opset10,
    opset11,
    opset12,
    opset13,
    opset14,
    opset15,
    opset16,
)

pytestmark = pytest.mark.openvino


@dataclass(frozen=True)
class Example:
    """A node; `parameters` is the number of its first inputs that are no constants.

    The CPU plugin reads no `antialias` and no `cube_coeff` of Pillow's modes, and no `bias` of LRN.
    """

    type: str
    build: Callable[..., Any]
    inputs: Sequence[Any]
    parameters: int = 1
    by_plugin: bool = True


def drawn(*shape: int, low: float = -2, high: float = 2, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape).astype(np.float32)


def example(type: str, build: Callable[..., Any], *inputs: Any, **more: Any) -> Example:
    return Example(type, build, [np.asarray(value) for value in inputs], **more)


NUMBERS = drawn(2, 3, 5)
PICTURE = drawn(2, 4, 6, 7)
LINE, CUBE = drawn(2, 4, 9), drawn(1, 2, 5, 6, 4)
ZERO, ONE = np.array(0, np.int64), np.array(1, np.int64)
HUGE = f32([np.inf, -np.inf, np.nan, 0, 1.5])
SMALL: dict[str, Any] = {"low": -0.9, "high": 0.9}


def pooled(function: Any, **more: Any) -> Callable[..., Any]:
    written = {"strides": [2, 1], "pads_begin": [1, 0], "pads_end": [0, 1], "kernel_shape": [3, 2]} | more
    return lambda x: function(x, **written)


def resized(**more: Any) -> Callable[..., Any]:
    written = {"mode": "linear_onnx", "shape_calculation_mode": "scales"} | more
    return lambda x, sizes, axes: opset11.interpolate(x, sizes, axes=axes, **written)


def sequence(function: Any, gates: int, states: int, biases: int | None = None, **more: Any) -> list[Any]:
    """Return a builder of a sequence of 3 hidden numbers, and its inputs."""
    directions = 2 if more.get("direction") == "bidirectional" else 1
    written = {"hidden_size": 3, "direction": "forward"} | more
    inputs = [
        drawn(2, 5, 4), *(drawn(2, directions, 3, seed=each) for each in range(states)), i32([5, 5]),
        drawn(directions, 3 * gates, 4), drawn(directions, 3 * gates, 3), drawn(directions, 3 * (biases or gates)),
    ]  # fmt: skip
    order = ["hidden_size", "direction"]
    return [
        lambda *nodes: function(*nodes, *(written[name] for name in order), **_rest(written, order)),
        *inputs,
    ]


def _rest(written: dict[str, Any], order: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in written.items() if name not in order}


def cell(function: Any, gates: int, states: int, biases: int | None = None, **more: Any) -> list[Any]:
    inputs = [
        drawn(2, 4), *(drawn(2, 3, seed=each) for each in range(states)),
        drawn(3 * gates, 4), drawn(3 * gates, 3), drawn(3 * (biases or gates)),
    ]  # fmt: skip
    return [lambda *nodes: function(*nodes, 3, **more), *inputs]


def bytes_of(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).integers(0, 256, shape).astype(np.uint8)


def unsigned(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: np.uint64(value) if type(value) is int else value for name, value in attributes.items()}


def boxes_of(*shape: int) -> Any:
    corners = drawn(*shape, 2, low=0, high=1)
    return np.concatenate([corners, corners + drawn(*shape, 2, low=0.1, high=0.6, seed=1)], -1)


def priors_of(
    count: int, classes: int, *, size: int = 4, shared: bool = True, variances: bool = True, stages: int = 1
) -> list[Any]:
    """Return the inputs of DetectionOutput: locations, confidences, priors, and those of a first stage."""
    boxes = boxes_of(count)
    if size == 5:
        boxes = np.concatenate([np.zeros((count, 1), np.float32), boxes * 30], 1)
    rows = [boxes.reshape(-1)]
    if variances:
        rows.append(np.resize(drawn(count, 4, low=0.1, high=0.3), rows[0].size))
    inputs = [
        drawn(2, count * 4 * (1 if shared else classes)), drawn(2, count * classes, low=0, high=1),
        np.stack(rows)[None].astype(np.float32),
    ]  # fmt: skip
    if stages == 2:
        inputs[2] = np.repeat(inputs[2], 2, 0)
        inputs += [drawn(2, count * 2, low=0, high=1), drawn(2, count * 4, seed=5)]
    return inputs


REGIONS = f32([[1, 2, 7, 6], [0, 0, 3, 9], [-3, 5, 14, 7.5]])
WITH_BATCH = f32([[0, 1, 2, 7, 6], [1, 0, 0, 3, 9], [1, 2, 5, 8, 7.5]])
BOXES, CHANCES = boxes_of(2, 8), drawn(2, 3, 8, low=0, high=1)

EXAMPLES = [
    *(example(name, getattr(opset8, name.lower()), drawn(3, 4, **SMALL)) for name in (
        "Acos", "Asin", "Atan", "Asinh", "Atanh", "Cos", "Cosh", "Sin", "Sinh", "Tan", "Tanh", "Exp", "Erf",
        "Sigmoid", "SoftPlus", "Mish", "HSwish", "HSigmoid", "Sign",
    )),
    example("Acosh", opset4.acosh, drawn(3, 4, low=1, high=3)),
    example("Log", opset1.log, drawn(3, 4, low=0.1, high=3)),
    example("Erf", opset1.erf, f32(np.linspace(-7, 7, 201))),
    example("SoftSign", opset9.softsign, NUMBERS),
    example("Round", lambda x: opset5.round(x, "half_to_even"), f32([0.5, 1.5, -2.5, 2.4, -0.5])),
    example("Round", lambda x: opset5.round(x, "half_away_from_zero"), f32([0.5, 1.5, -2.5, 2.4, -0.5])),
    example("Elu", lambda x: opset1.elu(x, 0.7), NUMBERS),
    example("Selu", opset1.selu, NUMBERS, f32([1.6]), f32([1.1])),
    example("Gelu", lambda x: opset7.gelu(x, "erf"), NUMBERS),
    example("Gelu", lambda x: opset7.gelu(x, "tanh"), NUMBERS),
    example("Gelu", lambda x: opset2.gelu(x), NUMBERS),
    example("Swish", opset4.swish, NUMBERS),
    example("Swish", opset4.swish, NUMBERS, f32(0.7)),
    example("HardSigmoid", opset1.hard_sigmoid, NUMBERS, f32(0.3), f32(0.4)),
    example("Clamp", lambda x: opset1.clamp(x, -0.5, 0.7), NUMBERS),
    example("Clamp", lambda x: opset1.clamp(x, -2.5, 7.5), count(2, 6) - 6),
    example("PReLU", opset1.prelu, PICTURE, drawn(4)),
    example("PReLU", opset1.prelu, PICTURE, drawn(1)),
    example("IsFinite", opset10.is_finite, HUGE),
    example("IsNaN", opset10.is_nan, HUGE),
    example("IsInf", opset10.is_inf, HUGE),
    example("IsInf", lambda x: opset10.is_inf(x, {"detect_negative": False}), HUGE),
    example("BitwiseNot", opset13.bitwise_not, count(5)),
    example("BitwiseAnd", opset13.bitwise_and, count(2, 3), i32(3)),
    example("BitwiseOr", opset13.bitwise_or, count(2, 3), i32(3)),
    example("BitwiseXor", opset13.bitwise_xor, FLAGS, FLAGS[:1]),
    example("BitwiseLeftShift", opset15.bitwise_left_shift, count(5), i32(3)),
    example("BitwiseRightShift", opset15.bitwise_right_shift, count(5) * 7, i32(2)),
    example("SquaredDifference", opset1.squared_difference, NUMBERS, drawn(3, 1)),
    example("FakeQuantize", lambda *x: opset1.fake_quantize(*x, 7), NUMBERS, f32(-1), f32(1.5), f32(-3), f32(3)),
    example("FakeQuantize", lambda *x: opset1.fake_quantize(*x, 256), PICTURE, drawn(4, 1, 1, low=-2, high=-1),
            drawn(4, 1, 1, low=1, high=2), f32(-1), f32(1)),
    example("FakeConvert", lambda *x: opset13.fake_convert(*x, destination_type="f8e5m2"), NUMBERS, f32(3)),
    example("FakeConvert", lambda *x: opset13.fake_convert(*x, destination_type="f8e4m3"), NUMBERS, f32(90)),
    # reductions
    example("ReduceL1", opset4.reduce_l1, NUMBERS, i64(0, 2)),
    example("ReduceL2", lambda x, y: opset4.reduce_l2(x, y, True), NUMBERS, ONE),
    example("ReduceMean", opset1.reduce_mean, NUMBERS, i64(1, -1)),
    example("ReduceLogicalAnd", opset1.reduce_logical_and, FLAGS, i64(1)),
    example("ReduceLogicalOr", opset1.reduce_logical_or, FLAGS, i64(0)),
    # matrices
    example("MatMul", lambda x, y: opset1.matmul(x, y, False, True), NUMBERS, drawn(7, 5), parameters=2),
    example("MatMul", lambda x, y: opset1.matmul(x, y, True, False), drawn(5, 3), drawn(2, 5, 4), parameters=2),
    example("MatMul", lambda x, y: opset1.matmul(x, y, True, True), drawn(5), drawn(2, 4, 5), parameters=2),
    example("Einsum", lambda x, y: opset7.einsum([x, y], "abc,cd->bad"), NUMBERS, drawn(5, 2), parameters=2),
    example("Einsum", lambda x, y: opset7.einsum([x, y], "a...c,dc->...da"), PICTURE, drawn(3, 7), parameters=2),
    example("Inverse", opset14.inverse, np.eye(3, dtype=np.float32) * 3 + drawn(2, 3, 3)),
    example("ScaledDotProductAttention", opset13.scaled_dot_product_attention, drawn(2, 3, 4, 5), drawn(2, 3, 6, 5),
            drawn(2, 3, 6, 7), drawn(4, 6), parameters=4),
    example("ScaledDotProductAttention", lambda *x: opset13.scaled_dot_product_attention(*x, causal=True),
            drawn(2, 3, 4, 5), drawn(2, 3, 4, 5, seed=1), drawn(2, 3, 4, 7), parameters=3),
    # normalisations
    example("Softmax", lambda x: opset8.softmax(x, -2), NUMBERS),
    example("LogSoftmax", lambda x: opset5.log_softmax(x, 1), NUMBERS),
    example("MVN", lambda x, y: opset6.mvn(x, y, True, 0.1, "inside_sqrt"), NUMBERS, i64(1, -1)),
    example("MVN", lambda x, y: opset6.mvn(x, y, True, 0.1, "outside_sqrt"), NUMBERS, i64(2)),
    example("MVN", lambda x: opset2.mvn(x, False, True, 1e-3), PICTURE),
    example("MVN", lambda x: opset2.mvn(x, True, False, 1e-3), PICTURE),
    example("NormalizeL2", lambda x, y: opset1.normalize_l2(x, y, 0.1, "add"), PICTURE, i64(1)),
    example("NormalizeL2", lambda x, y: opset1.normalize_l2(x, y, 30.0, "max"), PICTURE, i64(1, 2, 3)),
    example("GroupNormalization", lambda *x: opset12.group_normalization(*x, 2, 1e-3), PICTURE, drawn(4), drawn(4)),
    example("BatchNormInference", lambda *x: opset5.batch_norm_inference(*x, 1e-3), PICTURE, drawn(4), drawn(4),
            drawn(4), drawn(4, low=1)),
    example("LRN", lambda x, y: opset1.lrn(x, y, 0.2, 0.7, 1.0, 3), PICTURE, i64(1)),
    example("LRN", lambda x, y: opset1.lrn(x, y, 0.2, 0.7, 1.0, 5), PICTURE, i64(2, 3)),
    example("GRN", lambda x: opset1.grn(x, 0.3), PICTURE),
    # windows
    example("Convolution", lambda x, y: opset1.convolution(x, y, [2, 1], [1, 0], [2, 1], [1, 2]), PICTURE,
            drawn(3, 4, 3, 2)),
    example("Convolution", lambda x, y: opset1.convolution(x, y, [2], [0], [0], [1], "same_lower"), LINE,
            drawn(3, 4, 4)),
    example("Convolution", lambda x, y: opset1.convolution(x, y, [1, 2, 1], [0, 1, 0], [1, 1, 0], [1, 1, 2]), CUBE,
            drawn(3, 2, 2, 3, 2)),
    example("Convolution", lambda x, y: opset1.convolution(x, y, [1, 1], [1, 1], [1, 1], [1, 1]), drawn(1, 20, 5, 5),
            drawn(3, 20, 3, 3)),
    example("GroupConvolution", lambda x, y: opset1.group_convolution(x, y, [1, 2], [1, 1], [1, 1], [1, 1]), PICTURE,
            drawn(2, 3, 2, 3, 3)),
    example("GroupConvolution", lambda x, y: opset1.group_convolution(x, y, [1, 1], [1, 1], [1, 1], [1, 1]), PICTURE,
            drawn(4, 1, 1, 3, 3)),
    example("ConvolutionBackpropData", lambda x, y: opset1.convolution_backprop_data(
        x, y, [2, 3], pads_begin=[1, 0], pads_end=[0, 1], dilations=[1, 2], output_padding=[1, 0]
    ), PICTURE, drawn(4, 3, 3, 2)),
    example("ConvolutionBackpropData", lambda x, y, z: opset1.convolution_backprop_data(
        x, y, [2, 2], z, [0, 0], [0, 0], [1, 1], "same_upper"
    ), PICTURE, drawn(4, 3, 3, 3), i64(12, 13)),
    example("GroupConvolutionBackpropData", lambda x, y: opset1.group_convolution_backprop_data(
        x, y, [2, 1], pads_begin=[1, 1], pads_end=[1, 1], dilations=[1, 1]
    ), PICTURE, drawn(2, 2, 3, 3, 3)),
    *(example("MaxPool", pooled(opset8.max_pool, dilations=[1, 2], rounding_type=word, axis=axis), PICTURE)
      for word, axis in (("floor", 0), ("ceil", 1), ("floor", 2))),
    example("MaxPool", pooled(opset14.max_pool, dilations=[1, 1], rounding_type="ceil_torch"), PICTURE),
    example("MaxPool", pooled(opset1.max_pool, auto_pad="same_upper"), PICTURE),
    *(example("AvgPool", pooled(function, exclude_pad=exclude, rounding_type=word), PICTURE)
      for function, exclude, word in ((opset1.avg_pool, True, "floor"), (opset1.avg_pool, False, "floor"),
                                      (opset14.avg_pool, True, "ceil_torch"))),
    example("AdaptiveAvgPool", opset8.adaptive_avg_pool, PICTURE, i64(4, 3)),
    example("AdaptiveMaxPool", lambda x, y: opset8.adaptive_max_pool(x, y, "i32"), PICTURE, i64(4, 3)),
    # order
    *(example("TopK", lambda x, k, sort=sort, mode=mode: opset11.topk(x, k, 1, mode, sort, "i64", True),
              f32(count(3, 8) % 5), ZERO + 4) for sort in ("value", "index") for mode in ("max", "min")),
    example("OneHot", lambda *x: opset1.one_hot(*x, -1), i64(0, 2, 5, -1), ZERO + 4, f32(2), f32(-1)),
    example("OneHot", lambda *x: opset16.one_hot(*x, 0, "normalize"), i64(0, 2, 5, -1), ZERO + 4, f32(2), f32(-1)),
    example("Unique", lambda x: opset10.unique(x, sorted=True), f32([3, 1, 3, 2, 1, 1])),
    example("Unique", lambda x: opset10.unique(x, sorted=False), f32([3, 1, 3, 2, 1, 1])),
    example("Unique", lambda x, y: opset10.unique(x, y, True, "i32", "i32"), f32([[3, 1], [2, 1], [3, 1]]), ZERO),
    example("Bucketize", lambda x, y: opset3.bucketize(x, y, "i64", True), f32([0, 1, 2.5, 9]), f32([1, 2, 5])),
    example("Bucketize", lambda x, y: opset3.bucketize(x, y, "i32", False), f32([0, 1, 2.5, 9]), f32([1, 2, 5])),
    example("SearchSorted", lambda x, y: opset15.search_sorted(x, y, True), f32([[1, 2, 2, 5], [0, 1, 3, 4]]),
            f32([[2, 0, 9], [3, 1, 2]])),
    example("SearchSorted", opset15.search_sorted, f32([1, 2, 2, 5]), f32([[2, 0, 9], [3, 1, 2]])),
    example("NonMaxSuppression", lambda *x: opset9.non_max_suppression(*x, sort_result_descending=False),
            drawn(2, 6, 4, low=0, high=1), drawn(2, 3, 6, low=0, high=1), ZERO + 4, f32(0.4), f32(0.2)),
    # moving
    *(example("Pad", lambda x, y, z, mode=mode: opset1.pad(x, y, z, mode), NUMBERS, i64(0, 1, 2), i64(1, 1, 0))
      for mode in ("constant", "edge", "reflect", "symmetric")),
    example("Pad", lambda x, y, z, n: opset12.pad(x, y, z, "constant", n), NUMBERS, i64(0, -1, 2), i64(1, 1, -2), f32(7)),
    example("Roll", opset7.roll, count(3, 5), i64(1, -2, 7), i64(0, 1, -1)),
    example("ReverseSequence", lambda x, y: opset1.reverse_sequence(x, y, 1, 0), count(5, 3), i64(2, 5, 1)),
    example("Eye", lambda x, y, z, n: opset9.eye(x, y, z, "f32", n), ZERO + 3, ZERO + 4, ZERO - 1, i64(2), parameters=0),
    *(example(type, function, drawn(1, 8, 2, 4)) for type, function in (
        ("DepthToSpace", lambda x: opset1.depth_to_space(x, "blocks_first", 2)),
        ("DepthToSpace", lambda x: opset1.depth_to_space(x, "depth_first", 2)),
        ("SpaceToDepth", lambda x: opset1.space_to_depth(x, "blocks_first", 2)),
        ("SpaceToDepth", lambda x: opset1.space_to_depth(x, "depth_first", 2)),
        ("ShuffleChannels", lambda x: opset3.shuffle_channels(x, 1, 4)),
        ("ShuffleChannels", lambda x: opset3.shuffle_channels(x, -1, 2)),
    )),
    example("SpaceToBatch", opset2.space_to_batch, drawn(1, 3, 4, 5), i64(1, 1, 3, 2), i64(0, 0, 1, 0), i64(0, 0, 1, 1)),
    example("BatchToSpace", opset2.batch_to_space, drawn(6, 3, 4, 5), i64(1, 1, 3, 2), i64(0, 0, 1, 0), i64(0, 0, 1, 1)),
    example("ExtractImagePatches", lambda x: opset3.extract_image_patches(x, [2, 3], [2, 2], [1, 2], "same_upper"),
            PICTURE),
    example("ExtractImagePatches", lambda x: opset3.extract_image_patches(x, [2, 2], [1, 3], [2, 1], "valid"), PICTURE),
    example("SliceScatter", opset15.slice_scatter, count(4, 6), count(2, 3) + 50, i64(1, 5), i64(3, -9), i64(1, -2),
            i64(0, 1)),
    example("GatherTree", opset1.gather_tree, i32([[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]]]),
            i32([[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]]]), i32([3]), i32(10)),
    example("Col2Im", lambda *x: opset15.col2im(*x, [2, 1], [1, 1], [0, 1], [0, 1]), drawn(2, 12, 10), i64(4, 5), i64(2, 3)),
    # pictures
    *(example("Interpolate", resized(mode=mode, coordinate_transformation_mode=word), drawn(1, 2, 5, 4), f32([1.6, 2.5]),
              i64(2, 3))
      for mode in ("linear_onnx", "linear", "cubic", "nearest")
      for word in ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", "tf_half_pixel_for_nn")),
    *(example("Interpolate", resized(mode="nearest", nearest_mode=word, coordinate_transformation_mode="asymmetric"),
              drawn(1, 2, 5, 9), f32([1.6, 0.5]), i64(2, 3))
      for word in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")),
    example("Interpolate", resized(mode="linear", antialias=True), drawn(1, 2, 12, 9), f32([0.4, 0.5]), i64(2, 3),
            by_plugin=False),
    *(example("Interpolate", resized(mode=mode, shape_calculation_mode="sizes", cube_coeff=-0.5), drawn(1, 2, 12, 9),
              i64(5, 13), i64(2, 3)) for mode in ("bilinear_pillow", "bicubic_pillow", "cubic")),
    *(example("Interpolate", lambda x, y, words=words: opset1.interpolate(x, y, {
        "axes": [2, 3], "align_corners": words[1], "mode": words[0], "antialias": False, "pads_begin": [0],
        "pads_end": [0]}), drawn(1, 2, 5, 4), i64(8, 7)) for words in (("linear", True), ("linear", False), ("nearest", False))),
    *(example("GridSample", lambda x, y, mode=mode, pad=pad, align=align: opset9.grid_sample(x, y, {
        "align_corners": align, "mode": mode, "padding_mode": pad}),
              drawn(2, 3, 5, 4), drawn(2, 3, 2, 2, low=-1.6, high=1.6), parameters=2)
      for mode in ("bilinear", "bicubic", "nearest") for pad in ("zeros", "border", "reflection")
      for align in (False, True)),
    # signals
    example("DFT", opset7.dft, drawn(2, 5, 4, 2), i64(1, 2)),
    example("DFT", opset7.dft, drawn(2, 5, 4, 2), i64(1, 2), i64(7, 3)),
    example("IDFT", opset7.idft, drawn(2, 5, 4, 2), i64(2)),
    example("RDFT", opset9.rdft, drawn(2, 5, 6), i64(1, 2)),
    example("RDFT", opset9.rdft, drawn(2, 5, 6), i64(2), i64(4)),
    example("IRDFT", opset9.irdft, drawn(2, 5, 4, 2), i64(1, 2)),
    example("IRDFT", opset9.irdft, drawn(2, 5, 4, 2), i64(2), i64(7)),
    *(example("STFT", lambda *x, turns=turns: opset15.stft(*x, turns), drawn(2, 20), drawn(7), ZERO + 8, ZERO + 3)
      for turns in (False, True)),
    # sequences
    *(example("LSTMSequence", *sequence(opset5.lstm_sequence, 4, 2, direction=word))
      for word in ("forward", "reverse", "bidirectional")),
    *(example("GRUSequence", *sequence(opset5.gru_sequence, 3, 1, 4 if linear else 3, linear_before_reset=linear,
                                       direction=word))
      for linear, word in ((False, "forward"), (True, "bidirectional"))),
    example("RNNSequence", *sequence(opset5.rnn_sequence, 1, 1)),
    example("LSTMCell", *cell(opset4.lstm_cell, 4, 2)),
    example("GRUCell", *cell(opset3.gru_cell, 3, 1)),
    example("GRUCell", *cell(opset3.gru_cell, 3, 1, 4, linear_before_reset=True)),
    example("RNNCell", *cell(opset3.rnn_cell, 1, 1, activations=["relu"], activations_alpha=[], activations_beta=[])),
    # bags
    example("EmbeddingBagOffsetsSum", opset3.embedding_bag_offsets_sum, drawn(5, 2), i64(0, 2, 3, 4), i64(0, 0, 2, 2),
            ZERO, drawn(4)),
    example("EmbeddingBagOffsets", lambda *x: opset15.embedding_bag_offsets(*x, reduction="mean"), drawn(5, 2),
            i64(0, 2, 3, 4), i64(0, 0, 2, 2), ZERO),
    example("EmbeddingBagPackedSum", opset3.embedding_bag_packed_sum, drawn(5, 2), count(3, 2) % 5, drawn(3, 2)),
    example("EmbeddingBagPacked", lambda *x: opset15.embedding_bag_packed(*x, reduction="mean"), drawn(5, 2), count(2, 2)),
    example("EmbeddingSegmentsSum", opset3.embedding_segments_sum, drawn(5, 2), i64(0, 2, 3, 4), i64(0, 0, 2, 2),
            ZERO + 4, ZERO, drawn(4)),
    example("SparseFillEmptyRows", opset16.sparse_fill_empty_rows, f32([1, 2, 3]), i64(5, 6), i64([0, 1], [3, 2], [3, 4]),
            f32(-1)),
    *(example("SegmentMax", lambda *x, mode=mode: opset16.segment_max(*x, fill_mode=mode), drawn(4, 2), i64(0, 0, 2, 2),
              ZERO + 4) for mode in ("ZERO", "LOWEST")),
    # detection
    *(example("ROIAlign", lambda *x, mode=mode, word=word, ratio=ratio: opset9.roi_align(*x, 3, 2, ratio, 0.6, mode, word),
              PICTURE, REGIONS, i32([0, 1, 1]), parameters=3)
      for mode in ("avg", "max") for word in ("asymmetric", "half_pixel", "half_pixel_for_nn") for ratio in (0, 2)),
    *(example("ROIAlignRotated", lambda *x, flag=flag: opset15.roi_align_rotated(*x, 3, 2, 2, 0.6, flag), PICTURE,
              f32([[4, 3, 5, 4, 0.4], [2, 5, 3, 9, -1.1], [5, 2, 2, 2, 2.0]]), i32([0, 1, 1]), parameters=3)
      for flag in (False, True)),
    *(example("ROIPooling", lambda *x, mode=mode: opset2.roi_pooling(*x, [3, 2], 0.6, mode), PICTURE, boxes, parameters=2)
      for mode, boxes in (("max", WITH_BATCH), ("bilinear", f32([[0, 0.1, 0.2, 0.9, 0.8], [1, 0, 0, 1, 1]])))),
    *(example("PSROIPooling", lambda *x, mode=mode: opset1.psroi_pooling(*x, 2, 3, 0.7, 2, 3, mode), drawn(2, size, 6, 7),
              boxes, parameters=2)
      for mode, size, boxes in (("average", 18, WITH_BATCH), ("bilinear", 12, f32([[0, 0.1, 0.2, 0.9, 0.8], [1, 0, 0, 1, 1]])))),
    example("DeformablePSROIPooling", lambda x, y, z: opset1.deformable_psroi_pooling(
        x, y, 2, 0.7, 3, "bilinear_deformable", 2, 2, 0.1, 3, z), drawn(2, 18, 6, 7), WITH_BATCH, drawn(3, 2, 3, 3), parameters=3),
    *(example("DeformableConvolution", lambda x, y, z, mask, pad=pad: opset8.deformable_convolution(
        x, y, z, [1, 2], [1, 0], [0, 1], [1, 1], mask, "EXPLICIT", 1, 2, pad), PICTURE, drawn(2, 36, 5, 3), drawn(3, 4, 3, 3),
              drawn(2, 18, 5, 3, low=0, high=1), parameters=4) for pad in (False, True)),
    example("DeformableConvolution", lambda x, y, z: opset1.deformable_convolution(
        x, y, z, [1, 1], [1, 1], [1, 1], [1, 1]), PICTURE, drawn(2, 18, 6, 7), drawn(3, 4, 3, 3), parameters=3),
    example("PriorBox", lambda x, y: opset8.prior_box(x, y, {
        "min_size": [3.0, 5.0], "max_size": [7.0, 9.0], "aspect_ratio": [2.0, 3.0], "flip": True, "clip": True, "step": 0.0,
        "offset": 0.5, "variance": [0.1, 0.1, 0.2, 0.2], "scale_all_sizes": True}), i64(3, 4), i64(30, 50), parameters=0),
    example("PriorBox", lambda x, y: opset8.prior_box(x, y, {
        "min_size": [0.1, 0.3], "aspect_ratio": [2.0], "flip": False, "clip": False, "step": 0.2, "offset": 0.5,
        "variance": [0.1], "scale_all_sizes": False, "min_max_aspect_ratios_order": False}), i64(3, 4), i64(30, 50), parameters=0),
    *(example("PriorBox", lambda x, y, more=more: opset8.prior_box(x, y, {
        "fixed_size": [8.0, 13.0], "density": [2.0, 1.0], "step": 4.0, "offset": 0.5, "variance": [0.1], **more}), i64(3, 4),
              i64(30, 50), parameters=0) for more in ({"fixed_ratio": [2.0]}, {"aspect_ratio": [3.0], "flip": True})),
    *(example("PriorBoxClustered", lambda x, y, more=more: opset1.prior_box_clustered(x, y, {
        "width": [3.0, 8.0], "height": [4.0, 5.0], "offset": 0.5, "variance": [0.1, 0.1, 0.2, 0.2], **more}), i64(3, 4),
              i64(30, 50), parameters=0) for more in ({"clip": True}, {"step_w": 7.0, "step_h": 9.0}, {"step": 6.0})),
    *(example("DetectionOutput", lambda *x, more=more: opset8.detection_output(x[0], x[1], x[2], {
        "keep_top_k": [6], "nms_threshold": 0.3, "code_type": "caffe.PriorBoxParameter.CENTER_SIZE", "share_location": True,
        "normalized": True, "confidence_threshold": 0.2, "top_k": 5} | more, *x[3:]), *priors, parameters=len(priors))
      for priors, more in (
          (priors_of(8, 3), {}),
          (priors_of(8, 3), {"code_type": "caffe.PriorBoxParameter.CORNER", "keep_top_k": [-1], "clip_after_nms": True}),
          (priors_of(8, 3, shared=False), {"share_location": False, "clip_before_nms": True}),
          (priors_of(8, 3), {"decrease_label_id": True}),
          (priors_of(8, 3, variances=False), {"variance_encoded_in_target": True}),
          (priors_of(8, 3, size=5), {"normalized": False, "input_height": 30, "input_width": 40}),
          (priors_of(8, 3, stages=2), {"objectness_score": 0.4}),
      )),
    example("RegionYolo", lambda x: opset1.region_yolo(x, 4, 3, 2, True, [0], 1, 3), drawn(2, 16, 3, 5)),
    example("RegionYolo", lambda x: opset1.region_yolo(x, 4, 3, 4, False, [0, 2], 1, 3), drawn(2, 16, 3, 5)),
    example("ReorgYolo", lambda x: opset2.reorg_yolo(x, [2]), drawn(2, 8, 6, 4)),
    *(example("Proposal", lambda x, y, z, more=more: opset4.proposal(x, y, z, unsigned({
        "base_size": 8, "pre_nms_topn": 20, "post_nms_topn": 6, "nms_thresh": 0.5, "feat_stride": 4, "min_size": 2,
        "ratio": [0.5, 2.0], "scale": [1.0, 2.0]} | more)), drawn(1, 8, 3, 4, low=0, high=1), drawn(1, 16, 3, 4, low=-0.4, high=0.4),
              image, parameters=3) for image, more in (
          (f32([20, 24, 1.5]), {}), (f32([20, 24, 1.5, 1.2]), {"framework": "tensorflow", "normalize": True}),
          (f32([20, 24, 1]), {"clip_before_nms": False, "clip_after_nms": True, "post_nms_topn": 12, "box_size_scale": 5.0,
                               "box_coordinate_scale": 10.0}))),
    *(example("GenerateProposals", lambda *x, more=more: opset9.generate_proposals(*x, **more), image, boxes_of(3, 4, 2) * 20,
              drawn(2, 8, 3, 4, low=-0.5, high=0.5), drawn(2, 2, 3, 4, low=0, high=1), parameters=4)
      for image, more in (
          (f32([[20, 24, 1.5], [18, 20, 1]]), {"min_size": 3.0, "nms_threshold": 0.4, "pre_nms_count": 20, "post_nms_count": 6}),
          (f32([[20, 24, 1.5, 1.2], [18, 20, 1, 1]]), {"min_size": 4.0, "nms_threshold": 0.6, "pre_nms_count": 30,
                                                       "post_nms_count": 9, "normalized": False, "roi_num_type": "i32"}))),
    *(example("MulticlassNms", lambda x, y, more=more: opset8.multiclass_nms(x, y, **more), BOXES, CHANCES, parameters=2)
      for more in (
          {"iou_threshold": 0.3, "score_threshold": 0.2, "sort_result_type": "score"}, {"sort_result_type": "score"},
          {"iou_threshold": 0.6, "nms_top_k": 3, "keep_top_k": 5, "background_class": 0, "sort_result_type": "classid"},
          {"iou_threshold": 0.7, "nms_eta": 0.8, "normalized": False, "sort_result_type": "score",
           "sort_result_across_batch": True, "output_type": "i32"},
      )),
    example("MulticlassNms", lambda *x: opset9.multiclass_nms(*x, iou_threshold=0.4, sort_result_type="score"),
            boxes_of(3, 7), drawn(3, 7, low=0, high=1), i64(4, 3), parameters=3),
    *(example("MatrixNms", lambda x, y, more=more: opset8.matrix_nms(x, y, **more), BOXES, CHANCES, parameters=2)
      for more in (
          {"score_threshold": 0.1, "sort_result_type": "score", "post_threshold": 0.1},
          {"decay_function": "gaussian", "gaussian_sigma": 1.5, "sort_result_type": "score", "nms_top_k": 4, "keep_top_k": 6},
          {"sort_result_type": "classid", "sort_result_across_batch": True, "background_class": 0, "normalized": False},
      )),
    *(example("CTCGreedyDecoder", lambda x, y, flag=flag: opset1.ctc_greedy_decoder(x, y, flag), drawn(9, 2, 3),
              f32(np.arange(9)[:, None] < [7, 9]), parameters=2) for flag in (False, True)),
    *(example("CTCGreedyDecoderSeqLen", lambda *x, flag=flag: opset6.ctc_greedy_decoder_seq_len(*x, flag, "i64", "i32"),
              drawn(2, 9, 3), i32([7, 9]), np.array(1, np.int32), parameters=2) for flag in (False, True)),
    *(example("CTCLoss", lambda *x, more=more: opset4.ctc_loss(*x, *more), drawn(2, 6, 4), i32([5, 6]),
              i32([[0, 2, 2, 1, 0, 0], [1, 1, 0, 2, 2, 0]]), i32([3, 2]), np.array(3, np.int32))
      for more in ((False, True, False), (False, False, False), (True, True, False), (False, True, True))),
    *(example("ISTFT", lambda *x, words=words: opset16.istft(*x[:4], *words, *x[4:]), drawn(2, 5, 6, 2), drawn(size, low=0.2),
              ZERO + 8, ZERO + 3, *more)
      for words in ((False, False), (True, True)) for size, more in ((8, ()), (6, (ZERO + 20,)))),
    *(example(type, getattr(opset8, name), *planes, parameters=len(planes))
      for type, name, planes in (
          ("NV12toRGB", "nv12_to_rgb", (bytes_of(2, 6, 8, 1),)), ("NV12toBGR", "nv12_to_bgr", (bytes_of(2, 6, 8, 1),)),
          ("NV12toRGB", "nv12_to_rgb", (bytes_of(2, 4, 8, 1), bytes_of(2, 2, 4, 2))),
          ("I420toRGB", "i420_to_rgb", (bytes_of(2, 6, 8, 1),)), ("I420toBGR", "i420_to_bgr", (bytes_of(2, 6, 8, 1),)),
          ("I420toBGR", "i420_to_bgr", (bytes_of(2, 4, 8, 1), bytes_of(2, 2, 4, 1), bytes_of(2, 2, 4, 1, seed=1))),
          ("NV12toRGB", "nv12_to_rgb", (bytes_of(2, 6, 8, 1).astype(np.float32),)),
      )),
]  # fmt: skip


def constant(array: Any) -> Any:
    return openvino.op.Constant(openvino.Tensor(np.asarray(array, order="C")))


def parameter(array: Any) -> Any:
    return opset1.parameter(list(array.shape), openvino.Type(array.dtype))


def label(given: Example) -> str:
    return given.type


@pytest.mark.parametrize("given", EXAMPLES, ids=label)
@pytest.mark.long
def test_agrees_with_the_cpu_plugin(given: Example, tmp_path: Path) -> None:
    nodes = [
        parameter(array) if port < given.parameters else constant(array)
        for port, array in enumerate(given.inputs)
    ]
    node = given.build(*nodes)
    model = openvino.Model(node.outputs(), nodes[: given.parameters])
    openvino.serialize(model, tmp_path / "model.xml")
    layers = ElementTree.parse(tmp_path / "model.xml").getroot().iter("layer")
    (layer,) = [each for each in layers if each.get("type") not in {"Const", "Result", "Parameter"}]
    data = layer.find("data")
    assert layer.get("type", "").lower() == given.type.lower()
    attributes: Any = {} if data is None else dict(data.attrib)
    opset = int(layer.get("version", "").removeprefix("opset"))
    found = run("openvino", given.type, *given.inputs, opset=opset, outputs=len(node.outputs()), **attributes)
    expected = (by_plugin if given.by_plugin else by_evaluation)(model, given.inputs[: given.parameters])
    demand_close(found[: len(expected)], expected)


def by_plugin(model: Any, inputs: Sequence[Any]) -> list[Any]:
    compiled = openvino.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled(list(inputs))
    return [results[port] for port in compiled.outputs]


def by_evaluation(model: Any, inputs: Sequence[Any]) -> list[Any]:
    outputs = [openvino.Tensor(output.element_type, output.shape) for output in model.outputs]
    assert model.evaluate(outputs, [openvino.Tensor(array) for array in inputs])
    return [output.data for output in outputs]


def test_every_operator_has_an_example() -> None:
    computed_types = {
        row.type_in("openvino")
        for row in ROWS
        if row.model_kernel_in("openvino") and not row.kernel_in("openvino")
    }
    # OpenVINO's Python interface does not make these
    internal = {"RMS", "Reverse", "ErfInv", "BinaryConvolution"}
    assert computed_types - {""} - internal == {given.type for given in EXAMPLES}


def test_inverse_error_function() -> None:
    from math import erf

    numbers = np.linspace(-3.8, 3.8, 41)
    images = np.array([erf(number) for number in numbers])
    (found,) = run("openvino", "ErfInv", images, opset=17)
    np.testing.assert_allclose(found, numbers, rtol=1e-8, atol=1e-12)
    (ends,) = run("openvino", "ErfInv", f32([-1, 1, 2, 0]), opset=17)
    np.testing.assert_array_equal(ends, f32([-np.inf, np.inf, np.nan, 0]))


@pytest.mark.parametrize("pad", [0.0, 1.0])
def test_binary_convolution_by_a_naive_loop(pad: float) -> None:
    data, bits = drawn(1, 3, 5, 4), (drawn(2, 3, 3, 2) > 0).astype(np.uint8)
    (found,) = run(
        "openvino", "BinaryConvolution", data, bits, opset=1, strides="1, 1", pads_begin="1, 0", pads_end="1, 0",
        dilations="1, 1", mode="xnor-popcount", pad_value=str(pad),
    )  # fmt: skip
    signs = np.where(np.pad(data, [(0, 0), (0, 0), (1, 1), (0, 0)], constant_values=pad) > 0, 1, -1)
    expected = np.zeros((1, 2, 5, 3), np.float32)
    for out, row, column in np.ndindex(2, 5, 3):
        part = signs[0, :, row : row + 3, column : column + 2]
        expected[0, out, row, column] = (part * np.where(bits[out] > 0, 1, -1)).sum()
    demand_close([found], [expected])
