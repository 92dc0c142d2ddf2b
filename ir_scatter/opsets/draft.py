"""A node on its way to another opset: the message that is changed, and the nodes it needs beside it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import onnx
from onnx import AttributeProto, NodeProto, TensorProto

from ir_scatter.formats.onnx_attributes import kind_of
from ir_scatter.formats.onnx_types import text
from ir_scatter.opsets.place import Place

if TYPE_CHECKING:
    from ir_scatter.constants import Array


class Refused(Exception):
    """A node cannot mean the same: the message says why. Never leaves this package."""


class Draft:
    """A node, copied to be changed.

    Attributes:
        place: the node as it stands in the model.
        target: the opset it is on its way to.
        proto: the copy.
        before: new nodes that compute inputs of it.
        after: new nodes that compute from its outputs what the original gave.
        made: new constants, by name.
        names: new names of values.
        gone: outputs that nobody reads and that it has no more.
        only_enlarges: whether its scales are known to be at least 1.
    """

    def __init__(self, place: Place, target: int) -> None:
        self.place = place
        self.target = target
        self.proto = NodeProto()
        self.proto.CopyFrom(place.proto)
        self.before: list[NodeProto] = []
        self.after: list[NodeProto] = []
        self.made: dict[str, Array] = {}
        self.names: list[str] = []
        self.gone: list[str] = []
        self.only_enlarges = False

    @property
    def is_changed(self) -> bool:
        """Tell whether anything is different from the node in the model."""
        return bool(self.before or self.after) or self.proto != self.place.proto

    def has(self, attribute: str) -> bool:
        """Tell whether an attribute is written."""
        return any(written.name == attribute for written in self.proto.attribute)

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return a written attribute as Python sees it, text as str, else the default.

        Raises:
            Refused: a call of the function gives it.
        """
        for written in self.proto.attribute:
            if written.name == name:
                if written.ref_attr_name:
                    raise Refused(f"its attribute {name} is given by the calls of the function")
                return _read(written)
        return default

    def write(self, name: str, value: Any) -> None:
        """Write an attribute, in its place if it is there."""
        made = _written(name, value)
        for written in self.proto.attribute:
            if written.name == name:
                written.CopyFrom(made)
                return
        self.proto.attribute.append(made)

    def erase(self, name: str) -> None:
        """Take an attribute away."""
        for position, written in enumerate(self.proto.attribute):
            if written.name == name:
                del self.proto.attribute[position]
                return

    def input(self, number: int) -> str:
        """Return the name of an input, "" if it is left out."""
        return self.proto.input[number] if number < len(self.proto.input) else ""

    def output(self, number: int) -> str:
        """Return the name of an output, "" if it is left out."""
        return self.proto.output[number] if number < len(self.proto.output) else ""

    def connect(self, number: int, name: str) -> None:
        """Set an input; "" leaves it out.

        Raises:
            Refused: a name cannot be written.
        """
        if any(isinstance(known, bytes) for known in (name, *self.proto.input)):
            raise Refused("its inputs have names that are not UTF-8, which cannot be written anew")
        if name and number == len(self.proto.input):
            self.proto.input.append(name)
            return
        names = [*self.proto.input]
        names += [""] * (number + 1 - len(names))
        names[number] = name
        while names and not names[-1]:
            names.pop()
        self.proto.input[:] = names

    def constant(self, name: str) -> "Array | None":
        """Return the content of a value, None if it is not known."""
        return self.made[name] if name in self.made else self.place.constant(name)

    def make_constant(self, label: str, array: "Array") -> str:
        """Add a Constant node and return the name of its output."""
        name = self._name(label)
        tensor = onnx.numpy_helper.from_array(array, name)
        self.before.append(_node("Constant", [], name, name, {"value": tensor}))
        self.made[name] = array
        return name

    def make_node(self, type: str, inputs: list[str], label: str, **attributes: Any) -> str:
        """Add a node before this one and return the name of its output."""
        name = self._name(label)
        self.before.append(_node(type, inputs, name, name, attributes))
        return name

    def follow_with(self, type: str, others: list[str], label: str, **attributes: Any) -> None:
        """Add a node behind this one that takes over its name and its first output.

        Args:
            type: the new node's.
            others: its inputs but the first, which is what this node computes.
            label: what this node computes, for its new name.
            attributes: those of the new node.
        """
        result, own = self.proto.output[0], self._name(label)
        self.proto.output[0] = own
        self.after.append(_node(type, [own, *others], result, self.proto.name, attributes))
        self.proto.name = own

    def _name(self, label: str) -> str:
        first = next((name for name in self.place.proto.output if name), self.place.proto.op_type)
        base = f"{text(self.place.proto.name or first)}/{label}"
        name, number = base, 2
        while name in self.names:
            name, number = f"{base}_{number}", number + 1
        self.names.append(name)
        return name


def _node(type: str, inputs: list[str], output: str, name: str, attributes: Mapping[str, Any]) -> NodeProto:
    written = [_written(key, value) for key, value in attributes.items()]
    return NodeProto(op_type=type, input=inputs, output=[output], name=name, attribute=written)


def _read(attribute: AttributeProto) -> Any:
    """Return an attribute as Python sees it, text as str; the message itself for a tensor or graph."""
    kind = kind_of(attribute)
    if kind == AttributeProto.STRING:
        return text(attribute.s)
    if kind == AttributeProto.STRINGS:
        return list(map(text, attribute.strings))
    field, is_list = _FIELDS.get(kind, ("", False))
    if not field:
        return attribute
    return list(getattr(attribute, field)) if is_list else getattr(attribute, field)


def _written(name: str, value: Any) -> AttributeProto:
    """Return the message for an attribute."""
    if isinstance(value, TensorProto):
        return AttributeProto(name=name, type=AttributeProto.TENSOR, t=value)
    if isinstance(value, int):
        return AttributeProto(name=name, type=AttributeProto.INT, i=value)
    return onnx.helper.make_attribute(name, value)


_FIELDS: dict[int, tuple[str, bool]] = {
    AttributeProto.INT: ("i", False),
    AttributeProto.FLOAT: ("f", False),
    AttributeProto.TENSOR: ("t", False),
    AttributeProto.INTS: ("ints", True),
    AttributeProto.FLOATS: ("floats", True),
}
