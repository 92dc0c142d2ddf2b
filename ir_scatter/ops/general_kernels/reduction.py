"""Operators that combine elements along axes: ReduceSum and its like, CumSum."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.ops.general_kernels.case import (
    Array,
    Case,
    Kernel,
    UnsupportedCase,
    kind,
    normalize_axes,
    normalize_axis,
    require_numeric,
)
from ir_scatter.ops.general_kernels.conversion import narrow, widen


def openvino_reduce(function: np.ufunc) -> Kernel:
    """Make a kernel that reduces along the axes of input 1; none of them change nothing."""

    def kernel(case: Case) -> Array:
        axes = case.integers(1, may_be_scalar=True)
        keeps_rank = case.attributes.boolean("keep_dims", False)
        return _reduce(case, function, axes, keeps_rank, empty_is_defined=False)

    return kernel


def onnx_reduce(function: np.ufunc) -> Kernel:
    """Make a kernel that reduces along `axes`, attribute or input; without them along all."""

    def kernel(case: Case) -> Array:
        if "axes" in case.attributes:
            axes = case.attributes.integers("axes")
        else:
            axes = [] if case.optional(1) is None else case.integers(1, may_be_scalar=True)
        if not axes and not case.attributes.boolean("noop_with_empty_axes", False):
            axes = list(range(case.array(0).ndim))
        keeps_rank = case.attributes.boolean("keepdims", True)
        return _reduce(case, function, axes, keeps_rank, empty_is_defined=True)

    return kernel


def openvino_cumulative_sum(case: Case) -> Array:
    """Sum up along the axis of input 1, 0 by default."""
    return _cumulative_sum(case, 0 if case.optional(1) is None else case.integer(1))


def onnx_cumulative_sum(case: Case) -> Array:
    """Sum up along the axis of input 1."""
    return _cumulative_sum(case, case.integer(1))


def _reduce(
    case: Case, function: np.ufunc, axes: Sequence[int], keeps_rank: bool, *, empty_is_defined: bool
) -> Array:
    data = case.array(0)
    is_extreme = function in (np.maximum, np.minimum)
    if not (is_extreme and kind(data) == "boolean"):
        require_numeric(data)
    gone = normalize_axes(axes, data.ndim)
    case.reserve([dim for axis, dim in enumerate(data.shape) if axis not in gone])
    wide = widen(data)
    options: dict[str, Any] = {"dtype": wide.dtype}
    if is_extreme and any(data.shape[axis] == 0 for axis in gone):
        if not empty_is_defined:
            raise UnsupportedCase("the largest or smallest of no elements is undefined")
        options["initial"] = _neutral(data, function is np.maximum)
    found = function.reduce(wide, axis=gone, keepdims=keeps_rank, **options)
    return narrow(found, data.dtype)


def _neutral(data: Array, is_lowest: bool) -> Any:
    """Return what the largest (or smallest) of no elements is: infinity, or the type's bound."""
    if kind(data) == "boolean":
        return not is_lowest
    if kind(data) == "float":
        return -np.inf if is_lowest else np.inf
    row = next(row for row in ELEMENT_TYPES.values() if row.dtype_name == data.dtype.name)
    if row.kind == "unsigned":
        return 0 if is_lowest else 2**row.bits - 1
    return -(2 ** (row.bits - 1)) if is_lowest else 2 ** (row.bits - 1) - 1


def _cumulative_sum(case: Case, axis: int) -> Array:
    data = case.array(0)
    require_numeric(data)
    axis = normalize_axis(axis, data.ndim)
    is_exclusive = case.attributes.boolean("exclusive", False)
    is_reversed = case.attributes.boolean("reverse", False)
    wide = widen(data)
    forward = np.moveaxis(np.flip(wide, axis) if is_reversed else wide, axis, 0)
    sums = np.zeros(forward.shape, wide.dtype)
    if is_exclusive:
        np.cumsum(forward[:-1], 0, out=sums[1:])
    else:
        np.cumsum(forward, 0, out=sums)
    found = np.moveaxis(sums, 0, axis)
    return narrow(np.flip(found, axis) if is_reversed else found, data.dtype)
