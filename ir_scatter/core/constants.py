"""Constant tensors, whose bytes are read when somebody asks for them."""

import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.element_types import ElementType

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


FEW = 64
"""Up to so many numbers Python's own min, max and set are quicker than NumPy's calls."""

_Form: TypeAlias = Literal["b", "h", "i", "q", "B", "H", "I", "Q"]

_FORMS: Mapping[str, _Form] = {
    "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
}  # fmt: skip


class Declared(Protocol):
    """What holds a constant: a node with a name and a place."""

    name: str

    @property
    def location(self) -> Location:
        """Return where it stands."""


class Constant:
    """A constant tensor whose bytes are read when asked for.

    Attributes:
        element_type: None if the file names no known type.
        shape: always known.
    """

    __slots__ = ("_declared", "_load", "_name", "element_type", "shape")

    def __init__(
        self,
        declared: "Location | Declared | Callable[[], Declared]",
        element_type: ElementType | None,
        shape: tuple[int, ...],
        load: "Callable[[], Array | None]",
        name: str | None = None,
    ) -> None:
        """Make a constant.

        Args:
            declared: the place of an initializer, or the node that holds it, or what gives the node.
            element_type: None if the file names no known type.
            shape: always known.
            load: gives a read-only array, or None where the bytes cannot be had.
            name: the initializer's name; that of the node if None.
        """
        self._declared = declared
        self.element_type = element_type
        self.shape = shape
        self._load = load
        self._name = name

    def load(self) -> "Array | None":
        """Return a read-only array of the shape, None where the bytes cannot be had."""
        return self._load()

    def view(self) -> memoryview | None:
        """Return the bytes where they are stored one element behind the other, low byte first."""
        return None

    @property
    def name(self) -> str:
        """Return the layer's or initializer's name."""
        if self._name is None:
            declared = self._declaration()
            self._name = "" if isinstance(declared, Location) else declared.name
        return self._name

    @property
    def location(self) -> Location:
        """Return where the file declares it."""
        declared = self._declaration()
        return declared if isinstance(declared, Location) else declared.location

    def _declaration(self) -> "Location | Declared":
        if callable(self._declared):
            self._declared = self._declared()
        return self._declared


def few_numbers(
    element_type: ElementType, shape: tuple[int, ...], view: Callable[[], memoryview | None]
) -> list[int] | None:
    """Return the whole numbers of a constant if they are few, without importing NumPy.

    Args:
        element_type: of the constant.
        shape: of the constant.
        view: gives its bytes, one element behind the other, None where they cannot be had.
    """
    form, size = _few_form(element_type, shape)
    if form is None:
        return None
    data = view()
    if data is None or len(data) < size:
        return None
    return data[:size].cast(form).tolist()


@lru_cache(1 << 10)
def _few_form(element_type: ElementType, shape: tuple[int, ...]) -> tuple[_Form | None, int]:
    """Return how few numbers are stored, None if they are many or no whole ones, and in how many bytes."""
    form, count = _FORMS.get(element_type.name), prod(shape)
    is_few = 0 < count <= FEW and sys.byteorder == "little"
    return form if is_few else None, count * element_type.bits // 8
