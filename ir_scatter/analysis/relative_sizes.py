"""Numbers that are the size of an open dimension plus a constant, whatever that size is when a model runs.

    n = Gather (Shape (data), 0)     the size of dimension 0 of data
    Add (n, 1)                       that size plus 1
    Concat (n, [3])                  that size, and the constant 3

Dimensions are the same if they are one dimension of one value, also through operators that keep its shape.
Two inputs that name a dimension alike are not enough: runtimes accept different sizes there.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ir_scatter.analysis.constants import Facts, shape_source
from ir_scatter.analysis.equal_elements import ALIGNED
from ir_scatter.core.graph_walk import follow
from ir_scatter.core.model import Node, Value
from ir_scatter.core.shapes import Dim
from ir_scatter.ops.general import Arithmetic, GeneralOp, find, find_computed, named
from ir_scatter.ops.lookup import opset_number

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

_MOST_VISITED = 200
"""At most this many values upstream are looked at for one value."""
_MOST_ELEMENTS = 64
"""A value with more numbers than a shape can have dimensions is no shape, nor a part of one."""
_MOST_NESTED = 8
"""How often a shape may be computed from another shape."""
_LEAST_BITS = 32
"""Narrower types overflow at sizes that occur; a dimension of 2^31 positions is not expected in 32 bits."""
LARGE = 1 << 30
"""Constants from here on may overflow when they are added to a size."""


class Size(NamedTuple):
    """The size of a dimension, counted from 0, of a value that has the least upstream of it."""

    value: Value
    axis: int


class Relative(NamedTuple):
    """The size of a dimension plus a constant."""

    size: Size
    offset: int


class Terms(NamedTuple):
    """The numbers of a value: two arrays of its shape.

    Attributes:
        sizes: 0 for a constant, otherwise the number of a size, as `RelativeSizes.size` takes it.
        offsets: the constants, or what is added to the size.
    """

    sizes: "Array"
    offsets: "Array"


class RelativeSizes:
    """Answers for one model which numbers are the size of a dimension plus a constant.

    `facts.derived(RelativeSizes)` makes it once for each model.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._terms: dict[Value, Terms | None] = {}
        self._numbers: dict[Size, int] = {}
        self._sizes: list[Size] = []
        self._nested = 0

    def size(self, number: int) -> Size:
        """Return the size that has a number, from 1 on, in `Terms`."""
        return self._sizes[number - 1]

    def dim(self, size: Size) -> Dim:
        """Return what the model says of a size."""
        shape = self._facts.shape(size.value)
        assert shape is not None
        return shape[size.axis]

    def terms(self, value: Value) -> Terms | None:
        """Return the numbers of a value, None unless each is known like that."""
        if value not in self._terms:
            follow(value, self._terms, self._sources, self._make, _MOST_VISITED)
        return self._terms.get(value)

    def scalar(self, value: Value | None) -> tuple[Size | None, int] | None:
        """Return the one number of a value: a size, None for a constant, and what is added to it."""
        terms = None if value is None else self.terms(value)
        if terms is None or terms.sizes.size != 1:
            return None
        number = int(terms.sizes.item())
        return self.size(number) if number else None, int(terms.offsets.item())

    def size_of(self, value: Value, axis: int) -> Relative | None:
        """Return which size a dimension is, counted from 0; None where the rank is not known."""
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
        return self._made_to_size(value, axis) or Relative(Size(value, axis), 0)

    def _place_upstream(self, value: Value, from_end: int) -> tuple[Value, int] | None:
        """Return the one input of an elementwise node along which others are repeated, and its axis."""
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

    def _made_to_size(self, value: Value, axis: int) -> Relative | None:
        """Return the number that a fill or a broadcast was told as the size of a dimension.

        None if it is no size, or if the dimension may be as long as that of what is broadcast.
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
        """Tell whether a broadcast repeats one position along an axis of its output."""
        mode = str(node.attributes.get("mode", "numpy")).lower()
        shapes = [self._facts.shape(one) for one in (node.inputs[0].value, value) if one is not None]
        if len(node.inputs) < 2 or mode not in ALIGNED or len(shapes) < 2:
            return False
        data, output = shapes
        from_end = axis - len(output or ())
        return data is not None and output is not None and (-from_end > len(data) or data[from_end] == 1)

    def counts(self, value: Value) -> bool:
        """Tell whether the element type of a value has room for any size that occurs."""
        type = self._facts.element_type(value)
        return type is not None and type.kind == "signed" and type.bits >= _LEAST_BITS

    def _sources(self, value: Value) -> list[Value]:
        node, op = _producer(value)
        if node is None or op is None or op.reads_shapes_only or not self.counts(value):
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

    def _make(self, value: Value) -> Terms | None:
        """Return the numbers of a value whose sources are known."""
        if not self.counts(value):
            return None
        array = self._facts.whole_numbers(value)
        if array is not None:
            return _within_limits(array * 0, array) if array.size <= _MOST_ELEMENTS else None
        node, op = _producer(value)
        if node is None or op is None:
            return None
        if op.reads_shapes_only:
            return self._shape(node, op)
        inputs = [None if port.value is None else self._terms.get(port.value) for port in node.inputs]
        if op.arithmetic in {Arithmetic.SUM, Arithmetic.DIFFERENCE} and op.aligns_last(node.attributes):
            left, right = inputs
            return None if left is None or right is None else _combined(op, left, right)
        if op.copies:
            return inputs[0]
        moved = [number for number in op.moved_inputs(len(inputs)) if number < len(inputs)]
        return self._moved(value, node, op, inputs, moved) if moved else None

    def _shape(self, node: Node, op: GeneralOp) -> Terms | None:
        import numpy

        source = node.inputs[0].value if op.rank == 1 and node.inputs else None
        shape = None if source is None else self._facts.shape(source)
        if source is None or shape is None:
            return None
        # The shape of an array whose dimension k has k positions says which dimensions the node gives.
        axes = _compute(node, op, [numpy.broadcast_to(numpy.zeros((), numpy.bool_), range(len(shape)))])
        if axes is None:
            return None
        sizes, offsets = [], []
        for axis in axes[0].tolist():
            dim = shape[axis]
            relative = None if isinstance(dim, int) else self.size_of(source, axis)
            if relative is None and not isinstance(dim, int):
                return None
            sizes.append(0 if relative is None else self._number(relative.size))
            offsets.append(dim if isinstance(dim, int) else relative.offset if relative else 0)
        return _within_limits(numpy.array(sizes, numpy.int64), numpy.array(offsets, numpy.int64))

    def _number(self, size: Size) -> int:
        if size not in self._numbers:
            self._sizes.append(size)
            self._numbers[size] = len(self._sizes)
        return self._numbers[size]

    def _moved(
        self, value: Value, node: Node, op: GeneralOp, inputs: list[Terms | None], moved: list[int]
    ) -> Terms | None:
        """Return the terms that a node only moves: what it does to both arrays.

        A number that comes from no input, as 0 does of a Gather that is out of range, is a constant.
        """

        def part(pick: "Callable[[Terms], Array]") -> "Array | None":
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

        sizes, offsets = part(lambda terms: terms.sizes), part(lambda terms: terms.offsets)
        return None if sizes is None or offsets is None else _within_limits(sizes, offsets)


def _producer(value: Value) -> tuple[Node | None, GeneralOp | None]:
    """Return the node that makes a value, and its row; None for a constant, an input and what has bodies."""
    node = None if value.constant is not None or value.is_input else value.producer
    return node, None if node is None or node.bodies else find(node.domain, node.type)


def _compute(node: Node, op: GeneralOp, inputs: "list[Array | None]") -> "tuple[Array, ...] | None":
    from ir_scatter.ops import general_kernels

    if find_computed(node.domain, node.type) is None:
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


def _combined(op: GeneralOp, left: Terms, right: Terms) -> Terms | None:
    """Return the sum or the difference of terms: one of them is a constant, or two sizes cancel out."""
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


def _within_limits(sizes: "Array", offsets: "Array") -> Terms | None:
    if offsets.size and (int(offsets.max()) >= LARGE or int(offsets.min()) <= -LARGE):
        return None
    return Terms(sizes.astype("int64"), offsets.astype("int64"))
