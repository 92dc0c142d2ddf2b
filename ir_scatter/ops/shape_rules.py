"""The documented shapes of `updates`, from partial shapes of the other inputs."""

from collections.abc import Iterable

from ir_scatter.core.shapes import Bounds, Dim, Shape, concatenate, highest
from ir_scatter.ops.spec import Layout


def expected_updates(layout: Layout, data: Shape, indices: Shape, axes: Iterable[int]) -> list[Shape]:
    """Return the shapes that updates may have; empty if nothing is known.

    Args:
        layout: how indices, updates and data belong together.
        data: the shape of data.
        indices: the shape of indices.
        axes: the axes that are possible, counted from 0: there is one shape for each.
    """
    if layout is Layout.ELEMENTS:
        return [] if indices is None else [indices]
    if layout is Layout.TUPLES:
        return _tuples(data, indices)
    if data is None:
        return []
    if layout is Layout.SEQUENCE:
        return [_sequence(data, axis) for axis in axes]
    if indices is None:
        return []
    return [concatenate(data[:axis], indices, data[axis + 1 :]) for axis in axes]


def _tuples(data: Shape, indices: Shape) -> list[Shape]:
    """Return indices[:-1] + data[k:]."""
    if data is None or not indices:
        return []
    depth = indices[-1]
    if not isinstance(depth, int) or depth > len(data):
        return []
    return [concatenate(indices[:-1], data[depth:])]


def _sequence(data: tuple[Dim, ...], axis: int) -> Shape:
    """Return data with any length up to its own on the axis."""
    return (*data[:axis], Bounds(0, highest(data[axis])), *data[axis + 1 :])
