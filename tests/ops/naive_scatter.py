"""The scatter operators as a loop over elements, written from their documents for the tests alone."""

from bisect import bisect_left
from fractions import Fraction
from functools import cache
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


def join(reduction: str, dtype: Any, old: list[Any], updates: list[Any]) -> Any:
    """Join what is there, or nothing, with updates; a sum or mean without an old value starts from 0."""
    if dtype == np.bool_:
        return _join_booleans(reduction, [*map(bool, old), *map(bool, updates)])
    if dtype.kind in "iu" or dtype.name in NARROW_INTEGERS:
        return _join_integers(reduction, dtype, [*map(int, old), *map(int, updates)])
    if dtype.name in NARROW_FLOATS or (dtype == np.float32 and reduction == "mean"):
        wide = [np.float64(value) for value in (*old, *updates)]
        exact = _join_numbers(reduction, wide, np.float64, is_from_zero=not old)
        return np.float32(exact) if dtype == np.float32 else nearest(float(exact), dtype)
    return _join_numbers(reduction, [*old, *updates], dtype.type, is_from_zero=not old)


def _join_booleans(reduction: str, values: list[bool]) -> bool:
    if reduction in {"sum", "add", "max"}:
        return any(values)
    if reduction in {"prod", "mul", "min"}:
        return all(values)
    assert reduction == "sub"
    return sum(values) % 2 == 1


def _join_integers(reduction: str, dtype: Any, values: list[int]) -> Any:
    if reduction in {"min", "max"}:
        return dtype.type(min(values) if reduction == "min" else max(values))
    if reduction == "mean":
        return dtype.type(sum(values) // len(values))
    result = values[0]
    for value in values[1:]:
        if reduction in {"sum", "add"}:
            result += value
        elif reduction == "sub":
            result -= value
        else:
            result *= value
    low, high = NARROW_INTEGERS.get(dtype.name) or (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return dtype.type((int(result) - int(low)) % (int(high) - int(low) + 1) + int(low))


def _join_numbers(reduction: str, values: list[Any], number: Any, *, is_from_zero: bool) -> Any:
    if reduction in {"min", "max"}:
        return _first_in_order(reduction, values)
    result = values[0]
    if is_from_zero and reduction in {"sum", "mean"}:
        result = number(number(0) + result)
    with np.errstate(all="ignore"):
        for value in values[1:]:
            if reduction in {"sum", "add", "mean"}:
                result = number(result + value)
            elif reduction == "sub":
                result = number(result - value)
            else:
                result = number(result * value)
        return number(result / len(values)) if reduction == "mean" else result


def _first_in_order(reduction: str, values: list[Any]) -> Any:
    for value in values:
        if value != value:
            return value
    best = values[0]
    for value in values[1:]:
        if (value < best) if reduction == "min" else (value > best):
            best = value
    return best


@cache
def _table(dtype: Any) -> tuple[list[Fraction], list[Any]]:
    """List every finite number of a type of at most 16 bits that is not negative zero, in order."""
    codes = np.arange(1 << (8 * dtype.itemsize)).astype(f"u{dtype.itemsize}")
    if ml_dtypes_bits(dtype) < 8:
        codes = codes[: 1 << ml_dtypes_bits(dtype)]
    found = {}
    with np.errstate(all="ignore"):
        values = codes.view(dtype).astype(np.float64)
    for code, number in zip(codes, values, strict=True):
        if np.isfinite(number) and not (number == 0 and np.signbit(number)):
            found[Fraction(float(number))] = code
    ordered = sorted(found)
    return ordered, [found[number] for number in ordered]


def ml_dtypes_bits(dtype: Any) -> int:
    return 16 if dtype == np.float16 else int(_finfo(dtype).bits)


def nearest(value: float, dtype: Any) -> Any:
    """Round to nearest, ties to an even code; what is not finite or too great is left to a cast."""
    if dtype.name == "float8_e8m0fnu":
        return _power_of_two(value, dtype)
    numbers, codes = _table(dtype)
    if not np.isfinite(value) or not numbers[0] <= Fraction(value) <= numbers[-1]:
        return _beyond(value, dtype, numbers)
    exact = Fraction(value)
    if exact == 0:
        return np.float32(value).astype(dtype)
    place = bisect_left(numbers, exact)
    if numbers[place] == exact:
        best = place
    else:
        low, high = exact - numbers[place - 1], numbers[place] - exact
        is_low = low < high or (low == high and codes[place - 1] % 2 == 0)
        best = place - 1 if is_low else place
    rounded = codes[best].view(dtype)
    return -rounded if numbers[best] == 0 and value < 0 else rounded


def _power_of_two(value: float, dtype: Any) -> Any:
    """Round to the nearest of 2^-127 to 2^127, the middle up; nothing else exists but NaN."""
    if not 0 < value < np.inf:
        return np.float32(np.nan).astype(dtype)
    fraction, exponent = np.frexp(value)
    exponent = max(int(exponent) - (0 if fraction >= 0.75 else 1), -127)
    power = 2.0**exponent if exponent <= 127 else np.nan
    return np.float32(power).astype(dtype)


def _beyond(value: float, dtype: Any, numbers: list[Fraction]) -> Any:
    """Round what lies outside of the finite numbers: the next one, if there were one, decides."""
    if np.isfinite(value) and value > 0:
        half = (numbers[-1] - numbers[-2]) / 2
        if Fraction(value) < numbers[-1] + half:
            return np.float32(float(numbers[-1])).astype(dtype)
    if np.isfinite(value) and value < 0 and numbers[0] < 0:
        half = (numbers[-1] - numbers[-2]) / 2
        if -Fraction(value) < numbers[-1] + half:
            return np.float32(float(numbers[0])).astype(dtype)
    with np.errstate(all="ignore"):
        huge = np.float32(np.inf) if value > 0 else np.float32(-np.inf) if value < 0 else np.float32(value)
        finite = np.finfo(np.float32).max * np.sign(huge) if np.isfinite(value) else huge
        return np.asarray(finite, np.float32).astype(dtype)[()]
