"""The scatter operators as a loop over elements, written from their documents for the tests alone."""

import operator
from bisect import bisect_left
from functools import cache, reduce
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

Array = Any
Position = tuple[int, ...]
_finfo: Any = ml_dtypes.finfo

NARROW_FLOATS = {
    "float16", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn",
}  # fmt: skip
NARROW_INTEGERS = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}
WORDS = {"add": "sum", "mul": "prod"}


def positions(shape: tuple[int, ...]) -> list[Position]:
    return list(product(*map(range, shape)))


def hits(
    type: str, data: Array, indices: Array, updates: Array, axis: int = 0, mode: str = "linear"
) -> list[tuple[Position, Any]]:
    """Give each update with the position in data that it is for, in row-major order of indices."""
    if "ND" in type:
        return list(_nd(data, indices, updates))
    axis %= data.ndim
    if type == "ScatterUpdate":
        return list(_slices(data, indices, updates, axis))
    if type == "TensorScatter":
        return list(_cache(data, indices, updates, axis, mode))
    found = []
    for place in positions(indices.shape):
        target = list(place)
        target[axis] = int(indices[place]) % data.shape[axis]
        found.append((tuple(target), updates[place]))
    return found


def _nd(data: Array, indices: Array, updates: Array) -> Any:
    depth = indices.shape[-1]
    if updates.size == 1 and depth == data.ndim:
        updates = updates.reshape(indices.shape[:-1])
    for place in positions(indices.shape[:-1]):
        numbers = zip(indices[place], data.shape[:depth], strict=True)
        start = tuple(int(number) % size for number, size in numbers)
        for rest in positions(data.shape[depth:]):
            yield start + rest, updates[place + rest]


def _slices(data: Array, indices: Array, updates: Array, axis: int) -> Any:
    for place in positions(indices.shape):
        for before in positions(data.shape[:axis]):
            for after in positions(data.shape[axis + 1 :]):
                yield (*before, int(indices[place]), *after), updates[before + place + after]


def _cache(data: Array, indices: Array, updates: Array, axis: int, mode: str) -> Any:
    for place in positions(updates.shape):
        target = list(place)
        start = 0 if indices is None else int(indices[place[0]])
        target[axis] = start + place[axis]
        if mode == "circular":
            target[axis] %= data.shape[axis]
        yield tuple(target), updates[place]


def scatter(
    type: str,
    data: Array,
    indices: Array,
    updates: Array,
    axis: int = 0,
    reduction: str = "none",
    use_init_val: bool = True,
    mode: str = "linear",
) -> Array:
    """Compute a scatter operator; `reduction` in the words of any dialect."""
    by_target: dict[Position, list[Any]] = {}
    for position, update in hits(type, data, indices, updates, axis, mode):
        by_target.setdefault(position, []).append(update)
    output = data.copy()
    for position, values in by_target.items():
        if reduction == "none":
            output[position] = values[-1]
        else:
            old = [data[position]] if use_init_val else []
            output[position] = join(reduction, data.dtype, old, values)
    return output


def _less(left: Any, right: Any) -> Any:
    """Return the smaller one; NaN if one is NaN."""
    return left if left != left or not (right < left or right != right) else right


def _greater(left: Any, right: Any) -> Any:
    return left if left != left or not (right > left or right != right) else right


STEPS: dict[str, Any] = {
    "sum": operator.add, "mean": operator.add, "sub": operator.sub, "prod": operator.mul,
    "min": _less, "max": _greater,
}  # fmt: skip
BOOLEAN_STEPS: dict[str, Any] = {
    "sum": operator.or_, "max": operator.or_, "prod": operator.and_, "min": operator.and_, "sub": operator.xor,
}  # fmt: skip


def join(reduction: str, dtype: Any, old: list[Any], updates: list[Any]) -> Any:
    """Join what is there, or nothing, with updates; a sum or mean without an old value starts from 0."""
    word, values = WORDS.get(reduction, reduction), [*old, *updates]
    if dtype == np.bool_:
        return reduce(BOOLEAN_STEPS[word], map(bool, values))
    is_whole = dtype.kind in "iu" or dtype.name in NARROW_INTEGERS
    is_narrow = dtype.name in NARROW_FLOATS
    number: Any = int if is_whole else dtype.type
    if is_narrow or (dtype == np.float32 and word == "mean"):
        number = np.float64
    start = [number(0)] if word in {"sum", "mean"} and not old else []
    with np.errstate(all="ignore"):
        numbers = [*start, *map(number, values)]
        result = reduce(lambda left, right: number(STEPS[word](left, right)), numbers)
        if word == "mean":
            result = result // len(values) if is_whole else number(result / len(values))
    if is_whole:
        low, high = NARROW_INTEGERS.get(dtype.name) or (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return dtype.type((result - int(low)) % (int(high) - int(low) + 1) + int(low))
    return nearest(float(result), dtype) if is_narrow else dtype.type(result)


@cache
def _magnitudes(dtype: Any) -> list[float]:
    """List the finite numbers of a type of at most 16 bits without their sign: its codes in order."""
    bits = 16 if dtype == np.float16 else int(_finfo(dtype).bits)
    codes = np.arange(1 << (bits - (dtype.name != "float8_e8m0fnu"))).astype(f"u{dtype.itemsize}")
    with np.errstate(all="ignore"):
        values = codes.view(dtype).astype(np.float64)
    return [float(value) for value in values if np.isfinite(value)]


def nearest(value: float, dtype: Any) -> Any:
    """Round to nearest, ties to an even code; what is not finite or too great is left to a cast.

    The type that holds powers of two only rounds the middle up, and has NaN for what is not above 0.
    """
    sizes, is_power, size = _magnitudes(dtype), dtype.name == "float8_e8m0fnu", abs(value)
    half = (sizes[-1] - sizes[-2]) / (1 if is_power else 2)
    if not size < sizes[-1] + half or (is_power and value <= 0):
        limit = float(np.finfo(np.float32).max)
        rest = np.nan if is_power else np.clip(value, -limit, limit) if np.isfinite(value) else value
        with np.errstate(all="ignore"):
            return np.float32(rest).astype(dtype)
    code = min(bisect_left(sizes, size), len(sizes) - 1)
    down, up = size - sizes[code - 1], sizes[code] - size
    if code and (down < up or (down == up and code % 2 and not is_power)):
        code -= 1
    found = np.array(code).astype(f"u{dtype.itemsize}").view(dtype)[()]
    return -found if np.signbit(value) else found
