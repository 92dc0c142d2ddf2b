"""Hands arrays from process to process: their bytes in one file, what they are in JSON.

The file lies in shared memory where there is some, and in the folder for temporary files where that
is too small. The reader maps it and removes its name, so that nothing stays behind.
"""

import contextlib
import os
from collections.abc import Sequence
from math import prod
from typing import IO, Any

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype

_ALIGNMENT = 64
"""Bytes; what vector instructions ask for at most."""

_NAMES = {row.dtype_name: row.name for row in ELEMENT_TYPES.values() if row.dtype_name}
_STRING = "string"

Table = list[list[Any]]
"""For each array: element type, shape, where its bytes begin, how many they are."""


def write(folders: Sequence[str], name: str, arrays: Sequence[Array]) -> tuple[str, Table]:
    """Write arrays and return the path of the file and what is in it.

    Args:
        folders: the first that has room is taken.
        name: of the file.
        arrays: of types that `elements` knows, in any layout.

    Raises:
        OSError: none of the folders has room.
    """
    for folder in folders:
        path = os.path.join(folder, name)
        try:
            with open(path, "wb") as file:
                return path, [_write_one(file, array) for array in arrays]
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(path)
            if folder == folders[-1]:
                raise
    raise OSError("there is no folder for arrays")


def read(path: str, table: Table) -> list[Array]:
    """Return the arrays of a file, which loses its name; they can be written to."""
    size = os.path.getsize(path)
    whole = np.memmap(path, np.uint8, "c") if size else np.empty(0, np.uint8)
    found = [_read_one(whole, *entry) for entry in table]
    with contextlib.suppress(OSError):  # a system that cannot remove what is mapped: later, the folder
        os.unlink(path)
    return found


def type_name(array: Array) -> str:
    """Return the element type of an array."""
    return _STRING if array.dtype.kind in "OUT" else _NAMES[array.dtype.name]


def _write_one(file: IO[bytes], array: Array) -> list[Any]:
    begin = file.tell() + -file.tell() % _ALIGNMENT
    file.seek(begin)
    if type_name(array) == _STRING:
        texts = [str(text).encode("utf-8", "surrogateescape") for text in array.flat]
        np.array([len(text) for text in texts], np.int64).tofile(file)
        file.write(b"".join(texts))
    else:
        native = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
        file.write(native.reshape(-1).view(np.uint8).data)
    return [type_name(array), list(array.shape), begin, file.tell() - begin]


def _read_one(whole: Array, name: str, shape: list[int], begin: int, size: int) -> Array:
    data = whole[begin : begin + size].view(np.ndarray)
    if name == _STRING:
        return _texts(data, shape)
    type = dtype(ELEMENT_TYPES[name])
    assert type is not None
    return data.view(type).reshape(shape)


def _texts(data: Array, shape: list[int]) -> Array:
    count = prod(shape)
    ends = np.cumsum(data[: 8 * count].view(np.int64))
    text = data[8 * count :].tobytes()
    found = np.empty(count, object)
    for number, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True) if count else ()):
        found[number] = text[begin:end].decode("utf-8", "surrogateescape")
    return found.reshape(shape)
