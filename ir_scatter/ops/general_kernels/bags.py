"""Kernels of OpenVINO that add up embeddings, or reduce segments.

A bag is a group of indices; its result is the sum, or the mean, of the selected rows of a table.
"""

from typing import Any

import numpy as np

from ir_scatter.core.arrays import Array, extreme
from ir_scatter.core.shapes import show
from ir_scatter.ops.general_kernels.base import (
    NUMERIC,
    KernelCase,
    UnsupportedCase,
    narrow,
    require_kind,
    widen,
)


def _rows(table: Array, indices: Array) -> Array:
    if indices.size and not (indices.min() >= 0 and indices.max() < table.shape[0]):
        raise UnsupportedCase(f"an index is out of range, expected 0 to {table.shape[0] - 1}")
    return widen(table)[indices]


def _reduced(case: KernelCase, rows: Array, bags: Array, count: int, default: Array | None) -> Array:
    """Return the sum or mean of the rows of each bag; for an empty bag the default row, or zeros."""
    case.reserve((count, *rows.shape[1:]))
    output = np.zeros((count, *rows.shape[1:]), rows.dtype)
    np.add.at(output, bags, rows)
    sizes = np.bincount(bags, minlength=count)[:count]
    if case.attributes.text("reduction", "sum", {"sum", "mean"}) == "mean":
        shape = (-1,) + (1,) * (rows.ndim - 1)
        output = output / np.maximum(sizes, 1).reshape(shape).astype(output.dtype)
    if default is not None:
        output[sizes == 0] = default
    return output


def offsets(case: KernelCase) -> Array:
    """Add up the rows of each bag; an input contains the position of each bag's first index."""
    table, indices, starts = case.arrays(3)
    require_kind(NUMERIC, table)
    indices, starts = indices.astype(np.int64), starts.astype(np.int64)
    default = int(case.array(3).reshape(-1)[0]) if case.has(3) else -1
    if starts.size and (starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] > indices.size):
        raise UnsupportedCase(f"offsets are not ascending from 0 to at most {indices.size}")
    rows = _rows(table, indices)
    if case.has(4):
        rows = rows * _weights(case, 4, rows)
    bags = np.searchsorted(starts, np.arange(indices.size), "right") - 1
    row = _rows(table, np.array(default)) if default >= 0 else None
    return narrow(_reduced(case, rows, bags, starts.size, row), table.dtype)


def _weights(case: KernelCase, port: int, rows: Array) -> Array:
    weights = widen(case.array(port))
    if case.attributes.text("reduction", "sum", {"sum", "mean"}) == "mean":
        raise UnsupportedCase("weights require the reduction sum, but it is mean")
    return weights.reshape(weights.shape + (1,) * (rows.ndim - weights.ndim))


def packed(case: KernelCase) -> Array:
    """Add up the rows of bags of equal size; indices are [bags, indices per bag]."""
    table, indices = case.arrays(2)
    require_kind(NUMERIC, table)
    if indices.ndim != 2:
        raise UnsupportedCase(f"indices has shape {show(indices.shape)}, expected [bags, indices]")
    rows = _rows(table, indices.astype(np.int64))
    if case.has(2):
        rows = rows * _weights(case, 2, rows)
    total: Any = rows.sum(1, dtype=rows.dtype)
    if case.attributes.text("reduction", "sum", {"sum", "mean"}) == "mean":
        total = total / rows.dtype.type(max(indices.shape[1], 1))
    return narrow(total, table.dtype)


def segments(case: KernelCase) -> Array:
    """Add up the rows of each segment; an input contains the segment number of each row."""
    table, indices, numbers = case.arrays(3)
    require_kind(NUMERIC, table)
    count = int(case.array(3).reshape(-1)[0])
    default = int(case.array(4).reshape(-1)[0]) if case.has(4) else -1
    bags = numbers.astype(np.int64)
    if bags.size and not (bags.min() >= 0 and bags.max() < count):
        raise UnsupportedCase(f"a segment is out of range, expected 0 to {count - 1}")
    rows = _rows(table, indices.astype(np.int64))
    if case.has(5):
        rows = rows * _weights(case, 5, rows)
    row = _rows(table, np.array(default)) if default >= 0 else None
    return narrow(_reduced(case, rows, bags, count, row), table.dtype)


def segment_max(case: KernelCase) -> Array:
    """Return the maximum of each segment; for an empty segment 0, or the lowest number."""
    data, numbers = case.arrays(2)
    require_kind(NUMERIC, data)
    ids = numbers.astype(np.int64)
    count = int(case.array(2).reshape(-1)[0]) if case.has(2) else int(ids.max(initial=-1)) + 1
    if ids.size and ((np.diff(ids) < 0).any() or ids.min() < 0):
        raise UnsupportedCase("segment_ids are not sorted, or below 0")
    case.reserve((count, *data.shape[1:]))
    wide = widen(data)
    output = np.full((count, *data.shape[1:]), _lowest(wide), wide.dtype)
    inside = ids < count
    np.maximum.at(output, ids[inside], wide[inside])
    if case.attributes.text("fill_mode", None, {"zero", "lowest"}) == "zero":
        sizes = np.bincount(ids[inside], minlength=count)
        output[sizes == 0] = 0
    return narrow(output, data.dtype)


def _lowest(data: Array) -> Any:
    return np.finfo(data.dtype).min if data.dtype.kind == "f" else extreme(data.dtype, is_lowest=True)


def fill_empty_rows(case: KernelCase) -> tuple[Array, ...]:
    """Add an element with the default value to each row of a sparse matrix that has no elements.

    The outputs are indices [n, 2] sorted by row, values, and whether each row was empty.
    """
    values, shape, indices, default = case.arrays(4)
    count = int(shape.reshape(-1)[0])
    if indices.ndim != 2 or indices.shape[1] != 2:
        raise UnsupportedCase(f"indices has shape {show(indices.shape)}, expected pairs")
    rows = indices[:, 0]
    if rows.size and not (rows.min() >= 0 and rows.max() < count):
        raise UnsupportedCase(f"a row is out of range, expected 0 to {count - 1}")
    is_empty = np.bincount(rows.astype(np.int64), minlength=count) == 0
    added = np.zeros((int(is_empty.sum()), 2), indices.dtype)
    added[:, 0] = np.flatnonzero(is_empty)
    every = np.concatenate([indices, added])
    order = np.argsort(every[:, 0], kind="stable")
    filled = np.concatenate([values, np.full(len(added), default.reshape(()), values.dtype)])
    return every[order], filled[order], is_empty
