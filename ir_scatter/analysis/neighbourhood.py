"""The producers and consumers of a node, which reports draw beside a finding."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.element_types import ElementType
from ir_scatter.core.model import Model, Node, Value
from ir_scatter.core.shapes import Shape
from ir_scatter.ops.lookup import find

MOST_PRODUCERS, MOST_CONSUMERS = 4, 3
"""Limit of neighbours listed per node, so that the picture stays small; further ones are only counted."""


class Neighbour(NamedTuple):
    """A producer or consumer of a node, with the value between them.

    It may also be a graph input, a graph output or a constant.
    """

    operator: str
    """The operator type as written; "input", "constant" or "output"; "nothing" for an unconnected input."""
    name: str
    role: str
    """The port: its name in the specification of a scatter node, else "input 1"."""
    port: int
    """Index of the input at the consuming node."""
    element_type: ElementType | None = None
    shape: Shape = None


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """A node with its first producers, in input order, and its first consumers.

    The shape and type of the node itself are those of its first output.
    """

    node: Neighbour
    producers: tuple[Neighbour, ...]
    consumers: tuple[Neighbour, ...]
    more_producers: int = 0
    more_consumers: int = 0


def neighbourhoods(model: Model, places: Iterable[Location]) -> dict[Location, Neighbourhood]:
    """Return the neighbourhood of the node at each location; locations of several nodes are omitted.

    For a node of a function, the shapes are those of the first call.
    """
    locations = set(places)
    graphs = [model.graph]
    graphs += [
        function.instances[0] if function.instances else function.definition for function in model.functions
    ]
    everything = [node for graph in graphs for node in graph.walk()] if locations else []
    scopes = {place.scope for place in locations}
    nodes_at: dict[Location, list[Node]] = {}
    for node in everything:
        if node.scope in scopes and node.location in locations:
            nodes_at.setdefault(node.location, []).append(node)
    centres = {place: nodes[0] for place, nodes in nodes_at.items() if len(nodes) == 1}
    readers: dict[Node, list[tuple[Node, int, Value]]] = {node: [] for node in centres.values()}
    for node in everything if centres else ():
        for port, input in enumerate(node.inputs):
            producer = None if input.value is None else input.value.producer
            if producer in readers and input.value is not None:
                readers[producer].append((node, port, input.value))
    return {place: _neighbourhood(node, readers) for place, node in centres.items()}


def _neighbourhood(node: Node, readers: Mapping[Node, Sequence[tuple[Node, int, Value]]]) -> Neighbourhood:
    producers, outputs = [*_producers(node)], node.outputs
    consumers = [
        Neighbour(reader.type, reader.name, _role(reader, port), port, value.element_type, value.shape)
        for reader, port, value in readers[node]
    ]
    consumers += [
        Neighbour("output", value.name, "", 0, value.element_type, value.shape)
        for value in outputs
        if value.name in node.graph.output_names
    ]
    first = outputs[0] if outputs else None
    tensor = (None, None) if first is None else (first.element_type, first.shape)
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
