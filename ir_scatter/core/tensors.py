"""Constant tensors, whose bytes are read from their file on demand."""

import gc
import mmap
import os
import stat
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias
from weakref import WeakSet, finalize

from ir_scatter.core.diagnostics import Location, Part, Side, Span
from ir_scatter.core.element_types import ElementType, dtype
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.files import LFS_HELP, LONGEST_POINTER, is_lfs_pointer, show_lfs_pointer
from ir_scatter.core.shapes import Shape, element_count
from ir_scatter.core.words import counted

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

FEW = 64
"""Most numbers for which Python's min, max and set are faster than importing and calling NumPy."""

_MAPPED = max(64, min(512, os.sysconf("SC_OPEN_MAX") // 2)) if hasattr(os, "sysconf") else 512
"""Number of open weight files at which unused models are garbage-collected; these are reference cycles."""

_MOST_COPIED = 1 << 24
"""Most bytes of a tensor that is copied from its file: 2 million indices of i64, in about 4 ms.

Larger ones are mapped: a Gather reads only a few pages of a table of 1 GB.
"""

_Form: TypeAlias = Literal["b", "h", "i", "q", "B", "H", "I", "Q"]

_FORMS: Mapping[str, _Form] = {
    "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
} if sys.byteorder == "little" else {}  # fmt: skip


class Constant:
    """A constant tensor whose bytes are read on demand.

    Args:
        declared: the place of its declaration: a location, a node, or a function that returns one of them.
        element_type: its element type, None if unknown.
        shape: its shape.
        load: returns its elements as an array; None to use `view`.
        name: its name; None to use that of the declaring node.
        view: returns its bytes, None if they cannot be read.

    Attributes:
        stores_data: False for a tensor without elements whose file has no data field for it.
    """

    __slots__ = ("_declared", "_load", "_name", "_view", "element_type", "shape", "stores_data")

    def __init__(
        self,
        declared: Any,
        element_type: ElementType | None,
        shape: tuple[int, ...],
        load: "Callable[[], Array | None] | None" = None,
        name: str | None = None,
        view: Callable[[], memoryview | None] | None = None,
        *,
        stores_data: bool = True,
    ) -> None:
        self._declared = declared
        self.stores_data = stores_data
        self.element_type = element_type
        self.shape = shape
        self._load = load
        self._name = name
        self._view = view

    def load(self) -> "Array | None":
        """Return a read-only array of the shape, None if the bytes cannot be read."""
        if self._load is not None:
            return self._load()
        data, type = self.view(), self.element_type
        return None if data is None or type is None else decode(data, type, self.shape)

    def view(self) -> memoryview | None:
        """Return the bytes if they are stored as consecutive little-endian elements, else None."""
        return None if self._view is None else self._view()

    @property
    def name(self) -> str:
        if self._name is None:
            declared = self._declaration()
            self._name = "" if isinstance(declared, Location) else str(declared.name)
        return self._name

    @property
    def location(self) -> Location:
        declared = self._declaration()
        place: Location = declared if isinstance(declared, Location) else declared.location
        return place

    @property
    def span(self) -> Span | None:
        """The range of its declaration in the file; None if the format has no lines."""
        declared = self._declaration()
        if isinstance(declared, Location):
            return None
        place: Span | None = declared.graph.span_of(declared, Part(Side.NODE))
        return place

    def _declaration(self) -> Any:
        if callable(self._declared):
            self._declared = self._declared()
        return self._declared


def few_numbers(
    element_type: ElementType, shape: Shape, view: Callable[[], memoryview | None] | None
) -> list[int] | None:
    """Return the integers of a small constant without importing NumPy; None for large and other constants.

    `view` returns its bytes as consecutive elements, None if they cannot be read.
    """
    form, count = _FORMS.get(element_type.name), element_count(shape)
    if form is None or view is None or not count or count > FEW:
        return None
    data, size = view(), count * element_type.bits // 8
    return None if data is None or len(data) < size else data[:size].cast(form).tolist()


class Weights:
    """A file of weights, opened when the first bytes are needed.

    The system kills a process that reads mapped pages of a truncated file. So only large tensors are mapped,
    smaller ones are copied, and both are refused once the file has changed.

    Attributes:
        size: its bytes; None if it does not exist or cannot be read.
        error: why the file cannot be read, "" if it can.
        identity: inode, time and size of the file when it was first seen; None if it cannot be read.
    """

    _opened: ClassVar[WeakSet["Weights"]] = WeakSet()
    _most = _MAPPED

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size: int | None = None
        self.error = ""
        self.identity: tuple[int, int, int] | None = None
        try:
            if not path.is_dir() and not stat.S_ISREG(path.stat().st_mode):
                raise OSError("no regular file")  # opening a pipe would block
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                head = file.read(LONGEST_POINTER) if status.st_size <= LONGEST_POINTER else b""
            if is_lfs_pointer(head):
                raise OSError(f"{show_lfs_pointer('it', head)}; {LFS_HELP}")
            self.size = status.st_size
            self.identity = (status.st_ino, status.st_mtime_ns, status.st_size)
        except OSError as error:
            self.error = error.strerror.lower() if error.strerror else str(error)

    @cached_property
    def _file(self) -> int:
        """The descriptor of the file, which stays open as long as this object lives."""
        opened = Weights._opened
        if len(opened) >= Weights._most:
            gc.collect()
            Weights._most = max(_MAPPED, 2 * len(opened))
        try:
            descriptor = os.open(self.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from None
        finalize(self, os.close, descriptor)
        opened.add(self)
        return descriptor

    @cached_property
    def _mapping(self) -> mmap.mmap:
        try:
            return mmap.mmap(self._file, 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from None

    def view(self, offset: int, size: int) -> memoryview | None:
        """Return `size` bytes from `offset` on, None if the file ends before that.

        Raises:
            UnreadableModel: the file cannot be read, or has changed since it was first seen.
        """
        if size == 0 and self.size is not None:
            return memoryview(b"")
        if self.size is None or offset < 0 or offset + size > self.size:
            return None
        self._demand_same(os.fstat(self._file))
        if size > _MOST_COPIED:
            return memoryview(self._mapping)[offset : offset + size]
        try:
            data = _read(self._file, offset, size)
        except OSError as error:
            raise self._unreadable(error) from None
        if len(data) < size:  # the file has just been truncated
            self._demand_same(os.fstat(self._file))
        return memoryview(data) if len(data) == size else None

    def demand_unchanged(self) -> None:
        """Raise UnreadableModel if the file has changed since it was first seen.

        A deleted file is no error here: `view` raises if its bytes are needed.
        """
        if self.identity is None:
            return
        try:
            status = os.fstat(self._file) if "_file" in self.__dict__ else self.path.stat()
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._unreadable(error) from None
        self._demand_same(status)

    def _demand_same(self, status: os.stat_result) -> None:
        if (status.st_ino, status.st_mtime_ns, status.st_size) == self.identity:
            return
        name, now = self.path.name, status.st_size
        sizes = "" if now == self.size else f": it had {counted(self.size or 0, 'byte')} and has {now} now"
        message = f"{name} has changed since it was read{sizes}; expected the same file, read the model again"
        raise UnreadableModel("weights-missing", message, Location(str(self.path)))

    def _unreadable(self, error: Exception) -> UnreadableModel:
        message = f"{self.path.name} cannot be read ({str(getattr(error, 'strerror', error)).lower()})"
        return UnreadableModel("weights-missing", message, Location(str(self.path)))


class LongerWeights(Weights):
    """A file of weights followed by further bytes in memory; a missing file counts as empty."""

    def __init__(self, path: Path, appended: bytes) -> None:
        super().__init__(path)
        self._appended, self._first = appended, self.size or 0
        self.size = self._first + len(appended)

    def view(self, offset: int, size: int) -> memoryview | None:
        """Return `size` bytes from `offset` on; None unless all of them are in the file, or all appended."""
        if size == 0 or offset + size <= self._first:
            return super().view(offset, size)
        start = offset - self._first
        whole = memoryview(self._appended)
        return whole[start : start + size] if 0 <= start <= len(whole) - size else None


def _read(file: int, offset: int, size: int) -> bytes:
    """Read bytes of a file; fewer only if the file ends before that."""
    if not hasattr(os, "pread"):
        with open(os.dup(file), "rb") as copy:
            copy.seek(offset)
            return copy.read(size)
    data = os.pread(file, size, offset)
    while len(data) < size and (more := os.pread(file, size - len(data), offset + len(data))):
        data += more
    return data


def decode(data: memoryview, element_type: ElementType, shape: tuple[int, ...]) -> "Array | None":
    """Return a read-only array of stored bytes.

    The bytes may be unaligned. Types below a byte are unpacked, low bits first.

    Returns:
        The array; None for a type or a shape that NumPy does not support, or if bytes are missing.
    """
    import numpy

    target = dtype(element_type)
    if target is None or element_type.kind == "string":
        return None
    count, bits = prod(shape), element_type.bits
    if len(data) < element_type.byte_size(count) or bits in (3, 6):
        return None
    if bits < 8:
        array = _unpack(numpy.frombuffer(data, numpy.uint8), element_type, target, count)
        array.flags.writeable = False
    else:
        array = numpy.frombuffer(data, target, count)
    try:
        return array.reshape(shape)
    except ValueError:
        return None


def _unpack(packed: "Array", element_type: ElementType, target: Any, count: int) -> "Array":
    import numpy

    bits = element_type.bits
    shifts = numpy.arange(0, 8, bits, dtype=numpy.uint8)
    parts = (packed[:, None] >> shifts) & ((1 << bits) - 1)
    flat = parts.reshape(-1)[:count]
    if element_type.kind == "signed":
        sign = 1 << (bits - 1)
        flat = (flat ^ sign).astype(numpy.int8) - numpy.int8(sign)
    return flat.view(target) if element_type.kind == "float" else flat.astype(target)
