"""The output of one operator, and which of its elements the specification determines."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import index
from typing import Self

import numpy as np

from ir_scatter.core.arrays import Array, in_native_dtype
from ir_scatter.core.display import record_html, record_repr
from ir_scatter.core.errors import UsageError
from ir_scatter.core.shapes import show_numbers
from ir_scatter.evaluate.operator import CheckedCase, run
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
"""Size in bytes of f32. Runtimes compute shorter floating-point types (bf16, f16, f8) in f32 and convert back
after each step, and no specification says how: OpenVINO's bf16 truncates (5.625 times -3.75 gives -21.0, but
-21.125 is nearest). So each step of an inexact reduction may be off by one unit in the last place, while
rounding to nearest is off by half a unit."""


@dataclass(frozen=True, eq=False)
class DetailedResult:
    """The output of a scatter operator, and how certain each element is. Every array has the shape of data.

    Attributes:
        values: the output of `evaluate`.
        hits: i64: the number of updates of each element.
        contested: boolean: whether the specification allows several values for the element. Either the
            reduction is none and the element has updates with different bits, or it is a min or max of NaN
            and numbers.
        rounding_bound: f64: a bound of the distance from the exact result of a sum, difference, product or
            mean of a floating-point or complex type, computed in the element type or a wider one. For up
            to 16 additions it holds in any order. For more it is an estimate, which an order that
            accumulates errors of one sign on purpose may exceed. It depends on the values: 0 if no order
            rounds, infinite if some order overflows and another does not, never NaN.
    """

    __repr__, _repr_html_ = record_repr, record_html

    values: Array
    _case: CheckedCase = field(repr=False)
    _knows_updates: bool = field(default=True, repr=False)

    @cached_property
    def hits(self) -> Array:
        case = self._case
        return count_hits(case.task, case.data.shape, case.indices, case.updates.shape)

    @cached_property
    def contested(self) -> Array:
        reduction, values = self._case.task.reduction, in_native_dtype(self.values)
        if reduction is Reduction.NONE:
            several: Array = self.hits > 1
            is_settled = not self._knows_updates or not several.any()
            return several if is_settled else several & has_other_updates(self._case, values)
        if reduction not in {Reduction.MIN, Reduction.MAX} or not (values != values).any():
            return np.zeros(values.shape, np.bool_)
        return contested_by_nan(self._case, values)

    @property
    def rounding_bound(self) -> Array:
        return self._rounding.bound

    @cached_property
    def _rounding(self) -> Rounding:
        return rounding_bound(self._case, in_native_dtype(self.values), self.hits)

    def settled(self) -> Self:
        """Compute all arrays now; later changes of the caller's arrays then have no effect. Return self."""
        _ = self.hits, self.contested, self._rounding
        return self

    def candidates(self, position: Sequence[int]) -> Array:
        """Return every value that the specification allows for an element, in row-major order of indices.

        Args:
            position: one coordinate for each dimension of data; negative ones count from the end.

        Returns:
            A 1-D array: for reduction none the updates of the element, or its old value without an update;
            for a contested min or max the old value, if it takes part, and the updates; for another
            reduction the result. This reads the caller's arrays again.

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
        values = find_candidates(case, place)
        if reduction is not Reduction.NONE and case.task.keeps_initial:
            values = np.concatenate((case.data[(*place, np.newaxis)], values))
        return values.astype(self.values.dtype, copy=False)

    def allows(self, values: Array, absolute: float = 0.0, relative: float = 0.0) -> Array:
        """Return which contested elements of another result have a value that the specification allows.

        Args:
            values: another result, of the shape and dtype of `values`.
            absolute: the absolute tolerance; both tolerances are 0 for strings.
            relative: the tolerance relative to the update.

        Returns:
            Booleans of the shape of data: true if the element is contested and its value is a candidate.

        Raises:
            UsageError: the shape differs.
        """
        case, result = self._case, in_native_dtype(np.asarray(values))
        if result.shape != self.values.shape:
            actual, expected = show_numbers(result.shape), show_numbers(self.values.shape)
            raise UsageError(f"values have shape {actual}, expected {expected}")
        if not self.contested.any():
            return self.contested.copy()
        is_allowed = is_candidate(case, result, absolute, relative)
        if case.task.reduction is not Reduction.NONE and case.task.keeps_initial:
            is_allowed |= is_near(case.data, result, absolute, relative)
        allowed: Array = self.contested & is_allowed
        return allowed

    def bound_from_values(self, coarser: float = 1.0) -> Array:
        """Bound the difference between `values` and the result of another computation.

        Args:
            coarser: the ratio of the other computation's rounding unit to that of the element type. Above 1,
                operands are rounded too, so that no result is exact.

        Returns:
            f64 of the shape of data, never NaN. For types shorter than f32 each step may be truncated
            instead of rounded.
        """
        if coarser == 1:
            bound, error = self._rounding
            if self.values.dtype.itemsize < _COMPUTED_BYTES:
                bound, values = 2 * bound, in_native_dtype(self.values)
                if (is_many := (self.hits >= MANY) & (bound > 0)).any():  # truncation errors have one sign
                    counted = 2 * counted_bound(self._case, values, self.hits)
                    bound = np.where(is_many, np.maximum(bound, counted), bound)
                # f8e8m0 lacks 0 and signs, f8e4m3 infinity: the result of an overflow is not specified
                bound = np.where(beyond_type(self._case, values, self.hits), np.inf, bound)
            total: Array = bound + error
            return total
        return 2 * coarser * counted_bound(self._case, in_native_dtype(self.values), self.hits)


def detail(case: CheckedCase, *, knows_updates: bool = True) -> DetailedResult:
    """Compute the output of a scatter operator for checked arguments, and how certain it is.

    The other fields of the result (hits, contested elements, bounds) are computed when they are first read.
    Without `knows_updates`, the updates are placeholders for any values, and no two of them count as equal.

    Raises:
        IllegalIndex: an index is not legal.
    """
    return DetailedResult(run(case), case, knows_updates)
