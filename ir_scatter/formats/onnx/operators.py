"""Whether general operators are used as their documents say: those that scatter nodes depend on.

Runtimes refuse a model for any one of them. What onnx documents of operators is asked of its schemas, and
whether element types and shapes fit of its inference; what that refuses with data propagation only is a
suspicion, which our own shape rules have to confirm.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TypeAlias

import onnx
from onnx import AttributeProto, NodeProto, TensorProto
from onnx.defs import OpSchema

from ir_scatter.core.dataflow import Source, inflows
from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.core.model import Defect, Function, Node
from ir_scatter.core.shapes import agree, show
from ir_scatter.core.words import counted, with_article
from ir_scatter.formats.onnx.dataflow import OnnxWiring
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.formats.onnx.index import (
    FIELDS,
    Bindings,
    Definitions,
    FunctionKey,
    GraphIndex,
    Usage,
    function_key,
    kind_of,
    normal_domain,
    schema_of,
    text,
)

_Problem: TypeAlias = tuple[str, int | None]
"""A sentence, and the number of the input that it is about."""

_MISUSED, _MISFIT = "misused-operator", "body-mismatch"
_DOMAINS = frozenset({"", "ai.onnx.ml", "ai.onnx.preview.training", "ai.onnx.training"})
_MADE = {Source.ITERATION: "i64", Source.CONDITION: "boolean"}
"""The types of what a loop makes itself for its body."""

_GONE = frozenset({"Upsample"})
"""Deprecated operators that runtimes do not know any more; others they still take."""

_FEW_TYPES = 4
_MESSAGES = frozenset({"t", "g"})
_NUMBERS = frozenset(TensorProto.DataType.values()) - {TensorProto.UNDEFINED}
_HOLDING = frozenset({*FIELDS.values(), "sparse_tensor", "tp", "sparse_tensors", "type_protos"})
_SINGLE, _VARIADIC = OpSchema.FormalParameterOption.Single, OpSchema.FormalParameterOption.Variadic


def misuses(graph: OnnxGraph, functions: Iterable[Function]) -> Iterator[Defect]:
    """Yield where operators that scatter nodes depend on are used in a way that runtimes refuse."""
    is_sound = graph.inferred.is_sound  # functions that the graph calls are inferred with it
    uses = [[graph], *[function.instances for function in functions]]
    graphs = [
        [inner for one in group if isinstance(one, OnnxGraph) for inner in one.with_bodies()]
        for group in uses
    ]
    found = {one: _problems(one, is_sound=is_sound) for group in graphs for one in group}
    if not any(found.values()):
        return
    needed = _needed(graph)
    for group in graphs:
        told = set[tuple[str, str]]()
        for one in group:
            for at in sorted(found[one].keys() & needed[one.index]):
                for defect in _defects(one, at, found[one][at]):
                    if (defect.location.scope, defect.message) not in told:
                        told.add((defect.location.scope, defect.message))
                        yield defect


def suspects(graph: OnnxGraph, functions: Iterable[Function]) -> Iterator[Node]:
    """Yield the nodes that scatter nodes depend on and that inference refuses with data propagation only."""
    groups = [graph, *[instance for function in functions for instance in function.instances]]
    graphs = [inner for one in groups if isinstance(one, OnnxGraph) for inner in one.with_bodies()]
    suspected = [inner for inner in graphs if inner.inferred.suspicions]
    needed = _needed(graph) if suspected else {}
    for inner in suspected:
        for at in sorted(inner.inferred.suspicions.keys() & needed[inner.index]):
            node = inner.node(at)
            if not (node.domain or inner.bodies_at(at) or _is_scatter(inner, node.type, node.domain)):
                yield node


def _problems(graph: OnnxGraph, *, is_sound: bool) -> dict[int, list[_Problem]]:
    """Return what is wrong with nodes, by position; what a scatter node is like is for rules to say.

    Where inference refuses something, every node is there, if only with an empty list.
    """
    index, calls, found = graph.index, {*graph.index.calls}, dict[int, list[_Problem]]()
    is_sound = is_sound or graph.inferred.is_sound
    for usage, places in index.usages.items():
        is_scatter = _is_scatter(graph, usage.type, usage.domain)
        is_looked_at = is_scatter or not is_sound or not all(is_set for _, _, is_set in usage.attributes)
        is_told = is_scatter or calls.issuperset(places)
        of_usage = [] if is_told else [*_of_usage(graph, usage)]
        schema = None if is_told or is_sound else schema_of(usage.domain, usage.type, graph.shared.opsets)
        for at in places:
            proto, is_call = index.nodes[at], at in calls
            more = [*_of_call(graph, proto)] if is_call else of_usage
            problems = [*_fields(proto), *more] if more or is_looked_at else []
            if not is_told and graph.shared.bindings:
                problems += _of_references(proto, graph.shared.bindings)
            if schema is not None and not problems and not is_call:
                problems = [*_of_types(graph, proto, schema)]
            if problems or not is_sound:
                found[at] = problems
    return found


def _defects(graph: OnnxGraph, at: int, problems: Sequence[_Problem]) -> Iterator[Defect]:
    node = graph.node(at)
    for message, port in problems:
        yield Defect(_MISUSED, message, node.location, node, port)
    if not problems and at in graph.inferred.refusals and not _is_scatter(graph, node.type, node.domain):
        yield _refused(graph, at)


def _needed(graph: OnnxGraph) -> Mapping[GraphIndex, set[int]]:
    """Return the nodes that scatter nodes depend on, these included, by position in their graphs."""
    definitions, types = graph.shared.definitions, graph.shared.options.scatter_types
    holding, found = _holding(definitions, types), dict[GraphIndex, set[int]]()

    def add(index: GraphIndex, *, is_all: bool) -> Iterator[FunctionKey]:
        """Note the nodes of a graph and of its bodies; yield the functions that those in front call."""
        roots = {at for type in types for at in index.by_type.get(type, ())}
        roots.update(at for at in index.calls if function_key(index.nodes[at]) in holding)
        for at, bodies in index.bodies.items():
            if any(body.has_any(types) or not holding.isdisjoint(body.called()) for body in bodies.values()):
                roots.add(at)
        feeding = {*range(len(index.nodes))} if is_all else _feeding(index, roots)
        found[index] = roots | feeding
        for at, bodies in index.bodies.items():
            for body in bodies.values():  # a loop carries what it computes, a branch is refused for any node
                yield from add(body, is_all=at in found[index])
        yield from (function_key(index.nodes[at]) for at in index.calls if at in feeding)

    waiting = [*add(graph.index, is_all=False)]
    for definition in definitions.values():
        waiting += add(definition.index, is_all=False)
    whole = set[FunctionKey]()
    while waiting:
        key = waiting.pop()
        if key not in whole:
            whole.add(key)
            waiting += add(definitions[key].index, is_all=True)
    return found


def _holding(definitions: Definitions, types: frozenset[str]) -> set[FunctionKey]:
    """Return the functions with scatter nodes in them, or in functions that they call."""
    found = {key for key, definition in definitions.items() if definition.index.has_any(types)}
    is_growing = bool(found)
    while is_growing:
        more = {key for key, one in definitions.items() if not found.isdisjoint(one.index.called())} - found
        found, is_growing = found | more, bool(more)
    return found


def _feeding(index: GraphIndex, roots: Iterable[int]) -> set[int]:
    """Return the nodes that lead to others."""
    found, waiting = set[int](), [*roots]
    while waiting:
        at = waiting.pop()
        bodies = index.bodies.get(at, {}).values()
        names = set(index.nodes[at].input).union(*[body.captured for body in bodies])
        new = {index.producers[name][0] for name in names if name in index.producers} - found
        found |= new
        waiting += new
    return found


def _is_scatter(graph: OnnxGraph, type: str, domain: str) -> bool:
    return type in graph.shared.options.scatter_types and not normal_domain(domain)


def _fields(proto: NodeProto) -> Iterator[_Problem]:
    """Yield the attributes of which another field is set than the one that their type names.

    A field that is not set is 0, or empty: some writers leave these out.
    """
    for one in proto.attribute:
        wanted = FIELDS.get(one.type) if not one.ref_attr_name else None
        held = [field.name for field, _ in one.ListFields() if field.name in _HOLDING]
        if wanted is not None and held != [wanted] and (held or wanted in _MESSAGES):
            found = " and ".join(held) if held else "nothing"
            yield (
                f"the field that attribute {text(one.name)!r} holds is {found}, its type names {wanted}",
                None,
            )


def _of_references(proto: NodeProto, bindings: Bindings) -> Iterator[_Problem]:
    """Yield the attributes that refer to one of the call of a function which has another type."""
    for attribute in proto.attribute:
        value = bindings.get(attribute.ref_attr_name) if attribute.ref_attr_name else None
        if value is None or attribute.type in (AttributeProto.UNDEFINED, kind_of(value)):
            continue
        found, expected = (_kind_name(kind) for kind in (kind_of(value), attribute.type))
        name, source = text(attribute.name), text(attribute.ref_attr_name)
        yield (
            f"attribute {name!r} refers to {source!r} of the call, {with_article(found)}, "
            f"expected {with_article(expected)}",
            None,
        )


def _kind_name(kind: int) -> str:
    """Return the name of an attribute's type, "ints"."""
    kinds = AttributeProto.AttributeType
    return kinds.Name(kind).lower() if kind in kinds.values() else f"type {kind}"


def _of_call(graph: OnnxGraph, proto: NodeProto) -> Iterator[_Problem]:
    definition = graph.shared.definitions[function_key(proto)]
    for word, found, most in (
        ("input", len(proto.input), len(definition.index.inputs)),
        ("output", len(proto.output), len(definition.index.outputs)),
    ):
        if found > most:
            yield f"{definition.name} has {counted(found, word)}, expected {most} at most", None


def _of_usage(graph: OnnxGraph, usage: Usage) -> Iterator[_Problem]:
    """Yield what is wrong with the use of a general operator, but nothing of domains of others."""
    domain, type = normal_domain(usage.domain), text(usage.type)
    opset, schema = graph.shared.opsets.get(domain), schema_of(usage.domain, usage.type, graph.shared.opsets)
    if opset is None or domain not in _DOMAINS:
        return
    if not type:
        yield "the node has no operator, expected one", None
    elif schema is None:
        since = _versions().get((domain, type))
        expected = f"which has it from {since} on" if since else "which has no such operator in any version"
        yield f"{type} is not in opset {opset} of {domain or 'ai.onnx'!r}, {expected}", None
    elif schema.deprecated and type in _GONE:
        yield f"{type} is deprecated in opset {opset}", None
    else:
        yield from _of_count(usage, schema)
        yield from _of_attributes(usage, schema, opset)


def _of_count(usage: Usage, schema: OpSchema) -> Iterator[_Problem]:
    for word, named, low, high in (
        ("input", usage.inputs, schema.min_input, schema.max_input),
        ("output", usage.outputs, schema.min_output, schema.max_output),
    ):
        found = named if isinstance(named, int) else len(named)
        if not low <= found <= high:
            expected = f"{low}" if low == high else f"{low} or more" if found < low else f"{high} at most"
            yield f"{text(usage.type)} has {counted(found, word)}, expected {expected}", None
    given = () if isinstance(usage.inputs, int) else usage.inputs
    for port, (is_given, formal) in enumerate(zip(given, schema.inputs, strict=False)):
        if not is_given and formal.option == _SINGLE:
            yield f"input {port} of {text(usage.type)} ({formal.name}) is left out, expected a value", port


def _of_attributes(usage: Usage, schema: OpSchema, opset: int) -> Iterator[_Problem]:
    known = schema.attributes
    for name, kind, _ in usage.attributes:
        found = _kind_name(kind)
        wanted = str(known[name].type).rpartition(".")[2].lower() if name in known else ""
        if not wanted:
            yield f"{text(usage.type)} has no attribute {text(name)!r} in opset {opset}", None
        elif kind and found != wanted:
            yield f"attribute {name!r} is {with_article(found)}, expected {with_article(wanted)}", None
    given = {name for name, _, _ in usage.attributes}
    for name in sorted(known):
        if known[name].required and name not in given:
            yield f"{text(usage.type)} has no attribute {name!r}, expected one", None


def _of_types(graph: OnnxGraph, node: NodeProto, schema: OpSchema) -> Iterator[_Problem]:
    """Yield the inputs of an element type that the operator does not take, there or beside another one."""
    first: dict[str, tuple[int, str]] = {}
    for port, name in enumerate(node.input):
        is_more = port >= len(schema.inputs)
        formal = schema.inputs[-1 if is_more else port] if schema.inputs else None
        number = _type_of(graph, name) if name else 0
        if formal is None or number not in _NUMBERS or (is_more and formal.option != _VARIADIC):
            continue
        found, place = TensorProto.DataType.Name(number).lower(), port
        taken = sorted(one[7:-1] for one in formal.types if one.startswith("tensor("))
        expected = " or ".join(taken) if len(taken) <= _FEW_TYPES else f"one of {len(taken)} other types"
        if found in taken and formal.is_homogeneous:
            place, expected = first.setdefault(formal.type_str, (port, found))
        if found != expected and (found not in taken or formal.is_homogeneous):
            like = "" if place == port else f" like input {place}"
            yield f"input {port} of {schema.name} ({formal.name}) is {found}, expected {expected}{like}", port


def _type_of(graph: OnnxGraph | None, name: str) -> int:
    """Return the number of a value's element type, 0 if it is not known."""
    if graph is None:
        return 0
    if name in graph.index.initializers:
        return graph.index.initializers[name].data_type
    found = graph.inferred.types.get(name)
    if found is not None:
        return found.tensor_type.elem_type
    if name in graph.arguments:
        value = graph.arguments[name]
        type = None if value is None else value.element_type
        return 0 if type is None else type.onnx_number or 0
    is_own = name in graph.index.producers or name in graph.index.inputs
    return 0 if is_own else _type_of(graph.parent, name)


def _refused(graph: OnnxGraph, at: int) -> Defect:
    """Make a defect of what inference says of a node."""
    node, said = graph.node(at), graph.inferred.refusals[at]
    shapes = [show(port.value.shape) if port.value else "nothing" for port in node.inputs]
    message = f"{node.type} does not take its inputs of shapes {', '.join(shapes)}: {said}"
    if not graph.bodies_at(at):
        return Defect(_MISUSED, message, node.location, node)
    return Defect(_MISFIT, next(_misfits(graph, at), message), node.location, node)


def _misfits(graph: OnnxGraph, at: int) -> Iterator[str]:
    """Yield where the inputs of a loop's body declare something else than what flows in."""
    node = graph.node(at)
    for place, (input, inflow, value, shape) in enumerate(inflows(OnnxWiring, node)):
        type = None if value is None else value.element_type
        if inflow.source in _MADE:
            type = ELEMENT_TYPES[_MADE[inflow.source]]
        if node.type == "Loop":  # which carries other shapes in every iteration, if it likes
            shape = None
        found, flows = show(input.shape), show(shape)
        if type is not None and input.element_type is not None and type is not input.element_type:
            found, flows = str(input.element_type.onnx_name), str(type.onnx_name)
        elif agree(shape, input.shape):
            continue
        yield f"input {place} of the body ({input.names[-1]!r}) is {found}, what flows in is {flows}"


@cache
def _versions() -> Mapping[tuple[str, str], int]:
    """Return the first version of every operator, by domain and type."""
    found: dict[tuple[str, str], int] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        key = schema.domain, schema.name
        found[key] = min(schema.since_version, found.get(key, schema.since_version))
    return found
