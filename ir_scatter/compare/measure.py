"""How far two tensors are apart, element by element, and how far they may be."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from ir_scatter.core.arrays import INEXACT, Array, are_equal, in_own_dtype, kind, native, same_bits
from ir_scatter.core.display import record
from ir_scatter.core.errors import UsageError
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.shapes import show
from ir_scatter.core.suggestions import did_you_mean
from ir_scatter.evaluate.certainty import DetailedResult
from ir_scatter.ops.spec import Reduction


@record()
class Tolerance:
    """How far apart two elements may be: |got - expected| <= absolute + relative * |expected|."""

    absolute: float = 0.0
    relative: float = 0.0

    def limits(self, expected: Array) -> Array:
        sizes = magnitudes(expected)
        return self.absolute + np.where(np.isfinite(sizes), self.relative * sizes, 0.0)


def magnitudes(array: Array) -> Array:
    found: Array = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    return found


EXACT = Tolerance()
FRACTION_BITS = {
    "float64": 52, "float32": 23, "float16": 10, "bfloat16": 7, "float8_e4m3fn": 3, "float8_e4m3fnuz": 3,
    "float8_e5m2": 2, "float8_e5m2fnuz": 2, "float8_e8m0fnu": 0, "float4_e2m1fn": 1, "float6_e2m3fn": 3,
    "float6_e3m2fn": 2, "complex64": 23, "complex128": 52,
}  # fmt: skip
"""Bits of the fraction, by the name of the dtype."""

PRECISION_BITS = {"f16": 10, "bf16": 7, "f32": 23}
_WIDE = 23
"""Types with more bits are not what a precision is asked for: an f64 that is computed as f32 is found."""

_LEAST = {52: 2.0**-1022, 23: 2.0**-126, 7: 2.0**-126, 10: 2.0**-24}
"""By bits: what may be lost as too small. Below the normal numbers many devices know only 0; those of
f16 are numbers like others."""

_DEEP, _SHALLOW = 1024, 32
"""Units in the last place that the output of a model may be off, for types of many and of few bits."""
_SAMPLE = 1 << 16


def default_tolerance(array: Array, precision: str = "", *, is_node: bool = False) -> Tolerance:
    """Return what is allowed where nobody asked for anything else.

    Whole numbers, booleans and strings must be equal. Of a node, beside what rounding makes of its
    reduction: it moves elements as they are, and in a coarser precision each is rounded. Of a model, whatever
    operators are in between, a share of each element, and the same share of an element of middling
    size, as sums of large numbers that cancel out leave the rounding of the large ones.

    The precision is what was computed in, "f32", "f16", "bf16"; of others nothing is known.
    """
    own = FRACTION_BITS.get(array.dtype.name)
    if own is None:
        return EXACT
    bits = computed_bits(own, precision)
    if is_node:
        return Tolerance(_LEAST.get(bits, 0.0), 2.0**-bits if bits < own else 0.0)
    share = (_DEEP if bits >= _WIDE else _SHALLOW) * 2.0 ** -(bits + 1)
    return Tolerance(share * _middling(array), share)


def computed_bits(own: int, precision: str) -> int:
    """Return the bits of the fraction that a computation has: those of the type, or fewer."""
    return own if own > _WIDE else min(own, PRECISION_BITS.get(precision, own))


def coarser(*precisions: str) -> str:
    return min(precisions, key=lambda word: PRECISION_BITS.get(word, 99))


def _middling(array: Array) -> float:
    """Return the median magnitude of the elements that are finite and not 0; of many a sample."""
    flat = array.reshape(-1)
    flat = flat[:: max(flat.size // _SAMPLE, 1)]
    with np.errstate(all="ignore"):
        sizes = magnitudes(flat)
    known = sizes[np.isfinite(sizes) & (sizes > 0)]
    return float(np.median(known)) if known.size else 1.0


@dataclass(init=False, eq=False)
class Tolerances:
    """The tolerances that the user asks for, by the name of an output or node; "" for all others."""

    named: Mapping[str, Tolerance]

    def __init__(self, texts: Sequence[str] = ()) -> None:
        """Read `NAME=ABS,REL` or `ABS,REL`; raise UsageError if a text is no tolerance."""
        self.named = dict(map(_parse, texts))

    def find(self, *names: str | None) -> Tolerance | None:
        """Return the tolerance that was asked for by one of these names, or for all; None without one."""
        known = (self.named[name] for name in (*names, "") if name is not None and name in self.named)
        return next(known, None)

    def demand_known(self, names: Collection[str]) -> None:
        """Raise UsageError if a tolerance is for something that does not exist."""
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
        raise UsageError(f"{text!r} is no tolerance, expected OUTPUT=ABSOLUTE,RELATIVE")
    return name, Tolerance(absolute, relative)


class Verdict(StrEnum):
    """What is said of one tensor, the better ones first."""

    EQUAL = "equal"
    """Bit by bit, NaN being equal to NaN."""
    CLOSE = "close"
    """Within the tolerance."""
    CONTESTED = "contested"
    """Several updates meet without a reduction, or NaN and numbers in a min or max: the value is allowed."""
    NONDETERMINISTIC = "nondeterministic"
    """The same runner gives another result for the same inputs."""
    MISMATCH = "mismatch"

    @property
    def is_difference(self) -> bool:
        return self in {Verdict.NONDETERMINISTIC, Verdict.MISMATCH}


@dataclass(frozen=True, slots=True)
class Worst:
    """The element that is farthest off: its position, and both values of it."""

    index: tuple[int, ...]
    got: Any
    expected: Any

    @property
    def words(self) -> tuple[str, str, str]:
        """What reports print: "[0, 1] is", or "it is" of a scalar; and both values."""
        place = f"{list(self.index)} is" if self.index else "it is"
        return place, shown(self.got), shown(self.expected)


def shown(element: object) -> str:
    return f"{element:.9g}" if isinstance(element, float) else str(element)


RANDOM = "draws random numbers"
"""How the reason of an excuse ends that is no contested element."""


@dataclass(frozen=True, slots=True)
class Excuse:
    """What of an output was not judged, because contested elements come before it."""

    elements: int | None
    """None if not even the shape is certain."""
    why: str = ""
    """Why tensors are excused as a whole, and not the single elements that a contested one reaches."""

    @property
    def is_whole(self) -> bool:
        return bool(self.why)

    @property
    def is_random(self) -> bool:
        """Whether an operator draws random numbers, so that no run tells what is right."""
        return self.why.endswith(RANDOM)


@dataclass(frozen=True, slots=True)
class Measure:
    """How two tensors differ; pairs are of the subject and the reference."""

    verdict: Verdict
    elements: int = 0
    mismatched: int = 0
    contested: int = 0
    """Of a node, elements that the document leaves open; of an output, those that such a one reaches."""
    max_abs: float = 0.0
    """Infinite where only one is finite."""
    max_rel: float = 0.0
    max_ulp: int = 0
    worst: Worst | None = None
    nans: tuple[int, int] = (0, 0)
    infinities: tuple[int, int] = (0, 0)
    tolerance: Tolerance = EXACT
    remark: str = ""
    """Why tensors could not be compared element by element."""
    excuse: Excuse | None = None
    open_once: str = ""
    """Which of two models does not specify what differs, where the other one does: `SUBJECT`, `REFERENCE`."""


SUBJECT, REFERENCE = "subject", "reference"
_ULP_LIMIT = 2**63 - 1
_WITHOUT_SIGN = frozenset({"float8_e8m0fnu"})


def measure(
    got: Array,
    expected: Array,
    tolerance: Tolerance,
    *,
    bound: Array | None = None,
    contested: Array | None = None,
) -> Measure:
    """Compare two tensors.

    NaN is equal to NaN. -0.0 and 0.0 are not the same bits, and close under any tolerance. An element may
    be farther off by its `bound`, because rounding depends on the order; `contested` ones, for which the
    document allows the value that was got, are not compared.
    """
    got, expected = in_own_dtype(got), in_own_dtype(expected)
    if got.shape != expected.shape or got.dtype != expected.dtype:
        what = f"{got.dtype.name} {show(got.shape)}, expected {expected.dtype.name} {show(expected.shape)}"
        return Measure(Verdict.MISMATCH, expected.size, expected.size, remark=f"is {what}")
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
        limit = tolerance.limits(expected)
        if bound is not None:
            limit = limit + np.where(np.isnan(bound), 0.0, bound)
        wrong = rest & ~(distance <= limit)
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


def measure_node(
    expected: DetailedResult,
    got: Array,
    reduction: Reduction | None,
    precision: str = "f32",
    requested: Tolerance | None = None,
) -> Measure:
    """Return how the output of a scatter node differs from its document, which may allow several values."""
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


def plain(element: Any) -> Any:
    """Return an element as Python prints it."""
    if isinstance(element, str):
        return element
    if isinstance(element, np.generic) and type(element).__module__ == "numpy":
        return element.item()
    return int(element) if kind(np.asarray(element)) in {"signed", "unsigned"} else float(element)


def _wide(array: Array) -> Array:
    """Return numbers in a type in which their differences can be said."""
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    if kind(array) == "float":
        with np.errstate(invalid="ignore"):  # a NaN that signals
            return array.astype(np.float64)
    return array if array.dtype.kind in "iu" else array.astype(np.int64)


def distances(got: Array, expected: Array) -> Array:
    """Return |got - expected| as f64: 0 for NaN and NaN, infinite where only one is finite."""
    left, right = _wide(got), _wide(expected)
    if left.dtype.kind in "iu":
        greater, smaller = np.maximum(left, right), np.minimum(left, right)
        found: Array = (greater.astype(np.uint64) - smaller.astype(np.uint64)).astype(np.float64)
        return found
    distance = np.abs(left - right)
    same = (left == right) | ((left != left) & (right != right))
    return np.asarray(np.where(np.isnan(distance), np.where(same, 0.0, np.inf), distance))


def _ulps(got: Array, expected: Array) -> int:
    """Return the greatest number of representable values between two of some elements."""
    if got.dtype.kind == "c":
        return 0
    if kind(got) == "float":
        if not (np.isfinite(_wide(got)) & np.isfinite(_wide(expected))).all():
            return _ULP_LIMIT
        got, expected = _ordered(got), _ordered(expected)
    return min(int(distances(got, expected).max()), _ULP_LIMIT)


def _ordered(array: Array) -> Array:
    """Number the values of a floating-point type in their order; both zeros are 0."""
    size = array.dtype.itemsize
    if array.dtype.name in _WITHOUT_SIGN:
        return array.view(np.uint8).astype(np.int64)
    bits = array.view(f"i{size}").astype(np.int64)
    least = np.int64(-(1 << (8 * size - 1)))
    return np.where(bits < 0, least - bits, bits)


def _worst(got: Array, expected: Array, shown: Array, distance: Array) -> Worst:
    """Return the element that is farthest off among those that are shown."""
    ranked = np.where(shown, distance.astype(np.float64), -1.0)
    place = np.unravel_index(int(np.argmax(ranked)), got.shape)
    return Worst(tuple(map(int, place)), plain(got[place]), plain(expected[place]))


def _specials(got: Array, expected: Array) -> dict[str, Any]:
    if kind(got) not in INEXACT:
        return {}
    with np.errstate(all="ignore"):
        pairs = [native(array) for array in (got, expected)]
        return {
            "nans": tuple(int(np.isnan(array).sum()) for array in pairs),
            "infinities": tuple(int(np.isinf(array).sum()) for array in pairs),
        }
