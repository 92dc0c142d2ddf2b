"""Where nodes are put into the copy of a model, and which names are free there."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from onnx import FunctionProto, GraphProto, ModelProto

from ir_scatter.core.model import Model
from ir_scatter.formats.onnx.attributes import is_graph
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.formats.onnx.index import GraphIndex, function_key, graphs_of, index_graph
from ir_scatter.formats.onnx.references import References

Nodes: TypeAlias = Any
"""A repeated field of nodes; protobuf gives its class no public name."""


class Names:
    """The names of a model's main graph, or of a function, with all bodies and what trains them.

    Values of a body may not have the name of a value around it, so that all share one set. So do
    values and nodes, because a new node has the name of its output.
    """

    def __init__(self, indices: Iterable[GraphIndex]) -> None:
        self._indices = tuple(indices)
        self._taken: set[str] | None = None
        self._numbers: dict[str, int] = {}

    def new(self, wanted: str) -> str:
        """Return a name that nothing else has, and take it."""
        if self._taken is None:
            self._taken = set()
            for index in self._indices:
                self._taken.update(*_names_of(index))
        if wanted not in self._taken:
            self._taken.add(wanted)
            return wanted
        number = self._numbers.get(wanted, 2)
        while f"{wanted}_{number}" in self._taken:
            number += 1
        self._numbers[wanted] = number + 1
        name = f"{wanted}_{number}"
        self._taken.add(name)
        return name


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A graph of the model, and its nodes in the copy.

    Attributes:
        index: the graph as it was read.
        graph: the one in the copy.
        names: of the graph and of all that it shares names with.
        references: what becomes of attributes that a call gives.
    """

    index: GraphIndex
    graph: GraphProto | FunctionProto
    names: Names
    references: References

    @property
    def nodes(self) -> Nodes:
        """Return the nodes of the copy."""
        return self.graph.node

    @property
    def number(self) -> int:
        """Return the number of the field of nodes."""
        return self.graph.NODE_FIELD_NUMBER


def find_places(model: Model, copy: ModelProto) -> Iterator[Place]:
    """Yield every graph of a model in the order of the file: main graph, functions, bodies behind each."""
    assert isinstance(model.graph, OnnxGraph)
    index = model.graph.index
    training = [
        index_graph(graph, frozenset())
        for info in copy.training_info
        for graph in (info.initialization, info.algorithm)
    ]
    names = Names([*index.all_graphs(), *(inner for graph in training for inner in graph.all_graphs())])
    yield from _with_bodies(Place(index, copy.graph, names, References()))
    first = {function_key(function): function for function in reversed(copy.functions)}
    keys = dict.fromkeys(map(function_key, copy.functions))
    for key, function in zip(keys, model.functions, strict=True):
        assert isinstance(function.definition, OnnxGraph)
        uses = [use for use in function.instances if isinstance(use, OnnxGraph)]
        index = function.definition.index
        yield from _with_bodies(Place(index, first[key], Names(index.all_graphs()), References(uses)))


def _with_bodies(place: Place) -> Iterator[Place]:
    yield place
    for position, bodies in place.index.bodies.items():
        graphs = {
            name: graph
            for attribute in place.nodes[position].attribute
            if is_graph(attribute) and not attribute.ref_attr_name
            for name, graph in graphs_of(attribute)
        }
        for name, body in bodies.items():
            yield from _with_bodies(Place(body, graphs[name], place.names, place.references))


def _names_of(index: GraphIndex) -> Iterator[Iterable[str]]:
    """Yield what a graph names or refers to; a stored type without a value has a name, too."""
    yield [node.name for node in index.nodes]
    yield from (index.producers, index.inputs, index.outputs, index.initializers)
    yield from (index.sparse_initializers, index.stored)
    yield from [node.input[:] for node in index.nodes]
