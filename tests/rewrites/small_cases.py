"""Every small case of every layout: shapes, axes and index values, counted out one after the other."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice, product
from math import prod
from typing import Any

import numpy as np

from ir_scatter.core.model import OpKey
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import IndexRange, IndicesLimit, Layout, OpSpec, Reduction

Array = Any
Dims = tuple[int, ...]

SIZES = range(4)
RANKS = range(1, 4)
INDEX_RANKS = range(3)
FEW = 9
"""So many index values of one shape are all tried."""
SAMPLE = 3
"""Of more so many."""


@dataclass(frozen=True, slots=True)
class Small:
    """Shapes that belong together; no indices where they are left out, no axis if the operator has none."""

    data: Dims
    indices: Dims | None
    updates: Dims
    axis: int | None = None


def shapes_of_rank(rank: int) -> list[Dims]:
    return list(product(SIZES, repeat=rank))


def data_shapes() -> list[Dims]:
    return [shape for rank in RANKS for shape in shapes_of_rank(rank)]


def _slices(_: OpSpec) -> Iterator[Small]:
    for data in data_shapes():
        for axis in range(-len(data), len(data)):
            place = axis % len(data)
            for rank in INDEX_RANKS:
                for indices in shapes_of_rank(rank):
                    yield Small(data, indices, data[:place] + indices + data[place + 1 :], axis)


def _elements(spec: OpSpec) -> Iterator[Small]:
    for data in data_shapes():
        for axis in range(-len(data), len(data)):
            highest = list(data)
            if spec.indices_limit is not IndicesLimit.EVERYWHERE:
                highest[axis] = SIZES[-1]
            for indices in product(*(range(size + 1) for size in highest)):
                yield Small(data, indices, indices, axis)


def _tuples(spec: OpSpec) -> Iterator[Small]:
    for data in data_shapes():
        for depth in range(len(data) + 1):
            for rank in INDEX_RANKS:
                for leading in shapes_of_rank(rank):
                    updates = leading + data[depth:]
                    yield Small(data, (*leading, depth), updates)
                    if spec.scalar_updates and updates == ():
                        yield Small(data, (*leading, depth), (1,))
                        yield Small(data, (*leading, depth), (1, 1))


def _sequence(_: OpSpec) -> Iterator[Small]:
    for data in data_shapes():
        for axis in range(-len(data), len(data)):
            place = axis % len(data)
            if place == 0:
                continue
            for length in range(data[place] + 1):
                updates = (*data[:place], length, *data[place + 1 :])
                yield Small(data, None, updates, axis)
                yield Small(data, data[:1], updates, axis)


_LAYOUTS = {
    Layout.SLICES: _slices,
    Layout.ELEMENTS: _elements,
    Layout.TUPLES: _tuples,
    Layout.SEQUENCE: _sequence,
}


def every_small(spec: OpSpec) -> tuple[Small, ...]:
    """Return all shapes of a row."""
    return _every(spec.key)


@cache
def _every(key: OpKey) -> tuple[Small, ...]:
    spec = SPECS[key]
    return tuple(_LAYOUTS[spec.layout](spec))


def limits(spec: OpSpec, small: Small, mode: str = "linear") -> list[int]:
    """Return how many values the indices may have, for each of the last dimension of tuples."""
    assert small.indices is not None
    if spec.layout is Layout.TUPLES:
        return list(small.data[: small.indices[-1]])
    assert small.axis is not None
    if spec.layout is Layout.SEQUENCE:
        return [small.data[small.axis] - small.updates[small.axis] + 1]
    return [small.data[small.axis]]


def index_values(
    spec: OpSpec, small: Small, random: np.random.Generator, *, wraps: bool, mode: str = "linear"
) -> Iterator[Array | None]:
    """Yield legal index values: all if they are few, otherwise a sample.

    A sample begins with values that are all different, where there is room for them.
    """
    if small.indices is None:
        yield None
        return
    sizes = limits(spec, small, mode)
    is_circular = mode == "circular" and spec.layout is Layout.SEQUENCE
    ranges = [
        range(-5, 6) if is_circular else range(-size if wraps else 0, size)
        for _ in range(prod(small.indices) // max(len(sizes), 1))
        for size in sizes
    ]
    if not sizes:
        ranges = []
    if any(not row for row in ranges):
        return
    if prod(map(len, ranges)) <= FEW:
        for values in product(*ranges):
            yield np.array(values, np.int64).reshape(small.indices)
        return
    yield from islice(_sampled(small, ranges, random), SAMPLE)


def _sampled(small: Small, ranges: list[range], random: np.random.Generator) -> Iterator[Array]:
    yield np.array([row[-1 - (n % len(row))] for n, row in enumerate(ranges)], np.int64).reshape(
        small.indices
    )
    while True:
        yield np.array([random.choice(row) for row in ranges], np.int64).reshape(small.indices)


def attribute_sets(spec: OpSpec) -> list[dict[str, Any]]:
    """Return every way to write the attributes, the axis left out."""
    found: list[dict[str, Any]] = []
    for word, reduction in (dict(spec.reductions) or {"": Reduction.NONE}).items():
        one: dict[str, Any] = {"reduction": word} if word else {}
        if spec.attribute("use_init_val") is None:
            found.append(one)
            continue
        found += [one | {"use_init_val": True}, *([one | {"use_init_val": False}] if reduction else [])]
    if spec.attribute("mode") is not None:
        found = [one | {"mode": mode} for one in found for mode in ("linear", "circular")]
    return found


def wraps(spec: OpSpec) -> bool:
    """Tell whether negative indices count from the end: by the text or, where it is tolerated, as meant."""
    return spec.index_range is IndexRange.WRAPPING or "SCT303" in spec.tolerated
