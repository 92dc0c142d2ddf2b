"""Operators that scatter nodes depend on, used as their documents forbid."""

from collections.abc import Iterator

from ir_scatter.analysis.constants import Facts
from ir_scatter.core.model import Defect, Model, Node, OperatorUse
from ir_scatter.ops.general_use import problem


def misuses(model: Model, facts: Facts) -> Iterator[Defect]:
    """Yield what a runtime refuses of operators that scatter nodes depend on, given what really follows."""
    nodes = [*model.find_feeding(facts.propagates)]
    known = facts.propagating() if nodes else facts
    for node in nodes:
        found = problem(_use(node, known))
        if found is not None:
            span = node.graph.span_of(node, found.part)
            yield Defect(found.kind, found.message, node.location, node, span=span)


def _use(node: Node, facts: Facts) -> OperatorUse:
    values = [port.value for port in node.inputs]

    def numbers(port: int) -> list[int] | None:
        value = values[port] if port < len(values) else None
        array = None if value is None else facts.whole_numbers(value)
        return None if array is None else array.reshape(-1).tolist()

    types = [None if value is None else facts.element_type(value) for value in values]
    shapes = [None if value is None else facts.shape(value) for value in values]
    return OperatorUse(node.type, node.opset, node.attributes, types, shapes, numbers, len(node.outputs))
