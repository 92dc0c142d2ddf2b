"""What travels: jobs and results as bytes, in which nothing can be but data and records of ours.

Large arrays are told by their SHA-256 and travel once. A path of a file that comes along means the same file
below a root, where the machine that does the job lays out a mirror of where it was.
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
"""Of a job, without the files and large arrays that travel apart."""
INLINE_BYTES = 1 << 18
"""What is smaller goes along with the job rather than apart."""

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


class Refused(Error):
    """What came is no job, or no result, of this library."""


class Sent(NamedTuple):
    """A file that comes along with a job, by the path that it has where the job was made."""

    path: str
    hash: str
    size: int


@dataclass(frozen=True, slots=True)
class Head:
    """What a machine must know of a job before anything in it is looked at.

    Attributes:
        name: of a row of the table.
        folder: the one that relative paths begin at.
        files: what must be in the mirror.
        arrays: hash and size of each large one.
    """

    name: str
    folder: str
    files: tuple[Sent, ...] = ()
    arrays: tuple[tuple[str, int], ...] = ()
    version: str = __version__
    protocol: int = PROTOCOL

    def as_text(self) -> str:
        return json.dumps({name: getattr(self, name) for name in self.__slots__})

    @property
    def wanted(self) -> dict[str, int]:
        """The sizes of all that must be there, by their hashes."""
        return {**{file.hash: file.size for file in self.files}, **dict(self.arrays)}


def read_head(text: object, payload: object) -> Head:
    """Return the head of a job.

    Raises:
        Refused: it is malformed, too large, of another version, or nothing that can be asked for.
    """
    if not isinstance(text, str) or not isinstance(payload, bytes):
        raise Refused("this is no job: a text and bytes are expected")
    if len(text) + len(payload) > MOST_BYTES:
        raise Refused(f"the job has {len(text) + len(payload)} bytes, at most {MOST_BYTES} are taken")
    try:
        told = json.loads(text)
        if told["protocol"] != PROTOCOL or told["version"] != __version__:
            version = str(told["version"])[:40]
            raise Refused(f"the job is from ir-scatter {version}, and here is {__version__}")
        files = tuple(Sent(*map(_checked, file, (str, _HASH, int))) for file in told["files"])
        arrays = tuple((_checked(one[0], _HASH), _checked(one[1], int)) for one in told["arrays"])
        head = Head(_checked(told["name"], str), _checked(told["folder"], str), files, arrays)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        raise Refused("this is no job: its head is malformed") from None
    if head.name not in TABLE:
        raise Refused(f"there is no job {head.name[:40]!r}, expected one of {', '.join(sorted(TABLE))}")
    for path in (head.folder, *(file.path for file in files)):
        if not path.startswith("/") or ".." in path.split("/") or "\0" in path:
            raise Refused(f"{path[:80]!r} is no absolute path without detours")
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
    """Return a value as bytes, and large arrays in it by their hashes.

    Args:
        value: data and records of ours.
        paths: of files that come along.
        root: what stands before paths where this was made, and is left out of every text.
    """
    stream = io.BytesIO()
    pickler = _Pickler(stream, paths, root)
    pickler.dump(value)
    return stream.getvalue(), pickler.large


def decode(data: bytes, *, root: str = "", large: Callable[[str], bytes] | None = None) -> Any:
    """Return what was encoded; `large` gives the bytes of a large array.

    Raises:
        Refused: there is something in it that is no data and no record of ours.
    """
    unpickler = _Unpickler(io.BytesIO(data))
    unpickler.root, unpickler.large = root, large or _nothing
    try:
        return unpickler.load()
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"this is no data of ir-scatter: {type(error).__name__}: {error}") from None


def _nothing(hash: str) -> bytes:
    raise Refused("there are no large arrays beside this")


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

    def persistent_load(self, told: Any) -> Any:
        match told:
            case ("text" | "path" as kind, bytes(text)):
                return (self.root if kind == "path" else "") + text.decode("utf-8", "surrogatepass")
            case ("array", str(name), tuple(shape), bytes(data)):
                return _array(name, shape, data)
            case ("large", str(name), tuple(shape), str(hash)):
                return _array(name, shape, self.large(hash))
        raise Refused("this is no data of ir-scatter")

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PLAIN:
            return super().find_class(module, name)
        if module.startswith("ir_scatter.") and "__main__" not in module and "." not in name:
            found = getattr(import_module(module), name, None)
            if not isinstance(found, type) or found.__module__ != module:
                pass
            elif is_dataclass(found) or issubclass(found, Enum | tuple):
                return found
        raise Refused(f"{module}.{name} is no record that jobs are made of")


def _array(name: str, shape: tuple[int, ...], data: Any) -> "Array":
    import numpy as np

    return np.frombuffer(bytearray(data), dtype(ELEMENT_TYPES[name])).reshape(shape)
