"""Kernels that quantise: QuantizeLinear and its kin, FakeQuantize, products of quantised matrices."""

from typing import Any

import numpy as np

from ir_scatter.core.arrays import Array, extreme, kind
from ir_scatter.core.element_types import dtype, from_dtype
from ir_scatter.core.shapes import show
from ir_scatter.ops.general_kernels.arithmetic import change_type
from ir_scatter.ops.general_kernels.base import (
    NUMERIC,
    REAL,
    KernelCase,
    UnsupportedCase,
    narrow,
    normalize_axis,
    require_kind,
    widen,
)
from ir_scatter.ops.general_kernels.matrices import product, zero_point
from ir_scatter.ops.general_kernels.windows import integer_convolution


def quantize_linear(case: KernelCase) -> Array:
    """Divide by a scale, round half to even, add a zero point, and saturate."""
    data, scale = case.arrays(2)
    require_kind(NUMERIC, data, scale)
    type = _quantized_type(case)
    wide = widen(data)
    if kind(data) != "float":
        wide = wide.astype(np.float32)
    _check_precision(case, "precision")
    factor = _spread(case, scale, data).astype(wide.dtype)
    scaled = wide / factor
    if kind(np.empty(0, type)) == "float":
        return _to_short_float(case, scaled, type)
    work = np.float32 if scaled.dtype == np.float32 and type.itemsize <= _SHORT else np.float64
    numbers = np.rint(scaled).astype(work, copy=False)
    if case.has(2):
        numbers = numbers + _spread(case, case.array(2), data).astype(work)
    return saturated(numbers, type)


_SHORT = 2
"""Bytes of integers that f32 represents, with a margin in which sums are exact; beyond it they saturate."""


def _check_precision(case: KernelCase, name: str) -> None:
    if case.attributes.integer(name, 0) not in {0, 1}:
        raise UnsupportedCase(f"{name} is not f32")


def _to_short_float(case: KernelCase, numbers: Array, type: np.dtype[Any]) -> Array:
    if case.has(2) and widen(case.array(2)).any():
        raise UnsupportedCase("a zero point of floating-point type is not 0")
    element_type = from_dtype(type)
    assert element_type is not None
    if element_type.bits < 8:  # rounds, and saturates as it has no infinity
        every = np.arange(16, dtype=np.uint8).view(type).astype(np.float32)
        numbers = np.clip(numbers, every.min(), every.max())
    return change_type(numbers, type, saturate=case.attributes.boolean("saturate", True))


def _quantized_type(case: KernelCase) -> np.dtype[Any]:
    number = case.attributes.integer("output_dtype", 0)
    written = case.dtype("output_dtype") if number else None
    if case.has(2):
        if written is not None and written != case.array(2).dtype:
            raise UnsupportedCase(f"output_dtype is {written}, and the zero point {case.array(2).dtype}")
        return case.array(2).dtype
    return written or np.dtype(np.uint8)


def saturated(numbers: Array, type: np.dtype[Any]) -> Array:
    """Clamp whole numbers to an integer type; NaN is refused."""
    low, high = (numbers.dtype.type(extreme(type, is_lowest=is_lowest)) for is_lowest in (True, False))
    limited = np.clip(numbers, low, high)
    if np.isnan(limited.sum(dtype=limited.dtype)):
        raise UnsupportedCase("NaN cannot be quantised")
    is_plain = type.kind in "iu" and type.itemsize <= _SHORT
    return limited.astype(type if is_plain else np.int64).astype(type)


def _spread(case: KernelCase, parameter: Array, data: Array) -> Array:
    """Expand scales or zero points to the elements of data: one for all, per axis position, or per block."""
    wide = widen(parameter)
    block = case.attributes.integer("block_size", 0)
    if block:
        axis = normalize_axis(case.attributes.integer("axis", 1), data.ndim)
        return np.repeat(wide, block, axis)[tuple(slice(0, size) for size in data.shape)]
    if wide.size == 1:
        return wide.reshape(())
    if wide.ndim != 1:
        raise UnsupportedCase(f"scale or zero point has shape {show(wide.shape)}, expected one dimension")
    axis = normalize_axis(case.attributes.integer("axis", 1), data.ndim)
    if wide.size != data.shape[axis]:
        raise UnsupportedCase(f"there are {wide.size} scales or zero points for {data.shape[axis]} positions")
    return wide.reshape([-1 if other == axis else 1 for other in range(data.ndim)])


def dequantize_linear(case: KernelCase) -> Array:
    """Subtract a zero point and multiply by a scale, in the type of the scale."""
    data, scale = case.arrays(2)
    require_kind(NUMERIC, data)
    require_kind(REAL, scale)
    number = case.attributes.integer("output_dtype", 0)
    type = case.dtype("output_dtype") if number else scale.dtype
    work = np.float32 if type.kind == "V" or type == np.float16 else type
    whole = widen(data)
    if case.has(2):
        point = _spread(case, case.array(2), data)
        whole = whole.astype(np.float64) - point.astype(np.float64)
    return narrow(whole.astype(work) * _spread(case, scale, data).astype(work), type)


def dynamic_quantize_linear(case: KernelCase) -> tuple[Array, ...]:
    """Quantise to u8. Scale and zero point follow from the smallest and largest element, and 0."""
    data = case.array(0)
    require_kind(REAL, data)
    if data.dtype != np.float32:
        raise UnsupportedCase(f"data is {data.dtype}, expected float32")
    low, high = np.minimum(data.min(initial=0), 0), np.maximum(data.max(initial=0), 0)
    scale = np.float32((high - low) / np.float32(255))
    if scale == 0:
        return np.zeros(data.shape, np.uint8), np.float32(scale), np.uint8(0)  # type: ignore[return-value]
    point = np.uint8(np.clip(np.rint(np.float32(0) - low / scale), 0, 255))
    output = saturated(np.rint(data / scale).astype(np.float64) + int(point), np.dtype(np.uint8))
    return output, np.asarray(scale), np.asarray(point)


def fake_quantize(case: KernelCase) -> Array:
    """Round to `levels` numbers between two bounds, and map them to two other bounds."""
    arrays = case.arrays(5)
    require_kind(REAL, *arrays)
    data, in_low, in_high, out_low, out_high = map(widen, arrays)
    levels = case.attributes.integer("levels")
    if levels < 2:
        raise UnsupportedCase(f"levels is {levels}, expected 2 or more")
    case.attributes.text("auto_broadcast", "numpy", {"numpy"})
    one = data.dtype.type(levels - 1)
    rounded = np.rint((data - in_low) / (in_high - in_low) * one) / one * (out_high - out_low) + out_low
    low, high = np.minimum(in_low, in_high), np.maximum(in_low, in_high)
    output = np.where(data <= low, out_low, np.where(data > high, out_high, rounded))
    if output.shape != data.shape:
        raise UnsupportedCase(f"the bounds do not fit {show(data.shape)}")
    return narrow(output, arrays[0].dtype)


def _scale(case: KernelCase, port: int) -> Array:
    return widen(case.array(port)).astype(np.float32)


def qlinear_matmul(case: KernelCase) -> Array:
    """Multiply quantised matrices, with a quantised result."""
    left, right = case.array(0), case.array(3)
    total = product(
        case,
        left.astype(np.int64) - zero_point(case, 2, left, True),
        right.astype(np.int64) - zero_point(case, 5, right, False),
    )
    left_scale, right_scale = _scale(case, 1), _scale(case, 4)
    if left_scale.ndim == 1 and left_scale.size > 1:
        left_scale = left_scale[:, None]
    return _requantized(case, total, left_scale * right_scale)


def _requantized(case: KernelCase, total: Array, scale: Array) -> Array:
    output_scale, point = _scale(case, 6), case.array(7)
    scaled = total.astype(np.float32) * (scale / output_scale)
    return saturated(np.rint(scaled).astype(np.float64) + widen(point).astype(np.float64), point.dtype)


def qlinear_convolution(case: KernelCase) -> Array:
    """Convolve quantised data with quantised weights, with a quantised result; the bias is i32."""
    data, weights = case.array(0), case.array(3)
    total = integer_convolution(case, data, weights, (2, 5))
    channels = (1, -1) + (1,) * (data.ndim - 2)
    if case.has(8):
        total = total + case.array(8).astype(np.int64).reshape(channels)
    weight_scale = _scale(case, 4)
    if weight_scale.size > 1:
        weight_scale = weight_scale.reshape(channels)
    return _requantized(case, total, _scale(case, 1).reshape(()) * weight_scale)


def fake_convert(case: KernelCase) -> Array:
    """Round to an 8-bit floating-point type and back, between a scale and a shift."""
    data, scale = case.arrays(2)
    require_kind(REAL, data, scale)
    wide, factor = widen(data), widen(scale)
    shift = widen(case.array(2)) if case.has(2) else wide.dtype.type(0)
    name = case.attributes.text("destination_type", "f8e4m3", {"f8e4m3", "f8e5m2"})
    type = dtype(case.attributes.element_type("destination_type", name))
    assert type is not None
    every = np.arange(256, dtype=np.uint8).view(type).astype(np.float32)
    largest = every[np.isfinite(every)].max()
    short = np.clip(wide * factor - shift, -largest, largest).astype(type).astype(wide.dtype)
    return narrow((short + shift) / factor, data.dtype)
