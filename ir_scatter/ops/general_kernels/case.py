"""What a kernel is given: the inputs and attributes of one node, and how much it may allocate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType
from ir_scatter.core.errors import Error
from ir_scatter.core.shapes import counted, show
from ir_scatter.ops.general_kernels.attributes import Attributes

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

LARGEST_RANK = 64
"""NumPy has no arrays of more dimensions; products of longer lists may take forever."""

_KINDS = {row.dtype_name: row.kind for row in ELEMENT_TYPES.values() if row.dtype_name}


class UnsupportedCase(Error):
    """A kernel cannot or may not compute this: it is illegal, undefined or too large."""


@dataclass(frozen=True, slots=True)
class Case:
    """Inputs and attributes of one node.

    Attributes:
        inputs: None for an optional input that was left out.
        attributes: what is written at the node.
        opset: the number of the opset that defines the operator; None if it is not known.
        output_types: what is known of the outputs' types; empty if nothing is.
        element_limit: the most elements that an output may have; None without a limit.
    """

    inputs: tuple[Array | None, ...]
    attributes: Attributes
    opset: int | None
    output_types: tuple[ElementType | None, ...]
    element_limit: int | None

    def optional(self, index: int) -> Array | None:
        """Return an input, None if it was left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def array(self, index: int) -> Array:
        """Return an input that must be there."""
        found = self.optional(index)
        if found is None:
            raise UnsupportedCase(f"input {index} is left out, expected a tensor")
        return found

    def arrays(self) -> tuple[Array, ...]:
        """Return all inputs of an operator that takes any number of them, at least one."""
        return tuple(self.array(index) for index in range(max(1, len(self.inputs))))

    def integers(self, index: int, *, may_be_scalar: bool = False, may_be_long: bool = False) -> list[int]:
        """Return the whole numbers of a one-dimensional input.

        Args:
            index: of the input.
            may_be_scalar: whether one number without a dimension is a list as well.
            may_be_long: whether there may be more numbers than a tensor can have dimensions.
        """
        array = self.array(index)
        if kind(array) not in {"signed", "unsigned"}:
            raise UnsupportedCase(f"input {index} is {array.dtype}, expected whole numbers")
        if array.ndim != 1 and not (may_be_scalar and array.ndim == 0):
            raise UnsupportedCase(f"input {index} has shape {show(array.shape)}, expected a list")
        if array.size > LARGEST_RANK and not may_be_long:
            raise UnsupportedCase(f"input {index} has {array.size} numbers, more than any rank")
        return [int(number) for number in array.reshape(-1)]

    def integer(self, index: int) -> int:
        """Return the whole number of an input that holds one, of shape [] or [1]."""
        numbers = self.integers(index, may_be_scalar=True)
        if len(numbers) != 1:
            raise UnsupportedCase(f"input {index} holds {len(numbers)} numbers, expected 1")
        return numbers[0]

    def reserve(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of an output that is about to be allocated.

        Raises:
            UnsupportedCase: if a dimension is negative or the limit is exceeded.
        """
        wanted = tuple(shape)
        if len(wanted) > LARGEST_RANK:
            raise UnsupportedCase(f"the output would have {len(wanted)} dimensions")
        if min(wanted, default=0) < 0:
            raise UnsupportedCase(f"the output would have shape {show(wanted)}")
        if self.element_limit is not None and prod(wanted) > self.element_limit:
            raise UnsupportedCase(
                f"the output would have shape {show(wanted)}, {counted(prod(wanted), 'element')}, "
                f"expected at most {self.element_limit}"
            )
        return wanted


Kernel: TypeAlias = Callable[[Case], Array | tuple[Array, ...]]
"""Gives the output, or all outputs if there are several; they may be views of the inputs."""


def kind(array: Array) -> str:
    """Return "float", "signed", "unsigned", "boolean", "complex" or "string"."""
    return _KINDS.get(array.dtype.name, "string")


def require_numeric(*arrays: Array) -> None:
    """Refuse arrays that hold anything but numbers."""
    for array in arrays:
        if kind(array) not in {"float", "signed", "unsigned"}:
            raise UnsupportedCase(f"an input is {array.dtype}, expected numbers")


def require_same_type(*arrays: Array) -> np.dtype[Any]:
    """Return the type that all arrays have; refuse them if they differ."""
    dtypes = {array.dtype: None for array in arrays}
    if len(dtypes) != 1:
        raise UnsupportedCase(f"the inputs are {', '.join(map(str, dtypes))}, expected one type")
    return arrays[0].dtype


def normalize_axis(axis: int, rank: int) -> int:
    """Count an axis from the front."""
    if not -rank <= axis < rank:
        expected = f"-{rank} to {rank - 1}" if rank else "none, the rank is 0"
        raise UnsupportedCase(f"axis is {axis}, expected {expected}")
    return axis % rank


def normalize_axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Count axes from the front; refuse an axis that occurs twice."""
    found = tuple(normalize_axis(axis, rank) for axis in axes)
    if len(set(found)) != len(found):
        raise UnsupportedCase(f"axes are {show(found)}, expected different ones")
    return found
