"""Which plain operators only move elements, and where they ask for positions."""

from collections.abc import Sequence
from dataclasses import dataclass

from ir_scatter.ops.plain.case import Array

_FIRST = (0,)
_CHOSEN = (1, 2)
_ALL = None
_LARGEST_DIVISOR = 8

_MOVES: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(("reshape", "flatten", "squeeze", "unsqueeze", "transpose"), _FIRST),
    **dict.fromkeys(("broadcast", "expand", "tile", "split", "variadicsplit"), _FIRST),
    **dict.fromkeys(("gather", "gathernd", "gatherelements", "slice", "stridedslice"), _FIRST),
    **dict.fromkeys(("where", "select"), _CHOSEN),
    "concat": _ALL,
}
_DIVISIONS = frozenset({"div", "divide", "mod", "floormod"})
_ASKING = {
    **dict.fromkeys(("gathernd", "variadicsplit", "cumsum", *_DIVISIONS), (1,)),
    **dict.fromkeys(("gather", "gatherelements"), (1, 2)),
}
_BROADCASTING = _DIVISIONS | {
    *("add", "sub", "subtract", "mul", "multiply", "pow", "power", "min", "minimum", "max", "maximum"),
    *("less", "lessorequal", "lessequal", "greater", "greaterorequal", "greaterequal", "equal", "notequal"),
    *("and", "or", "xor", "logicaland", "logicalor", "logicalxor", "where", "select"),
}
_COPIES = frozenset({"identity", "convert", "cast", "convertlike", "castlike"})


def moved_inputs(type: str, count: int) -> tuple[int, ...]:
    """Return the inputs whose elements an operator only moves, of `count` inputs; empty if none."""
    found = _MOVES.get(type.lower(), ())
    return tuple(range(count)) if found is None else found


def broadcasts(type: str) -> bool:
    """Tell whether an operator makes the shapes of its inputs fit each other."""
    return type.lower() in _BROADCASTING


def asks_for_positions(type: str) -> tuple[int, ...]:
    """Return the inputs that `positions` may speak of."""
    return _ASKING.get(type.lower(), ())


def copies(type: str) -> bool:
    """Tell whether an operator gives the numbers of its first input, maybe in another type."""
    return type.lower() in _COPIES


@dataclass(frozen=True, slots=True, eq=False)
class Positions:
    """An input that holds positions of another.

    Attributes:
        port: the number of the input.
        lows: the least legal number; one for all, or one for each column of tuples.
        highs: the greatest.
    """

    port: int
    lows: Sequence[int]
    highs: Sequence[int]


def positions(type: str, axis: int, batch: int, arrays: Sequence[Array | None]) -> list[Positions]:
    """Return which inputs of a plain operator hold positions, and the legal ones.

    Args:
        type: of the node.
        axis: as the node says; 0 if it says nothing.
        batch: the number of leading dimensions that data and tuples share.
        arrays: the inputs.
    """
    kind, data = type.lower(), arrays[0] if arrays else None
    if data is None:
        return []
    if kind in {"gather", "gatherelements"} and -data.ndim <= axis < data.ndim:
        found = [Positions(1, [0], [data.shape[axis] - 1])]
        return found + ([Positions(2, [0], [data.ndim - 1])] if len(arrays) > 2 else [])
    indices = arrays[1] if len(arrays) > 1 else None
    if kind == "gathernd" and indices is not None and indices.ndim and data.ndim - batch >= indices.shape[-1]:
        dims = data.shape[batch : batch + indices.shape[-1]]
        return [Positions(1, [0] * len(dims), [dim - 1 for dim in dims])]
    if kind in _DIVISIONS and indices is not None and indices.dtype.kind in "iu":
        return [Positions(1, [1], [_LARGEST_DIVISOR])]
    if kind in {"variadicsplit", "cumsum"} and len(arrays) > 1:
        return [Positions(1, [0], [data.ndim - 1])]
    return []
