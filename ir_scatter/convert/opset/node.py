"""A node of an ONNX model on its way to another opset: a copy that adapters read and change."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from onnx import AttributeProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper

from ir_scatter.core.element_types import ElementType, from_onnx_number
from ir_scatter.core.model import Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Shape
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.formats.onnx.index import text
from ir_scatter.formats.onnx.tensors import attribute_value

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array


class CannotAdapt(Exception):
    """A node cannot mean the same in another version: the message says why. Never leaves this package."""


class AdaptedNode:
    """A copy of a node, the new nodes that it needs beside it, and what is known of its inputs.

    Attributes:
        graphs: where the node stands; for a function, one graph for each signature that it is called with.
        position: that of the node.
        is_read: tells whether a node, a body or an output of the graph reads a value.
        target: the opset where it goes.
        is_up: whether that is a newer one.
        original: the node in the model.
        proto: the copy.
        before: new nodes that compute inputs of it.
        after: new nodes that compute from its outputs what the original gave.
        new_names: names of values and nodes that the model may have already.
        gone: outputs that nobody reads and that it has no more.
    """

    def __init__(
        self,
        graphs: tuple[OnnxGraph, ...],
        position: int,
        is_read: Callable[[str], bool],
        *,
        target: int,
        is_up: bool,
    ) -> None:
        """Make a copy of the node at a position; `is_read` tells whether anything reads a value there."""
        self.graphs, self.position, self.is_read = graphs, position, is_read
        self.target, self.is_up = target, is_up
        self.original = graphs[0].index.nodes[position]
        self.proto = NodeProto()
        self.proto.CopyFrom(self.original)
        self.before: list[NodeProto] = []
        self.after: list[NodeProto] = []
        self.new_names: list[str] = []
        self.gone: list[str] = []
        self._new_constants: dict[str, Array] = {}

    @property
    def is_changed(self) -> bool:
        """Whether anything differs from the node in the model."""
        return bool(self.before or self.after) or self.proto != self.original

    def has(self, attribute: str) -> bool:
        """Tell whether an attribute is written."""
        return self._written(attribute) is not None

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return a written attribute as Python sees it, else the default.

        Raises:
            CannotAdapt: a call of the function gives it.
        """
        written, graph = self._written(name), self.graphs[0]
        if written is None:
            return default
        if written.ref_attr_name:
            raise CannotAdapt(f"its attribute {name} is given by the calls of the function")
        return attribute_value(written, graph.node(self.position), graph.shared.tensors)

    def write(self, name: str, value: Any) -> None:
        """Write an attribute, in its place if it is there."""
        written = self._written(name)
        (self.proto.attribute.add() if written is None else written).CopyFrom(_attribute(name, value))

    def erase(self, name: str) -> None:
        """Take an attribute away, if it is there."""
        written = self._written(name)
        if written is not None:
            self.proto.attribute.remove(written)

    def input(self, number: int) -> str:
        """Return the name of an input, "" if it is left out."""
        return self.proto.input[number] if number < len(self.proto.input) else ""

    def connect(self, number: int, name: str) -> None:
        """Set an input; "" leaves it out.

        Raises:
            CannotAdapt: a name cannot be written.
        """
        if any(isinstance(known, bytes) for known in (name, *self.proto.input)):
            raise CannotAdapt("its inputs have names that are not UTF-8, which cannot be written anew")
        names = [*self.proto.input]
        names += [""] * (number + 1 - len(names))
        names[number] = name
        while names and not names[-1]:
            names.pop()
        self.proto.input[:] = names

    def element_type(self, number: int) -> ElementType | None:
        """Return the element type of an input, None if it is not known or not the same in all uses."""
        found = {None if value is None else value.element_type for value in self._values(self.input(number))}
        return found.pop() if len(found) == 1 else None

    def shape(self, number: int) -> Shape:
        """Return the shape of an input; dimensions that are not the same in all uses are not known."""
        shapes = [None if value is None else value.shape for value in self._values(self.input(number))]
        known = [shape for shape in shapes if shape is not None]
        if len(known) < len(shapes) or len(set(map(len, known))) > 1:
            return None
        return tuple(dims[0] if len(set(dims)) == 1 else UNKNOWN_DIM for dims in zip(*known, strict=True))

    def constant(self, number: int) -> "Array | None":
        """Return the content of an input, None if it is not known or not the same in all uses."""
        name = self.input(number)
        if name in self._new_constants:
            return self._new_constants[name]
        constants = [None if value is None else value.constant for value in self._values(name)]
        first, *others = [None if constant is None else constant.load() for constant in constants]
        is_same = first is not None and all(
            other is not None
            and (other.dtype, other.shape) == (first.dtype, first.shape)
            and other.tobytes() == first.tobytes()
            for other in others
        )
        return first if is_same else None

    def type_text(self, name: str) -> str | None:
        """Return the type of any value as schemas write it, "tensor(float)"; None as for `element_type`."""
        found = {_type_text(graph, name) for graph in self.graphs}
        return found.pop() if len(found) == 1 else None

    def new_constant(self, label: str, array: "Array") -> str:
        """Add a Constant node before this one and return the name of its output."""
        name = self._new_name(label)
        self.before.append(_node("Constant", [], name, name, value=numpy_helper.from_array(array, name)))
        self._new_constants[name] = array
        return name

    def new_node(self, type: str, inputs: list[str], label: str, **attributes: Any) -> str:
        """Add a node before this one and return the name of its output."""
        name = self._new_name(label)
        self.before.append(_node(type, inputs, name, name, **attributes))
        return name

    def follow_with(self, type: str, others: list[str], label: str, **attributes: Any) -> None:
        """Add a node behind this one that takes over its name and its first output.

        Args:
            type: the new node's.
            others: its inputs but the first, which is what this node computes.
            label: what this node computes, for its new name.
            attributes: those of the new node.
        """
        result, own = self.proto.output[0], self._new_name(label)
        self.proto.output[0] = own
        self.after.append(_node(type, [own, *others], result, self.proto.name, **attributes))
        self.proto.name = own

    def _written(self, name: str) -> AttributeProto | None:
        return next((written for written in self.proto.attribute if written.name == name), None)

    def _new_name(self, label: str) -> str:
        first = next((name for name in self.original.output if name), self.original.op_type)
        base = f"{text(self.original.name or first)}/{label}"
        name, number = base, 2
        while name in self.new_names:
            name, number = f"{base}_{number}", number + 1
        self.new_names.append(name)
        return name

    def _values(self, name: str) -> list[Value | None]:
        return [None if name in self.new_names else graph.find(name) for graph in self.graphs]


def _node(type: str, inputs: list[str], output: str, name: str, **attributes: Any) -> NodeProto:
    written = [_attribute(key, value) for key, value in attributes.items()]
    return NodeProto(op_type=type, input=inputs, output=[output], name=name, attribute=written)


def _attribute(name: str, value: Any) -> AttributeProto:
    if isinstance(value, TensorProto):  # most new nodes are constants, and the helper takes its time
        return AttributeProto(name=name, type=AttributeProto.TENSOR, t=value)
    return helper.make_attribute(name, value, attr_type=AttributeProto.INTS if value == [] else None)


def _type_text(graph: OnnxGraph, name: str) -> str | None:
    value = graph.find(name)
    if value is not None and value.element_type is not None:
        return f"tensor({value.element_type.onnx_name})"
    owner: OnnxGraph | None = graph
    while owner is not None:
        known = owner.inferred.types.get(name)
        declared = owner.index.stored.get(name) or owner.index.inputs.get(name)
        type = known or (declared.type if declared is not None else None)
        if type is not None:
            return _show_type(type)
        owner = owner.parent
    return None


def _show_type(type: TypeProto) -> str | None:
    kind = type.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        element_type = from_onnx_number(getattr(type, kind).elem_type)
        word = kind.removesuffix("_type")
        return None if element_type is None else f"{word}({element_type.onnx_name})"
    if kind in ("sequence_type", "optional_type"):
        inner = _show_type(getattr(type, kind).elem_type)
        word = "seq" if kind == "sequence_type" else "optional"
        return None if inner is None else f"{word}({inner})"
    return None
