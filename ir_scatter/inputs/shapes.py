"""Random legal shapes for one operator, by how its indices, updates and data belong together."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ir_scatter.ops.spec import IndicesLimit, Layout, OpSpec, Role

_LARGEST_RANK, _LARGEST_DIM = 4, 5
_EMPTY, _LONGER, _ONE_ELEMENT, _LEFT_OUT = 0.04, 0.3, 0.3, 0.3
"""How often a dimension is 0, indices are longer than data on the axis, one element stands for 0-D
updates, and optional indices are left out."""


class CaseShapes(NamedTuple):
    """Shapes of one case; indices is None where they are left out."""

    data: tuple[int, ...]
    indices: tuple[int, ...] | None
    updates: tuple[int, ...]
    axis: int | None


def draw_shapes(
    random: np.random.Generator, spec: OpSpec, *, is_unique: bool, largest_index: int
) -> CaseShapes:
    """Return legal shapes and an axis, counted from 0.

    Args:
        random: where randomness comes from.
        spec: the row.
        is_unique: whether there must be room for targets that differ.
        largest_index: what the type of indices can hold.
    """
    least = max([port.min_rank for port in spec.ports if port.role is Role.DATA], default=0)
    rank = int(random.integers(max(least, 1), _LARGEST_RANK + 1))
    data = tuple(min(dim, largest_index + 1) for dim in _dims(random, rank))
    axis = None
    if spec.axis is not None:
        axis = int(random.choice([n for n in range(len(data)) if n not in spec.axis.excluded]))
    if spec.layout is Layout.SLICES:
        return _slices(random, data, axis or 0, is_unique=is_unique)
    if spec.layout is Layout.ELEMENTS:
        return _elements(random, spec, data, axis or 0, is_unique=is_unique)
    if spec.layout is Layout.TUPLES:
        return _tuples(random, spec, data, is_unique=is_unique)
    return _sequence(random, spec, data, axis or 0)


def _slices(random: np.random.Generator, data: tuple[int, ...], axis: int, *, is_unique: bool) -> CaseShapes:
    indices = _fewer(_dims(random, int(random.integers(0, 3))), data[axis], is_unique=is_unique)
    return CaseShapes(data, indices, (*data[:axis], *indices, *data[axis + 1 :]), axis)


def _elements(
    random: np.random.Generator, spec: OpSpec, data: tuple[int, ...], axis: int, *, is_unique: bool
) -> CaseShapes:
    indices = [int(random.integers(min(dim, 1), dim + 1)) for dim in data]
    may_be_longer = spec.indices_limit is not IndicesLimit.EVERYWHERE and not is_unique and data[axis] > 0
    if may_be_longer and random.random() < _LONGER:
        indices[axis] = data[axis] + int(random.integers(1, 4))
    return CaseShapes(data, tuple(indices), tuple(indices), axis)


def _tuples(
    random: np.random.Generator, spec: OpSpec, data: tuple[int, ...], *, is_unique: bool
) -> CaseShapes:
    depth = int(random.integers(1, len(data) + 1))
    room = int(np.prod(data[:depth]))
    front = _fewer(_dims(random, int(random.integers(0, 3))), room, is_unique=is_unique)
    updates = (*front, *data[depth:])
    if spec.scalar_updates and not updates and random.random() < _ONE_ELEMENT:
        updates = (1,) * int(random.integers(1, 3))
    return CaseShapes(data, (*front, depth), updates, None)


def _sequence(random: np.random.Generator, spec: OpSpec, data: tuple[int, ...], axis: int) -> CaseShapes:
    data = (*data[:axis], max(data[axis], 1), *data[axis + 1 :])
    new = int(random.integers(1, data[axis] + 1))
    port = spec.port(Role.INDICES)
    is_left_out = port is not None and port.is_optional and random.random() < _LEFT_OUT
    indices = None if is_left_out else data[:1]
    return CaseShapes(data, indices, (*data[:axis], new, *data[axis + 1 :]), axis)


def _dims(random: np.random.Generator, rank: int) -> tuple[int, ...]:
    dims = random.integers(1, _LARGEST_DIM + 1, rank)
    return tuple(np.where(random.random(rank) < _EMPTY, 0, dims).tolist())


def _fewer(shape: Sequence[int], room: int, *, is_unique: bool) -> tuple[int, ...]:
    """Return a shape of no more positions than there is room for, if it must be so."""
    found = list(shape)
    if room == 0:
        return (0, *found[1:])
    for number in range(len(found)):
        others = int(np.prod(found[:number] + found[number + 1 :]))
        if is_unique and others * found[number] > room:
            found[number] = max(room // max(others, 1), 1)
    is_crowded = is_unique and int(np.prod(found)) > room
    return (room, *(1 for _ in found[1:])) if is_crowded else tuple(found)
