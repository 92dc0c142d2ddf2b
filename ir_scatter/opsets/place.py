"""A node of an ONNX model where it stands, and what is known of the values that it reads."""

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from onnx import NodeProto, TypeProto

from ir_scatter.elements import ElementType, from_onnx_number
from ir_scatter.formats.onnx_graph import OnnxGraph
from ir_scatter.formats.onnx_index import GraphIndex
from ir_scatter.formats.onnx_types import text
from ir_scatter.model import Value
from ir_scatter.shapes import Dim

if TYPE_CHECKING:
    from ir_scatter.constants import Array


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A node of a graph.

    Attributes:
        graphs: the graph; for a function, one for each signature that it is called with.
        position: that of the node.
        proto: the node.
        read_names: gives the names that somebody in the graph reads.
    """

    graphs: tuple[OnnxGraph, ...]
    position: int
    proto: NodeProto
    read_names: Callable[[], Container[str]]

    @property
    def scope(self) -> str:
        """Return the path to the node."""
        return self.graphs[0].node(self.position).scope

    def element_type(self, name: str) -> ElementType | None:
        """Return the element type of a tensor, None if it is not known or not the same everywhere."""
        found = {None if value is None else value.element_type for value in self._values(name)}
        return found.pop() if len(found) == 1 else None

    def type_text(self, name: str) -> str | None:
        """Return the type of a value as schemas write it: "tensor(float)"."""
        found = {_type_text(graph, name) for graph in self.graphs}
        return found.pop() if len(found) == 1 else None

    def shape(self, name: str) -> tuple[Dim, ...] | None:
        """Return the shape of a tensor; dimensions that are not the same everywhere are not known."""
        shapes = [None if value is None else value.shape for value in self._values(name)]
        first = shapes[0]
        if first is None or any(shape is None or len(shape) != len(first) for shape in shapes):
            return None
        return first if all(shape == first for shape in shapes) else _common(shapes)

    def constant(self, name: str) -> "Array | None":
        """Return the content of a value, None if it is not known or not the same everywhere."""
        arrays = [
            None if value is None or value.constant is None else value.constant.load()
            for value in self._values(name)
        ]
        first = arrays[0]
        if first is None or any(other is None or not _equal(first, other) for other in arrays[1:]):
            return None
        return first

    def is_used(self, name: str) -> bool:
        """Tell whether a node, a body or an output of the graph reads a value."""
        return name in self.read_names()

    def _values(self, name: str) -> list[Value | None]:
        return [graph.find(name) for graph in self.graphs]


def bodies_of(place: Place) -> Mapping[str, tuple[OnnxGraph, ...]]:
    """Return the graphs inside a node by the attribute's name, as `Place` holds its own."""
    found: dict[str, list[OnnxGraph]] = {}
    for graph in place.graphs:
        for name, body in graph.bodies_of(graph.node(place.position)).items():
            assert isinstance(body, OnnxGraph)
            found.setdefault(name, []).append(body)
    return {name: tuple(bodies) for name, bodies in found.items()}


def operators(graph: OnnxGraph) -> Iterator[tuple[str, list[int]]]:
    """Yield the types of the default domain's operators in a graph, and the positions of the nodes.

    Bodies are left out, and so are calls of functions.
    """
    calls = set(graph.index.calls)
    for type, positions in graph.index.by_type.items():
        found = positions if calls.isdisjoint(positions) else [at for at in positions if at not in calls]
        if found:
            yield text(type), found


def places(graphs: tuple[OnnxGraph, ...]) -> Callable[[int], Place]:
    """Return what gives the place of the node at a position.

    Args:
        graphs: the graph, as `Place` holds it.
    """
    index = graphs[0].index

    @cache
    def read_names() -> set[str]:
        return _read_names(index)

    return lambda position: Place(graphs, position, index.nodes[position], read_names)


def _common(shapes: list[Any]) -> tuple[Dim, ...]:
    from ir_scatter.shapes import UNKNOWN_DIM

    return tuple(dims[0] if len(set(dims)) == 1 else UNKNOWN_DIM for dims in zip(*shapes, strict=True))


def _equal(left: "Array", right: "Array") -> bool:
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


def _type_text(graph: OnnxGraph, name: str) -> str | None:
    value = graph.find(name)
    if value is not None and value.element_type is not None:
        return f"tensor({value.element_type.onnx_name})"
    owner: OnnxGraph | None = graph
    while owner is not None:
        known = owner.inferred.types.get(name)
        declared = owner.index.stored.get(name) or owner.index.inputs.get(name)
        type = known or (declared.type if declared is not None else None)
        if type is not None:
            return _write_type(type)
        owner = owner.parent
    return None


def _write_type(type: TypeProto) -> str | None:
    kind = type.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        element_type = from_onnx_number(getattr(type, kind).elem_type)
        word = kind.removesuffix("_type")
        return None if element_type is None else f"{word}({element_type.onnx_name})"
    if kind in ("sequence_type", "optional_type"):
        inner = _write_type(getattr(type, kind).elem_type)
        word = "seq" if kind == "sequence_type" else "optional"
        return None if inner is None else f"{word}({inner})"
    return None


def _read_names(index: GraphIndex) -> set[str]:
    names = set(index.outputs)
    for node in index.nodes:
        names.update(node.input)
    for bodies in index.bodies.values():
        for body in bodies.values():
            names |= body.captured
    return names
