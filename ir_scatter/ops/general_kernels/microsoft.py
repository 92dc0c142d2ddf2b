"""Kernels of the domain com.microsoft: fused functions, normalisations and attention.

onnxruntime defines these operators; its optimizers and exporters of language models write them. The schemas
in onnxruntime are the specification. Results that a schema leaves to the execution provider, such as the rows
of padding, are refused.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.core.shapes import show
from ir_scatter.ops.attributes import Attributes
from ir_scatter.ops.general_kernels.attention import (
    Rules,
    attend,
    distances,
    join_heads,
    rotate,
    scores,
    split_heads,
    tables_at,
)
from ir_scatter.ops.general_kernels.base import (
    REAL,
    WHOLE,
    Kernel,
    KernelCase,
    UnsupportedCase,
    narrow,
    require_kind,
    require_same_type,
    widen,
)
from ir_scatter.ops.general_kernels.functions import erf, sigmoid
from ir_scatter.ops.general_kernels.matrices import gemm, product
from ir_scatter.ops.general_kernels.windows import convolution, max_pool

_OPSET = 21
"""The ONNX opset whose operators are most similar; those of com.microsoft have a single version."""


def latest(name: str) -> Kernel:
    """Return the kernel "module.function" of the equivalent ONNX operator."""
    module, _, function = name.partition(".")
    kernel: Kernel = getattr(import_module(f"ir_scatter.ops.general_kernels.{module}"), function)
    return lambda case: kernel(replace(case, opset=_OPSET))


def with_attributes(case: KernelCase, **attributes: Any) -> KernelCase:
    """Return a case with other attributes; None removes an attribute."""
    written = {**case.attributes.values, **attributes}
    kept = {name: value for name, value in written.items() if value is not None}
    return replace(case, attributes=Attributes(kept), opset=_OPSET)


# Functions of single elements.


def gelu_of(data: Array) -> Array:
    half, one = data.dtype.type(0.5), data.dtype.type(1)
    return np.asarray(half * data * (one + erf(data * data.dtype.type(0.5**0.5))))


def fast_gelu_of(data: Array) -> Array:
    type = data.dtype.type
    inner = data * (type(0.7978845608028654) + type(0.035677408136300125) * data * data)
    return np.asarray(type(0.5) * data * (type(1) + np.tanh(inner)))


def biased(function: Callable[[Array], Array]) -> Kernel:
    """Return the kernel of a function of data and an optional bias along the last axis."""

    def kernel(case: KernelCase) -> Array:
        data = case.array(0)
        require_kind(REAL, data)
        wide = widen(data)
        if case.has(1):
            wide = wide + widen(case.array(1))
        case.reserve(wide.shape)
        return narrow(function(wide), data.dtype)

    return kernel


def quick_gelu(case: KernelCase) -> Array:
    data = case.array(0)
    require_kind(REAL, data)
    wide = widen(data)
    alpha = wide.dtype.type(case.attributes.number("alpha", 1.702))
    return narrow(wide * sigmoid(wide * alpha), data.dtype)


def bias_split_gelu(case: KernelCase) -> Array:
    """Add a bias, and multiply the first half of the last axis by the Gelu of the second half."""
    data, bias = case.arrays(2)
    require_kind(REAL, data, bias)
    left, right = np.split(widen(data) + widen(bias), 2, -1)
    return narrow(left * gelu_of(right), data.dtype)


def bias_add(case: KernelCase) -> Array:
    """Add data, a bias along the last axis, and another tensor."""
    arrays = case.arrays(3)
    require_kind(REAL, *arrays)
    data, bias, skip = map(widen, arrays)
    return narrow(data + bias + skip, arrays[0].dtype)


def scaled_silu(case: KernelCase) -> Array:
    """Return x * sigmoid(x) of scaled elements, rounded to the type of data after each function."""
    data = case.array(0)
    require_kind(REAL, data)
    factor = widen(case.array(1)).reshape(()) if case.has(1) else case.attributes.number("alpha", 1.0)
    scaled = widen(narrow(widen(data) * widen(data).dtype.type(factor), data.dtype))
    return narrow(scaled * widen(narrow(sigmoid(scaled), data.dtype)), data.dtype)


def gated_add(case: KernelCase) -> Array:
    """Add a tensor that is multiplied by one number for each row."""
    data, other, gate = case.arrays(3)
    require_kind(REAL, data, other, gate)
    if case.has(3) or gate.shape != (*data.shape[:-1], 1):
        raise UnsupportedCase("a gate with weights is not computed")
    return narrow(widen(data) + widen(narrow(widen(other) * widen(gate), data.dtype)), data.dtype)


# Functions of old versions of ONNX, which onnxruntime still has.


def affine(case: KernelCase) -> Array:
    return _linear(case, case.attributes.number("alpha", 1.0), case.attributes.number("beta", 0.0))


def scale(case: KernelCase) -> Array:
    return _linear(case, case.attributes.number("scale", 1.0), 0.0)


def _linear(case: KernelCase, factor: float, summand: float) -> Array:
    data = case.array(0)
    require_kind(REAL, data)
    wide = widen(data)
    return narrow(wide * wide.dtype.type(factor) + wide.dtype.type(summand), data.dtype)


def image_scaler(case: KernelCase) -> Array:
    """Multiply images [batch, channels, rows, columns], and add a number to each channel."""
    data = case.array(0)
    require_kind(REAL, data)
    wide = widen(data)
    bias = np.array(case.attributes.numbers("bias", ()), wide.dtype)
    if data.ndim != 4 or bias.size != data.shape[1]:
        raise UnsupportedCase(f"there are {bias.size} numbers for data of shape {show(data.shape)}")
    factor = wide.dtype.type(case.attributes.number("scale", 1.0))
    return narrow(wide * factor + bias[:, None, None], data.dtype)


def scaled_tanh(case: KernelCase) -> Array:
    data = case.array(0)
    require_kind(REAL, data)
    wide = widen(data)
    alpha, beta = (wide.dtype.type(case.attributes.number(name)) for name in ("alpha", "beta"))
    return narrow(alpha * np.tanh(beta * wide), data.dtype)


def parametric_softplus(case: KernelCase) -> Array:
    data = case.array(0)
    require_kind(REAL, data)
    wide = widen(data)
    alpha, beta = (wide.dtype.type(case.attributes.number(name)) for name in ("alpha", "beta"))
    return narrow(alpha * np.logaddexp(wide.dtype.type(0), beta * wide), data.dtype)


def crop(case: KernelCase) -> Array:
    """Crop the borders of images; with a size, crop to that size after the left and upper border."""
    data = case.array(0)
    left, top, right, bottom = case.attributes.integers("border")
    rows, columns = data.shape[-2:]
    if "scale" in case.attributes:
        height, width = case.attributes.integers("scale")
        bottom, right = rows - top - height, columns - left - width
    if min(left, top, right, bottom) < 0 or left + right > columns or top + bottom > rows:
        raise UnsupportedCase(f"the border does not fit data of shape {show(data.shape)}")
    return data[..., top : rows - bottom, left : columns - right]


# Matrix products and convolutions with further functions.


def fused_matmul(case: KernelCase) -> Array:
    """Permute the axes of matrices by attributes, multiply them, and multiply the product by `alpha`."""
    left, right = case.arrays(2)
    require_kind(REAL, left, right)
    type = require_same_type(left, right)
    operands = []
    for word, array in (("A", widen(left)), ("B", widen(right))):
        if case.attributes.boolean(f"transBatch{word}", False):
            array = np.moveaxis(array, 0, -2)
        if case.attributes.boolean(f"trans{word}", False) and array.ndim > 1:
            array = array.swapaxes(-1, -2)
        operands.append(array)
    alpha = operands[0].dtype.type(case.attributes.number("alpha", 1.0))
    return narrow(product(case, *operands) * alpha, type)


_ACTIVATIONS: Mapping[str, tuple[Callable[..., Any], tuple[float, ...]]] = {
    "": (lambda data: data, ()),
    "relu": (lambda data: np.maximum(data, 0), ()),
    "tanh": (np.tanh, ()),
    "sigmoid": (sigmoid, ()),
    "leakyrelu": (lambda data, alpha: np.where(data < 0, alpha * data, data), (0.01,)),
    "clip": (lambda data, low, high: np.clip(data, low, high), (-np.inf, np.inf)),
    "hardsigmoid": (lambda data, alpha, beta: np.clip(alpha * data + beta, 0, 1), (0.2, 0.5)),
    "hardswish": (lambda data: data * np.clip(data / 6 + data.dtype.type(0.5), 0, 1), ()),
    "elu": (lambda data, alpha: np.where(data < 0, alpha * np.expm1(np.minimum(data, 0)), data), (1.0,)),
    "softplus": (lambda data: np.logaddexp(data.dtype.type(0), data), ()),
}
"""Activations by their lower-case name in fused operators, with the default values of their parameters."""


def _activated(data: Array, name: Any, parameters: list[float]) -> Array:
    word = (name.decode() if isinstance(name, bytes) else str(name or "")).lower()
    if word not in _ACTIVATIONS:
        raise UnsupportedCase(f"{name} is not an activation")
    function, defaults = _ACTIVATIONS[word]
    values = [*parameters, *defaults[len(parameters) :]][: len(defaults)]
    return np.asarray(function(data, *map(data.dtype.type, values)))


def fused_gemm(case: KernelCase) -> Array:
    names = [f"activation_{word}" for word in ("alpha", "beta", "gamma")]
    parameters = [case.attributes.number(name) for name in names if name in case.attributes]
    word = case.attributes.values.get("activation")
    plain = with_attributes(case, activation=None, **dict.fromkeys(names))
    return narrow(_activated(widen(gemm(plain)), word, parameters), case.array(0).dtype)


def fused_convolution(case: KernelCase) -> Array:
    """Convolve, add the optional input 3, and apply an activation."""
    parameters = case.attributes.numbers("activation_params", ())
    word = case.attributes.values.get("activation")
    plain = with_attributes(case, activation=None, activation_params=None)
    output = widen(convolution(replace(plain, inputs=plain.inputs[:3])))
    if case.has(3):
        output = output + widen(case.array(3))
    return narrow(_activated(output, word, parameters), case.array(0).dtype)


# Normalisations.


def _wide_work(array: Array) -> Array:
    return array.astype(np.result_type(widen(array).dtype, np.float32))


def _normalized(case: KernelCase, data: Array, *, subtracts: bool) -> tuple[Array, Array, Array]:
    """Normalise along the last axis; return output, means and inverse standard deviations."""
    epsilon = data.dtype.type(case.attributes.number("epsilon", 1e-12))
    mean = data.mean(-1, keepdims=True) if subtracts else np.zeros((*data.shape[:-1], 1), data.dtype)
    centred = data - mean
    inverse = 1 / np.sqrt(np.square(centred).mean(-1, keepdims=True) + epsilon)
    return centred * inverse, mean, inverse


def skip_layer_normalization(case: KernelCase) -> tuple[Array, ...]:
    """Add two tensors and a bias, and normalise; the last output is the sum."""
    return _skip_normalized(case, 4, case.array(3) if case.has(3) else None, subtracts=True)


def skip_rms_normalization(case: KernelCase) -> tuple[Array, ...]:
    return _skip_normalized(case, 3, None, subtracts=False)


def _skip_normalized(
    case: KernelCase, bias_port: int, beta: Array | None, *, subtracts: bool
) -> tuple[Array, ...]:
    data, skip, gamma = case.arrays(3)
    require_kind(REAL, data, skip, gamma)
    total = _wide_work(data) + _wide_work(skip)
    if case.has(bias_port):
        total = total + _wide_work(case.array(bias_port))
    if total.shape != data.shape:
        raise UnsupportedCase(f"skip has shape {show(skip.shape)}, and the input {show(data.shape)}")
    output, mean, inverse = _normalized(case, total, subtracts=subtracts)
    output = output * widen(gamma)
    if beta is not None:
        output = output + widen(beta)
    return narrow(output, data.dtype), mean, inverse, narrow(total, data.dtype)


def simplified_layer_normalization(case: KernelCase) -> tuple[Array, ...]:
    """Divide by the root of the mean of squares, from an axis on; also return its inverse."""
    data, gamma = case.arrays(2)
    require_kind(REAL, data, gamma)
    axis = case.attributes.integer("axis", -1) % max(data.ndim, 1)
    work = _wide_work(data)
    mean = np.square(work).mean(tuple(range(axis, data.ndim)), keepdims=True)
    inverse = 1 / np.sqrt(mean + work.dtype.type(case.attributes.number("epsilon", 1e-5)))
    return narrow(work * inverse * widen(gamma), gamma.dtype), inverse


def gated_rms_normalization(case: KernelCase) -> Array:
    """Normalise groups of the last axis, as long as the scale, and multiply by an activated gate."""
    data, scale, gate = case.arrays(3)
    require_kind(REAL, data, scale, gate)
    word = case.attributes.text("activation", "silu", {"silu", "swish", "sigmoid"})
    work, factor = _wide_work(data), _wide_work(gate)
    groups = work.reshape(*data.shape[:-1], -1, scale.size)
    epsilon = work.dtype.type(case.attributes.number("epsilon", 1e-5))
    mean = np.square(groups).mean(-1, keepdims=True)
    normalized = (groups / np.sqrt(mean + epsilon) * _wide_work(scale)).reshape(data.shape)
    activated = sigmoid(factor) if word == "sigmoid" else factor * sigmoid(factor)
    return narrow(normalized * activated, data.dtype)


def embed_layer_normalization(case: KernelCase) -> tuple[Array, ...]:
    """Add the embeddings of words, positions and segments, and normalise."""
    ids = case.array(0)
    require_kind(WHOLE, ids)
    words, positions = case.array(2), case.array(3)
    gamma, beta = case.array(5), case.array(6)
    require_kind(REAL, words, positions, gamma, beta)
    batch, length = ids.shape
    places = case.array(8) if case.has(8) else np.arange(length)[None]
    total = _rows(words, ids) + np.broadcast_to(_rows(positions, places), (batch, length, positions.shape[1]))
    if case.has(4):
        segments = case.array(1) if case.has(1) else np.zeros(ids.shape, np.int32)
        total = total + _rows(case.array(4), segments)
    output, _, _ = _normalized(case, total, subtracts=True)
    output = output * widen(gamma) + widen(beta)
    return (narrow(output, words.dtype), _mask_index(case, batch), narrow(total, words.dtype))


def _rows(table: Array, indices: Array) -> Array:
    if indices.size and not (indices.min() >= 0 and indices.max() < table.shape[0]):
        raise UnsupportedCase(f"an index is out of range, expected 0 to {table.shape[0] - 1}")
    return _wide_work(table[indices])


def _mask_index(case: KernelCase, batch: int) -> Array:
    """Return the number of words of each sequence; 0 without a mask."""
    if not case.has(7):
        return np.zeros(batch, np.int32)
    mask = case.array(7) != 0
    counts = mask.sum(1)
    if case.output_count > 1 and (mask != (np.arange(mask.shape[1]) < counts[:, None])).any():
        raise UnsupportedCase("a mask has a 1 after a 0: its index is not specified")
    return np.asarray(counts.astype(np.int32))


def group_norm(case: KernelCase) -> tuple[Array, ...]:
    """Normalise groups of channels. Channels are the last axis unless an attribute says axis 1."""
    data, gamma, beta = case.arrays(3)
    require_kind(REAL, data, gamma, beta)
    return (_group_normalized(case, _wide_work(data), gamma, beta, data.dtype),)


def skip_group_norm(case: KernelCase) -> tuple[Array, ...]:
    """Add two tensors and a bias, and normalise groups of channels."""
    data, gamma, beta, skip = case.arrays(4)
    require_kind(REAL, data, gamma, beta, skip)
    is_last = case.attributes.boolean("channels_last", True)
    addends = [_wide_work(skip)]
    if skip.ndim == 2:
        addends[0] = addends[0][:, None, None] if is_last else addends[0][..., None, None]
    if case.has(4):
        bias = _wide_work(case.array(4))
        addends.append(bias if is_last else bias[:, None, None])
    total = _wide_work(data)
    for addend in addends:
        total = total + addend
    return _group_normalized(case, total, gamma, beta, data.dtype), narrow(total, data.dtype)


def _group_normalized(case: KernelCase, data: Array, gamma: Array, beta: Array, type: np.dtype[Any]) -> Array:
    groups, is_last = (case.attributes.integer("groups"), case.attributes.boolean("channels_last", True))
    work = np.moveaxis(data, -1, 1) if is_last else data
    if groups < 1 or work.shape[1] % groups:
        raise UnsupportedCase(f"{work.shape[1]} channels do not form {groups} groups")
    grouped = work.reshape(work.shape[0], groups, -1)
    epsilon = data.dtype.type(case.attributes.number("epsilon", 1e-5))
    centred = grouped - grouped.mean(2, keepdims=True)
    normalized = centred / np.sqrt(np.square(centred).mean(2, keepdims=True) + epsilon)
    shape = (1, -1) + (1,) * (work.ndim - 2)
    output = normalized.reshape(work.shape) * widen(gamma).reshape(shape) + widen(beta).reshape(shape)
    if case.attributes.integer("activation", 0):
        output = output * sigmoid(output)
    return narrow(np.moveaxis(output, 1, -1) if is_last else output, type)


# Attention.


def rotary_embedding(case: KernelCase) -> Array:
    """Rotate heads by the angles of their positions. A single position is that of the first row."""
    data, positions, cosines, sines = case.arrays(4)
    require_kind(REAL, data, cosines, sines)
    if case.attributes.boolean("is_packed_batching", False) or case.attributes.number("scale", 1.0) != 1:
        raise UnsupportedCase("packed batches and a scale are not computed")
    heads, size = (case.attributes.integer(name, 0) for name in ("num_heads", "rotary_embedding_dim"))
    wide, tables = widen(data), [widen(cosines), widen(sines)]
    if data.ndim == 3:
        wide = split_heads(wide, heads or data.shape[2] // (2 * cosines.shape[1]))
    batch, _, rows, whole = wide.shape
    if positions.size == 1 and (batch, rows) != positions.shape:
        positions = positions.reshape(1, 1) + np.arange(rows)[None]
    positions = np.broadcast_to(positions, (batch, rows))
    is_interleaved = case.attributes.boolean("interleaved", False)
    output = rotate(wide, tables_at(tables, positions), size or whole, is_interleaved=is_interleaved)
    return narrow(join_heads(output) if data.ndim == 3 else output, data.dtype)


def _scale_of(case: KernelCase, size: int) -> float:
    return case.attributes.number("scale", 0.0) or 1 / float(np.sqrt(size))


def _mask_bias(case: KernelCase, port: int, batch: int, rows: int, columns: int) -> Array | None:
    """Return the bias of a mask of integers: `mask_filter_value` where a row must not attend.

    A mask has 1 where a row may attend: [batch, columns], [batch, rows, columns] or [batch, 1, most, most].
    Or it contains the length of each sequence, or all ends followed by all starts.
    """
    if not case.has(port):
        return None
    mask = case.array(port)
    places = np.arange(columns)
    if mask.ndim == 1 and mask.size == batch:
        allowed = (places < mask[:, None])[:, None, None]
    elif mask.ndim == 1 and mask.size == 2 * batch:
        ends, starts = mask[:batch, None], mask[batch:, None]
        allowed = ((places < ends) & (places >= starts))[:, None, None]
    elif mask.ndim == 2 and mask.shape == (batch, columns):
        allowed = (mask != 0)[:, None, None]
    elif mask.ndim == 3 and mask.shape == (batch, rows, columns):
        allowed = (mask != 0)[:, None]
    elif mask.ndim == 4 and mask.shape[1] == 1 and min(mask.shape[2:]) >= columns:
        allowed = (mask != 0)[:, :, columns - rows : columns, :columns]
    else:
        raise UnsupportedCase(f"a mask has shape {show(mask.shape)}, for {rows} rows and {columns} columns")
    filtered = case.attributes.number("mask_filter_value", -10000.0)
    return np.where(allowed, 0.0, filtered)


def _sum_of(first: Array | None, second: Array | None) -> Array | None:
    if first is None or second is None:
        return second if first is None else first
    return np.asarray(first + second)


def _attended(
    case: KernelCase, heads: list[Array], *, mask: int, bias: int, type: np.dtype[Any]
) -> tuple[Array, Array | None]:
    """Return the output [batch, rows, hidden], and the weights if a fourth output is requested."""
    query, key, value = heads
    batch, _, rows, size = query.shape
    columns = key.shape[2]
    added = _mask_bias(case, mask, batch, rows, columns)
    if case.has(bias):
        added = _sum_of(widen(case.array(bias)), added)
    is_causal = case.attributes.boolean("unidirectional", False)
    allowed = distances(rows, columns, columns - rows) >= 0 if is_causal else None
    rules = Rules(_scale_of(case, size), added, allowed)
    case.reserve((batch, rows, query.shape[1] * value.shape[3]))
    output = join_heads(attend(query, key, value, rules))
    weights = scores(query, key, rules).weights if case.output_count > 3 else None
    return narrow(output, type), weights


def attention(case: KernelCase) -> tuple[Array, ...]:
    """Project the input to query, key and value, and attend; past and present contain keys and values."""
    data, weights = case.arrays(2)
    require_kind(REAL, data, weights)
    projected = product(case, widen(data), widen(weights))
    if case.has(2):
        projected = projected + widen(case.array(2))
    return attend_projected(case, projected, data.dtype, mask=3, past=4, bias=5)


def attend_projected(
    case: KernelCase, projected: Array, type: np.dtype[Any], *, mask: int, past: int, bias: int
) -> tuple[Array, ...]:
    """Attend with query, key and value in one array; `mask`, `past` and `bias` are numbers of inputs.

    The array is [batch, rows, sizes of query, key and value together].
    """
    if case.attributes.boolean("do_rotary", False) or (case.has(6) and bias == 5):
        raise UnsupportedCase("rotary embeddings and shared buffers are not computed")
    sizes = case.attributes.integers("qkv_hidden_sizes", ()) or [projected.shape[-1] // 3] * 3
    parts = np.split(projected, np.cumsum(sizes)[:-1], -1)
    heads = [split_heads(part, case.attributes.integer("num_heads")) for part in parts]
    if case.has(past):
        before = widen(case.array(past))
        heads[1:] = [np.concatenate(pair, 2) for pair in zip(before, heads[1:], strict=True)]
    output, _ = _attended(case, heads, mask=mask, bias=bias, type=type)
    if case.output_count < 2:
        return (output,)
    return output, np.stack(heads[1:]).astype(type)


def multi_head_attention(case: KernelCase) -> tuple[Array, ...]:
    """Attend with projected query, key and value, which may be packed, including past keys and values."""
    query = case.array(0)
    require_kind(REAL, query)
    if case.has(8) or case.has(9):
        raise UnsupportedCase("shared buffers and cache_indirection are not computed")
    heads = _unpacked(case, case.attributes.integer("num_heads"))
    if case.has(6):
        past = [widen(case.array(port)) for port in (6, 7)]
        heads[1:] = [np.concatenate(pair, 2) for pair in zip(past, heads[1:], strict=True)]
    output, weights = _attended(case, heads, mask=4, bias=5, type=query.dtype)
    present = [narrow(array, query.dtype) for array in heads[1:]]
    return (output, *present) if weights is None else (output, *present, narrow(weights, query.dtype))


def _unpacked(case: KernelCase, count: int) -> list[Array]:
    """Return the heads of query, key and value, with a bias added."""
    query = widen(case.array(0))
    if query.ndim == 5:  # [batch, rows, heads, 3, size]
        heads = [query[..., number, :].transpose(0, 2, 1, 3) for number in range(3)]
    else:
        heads = [split_heads(query, count)]
        key = widen(case.array(1))
        if key.ndim == 5:
            heads += [key[..., number, :].transpose(0, 2, 1, 3) for number in range(2)]
        else:
            arrays = [key, widen(case.array(2))]
            heads += [array if array.ndim == 4 else split_heads(array, count) for array in arrays]
    if case.has(3):
        sizes = [array.shape[1] * array.shape[3] for array in heads]
        parts = np.split(widen(case.array(3)), np.cumsum(sizes)[:-1])
        heads = [
            array + part.reshape(array.shape[1], 1, -1) for array, part in zip(heads, parts, strict=True)
        ]
    return heads


_UNQUANTIZED = ("NONE", "none", b"NONE")


def group_query_attention(case: KernelCase) -> tuple[Array, ...]:
    """Attend causally with a cache of keys and values, where several query heads share a key head.

    Afterwards sequence b has seqlens_k[b] + 1 tokens in the cache; the last ones are those of this call:

        cache before [k0 k1 k2 __ __], rows 2, seqlens_k 4    cache after [k0 k1 k2 n0 n1]
    """
    query = case.array(0)
    require_kind(REAL, query)
    _demand_computed(case)
    heads = _group_heads(case)
    batch, _, rows, size = heads[0].shape
    totals = case.array(5).reshape(-1).astype(np.int64) + 1
    most = int(case.array(6).reshape(-1)[0])
    is_prompt = most == rows
    if totals.size != batch or (totals > most).any() or (totals < rows).any():
        raise UnsupportedCase(f"seqlens_k is {totals - 1} for {rows} rows, and at most {most} tokens")
    before = totals - rows
    if is_prompt and before.any():
        raise UnsupportedCase("the rows of padding in a prompt are not specified")
    heads = _rotated(case, heads, before, is_prompt=is_prompt)
    past = [widen(case.array(port)) if case.has(port) else None for port in (3, 4)]
    caches = [_appended(old, new, before, most) for old, new in zip(past, heads[1:], strict=True)]
    rules = _group_rules(case, rows, most, before, size)
    keys, values = (cache[:, :, :most] for cache in caches)
    case.reserve((batch, rows, heads[0].shape[1] * size))
    output = narrow(join_heads(attend(heads[0], keys, values, rules)), query.dtype)
    type = case.array(3).dtype if case.has(3) else query.dtype
    present = [narrow(cache, type) for cache in caches]
    if case.output_count < 4:
        return output, *present
    if (totals != most).any():
        raise UnsupportedCase("the scores of sequences of different lengths are not specified")
    stages = scores(heads[0], keys, rules)
    stage = stages.weights
    if case.attributes.integer("qk_output", 0) == 1:
        assert rules.allowed is not None
        stage = np.where(rules.allowed, stages.capped, 0)
    return output, *present, narrow(stage, query.dtype)


def _demand_computed(case: KernelCase) -> None:
    for name in ("k_quant_type", "v_quant_type"):
        if case.attributes.values.get(name, "NONE") not in _UNQUANTIZED:
            raise UnsupportedCase("a quantised cache is not computed")
    if case.attributes.boolean("sliding_window_cache", False) or case.has(16):
        raise UnsupportedCase("sliding_window_cache and query_seqlens are not computed")


def _group_heads(case: KernelCase) -> list[Array]:
    """Return the heads of query, key and value, packed or not; normalised if there are weights for that."""
    counts = [case.attributes.integer(name) for name in ("num_heads", "kv_num_heads", "kv_num_heads")]
    query = widen(case.array(0))
    if case.has(1):
        arrays = [query, *(widen(case.array(port)) for port in (1, 2))]
    else:
        size = query.shape[-1] // sum(counts)
        arrays = np.split(query, np.cumsum([count * size for count in counts])[:-1], -1)
    heads = [
        array if array.ndim == 4 else split_heads(array, count)
        for array, count in zip(arrays, counts, strict=True)
    ]
    for number, word in enumerate("qk"):
        if case.has(14 + number):
            default = case.attributes.number("qk_norm_epsilon", 1e-6)
            epsilon = heads[number].dtype.type(case.attributes.number(f"{word}_norm_epsilon", default))
            mean = np.square(heads[number]).mean(-1, keepdims=True)
            heads[number] = heads[number] / np.sqrt(mean + epsilon) * widen(case.array(14 + number))
    return heads


def _rotated(case: KernelCase, heads: list[Array], before: Array, *, is_prompt: bool) -> list[Array]:
    """Rotate query and key by the angles of their positions, if `do_rotary` is set."""
    if not case.attributes.boolean("do_rotary", False):
        return heads
    batch, _, rows, _ = heads[0].shape
    positions = before[:, None] + np.arange(rows)
    if case.has(9):
        written = np.broadcast_to(case.array(9), (batch, rows))
        first = written[:1, :1] + np.arange(rows)
        if is_prompt and (written != first).any():
            raise UnsupportedCase("positions of a prompt are not consecutive")
        positions = written
    tables = [widen(case.array(port)) for port in (7, 8)]
    angles, size = tables_at(tables, positions), 2 * tables[0].shape[1]
    is_interleaved = case.attributes.boolean("rotary_interleaved", False)
    turned = [rotate(array, angles, size, is_interleaved=is_interleaved) for array in heads[:2]]
    return [*turned, heads[2]]


def _appended(old: Array | None, new: Array, before: Array, most: int) -> Array:
    """Return a cache in which the new rows of each sequence follow its old ones; the rest is zero."""
    batch, groups, rows, size = new.shape
    length = max(most, 0 if old is None else old.shape[2])
    cache = np.zeros((batch, groups, length, size), new.dtype)
    for number, count in enumerate(before):
        if count and (old is None or count > old.shape[2]):
            raise UnsupportedCase(f"a sequence has {count} tokens in a cache that is shorter")
        if old is not None and count:
            cache[number, :, :count] = old[number, :, :count]
        cache[number, :, count : count + rows] = new[number]
    return cache


def _group_rules(case: KernelCase, rows: int, most: int, before: Array, size: int) -> Rules:
    distance = distances(rows, most, before[:, None])
    is_causal = case.attributes.boolean("causal", True)
    filled = np.arange(most) < (before + rows)[:, None, None, None]
    allowed = distance >= 0 if is_causal else filled
    window = case.attributes.integer("local_window_size", -1)
    if window > 0:
        allowed = allowed & (distance < window)
    sink = None
    if case.attributes.integer("smooth_softmax", -1) == 1:
        sink = np.zeros((1, 1, 1), np.float32)
        sink = np.broadcast_to(sink, (case.attributes.integer("num_heads"), 1, 1))
    if case.has(11):
        sink = widen(case.array(11)).reshape(-1, 1, 1)
    bias = widen(case.array(10)) if case.has(10) else None
    return Rules(_scale_of(case, size), bias, allowed, case.attributes.number("softcap", 0.0), sink)


# Mixtures of experts.


def mixture_of_experts(case: KernelCase) -> Array:
    """Send each row to the experts with the largest router outputs, and add up their weighted results."""
    data = case.array(0)
    require_kind(REAL, data)
    weights = [widen(case.array(port)) if case.has(port) else None for port in (2, 4, 6)]
    biases = [widen(case.array(port)) if case.has(port) else None for port in (3, 5, 7)]
    return route(case, data, widen(case.array(1)), weights, biases)


def route(
    case: KernelCase, data: Array, router: Array, weights: list[Array | None], biases: list[Array | None]
) -> Array:
    """Return the sum of the experts' results; weights are [experts, outputs, inputs]."""
    if case.attributes.boolean("use_sparse_mixer", False):
        raise UnsupportedCase("use_sparse_mixer is not computed")
    rows, count = widen(data).reshape(-1, data.shape[-1]), case.attributes.integer("k", 1)
    order = np.argsort(-router, 1, kind="stable")[:, :count]
    chosen = np.take_along_axis(router, order, 1)
    powers = np.exp(chosen - router.max(1, keepdims=True))
    is_normalized = case.attributes.boolean("normalize_routing_weights", False)
    everything = np.exp(router - router.max(1, keepdims=True))
    shares = powers / (powers if is_normalized else everything).sum(1, keepdims=True)
    output = np.zeros_like(rows)
    for expert in range(router.shape[1]):
        places, ranks = np.nonzero(order == expert)
        if places.size:
            result = _expert(case, rows[places], expert, weights, biases)
            output[places] += result * shares[places, ranks, None].astype(rows.dtype)
    return narrow(output.reshape(data.shape), data.dtype)


def _expert(
    case: KernelCase, rows: Array, expert: int, weights: list[Array | None], biases: list[Array | None]
) -> Array:
    def layer(number: int, data: Array) -> Array:
        matrix, bias = weights[number], biases[number]
        if matrix is None:
            raise UnsupportedCase("the weights of a layer are missing")
        result = data @ matrix[expert].T
        return np.asarray(result if bias is None else result + bias[expert])

    word = case.attributes.text("activation_type", "relu", {"relu", "gelu", "silu", "identity", "swiglu"})
    hidden = layer(0, rows)
    if word == "swiglu":
        fusion = case.attributes.integer("swiglu_fusion", 0)
        if fusion == 1:
            gate, up = hidden[:, 0::2], hidden[:, 1::2]
        elif fusion == 2:
            gate, up = np.split(hidden, 2, 1)
        else:
            gate, up = hidden, layer(2, rows)
        return layer(1, _swiglu(case, gate, up))
    functions: Mapping[str, Callable[[Array], Any]] = {
        "relu": lambda data: np.maximum(data, 0),
        "gelu": fast_gelu_of,
        "silu": lambda data: data * sigmoid(data),
        "identity": lambda data: data,
    }
    hidden = functions[word](hidden)
    if weights[2] is not None:
        hidden = hidden * layer(2, rows)
    return layer(1, hidden)


def _swiglu(case: KernelCase, gate: Array, up: Array) -> Array:
    if case.attributes.boolean("swiglu_limit_after_activation", False):
        raise UnsupportedCase("swiglu_limit_after_activation is not computed")
    type = gate.dtype.type
    if "swiglu_limit" in case.attributes:
        limit = type(case.attributes.number("swiglu_limit"))
        gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
    alpha, beta = (
        type(case.attributes.number("activation_alpha", 1.0)),
        type(case.attributes.number("activation_beta", 0.0)),
    )
    return np.asarray(gate * sigmoid(alpha * gate) * (up + beta))


# Others.


def expand_dims(case: KernelCase) -> Array:
    """Insert a dimension of 1 at the axis in input 1."""
    return np.expand_dims(case.array(0), case.integer(1))


def unique(case: KernelCase) -> tuple[Array, ...]:
    """Return the elements in the order of their first occurrence, inverse indices, and counts."""
    data = case.array(0)
    _, first, inverse, counts = np.unique(data, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return data[first[order]], rank[inverse.reshape(-1)], counts[order].astype(np.int64)


def number_range(case: KernelCase) -> Array:
    """Return the numbers from input 0 up to input 1, in steps of input 2 (default 1)."""
    first, stop = (array.reshape(()) for array in case.arrays(2))
    step = case.array(2).reshape(()) if case.has(2) else np.ones((), first.dtype)
    return latest("arithmetic.number_range")(replace(case, inputs=(first, stop, step)))  # type: ignore[return-value]


def max_pool_of_last(case: KernelCase) -> Array:
    """Return the maxima of windows of pictures whose channels are the last axis."""
    moved = replace(case, inputs=(np.moveaxis(case.array(0), -1, 1),), opset=_OPSET, output_count=1)
    outputs = max_pool(moved)
    return np.moveaxis(outputs[0] if isinstance(outputs, tuple) else outputs, 1, -1)


def unfold(case: KernelCase) -> Array:
    """Return all slices of a length along an axis, a step apart, as a new last axis."""
    data = case.array(0)
    axis, size, step = (
        case.attributes.integer(name, default) for name, default in (("dim", -1), ("size", None), ("step", 1))
    )
    if not 0 < size <= data.shape[axis] or step < 1:
        raise UnsupportedCase(f"size is {size}, and step {step}, for data of shape {show(data.shape)}")
    windows = np.lib.stride_tricks.sliding_window_view(data, size, axis)
    place = [slice(None)] * data.ndim
    place[axis] = slice(None, None, step)
    return np.ascontiguousarray(windows[(*place, slice(None))])


def squared_distances(case: KernelCase) -> Array:
    """Return the distance, or its square, of each row of a matrix to each row of another matrix."""
    left, right = case.arrays(2)
    require_kind(REAL, left, right)
    word = case.attributes.text("metric", "sqeuclidean", {"sqeuclidean", "euclidean"})
    a, b = widen(left), widen(right)
    case.reserve((a.shape[0], b.shape[0]))
    squares = np.stack([np.square(b - row).sum(1) for row in a]) if len(a) else np.zeros((0, len(b)))
    return narrow(squares if word == "sqeuclidean" else np.sqrt(squares), left.dtype)


def is_all_finite(case: KernelCase) -> Array:
    arrays = case.arrays()
    require_kind(REAL, *arrays)
    tests: list[Callable[[Array], Any]] = [lambda data: ~np.isfinite(data)]
    if case.attributes.boolean("isnan_only", False):
        tests = [np.isnan]
    elif case.attributes.boolean("isinf_only", False):
        tests = [np.isinf]
    return np.asarray(not any(test(widen(array)).any() for array in arrays for test in tests))
