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

_MAX_NODES = 128
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
        self._nodes_left = 0
        self._shapes: dict[Value, Shape] = {}
        self._arrays: dict[Value, Array | None] = {}

    def shape(self, value: Value) -> Shape:
        """Return the shape that a value has, whatever the file stores for it.

        The output of an operator that keeps the shape of an input has that input's shape.
        """
        path: list[Value] = []
        while value not in self._shapes:
            source = _shape_source(value)
            self._shapes[value] = value.shape  # where a circle ends
            if source is None:
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

        Small graphs of general operators on constants (Convert, Unsqueeze, Concat, ShapeOf of a known
        shape, ...) are evaluated. The array is not to be changed.
        """
        self._nodes_left = _MAX_NODES
        return self._array(value)

    def _array(self, value: Value) -> "Array | None":
        if value in self._arrays:
            return self._arrays[value]
        self._arrays[value] = None  # what depends on itself is not known
        self._nodes_left -= 1
        constant = value.constant
        if constant is None:
            self._arrays[value] = self._computed(value) if self._nodes_left > 0 else None
        elif (element_count(constant.shape) or 0) > self.max_elements:
            self.skipped.add(constant)
        else:
            self._arrays[value] = constant.load()
        return self._arrays[value]

    def _computed(self, value: Value) -> "Array | None":
        """Return what the producer of a value makes of constants, None if it cannot be told."""
        node = value.producer
        op = None if node is None else find_computed(node.domain, node.type)
        if node is None or op is None or node.bodies or _reads_an_input(node):
            return None
        if any(port.is_present and port.value is None for port in node.inputs):
            return None
        made = self._stand_in if op.reads_shapes_only else self._array
        sources = [port.value for port in node.inputs]
        if not op.reads_shapes_only and any(
            source and source.constant is None and source.producer is None for source in sources
        ):
            return None
        inputs: list[Array | None] = []
        for source in sources:
            inputs.append(None if source is None else made(source))
            if source is not None and inputs[-1] is None:
                return None
        from ir_scatter.ops import general_kernels

        try:
            outputs = general_kernels.compute(
                op,
                node.domain,
                inputs,
                node.attributes,
                opset=opset_number(node),
                output_count=len(node.outputs),
                element_limit=min(self.max_elements, self._budget),
            )
        except general_kernels.UnsupportedCase:
            return None
        self._budget -= sum(array.size for array in outputs)
        return outputs[value.output] if value.output < len(outputs) else None

    def _stand_in(self, source: Value) -> "Array | None":
        """Return an array of a value's shape that takes no memory."""
        import numpy

        shape = static(self.shape(source))
        try:
            return None if shape is None else numpy.broadcast_to(numpy.zeros((), numpy.bool_), shape)
        except ValueError:  # a shape that NumPy cannot represent
            return None

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
        """Return the one constant that a value comes from through general operators, if it is one."""
        for _ in range(_MAX_NODES):
            node = value.producer
            if value.constant is not None or node is None or _reads_an_input(node):
                break
            sources = [port.value for port in node.inputs if port.value]
            if not sources or find_computed(node.domain, node.type) is None:
                break
            value = sources[0]
        return value.constant


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


def _shape_source(value: Value) -> Value | None:
    """Return the input of a value's producer that has the shape of the value, if one has.

    A shape that is stored whole is believed, but not that of a scatter node, whose documents say what it is.
    """
    type = value.producer_type
    if value.constant is not None or (type and not is_scatter(type) and is_static(value.shape)):
        return None
    node = value.producer
    if node is None:
        return None
    lookup = find(node.domain, node.type, node.opset)
    if lookup is not None:
        index = lookup.spec.port_index(Role.DATA) if lookup.spec else None
    else:
        op = None if is_static(value.shape) else find_computed(node.domain, node.type)
        index = 0 if op is not None and op.keeps_shape else None
    return None if index is None or index >= len(node.inputs) else node.inputs[index].value
