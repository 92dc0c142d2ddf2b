"""Finds which values each input of a node may have in one run, for the search of legal inputs.

A *run* computes the model once on drawn inputs of fixed sizes. A *target* is one index of a scatter node: a
single coordinate, or a tuple of coordinates for ScatterND. A *lane* is a set of targets that can overlap:
with ScatterElements each line along the axis is a lane of its own.
"""

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
from ir_scatter.inputs.network_shapes import shapes_of_outputs
from ir_scatter.inputs.provenance import NO_TERM, TracedCell
from ir_scatter.ops import index_values
from ir_scatter.ops.constraints import Axis, Constraint, Meaning, Numbers
from ir_scatter.ops.general import constraints_of, output_shapes
from ir_scatter.ops.general_shapes import ShapeCase, ShapesDiffer
from ir_scatter.ops.lookup import Lookup, opset_number
from ir_scatter.ops.spec import IndexRange, IndicesLimit, Layout, OpSpec, Reduction, Role

_MOST_NUMBERS = 64
"""Maximum elements of an input that is read as a list of numbers, such as a shape or axes."""
_FARTHEST = 2**62
"""Cap on the number of possible targets, to stay within int64."""
_MOST_DIMENSIONS = 8
"""Maximum rank for which all combinations of dimensions are tried."""

Pairs: TypeAlias = list[tuple[int, int]]
Conditions: TypeAlias = Set[str]
"""Extra conditions on the indices of a scatter node, as words of `Condition`; FULL implies EQUAL."""

_Size = TypeVar("_Size")
"""A dimension, given as its size or as its position in the shape."""


@dataclass(frozen=True, slots=True, eq=False)
class InputUse:
    """One use of an input as positions or sizes: n targets, each of k coordinates with a legal range.

    Example: indices [[0, 3], [5, 1]] of ScatterNDUpdate are n = 2 targets of k = 2 coordinates.

    Attributes:
        name: the scope of the node.
        terms: [n, k], which element of which model input each coordinate is computed from, see `Terms`.
        values: [n, k], the coordinates of this run.
        lows, highs: [k], inclusive bounds of the coordinates.
        lanes: [n], the lane number of each target; targets of different lanes never overlap.
        shape: the shape of the array.
        is_legal: whether all coordinates of this run are legal.
        is_unique: whether the targets of a lane must differ.
        are_equal: whether all lanes must have the same targets.
        is_violated: whether this run breaks `is_unique` or `are_equal`.
        is_strict: whether coordinates out of bounds are illegal; if False, they are only useless.
        is_scatter: whether the node is a scatter node.
        wraps: whether negative coordinates count from the end.
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
    is_violated: bool = False
    is_strict: bool = True
    is_scatter: bool = False
    wraps: bool = False

    @property
    def least(self) -> Array:
        """[k]: the lowest legal coordinates; negative if negative coordinates count from the end."""
        return self.lows - (self.highs + 1) if self.wraps else self.lows

    @property
    def room(self) -> int:
        """The number of different legal targets in a lane: the product of the sizes of the legal ranges."""
        sizes: list[int] = (self.highs - self.lows + 1).tolist()
        return min(prod(max(size, 0) for size in sizes), _FARTHEST)

    @property
    def lane_size(self) -> int:
        return int(np.bincount(self.lanes).max(initial=0))

    @property
    def is_crowded(self) -> bool:
        """Whether targets must differ, but a lane has more of them than legal positions."""
        return self.is_unique and self.lane_size > self.room

    @property
    def has_repeats(self) -> bool:
        """Whether two targets of a lane are equal in this run."""
        sizes = np.maximum(self.highs - self.lows + 1, 1)
        rows = np.column_stack([self.lanes, (self.values - self.lows) % sizes])
        return len(np.unique(rows, axis=0)) < len(rows)

    @property
    def has_terms(self) -> bool:
        """Whether new model inputs can change some coordinate."""
        return bool((self.terms != NO_TERM).any())

    def describe(self) -> str:
        if (self.highs < self.least).any():
            return "no position is legal, as the dimension is too small"
        spans = ", ".join(f"{low} to {high}" for low, high in zip(self.least, self.highs, strict=True))
        return f"positions between {self.values.min()} and {self.values.max()}, expected {spans}"

    def beyond(self) -> Pairs:
        """Return (size, needed size) for each dimension that the coordinates of this run exceed.

        Example: coordinates 0 and 7 in a dimension of size 5 give (5, 8).
        """
        pairs = zip(self.highs.tolist(), self.values.max(axis=0, initial=0).tolist(), strict=True)
        return [(high + 1, most + 1) for high, most in pairs if most > high]

    def repair(self, array: Array) -> Array:
        """Return the coordinates in the shape and type of `array`, without illegal values.

        The lowest legal value replaces each illegal one.
        """
        highest = np.maximum(self.highs, self.lows)
        values = np.where(_is_within(self.values, self.least, highest), self.values, self.lows)
        return values.reshape(array.shape).astype(array.dtype)


class NodeInRun:
    """A node and its inputs in one run of the model.

    `arrays` holds None for an omitted input, and for one of unknown shape.
    """

    def __init__(
        self,
        step: Step,
        cells: Sequence[TracedCell | None],
        symbols: Mapping[str, int],
        conditions: Conditions = frozenset(),
        *,
        may_repeat: bool = False,
    ) -> None:
        """Set up a node; with `may_repeat`, its targets may repeat even without a reduction."""
        self.may_repeat = may_repeat
        self.step, self.cells, self.symbols, self.conditions = step, cells, symbols, conditions
        self.arrays: list[Array | None] = [None if cell is None else cell.array for cell in cells]
        is_general = not isinstance(step.work, Lookup)
        self.constraints = constraints_of(step.node.domain, step.node.type) if is_general else ()

    def cell(self, port: int | None) -> TracedCell | None:
        return self.cells[port] if port is not None and -len(self.cells) <= port < len(self.cells) else None

    def shape(self, port: int) -> Shape:
        cell = self.cell(port)
        return None if cell is None else cell.shape

    def size(self, port: int, axis: int | None) -> int | None:
        """Return the size of an input's dimension, the smallest one without an axis; None if unknown."""
        shape = self.shape(port)
        if not shape:
            return None
        return min(_known_sizes(shape)) if axis is None else _size_at(shape, axis)

    def numbers(self, port: int | None) -> list[int] | None:
        """Return the elements of an integer input as a list; None if they are unknown or too many."""
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

    def floats(self, port: int) -> list[float] | None:
        """Return the elements of a float input as a list; None if they are omitted, unknown or too many."""
        cell = self.cell(port)
        array = None if cell is None else self.arrays[port]
        if array is None or cell is None or cell.is_opaque or kind(array) != "float":
            return None
        return array.astype(np.float64).reshape(-1).tolist() if 0 < array.size <= _MOST_NUMBERS else None

    def output_shapes(self) -> list[tuple[int, ...] | None] | None:
        """Compute the shapes of the first outputs from the input shapes; None for unknown ones.

        Raises:
            ShapesDiffer: the input shapes do not fit each other.
        """
        node = self.step.node
        return shapes_of_outputs(node.domain, node.type, self.shape_case, self.floats)

    @cached_property
    def declared(self) -> list[Shape]:
        """The output shapes that the model declares, with the sizes of this run in place of symbols."""

        def size(dim: Dim) -> Dim:
            symbol = dim.symbol if isinstance(dim, Bounds) else None
            return dim if symbol is None else self.symbols.get(symbol, dim)

        shapes = [output.shape for output in self.step.node.outputs]
        return [None if shape is None else tuple(map(size, shape)) for shape in shapes]

    @property
    def output(self) -> Shape:
        return self.declared[0] if self.declared else None

    def output_size(self, axis: int | None) -> int | None:
        return None if self.output is None or axis is None else _size_at(self.output, axis)

    def too_small(self) -> Iterator[tuple[int, int]]:
        """Yield (size, needed size) for each dimension that is too small for constant positions."""
        for constraint in self.constraints:
            cell = self.cell(constraint.port)
            if (
                constraint.meaning is Meaning.POSITION
                and cell is not None
                and not (cell.origins or cell.is_opaque)
            ):
                size = self.size(constraint.of, self.axis(constraint.axis))
                yield from (
                    pair for pair in _reached_sizes(self.arrays[constraint.port], size) if pair[1] > pair[0]
                )

    def size_conflicts(self) -> tuple[Pairs, Pairs]:
        """Return the pairs of sizes that should be equal, and pairs (size, needed larger size)."""
        if isinstance(self.step.work, Lookup):
            return _size_conflicts_of_scatter(self, self.step.work)
        try:
            self.output_shapes()
        except ShapesDiffer as error:
            return error.pairs, error.least
        return [], []


def uses_of(node: NodeInRun) -> Iterator[tuple[int, InputUse]]:
    """Yield (port, use) for each input of a node that holds positions or sizes.

    Inputs of inconsistent shapes are omitted: the node itself reports them. Constant positions are omitted
    too, as no drawn input changes them.
    """
    if isinstance(node.step.work, Lookup):
        yield from _scatter_uses(node, node.step.work)
    for constraint in node.constraints:
        cell = node.cell(constraint.port)
        if cell is None or cell.array is None or (cell.terms is None and not cell.is_opaque):
            continue
        of_type = Numbers.FLOAT if kind(cell.array) == "float" else Numbers.WHOLE
        is_meant = _holds_numbers(cell.array) and constraint.numbers in {Numbers.ANY, of_type}
        if not cell.array.size or not is_meant:
            continue
        ranges = _ranges_of_input(constraint, node, cell)
        if ranges and cell.array.size % len(ranges) == 0:
            yield constraint.port, _general_use(node.step, constraint, cell, ranges)


def _general_use(step: Step, constraint: Constraint, cell: TracedCell, ranges: Pairs) -> InputUse:
    assert cell.array is not None
    lows, highs = np.array(ranges, np.int64).T
    lows, highs = lows.clip(0 if cell.array.dtype.kind == "u" else None), np.maximum(lows, highs)
    values, terms = columns(cell.array, len(lows)), columns(cell.all_terms, len(lows))
    opset = opset_number(step.node)
    wraps = constraint.wraps_since is not None and opset is not None and opset >= constraint.wraps_since
    is_legal = bool(
        (_is_within(values, lows - (highs + 1) if wraps else lows, highs) | (terms == NO_TERM)).all()
    )
    is_unique = constraint.meaning in _DISTINCT and len(ranges) == 1
    if is_unique and is_legal and bool((terms != NO_TERM).all()):
        is_legal = len(np.unique(values)) == values.size
    return InputUse(
        step.node.scope, terms, values, lows, highs, np.zeros(len(values), np.int64), cell.array.shape,
        is_legal, is_unique, is_strict=constraint.is_strict, wraps=wraps,
    )  # fmt: skip


def _reached_sizes(indices: Array | None, size: int | None) -> Iterator[tuple[int, int]]:
    """Yield the size of a dimension and the size that positions in it need.

    Example: positions [0, 7] in size 5 yield (5, 8).
    """
    if size is not None and indices is not None and indices.size and indices.dtype.kind in "iu":
        yield size, max(int(indices.max()) + 1, -int(indices.min()))


def _scatter_uses(node: NodeInRun, lookup: Lookup) -> Iterator[tuple[int, InputUse]]:
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
            yield (
                port,
                InputUse(scope, terms, zero[None] + axis, zero + first, zero + last, zero, (), is_legal),
            )
        axis = axis if is_legal else first
    if cell is not None and cell.array is not None and _holds_numbers(cell.array):
        sizes = _indexed_sizes(scatter, shape, cell.array, operands.get(Role.UPDATES), axis)
        if sizes is not None:
            use = _index_use(scatter, cell, axis, sizes, node.conditions, may_repeat=node.may_repeat)
            yield scatter.spec.port_index(Role.INDICES) or 0, use


def _span_of_axes(axes: Sequence[int], axis: int) -> tuple[int, int]:
    """Return a range (lowest, highest) of axes to draw from.

    It has all of `axes` if they are consecutive, otherwise a single one: `axis`, if possible.
    """
    if axes[-1] - axes[0] + 1 == len(axes):
        return axes[0], axes[-1]
    chosen = axis if axis in axes else axes[0]
    return chosen, chosen


def _fitting_axes(node: NodeInRun, scatter: ScatterNode, lookup: Lookup, rank: int) -> list[int]:
    """Return the axes with which the input shapes fit each other; all axes if none does.

    The shapes of this run are tried first, then the declared ones.
    """
    of_run = {role: cell.shape for role, cell in by_role(lookup, node.cells).items()}
    ports = by_role(lookup, node.step.node.inputs)
    declared = {role: port.value.shape for role, port in ports.items() if port.value is not None}
    for shapes in (of_run, declared):
        data, indices, updates = (shapes.get(role) for role in (Role.DATA, Role.INDICES, Role.UPDATES))
        if data is None or indices is None or updates is None or len(data) != rank:
            continue
        axes = []
        for axis in range(rank):
            equal, most = shape_ties(scatter.spec, data, indices, updates, axis, 0)
            is_fitting = all(agree_dims(first, second) for first, second in equal)
            if is_fitting and all(lowest(less) <= (highest(more) or lowest(less)) for less, more in most):
                axes.append(axis)
        if axes:
            return axes
    return list(range(rank))


def _demands_equal_lanes(conditions: Conditions) -> bool:
    return not conditions.isdisjoint({Condition.EQUAL, Condition.FULL})


def _axis_of(scatter: ScatterNode, operands: Mapping[Role, Array]) -> int | None:
    """Return the axis of a scatter node, negative ones unchanged; None if unknown or without an axis."""
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
    """Return the number of legal positions for each coordinate of an index; None if ranks do not fit."""
    layout = scatter.spec.layout
    depth = indices.shape[-1] if layout is Layout.TUPLES and indices.ndim else 1
    if data is None:
        return [1] * depth
    if layout is Layout.TUPLES:
        return _known_sizes(data[:depth]) if indices.ndim and depth <= len(data) else None
    if axis is None or not -len(data) <= axis < len(data):
        return None
    if layout is Layout.ELEMENTS and indices.ndim != len(data):
        return None
    (size,) = _known_sizes((data[axis],))
    if layout is not Layout.SEQUENCE:
        return [size]
    if scatter.attribute("mode") != "linear":
        return [max(size, 1)]
    return [size - updates.shape[axis] + 1 if updates is not None and updates.ndim == len(data) else size]


def _index_use(
    scatter: ScatterNode, cell: TracedCell, axis: int | None, sizes: list[int], conditions: Conditions,
    *, may_repeat: bool,
) -> InputUse:  # fmt: skip
    layout, depth, indices = scatter.spec.layout, len(sizes), cell.array
    assert indices is not None
    values, terms = columns(indices, depth), columns(cell.all_terms, depth)
    is_documented = scatter.node.opset in scatter.spec.opsets
    wraps = scatter.spec.index_range is IndexRange.WRAPPING and is_documented
    wraps = wraps and Condition.NON_NEGATIVE not in conditions
    highs = np.array(sizes, np.int64) - 1
    in_range = _is_within(values, -highs - 1 if wraps else 0, highs)
    is_undrawable = (terms == NO_TERM) & (cell.is_opaque or not cell.origins)
    is_unique = scatter.reduction is Reduction.NONE or Condition.UNIQUE in conditions
    is_unique = is_unique and layout is not Layout.SEQUENCE and not may_repeat
    lanes = index_values.lanes(layout, axis, indices) if depth else np.zeros(0, np.int64)
    are_equal, is_violated = _demands_equal_lanes(conditions) and layout is Layout.ELEMENTS, False
    if is_unique and bool(in_range.all()) and not cell.is_unclear:
        axis_from_front = None if axis is None else axis % max(indices.ndim, 1)
        is_violated = index_values.repeats(layout, axis_from_front, indices, sizes, wraps=wraps) is not None
    if are_equal and len(values):
        table = by_lane(lanes, values)
        is_violated = is_violated or bool((table != table[:1]).any())
    return InputUse(
        scatter.node.scope, terms, values, np.zeros_like(highs), highs, lanes, indices.shape,
        bool((in_range | is_undrawable).all()) or depth == 0,
        is_unique, are_equal, is_violated, is_scatter=True, wraps=wraps,
    )  # fmt: skip


def _size_conflicts_of_scatter(node: NodeInRun, lookup: Lookup) -> tuple[Pairs, Pairs]:
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
    axis_from_front = (axis or 0) % max(len(data), 1)
    equal, most = shape_ties(
        scatter.spec,
        data,
        indices,
        updates,
        axis_from_front,
        depth,
        are_indices_equal=_demands_equal_lanes(node.conditions),
    )
    if depth == len(data) and len(indices) == 1:  # a single update of any rank
        equal = [(1, size) for size in updates]
    too_small = Pairs()
    cell = by_role(lookup, node.cells).get(Role.INDICES)
    if cell is not None and cell.array is not None and cell.terms is None:  # these positions cannot be drawn
        is_linear = layout is Layout.SEQUENCE and scatter.attribute("mode") == "linear"
        window = max(updates[axis_from_front] - 1, 0) if is_linear and axis_from_front < len(updates) else 0
        if layout is not Layout.TUPLES:
            too_small += _reached_sizes(cell.array + window, data[axis_from_front])
        for place, size in enumerate(data[:depth]):
            too_small += _reached_sizes(cell.array[..., place], size)
    equal = [(first, second) for first, second in equal if first != second]
    too_small += [(size, least) for least, size in most]
    return equal, [(size, required) for size, required in too_small if size < required]


def shape_ties(
    spec: OpSpec, data: Sequence[_Size], indices: Sequence[_Size], updates: Sequence[_Size], axis: int,
    depth: int, *, are_indices_equal: bool = False,
) -> tuple[list[tuple[_Size, _Size]], list[tuple[_Size, _Size]]]:  # fmt: skip
    """Return the pairs of dimensions that must be equal, and pairs (dimension, its upper bound).

    The dimensions are those of a scatter node's inputs. They may be sizes or any other labels, which the
    pairs then contain. Example: ScatterElementsUpdate needs updates of the shape of indices.
    """
    updates_shape, pairs = [*indices], list(zip(indices, data, strict=False))
    equal, most = list[tuple[_Size, _Size]](), list[tuple[_Size, _Size]]()
    match spec.layout:
        case Layout.TUPLES:
            updates_shape = [*indices[:-1], *data[depth:]]
        case Layout.SLICES:
            updates_shape = [*data[:axis], *indices, *data[axis + 1 :]]
        case Layout.ELEMENTS:  # along the axis, indices may be longer than data
            off_axis = [*pairs[:axis], *pairs[axis + 1 :]]
            equal = off_axis if are_indices_equal else []
            most = off_axis if spec.indices_limit is not IndicesLimit.NOWHERE else []
        case Layout.SEQUENCE:
            updates_shape, equal = [*data[:axis], *updates[axis : axis + 1], *data[axis + 1 :]], pairs
            most = list(zip(updates, data, strict=False))[axis : axis + 1]
    if len(updates_shape) == len(updates):  # else updates are a single element
        equal = [*zip(updates_shape, updates, strict=True), *equal]
    return equal, most


def by_lane(lanes: Array, array: Array) -> Array:
    """Group values by lane: [n] -> [lanes, n / lanes]."""
    return array[np.argsort(lanes, kind="stable")].reshape(int(lanes.max(initial=0)) + 1, -1)


def _holds_numbers(array: Array) -> bool:
    return kind(array) in {"signed", "unsigned", "float"}


def columns(array: Array, depth: int) -> Array:
    """Reshape an array to int64 rows of `depth` elements; values too large for int64 become -1."""
    if array.dtype.kind == "f":
        wide = array.astype(np.float64)
        array = np.where(np.abs(wide) < 2.0**62, wide, -1)
    return array.astype(np.int64).reshape(-1, depth) if depth else np.zeros((0, 0), np.int64)


def _is_within(values: Array, lows: Any, highs: Any) -> Array:
    return np.asarray((values >= lows) & (values <= highs))


def _size_at(shape: Sequence[Dim], axis: int) -> int | None:
    dim = shape[axis] if -len(shape) <= axis < len(shape) else None
    return dim if isinstance(dim, int) else None


def _known_sizes(shape: Shape) -> list[int]:
    # Unknown dimensions count as 1: every position 0 is legal in them.
    return [dim if isinstance(dim, int) else 1 for dim in shape or ()]


_DISTINCT = {Meaning.FLAT, Meaning.DIMENSION, Meaning.NEW_DIMENSION, Meaning.REDUCED}
_ON_AXIS = {Meaning.POSITION, Meaning.COUNT, Meaning.SIZE, Meaning.KEPT, Meaning.LENGTH}


def _range_of_number(
    constraint: Constraint, meaning: Meaning, old: int | None, new: int | None
) -> tuple[int, int]:
    """Return the legal range of one number, such as the start of a slice.

    `old` and `new` are the sizes of its dimension before and after the node, None if unknown.
    """
    size, exact, free = old or 1, new, (constraint.low, constraint.high)
    match meaning:
        case Meaning.POSITION | Meaning.COORDINATES:
            return 0, size - 1
        case Meaning.COUNT:
            return constraint.low, size
        case Meaning.KEPT:
            free = constraint.low, size
        case Meaning.SIZE:
            exact = old
        case Meaning.REPEATS:
            exact = new // old if old and new else None
        case Meaning.LIKE:
            exact, free = old if new is None or constraint.of else new, (1, 1)
        case Meaning.SCALES:
            exact = max(new // old, 1) if old and new else 1
        case Meaning.BEGIN:
            return 0, 0 if new is not None else size - 1
        case Meaning.END:
            exact = new or size
        case Meaning.TARGET:
            return new or size, new or (2 if old in {None, 1} else size)
        case Meaning.PADS_BEGIN | Meaning.PADS_END:  # padding goes to the end
            if old is None or new is None:
                return 0, min(size - 1, 1)
            exact = 0 if meaning is Meaning.PADS_BEGIN else new - old
    return free if exact is None else (exact, exact)


def _ranges_of_input(constraint: Constraint, node: NodeInRun, cell: TracedCell) -> Pairs | None:
    """Return the ranges of an input's numbers: one for all elements or one per column; None without limits.

    A number out of its range is illegal or useless.
    """
    assert cell.array is not None
    array, of, count, shape = cell.array, constraint.of, cell.array.size, node.shape(constraint.of)
    sizes = _known_sizes(shape)
    match constraint.meaning:
        case Meaning.CHOICES:
            return None
        case Meaning.NUMBER:
            return [(constraint.low, constraint.high)]
        case Meaning.FLAT:
            return [(0, prod(sizes) - 1)]
        case Meaning.BELOW:
            return [(0, min(node.numbers(of) or [1]) - 1)]
        case Meaning.DIMENSION if count == 1 and shape:
            axes, drawn = _fitting_dimensions(constraint, node, len(sizes)), int(array.reshape(-1)[0])
            return (
                [_span_of_axes(axes, drawn % len(sizes))]
                if axes
                else _ranges_of_dimensions(constraint, node, count)
            )
        case Meaning.DIMENSION | Meaning.NEW_DIMENSION | Meaning.REDUCED:
            return _ranges_of_dimensions(constraint, node, count)
        case Meaning.ONES:
            places = [number for number, dim in enumerate(sizes) if dim == 1]
            return _exact_ranges([*places, *[0] * count][:count])
        case Meaning.SEGMENTS | Meaning.OFFSETS:
            is_offset = constraint.meaning is Meaning.OFFSETS
            whole = prod(sizes) if is_offset else max(min(node.numbers(of) or [1]), 1)
            return _exact_ranges([number * whole // count for number in range(count)])
        case Meaning.ASCENDING:
            row = max(array.shape[-1], 1) if array.ndim else 1
            return _exact_ranges([number % row for number in range(count)])
        case Meaning.BOXES:
            boxes = [(0, (node.size(of, 0) or 1) - 1), (0, 2), (0, 2), (3, 6), (3, 6)]
            return boxes if array.shape[1:] == (5,) else None
        case Meaning.PARTS:
            axis, size = node.axis(constraint.axis), node.size(of, node.axis(constraint.axis)) or 0
            declared = [None if axis is None or not part else _size_at(part, axis) for part in node.declared]
            parts = [part for part in declared if part is not None]
            equal = [*[size // count] * (count - 1), size - size // count * (count - 1)]
            return _exact_ranges(parts if len(parts) == count else equal)
        case Meaning.GRID:
            rest = [node.output_size(number - 1) for number in range(2, count)]
            return [*_exact_ranges([node.size(of, 0) or 1, 1]), *((size or 2, size or 4) for size in rest)]
        case Meaning.RESHAPED:
            return _exact_ranges(_new_shape(constraint, node, cell))
        case Meaning.PADS:
            pairs = _old_and_new(constraint, node, array.shape, count // 2)
            ends = (Meaning.PADS_BEGIN, Meaning.PADS_END)
            return [_range_of_number(constraint, end, *pair) for end in ends for pair in pairs]
    pairs = _old_and_new(constraint, node, array.shape, count)
    return [_range_of_number(constraint, constraint.meaning, old, new) for old, new in pairs]


def _exact_ranges(numbers: Sequence[int]) -> Pairs:
    return [(number, number) for number in numbers]


def _old_and_new(
    constraint: Constraint, node: NodeInRun, indices: tuple[int, ...], count: int
) -> list[tuple[int | None, int | None]]:
    """Return, for each number, the size of its dimension before and after the node; None for unknown ones."""
    shape, attributes = node.shape(constraint.of), node.step.node.attributes
    if constraint.meaning in _ON_AXIS:
        axis = node.axis(constraint.axis)
        return [(node.size(constraint.of, axis), node.output_size(axis))]
    if constraint.meaning is Meaning.COORDINATES:
        batch, depth = int(attributes.get("batch_dims", 0)), indices[-1] if indices else 0
        sizes = [1] * depth if shape is None else _known_sizes(shape[batch : batch + depth])
        return [(size, None) for size in sizes] if len(sizes) == depth else []
    if constraint.meaning is Meaning.TARGET:
        target_axes = node.numbers(constraint.axes) or range(count - len(shape or ()), count)
        old_sizes = dict(zip(target_axes, _known_sizes(shape), strict=False))
        return [(old_sizes.get(dim), node.output_size(dim)) for dim in range(count)]
    axis_values, axes = None, constraint.axes
    if axes is not None and axes < 0:
        axes = len(node.cells) - 1
    if "axes" in attributes:
        axis_values = node.shape_case.written.integers("axes", ())
    elif axes is not None and axes != constraint.port:
        axis_values = node.numbers(axes)
        if axis_values is None and node.shape(axes) is not None:
            return [(None, None)] * count
    numbers = list(range(constraint.first, constraint.first + count)) if axis_values is None else axis_values
    if not shape:
        return [(None, None)] * count
    dims = [dim % len(shape) for dim in [*numbers, *[0] * count][:count]]
    return [(node.size(constraint.of, dim), node.output_size(dim)) for dim in dims]


def _fitting_dimensions(constraint: Constraint, node: NodeInRun, rank: int) -> list[int]:
    """Return the axes with which outputs get their declared shapes, and constant positions are in range."""
    port, axes = constraint.port, list[int]()
    original, array = node.arrays[port], node.arrays[port]
    assert array is not None
    positions = [
        position
        for position in node.constraints
        if position.meaning is Meaning.POSITION and position.axis.port == port
    ]
    try:
        for axis in range(rank + constraint.high):
            node.arrays[port] = np.full(array.shape, axis, array.dtype)
            try:
                shapes = output_shapes(node.step.node.domain, node.step.node.type, node.shape_case)
            except ShapesDiffer:
                continue
            fits = all(map(agree, shapes or (), node.declared))
            pairs = [
                pair
                for position in positions
                if (cell := node.cell(position.port)) is not None and not (cell.origins or cell.is_opaque)
                for pair in _reached_sizes(node.arrays[position.port], node.size(position.of, axis))
            ]
            if fits and all(least <= size for size, least in pairs):
                axes.append(axis)
    finally:
        node.arrays[port] = original
    return axes


def _ranges_of_dimensions(constraint: Constraint, node: NodeInRun, count: int) -> Pairs | None:
    """Return ranges for distinct axes, such as those that Squeeze removes.

    A known output shape determines the axes; otherwise each of them may be any dimension.
    """
    before, after = node.shape(constraint.of), node.output
    is_new = constraint.meaning is Meaning.NEW_DIMENSION
    full_shape = after if is_new else before
    is_any = constraint.meaning is Meaning.DIMENSION
    if full_shape is not None and len(full_shape) <= _MOST_DIMENSIONS and not is_any:
        for places in combinations(range(len(full_shape)), count):
            without = tuple(dim for number, dim in enumerate(full_shape) if number not in places)
            with_ones = tuple(1 if number in places else dim for number, dim in enumerate(full_shape))
            if agree(without, before) if is_new else is_static(after) and after in {with_ones, without}:
                return _exact_ranges(places)
    rank = len(before or ()) + (count if is_new and before is not None else 0)
    return [(0, rank - 1 + constraint.high)] if rank else None


def _new_shape(constraint: Constraint, node: NodeInRun, cell: TracedCell) -> list[int]:
    """Return a target shape for Reshape: constant dimensions stay, the last free one gets the rest."""
    assert cell.array is not None
    count, sizes = cell.array.size, _known_sizes(node.shape(constraint.of))
    if is_static(node.output) and len(node.output or ()) == count:
        return _known_sizes(node.output)
    if node.shape(constraint.of) is None:
        return [node.output_size(number) or 1 for number in range(count)]
    if 0 in sizes:
        return [*sizes, *[0] * count][:count]
    dims, rest = [int(number) for number in cell.array.reshape(-1)], prod(sizes)
    free = [number for number, term in enumerate(cell.all_terms.reshape(-1)) if term != NO_TERM]
    for number in set(range(count)) - set(free):
        dim = sizes[number] if dims[number] == 0 and number < len(sizes) else dims[number]
        rest = 0 if dim < 0 else rest // max(dim, 1)
    for number in free:
        size = sizes[number] if number < len(sizes) and number != free[-1] else rest
        dims[number] = size if size > 0 and rest % size == 0 else 1
        rest //= dims[number]
    return dims
