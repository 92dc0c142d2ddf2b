"""Narrow floating-point types are rounded once, wherever f64 lies between two of their numbers."""

from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest

from ir_scatter.ops.kernels.apply import round_once
from tests.ops.naive_scatter import nearest

KINDS = [
    np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz, ml_dtypes.float6_e2m3fn,
    ml_dtypes.float6_e3m2fn, ml_dtypes.float4_e2m1fn,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_middle_and_what_lies_beside_it(kind: Any) -> None:
    """A number just beside the middle of two is what rounding twice gets wrong."""
    dtype, finfo = np.dtype(kind), cast(Any, ml_dtypes.finfo)
    with np.errstate(all="ignore"):
        codes = np.arange(2 ** int(finfo(kind).bits)).astype(f"u{dtype.itemsize}")
        every = np.unique(codes.view(dtype).astype(np.float64))
    every = every[np.isfinite(every)]
    chosen = np.random.default_rng(2).integers(0, len(every) - 1, 400)
    middle = (every[chosen] + every[chosen + 1]) / 2
    values = np.concatenate([middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf)])
    found = round_once(values, dtype).astype(np.float64)
    for value, rounded in zip(values, found, strict=True):
        expected = float(nearest(float(value), dtype))
        assert rounded == expected, f"{value!r} became {rounded}, expected {expected}"
