"""Kernels of matrix products: MatMul, Gemm, Einsum, their integer forms, determinants and inverses."""

import numpy as np

from ir_scatter.core.arrays import Array, kind
from ir_scatter.core.shapes import show
from ir_scatter.ops.general_kernels.base import (
    NUMERIC,
    REAL,
    WHOLE,
    KernelCase,
    UnsupportedCase,
    narrow,
    require_kind,
    require_same_type,
    widen,
)

_EXACT = 1 << 53
"""Integers below this are exact in f64."""


def matmul(case: KernelCase) -> Array:
    """Multiply matrices. OpenVINO's attributes may transpose operands of rank 2 or more."""
    left, right = case.arrays(2)
    require_kind(NUMERIC, left, right)
    type = require_same_type(left, right)
    return narrow(
        product(case, _turned(case, widen(left), "transpose_a"), _turned(case, widen(right), "transpose_b")),
        type,
    )


def _turned(case: KernelCase, matrix: Array, word: str) -> Array:
    return matrix.swapaxes(-1, -2) if case.attributes.boolean(word, False) and matrix.ndim > 1 else matrix


def product(case: KernelCase, left: Array, right: Array) -> Array:
    """Return the product of two stacks of matrices, after a check of the size of the output."""
    if not left.ndim or not right.ndim:
        raise UnsupportedCase("a scalar is not a matrix")
    rows = left.shape[-2:-1]
    columns = right.shape[-1:] if right.ndim > 1 else ()
    case.reserve((*np.broadcast_shapes(left.shape[:-2], right.shape[:-2]), *rows, *columns))
    if left.dtype.kind in "iu":
        return _integer_product(left, right)
    if right.ndim == 2 and left.ndim > 2:  # one product of matrices is faster than a stack of them
        flat = left.reshape(-1, left.shape[-1]) @ right
        return flat.reshape(*left.shape[:-1], right.shape[-1])
    return np.asarray(np.matmul(left, right))


def _integer_product(left: Array, right: Array) -> Array:
    """Multiply integers; in f64, which is far faster, if all sums are exact there."""
    bound = [float(np.abs(operand.astype(np.float64)).max(initial=0)) for operand in (left, right)]
    if bound[0] * bound[1] * max(left.shape[-1], 1) < _EXACT:
        exact = np.matmul(left.astype(np.float64), right.astype(np.float64))
        return np.asarray(exact).astype(np.int64).astype(left.dtype)
    return np.asarray(np.matmul(left, right))


def gemm(case: KernelCase) -> Array:
    """Return alpha * A * B + beta * C. For integers alpha and beta must be integers."""
    left, right = case.arrays(2)
    require_kind(NUMERIC, left, right)
    type = require_same_type(left, right)
    a = widen(left).T if case.attributes.boolean("transA", False) else widen(left)
    b = widen(right).T if case.attributes.boolean("transB", False) else widen(right)
    if a.ndim != 2 or b.ndim != 2:
        raise UnsupportedCase(f"the matrices are {show(left.shape)} and {show(right.shape)}")
    alpha, beta = (case.attributes.number(name, 1.0) for name in ("alpha", "beta"))
    if kind(left) != "float" and not (alpha.is_integer() and beta.is_integer()):
        raise UnsupportedCase("alpha or beta is a fraction, and the matrices are of integers")
    total = product(case, a, b)
    if alpha != 1:
        total = total * total.dtype.type(alpha)
    if case.has(2):
        added = case.array(2)
        require_same_type(left, added)
        addend = np.broadcast_to(widen(added), total.shape)
        total = total + (addend if beta == 1 else addend * total.dtype.type(beta))
    return narrow(total, type)


def matmul_integer(case: KernelCase) -> Array:
    """Multiply 8-bit integers, after subtracting their zero points, with an i32 result."""
    left, right = case.arrays(2)
    require_kind(WHOLE, left, right)
    shifted = [
        operand.astype(np.int64) - zero_point(case, port, operand, row)
        for port, operand, row in ((2, left, True), (3, right, False))
    ]
    return product(case, *shifted).astype(np.int32)


def zero_point(case: KernelCase, port: int, operand: Array, is_of_rows: bool) -> Array:
    """Return the zero point of a matrix, a single one or one for each row or column."""
    if not case.has(port):
        return np.zeros((), np.int64)
    point = widen(case.array(port)).astype(np.int64)
    if point.ndim == 1 and point.size > 1 and is_of_rows:
        return point[:, None]
    return point.reshape(()) if point.size == 1 else point


def einsum(case: KernelCase) -> Array:
    """Add up products along the axes that an equation names."""
    arrays = case.arrays()
    require_kind(NUMERIC, *arrays)
    type = require_same_type(*arrays)
    equation = str(case.attributes.value("equation")).replace(" ", "")
    sizes = _label_sizes(equation, arrays)
    if "->" in equation and "..." not in equation:
        case.reserve([sizes[label] for label in equation.partition("->")[2]])
    output = np.einsum(equation, *map(widen, arrays), optimize="greedy" if len(arrays) > 1 else False)
    return narrow(output, type)


def _label_sizes(equation: str, arrays: list[Array]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for term, array in zip(equation.partition("->")[0].split(","), arrays, strict=True):
        if "..." not in term:
            sizes |= {
                label: max(size, sizes.get(label, 0)) for label, size in zip(term, array.shape, strict=True)
            }
    return sizes


def determinant(case: KernelCase) -> Array:
    data = case.array(0)
    require_kind(REAL, data)
    return narrow(np.linalg.det(widen(data)), data.dtype)


def inverse(case: KernelCase) -> Array:
    """Return inverses; with OpenVINO's `adjoint` the adjugates (inverse times determinant)."""
    data = case.array(0)
    require_kind(REAL, data)
    wide = widen(data)
    inverses = np.linalg.inv(wide)
    if case.attributes.boolean("adjoint", False):
        inverses = inverses * np.linalg.det(wide)[..., None, None]
    return narrow(inverses, data.dtype)
