"""Kernels bound to the types and shapes of their inputs, for nodes that are computed repeatedly.

A node in the body of a loop has the same attributes, and usually the same types and shapes, in every
iteration. `bind` checks them once, with a sample that the ordinary kernel has computed. It returns a function
that only computes:

    Gather, indices i64 [1]    data[3:4]               instead of checks, positions and advanced indexing
    Div, i64 [] by 100         Python's integers       instead of three ufuncs

A bound function returns the outputs of the ordinary kernel, bit for bit, or raises. Illegal values (a divisor
of 0, an index out of range) are left to the ordinary kernel, which has the error messages. An operator
without a binder is bound to its ordinary kernel, with attributes that were parsed once.
"""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ir_scatter.core.arrays import Array, kind
from ir_scatter.ops.general_kernels.base import Kernel, KernelCase

Bound: TypeAlias = Callable[..., Any]
"""Returns the output of a node, or a tuple of several, for its inputs."""

_PLAIN = frozenset(np.dtype(name) for name in ("?", "b", "B", "h", "H", "i", "I", "q", "Q", "f", "d"))
"""Types that NumPy computes in without widening: all of its own but f16 and complex ones."""

_INDICES = frozenset(np.dtype(name) for name in ("b", "B", "h", "H", "i", "I", "q"))
"""Types of indices that NumPy converts to its own without loss."""


class Unbound(Exception):
    """Error: a bound function does not support these values, but the ordinary kernel may."""


class Sample(NamedTuple):
    """Inputs of a node that its ordinary kernel has computed.

    Attributes:
        case: the inputs, in their own dtypes, and the attributes.
        fixed: for each input whether it has the same elements in every call.
        output: the first output.
        argument: the argument of the kernel's maker in the operator's row: `np.add`.
    """

    case: KernelCase
    fixed: tuple[bool, ...]
    output: Array
    argument: Any

    @property
    def inputs(self) -> tuple[Array | None, ...]:
        return self.case.inputs

    def are_fixed(self, first: int) -> bool:
        """Return whether all inputs from number `first` on are fixed or missing."""
        pairs = zip(self.inputs[first:], self.fixed[first:], strict=True)
        return all(is_fixed or array is None for array, is_fixed in pairs)


def bind(name: str, kernel: Kernel, sample: Sample) -> tuple[Bound, bool]:
    """Return the bound function of a node, and whether the types and shapes of its outputs never change.

    Args:
        name: the name of the kernel, or of its maker: "arithmetic.binary".
        kernel: the ordinary kernel.
        sample: inputs that the ordinary kernel has computed.
    """
    binder = _BINDERS.get(name)
    arrays = [array for array in (*sample.inputs, sample.output) if array is not None]
    is_plain = all(array.dtype in _PLAIN and type(array) is np.ndarray for array in arrays)
    if binder is not None and is_plain and sample.case.output_count <= 1:
        function = binder(sample)
        if function is not None and _is_right(function, sample):
            return function, True
    return _ordinary(kernel, sample.case), False


def _is_right(function: Bound, sample: Sample) -> bool:
    """Return whether a bound function returns the sample's output."""
    try:
        output = function(*sample.inputs)
    except Exception:  # of NumPy, or of the binder's own conversions
        return False
    expected = sample.output
    is_alike = (
        type(output) is np.ndarray and output.dtype == expected.dtype and output.shape == expected.shape
    )
    return is_alike and output.tobytes() == expected.tobytes()


def _ordinary(kernel: Kernel, case: KernelCase) -> Bound:
    attributes, is_onnx, opset = case.attributes, case.is_onnx, case.opset
    count, limit = case.output_count, case.element_limit

    def compute(*inputs: Array | None) -> Any:
        outputs = kernel(KernelCase(inputs, attributes, is_onnx, opset, count, limit))
        if isinstance(outputs, tuple):
            return tuple(map(np.asarray, outputs))
        return np.asarray(outputs)

    return compute


def _as_array(function: Bound, sample: Sample) -> Bound:
    """Return a ufunc that returns an array instead of a number if the output has rank 0."""
    if sample.output.ndim:
        return function
    if len(sample.inputs) == 1:
        return lambda data: function(data)[...]
    return lambda left, right: function(left, right)[...]


# Elementwise.


def _bind_ufunc(sample: Sample) -> Bound | None:
    count = len(sample.inputs)
    return (
        _as_array(sample.argument, sample) if isinstance(sample.argument, np.ufunc) and count == 2 else None
    )


def _bind_unary(sample: Sample) -> Bound | None:
    function, data = sample.argument, sample.inputs[0]
    assert data is not None
    if isinstance(function, np.ufunc):
        return _as_array(function, sample)
    if function.__name__ == "relu":
        zero = data.dtype.type(0)
        return _as_array(lambda data: np.maximum(data, zero), sample)
    if function.__name__ in {"floor", "ceiling", "square_root"} and kind(data) == "float":
        names = {"floor": np.floor, "ceiling": np.ceil, "square_root": np.sqrt}
        return _as_array(names[function.__name__], sample)
    return None


def _bind_not(sample: Sample) -> Bound:
    return _as_array(np.logical_not, sample)


def _bind_select(sample: Sample) -> Bound:
    return lambda condition, if_true, if_false: np.asarray(np.where(condition, if_true, if_false))


def _divisor(sample: Sample) -> int | None:
    """Return the divisor of an integer division if it is a fixed number other than 0; else None."""
    divisor = sample.inputs[1]
    is_one = divisor is not None and divisor.size == 1 and sample.output.size == 1 and sample.fixed[1]
    return (int(divisor.item()) or None) if is_one and divisor is not None else None


def _bind_divide(sample: Sample) -> Bound | None:
    if kind(sample.output) == "float":
        return _as_array(np.divide, sample)
    divisor, rounds_down = (
        _divisor(sample),
        sample.case.attributes.boolean("m_pythondiv", not sample.case.is_onnx),
    )
    if divisor is None:
        return None

    def truncate(number: int) -> int:
        quotient = number // divisor
        return quotient + 1 if quotient < 0 and quotient * divisor != number else quotient

    return _of_integers((lambda number: number // divisor) if rounds_down else truncate, sample)


def _bind_modulo(sample: Sample) -> Bound | None:
    truncates = sample.case.attributes.boolean("fmod", False)
    if kind(sample.output) == "float":
        return _as_array(np.fmod if truncates else np.remainder, sample)
    divisor = _divisor(sample)
    if divisor is None or truncates:
        return None
    return _of_integers(lambda number: number % divisor, sample)


def _of_integers(function: Callable[[int], int], sample: Sample) -> Bound | None:
    """Return a bound function for an output of one integer; NumPy refuses numbers beyond its type."""
    dtype, rank = sample.output.dtype, sample.output.ndim
    if rank == 0:
        return lambda left, right: np.array(function(left.item()), dtype)
    if rank == 1:
        return lambda left, right: np.array([function(left.item())], dtype)
    return None


def _bind_convert(sample: Sample) -> Bound | None:
    data, destination = sample.inputs[0], sample.output.dtype
    assert data is not None
    if not sample.are_fixed(1):
        return None
    if data.dtype == destination:
        return lambda data, *_: data
    if destination == np.bool_:
        return lambda data, *_: np.asarray(data != 0)
    if kind(data) == "float" and kind(sample.output) != "float":
        return None  # numbers that do not fit are refused
    return lambda data, *_: data.astype(destination)


# Views, and joined arrays.


def _bind_view(sample: Sample) -> Bound | None:
    shape = sample.output.shape
    return (lambda data, *_: data.reshape(shape)) if sample.are_fixed(1) else None


def _bind_identity(sample: Sample) -> Bound:
    return lambda data: data


def _bind_transpose(sample: Sample) -> Bound | None:
    data = sample.inputs[0]
    assert data is not None
    if not sample.are_fixed(1):
        return None
    order = sample.case.integers(1, "perm", default=()) or list(range(data.ndim))[::-1]
    return lambda data, *_: data.transpose(order)


def _bind_concat(sample: Sample) -> Bound:
    axis = sample.case.attributes.integer("axis")
    return lambda *arrays: np.concatenate(arrays, axis)


def _bind_constant(sample: Sample) -> Bound:
    output = sample.output
    return lambda *_: output


# Selected elements.


def _index(number: int, size: int, *, wraps: bool) -> int:
    """Return an index as a position of 0 or more; raises Unbound if it is out of range."""
    position = number + size if wraps and number < 0 else number
    if not 0 <= position < size:
        raise Unbound
    return position


def _bind_gather(sample: Sample) -> Bound | None:
    case, (data, indices) = sample.case, sample.inputs[:2]
    assert data is not None
    assert indices is not None
    if not sample.are_fixed(2) or case.attributes.integer("batch_dims", 0) or indices.dtype not in _INDICES:
        return None
    axis = (case.attributes.integer("axis", 0) if case.is_onnx else case.integer(2)) % data.ndim
    wraps, size, before = case.is_onnx or case.is_since(8), data.shape[axis], (slice(None),) * axis
    if indices.size == 1 and indices.ndim == 0:
        return lambda data, indices, *_: data[(*before, _index(indices.item(), size, wraps=wraps), ...)]
    if indices.size == 1 and indices.ndim == 1:

        def one(data: Array, indices: Array, *_: Array) -> Array:
            position = _index(indices.item(), size, wraps=wraps)
            return data[(*before, slice(position, position + 1))]

        return one

    def several(data: Array, indices: Array, *_: Array) -> Array:
        if not wraps and indices.size and indices.min() < 0:
            raise Unbound
        return data.take(indices, axis)

    return several


def _bind_gather_elements(sample: Sample) -> Bound | None:
    case, (data, indices) = sample.case, sample.inputs[:2]
    assert data is not None
    assert indices is not None
    if indices.size != 1 or indices.dtype not in _INDICES:
        return None
    axis = case.attributes.integer("axis", 0 if case.is_onnx else None) % data.ndim
    size, wraps, rank = data.shape[axis], case.is_onnx, data.ndim
    before, after = (slice(0, 1),) * axis, (slice(0, 1),) * (rank - axis - 1)

    def one(data: Array, indices: Array) -> Array:
        position = _index(indices.item(), size, wraps=wraps)
        return data[(*before, slice(position, position + 1), *after)]

    return one


def _bind_gather_nd(sample: Sample) -> Bound | None:
    case, (data, indices) = sample.case, sample.inputs[:2]
    assert data is not None
    assert indices is not None
    has_batch = bool(case.attributes.integer("batch_dims", 0))
    if has_batch or prod(indices.shape[:-1]) != 1 or indices.dtype not in _INDICES:
        return None
    sizes, shape, wraps = (
        data.shape[: indices.shape[-1]],
        sample.output.shape,
        case.is_onnx or case.is_since(8),
    )

    def one(data: Array, indices: Array) -> Array:
        pairs = zip(indices.reshape(-1).tolist(), sizes, strict=True)
        place: list[Any] = [_index(number, size, wraps=wraps) for number, size in pairs]
        return data[(*place, ...)].reshape(shape)

    return one


_BINDERS: Mapping[str, Callable[[Sample], Bound | None]] = {
    "arithmetic.unary": _bind_unary,
    "arithmetic.binary": _bind_ufunc,
    "arithmetic.variadic": _bind_ufunc,
    "arithmetic.comparison": _bind_ufunc,
    "arithmetic.logical": _bind_ufunc,
    "arithmetic.logical_not": _bind_not,
    "arithmetic.select": _bind_select,
    "arithmetic.divide": _bind_divide,
    "arithmetic.modulo": _bind_modulo,
    "arithmetic.convert": _bind_convert,
    "arithmetic.convert_like": _bind_convert,
    "arithmetic.shape_of": _bind_constant,
    "arithmetic.size": _bind_constant,
    "layout.identity": _bind_identity,
    "layout.reshape": _bind_view,
    "layout.flatten": _bind_view,
    "layout.squeeze": _bind_view,
    "layout.unsqueeze": _bind_view,
    "layout.transpose": _bind_transpose,
    "layout.concat": _bind_concat,
    "select.gather": _bind_gather,
    "select.gather_elements": _bind_gather_elements,
    "select.gather_nd": _bind_gather_nd,
}
"""Makers of bound functions by kernel; a maker returns None for an unsupported sample."""
