"""The argument of a kernel: `KernelCase`, with inputs and attributes of a node and a limit of its outputs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ir_scatter.core.arrays import LARGEST_RANK, Array, kind, too_many_dimensions
from ir_scatter.core.element_types import dtype
from ir_scatter.core.errors import Error
from ir_scatter.core.shapes import show
from ir_scatter.core.words import counted
from ir_scatter.ops.attributes import Attributes

WHOLE = frozenset({"signed", "unsigned"})
NUMERIC = WHOLE | {"float"}
REAL = frozenset({"float"})
BOOLEAN = frozenset({"boolean"})
TEXT = frozenset({"string"})

_WORDS = {
    WHOLE: "whole numbers",
    WHOLE | BOOLEAN: "whole numbers or booleans",
    REAL: "floating-point numbers",
    NUMERIC: "numbers",
    BOOLEAN: "booleans",
    NUMERIC | BOOLEAN: "numbers or booleans",
    NUMERIC | BOOLEAN | TEXT: "numbers, booleans or text",
}


class UnsupportedCase(Error):
    """Error: a kernel refuses a case that is illegal, undefined or too large."""


class OutputTooLarge(UnsupportedCase):
    """Error: an output has more elements than the caller allows."""


@dataclass(frozen=True, slots=True)
class KernelCase:
    """Inputs and attributes of a node; a missing optional input is None."""

    inputs: tuple[Array | None, ...]
    attributes: Attributes
    is_onnx: bool
    opset: int | None
    output_count: int
    element_limit: int | None

    def has(self, index: int) -> bool:
        return index < len(self.inputs) and self.inputs[index] is not None

    def is_since(self, opset: int) -> bool:
        return self.opset is not None and self.opset >= opset

    def array(self, index: int) -> Array:
        array = self.inputs[index] if index < len(self.inputs) else None
        if array is None:
            raise UnsupportedCase(f"input {index} is missing, expected a tensor")
        return array

    def arrays(self, count: int | None = None) -> list[Array]:
        """Return the first `count` inputs, by default all; raises UnsupportedCase if one is missing."""
        return [self.array(index) for index in range(count or max(1, len(self.inputs)))]

    def integers(
        self,
        index: int,
        name: str = "",
        *,
        default: Sequence[int] | None = None,
        may_be_scalar: bool = False,
        may_be_long: bool = False,
    ) -> list[int]:
        """Return the integers of an attribute if it is present, else of an input of rank 1.

        Without a default, attribute or input must exist. Only with `may_be_long` may a list be longer than
        the largest rank of a tensor.
        """
        if name in self.attributes:
            return self.attributes.integers(name)
        if default is not None and not self.has(index):
            return list(default)
        array = self.array(index)
        require_kind(WHOLE, array)
        if array.ndim != 1 and not (may_be_scalar and array.ndim == 0):
            raise UnsupportedCase(f"input {index} has shape {show(array.shape)}, expected a list")
        if array.size > LARGEST_RANK and not may_be_long:
            raise UnsupportedCase(f"input {index} has {array.size} numbers, more than any rank")
        return [int(number) for number in array.reshape(-1)]

    def integer(self, index: int) -> int:
        numbers = self.integers(index, may_be_scalar=True)
        if len(numbers) != 1:
            raise UnsupportedCase(f"input {index} holds {len(numbers)} numbers, expected 1")
        return numbers[0]

    def dtype(self, name: str, default: str | None = None) -> np.dtype[Any]:
        element_type = self.attributes.element_type(name, default)
        numpy_type = dtype(element_type)
        if numpy_type is None:
            raise UnsupportedCase(f"{element_type.name} has no NumPy type")
        return numpy_type

    def reserve(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Check that an output of a shape is within the limit, and return the shape."""
        dims = tuple(shape)
        problem = too_many_dimensions(len(dims))  # products of longer lists may take forever
        if problem:
            raise UnsupportedCase(f"the output {problem}")
        if min(dims, default=0) < 0:
            raise UnsupportedCase(f"the output would have shape {show(dims)}")
        if self.element_limit is not None and prod(dims) > self.element_limit:
            raise OutputTooLarge(
                f"the output would have shape {show(dims)}, {counted(prod(dims), 'element')}, "
                f"expected at most {self.element_limit}"
            )
        return dims

    def reserve_elementwise(self, *arrays: Array) -> None:
        """Check the broadcast output of arrays, with OpenVINO's `auto_broadcast`; ONNX always broadcasts."""
        shapes = [array.shape for array in arrays]
        rule = self.attributes.text("auto_broadcast", "numpy", {"numpy", "none"})
        if rule == "none" and len(set(shapes)) > 1:
            raise UnsupportedCase(f"shapes are {', '.join(map(show, shapes))}, expected equal ones")
        self.reserve(np.broadcast_shapes(*shapes))


Kernel: TypeAlias = Callable[[KernelCase], Array | tuple[Array, ...]]
"""Returns the output, or a tuple of several outputs; they may be views of the inputs."""


def require_kind(kinds: frozenset[str], *arrays: Array) -> None:
    for array in arrays:
        if kind(array) not in kinds:
            raise UnsupportedCase(f"an input is {array.dtype}, expected {_WORDS[kinds]}")


def require_same_type(*arrays: Array) -> np.dtype[Any]:
    dtypes = dict.fromkeys(array.dtype for array in arrays)
    if len(dtypes) != 1:
        raise UnsupportedCase(f"the inputs are {', '.join(map(str, dtypes))}, expected one type")
    return arrays[0].dtype


def normalize_axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        expected = f"-{rank} to {rank - 1}" if rank else "none, the rank is 0"
        raise UnsupportedCase(f"axis is {axis}, expected {expected}")
    return axis % rank


def normalize_axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return axes as numbers of 0 or more; a repeated axis is refused."""
    normalized = tuple(normalize_axis(axis, rank) for axis in axes)
    if len(set(normalized)) != len(normalized):
        raise UnsupportedCase(f"axes are {show(normalized)}, expected different ones")
    return normalized


def widen(array: Array) -> Array:
    """Convert f16, and types that NumPy itself lacks (bf16, f8, i4, ...), to a wider type."""
    if array.dtype.kind == "V" or array.dtype == np.float16:
        return array.astype(np.float32 if kind(array) == "float" else np.int16)
    return array


def narrow(array: Any, destination: np.dtype[Any]) -> Array:
    """Undo `widen` after a computation: round, or wrap around."""
    return np.asarray(array).astype(destination, copy=False)
