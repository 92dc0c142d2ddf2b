"""Arrays of any element type in one npz without pickles, told apart by numbers.

The format of NumPy knows neither bf16 and its like nor strings of any length, and names of tensors
may hold anything: what a number stands for is said in JSON beside the file.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ir_scatter.errors import BadFeed
from ir_scatter.graphs.archive import read_arrays, storable, write_arrays

if TYPE_CHECKING:
    from ir_scatter.constants import Array


class ArrayStore:
    """Collects arrays, and writes them at once."""

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}
        self._known: dict[int, dict[str, Any]] = {}
        self._kept: list[Array] = []

    def add(self, array: "Array") -> dict[str, Any]:
        """Take an array and return what JSON says of it; the same object is stored once."""
        if id(array) not in self._known:
            key = str(len(self._arrays))
            self._arrays[key] = storable(array)
            self._known[id(array)] = {"key": key, "dtype": array.dtype.name}
            self._kept.append(array)
        return self._known[id(array)]

    def write(self, path: Path) -> None:
        """Write all arrays."""
        with path.open("wb") as file:
            write_arrays(file, self._arrays)


class ArrayShelf:
    """Reads arrays that were stored."""

    def __init__(self, path: Path) -> None:
        """Open a file.

        Raises:
            BadFeed: it cannot be read, is no npz, or holds pickles.
        """
        self._path = path
        self._arrays = read_arrays(path)

    def get(self, told: Mapping[str, Any]) -> "Array":
        """Return an array in the type that it had.

        Raises:
            BadFeed: it is not there, or of no such type.
        """
        array = self._arrays.get(str(told.get("key")))
        if array is None:
            raise BadFeed(f"{self._path}: array {told.get('key')} is missing")
        name = str(told.get("dtype"))
        if array.dtype.name == name:
            return array
        try:
            return array.astype(_dtype(name))
        except (AttributeError, TypeError, ValueError):
            raise BadFeed(f"{self._path}: array {told.get('key')} is of no known type {name!r}") from None


def _dtype(name: str) -> "np.dtype[Any]":
    if hasattr(np, name):
        return np.dtype(name)
    import ml_dtypes

    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return found
