"""What can be proven of a value: its shape, and its numbers if it is constant in effect."""

from typing import TYPE_CHECKING

from ir_scatter.core.model import Node, Value
from ir_scatter.core.shapes import Shape, agree, element_count, is_static, narrow, static
from ir_scatter.core.tensors import FEW, Constant, few_numbers
from ir_scatter.ops.general import find_computed
from ir_scatter.ops.lookup import find, is_scatter
from ir_scatter.ops.spec import Role

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array


MAX_CONSTANT_ELEMENTS = 1 << 26
_MAX_COMPUTED = 1 << 23
"""Elements that may be computed in all: what stands in front of indices is small."""

_MAX_NODES = 256
"""How many nodes are looked at in front of one value; exporters put a dozen there."""


class Facts:
    """Proves things about the values of one model, each thing once.

    Attributes:
        max_elements: constants with more elements are not read.
        skipped: constants that were not read because of it.
    """

    def __init__(self, max_elements: int = MAX_CONSTANT_ELEMENTS) -> None:
        self.max_elements = max_elements
        self.skipped: set[Constant] = set()
        self._budget = _MAX_COMPUTED
        self._shapes: dict[Value, Shape] = {}
        self._arrays: dict[Value, Array | None] = {}

    def shape(self, value: Value) -> Shape:
        """Return the shape that a value has, whatever the file stores for it.

        The output of an operator that keeps the shape of an input has that input's shape.
        """
        if _is_plainly_known(value):
            return value.shape
        path: list[Value] = []
        seen: set[Value] = set()
        while value not in self._shapes:
            source = _shape_source(value)
            seen.add(value)
            if source is None or source in seen:
                self._shapes[value] = value.shape
                break
            path.append(value)
            value = source
        shape = self._shapes[value]
        for value in reversed(path):
            shape = narrow(shape, value.shape) if agree(shape, value.shape) else shape
            self._shapes[value] = shape
        return shape

    def trust(self, value: Value) -> None:
        """Take the shape that is stored for a value as all that can be known of it."""
        self._shapes[value] = value.shape

    def array(self, value: Value) -> "Array | None":
        """Return the numbers of a value that is constant in effect, None if it is not.

        Small graphs of plain operators on constants (Convert, Unsqueeze, Concat, ShapeOf of a known
        shape, ...) are evaluated. The array is not to be changed.
        """
        pending, budget = [value], _MAX_NODES
        while pending:
            current = pending[-1]
            if current in self._arrays:
                pending.pop()
                continue
            budget -= 1
            needed = self._needed(current) if budget > 0 else None
            missing = [source for source in needed or () if source not in self._arrays]
            if needed is None or (missing and missing[0] in pending):
                self._arrays[current] = None
            elif missing:
                pending.append(missing[0])
            else:
                self._arrays[current] = self._compute(current)
        return self._arrays[value]

    def numbers(self, value: Value) -> list[int] | None:
        """Return few whole numbers that the file itself stores, without importing NumPy.

        None where there are many, or where they are computed or stored in another way; `array`
        may know them then.
        """
        constant = value.constant
        if constant is None or constant.element_type is None or self.max_elements < FEW:
            return None
        return few_numbers(constant.element_type, constant.shape, constant.view)

    def origin(self, value: Value) -> Constant | None:
        """Return the one constant that a value comes from through plain operators, if it is one."""
        for _ in range(_MAX_NODES):
            node = value.producer
            if value.constant is not None or node is None or _reads_an_input(node):
                break
            sources = [port.value for port in node.inputs if port.value]
            if not sources or find_computed(node.domain, node.type) is None:
                break
            value = sources[0]
        return value.constant

    def _needed(self, value: Value) -> list[Value] | None:
        """Return the values that must be known before this one; None if it cannot be known."""
        if value.constant is not None:
            return []
        node = value.producer
        op = None if node is None else find_computed(node.domain, node.type)
        if node is None or op is None or node.bodies or _reads_an_input(node):
            return None
        if any(port.is_present and port.value is None for port in node.inputs):
            return None
        sources = [port.value for port in node.inputs if port.value is not None]
        if op.reads_shapes_only:
            return [] if all(static(self.shape(source)) is not None for source in sources) else None
        for source in sources:
            if source in self._arrays:
                if self._arrays[source] is None:
                    return None
            elif source.producer is None and source.constant is None:
                return None
        return sources

    def _compute(self, value: Value) -> "Array | None":
        """Return the numbers of a value of whose producer all that is needed is known."""
        if value.constant is not None:
            if (element_count(value.constant.shape) or 0) > self.max_elements:
                self.skipped.add(value.constant)
                return None
            return value.constant.load()
        from ir_scatter.ops import general_kernels as plain

        node = value.producer
        assert node is not None
        op = find_computed(node.domain, node.type)
        assert op is not None
        inputs: list[Array | None] = []
        for port in node.inputs:
            array = None
            if port.value is not None:
                array = self._stand_in(port.value) if op.reads_shapes_only else self._arrays[port.value]
                if array is None:
                    return None
            inputs.append(array)
        try:
            outputs = plain.compute(
                op,
                node.domain,
                inputs,
                node.attributes,
                opset=opset_number(node),
                output_count=len(node.outputs),
                element_limit=min(self.max_elements, self._budget),
            )
        except plain.UnsupportedCase:
            return None
        self._budget -= sum(array.size for array in outputs)
        return outputs[value.output] if value.output < len(outputs) else None

    def _stand_in(self, source: Value) -> "Array | None":
        """Return an array of a value's shape that takes no memory."""
        import numpy

        shape = static(self.shape(source))
        if shape is None:
            return None
        try:
            return numpy.broadcast_to(numpy.zeros((), numpy.bool_), shape)
        except ValueError:  # a shape that NumPy cannot represent
            return None


def _reads_an_input(node: Node) -> bool:
    """Tell whether a node reads the values of an input of the graph."""
    op = find_computed(node.domain, node.type)
    if op is not None and op.reads_shapes_only:
        return False
    return any(port.value is not None and port.value.is_input for port in node.inputs)


def opset_number(node: Node) -> int | None:
    if isinstance(node.opset, str):
        digits = node.opset.removeprefix("opset")
        return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 5 else None
    return node.opset


def _is_plainly_known(value: Value) -> bool:
    """Tell whether the shape that is stored for a value is to be believed.

    A shape that is stored whole is, but not that of a scatter node, whose documents say what it is.
    """
    if value.constant is not None:
        return True
    type = value.producer_type
    return type is not None and not is_scatter(type) and is_static(value.shape)


def _shape_source(value: Value) -> Value | None:
    """Return the input of a value's producer that has the same shape as the value, if one has."""
    node = None if _is_plainly_known(value) else value.producer
    if node is None:
        return None
    lookup = find(node.domain, node.type, node.opset)
    if lookup is not None:
        index = lookup.spec.port_index(Role.DATA) if lookup.spec else None
    else:
        op = None if is_static(value.shape) else find_computed(node.domain, node.type)
        index = 0 if op is not None and op.keeps_shape else None
    if index is None or index >= len(node.inputs):
        return None
    return node.inputs[index].value
