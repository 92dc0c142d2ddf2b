"""Narrow floating-point types are rounded once, wherever f64 lies between two of their numbers."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ir_scatter.ops.kernels.reduce import round_once
from tests.ops.naive_scatter import nearest

GREATEST = float(np.finfo(np.float32).max)
KINDS = [
    np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz, ml_dtypes.float6_e2m3fn,
    ml_dtypes.float6_e3m2fn, ml_dtypes.float4_e2m1fn,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_middle_and_what_lies_beside_it(kind: Any) -> None:
    """A number just beside the middle of two is what rounding twice gets wrong."""
    dtype = np.dtype(kind)
    generator = np.random.default_rng(2)
    codes = generator.integers(0, 2 ** (8 * dtype.itemsize), 400).astype(f"u{dtype.itemsize}")
    if dtype.itemsize == 1 and ml_bits(kind) < 8:
        codes %= 2 ** ml_bits(kind)
    with np.errstate(all="ignore"):
        numbers = np.unique(codes.view(dtype).astype(np.float64))
        every = np.unique(np.arange(2 ** (8 * dtype.itemsize)).astype(codes.dtype).view(dtype).astype(float))
    numbers, every = numbers[np.isfinite(numbers)], every[np.isfinite(every)]
    above = every[np.minimum(np.searchsorted(every, numbers) + 1, len(every) - 1)]
    middle = (numbers + above) / 2
    values = np.concatenate([middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf)])
    found = round_once(values, dtype).astype(np.float64)
    for value, rounded in zip(values, found, strict=True):
        expected = float(nearest(float(value), dtype))
        assert rounded == expected, f"{value!r} became {rounded}, expected {expected}"


def ml_bits(kind: Any) -> int:
    finfo: Any = ml_dtypes.finfo
    return int(finfo(kind).bits)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_too_great_is_what_a_cast_makes_of_it(kind: Any) -> None:
    with np.errstate(all="ignore"):
        values = np.array([1e300, -1e300, np.inf, -np.inf, np.nan])
        expected = np.array([GREATEST, -GREATEST, np.inf, -np.inf, np.nan], np.float32).astype(kind)
        found = round_once(values, np.dtype(kind))
    assert found.tobytes() == expected.tobytes() or np.array_equal(
        found.astype(float), expected.astype(float), equal_nan=True
    )
