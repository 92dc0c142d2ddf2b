"""Element by element: comparisons, booleans, and the choice between two tensors."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ir_scatter.core.shapes import show
from ir_scatter.ops.general_kernels.broadcasting import (
    broadcast_shape,
    elementwise_shape,
    require_broadcast_to,
)
from ir_scatter.ops.general_kernels.case import Array, Case, Kernel, UnsupportedCase, kind, require_same_type
from ir_scatter.ops.general_kernels.conversion import widen


def comparison(function: Callable[[Array, Array], Any]) -> Kernel:
    """Make a kernel of a comparison of two arrays of one type."""

    def kernel(case: Case) -> Array:
        left, right = case.array(0), case.array(1)
        require_same_type(left, right)
        if kind(left) in {"string", "complex"}:
            raise UnsupportedCase(f"the inputs are {left.dtype}, expected numbers or booleans")
        elementwise_shape(case, left, right)
        return np.asarray(function(widen(left), widen(right)))

    return kernel


def logical(function: Callable[[Array, Array], Any]) -> Kernel:
    """Make a kernel of a function of two arrays of booleans."""

    def kernel(case: Case) -> Array:
        left, right = case.array(0), case.array(1)
        _require_boolean(left, right)
        elementwise_shape(case, left, right)
        return np.asarray(function(left, right))

    return kernel


def logical_not(case: Case) -> Array:
    """Turn true into false and false into true."""
    _require_boolean(case.array(0))
    return np.asarray(np.logical_not(case.array(0)))


def select(case: Case) -> Array:
    """Choose by a condition that broadcasts to the other two, which broadcast to each other."""
    condition, chosen, other = (case.array(index) for index in range(3))
    _require_boolean(condition)
    require_same_type(chosen, other)
    target = broadcast_shape(chosen.shape, other.shape)
    require_broadcast_to(condition.shape, target)
    elementwise_shape(case, condition, chosen, other)
    return np.asarray(np.where(condition, chosen, other))


def where(case: Case) -> Array:
    """Choose by a condition; all three inputs broadcast to each other."""
    condition, chosen, other = (case.array(index) for index in range(3))
    _require_boolean(condition)
    require_same_type(chosen, other)
    case.reserve(broadcast_shape(condition.shape, chosen.shape, other.shape))
    return np.asarray(np.where(condition, chosen, other))


def _require_boolean(*arrays: Array) -> None:
    for array in arrays:
        if kind(array) != "boolean":
            raise UnsupportedCase(
                f"an input of shape {show(array.shape)} is {array.dtype}, expected booleans"
            )
