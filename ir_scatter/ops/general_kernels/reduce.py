"""Operators that combine elements along axes: ReduceSum and its like, CumSum."""

from typing import Any

import numpy as np

from ir_scatter.core.arrays import Array, extreme
from ir_scatter.ops.general_kernels.base import (
    BOOLEAN,
    NUMERIC,
    Case,
    Kernel,
    UnsupportedCase,
    narrow,
    normalize_axes,
    normalize_axis,
    require_kind,
    widen,
)


def reduction(function: np.ufunc) -> Kernel:
    """Make a kernel that reduces along axes, attribute or input.

    No axes change nothing in an IR, and mean all of them in ONNX unless `noop_with_empty_axes` is set.
    """
    is_extreme = function in (np.maximum, np.minimum)

    def kernel(case: Case) -> Array:
        data = case.array(0)
        axes = case.integers(1, "axes", default=() if case.is_onnx else None, may_be_scalar=True)
        if case.is_onnx and not axes and not case.attributes.boolean("noop_with_empty_axes", False):
            axes = list(range(data.ndim))
        gone = normalize_axes(axes, data.ndim)
        word, default = ("keepdims", True) if case.is_onnx else ("keep_dims", False)
        keeps_rank = case.attributes.boolean(word, default)
        require_kind(NUMERIC | BOOLEAN if is_extreme else NUMERIC, data)
        case.reserve([dim for axis, dim in enumerate(data.shape) if axis not in gone])
        wide = widen(data)
        options: dict[str, Any] = {"dtype": wide.dtype}
        if is_extreme and any(data.shape[axis] == 0 for axis in gone):
            if not case.is_onnx:
                raise UnsupportedCase("the largest or smallest of no elements is undefined")
            options["initial"] = extreme(data.dtype, is_lowest=function is np.maximum)
        return narrow(function.reduce(wide, axis=gone, keepdims=keeps_rank, **options), data.dtype)

    return kernel


def cumulative_sum(case: Case) -> Array:
    """Sum up along the axis of input 1, which an IR may leave out if it is 0."""
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
