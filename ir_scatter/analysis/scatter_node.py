"""One scatter operator in one model, seen by role."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ir_scatter.analysis import certain_numbers, equal_elements
from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.ranges import bounds_of
from ir_scatter.analysis.relative_sizes import Relative, RelativeSizes
from ir_scatter.core.diagnostics import Related
from ir_scatter.core.element_types import ElementType
from ir_scatter.core.model import ONNX, OPENVINO, Graph, Input, Model, Node, Value
from ir_scatter.core.shapes import Dim, Shape, at_most, is_static, lowest, static
from ir_scatter.ops import index_values
from ir_scatter.ops.general_bounds import Interval
from ir_scatter.ops.lookup import Lookup, find, scatter_types
from ir_scatter.ops.spec import NEGATIVE_INDEX, IndexRange, Kind, Layout, OpSpec, Port, Reduction, Role

if TYPE_CHECKING:
    from ir_scatter.analysis.reachability import Reach
    from ir_scatter.core.arrays import Array


@dataclass(slots=True, eq=False)
class Operand:
    """An input that is connected: the port as documented, the input as stored, the best that is known."""

    port: Port
    index: int
    input: Input
    value: Value
    shape: Shape
    element_type: ElementType | None

    @property
    def stored(self) -> Input | Value:
        """Return what holds the shape and type that the file stores: the port, or else the value."""
        is_at_port = self.input.stored_shape is not None or self.input.stored_type is not None
        return self.input if is_at_port else self.value


def scatter_nodes(graph: Graph | Model, facts: Facts) -> Iterator["ScatterNode"]:
    """Yield the scatter nodes of a graph with its bodies, or of a model with its functions, in its order."""
    for node in graph.walk(scatter_types(OPENVINO) | scatter_types(ONNX)):
        lookup = find(node.domain, node.type, node.opset)
        if lookup is not None:
            yield ScatterNode(node, lookup, facts)


class ScatterNode:
    """A node, what the table says of its type in its opset, and what can be proven of its values."""

    def __init__(self, node: Node, lookup: Lookup, facts: Facts) -> None:
        self.node = node
        self.lookup = lookup
        self.facts = facts

    @property
    def spec(self) -> OpSpec:
        """The row of the table; a node without one is shown to rules about opsets only."""
        assert self.lookup.spec is not None
        return self.lookup.spec

    def operand(self, role: Role) -> Operand | None:
        """Return the input of a role, None if it is not there or not connected."""
        return self._operands.get(role)

    def _value(self, role: Role) -> Value | None:
        index, inputs = self.spec.port_index(role), self.node.inputs
        return None if index is None or index >= len(inputs) else inputs[index].value

    def operands(self) -> Iterable[Operand]:
        return self._operands.values()

    @cached_property
    def _operands(self) -> dict[Role, Operand]:
        pairs = enumerate(zip(self.spec.ports, self.node.inputs, strict=False))
        return {
            port.role: Operand(
                port, index, input, input.value, self.facts.shape(input.value), self._element_type(input)
            )
            for index, (port, input) in pairs
            if input.value is not None
        }

    def _element_type(self, input: Input) -> ElementType | None:
        assert input.value is not None
        is_stored = input.value.stored_type is not None or self.facts.propagates
        return self.facts.element_type(input.value) or (None if is_stored else input.stored_type)

    @property
    def refuses_types(self) -> bool:
        """Whether a runtime refuses the model if the element type stored for what a node makes is wrong."""
        return self.node.graph.refuses_types

    @cached_property
    def data(self) -> Operand | None:
        return self.operand(Role.DATA)

    @cached_property
    def indices(self) -> Operand | None:
        return self.operand(Role.INDICES)

    @cached_property
    def updates(self) -> Operand | None:
        return self.operand(Role.UPDATES)

    @cached_property
    def data_shape(self) -> Shape:
        return self.data.shape if self.data else None

    @cached_property
    def indices_shape(self) -> Shape:
        if self.indices is None:
            return None
        if self.indices.value.constant is None and self.index_array is not None:
            return tuple(self.index_array.shape)
        return self.indices.shape

    @cached_property
    def few_indices(self) -> list[int] | None:
        """Return the indices if the file stores them and they are few; without NumPy."""
        value = self._value(Role.INDICES)
        return None if value is None else self.facts.numbers(value)

    def is_constant(self, value: Value) -> bool:
        """Tell whether the file says what a value is."""
        return value.constant is not None or self.facts.array(value) is not None

    @cached_property
    def has_constant_indices(self) -> bool:
        return self.few_indices is not None or self.index_array is not None

    @cached_property
    def index_array(self) -> "Array | None":
        """Return the indices if they are constant in effect and whole numbers."""
        value = self._value(Role.INDICES)
        return None if value is None else self.facts.whole_numbers(value)

    @cached_property
    def written_axis(self) -> int | None:
        """Return the axis as written, None if it is not constant."""
        source = self.spec.axis
        if source is not None and source.attribute is not None:
            value = self.attribute(source.attribute)
            return value if isinstance(value, int) and not isinstance(value, bool) else None
        axis = self._value(Role.AXIS)
        numbers = None if axis is None else self.facts.numbers(axis)
        if axis is None or numbers is not None:
            return numbers[0] if numbers and len(numbers) == 1 else None
        array = self.facts.whole_numbers(axis)
        return int(array.item()) if array is not None and array.size == 1 else None

    @cached_property
    def axis(self) -> int | None:
        """Return the axis counted from 0, None if it is not known or not an axis of data."""
        axis, shape = self.written_axis, self.data_shape
        if axis is None or shape is None or not -len(shape) <= axis < len(shape):
            return None
        axis %= len(shape)
        source = self.spec.axis
        return None if source is None or axis in source.excluded else axis

    def attribute(self, name: str) -> Any:
        """Return an attribute's value as the runtimes read it, its default if it is not written."""
        row = self.spec.attribute(name)
        written = self.node.attributes.get(name)
        if row is None or written is None:
            return row.default if row else None
        if self.spec.key.domain != OPENVINO:
            return written
        if row.kind is Kind.BOOLEAN:
            return str(written).lower() not in {"false", "0"}
        return str(written).lower() if row.kind is Kind.WORD else written

    @cached_property
    def reduction(self) -> Reduction | None:
        """Return how updates meet old values, None if the word means nothing."""
        row = self.spec.attribute("reduction")
        if row is None:
            return Reduction.NONE
        word = self.attribute("reduction")
        if not isinstance(word, str):
            return None
        rows = self.lookup.family if word in row.undocumented else (self.spec,)
        return next((spec.reductions[word] for spec in rows if word in spec.reductions), None)

    @cached_property
    def depth(self) -> int | None:
        """Return k, the number of coordinates in a tuple, if it is known."""
        shape = self.indices_shape
        if self.spec.layout is not Layout.TUPLES or not shape:
            return None
        return shape[-1] if isinstance(shape[-1], int) else None

    @cached_property
    def limits(self) -> list[int | None] | None:
        """Return the sizes that constant indices count on, of a cache how many start positions it has.

        None if indices are not constant, or if no target can be told because ranks do not fit.
        """
        shape = static(self.indices_shape)
        return None if not self.has_constant_indices or shape is None else self._sizes(shape)

    def _sizes(self, shape: tuple[Dim, ...]) -> list[int | None] | None:
        """Return the sizes that indices of a shape count on; None if no target can be told."""
        layout, data, run = self.spec.layout, self.data_shape, 1
        if layout is Layout.SEQUENCE:
            updates = self.updates.shape if self.updates else None
            if self.attribute("mode") != "linear" or self.axis is None or data is None:
                return None
            if updates is not None and len(updates) == len(data):
                run = lowest(updates[self.axis])
        elif layout is Layout.TUPLES:
            depth = shape[-1] if shape else None
            if not isinstance(depth, int) or (data is not None and depth > len(data)):
                return None
        elif layout is Layout.ELEMENTS and data is not None and len(shape) != len(data):
            return None
        return index_values.sizes(layout, data, self.axis, shape, run)

    @cached_property
    def counts_on_open(self) -> bool:
        """Whether a size that indices count on is not known exactly."""
        data, axis = self.data_shape, self.axis
        if data is None or (axis is None and self.spec.layout is not Layout.TUPLES):
            return True
        return not is_static(data[: self.depth] if axis is None else data[axis : axis + 1])

    @cached_property
    def computed_outside(self) -> certain_numbers.Outside | None:
        """Indices that are computed, and certainly out of range or negative where that is forbidden."""
        indices = self.indices
        if indices is None or self.has_constant_indices:
            return None
        shape = indices.shape
        if self.spec.layout is Layout.TUPLES and (shape is None or self.depth is None):
            return None
        sizes = self._sizes(() if shape is None else shape)
        if not sizes:
            return None
        return certain_numbers.find_outside(
            self.facts,
            indices.value,
            sizes,
            forbids_negative=self.spec.index_range is IndexRange.NON_NEGATIVE,
            reader=self.node.graph,
            open_sizes=self._open_sizes(len(sizes)) if None in sizes else (),
        )

    def _open_sizes(self, count: int) -> list[Relative | None]:
        """Return which open dimensions indices count on, None for one that is not open or not known."""
        data, axis = self.data, self.axis
        first = 0 if self.spec.layout is Layout.TUPLES else axis
        if data is None or data.shape is None or first is None:
            return [None] * count
        is_empty_run = False
        if self.spec.layout is Layout.SEQUENCE:  # an empty run has one more start position
            updates = self.updates.shape if self.updates else None
            is_empty_run = updates is None or len(updates) != len(data.shape) or lowest(updates[first]) < 1
        dims, relative = data.shape[first : first + count], self.facts.derived(RelativeSizes)
        return [
            None if isinstance(dim, int) or is_empty_run else relative.size_of(data.value, first + number)
            for number, dim in enumerate(dims)
        ]

    @cached_property
    def outside_source(self) -> Related | None:
        """The value that an index of `computed_outside` is followed from, if it is not the indices."""
        outside, indices = self.computed_outside, self.indices
        if outside is None or indices is None:
            return None
        source, remark = outside.occurrence.source, outside.occurrence.remark
        if source is indices.value and not remark:
            return None
        of = f"is {remark} and " if remark else ""
        if source.constant is not None:
            constant, kind = source.constant, "Const" if self.spec.drops_attributes else "constant"
            message = f'it {of}comes from {kind} "{constant.name}"'
            return Related(message, constant.location, constant.span)
        node = source.producer
        if node is None or source.is_input:
            return Related(f'it {of}comes from input "{source.name}"', source.location or self.node.location)
        return Related(f'it {of}comes from {node.type} "{node.name}"', node.location)

    @cached_property
    def computed_axis(self) -> Interval | None:
        """Between which numbers the axis lies where it is computed; None where it is constant."""
        value = self._value(Role.AXIS)
        if value is None or self.written_axis is not None:
            return None
        return bounds_of(self.facts, value)[0] if self.facts.array(value) is None else None

    @cached_property
    def reach(self) -> "Reach":
        """What decides whether the node is computed: looked at where something is to be said of it."""
        from ir_scatter.analysis.reachability import Reach, reachability_of

        reachability = self.facts.derived(reachability_of)
        return Reach() if reachability is None else reachability.reach(self.node)

    @cached_property
    def sets_zeros_at_given(self) -> bool:
        """Whether data is all zeros and indices are an input of the model; in a function, at each call."""
        from ir_scatter.analysis.origins import Inflows, is_all_zeros, is_fed, of_main_graph

        inflows: Inflows = of_main_graph
        nodes = [self.node]
        if self.node.graph.scope:
            from ir_scatter.analysis.reachability import reachability_of

            reachability = self.facts.derived(reachability_of)
            if reachability is None:
                return False
            nodes, inflows = reachability.copies(self.node), reachability.inflows
        for node in nodes:
            data, indices = (node.inputs[one.index].value for one in (self.data, self.indices) if one)
            if data is None or indices is None or not is_all_zeros(self.facts, data, inflows):
                return False
            if not is_fed(self.facts, indices, inflows):
                return False
        return bool(nodes)

    @cached_property
    def out_of_range(self) -> index_values.BadIndices | None:
        """The constant indices outside of [-s, s-1], None if there are none."""
        if self.index_array is None or self.limits is None:
            return None
        return index_values.out_of_range(self.index_array, self.limits)

    @cached_property
    def repeats(self) -> index_values.Repeats | None:
        """Which constant indices name a target again, None if none does or it cannot be told."""
        if self.index_array is None or self.limits is None:
            return None
        return index_values.repeats(
            self.spec.layout, self.axis, self.index_array, self.limits, wraps=self.wraps
        )

    @cached_property
    def has_equal_updates(self) -> bool:
        """Whether updates of one target are certainly the same number, so that their order changes nothing.

        That holds where nothing but updates is written: with reduction none, or one that takes a number
        twice as once.
        """
        updates, layout, axis = self.updates, self.spec.layout, self.axis
        if updates is None or layout is Layout.SEQUENCE:
            return False
        axes = equal_elements.varying_axes(self.facts, updates.value)
        shared = equal_elements.shared_axes(layout, axis, self.indices_shape, updates.shape)
        if axes is not None and (not axes or (shared is not None and not axes & shared)):
            return True
        if self.index_array is None or self.limits is None:
            return False
        targets = index_values.target_numbers(layout, axis, self.index_array, self.limits, wraps=self.wraps)
        return targets is not None and equal_elements.are_equal_by_target(
            self.facts, updates.value, layout, axis, targets, self.indices_shape
        )

    def has_faults(self, limits: list[int | None] | None, *, is_open: bool = False) -> bool:
        """Tell whether indices are or may be out of range, negative or repeated, or were not read.

        The limits are those of this node, or of another one of its group. Where a size that indices count on
        `is_open`, all but 0 may be out of range.
        """
        numbers = self.few_indices or []
        size = limits[0] if limits is not None and len(limits) == 1 else None
        is_inside = numbers and not is_open and size is not None and min(numbers) >= 0 and max(numbers) < size
        if is_inside and len({*numbers}) == len(numbers):
            return False
        array = self.index_array
        if array is None:
            return bool(self.facts.skipped) or self.computed_outside is not None
        if limits is None or self.out_of_range is not None or (array.size and int(array.min()) < 0):
            return True
        if is_open and array.size and (int(array.max()) > 0 or int(array.min()) < 0):
            return True  # a dimension that is not known may be too small
        return (self.spec.layout is Layout.ELEMENTS and self.axis is None) or self.repeats is not None

    @property
    def wraps(self) -> bool:
        """Tell whether a negative index counts from the end, by the text or as runtimes take it."""
        is_legal = self.spec.index_range is IndexRange.WRAPPING
        return is_legal or NEGATIVE_INDEX in self.spec.tolerated

    def longer_dimensions(self) -> list[int]:
        """Return the dimensions on which indices are certainly longer than data."""
        data, indices = self.data_shape, self.indices_shape
        if data is None or indices is None or len(data) != len(indices):
            return []
        pairs = enumerate(zip(indices, data, strict=True))
        return [number for number, (index, limit) in pairs if not at_most(index, limit)]

    def expected_updates(self) -> list[Shape]:
        """Return the shapes that updates may have by the document; empty if nothing is known.

        There is more than one if the axis is not known, and none if it is no axis of data.
        """
        axes: Iterable[int] = ()
        if self.axis is not None:
            axes = (self.axis,)
        elif self.written_axis is None and self.data_shape is not None:
            axes = range(len(self.data_shape))
        return index_values.expected_updates(self.spec.layout, self.data_shape, self.indices_shape, axes)
