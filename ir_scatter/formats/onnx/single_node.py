"""An ONNX model of a single node."""

from collections.abc import Sequence
from typing import Any

from onnx import GraphProto, ModelProto

from ir_scatter.core.element_types import ElementType
from ir_scatter.formats.base import OneInput, OneNode
from ir_scatter.formats.onnx.tensors import make_attribute, make_tensor

IR_VERSION = 10
"""One that every runtime of the last years reads."""


def write_single_node(node: OneNode) -> bytes:
    """Return an ONNX model with this node.

    Raises:
        TypeError: an array or an attribute is of a type that ONNX has not.
    """
    model = ModelProto(ir_version=IR_VERSION, producer_name="ir-scatter")
    model.opset_import.add(domain="", version=int(node.opset))
    graph = model.graph
    graph.name = "one_node"
    written = graph.node.add(op_type=node.type, name="node")
    for one in node.inputs:
        written.input.append("" if one is None else one.name)
        if one is not None:
            _declare(graph, one)
    written.output.append("output")
    written.attribute.extend(make_attribute(name, value) for name, value in node.attributes.items())
    output = graph.output.add(name="output").type.tensor_type
    _describe(output, node.element_type, node.shape)
    return bytes(model.SerializeToString(deterministic=True))


def _declare(graph: GraphProto, one: OneInput) -> None:
    if one.is_constant:
        tensor = make_tensor(one.array, one.element_type)
        tensor.name = one.name
        graph.initializer.append(tensor)
    elif all(known.name != one.name for known in graph.input):
        _describe(graph.input.add(name=one.name).type.tensor_type, one.element_type, one.array.shape)


def _describe(target: Any, type: ElementType, shape: Sequence[int]) -> None:
    target.elem_type = type.onnx_number
    target.shape.SetInParent()
    for dim in shape:
        target.shape.dim.add(dim_value=dim)
