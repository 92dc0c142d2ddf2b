"""Operators that put tensors together and take them apart: Concat, Split, VariadicSplit."""

from itertools import accumulate

import numpy as np

from ir_scatter.core.shapes import counted, show
from ir_scatter.ops.general_kernels.case import (
    Array,
    Case,
    UnsupportedCase,
    normalize_axis,
    require_same_type,
)


def concat(case: Case) -> Array:
    """Join tensors along `axis`."""
    arrays = case.arrays()
    require_same_type(*arrays)
    axis = normalize_axis(case.attributes.integer("axis"), arrays[0].ndim)
    others = {array.shape[:axis] + array.shape[axis + 1 :] for array in arrays}
    if len(others) > 1 or len({array.ndim for array in arrays}) > 1:
        shapes = ", ".join(show(array.shape) for array in arrays)
        raise UnsupportedCase(f"shapes are {shapes}, expected equal ones but for axis {axis}")
    total = sum(array.shape[axis] for array in arrays)
    case.reserve((*arrays[0].shape[:axis], total, *arrays[0].shape[axis + 1 :]))
    return np.concatenate(arrays, axis)


def openvino_split(case: Case) -> tuple[Array, ...]:
    """Split into `num_splits` equal parts along the axis of input 1."""
    data, count = case.array(0), case.attributes.integer("num_splits")
    axis = normalize_axis(case.integer(1), data.ndim)
    size = data.shape[axis]
    if not 1 <= count <= size or size % count:
        raise UnsupportedCase(f"num_splits is {count}, expected a divisor of {size}")
    return _parts(data, axis, [size // count] * count)


def variadic_split(case: Case) -> tuple[Array, ...]:
    """Split into parts of given lengths, of which one may be -1: what is left."""
    data, lengths = case.array(0), case.integers(2, may_be_long=True)
    axis = normalize_axis(case.integer(1), data.ndim)
    if lengths.count(-1) == 1:
        rest = data.shape[axis] - sum(lengths) - 1
        lengths[lengths.index(-1)] = rest
    return _parts(data, axis, lengths)


def onnx_split(case: Case) -> tuple[Array, ...]:
    """Split into given lengths, or into equal parts, the last of which may be shorter.

    The lengths are an input or an attribute, the number of parts an attribute or, before
    opset 18, the number of outputs.
    """
    data = case.array(0)
    axis = normalize_axis(case.attributes.integer("axis", 0), data.ndim)
    if "split" in case.attributes:
        return _parts(data, axis, case.attributes.integers("split"))
    if case.optional(1) is not None:
        return _parts(data, axis, case.integers(1, may_be_long=True))
    may_be_uneven = "num_outputs" in case.attributes
    count = case.attributes.integer("num_outputs", len(case.output_types))
    size = data.shape[axis]
    if not 1 <= count <= max(size, 1) or (size % count and not may_be_uneven):
        raise UnsupportedCase(f"{size} cannot be split into {counted(count, 'part')}")
    part = -(-size // count)
    return _parts(data, axis, [part] * (count - 1) + [size - part * (count - 1)])


def _parts(data: Array, axis: int, lengths: list[int]) -> tuple[Array, ...]:
    if min(lengths, default=-1) < 0 or sum(lengths) != data.shape[axis]:
        raise UnsupportedCase(
            f"the lengths add up to {sum(lengths)}, expected {data.shape[axis]} and none below 0"
        )
    return tuple(np.split(data, list(accumulate(lengths))[:-1], axis))
