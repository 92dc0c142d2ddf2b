"""Finds defects in an ONNX file, for `Model.find_defects`: names, topological order, numbers, constants."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import TypeAlias

import onnx

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.element_types import ElementType
from ir_scatter.core.model import FileDefect
from ir_scatter.core.shapes import Shape, show
from ir_scatter.core.words import with_article
from ir_scatter.formats.cycles import find_cycles
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.formats.onnx.index import (
    ONLY_CONSTANTS,
    Definitions,
    GraphIndex,
    Usage,
    normal_domain,
    schema_of,
    text,
)
from ir_scatter.formats.onnx.inference import TensorType, contradict, tensor_message

_NODES_NAMED = 5
"""Number of nodes that a message lists by name."""

_ELEMENT_TYPES = frozenset(onnx.TensorProto.DataType.values()) - {onnx.TensorProto.UNDEFINED}

_Around: TypeAlias = tuple[tuple[GraphIndex, int], ...]
"""The graphs around a body, innermost first, each with the position of the node that contains the body."""


def find_defects(graph: OnnxGraph) -> Iterator[FileDefect]:
    """Yield the defects of a graph and of all bodies in it."""
    yield from _unknown_values(graph, graph.index.captured)
    yield from _versions(graph)
    yield from _domains(graph)
    waiting: list[tuple[OnnxGraph, _Around]] = [(graph, ())]
    while waiting:
        inner, around = waiting.pop()
        for name, position in (*inner.index.duplicates, *_shadowing(inner.index, around)):
            message = f"{text(name)!r} is the name of several values, expected a unique name"
            node = inner.node(position) if position is not None else None
            yield FileDefect("duplicate-id", message, node.location if node else inner.place(name), node)
        yield from _named_like_later_constants(inner, around)
        for check in (_names, _outputs, _order):
            yield from check(inner, is_body=bool(around))
        for plain_check in (_nodes, _contradictions, _declarations, _tensors):
            yield from plain_check(inner)
        places = [((inner.index, at), inner.bodies_at(at).values()) for at in sorted(inner.index.bodies)]
        bodies = [(body, (*around, place)) for place, graphs in places for body in graphs]
        waiting += reversed(bodies)


def function_defects(definitions: Definitions, path: str) -> Iterator[FileDefect]:
    """Yield the defects of the functions of a model: duplicate names, and recursion."""
    for name in definitions.duplicates:
        message = f"function {name!r} is defined twice, expected once"
        yield FileDefect("duplicate-id", message, Location(path, scope=name))
    for group in definitions.cycles:
        names = [definition.name for definition in group]
        message = f"functions {_show_names(names)} call each other, expected no recursion"
        if len(names) == 1:
            message = f"function {names[0]!r} calls itself, expected no recursion"
        yield FileDefect("cycle", message, Location(path, scope=names[0]))


def _shadowing(index: GraphIndex, around: _Around) -> Iterator[tuple[str, int | None]]:
    """Yield names of a body that are also visible from an outer graph, each with the position of its node.

    The position is None for an input of the body.
    """
    outputs = [(name, position) for name, (position, _) in index.producers.items()]
    for name, position in (*dict.fromkeys(index.inputs).items(), *outputs) if around else ():
        for outer, at in around:
            is_earlier = outer.producers.get(name, (at,))[0] < at
            if is_earlier or name in outer.inputs or name in outer.initializers:
                yield name, position
                break


def _named_like_later_constants(graph: OnnxGraph, around: _Around) -> Iterator[FileDefect]:
    """Yield the first output in a body that has the name of a later Constant in an outer graph.

    The specification only forbids names that are visible in the body, which are those of earlier nodes. But
    onnxruntime makes initializers of all Constants before it reads bodies, so that later ones are visible.
    """
    for name, (position, _) in graph.index.producers.items() if around else ():
        for outer, at in around:
            later = outer.producers.get(name, (at,))[0]
            proto = outer.nodes[later]
            if later > at and text(proto.op_type) == "Constant" and not normal_domain(proto.domain):
                node, subject = graph.node(position), f"{text(name)!r} is the name of a value of a body"
                message = f"{subject} and of a later Constant around it, expected different names"
                message = f"{message}: onnxruntime refuses it"
                help = "rename one of the two"
                yield FileDefect(
                    "duplicate-id", message, node.location, node, help=help, refused_by="onnxruntime",
                    is_always_read=True,
                )  # fmt: skip
                return


def _versions(graph: OnnxGraph) -> Iterator[FileDefect]:
    version, index, place = graph.shared.ir_version, graph.index, Location(graph.shared.path)
    if not graph.shared.is_function and version < 1:
        message = f"ir_version is {version or 'missing'}, expected 1 or more"
        yield FileDefect("bad-number", message, place)
    bodies = [body for body in index.all_graphs() if body is not index]
    names = [name for body in bodies for name in body.initializers if name not in body.inputs]
    if names and version < ONLY_CONSTANTS:
        which = f"the initializer {text(names[0])!r} of a body is not one of its inputs"
        message = f"ir_version is {version}, but {which}, expected {ONLY_CONSTANTS} or more"
        yield FileDefect("bad-number", message, place)


def _names(graph: OnnxGraph, *, is_body: bool) -> Iterator[FileDefect]:
    """Yield duplicate names of nodes, and missing names of a body, its inputs, outputs and initializers."""
    index, names = graph.index, [node.name for node in graph.index.nodes if node.name]
    for name in dict.fromkeys(names) if len({*names}) < len(names) else ():
        places = [at for at, node in enumerate(index.nodes) if node.name == name and at not in index.tensors]
        if len(places) > 1:  # onnxruntime treats Constants like initializers
            node = graph.node(places[-1])
            message = f"{text(name)!r} is the name of {len(places)} nodes, expected a unique name"
            yield FileDefect("duplicate-id", message, node.location, node)
    nameless = []
    if is_body:
        values = {"input": index.inputs, "output": index.outputs, "initializer": index.initializers}
        nameless = ["the body"] if not index.name else []
        nameless += [
            f"an {word} of the body" for word, names_of_kind in values.items() if "" in names_of_kind
        ]
    elif not graph.shared.is_function and "" in index.inputs:
        nameless = ["an input of the graph"]
    for subject in nameless:
        yield FileDefect("missing-attribute", f"{subject} has no name, expected one", graph.place(""))


def _outputs(graph: OnnxGraph, *, is_body: bool) -> Iterator[FileDefect]:
    """Yield illegal outputs of a body or a function.

    These are values of an outer graph, inputs of the function itself, and duplicates.
    """
    index, is_function = graph.index, graph.shared.is_function and not is_body
    if not is_body and not is_function:
        return
    held = {*index.initializers, *index.sparse_initializers}
    for name, count in Counter(index.outputs).items():
        if is_function and count > 1:
            message = f"{text(name)!r} is an output of the function {count} times, expected once"
            yield FileDefect("duplicate-id", message, graph.place(name))
        is_legal = name in index.producers or (is_body and (name in index.inputs or name in held))
        if name and not is_legal and graph.find(name) is not None:
            message = (
                f"output {text(name)!r} of the {'function' if is_function else 'body'} is not the output of"
            )
            yield FileDefect(
                "unknown-value", f"{message} a node in it, expected such an output", graph.place(name)
            )


def _domains(graph: OnnxGraph) -> Iterator[FileDefect]:
    """Yield the first node of each domain that the model (or the function) does not import."""
    opsets, is_function = graph.shared.opsets, graph.shared.is_function
    used = {normal_domain(domain) for index in graph.index.all_graphs() for domain in index.domains}
    missing = {domain for domain in used if domain not in opsets and (domain or is_function)}
    for node in graph.walk() if missing else ():
        if normal_domain(node.domain) in missing:
            missing.remove(normal_domain(node.domain))
            who = "function" if is_function else "model"
            message = f"the {who} imports no opset of the domain {node.domain or 'ai.onnx'!r}"
            yield FileDefect(
                "misused-operator", f"{message}, which {node.type} belongs to", node.location, node
            )


def _nodes(graph: OnnxGraph) -> Iterator[FileDefect]:
    """Yield duplicate or untyped attributes, unnamed outputs, and inputs that are not tensors."""
    for usage, places in graph.index.usages.items():
        problems = [*_usage_defects(graph, usage)]
        for node in map(graph.node, places) if problems else ():
            for kind, message in problems:
                yield FileDefect(kind, message, node.location, node)
    scatters = [graph.index.by_type.get(type, ()) for type in graph.shared.options.scatter_types]
    for position in sorted(chain(*scatters)) if graph.non_tensors else ():
        for number, name in enumerate(graph.index.nodes[position].input):
            if name in graph.non_tensors:
                message = f"input {number} is {with_article(graph.non_tensors[name])}, expected a tensor"
                node = graph.node(position)
                yield FileDefect("element-type", message, node.location, node, number)


def _contradictions(graph: OnnxGraph) -> Iterator[FileDefect]:
    """Yield the first value whose stored type or shape contradicts the inferred one.

    Values at scatter nodes are omitted, as rules check them. onnxruntime refuses the model in two cases: an
    element type differs from the computed one, or an initializer's type from that of the input with its name.
    """
    index, checked_by_rules = graph.index, set[str]()
    if graph.shared.options.input_shapes:
        return
    for position in chain(*[index.by_type.get(type, ()) for type in graph.shared.options.scatter_types]):
        checked_by_rules.update(index.nodes[position].input, index.nodes[position].output)
    pairs = {True: dict(graph.wrong_defaults), False: dict[str, tuple[TensorType, TensorType]]()}
    for name, pair in graph.contradicted.items():
        if name not in checked_by_rules or name in index.inputs:
            is_computed = name in index.producers and index.producers[name][0] not in index.tensors
            types = [type._replace(shape=None) for type in pair]
            pairs[graph.refuses_types and is_computed and contradict(*types)][name] = pair
    for is_refused, wrong in pairs.items():
        if not wrong:
            continue
        first = min(wrong, key=lambda name: index.producers.get(name, (-1, 0)))
        rest = f", the first of {len(wrong)} such values" if len(wrong) > 1 else ""
        actual, stored = [_show_type(*type) for type in wrong[first]]
        node = graph.node(index.producers[first][0]) if first in index.producers else None
        message = f"{text(first)!r} is {actual}, the file stores {stored}{rest}"
        kind, place = "stored-contradiction", graph.place(first)
        yield FileDefect(kind, message, place, node, is_refused=is_refused)


def _show_type(element_type: ElementType | None, shape: Shape) -> str:
    return show(shape) if element_type is None else f"{element_type.onnx_name}{show(shape)}"


def _usage_defects(graph: OnnxGraph, usage: Usage) -> Iterator[tuple[str, str]]:
    has_types = graph.shared.ir_version > 1
    for name, count in Counter(name for name, _, _ in usage.attributes).items():
        if count > 1:
            yield "duplicate-id", f"attribute {text(name)!r} is written {count} times, expected once"
    for name, kind, is_set in usage.attributes if has_types else ():
        if not kind and not is_set:
            yield "missing-attribute", f"attribute {text(name)!r} has no type, expected one"
    if isinstance(usage.outputs, int):
        return
    schema = schema_of(usage.domain, usage.type, graph.shared.opsets)
    formal = () if schema is None else schema.outputs
    for number, (is_named, output) in enumerate(zip(usage.outputs, formal, strict=False)):
        if not is_named and output.option == onnx.defs.OpSchema.FormalParameterOption.Single:
            yield "missing-attribute", f"output {number} has no name, expected one"


def _unknown_values(graph: OnnxGraph, unknown: set[str]) -> Iterator[FileDefect]:
    index = graph.index
    for position, name in dict.fromkeys(index.missing):
        if name not in unknown:
            continue
        node = graph.node(position)
        for number, input in enumerate(index.nodes[position].input):
            if input == name:
                message = f"input {number} is {text(name)!r}, which no node, input or initializer defines"
                yield FileDefect("unknown-value", message, node.location, node, number)
        for body in graph.bodies_at(position).values():
            if name in body.index.captured:
                yield from _unknown_values(body, {name})
    for name in index.outputs:
        if not name or (name in unknown and name in index.captured):
            message = f"no node, input or initializer defines output {text(name)!r} of the graph"
            yield FileDefect("unknown-value", message, graph.place(name))


def _order(graph: OnnxGraph, *, is_body: bool) -> Iterator[FileDefect]:
    """Yield cycles; in a graph without any, the first value that is used before its producer.

    Runtimes refuse a wrong order in bodies only.
    """
    index = graph.index
    if not index.early:
        return
    cycles = find_cycles(index.predecessors())
    for cycle in cycles:
        nodes = [graph.node(position) for position in cycle]
        names = _show_names([node.name for node in nodes])
        message = f"the nodes {names} depend on each other, expected no cycle"
        if len(nodes) == 1:
            message = "the node depends on its own output, expected no cycle"
        yield FileDefect("cycle", message, nodes[0].location, nodes[0])
    if cycles:
        return
    position, name = index.early[0]
    node, producer = graph.node(position), graph.node(index.producers[name][0])
    count = len(index.early)
    rest = f", the first of {count} such inputs" if count > 1 else ""
    message = (
        f"{text(name)!r} is used before the node {producer.name!r} that produces it{rest}, "
        "expected nodes in topological order"
    )
    yield FileDefect("not-sorted", message, node.location, node, is_refused=is_body)


def _show_names(names: list[str]) -> str:
    listed = ", ".join(map(repr, names[:_NODES_NAMED]))
    more = len(names) - _NODES_NAMED
    return f"{listed} and {more} more" if more > 0 else listed


def _declarations(graph: OnnxGraph) -> Iterator[FileDefect]:
    """Yield inputs without a type, undefined element types, and the first negative dimension.

    Runtimes read a negative dimension as dynamic, except that OpenVINO reads a dimension below -1 of a model
    input as 0.
    """
    index, is_main = graph.index, graph.parent is None and not graph.shared.is_function
    for name, info in index.inputs.items() if is_main else ():
        if info is not None and info.type.WhichOneof("value") is None:
            message = f"the input {text(name)!r} has no type, expected one"
            yield FileDefect("missing-attribute", message, graph.place(name))
    negative: dict[bool, list[tuple[str, int, int]]] = {True: [], False: []}
    for info in (*index.inputs.values(), *index.stored.values()):
        tensor = tensor_message(info.type) if info is not None else None
        if info is None or tensor is None:
            continue
        is_used = info.name in index.inputs or info.name in index.producers
        if is_used and tensor.elem_type not in _ELEMENT_TYPES:
            fact = f"the element type of {text(info.name)!r} is number {tensor.elem_type}"
            yield FileDefect("bad-number", f"{fact}, expected one that ONNX defines", graph.place(info.name))
        for axis, dim in enumerate(tensor.shape.dim):
            if dim.dim_value < 0:
                is_dynamic = dim.dim_value == -1 or not (is_main and info.name in index.inputs)
                negative[is_dynamic].append((info.name, axis, dim.dim_value))
    for is_dynamic, dims in negative.items():
        for name, axis, size in dims[:1]:
            rest = f", the first of {len(dims)} negative dimensions" if len(dims) > 1 else ""
            sentence = f"dimension {axis} of {text(name)!r} is {size}{rest}, expected 0 or more"
            sentence += ": runtimes read it as dynamic" if is_dynamic else ""
            help = "leave out the size, or write a symbol such as 'N'" if is_dynamic else ""
            place = graph.place(name)
            yield FileDefect("bad-number", sentence, place, help=help, is_tolerated=is_dynamic)


def _tensors(graph: OnnxGraph) -> Iterator[FileDefect]:
    index, tensors = graph.index, graph.shared.tensors
    initializers = [*index.initializers.items()]
    for name, tensor in initializers:
        for kind, message in tensors.problems(tensor, f"the initializer {text(name)!r}"):
            yield FileDefect(kind, message, graph.place(name))
    for name, sparse in index.sparse_initializers.items():
        for kind, message in tensors.sparse_problems(sparse, f"the sparse initializer {text(name)!r}"):
            yield FileDefect(kind, message, graph.place(name))
    for (position, name), sparse in index.sparse.items():
        node = graph.node(position)
        word = "the sparse constant" if node.type == "Constant" else f"the sparse attribute {name!r} of"
        label = f"{word} {graph.scope + text(index.nodes[position].name)!r}"
        for kind, message in tensors.sparse_problems(sparse, label):
            yield FileDefect(kind, message, node.location, node)
    held = [(at, "the constant", tensor) for at, tensor in index.tensors.items()]
    held += [(at, f"attribute {name!r} of", tensor) for (at, name), tensor in index.attributes.items()]
    for position, word, tensor in held:
        node = graph.node(position)
        label = f"{word} {graph.scope + text(index.nodes[position].name)!r}"
        for kind, message in tensors.problems(tensor, label):
            yield FileDefect(kind, message, node.location, node)
