"""Whether a node of an IR can be replaced in the text of its file."""

from collections.abc import Iterator

from ir_scatter.core.errors import NotEditable
from ir_scatter.core.model import Node
from ir_scatter.formats.openvino.file import CONST, byte_range
from ir_scatter.formats.openvino.graph import IrGraph
from ir_scatter.formats.openvino.index import Body
from ir_scatter.formats.openvino.xml_text import XmlText, shown

_LONGEST_ID = 18
"""OpenVINO reads ids as signed numbers of 64 bits."""


def check_text(text: XmlText) -> None:
    """Demand that the bytes which were indexed are those of the file.

    Raises:
        NotEditable: they are not.
    """
    if text.is_transcoded:
        raise NotEditable(f"{text.path} is written in another encoding, expected UTF-8")


def check_node(node: Node) -> None:
    """Demand that a node can be replaced: one layer with its id, one edge into each input, one output.

    Raises:
        NotEditable: with the reason.
    """
    graph = node.graph
    assert isinstance(graph, IrGraph)
    for problem in _problems(graph, node):
        raise NotEditable(f"{node.scope} cannot be replaced: {problem}")


def _problems(graph: IrGraph, node: Node) -> Iterator[str]:
    key: bytes = node.handle
    body, id = graph.body, graph.id_of(key)
    edges = body.edges.get(id.encode(), [])
    if body.repeated_layers:
        yield f"several layers have the id {shown(graph.id_of(body.repeated_layers[0]))}, expected one"
    if not _is_id(id.encode()):
        yield f"its id is '{shown(id)}', expected a number"
    if key in body.bodies:
        yield "it holds bodies, expected none"
    layer = graph.layer(key)
    inputs = [port.id for port in layer.inputs]
    ids = [*inputs, *(port.id for port in layer.outputs)]
    if len({*ids}) < len(ids) or not all(_is_id(id) for id in ids):
        yield "the ids of its ports are not different numbers"
    if len(layer.outputs) != 1:
        yield f"it has {len(layer.outputs)} outputs, expected one"
    ends = [edge[3] for edge in edges]
    if ends != inputs and sorted(ends) != sorted(inputs):
        yield "there is not one edge into each of its inputs"
    origins = graph.body.producers(key)
    if not all(id in origins and graph.has_output(*origins[id]) for id in inputs):
        yield "one of its inputs comes from a layer or a port that does not exist"


def _is_id(id: bytes) -> bool:
    return id.isdigit() and len(id) <= _LONGEST_ID


def check_weights(graph: IrGraph) -> None:
    """Demand that no constant lies where new ones would be appended.

    Raises:
        NotEditable: one does: the `.bin` is missing, or ends too soon.
    """
    size = weights_size(graph)
    end = max(_constant_ends(graph), default=0)
    if end > size:
        raise NotEditable(
            f"{graph.file.text.path}: its constants end at byte {end} of a .bin that has {size}: "
            "there is no place for new ones"
        )


def weights_size(graph: IrGraph) -> int:
    """Return the size of the `.bin`, 0 if there is none."""
    weights = graph.file.weights
    return (weights.size or 0) if weights else 0


def _constant_ends(graph: IrGraph) -> Iterator[int]:
    body = graph.body
    for _, _, offset, size in body.constants.values():
        yield int(offset) + int(size)
    for key, (type, _, _) in body.layers.items():
        if key not in body.constants and type.lower() == CONST:
            place = byte_range(graph.layer(key))
            yield sum(place) if place else 0
    for key in body.bodies:
        for inner in graph.graphs(key).values():
            yield from _constant_ends(inner)


def greatest_id(body: Body) -> int:
    """Return the greatest id that a body or one of its edges names; those that are no ids do not count."""
    named = {*body.layers, *body.edges}
    for edges in body.edges.values():
        named.update([edge[0] for edge in edges])
    return max((int(id) for id in named if _is_id(id)), default=-1)
