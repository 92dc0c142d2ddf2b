"""Pickles objects with NumPy arrays stored separately, as bytes of a named element type."""

import pickle
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from ir_scatter.core.element_types import as_bytes

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array


class ArrayPickler(pickle.Pickler):
    """Pickles objects; NumPy arrays are stored by a subclass, and the pickle holds references to them."""

    def persistent_id(self, value: Any) -> tuple[Any, ...] | None:
        named_array = as_bytes(value)
        return None if named_array is None else self.place(*named_array)

    @abstractmethod
    def place(self, name: str, array: "Array") -> tuple[Any, ...]:
        """Store an array in C order; return the reference for the pickle."""
