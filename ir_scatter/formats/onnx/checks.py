"""What is broken in an ONNX file: names, order, numbers, sizes of constants."""

from collections.abc import Iterable, Iterator

from onnx import TensorProto, ValueInfoProto

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.model import Defect, Node
from ir_scatter.formats.cycles import find_cycles
from ir_scatter.formats.onnx.definitions import Definitions
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.formats.onnx.index import predecessors
from ir_scatter.formats.onnx.types import tensor_message, text

_NODES_NAMED = 5


def find_defects(graph: OnnxGraph) -> Iterator[Defect]:
    """Yield what is broken in a graph and in all bodies in it."""
    yield from _unknown_values(graph, graph.index.captured)
    for inner in _with_bodies(graph):
        yield from _duplicates(inner)
        yield from _order(inner)
        yield from _dims(inner)
        yield from _tensors(inner)


def function_defects(definitions: Definitions, path: str) -> Iterator[Defect]:
    """Yield what is broken in the functions as a whole: the same name twice, recursion."""
    for name in definitions.duplicates:
        message = f"function {name!r} is defined twice, expected once"
        yield Defect("duplicate-id", message, Location(path, scope=name))
    for group in definitions.cycles:
        names = [definition.name for definition in group]
        if len(names) == 1:
            message = f"function {names[0]!r} calls itself, expected no recursion"
        else:
            message = f"functions {_named(names)} call each other, expected no recursion"
        yield Defect("cycle", message, Location(path, scope=names[0]))


def _with_bodies(graph: OnnxGraph) -> Iterator[OnnxGraph]:
    yield graph
    for position in sorted(graph.index.bodies):
        for body in graph.node(position).bodies.values():
            assert isinstance(body, OnnxGraph)
            yield from _with_bodies(body)


def _unknown_values(graph: OnnxGraph, unknown: set[str]) -> Iterator[Defect]:
    """Yield the uses of names that neither the graph nor one around it has."""
    index = graph.index
    if not unknown:
        return
    for position, name in dict.fromkeys(index.links.missing):
        node = graph.node(position)
        if name not in unknown:
            continue
        for number, input in enumerate(index.nodes[position].input):
            if input == name:
                message = f"input {number} is {text(name)!r}, which nothing produces"
                yield Defect("unknown-value", message, node.location, node, number)
        for body in node.bodies.values():
            assert isinstance(body, OnnxGraph)
            if name in body.index.captured:
                yield from _unknown_values(body, {name})
    known = index.producers.keys() | index.inputs.keys() | index.initializers.keys()
    known |= index.sparse_initializers.keys()
    for name in index.outputs:
        if name in unknown and name not in known:
            message = f"output {text(name)!r} of the graph is produced by nothing"
            scope = graph.scope + text(name)
            yield Defect("unknown-value", message, Location(graph.shared.path, scope=scope))


def _duplicates(graph: OnnxGraph) -> Iterator[Defect]:
    for name, position in graph.index.duplicates:
        message = f"{text(name)!r} is the name of more than one value, expected one"
        if position is None:
            location = Location(graph.shared.path, scope=graph.scope + text(name))
            yield Defect("duplicate-id", message, location)
        else:
            node = graph.node(position)
            yield Defect("duplicate-id", message, node.location, node)


def _order(graph: OnnxGraph) -> Iterator[Defect]:
    """Yield cycles; without any, that nodes are not sorted."""
    index = graph.index
    if not index.links.early:
        return
    cycles = find_cycles(predecessors(index))
    for cycle in cycles:
        nodes = [graph.node(position) for position in cycle]
        yield _cycle(nodes)
    if cycles:
        return
    position, name = index.links.early[0]
    node, producer = graph.node(position), graph.node(index.producers[name][0])
    count = len(index.links.early)
    others = f", the first of {count} such inputs" if count > 1 else ""
    message = (
        f"{text(name)!r} is used before the node {producer.name!r} that produces it{others}, "
        "expected nodes in topological order"
    )
    yield Defect("not-sorted", message, node.location, node)


def _cycle(nodes: list[Node]) -> Defect:
    names = [node.name for node in nodes]
    if len(names) == 1:
        message = "the node depends on its own output, expected no cycle"
    else:
        message = f"the nodes {_named(names)} depend on each other, expected no cycle"
    return Defect("cycle", message, nodes[0].location, nodes[0])


def _named(names: list[str]) -> str:
    """Print a few names."""
    shown = ", ".join(map(repr, names[:_NODES_NAMED]))
    more = len(names) - _NODES_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _dims(graph: OnnxGraph) -> Iterator[Defect]:
    """Yield that declared dimensions are negative: one place, and how many there are."""
    index = graph.index
    declared = [value_info for value_info in index.inputs.values() if value_info is not None]
    found = list(_negative_dims([*declared, *index.stored.values()]))
    if not found:
        return
    name, axis, size = found[0]
    others = f", the first of {len(found)} negative dimensions" if len(found) > 1 else ""
    message = f"dimension {axis} of {name!r} is {size}{others}, expected 0 or more"
    location = Location(graph.shared.path, scope=graph.scope + name)
    yield Defect("bad-number", message, location)


def _negative_dims(declared: Iterable[ValueInfoProto]) -> Iterator[tuple[str, int, int]]:
    for value_info in declared:
        message = tensor_message(value_info.type)
        if message is None:
            continue
        for axis, dim in enumerate(message.shape.dim):
            if dim.dim_value < 0:
                yield text(value_info.name), axis, dim.dim_value


def _tensors(graph: OnnxGraph) -> Iterator[Defect]:
    """Yield what is wrong with initializers and with the tensors of Constant nodes."""
    index, tensors = graph.index, graph.shared.tensors
    initializers = [
        *index.initializers.items(),
        *((name, sparse.values) for name, sparse in index.sparse_initializers.items()),
    ]
    for name, tensor in initializers:
        for problem in tensors.problems(tensor, f"the initializer {text(name)!r}"):
            location = Location(graph.shared.path, scope=graph.scope + text(name))
            yield Defect(problem.kind, problem.message, location)
    for position, tensor in index.tensors.items():
        yield from _constant_node(graph, position, tensor)


def _constant_node(graph: OnnxGraph, position: int, tensor: TensorProto) -> Iterator[Defect]:
    scope = graph.scope + text(graph.index.nodes[position].name)
    for problem in graph.shared.tensors.problems(tensor, f"the constant {scope!r}"):
        node = graph.node(position)
        yield Defect(problem.kind, problem.message, node.location, node)
