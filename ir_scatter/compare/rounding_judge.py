"""Decides for `judge` whether rounding errors explain the difference between two outputs of a model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ir_scatter import runners
from ir_scatter.compare.guard import Unspecified
from ir_scatter.compare.measure import (
    EXACT,
    PRECISION_BITS,
    ExplainedDifference,
    Measure,
    Tolerance,
    Verdict,
    default_tolerance,
    distances,
    elements_beyond,
    measure,
)
from ir_scatter.compare.result import SAVED
from ir_scatter.compare.rounding import MODEL_TYPES, OutputRounding, Precision, Roundings
from ir_scatter.core.arrays import Array, same_bits
from ir_scatter.runners.base import Outcome, plain_name

SEEDS = (1, 2, 3)
"""Seeds of extra measurements with random last bits: made only before a difference is called a mismatch."""

_HOPELESS = 64
"""Differences above this multiple of the bound skip the extra measurements, which raise it a few times at
most."""

_COARSE = "f16"
"""The precision assumed for functions whose accuracy a device does not specify."""

_FULL_PRECISIONS = frozenset({"", "f32", "model", "default"})

MeasureRounding = Callable[[Precision, Sequence[int]], Sequence[Roundings]]
"""Measures the rounding errors of a model; returns one entry per inference, [] if NumPy cannot compute it."""


def precisions_of(*outcomes: Outcome) -> tuple[Precision, ...]:
    """Return the precisions, coarser than the model's types, in which runners may have computed."""
    precisions = dict[Precision, None]()
    for outcome in outcomes:
        if outcome.precision in PRECISION_BITS and outcome.precision not in _FULL_PRECISIONS:
            precisions[Precision(outcome.precision)] = None
        name = plain_name(outcome.runner.removeprefix(SAVED).rpartition("/")[2])
        runner = runners.find_or_none(name)
        if runner is not None and runner.approximates:
            precisions[Precision(_COARSE, runner.approximates)] = None
    return tuple(precisions)


@dataclass(frozen=True, slots=True, eq=False)
class RoundedSide:
    """One of two computations whose outputs are compared, with the rounding errors of its model.

    Attributes:
        measure_rounding: measures the rounding errors of this model.
        number: the number of the inference, from 0.
        name_of: maps an output name of the comparison to the name in this model.
    """

    measure_rounding: MeasureRounding
    number: int = 0
    name_of: Callable[[str], str] = str

    def find(self, name: str, precision: Precision, seeds: Sequence[int] = ()) -> OutputRounding | None:
        inferences = self.measure_rounding(precision, seeds)
        if self.number >= len(inferences):
            return None
        return inferences[self.number].get(self.name_of(name))


@dataclass(frozen=True, slots=True, eq=False)
class RoundingJudge:
    """Decides how far rounding explains the differences between two computations of an output.

    Attributes:
        sides: the computations with rounding errors: the subject, and the reference unless it is NumPy.
        precisions: coarser precisions in which either of them may have computed.
    """

    sides: tuple[RoundedSide, ...]
    precisions: tuple[Precision, ...] = ()

    def marks(self, name: str) -> list[Unspecified | None] | None:
        """Return each side's mark of unspecified elements, near ties included; None if not measured."""
        sides = self._find(name, MODEL_TYPES)
        return None if sides is None else [side.mark for side in sides]

    def bound(self, name: str, shape: tuple[int, ...]) -> Array | None:
        """Return per element the largest difference that rounding explains; None if not measured."""
        sides = self._find(name, MODEL_TYPES)
        if sides is None or any(side.bound.shape != shape for side in sides):
            return None
        return _combine(sides)[0]

    def explain(self, name: str, got: Array, expected: Array, tolerance: Tolerance) -> Measure | None:
        """Judge two tensors that differ by more than a tolerance; None if rounding was not measured."""
        sides = self._find(name, MODEL_TYPES)
        if sides is None or any(side.bound.shape != expected.shape for side in sides):
            return None
        contested, marks = self._contested(sides, got, expected, tolerance)
        beyond = elements_beyond(got, expected, tolerance, contested=contested)
        bound, is_too_large = _combine(sides)
        wrong = elements_beyond(got, expected, EXACT, bound=bound) & beyond & ~is_too_large
        with np.errstate(all="ignore"):
            is_near = wrong.any() and bool((distances(got, expected) <= _HOPELESS * bound)[wrong].all())
        is_unmeasured = np.zeros_like(wrong)
        if is_near and (again := self._find(name, MODEL_TYPES, SEEDS)) is not None:
            bound, is_too_large = _combine(again)
            wrong = elements_beyond(got, expected, EXACT, bound=bound) & beyond & ~is_too_large
        elif is_near:  # time ran out, and the missing computations would raise the bound
            is_unmeasured, wrong = wrong, np.zeros_like(wrong)
        unknown, precision = (beyond & is_too_large) | is_unmeasured, sides[0].precision
        for coarse in self.precisions if wrong.any() else ():
            of_coarse = self._find(name, coarse)
            if of_coarse is None or any(side.bound.shape != expected.shape for side in of_coarse):
                # time ran out: a difference within the tolerance of that precision gets no verdict
                near = ~elements_beyond(got, expected, default_tolerance(expected, coarse.name)) & wrong
                is_unmeasured, unknown, wrong = is_unmeasured | near, unknown | near, wrong & ~near
                continue
            coarse_bound, is_coarse_too_large = _combine(of_coarse)
            are_same = np.any([_overflows_alike(got, side.values) for side in of_coarse], axis=0)
            is_explained = ~elements_beyond(got, expected, EXACT, bound=coarse_bound) | are_same
            unknown |= wrong & is_coarse_too_large & ~are_same
            is_explained &= ~is_coarse_too_large | are_same
            precision = coarse.name
            bound = np.where(beyond, np.maximum(bound, coarse_bound), bound)
            wrong &= ~is_explained & ~is_coarse_too_large
        if wrong.any():
            everything = np.where(wrong, 0.0, np.inf)  # beyond the tolerance, and beyond what explains it
            result = measure(got, expected, tolerance, bound=everything, contested=contested)
        else:
            verdict = Verdict.CLOSE if contested is None else Verdict.CONTESTED
            if unknown.any():
                verdict = Verdict.UNKNOWN
            elif precision != sides[0].precision:
                verdict = Verdict.PRECISION
            result = measure(got, expected, tolerance, contested=contested)
            result = replace(result, verdict=verdict, mismatched=0)
            if result.worst is None and verdict is Verdict.CONTESTED:  # only contested elements differ
                whole = measure(got, expected, tolerance)
                result = replace(whole, verdict=verdict, contested=result.contested)
        explanation = None
        if beyond.any():
            assert result.worst is not None
            place = result.worst.index
            with np.errstate(all="ignore"):
                difference = float(distances(got, expected)[place])
            if bound[place] > 0:  # 0 for elements that were only moved, and for integers
                explanation = ExplainedDifference(
                    precision,
                    int(beyond.sum()),
                    difference,
                    float(bound[place]),
                    is_complete=not is_unmeasured.any(),
                )
        excuses = [mark.excuse for mark in marks]
        excuse = max(excuses, key=lambda excuse: (excuse.is_whole, bool(excuse.elements)), default=None)
        return replace(result, explanation=explanation, excuse=excuse)

    def _find(
        self, name: str, precision: Precision, seeds: Sequence[int] = ()
    ) -> list[OutputRounding] | None:
        sides = [side.find(name, precision, seeds) for side in self.sides]
        return None if None in sides else [side for side in sides if side is not None]

    def _contested(
        self, sides: Sequence[OutputRounding], got: Array, expected: Array, tolerance: Tolerance
    ) -> tuple[Array | None, list[Unspecified]]:
        """Return a mask of the unspecified elements, and the marks of both sides.

        (None, []) if no unspecified element differs by more than the tolerance.
        """
        marks = [side.mark for side in sides]
        arrays = [[got, expected]] if len({*map(id, marks)}) == 1 else [[got], [expected]]
        pairs = [(mark, of) for mark, of in zip(marks, arrays, strict=False) if mark is not None]
        if not pairs:
            return None, []
        mask = np.any([mark.mask(tolerance, *of) for mark, of in pairs], axis=0)
        if not (elements_beyond(got, expected, tolerance) & mask).any():
            return None, []
        return mask, [mark for mark, _ in pairs]


def _overflows_alike(got: Array, values: Array) -> Array:
    """Return a mask of the elements that overflow in both arrays with the same bits: infinity, or NaN."""
    with np.errstate(all="ignore"):
        is_finite = np.isfinite(values.astype(np.complex128 if values.dtype.kind == "c" else np.float64))
    return np.asarray(same_bits(got, values) & ~is_finite)


def _combine(sides: Sequence[OutputRounding]) -> tuple[Array, Array]:
    """Return the sum of the sides' bounds, and a mask where a bound is too large to explain anything."""
    bound = np.sum([side.bound for side in sides], axis=0)
    return bound, np.any([side.is_too_large for side in sides], axis=0)
