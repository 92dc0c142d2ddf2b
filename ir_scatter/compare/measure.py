"""Measures differences between two tensors, element by element, and defines their tolerances."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from ir_scatter.core.arrays import INEXACT, Array, are_equal, in_native_dtype, kind, native, same_bits
from ir_scatter.core.display import record
from ir_scatter.core.errors import UsageError
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.shapes import show
from ir_scatter.core.suggestions import did_you_mean
from ir_scatter.evaluate.certainty import DetailedResult
from ir_scatter.ops.spec import Reduction


@record()
class Tolerance:
    """Largest allowed difference of two elements: |got - expected| <= absolute + relative * |expected|."""

    absolute: float = 0.0
    relative: float = 0.0

    def limits(self, expected: Array) -> Array:
        sizes = magnitudes(expected)
        return self.absolute + np.where(np.isfinite(sizes), self.relative * sizes, 0.0)


def magnitudes(array: Array) -> Array:
    sizes: Array = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    return sizes


EXACT = Tolerance()
FRACTION_BITS = {
    "float64": 52, "float32": 23, "float16": 10, "bfloat16": 7, "float8_e4m3fn": 3, "float8_e4m3fnuz": 3,
    "float8_e5m2": 2, "float8_e5m2fnuz": 2, "float8_e8m0fnu": 0, "float4_e2m1fn": 1, "float6_e2m3fn": 3,
    "float6_e3m2fn": 2, "complex64": 23, "complex128": 52,
}  # fmt: skip
"""Explicit fraction bits of the floating-point types, by NumPy dtype name."""

PRECISION_BITS = {"f16": 10, "bf16": 7, "f32": 23}
"""Fraction bits of the precisions in which a runtime may run a whole model."""

_MOST_PRECISION_BITS = 23
"""Types with more fraction bits (f64) ignore the inference precision: f64 computed as f32 is a real
difference."""

_SMALLEST = {52: 2.0**-1022, 23: 2.0**-126, 7: 2.0**-126, 10: 2.0**-24}
"""Smallest magnitude that a device must not flush to 0, by fraction bits.

Many devices flush subnormal numbers. Those of f16 count as ordinary numbers, as devices keep them.
"""

_DEEP_ULPS, _SHALLOW_ULPS = 1024, 32
"""Maximum difference of model outputs in units in the last place: for f32 and f64, for narrower types."""

_SAMPLE_SIZE = 1 << 16
"""Maximum elements from which the median magnitude is computed: enough for a scale, fast for large tensors.
"""


def default_tolerance(array: Array, precision: str = "", *, is_node: bool = False) -> Tolerance:
    """Return the tolerance that applies unless the user sets one.

    Integers, booleans and strings must be equal. A scatter node only moves elements, so its output must be
    equal except for subnormal numbers and rounding to a coarser inference precision. (The caller adds the
    rounding error of reductions.) A model output may go through any operators. So each element may differ by
    a fraction of its own magnitude plus the same fraction of the median magnitude: where large numbers
    cancel, their rounding errors stay.

    Args:
        array: the expected values.
        precision: the precision of the inference: "f32", "f16" or "bf16"; any other text means unknown.
        is_node: whether the tensor is a scatter node's output, computed from the inputs that the runner read.
    """
    type_bits = FRACTION_BITS.get(array.dtype.name)
    if type_bits is None:
        return EXACT
    bits = computed_bits(type_bits, precision)
    if is_node:
        return Tolerance(_SMALLEST.get(bits, 0.0), 2.0**-bits if bits < type_bits else 0.0)
    share = (_DEEP_ULPS if bits >= _MOST_PRECISION_BITS else _SHALLOW_ULPS) * 2.0 ** -(bits + 1)
    return Tolerance(share * median_magnitude(array), share)


def computed_bits(type_bits: int, precision: str) -> int:
    """Return the fraction bits of a computation: those of the type, or of a coarser inference precision."""
    if type_bits > _MOST_PRECISION_BITS:
        return type_bits
    return min(type_bits, PRECISION_BITS.get(precision, type_bits))


def coarsest(*precisions: str) -> str:
    """Return the precision with the fewest fraction bits; unknown ones only count if all are unknown."""
    return min(precisions, key=lambda word: PRECISION_BITS.get(word, 99))


def median_magnitude(array: Array) -> float:
    """Return the median magnitude of the finite non-zero elements; large tensors are sampled."""
    flat = array.reshape(-1)
    flat = flat[:: max(flat.size // _SAMPLE_SIZE, 1)]
    with np.errstate(all="ignore"):
        sizes = magnitudes(flat)
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    return float(np.median(sizes)) if sizes.size else 1.0


@dataclass(init=False, eq=False)
class Tolerances:
    """The tolerances that the user sets, by the name of an output or node.

    The name "" stands for all others.
    """

    named: Mapping[str, Tolerance]

    def __init__(self, texts: Sequence[str] = ()) -> None:
        """Parse texts `NAME=ABS,REL` or `ABS,REL`; raise UsageError if a text is not a tolerance."""
        self.named = dict(map(_parse, texts))

    def find(self, *names: str | None) -> Tolerance | None:
        """Return the tolerance of the first of these names that has one, else the default, else None."""
        matches = (self.named[name] for name in (*names, "") if name is not None and name in self.named)
        return next(matches, None)

    def demand_known(self, names: Collection[str]) -> None:
        """Raise UsageError if a tolerance has a name that is not among these."""
        for name in self.named:
            if name and name not in names:
                guess = did_you_mean(name, names)
                raise UsageError(
                    f"{Parameter('tolerance')}: there is no output and no scatter node {name!r}{guess}"
                )


def _parse(text: str) -> tuple[str, Tolerance]:
    name, equals, numbers = text.rpartition("=")
    parts = numbers.split(",")
    try:
        absolute, relative = map(float, parts if len(parts) > 1 else [*parts, "0"])
    except ValueError:
        absolute = relative = -1.0
    if not (absolute >= 0 and relative >= 0) or (equals and not name):
        raise UsageError(f"{text!r} is not a tolerance, expected OUTPUT=ABSOLUTE,RELATIVE")
    return name, Tolerance(absolute, relative)


class Verdict(StrEnum):
    """The judgement on one tensor, from best to worst."""

    EQUAL = "equal"
    """Identical bits, except that any NaN equals any NaN."""
    CLOSE = "close"
    """Within the tolerance."""
    CONTESTED = "contested"
    """The specification allows several results: different updates target one element without a reduction, a
    NaN takes part in a minimum or maximum, or rounding decides the order of two equal values."""
    PRECISION = "precision"
    """Rounding in f32 does not explain the difference; rounding in f16 or bf16 does, and the runner may use
    it."""
    UNKNOWN = "unknown"
    """No verdict: the rounding error may be so large that it explains any difference of this size."""
    NONDETERMINISTIC = "nondeterministic"
    """The same runner gives different results for the same inputs."""
    MISMATCH = "mismatch"

    @property
    def is_difference(self) -> bool:
        return self in {Verdict.NONDETERMINISTIC, Verdict.MISMATCH}


@dataclass(frozen=True, slots=True)
class Worst:
    """The element with the largest difference: its position, and both values."""

    index: tuple[int, ...]
    got: Any
    expected: Any

    @property
    def words(self) -> tuple[str, str, str]:
        """Return (position, value, reference value) as texts for reports.

        The position reads "[0, 1] is", or "it is" for a scalar.
        """
        place = f"{list(self.index)} is" if self.index else "it is"
        return place, format_element(self.got), format_element(self.expected)


def format_element(element: object) -> str:
    return f"{element:.9g}" if isinstance(element, float) else str(element)


RANDOM = "draws random numbers"
"""Last words of `Excuse.why` if the elements depend on random numbers."""


@dataclass(frozen=True, slots=True)
class Excuse:
    """Counts the elements of an output that are not judged: contested, computed from such, or random."""

    elements: int | None
    """Number of elements that are not judged; None if even the shape is undetermined."""
    why: str = ""
    """The operator whose whole output was marked as unspecified, as its effect on elements is unknown; else
    ""."""
    is_whole: bool = False
    """Whether that operator made all elements unspecified."""

    @property
    def is_random(self) -> bool:
        """Whether the elements depend on random numbers, so that there is no correct result."""
        return self.why.endswith(RANDOM)


@dataclass(frozen=True, slots=True)
class ExplainedDifference:
    """The part of the difference between two tensors that rounding explains.

    Attributes:
        precision: the precision whose rounding is considered: "f32", "f16" or "bf16".
        differing: number of elements that differ by more than the tolerance, without contested ones.
        difference: the difference at the worst of these elements.
        bound: the greatest difference that rounding explains at that element.
        is_complete: whether all computations that may raise the bound finished within the time limit.
    """

    precision: str
    differing: int
    difference: float
    bound: float
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class Measure:
    """The differences between two tensors; pairs of values are (subject, reference)."""

    verdict: Verdict
    elements: int = 0
    mismatched: int = 0
    contested: int = 0
    """Number of elements with several allowed values: in a node's output, or in an output that depends on
    it."""
    max_abs: float = 0.0
    """Largest absolute difference; infinite if only one of two elements is finite."""
    max_rel: float = 0.0
    max_ulp: int = 0
    worst: Worst | None = None
    nans: tuple[int, int] = (0, 0)
    infinities: tuple[int, int] = (0, 0)
    tolerance: Tolerance = EXACT
    remark: str = ""
    """Why the tensors could not be compared element by element."""
    excuse: Excuse | None = None
    explanation: ExplainedDifference | None = None
    """What rounding explains; None if that was not measured because the tensors agree well enough."""
    unspecified_in: str = ""
    """Which of two models, `SUBJECT` or `REFERENCE`, does not specify the differing elements; "" if both do.
    """


SUBJECT, REFERENCE = "subject", "reference"
_ULP_LIMIT = 2**63 - 1
"""Largest distance in units in the last place; also stands for the distance to infinity or NaN."""

_UNSIGNED_FLOATS = frozenset({"float8_e8m0fnu"})
"""Floating-point types without a sign bit, by dtype name."""


def measure(
    got: Array,
    expected: Array,
    tolerance: Tolerance,
    *,
    bound: Array | None = None,
    contested: Array | None = None,
) -> Measure:
    """Compare two tensors element by element.

    Any NaN equals any NaN. -0.0 and 0.0 have different bits, but are close under any tolerance.

    Args:
        got: the tensor that is judged.
        expected: the tensor that it is compared with.
        tolerance: applies to every element.
        bound: f64 per element: an additional allowed difference, such as the rounding error of a sum.
        contested: mask of elements that are left out, because the specification allows their value.
    """
    got, expected = in_native_dtype(got), in_native_dtype(expected)
    if got.shape != expected.shape or got.dtype != expected.dtype:
        remark = f"is {got.dtype.name} {show(got.shape)}, "
        remark += f"expected {expected.dtype.name} {show(expected.shape)}"
        return Measure(Verdict.MISMATCH, expected.size, expected.size, remark=remark)
    count = 0 if contested is None else int(np.count_nonzero(contested))
    if not count and are_equal(got, expected):
        return Measure(Verdict.EQUAL, got.size, tolerance=tolerance, **_specials(got, expected))
    rest = ~same_bits(got, expected)
    if contested is not None:
        rest &= ~contested
    if not rest.any():
        verdict = Verdict.CONTESTED if count else Verdict.EQUAL
        return Measure(verdict, got.size, contested=count, tolerance=tolerance, **_specials(got, expected))
    if kind(got) == "string":
        worst = _worst(got, expected, rest, rest)
        return Measure(Verdict.MISMATCH, got.size, int(rest.sum()), count, worst=worst)
    with np.errstate(all="ignore"):
        distance, size = np.where(rest, distances(got, expected), 0.0), magnitudes(expected)
        wrong = elements_beyond(got, expected, tolerance, bound=bound, contested=contested)
        relative = np.where(distance == 0, 0.0, np.where(np.isinf(distance), np.inf, distance / size))
    is_wrong = bool(wrong.any())
    return Measure(
        Verdict.MISMATCH if is_wrong else Verdict.CONTESTED if count else Verdict.CLOSE,
        got.size,
        int(wrong.sum()),
        count,
        float(distance.max()),
        float(relative.max()),
        _ulps(got[rest], expected[rest]),
        _worst(got, expected, wrong if is_wrong else rest, distance),
        tolerance=tolerance,
        **_specials(got, expected),
    )


def elements_beyond(
    got: Array,
    expected: Array,
    tolerance: Tolerance,
    *,
    bound: Array | None = None,
    contested: Array | None = None,
) -> Array:
    """Return a mask of the elements that `measure` would count as differing; both shapes must be equal."""
    rest = ~same_bits(got, expected)
    if contested is not None:
        rest &= ~contested
    if kind(got) == "string":
        return rest
    with np.errstate(all="ignore"):
        limit = tolerance.limits(expected)
        if bound is not None:
            limit = limit + np.where(np.isnan(bound), 0.0, bound)
        return np.asarray(rest & ~(distances(got, expected) <= limit))


def measure_node(
    expected: DetailedResult,
    got: Array,
    reduction: Reduction | None,
    precision: str = "f32",
    requested: Tolerance | None = None,
) -> Measure:
    """Compare a scatter node's output with NumPy's result, where elements may have several allowed values."""
    values = expected.values
    tolerance = requested or default_tolerance(values, precision, is_node=True)
    if reduction is not Reduction.NONE and are_equal(got, values):
        return Measure(Verdict.EQUAL, values.size, tolerance=tolerance)
    is_comparable = got.shape == values.shape and got.dtype == values.dtype
    bits = FRACTION_BITS.get(values.dtype.name)
    rounding = 1.0 if bits is None else float(np.exp2(bits - computed_bits(bits, precision)))
    return measure(
        got,
        values,
        tolerance,
        bound=None if requested else expected.bound_from_values(rounding),
        contested=expected.allows(got, tolerance.absolute, tolerance.relative) if is_comparable else None,
    )


def to_python(element: Any) -> Any:
    """Convert an element of an array to a Python str, int, float, bool or complex."""
    if isinstance(element, str):
        return element
    if isinstance(element, np.generic) and type(element).__module__ == "numpy":
        return element.item()
    return int(element) if kind(np.asarray(element)) in {"signed", "unsigned"} else float(element)


def _wide(array: Array) -> Array:
    """Convert numbers to a type that represents the difference of any two of them."""
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    if kind(array) == "float":
        with np.errstate(invalid="ignore"):  # signalling NaN
            return array.astype(np.float64)
    return array if array.dtype.kind in "iu" else array.astype(np.int64)


def distances(got: Array, expected: Array) -> Array:
    """Return |got - expected| as f64: 0 for two NaN, infinite if only one of the two is finite."""
    left, right = _wide(got), _wide(expected)
    if left.dtype.kind in "iu":
        greater, smaller = np.maximum(left, right), np.minimum(left, right)
        difference: Array = greater.astype(np.uint64) - smaller.astype(np.uint64)
        return difference.astype(np.float64)
    distance = np.abs(left - right)
    same = (left == right) | ((left != left) & (right != right))
    return np.asarray(np.where(np.isnan(distance), np.where(same, 0.0, np.inf), distance))


def _ulps(got: Array, expected: Array) -> int:
    """Return the largest difference of two elements in units in the last place."""
    if got.dtype.kind == "c":
        return 0
    if kind(got) == "float":
        if not (np.isfinite(_wide(got)) & np.isfinite(_wide(expected))).all():
            return _ULP_LIMIT
        got, expected = _ordered(got), _ordered(expected)
    return min(int(distances(got, expected).max()), _ULP_LIMIT)


def _ordered(array: Array) -> Array:
    """Map floating-point numbers to integers of the same order: neighbours differ by 1, both zeros are 0."""
    size = array.dtype.itemsize
    if array.dtype.name in _UNSIGNED_FLOATS:
        return array.view(np.uint8).astype(np.int64)
    bits = array.view(f"i{size}").astype(np.int64)
    least = np.int64(-(1 << (8 * size - 1)))
    return np.where(bits < 0, least - bits, bits)


def _worst(got: Array, expected: Array, candidates: Array, distance: Array) -> Worst:
    """Return the element with the largest distance within the mask `candidates`."""
    ranked = np.where(candidates, distance.astype(np.float64), -1.0)
    place = np.unravel_index(int(np.argmax(ranked)), got.shape)
    return Worst(tuple(map(int, place)), to_python(got[place]), to_python(expected[place]))


def _specials(got: Array, expected: Array) -> dict[str, Any]:
    """Count NaN and infinities in both tensors; return them as keyword arguments of `Measure`."""
    if kind(got) not in INEXACT:
        return {}
    with np.errstate(all="ignore"):
        pairs = [native(array) for array in (got, expected)]
        return {
            "nans": tuple(int(np.isnan(array).sum()) for array in pairs),
            "infinities": tuple(int(np.isinf(array).sum()) for array in pairs),
        }
