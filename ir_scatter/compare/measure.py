"""How far two tensors are apart, element by element."""

from typing import Any

import numpy as np

from ir_scatter.compare.result import Measure, Verdict, Worst
from ir_scatter.compare.tolerance import Tolerance
from ir_scatter.core.arrays import Array, in_own_dtype, kind
from ir_scatter.core.shapes import show

_ULP_LIMIT = 2**63 - 1
_WITHOUT_SIGN = frozenset({"float8_e8m0fnu"})
_INEXACT = frozenset({"float", "complex"})


def are_equal(got: Array, expected: Array) -> bool:
    """Tell whether two arrays have the same type, shape and bits, all NaN being the same."""
    got, expected = in_own_dtype(got), in_own_dtype(expected)
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return False
    if not got.dtype.hasobject:  # bytes are compared at once
        left, right = (np.ascontiguousarray(one).reshape(-1).view(np.uint8) for one in (got, expected))
        if np.array_equal(left, right):
            return True
    return bool(_same_bits(got, expected).all())


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
    rest = ~_same_bits(got, expected)
    if contested is not None:
        rest &= ~contested
    if not rest.any():
        verdict = Verdict.CONTESTED if count else Verdict.EQUAL
        return Measure(verdict, got.size, contested=count, tolerance=tolerance, **_specials(got, expected))
    if kind(got) == "string":
        worst = _worst(got, expected, rest, rest)
        return Measure(Verdict.MISMATCH, got.size, int(rest.sum()), count, worst=worst)
    with np.errstate(all="ignore"):
        left, right = _wide(got), _wide(expected)
        distance = np.where(rest, _distance(left, right), 0.0)
        size = np.abs(right.astype(np.float64) if right.dtype.kind in "iu" else right).astype(np.float64)
        limit = tolerance.absolute + np.where(np.isfinite(size), tolerance.relative * size, 0.0)
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


def plain(element: Any) -> Any:
    """Return an element as Python prints it."""
    if isinstance(element, str):
        return element
    if isinstance(element, np.generic) and type(element).__module__ == "numpy":
        return element.item()
    return int(element) if kind(np.asarray(element)) in {"signed", "unsigned"} else float(element)


def _same_bits(got: Array, expected: Array) -> Array:
    """Tell where two arrays have the same bits, or both are NaN."""
    if kind(got) not in _INEXACT:
        return np.asarray(got == expected)
    with np.errstate(all="ignore"):
        same = (got == expected) & (np.signbit(_native(got).real) == np.signbit(_native(expected).real))
        return np.asarray(same | ((got != got) & (expected != expected)))


def _native(array: Array) -> Array:
    """Return f8 and bf16 as f32."""
    return array if array.dtype.kind in "fc" else array.astype(np.float32)


def _wide(array: Array) -> Array:
    """Return numbers in a type in which their differences can be said."""
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    if kind(array) == "float":
        return array.astype(np.float64)
    return array if array.dtype.kind in "iu" else array.astype(np.int64)


def _distance(left: Array, right: Array) -> Array:
    """Return the absolute difference as f64; infinite where one is NaN or only one is infinite."""
    if left.dtype.kind in "iu":
        greater, smaller = np.maximum(left, right), np.minimum(left, right)
        found: Array = (greater.astype(np.uint64) - smaller.astype(np.uint64)).astype(np.float64)
        return found
    distance = np.abs(left - right)
    return np.asarray(np.where(np.isnan(distance), np.where(left == right, 0.0, np.inf), distance))


def _ulps(got: Array, expected: Array) -> int:
    """Return the greatest number of representable values between two of some elements."""
    if got.dtype.kind == "c":
        return 0
    left, right = _wide(got), _wide(expected)
    if kind(got) == "float":
        if not (np.isfinite(left) & np.isfinite(right)).all():
            return _ULP_LIMIT
        left, right = _ordered(got), _ordered(expected)
    return min(int(_distance(left, right).max()), _ULP_LIMIT)


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
    return Worst(tuple(int(part) for part in place), plain(got[place]), plain(expected[place]))


def _specials(got: Array, expected: Array) -> dict[str, Any]:
    if kind(got) not in _INEXACT:
        return {}
    with np.errstate(all="ignore"):
        pairs = [_native(array) for array in (got, expected)]
        return {
            "nans": tuple(int(np.isnan(array).sum()) for array in pairs),
            "infinities": tuple(int(np.isinf(array).sum()) for array in pairs),
        }
