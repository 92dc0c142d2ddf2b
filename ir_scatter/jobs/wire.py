"""The wire format of jobs and results: pickled bytes that can only contain data and records of this package.

Large arrays are replaced by their SHA-256 and sent once. Paths of files that are sent with a job are marked;
on the worker they refer to copies of the files, below the root of a mirror (`store`).
"""

import io
import json
import pickle
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, is_dataclass
from enum import Enum
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from ir_scatter.core.array_pickler import ArrayPickler
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.core.errors import Error
from ir_scatter.jobs import TABLE
from ir_scatter.version import __version__

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

PROTOCOL = 1
MOST_BYTES = 64 << 20
"""Maximum size of a job, without the files and large arrays that are sent separately."""
INLINE_BYTES = 1 << 18
"""Files and arrays below this size are sent with the job, not separately."""

_PLAIN = {
    ("builtins", "complex"),
    ("builtins", "frozenset"),
    ("builtins", "set"),
    ("collections", "Counter"),
    ("collections", "OrderedDict"),
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
}
_HASH = re.compile(r"[0-9a-f]{64}")


class RequestRefused(Error):
    """Received data is not a job or a result of this library."""


class SentFile(NamedTuple):
    """A file that is sent with a job: its path on the client, and its size and hash."""

    path: str
    hash: str
    size: int


@dataclass(frozen=True, slots=True)
class Head:
    """The facts about a job that a worker needs before it decodes the arguments.

    Attributes:
        name: the registered name of the function.
        folder: the client's current folder, from which relative paths start.
        files: the files that must be in the mirror.
        arrays: (hash, size in bytes) of each large array.
    """

    name: str
    folder: str
    files: tuple[SentFile, ...] = ()
    arrays: tuple[tuple[str, int], ...] = ()
    version: str = __version__
    protocol: int = PROTOCOL

    def as_text(self) -> str:
        return json.dumps({name: getattr(self, name) for name in self.__slots__})

    @property
    def wanted(self) -> dict[str, int]:
        """The size in bytes of every file and array that the job needs, by hash."""
        return {**{file.hash: file.size for file in self.files}, **dict(self.arrays)}


def read_head(text: object, payload: object) -> Head:
    """Decode and check the head of a job.

    Raises:
        RequestRefused: it is malformed, too large, of another version, or names no registered function.
    """
    if not isinstance(text, str) or not isinstance(payload, bytes):
        raise RequestRefused("this is not a job: a text and bytes are expected")
    if len(text) + len(payload) > MOST_BYTES:
        raise RequestRefused(f"the job has {len(text) + len(payload)} bytes, expected at most {MOST_BYTES}")
    try:
        fields = json.loads(text)
        if fields["protocol"] != PROTOCOL or fields["version"] != __version__:
            version = str(fields["version"])[:40]
            raise RequestRefused(f"the job is from ir-scatter {version}, this machine has {__version__}")
        files = tuple(SentFile(*map(_checked, file, (str, _HASH, int))) for file in fields["files"])
        arrays = tuple((_checked(row[0], _HASH), _checked(row[1], int)) for row in fields["arrays"])
        head = Head(_checked(fields["name"], str), _checked(fields["folder"], str), files, arrays)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        raise RequestRefused("this is not a job: its head is malformed") from None
    if head.name not in TABLE:
        names = ", ".join(sorted(TABLE))
        raise RequestRefused(f"there is no job {head.name[:40]!r}, expected one of {names}")
    for path in (head.folder, *(file.path for file in files)):
        if not path.startswith("/") or ".." in path.split("/") or "\0" in path:
            raise RequestRefused(f"{path[:80]!r} is not an absolute path without '..'")
    return head


def _checked(value: Any, expected: Any) -> Any:
    if isinstance(expected, re.Pattern):
        if not (isinstance(value, str) and expected.fullmatch(value)):
            raise ValueError(value)
    elif type(value) is not expected or (expected is int and value < 0):
        raise ValueError(value)
    return value


def hash_of(data: bytes) -> str:
    return sha256(data).hexdigest()


def encode(value: Any, *, paths: Collection[str] = (), root: str = "") -> tuple[bytes, dict[str, bytes]]:
    """Encode a value as bytes; also return its large arrays, as bytes by hash.

    Args:
        value: data and records of this package.
        paths: paths of files that are sent with it.
        root: root folder of a mirror; it is removed from every path, and all arrays stay inline.
    """
    stream = io.BytesIO()
    pickler = _Pickler(stream, paths, root)
    pickler.dump(value)
    return stream.getvalue(), pickler.large


def decode(data: bytes, *, root: str = "", large: Callable[[str], bytes] | None = None) -> Any:
    """Decode a value; `large` returns the bytes of a large array by its hash.

    Raises:
        RequestRefused: the bytes contain something other than data and records of this package.
    """
    unpickler = _Unpickler(io.BytesIO(data))
    unpickler.root, unpickler.large = root, large or _refuse_large_array
    try:
        return unpickler.load()
    except RequestRefused:
        raise
    except Exception as error:
        raise RequestRefused(f"this is not data of ir-scatter: {type(error).__name__}: {error}") from None


def _refuse_large_array(hash: str) -> bytes:
    raise RequestRefused("large arrays cannot be fetched here")


class _Pickler(ArrayPickler):
    def __init__(self, stream: io.BytesIO, paths: Collection[str], root: str) -> None:
        super().__init__(stream, 5)
        self.large: dict[str, bytes] = {}
        self._paths, self._root = paths, root

    def persistent_id(self, value: Any) -> tuple[Any, ...] | None:
        if type(value) is str:
            if self._root and self._root in value:
                return "text", value.replace(self._root, "").encode("utf-8", "surrogatepass")
            return ("path", value.encode("utf-8", "surrogatepass")) if value in self._paths else None
        return super().persistent_id(value)

    def place(self, name: str, array: "Array") -> tuple[Any, ...]:
        data = array.tobytes()
        if len(data) < INLINE_BYTES or self._root:
            return "array", name, array.shape, data
        hash = hash_of(data)
        self.large[hash] = data
        return "large", name, array.shape, hash


class _Unpickler(pickle.Unpickler):
    root: str
    large: Callable[[str], bytes]

    def persistent_load(self, pid: Any) -> Any:
        match pid:
            case ("text" | "path" as kind, bytes(text)):
                return (self.root if kind == "path" else "") + text.decode("utf-8", "surrogatepass")
            case ("array", str(name), tuple(shape), bytes(data)):
                return _array(name, shape, data)
            case ("large", str(name), tuple(shape), str(hash)):
                return _array(name, shape, self.large(hash))
        raise RequestRefused("this is not data of ir-scatter")

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PLAIN:
            return super().find_class(module, name)
        if module.startswith("ir_scatter.") and "__main__" not in module and "." not in name:
            record = getattr(import_module(module), name, None)
            if not isinstance(record, type) or record.__module__ != module:
                pass
            elif is_dataclass(record) or issubclass(record, Enum | tuple):
                return record
        raise RequestRefused(f"{module}.{name} is not a record that a job may contain")


def _array(name: str, shape: tuple[int, ...], data: Any) -> "Array":
    import numpy as np

    return np.frombuffer(bytearray(data), dtype(ELEMENT_TYPES[name])).reshape(shape)
