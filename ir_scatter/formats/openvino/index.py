"""Where the layers, edges and bodies of an IR stand: byte spans, and nothing else is parsed.

There are two ways to the same index. The quick one (`xml_quick`) takes files as `save_model` and
Model Optimizer write them and gives up at the first thing that it does not expect. The exact one
(`xml_exact`), expat with handlers, takes every well-formed file and is several times slower.

Ids stay text, in their shortest decimal form, so that "abc" is an id like any other until a rule
looks at it.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

Span: TypeAlias = tuple[bytes, int, int]
"""Type, first byte and end of a layer."""

Edge: TypeAlias = tuple[bytes, bytes, bytes, bytes]
"""The ids of from-layer, from-port, to-layer and to-port."""

Declaration: TypeAlias = tuple[bytes, bytes, bytes, bytes]
"""Element type, shape, offset and size of a Const as written."""

EDGE_ATTRIBUTES = ("from-layer", "from-port", "to-layer", "to-port")


@dataclass(slots=True, eq=False)
class Body:
    """One set of layers and edges: the net's, or that of a body.

    Attributes:
        name: the element's name, "then_body"; "net" for the net's own.
        start: its first byte.
        end: the end of its end tag; in the net's own body there may be space behind it.
        layers: by key, in the order of the file. A key is the id; where the id is taken, the id, a
            zero byte and the first byte's offset.
        edges: by the layer they go to, in the order of the file.
        constants: of Consts written the usual way, by the layer's key.
        bodies: the bodies inside a layer, by the layer's key and the element's name.
        repeated_layers: keys of layers whose id was taken.
    """

    name: str
    start: int
    layers: dict[bytes, Span] = field(default_factory=dict)
    edges: dict[bytes, list[Edge]] = field(default_factory=dict)
    constants: dict[bytes, Declaration] = field(default_factory=dict)
    bodies: dict[bytes, "dict[str, Body]"] = field(default_factory=dict)
    repeated_layers: list[bytes] = field(default_factory=list)
    end: int = 0
    has_layers: bool = False

    def new_key(self, id: bytes, start: int) -> bytes:
        """Return the key of a layer that begins at `start`: its id, or one of its own if that is taken."""
        return b"%s\0%d" % (id, start) if id in self.layers else id

    def add_layer(self, key: bytes, span: Span) -> None:
        """Enter a layer."""
        if b"\0" in key:
            self.repeated_layers.append(key)
        self.layers[key] = span

    def add_edges(self, edges: list[Edge]) -> None:
        """Enter edges."""
        known = self.edges
        for edge in edges:
            if edge[2] in known:
                known[edge[2]].append(edge)
            else:
                known[edge[2]] = [edge]

    def producers(self, key: bytes) -> dict[bytes, tuple[bytes, bytes]]:
        """Return what feeds a layer: layer and port by the id of its own port, the first edge's."""
        edges = self.edges.get(key.partition(b"\0")[0], ())
        return {edge[3]: (edge[0], edge[1]) for edge in reversed(edges)}
