"""Operators that take elements by index: Gather, GatherND, GatherElements."""

from math import prod

import numpy as np

from ir_scatter.core.shapes import counted, show
from ir_scatter.ops.general_kernels.case import Array, Case, UnsupportedCase, kind, normalize_axis


def openvino_gather(case: Case) -> Array:
    """Take slices along an axis that is input 2, within batches.

    Gather-1 and Gather-7 document indices from 0 on. From Gather-8 on, negative ones count from
    the end, and those out of range give zeros.
    """
    data, indices = case.array(0), case.array(1)
    axis = normalize_axis(case.integer(2), data.ndim)
    batch_rank = case.attributes.integer("batch_dims", 0)
    if batch_rank < 0:
        batch_rank += indices.ndim
    wraps = case.opset is not None and case.opset >= 8
    return _gather(case, data, indices, axis, batch_rank, wraps=wraps, fills=wraps)


def onnx_gather(case: Case) -> Array:
    """Take slices along `axis`; negative indices count from the end."""
    data, indices = case.array(0), case.array(1)
    axis = normalize_axis(case.attributes.integer("axis", 0), data.ndim)
    return _gather(case, data, indices, axis, 0, wraps=True, fills=False)


def openvino_gather_nd(case: Case) -> Array:
    """Take slices by tuples of coordinates.

    GatherND-5 joins the batch dimensions of its output and knows no negative indices; GatherND-8
    keeps them apart, and counts negative indices from the end.
    """
    is_late = case.opset is not None and case.opset >= 8
    found = _gather_nd(case, wraps=is_late)
    batch_rank = case.attributes.integer("batch_dims", 0)
    if is_late or batch_rank < 2:
        return found
    return found.reshape((prod(found.shape[:batch_rank]), *found.shape[batch_rank:]))


def onnx_gather_nd(case: Case) -> Array:
    """Take slices by tuples of coordinates; negative ones count from the end."""
    return _gather_nd(case, wraps=True)


def openvino_gather_elements(case: Case) -> Array:
    """Take single elements; off the axis, indices has the shape of data."""
    data, indices = case.array(0), case.array(1)
    axis = normalize_axis(case.attributes.integer("axis"), data.ndim)
    expected = data.shape[:axis] + indices.shape[axis : axis + 1] + data.shape[axis + 1 :]
    if indices.shape != expected:
        raise UnsupportedCase(f"indices is {show(indices.shape)}, expected {show(expected)}")
    return _gather_elements(case, data, indices, axis, wraps=False)


def onnx_gather_elements(case: Case) -> Array:
    """Take single elements; negative indices count from the end."""
    data, indices = case.array(0), case.array(1)
    axis = normalize_axis(case.attributes.integer("axis", 0), data.ndim)
    return _gather_elements(case, data, indices, axis, wraps=True)


def _offsets(indices: Array) -> Array:
    """Return indices as i64; what is beyond stays beyond every dimension."""
    if kind(indices) not in {"signed", "unsigned"}:
        raise UnsupportedCase(f"indices are {indices.dtype}, expected whole numbers")
    if indices.dtype == np.uint64:
        return np.minimum(indices, np.uint64(2**63 - 1)).astype(np.int64)
    return indices.astype(np.int64)


def _positions(offsets: Array, size: int, *, wraps: bool) -> Array:
    """Return i64 indices counted from the front, all of them legal."""
    lowest = -size if wraps else 0
    illegal = (offsets < lowest) | (offsets >= size)
    if illegal.any():
        raise UnsupportedCase(f"an index is {offsets[illegal].flat[0]}, expected {lowest} to {size - 1}")
    return np.where(offsets < 0, offsets + size, offsets)


def _gather(
    case: Case, data: Array, indices: Array, axis: int, batch_rank: int, *, wraps: bool, fills: bool
) -> Array:
    if not 0 <= batch_rank <= min(axis, indices.ndim):
        raise UnsupportedCase(f"batch_dims is {batch_rank}, expected 0 to the axis, {axis}")
    batch = data.shape[:batch_rank]
    if indices.shape[:batch_rank] != batch:
        raise UnsupportedCase(f"indices is {show(indices.shape)}, expected {show(batch)} in front")
    shape = case.reserve(data.shape[:axis] + indices.shape[batch_rank:] + data.shape[axis + 1 :])
    size = data.shape[axis]
    before, after = prod(data.shape[batch_rank:axis]), prod(data.shape[axis + 1 :])
    blocks = data.reshape(prod(batch), before, size, after)
    offsets = _offsets(indices).reshape(prod(batch), prod(indices.shape[batch_rank:]))
    outside = (offsets < -size) | (offsets >= size)
    fills = fills and bool(outside.any())
    if fills and (kind(data) == "string" or size == 0):
        raise UnsupportedCase(f"an index is out of range, expected -{size} to {size - 1}")
    positions = _positions(np.where(outside, 0, offsets) if fills else offsets, size, wraps=wraps)
    if 0 in shape:
        return np.empty(shape, data.dtype)
    rows = np.arange(len(blocks))[:, None, None]
    columns = np.arange(before)[None, :, None]
    found = blocks[rows, columns, positions[:, None, :]]
    if fills:
        found = np.where(outside[:, None, :, None], np.zeros((), data.dtype), found)
    return found.reshape(shape)


def _gather_nd(case: Case, *, wraps: bool) -> Array:
    data, indices = case.array(0), case.array(1)
    batch_rank = case.attributes.integer("batch_dims", 0)
    if not 0 <= batch_rank < min(data.ndim, indices.ndim):
        raise UnsupportedCase(f"batch_dims is {batch_rank}, expected less than both ranks")
    batch, depth = data.shape[:batch_rank], indices.shape[-1]
    if indices.shape[:batch_rank] != batch:
        raise UnsupportedCase(f"indices is {show(indices.shape)}, expected {show(batch)} in front")
    if not 1 <= depth <= data.ndim - batch_rank:
        raise UnsupportedCase(
            f"a tuple has {counted(depth, 'index', 'indices')}, expected 1 to the rank of a batch"
        )
    inner = data.shape[batch_rank + depth :]
    shape = case.reserve(indices.shape[:-1] + inner)
    blocks = data.reshape((prod(batch), *data.shape[batch_rank:]))
    rows = prod(indices.shape[batch_rank:-1])
    tuples = _offsets(indices).reshape(prod(batch), rows, depth)
    coordinates = [
        _positions(tuples[..., column], blocks.shape[1 + column], wraps=wraps) for column in range(depth)
    ]
    if 0 in shape:
        return np.empty(shape, data.dtype)
    return np.asarray(blocks[(np.arange(len(blocks))[:, None], *coordinates)]).reshape(shape)


def _gather_elements(case: Case, data: Array, indices: Array, axis: int, *, wraps: bool) -> Array:
    limits = (*data.shape[:axis], None, *data.shape[axis + 1 :])
    if indices.ndim != data.ndim or any(
        limit is not None and dim > limit for dim, limit in zip(indices.shape, limits, strict=True)
    ):
        raise UnsupportedCase(
            f"indices is {show(indices.shape)}, expected to fit {show(data.shape)} off axis {axis}"
        )
    case.reserve(indices.shape)
    if indices.size == 0:
        return np.empty(indices.shape, data.dtype)
    places = list(np.ogrid[tuple(slice(dim) for dim in indices.shape)])
    places[axis] = _positions(_offsets(indices), data.shape[axis], wraps=wraps)
    return np.asarray(data[tuple(places)])
