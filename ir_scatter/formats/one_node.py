"""A model of a single node, made from nothing but what is known of it: for whoever mends a runtime."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

from ir_scatter.core.element_types import ElementType
from ir_scatter.core.fragment import NewConstant

if TYPE_CHECKING:
    from onnx import GraphProto

    from ir_scatter.core.tensors import Array

IR_VERSION = 10
"""Of ONNX files: one that every runtime of the last years reads."""


@dataclass(frozen=True, slots=True, eq=False)
class OneInput:
    """An input of the node.

    Attributes:
        name: of the model's input, or of the constant.
        element_type: of its elements.
        array: its content; a constant's is written into the model.
        is_constant: whether it was constant in the model that it comes from.
    """

    name: str
    element_type: ElementType
    array: "Array"
    is_constant: bool


@dataclass(frozen=True, slots=True, eq=False)
class OneNode:
    """A node and what feeds it.

    Attributes:
        type: of the operator.
        opset: an IR's word or an ONNX model's number.
        attributes: as written.
        inputs: in the order of the document, None for one that was left out.
        element_type: of the output.
        shape: of the output.
    """

    type: str
    opset: str | int
    attributes: Mapping[str, Any]
    inputs: Sequence[OneInput | None]
    element_type: ElementType
    shape: tuple[int, ...]


def ir_of(node: OneNode) -> tuple[bytes, bytes]:
    """Return the `.xml` and the `.bin` of a model with this node.

    Raises:
        NotEditable: a constant is of a type that cannot be written.
    """
    from ir_scatter.formats.openvino.new_constants import NewBytes

    weights = NewBytes(0)
    layers, edges = [], []
    given = [one for one in node.inputs if one is not None]
    for number, one in enumerate(given):
        layers.append(_source(number, one, weights))
        edges.append(_edge(number, 0, len(given), number))
    count = len(given)
    data = "".join(f" {name}={quoteattr(str(value))}" for name, value in node.attributes.items())
    ports = "".join(_port(n, one.element_type, one.array.shape) for n, one in enumerate(given))
    output = _port(count, node.element_type, node.shape, "output")
    layers.append(
        f'<layer id="{count}" name="node" type={quoteattr(node.type)} version={quoteattr(str(node.opset))}>'
        + (f"\n\t\t\t<data{data} />" if data else "")
        + f"\n\t\t\t<input>{ports}\n\t\t\t</input>"
        + f"\n\t\t\t<output>{output}\n\t\t\t</output>\n\t\t</layer>"
    )
    result = _port(0, node.element_type, node.shape)
    layers.append(
        f'<layer id="{count + 1}" name="result" type="Result" version="opset1">'
        f"\n\t\t\t<input>{result}\n\t\t\t</input>\n\t\t</layer>"
    )
    edges.append(_edge(count, count, count + 1, 0))
    text = (
        '<?xml version="1.0"?>\n<net name="one_node" version="11">\n\t<layers>\n\t\t'
        + "\n\t\t".join(layers)
        + "\n\t</layers>\n\t<edges>\n\t\t"
        + "\n\t\t".join(edges)
        + "\n\t</edges>\n</net>\n"
    )
    return text.encode(), weights.join()


def _source(number: int, one: OneInput, weights: Any) -> str:
    """Return the layer that feeds an input."""
    shape = ",".join(map(str, one.array.shape))
    name, type = quoteattr(one.name), one.element_type.name
    if one.is_constant:
        offset, size = weights.place(NewConstant(one.name, one.element_type, one.array))
        data = f'element_type="{type}" shape="{shape}" offset="{offset}" size="{size}"'
        head = f'<layer id="{number}" name={name} type="Const" version="opset1">'
        port = _port(0, one.element_type, one.array.shape)
    else:
        data = f'shape="{shape}" element_type="{type}"'
        head = f'<layer id="{number}" name={name} type="Parameter" version="opset1">'
        port = _port(0, one.element_type, one.array.shape, one.name)
    return f"{head}\n\t\t\t<data {data} />\n\t\t\t<output>{port}\n\t\t\t</output>\n\t\t</layer>"


def _port(id: int, type: ElementType, shape: Sequence[int], name: str = "") -> str:
    names = f" names={quoteattr(name)}" if name else ""
    head = f'\n\t\t\t\t<port id="{id}" precision="{type.ir_name}"{names}'
    if not shape:
        return f"{head} />"
    dims = "".join(f"\n\t\t\t\t\t<dim>{dim}</dim>" for dim in shape)
    return f"{head}>{dims}\n\t\t\t\t</port>"


def _edge(origin: int, port: int, target: int, to: int) -> str:
    return f'<edge from-layer="{origin}" from-port="{port}" to-layer="{target}" to-port="{to}" />'


def onnx_of(node: OneNode) -> bytes:
    """Return an ONNX model with this node.

    Raises:
        TypeError: an array or an attribute is of a type that ONNX has not.
    """
    from onnx import ModelProto

    from ir_scatter.formats.onnx.make import make_attribute

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


def _declare(graph: "GraphProto", one: OneInput) -> None:
    from ir_scatter.formats.onnx.make import make_tensor

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
