"""A scatter node of a model, with its inputs by role and the facts derived from them."""

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
from ir_scatter.core.shapes import Dim, Shape, at_most, element_count, is_static, lowest, static
from ir_scatter.ops import index_values
from ir_scatter.ops.general_bounds import Interval
from ir_scatter.ops.lookup import Lookup, find, scatter_types
from ir_scatter.ops.spec import NEGATIVE_INDEX, IndexRange, Kind, Layout, OpSpec, Port, Reduction, Role

if TYPE_CHECKING:
    from ir_scatter.analysis.reachability import Reach
    from ir_scatter.core.arrays import Array


@dataclass(slots=True, eq=False)
class Operand:
    """A connected input of a scatter node, with its port and its inferred shape and type."""

    port: Port
    index: int
    input: Input
    value: Value
    shape: Shape
    element_type: ElementType | None

    @property
    def stored(self) -> Input | Value:
        """Return the object with the stored shape and type: the input port, or else the value."""
        is_at_port = self.input.stored_shape is not None or self.input.stored_type is not None
        return self.input if is_at_port else self.value


def scatter_nodes(graph: Graph | Model, facts: Facts) -> Iterator["ScatterNode"]:
    """Yield the scatter nodes of a graph and its bodies, or of a model and its functions, in file order."""
    for node in graph.walk(scatter_types(OPENVINO) | scatter_types(ONNX)):
        lookup = find(node.domain, node.type, node.opset)
        if lookup is not None:
            yield ScatterNode(node, lookup, facts)


class ScatterNode:
    """A scatter node, the specification of its operator version, and derived facts about its values."""

    def __init__(self, node: Node, lookup: Lookup, facts: Facts) -> None:
        self.node = node
        self.lookup = lookup
        self.facts = facts

    @property
    def spec(self) -> OpSpec:
        """The specification of the operator version; the opset must contain the operator."""
        assert self.lookup.spec is not None
        return self.lookup.spec

    def operand(self, role: Role) -> Operand | None:
        """Return the input with a role; None if the operator lacks the role or nothing is connected."""
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
        """Whether runtimes refuse the model if the stored element type of an output is wrong."""
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
        """The constant indices if they are few, read without importing NumPy; None otherwise."""
        value = self._value(Role.INDICES)
        return None if value is None else self.facts.numbers(value)

    def is_constant(self, value: Value) -> bool:
        """Return whether a value is a constant, or can be computed from constants."""
        return value.constant is not None or self.facts.array(value) is not None

    @cached_property
    def has_constant_indices(self) -> bool:
        return self.few_indices is not None or self.index_array is not None

    @cached_property
    def index_array(self) -> "Array | None":
        """The integer indices, if they can be computed from constants; else None."""
        value = self._value(Role.INDICES)
        return None if value is None else self.facts.whole_numbers(value)

    @cached_property
    def written_axis(self) -> int | None:
        """The axis as the model gives it, maybe negative; None if it is not constant."""
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
        """The non-negative axis; None if it is unknown or not an axis of data."""
        axis, shape = self.written_axis, self.data_shape
        if axis is None or shape is None or not -len(shape) <= axis < len(shape):
            return None
        axis %= len(shape)
        source = self.spec.axis
        return None if source is None or axis in source.excluded else axis

    def attribute(self, name: str) -> Any:
        """Return the value of an attribute as runtimes read it, or its default."""
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
        """How updates are combined with old values; None if the attribute value is unknown."""
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
        """k, the number of coordinates of each index tuple; None if it is unknown."""
        shape = self.indices_shape
        if self.spec.layout is not Layout.TUPLES or not shape:
            return None
        return shape[-1] if isinstance(shape[-1], int) else None

    @cached_property
    def limits(self) -> list[int | None] | None:
        """The sizes of data that limit constant indices, one per coordinate.

        For a cache it is the number of start positions. None if indices are not constant, or if the ranks do
        not fit, so that there are no targets.
        """
        shape = static(self.indices_shape)
        return None if not self.has_constant_indices or shape is None else self._sizes(shape)

    def _sizes(self, shape: tuple[Dim, ...]) -> list[int | None] | None:
        """Return the sizes that limit indices of a shape; None if the shapes do not determine the targets."""
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
    def has_dynamic_limits(self) -> bool:
        """Whether a size that limits indices is dynamic or unknown."""
        data, axis = self.data_shape, self.axis
        if data is None or (axis is None and self.spec.layout is not Layout.TUPLES):
            return True
        return not is_static(data[: self.depth] if axis is None else data[axis : axis + 1])

    @cached_property
    def computed_outside(self) -> certain_numbers.Outside | None:
        """Computed indices that are always out of range, or always negative where that is illegal."""
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
        """Return the dynamic sizes that limit indices, by coordinate; None for static or unknown ones."""
        data, axis = self.data, self.axis
        first = 0 if self.spec.layout is Layout.TUPLES else axis
        if data is None or data.shape is None or first is None:
            return [None] * count
        may_be_empty = False
        if self.spec.layout is Layout.SEQUENCE:  # empty updates may also start at the end of the cache
            updates = self.updates.shape if self.updates else None
            may_be_empty = updates is None or len(updates) != len(data.shape) or lowest(updates[first]) < 1
        dims, relative = data.shape[first : first + count], self.facts.result_of(RelativeSizes)
        return [
            None if isinstance(dim, int) or may_be_empty else relative.size_of(data.value, first + number)
            for number, dim in enumerate(dims)
        ]

    @cached_property
    def outside_source(self) -> Related | None:
        """A note on the source of the index in `computed_outside`; None if that is the input itself."""
        outside, indices = self.computed_outside, self.indices
        if outside is None or indices is None:
            return None
        source, remark = outside.occurrence.source, outside.occurrence.remark
        if source is indices.value and not remark:
            return None
        prefix = f"is {remark} and " if remark else ""
        if source.constant is not None:
            constant, kind = source.constant, "Const" if self.spec.drops_attributes else "constant"
            message = f'it {prefix}comes from {kind} "{constant.name}"'
            return Related(message, constant.location, constant.span)
        node = source.producer
        if node is None or source.is_input:
            message = f'it {prefix}comes from input "{source.name}"'
            return Related(message, source.location or self.node.location)
        return Related(f'it {prefix}comes from {node.type} "{node.name}"', node.location)

    @cached_property
    def computed_axis(self) -> Interval | None:
        """The bounds of an axis that is computed from inputs; None for a constant one."""
        value = self._value(Role.AXIS)
        if value is None or self.written_axis is not None:
            return None
        return bounds_of(self.facts, value)[0] if self.facts.array(value) is None else None

    @cached_property
    def reach(self) -> "Reach":
        """The conditions under which the node runs; they are computed on first access."""
        from ir_scatter.analysis.reachability import Reach, reachability_of

        reachability = self.facts.result_of(reachability_of)
        return Reach() if reachability is None else reachability.reach(self.node)

    @cached_property
    def scatters_inputs_into_zeros(self) -> bool:
        """Whether data is all zeros and indices are a model input; in a function, at each call."""
        from ir_scatter.analysis.origins import Inflows, comes_from_inputs, is_all_zeros, no_inflows

        inflows: Inflows = no_inflows
        nodes = [self.node]
        if self.node.graph.scope:
            from ir_scatter.analysis.reachability import reachability_of

            reachability = self.facts.result_of(reachability_of)
            if reachability is None:
                return False
            nodes, inflows = reachability.copies(self.node), reachability.inflows
        for node in nodes:
            operands = [operand for operand in (self.data, self.indices) if operand]
            data, indices = (node.inputs[operand.index].value for operand in operands)
            if data is None or indices is None or not is_all_zeros(self.facts, data, inflows):
                return False
            if not comes_from_inputs(self.facts, indices, inflows):
                return False
        return bool(nodes)

    @cached_property
    def out_of_range(self) -> index_values.BadIndices | None:
        """The constant indices outside of [-s, s-1] for size s; None if all are inside or not constant."""
        if self.index_array is None or self.limits is None:
            return None
        return index_values.out_of_range(self.index_array, self.limits)

    @cached_property
    def repeats(self) -> index_values.Repeats | None:
        """The constant indices that repeat a target; None if all targets differ or are unknown."""
        if self.index_array is None or self.limits is None:
            return None
        return index_values.repeats(
            self.spec.layout, self.axis, self.index_array, self.limits, wraps=self.wraps
        )

    @cached_property
    def certainly_repeats(self) -> str:
        """Why computed indices repeat a target for every input; "" if that is not certain.

        Only operators near the node are looked at, so that checking it costs little.
        """
        indices, layout, axis = self.indices, self.spec.layout, self.axis
        if indices is None or indices.value.producer is None or self.has_constant_indices:
            return ""
        shape = indices.shape
        if layout is Layout.SEQUENCE or not shape or 0 in shape:
            return ""
        rank = len(shape)
        if layout is Layout.ELEMENTS:
            along = [] if axis is None or axis >= rank else [axis]
        else:
            along = [*range(rank - (layout is Layout.TUPLES))]
        # without elements along another axis there is no index
        others = [dim for number, dim in enumerate(shape) if number not in along]
        if not along or any(lowest(dim) < 1 for dim in others):
            return ""
        return equal_elements.repetition(self.facts, indices.value, along)

    @cached_property
    def has_equal_updates(self) -> bool:
        """Whether the updates of each target are proven equal, or empty, so that their order does not matter.

        This holds for the reductions none, max and min; with others, the number of updates matters.
        """
        updates, layout, axis = self.updates, self.spec.layout, self.axis
        if updates is None or layout is Layout.SEQUENCE:
            return False
        if element_count(updates.shape) == 0:
            return True
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

    def has_faults(self, limits: list[int | None] | None, *, is_dynamic: bool = False) -> bool:
        """Return whether indices are or may be out of range, negative or repeated, or were not read.

        Args:
            limits: the sizes that limit the indices of this node, or of another node of its group.
            is_dynamic: whether such a size is dynamic, so that every index except 0 may be out of range.
        """
        numbers = self.few_indices or []
        size = limits[0] if limits is not None and len(limits) == 1 else None
        is_inside = size is not None and numbers and min(numbers) >= 0 and max(numbers) < size
        if is_inside and not is_dynamic and len({*numbers}) == len(numbers):
            return False
        array = self.index_array
        if array is None:
            return (
                bool(self.facts.skipped) or self.computed_outside is not None or bool(self.certainly_repeats)
            )
        if limits is None or self.out_of_range is not None or (array.size and int(array.min()) < 0):
            return True
        if is_dynamic and array.size and (int(array.max()) > 0 or int(array.min()) < 0):
            return True  # an unknown dimension may be too small
        return (self.spec.layout is Layout.ELEMENTS and self.axis is None) or self.repeats is not None

    @property
    def wraps(self) -> bool:
        """Whether a negative index counts from the end, by the specification or in the runtimes."""
        is_legal = self.spec.index_range is IndexRange.WRAPPING
        return is_legal or NEGATIVE_INDEX in self.spec.tolerated

    def longer_dimensions(self) -> list[int]:
        """Return the dimensions on which indices are proven longer than data."""
        data, indices = self.data_shape, self.indices_shape
        if data is None or indices is None or len(data) != len(indices):
            return []
        pairs = enumerate(zip(indices, data, strict=True))
        return [number for number, (index, limit) in pairs if not at_most(index, limit)]

    def expected_updates(self) -> list[Shape]:
        """Return the shapes that the specification allows for updates; [] if they are unknown.

        An unknown axis gives one shape for each axis of data; an axis out of range gives none.
        """
        axes: Iterable[int] = ()
        if self.axis is not None:
            axes = (self.axis,)
        elif self.written_axis is None and self.data_shape is not None:
            axes = range(len(self.data_shape))
        return index_values.expected_updates(self.spec.layout, self.data_shape, self.indices_shape, axes)
