"""Kernels that select elements by indices: the Gather operators."""

from math import prod

import numpy as np

from ir_scatter.core.arrays import Array, kind
from ir_scatter.core.shapes import show
from ir_scatter.core.words import counted
from ir_scatter.ops.general_kernels.base import (
    WHOLE,
    KernelCase,
    UnsupportedCase,
    normalize_axis,
    require_kind,
)
from ir_scatter.ops.index_values import from_front, outside, whole_numbers


def gather(case: KernelCase) -> Array:
    """Gather slices along an axis, within batches.

    OpenVINO's Gather-1 and Gather-7 require indices of 0 or more. Since Gather-8 negative indices count from
    the end, and indices out of range return zeros. In ONNX negative indices count from the end.
    """
    data, indices = case.arrays(2)
    axis = case.attributes.integer("axis", 0) if case.is_onnx else case.integer(2)
    axis = normalize_axis(axis, data.ndim)
    batch_rank = case.attributes.integer("batch_dims", 0)
    if batch_rank < 0:
        batch_rank += indices.ndim
    if not 0 <= batch_rank <= min(axis, indices.ndim):
        raise UnsupportedCase(f"batch_dims is {batch_rank}, expected 0 to the axis, {axis}")
    batch = _batch(data, indices, batch_rank)
    shape = case.reserve(data.shape[:axis] + indices.shape[batch_rank:] + data.shape[axis + 1 :])
    size = data.shape[axis]
    before, after = prod(data.shape[batch_rank:axis]), prod(data.shape[axis + 1 :])
    blocks = data.reshape(batch, before, size, after)
    indices = _whole(indices).reshape(batch, prod(indices.shape[batch_rank:]))
    wraps = case.is_onnx or case.is_since(8)
    is_outside = (indices < -size) | (indices >= size)
    fills = wraps and not case.is_onnx and bool(is_outside.any())
    if fills and (kind(data) == "string" or size == 0):
        raise UnsupportedCase(f"an index is out of range, expected -{size} to {size - 1}")
    positions = _positions(np.where(is_outside, 0, indices) if fills else indices, size, wraps=wraps)
    if 0 in shape:
        return np.empty(shape, data.dtype)
    rows, columns = np.ogrid[:batch, :before]
    output = blocks[rows[..., None], columns[..., None], positions[:, None, :]]
    if fills:
        output = np.where(is_outside[:, None, :, None], np.zeros((), data.dtype), output)
    return output.reshape(shape)


def gather_nd(case: KernelCase) -> Array:
    """Gather slices by tuples of coordinates.

    OpenVINO's GatherND-5 merges the batch dimensions of its output and forbids negative indices. GatherND-8
    keeps the dimensions separate, and counts negative indices from the end, as ONNX does.
    """
    data, indices = case.arrays(2)
    batch_rank = case.attributes.integer("batch_dims", 0)
    if not 0 <= batch_rank < min(data.ndim, indices.ndim):
        raise UnsupportedCase(f"batch_dims is {batch_rank}, expected less than both ranks")
    batch, depth = _batch(data, indices, batch_rank), indices.shape[-1]
    if not 1 <= depth <= data.ndim - batch_rank:
        raise UnsupportedCase(
            f"a tuple has {counted(depth, 'index', 'indices')}, expected 1 to the rank of a batch"
        )
    shape = case.reserve(indices.shape[:-1] + data.shape[batch_rank + depth :])
    blocks = data.reshape((batch, *data.shape[batch_rank:]))
    tuples = _whole(indices).reshape(batch, prod(indices.shape[batch_rank:-1]), depth)
    wraps = case.is_onnx or case.is_since(8)
    coordinates = [
        _positions(tuples[..., column], blocks.shape[1 + column], wraps=wraps) for column in range(depth)
    ]
    output = np.empty(shape, data.dtype)
    if 0 not in shape:
        output = np.asarray(blocks[(np.arange(batch)[:, None], *coordinates)]).reshape(shape)
    return output if wraps or batch_rank < 2 else output.reshape((batch, *shape[batch_rank:]))


def gather_elements(case: KernelCase) -> Array:
    """Gather single elements. Off the axis, indices has the shape of data; in ONNX it may be smaller."""
    data, indices = case.arrays(2)
    axis = normalize_axis(case.attributes.integer("axis", 0 if case.is_onnx else None), data.ndim)
    pairs = zip(indices.shape, data.shape, strict=False)
    bad = [dim > size or (dim < size and not case.is_onnx) for dim, size in pairs]
    if indices.ndim != data.ndim or any(bad[:axis] + bad[axis + 1 :]):
        raise UnsupportedCase(
            f"indices is {show(indices.shape)}, expected to fit {show(data.shape)} off axis {axis}"
        )
    case.reserve(indices.shape)
    if indices.size == 0:
        return np.empty(indices.shape, data.dtype)
    places = list(np.ogrid[tuple(map(slice, indices.shape))])
    places[axis] = _positions(_whole(indices), data.shape[axis], wraps=case.is_onnx)
    return np.asarray(data[tuple(places)])


def _batch(data: Array, indices: Array, rank: int) -> int:
    if indices.shape[:rank] != data.shape[:rank]:
        raise UnsupportedCase(
            f"indices is {show(indices.shape)}, expected {show(data.shape[:rank])} as leading dimensions"
        )
    return prod(data.shape[:rank])


def _whole(indices: Array) -> Array:
    require_kind(WHOLE, indices)
    return whole_numbers(indices)


def _positions(indices: Array, size: int, *, wraps: bool) -> Array:
    """Return indices as i64 positions of 0 or more; raises UnsupportedCase if one is out of range."""
    bad = outside(indices, [(-size if wraps else 0, size - 1)])
    if bad is not None:
        raise UnsupportedCase(f"an index is {bad.value}, expected {bad.low} to {bad.high}")
    return from_front(indices, size)
