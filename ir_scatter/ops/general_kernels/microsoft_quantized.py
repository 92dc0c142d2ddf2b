"""Kernels of the domain com.microsoft for quantised tensors and weights of 2 to 8 bits.

A quantised number q represents (q - zero point) * scale. Operators named QLinear... compute with the
represented numbers, and quantise the result: they round half to even, and saturate.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.core.shapes import show
from ir_scatter.ops.general_kernels.base import (
    REAL,
    WHOLE,
    Kernel,
    KernelCase,
    UnsupportedCase,
    narrow,
    normalize_axis,
    require_kind,
    widen,
)
from ir_scatter.ops.general_kernels.functions import sigmoid
from ir_scatter.ops.general_kernels.matrices import product, zero_point
from ir_scatter.ops.general_kernels.microsoft import attend_projected, route, with_attributes
from ir_scatter.ops.general_kernels.normalize import softmax_of
from ir_scatter.ops.general_kernels.quantize import (
    dequantize_linear,
    dynamic_quantize_linear,
    qlinear_convolution,
    quantize_linear,
    saturated,
)
from ir_scatter.ops.general_kernels.windows import average_pool

_BYTE = 8


def _scalar(array: Array) -> Any:
    if array.size != 1:
        raise UnsupportedCase(f"a scale or zero point has shape {show(array.shape)}, expected one number")
    return widen(array).reshape(())


def numbers_of(case: KernelCase, port: int) -> Array:
    """Return the numbers that data in input `port` represents; scale and zero point are the next inputs."""
    data = case.array(port)
    require_kind(WHOLE, data)
    factor = _scalar(case.array(port + 1))
    point = _scalar(case.array(port + 2)).astype(factor.dtype) if case.has(port + 2) else 0
    return np.asarray((widen(data).astype(factor.dtype) - point) * factor)


def quantized(case: KernelCase, numbers: Array, port: int, type: np.dtype[Any]) -> Array:
    """Quantise numbers with the scale in input `port`, and the zero point in the next input."""
    point = _scalar(case.array(port + 1)).astype(np.float64) if case.has(port + 1) else 0.0
    case.reserve(numbers.shape)
    return saturated(np.rint(numbers / _scalar(case.array(port))).astype(np.float64) + point, type)


def binary(function: Callable[[Array, Array], Any]) -> Kernel:
    """Return the kernel of a function of two quantised tensors."""

    def kernel(case: KernelCase) -> Array:
        result = function(numbers_of(case, 0), numbers_of(case, 3))
        return quantized(case, np.asarray(result), 6, case.array(0).dtype)

    return kernel


def unary(function: Callable[[Array, KernelCase], Any]) -> Kernel:
    """Return the kernel of a function of one quantised tensor."""

    def kernel(case: KernelCase) -> Array:
        return quantized(case, np.asarray(function(numbers_of(case, 0), case)), 3, case.array(0).dtype)

    return kernel


def leaky_relu(data: Array, case: KernelCase) -> Array:
    alpha = data.dtype.type(case.attributes.number("alpha", 0.01))
    return np.where(data < 0, data * alpha, data)


def sigmoid_of(data: Array, case: KernelCase) -> Array:
    return sigmoid(data)


def softmax(data: Array, case: KernelCase) -> Array:
    axis = case.attributes.integer("axis", -1)
    if case.attributes.integer("opset", 13) < 13:
        axis = normalize_axis(axis, data.ndim)
        rows = data.reshape(int(np.prod(data.shape[:axis])), -1)
        return softmax_of(rows, 1).reshape(data.shape)
    return softmax_of(data, normalize_axis(axis, data.ndim))


def mean_of(data: Array, case: KernelCase) -> Any:
    axes = tuple(case.attributes.integers("axes", range(data.ndim))) or tuple(range(data.ndim))
    return data.mean(axes, keepdims=case.attributes.boolean("keepdims", True), dtype=data.dtype)


def global_mean(data: Array, case: KernelCase) -> Any:
    is_last = case.attributes.boolean("channels_last", False)
    axes = tuple(range(1, data.ndim - 1)) if is_last else tuple(range(2, data.ndim))
    return data.mean(axes, keepdims=True, dtype=data.dtype)


def average(data: Array, case: KernelCase) -> Array:
    is_last = case.attributes.boolean("channels_last", False)
    plain = with_attributes(case, channels_last=None)
    data = np.moveaxis(data, -1, 1) if is_last else data
    output = np.asarray(average_pool(replace(plain, inputs=(data,))))
    return np.moveaxis(output, 1, -1) if is_last else output


def select(case: KernelCase) -> Array:
    """Select elements of two quantised tensors, and quantise the result."""
    chosen = np.where(case.array(0), numbers_of(case, 1), numbers_of(case, 4))
    return quantized(case, chosen, 7, case.array(1).dtype)


def concat(case: KernelCase) -> Array:
    """Concatenate quantised tensors; each input is followed by its scale and zero point."""
    parts = [numbers_of(case, port) for port in range(2, len(case.inputs), 3)]
    if not parts:
        raise UnsupportedCase("there are no tensors to concatenate")
    joined = np.concatenate(parts, normalize_axis(case.attributes.integer("axis"), parts[0].ndim))
    return quantized(case, joined, 0, case.array(1).dtype)


def convolution(case: KernelCase) -> Array:
    """Convolve quantised data; channels may be the last axis."""
    is_last = case.attributes.boolean("channels_last", False)
    plain = with_attributes(case, channels_last=None)
    if not is_last:
        return qlinear_convolution(plain)
    moved = (np.moveaxis(case.array(0), -1, 1), *case.inputs[1:])
    return np.moveaxis(qlinear_convolution(replace(plain, inputs=moved)), 1, -1)


def quantize(case: KernelCase) -> Array:
    return quantize_linear(replace(case, opset=21))


def dequantize(case: KernelCase) -> Array:
    return dequantize_linear(replace(case, opset=21))


# Products of matrices.


def _integer_product(
    case: KernelCase, left: Array, right: Array, points: tuple[int, int], *, is_of_rows: bool = True
) -> Array:
    operands = [
        operand.astype(np.int64) - zero_point(case, port, operand, is_left and is_of_rows)
        for operand, port, is_left in ((left, points[0], True), (right, points[1], False))
    ]
    return product(case, *operands)


def integer_product_to_float(case: KernelCase) -> Array:
    """Multiply matrices of integers after subtracting zero points; multiply the product by two scales."""
    left, right, left_scale, right_scale = case.arrays(4)
    require_kind(WHOLE, left, right)
    total = _integer_product(case, left, right, (4, 5), is_of_rows=False)
    factor = widen(left_scale) * widen(right_scale)
    output = total.astype(factor.dtype) * factor
    if case.has(6):
        output = output + widen(case.array(6))
    return narrow(output, left_scale.dtype)


def dynamically_quantized_product(case: KernelCase) -> Array:
    """Quantise the left matrix to u8 by its range, and multiply."""
    left, right, scale = case.arrays(3)
    require_kind(REAL, left, scale)
    codes, factor, point = dynamic_quantize_linear(replace(case, inputs=(left.astype(np.float32),)))
    shifted = right.astype(np.int64) - zero_point(case, 3, right, False)
    total = product(case, codes.astype(np.int64) - int(point), shifted)
    output = total.astype(np.float32) * (np.float32(factor) * widen(scale).astype(np.float32))
    if case.has(4):
        output = output + widen(case.array(4)).astype(np.float32)
    return narrow(output, left.dtype)


def gemm(case: KernelCase) -> Array:
    """Multiply quantised matrices and add integers; quantise the result if there is a scale for it."""
    left, right = case.array(0), case.array(3)
    require_kind(WHOLE, left, right)
    is_turned = [case.attributes.boolean(name, False) for name in ("transA", "transB")]
    a, b = (array.T if turned else array for array, turned in zip((left, right), is_turned, strict=True))
    total = _integer_product(case, a, b, (2, 5), is_of_rows=False)
    if case.has(6):
        total = total + np.broadcast_to(case.array(6).astype(np.int64), total.shape)
    factor = widen(case.array(1)) * widen(case.array(4))
    output = total.astype(factor.dtype) * factor * factor.dtype.type(case.attributes.number("alpha", 1.0))
    if not case.has(7):
        return np.asarray(output)
    type = case.array(8).dtype if case.has(8) else np.dtype(np.uint8)
    return quantized(case, output, 7, type)


def attention(case: KernelCase) -> tuple[Array, ...]:
    """Project a quantised input with quantised weights to query, key and value, and attend."""
    left, right, bias, left_scale, right_scale = case.arrays(5)
    require_kind(WHOLE, left, right)
    total = _integer_product(case, left, right, (6, 7))
    factor = widen(left_scale) * widen(right_scale)
    projected = total.astype(factor.dtype) * factor + widen(bias)
    return attend_projected(case, projected, bias.dtype, mask=5, past=8, bias=9)


# Weights of few bits.


def unpack(packed: Array, bits: int) -> Array:
    """Return the numbers packed in bytes along the last axis; low bits come first."""
    if bits not in {1, 2, 4, 8} or packed.dtype != np.uint8:
        raise UnsupportedCase(f"numbers of {bits} bits in {packed.dtype} are not computed")
    shifts = np.arange(0, _BYTE, bits, dtype=np.uint8)
    parts = (packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return np.asarray(parts.reshape(*packed.shape[:-1], -1))


def _block_parameters(
    case: KernelCase, scales: int, points: int, shape: tuple[int, ...], bits: int
) -> tuple[Array, Array]:
    """Return scales and zero points of a shape; each row of packed zero points begins with a new byte."""
    factors = widen(case.array(scales)).reshape(shape)
    if not case.has(points):
        return factors, np.asarray(factors.dtype.type(1 << bits - 1))
    written = case.array(points)
    if written.dtype == np.uint8:
        written = unpack(written.reshape(*shape[:-1], -1), bits)[..., : shape[-1]]
    return factors, widen(written).reshape(shape).astype(factors.dtype)


def _low_precision(data: Array, block: int) -> Array:
    """Round blocks of rows to 8 bits, as runtimes may with accuracy level 4."""
    size = data.shape[-1]
    padded = np.pad(data, [(0, 0)] * (data.ndim - 1) + [(0, -size % block)])
    blocks = padded.reshape(*data.shape[:-1], -1, block)
    scale = np.abs(blocks).max(-1, keepdims=True) / data.dtype.type(127)
    rounded = np.rint(blocks / np.where(scale == 0, data.dtype.type(1), scale)) * scale
    return np.asarray(rounded.reshape(padded.shape)[..., :size])


_LEVEL_OF_8_BITS = 4


def product_of_few_bits(case: KernelCase) -> Array:
    """Multiply by a matrix of 2, 4 or 8 bits, [columns, blocks, bytes], with a scale for each block.

    With accuracy level 4 a runtime may round the left matrix to 8 bits: here f32 is rounded, f64 is not.
    """
    data, packed = case.arrays(2)
    require_kind(REAL, data)
    rows, columns, bits, block = (
        case.attributes.integer(name, default)
        for name, default in (("K", None), ("N", None), ("bits", 4), ("block_size", None))
    )
    if case.attributes.integer("weight_prepacked", 0):
        raise UnsupportedCase("weights in the layout of a device are not computed")
    wide, blocks = widen(data), -(-rows // block)
    if packed.size:
        codes = unpack(packed.reshape(columns, blocks, -1), bits)[..., :block]
        factors, points = _block_parameters(case, 2, 3, (columns, blocks), bits)
        matrix = _weights(case, codes, factors, points, rows).astype(wide.dtype)
        is_low = case.attributes.integer("accuracy_level", 0) == _LEVEL_OF_8_BITS
        left = _low_precision(wide, block) if is_low and wide.dtype == np.float32 else wide
        output = product(case, left, matrix.T)
    else:  # the product is left out
        output = np.zeros(case.reserve((*data.shape[:-1], columns)), wide.dtype)
    if case.has(5):
        output = output + widen(case.array(5))
    return narrow(output, data.dtype)


def _weights(case: KernelCase, codes: Array, factors: Array, points: Array, rows: int) -> Array:
    """Return the matrix [columns, rows] of codes [columns, blocks, block size]."""
    columns = codes.shape[0]
    if case.has(4):  # each row names its group
        groups = case.array(4)[:rows].astype(np.int64)
        flat = codes.reshape(columns, -1)[:, :rows].astype(factors.dtype)
        point = points if points.ndim == 0 else points[:, groups]
        return np.asarray((flat - point) * factors[:, groups])
    point = points if points.ndim == 0 else points[..., None]
    weights = (codes.astype(factors.dtype) - point) * factors[..., None]
    return np.asarray(weights.reshape(columns, -1)[:, :rows])


_FP4 = (0.0, 0.005208333, 2 / 3, 1.0, 1 / 3, 0.5, 1 / 6, 0.25)
_NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023,
    1.0,
)  # fmt: skip
"""The numbers of NF4, a 4-bit type of bitsandbytes, by their code."""


def product_of_4_bit_floats(case: KernelCase) -> Array:
    """Multiply by a matrix of 4-bit floats (FP4 or NF4) in blocks, each with its largest magnitude."""
    data, packed, greatest = case.arrays(3)
    require_kind(REAL, data, greatest)
    rows, columns, block = (case.attributes.integer(name) for name in ("K", "N", "block_size"))
    kind = case.attributes.integer("quant_type")
    if kind not in {0, 1}:
        raise UnsupportedCase(f"quant_type is {kind}, expected 0 or 1")
    wide = widen(data)
    table = np.array(_NF4 if kind else (*_FP4, *(-number for number in _FP4)), wide.dtype)
    bytes_ = packed.reshape(-1)
    codes = np.stack([bytes_ >> 4, bytes_ & 15], -1).reshape(-1)[: rows * columns]
    scales = np.repeat(widen(greatest).reshape(-1).astype(wide.dtype), block)[: rows * columns]
    matrix = (table[codes] * scales).reshape(columns, rows)
    turned = matrix.T if case.attributes.boolean("transB", True) else matrix
    return narrow(product(case, wide, turned), data.dtype)


def gather_blocks(case: KernelCase) -> Array:
    """Gather elements of data that is quantised in blocks; an index out of range returns zeros."""
    data, indices, scales = case.arrays(3)
    require_kind(WHOLE, indices)
    axis, along = (
        normalize_axis(case.attributes.integer(name, default), data.ndim)
        for name, default in (("gather_axis", 0), ("quantize_axis", 1))
    )
    bits = case.attributes.integer("bits", 4)
    size, is_packed = data.shape[axis], data.dtype == np.uint8 and bits < _BYTE
    if is_packed and axis == data.ndim - 1:
        raise UnsupportedCase("packed data is gathered along its last axis")
    places = indices.reshape(-1).astype(np.int64)
    is_inside = (places >= -size) & (places < size)
    places = np.where(is_inside, places % max(size, 1), 0)
    parts: list[Array | None] = [data, scales, case.array(3) if case.has(3) else None]
    if axis != along:
        parts = [None if part is None else part.take(places, axis) for part in parts]
    codes, factors, points = parts
    assert codes is not None
    assert factors is not None
    if is_packed:
        codes = unpack(codes, bits)
        points = None if points is None else unpack(points, bits)[..., : factors.shape[-1]]
    numbers = _dequantized(case, codes, factors, points, along, bits)
    if axis == along:
        numbers = numbers.take(places, axis)
    shape = [1] * numbers.ndim
    shape[axis] = -1
    numbers = np.where(is_inside.reshape(shape), numbers, 0)
    output = numbers.reshape(*numbers.shape[:axis], *indices.shape, *numbers.shape[axis + 1 :])
    case.reserve(output.shape)
    return narrow(output, scales.dtype)


def _dequantized(
    case: KernelCase, codes: Array, factors: Array, points: Array | None, along: int, bits: int
) -> Array:
    block = case.attributes.integer("block_size", 128) or codes.shape[along]
    is_unsigned = codes.dtype == np.uint8
    factors = widen(factors)

    def spread(parameter: Array) -> Array:
        whole = np.repeat(parameter, block, along)
        return np.asarray(whole.take(range(codes.shape[along]), along))

    point: Any = (1 << bits - 1) if is_unsigned else 0
    if points is not None:
        point = spread(widen(points)).astype(factors.dtype)
    return np.asarray((widen(codes).astype(factors.dtype) - point) * spread(factors))


def quantized_mixture_of_experts(case: KernelCase) -> Array:
    """Compute a mixture of experts whose weights are integers of few bits, with scales for rows or blocks."""
    data = case.array(0)
    require_kind(REAL, data)
    if case.attributes.text("quant_type", "int", {"int", "fp4", "nvfp4", "fp8", "wfp4afp8"}) != "int":
        raise UnsupportedCase("weights of floats are not computed")
    if case.attributes.integer("weights_prepacked", -1) == 1 or case.has(14):
        raise UnsupportedCase("packed layouts of a device and router_weights are not computed")
    usual = case.attributes.integer("expert_weight_bits", 4)
    bits = [case.attributes.integer(f"fc{number}_expert_weight_bits", usual) for number in (1, 2, 3)]
    ports = ((2, 11), (5, 12), (8, 13))
    weights = [_expert_weights(case, *pair, count) for pair, count in zip(ports, bits, strict=True)]
    biases = [widen(case.array(port)) if case.has(port) else None for port in (4, 7, 10)]
    return route(case, data, widen(case.array(1)), weights, biases)


def _expert_weights(case: KernelCase, port: int, points: int, bits: int) -> Array | None:
    if not case.has(port):
        return None
    codes = unpack(case.array(port), bits)
    scales = case.array(port + 1)
    block = case.attributes.integer("block_size", 0) or codes.shape[-1]
    blocks = -(-codes.shape[-1] // block)
    shape = (*codes.shape[:2], blocks)
    if scales.ndim == 2 and case.has(points):  # zero points of rows are packed along them
        point = unpack(case.array(points), bits)[:, : codes.shape[1], None].astype(np.float64)
        factors: Array = widen(scales)[..., None]
    else:
        factors, point = _block_parameters(case, port + 1, points, shape, bits)
    spread: Sequence[Array] = [
        array if array.ndim == 0 else np.repeat(array, block, -1)[..., : codes.shape[-1]]
        for array in (factors, point)
    ]
    work = factors.dtype
    return np.asarray((codes.astype(work) - spread[1].astype(work)) * spread[0])
