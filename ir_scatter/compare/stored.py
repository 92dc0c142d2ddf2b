"""Arrays of any element type in one npz without pickles, told apart by numbers.

The format of NumPy knows neither bf16 and its like nor strings of any length, and names of tensors
may hold anything: what a number stands for is said in JSON beside the file.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype
from ir_scatter.core.errors import BadFeed
from ir_scatter.evaluate.archive import read_arrays, write_arrays

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array

_BY_DTYPE = {row.dtype_name: row for row in ELEMENT_TYPES.values() if row.dtype_name}
_STRING = "string"
_LIMIT = 64
"""Dimensions that NumPy can have at most."""


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
            type = type_of(array)
            self._arrays[key] = _bytes_of(array) if type.name == _STRING else _raw(array)
            self._known[id(array)] = {"key": key, "type": type.name, "shape": list(array.shape)}
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
            BadFeed: it is not there, or not what is said of it.
        """
        array = self._arrays.get(str(told["key"]))
        if array is None:
            raise BadFeed(f"{self._path}: array {told['key']} is missing")
        type = ELEMENT_TYPES.get(str(told["type"]))
        shape = tuple(map(int, told["shape"]))
        try:
            if type is None or len(shape) > _LIMIT:
                raise ValueError
            return _texts(array, shape) if type.name == _STRING else _seen_as(array, type, shape)
        except (TypeError, ValueError):
            raise BadFeed(
                f"{self._path}: array {told['key']} is not what is said of it in the file beside it"
            ) from None


def type_of(array: "Array") -> ElementType:
    """Return the element type of an array of a model."""
    return _BY_DTYPE.get(array.dtype.name) or ELEMENT_TYPES[_STRING]


def _raw(array: "Array") -> "Array":
    """Return numbers as NumPy writes them: its own types as they are, others as their bytes."""
    if array.dtype.type.__module__ == "numpy":
        return array
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _seen_as(array: "Array", type: ElementType, shape: tuple[int, ...]) -> "Array":
    expected = dtype(type)
    if expected is None:
        raise ValueError
    if array.dtype != expected:
        if array.dtype != np.uint8:
            raise ValueError
        array = array.view(expected)
    return array.reshape(shape)


def _bytes_of(array: "Array") -> "Array":
    """Return strings as their lengths and their bytes: fixed-width text would lose zeros at the end."""
    texts = [str(text).encode("utf-8", "surrogateescape") for text in array.flat]
    lengths = np.array([len(text) for text in texts], np.int64)
    return np.concatenate([lengths.view(np.uint8), np.frombuffer(b"".join(texts), np.uint8)])


def _texts(array: "Array", shape: tuple[int, ...]) -> "Array":
    count = int(np.prod(shape, dtype=object)) if shape else 1
    if array.dtype != np.uint8 or array.ndim != 1 or not 0 <= 8 * count <= array.size:
        raise ValueError
    ends = np.cumsum(array[: 8 * count].view(np.int64)).tolist()
    text = array[8 * count :].tobytes()
    if ends != sorted(ends) or (ends[-1] if ends else 0) != len(text):
        raise ValueError
    found = np.empty(count, object)
    for number, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        found[number] = text[begin:end].decode("utf-8", "surrogateescape")
    return found.reshape(shape)
