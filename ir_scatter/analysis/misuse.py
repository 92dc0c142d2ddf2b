"""Operators that scatter nodes depend on, used as their documents forbid."""

from collections.abc import Iterator
from dataclasses import replace

from ir_scatter.analysis.constants import Facts
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.model import OPENVINO, FileDefect, Model, Node, OperatorUse
from ir_scatter.core.shapes import show
from ir_scatter.core.words import counted
from ir_scatter.formats import FORMATS
from ir_scatter.ops.general_use import problem


def misuses(model: Model, facts: Facts) -> Iterator[FileDefect]:
    """Yield what a runtime refuses of operators that scatter nodes depend on, given what really follows."""
    nodes = [*model.find_feeding(facts.propagates)]
    known = facts.propagating() if nodes and model.domain == OPENVINO else facts
    for node in nodes:
        found = problem(_use(node, known), model.domain)
        if found is not None:
            span = node.graph.span_of(node, found.part)
            yield FileDefect(found.kind, found.message, node.location, node, span=span)
        for message in _cuts(model, node, known) if node.bodies else ():
            yield FileDefect("body-mismatch", message, node.location, node)


def _cuts(model: Model, node: Node, facts: Facts) -> Iterator[str]:
    """Yield where a loop cuts values, or puts them together, along an axis that they have not."""
    from ir_scatter.core.dataflow import Repeat  # which nothing but nodes with bodies needs

    try:
        loop = FORMATS[model.format].dataflow(replace(model, graph=node.graph)).nested(node)
    except UnreadableModel:
        return
    if not isinstance(loop, Repeat):
        return
    outer = [port.value for port in node.inputs]
    ends = [
        ("input", "flows in", outer[one.outer], one.slice) for one in loop.inputs if one.outer is not None
    ]
    given = [loop.body.value(one.key) for one in loop.body.outputs]
    ends += [("output", "the body gives", given[one.inner], one.slice) for one in loop.outputs]
    for side, way, value, cut in ends:
        shape = None if value is None or cut is None else facts.shape(value)
        if cut is not None and shape is not None and not -len(shape) <= cut.axis < len(shape):
            is_ = f"axis of an {side} of a port map is {cut.axis}, what {way} is {show(shape)}"
            yield f"{is_}, expected one of {counted(len(shape), 'dimension')}"


def _use(node: Node, facts: Facts) -> OperatorUse:
    values = [port.value for port in node.inputs]

    def numbers(port: int) -> list[int] | None:
        value = values[port] if port < len(values) else None
        array = None if value is None else facts.whole_numbers(value)
        return None if array is None else array.reshape(-1).tolist()

    types = [None if value is None else facts.element_type(value) for value in values]
    shapes = [None if value is None else facts.shape(value) for value in values]
    return OperatorUse(node.type, node.opset, node.attributes, types, shapes, numbers, len(node.outputs))
