"""Operators that cut out ranges: Slice and StridedSlice. Their outputs are views."""

from collections.abc import Sequence
from types import EllipsisType

import numpy as np

from ir_scatter.core.shapes import counted, show, show_numbers
from ir_scatter.ops.general_kernels.case import (
    Array,
    Case,
    UnsupportedCase,
    normalize_axes,
    normalize_axis,
)

_FARTHEST = 2**63 - 1


def openvino_slice(case: Case) -> Array:
    """Cut ranges out of data: inputs start, stop, step and, if not all, axes.

    The text says at once that starts are clamped and that Python's rules hold. They differ for a
    backward slice that starts before the front, which is refused.
    """
    data = case.array(0)
    starts, stops, steps = (case.integers(index) for index in (1, 2, 3))
    axes = list(range(len(starts))) if case.optional(4) is None else case.integers(4)
    for start, step, axis in zip(starts, steps, axes, strict=True):
        size = data.shape[normalize_axis(axis, data.ndim)]
        if step < 0 and start < -size:
            raise UnsupportedCase(f"start is {start}, expected -{size} or more for a negative step")
    return _slice(data, starts, stops, steps, axes)


def onnx_slice(case: Case) -> Array:
    """Cut ranges out of data; everything but data is an attribute (opset 1) or an input."""
    data = case.array(0)
    if "starts" in case.attributes:
        starts, ends = case.attributes.integers("starts"), case.attributes.integers("ends")
        axes = case.attributes.integers("axes", range(len(starts)))
        return _slice(data, starts, ends, [1] * len(starts), axes)
    starts, ends = case.integers(1), case.integers(2)
    axes = list(range(len(starts))) if case.optional(3) is None else case.integers(3)
    steps = [1] * len(starts) if case.optional(4) is None else case.integers(4)
    return _slice(data, starts, ends, steps, axes)


def strided_slice(case: Case) -> Array:
    """Cut ranges out of data, with the five masks of StridedSlice-1.

    Where the text contradicts itself: a backward slice with `end_mask` includes the first
    element, as `array[::-1]` does; with `shrink_axis_mask` any `end` is taken. Refused are an
    unmasked `begin` that equals `end` (one element or none), and masks that meet on one position
    without an order between them.
    """
    data = case.array(0)
    begins, ends = case.integers(1), case.integers(2)
    strides = [1] * len(begins) if case.optional(3) is None else case.integers(3)
    if not len(begins) == len(ends) == len(strides) or 0 in strides:
        raise UnsupportedCase(
            f"begin, end, stride are {', '.join(map(show_numbers, (begins, ends, strides)))}, "
            "expected three lists of one length and no stride of 0"
        )
    masks = _masks(case, len(begins))
    steps: list[slice | int | EllipsisType | None] = []
    axis = 0
    for begin, end, stride, mask in zip(begins, ends, strides, masks, strict=True):
        if mask.intersection({"new_axis", "ellipsis"}):
            steps.append(... if "ellipsis" in mask else None)
            axis += _skipped(data, masks) if "ellipsis" in mask else 0
            continue
        if axis >= data.ndim:
            raise UnsupportedCase(f"more slices than the {counted(data.ndim, 'dimension')} of data")
        steps.append(_step(begin, end, stride, mask, data.shape[axis]))
        axis += 1
    return np.asarray(data[tuple(steps) if ... in steps else (*steps, ...)])


def _slice(
    data: Array,
    starts: Sequence[int],
    stops: Sequence[int],
    steps: Sequence[int],
    axes: Sequence[int],
) -> Array:
    selection = [slice(None)] * data.ndim
    places = zip(starts, stops, steps, normalize_axes(axes, data.ndim), strict=True)
    for start, stop, step, axis in places:
        selection[axis] = _range(start, stop, step, data.shape[axis])
    return data[tuple(selection)]


def _range(start: int, stop: int, step: int, size: int) -> slice:
    """Clamp a range into a dimension, as ONNX's Slice and the IR's StridedSlice describe it."""
    if step == 0:
        raise UnsupportedCase("step is 0, expected any other number")
    lowest, highest = (0, size) if step > 0 else (-1, size - 1)
    first = min(max(start + size * (start < 0), 0), highest)
    last = min(max(stop + size * (stop < 0), lowest), highest)
    if (last - first) * step <= 0:
        return slice(0, 0)
    stride = max(min(step, _FARTHEST), -_FARTHEST)
    return slice(first, None if last < 0 else last, stride)


def _masks(case: Case, length: int) -> list[set[str]]:
    """Return what the masks say at each position; short masks go on with zeros."""
    found: list[set[str]] = [set() for _ in range(length)]
    for name in ("begin", "end", "new_axis", "shrink_axis", "ellipsis"):
        required = None if name in {"begin", "end"} else ()
        bits = case.attributes.integers(f"{name}_mask", required)
        if set(bits) - {0, 1}:
            raise UnsupportedCase(f"{name}_mask is {show_numbers(bits)}, expected 0 and 1")
        for mask, bit in zip(found, bits, strict=False):
            if bit:
                mask.add(name)
    if sum("ellipsis" in mask for mask in found) > 1:
        raise UnsupportedCase("ellipsis_mask has more than one 1")
    for mask in found:
        if len(mask & {"ellipsis", "new_axis", "shrink_axis"}) > 1:
            raise UnsupportedCase("two masks contradict each other at one position")
    return found


def _skipped(data: Array, masks: Sequence[set[str]]) -> int:
    """Return how many dimensions the ellipsis stands for."""
    slices = sum(not mask & {"new_axis", "ellipsis"} for mask in masks)
    if slices > data.ndim:
        raise UnsupportedCase(f"{counted(slices, 'slice')} and an ellipsis for {show(data.shape)}")
    return data.ndim - slices


def _step(begin: int, end: int, stride: int, mask: set[str], size: int) -> slice | int:
    if "shrink_axis" in mask:
        if "begin" in mask:
            raise UnsupportedCase("begin_mask and shrink_axis_mask meet at one position")
        return normalize_axis(begin, size)
    if begin == end and not mask & {"begin", "end"}:
        raise UnsupportedCase(f"begin and end are both {begin}: one element or none")
    if "begin" in mask:
        begin = 0 if stride > 0 else size
    if "end" in mask:
        end = size if stride > 0 else -size - 1
    return _range(begin, end, stride, size)
