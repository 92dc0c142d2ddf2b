"""Reads inputs from `.npz` files and writes outputs to them, without pickles.

NumPy's format lacks some types. Strings are written as fixed-width text. Types of ml_dtypes are written as
float32, integers of less than 8 bits as int8 or uint8. They are read back from these types if the conversion
is exact, and from the raw bytes that `numpy.savez` writes for them.
"""

import zipfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np

from ir_scatter.core.arrays import Array, in_native_dtype, kind
from ir_scatter.core.dataflow import GraphInput
from ir_scatter.core.element_types import dtype, from_dtype
from ir_scatter.core.errors import BadFeed
from ir_scatter.core.files import open_regular
from ir_scatter.core.shortage import memory_of_machine
from ir_scatter.core.suggestions import why_missing

_HEADS = frozenset({b"P", b"\x93", b"\x80"})
"""First bytes of an npz, an npy and a pickle; `numpy.load` would take any other file for a pickle."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Timestamp of every entry, fixed so that equal outputs give identical files."""

_WIDER = {"float": np.float32, "signed": np.int8, "unsigned": np.uint8}


def read_arrays(path: "str | Path") -> dict[str, Array]:
    """Return the arrays of an npz file by name.

    Raises:
        BadFeed: the file cannot be read, is not an npz, holds pickles, or would not fit into memory.
    """
    try:
        with open_regular(path) as file:
            if file.read(1) not in _HEADS:
                raise BadFeed(f"{path}: not an npz file")
            file.seek(0)
            try:
                archive = np.load(file, allow_pickle=False)
            except Exception as error:  # NumPy's parsers raise many types for bytes of another format
                raise BadFeed(f"{path}: {_reason(error)}") from None
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise BadFeed(f"{path}: one array without a name, expected an npz file")
            if archive.zip is not None:
                _demand_room(archive.zip, path)
            return {name: _entry(archive, name, path) for name in archive.files}
    except FileNotFoundError:
        raise BadFeed(f"{path}: {why_missing(path, ['.npz'])}") from None
    except OSError as error:
        raise BadFeed(f"{path}: {(error.strerror or 'not an npz file').lower()}") from None


def fit_types(arrays: Mapping[str, Array], inputs: Sequence[GraphInput]) -> dict[str, Array]:
    """Convert arrays from an npz to the inputs' element types that NumPy's format lacks, such as bf16.

    An array that cannot be converted without loss stays unchanged.
    """
    types = {name: input.element_type for input in inputs for name in input.names}
    fitted = {}
    for name, array in arrays.items():
        type = types.get(name)
        expected = None if type is None else dtype(type)
        is_foreign = expected is not None and not _is_known_to_npz(expected)
        fitted[name] = array if expected is None or not is_foreign else _converted(array, expected)
    return fitted


def write_arrays(file: IO[bytes], arrays: Mapping[str, Array]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, storable(array), allow_pickle=False)


def archived(arrays: Mapping[str, Array]) -> bytes:
    """Return the bytes of an npz file with arrays."""
    content = BytesIO()
    write_arrays(content, arrays)
    return content.getvalue()


def storable(array: Array) -> Array:
    if array.dtype == object:
        return array.astype(np.str_)
    return array if _is_known_to_npz(array.dtype) else array.astype(_WIDER[kind(array)])


def _demand_room(archive: zipfile.ZipFile, path: "str | Path") -> None:
    """Raise BadFeed if the arrays exceed memory: a few kilobytes of an archive may unpack to terabytes.

    The sizes in the archive's directory can be trusted: no entry unpacks to more.
    """
    size, room = sum(entry.file_size for entry in archive.infolist()), memory_of_machine()
    if room is not None and size > room:
        raise BadFeed(
            f"{path}: its arrays have {size} bytes, expected at most {room}, the memory of this machine"
        )


def _entry(archive: Any, name: str, path: "str | Path") -> Array:
    try:
        array = archive[name]
    except Exception as error:  # a damaged entry raises the errors of many parsers
        raise BadFeed(f"{path}: {name}: {_reason(error)}") from None
    if not isinstance(array, np.ndarray):
        raise BadFeed(f"{path}: {name} is not an array")
    if array.dtype.kind == "V" and array.dtype.itemsize in {2, 4, 8}:
        with archive.zip.open(f"{name}.npy") as member:
            is_swapped = b"'>V" in member.read(256)  # NumPy's reader ignores the byte order of raw bytes
        if is_swapped:
            whole = array.view(np.dtype(f"u{array.dtype.itemsize}"))
            return np.asarray(whole.byteswap().view(array.dtype))
    return in_native_dtype(array)


def _reason(error: Exception) -> str:
    return "holds pickles, which are not read" if "pickle" in str(error) else "not an npz file"


def _is_known_to_npz(type: "np.dtype[Any]") -> bool:
    return type.type.__module__ == "numpy"


def _converted(array: Array, expected: "np.dtype[Any]") -> Array:
    if array.dtype.kind == "V" and array.dtype.itemsize == expected.itemsize and array.dtype.names is None:
        viewed, type = array.view(expected), from_dtype(expected)
        if type is None or type.bits >= 8:
            return viewed
        # Below 8 bits most bytes are not values; an integer may fill its byte with its sign.
        raw, wide = array.view(np.int8), viewed.astype(np.float32)
        is_value = (raw == wide.astype(expected).view(np.int8)) | (raw == wide)
        return viewed if is_value.all() else array
    if array.dtype != _WIDER[kind(np.empty(0, expected))]:
        return array
    with np.errstate(all="ignore"):
        converted = array.astype(expected)
        is_exact = np.array_equal(converted.astype(array.dtype), array, equal_nan=array.dtype.kind == "f")
    return converted if is_exact else array
