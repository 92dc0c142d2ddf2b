"""How the bodies of If, Loop and TensorIterator hang together with the node around them."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ir_scatter.formats.openvino.index import Body
from ir_scatter.formats.openvino.layers import layer_tree
from ir_scatter.formats.openvino.xml_exact import shortest

if TYPE_CHECKING:
    from ir_scatter.formats.openvino.graph import IrGraph


def text_without_bodies(data: bytes, start: int, end: int, bodies: Iterable[Body]) -> bytes:
    """Return the text of a layer with its bodies cut out."""
    parts = []
    for body in sorted(bodies, key=lambda body: body.start):
        parts.append(data[start : body.start])
        start = body.end
    parts.append(data[start:end])
    return b"".join(parts)


class InvariantInputs:
    """Reads the port map of one body.

    An input is invariant if the body gets it whole, and the same at every iteration: it is not
    sliced along an axis, and no back edge replaces it.
    """

    def __init__(self, graph: "IrGraph", key: bytes, body_name: str) -> None:
        self._graph = graph
        self._key = key
        self._prefix = body_name.removesuffix("body")

    def by_layer_id(self) -> Mapping[str, int]:
        """Return the number of the node's input by the id of the Parameter that it feeds."""
        body, text = self._graph.body, self._graph.file.text.data
        _, start, end = body.layers[self._key]
        layer = layer_tree(text_without_bodies(text, start, end, body.bodies[self._key].values()))
        ports: dict[bytes, int] = {}
        for number, port in enumerate(self._graph.layer(self._key).inputs):
            ports.setdefault(port.id, number)
        replaced = {shortest(edge.get("to-layer")) for edge in layer.iterfind("back_edges/edge")}
        found: dict[str, int] = {}
        for entry in layer.iterfind(f"{self._prefix}port_map/input"):
            external = shortest(entry.get("external_port_id"))
            internal = shortest(entry.get("internal_layer_id"))
            if "axis" not in entry.attributes and internal not in replaced and external in ports:
                found[internal.decode("utf-8", "replace")] = ports[external]
        return found
