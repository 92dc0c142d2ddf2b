"""Operators that repeat elements: Broadcast, Expand, Tile, ConstantOfShape."""

from itertools import pairwise

import numpy as np

from ir_scatter.core.shapes import counted, show, show_numbers
from ir_scatter.ops.general_kernels.broadcasting import broadcast_shape, require_broadcast_to
from ir_scatter.ops.general_kernels.case import Array, Case, UnsupportedCase


def broadcast(case: Case) -> Array:
    """Broadcast data to a shape in the IR's modes numpy, explicit and bidirectional.

    The text does not say whether mode explicit repeats a dimension of 1; it does here. OpenVINO
    writes "none" for explicit, and reads it so.
    """
    data, target = case.array(0), case.integers(1)
    mode = case.attributes.text("mode", "numpy", {"numpy", "explicit", "bidirectional", "none"})
    if mode == "bidirectional":
        target = list(broadcast_shape(data.shape, target))
    shape = case.reserve(target)
    if mode in {"explicit", "none"}:
        data = _placed(data, case.integers(2), len(shape))
    require_broadcast_to(data.shape, shape)
    return np.broadcast_to(data, shape)


def expand(case: Case) -> Array:
    """Broadcast data and a shape to each other."""
    data = case.array(0)
    return np.broadcast_to(data, case.reserve(broadcast_shape(data.shape, case.integers(1))))


def openvino_tile(case: Case) -> Array:
    """Repeat data along each axis; the shorter of shape and repeats is filled up with 1."""
    return _tile(case, case.array(0), case.integers(1))


def onnx_tile(case: Case) -> Array:
    """Repeat data along each axis; one number of repeats for every axis."""
    data, repeats = case.array(0), case.integers(1)
    if len(repeats) != data.ndim or len(case.inputs) > 2:
        raise UnsupportedCase(f"{counted(len(repeats), 'repeat')} for {counted(data.ndim, 'axis', 'axes')}")
    return _tile(case, data, repeats)


def constant_of_shape(case: Case) -> Array:
    """Repeat one element, 0 of type f32 unless `value` says otherwise."""
    value = case.attributes.tensor("value")
    if value is None:
        value = np.zeros(1, np.float32)
    if value.size != 1:
        raise UnsupportedCase(f"value has shape {show(value.shape)}, expected one element")
    return np.broadcast_to(value.reshape(()), case.reserve(case.integers(0)))


def _placed(data: Array, axes: list[int], rank: int) -> Array:
    """Give data `rank` dimensions, its own ones on `axes`."""
    is_sorted = all(left < right for left, right in pairwise(axes))
    if len(axes) != data.ndim or not is_sorted or not all(0 <= axis < rank for axis in axes):
        raise UnsupportedCase(
            f"axes_mapping is {show_numbers(axes)}, expected {data.ndim} rising axes below {rank}"
        )
    shape = [1] * rank
    for axis, dim in zip(axes, data.shape, strict=True):
        shape[axis] = dim
    return data.reshape(shape)


def _tile(case: Case, data: Array, repeats: list[int]) -> Array:
    if min(repeats, default=0) < 0:
        raise UnsupportedCase(f"repeats are {show_numbers(repeats)}, expected none below 0")
    rank = max(data.ndim, len(repeats))
    shape = (1,) * (rank - data.ndim) + data.shape
    full = [1] * (rank - len(repeats)) + repeats
    case.reserve([dim * repeat for dim, repeat in zip(shape, full, strict=True)])
    return np.tile(data, full)
