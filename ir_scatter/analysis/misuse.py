"""Finds illegal uses of general operators upstream of scatter nodes; they are reported as file defects."""

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
    """Yield illegal uses of operators that scatter nodes depend on, by propagated shapes and types."""
    nodes = [*model.find_feeding(facts.propagates)]
    propagated = facts.with_propagation() if nodes and model.domain == OPENVINO else facts
    for node in nodes:
        misuse = problem(_use(node, propagated), model.domain)
        if misuse is not None:
            span = node.graph.span_of(node, misuse.part)
            yield FileDefect(misuse.kind, misuse.message, node.location, node, span=span)
        for message in _illegal_slice_axes(model, node, propagated) if node.bodies else ():
            yield FileDefect("body-mismatch", message, node.location, node)


def _illegal_slice_axes(model: Model, node: Node, facts: Facts) -> Iterator[str]:
    """Yield messages about axes of a loop's port map that are out of range."""
    from ir_scatter.core.dataflow import Repeat  # imported here, as only nodes with bodies need it

    try:
        loop = FORMATS[model.format].dataflow(replace(model, graph=node.graph)).nested(node)
    except UnreadableModel:
        return
    if not isinstance(loop, Repeat):
        return
    outer = [port.value for port in node.inputs]
    entries = [
        ("input", outer[inflow.outer], inflow.slice) for inflow in loop.inputs if inflow.outer is not None
    ]
    results = [loop.body.value(output.key) for output in loop.body.outputs]
    entries += [("output", results[outflow.inner], outflow.slice) for outflow in loop.outputs]
    for side, value, cut in entries:
        shape = None if value is None or cut is None else facts.shape(value)
        if cut is not None and shape is not None and not -len(shape) <= cut.axis < len(shape):
            axis = f"axis of an {side} of a port map is {cut.axis}"
            yield f"{axis}, expected one of {counted(len(shape), 'dimension')} of {show(shape)}"


def _use(node: Node, facts: Facts) -> OperatorUse:
    values = [port.value for port in node.inputs]

    def numbers(port: int) -> list[int] | None:
        value = values[port] if port < len(values) else None
        array = None if value is None else facts.whole_numbers(value)
        return None if array is None else array.reshape(-1).tolist()

    types = [None if value is None else facts.element_type(value) for value in values]
    shapes = [None if value is None else facts.shape(value) for value in values]
    return OperatorUse(node.type, node.opset, node.attributes, types, shapes, numbers, len(node.outputs))
