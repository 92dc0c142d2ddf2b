"""Kernels of normalisations, softmax, and reductions to means and norms."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ir_scatter.core.arrays import Array, kind
from ir_scatter.ops.general_kernels.base import (
    BOOLEAN,
    NUMERIC,
    REAL,
    Kernel,
    KernelCase,
    UnsupportedCase,
    narrow,
    normalize_axes,
    normalize_axis,
    require_kind,
    widen,
)

# Softmax and its kin.


def softmax_like(function: Callable[[Array, int], Array]) -> Kernel:
    """Return the kernel of a function along an axis; before opset 13 of ONNX along all axes from it on."""

    def kernel(case: KernelCase) -> Array:
        data = case.array(0)
        require_kind(REAL, data)
        is_flat = case.is_onnx and not case.is_since(13)
        default = -1 if case.is_onnx and not is_flat else 1
        axis = case.attributes.integer("axis", default)
        wide = widen(data)
        if is_flat:
            axis = axis if axis == data.ndim else normalize_axis(axis, data.ndim)
            rows = wide.reshape(prod(data.shape[:axis]), prod(data.shape[axis:]))
            return narrow(function(rows, 1).reshape(data.shape), data.dtype)
        return narrow(function(wide, normalize_axis(axis, data.ndim)), data.dtype)

    return kernel


_BLOCK = 1 << 16
"""Elements that are computed at a time: the intermediate results fit into the cache of a core."""


def by_rows(function: Callable[[Array], Array], data: Array, axes: Sequence[int]) -> Array:
    """Apply a function along the last axes of a large array, some rows at a time."""
    first = min(axes, default=data.ndim)
    length = prod(data.shape[first:])
    if data.size <= 2 * _BLOCK or not data.flags.c_contiguous or first == 0 or not length:
        return function(data)
    rows = data.reshape(-1, *data.shape[first:])
    output, step = np.empty_like(rows), max(1, _BLOCK // length)
    for start in range(0, len(rows), step):
        output[start : start + step] = function(rows[start : start + step])
    return output.reshape(data.shape)


def softmax_of(data: Array, axis: int) -> Array:
    if axis in {-1, data.ndim - 1}:
        return by_rows(lambda rows: _softmax(rows, -1), data, [data.ndim - 1])
    return _softmax(data, axis)


def _softmax(data: Array, axis: int) -> Array:
    if not data.size:
        return data
    powers = np.exp(data - data.max(axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis, keepdims=True))


def log_softmax_of(data: Array, axis: int) -> Array:
    if not data.size:
        return data
    shifted = data - data.max(axis, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis, keepdims=True)))


def hardmax_of(data: Array, axis: int) -> Array:
    """Return 1 at the first maximum, and 0 elsewhere."""
    output = np.zeros_like(data)
    if data.size:
        np.put_along_axis(output, data.argmax(axis, keepdims=True), 1, axis)
    return output


# Reductions whose results are rounded.


def reduction(function: Callable[[Array, tuple[int, ...]], Any]) -> Kernel:
    """Return the kernel of a reduction, for a function of an array and axes that keeps the rank."""

    def kernel(case: KernelCase) -> Array:
        data = case.array(0)
        axes, keeps_rank = reduced_axes(case, data)
        if axes is None:
            return data
        require_kind(NUMERIC, data)
        output = function(widen(data), axes)
        if not keeps_rank:
            output = output.reshape([dim for axis, dim in enumerate(data.shape) if axis not in axes])
        return narrow(output, data.dtype)

    return kernel


def reduced_axes(case: KernelCase, data: Array) -> tuple[tuple[int, ...] | None, bool]:
    """Return the axes of a reduction, None if nothing is reduced, and whether they stay with size 1."""
    axes = case.integers(1, "axes", default=() if case.is_onnx else None, may_be_scalar=True)
    if case.is_onnx and not axes:
        if case.attributes.boolean("noop_with_empty_axes", False):
            return (), case.attributes.boolean("keepdims", True)
        axes = list(range(data.ndim))
    word, default = ("keepdims", True) if case.is_onnx else ("keep_dims", False)
    return normalize_axes(axes, data.ndim), case.attributes.boolean(word, default)


def mean_of(data: Array, axes: tuple[int, ...]) -> Any:
    """Return means. Those of integers are truncated; a mean of no elements is refused."""
    count = prod(data.shape[axis] for axis in axes)
    total = data.sum(axes, keepdims=True, dtype=data.dtype)
    if kind(data) == "float":
        return total / data.dtype.type(count)
    if count == 0:
        raise UnsupportedCase("the mean of no integers is undefined")
    if (total % count).any():
        raise UnsupportedCase(f"a sum of integers is not divisible by {count}, and rounding is not specified")
    return total // count


def sum_of_sizes(data: Array, axes: tuple[int, ...]) -> Any:
    return np.abs(data).sum(axes, keepdims=True, dtype=data.dtype)


def sum_of_squares(data: Array, axes: tuple[int, ...]) -> Any:
    return np.square(data).sum(axes, keepdims=True, dtype=data.dtype)


def euclidean_norm(data: Array, axes: tuple[int, ...]) -> Any:
    if kind(data) != "float":
        return np.trunc(np.sqrt(np.square(data.astype(np.float64)).sum(axes, keepdims=True)))
    return np.sqrt(np.square(data).sum(axes, keepdims=True))


def log_of_sum(data: Array, axes: tuple[int, ...]) -> Any:
    require_kind(REAL, data)
    return np.log(data.sum(axes, keepdims=True))


def log_of_sum_of_powers(data: Array, axes: tuple[int, ...]) -> Any:
    require_kind(REAL, data)
    highest = data.max(axes, keepdims=True, initial=-np.inf)
    finite = np.where(np.isfinite(highest), highest, 0)
    return np.log(np.exp(data - finite).sum(axes, keepdims=True)) + finite


def logical_reduction(function: np.ufunc) -> Kernel:
    """Return the kernel of a reduction of booleans in OpenVINO."""

    def kernel(case: KernelCase) -> Array:
        data = case.array(0)
        require_kind(BOOLEAN, data)
        axes, keeps_rank = reduced_axes(case, data)
        return np.asarray(function.reduce(data, axis=axes, keepdims=keeps_rank))

    return kernel


# Normalisations.


def _centred(data: Array, axes: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Return means along axes, differences from the means, and variances."""
    mean = data.mean(axes, keepdims=True)
    centred = data - mean
    return mean, centred, np.square(centred).mean(axes, keepdims=True)


def layer_normalization(case: KernelCase) -> tuple[Array, ...]:
    """Normalise from an axis on; also return the means and the inverse standard deviations."""
    data, scale = case.arrays(2)
    require_kind(REAL, data, scale)
    axis = normalize_axis(case.attributes.integer("axis", -1), data.ndim)
    axes = tuple(range(axis, data.ndim))
    work = _stash(case, data)
    mean, centred, variance = _centred(data.astype(work), axes)
    inverse = 1 / np.sqrt(variance + work.type(case.attributes.number("epsilon", 1e-5)))
    output = (centred * inverse).astype(widen(data).dtype) * widen(scale)
    if case.has(2):
        output = output + widen(case.array(2))
    return narrow(output, data.dtype), mean.astype(work), inverse.astype(work)


def _stash(case: KernelCase, data: Array) -> np.dtype[Any]:
    """Return the type of the computation in ONNX: f32, or that of data if it is longer."""
    if case.attributes.integer("stash_type", 1) not in {1, 11}:
        raise UnsupportedCase("stash_type is neither f32 nor f64")
    least = np.float64 if case.attributes.integer("stash_type", 1) == 11 else np.float32
    return np.result_type(widen(data).dtype, least)


def rms_normalization(case: KernelCase) -> Array:
    """Divide by the root of the mean of squares, from an axis on, and multiply by a scale."""
    data, scale = case.arrays(2)
    require_kind(REAL, data, scale)
    axis = normalize_axis(case.attributes.integer("axis", -1), data.ndim)
    work = _stash(case, data)
    return _rms(case, data, scale, tuple(range(axis, data.ndim)), work, 1e-5).astype(data.dtype)


def rms(case: KernelCase) -> Array:
    """Compute OpenVINO's RMS along the last axis; the scale is optional."""
    data = case.array(0)
    require_kind(REAL, data)
    scale = case.array(1) if case.has(1) else np.ones(1, data.dtype)
    axes = normalize_axes(case.integers(2, default=[-1], may_be_scalar=True), data.ndim)
    output = _rms(case, data, scale, axes, widen(data).dtype, None)
    is_written = "output_type" in case.attributes and case.attributes.values["output_type"] != "undefined"
    return output.astype(case.dtype("output_type") if is_written else data.dtype)


def _rms(
    case: KernelCase,
    data: Array,
    scale: Array,
    axes: tuple[int, ...],
    work: np.dtype[Any],
    default: float | None,
) -> Array:
    numbers = data.astype(work)
    mean = np.square(numbers).mean(axes, keepdims=True)
    root = np.sqrt(mean + work.type(case.attributes.number("epsilon", default)))
    return np.asarray((numbers / root).astype(widen(data).dtype) * widen(scale))


def mvn(case: KernelCase) -> Array:
    """Compute OpenVINO's MVN: subtract the mean and divide by the standard deviation."""
    data = case.array(0)
    require_kind(REAL, data)
    if case.has(1):
        axes = normalize_axes(case.integers(1, may_be_scalar=True), data.ndim)
    elif "reduction_axes" in case.attributes:
        axes = normalize_axes(case.attributes.integers("reduction_axes"), data.ndim)
    else:
        first = 1 if case.attributes.boolean("across_channels", False) else 2
        axes = tuple(range(first, data.ndim))
    _, centred, variance = _centred(widen(data), axes)
    if not case.attributes.boolean("normalize_variance", True):
        return narrow(centred, data.dtype)
    epsilon = centred.dtype.type(case.attributes.number("eps", 1e-9))
    mode = case.attributes.text("eps_mode", "inside_sqrt", {"inside_sqrt", "outside_sqrt"})
    deviation = np.sqrt(variance + epsilon) if mode == "inside_sqrt" else np.sqrt(variance) + epsilon
    return narrow(centred / deviation, data.dtype)


def mean_variance_normalization(case: KernelCase) -> Array:
    data = case.array(0)
    require_kind(REAL, data)
    axes = normalize_axes(case.attributes.integers("axes", [0, 2, 3]), data.ndim)
    _, centred, variance = _centred(widen(data), axes)
    return narrow(centred / (np.sqrt(variance) + centred.dtype.type(1e-9)), data.dtype)


def normalize_l2(case: KernelCase) -> Array:
    """Divide by the Euclidean norm along axes.

    By `eps_mode`, `eps` is added to the sum of squares, or is the minimum of that sum.
    """
    data = case.array(0)
    require_kind(REAL, data)
    axes = normalize_axes(case.integers(1, may_be_scalar=True), data.ndim)
    wide = widen(data)
    squares = np.square(wide).sum(axes, keepdims=True) if axes else np.square(wide)
    epsilon = wide.dtype.type(case.attributes.number("eps"))
    is_added = case.attributes.text("eps_mode", None, {"add", "max"}) == "add"
    return narrow(wide / np.sqrt(squares + epsilon if is_added else np.maximum(squares, epsilon)), data.dtype)


def lp_normalization(case: KernelCase) -> Array:
    """Divide by the norm of order 1 or 2 along an axis. Where the norm is 0, the output is 0."""
    data = case.array(0)
    require_kind(REAL, data)
    axis = normalize_axis(case.attributes.integer("axis", -1), data.ndim)
    wide = widen(data)
    order = case.attributes.integer("p", 2)
    if order not in {1, 2}:
        raise UnsupportedCase(f"p is {order}, expected 1 or 2")
    norm = (sum_of_sizes if order == 1 else euclidean_norm)(wide, (axis,))
    return narrow(np.where(norm == 0, 0, wide / np.where(norm == 0, 1, norm)), data.dtype)


def _of_channels(array: Array, rank: int) -> Array:
    """Reshape one number per channel for broadcasting with data, whose axis 1 is the channels."""
    return widen(array).reshape((1, -1) + (1,) * (rank - 2))


def instance_normalization(case: KernelCase) -> Array:
    data, scale, bias = case.arrays(3)
    require_kind(REAL, data, scale, bias)
    _, centred, variance = _centred(widen(data), tuple(range(2, data.ndim)))
    epsilon = centred.dtype.type(case.attributes.number("epsilon", 1e-5))
    normalized = centred / np.sqrt(variance + epsilon)
    return narrow(normalized * _of_channels(scale, data.ndim) + _of_channels(bias, data.ndim), data.dtype)


def group_normalization(case: KernelCase) -> Array:
    """Normalise groups of channels. Scale and bias are per channel, in opset 18 to 20 of ONNX per group."""
    data, scale, bias = case.arrays(3)
    require_kind(REAL, data, scale, bias)
    groups = case.attributes.integer("num_groups")
    if groups < 1 or data.shape[1] % groups:
        raise UnsupportedCase(f"num_groups is {groups}, expected a divisor of {data.shape[1]}")
    work = _stash(case, data) if case.is_onnx and case.is_since(21) else widen(data).dtype
    grouped = data.astype(work).reshape(data.shape[0], groups, -1)
    _, centred, variance = _centred(grouped, (2,))
    default = 1e-5 if case.is_onnx else None
    epsilon = work.type(case.attributes.number("epsilon", default))
    normalized = (centred / np.sqrt(variance + epsilon)).astype(widen(data).dtype).reshape(data.shape)
    if case.is_onnx and not case.is_since(21):
        each = data.shape[1] // groups
        scale, bias = np.repeat(scale, each), np.repeat(bias, each)
    return narrow(normalized * _of_channels(scale, data.ndim) + _of_channels(bias, data.ndim), data.dtype)


def batch_normalization(case: KernelCase) -> tuple[Array, ...]:
    """Normalise with means and variances from inputs; in training mode with those of the batch.

    Training returns the normalised data, and the running mean and variance.
    """
    data, scale, bias, mean, variance = case.arrays(5)
    require_kind(REAL, data, scale, bias, mean, variance)
    is_old = case.is_onnx and not case.is_since(7)
    if (is_old and not case.attributes.boolean("is_test", False)) or not case.attributes.boolean(
        "spatial", True
    ):
        raise UnsupportedCase("training in opset 6, or statistics that are not of channels")
    epsilon, wide = case.attributes.number("epsilon", 1e-5), widen(data)
    if not case.attributes.boolean("training_mode", False):
        if case.output_count > 1:
            raise UnsupportedCase("training outputs are requested, but training_mode is 0")
        return (_batch_normalized(wide, scale, bias, widen(mean), widen(variance), epsilon, data.dtype),)
    axes = (0, *range(2, data.ndim))
    batch_mean, _, batch_variance = _centred(wide, axes)
    batch_mean, batch_variance = batch_mean.reshape(-1), batch_variance.reshape(-1)
    momentum = wide.dtype.type(case.attributes.number("momentum", 0.9))
    outputs = _batch_normalized(wide, scale, bias, batch_mean, batch_variance, epsilon, data.dtype)
    running = [
        narrow(widen(old) * momentum + new * (1 - momentum), old.dtype)
        for old, new in ((mean, batch_mean), (variance, batch_variance))
    ]
    return outputs, *running


def batch_norm_inference(case: KernelCase) -> Array:
    """Normalise with means and variances from inputs. In version 1 data is the third input."""
    inputs = case.arrays(5)
    require_kind(REAL, *inputs)
    if not case.is_since(5):
        inputs = [inputs[2], inputs[0], inputs[1], *inputs[3:]]
    data, scale, bias, mean, variance = inputs
    epsilon = case.attributes.number("epsilon")
    return _batch_normalized(widen(data), scale, bias, widen(mean), widen(variance), epsilon, data.dtype)


def _batch_normalized(
    data: Array, scale: Array, bias: Array, mean: Array, variance: Array, epsilon: float, type: np.dtype[Any]
) -> Array:
    rank = data.ndim
    if rank < 2:
        raise UnsupportedCase(f"data has {rank} dimensions, expected channels on axis 1")
    root = np.sqrt(variance + variance.dtype.type(epsilon))
    factor = (widen(scale) / root).astype(data.dtype, copy=False)
    shift = (widen(bias) - mean * factor).astype(data.dtype, copy=False)
    return narrow(data * _of_channels(factor, rank) + _of_channels(shift, rank), type)


def local_response_normalization(case: KernelCase) -> Array:
    """Divide by a power of the sum of squares of neighbours, along channels or OpenVINO's axes.

    The window reaches (size - 1) / 2 elements back, rounded down, and the rest ahead. OpenVINO divides alpha
    by the number of elements of the window.
    """
    data = case.array(0)
    require_kind(REAL, data)
    axes: Sequence[int] = (1,)
    if not case.is_onnx:
        axes = normalize_axes(case.integers(1, may_be_scalar=True), data.ndim)
    size = case.attributes.integer("size")
    defaults = (1e-4, 0.75, 1.0) if case.is_onnx else (None, None, None)
    alpha, beta, bias = (
        case.attributes.number(name, default)
        for name, default in zip(("alpha", "beta", "bias"), defaults, strict=True)
    )
    if size < 1:
        raise UnsupportedCase(f"size is {size}, expected 1 or more")
    wide = widen(data)
    squares = np.square(wide)
    for axis in axes:
        back = (size - 1) // 2
        pads = [(0, 0)] * data.ndim
        pads[axis] = (back, size - 1 - back)
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(squares, pads), size, axis)
        squares = windows.sum(-1)
    scale = wide.dtype.type(alpha / size ** len(axes))
    return narrow(wide / np.power(wide.dtype.type(bias) + scale * squares, wide.dtype.type(beta)), data.dtype)


def grn(case: KernelCase) -> Array:
    """Compute OpenVINO's GRN: divide by the Euclidean norm of the channels."""
    data = case.array(0)
    require_kind(REAL, data)
    wide = widen(data)
    squares = np.square(wide).sum(1, keepdims=True)
    return narrow(wide / np.sqrt(squares + wide.dtype.type(case.attributes.number("bias"))), data.dtype)
