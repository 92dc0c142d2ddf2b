"""Which plain operators only move elements, and which make shapes fit each other."""

_FIRST = (0,)
_CHOSEN = (1, 2)
_ALL = None

_MOVES: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(("reshape", "flatten", "squeeze", "unsqueeze", "transpose"), _FIRST),
    **dict.fromkeys(("broadcast", "expand", "tile", "split", "variadicsplit"), _FIRST),
    **dict.fromkeys(("gather", "gathernd", "gatherelements", "slice", "stridedslice"), _FIRST),
    **dict.fromkeys(("where", "select"), _CHOSEN),
    "concat": _ALL,
}
_DIVISIONS = frozenset({"div", "divide", "mod", "floormod"})
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


def copies(type: str) -> bool:
    """Tell whether an operator gives the numbers of its first input, maybe in another type."""
    return type.lower() in _COPIES
