"""Which numbers are legal in an input that says positions or sizes, with the shapes of this run."""

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from math import prod

from ir_scatter.core.shapes import Shape, agree, is_static
from ir_scatter.inputs import size_limits
from ir_scatter.inputs.asked import Asked
from ir_scatter.inputs.limits import Limits, exactly, sizes_of, within
from ir_scatter.ops.constraints import Constraint as Need
from ir_scatter.ops.constraints import Meaning
from ir_scatter.ops.general_kernels.base import Array

_MOST_DIMENSIONS = 8
"""Up to so many every choice of them is tried."""

_BOX = ((0, 0, 0, 3, 3), (0, 2, 2, 6, 6))


def limits_of(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    """Return which numbers are legal, None if nothing can be said.

    Args:
        need: what the operator needs of the input.
        asked: the node.
        array: the input.
        terms: those of the input, NO_TERM for what cannot be changed.
    """
    found = _LIMITS[need.meaning](need, asked, array, terms)
    if found is None or not found.lows:
        return None
    lows, highs = found.lows, [max(ends) for ends in zip(found.lows, found.highs, strict=True)]
    if array.dtype.kind == "u":
        lows, highs = [max(low, 0) for low in lows], [max(high, 0) for high in highs]
    return Limits(lows, highs, found.are_different)


def _position(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    return within(0, (asked.size(need.of, asked.axis(need.axis)) or 1) - 1)


def _coordinates(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    batch, shape = asked.attributes.get("batch_dims", 0), asked.shape(need.of)
    depth = array.shape[-1] if array.ndim else 0
    if shape is None:
        return exactly([0] * depth)
    dims = shape[int(batch) : int(batch) + depth]
    return Limits([0] * depth, sizes_of(dims, less=1)) if len(dims) == depth else None


def _flat(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    return Limits([0], [prod(sizes_of(asked.shape(need.of))) - 1], are_different=True)


def _dimension(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    rank = asked.rank(need.of)
    return None if not rank else Limits([0], [rank - 1 + need.high], are_different=array.size > 1)


def _new_dimension(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    """Return those that the output has more than the input, as far as both are known."""
    rank, before = asked.rank(need.of), asked.shape(need.of)
    after = asked.declared[0] if asked.declared else None
    for places in _choices_of(after, array.size):
        if agree(tuple(dim for number, dim in enumerate(after or ()) if number not in places), before):
            return exactly(places)
    return None if rank is None else Limits([0], [rank + array.size - 1], are_different=array.size > 1)


def _reduced(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    """Return those that the output lacks, or of which it has 1, as far as that is known."""
    before = asked.shape(need.of)
    after = asked.declared[0] if asked.declared else None
    for places in _choices_of(before, array.size) if is_static(after) else ():
        rest = [(number in places, dim) for number, dim in enumerate(before or ())]
        kept = tuple(1 if is_gone else dim for is_gone, dim in rest)
        if after in {kept, tuple(dim for is_gone, dim in rest if not is_gone)}:
            return exactly(places)
    return _dimension(need, asked, array, terms)


def _choices_of(shape: Shape, count: int) -> Iterator[tuple[int, ...]]:
    """Yield every choice of so many dimensions."""
    if shape is not None and len(shape) <= _MOST_DIMENSIONS:
        yield from combinations(range(len(shape)), count)


def _ones(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    ones = [number for number, size in enumerate(asked.shape(need.of) or ()) if size == 1]
    return exactly([*ones, *[0] * array.size][: array.size])


def _number(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    return within(need.low, need.high)


def _count(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    return within(need.low, asked.size(need.of, asked.axis(need.axis)) or 1)


def _size(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    size = asked.size(need.of, asked.axis(need.axis))
    return within(need.low, need.high) if size is None else within(size, size)


def _kept(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    found = _output_size(need, asked)
    return _count(need, asked, array, terms) if found is None else within(found, found)


def _output_size(need: Need, asked: Asked) -> int | None:
    axis = asked.axis(need.axis)
    return None if axis is None else asked.output_size(axis)


def _length(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    found = _output_size(need, asked)
    return within(need.low, need.high) if found is None else within(found, found)


def _below(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    return within(0, min(asked.numbers(need.of) or [1]) - 1)


def _segments(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    count = max(min(asked.numbers(need.of) or [1]), 1)
    return exactly([number * count // array.size for number in range(array.size)])


def _offsets(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    count = prod(sizes_of(asked.shape(need.of)))
    return exactly([number * count // array.size for number in range(array.size)])


def _ascending(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    row = max(array.shape[-1], 1) if array.ndim else 1
    return exactly([number % row for number in range(array.size)])


def _boxes(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    if array.ndim != 2 or array.shape[1] != len(_BOX[0]):
        return None
    return Limits(_BOX[0], [(asked.size(need.of, 0) or 1) - 1, *_BOX[1][1:]])


def _choices(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    return None


_LIMITS: Mapping[Meaning, Callable[[Need, Asked, Array, Array], Limits | None]] = {
    Meaning.POSITION: _position,
    Meaning.COORDINATES: _coordinates,
    Meaning.FLAT: _flat,
    Meaning.DIMENSION: _dimension,
    Meaning.NEW_DIMENSION: _new_dimension,
    Meaning.REDUCED: _reduced,
    Meaning.ONES: _ones,
    Meaning.NUMBER: _number,
    Meaning.COUNT: _count,
    Meaning.SIZE: _size,
    Meaning.KEPT: _kept,
    Meaning.BELOW: _below,
    Meaning.SEGMENTS: _segments,
    Meaning.OFFSETS: _offsets,
    Meaning.ASCENDING: _ascending,
    Meaning.BOXES: _boxes,
    Meaning.LENGTH: _length,
    Meaning.LENGTHS: size_limits.lengths,
    Meaning.RESHAPED: size_limits.reshaped,
    Meaning.TARGET: size_limits.target,
    Meaning.LIKE: size_limits.like,
    Meaning.SCALES: size_limits.scales,
    Meaning.REPEATS: size_limits.repeats,
    Meaning.PARTS: size_limits.parts,
    Meaning.BEGIN: size_limits.begin,
    Meaning.END: size_limits.end,
    Meaning.PADS: size_limits.pads,
    Meaning.PADS_BEGIN: size_limits.pads,
    Meaning.PADS_END: size_limits.pads,
    Meaning.GRID: size_limits.grid,
    Meaning.BLOCKS: size_limits.blocks,
    Meaning.CHOICES: _choices,
}
