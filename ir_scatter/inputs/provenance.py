"""Traces each number of a run back to the input element that it is computed from (a domain of `Forward`).

A *term* (element, slope, offset) says that a number equals element * slope + offset, for one element of a
model input. Terms are numbered, so that operators that move elements can move arrays of term numbers just
like values. Term 0 stands for a number that depends on no input, or on several.

Example:
    input       [5, 3]    terms [1, 2]
    reversed    [3, 5]    terms [2, 1]
    times 2     [6, 10]   terms [3, 4]: 3 = (element 1, slope 2, offset 0), 4 = (element 0, slope 2, offset 0)

If the 6 is an index that must become 8, input element 1 is set to 4.
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
"""The term number of a value that depends on no input element, or on several."""


class Terms:
    """The numbered terms (element, slope, offset) of one run.

    Term n + 1 is element n of all inputs, concatenated. Term 0 (`NO_TERM`) stands for a number that depends
    on no element, or on several.
    """

    def __init__(self, values: Array) -> None:
        """Create the terms 1 to n of the input elements; `values` are the elements in this run."""
        self.values = values.astype(np.int64)
        count = len(values)
        rows = np.zeros((3, count + 1), np.int64)
        rows[0], rows[1, 1:] = np.arange(-1, count), 1
        self._rows, self._count = [rows], count + 1

    def add(self, elements: Array, slopes: Array, offsets: Array) -> Array:
        """Add terms and return their numbers; a term with a negative element gets the number NO_TERM."""
        numbers = np.arange(self._count, self._count + elements.size).reshape(elements.shape)
        self._count += elements.size
        self._rows.append(np.stack([part.reshape(-1) for part in (elements, slopes, offsets)]))
        return np.where(elements < 0, NO_TERM, numbers)

    def look_up(self, numbers: Array) -> tuple[Array, Array, Array]:
        """Return the elements, slopes and offsets of terms by number; the element of NO_TERM is -1."""
        if len(self._rows) > 1:
            self._rows = [np.concatenate(self._rows, axis=1)]
        elements, slopes, offsets = self._rows[0]
        return elements[numbers], slopes[numbers], offsets[numbers]


@dataclass(frozen=True, slots=True, eq=False)
class TracedCell:
    """A tensor of one run, with the input elements that its numbers are computed from.

    Attributes:
        array: the numbers of this run; None if the shape is unknown.
        shape: the shape, maybe with unknown dimensions.
        terms: a term number for each element; None if all are NO_TERM.
        is_opaque: whether numbers without a term are unknown; `array` then holds placeholders for them.
        origins: bit mask of the inputs that the numbers depend on.
        direct: the inputs of `origins` that reach this tensor through computed operators only.
    """

    array: Array | None
    shape: Shape
    terms: Array | None = None
    is_opaque: bool = False
    origins: int = 0
    direct: int = 0

    @property
    def is_unclear(self) -> bool:
        """Whether some number is unknown: `array` has placeholders or is None."""
        return self.array is None or (self.is_opaque and (self.terms is None or not bool(np.all(self.terms))))

    @property
    def all_terms(self) -> Array:
        return np.full(self.shape, NO_TERM, np.int64) if self.terms is None else self.terms


def known_cell(array: Array, terms: Array | None = None, inputs: int = 0) -> TracedCell:
    return TracedCell(array, array.shape, terms, origins=inputs, direct=inputs)


def unknown_cell(
    shape: Shape, type: "ElementType | np.dtype[Any] | None", origins: int = 0, direct: int = 0
) -> TracedCell:
    """Return a tensor of unknown numbers; its placeholder array takes no memory."""
    if isinstance(type, ElementType):
        type = np.dtype(object) if type.kind == "string" else dtype(type)
    static = static_shape(shape)
    if static is None or min(static, default=0) < 0:
        return TracedCell(None, shape, is_opaque=True, origins=origins, direct=direct)
    is_text = type is not None and type.kind == "O"
    nothing = np.full((), "", object) if is_text else np.zeros((), type or np.float32)
    return TracedCell(np.broadcast_to(nothing, static), static, None, True, origins, direct)


def origins_of(cells: Iterable[TracedCell | None]) -> int:
    """Return a bit mask of the inputs that any of these tensors depends on."""
    return reduce(or_, (cell.origins for cell in cells if cell is not None), 0)


def direct_of(cells: Iterable[TracedCell | None]) -> int:
    """Return a bit mask of the inputs that reach any of these tensors through computed operators only."""
    return reduce(or_, (cell.direct for cell in cells if cell is not None), 0)


_LINEAR = {Arithmetic.SUM, Arithmetic.DIFFERENCE}

_Operand: TypeAlias = tuple[Array | None, Array | None]
"""The values and the term numbers of an operand."""


def combine(
    terms: Terms, kind: Arithmetic | None, operands: Sequence[_Operand], output: Array
) -> Array | None:
    """Return the term numbers of the output of an elementwise operator; None if all are NO_TERM.

    The operator is linearised at the values of this run. If a number depends on several inputs, only the one
    with the smallest slope is kept; the others count as constants.
    """
    if kind is None or output.dtype.kind not in "iu":
        return None
    elements = np.full(output.shape, -1, np.int64)
    slopes = np.zeros(output.shape, np.int64)
    for number, (array, of_input) in enumerate(operands):
        if array is None or of_input is None or array.ndim > output.ndim:
            continue
        pairs = zip(reversed(array.shape), reversed(output.shape), strict=False)
        if not all(dim in {1, out_dim} for dim, out_dim in pairs):  # not broadcast
            continue
        sources, slope, _ = terms.look_up(np.broadcast_to(of_input, output.shape))
        if kind is Arithmetic.NEGATION or (kind is Arithmetic.DIFFERENCE and number):
            slope = -slope
        elif kind is Arithmetic.PRODUCT:
            factor = operands[1 - number][0]
            slope = np.zeros_like(slope) if factor is None else slope * np.broadcast_to(factor, output.shape)
        elif kind not in _LINEAR and not (kind is Arithmetic.REMAINDER and number == 0):
            slope = np.where(np.broadcast_to(array, output.shape) == output, slope, 0)
        is_same = (sources >= 0) & (sources == elements) if kind in _LINEAR else np.zeros(output.shape, bool)
        is_flatter = (sources >= 0) & (slope != 0) & ((elements < 0) | (abs(slope) < abs(slopes)))
        elements = np.where(is_flatter & ~is_same, sources, elements)
        slopes = np.where(is_same, slopes + slope, np.where(is_flatter, slope, slopes))
    elements = np.where(slopes == 0, -1, elements)
    if not (elements >= 0).any():
        return None
    values = terms.values[np.maximum(elements, 0)]
    return terms.add(elements, slopes, output.astype(np.int64) - slopes * values)
