"""Reads inputs from `.npz` files, and writes outputs into them, without pickles.

What the format of NumPy cannot say: strings are written as fixed-width text; types of ml_dtypes
become float32, or int8 and uint8 for whole numbers of less than 8 bits. They are read the same way,
where that is exact, and as the raw bytes that `numpy.savez` makes of them.
"""

import zipfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np

from ir_scatter.core.arrays import Array, in_own_dtype, kind
from ir_scatter.core.dataflow import GraphInput
from ir_scatter.core.element_types import dtype, from_dtype
from ir_scatter.core.errors import BadFeed
from ir_scatter.core.files import open_regular
from ir_scatter.core.shortage import memory_of_machine
from ir_scatter.core.suggestions import why_missing

_HEADS = frozenset({b"P", b"\x93", b"\x80"})
"""How an npz, an npy and a pickle begin; NumPy takes anything else for a pickle."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The date of every entry: the same outputs give the same bytes."""

_WIDER = {"float": np.float32, "signed": np.int8, "unsigned": np.uint8}


def read_arrays(path: "str | Path") -> dict[str, Array]:
    """Return the arrays of an npz file by name.

    Raises:
        BadFeed: it cannot be read, is no npz, holds pickles, or more than the memory of this machine.
    """
    try:
        with open_regular(path) as file:
            if file.read(1) not in _HEADS:
                raise BadFeed(f"{path}: not an npz file")
            file.seek(0)
            try:
                found = np.load(file, allow_pickle=False)
            except Exception as error:  # whatever its parsers raise for bytes that are something else
                raise BadFeed(f"{path}: {_reason(error)}") from None
            if not isinstance(found, np.lib.npyio.NpzFile):
                raise BadFeed(f"{path}: one array without a name, expected an npz file")
            if found.zip is not None:
                _demand_room(found.zip, path)
            return {name: _entry(found, name, path) for name in found.files}
    except FileNotFoundError:
        raise BadFeed(f"{path}: {why_missing(path, ['.npz'])}") from None
    except OSError as error:
        raise BadFeed(f"{path}: {(error.strerror or 'not an npz file').lower()}") from None


def fit_types(arrays: Mapping[str, Array], inputs: Sequence[GraphInput]) -> dict[str, Array]:
    """Give arrays from an npz the types that the file format cannot say.

    An array that cannot be had in the wanted type without loss stays as it is.
    """
    wanted = {name: input.element_type for input in inputs for name in input.names}
    found = {}
    for name, array in arrays.items():
        type = wanted.get(name)
        expected = None if type is None else dtype(type)
        is_foreign = expected is not None and not _is_known_to_npz(expected)
        found[name] = array if expected is None or not is_foreign else _converted(array, expected)
    return found


def write_arrays(file: IO[bytes], arrays: Mapping[str, Array]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, storable(array), allow_pickle=False)


def archived(arrays: Mapping[str, Array]) -> bytes:
    """Return the bytes of an npz file."""
    content = BytesIO()
    write_arrays(content, arrays)
    return content.getvalue()


def storable(array: Array) -> Array:
    if array.dtype == object:
        return array.astype(np.str_)
    return array if _is_known_to_npz(array.dtype) else array.astype(_WIDER[kind(array)])


def _demand_room(archive: zipfile.ZipFile, path: "str | Path") -> None:
    """Demand that arrays fit into memory: a few kilobytes of an archive may unpack to terabytes.

    No entry gives more than the size that its archive says.
    """
    size, room = sum(entry.file_size for entry in archive.infolist()), memory_of_machine()
    if room is not None and size > room:
        raise BadFeed(
            f"{path}: its arrays have {size} bytes, expected at most {room}, the memory of this machine"
        )


def _entry(found: Any, name: str, path: "str | Path") -> Array:
    try:
        array = found[name]
    except Exception as error:  # a damaged entry fails in as many ways as there are parsers
        raise BadFeed(f"{path}: {name}: {_reason(error)}") from None
    if not isinstance(array, np.ndarray):
        raise BadFeed(f"{path}: {name} is no array")
    if array.dtype.kind == "V" and array.dtype.itemsize in {2, 4, 8}:
        with found.zip.open(f"{name}.npy") as member:
            is_swapped = b"'>V" in member.read(256)  # which NumPy's reader forgets
        if is_swapped:
            whole = array.view(np.dtype(f"u{array.dtype.itemsize}"))
            return np.asarray(whole.byteswap().view(array.dtype))
    return in_own_dtype(array)


def _reason(error: Exception) -> str:
    return "holds pickles, which are not read" if "pickle" in str(error) else "not an npz file"


def _is_known_to_npz(type: "np.dtype[Any]") -> bool:
    return type.type.__module__ == "numpy"


def _converted(array: Array, expected: "np.dtype[Any]") -> Array:
    if array.dtype.kind == "V" and array.dtype.itemsize == expected.itemsize and array.dtype.names is None:
        seen, type = array.view(expected), from_dtype(expected)
        if type is None or type.bits >= 8:
            return seen
        # Below 8 bits most bytes are no values; a whole number may fill its byte with its sign.
        raw, wide = array.view(np.int8), seen.astype(np.float32)
        is_value = (raw == wide.astype(expected).view(np.int8)) | (raw == wide)
        return seen if is_value.all() else array
    if array.dtype != _WIDER[kind(np.empty(0, expected))]:
        return array
    with np.errstate(all="ignore"):
        found = array.astype(expected)
        is_exact = np.array_equal(found.astype(array.dtype), array, equal_nan=array.dtype.kind == "f")
    return found if is_exact else array
