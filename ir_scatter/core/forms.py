"""Nodes by what can be told of them before their values are made.

Networks repeat themselves: what was found out about one node holds for every node of its form.
"""

from collections.abc import Collection, Hashable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

Source: TypeAlias = Literal["nothing", "constant", "input", "node"]
"""What an input of a node comes from."""

Brief: TypeAlias = tuple[Source, tuple[Any, ...]]
"""Where a value comes from, and what decides all that can be known of it but for its numbers."""

NOTHING: Brief = ("nothing", ())


def are_plain(numbers: Collection[int], size: int) -> bool:
    """Tell whether some indices are in range, not negative and all different."""
    return min(numbers) >= 0 and max(numbers) < size and len({*numbers}) == len(numbers)


def exactly(attributes: Mapping[str, Any]) -> Hashable | None:
    """Return attributes so that 1, 1.0 and True differ; None if one holds a tensor or a graph."""
    if not attributes:
        return ()
    for value in attributes.values():
        parts = value if isinstance(value, list) else (value,)
        if not all(isinstance(part, int | float | str | bytes) for part in parts):
            return None
    return tuple([(name, repr(value)) for name, value in attributes.items()])


class Form(NamedTuple):
    """What decides all that can be known of a node, but for its name and the numbers of constants.

    Attributes:
        inputs: what each input is.
        rest: type, opset and attributes, what is stored for the outputs, and which inputs are the same.
    """

    inputs: tuple[Brief, ...]
    rest: Hashable


class Forms:
    """Tells the forms of the nodes of one graph; this one never knows."""

    def of(self, handle: Any, spelled: Collection[int]) -> Form | None:
        """Return the form of a node; None where it takes a closer look.

        Two nodes of one form have inputs and outputs of the same types and shapes, stored and known,
        whatever stands in front of them.

        Args:
            handle: of the node.
            spelled: inputs that are few numbers, which belong to the form.
        """
        return None

    def numbers(self, handle: Any, index: int) -> list[int] | None:
        """Return the few whole numbers of a constant input, None where it takes a closer look."""
        return None

    def is_settled(self, handle: Any, output: int) -> bool:
        """Tell whether it is known that nothing in front of an output tells more of its shape."""
        return False
