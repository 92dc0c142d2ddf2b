"""Finds numbers that are the size n of a dynamic dimension plus a constant, such as n + 1.

    n = Gather (Shape (data), 0)     the size of dimension 0 of data
    Add (n, 1)                       that size plus 1
    Concat (n, [3])                  that size, and the constant 3

Two sizes are equal if they belong to the same dimension of the same value, or of values that have its shape.
Equal dimension symbols of two inputs are not enough: runtimes accept different sizes for them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ir_scatter.analysis.constants import Facts, shape_source
from ir_scatter.analysis.equal_elements import ALIGNED
from ir_scatter.core.graph_walk import follow
from ir_scatter.core.model import Node, Value
from ir_scatter.core.shapes import Dim
from ir_scatter.ops.general import Arithmetic, GeneralOp, find, find_analysed, named
from ir_scatter.ops.lookup import opset_number

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

_MOST_VISITED = 200
"""Limit of values that are visited upstream of one value; exporters compute shapes with a few dozen nodes."""
_MOST_ELEMENTS = 64
"""Limit of elements of a tracked value: NumPy allows 64 dimensions, so larger values are not shapes."""
_MOST_NESTED = 8
"""Limit of nested shapes, computed from shapes of fills that are computed from shapes, and so on."""
_LEAST_BITS = 32
"""Fewest bits of a type that holds realistic sizes; sizes of 2^31 and more are not expected."""
LARGE = 1 << 30
"""Constants of this magnitude may overflow when they are added to a size."""


class DimSize(NamedTuple):
    """The size of dimension `axis` of a value: the most upstream value with this dimension."""

    value: Value
    axis: int


class Relative(NamedTuple):
    """The size of a dimension plus a constant."""

    size: DimSize
    offset: int


class SizeTerms(NamedTuple):
    """The elements of a value as sums of a size and a constant, in two arrays of its shape.

    Attributes:
        sizes: ids of sizes, for `RelativeSizes.size`; 0 for an element without a size.
        offsets: the constants.
    """

    sizes: "Array"
    offsets: "Array"


class RelativeSizes:
    """Finds the values of a model whose elements are the size of a dimension plus a constant.

    `facts.result_of(RelativeSizes)` creates it once for each model.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._terms: dict[Value, SizeTerms | None] = {}
        self._numbers: dict[DimSize, int] = {}
        self._sizes: list[DimSize] = []
        self._nested = 0

    def size(self, number: int) -> DimSize:
        """Return the size with an id of `SizeTerms.sizes`; ids count from 1."""
        return self._sizes[number - 1]

    def dim(self, size: DimSize) -> Dim:
        """Return the dimension of a size, with its symbol and bounds."""
        shape = self._facts.shape(size.value)
        assert shape is not None
        return shape[size.axis]

    def terms(self, value: Value) -> SizeTerms | None:
        """Return all elements of a value as size plus constant, None if any of them is unknown."""
        if value not in self._terms:
            follow(value, self._terms, self._sources, self._make, _MOST_VISITED)
        return self._terms.get(value)

    def scalar(self, value: Value | None) -> tuple[DimSize | None, int] | None:
        """Return (size, offset) of a one-element value, with None as size of a constant; None if unknown."""
        terms = None if value is None else self.terms(value)
        if terms is None or terms.sizes.size != 1:
            return None
        number = int(terms.sizes.item())
        return self.size(number) if number else None, int(terms.offsets.item())

    def size_of(self, value: Value, axis: int) -> Relative | None:
        """Return a size as the most upstream size plus a constant; None if the rank is unknown."""
        for _ in range(_MOST_VISITED):
            shape = self._facts.shape(value)
            if shape is None or axis >= len(shape):
                return None
            source = shape_source(value)
            if source is not None and len(self._facts.shape(source) or ()) == len(shape):
                value = source
                continue
            place = self._place_upstream(value, axis - len(shape))
            if place is None:
                break
            value, axis = place
        return self._requested_size(value, axis) or Relative(DimSize(value, axis), 0)

    def _place_upstream(self, value: Value, from_end: int) -> tuple[Value, int] | None:
        """Return the (input, axis) of an elementwise node from which an output dimension comes.

        `from_end` is the number of the output dimension: -1 is the last axis. None if several inputs may give
        it.
        """
        node, op = _producer(value)
        if node is None or op is None or not op.aligns_last(node.attributes):
            return None
        places: list[tuple[Value, int]] = []
        for port in node.inputs:
            shape = None if port.value is None else self._facts.shape(port.value)
            if port.value is None or shape is None:
                return None
            if -from_end <= len(shape) and shape[from_end] != 1:
                places.append((port.value, len(shape) + from_end))
        return places[0] if len(places) == 1 else None

    def _requested_size(self, value: Value, axis: int) -> Relative | None:
        """Return the size of an output dimension as given by the shape input of a fill or Broadcast.

        None if it is not relative to a size, or if the broadcast data may determine the dimension.
        """
        node, op = _producer(value)
        shape = None
        if node is not None and op is not None and op.fills and node.inputs:
            shape = node.inputs[0].value
        elif node is not None and op is named("Broadcast") and self._repeats(node, value, axis):
            shape = node.inputs[1].value
        if shape is None or self._nested >= _MOST_NESTED:
            return None
        self._nested += 1
        try:
            terms = self.terms(shape)
        finally:
            self._nested -= 1
        if terms is None or terms.sizes.ndim != 1 or axis >= terms.sizes.size:
            return None
        number = int(terms.sizes[axis])
        return Relative(self.size(number), int(terms.offsets[axis])) if number else None

    def _repeats(self, node: Node, value: Value, axis: int) -> bool:
        """Return whether a Broadcast repeats one position along an axis of its output."""
        mode = str(node.attributes.get("mode", "numpy")).lower()
        tensors = [tensor for tensor in (node.inputs[0].value, value) if tensor is not None]
        shapes = [self._facts.shape(tensor) for tensor in tensors]
        if len(node.inputs) < 2 or mode not in ALIGNED or len(shapes) < 2:
            return False
        data, output = shapes
        from_end = axis - len(output or ())
        return data is not None and output is not None and (-from_end > len(data) or data[from_end] == 1)

    def holds_sizes(self, value: Value) -> bool:
        """Return whether the element type of a value is wide enough for realistic sizes."""
        type = self._facts.element_type(value)
        return type is not None and type.kind == "signed" and type.bits >= _LEAST_BITS

    def _sources(self, value: Value) -> list[Value]:
        """Return the inputs that determine the terms of a value."""
        node, op = _producer(value)
        if node is None or op is None or op.reads_shapes_only or not self.holds_sizes(value):
            return []
        if self._facts.array(value) is not None:
            return []
        count = len(node.inputs)
        if op.arithmetic in {Arithmetic.SUM, Arithmetic.DIFFERENCE}:
            ports = tuple(range(count))
        else:
            ports = (0,) if op.copies else op.moved_inputs(count)
        values = [node.inputs[number].value for number in ports if number < count]
        return [value for value in values if value is not None]

    def _make(self, value: Value) -> SizeTerms | None:
        """Compute the elements of a value as size plus constant, from those of its inputs."""
        if not self.holds_sizes(value):
            return None
        array = self._facts.whole_numbers(value)
        if array is not None:
            return _within_limits(array * 0, array) if array.size <= _MOST_ELEMENTS else None
        node, op = _producer(value)
        if node is None or op is None:
            return None
        if op.reads_shapes_only:
            return self._shape_terms(node, op)
        inputs = [None if port.value is None else self._terms.get(port.value) for port in node.inputs]
        if op.arithmetic in {Arithmetic.SUM, Arithmetic.DIFFERENCE} and op.aligns_last(node.attributes):
            left, right = inputs
            return None if left is None or right is None else _add_terms(op, left, right)
        if op.copies:
            return inputs[0]
        moved = [number for number in op.moved_inputs(len(inputs)) if number < len(inputs)]
        return self._move_terms(value, node, op, inputs, moved) if moved else None

    def _shape_terms(self, node: Node, op: GeneralOp) -> SizeTerms | None:
        """Return the terms of a node that reads dimensions of a shape, such as Shape with start and end."""
        import numpy

        source = node.inputs[0].value if op.rank == 1 and node.inputs else None
        shape = None if source is None else self._facts.shape(source)
        if source is None or shape is None:
            return None
        # Run on an array whose dimension k has size k, the node returns which dimensions it reads.
        axes = _compute(node, op, [numpy.broadcast_to(numpy.zeros((), numpy.bool_), range(len(shape)))])
        if axes is None:
            return None
        sizes, offsets = [], []
        for axis in axes[0].tolist():
            dim = shape[axis]
            relative = None if isinstance(dim, int) else self.size_of(source, axis)
            if relative is None and not isinstance(dim, int):
                return None
            sizes.append(0 if relative is None else self._id_of(relative.size))
            offsets.append(dim if isinstance(dim, int) else relative.offset if relative else 0)
        return _within_limits(numpy.array(sizes, numpy.int64), numpy.array(offsets, numpy.int64))

    def _id_of(self, size: DimSize) -> int:
        """Return the id of a size, a new one for a new size."""
        if size not in self._numbers:
            self._sizes.append(size)
            self._numbers[size] = len(self._sizes)
        return self._numbers[size]

    def _move_terms(
        self, value: Value, node: Node, op: GeneralOp, inputs: list[SizeTerms | None], moved: list[int]
    ) -> SizeTerms | None:
        """Return the terms of a node that only moves elements, by moving ids and offsets in the same way.

        An element that comes from no input, such as the 0 of a Gather out of range, is a constant.
        """

        def move(pick: "Callable[[SizeTerms], Array]") -> "Array | None":
            arrays: list[Array | None] = []
            for number, (port, terms) in enumerate(zip(node.inputs, inputs, strict=True)):
                if number in moved and terms is not None:
                    arrays.append(pick(terms))
                    continue
                array = None if port.value is None else self._facts.array(port.value)
                if array is None and port.is_present:
                    return None
                arrays.append(array)
            outputs = _compute(node, op, arrays)
            return None if outputs is None or value.output >= len(outputs) else outputs[value.output]

        sizes, offsets = move(lambda terms: terms.sizes), move(lambda terms: terms.offsets)
        return None if sizes is None or offsets is None else _within_limits(sizes, offsets)


def _producer(value: Value) -> tuple[Node | None, GeneralOp | None]:
    """Return the producer of a value and its table row; None for either that is missing.

    Constants and model inputs have no producer, nodes with bodies no row.
    """
    node = None if value.constant is not None or value.is_input else value.producer
    return node, None if node is None or node.bodies else find(node.domain, node.type)


def _compute(node: Node, op: GeneralOp, inputs: "list[Array | None]") -> "tuple[Array, ...] | None":
    """Run the kernel of a node; None if there is none for these inputs."""
    from ir_scatter.ops import general_kernels

    if find_analysed(node.domain, node.type) is None:
        return None
    try:
        return general_kernels.compute(
            op,
            node.domain,
            inputs,
            node.attributes,
            opset=opset_number(node),
            output_count=len(node.outputs),
            element_limit=_MOST_ELEMENTS,
        )
    except general_kernels.UnsupportedCase:
        return None


def _add_terms(op: GeneralOp, left: SizeTerms, right: SizeTerms) -> SizeTerms | None:
    """Return the sum or difference of terms; None if it has two sizes, as in n + m."""
    import numpy

    try:
        first, second = numpy.broadcast_arrays(left.sizes, right.sizes)
    except ValueError:
        return None
    if op.arithmetic is Arithmetic.SUM:
        if bool(((first > 0) & (second > 0)).any()):
            return None
        return _within_limits(first + second, left.offsets + right.offsets)
    if bool(((second > 0) & (first != second)).any()):
        return None
    return _within_limits(numpy.where(second > 0, 0, first), left.offsets - right.offsets)


def _within_limits(sizes: "Array", offsets: "Array") -> SizeTerms | None:
    """Return the terms, or None if a sum of size and offset may overflow."""
    if offsets.size and (int(offsets.max()) >= LARGE or int(offsets.min()) <= -LARGE):
        return None
    return SizeTerms(sizes.astype("int64"), offsets.astype("int64"))
