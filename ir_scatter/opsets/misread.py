"""Nodes that runtimes read otherwise than the document says, and the opset in which they agree."""

from collections.abc import Iterator

from ir_scatter.model import Model, Node
from ir_scatter.ops.onnx_changes import CHANGES
from ir_scatter.ops.opset_facts import Misread
from ir_scatter.opsets.coercion import is_last
from ir_scatter.opsets.passage import versions_of


def agreed_opset(model: Model) -> int | None:
    """Return the lowest opset in which runtimes read a model as the documents say; None if they do already.

    Args:
        model: an ONNX model, as it was read.
    """
    return max(_agreed_opsets(model), default=None)


def _agreed_opsets(model: Model) -> Iterator[int]:
    for (type, first), facts in CHANGES.items():
        for fact in facts:
            if isinstance(fact, Misread):
                end = min(version for version in versions_of(type) if version > first)
                for node in model.walk(frozenset({type})):
                    if isinstance(node.opset, int) and first <= node.opset < end and _is_misread(fact, node):
                        yield end


def _is_misread(fact: Misread, node: Node) -> bool:
    """Tell whether a node takes its input as a matrix, and that is not the same as along its axis."""
    value = node.inputs[0].value if node.inputs else None
    axis = node.attributes.get("axis", fact.default)
    return not isinstance(axis, int) or not is_last(value.shape if value else None, axis)
