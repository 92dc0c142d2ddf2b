"""Operators that keep every element and change the shape around it."""

from math import prod

import numpy as np

from ir_scatter.core.shapes import show, show_numbers
from ir_scatter.ops.general_kernels.case import (
    LARGEST_RANK,
    Array,
    Case,
    UnsupportedCase,
    normalize_axes,
)


def openvino_reshape(case: Case) -> Array:
    """Reshape; 0 copies a dimension if `special_zero` says so."""
    copies_zero = case.attributes.boolean("special_zero")
    return _reshape(case, case.array(0), case.integers(1), copies_zero)


def onnx_reshape(case: Case) -> Array:
    """Reshape; 0 copies a dimension unless `allowzero` is set."""
    if "shape" in case.attributes:
        return _reshape(case, case.array(0), case.attributes.integers("shape"), True)
    copies_zero = not case.attributes.boolean("allowzero", False)
    return _reshape(case, case.array(0), case.integers(1), copies_zero)


def flatten(case: Case) -> Array:
    """Make a matrix: dimensions before `axis` times those from it on; `axis` may be the rank."""
    data = case.array(0)
    axis = case.attributes.integer("axis", 1)
    if not -data.ndim <= axis <= data.ndim:
        raise UnsupportedCase(f"axis is {axis}, expected -{data.ndim} to {data.ndim}")
    front = axis if axis >= 0 else axis + data.ndim
    return data.reshape(case.reserve((prod(data.shape[:front]), prod(data.shape[front:]))))


def openvino_squeeze(case: Case) -> Array:
    """Remove dimensions of 1; axes that name others are ignored, no axes mean all of them."""
    data = case.array(0)
    axes = [] if case.optional(1) is None else case.integers(1, may_be_scalar=True)
    named = normalize_axes(axes, data.ndim) or tuple(range(data.ndim))
    return np.squeeze(data, axis=tuple(axis for axis in named if data.shape[axis] == 1))


def onnx_squeeze(case: Case) -> Array:
    """Remove dimensions of 1: all of them, or those that the attribute or input `axes` names."""
    data = case.array(0)
    if "axes" not in case.attributes and case.optional(1) is None:
        return np.squeeze(data)
    axes = _onnx_axes(case)
    if not axes:
        raise UnsupportedCase("axes is empty, which the document gives no meaning")
    return np.squeeze(data, axis=normalize_axes(axes, data.ndim))


def openvino_unsqueeze(case: Case) -> Array:
    """Insert dimensions of 1; the axes count in the output."""
    return _unsqueeze(case.array(0), case.integers(1, may_be_scalar=True))


def onnx_unsqueeze(case: Case) -> Array:
    """Insert dimensions of 1; the axes, attribute or input, count in the output."""
    return _unsqueeze(case.array(0), _onnx_axes(case))


def openvino_transpose(case: Case) -> Array:
    """Permute the axes; an empty order reverses them."""
    return _transpose(case.array(0), case.integers(1))


def onnx_transpose(case: Case) -> Array:
    """Permute the axes; without `perm` reverse them."""
    data = case.array(0)
    if "perm" not in case.attributes:
        return data.transpose()
    return _transpose(data, case.attributes.integers("perm"))


def _onnx_axes(case: Case) -> list[int]:
    if "axes" in case.attributes:
        return case.attributes.integers("axes")
    return case.integers(1, may_be_scalar=True)


def _reshape(case: Case, data: Array, pattern: list[int], copies_zero: bool) -> Array:
    if len(pattern) > LARGEST_RANK:
        raise UnsupportedCase(f"shape has {len(pattern)} dimensions, more than any tensor")
    if copies_zero and 0 in pattern[data.ndim :]:
        raise UnsupportedCase(
            f"shape is {show_numbers(pattern)}: 0 has no dimension of {show(data.shape)} to copy"
        )
    shape = [data.shape[axis] if dim == 0 and copies_zero else dim for axis, dim in enumerate(pattern)]
    if shape.count(-1) > 1 or min(shape, default=0) < -1:
        raise UnsupportedCase(f"shape is {show_numbers(pattern)}, expected at most one -1")
    if -1 in shape:
        others = prod(dim for dim in shape if dim != -1)
        if others == 0:
            raise UnsupportedCase(f"shape is {show_numbers(pattern)}: -1 beside 0 may be anything")
        shape[shape.index(-1)] = data.size // others
    if prod(shape) != data.size:
        raise UnsupportedCase(f"{show(data.shape)} cannot become {show_numbers(pattern)}")
    return data.reshape(case.reserve(shape))


def _unsqueeze(data: Array, axes: list[int]) -> Array:
    rank = data.ndim + len(axes)
    return np.expand_dims(data, normalize_axes(axes, rank))


def _transpose(data: Array, order: list[int]) -> Array:
    if order and sorted(order) != list(range(data.ndim)):
        raise UnsupportedCase(
            f"order is {show_numbers(order)}, expected every axis of {show(data.shape)} once"
        )
    return data.transpose(order or None)
