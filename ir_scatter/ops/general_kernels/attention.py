"""Kernels of attention: ScaledDotProductAttention of OpenVINO, Attention and RotaryEmbedding of ONNX."""

import numpy as np

from ir_scatter.core.arrays import Array, kind
from ir_scatter.core.shapes import show
from ir_scatter.ops.general_kernels.base import REAL, KernelCase, UnsupportedCase, narrow, require_kind, widen
from ir_scatter.ops.general_kernels.normalize import softmax_of


def scaled_dot_product_attention(case: KernelCase) -> Array:
    """Compute softmax(Q Kᵀ scale + mask) V. The mask contains booleans or numbers; input 4 is the scale."""
    query, key, value = case.arrays(3)
    require_kind(REAL, query, key, value)
    wide = [widen(array) for array in (query, key, value)]
    type = wide[0].dtype.type
    is_causal = case.attributes.boolean("causal", False)
    scale = widen(case.array(4)).reshape(-1)[0] if case.has(4) else 1 / np.sqrt(query.shape[-1])
    scores = np.matmul(wide[0] * type(scale), wide[1].swapaxes(-1, -2))
    case.reserve((*scores.shape[:-1], value.shape[-1]))
    if is_causal:
        rows, columns = scores.shape[-2:]
        scores = np.where(np.tri(rows, columns, dtype=np.bool_), scores, type(-np.inf))
    elif case.has(3):
        mask = case.array(3)
        if kind(mask) == "boolean":
            scores = np.where(mask, scores, type(-np.inf))
        elif mask.size != 1 or widen(mask).any():
            scores = scores + widen(mask)
    if case.has(5):  # a sink is one more column that has no value
        sink = np.broadcast_to(widen(case.array(5)), (*scores.shape[:-1], 1))
        weights = softmax_of(np.concatenate([scores, sink.astype(scores.dtype)], -1), -1)[..., :-1]
    else:
        weights = softmax_of(scores, -1)
    return narrow(np.matmul(weights, wide[2]), query.dtype)


def rotary_embedding(case: KernelCase) -> Array:
    """Rotate pairs of elements by an angle for each position; inputs contain the cosines and sines."""
    data, cosines, sines = case.arrays(3)
    require_kind(REAL, data, cosines, sines)
    wide, heads = widen(data), case.attributes.integer("num_heads", 0)
    if wide.ndim == 3:
        if heads < 1 or wide.shape[2] % heads:
            raise UnsupportedCase(f"num_heads is {heads} for data of shape {show(data.shape)}")
        wide = wide.reshape(*wide.shape[:2], heads, -1)  # [batch, time, heads, size]
    else:
        wide = wide.transpose(0, 2, 1, 3)
    size = case.attributes.integer("rotary_embedding_dim", 0) or wide.shape[-1]
    angles = [widen(array) for array in (cosines, sines)]
    if case.has(3):
        positions = case.array(3)
        if positions.size and not (positions.min() >= 0 and positions.max() < cosines.shape[0]):
            raise UnsupportedCase("a position is outside of the tables of cosines and sines")
        angles = [array[positions] for array in angles]
    cosine, sine = (array[:, :, None, :] for array in angles)
    if cosine.shape[-1] != size // 2:
        raise UnsupportedCase(f"there are {cosine.shape[-1]} angles for {size} elements")
    turned, rest = wide[..., :size], wide[..., size:]
    if case.attributes.boolean("interleaved", False):
        first, second = turned[..., 0::2], turned[..., 1::2]
    else:
        first, second = turned[..., : size // 2], turned[..., size // 2 :]
    real, imaginary = cosine * first - sine * second, sine * first + cosine * second
    if case.attributes.boolean("interleaved", False):
        output = np.stack([real, imaginary], -1).reshape(turned.shape)
    else:
        output = np.concatenate([real, imaginary], -1)
    output = np.concatenate([output, rest], -1)
    output = output.reshape(data.shape) if data.ndim == 3 else output.transpose(0, 2, 1, 3)
    return narrow(output, data.dtype)
