"""Operators that make numbers: Range, ShapeOf, Shape, Size, NonZero."""

from collections.abc import Sequence
from math import ceil, isfinite
from typing import Any

import numpy as np

from ir_scatter.core.shapes import show
from ir_scatter.ops.general_kernels.case import (
    Array,
    Case,
    UnsupportedCase,
    kind,
    require_numeric,
    require_same_type,
)
from ir_scatter.ops.general_kernels.conversion import change_type, dtype_of, widen


def openvino_range(case: Case) -> Array:
    """Count from start up to stop, in the type of the inputs or in `output_type` (Range-4).

    Floating-point values are computed in f64 and rounded once. Fractions that would have to
    become whole numbers are refused: the text says that they are cut off, and that they are not.
    """
    bounds = _bounds(case)
    if "output_type" not in case.attributes:
        return _range(case, bounds, require_same_type(*bounds), np.dtype(np.float64))
    destination = dtype_of(case.attributes.element_type("output_type"))
    return _range(case, bounds, destination, np.dtype(np.float64))


def onnx_range(case: Case) -> Array:
    """Count from start up to limit in the type of the inputs, f16 and bf16 in f32."""
    if case.attributes.integer("stash_type", 1) != 1:
        raise UnsupportedCase("stash_type is not f32")
    bounds = _bounds(case)
    destination = require_same_type(*bounds)
    work = np.dtype(np.float64 if destination == np.float64 else np.float32)
    return _range(case, bounds, destination, work)


def shape_of(case: Case) -> Array:
    """Return the shape in `output_type`, i64 by default."""
    destination = dtype_of(case.attributes.element_type("output_type", "i64"))
    return _numbers(case.array(0).shape, destination)


def shape(case: Case) -> Array:
    """Return the shape, or its part from `start` to `end`, which are clamped."""
    dims = case.array(0).shape
    start = case.attributes.integer("start", 0)
    end = case.attributes.integer("end", len(dims))
    return _numbers(dims[start:end], np.dtype(np.int64))


def size(case: Case) -> Array:
    """Return the number of elements as a scalar."""
    return np.array(case.array(0).size, np.int64)


def non_zero(case: Case) -> Array:
    """Return the positions of all elements that are not 0, one row for each axis."""
    data = widen(case.array(0))
    if kind(data) in {"string", "complex"}:
        raise UnsupportedCase(f"data is {data.dtype}, expected numbers or booleans")
    destination = dtype_of(case.attributes.element_type("output_type", "i64"))
    counted = np.asarray(data != 0)
    case.reserve((data.ndim, int(np.count_nonzero(counted))))
    if data.ndim == 0:
        return np.zeros((0, int(counted)), destination)
    return np.stack(np.nonzero(counted)).astype(destination)


def _numbers(numbers: Sequence[int], destination: np.dtype[Any]) -> Array:
    if max(numbers, default=0) > np.iinfo(destination).max:
        raise UnsupportedCase(f"{show(tuple(numbers))} does not fit into {destination}")
    return np.array(numbers, destination)


def _bounds(case: Case) -> tuple[Array, ...]:
    bounds = tuple(case.array(index) for index in range(3))
    require_numeric(*bounds)
    for bound in bounds:
        if bound.size != 1 or bound.ndim > 1:
            raise UnsupportedCase(f"a bound has shape {show(bound.shape)}, expected a scalar")
    return tuple(bound.reshape(()) for bound in bounds)


def _range(case: Case, bounds: Sequence[Array], destination: np.dtype[Any], work: np.dtype[Any]) -> Array:
    kind_of_output = kind(np.empty(0, destination))
    if kind_of_output == "float":
        return _float_range(case, bounds, destination, work)
    if kind_of_output not in {"signed", "unsigned"}:
        raise UnsupportedCase(f"output_type is {destination}, expected numbers")
    start, stop, step = (_whole(bound) for bound in bounds)
    if step == 0:
        raise UnsupportedCase("step is 0, expected any other number")
    for number in (start, stop, step):
        if int(np.array(number).astype(destination)) != number:
            raise UnsupportedCase(f"{number} does not fit into {destination}")
    count = max(0, -((start - stop) // step))
    case.reserve((count,))
    offsets = np.arange(count, dtype=np.uint64) * np.uint64(step % 2**64)
    return (offsets + np.uint64(start % 2**64)).astype(destination)


def _whole(bound: Array) -> int:
    if kind(bound) != "float":
        return int(bound)
    number = float(bound)
    if not number.is_integer():
        raise UnsupportedCase(f"a bound is {number}, expected a whole number")
    return int(number)


def _float_range(
    case: Case, bounds: Sequence[Array], destination: np.dtype[Any], work: np.dtype[Any]
) -> Array:
    count = _float_count(bounds, np.dtype(np.float64))
    shortest = np.dtype(np.float64 if destination == np.float64 else np.float32)
    if count != _float_count(bounds, shortest):
        raise UnsupportedCase(f"the number of elements depends on rounding: {count}, or one off")
    case.reserve((count,))
    start, _, step = (widen(bound).astype(work) for bound in bounds)
    return change_type(start + np.arange(count, dtype=work) * step, destination)


def _float_count(bounds: Sequence[Array], work: np.dtype[Any]) -> int:
    start, stop, step = (widen(bound).astype(work) for bound in bounds)
    steps = float((stop - start) / step)
    if not isfinite(steps):
        raise UnsupportedCase(f"step is {step}, expected finite bounds and a step that is not 0")
    return max(0, ceil(steps))
