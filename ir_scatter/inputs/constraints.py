"""What a node asks of the numbers and shapes that reach it, with the sizes of one run."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ir_scatter.analysis.conditions import Condition
from ir_scatter.analysis.interpreter import Step
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.arrays import Array, kind
from ir_scatter.core.shapes import Bounds, Dim, Shape, agree, agree_dims, highest, is_static, lowest
from ir_scatter.evaluate.model import by_role, scatter_node_of
from ir_scatter.inputs.provenance import NO_TERM, Cell
from ir_scatter.ops import index_values
from ir_scatter.ops.constraints import Axis, Constraint, Meaning, Numbers
from ir_scatter.ops.general import constraints_of, output_shapes
from ir_scatter.ops.general_shapes import ShapeCase, ShapesDiffer
from ir_scatter.ops.lookup import Lookup, opset_number
from ir_scatter.ops.spec import IndexRange, IndicesLimit, Layout, OpSpec, Reduction, Role

_MOST_NUMBERS = 64
_FARTHEST = 2**62
_MOST_DIMENSIONS = 8
"""Up to so many every choice of them is tried."""

Pairs: TypeAlias = list[tuple[int, int]]
Conditions: TypeAlias = Set[str]
"""Words of `Condition` that indices of a scatter node keep to, beyond its operator; full ones are equal."""

_Size = TypeVar("_Size")
"""A dimension: its size, or where it is."""


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """A place where numbers must lie in a range, and maybe differ.

    There are n targets of k coordinates: `terms` and `values`, those of this run, are [n, k], `lows` and
    `highs` [k]. `lanes` [n]: targets of different lanes never meet. `shape` is that of the
    array. Where `is_strict` is not set other numbers may be of no use, and no more; `is_unkept` says that
    targets repeat or lanes differ in this run though they should not.
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

    @property
    def least(self) -> Array:
        """The least legal coordinates, those that count from the end included."""
        return self.lows - (self.highs + 1) if self.wraps else self.lows

    @property
    def room(self) -> int:
        """How many different targets there are in a lane."""
        sizes: list[int] = (self.highs - self.lows + 1).tolist()
        return min(prod(max(size, 0) for size in sizes), _FARTHEST)

    @property
    def lane_size(self) -> int:
        return int(np.bincount(self.lanes).max(initial=0))

    @property
    def is_crowded(self) -> bool:
        """Whether some lane has more targets than there is room for."""
        return self.is_unique and self.lane_size > self.room

    @property
    def has_repeats(self) -> bool:
        """Whether two targets of a lane are the same in this run."""
        sizes = np.maximum(self.highs - self.lows + 1, 1)
        rows = np.column_stack([self.lanes, (self.values - self.lows) % sizes])
        return len(np.unique(rows, axis=0)) < len(rows)

    @property
    def has_terms(self) -> bool:
        """Whether some input has a part in it."""
        return bool((self.terms != NO_TERM).any())

    def describe(self) -> str:
        if (self.highs < self.least).any():
            return "no position is legal, as there is no room for what is written"
        spans = ", ".join(f"{low} to {high}" for low, high in zip(self.least, self.highs, strict=True))
        return f"positions between {self.values.min()} and {self.values.max()}, expected {spans}"

    def beyond(self) -> Pairs:
        """Return sizes that positions go beyond, with how large they would have to be."""
        pairs = zip(self.highs.tolist(), self.values.max(axis=0, initial=0).tolist(), strict=True)
        return [(high + 1, most + 1) for high, most in pairs if most > high]

    def repaired(self, array: Array) -> Array:
        """Return legal positions instead of those that are not."""
        highest = np.maximum(self.highs, self.lows)
        values = np.where(_is_within(self.values, self.least, highest), self.values, self.lows)
        return values.reshape(array.shape).astype(array.dtype)


class NodeInRun:
    """A node and what reaches it in one run; no array stands for what was left out or has no known shape."""

    def __init__(
        self,
        step: Step,
        cells: Sequence[Cell | None],
        symbols: Mapping[str, int],
        conditions: Conditions = frozenset(),
        *,
        may_repeat: bool = False,
    ) -> None:
        """Take what reaches a node; with `may_repeat` its targets may repeat without a reduction, too."""
        self.may_repeat = may_repeat
        self.step, self.cells, self.symbols, self.conditions = step, cells, symbols, conditions
        self.arrays: list[Array | None] = [None if cell is None else cell.array for cell in cells]
        is_general = not isinstance(step.work, Lookup)
        self.needs = constraints_of(step.node.domain, step.node.type) if is_general else ()

    def cell(self, port: int | None) -> Cell | None:
        return self.cells[port] if port is not None and -len(self.cells) <= port < len(self.cells) else None

    def shape(self, port: int) -> Shape:
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
        is_list = array.size <= _MOST_NUMBERS and array.dtype.kind in "iu"
        return array.reshape(-1).tolist() if is_list else None

    def axis(self, axis: Axis) -> int | None:
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
        shapes = [None if array is None else array.shape for array in self.arrays]
        return ShapeCase(shapes, self.numbers, self.step.node.attributes)

    @cached_property
    def declared(self) -> list[Shape]:
        """What the model says of the shapes of the outputs."""

        def size(dim: Dim) -> Dim:
            symbol = dim.symbol if isinstance(dim, Bounds) else None
            return dim if symbol is None else self.symbols.get(symbol, dim)

        shapes = [output.shape for output in self.step.node.outputs]
        return [None if shape is None else tuple(map(size, shape)) for shape in shapes]

    @property
    def output(self) -> Shape:
        return self.declared[0] if self.declared else None

    def output_size(self, axis: int | None) -> int | None:
        return None if self.output is None or axis is None else _at(self.output, axis)

    def too_small(self) -> Iterator[tuple[int, int]]:
        """Yield sizes that are too small for the positions that the model itself names, with how large."""
        for need in self.needs:
            cell = self.cell(need.port)
            if need.meaning is Meaning.POSITION and cell is not None and not (cell.origins or cell.is_opaque):
                size = self.size(need.of, self.axis(need.axis))
                yield from (pair for pair in _reached(self.arrays[need.port], size) if pair[1] > pair[0])

    def unmet(self) -> tuple[Pairs, Pairs]:
        """Return sizes that differ and should be equal, and sizes with how large they must be."""
        if isinstance(self.step.work, Lookup):
            return _unmet_by_scatter(self, self.step.work)
        try:
            output_shapes(self.step.node.domain, self.step.node.type, self.shape_case)
        except ShapesDiffer as error:
            return error.pairs, error.least
        return [], []


def uses_of(node: NodeInRun) -> Iterator[tuple[int, Use]]:
    """Yield the inputs that hold positions or sizes, and what they must be.

    Nothing is said of inputs whose shapes do not fit each other: the node will refuse them. Positions that
    no input has a part in are left to the node itself.
    """
    if isinstance(node.step.work, Lookup):
        yield from _scatter_uses(node, node.step.work)
    for need in node.needs:
        cell = node.cell(need.port)
        if cell is None or cell.array is None or (cell.terms is None and not cell.is_opaque):
            continue
        of_type = Numbers.FLOAT if kind(cell.array) == "float" else Numbers.WHOLE
        is_meant = _holds_numbers(cell.array) and need.numbers in {Numbers.ANY, of_type}
        if not cell.array.size or not is_meant:
            continue
        ranges = _ranges(need, node, cell)
        if ranges and cell.array.size % len(ranges) == 0:
            yield need.port, _general_use(node.step, need, cell, ranges)


def _general_use(step: Step, need: Constraint, cell: Cell, ranges: Pairs) -> Use:
    assert cell.array is not None
    lows, highs = np.array(ranges, np.int64).T
    lows, highs = lows.clip(0 if cell.array.dtype.kind == "u" else None), np.maximum(lows, highs)
    values, terms = columns(cell.array, len(lows)), columns(cell.all_terms, len(lows))
    opset = opset_number(step.node)
    wraps = need.wraps_since is not None and opset is not None and opset >= need.wraps_since
    is_legal = bool(
        (_is_within(values, lows - (highs + 1) if wraps else lows, highs) | (terms == NO_TERM)).all()
    )
    is_unique = need.meaning in _DIFFERENT and len(ranges) == 1
    if is_unique and is_legal and bool((terms != NO_TERM).all()):
        is_legal = len(np.unique(values)) == values.size
    return Use(
        step.node.scope, terms, values, lows, highs, np.zeros(len(values), np.int64), cell.array.shape,
        is_legal, is_unique, is_strict=need.is_strict, wraps=wraps,
    )  # fmt: skip


def _reached(indices: Array | None, size: int | None) -> Iterator[tuple[int, int]]:
    """Yield the size of a dimension with how large positions on it say that it is."""
    if size is not None and indices is not None and indices.size and indices.dtype.kind in "iu":
        yield size, max(int(indices.max()) + 1, -int(indices.min()))


def _scatter_uses(node: NodeInRun, lookup: Lookup) -> Iterator[tuple[int, Use]]:
    scatter, cells = scatter_node_of(node.step), by_role(lookup, node.cells)
    operands = by_role(lookup, node.arrays)
    if Role.DATA not in cells:
        return
    shape, axis, cell = cells[Role.DATA].shape, _axis_of(scatter, operands), cells.get(Role.INDICES)
    if axis is not None and shape is not None:
        rank, of_axis, zero = len(shape), cells.get(Role.AXIS), np.zeros(1, np.int64)
        is_legal, first = -rank <= axis < rank, 0
        if of_axis is not None and of_axis.terms is not None and rank:
            terms, port = of_axis.terms.reshape(1, 1), scatter.spec.port_index(Role.AXIS) or 0
            scope = node.step.node.scope
            first, last = _span_of_axes(_fitting_axes(node, scatter, lookup, rank), axis % rank)
            is_legal = is_legal and first <= axis % rank <= last
            yield port, Use(scope, terms, zero[None] + axis, zero + first, zero + last, zero, (), is_legal)
        axis = axis if is_legal else first
    if cell is not None and cell.array is not None and _holds_numbers(cell.array):
        sizes = _indexed_sizes(scatter, shape, cell.array, operands.get(Role.UPDATES), axis)
        if sizes is not None:
            use = _index_use(scatter, cell, axis, sizes, node.conditions, may_repeat=node.may_repeat)
            yield scatter.spec.port_index(Role.INDICES) or 0, use


def _span_of_axes(axes: Sequence[int], axis: int) -> tuple[int, int]:
    """Return a range of axes that may be drawn: all of them if there are none between, or else one."""
    if axes[-1] - axes[0] + 1 == len(axes):
        return axes[0], axes[-1]
    chosen = axis if axis in axes else axes[0]
    return chosen, chosen


def _fitting_axes(node: NodeInRun, scatter: ScatterNode, lookup: Lookup, rank: int) -> list[int]:
    """Return the axes along which shapes fit: of this run, else those that the model declares; else all."""
    of_run = {role: cell.shape for role, cell in by_role(lookup, node.cells).items()}
    ports = by_role(lookup, node.step.node.inputs)
    declared = {role: port.value.shape for role, port in ports.items() if port.value is not None}
    for shapes in (of_run, declared):
        data, indices, updates = (shapes.get(role) for role in (Role.DATA, Role.INDICES, Role.UPDATES))
        if data is None or indices is None or updates is None or len(data) != rank:
            continue
        axes = []
        for axis in range(rank):
            equal, most = ties(scatter.spec, data, indices, updates, axis, 0)
            is_fitting = all(agree_dims(one, other) for one, other in equal)
            if is_fitting and all(lowest(less) <= (highest(more) or lowest(less)) for less, more in most):
                axes.append(axis)
        if axes:
            return axes
    return list(range(rank))


def _are_equal(conditions: Conditions) -> bool:
    return not conditions.isdisjoint({Condition.EQUAL, Condition.FULL})


def _axis_of(scatter: ScatterNode, operands: Mapping[Role, Array]) -> int | None:
    """Return the axis as it is given, None if there is none."""
    source = scatter.spec.axis
    if source is not None and source.attribute is not None:
        number = scatter.attribute(source.attribute)
        return int(number) if isinstance(number, int | float) else None
    array = None if source is None else operands.get(Role.AXIS)
    is_number = array is not None and array.size == 1 and _holds_numbers(array)
    return int(array.reshape(-1)[0]) if array is not None and is_number else None


def _indexed_sizes(
    scatter: ScatterNode, data: Shape, indices: Array, updates: Array | None, axis: int | None
) -> list[int] | None:
    """Return how many positions each coordinate of an index may name; None where ranks do not fit."""
    layout = scatter.spec.layout
    depth = indices.shape[-1] if layout is Layout.TUPLES and indices.ndim else 1
    if data is None:
        return [1] * depth
    if layout is Layout.TUPLES:
        return _sizes(data[:depth]) if indices.ndim and depth <= len(data) else None
    if axis is None or not -len(data) <= axis < len(data):
        return None
    if layout is Layout.ELEMENTS and indices.ndim != len(data):
        return None
    (size,) = _sizes((data[axis],))
    if layout is not Layout.SEQUENCE:
        return [size]
    if scatter.attribute("mode") != "linear":
        return [max(size, 1)]
    return [size - updates.shape[axis] + 1 if updates is not None and updates.ndim == len(data) else size]


def _index_use(
    scatter: ScatterNode, cell: Cell, axis: int | None, sizes: list[int], conditions: Conditions,
    *, may_repeat: bool,
) -> Use:  # fmt: skip
    layout, depth, indices = scatter.spec.layout, len(sizes), cell.array
    assert indices is not None
    values, terms = columns(indices, depth), columns(cell.all_terms, depth)
    is_documented = scatter.node.opset in scatter.spec.opsets
    wraps = scatter.spec.index_range is IndexRange.WRAPPING and is_documented
    wraps = wraps and Condition.NON_NEGATIVE not in conditions
    most = np.array(sizes, np.int64) - 1
    in_range = _is_within(values, -most - 1 if wraps else 0, most)
    is_left_alone = (terms == NO_TERM) & (cell.is_opaque or not cell.origins)
    is_unique = scatter.reduction is Reduction.NONE or Condition.UNIQUE in conditions
    is_unique = is_unique and layout is not Layout.SEQUENCE and not may_repeat
    lanes = index_values.lanes(layout, axis, indices) if depth else np.zeros(0, np.int64)
    are_equal, is_unkept = _are_equal(conditions) and layout is Layout.ELEMENTS, False
    if is_unique and bool(in_range.all()) and not cell.is_unclear:
        place = None if axis is None else axis % max(indices.ndim, 1)
        is_unkept = index_values.repeats(layout, place, indices, sizes, wraps=wraps) is not None
    if are_equal and len(values):
        table = by_lane(lanes, values)
        is_unkept = is_unkept or bool((table != table[:1]).any())
    return Use(
        scatter.node.scope, terms, values, np.zeros_like(most), most, lanes, indices.shape,
        bool((in_range | is_left_alone).all()) or depth == 0,
        is_unique, are_equal, is_unkept, is_scatter=True, wraps=wraps,
    )  # fmt: skip


def _unmet_by_scatter(node: NodeInRun, lookup: Lookup) -> tuple[Pairs, Pairs]:
    scatter, operands = scatter_node_of(node.step), by_role(lookup, node.arrays)
    if not {Role.DATA, Role.UPDATES} <= operands.keys():
        return [], []
    array, layout = operands.get(Role.INDICES), scatter.spec.layout
    data, updates = operands[Role.DATA].shape, operands[Role.UPDATES].shape
    indices, axis = () if array is None else array.shape, _axis_of(scatter, operands)
    depth = indices[-1] if indices and layout is Layout.TUPLES else 0
    if depth > len(data):
        return [(depth, len(data))], []
    if layout is not Layout.TUPLES and (axis is None or not -len(data) <= axis < len(data)):
        return [], []
    at = (axis or 0) % max(len(data), 1)
    equal, most = ties(
        scatter.spec, data, indices, updates, at, depth, are_indices_equal=_are_equal(node.conditions)
    )
    if depth == len(data) and len(indices) == 1:  # one number, whichever its rank
        equal = [(1, size) for size in updates]
    named = Pairs()
    cell = by_role(lookup, node.cells).get(Role.INDICES)
    if cell is not None and cell.array is not None and cell.terms is None:  # those that cannot be drawn
        is_linear = layout is Layout.SEQUENCE and scatter.attribute("mode") == "linear"
        more = max(updates[at] - 1, 0) if is_linear and at < len(updates) else 0
        if layout is not Layout.TUPLES:
            named += _reached(cell.array + more, data[at])
        for place, size in enumerate(data[:depth]):
            named += _reached(cell.array[..., place], size)
    equal = [(one, other) for one, other in equal if one != other]
    named += [(size, least) for least, size in most]
    return equal, [(size, wanted) for size, wanted in named if size < wanted]


def ties(
    spec: OpSpec, data: Sequence[_Size], indices: Sequence[_Size], updates: Sequence[_Size], axis: int,
    depth: int, *, are_indices_equal: bool = False,
) -> tuple[list[tuple[_Size, _Size]], list[tuple[_Size, _Size]]]:  # fmt: skip
    """Return dimensions of a scatter node that are equal, and those of which the first is no larger."""
    wanted, pairs = [*indices], list(zip(indices, data, strict=False))
    equal, most = list[tuple[_Size, _Size]](), list[tuple[_Size, _Size]]()
    match spec.layout:
        case Layout.TUPLES:
            wanted = [*indices[:-1], *data[depth:]]
        case Layout.SLICES:
            wanted = [*data[:axis], *indices, *data[axis + 1 :]]
        case Layout.ELEMENTS:  # on the axis they may not be longer if they are to differ, no sooner
            others = [*pairs[:axis], *pairs[axis + 1 :]]
            equal = others if are_indices_equal else []
            most = others if spec.indices_limit is not IndicesLimit.NOWHERE else []
        case Layout.SEQUENCE:
            wanted, equal = [*data[:axis], *updates[axis : axis + 1], *data[axis + 1 :]], pairs
            most = list(zip(updates, data, strict=False))[axis : axis + 1]
    if len(wanted) == len(updates):  # else updates are one number
        equal = [*zip(wanted, updates, strict=True), *equal]
    return equal, most


def by_lane(lanes: Array, array: Array) -> Array:
    """Return what there is for each target as a table of lanes."""
    return array[np.argsort(lanes, kind="stable")].reshape(int(lanes.max(initial=0)) + 1, -1)


def _holds_numbers(array: Array) -> bool:
    return kind(array) in {"signed", "unsigned", "float"}


def columns(array: Array, depth: int) -> Array:
    """Return an array as rows of `depth` whole numbers; what is no number that fits counts as -1."""
    if array.dtype.kind == "f":
        wide = array.astype(np.float64)
        array = np.where(np.abs(wide) < 2.0**62, wide, -1)
    return array.astype(np.int64).reshape(-1, depth) if depth else np.zeros((0, 0), np.int64)


def _is_within(values: Array, lows: Any, highs: Any) -> Array:
    return np.asarray((values >= lows) & (values <= highs))


def _at(shape: Sequence[Dim], axis: int) -> int | None:
    dim = shape[axis] if -len(shape) <= axis < len(shape) else None
    return dim if isinstance(dim, int) else None


def _sizes(shape: Shape) -> list[int]:
    """Return the sizes of dimensions, 1 for one that is not known."""
    return [dim if isinstance(dim, int) else 1 for dim in shape or ()]


_DIFFERENT = {Meaning.FLAT, Meaning.DIMENSION, Meaning.NEW_DIMENSION, Meaning.REDUCED}
_ON_AXIS = {Meaning.POSITION, Meaning.COUNT, Meaning.SIZE, Meaning.KEPT, Meaning.LENGTH}


def _range(need: Constraint, meaning: Meaning, old: int | None, new: int | None) -> tuple[int, int]:
    """Return the range of a number, by its dimension in the input that it speaks of and in the output."""
    size, wanted, otherwise = old or 1, new, (need.low, need.high)
    match meaning:
        case Meaning.POSITION | Meaning.COORDINATES:
            return 0, size - 1
        case Meaning.COUNT:
            return need.low, size
        case Meaning.KEPT:
            otherwise = need.low, size
        case Meaning.SIZE:
            wanted = old
        case Meaning.REPEATS:
            wanted = new // old if old and new else None
        case Meaning.LIKE:
            wanted, otherwise = old if new is None or need.of else new, (1, 1)
        case Meaning.SCALES:
            wanted = max(new // old, 1) if old and new else 1
        case Meaning.BEGIN:
            return 0, 0 if new is not None else size - 1
        case Meaning.END:
            wanted = new or size
        case Meaning.TARGET:
            return new or size, new or (2 if old in {None, 1} else size)
        case Meaning.PADS_BEGIN | Meaning.PADS_END:  # what the output has more is put behind
            if old is None or new is None:
                return 0, min(size - 1, 1)
            wanted = 0 if meaning is Meaning.PADS_BEGIN else new - old
    return otherwise if wanted is None else (wanted, wanted)


def _ranges(need: Constraint, node: NodeInRun, cell: Cell) -> Pairs | None:
    """Return the legal or useful numbers of an input: one range for all, or one for each column."""
    assert cell.array is not None
    array, of, count, shape = cell.array, need.of, cell.array.size, node.shape(need.of)
    sizes = _sizes(shape)
    match need.meaning:
        case Meaning.CHOICES:
            return None
        case Meaning.NUMBER:
            return [(need.low, need.high)]
        case Meaning.FLAT:
            return [(0, prod(sizes) - 1)]
        case Meaning.BELOW:
            return [(0, min(node.numbers(of) or [1]) - 1)]
        case Meaning.DIMENSION if count == 1 and shape:
            axes, drawn = _fitting_dimensions(need, node, len(sizes)), int(array.reshape(-1)[0])
            return [_span_of_axes(axes, drawn % len(sizes))] if axes else _dimensions(need, node, count)
        case Meaning.DIMENSION | Meaning.NEW_DIMENSION | Meaning.REDUCED:
            return _dimensions(need, node, count)
        case Meaning.ONES:
            places = [number for number, dim in enumerate(sizes) if dim == 1]
            return _exactly([*places, *[0] * count][:count])
        case Meaning.SEGMENTS | Meaning.OFFSETS:
            is_offset = need.meaning is Meaning.OFFSETS
            whole = prod(sizes) if is_offset else max(min(node.numbers(of) or [1]), 1)
            return _exactly([number * whole // count for number in range(count)])
        case Meaning.ASCENDING:
            row = max(array.shape[-1], 1) if array.ndim else 1
            return _exactly([number % row for number in range(count)])
        case Meaning.BOXES:
            boxes = [(0, (node.size(of, 0) or 1) - 1), (0, 2), (0, 2), (3, 6), (3, 6)]
            return boxes if array.shape[1:] == (5,) else None
        case Meaning.PARTS:
            axis, size = node.axis(need.axis), node.size(of, node.axis(need.axis)) or 0
            declared = [None if axis is None or not part else _at(part, axis) for part in node.declared]
            parts = [part for part in declared if part is not None]
            equal = [*[size // count] * (count - 1), size - size // count * (count - 1)]
            return _exactly(parts if len(parts) == count else equal)
        case Meaning.GRID:
            rest = [node.output_size(number - 1) for number in range(2, count)]
            return [*_exactly([node.size(of, 0) or 1, 1]), *((size or 2, size or 4) for size in rest)]
        case Meaning.RESHAPED:
            return _exactly(_reshaped(need, node, cell))
        case Meaning.PADS:
            pairs = _old_and_new(need, node, array.shape, count // 2)
            ends = (Meaning.PADS_BEGIN, Meaning.PADS_END)
            return [_range(need, end, *pair) for end in ends for pair in pairs]
    pairs = _old_and_new(need, node, array.shape, count)
    return [_range(need, need.meaning, old, new) for old, new in pairs]


def _exactly(numbers: Sequence[int]) -> Pairs:
    return [(number, number) for number in numbers]


def _old_and_new(
    need: Constraint, node: NodeInRun, indices: tuple[int, ...], count: int
) -> list[tuple[int | None, int | None]]:
    """Return the sizes, before and after, of the dimension that each number speaks of."""
    shape, attributes = node.shape(need.of), node.step.node.attributes
    if need.meaning in _ON_AXIS:
        axis = node.axis(need.axis)
        return [(node.size(need.of, axis), node.output_size(axis))]
    if need.meaning is Meaning.COORDINATES:
        batch, depth = int(attributes.get("batch_dims", 0)), indices[-1] if indices else 0
        sizes = [1] * depth if shape is None else _sizes(shape[batch : batch + depth])
        return [(size, None) for size in sizes] if len(sizes) == depth else []
    if need.meaning is Meaning.TARGET:
        own = node.numbers(need.axes) or range(count - len(shape or ()), count)
        olds = dict(zip(own, _sizes(shape), strict=False))
        return [(olds.get(place), node.output_size(place)) for place in range(count)]
    given, axes = None, need.axes if need.axes is None or need.axes >= 0 else len(node.cells) - 1
    if "axes" in attributes:
        given = node.shape_case.written.integers("axes", ())
    elif axes is not None and axes != need.port:
        given = node.numbers(axes)
        if given is None and node.shape(axes) is not None:
            return [(None, None)] * count
    found = list(range(need.first, need.first + count)) if given is None else given
    if not shape:
        return [(None, None)] * count
    places = [place % len(shape) for place in [*found, *[0] * count][:count]]
    return [(node.size(need.of, place), node.output_size(place)) for place in places]


def _fitting_dimensions(need: Constraint, node: NodeInRun, rank: int) -> list[int]:
    """Return the axes for which outputs fit the declared shapes, and constant positions are in range."""
    port, axes = need.port, list[int]()
    kept, array = node.arrays[port], node.arrays[port]
    assert array is not None
    others = [other for other in node.needs if other.meaning is Meaning.POSITION and other.axis.port == port]
    try:
        for axis in range(rank + need.high):
            node.arrays[port] = np.full(array.shape, axis, array.dtype)
            try:
                shapes = output_shapes(node.step.node.domain, node.step.node.type, node.shape_case)
            except ShapesDiffer:
                continue
            fits = all(map(agree, shapes or (), node.declared))
            reached = [
                pair
                for other in others
                if (cell := node.cell(other.port)) is not None and not (cell.origins or cell.is_opaque)
                for pair in _reached(node.arrays[other.port], node.size(other.of, axis))
            ]
            if fits and all(least <= size for size, least in reached):
                axes.append(axis)
    finally:
        node.arrays[port] = kept
    return axes


def _dimensions(need: Constraint, node: NodeInRun, count: int) -> Pairs | None:
    """Return dimensions that differ; those that the output has more or less, as far as that is known."""
    before, after = node.shape(need.of), node.output
    is_new = need.meaning is Meaning.NEW_DIMENSION
    whole = after if is_new else before
    if whole is not None and len(whole) <= _MOST_DIMENSIONS and need.meaning is not Meaning.DIMENSION:
        for places in combinations(range(len(whole)), count):
            rest = tuple(dim for number, dim in enumerate(whole) if number not in places)
            kept = tuple(1 if number in places else dim for number, dim in enumerate(whole))
            if agree(rest, before) if is_new else is_static(after) and after in {kept, rest}:
                return _exactly(places)
    rank = len(before or ()) + (count if is_new and before is not None else 0)
    return [(0, rank - 1 + need.high)] if rank else None


def _reshaped(need: Constraint, node: NodeInRun, cell: Cell) -> list[int]:
    """Keep what is constant, and let the rest hold the elements that are left."""
    assert cell.array is not None
    count, sizes = cell.array.size, _sizes(node.shape(need.of))
    if is_static(node.output) and len(node.output or ()) == count:
        return _sizes(node.output)
    if node.shape(need.of) is None:
        return [node.output_size(number) or 1 for number in range(count)]
    if 0 in sizes:
        return [*sizes, *[0] * count][:count]
    wanted, rest = [int(number) for number in cell.array.reshape(-1)], prod(sizes)
    free = [number for number, term in enumerate(cell.all_terms.reshape(-1)) if term != NO_TERM]
    for number in set(range(count)) - set(free):
        own = sizes[number] if wanted[number] == 0 and number < len(sizes) else wanted[number]
        rest = 0 if own < 0 else rest // max(own, 1)
    for number in free:
        size = sizes[number] if number < len(sizes) and number != free[-1] else rest
        wanted[number] = size if size > 0 and rest % size == 0 else 1
        rest //= wanted[number]
    return wanted
