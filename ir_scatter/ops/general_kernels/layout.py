"""Kernels that move elements: reshape, permute, repeat, join, split and slice.

The outputs of most of them are views of the input.
"""

from itertools import accumulate, pairwise
from math import prod
from types import EllipsisType

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.core.shapes import show, show_numbers
from ir_scatter.core.words import counted
from ir_scatter.ops.attributes import zero_copies
from ir_scatter.ops.general_kernels.base import (
    KernelCase,
    UnsupportedCase,
    normalize_axes,
    normalize_axis,
    require_same_type,
)
from ir_scatter.ops.general_shapes import clamped


def identity(case: KernelCase) -> Array:
    return case.array(0)


def reshape(case: KernelCase) -> Array:
    """Reshape. 0 copies a dimension if `special_zero` (IR) is true, or `allowzero` (ONNX) is 0."""
    data, pattern = case.array(0), case.integers(1, "shape")
    copies_zero = zero_copies(case.attributes, is_onnx=case.is_onnx)
    if copies_zero and 0 in pattern[data.ndim :]:
        raise UnsupportedCase(
            f"shape is {show_numbers(pattern)}: 0 has no dimension of {show(data.shape)} to copy"
        )
    shape = [data.shape[axis] if dim == 0 and copies_zero else dim for axis, dim in enumerate(pattern)]
    if shape.count(-1) > 1 or min(shape, default=0) < -1:
        raise UnsupportedCase(f"shape is {show_numbers(pattern)}, expected at most one -1")
    return data.reshape(shape)


def flatten(case: KernelCase) -> Array:
    """Reshape to a matrix: the dimensions before `axis`, and those from it on. `axis` may be the rank."""
    data, axis = case.array(0), case.attributes.integer("axis", 1)
    if axis != data.ndim:
        axis = normalize_axis(axis, data.ndim)
    return data.reshape((prod(data.shape[:axis]), prod(data.shape[axis:])))


def squeeze(case: KernelCase) -> Array:
    """Remove dimensions of 1: all, or those in `axes`. OpenVINO ignores axes with another size."""
    data = case.array(0)
    if case.is_onnx and "axes" not in case.attributes and not case.has(1):
        return np.squeeze(data)
    axes = normalize_axes(case.integers(1, "axes", default=(), may_be_scalar=True), data.ndim)
    if case.is_onnx:
        if not axes:
            raise UnsupportedCase("axes is empty, which the specification does not define")
        return np.squeeze(data, axis=axes)
    return np.squeeze(data, axis=tuple(axis for axis in axes or range(data.ndim) if data.shape[axis] == 1))


def unsqueeze(case: KernelCase) -> Array:
    """Insert dimensions of 1; the axes refer to the output."""
    data, axes = case.array(0), case.integers(1, "axes", may_be_scalar=True)
    return np.expand_dims(data, normalize_axes(axes, data.ndim + len(axes)))


def transpose(case: KernelCase) -> Array:
    """Permute the axes. An empty order reverses them, in ONNX also a missing one."""
    data = case.array(0)
    order = case.integers(1, "perm", default=() if case.is_onnx else None)
    if order and sorted(order) != list(range(data.ndim)):
        raise UnsupportedCase(
            f"order is {show_numbers(order)}, expected every axis of {show(data.shape)} once"
        )
    return data.transpose(order or None)


def broadcast(case: KernelCase) -> Array:
    """Broadcast data to a shape in OpenVINO's modes numpy, explicit and bidirectional.

    The specification does not say whether mode explicit repeats a dimension of 1; here it does. OpenVINO
    writes "none" for explicit, and reads "none" as explicit.
    """
    data, target = case.array(0), case.integers(1)
    mode = case.attributes.text("mode", "numpy", {"numpy", "explicit", "bidirectional", "none"})
    if mode == "bidirectional":
        return expand(case)
    if mode != "numpy":
        axes, rank = case.integers(2), len(target)
        is_sorted = all(left < right for left, right in pairwise(axes))
        if len(axes) != data.ndim or not is_sorted or not all(0 <= axis < rank for axis in axes):
            raise UnsupportedCase(
                f"axes_mapping is {show_numbers(axes)}, expected {data.ndim} ascending axes below {rank}"
            )
        data = np.expand_dims(data, [axis for axis in range(rank) if axis not in axes])
    return np.broadcast_to(data, target)


def expand(case: KernelCase) -> Array:
    """Broadcast data and a shape to each other."""
    data, shape = case.array(0), case.integers(1)
    return np.broadcast_to(data, np.broadcast_shapes(data.shape, tuple(shape)))


def tile(case: KernelCase) -> Array:
    """Repeat data along each axis. In OpenVINO the shorter one of shape and repeats gets leading 1s."""
    data, repeats = case.array(0), case.integers(1)
    if case.is_onnx and (len(repeats) != data.ndim or len(case.inputs) > 2):
        raise UnsupportedCase(f"{counted(len(repeats), 'repeat')} for {counted(data.ndim, 'axis', 'axes')}")
    if min(repeats, default=0) < 0:
        raise UnsupportedCase(f"repeats are {show_numbers(repeats)}, expected none below 0")
    rank = max(data.ndim, len(repeats))
    shape = (1,) * (rank - data.ndim) + data.shape
    full = [1] * (rank - len(repeats)) + repeats
    case.reserve([dim * repeat for dim, repeat in zip(shape, full, strict=True)])
    return np.tile(data, full)


def concat(case: KernelCase) -> Array:
    arrays = case.arrays()
    require_same_type(*arrays)
    axis = normalize_axis(case.attributes.integer("axis"), arrays[0].ndim)
    case.reserve([sum(array.size for array in arrays)])
    return np.concatenate(arrays, axis)


def split(case: KernelCase) -> tuple[Array, ...]:
    """Split into equal parts, `num_splits` in OpenVINO; in ONNX also by lengths.

    In ONNX the lengths are an input or an attribute. The number of parts is the attribute `num_outputs`,
    which allows a shorter last part, or before opset 18 the number of outputs.
    """
    data = case.array(0)
    if not case.is_onnx:
        axis, count = normalize_axis(case.integer(1), data.ndim), case.attributes.integer("num_splits")
        size = data.shape[axis]
        if not 1 <= count <= size or size % count:
            raise UnsupportedCase(f"num_splits is {count}, expected a divisor of {size}")
        return _parts(data, axis, [size // count] * count)
    axis = normalize_axis(case.attributes.integer("axis", 0), data.ndim)
    if "split" in case.attributes or case.has(1):
        return _parts(data, axis, case.integers(1, "split", may_be_long=True))
    size, count = data.shape[axis], case.attributes.integer("num_outputs", case.output_count)
    if not 1 <= count <= max(size, 1) or (size % count and "num_outputs" not in case.attributes):
        raise UnsupportedCase(f"{size} cannot be split into {counted(count, 'part')}")
    part = -(-size // count)
    return _parts(data, axis, [part] * (count - 1) + [size - part * (count - 1)])


def variadic_split(case: KernelCase) -> tuple[Array, ...]:
    """Split into parts of the lengths in input 2; -1 stands for the rest."""
    data, lengths = case.array(0), case.integers(2, may_be_long=True)
    axis = normalize_axis(case.integer(1), data.ndim)
    if lengths.count(-1) == 1:
        lengths[lengths.index(-1)] = data.shape[axis] - sum(lengths) - 1
    return _parts(data, axis, lengths)


def _parts(data: Array, axis: int, lengths: list[int]) -> tuple[Array, ...]:
    if min(lengths, default=-1) < 0 or sum(lengths) != data.shape[axis]:
        raise UnsupportedCase(
            f"the lengths add up to {sum(lengths)}, expected {data.shape[axis]} and none below 0"
        )
    return tuple(np.split(data, list(accumulate(lengths))[:-1], axis))


def slice_ranges(case: KernelCase) -> Array:
    """Slice ranges of data: starts, ends and optional axes and steps. They are attributes in ONNX's opset 1.

    OpenVINO's specification says both that starts are clamped and that Python's rules hold. These contradict
    each other for a backward slice that starts before position 0, which is refused.
    """
    data = case.array(0)
    axes_input, steps_input = (3, 4) if case.is_onnx else (4, 3)
    starts, ends = case.integers(1, "starts"), case.integers(2, "ends")
    axes = case.integers(axes_input, "axes", default=range(len(starts)))
    steps = case.integers(steps_input, default=[1] * len(starts) if case.is_onnx else None)
    selection = [slice(None)] * data.ndim
    for start, end, step, axis in zip(starts, ends, steps, normalize_axes(axes, data.ndim), strict=True):
        size = data.shape[axis]
        if not case.is_onnx and step < 0 and start < -size:
            raise UnsupportedCase(f"start is {start}, expected -{size} or more for a negative step")
        selection[axis] = range_of(start, end, step, size)
    return data[tuple(selection)]


def strided_slice(case: KernelCase) -> Array:
    """Slice ranges of data, with the five masks of StridedSlice-1.

    The specification contradicts itself in some cases. A backward slice with `end_mask` includes the first
    element here, as `array[::-1]` does, and `shrink_axis_mask` accepts any `end`. Two cases are refused: an
    unmasked `begin` that equals `end` (one element or an empty slice), and two masks at one position without
    a specified order.
    """
    data = case.array(0)
    begins, ends = case.integers(1), case.integers(2)
    strides = case.integers(3, default=[1] * len(begins))
    masks = _masks(case, len(begins))
    count = sum(not mask & {"new_axis", "ellipsis"} for mask in masks)
    if count > data.ndim:
        raise UnsupportedCase(f"{counted(count, 'slice')}, more than the dimensions of {show(data.shape)}")
    steps: list[slice | int | EllipsisType | None] = []
    axis = 0
    for begin, end, stride, mask in zip(begins, ends, strides, masks, strict=True):
        if "ellipsis" in mask:
            steps.append(...)
            axis += data.ndim - count
            continue
        if "new_axis" in mask:
            steps.append(None)
            continue
        size = data.shape[axis]
        axis += 1
        if "shrink_axis" in mask:
            if "begin" in mask:
                raise UnsupportedCase("begin_mask and shrink_axis_mask are both set at one position")
            steps.append(normalize_axis(begin, size))
            continue
        if begin == end and not mask & {"begin", "end"}:
            raise UnsupportedCase(
                f"begin and end are both {begin}, which may mean one element or an empty slice"
            )
        first = (0 if stride > 0 else size) if "begin" in mask else begin
        last = (size if stride > 0 else -size - 1) if "end" in mask else end
        steps.append(range_of(first, last, stride, size))
    return np.asarray(data[tuple(steps) if ... in steps else (*steps, ...)])


def range_of(start: int, stop: int, step: int, size: int) -> slice:
    positions = clamped(start, stop, step, size)
    return slice(positions.start, None if positions.stop < 0 else positions.stop, step)


def _masks(case: KernelCase, length: int) -> list[set[str]]:
    """Return the names of the masks that are 1, for each position; short masks are extended by zeros."""
    names: list[set[str]] = [set() for _ in range(length)]
    for name in ("begin", "end", "new_axis", "shrink_axis", "ellipsis"):
        bits = case.attributes.integers(f"{name}_mask", None if name in {"begin", "end"} else ())
        if set(bits) - {0, 1}:
            raise UnsupportedCase(f"{name}_mask is {show_numbers(bits)}, expected 0 and 1")
        for mask, bit in zip(names, bits, strict=False):
            if bit:
                mask.add(name)
    if sum("ellipsis" in mask for mask in names) > 1:
        raise UnsupportedCase("ellipsis_mask has more than one 1")
    if any(len(mask & {"ellipsis", "new_axis", "shrink_axis"}) > 1 for mask in names):
        raise UnsupportedCase("two masks contradict each other at one position")
    return names
