"""The forward domain: of which element of which input a number is made, and how.

A term says that a number is element * slope + offset, of one element of an input. Terms are numbered, so
that operators that move elements move them as they move numbers; 0 stands for a number that no input has
a part in, or several have.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, TypeAlias

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.core.element_types import ElementType, dtype
from ir_scatter.core.shapes import Shape
from ir_scatter.core.shapes import static as static_shape
from ir_scatter.ops.general import Arithmetic

NO_TERM = 0


class Terms:
    """The terms of one run; element number n of all traced inputs together is term n + 1."""

    def __init__(self, values: Array) -> None:
        """Begin with what each element is in this run."""
        self.values = values.astype(np.int64)
        count = len(values)
        rows = np.zeros((3, count + 1), np.int64)
        rows[0], rows[1, 1:] = np.arange(-1, count), 1
        self._rows, self._count = [rows], count + 1

    def add(self, elements: Array, slopes: Array, offsets: Array) -> Array:
        """Enter new terms, NO_TERM where the element is below 0; return their numbers."""
        numbers = np.arange(self._count, self._count + elements.size).reshape(elements.shape)
        self._count += elements.size
        self._rows.append(np.stack([part.reshape(-1) for part in (elements, slopes, offsets)]))
        return np.where(elements < 0, NO_TERM, numbers)

    def look_up(self, numbers: Array) -> tuple[Array, Array, Array]:
        """Return elements (-1 for none), slopes and offsets."""
        if len(self._rows) > 1:
            self._rows = [np.concatenate(self._rows, axis=1)]
        elements, slopes, offsets = self._rows[0]
        return elements[numbers], slopes[numbers], offsets[numbers]


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """A value on its way through a model.

    Attributes:
        array: the numbers of this run; None if not even the shape is known.
        shape: as far as it is known.
        terms: a term for each number; None if there is none in all of them.
        is_opaque: whether the numbers without a term are not known; something else stands for them.
        origins: the inputs that have a part in the numbers, one bit for each.
        direct: those of them that have it through nothing but operators that are computed.
    """

    array: Array | None
    shape: Shape
    terms: Array | None = None
    is_opaque: bool = False
    origins: int = 0
    direct: int = 0

    @property
    def is_unclear(self) -> bool:
        """Whether some number is not known."""
        return self.array is None or (self.is_opaque and (self.terms is None or not bool(np.all(self.terms))))

    @property
    def all_terms(self) -> Array:
        return np.full(self.shape, NO_TERM, np.int64) if self.terms is None else self.terms


def known(array: Array, terms: Array | None = None, inputs: int = 0) -> Cell:
    return Cell(array, array.shape, terms, origins=inputs, direct=inputs)


def unknown(
    shape: Shape, type: "ElementType | np.dtype[Any] | None", origins: int = 0, direct: int = 0
) -> Cell:
    """Return a value of which this is known; its array takes no memory."""
    if isinstance(type, ElementType):
        type = np.dtype(object) if type.kind == "string" else dtype(type)
    whole = static_shape(shape)
    if whole is None or min(whole, default=0) < 0:
        return Cell(None, shape, is_opaque=True, origins=origins, direct=direct)
    is_text = type is not None and type.kind == "O"
    nothing = np.full((), "", object) if is_text else np.zeros((), type or np.float32)
    return Cell(np.broadcast_to(nothing, whole), whole, None, True, origins, direct)


def origins_of(cells: Iterable[Cell | None]) -> int:
    """Return the inputs that have a part in some of the values."""
    return reduce(or_, (cell.origins for cell in cells if cell is not None), 0)


def direct_of(cells: Iterable[Cell | None]) -> int:
    """Return the inputs from which some of the values are computed."""
    return reduce(or_, (cell.direct for cell in cells if cell is not None), 0)


_LINEAR = {Arithmetic.SUM, Arithmetic.DIFFERENCE}

_Operand: TypeAlias = tuple[Array | None, Array | None]
"""Numbers and terms of an input."""


def combine(
    terms: Terms, kind: Arithmetic | None, operands: Sequence[_Operand], output: Array
) -> Array | None:
    """Return the terms of an output that is computed element by element; None if there are none.

    Near the values of this run what is computed is a line. Of several inputs that have a part in a number,
    the one counts whose slope is the smallest; the others are taken as they are in this run.
    """
    if kind is None or output.dtype.kind not in "iu":
        return None
    elements = np.full(output.shape, -1, np.int64)
    slopes = np.zeros(output.shape, np.int64)
    for number, (array, of_input) in enumerate(operands):
        if array is None or of_input is None or array.ndim > output.ndim:
            continue
        pairs = zip(reversed(array.shape), reversed(output.shape), strict=False)
        if not all(dim in {1, other} for dim, other in pairs):  # it is not repeated to the output
            continue
        found, own, _ = terms.look_up(np.broadcast_to(of_input, output.shape))
        if kind is Arithmetic.NEGATION or (kind is Arithmetic.DIFFERENCE and number):
            own = -own
        elif kind is Arithmetic.PRODUCT:
            other = operands[1 - number][0]
            own = np.zeros_like(own) if other is None else own * np.broadcast_to(other, output.shape)
        elif kind not in _LINEAR and not (kind is Arithmetic.REMAINDER and number == 0):
            own = np.where(np.broadcast_to(array, output.shape) == output, own, 0)
        is_same = (found >= 0) & (found == elements) if kind in _LINEAR else np.zeros(output.shape, bool)
        is_better = (found >= 0) & (own != 0) & ((elements < 0) | (abs(own) < abs(slopes)))
        elements = np.where(is_better & ~is_same, found, elements)
        slopes = np.where(is_same, slopes + own, np.where(is_better, own, slopes))
    elements = np.where(slopes == 0, -1, elements)
    if not (elements >= 0).any():
        return None
    values = terms.values[np.maximum(elements, 0)]
    return terms.add(elements, slopes, output.astype(np.int64) - slopes * values)
