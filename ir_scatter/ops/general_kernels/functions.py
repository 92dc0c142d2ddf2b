"""Kernels of functions of single elements: exponentials, activations, tests of numbers, bits."""

from collections.abc import Callable
from itertools import pairwise
from math import erf as erf_of_number
from math import erfc, log
from typing import Any

import numpy as np

from ir_scatter.core.arrays import Array, kind
from ir_scatter.core.element_types import from_dtype
from ir_scatter.core.shapes import show
from ir_scatter.ops.general_kernels.base import (
    BOOLEAN,
    NUMERIC,
    REAL,
    WHOLE,
    Kernel,
    KernelCase,
    UnsupportedCase,
    narrow,
    require_kind,
    require_same_type,
    widen,
)


def real(function: Callable[[Array], Any]) -> Kernel:
    """Return the kernel of a function of floating-point numbers."""

    def kernel(case: KernelCase) -> Array:
        data = case.array(0)
        require_kind(REAL, data)
        return narrow(in_blocks(function, widen(data)), data.dtype)

    return kernel


_BLOCK = 1 << 15
"""Elements that are computed at a time: the intermediate results fit into the cache of a core."""


def in_blocks(function: Callable[[Array], Any], data: Array) -> Array:
    """Apply an elementwise function to a large array, block by block."""
    if data.size <= 2 * _BLOCK or not data.flags.c_contiguous:
        return np.asarray(function(data))
    flat, outputs = data.reshape(-1), np.empty(data.size, data.dtype)
    for first in range(0, data.size, _BLOCK):
        outputs[first : first + _BLOCK] = function(flat[first : first + _BLOCK])
    return outputs.reshape(data.shape)


def parametric(function: Callable[[Array, KernelCase], Any]) -> Kernel:
    """Return the kernel of a function of floating-point numbers and of attributes or further inputs."""

    def kernel(case: KernelCase) -> Array:
        data = case.array(0)
        require_kind(REAL, data)
        return narrow(in_blocks(lambda block: function(block, case), widen(data)), data.dtype)

    return kernel


def parameter(case: KernelCase, name: str, port: int, default: float | None = None) -> Any:
    """Return a parameter of a function in the type of its computation.

    It is an attribute in ONNX, and an input in OpenVINO.
    """
    if case.is_onnx or not case.has(port):
        return _as_data(case, case.attributes.number(name, default))
    number = case.array(port)
    if number.size != 1:
        raise UnsupportedCase(f"input {port} has shape {show(number.shape)}, expected one number")
    return _as_data(case, widen(number).reshape(()))


def _as_data(case: KernelCase, number: Any) -> Any:
    return widen(case.array(0)).dtype.type(number)


# The error function. In f32 it is tanh(x * Q(x ** 2)), where Q interpolates atanh(erf(x)) / x: tanh of NumPy
# is fast, and its slope damps the rounding of Q. In f64 it is x * P(x ** 2) up to 2, and polynomials of order
# 24 up to 6, where it is 1. All polynomials interpolate `math.erf` at Chebyshev's points.

_ERF_ENDS = (0.0, 2.0, 3.0, 4.0, 6.0)
_ERF_LIMIT = 4.0
"""The error function of an f32 number of at least this magnitude is 1 or -1."""


def _interpolate(function: Callable[[float], float], low: float, high: float, degree: int = 24) -> Any:
    return np.polynomial.Chebyshev.interpolate(
        lambda places: np.array([function(place) for place in places]), degree, domain=[low, high]
    )


def _erf_over_root(square: float) -> float:
    root = float(square**0.5)
    return erf_of_number(root) / root if root else float(2 / np.pi**0.5)


def _atanh_over_root(square: float) -> float:
    root = float(square**0.5)
    if root < 1e-4:
        return float(2 / np.pi**0.5)
    return 0.5 * log((1 + erf_of_number(root)) / erfc(root)) / root


_ERF_PIECES = (
    _interpolate(_erf_over_root, 0.0, 4.0),
    *(_interpolate(erf_of_number, low, high) for low, high in pairwise(_ERF_ENDS[1:])),
)
_ATANH_OF_ERF = _interpolate(_atanh_over_root, 0.0, _ERF_LIMIT**2, degree=14).coef.astype(np.float32)


def erf(data: Array) -> Array:
    """Return the error function, with an error of 3e-16 in f64, and two units in the last place in f32."""
    return in_blocks(_erf_of_f32 if data.dtype == np.float32 else _erf_of_f64, data)


def _erf_of_f32(data: Array) -> Array:
    numbers = np.clip(data, -_ERF_LIMIT, _ERF_LIMIT)
    place = numbers * numbers * np.float32(2 / _ERF_LIMIT**2) - np.float32(1)
    double = place + place
    last, before = np.zeros_like(place), np.zeros_like(place)
    for coefficient in _ATANH_OF_ERF[:0:-1]:  # Clenshaw's recurrence
        last, before = coefficient + double * last - before, last
    return np.asarray(np.tanh(numbers * (_ATANH_OF_ERF[0] + place * last - before)))


def _erf_of_f64(data: Array) -> Array:
    numbers = data.astype(np.float64, copy=False)
    size = np.abs(numbers)
    outputs = np.copysign(np.where(np.isnan(numbers), numbers, 1.0), numbers)
    for low, high, piece in zip(_ERF_ENDS, _ERF_ENDS[1:], _ERF_PIECES, strict=False):
        inside = (size >= low) & (size < high)
        chosen = numbers[inside]
        outputs[inside] = (
            chosen * piece(chosen**2) if low == 0 else np.copysign(piece(np.abs(chosen)), chosen)
        )
    return np.asarray(outputs).astype(data.dtype, copy=False)


def error_function(case: KernelCase) -> Array:
    """Return the error function; for integers the result is truncated."""
    data = case.array(0)
    require_kind(NUMERIC, data)
    return narrow(erf(widen(data)), data.dtype)


_SERIES = 0.147
"""A constant of Winitzki's approximation of the inverse error function, good to three digits."""


def inverse_erf(data: Array) -> Array:
    """Return the inverse of the error function: an approximation, refined by Newton's method in f64."""
    numbers = data.astype(np.float64)
    square = np.log1p(-numbers * numbers)
    first = 2 / (np.pi * _SERIES) + square / 2
    result = np.copysign(np.sqrt(np.sqrt(first * first - square / _SERIES) - first), numbers)
    for _ in range(4):
        step = (_erf_of_f64(result) - numbers) * (np.pi**0.5 / 2) * np.exp(result * result)
        result = np.where(np.isfinite(step), result - step / (1 + result * step), result)
    ends = np.where(np.abs(numbers) == 1, np.copysign(np.inf, numbers), np.nan)
    return np.where(np.abs(numbers) < 1, result, ends).astype(data.dtype)


# Activations.


def sigmoid(data: Array) -> Array:
    """Return 1 / (1 + exp(-x)), computed as exp(x) / (1 + exp(x)) below 0 so that nothing overflows."""
    return np.asarray(np.exp(np.minimum(data, 0)) / (1 + np.exp(-np.abs(data))))


def softplus(data: Array) -> Array:
    return np.asarray(np.logaddexp(data.dtype.type(0), data))


def softsign(data: Array) -> Array:
    return np.asarray(data / (data.dtype.type(1) + np.abs(data)))


def mish(data: Array) -> Array:
    return np.asarray(data * np.tanh(softplus(data)))


def reciprocal(data: Array) -> Array:
    return np.asarray(data.dtype.type(1) / data)


def elu(data: Array, case: KernelCase) -> Array:
    return _exponential_below_zero(data, _as_data(case, case.attributes.number("alpha", 1.0)))


def celu(data: Array, case: KernelCase) -> Array:
    alpha = _as_data(case, case.attributes.number("alpha", 1.0))
    return np.asarray(np.maximum(data, 0) + np.minimum(alpha * np.expm1(np.minimum(data, 0) / alpha), 0))


def selu(data: Array, case: KernelCase) -> Array:
    alpha = parameter(case, "alpha", 1, 1.67326319217681884765625)
    scale = parameter(case, "gamma", 2, 1.05070102214813232421875)
    return np.asarray(scale * _exponential_below_zero(data, alpha))


def _exponential_below_zero(data: Array, alpha: Any) -> Array:
    return np.where(data < 0, alpha * np.expm1(np.minimum(data, 0)), data)


def leaky_relu(data: Array, case: KernelCase) -> Array:
    return np.where(data < 0, data * _as_data(case, case.attributes.number("alpha", 0.01)), data)


def thresholded_relu(data: Array, case: KernelCase) -> Array:
    return np.where(data > _as_data(case, case.attributes.number("alpha", 1.0)), data, data.dtype.type(0))


def hard_sigmoid(data: Array, case: KernelCase) -> Array:
    alpha, beta = parameter(case, "alpha", 1, 0.2), parameter(case, "beta", 2, 0.5)
    return np.asarray(np.clip(alpha * data + beta, 0, 1))


def relu6_shifted(data: Array) -> Array:
    """Return min(max(x + 3, 0), 6), which OpenVINO's HSwish and HSigmoid divide by 6."""
    return np.asarray(np.clip(data + data.dtype.type(3), 0, 6))


def hsigmoid(data: Array) -> Array:
    return np.asarray(relu6_shifted(data) / data.dtype.type(6))


def hswish(data: Array) -> Array:
    return np.asarray(data * relu6_shifted(data) / data.dtype.type(6))


def swish(data: Array, case: KernelCase) -> Array:
    if case.is_onnx:
        scale = _as_data(case, case.attributes.number("alpha", 1.0))
    else:
        scale = parameter(case, "beta", 1, 1.0)
    return np.asarray(data * sigmoid(data * scale))


def gelu(data: Array, case: KernelCase) -> Array:
    """Return x times the cumulative normal distribution, or its approximation by tanh."""
    name = "approximate" if case.is_onnx else "approximation_mode"
    half, one = data.dtype.type(0.5), data.dtype.type(1)
    if case.attributes.text(name, "none", {"none", "erf", "tanh"}) == "tanh":
        inner = data.dtype.type((2 / np.pi) ** 0.5) * (data + data.dtype.type(0.044715) * data**3)
        return np.asarray(half * data * (one + np.tanh(inner)))
    return np.asarray(half * data * (one + erf(data * data.dtype.type(0.5**0.5))))


def shrink(case: KernelCase) -> Array:
    data = case.array(0)
    require_kind(NUMERIC, data)
    bias, limit = case.attributes.number("bias", 0.0), case.attributes.number("lambd", 0.5)
    wide = widen(data)
    shifted = np.where(wide < -limit, wide + bias, np.where(wide > limit, wide - bias, 0))
    return narrow(shifted, data.dtype)


def prelu(case: KernelCase) -> Array:
    """Multiply negative elements by a slope that is broadcast to data.

    In OpenVINO a slope of rank 1 belongs to the channels, axis 1, if it has as many elements.
    """
    data, slope = case.arrays(2)
    require_kind(NUMERIC, data, slope)
    type = require_same_type(data, slope)
    is_of_channels = not case.is_onnx and slope.ndim == 1 and data.ndim > 1
    if is_of_channels and slope.size == data.shape[1]:
        slope = slope.reshape((-1,) + (1,) * (data.ndim - 2))
    wide = widen(data)
    slopes = np.broadcast_to(widen(slope), data.shape)
    return narrow(np.where(wide < 0, wide * slopes, wide), type)


def clip(case: KernelCase) -> Array:
    """Clamp elements to limits: attributes, or inputs since opset 11 of ONNX. The upper limit wins."""
    data = case.array(0)
    require_kind(NUMERIC, data)
    wide = widen(data)
    low, high = (_limit(case, wide, number, name) for number, name in ((1, "min"), (2, "max")))
    if low is not None:
        wide = np.maximum(wide, low)
    if high is not None:
        wide = np.minimum(wide, high)
    return narrow(wide, data.dtype)


def _limit(case: KernelCase, data: Array, port: int, name: str) -> Any:
    """Return a limit in the type of data. OpenVINO rounds a fraction inwards for integers."""
    if case.has(port):
        limit = case.array(port)
        if limit.size != 1:
            raise UnsupportedCase(f"input {port} has shape {show(limit.shape)}, expected a scalar")
        require_same_type(case.array(0), limit)
        return widen(limit).reshape(())
    if case.is_onnx and name not in case.attributes:
        return None
    number = case.attributes.number(name)
    if data.dtype.kind == "f":
        return data.dtype.type(number)
    bounds = np.iinfo(data.dtype)
    if np.isnan(number):
        raise UnsupportedCase(f"{name} is {number}, expected a number")
    inwards = np.ceil(number) if name == "min" else np.floor(number)
    return data.dtype.type(int(min(max(inwards, bounds.min), bounds.max)))


def dropout(case: KernelCase) -> tuple[Array, ...]:
    """Return data and a mask of true. Random results, in training mode with a ratio above 0, are refused."""
    data = case.array(0)
    is_training = case.has(2) and bool(case.array(2).reshape(-1)[0])
    if not case.is_since(7) and not case.attributes.boolean("is_test", False):
        is_training = True
    ratio = float(case.array(1).reshape(-1)[0]) if case.has(1) else case.attributes.number("ratio", 0.5)
    if is_training and ratio:
        raise UnsupportedCase(f"training drops elements at random, with a ratio of {ratio}")
    return data, np.ones(data.shape, np.bool_ if case.is_since(10) else data.dtype)


# Tests of numbers.


def test_of_number(function: Callable[[Array], Any]) -> Kernel:
    """Return the kernel of a test of floating-point numbers."""

    def kernel(case: KernelCase) -> Array:
        data = case.array(0)
        require_kind(REAL, data)
        return np.asarray(function(widen(data)), np.bool_)

    return kernel


def is_infinite(case: KernelCase) -> Array:
    """Return whether elements are infinite; attributes may exclude one of the signs."""
    data = case.array(0)
    require_kind(REAL, data)
    wide = widen(data)
    output = np.zeros(data.shape, np.bool_)
    if case.attributes.boolean("detect_negative", True):
        output |= np.isneginf(wide)
    if case.attributes.boolean("detect_positive", True):
        output |= np.isposinf(wide)
    return output


# Rounding and signs.


def sign(data: Array) -> Array:
    return np.asarray(np.sign(data))


def round_elements(case: KernelCase) -> Array:
    """Round to integers, halves to even; in OpenVINO's `mode` "half_away_from_zero" away from 0."""
    data = case.array(0)
    require_kind(NUMERIC, data)
    if kind(data) != "float":
        return data
    mode = case.attributes.text("mode", "half_to_even", {"half_to_even", "half_away_from_zero"})
    wide = widen(data)
    if mode == "half_to_even":
        return narrow(np.rint(wide), data.dtype)
    size = np.abs(wide)
    whole = np.floor(size)
    return narrow(np.copysign(whole + (size - whole >= 0.5), wide), data.dtype)


# Sums of several tensors, squares of differences.


def squared_difference(case: KernelCase) -> Array:
    left, right = case.arrays(2)
    require_kind(NUMERIC, left, right)
    type = require_same_type(left, right)
    case.reserve_elementwise(left, right)
    difference = widen(left) - widen(right)
    return narrow(difference * difference, type)


def mean(case: KernelCase) -> Array:
    """Return the elementwise mean of all inputs."""
    arrays = case.arrays()
    require_kind(REAL, *arrays)
    type = require_same_type(*arrays)
    case.reserve_elementwise(*arrays)
    total = widen(arrays[0])
    for array in arrays[1:]:
        total = total + widen(array)
    return narrow(total / total.dtype.type(len(arrays)), type)


# Bits.


def bitwise(function: np.ufunc) -> Kernel:
    """Return the kernel of a function of the bits of integers or booleans."""

    def kernel(case: KernelCase) -> Array:
        arrays = case.arrays(function.nin)
        require_kind(WHOLE | BOOLEAN, *arrays)
        type = require_same_type(*arrays)
        case.reserve_elementwise(*arrays)
        return narrow(function(*map(widen, arrays)), type)

    return kernel


def bit_cast(case: KernelCase) -> Array:
    """Reinterpret the bits of elements as another type of the same size."""
    data, type = case.array(0), case.dtype("to")
    old, new = from_dtype(data.dtype), from_dtype(type)
    if old is None or new is None or old.bits != new.bits or old.bits < 8:
        raise UnsupportedCase(
            f"cannot reinterpret {data.dtype} as {type}: expected types of equal size and 8 bits or more"
        )
    return np.ascontiguousarray(data).view(type).reshape(data.shape)


def bit_shift(case: KernelCase) -> Array:
    """Shift bits. In ONNX a count outside of 0 to the number of bits - 1 results in 0.

    A negative number that is shifted to the right results in -1 instead.
    """
    is_left = case.attributes.text("direction", None, {"left", "right"}) == "left"
    return _shifted(case, is_left=is_left)


def shift_left(case: KernelCase) -> Array:
    return _shifted(case, is_left=True)


def shift_right(case: KernelCase) -> Array:
    return _shifted(case, is_left=False)


def _shifted(case: KernelCase, *, is_left: bool) -> Array:
    data, count = case.arrays(2)
    require_kind(WHOLE, data, count)
    type = require_same_type(data, count)
    case.reserve_elementwise(data, count)
    element_type = from_dtype(type)
    assert element_type is not None
    wide, counts = widen(data), widen(count)
    is_outside = (counts < 0) | (counts >= element_type.bits)
    if is_outside.any() and not case.is_onnx:
        raise UnsupportedCase(f"a shift is not 0 to {element_type.bits - 1}, which is not specified")
    bounded = np.where(is_outside, wide.dtype.type(element_type.bits - 1), counts)
    if not is_left and element_type.kind == "signed":
        return narrow(np.right_shift(wide, bounded), type)
    shifted = np.left_shift(wide, bounded) if is_left else np.right_shift(wide, bounded)
    return narrow(np.where(is_outside, wide.dtype.type(0), shifted), type)
