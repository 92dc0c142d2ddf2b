"""Writes a new IR of independent nodes, for extracts, probes of defects and generated cases."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import TypeAlias

from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype
from ir_scatter.core.fragment import NewConstant
from ir_scatter.core.model import Value
from ir_scatter.core.shapes import show_dim
from ir_scatter.formats.base import OneInput, OneNode
from ir_scatter.formats.openvino.elements import NewBytes, NewElement, Style, new_edge, new_layer

_Graph: TypeAlias = tuple[list[NewElement], list[NewElement]]
"""(layers, edges)."""


def write_nodes(nodes: Sequence[OneNode]) -> tuple[bytes, bytes]:
    """Return the `.xml` and the `.bin` of a model of independent nodes.

    Raises:
        NotEditable: a constant has an element type that cannot be written.
    """
    style, weights = Style(b"\n\t\t", b"\t", b'"', b" "), NewBytes(0)
    graphs, ids = list[_Graph](), count()
    for node in nodes:
        graphs.append((_loop_around if node.iterations else _node_elements)(node, ids, weights))
    text = (
        b'<?xml version="1.0"?>\n<net name="%b" version="11">\n'
        b"\t<layers>%b\n\t</layers>\n\t<edges>%b\n\t</edges>\n</net>\n"
    )
    both = [[element for part in parts for element in part] for parts in zip(*graphs, strict=True)]
    parts = [
        b"".join(style.lead + style.text(element, style.lead) for element in elements) for elements in both
    ]
    return text % (b"one_node" if len(nodes) == 1 else b"nodes", *parts), weights.join()


def _node_elements(node: OneNode, ids: Iterator[int], weights: NewBytes) -> _Graph:
    """Return a node with its Parameters, constants and preceding operators; its Result is the last layer."""
    inputs = [input for input in node.inputs if input is not None]
    values = [Value(None, input.element_type, input.declared) for input in inputs]
    data = {name: str(value) for name, value in node.attributes.items()}
    layers, sources = list[NewElement](), list[str]()
    for input, value in zip(inputs, values, strict=True):
        sources.append(str(next(ids)))
        if input.is_constant:
            layers.append(
                weights.layer(
                    sources[-1], input.name, NewConstant(input.name, input.element_type, input.array)
                )
            )
        else:
            layers.append(_parameter(sources[-1], input, value))
    between, edges, origin = _layers_before(node, (sources[0], "0"), values[0], ids, weights)
    more, last = _with_result(node, node.type, node.opset, data, sources, values, ids, origin)
    return layers + between + more, edges + last


_Views: TypeAlias = Mapping[str, tuple[str, Callable[[Sequence[int]], Sequence[Sequence[int]]]]]

_BEFORE: _Views = {
    "Reshape": ("opset1", lambda shape: [[*shape]]),
    "Unsqueeze": ("opset1", lambda shape: [[0]]),
    "Squeeze": ("opset1", lambda shape: [[0]]),
    "Transpose": ("opset1", lambda shape: [[*range(len(shape))]]),
    "Slice": ("opset8", lambda shape: [[0] * len(shape), [*shape], [1] * len(shape), [*range(len(shape))]]),
    "Tile": ("opset1", lambda shape: [[1] * len(shape)]),
    "Roll": ("opset7", lambda shape: [[0], [0]]),
    "Abs": ("opset1", lambda shape: []),
    "Negative": ("opset1", lambda shape: []),
}
"""Operators that may precede a node: the opset, and a function from the data shape to the other inputs."""


def _layers_before(
    node: OneNode, origin: tuple[str, str], value: Value, ids: Iterator[int], weights: NewBytes
) -> tuple[list[NewElement], list[NewElement], tuple[str, str]]:
    """Return the layers and edges between the first input and a node, and the last (layer, port) of them."""
    import numpy as np

    layers, edges, i64, shape = (
        list[NewElement](),
        list[NewElement](),
        ELEMENT_TYPES["i64"],
        list(value.shape or ()),
    )
    if node.keeps_state:
        read, written = str(next(ids)), str(next(ids))
        words = ",".join(map(show_dim, value.shape or ()))
        kind = "" if value.element_type is None else value.element_type.name
        data = {"variable_id": f"{node.prefix}state", "variable_type": kind, "variable_shape": words}
        layers += [
            new_layer(read, f"{node.prefix}read", "ReadValue", "opset6", data, [value], value),
            new_layer(written, f"{node.prefix}written", "Assign", "opset6", data, [value], value),
        ]
        edges += [new_edge(origin, (read, "0")), new_edge((read, "1"), (written, "0"))]
        origin = read, "1"
    for number, type in enumerate(node.before):
        opset, make = _BEFORE[type]
        fixed = [dim if isinstance(dim, int) else -1 for dim in shape]
        after = [1, *shape] if type == "Unsqueeze" else shape[1:] if type == "Squeeze" else shape
        ports, inputs = [origin], [Value(None, value.element_type, tuple(shape))]
        for place, numbers in enumerate(make(fixed)):
            id, name = str(next(ids)), f"{node.prefix}before_{number}_{place}"
            array = np.array(numbers, np.int64)
            layers.append(weights.layer(id, name, NewConstant(name, i64, array)))
            ports.append((id, "0"))
            inputs.append(Value(None, i64, array.shape))
        id, data = str(next(ids)), {"special_zero": "false"} if type == "Reshape" else {}
        result = Value(None, value.element_type, tuple(after))
        layers.append(new_layer(id, f"{node.prefix}before_{number}", type, opset, data, inputs, result))
        edges += [new_edge(source, (id, str(port))) for port, source in enumerate(ports)]
        origin, shape = (id, str(len(inputs))), after
    return layers, edges, origin


def _loop_around(node: OneNode, ids: Iterator[int], weights: NewBytes) -> _Graph:
    """Return a Loop with a node in its body, and the inputs of both."""

    def held(number: int, name: str, content: int, type: ElementType) -> NewElement:
        return weights.layer(str(number), name, NewConstant(name, type, np.array(content, dtype(type))))

    import numpy as np

    inner_ids, i64, boolean = count(), ELEMENT_TYPES["i64"], ELEMENT_TYPES["boolean"]
    layers, edges = _node_elements(node, inner_ids, weights)
    result_id = layers[-1].attributes["id"]
    goes_on, condition, truth = next(inner_ids), next(inner_ids), Value(None, boolean, ())
    layers += [
        held(goes_on, "goes_on", 1, boolean),
        new_layer(str(condition), "condition", "Result", "opset1", {}, [truth], None),
    ]
    edges.append(new_edge((str(goes_on), "0"), (str(condition), "0")))
    inputs = [input for input in node.inputs if input is not None]
    fed = [(str(number), input) for number, input in enumerate(inputs) if not input.is_constant]
    values = [Value(None, input.element_type, input.declared) for _, input in fed]
    first = [held(next(ids), "iterations", node.iterations, i64), held(next(ids), "begins", 1, boolean)]
    first += [_parameter(str(next(ids)), input, value) for (_, input), value in zip(fed, values, strict=True)]
    entries = [_mapped("input", port, inner) for port, (inner, _) in enumerate(fed, 2)]
    entries.append(_mapped("output", len(first), result_id))
    entries.append(_mapped("output", -1, str(condition), purpose="execution_condition"))
    body = NewElement("body", {}, [NewElement("layers", {}, layers), NewElement("edges", {}, edges)])
    inside = [NewElement("port_map", {}, entries), NewElement("back_edges", {}), body]
    all_values = [Value(None, i64, ()), truth, *values]
    sources = [element.attributes["id"] for element in first]
    (loop, result), outer = _with_result(node, "Loop", "opset5", {}, sources, all_values, ids)
    return [*first, loop._replace(inside=[*loop.inside, *inside]), result], outer


def _parameter(id: str, input: OneInput, value: Value) -> NewElement:
    data = {"shape": ",".join(map(show_dim, input.declared or ())), "element_type": input.element_type.name}
    return new_layer(id, input.name, "Parameter", "opset1", data, [], value, input.name)


def _mapped(kind: str, outer: int, inner: str, **more: str) -> NewElement:
    return NewElement(kind, {"external_port_id": str(outer), "internal_layer_id": inner, **more})


def _with_result(
    node: OneNode, type: str, opset: object, data: Mapping[str, str],
    sources: Sequence[str], values: Sequence[Value], ids: Iterator[int],
    first: tuple[str, str] | None = None,
) -> _Graph:  # fmt: skip
    """Return a layer, the edges from its sources, and its Result; `first` replaces the first source."""
    layer_id, result, prefix = str(next(ids)), str(next(ids)), node.prefix
    output, port = Value(None, node.element_type, node.shape), str(len(values))
    layers = [
        new_layer(layer_id, f"{prefix}node", type, opset, data, values, output, f"{prefix}output"),
        new_layer(result, f"{prefix}result", "Result", "opset1", {}, [output], None),
    ]
    origins = [(source, "0") for source in sources]
    origins[:1] = [first or origins[0]]
    edges = [new_edge(origin, (layer_id, str(number))) for number, origin in enumerate(origins)]
    return layers, [*edges, new_edge((layer_id, port), (result, "0"))]
