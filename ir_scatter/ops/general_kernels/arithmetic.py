"""Kernels that compute numbers: elementwise arithmetic, type conversion, ranges, reductions along axes."""

from collections.abc import Callable, Sequence
from functools import reduce
from math import ceil, isfinite
from typing import Any

import numpy as np

from ir_scatter.core.arrays import Array, extreme, in_native_dtype, kind
from ir_scatter.core.element_types import ElementType, from_dtype
from ir_scatter.core.shapes import show
from ir_scatter.ops.general_kernels.base import (
    BOOLEAN,
    NUMERIC,
    TEXT,
    Kernel,
    KernelCase,
    UnsupportedCase,
    narrow,
    normalize_axes,
    normalize_axis,
    require_kind,
    require_same_type,
    widen,
)


def unary(function: Callable[[Array], Any]) -> Kernel:
    """Return the kernel of a function of a numeric array."""

    def kernel(case: KernelCase) -> Array:
        data = case.array(0)
        require_kind(NUMERIC, data)
        return narrow(function(widen(data)), data.dtype)

    return kernel


def binary(function: Callable[[Array, Array], Any]) -> Kernel:
    """Return the kernel of a function of two numeric arrays of the same type."""
    return lambda case: _combined(case, function, case.arrays(2))


def variadic(function: Callable[[Array, Array], Any]) -> Kernel:
    """Return the kernel that combines all inputs, two at a time, with a function of two arrays."""
    return lambda case: _combined(case, function, case.arrays())


def comparison(function: Callable[[Array, Array], Any]) -> Kernel:
    """Return the kernel of a comparison of two arrays of the same type; text is equal or not."""
    kinds = NUMERIC | BOOLEAN | (TEXT if function is np.equal else frozenset())
    return lambda case: _combined(case, function, case.arrays(2), kinds, np.dtype(np.bool_))


def logical(function: Callable[[Array, Array], Any]) -> Kernel:
    """Return the kernel of a function of two boolean arrays."""
    return lambda case: _combined(case, function, case.arrays(2), BOOLEAN)


def _combined(
    case: KernelCase,
    function: Callable[[Array, Array], Any],
    arrays: Sequence[Array],
    kinds: frozenset[str] = NUMERIC,
    result: np.dtype[Any] | None = None,
) -> Array:
    require_kind(kinds, *arrays)
    type = require_same_type(*arrays)
    case.reserve_elementwise(*arrays)
    return narrow(reduce(function, map(widen, arrays)), result or type)


def logical_not(case: KernelCase) -> Array:
    require_kind(BOOLEAN, case.array(0))
    return np.asarray(np.logical_not(case.array(0)))


def select(case: KernelCase) -> Array:
    """Select elements by a condition.

    In OpenVINO the condition must broadcast to the common shape of the other inputs.
    """
    condition, if_true, if_false = case.arrays(3)
    require_kind(BOOLEAN, condition)
    require_same_type(if_true, if_false)
    if not case.is_onnx:
        np.broadcast_to(condition, np.broadcast_shapes(if_true.shape, if_false.shape))
    case.reserve_elementwise(condition, if_true, if_false)
    return np.asarray(np.where(condition, if_true, if_false))


def divide(case: KernelCase) -> Array:
    """Divide. Integers round down in OpenVINO, and towards zero in ONNX or if `m_pythondiv` is false."""
    rounds_down = case.attributes.boolean("m_pythondiv", not case.is_onnx)
    return _combined(case, _floor_divide if rounds_down else _truncate_divide, case.arrays(2))


def _dividing(function: Callable[[Array, Array], Any]) -> Callable[[Array, Array], Array]:
    """Return a function that refuses a division of integers by zero, unless the output is empty."""

    def divide_checked(left: Array, right: Array) -> Array:
        has_elements = 0 not in np.broadcast_shapes(left.shape, right.shape)
        if kind(left) != "float" and has_elements and not right.all():
            raise UnsupportedCase("a whole number is divided by 0")
        return np.asarray(function(left, right))

    return divide_checked


truncate_mod = _dividing(np.fmod)
_floor_mod = _dividing(np.remainder)


@_dividing
def _floor_divide(left: Array, right: Array) -> Any:
    return np.divide(left, right) if kind(left) == "float" else np.floor_divide(left, right)


def _truncate_divide(left: Array, right: Array) -> Array:
    return _floor_divide(left if kind(left) == "float" else left - truncate_mod(left, right), right)


def modulo(case: KernelCase) -> Array:
    """Return remainders with the sign of the divisor, or of the dividend if ONNX's `fmod` is 1.

    Before opset 28 of ONNX, floating-point numbers require `fmod`.
    """
    truncates = case.attributes.boolean("fmod", False)
    if case.is_onnx and not truncates and kind(case.array(0)) == "float" and not case.is_since(28):
        raise UnsupportedCase("fmod is 0, expected 1 for floating-point numbers")
    return _combined(case, truncate_mod if truncates else _floor_mod, case.arrays(2))


def power(case: KernelCase) -> Array:
    """Raise to a power, in the type of the base.

    If base and exponent are integers, the result wraps around, and a negative exponent is refused. An integer
    with a floating-point exponent is computed in f64 and truncated.
    """
    base, exponent = case.arrays(2)
    require_kind(NUMERIC, base, exponent)
    case.reserve_elementwise(base, exponent)
    wide_base, wide_exponent = widen(base), widen(exponent)
    if kind(base) == "float" or kind(exponent) == "float":
        is_real = kind(base) == "float"
        work = np.result_type(wide_base, wide_exponent) if is_real else np.dtype(np.float64)
        powers = np.asarray(np.power(wide_base.astype(work), wide_exponent.astype(work)))
        return narrow(powers, base.dtype) if is_real else change_type(powers, base.dtype)
    exact = wide_exponent.astype(wide_base.dtype)
    if (exact < 0).any() or (exact != wide_exponent).any():
        raise UnsupportedCase(f"an exponent is negative or does not fit into {base.dtype}")
    return narrow(np.power(wide_base, exact), base.dtype)


def floor(data: Array) -> Array:
    return np.floor(data) if kind(data) == "float" else data


def ceiling(data: Array) -> Array:
    return np.ceil(data) if kind(data) == "float" else data


def relu(data: Array) -> Array:
    return np.asarray(np.maximum(data, data.dtype.type(0)))


def square_root(data: Array) -> Array:
    """Return square roots; those of integers are rounded half up."""
    if kind(data) == "float":
        return np.asarray(np.sqrt(data))
    if (data < 0).any() or (data > 2**52).any():
        raise UnsupportedCase("the root of a whole number below 0 or above 2**52")
    return np.floor(np.sqrt(data.astype(np.float64)) + 0.5)


# From one element type to another.


def convert(case: KernelCase) -> Array:
    """Convert to another type. In ONNX 8-bit floating-point types saturate unless `saturate` is 0."""
    destination = case.dtype("to" if case.is_onnx else "destination_type")
    return change_type(case.array(0), destination, saturate=_saturates(case))


def convert_like(case: KernelCase) -> Array:
    return change_type(case.array(0), case.array(1).dtype, saturate=_saturates(case))


def _saturates(case: KernelCase) -> bool:
    case.attributes.text("round_mode", "up", {"up", "down", "nearest"})
    return case.attributes.boolean("saturate", case.is_onnx)


def change_type(array: Array, destination: np.dtype[Any], *, saturate: bool = False) -> Array:
    """Convert elements to another type.

    - Integer to integer: wraps around.
    - Floating point to integer: truncates. NaN, infinity and numbers out of range are refused.
    - To a shorter floating-point type: rounds to nearest even. Numbers out of range become infinity,
      or NaN if the type has no infinity; with `saturate` 8-bit types clamp instead. NaN is refused
      by a type without NaN, and an inexact result by f8e8m0.
    - To boolean: everything but 0 becomes true.
    - Strings and complex numbers are refused.
    """
    if array.dtype == destination:
        return array
    target = from_dtype(destination)
    if target is None or {kind(array), target.kind} & {"string", "complex"}:
        raise UnsupportedCase(f"no conversion from {array.dtype} to {destination}")
    wide = widen(array)
    if target.kind == "boolean":
        return np.asarray(wide != 0)
    if target.kind == "float":
        return _shortened(wide, target, destination, saturate)
    if kind(array) == "float":
        wide = np.trunc(wide.astype(np.float64))
        is_signed = target.kind == "signed"
        limit = 2.0 ** (target.bits - is_signed)
        fits = (wide >= -limit * is_signed) & (wide < limit)
        if not fits.all():
            raise UnsupportedCase(f"{wide[~fits].flat[0]} does not fit into {target.name}")
        wide = wide.astype(np.int64 if is_signed else np.uint64)
    return wide.astype(destination)


def _shortened(numbers: Array, target: ElementType, destination: np.dtype[Any], saturate: bool) -> Array:
    if target.bits > 8:
        return numbers.astype(destination)
    real = numbers.astype(np.float64 if numbers.dtype == np.float64 else np.float32)
    if target.name == "f8e8m0":
        exact = real.astype(destination)
        if not np.array_equal(exact.astype(real.dtype), real, equal_nan=True):
            raise UnsupportedCase("rounding to f8e8m0 is not supported")
        return exact
    if target.bits < 8 and np.isnan(real).any():
        raise UnsupportedCase(f"NaN does not fit into {target.name}")
    if saturate and target.bits == 8:
        every = np.arange(256, dtype=np.uint8).view(destination).astype(np.float32)
        largest = float(every[np.isfinite(every)].max())
        real = np.clip(real, -largest, largest)
    return real.astype(destination)


# Created numbers.


def number_range(case: KernelCase) -> Array:
    """Count from start up to stop, in the type of the inputs; in OpenVINO's Range-4 in `output_type`.

    Floating-point values are computed in f64 and rounded once. ONNX computes them in f32 unless they are f64.
    Fractions for an integer type are refused: OpenVINO's specification contradicts itself on whether they are
    truncated.
    """
    bounds = case.arrays(3)
    require_kind(NUMERIC, *bounds)
    for bound in bounds:
        if bound.size != 1 or bound.ndim > 1:
            raise UnsupportedCase(f"a bound has shape {show(bound.shape)}, expected a scalar")
    bounds = [bound.reshape(()) for bound in bounds]
    if case.attributes.integer("stash_type", 1) != 1:
        raise UnsupportedCase("stash_type is not f32")
    is_written = "output_type" in case.attributes
    destination = case.dtype("output_type") if is_written else require_same_type(*bounds)
    require_kind(NUMERIC, np.empty(0, destination))
    if kind(np.empty(0, destination)) != "float":
        return _whole_range(case, bounds, destination)
    longest, shortest = np.dtype(np.float64), np.dtype(np.float32)
    work = longest if not case.is_onnx or destination == longest else shortest
    count = _count(bounds, longest)
    if count != _count(bounds, longest if destination == longest else shortest):
        raise UnsupportedCase(f"the number of elements depends on rounding: {count}, or one off")
    case.reserve((count,))
    start, _, step = (widen(bound).astype(work) for bound in bounds)
    steps: Array = np.arange(count).astype(work)
    return change_type(start + steps * step, destination)


def _whole_range(case: KernelCase, bounds: Sequence[Array], destination: np.dtype[Any]) -> Array:
    for bound in bounds:
        if kind(bound) == "float" and not float(bound).is_integer():
            raise UnsupportedCase(f"a bound is {float(bound)}, expected a whole number")
        if int(np.array(int(bound)).astype(destination)) != int(bound):
            raise UnsupportedCase(f"{int(bound)} does not fit into {destination}")
    start, stop, step = map(int, bounds)
    if step == 0:
        raise UnsupportedCase("step is 0, expected any other number")
    count = max(0, -((start - stop) // step))
    case.reserve((count,))
    offsets = np.arange(count, dtype=np.uint64) * np.uint64(step % 2**64)
    return (offsets + np.uint64(start % 2**64)).astype(destination)


def _count(bounds: Sequence[Array], work: np.dtype[Any]) -> int:
    start, stop, step = (widen(bound).astype(work) for bound in bounds)
    steps = float((stop - start) / step)
    if not isfinite(steps):
        raise UnsupportedCase(f"step is {bounds[2]}, expected finite bounds and a step that is not 0")
    return max(0, ceil(steps))


def shape_of(case: KernelCase) -> Array:
    """Return the shape in `output_type`; with `start` and `end`, which are clamped, a part of it."""
    dims = case.array(0).shape
    dims = dims[case.attributes.integer("start", 0) : case.attributes.integer("end", len(dims))]
    destination = case.dtype("output_type", "i64")
    if max(dims, default=0) > np.iinfo(destination).max:
        raise UnsupportedCase(f"{show(dims)} does not fit into {destination}")
    return np.array(dims, destination)


def size(case: KernelCase) -> Array:
    return np.array(case.array(0).size, np.int64)


def non_zero(case: KernelCase) -> Array:
    """Return the positions of all elements other than 0, [rank, count]."""
    data = widen(case.array(0))
    require_kind(NUMERIC | BOOLEAN, data)
    destination = case.dtype("output_type", "i64")
    is_counted = np.asarray(data != 0)
    case.reserve((data.ndim, int(np.count_nonzero(is_counted))))
    if data.ndim == 0:
        return np.zeros((0, int(is_counted)), destination)
    return np.stack(np.nonzero(is_counted)).astype(destination)


def constant_of_shape(case: KernelCase) -> Array:
    """Repeat the element of the attribute `value`, by default the f32 number 0."""
    value = case.attributes.value("value", np.zeros(1, np.float32))
    if not isinstance(value, np.ndarray) or value.size != 1:
        raise UnsupportedCase(f"value is {value}, expected a tensor of one element")
    return np.broadcast_to(in_native_dtype(value).reshape(()), case.integers(0))


# Along axes.


def reduction(function: np.ufunc) -> Kernel:
    """Return the kernel that reduces along axes, which are an attribute or an input.

    In OpenVINO an empty list of axes changes nothing. In ONNX it means all axes unless `noop_with_empty_axes`
    is set.
    """
    is_extreme = function in (np.maximum, np.minimum)

    def kernel(case: KernelCase) -> Array:
        data = case.array(0)
        axes = case.integers(1, "axes", default=() if case.is_onnx else None, may_be_scalar=True)
        if case.is_onnx and not axes and not case.attributes.boolean("noop_with_empty_axes", False):
            axes = list(range(data.ndim))
        removed = normalize_axes(axes, data.ndim)
        word, default = ("keepdims", True) if case.is_onnx else ("keep_dims", False)
        keeps_rank = case.attributes.boolean(word, default)
        require_kind(NUMERIC | BOOLEAN if is_extreme else NUMERIC, data)
        case.reserve([dim for axis, dim in enumerate(data.shape) if axis not in removed])
        wide = widen(data)
        options: dict[str, Any] = {"dtype": wide.dtype}
        if is_extreme and any(data.shape[axis] == 0 for axis in removed):
            if not case.is_onnx:
                raise UnsupportedCase("the maximum or minimum of an empty tensor is undefined")
            options["initial"] = extreme(data.dtype, is_lowest=function is np.maximum)
        return narrow(function.reduce(wide, axis=removed, keepdims=keeps_rank, **options), data.dtype)

    return kernel


def cumulative_sum(case: KernelCase) -> Array:
    """Sum up along the axis in input 1; by default axis 0 in OpenVINO."""
    data = case.array(0)
    require_kind(NUMERIC, data)
    axis = normalize_axis(0 if not case.is_onnx and not case.has(1) else case.integer(1), data.ndim)
    wide = widen(data)
    order = np.s_[::-1] if case.attributes.boolean("reverse", False) else np.s_[:]
    forward = np.moveaxis(wide, axis, 0)[order]
    sums = np.zeros(forward.shape, wide.dtype)
    if case.attributes.boolean("exclusive", False):
        np.cumsum(forward[:-1], 0, out=sums[1:])
    else:
        np.cumsum(forward, 0, out=sums)
    return narrow(np.moveaxis(sums[order], 0, axis), data.dtype)
