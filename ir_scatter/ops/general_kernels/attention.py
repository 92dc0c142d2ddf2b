"""Kernels of attention: ScaledDotProductAttention of OpenVINO, Attention and RotaryEmbedding of ONNX.

Heads are [batch, heads, rows, size]. Several heads of the query may share a head of key and value:

    query [2, 6, 5, 8], key [2, 3, 9, 8]    heads 0 and 1 of the query attend to head 0 of the key
"""

from typing import Any, NamedTuple

import numpy as np

from ir_scatter.core.arrays import Array, kind
from ir_scatter.core.shapes import show
from ir_scatter.ops.general_kernels.base import REAL, KernelCase, UnsupportedCase, narrow, require_kind, widen
from ir_scatter.ops.general_kernels.normalize import softmax_of

_MOST_SCORES = 1 << 22
"""Limit of scores that are computed at once, unless they are an output."""


class Scores(NamedTuple):
    """The stages of the scores [batch, heads, rows, columns] that some operators output.

    Attributes:
        raw: products of query and key.
        capped: after the soft cap.
        biased: after the bias and the mask.
        weights: after softmax.
    """

    raw: Array
    capped: Array
    biased: Array
    weights: Array


class Rules(NamedTuple):
    """The computation of weights from scores.

    All arrays broadcast to [batch, heads, rows, columns].

    Attributes:
        scale: factor of the products.
        bias: added to scores; None for no bias.
        allowed: whether a row may attend to a column; None for everywhere.
        cap: scores are limited by cap * tanh(score / cap); 0 for no limit.
        sink: scores of an additional column without a value, [heads, 1, 1]; None for no such column.
    """

    scale: float
    bias: Array | None = None
    allowed: Array | None = None
    cap: float = 0.0
    sink: Array | None = None

    def part(self, shape: tuple[int, ...], batch: int, heads: slice) -> "Rules":
        """Return the rules for one batch and some heads, for scores of a shape."""
        bias, allowed = (
            None if array is None else np.broadcast_to(array, shape)[batch : batch + 1, heads]
            for array in (self.bias, self.allowed)
        )
        sink = None if self.sink is None else self.sink[heads]
        return self._replace(bias=bias, allowed=allowed, sink=sink)


def attend(query: Array, key: Array, value: Array, rules: Rules) -> Array:
    """Return weighted sums of values, [batch, heads, rows, value size]; many scores are computed in parts."""
    batch, heads, rows, _ = query.shape
    each = _heads_each(query, key)
    shape = (batch, heads, rows, key.shape[2])
    if np.prod(shape, dtype=float) <= _MOST_SCORES:
        return _sums(scores(query, key, rules).weights, value)
    output = np.empty((batch, heads, rows, value.shape[3]), query.dtype)
    for number, group in np.ndindex(batch, key.shape[1]):
        chosen = slice(group * each, (group + 1) * each)
        part = rules.part(shape, number, chosen)
        one, place = slice(number, number + 1), slice(group, group + 1)
        weights = scores(query[one, chosen], key[one, place], part).weights
        output[one, chosen] = _sums(weights, value[one, place])
    return output


def scores(query: Array, key: Array, rules: Rules) -> Scores:
    """Return the scores of all rows. A row that may attend to nothing has weights of 0."""
    batch, heads, rows, size = query.shape
    each, type = _heads_each(query, key), query.dtype.type
    grouped = (query * type(rules.scale)).reshape(batch, key.shape[1], each * rows, size)
    raw = np.matmul(grouped, key.swapaxes(-1, -2)).reshape(batch, heads, rows, key.shape[2])
    capped = raw if not rules.cap else type(rules.cap) * np.tanh(raw / type(rules.cap))
    biased = capped if rules.bias is None else capped + rules.bias.astype(type)
    if rules.allowed is not None:
        biased = np.where(rules.allowed, biased, type(-np.inf))
    return Scores(raw, capped, biased, _weights(biased, rules.sink))


def _heads_each(query: Array, key: Array) -> int:
    heads, groups = query.shape[1], key.shape[1]
    if not groups or heads % groups:
        raise UnsupportedCase(f"{heads} heads of the query do not share {groups} heads of the key")
    return int(heads // groups)


def _weights(biased: Array, sink: Array | None) -> Array:
    if not biased.size:
        return biased
    highest = biased.max(-1, keepdims=True)
    if sink is not None:
        highest = np.maximum(highest, sink.astype(biased.dtype))
    highest = np.where(np.isneginf(highest), biased.dtype.type(0), highest)
    powers = np.exp(biased - highest)
    total = powers.sum(-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink.astype(biased.dtype) - highest)
    powers /= np.where(total == 0, total.dtype.type(1), total)
    return np.asarray(powers)


def _sums(weights: Array, value: Array) -> Array:
    batch, heads, rows, columns = weights.shape
    grouped = weights.reshape(batch, value.shape[1], heads // value.shape[1] * rows, columns)
    return np.asarray(np.matmul(grouped, value).reshape(batch, heads, rows, value.shape[3]))


def split_heads(data: Array, heads: int) -> Array:
    """Reshape [batch, rows, heads * size] to [batch, heads, rows, size]."""
    if data.ndim != 3 or heads < 1 or data.shape[2] % heads:
        raise UnsupportedCase(f"data of shape {show(data.shape)} does not have {heads} heads")
    return data.reshape(*data.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def join_heads(data: Array) -> Array:
    """Reshape [batch, heads, rows, size] to [batch, rows, heads * size]."""
    batch, heads, rows, size = data.shape
    return data.transpose(0, 2, 1, 3).reshape(batch, rows, heads * size)


def distances(rows: int, columns: int, offset: Any) -> Array:
    """Return the position of each row minus that of each column: [..., rows, columns]."""
    positions = np.asarray(offset)[..., None, None] + np.arange(rows)[:, None]
    return np.asarray(positions - np.arange(columns))


def attention(case: KernelCase) -> tuple[Array, ...]:
    """Compute ONNX's Attention: output, keys and values including past ones, and scores."""
    query, key, value = case.arrays(3)
    require_kind(REAL, query, key, value)
    is_flat, type = query.ndim == 3, query.dtype
    wide = [widen(array) for array in (query, key, value)]
    if is_flat:
        counts = [case.attributes.integer(f"{word}_num_heads") for word in ("q", "kv", "kv")]
        wide = [split_heads(array, count) for array, count in zip(wide, counts, strict=True)]
    if any(array.ndim != 4 for array in wide):
        raise UnsupportedCase(f"the query has shape {show(query.shape)}, expected 3 or 4 dimensions")
    if case.has(4) != case.has(5) or (case.has(6) and case.has(4)):
        raise UnsupportedCase("past_key and past_value come together, and without nonpad_kv_seqlen")
    offset: Any = 0
    if case.has(4):
        past = [widen(case.array(port)) for port in (4, 5)]
        offset = past[0].shape[2]
        wide[1:] = [np.concatenate(pair, 2) for pair in zip(past, wide[1:], strict=True)]
    rules, lengths = _rules_of_onnx(case, wide, offset)
    case.reserve((*wide[0].shape[:3], wide[2].shape[3]))
    mode = case.attributes.integer("qk_matmul_output_mode", 0)
    if mode not in range(4):
        raise UnsupportedCase(f"qk_matmul_output_mode is {mode}, expected 0 to 3")
    if case.output_count > 3 or lengths is not None:
        stages = scores(wide[0], wide[1], rules)
        output, stage = _sums(stages.weights, wide[2]), stages[mode]
    else:
        output, stage = attend(wide[0], wide[1], wide[2], rules), np.empty(0, type)
    present = [array.astype(type) for array in wide[1:]]
    if is_flat:
        output = join_heads(output)
    return output.astype(type), *present, stage.astype(type)


def _rules_of_onnx(case: KernelCase, wide: list[Array], offset: Any) -> tuple[Rules, Array | None]:
    """Return the rules of Attention, and the lengths of its keys without padding."""
    query, key, _ = wide
    rows, columns = query.shape[2], key.shape[2]
    lengths = case.array(6).reshape(-1) if case.has(6) else None
    allowed, bias = None, None
    if case.has(3):
        mask = case.array(3)
        short = columns - mask.shape[-1]
        is_boolean = kind(mask) == "boolean"
        padding = False if is_boolean else -np.inf
        mask = mask if is_boolean else widen(mask)
        if short > 0:
            widths = [(0, 0)] * (mask.ndim - 1) + [(0, short)]
            mask = np.pad(mask, widths, constant_values=padding)
        allowed, bias = (mask, None) if is_boolean else (None, mask)
    if lengths is not None:
        offset = (lengths - rows)[:, None]
    ahead, back = (case.attributes.integer(f"{side}_window_size", -1) for side in ("right", "left"))
    if min(ahead, back) < -1:
        raise UnsupportedCase("a window size is below -1")
    distance = distances(rows, columns, offset)
    conditions = [] if allowed is None else [allowed]
    if case.attributes.boolean("is_causal", False):
        conditions.append(distance >= 0)
    if ahead >= 0:
        conditions.append(-distance <= ahead)
    if back >= 0:
        conditions.append(distance <= back)
    if lengths is not None:
        conditions.append(np.arange(columns) < lengths[:, None, None, None])
    if bias is not None:  # what is not allowed has a bias of -inf, whatever the score is
        conditions.append(~np.isneginf(bias))
    for condition in conditions:
        allowed = condition if allowed is None or condition is allowed else allowed & condition
    scale = case.attributes.number("scale", 1 / np.sqrt(query.shape[3]))
    cap = case.attributes.number("softcap", 0.0)
    if cap < 0:
        raise UnsupportedCase(f"softcap is {cap}, expected 0 or more")
    return Rules(scale, bias, allowed, cap), lengths


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
    wide = split_heads(wide, heads) if wide.ndim == 3 else wide
    angles = [widen(array) for array in (cosines, sines)]
    if case.has(3):
        angles = tables_at(angles, case.array(3))
    size = case.attributes.integer("rotary_embedding_dim", 0) or wide.shape[-1]
    output = rotate(wide, angles, size, is_interleaved=case.attributes.boolean("interleaved", False))
    return narrow(join_heads(output) if data.ndim == 3 else output, data.dtype)


def tables_at(tables: list[Array], positions: Array) -> list[Array]:
    """Return the rows of tables of cosines and sines at some positions."""
    size = tables[0].shape[0]
    if positions.size and not (positions.min() >= 0 and positions.max() < size):
        raise UnsupportedCase("a position is outside of the tables of cosines and sines")
    return [table[positions] for table in tables]


def rotate(data: Array, angles: list[Array], size: int, *, is_interleaved: bool) -> Array:
    """Rotate the first `size` elements of heads by angles [batch, rows, size / 2]."""
    cosine, sine = (array[:, None].astype(data.dtype, copy=False) for array in angles)
    if cosine.shape[-1] != size // 2:
        raise UnsupportedCase(f"there are {cosine.shape[-1]} angles for {size} elements")
    turned, rest = data[..., :size], data[..., size:]
    if is_interleaved:
        first, second = turned[..., 0::2], turned[..., 1::2]
    else:
        first, second = turned[..., : size // 2], turned[..., size // 2 :]
    real, imaginary = cosine * first - sine * second, sine * first + cosine * second
    if is_interleaved:
        output = np.stack([real, imaginary], -1).reshape(turned.shape)
    else:
        output = np.concatenate([real, imaginary], -1)
    return np.concatenate([output, rest], -1)
