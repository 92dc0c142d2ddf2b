"""Holds feeds against the inputs of a model as a runtime has them; in the process of that runtime."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ir_scatter.core.arrays import Array
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.core.shapes import Shape, agree, show
from ir_scatter.runners.transport import Failure


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a model.

    Attributes:
        names: all that it has, the usual one first.
        type: our name of the element type, or the runtime's if we know none.
        shape: None if the rank is not known.
        is_optional: whether it has a value if it is not given.
    """

    names: Sequence[str]
    type: str
    shape: Shape
    is_optional: bool = False


def names_of_feeds(inputs: Sequence[Input], feeds: Mapping[str, Array]) -> list[str]:
    """Return for each input the name of its feed; "" for one that is optional and not fed.

    Raises:
        Failure: a feed is missing, superfluous, or of the wrong type or shape.
    """
    numbers = {name: number for number, input in enumerate(inputs) for name in input.names}
    found = [""] * len(inputs)
    for name in feeds:
        if name not in numbers:
            known = ", ".join(input.names[0] for input in inputs if not input.is_optional) or "none"
            raise Failure("refused", f"the model has no input {name!r}, expected {known}")
        other = found[numbers[name]]
        if other:
            raise Failure("refused", f"{other!r} and {name!r} are the same input, expected one of them")
        found[numbers[name]] = name
    pairs = list(zip(inputs, found, strict=True))
    missing = [input.names[0] for input, name in pairs if not name and not input.is_optional]
    if missing:
        raise Failure("refused", f"no array is given for {', '.join(missing)}")
    for input, name in pairs:
        if name:
            _check(input, name, feeds[name])
    return found


def _check(input: Input, name: str, array: Array) -> None:
    row = ELEMENT_TYPES.get(input.type)
    expected = None if row is None else dtype(row)
    if expected is None:
        raise Failure("unsupported", f"{name} is {input.type}, which NumPy has no type for")
    if array.dtype != expected:
        raise Failure("refused", f"{name} is {array.dtype.name}, expected {expected.name}")
    if not agree(array.shape, input.shape):
        shown = show(input.shape)
        raise Failure("refused", f"{name} has shape {list(array.shape)}, expected {shown}")
