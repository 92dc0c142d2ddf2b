"""What is broken in an ONNX file: names, order, numbers, sizes of constants."""

from collections.abc import Iterator

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.model import Defect
from ir_scatter.formats.cycles import find_cycles
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.formats.onnx.index import Definitions, text
from ir_scatter.formats.onnx.inference import tensor_message

_NODES_NAMED = 5


def find_defects(graph: OnnxGraph) -> Iterator[Defect]:
    """Yield what is broken in a graph and in all bodies in it."""
    yield from _unknown_values(graph, graph.index.captured)
    waiting = [graph]
    while waiting:
        inner = waiting.pop()
        for name, position in inner.index.duplicates:
            message = f"{text(name)!r} is the name of more than one value, expected one"
            node = inner.node(position) if position is not None else None
            yield Defect("duplicate-id", message, node.location if node else inner.place(name), node)
        yield from _order(inner)
        yield from _dims(inner)
        yield from _tensors(inner)
        bodies = [body for at in sorted(inner.index.bodies) for body in inner.bodies_at(at).values()]
        waiting += reversed(bodies)


def function_defects(definitions: Definitions, path: str) -> Iterator[Defect]:
    """Yield what is broken in the functions as a whole: the same name twice, recursion."""
    for name in definitions.duplicates:
        message = f"function {name!r} is defined twice, expected once"
        yield Defect("duplicate-id", message, Location(path, scope=name))
    for group in definitions.cycles:
        names = [definition.name for definition in group]
        message = f"functions {_named(names)} call each other, expected no recursion"
        if len(names) == 1:
            message = f"function {names[0]!r} calls itself, expected no recursion"
        yield Defect("cycle", message, Location(path, scope=names[0]))


def _unknown_values(graph: OnnxGraph, unknown: set[str]) -> Iterator[Defect]:
    index = graph.index
    for position, name in dict.fromkeys(index.missing):
        if name not in unknown:
            continue
        node = graph.node(position)
        for number, input in enumerate(index.nodes[position].input):
            if input == name:
                message = f"input {number} is {text(name)!r}, which nothing produces"
                yield Defect("unknown-value", message, node.location, node, number)
        for body in graph.bodies_at(position).values():
            if name in body.index.captured:
                yield from _unknown_values(body, {name})
    for name in index.outputs:
        if name in unknown and name in index.captured:
            message = f"output {text(name)!r} of the graph is produced by nothing"
            yield Defect("unknown-value", message, graph.place(name))


def _order(graph: OnnxGraph) -> Iterator[Defect]:
    index = graph.index
    if not index.early:
        return
    cycles = find_cycles(index.predecessors())
    for cycle in cycles:
        nodes = [graph.node(position) for position in cycle]
        message = f"the nodes {_named([node.name for node in nodes])} depend on each other, expected no cycle"
        if len(nodes) == 1:
            message = "the node depends on its own output, expected no cycle"
        yield Defect("cycle", message, nodes[0].location, nodes[0])
    if cycles:
        return
    position, name = index.early[0]
    node, producer = graph.node(position), graph.node(index.producers[name][0])
    count = len(index.early)
    others = f", the first of {count} such inputs" if count > 1 else ""
    message = (
        f"{text(name)!r} is used before the node {producer.name!r} that produces it{others}, "
        "expected nodes in topological order"
    )
    yield Defect("not-sorted", message, node.location, node)


def _named(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:_NODES_NAMED]))
    more = len(names) - _NODES_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _dims(graph: OnnxGraph) -> Iterator[Defect]:
    found = []
    for one in (*graph.index.inputs.values(), *graph.index.stored.values()):
        message = tensor_message(one.type) if one is not None else None
        for axis, dim in enumerate(message.shape.dim if message is not None else ()):
            if one is not None and dim.dim_value < 0:
                found.append((text(one.name), axis, dim.dim_value))
    if found:
        name, axis, size = found[0]
        others = f", the first of {len(found)} negative dimensions" if len(found) > 1 else ""
        sentence = f"dimension {axis} of {name!r} is {size}{others}, expected 0 or more"
        yield Defect("bad-number", sentence, graph.place(name))


def _tensors(graph: OnnxGraph) -> Iterator[Defect]:
    index, tensors = graph.index, graph.shared.tensors
    initializers = [*index.initializers.items()]
    initializers += [(name, sparse.values) for name, sparse in index.sparse_initializers.items()]
    for name, tensor in initializers:
        for kind, message in tensors.problems(tensor, f"the initializer {text(name)!r}"):
            yield Defect(kind, message, graph.place(name))
    for position, tensor in index.tensors.items():
        node = graph.node(position)
        label = graph.scope + text(index.nodes[position].name)
        for kind, message in tensors.problems(tensor, f"the constant {label!r}"):
            yield Defect(kind, message, node.location, node)
