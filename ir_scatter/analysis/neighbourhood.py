"""What stands around a node in its graph: the part of it that a reader of a finding wants to see."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.element_types import ElementType
from ir_scatter.core.model import Model, Node, Value
from ir_scatter.core.shapes import Shape
from ir_scatter.ops.lookup import find

MOST_PRODUCERS, MOST_CONSUMERS = 4, 3
"""More than these are only counted."""


class Neighbour(NamedTuple):
    """One node, or an input, constant or output of the graph, and the value between it and the node."""

    operator: str
    """The type as written; "input", "constant", "output", or "nothing" where there is no node."""
    name: str
    role: str
    """The port: by its documented name at a scatter node, "input 1" elsewhere."""
    port: int
    """The number of the input at the node whose port it is."""
    element_type: ElementType | None = None
    shape: Shape = None


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """A node, where its first inputs come from in their order, and who reads its outputs first.

    The shape and type of the node itself are those of its first output.
    """

    node: Neighbour
    producers: tuple[Neighbour, ...]
    consumers: tuple[Neighbour, ...]
    more_producers: int = 0
    more_consumers: int = 0


def neighbourhoods(model: Model, places: Iterable[Location]) -> dict[Location, Neighbourhood]:
    """Return what is around the nodes at some places; not of those that share their place with another.

    A node of a function stands for all uses of it: shapes are those of the first one.
    """
    wanted = set(places)
    graphs = [model.graph]
    graphs += [one.instances[0] if one.instances else one.definition for one in model.functions]
    everything = [node for graph in graphs for node in graph.walk()] if wanted else []
    scopes = {place.scope for place in wanted}
    found: dict[Location, list[Node]] = {}
    for node in everything:
        if node.scope in scopes and node.location in wanted:
            found.setdefault(node.location, []).append(node)
    centres = {place: nodes[0] for place, nodes in found.items() if len(nodes) == 1}
    readers: dict[Node, list[tuple[Node, int, Value]]] = {node: [] for node in centres.values()}
    for node in everything if centres else ():
        for port, input in enumerate(node.inputs):
            producer = None if input.value is None else input.value.producer
            if producer in readers and input.value is not None:
                readers[producer].append((node, port, input.value))
    return {place: _around(node, readers) for place, node in centres.items()}


def _around(node: Node, readers: Mapping[Node, Sequence[tuple[Node, int, Value]]]) -> Neighbourhood:
    producers, outputs = [*_producers(node)], node.outputs
    consumers = [
        Neighbour(reader.type, reader.name, _role(reader, port), port, value.element_type, value.shape)
        for reader, port, value in readers[node]
    ]
    given = [value for value in outputs if value.name in node.graph.output_names]
    consumers += [Neighbour("output", one.name, "", 0, one.element_type, one.shape) for one in given]
    own = outputs[0] if outputs else None
    tensor = (None, None) if own is None else (own.element_type, own.shape)
    return Neighbourhood(
        Neighbour(node.type, node.name, "", 0, *tensor),
        tuple(producers[:MOST_PRODUCERS]),
        tuple(consumers[:MOST_CONSUMERS]),
        max(len(producers) - MOST_PRODUCERS, 0),
        max(len(consumers) - MOST_CONSUMERS, 0),
    )


def _producers(node: Node) -> Iterator[Neighbour]:
    for port, input in enumerate(node.inputs):
        role, value = _role(node, port), input.value
        if value is None:
            if input.is_present:
                yield Neighbour("nothing", "", role, port, input.stored_type, input.stored_shape)
            continue
        producer = value.producer
        operator = "input" if value.constant is None else "constant"
        operator, name = (operator, value.name) if producer is None else (producer.type, producer.name)
        yield Neighbour(operator, name, role, port, value.element_type, value.shape)


def _role(node: Node, port: int) -> str:
    lookup = find(node.domain, node.type, node.opset)
    ports = () if lookup is None else (lookup.spec or lookup.family[-1]).ports
    return ports[port].name if port < len(ports) else f"input {port}"
