"""What flows through a model while it is followed where indices come from."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ir_scatter.analysis.interpreter import Step
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.element_types import ElementType, dtype
from ir_scatter.core.errors import EvaluationFailed
from ir_scatter.core.shapes import Shape
from ir_scatter.ops.general_kernels.base import Array

_ANY_TYPE = np.dtype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """An array, and which elements of inputs its numbers are made of.

    Attributes:
        array: the numbers of this run.
        terms: a term for each number; None if there is none in all of them.
        is_opaque: whether the numbers without a term are not known; something else stands for them.
        is_input: whether some input may have a part in the numbers.
    """

    array: Array
    terms: Array | None = None
    is_opaque: bool = False
    is_input: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Shapeless:
    """An array of which not even the shape is known.

    Attributes:
        shape: what is known of it.
    """

    shape: Shape = None


Cell: TypeAlias = Traced | Shapeless


class Unclear(EvaluationFailed):
    """Something must be known of a value that comes from an operator which is not computed."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not known", Location(""))


class Stuck(Exception):
    """A node cannot be computed with the shapes and values of this run.

    Attributes:
        step: the node.
        arrays: its inputs.
        pairs: sizes that must be equal, as far as the node says so itself.
        least: sizes that must be larger, with how large.
    """

    def __init__(self, step: Step, arrays: "list[Array | None]", error: Exception) -> None:
        super().__init__(str(error))
        self.step = step
        self.arrays = arrays
        self.pairs: list[tuple[int, int]] = getattr(error, "pairs", [])
        self.least: list[tuple[int, int]] = getattr(error, "least", [])


def hollow(shape: "tuple[int, ...]", type: "np.dtype[Any]") -> Traced:
    """Return an array of unknown numbers, which takes no memory."""
    nothing = np.full((), "", object) if type.kind == "O" else np.zeros((), type)
    return Traced(np.broadcast_to(nothing, shape), is_opaque=True)


def cell_of(shape: Shape, element_type: ElementType | None) -> Cell:
    """Return an unknown value of which this is known."""
    known = None if element_type is None else dtype(element_type)
    is_text = element_type is not None and element_type.kind == "string"
    static = None if shape is None else tuple(dim for dim in shape if isinstance(dim, int))
    if shape is None or static is None or len(static) != len(shape):
        return Shapeless(shape)
    return hollow(static, np.dtype(object) if is_text else known or _ANY_TYPE)
