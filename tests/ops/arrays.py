"""Arrays that tests write often, and the kernels of general operators on them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ir_scatter.ops.general import find_computed
from ir_scatter.ops.general_kernels import compute

SIGNS = np.array([-7, 7, -7, 7, -8, 5], np.int32)
DIVISORS = np.array([2, -2, -2, 2, 3, 5], np.int32)
REALS = np.array([-2.5, -0.5, 0.0, 0.5, 1.5, 7.25], np.float32)
FLAGS = np.array([[True, False, True], [False, False, True]])


def typed(dtype: str, value: Any) -> Any:
    return np.array(value, dtype)


def f32(value: Any) -> Any:
    return np.array(value, np.float32)


def i32(value: Any) -> Any:
    return np.array(value, np.int32)


def i64(*numbers: Any) -> Any:
    return np.array(numbers, np.int64)


def count(*shape: int, dtype: Any = np.int32) -> Any:
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def run(
    domain: str,
    type: str,
    *inputs: Any,
    opset: int | None = 18,
    outputs: int = 1,
    limit: int | None = None,
    **attributes: Any,
) -> tuple[Any, ...]:
    """Compute a general operator; None stands for an input that is left out."""
    op = find_computed(domain, type)
    assert op is not None
    arrays = [None if value is None else np.asarray(value) for value in inputs]
    return compute(op, domain, arrays, attributes, opset=opset, output_count=outputs, element_limit=limit)


def demand_same(found: Sequence[Any], expected: Sequence[Any]) -> None:
    assert len(found) == len(expected)
    for left, right in zip(found, expected, strict=True):
        assert left.dtype == right.dtype
        assert left.shape == np.shape(right)
        if "float" in left.dtype.name:
            left, right = left.astype(np.float64), right.astype(np.float64)
        np.testing.assert_array_equal(left, right)


def demand_close(found: Sequence[Any], expected: Sequence[Any], scale: float = 1e-5) -> None:
    """Demand types, shapes, and numbers that differ by at most a share of the largest one."""
    assert len(found) == len(expected)
    for left, right in zip(found, expected, strict=True):
        right = np.asarray(right)
        assert left.dtype == right.dtype
        assert left.shape == right.shape
        if "float" not in left.dtype.name:
            np.testing.assert_array_equal(left, right)
            continue
        left, right = left.astype(np.float64), right.astype(np.float64)
        largest = np.abs(right[np.isfinite(right)]).max(initial=1e-30)
        np.testing.assert_allclose(left, right, rtol=scale, atol=scale * largest)
