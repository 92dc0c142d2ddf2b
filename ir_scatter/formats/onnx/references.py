"""Attributes of a function's node that each call of the function gives: `axis = @axis`.

What replaces such a node was made for one value. It may stand for all calls if the attribute stays
an attribute of the same meaning, or if all calls agree.
"""

from collections.abc import Sequence

from onnx import AttributeProto

from ir_scatter.core.errors import NotEditable
from ir_scatter.core.model import Node
from ir_scatter.formats.onnx.attributes import kind_of
from ir_scatter.formats.onnx.functions import INSTANCES
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.formats.onnx.template import Template
from ir_scatter.formats.onnx.types import schema_of, text


class References:
    """Decides what becomes of references in the graphs of one function, or of the main graph."""

    def __init__(self, uses: Sequence[OnnxGraph] = ()) -> None:
        """Take the uses of the function; the main graph has none."""
        self._uses = tuple(uses)

    def is_kept(self, attribute: AttributeProto, node: Node, template: Template) -> bool:
        """Tell whether the result keeps a reference of the node that it replaces.

        Raises:
            NotEditable: the value matters, and calls may give another one than was seen.
        """
        assert isinstance(node.graph, OnnxGraph)
        name, reference, new = text(attribute.name), attribute.ref_attr_name, template.result
        given, written = node.graph.shared.bindings.get(reference), template.attributes.get(name)
        before = given or _default(node.domain, node.type, node.opset, name)
        after = written or _default(new.domain, new.type, new.opset, name)
        is_equal = before is not None and after is not None and content(before) == content(after)
        if is_equal and template.is_one_node:
            return True
        if self._varies(reference, given):
            raise NotEditable(
                f"{node.scope}: {name!r} is what each call of the function gives as {text(reference)!r}, "
                f"expected the same value in all calls, as {new.type} is written for one value"
            )
        return is_equal and given is not None and written is not None

    def _varies(self, reference: str, given: AttributeProto | None) -> bool:
        """Tell whether a call may give another value than the one that was seen."""
        if len(self._uses) > INSTANCES:
            return True
        seen = content(given)
        return any(content(use.shared.bindings.get(reference)) != seen for use in self._uses)


def attribute_references(node: Node) -> dict[str, str]:
    """Return what each call of a function gives a node, "@axis" by the name of the attribute."""
    assert isinstance(node.graph, OnnxGraph)
    written = node.graph.index.nodes[node.handle].attribute
    return {text(one.name): f"@{text(one.ref_attr_name)}" for one in written if one.ref_attr_name}


def content(attribute: AttributeProto | None) -> bytes | None:
    """Return what an attribute holds, whatever it is called and whatever later versions know of it."""
    if attribute is None:
        return None
    copy = AttributeProto()
    copy.CopyFrom(attribute)
    copy.DiscardUnknownFields()
    copy.type = kind_of(attribute)  # type: ignore[assignment]  # an int is one
    for field in ("name", "doc_string", "ref_attr_name"):
        copy.ClearField(field)
    return bytes(copy.SerializeToString(deterministic=True))


def _default(domain: str, type: str, opset: str | int | None, name: str) -> AttributeProto | None:
    """Return what an attribute is where it is not written; None if it has no such value."""
    schema = schema_of(type, opset, domain) if isinstance(opset, int) else None
    if schema is None or name not in schema.attributes:
        return None
    default: AttributeProto = schema.attributes[name].default_value
    return default if default.type else None
