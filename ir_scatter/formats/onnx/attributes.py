"""Attributes of ONNX nodes as Python values."""

from collections.abc import Callable, Mapping
from typing import Any

from onnx import AttributeProto, NodeProto

from ir_scatter.core.model import Node
from ir_scatter.formats.onnx.tensors import Tensors
from ir_scatter.formats.onnx.types import text

Bindings = Mapping[str, AttributeProto]
"""What a call gives for the attributes of a function, by name."""

WITHOUT_TENSORS = frozenset(
    {
        AttributeProto.INT, AttributeProto.INTS, AttributeProto.FLOAT, AttributeProto.FLOATS,
        AttributeProto.STRING, AttributeProto.STRINGS, AttributeProto.TYPE_PROTO, AttributeProto.TYPE_PROTOS,
    }
)  # fmt: skip
"""Types of attributes that hold no tensors."""


def bound(node: NodeProto, bindings: Bindings) -> list[tuple[str, AttributeProto]]:
    """Return a node's attributes by name; one that the call does not give is left out."""
    found = []
    for attribute in node.attribute:
        reference = attribute.ref_attr_name
        value = bindings.get(reference) if reference else attribute
        if value is not None:
            found.append((text(attribute.name), value))
    return found


def attribute_value(attribute: AttributeProto, node: Node, tensors: Tensors) -> Any:
    """Return an attribute as Python sees it: its type tells which type was written.

    Returns:
        int, float, str, a list of them, a Constant or a list of those for tensors; the message
        itself for what has no such form.
    """
    kind = kind_of(attribute)
    plain = _PLAIN.get(kind)
    if plain is not None:
        return plain(attribute)
    if kind == AttributeProto.TENSOR:
        return tensors.constant(attribute.t, text(attribute.t.name) or node.name, node)
    if kind == AttributeProto.TENSORS:
        return [tensors.constant(tensor, text(tensor.name), node) for tensor in attribute.tensors]
    return attribute


def is_graph(attribute: AttributeProto) -> bool:
    """Tell whether an attribute holds graphs."""
    return kind_of(attribute) in (AttributeProto.GRAPH, AttributeProto.GRAPHS)


def kind_of(attribute: AttributeProto) -> int:
    """Return the type of an attribute; files of IR versions 1 and 2 do not write it."""
    if attribute.type:
        return attribute.type
    for field, kind in _OLD_FIELDS.items():
        if attribute.HasField(field):
            return kind
    for field, kind in _OLD_LISTS.items():
        if len(getattr(attribute, field)):
            return kind
    return AttributeProto.UNDEFINED


def _decode(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


_PLAIN: dict[int, Callable[[AttributeProto], Any]] = {
    AttributeProto.INT: lambda attribute: attribute.i,
    AttributeProto.FLOAT: lambda attribute: attribute.f,
    AttributeProto.STRING: lambda attribute: _decode(attribute.s),
    AttributeProto.INTS: lambda attribute: list(attribute.ints),
    AttributeProto.FLOATS: lambda attribute: list(attribute.floats),
    AttributeProto.STRINGS: lambda attribute: [_decode(data) for data in attribute.strings],
}
_OLD_FIELDS = {
    "f": AttributeProto.FLOAT,
    "i": AttributeProto.INT,
    "s": AttributeProto.STRING,
    "t": AttributeProto.TENSOR,
    "g": AttributeProto.GRAPH,
}
_OLD_LISTS = {
    "floats": AttributeProto.FLOATS,
    "ints": AttributeProto.INTS,
    "strings": AttributeProto.STRINGS,
    "tensors": AttributeProto.TENSORS,
    "graphs": AttributeProto.GRAPHS,
}
