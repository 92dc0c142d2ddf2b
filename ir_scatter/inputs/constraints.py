"""What the nodes of a run ask of the numbers that reach them: constraints with the sizes of this run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ir_scatter.analysis.constants import opset_number
from ir_scatter.analysis.interpreter import Step
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.arrays import Array, kind
from ir_scatter.core.shapes import Bounds, Dim, Shape, agree, is_static
from ir_scatter.evaluate.model import by_role, site_of
from ir_scatter.inputs.provenance import NO_TERM, Cell
from ir_scatter.ops import index_values
from ir_scatter.ops.constraints import Axis, Constraint, Meaning, Numbers
from ir_scatter.ops.general import constraints_of
from ir_scatter.ops.general_shapes import ShapeCase, ShapesDiffer, windows
from ir_scatter.ops.lookup import Lookup
from ir_scatter.ops.spec import IndexRange, Layout, Reduction, Role

_MOST_NUMBERS = 64
_FARTHEST = 2**62
_MOST_DIMENSIONS = 8
"""Up to so many every choice of them is tried."""

_LARGEST_BLOCK = 1 << 10


@dataclass(frozen=True, slots=True)
class IndexConstraint:
    """What indices of one scatter node must be, beyond what its operator demands.

    Attributes:
        are_unique: no two name the same target.
        are_non_negative: none counts from the end.
        are_equal: along every axis but the one they count on, they are equal.
    """

    are_unique: bool = False
    are_non_negative: bool = False
    are_equal: bool = False


_FREE = IndexConstraint()


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """A place where numbers must lie in a range, and maybe differ.

    Attributes:
        name: the node, for messages.
        terms: [n, k]: n targets of k coordinates each.
        values: [n, k]: what they are in this run.
        lows: [k]: the least legal coordinates.
        highs: [k]: the greatest.
        lanes: [n]: targets of different lanes never meet.
        shape: of the array that holds them.
        is_legal: whether what they are in this run is legal.
        is_unique: whether targets should differ.
        are_equal: whether the targets of all lanes should be equal.
        is_unkept: whether targets repeat or lanes differ in this run though they should not.
        is_strict: whether it must be legal; otherwise other numbers may be of no use, and no more.
        is_scatter: whether they are the indices of a scatter node.
        wraps: whether numbers below 0 count from the end.
        may_repeat: whether the document says what comes out if targets repeat.
    """

    name: str
    terms: Array
    values: Array
    lows: Array
    highs: Array
    lanes: Array
    shape: tuple[int, ...]
    is_legal: bool
    is_unique: bool = False
    are_equal: bool = False
    is_unkept: bool = False
    is_strict: bool = True
    is_scatter: bool = False
    wraps: bool = False
    may_repeat: bool = False

    @property
    def least(self) -> Array:
        """Return the least legal coordinates, those that count from the end included."""
        return self.lows - (self.highs + 1) if self.wraps else self.lows

    @property
    def room(self) -> int:
        """Return how many different targets there are in a lane."""
        return int(np.prod(np.maximum(self.highs - self.lows + 1, 0), dtype=np.float64).clip(0, _FARTHEST))

    @property
    def lane_size(self) -> int:
        """Return how many targets a lane has."""
        return int(np.bincount(self.lanes).max(initial=0))

    @property
    def is_crowded(self) -> bool:
        """Tell whether some lane has more targets than there is room for."""
        return self.is_unique and self.lane_size > self.room

    @property
    def has_terms(self) -> bool:
        """Tell whether some input has a part in it."""
        return bool((self.terms != NO_TERM).any())

    def describe(self) -> str:
        """Say which positions are not legal."""
        spans = ", ".join(f"{low} to {high}" for low, high in zip(self.least, self.highs, strict=True))
        return f"positions between {self.values.min()} and {self.values.max()}, expected {spans}"

    def repaired(self, array: Array) -> Array:
        """Return legal positions instead of those that are not."""
        highest = np.maximum(self.highs, self.lows)
        values = np.where(is_within(self.values, self.least, highest), self.values, self.lows)
        is_roomy = self.is_unique and len(self.lows) == 1 and len(values) <= self.room
        if is_roomy and len(np.unique(values)) != values.size:
            values = self.lows + np.arange(len(values)).reshape(-1, 1)
        return values.reshape(array.shape).astype(array.dtype)


class NodeInRun:
    """A node and what reaches it in one run.

    Attributes:
        step: the node.
        cells: its inputs.
        arrays: the arrays of its inputs; None for one that was left out or has no known shape.
        symbols: the sizes of dimensions by their symbols.
    """

    def __init__(self, step: Step, cells: Sequence[Cell | None], symbols: Mapping[str, int]) -> None:
        self.step, self.cells, self.symbols = step, cells, symbols
        self.arrays: list[Array | None] = [None if cell is None else cell.array for cell in cells]

    def cell(self, port: int | None) -> Cell | None:
        """Return an input, None if it is not there."""
        return self.cells[port] if port is not None and -len(self.cells) <= port < len(self.cells) else None

    def shape(self, port: int) -> Shape:
        """Return what is known of the shape of an input, None if nothing is."""
        cell = self.cell(port)
        return None if cell is None else cell.shape

    def size(self, port: int, axis: int | None) -> int | None:
        """Return the size of a dimension of an input; with None for the dimension the least of all."""
        shape = self.shape(port)
        if not shape:
            return None
        return min(_sizes(shape)) if axis is None else _at(shape, axis)

    def numbers(self, port: int | None) -> list[int] | None:
        """Return the whole numbers of an input; None if they are not known, or too many."""
        cell = self.cell(port)
        array = None if cell is None or port is None else self.arrays[port]
        if cell is None or array is None or (cell.is_opaque and cell.terms is None):
            return None
        if array.size > _MOST_NUMBERS or array.dtype.kind not in "iu":
            return None
        return [int(number) for number in array.reshape(-1)]

    def axis(self, axis: Axis) -> int | None:
        """Return the number of a dimension; None if it is not known."""
        if axis.port is not None:
            return next(iter(self.numbers(axis.port) or ()), None)
        if axis.attribute is None:
            return axis.default
        try:
            return int(self.step.node.attributes.get(axis.attribute, axis.default))
        except (TypeError, ValueError):
            return None

    @property
    def shape_case(self) -> ShapeCase:
        """Return the node as shape rules see it."""
        shapes = [None if array is None else array.shape for array in self.arrays]
        return ShapeCase(shapes, self.numbers, self.step.node.attributes)

    @cached_property
    def declared(self) -> list[Shape]:
        """Return what the model says of the shapes of the outputs."""
        return [
            None if output.shape is None else tuple(map(self._resolved, output.shape))
            for output in self.step.node.outputs
        ]

    @property
    def output(self) -> Shape:
        """Return what the model says of the shape of the first output."""
        return self.declared[0] if self.declared else None

    def output_size(self, axis: int | None) -> int | None:
        """Return the size of a dimension of the first output, as the model says it."""
        return None if self.output is None or axis is None else _at(self.output, axis)

    def _resolved(self, dim: Dim) -> Dim:
        is_named = isinstance(dim, Bounds) and dim.symbol is not None
        return self.symbols.get(dim.symbol, dim) if is_named else dim  # type: ignore[union-attr, arg-type]


def uses_of(node: NodeInRun, constraint: IndexConstraint | None = None) -> Iterator[tuple[int, Use]]:
    """Yield the inputs that hold positions or sizes, and what they must be.

    Nothing is said of inputs whose shapes do not fit each other: the node will refuse them. Positions that
    no input has a part in are left to the node itself.

    Args:
        node: the node.
        constraint: what indices of a scatter node must be as well.
    """
    if isinstance(node.step.work, Lookup):
        yield from _scatter_uses(node, constraint or _FREE)
        return
    for need in constraints_of(node.step.node.domain, node.step.node.type):
        cell = node.cell(need.port)
        if cell is None or cell.array is None or (cell.terms is None and not cell.is_opaque):
            continue
        if not cell.array.size or not _is_of(need, cell.array):
            continue
        limits = limits_of(need, node, cell)
        if limits is not None and limits.lows and cell.array.size % len(limits.lows) == 0:
            yield need.port, _general_use(node.step, need, limits, cell)


def _general_use(step: Step, need: Constraint, limits: "Limits", cell: Cell) -> Use:
    assert cell.array is not None
    ends = np.array([limits.lows, np.maximum(limits.lows, limits.highs)], np.int64)
    lows, highs = np.maximum(ends, 0) if cell.array.dtype.kind == "u" else ends
    values, terms = columns(cell.array, len(lows)), columns(cell.all_terms, len(lows))
    opset = opset_number(step.node)
    wraps = need.wraps_since is not None and opset is not None and opset >= need.wraps_since
    least = lows - (highs + 1) if wraps else lows
    is_legal = bool((is_within(values, least, highs) | (terms == NO_TERM)).all())
    if limits.are_different and is_legal and bool((terms != NO_TERM).all()):
        is_legal = len(np.unique(values)) == values.size
    lanes = np.zeros(len(values), np.int64)
    return Use(
        step.node.scope, terms, values, lows, highs, lanes, cell.array.shape, is_legal,
        is_unique=limits.are_different, is_strict=need.is_strict, wraps=wraps,
    )  # fmt: skip


def too_small(node: NodeInRun) -> Iterator[tuple[int, int]]:
    """Yield sizes that are too small for the positions that the model itself names, with how large."""
    for need in constraints_of(node.step.node.domain, node.step.node.type):
        cell = node.cell(need.port)
        if need.meaning is not Meaning.POSITION or cell is None or cell.origins or cell.is_opaque:
            continue
        size = node.size(need.of, node.axis(need.axis))
        yield from (pair for pair in reached(node.arrays[need.port], size) if pair[1] > pair[0])


def reached(indices: Array | None, size: int | None) -> Iterator[tuple[int, int]]:
    """Yield the size of a dimension with how large positions on it say that it is."""
    if size is not None and indices is not None and indices.size and indices.dtype.kind in "iu":
        yield size, max(int(indices.max()) + 1, -int(indices.min()))


def _scatter_uses(node: NodeInRun, constraint: IndexConstraint) -> Iterator[tuple[int, Use]]:
    """Yield the uses of axis and indices."""
    assert isinstance(node.step.work, Lookup)
    site, operands = site_of(node.step), by_role(node.step.work, node.arrays)
    ports = {role: site.spec.port_index(role) for role in Role}
    data = node.cell(ports[Role.DATA])
    if data is None:
        return
    axis = axis_of(site, operands)
    if axis is not None and data.shape is not None:
        cell, rank = node.cell(ports[Role.AXIS]), len(data.shape)
        if cell is not None and cell.terms is not None:
            yield ports[Role.AXIS] or 0, _axis_use(node.step, cell, axis, rank)
        axis = axis if -rank <= axis < rank else 0
    cell = node.cell(ports[Role.INDICES])
    if cell is None or cell.array is None or not _holds_numbers(cell.array):
        return
    highs = _highs(site, data.shape, cell.array, operands.get(Role.UPDATES), axis)
    if highs is not None:
        yield ports[Role.INDICES] or 0, _index_use(node.step, site, cell, axis, highs, constraint)


def axis_of(site: ScatterNode, operands: dict[Role, Array]) -> int | None:
    """Return the axis as it is given, None if there is none."""
    source = site.spec.axis
    if source is None:
        return None
    if source.attribute is not None:
        return int(site.attribute(source.attribute))
    array = operands.get(Role.AXIS)
    return (
        None if array is None or array.size != 1 or not _holds_numbers(array) else int(array.reshape(-1)[0])
    )


def _axis_use(step: Step, cell: Cell, axis: int, rank: int) -> Use:
    values, lanes = np.array([[axis]]), np.zeros(1, np.int64)
    ends, is_legal = (np.array([0]), np.array([rank - 1])), -rank <= axis < rank
    return Use(step.node.scope, cell.all_terms.reshape(1, 1), values, *ends, lanes, (), is_legal)


def _highs(
    site: ScatterNode, data: Shape, indices: Array, updates: Array | None, axis: int | None
) -> list[int] | None:
    """Return the greatest legal coordinates; None where ranks do not fit."""
    layout = site.spec.layout
    depth = indices.shape[-1] if layout is Layout.TUPLES and indices.ndim else 1
    if data is None:
        return [0] * depth
    if layout is Layout.TUPLES:
        is_fitting = indices.ndim > 0 and depth <= len(data)
        return [size - 1 for size in _sizes(data[:depth])] if is_fitting else None
    if axis is None or not -len(data) <= axis < len(data):
        return None
    if layout is Layout.ELEMENTS and indices.ndim != len(data):
        return None
    (size,) = _sizes((data[axis],))
    is_linear = layout is Layout.SEQUENCE and site.attribute("mode") == "linear"
    if is_linear and updates is not None and updates.ndim == len(data):
        size -= updates.shape[axis] - 1
    return [max(size, 1) - 1 if layout is Layout.SEQUENCE and not is_linear else size - 1]


def _index_use(
    step: Step, site: ScatterNode, cell: Cell, axis: int | None, highs: list[int], constraint: IndexConstraint
) -> Use:
    layout, depth, indices = site.spec.layout, len(highs), cell.array
    assert indices is not None
    values, terms = columns(indices, depth), columns(cell.all_terms, depth)
    is_documented = step.node.opset in site.spec.opsets
    wraps = site.spec.index_range is IndexRange.WRAPPING and is_documented and not constraint.are_non_negative
    most = np.array(highs, np.int64)
    in_range = is_within(values, -most - 1 if wraps else 0, most)
    is_left_alone = (terms == NO_TERM) & (cell.is_opaque or not cell.origins)
    is_unique = site.reduction is Reduction.NONE or constraint.are_unique
    is_unique = is_unique and layout is not Layout.SEQUENCE
    lanes = lanes_of(layout, axis, indices) if depth else np.zeros(0, np.int64)
    are_equal, is_unkept = constraint.are_equal and layout is Layout.ELEMENTS, False
    if is_unique and bool(in_range.all()) and not cell.is_unclear:
        place = None if axis is None else axis % max(indices.ndim, 1)
        sizes = [high + 1 for high in highs]
        is_unkept = index_values.repeats(layout, place, indices, sizes, wraps=wraps) is not None
    if are_equal and len(values):
        table = by_lane(lanes, values)
        is_unkept = is_unkept or bool((table != table[:1]).any())
    return Use(
        step.node.scope, terms, values, np.zeros(depth, np.int64), most, lanes, indices.shape,
        bool((in_range | is_left_alone).all()) or depth == 0,
        is_unique, are_equal, is_unkept, is_scatter=True, wraps=wraps,
        may_repeat=site.reduction not in {None, Reduction.NONE} and not constraint.are_unique,
    )  # fmt: skip


def lanes_of(layout: Layout, axis: int | None, indices: Array) -> Array:
    """Number the targets that can meet each other: for one index per element, those of one lane."""
    if layout is Layout.TUPLES:
        return np.zeros(indices.size // max(indices.shape[-1], 1), np.int64)
    if layout is not Layout.ELEMENTS or axis is None:
        return np.zeros(indices.size, np.int64)
    others = [1 if number == axis % indices.ndim else dim for number, dim in enumerate(indices.shape)]
    grid = np.arange(prod(others)).reshape(others)
    return np.broadcast_to(grid, indices.shape).reshape(-1).copy()


def by_lane(lanes: Array, array: Array) -> Array:
    """Return what there is for each target as a table of lanes."""
    return array[np.argsort(lanes, kind="stable")].reshape(int(lanes.max(initial=0)) + 1, -1)


def _holds_numbers(array: Array) -> bool:
    return kind(array) in {"signed", "unsigned", "float"}


def _is_of(need: Constraint, array: Array) -> bool:
    """Tell whether a constraint speaks of arrays of this type."""
    if need.numbers is Numbers.ANY or not _holds_numbers(array):
        return _holds_numbers(array)
    return (kind(array) == "float") is (need.numbers is Numbers.FLOAT)


def columns(array: Array, depth: int) -> Array:
    """Return an array as rows of `depth` whole numbers; what is no number that fits counts as -1."""
    if array.dtype.kind == "f":
        wide = array.astype(np.float64)
        array = np.where(np.abs(wide) < 2.0**62, wide, -1)
    if array.dtype == np.uint64:
        array = np.where(array < 2**63, array, np.uint64(0)).astype(np.int64) - (array >= 2**63)
    return array.astype(np.int64).reshape(-1, depth) if depth else np.zeros((0, 0), np.int64)


def is_within(values: Array, lows: Any, highs: Any) -> Array:
    """Tell which numbers lie in a range."""
    return np.asarray((values >= lows) & (values <= highs))


def _at(shape: Sequence[Dim], axis: int) -> int | None:
    dim = shape[axis] if -len(shape) <= axis < len(shape) else None
    return dim if isinstance(dim, int) else None


def _sizes(shape: Shape) -> list[int]:
    """Return the sizes of dimensions, 1 for one that is not known."""
    return [dim if isinstance(dim, int) else 1 for dim in shape or ()]


class Limits(NamedTuple):
    """The legal numbers of an input: one range for all, or one for each column of its elements."""

    lows: Sequence[int]
    highs: Sequence[int]
    are_different: bool = False


def _exactly(numbers: Sequence[int]) -> Limits:
    return Limits(numbers, numbers)


def limits_of(need: Constraint, node: NodeInRun, cell: Cell) -> Limits | None:
    """Return which numbers are legal, or of use; None if nothing can be said."""
    assert cell.array is not None
    array, of = cell.array, need.of
    count, shape, axis = array.size, node.shape(of), node.axis(need.axis)
    size, ones = node.size(of, axis), [1] * count
    match need.meaning:
        case Meaning.POSITION:
            return Limits([0], [(size or 1) - 1])
        case Meaning.COORDINATES:
            depth, batch = (
                array.shape[-1] if array.ndim else 0,
                int(node.step.node.attributes.get("batch_dims", 0)),
            )
            dims = [1] * depth if shape is None else _sizes(shape[batch : batch + depth])
            return Limits([0] * depth, [dim - 1 for dim in dims]) if len(dims) == depth else None
        case Meaning.FLAT:
            return Limits([0], [prod(_sizes(shape)) - 1], are_different=True)
        case Meaning.DIMENSION | Meaning.NEW_DIMENSION | Meaning.REDUCED:
            return _dimensions(need, node, count)
        case Meaning.ONES:
            places = [number for number, dim in enumerate(_sizes(shape)) if dim == 1]
            return _exactly([*places, *[0] * count][:count])
        case Meaning.NUMBER:
            return Limits([need.low], [need.high])
        case Meaning.COUNT:
            return Limits([need.low], [size or 1])
        case Meaning.SIZE:
            return Limits([need.low], [need.high]) if size is None else _exactly([size])
        case Meaning.KEPT | Meaning.LENGTH:
            found = node.output_size(axis)
            high = need.high if need.meaning is Meaning.LENGTH else size or 1
            return Limits([need.low], [high]) if found is None else _exactly([found])
        case Meaning.BELOW:
            return Limits([0], [min(node.numbers(of) or [1]) - 1])
        case Meaning.SEGMENTS | Meaning.OFFSETS:
            is_offset = need.meaning is Meaning.OFFSETS
            whole = prod(_sizes(shape)) if is_offset else max(min(node.numbers(of) or [1]), 1)
            return _exactly([number * whole // count for number in range(count)])
        case Meaning.ASCENDING:
            row = max(array.shape[-1], 1) if array.ndim else 1
            return _exactly([number % row for number in range(count)])
        case Meaning.BOXES if array.ndim == 2 and array.shape[1] == 5:
            return Limits([0, 0, 0, 3, 3], [(node.size(of, 0) or 1) - 1, 2, 2, 6, 6])
        case Meaning.PARTS:
            return _exactly(_parts(node, axis, size, count))
        case Meaning.RESHAPED:
            return _exactly(_reshaped(need, node, cell))
        case Meaning.TARGET:
            return _target(need, node, count)
        case Meaning.GRID:
            sizes = [node.output_size(number - 1) for number in range(2, count)]
            front = [node.size(of, 0) or 1, 1]
            return Limits([*front, *(size or 2 for size in sizes)], [*front, *(size or 4 for size in sizes)])
        case Meaning.BLOCKS:
            return _exactly(_blocks(need, node, count) or ones)
        case Meaning.LENGTHS | Meaning.REPEATS:
            places = list(range(need.first, need.first + count))
            wanted = [node.output_size(place) for place in places]
            if need.meaning is Meaning.REPEATS:
                before = [node.size(of, place) for place in places]
                wanted = [old and new and new // old for old, new in zip(before, wanted, strict=True)]
            ends = [(need.low, need.high) if new is None else (new, new) for new in wanted]
            return Limits([low for low, _ in ends], [high for _, high in ends])
        case Meaning.BOXES | Meaning.CHOICES:
            return None
        case _:
            return _resized(need, node, count)


def _dimensions(need: Constraint, node: NodeInRun, count: int) -> Limits | None:
    """Return dimensions that differ; those that the output has more or less, as far as that is known."""
    before, after = node.shape(need.of), node.output
    rank = None if before is None else len(before)
    if need.meaning is Meaning.NEW_DIMENSION:
        for places in _choices(after, count):
            if agree(tuple(dim for number, dim in enumerate(after or ()) if number not in places), before):
                return _exactly(places)
        rank = None if rank is None else rank + count
    elif need.meaning is Meaning.REDUCED and is_static(after):
        for places in _choices(before, count):
            kept = tuple(1 if number in places else dim for number, dim in enumerate(before or ()))
            rest = tuple(dim for number, dim in enumerate(before or ()) if number not in places)
            if after in {kept, rest}:
                return _exactly(places)
    return None if not rank else Limits([0], [rank - 1 + need.high], are_different=count > 1)


def _choices(shape: Shape, count: int) -> Iterator[tuple[int, ...]]:
    """Yield every choice of so many dimensions."""
    if shape is not None and len(shape) <= _MOST_DIMENSIONS:
        yield from combinations(range(len(shape)), count)


def _parts(node: NodeInRun, axis: int | None, size: int | None, count: int) -> list[int]:
    """Return the sizes of parts: as declared, or equal ones."""
    declared = [None if axis is None or not shape else _at(shape, axis) for shape in node.declared]
    sizes = [part for part in declared if part is not None]
    if len(sizes) == count:
        return sizes
    size = 1 if size is None else size
    return [*[size // count] * (count - 1), size - size // count * (count - 1)]


def _declared_sizes(node: NodeInRun, count: int) -> list[int] | None:
    """Return the shape of the output if it is declared and has so many dimensions."""
    is_whole = is_static(node.output) and len(node.output or ()) == count
    return _sizes(node.output) if is_whole else None


def _reshaped(need: Constraint, node: NodeInRun, cell: Cell) -> list[int]:
    """Keep what is constant, and let the rest hold the elements that are left."""
    assert cell.array is not None
    count, declared = cell.array.size, _declared_sizes(node, cell.array.size)
    if declared is not None:
        return declared
    if node.shape(need.of) is None:
        return [node.output_size(number) or 1 for number in range(count)]
    sizes, wanted = _sizes(node.shape(need.of)), [int(number) for number in cell.array.reshape(-1)]
    if 0 in sizes:
        return [*sizes, *[0] * count][:count]
    free = [number for number, term in enumerate(cell.all_terms.reshape(-1)) if term != NO_TERM]
    rest = prod(sizes)
    for number in set(range(count)) - set(free):
        own = sizes[number] if wanted[number] == 0 and number < len(sizes) else wanted[number]
        rest = 0 if own < 0 else rest // max(own, 1)
    for number in free:
        size = sizes[number] if number < len(sizes) and number != free[-1] else rest
        wanted[number] = size if size > 0 and rest % size == 0 else 1
        rest //= wanted[number]
    return wanted


def _target(need: Constraint, node: NodeInRun, count: int) -> Limits:
    """Return a shape to which an input is repeated."""
    declared = _declared_sizes(node, count)
    if declared is not None:
        return _exactly(declared)
    dims, sizes = [1] * count, _sizes(node.shape(need.of))
    places = node.numbers(need.axes)
    for place, size in zip(
        range(count - len(sizes), count) if places is None else places, sizes, strict=False
    ):
        if 0 <= place < count:
            dims[place] = size
    return Limits(dims, [2 if size == 1 else size for size in dims])


def _resized(need: Constraint, node: NodeInRun, count: int) -> Limits:
    """Return what says how dimensions change: as declared, or so that they stay or lose little."""
    is_whole_pad = need.meaning is Meaning.PADS
    places = _places(need, node, count)[: count // 2 if is_whole_pad else count]
    pairs = [
        (None, None) if place is None else (node.size(need.of, place), node.output_size(place))
        for place in places
    ]
    zeros = [0] * len(pairs)
    match need.meaning:
        case Meaning.LIKE:
            wanted = [old if new is None or need.of else new for old, new in pairs]
            return _exactly([1 if size is None else size for size in wanted])
        case Meaning.SCALES:
            return _exactly([max(new // old, 1) if old and new else 1 for old, new in pairs])
        case Meaning.BEGIN:
            return Limits(zeros, [0 if old is None or new is not None else old - 1 for old, new in pairs])
        case Meaning.END:
            return _exactly([(old or 1) if new is None else new for old, new in pairs])
    grown = [None if old is None or new is None else new - old for old, new in pairs]
    room = [min((old or 1) - 1, 1) for old, _ in pairs]
    before = Limits(zeros, [most if more is None else 0 for more, most in zip(grown, room, strict=True)])
    behind = Limits(
        [more or 0 for more in grown],
        [most if more is None else more for more, most in zip(grown, room, strict=True)],
    )
    if is_whole_pad:
        return Limits([*before.lows, *behind.lows], [*before.highs, *behind.highs])
    return before if need.meaning is Meaning.PADS_BEGIN else behind


def _places(need: Constraint, node: NodeInRun, count: int) -> list[int | None]:
    """Return the dimension that each number speaks of."""
    shape, given = node.shape(need.of), None
    axes = need.axes if need.axes is None or need.axes >= 0 else len(node.cells) - 1
    if "axes" in node.step.node.attributes:
        given = node.shape_case.written.integers("axes", ())
    elif axes is not None and axes != need.port:
        given = node.numbers(axes)
        if given is None and node.shape(axes) is not None:
            return [None] * count
    found = list(range(need.first, need.first + count)) if given is None else given
    return [place % len(shape) if shape else None for place in [*found, *[0] * count][:count]]


def _blocks(need: Constraint, node: NodeInRun, count: int) -> tuple[int, ...] | None:
    """Return a shape of blocks of which as many fit into the output as there are columns."""
    rows, columns = node.size(need.of, 1) or 1, node.size(need.of, 2)
    declared = [node.output_size(2 + number) for number in range(count)]
    spatial = [size for size in declared if size is not None]
    if len(spatial) < count:
        spatial = (node.numbers(need.port - 1) or [1] * count)[:count]
    channels = node.output_size(1)
    wanted = range(1, rows + 1) if channels is None else [rows // max(channels, 1)]
    for number in wanted if rows <= _LARGEST_BLOCK else ():
        for shape in _factors(number, count) if rows % number == 0 else ():
            try:
                if prod(windows(node.shape_case, tuple(spatial), shape)) == columns:
                    return shape
            except (ShapesDiffer, LookupError, TypeError, ValueError, ZeroDivisionError):
                continue
    return None


def _factors(number: int, count: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to write a number as a product of so many."""
    if count == 1:
        yield (number,)
    for first in range(1, number + 1) if count > 1 else ():
        if number % first == 0:
            yield from ((first, *rest) for rest in _factors(number // first, count - 1))
