"""The output of one operator, and what is certain about it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy

from ir_scatter.elements import in_own_dtype
from ir_scatter.errors import UsageError
from ir_scatter.evaluate.case import Case, run
from ir_scatter.ops.kernels.bounds import rounding_bound
from ir_scatter.ops.kernels.candidates import find_candidates, is_candidate
from ir_scatter.ops.kernels.hits import count_hits
from ir_scatter.ops.spec import Reduction
from ir_scatter.shapes import show_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ir_scatter.constants import Array


@dataclass(frozen=True, slots=True, eq=False)
class DetailedResult:
    """What a scatter operator gives, and what is certain about it. Every array has the shape of data.

    Attributes:
        values: the output, as `evaluate` gives it.
        hits: i64: how many updates hit each element.
        contested: boolean: more than one update hits the element and the reduction is none, so that
            the document leaves open which one stays.
        rounding_bound: f64: how far the result of a sum, difference, product or mean of a
            floating-point or complex type, computed in the element type in any order, may be from
            the exact one; infinite where some order overflows and another does not, 0 where nothing
            is rounded.
    """

    values: "Array"
    hits: "Array"
    contested: "Array"
    rounding_bound: "Array"
    _case: Case = field(repr=False)

    def candidates(self, position: "Sequence[int]") -> "Array":
        """Return every value that the document allows for an element, in row-major order of indices.

        Args:
            position: one coordinate for each dimension of data; negative ones count from the end.

        Returns:
            A 1-D array: for reduction none the updates that hit the element, or its old value if none
            does; for another reduction its value. The arrays that were passed in are read again.

        Raises:
            UsageError: data has no such position.
        """
        shape = self.values.shape
        place = tuple(int(part) for part in position)
        pairs = list(zip(place, shape, strict=False))
        if len(place) != len(shape) or any(not -size <= part < size for part, size in pairs):
            raise UsageError(f"position is {show_numbers(place)}, expected one of data {show_numbers(shape)}")
        place = tuple(part % size for part, size in pairs)
        task = self._case.task
        if task.reduction is not Reduction.NONE or self.hits[place] == 0:
            return self.values[(*place, numpy.newaxis)].copy()
        found = find_candidates(task, self.values.shape, self._case.indices, self._case.updates, place)
        return found.astype(self.values.dtype, copy=False)

    def allows(self, values: "Array", absolute: float = 0.0, relative: float = 0.0) -> "Array":
        """Tell which contested elements of another result have a value that the document allows.

        Args:
            values: of the shape and dtype of `values`.
            absolute: how far a number may be off; both are 0 for strings.
            relative: how far it may be off in proportion to the update.

        Returns:
            Booleans: true where an element is contested and some update that hits it has the value.
        """
        if not self.contested.any():
            return self.contested
        case = self._case
        found: Array = self.contested & is_candidate(
            case.task, in_own_dtype(values), case.indices, case.updates, absolute, relative
        )
        return found


def detail(case: Case) -> DetailedResult:
    """Compute the output of a case and what is certain about it.

    Raises:
        IllegalIndex: an index is not legal.
    """
    values = run(case)
    task = case.task
    hits = count_hits(task, case.data.shape, case.indices, case.updates.shape)
    if task.reduction is Reduction.NONE:
        contested, bound = hits > 1, numpy.zeros(values.shape)
    else:
        contested = numpy.zeros(values.shape, numpy.bool_)
        bound = rounding_bound(task, case.data, case.indices, case.updates, values, hits)
    return DetailedResult(values, hits, contested, bound, case)
