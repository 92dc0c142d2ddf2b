"""Element by element: arithmetic on numbers."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ir_scatter.ops.general_kernels.broadcasting import elementwise_shape
from ir_scatter.ops.general_kernels.case import (
    Array,
    Case,
    Kernel,
    UnsupportedCase,
    kind,
    require_numeric,
    require_same_type,
)
from ir_scatter.ops.general_kernels.conversion import change_type, narrow, widen


def unary(function: Callable[[Array], Any]) -> Kernel:
    """Make a kernel of a function of one array of numbers."""

    def kernel(case: Case) -> Array:
        data = case.array(0)
        require_numeric(data)
        return narrow(function(widen(data)), data.dtype)

    return kernel


def binary(function: Callable[[Array, Array], Any]) -> Kernel:
    """Make a kernel of a function of two arrays of numbers of one type."""

    def kernel(case: Case) -> Array:
        return _combine(case, function, (case.array(0), case.array(1)))

    return kernel


def variadic(function: Callable[[Array, Array], Any]) -> Kernel:
    """Make a kernel that applies a function of two arrays to one input after the other."""

    def kernel(case: Case) -> Array:
        return _combine(case, function, case.arrays())

    return kernel


def openvino_divide(case: Case) -> Array:
    """Divide; whole numbers round down, towards zero if `m_pythondiv` is false."""
    rounds_down = case.attributes.boolean("m_pythondiv", True)
    divide = floor_divide if rounds_down else truncate_divide
    return _combine(case, divide, (case.array(0), case.array(1)))


def onnx_mod(case: Case) -> Array:
    """Return remainders with the sign of the divisor, with that of the dividend if `fmod` is 1.

    Before opset 28, floating-point numbers need `fmod`.
    """
    operands = case.array(0), case.array(1)
    if case.attributes.boolean("fmod", False):
        return _combine(case, truncate_mod, operands)
    if kind(operands[0]) == "float" and (case.opset is None or case.opset < 28):
        raise UnsupportedCase("fmod is 0, expected 1 for floating-point numbers")
    return _combine(case, floor_mod, operands)


def power(case: Case) -> Array:
    """Raise to a power, in the type of the base.

    A whole number to the power of another wraps around, and to a negative one is refused; with
    one that is not whole it is computed in f64 and truncated.
    """
    base, exponent = case.array(0), case.array(1)
    require_numeric(base, exponent)
    elementwise_shape(case, base, exponent)
    wide_base, wide_exponent = widen(base), widen(exponent)
    if kind(base) == "float" or kind(exponent) == "float":
        is_real = kind(base) == "float"
        work = np.result_type(wide_base, wide_exponent) if is_real else np.dtype(np.float64)
        found = np.asarray(np.power(wide_base.astype(work), wide_exponent.astype(work)))
        return narrow(found, base.dtype) if is_real else change_type(found, base.dtype)
    exact = wide_exponent.astype(wide_base.dtype)
    if (exact < 0).any() or (exact != wide_exponent).any():
        raise UnsupportedCase(f"an exponent is negative or does not fit into {base.dtype}")
    return narrow(np.power(wide_base, exact), base.dtype)


def floor_divide(left: Array, right: Array) -> Array:
    """Divide; round whole numbers down, and leave floating-point ones alone."""
    if kind(left) == "float":
        return np.asarray(np.divide(left, right))
    _refuse_zero(left, right)
    return np.asarray(np.floor_divide(left, right))


def truncate_divide(left: Array, right: Array) -> Array:
    """Divide; round whole numbers towards zero, and leave floating-point ones alone."""
    floors = floor_divide(left, right)
    if kind(left) == "float":
        return floors
    is_cut = (np.remainder(left, right) != 0) & ((left < 0) != (right < 0))
    return np.asarray(floors + is_cut.astype(floors.dtype))


def floor_mod(left: Array, right: Array) -> Array:
    """Return remainders with the sign of the divisor."""
    if kind(left) != "float":
        _refuse_zero(left, right)
    return np.asarray(np.remainder(left, right))


def truncate_mod(left: Array, right: Array) -> Array:
    """Return remainders with the sign of the dividend."""
    if kind(left) != "float":
        _refuse_zero(left, right)
    return np.asarray(np.fmod(left, right))


def floor(data: Array) -> Array:
    """Round down; whole numbers stay."""
    return np.floor(data) if kind(data) == "float" else data


def ceiling(data: Array) -> Array:
    """Round up; whole numbers stay."""
    return np.ceil(data) if kind(data) == "float" else data


def relu(data: Array) -> Array:
    """Replace what is below zero by zero."""
    return np.asarray(np.maximum(data, np.zeros((), data.dtype)))


def square_root(data: Array) -> Array:
    """Return square roots; those of whole numbers are rounded half up."""
    if kind(data) == "float":
        return np.asarray(np.sqrt(data))
    if (data < 0).any() or (data > 2**52).any():
        raise UnsupportedCase("the root of a whole number below 0 or above 2**52")
    return np.floor(np.sqrt(data.astype(np.float64)) + 0.5)


def _combine(case: Case, function: Callable[[Array, Array], Any], arrays: Sequence[Array]) -> Array:
    require_numeric(*arrays)
    found_type = require_same_type(*arrays)
    elementwise_shape(case, *arrays)
    return narrow(reduce(function, map(widen, arrays)), found_type)


def _refuse_zero(dividend: Array, divisor: Array) -> None:
    """Refuse a division by zero; where there is nothing to divide, nothing is divided by it."""
    if not divisor.all() and 0 not in np.broadcast_shapes(dividend.shape, divisor.shape):
        raise UnsupportedCase("a whole number is divided by 0")
