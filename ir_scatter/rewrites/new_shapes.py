"""What is known of the shapes of new nodes."""

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from ir_scatter.core.shapes import UNKNOWN_DIM, Dim, Shape, static

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array


def reshaped(source: Shape, target: "Array | None", target_shape: Shape, known: Shape) -> Shape:
    """Return the shape that a target names.

    Args:
        source: the shape before.
        target: the numbers, None if they are computed.
        target_shape: how many there are.
        known: what the caller knows.
    """
    if target is None:
        if known is not None or not target_shape or not isinstance(target_shape[0], int):
            return known
        return (UNKNOWN_DIM,) * target_shape[0]
    dims: list[Dim] = [int(number) for number in target]
    if -1 in dims:
        place, before = dims.index(-1), static(source)
        rest = prod(int(number) for number in target if number != -1)
        is_known = before is not None and rest > 0
        dims[place] = prod(before) // rest if is_known and before is not None else UNKNOWN_DIM
        if not is_known and known is not None and len(known) == len(dims):
            dims[place] = known[place]
    return tuple(dims)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """Return the shape of values that are broadcast together."""
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return None
    rank = max(map(len, known))
    filled: list[Sequence[Dim]] = [(1,) * (rank - len(shape)) + tuple(shape) for shape in known]
    return tuple(map(_joined, zip(*filled, strict=True)))


def spans(shape: Shape, other: Shape) -> bool:
    """Tell whether another shape is repeated to this one, as far as is known."""
    if shape is None or other is None:
        return shape is None
    if len(other) > len(shape):
        return False
    pairs = zip(reversed(shape), reversed(other), strict=False)
    return all(dim != 1 or wanted == 1 for dim, wanted in pairs)


def _joined(dims: Sequence[Dim]) -> Dim:
    others = [dim for dim in dims if dim != 1]
    numbers = [dim for dim in others if isinstance(dim, int)]
    if numbers:
        return numbers[0]
    return UNKNOWN_DIM if others else 1


def reduced(shape: Shape, axis: int, *, keeps: bool) -> Shape:
    """Return a shape without an axis, or with 1 in its place."""
    if shape is None:
        return None
    axis %= max(len(shape), 1)
    return (*shape[:axis], *([1] if keeps else []), *shape[axis + 1 :])
