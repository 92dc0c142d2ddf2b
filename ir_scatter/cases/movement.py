"""Which plain operators only move elements, work on each alone, and make shapes fit each other."""

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
_COMBINING = _BROADCASTING | {
    *("squareddifference", "sum", "mean", "bitshift", "bitwiseand", "bitwiseor", "bitwisexor"),
    *("bitwiseleftshift", "bitwiserightshift"),
}
"""Each element of the output is made of those of all inputs in the same place."""

_FIRST_BY_ELEMENT = frozenset(
    {
        "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwisenot", "ceil", "ceiling", "celu",
        "clamp", "clip", "cos", "cosh", "elu", "erf", "exp", "fakequantize", "floor", "gelu", "hardsigmoid",
        "hardswish", "hsigmoid", "hswish", "isfinite", "isinf", "isnan", "leakyrelu", "log", "logicalnot",
        "mish", "neg", "negative", "not", "prelu", "reciprocal", "relu", "round", "selu", "shrink",
        "sigmoid", "sign", "sin", "sinh", "softplus", "softsign", "sqrt", "swish", "tan", "tanh",
        "thresholdedrelu",
    }
)  # fmt: skip
"""Each element of the output is made of that of the first input in the same place; other inputs are
parameters of all elements."""

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


def works_by_element(type: str, count: int) -> tuple[int, ...]:
    """Return the inputs of `count` whose elements meet in the output's element of the same place."""
    if type.lower() in _COMBINING:
        return tuple(range(count))
    return (0,) if type.lower() in _FIRST_BY_ELEMENT else ()
