"""A rewrite from one operator version to another, and the view of the scatter node that it reads."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from ir_scatter.analysis.conditions import Condition, Proof, ProofState, judge
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import REMEMBERED, SIGNATURE, Fact
from ir_scatter.core.fragment import Fragment, NewNode
from ir_scatter.core.model import ONNX, Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Shape, agree_dims, element_count, static
from ir_scatter.ops.spec import IndexRange, Layout, OpSpec, Reduction, Role
from ir_scatter.rewrites.builder import I64, LARGEST_FOLDED, LAST, Builder
from ir_scatter.rewrites.refusals import Refusal

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

BY_SIGNATURE = SIGNATURE | REMEMBERED
"""Facts that are equal for all nodes of a group; a rewrite that reads only these serves the whole group."""

_LARGEST_RANK = 4
"""Limit of the rank of index tensors that new nodes compute, as devices lack kernels for higher ranks."""


@dataclass(frozen=True, slots=True)
class Promises:
    """The user's promises: conditions on inputs, and whether negative indices may stay.

    Runtimes accept negative indices even if the new operator forbids them.
    """

    conditions: frozenset[Condition] = frozenset()
    keeps_negative: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A scatter node as seen by a rewrite, with facts from the file and the user's promises.

    A view records which index values a rewrite reads: these decide which other nodes may share the new form.

    Attributes:
        relied_on: promises that the rewrite used.
        judged: conditions that the rewrite tested, with the first answer.
        numbers_of: inputs whose values the new form contains.
    """

    scatter: ScatterNode
    promises: Promises = Promises()
    relied_on: set[Condition] = field(default_factory=set)
    judged: dict[Condition, Proof] = field(default_factory=dict)
    numbers_of: set[Role] = field(default_factory=set)
    _proofs: dict[Condition, Proof] = field(default_factory=dict)

    def proof(self, condition: Condition) -> Proof:
        """Return whether the facts of the file prove a condition, disprove it or neither."""
        if condition not in self._proofs:
            self._proofs[condition] = judge(condition, self.scatter)
        proof = self._proofs[condition]
        self.judged.setdefault(condition, proof)
        return proof

    def holds(self, condition: Condition) -> bool:
        """Return whether a condition is proven, or undecided but promised by the user."""
        verdict = self.proof(condition).verdict
        if verdict is ProofState.UNKNOWN and condition in self.promises.conditions:
            self.relied_on.add(condition)
            return True
        return verdict is ProofState.PROVEN

    def index_numbers(self) -> "Array | None":
        """Return the values of constant indices; record that the new form is valid only for them."""
        array = self.scatter.index_array
        if array is not None:
            self.numbers_of.add(Role.INDICES)
        return array

    @property
    def may_be_negative(self) -> bool:
        """Return whether an index may be negative, counting from the end."""
        return not self.holds(Condition.NON_NEGATIVE)

    @property
    def reduction(self) -> Reduction:
        assert self.scatter.reduction is not None
        return self.scatter.reduction

    @property
    def writes_nothing(self) -> bool:
        """Whether data or updates are known to have no elements, so that the output is data.

        The new form of such a node must compute nothing from sizes. OpenVINO divides by the number of
        elements when it folds a Broadcast at load time (SIGFPE). Before opset 14 of ONNX a Reshape target
        cannot contain 0.
        """
        data, updates, indices = map(self.scatter.operand, (Role.DATA, Role.UPDATES, Role.INDICES))
        are_tuples = (
            self.scatter.spec.layout is Layout.TUPLES
        )  # a tuple of no coordinates selects all of data
        operands = [data, updates] if are_tuples else [data, updates, indices]
        return any(operand is not None and element_count(operand.value.shape) == 0 for operand in operands)

    @property
    def keeps_initial(self) -> bool:
        """Return whether the old value takes part in the reduction."""
        return self.scatter.attribute("use_init_val") is not False or self.reduction is Reduction.NONE

    @property
    def data(self) -> Value:
        return self._value(Role.DATA)

    @property
    def indices(self) -> Value:
        return self._value(Role.INDICES)

    @property
    def updates(self) -> Value:
        return self._value(Role.UPDATES)

    def _value(self, role: Role) -> Value:
        operand = self.scatter.operand(role)
        assert operand is not None
        return operand.value

    @property
    def given_axis(self) -> Value | int:
        """The axis as the node stores it: an input, or the attribute's number."""
        operand = self.scatter.operand(Role.AXIS)
        return operand.value if operand else self.scatter.written_axis or 0

    @property
    def depth(self) -> int | None:
        """The number of coordinates of each index tuple, from the shape of indices or else from ranks."""
        shapes = [value.shape for value in (self.data, self.indices, self.updates)]
        if self.scatter.depth is not None or None in shapes:
            return self.scatter.depth
        data, indices, updates = (len(shape or ()) for shape in shapes)
        is_one = bool(updates) and all(agree_dims(dim, 1) for dim in self.updates.shape or ())
        if indices == 1 and is_one and self.scatter.spec.scalar_updates:
            return None  # a single tuple of any length may select one element
        depth = indices - 1 + data - updates
        return depth if 0 <= depth <= data else None

    # Values that the new nodes compute from the inputs

    def _rank_of_data(self, build: Builder) -> Value:
        if self.data.shape is not None:
            rank = build.constant([len(self.data.shape)], "rank")
        else:
            rank = build.shape_of(build.shape_of(self.data, "shape"), "rank")
        return build.reshape(rank, [], "rank_scalar")

    def axis_value(self, build: Builder) -> Value:
        """Return the non-negative axis: a constant, or computed at run time if axis or rank are dynamic."""
        written = self.scatter.written_axis
        number = written if self.scatter.axis is None else self.scatter.axis
        if number is not None and number >= 0:
            return build.constant(number, "axis")
        rank = self._rank_of_data(build)
        if written is not None:
            return build.binary("Add", rank, build.constant(written, "negative_axis"), "axis")
        assert isinstance(self.given_axis, Value)
        axis = build.reshape(build.convert(self.given_axis, I64, "axis_i64"), [], "axis_scalar")
        is_negative = build.binary("Less", axis, build.constant(0, "zero"), "axis_is_negative")
        wrapped = build.binary("Add", axis, rank, "axis_from_front")
        return build.select(is_negative, wrapped, axis, "axis_counted")

    def positions(self, build: Builder) -> Value:
        """Return 0, 1, ..., rank of data - 1."""
        return build.range(self._rank_of_data(build), "positions")

    def axis_mask(self, build: Builder) -> Value:
        """Return a boolean mask over the axes of data: true for the axis that indices refer to."""
        return build.binary("Equal", self.positions(build), self.axis_value(build), "is_axis")

    def size_on_axis(self, build: Builder, value: Value | None = None, label: str = "size") -> Value:
        """Return the size on the axis as a scalar, of data or of another value with the same rank."""
        axis, value = self.scatter.axis, value or self.data
        shape, dims = value.shape, "data_shape" if value is self.data else f"{label}_of"
        if axis is not None and shape is not None and isinstance(shape[axis], int):
            return build.constant(shape[axis], label)
        return build.gather(build.shape_of(value, dims), self.axis_value(build), 0, label, ())

    def tuple_dims(self, build: Builder, *, are_front: bool = True) -> Value:
        """Return the dimensions of data that coordinates refer to; with `are_front=False` the other ones."""
        depth, shape, label = self.depth, self.data.shape, "sizes" if are_front else "other_dims"
        part = None if depth is None or shape is None else shape[:depth] if are_front else shape[depth:]
        sizes = static(part)
        if sizes is not None:
            return build.constant(list(sizes), label)
        if depth is not None:
            at = build.constant([depth], "depth")
        else:
            index_dims = build.shape_of(self.indices, "indices_shape")
            at = build.gather(index_dims, build.constant([-1], "last"), 0, "depth", (1,))
        begin = build.constant([0], "begin") if are_front else at
        end = at if are_front else build.constant([LAST], "end")
        size = UNKNOWN_DIM if part is None else len(part)
        return build.slice(build.shape_of(self.data, "data_shape"), begin, end, [0], label, (size,))

    def must_be_non_negative(self, target: OpSpec) -> bool:
        is_strict = target.index_range is IndexRange.NON_NEGATIVE
        return is_strict and not self.promises.keeps_negative and self.may_be_negative

    def counts_from_end(self, build: Builder) -> bool:
        """Return whether negative indices must be made non-negative before a Gather reads data with them."""
        return self.may_be_negative and build.domain != ONNX

    def element_indices(self, build: Builder, target: OpSpec) -> Value:
        """Return indices, made non-negative if the target operator requires that."""
        if not self.must_be_non_negative(target):
            return self.indices
        return build.from_front(self.indices, self.size_on_axis(build))

    def without_elements(self, build: Builder, shape: "Sequence[int] | Value") -> tuple[Value, Value]:
        """Return indices and updates of a node that writes nothing, reshaped to an empty shape."""
        updates = build.reshape(self.updates, shape, "updates_empty")
        if element_count(self.indices.shape) == 0:
            return build.reshape(build.fitting_indices(self.indices), shape, "indices_empty"), updates
        return build.convert(updates, I64, "indices_empty"), updates

    def coordinates(self, build: Builder, indices: Value) -> tuple[Value, Value]:
        """Return a tuple of coordinates for each update, and updates in the matching shape.

        If rank and axis are known, and the rank is at most 3, tuples are [*shape of indices, rank]. Otherwise
        they are a list [count, rank], and updates are flattened: devices have fewer kernels for more than 4
        dimensions, some of them wrong. `indices` are those of the node, or a replacement.

            indices [[0, 2]] on axis 0  ->  [[[0, 0], [2, 1]]]
        """
        indices = build.convert(indices, I64, "indices_i64")
        axis, shape, data = self.scatter.axis, self.indices.shape, self.data.shape
        if shape is None and data is not None:
            shape = (UNKNOWN_DIM,) * len(data)
        if shape is not None and element_count(shape) == 0:
            return build.empty_tuples(indices, self.updates, len(shape))
        if axis is None or shape is None:
            unit, dims = build.constant(1, "one"), build.shape_of(self.indices, "indices_shape")
            ones = build.broadcast(unit, dims, "ones")
            count = UNKNOWN_DIM if ones.shape is None else len(ones.shape)
            positions = build.make("NonZero", [ones], (count, UNKNOWN_DIM), "positions_by_axis", I64)
            grid = build.transpose(positions, build.constant([1, 0], "swap"), "positions_by_element")
            rows = build.reshape(indices, [-1, 1], "indices_column", (UNKNOWN_DIM, 1))
            tuples = build.select(self.axis_mask(build), rows, grid, "coordinates")
            return tuples, build.reshape(self.updates, [-1], "updates_flat", (UNKNOWN_DIM,))
        rank = len(shape)
        dims = build.shape_of(self.indices, "indices_shape")
        column_shape = build.concat([dims, build.constant([1], "one_column")], 0, "column_shape", (rank + 1,))
        columns = []
        for place, dim in enumerate(shape):
            if place == axis:
                columns.append(build.unsqueeze(indices, [rank], "indices_unsqueezed"))
                continue
            if isinstance(dim, int) and dim <= LARGEST_FOLDED:
                numbers = build.constant(range(dim), f"positions_{place}")
            else:
                size = build.gather(dims, build.constant(place, "place"), 0, f"size_{place}", ())
                numbers = build.range(size, f"positions_{place}")
            other_axes = [number for number in range(rank + 1) if number != place]
            column = build.unsqueeze(numbers, other_axes, f"column_{place}")
            columns.append(build.broadcast(column, column_shape, f"coordinates_{place}", (*shape, 1)))
        tuples, updates = build.concat(columns, rank, "coordinates", (*shape, rank)), self.updates
        if rank < _LARGEST_RANK:
            return tuples, updates
        elements = element_count(shape)
        length = UNKNOWN_DIM if elements is None else elements
        tuples = build.reshape(tuples, [-1, rank], "coordinates_list", (length, rank))
        return tuples, build.reshape(updates, [-1], "updates_flat", (length,))


Build: TypeAlias = Callable[[View, Builder, OpSpec], Value | Refusal]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewrite of a scatter node from one operator version (row of `ops.spec`) to another.

    Attributes:
        target: the operator version of the new scatter node.
        build: creates the new nodes and returns the value that replaces the output, or a refusal.
        carries: attributes of the source that the new form preserves; any other attribute must have its
            default. None if all are copied unchanged.
        requires: the conditions under which both forms of a node are equivalent.
        is_done: whether a node already has the new form, if source and target are the same row.
        reads: all facts that build, requires and is_done read. Within `BY_SIGNATURE`, nodes of a group share
            one new form; with more facts, each node is rewritten separately.
        conditions: the conditions as text, for the table of routes in the documentation.
        moves_data: whether the new form reads or writes all of data more often than the node itself.
    """

    name: str
    source: OpSpec
    target: OpSpec
    build: Build
    carries: frozenset[str] | None = frozenset()
    requires: Callable[[View, OpSpec], tuple[Condition, ...]] = lambda _view, _target: ()
    is_done: Callable[[View, OpSpec], bool] = lambda _view, _target: False
    reads: frozenset[Fact] = BY_SIGNATURE
    conditions: str = ""
    moves_data: bool = False


Family: TypeAlias = tuple[OpSpec, ...]
"""All versions of an operator, oldest first."""


def between(
    name: str, families: Iterable[tuple[Family, Family]], build: Build, **more: Any
) -> tuple[Rewrite, ...]:
    """Return a rewrite from each version of an operator to each version of its target, newest first.

    `more` are the other fields of `Rewrite`.
    """
    pairs = [(old, new) for olds, news in families for old in reversed(olds) for new in reversed(news)]
    is_to_itself = "is_done" in more
    return tuple(
        Rewrite(name, old, new, build, **more) for old, new in pairs if old is not new or is_to_itself
    )


def fragment_like(scatter: ScatterNode, make: Callable[[int, Value], Value], shape: Shape) -> Fragment:
    """Copy a node as a fragment (nodes outside of a model), with inputs from `make(number, value)`.

    `shape` is the shape of the output.
    """
    node, data, remade = scatter.node, scatter.data, dict[int, Value]()
    values = [port.value for port in node.inputs]
    for number, value in enumerate(values):
        if value is not None and id(value) not in remade:
            remade[id(value)] = make(number, value)
    inputs = [remade.get(id(value)) for value in values]
    output = Value("output", data.element_type if data else None, shape)
    assert node.opset is not None
    new = NewNode("scatter", node.domain, node.type, node.opset, tuple(inputs), node.attributes, output)
    return Fragment(inputs, [new])
