"""The legal numbers of inputs that say sizes: shapes of outputs, parts, pads."""

from collections.abc import Iterator
from math import prod

from ir_scatter.inputs.asked import Asked
from ir_scatter.inputs.limits import Limits, exactly, sizes_of
from ir_scatter.inputs.terms import NO_TERM
from ir_scatter.ops.constraints import Constraint as Need
from ir_scatter.ops.constraints import Meaning
from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.ops.general_shapes import ShapeCase, ShapesDiffer, windows

_LARGEST_BLOCK = 1 << 10


def lengths(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    """Return the sizes of the output."""
    sizes = [asked.output_size(need.first + number) for number in range(array.size)]
    lows = [need.low if size is None else size for size in sizes]
    return Limits(lows, [need.high if size is None else size for size in sizes])


def reshaped(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    """Keep what is constant, and let the rest hold the elements that are left."""
    declared = [asked.output_size(number) for number in range(array.size)]
    if asked.output_rank() == array.size and all(size is not None for size in declared):
        return exactly([size or 0 for size in declared])
    shape = asked.shape(need.of)
    if shape is None:
        return exactly([1 if size is None else size for size in declared])
    sizes = sizes_of(shape)
    if 0 in sizes:
        return exactly([*sizes, *[0] * array.size][: array.size])
    free = [number for number, term in enumerate(terms.reshape(-1)) if term != NO_TERM]
    wanted = [int(number) for number in array.reshape(-1)]
    rest = prod(sizes)
    for number in set(range(array.size)) - set(free):
        own = sizes[number] if wanted[number] == 0 and number < len(sizes) else wanted[number]
        rest = 0 if own < 0 else rest // max(own, 1)
    for number in free:
        size = sizes[number] if number < len(sizes) and number != free[-1] else rest
        fits = size > 0 and rest % size == 0
        wanted[number] = size if fits else 1
        rest //= wanted[number]
    return exactly(wanted)


def target(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    """Return a shape to which an input is repeated."""
    if asked.output_rank() == array.size:
        declared = [asked.output_size(number) for number in range(array.size)]
        if all(size is not None for size in declared):
            return exactly([size or 0 for size in declared])
    dims = [1] * array.size
    places = asked.numbers(need.axes) if need.axes is not None else None
    sizes = sizes_of(asked.shape(need.of))
    aligned = range(array.size - len(sizes), array.size) if places is None else places
    for place, size in zip(aligned, sizes, strict=False):
        if 0 <= place < array.size:
            dims[place] = size
    return Limits(dims, [2 if size == 1 else size for size in dims])


def _places(need: Need, asked: Asked, array: Array) -> list[int | None]:
    """Return the dimension that each number speaks of."""
    written = asked.integers("axes")
    rank, count = asked.rank(need.of), array.size
    axes = need.axes if need.axes is None or need.axes >= 0 else len(asked.cells) - 1
    axes = None if axes == need.port else axes
    given = written if axes is None or written is not None else asked.numbers(axes)
    if axes is not None and given is None and asked.shape(axes) is not None:
        return [None] * count
    found = list(range(need.first, need.first + count)) if given is None else given
    padded = [*found, *[0] * count][:count]
    return [place % rank if rank else None for place in padded]


def like(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    """Return new sizes of dimensions: as declared, or the old ones."""
    places = _places(need, asked, array)
    found = []
    for place in places:
        wanted = None if place is None or need.of else asked.output_size(place)
        size = None if place is None else asked.size(need.of, place)
        found.append(next((known for known in (wanted, size) if known is not None), 1))
    return exactly(found)


def scales(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    """Return by how much dimensions grow: as declared, or not at all."""
    pairs = [_before_and_after(need, asked, place) for place in _places(need, asked, array)]
    return exactly([max(after // before, 1) if before and after else 1 for before, after in pairs])


def _before_and_after(need: Need, asked: Asked, place: int | None) -> tuple[int | None, int | None]:
    """Return the size of a dimension of an input, and that of the output."""
    return (None, None) if place is None else (asked.size(need.of, place), asked.output_size(place))


def repeats(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    """Return how often each dimension is repeated."""
    pairs = [_before_and_after(need, asked, number) for number in range(array.size)]
    ends = [_ratio(need, before, after) for before, after in pairs]
    return Limits([low for low, _ in ends], [high for _, high in ends])


def _ratio(need: Need, before: int | None, after: int | None) -> tuple[int, int]:
    if not before or after is None:
        return need.low, need.high
    return after // before, after // before


def parts(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    """Return the sizes of parts: as declared, or equal ones."""
    axis = asked.axis(need.axis)
    declared = [shape[axis] for shape in asked.declared if shape and axis is not None and axis < len(shape)]
    sizes = [size for size in declared if isinstance(size, int)]
    if len(sizes) == array.size > 0:
        return exactly(sizes)
    size, count = asked.size(need.of, axis), max(array.size, 1)
    size = 1 if size is None else size
    return exactly([*[size // count] * (count - 1), size - size // count * (count - 1)])


def begin(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    """Return where a part begins: at the front if its size is declared."""
    highs = []
    for place in _places(need, asked, array):
        before, after = _before_and_after(need, asked, place)
        highs.append(0 if before is None or after is not None else before - 1)
    return Limits([0] * array.size, highs)


def end(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    """Return where a part ends."""
    pairs = [_before_and_after(need, asked, place) for place in _places(need, asked, array)]
    return exactly([(before or 1) if after is None else after for before, after in pairs])


def pads(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    """Put everything that is declared behind."""
    half = array.size // 2 if need.meaning is Meaning.PADS else array.size
    places = _places(need, asked, array)[:half]
    pairs = [_before_and_after(need, asked, place) for place in places]
    grown = [None if None in pair else (pair[1] or 0) - (pair[0] or 0) for pair in pairs]
    room = [min((before or 1) - 1, 1) for before, _ in pairs]
    behind = [more if less is None else less for more, less in zip(room, grown, strict=True)]
    low_behind = [0 if less is None else less for less in grown]
    before = [more if less is None else 0 for more, less in zip(room, grown, strict=True)]
    lows = {Meaning.PADS_BEGIN: [0] * half, Meaning.PADS_END: low_behind}
    highs = {Meaning.PADS_BEGIN: before, Meaning.PADS_END: behind}
    if need.meaning is Meaning.PADS:
        return Limits([*[0] * half, *low_behind], [*before, *behind])
    return Limits(lows[need.meaning], highs[need.meaning])


def grid(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    """Say batch, channels, then the sizes of the picture."""
    sizes = [asked.output_size(number - 1) for number in range(2, array.size)]
    front = [asked.size(need.of, 0) or 1, 1]
    return Limits([*front, *(size or 2 for size in sizes)], [*front, *(size or 4 for size in sizes)])


def blocks(need: Need, asked: Asked, array: Array, terms: Array) -> Limits | None:
    """Return a shape of blocks of which as many fit into the output as there are columns."""
    rows, columns = asked.size(need.of, 1) or 1, asked.size(need.of, 2)
    declared = [asked.output_size(2 + number) for number in range(array.size)]
    spatial = [size for size in declared if size is not None]
    if len(spatial) < array.size:
        spatial = (asked.numbers(need.port - 1) or [1] * array.size)[: array.size]
    channels = asked.output_size(1)
    wanted = range(1, rows + 1) if channels is None else [rows // max(channels, 1)]
    case = ShapeCase((), asked.numbers, asked.attributes)
    for number in wanted if rows <= _LARGEST_BLOCK else ():
        for shape in _factors(number, array.size) if rows % number == 0 else ():
            try:
                if prod(windows(case, tuple(spatial), shape)) == columns:
                    return exactly(shape)
            except (ShapesDiffer, LookupError, TypeError, ValueError, ZeroDivisionError):
                continue
    return exactly([1] * array.size)


def _factors(number: int, count: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to write a number as a product of so many."""
    if count < 1:
        return
    if count == 1:
        yield (number,)
        return
    for first in range(1, number + 1):
        if number % first == 0:
            yield from ((first, *rest) for rest in _factors(number // first, count - 1))
