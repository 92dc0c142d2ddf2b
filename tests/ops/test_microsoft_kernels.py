"""Operators of com.microsoft, and old ones of ONNX, against onnxruntime, on drawn numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from onnx import helper

from ir_scatter.ops.general import ROWS, find_computed
from ir_scatter.ops.general_kernels import UnsupportedCase, compute
from tests.ops.arrays import demand_close, f32, i32, i64, run

onnxruntime = pytest.importorskip("onnxruntime")

pytestmark = pytest.mark.onnxruntime

MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Example:
    """A node; None is a missing input. `skips` are outputs that are not asked for."""

    type: str
    inputs: Sequence[Any]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1
    skips: Sequence[int] = ()
    domain: str = MICROSOFT
    scale: float = 1e-5


def drawn(*shape: int, low: float = -2, high: float = 2, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape).astype(np.float32)


def codes(*shape: int, seed: int = 0, dtype: Any = np.uint8, low: int = 0, high: int = 256) -> Any:
    return np.random.default_rng([seed, *shape]).integers(low, high, shape).astype(dtype)


def example(type: str, *inputs: Any, **attributes: Any) -> Example:
    arrays = [None if value is None else np.asarray(value) for value in inputs]
    outputs = attributes.pop("outputs", 1)
    return Example(type, arrays, attributes, outputs)


def old(type: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Example:
    return Example(type, list(inputs), attributes, outputs, domain="")


def u8(number: int) -> Any:
    return np.array(number, np.uint8)


PICTURE, ROWS_3 = drawn(2, 4, 6, 7), drawn(2, 5, 12)
MATRIX, VECTOR = drawn(3, 5), drawn(12, seed=9)
COSINES, SINES = np.cos(drawn(20, 4)), np.sin(drawn(20, 4))
TURNS = np.cos(drawn(20, 8)), np.sin(drawn(20, 8))
MASK = i32([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])
MASK_3 = np.tril(np.ones((2, 5, 5), np.int32))
HEADS: dict[str, Any] = {"num_heads": 3}
GROUPS: dict[str, Any] = {"num_heads": 4, "kv_num_heads": 2}
WEIGHTS, BIAS = drawn(12, 36, seed=3, low=-1, high=1), drawn(36, seed=4)
A, B = codes(2, 5), codes(2, 5, seed=1)
QUANTIZED = (A, f32(0.0213), u8(120), B, f32(0.0317), u8(101), f32(0.0437), u8(128))
NARROW = (codes(2, 3, 6, 8), f32(0.0213), u8(120), f32(0.0317), u8(101))


def grouped(
    rows: int, totals: Sequence[int], past: int, *more: Any, most: int = 0, packed: bool = False
) -> list[Any]:
    """Return the inputs of GroupQueryAttention: 4 heads of the query, 2 of the keys, of 16 numbers."""
    batch = len(totals)
    caches = [drawn(batch, 2, past, 16, seed=seed) for seed in (7, 8)] if past else [None, None]
    data = [drawn(batch, rows, 128), None, None]
    if not packed:
        data = [drawn(batch, rows, 64), drawn(batch, rows, 32, seed=5), drawn(batch, rows, 32, seed=6)]
    return [*data, *caches, i32(totals) - 1, i32(most or max(totals)), *more]


def few_bits(columns: int, rows: int, block: int, bits: int, points: str) -> list[Any]:
    """Return the inputs of MatMulNBits; zero points are "packed", "float" or ""."""
    blocks = -(-rows // block)
    data = [
        drawn(2, 3, rows), codes(columns, blocks, block * bits // 8), drawn(columns, blocks, low=0.1, high=1),
    ]  # fmt: skip
    if points == "packed":
        data.append(codes(columns, -(-blocks * bits // 8), seed=3))
    elif points == "float":
        data.append(drawn(columns, blocks, low=3, high=9))
    return data


EXAMPLES = [
    # matrices, functions
    example("FusedMatMul", MATRIX, drawn(4, 5), transB=1, alpha=0.7),
    example("FusedMatMul", drawn(2, 5, 3), drawn(2, 5, 4), transA=1),
    example("FusedMatMul", drawn(3, 2, 5), drawn(2, 5, 4), transBatchA=1),
    example("FusedMatMul", drawn(5, 2, 3), drawn(5, 2, 4), transBatchA=1, transA=1, transBatchB=1),
    example("TransposeMatMul", drawn(2, 5, 3), drawn(2, 5, 4), transA=1),
    *(example("FusedGemm", MATRIX, drawn(5, 4), drawn(4), activation=word, alpha=0.5, **more) for word, more in (
        ("Relu", {}), ("LeakyRelu", {"activation_alpha": 0.3}), ("Sigmoid", {}), ("Tanh", {}),
        ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}),
    )),
    *(example("FusedConv", PICTURE, drawn(3, 4, 3, 2), drawn(3), activation=word, pads=[1, 0, 0, 1], **more)
      for word, more in (("Relu", {}), ("Clip", {"activation_params": [-0.5, 0.7]}), ("Sigmoid", {}),
                         ("LeakyRelu", {"activation_params": [0.2]}), ("Tanh", {}))),
    example("FusedConv", PICTURE, drawn(3, 4, 1, 1), drawn(3), drawn(2, 3, 6, 7), activation="Relu"),
    example("Gelu", ROWS_3),
    example("BiasGelu", ROWS_3, VECTOR),
    example("FastGelu", ROWS_3, VECTOR),
    example("FastGelu", ROWS_3),
    example("QuickGelu", ROWS_3, alpha=1.3),
    example("ScaledSiLU", ROWS_3, alpha=0.7),
    example("ScaledSiLU", ROWS_3, f32(1.3)),
    example("GatedAdd", ROWS_3, drawn(2, 5, 12, seed=1), drawn(2, 5, 1)),
    # normalisations
    *(example("GatedRMSNorm", ROWS_3, drawn(4), drawn(2, 5, 12, seed=1), activation=word, epsilon=1e-3)
      for word in ("silu", "sigmoid")),
    Example("SkipLayerNormalization", [ROWS_3, drawn(2, 5, 12, seed=1), VECTOR, drawn(12), drawn(12, seed=2)],
            {"epsilon": 1e-3}, 4, skips=(1, 2)),
    Example("SkipLayerNormalization", [ROWS_3, drawn(5, 12), VECTOR], {}, 1),
    Example("SkipSimplifiedLayerNormalization", [ROWS_3, drawn(1, 5, 12), VECTOR, drawn(12, seed=2)],
            {"epsilon": 1e-3}, 4, skips=(1, 2)),
    old("SimplifiedLayerNormalization", ROWS_3, VECTOR, epsilon=1e-3, outputs=2),
    old("SimplifiedLayerNormalization", ROWS_3, drawn(5, 12), axis=1),
    example("EmbedLayerNormalization", codes(2, 5, dtype=np.int32, high=9), codes(2, 5, dtype=np.int32, high=2), drawn(9, 6),
            drawn(8, 6), drawn(2, 6), drawn(6), drawn(6, seed=1), MASK, outputs=3, epsilon=1e-3),
    example("EmbedLayerNormalization", codes(2, 5, dtype=np.int32, high=9), None, drawn(9, 6), drawn(8, 6), None, drawn(6),
            drawn(6, seed=1), None, codes(2, 5, dtype=np.int32, high=8), outputs=2),
    # attention
    example("RotaryEmbedding", drawn(2, 3, 5, 8), i64(4), COSINES, SINES),
    example("RotaryEmbedding", drawn(2, 5, 24), codes(2, 5, dtype=np.int64, high=20), COSINES, SINES, interleaved=1),
    example("RotaryEmbedding", drawn(2, 5, 36), codes(2, 5, dtype=np.int64, high=20), COSINES, SINES, num_heads=3,
            rotary_embedding_dim=8),
    example("Attention", ROWS_3, WEIGHTS, BIAS, **HEADS),
    example("Attention", ROWS_3, WEIGHTS, BIAS, **HEADS, unidirectional=1, scale=0.4),
    *(example("Attention", ROWS_3, WEIGHTS, BIAS, mask, **HEADS, **more)
      for mask in (MASK, MASK_3, i32([4, 5]), i32([4, 5, 1, 0])) for more in ({}, {"unidirectional": 1})),
    example("Attention", ROWS_3, WEIGHTS, BIAS, None, drawn(2, 2, 3, 6, 4), **HEADS, outputs=2),
    example("Attention", ROWS_3, WEIGHTS, BIAS, None, drawn(2, 2, 3, 6, 4), **HEADS, outputs=2, unidirectional=1),
    example("Attention", ROWS_3, drawn(12, 30), drawn(30), **HEADS, qkv_hidden_sizes=[12, 12, 6]),
    example("MultiHeadAttention", ROWS_3, drawn(2, 7, 12), drawn(2, 7, 6), **HEADS),
    example("MultiHeadAttention", ROWS_3, drawn(2, 5, 12), drawn(2, 5, 12), drawn(36), **HEADS, unidirectional=1, outputs=3),
    example("MultiHeadAttention", ROWS_3, drawn(2, 5, 12), drawn(2, 5, 6), None, MASK, drawn(2, 1, 5, 5), **HEADS),
    example("MultiHeadAttention", ROWS_3, drawn(2, 5, 12), drawn(2, 5, 6), None, MASK_3, **HEADS, mask_filter_value=-3.0),
    example("MultiHeadAttention", ROWS_3, drawn(2, 3, 7, 4), drawn(2, 3, 7, 4), None, **HEADS),
    example("MultiHeadAttention", ROWS_3, drawn(2, 5, 12), drawn(2, 5, 12), None, None, None, drawn(2, 3, 6, 4),
            drawn(2, 3, 6, 4), **HEADS, outputs=3, unidirectional=1),
    *(example("GroupQueryAttention", *grouped(5, [5, 5], past), **GROUPS, outputs=3) for past in (0, 9)),
    example("GroupQueryAttention", *grouped(1, [4, 8], 9), **GROUPS, outputs=3),
    example("GroupQueryAttention", *grouped(1, [4, 8], 7), **GROUPS, outputs=3, scale=0.2, softcap=3.0),
    example("GroupQueryAttention", *grouped(3, [7], 4), **GROUPS, outputs=3, local_window_size=4),
    example("GroupQueryAttention", *grouped(6, [6], 0), **GROUPS, outputs=3, local_window_size=2),
    example("GroupQueryAttention", *grouped(1, [9], 8), **GROUPS, outputs=3, local_window_size=3),
    example("GroupQueryAttention", *grouped(5, [5, 5], 0, *TURNS), **GROUPS, outputs=3, do_rotary=1),
    example("GroupQueryAttention", *grouped(1, [4, 8], 7, *TURNS), **GROUPS, outputs=3, do_rotary=1,
            rotary_interleaved=1),
    example("GroupQueryAttention", *grouped(1, [4, 8], 7, *TURNS, i64([3], [7])), **GROUPS, outputs=3,
            do_rotary=1),
    example("GroupQueryAttention", *grouped(5, [5, 5], 0, *TURNS, packed=True), **GROUPS, outputs=3, do_rotary=1),
    example("GroupQueryAttention", *grouped(5, [5], 0, None, None, None, drawn(1, 4, 5, 5)), **GROUPS, outputs=3),
    example("GroupQueryAttention", *grouped(5, [5], 0, None, None, None, None, drawn(4)), **GROUPS, outputs=3),
    example("GroupQueryAttention", *grouped(5, [5], 0), **GROUPS, outputs=3, smooth_softmax=1),
    *(example("GroupQueryAttention", *grouped(5, [5], 0), **GROUPS, outputs=4, qk_output=mode, softcap=2.0) for mode in (1, 2)),
    *(example("MoE", drawn(2, 3, 8), drawn(6, 4, seed=1), drawn(4, 12, 8), drawn(4, 12), drawn(4, 8, 12), drawn(4, 8),
              k=2, activation_type=word, normalize_routing_weights=flag)
      for word in ("relu", "gelu", "silu") for flag in (0, 1)),
    example("MoE", drawn(6, 8), drawn(6, 4, seed=1), drawn(4, 24, 8), drawn(4, 24), drawn(4, 8, 12), drawn(4, 8), k=2,
            activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=7.0,
            normalize_routing_weights=1),
    # moving
    example("Inverse", np.eye(3, dtype=np.float32) * 3 + drawn(2, 3, 3)),
    example("Trilu", drawn(2, 4, 5), np.array(1), upper=0),
    example("Pad", MATRIX, i64(1, 0, 2, 1), f32(7)),
    example("Pad", MATRIX, i64(1, 0, 2, 1), mode="reflect"),
    example("GridSample", PICTURE, drawn(2, 3, 3, 2, low=-1.2, high=1.2), mode="bilinear", padding_mode="border"),
    example("GatherND", drawn(3, 4, 5), i64([0, 1], [2, 3])),
    example("ExpandDims", MATRIX, i32(-1)),
    example("ExpandDims", MATRIX, i32(1)),
    example("Unique", f32([3, 1, 3, 2, 1, 1]), outputs=3),
    example("Range", f32(1), f32(4), f32(0.5)),
    example("Range", i32(1), i32(4)),
    example("CDist", drawn(4, 3), drawn(5, 3)),
    example("CDist", drawn(4, 3), drawn(5, 3), metric="euclidean"),
    example("NhwcMaxPool", codes(2, 6, 7, 3), kernel_shape=[2, 3], strides=[2, 1], pads=[1, 0, 0, 1]),
    example("UnfoldTensor", drawn(2, 9, 3), dim=1, size=3, step=2),
    # quantised
    example("QLinearAdd", *QUANTIZED),
    example("QLinearMul", *QUANTIZED),
    example("QLinearAdd", A.astype(np.int8), f32(0.0213), np.int8(-3), B[:1].astype(np.int8), f32(0.0317), np.int8(5), f32(0.0437),
            np.int8(1)),
    example("QLinearLeakyRelu", *NARROW, alpha=0.3),
    example("QLinearSigmoid", *NARROW[:3], f32(1 / 256), u8(0)),
    example("QLinearSoftmax", *NARROW[:3], f32(1 / 256), u8(0), opset=13, axis=-1),
    example("QLinearSoftmax", *NARROW[:3], f32(1 / 256), u8(0), opset=11, axis=2),
    example("QLinearGlobalAveragePool", *NARROW),
    example("QLinearGlobalAveragePool", *NARROW, channels_last=1),
    example("QLinearAveragePool", *NARROW, kernel_shape=[2, 3], strides=[2, 1], pads=[1, 0, 0, 1]),
    example("QLinearAveragePool", *NARROW, kernel_shape=[2, 3], count_include_pad=1, pads=[1, 0, 0, 1], channels_last=1),
    example("QLinearWhere", drawn(2, 5) > 0, *QUANTIZED),
    example("QLinearConcat", f32(0.04), u8(128), *QUANTIZED[:6], axis=1),
    example("QLinearConv", *NARROW[:3], codes(4, 3, 3, 2), f32(0.01), u8(128), *NARROW[3:], pads=[1, 0, 0, 1]),
    example("QLinearConv", *NARROW[:3], codes(4, 8, 3, 2), f32(0.01), u8(128), *NARROW[3:], channels_last=1),
    example("QuantizeLinear", MATRIX, f32(0.02), np.uint16(30000)),
    example("QuantizeLinear", MATRIX, f32([0.02, 0.03, 0.01]), np.array([100, 120, 9], np.uint8), axis=0),
    example("DequantizeLinear", codes(3, 5, dtype=np.uint16), f32(0.02), np.uint16(300)),
    example("DequantizeLinear", codes(3, 5), f32([0.02, 0.03, 0.01]), np.array([100, 120, 9], np.uint8), axis=0),
    example("MatMulIntegerToFloat", codes(2, 3, 5), codes(5, 4), f32(0.02), f32(0.03), u8(110), u8(128), drawn(4)),
    example("MatMulIntegerToFloat", codes(3, 5), codes(5, 4, dtype=np.int8, high=60), f32(0.02), drawn(4, low=0.01), u8(110),
            codes(4, dtype=np.int8, high=9)),
    example("DynamicQuantizeMatMul", drawn(2, 3, 5), codes(5, 4), f32(0.02), u8(110), drawn(4)),
    example("DynamicQuantizeMatMul", MATRIX, codes(5, 4, dtype=np.int8, high=60), drawn(4, low=0.01)),
    example("QGemm", codes(3, 5), f32(0.02), u8(120), codes(5, 4), f32(0.03), u8(110), codes(4, dtype=np.int32), f32(0.5),
            u8(128)),
    example("QGemm", codes(5, 3), f32(0.02), u8(120), codes(4, 5), f32(0.03), u8(110), transA=1, transB=1, alpha=0.5),
    example("QAttention", codes(2, 5, 12), codes(12, 36), drawn(36), f32(0.02), f32(0.01), i32([4, 5]), u8(120), u8(128), **HEADS),
    *(example("MatMulNBits", *few_bits(6, 40, 16, bits, points), K=40, N=6, block_size=16, bits=bits)
      for bits in (2, 4, 8) for points in ("", "packed")),
    example("MatMulNBits", *few_bits(6, 64, 32, 4, "float"), K=64, N=6, block_size=32),
    example("MatMulNBits", *few_bits(6, 64, 32, 4, ""), None, None, drawn(6), K=64, N=6, block_size=32),
    Example("MatMulNBits", few_bits(6, 64, 32, 4, ""), {"K": 64, "N": 6, "block_size": 32, "accuracy_level": 4}, scale=2e-2),
    *(example("MatMulBnb4", drawn(2, 3, 40), codes(120), drawn(15, low=0.1, high=1), K=40, N=6, block_size=16, quant_type=kind)
      for kind in (0, 1)),
    example("GatherBlockQuantized", codes(9, 16), i64([0, 8], [3, -1]), drawn(9, 2, low=0.1, high=1), block_size=16, bits=4),
    example("GatherBlockQuantized", codes(9, 16), i64(1, 2), drawn(9, 2, low=0.1, high=1), codes(9, 1), block_size=16, bits=4),
    example("GatherBlockQuantized", codes(9, 32), i64(1, 2), drawn(9, 2, low=0.1, high=1), codes(9, 2), block_size=16, bits=8),
    example("QMoE", drawn(6, 32), drawn(6, 4, seed=1), codes(4, 64, 16), drawn(4, 64, low=0.01, high=0.1), None,
            codes(4, 32, 32), drawn(4, 32, low=0.01, high=0.1), k=2, activation_type="silu", normalize_routing_weights=1),
    # old operators of ONNX
    old("Affine", MATRIX, alpha=0.7, beta=2.0),
    old("Scale", MATRIX, scale=0.3),
    old("ImageScaler", PICTURE, scale=0.3, bias=[1.0, 2.0, 3.0, 4.0]),
    old("ScaledTanh", MATRIX, alpha=0.7, beta=2.0),
    old("ParametricSoftplus", MATRIX, alpha=0.7, beta=2.0),
    old("Crop", PICTURE, border=[1, 0, 2, 1]),
    old("Crop", PICTURE, border=[1, 2, 0, 0], scale=[3, 4]),
]  # fmt: skip


def by_onnxruntime(given: Example) -> list[Any]:
    names = ["" if array is None else f"x{port}" for port, array in enumerate(given.inputs)]
    feeds = {
        name: np.asarray(array) for name, array in zip(names, given.inputs, strict=True) if array is not None
    }
    outputs = ["" if number in given.skips else f"y{number}" for number in range(given.outputs)]
    node = helper.make_node(given.type, names, outputs, domain=given.domain, **given.attributes)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in feeds.items()
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs if name]
    graph = helper.make_graph([node], "node", inputs, results)
    opsets = [helper.make_opsetid("", 9 if given.domain == "" else 17), helper.make_opsetid(MICROSOFT, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def label(given: Example) -> str:
    return given.type


@pytest.mark.parametrize("given", EXAMPLES, ids=label)
def test_agrees_with_onnxruntime(given: Example) -> None:
    opset = 1 if given.domain else 9
    op = find_computed(given.domain, given.type)
    assert op is not None
    found = compute(op, given.domain, given.inputs, given.attributes, opset=opset, output_count=given.outputs)
    kept = [array for number, array in enumerate(found[: given.outputs]) if number not in given.skips]
    demand_close(kept, by_onnxruntime(given), given.scale)


@pytest.mark.parametrize(
    "given", [each for each in EXAMPLES if "accuracy_level" not in each.attributes], ids=label
)
def test_f64_gives_the_same_with_less_rounding(given: Example) -> None:
    op = find_computed(given.domain, given.type)
    assert op is not None
    opset = 1 if given.domain else 9
    wide = [
        array.astype(np.float64) if array is not None and np.asarray(array).dtype == np.float32 else array
        for array in given.inputs
    ]
    first, second = (
        compute(op, given.domain, arrays, given.attributes, opset=opset, output_count=given.outputs)
        for arrays in (given.inputs, wide)
    )
    for narrow, exact in zip(first, second, strict=True):
        if narrow.dtype == np.float32 and given.type != "DynamicQuantizeMatMul":
            assert exact.dtype == np.float64
        np.testing.assert_allclose(
            narrow.astype(np.float64), exact, rtol=1e-4, atol=1e-4 * np.abs(exact).max(initial=1e-9)
        )


def of_microsoft(type: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> tuple[Any, ...]:
    return run(MICROSOFT, type, *inputs, opset=1, outputs=outputs, **attributes)


def test_packed_heads_are_heads() -> None:
    query, key, value = (drawn(2, 5, 3, 4, seed=seed) for seed in range(3))
    flat = [array.reshape(2, 5, 12) for array in (query, key, value)]
    (expected,) = of_microsoft("MultiHeadAttention", *flat, **HEADS)[:1]
    packed = np.stack([query, key, value], 3)
    demand_close(of_microsoft("MultiHeadAttention", packed, **HEADS)[:1], [expected])
    pair = np.stack([key, value], 3)
    demand_close(of_microsoft("MultiHeadAttention", flat[0], pair, **HEADS)[:1], [expected])


def test_heads_are_normalised_before_they_are_compared() -> None:
    inputs = grouped(5, [5], 0)
    weights = drawn(16), drawn(16, seed=1)
    turned = []
    for array, weight in zip(inputs[:2], weights, strict=True):
        heads = array.reshape(*array.shape[:2], -1, 16)
        heads = heads / np.sqrt(np.square(heads).mean(-1, keepdims=True) + np.float32(1e-6)) * weight
        turned.append(heads.reshape(array.shape))
    expected = of_microsoft("GroupQueryAttention", *turned, *inputs[2:], **GROUPS)
    found = of_microsoft("GroupQueryAttention", *inputs, *[None] * 7, *weights, **GROUPS)
    demand_close(found[:1], expected[:1])


def naive_group_norm(data: Any, gamma: Any, beta: Any, groups: int, epsilon: float) -> Any:
    output = np.empty_like(data)
    each = data.shape[-1] // groups
    for number in range(data.shape[0]):
        for group in range(groups):
            place = np.s_[number, ..., group * each : (group + 1) * each]
            part = data[place]
            output[place] = (part - part.mean()) / np.sqrt(part.var() + epsilon)
    return output * gamma + beta


def test_operators_of_cuda_by_their_formulas() -> None:
    """onnxruntime has these on CUDA alone."""
    from math import erf

    data, bias = drawn(2, 3, 8), drawn(8)
    total = data + bias
    gelu = np.vectorize(lambda number: number * 0.5 * (1 + erf(number / 2**0.5)))
    demand_close(of_microsoft("BiasAdd", data, bias, data[::-1]), [total + data[::-1]])
    demand_close(
        of_microsoft("BiasSplitGelu", data, bias),
        [(total[..., :4] * gelu(total[..., 4:])).astype(np.float32)],
    )
    picture, skip, gamma, beta = drawn(2, 3, 5, 8), drawn(2, 8), drawn(8, seed=1), drawn(8, seed=2)
    plain = naive_group_norm(picture, gamma, beta, 4, 1e-3)
    demand_close(of_microsoft("GroupNorm", picture, gamma, beta, groups=4, epsilon=1e-3), [plain])
    first = np.moveaxis(picture, -1, 1)
    swish = plain / (1 + np.exp(-plain))
    demand_close(
        of_microsoft("GroupNorm", first, gamma, beta, groups=4, epsilon=1e-3, channels_last=0, activation=1),
        [np.moveaxis(swish, -1, 1)],
    )
    whole = picture + skip[:, None, None] + bias
    demand_close(
        of_microsoft("SkipGroupNorm", picture, gamma, beta, skip, bias, groups=4, epsilon=1e-3, outputs=2),
        [naive_group_norm(whole, gamma, beta, 4, 1e-3), whole],
    )
    demand_close(of_microsoft("IsAllFinite", data, f32([1, np.inf])), [np.array(False)])
    demand_close(of_microsoft("IsAllFinite", data, f32([1, np.inf]), isnan_only=1), [np.array(True)])
    numbers = codes(2, 3, 6, 8)
    mean = (numbers.astype(np.float64) - 120).mean((0, 2), keepdims=True) * 0.0213
    expected = np.clip(np.rint(mean / 0.0317) + 101, 0, 255).astype(np.uint8)
    demand_close(of_microsoft("QLinearReduceMean", numbers, *NARROW[1:], axes=[0, 2], keepdims=1), [expected])


@pytest.mark.parametrize(
    ("type", "inputs", "attributes", "reason"),
    [
        ("GroupQueryAttention", grouped(5, [5, 3], 0), GROUPS, "padding in a prompt|seqlens_k"),
        ("GroupQueryAttention", grouped(5, [5], 0), GROUPS | {"k_quant_type": "PER_TENSOR"}, "quantised"),
        ("GroupQueryAttention", grouped(1, [9], 4), GROUPS, "cache that is shorter"),
        ("Attention", [ROWS_3, WEIGHTS, BIAS], HEADS | {"do_rotary": 1}, "rotary"),
        ("Attention", [ROWS_3, WEIGHTS, BIAS, i32([1, 2, 3])], HEADS, "mask"),
        ("MatMulNBits", few_bits(6, 64, 32, 4, ""), {"K": 64, "N": 6, "block_size": 32, "weight_prepacked": 1}, "layout"),
        ("RotaryEmbedding", [drawn(2, 3, 5, 8), i64(99), COSINES, SINES], {}, "outside"),
        ("FusedGemm", [MATRIX, drawn(5, 4)], {"activation": "Unheard"}, "not an activation"),
    ],
)  # fmt: skip
def test_what_is_not_specified_is_refused(type: str, inputs: Any, attributes: Any, reason: str) -> None:
    with pytest.raises(UnsupportedCase, match=reason):
        of_microsoft(type, *inputs, **attributes)


def test_every_operator_has_an_example() -> None:
    without_oracle = {
        "BiasAdd", "BiasSplitGelu", "GroupNorm", "SkipGroupNorm", "IsAllFinite", "QLinearReduceMean",
    }  # fmt: skip
    rows = {row.type_in(MICROSOFT) for row in ROWS if row.domain == MICROSOFT}
    assert rows == {each.type for each in EXAMPLES if each.domain} | without_oracle


def test_attributes_are_those_of_the_schemas() -> None:
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

    schemas = {schema.name: schema for schema in get_all_operator_schema() if schema.domain == MICROSOFT}
    for row in ROWS:
        if row.domain == MICROSOFT:
            assert set(row.attributes_in(MICROSOFT)) <= set(schemas[row.type_in(MICROSOFT)].attributes), row
