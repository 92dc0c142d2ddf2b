"""The output of one operator, and what is certain about it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import index
from typing import Self

import numpy as np

from ir_scatter.core.arrays import Array, in_own_dtype
from ir_scatter.core.display import record_html, record_repr
from ir_scatter.core.errors import UsageError
from ir_scatter.core.shapes import show_numbers
from ir_scatter.evaluate.operator import Case, run
from ir_scatter.ops.kernels.certainty import (
    MANY,
    Rounding,
    beyond_type,
    contested_by_nan,
    count_hits,
    counted_bound,
    find_candidates,
    has_other_updates,
    is_candidate,
    is_near,
    rounding_bound,
)
from ir_scatter.ops.spec import Reduction

_COMPUTED_BYTES = 4
"""Shorter floating-point types (bf16, f16, f8) are computed in f32 and put back after each step, and no
document says how: OpenVINO's bf16 cuts off what does not fit (5.625 times -3.75 is -21.0 there, and -21.125
is nearest). So each step of a reduction that rounds at all may be off by a whole unit in the last place,
where rounding to nearest is off by half of one."""


@dataclass(frozen=True, eq=False)
class DetailedResult:
    """What a scatter operator gives, and what is certain about it. Every array has the shape of data.

    Attributes:
        values: the output, as `evaluate` gives it.
        hits: i64: how many updates hit each element.
        contested: boolean: the document leaves open which value stays. Updates with different bits hit the
            element and the reduction is none; or NaN and numbers meet there in a min or max.
        rounding_bound: f64: how far the result of a sum, difference, product or mean of a floating-point
            or complex type, computed in the element type or a wider one, may be from the exact one. Up
            to 16 additions it holds for any order; for more it is an estimate, which an order that was
            made to collect errors of one sign may exceed. It follows the values: 0 where nothing is
            rounded in any order, infinite where some order overflows and another does not, never NaN.
    """

    __repr__, _repr_html_ = record_repr, record_html

    values: Array
    _case: Case = field(repr=False)
    _knows_updates: bool = field(default=True, repr=False)

    @cached_property
    def hits(self) -> Array:
        case = self._case
        return count_hits(case.task, case.data.shape, case.indices, case.updates.shape)

    @cached_property
    def contested(self) -> Array:
        reduction, known = self._case.task.reduction, in_own_dtype(self.values)
        if reduction is Reduction.NONE:
            several: Array = self.hits > 1
            is_settled = not self._knows_updates or not several.any()
            return several if is_settled else several & has_other_updates(self._case, known)
        if reduction not in {Reduction.MIN, Reduction.MAX} or not (known != known).any():
            return np.zeros(known.shape, np.bool_)
        return contested_by_nan(self._case, known)

    @property
    def rounding_bound(self) -> Array:
        return self._rounding.bound

    @cached_property
    def _rounding(self) -> Rounding:
        return rounding_bound(self._case, in_own_dtype(self.values), self.hits)

    def settled(self) -> Self:
        """Compute everything now, before somebody changes the arrays that were passed in."""
        _ = self.hits, self.contested, self._rounding
        return self

    def candidates(self, position: Sequence[int]) -> Array:
        """Return every value that the document allows for an element, in row-major order of indices.

        Args:
            position: one coordinate for each dimension of data; negative ones count from the end.

        Returns:
            A 1-D array: for reduction none the updates that hit the element, or its old value if none
            does; for a contested min or max the old value, where it takes part, and the updates; for
            another reduction its value. The arrays that were passed in are read again.

        Raises:
            UsageError: data has no such position.
        """
        shape = self.values.shape
        try:
            place = tuple(index(part) for part in position)
        except TypeError:
            raise UsageError(f"position is {position!r}, expected whole numbers") from None
        pairs = list(zip(place, shape, strict=False))
        if len(place) != len(shape) or any(not -size <= part < size for part, size in pairs):
            raise UsageError(f"position is {show_numbers(place)}, expected one of data {show_numbers(shape)}")
        place = tuple(part % size for part, size in pairs)
        case, reduction = self._case, self._case.task.reduction
        is_one_value = not self.contested[place] if reduction is not Reduction.NONE else self.hits[place] == 0
        if is_one_value:
            return self.values[(*place, np.newaxis)].copy()
        found = find_candidates(case, place)
        if reduction is not Reduction.NONE and case.task.keeps_initial:
            found = np.concatenate((case.data[(*place, np.newaxis)], found))
        return found.astype(self.values.dtype, copy=False)

    def allows(self, values: Array, absolute: float = 0.0, relative: float = 0.0) -> Array:
        """Tell which contested elements of another result have a value that the document allows.

        Args:
            values: of the shape and dtype of `values`.
            absolute: how far a number may be off; both are 0 for strings.
            relative: how far it may be off in proportion to the update.

        Returns:
            Booleans: true where an element is contested and one of its candidates has the value.

        Raises:
            UsageError: the shape is another one.
        """
        case, known = self._case, in_own_dtype(np.asarray(values))
        if known.shape != self.values.shape:
            found, expected = show_numbers(known.shape), show_numbers(self.values.shape)
            raise UsageError(f"values have shape {found}, expected {expected}")
        if not self.contested.any():
            return self.contested.copy()
        is_allowed = is_candidate(case, known, absolute, relative)
        if case.task.reduction is not Reduction.NONE and case.task.keeps_initial:
            is_allowed |= is_near(case.data, known, absolute, relative)
        allowed: Array = self.contested & is_allowed
        return allowed

    def bound_from_values(self, coarser: float = 1.0) -> Array:
        """Bound the difference between `values` and what another computation gives.

        Args:
            coarser: how much coarser than the element type the precision of that one is; then its
                operands are rounded too, and nothing is exact.

        Returns:
            f64 of the shape of data, never NaN. Of types shorter than f32 each step may be cut off instead
            of rounded.
        """
        if coarser == 1:
            bound, error = self._rounding
            if self.values.dtype.itemsize < _COMPUTED_BYTES:
                bound, known = 2 * bound, in_own_dtype(self.values)
                if (is_many := (self.hits >= MANY) & (bound > 0)).any():  # errors of one sign are no chance
                    counted = 2 * counted_bound(self._case, known, self.hits)
                    bound = np.where(is_many, np.maximum(bound, counted), bound)
                # f8e8m0 has neither 0 nor a sign, f8e4m3 no infinity: what a number beyond it becomes is open
                bound = np.where(beyond_type(self._case, known, self.hits), np.inf, bound)
            found: Array = bound + error
            return found
        return 2 * coarser * counted_bound(self._case, in_own_dtype(self.values), self.hits)


def detail(case: Case, *, knows_updates: bool = True) -> DetailedResult:
    """Compute the output of a case, and what is certain about it when it is asked for.

    Unless it `knows_updates`, these stand for any others of their shape, and no two of them count as equal.

    Raises:
        IllegalIndex: an index is not legal.
    """
    return DetailedResult(run(case), case, knows_updates)
