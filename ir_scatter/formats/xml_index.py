"""Where the layers, edges and bodies of an IR stand: byte spans, and nothing else is parsed.

There are two ways to the same index. The quick one (`xml_quick`) takes files as `save_model` and
Model Optimizer write them and gives up at the first thing that it does not expect. The exact one
(`xml_exact`), expat with handlers, takes every well-formed file and is several times slower.

Ids stay text, in their shortest decimal form, so that "abc" is an id like any other until a rule
looks at it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

Span: TypeAlias = tuple[bytes, int, int]
"""Type, first byte and end of a layer."""

PortKey: TypeAlias = tuple[bytes, bytes]
"""Layer id and port id."""

EDGE_ATTRIBUTES = ("from-layer", "from-port", "to-layer", "to-port")


@dataclass(slots=True, eq=False)
class Body:
    """One set of layers and edges: the net's, or that of a body.

    Attributes:
        name: the element's name, "then_body"; "net" for the net's own.
        start: its first byte.
        layers: by key, in the order of the file. A key is the id; where the id is taken, the id, a
            zero byte and the first byte's offset.
        producers: what feeds an input port.
        bodies: the bodies inside a layer, by the layer's id and the element's name.
        repeated_layers: keys of layers whose id was taken.
        repeated_edges: input ports fed twice.
    """

    name: str
    start: int
    layers: dict[bytes, Span] = field(default_factory=dict)
    producers: dict[PortKey, PortKey] = field(default_factory=dict)
    bodies: dict[bytes, "dict[str, Body]"] = field(default_factory=dict)
    repeated_layers: list[bytes] = field(default_factory=list)
    repeated_edges: list[PortKey] = field(default_factory=list)
    end: int = 0
    has_layers: bool = False

    def add_layer(self, id: bytes, span: Span) -> None:
        """Enter a layer, under a key of its own if its id is taken."""
        if id in self.layers:
            id = b"%s\0%d" % (id, span[1])
            self.repeated_layers.append(id)
        self.layers[id] = span

    def add_edges(self, edges: list[tuple[bytes, bytes, bytes, bytes]]) -> None:
        """Enter edges, each as from-layer, from-port, to-layer, to-port."""
        producers = self.producers
        before = len(producers)
        producers.update([((to, to_port), (origin, port)) for origin, port, to, to_port in edges])
        if len(producers) != before + len(edges):
            self._find_repeated(edges)

    def _find_repeated(self, edges: list[tuple[bytes, bytes, bytes, bytes]]) -> None:
        seen: set[PortKey] = set()
        for _, _, to, to_port in edges:
            if (to, to_port) in seen:
                self.repeated_edges.append((to, to_port))
            seen.add((to, to_port))

    def nested(self) -> Iterator["Body"]:
        """Yield this body and all inside it."""
        pending = [self]
        while pending:
            body = pending.pop()
            yield body
            inner = [body for bodies in body.bodies.values() for body in bodies.values()]
            pending.extend(reversed(inner))
