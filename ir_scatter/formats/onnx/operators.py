"""Finds illegal uses of general operators upstream of scatter nodes, for `Model.find_defects`.

Runtimes refuse a model for a single illegal node. The schemas of the onnx package are the specification;
its shape inference checks element types and shapes. An error that occurs only with data propagation
(see `inference.py`) is a suspicion, which our own shape rules must confirm.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TypeAlias

import onnx
from onnx import AttributeProto, NodeProto, TensorProto
from onnx.defs import OpSchema

from ir_scatter.core.dataflow import BodySource, inflows
from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.core.model import FileDefect, Function, Node
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
"""A sentence, and the number of the input that it is about; None for the whole node."""

_MISUSED, _MISFIT = "misused-operator", "body-mismatch"
_DOMAINS = frozenset({"", "ai.onnx.ml", "ai.onnx.preview.training", "ai.onnx.training"})
_LOOP_TYPES = {BodySource.ITERATION: "i64", BodySource.CONDITION: "boolean"}
"""Element types of the body inputs that a loop itself computes."""

_REMOVED = frozenset({"Upsample"})
"""Deprecated operators that runtimes no longer support. They still accept other deprecated operators."""

_ANY_OPSET = 1 << 31
_OF_ONNXRUNTIME = {
    type: opset
    for opset, types in {
        _ANY_OPSET: "LayerNormalization SimplifiedLayerNormalization",
        9: "Affine Crop ImageScaler ParametricSoftplus Scale ScaledTanh ThresholdedRelu",
        8: "MeanVarianceNormalization",
    }.items()
    for type in types.split()
}
"""Operators that onnxruntime has in ONNX's own domain, besides the schemas, up to an opset; exporters of
language models write the first two."""

_MOST_TYPES = 4
"""Limit of types that a message lists; a longer list is replaced by its length."""

_MESSAGES = frozenset({"t", "g"})
_NUMBERS = frozenset(TensorProto.DataType.values()) - {TensorProto.UNDEFINED}
_HOLDING = frozenset({*FIELDS.values(), "sparse_tensor", "tp", "sparse_tensors", "type_protos"})
_SINGLE, _VARIADIC = OpSchema.FormalParameterOption.Single, OpSchema.FormalParameterOption.Variadic


def misuses(graph: OnnxGraph, functions: Iterable[Function]) -> Iterator[FileDefect]:
    """Yield illegal uses of operators that runtimes refuse, among the nodes upstream of scatter nodes."""
    is_sound = graph.inferred.is_sound  # the result also covers the functions that the graph calls
    uses = [[graph], *[function.instances for function in functions]]
    groups = [
        [inner for use in group if isinstance(use, OnnxGraph) for inner in use.with_bodies()]
        for group in uses
    ]
    problems = {inner: _problems(inner, is_sound=is_sound) for group in groups for inner in group}
    if not any(problems.values()):
        return
    needed = _scatter_and_upstream(graph)
    for group in groups:
        reported = set[tuple[str, str]]()
        for inner in group:
            for at in sorted(problems[inner].keys() & needed[inner.index]):
                for defect in _defects(inner, at, problems[inner][at]):
                    if (defect.location.scope, defect.message) not in reported:
                        reported.add((defect.location.scope, defect.message))
                        yield defect


def suspects(graph: OnnxGraph, functions: Iterable[Function]) -> Iterator[Node]:
    """Yield the nodes upstream of scatter nodes that inference refuses only with data propagation."""
    uses = [graph, *[instance for function in functions for instance in function.instances]]
    graphs = [inner for use in uses if isinstance(use, OnnxGraph) for inner in use.with_bodies()]
    suspected = [inner for inner in graphs if inner.inferred.suspicions]
    needed = _scatter_and_upstream(graph) if suspected else {}
    for inner in suspected:
        for at in sorted(inner.inferred.suspicions.keys() & needed[inner.index]):
            node = inner.node(at)
            if not (node.domain or inner.bodies_at(at) or _is_scatter(inner, node.type, node.domain)):
                yield node


def _problems(graph: OnnxGraph, *, is_sound: bool) -> dict[int, list[_Problem]]:
    """Return the problems of each node, by position. For scatter nodes, rules check all but attribute fields.

    If inference refuses a node of the graph, every node has an entry, which may be an empty list.
    """
    index, calls, problems_at = graph.index, {*graph.index.calls}, dict[int, list[_Problem]]()
    is_sound = is_sound or graph.inferred.is_sound
    for usage, places in index.usages.items():
        is_scatter = _is_scatter(graph, usage.type, usage.domain)
        is_checked = is_scatter or not is_sound or not all(is_set for _, _, is_set in usage.attributes)
        is_exempt = is_scatter or calls.issuperset(places)
        of_usage = [] if is_exempt else [*_usage_problems(graph, usage)]
        schema = None if is_exempt or is_sound else schema_of(usage.domain, usage.type, graph.shared.opsets)
        for at in places:
            proto, is_call = index.nodes[at], at in calls
            more = [*_call_problems(graph, proto)] if is_call else of_usage
            problems = [*_field_problems(proto), *more] if more or is_checked else []
            if not is_exempt and graph.shared.bindings:
                problems += _reference_problems(proto, graph.shared.bindings)
            if schema is not None and not problems and not is_call:
                problems = [*_type_problems(graph, proto, schema)]
            if problems or not is_sound:
                problems_at[at] = problems
    return problems_at


def _defects(graph: OnnxGraph, at: int, problems: Sequence[_Problem]) -> Iterator[FileDefect]:
    node = graph.node(at)
    for message, port in problems:
        yield FileDefect(_MISUSED, message, node.location, node, port)
    if not problems and at in graph.inferred.refusals and not _is_scatter(graph, node.type, node.domain):
        yield _refusal_defect(graph, at)


def _scatter_and_upstream(graph: OnnxGraph) -> Mapping[GraphIndex, set[int]]:
    """Return the positions of scatter nodes and of all nodes upstream of them, by graph."""
    definitions, types = graph.shared.definitions, graph.shared.options.scatter_types
    holding, needed = _functions_with_scatter(definitions, types), dict[GraphIndex, set[int]]()

    def add(index: GraphIndex, *, is_all: bool) -> Iterator[FunctionKey]:
        """Record the needed nodes of a graph and its bodies; yield the functions that these nodes call."""
        roots = {at for type in types for at in index.by_type.get(type, ())}
        roots.update(at for at in index.calls if function_key(index.nodes[at]) in holding)
        for at, bodies in index.bodies.items():
            if any(body.has_any(types) or not holding.isdisjoint(body.called()) for body in bodies.values()):
                roots.add(at)
        feeding = {*range(len(index.nodes))} if is_all else _upstream_of(index, roots)
        needed[index] = roots | feeding
        for at, bodies in index.bodies.items():
            # a loop may carry any value to the next iteration; runtimes refuse a branch for any of its nodes
            for body in bodies.values():
                yield from add(body, is_all=at in needed[index])
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
    return needed


def _functions_with_scatter(definitions: Definitions, types: frozenset[str]) -> set[FunctionKey]:
    """Return the functions that contain scatter nodes, directly or through calls."""
    keys = {key for key, definition in definitions.items() if definition.index.has_any(types)}
    is_growing = bool(keys)
    while is_growing:
        callers = {
            key for key, definition in definitions.items() if not keys.isdisjoint(definition.index.called())
        }
        is_growing = not callers <= keys
        keys |= callers
    return keys


def _upstream_of(index: GraphIndex, roots: Iterable[int]) -> set[int]:
    """Return the positions of the nodes upstream of `roots`."""
    upstream, waiting = set[int](), [*roots]
    while waiting:
        at = waiting.pop()
        bodies = index.bodies.get(at, {}).values()
        names = set(index.nodes[at].input).union(*[body.captured for body in bodies])
        new = {index.producers[name][0] for name in names if name in index.producers} - upstream
        upstream |= new
        waiting += new
    return upstream


def _is_scatter(graph: OnnxGraph, type: str, domain: str) -> bool:
    return type in graph.shared.options.scatter_types and not normal_domain(domain)


def _field_problems(proto: NodeProto) -> Iterator[_Problem]:
    """Yield attributes with a value in a field that does not match the attribute's type.

    A missing field means 0 or empty, as some writers omit such values.
    """
    for attribute in proto.attribute:
        expected = FIELDS.get(attribute.type) if not attribute.ref_attr_name else None
        held = [field.name for field, _ in attribute.ListFields() if field.name in _HOLDING]
        if expected is not None and held != [expected] and (held or expected in _MESSAGES):
            fields = f"stores its value in {' and '.join(held)}" if held else "stores no value"
            subject = f"attribute {text(attribute.name)!r} {fields}"
            yield f"{subject}, expected a value in {expected}, the field of its type", None


def _reference_problems(proto: NodeProto, bindings: Bindings) -> Iterator[_Problem]:
    """Yield references to an attribute of the function call that has another type."""
    for attribute in proto.attribute:
        value = bindings.get(attribute.ref_attr_name) if attribute.ref_attr_name else None
        if value is None or attribute.type in (AttributeProto.UNDEFINED, kind_of(value)):
            continue
        actual, expected = (_kind_name(kind) for kind in (kind_of(value), attribute.type))
        name, source = text(attribute.name), text(attribute.ref_attr_name)
        yield (
            f"attribute {name!r} refers to {source!r} of the call, which is {with_article(actual)}, "
            f"expected {with_article(expected)}",
            None,
        )


def _kind_name(kind: int) -> str:
    """Return the name of an attribute type, such as "ints"."""
    kinds = AttributeProto.AttributeType
    return kinds.Name(kind).lower() if kind in kinds.values() else f"type {kind}"


def _call_problems(graph: OnnxGraph, proto: NodeProto) -> Iterator[_Problem]:
    definition = graph.shared.definitions[function_key(proto)]
    for word, count, most in (
        ("input", len(proto.input), len(definition.index.inputs)),
        ("output", len(proto.output), len(definition.index.outputs)),
    ):
        if count > most:
            yield f"{definition.name} has {counted(count, word)}, expected at most {most}", None


def _usage_problems(graph: OnnxGraph, usage: Usage) -> Iterator[_Problem]:
    """Yield the problems of nodes with this usage, compared with the operator's schema."""
    domain, type = normal_domain(usage.domain), text(usage.type)
    opset, schema = graph.shared.opsets.get(domain), schema_of(usage.domain, usage.type, graph.shared.opsets)
    if opset is None or domain not in _DOMAINS:
        return
    if not type:
        yield "the node has no operator, expected one", None
    elif schema is None and not domain and opset <= _OF_ONNXRUNTIME.get(type, 0):
        return
    elif schema is None:
        since = _versions().get((domain, type))
        expected = (
            f"expected opset {since} or later"
            if since
            else "expected an operator that some version of the domain has"
        )
        yield f"{type} is not in opset {opset} of {domain or 'ai.onnx'!r}, {expected}", None
    elif schema.deprecated and type in _REMOVED:
        yield f"{type} is deprecated in opset {opset}", None
    else:
        yield from _count_problems(usage, schema)
        yield from _attribute_problems(usage, schema, opset)


def _count_problems(usage: Usage, schema: OpSchema) -> Iterator[_Problem]:
    for word, named, low, high in (
        ("input", usage.inputs, schema.min_input, schema.max_input),
        ("output", usage.outputs, schema.min_output, schema.max_output),
    ):
        count = named if isinstance(named, int) else len(named)
        if not low <= count <= high:
            expected = f"{low}" if low == high else f"{low} or more" if count < low else f"at most {high}"
            yield f"{text(usage.type)} has {counted(count, word)}, expected {expected}", None
    presence = () if isinstance(usage.inputs, int) else usage.inputs
    for port, (is_present, formal) in enumerate(zip(presence, schema.inputs, strict=False)):
        if not is_present and formal.option == _SINGLE:
            yield f"input {port} of {text(usage.type)} ({formal.name}) is missing, expected a value", port


def _attribute_problems(usage: Usage, schema: OpSchema, opset: int) -> Iterator[_Problem]:
    formal = schema.attributes
    for name, kind, _ in usage.attributes:
        actual = _kind_name(kind)
        expected = str(formal[name].type).rpartition(".")[2].lower() if name in formal else ""
        if not expected:
            yield f"{text(usage.type)} has no attribute {text(name)!r} in opset {opset}", None
        elif kind and actual != expected:
            yield f"attribute {name!r} is {with_article(actual)}, expected {with_article(expected)}", None
    written = {name for name, _, _ in usage.attributes}
    for name in sorted(formal):
        if formal[name].required and name not in written:
            yield f"{text(usage.type)} has no attribute {name!r}, expected one", None


def _type_problems(graph: OnnxGraph, node: NodeProto, schema: OpSchema) -> Iterator[_Problem]:
    """Yield inputs whose element type the schema excludes, or that differs from an input of the same type."""
    first: dict[str, tuple[int, str]] = {}
    for port, name in enumerate(node.input):
        is_more = port >= len(schema.inputs)
        formal = schema.inputs[-1 if is_more else port] if schema.inputs else None
        number = _type_of(graph, name) if name else 0
        if formal is None or number not in _NUMBERS or (is_more and formal.option != _VARIADIC):
            continue
        actual, place = TensorProto.DataType.Name(number).lower(), port
        legal = sorted(type[7:-1] for type in formal.types if type.startswith("tensor("))
        expected = " or ".join(legal) if len(legal) <= _MOST_TYPES else f"one of {len(legal)} other types"
        if actual in legal and formal.is_homogeneous:
            place, expected = first.setdefault(formal.type_str, (port, actual))
        if actual != expected and (actual not in legal or formal.is_homogeneous):
            like = "" if place == port else f" like input {place}"
            yield (
                f"input {port} of {schema.name} ({formal.name}) is {actual}, expected {expected}{like}",
                port,
            )


def _type_of(graph: OnnxGraph | None, name: str) -> int:
    """Return the number of a value's element type; 0 if unknown."""
    if graph is None:
        return 0
    if name in graph.index.initializers:
        return graph.index.initializers[name].data_type
    inferred = graph.inferred.types.get(name)
    if inferred is not None:
        return inferred.tensor_type.elem_type
    if name in graph.arguments:
        value = graph.arguments[name]
        type = None if value is None else value.element_type
        return 0 if type is None else type.onnx_number or 0
    is_local = name in graph.index.producers or name in graph.index.inputs
    return 0 if is_local else _type_of(graph.parent, name)


def _refusal_defect(graph: OnnxGraph, at: int) -> FileDefect:
    """Return the defect of a node that inference refuses."""
    node, reason = graph.node(at), graph.inferred.refusals[at]
    shapes = [show(port.value.shape) if port.value else "nothing" for port in node.inputs]
    message = f"{node.type} does not accept inputs of shapes {', '.join(shapes)}: {reason}"
    if not graph.bodies_at(at):
        return FileDefect(_MISUSED, message, node.location, node)
    return FileDefect(_MISFIT, next(_input_mismatches(graph, at), message), node.location, node)


def _input_mismatches(graph: OnnxGraph, at: int) -> Iterator[str]:
    """Yield a sentence for each body input whose declaration contradicts the incoming value."""
    node = graph.node(at)
    for place, (input, inflow, value, shape) in enumerate(inflows(OnnxWiring, node)):
        type = None if value is None else value.element_type
        if inflow.source in _LOOP_TYPES:
            type = ELEMENT_TYPES[_LOOP_TYPES[inflow.source]]
        if node.type == "Loop":  # a Loop may change carried shapes between iterations
            shape = None
        expected, actual = show(input.shape), show(shape)
        if type is not None and input.element_type is not None and type is not input.element_type:
            expected, actual = str(input.element_type.onnx_name), str(type.onnx_name)
        elif agree(shape, input.shape):
            continue
        yield f"input {place} of the body ({input.names[-1]!r}) is declared {expected}, but receives {actual}"


@cache
def _versions() -> Mapping[tuple[str, str], int]:
    """Return the first version of every operator, by (domain, type)."""
    versions: dict[tuple[str, str], int] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        key = schema.domain, schema.name
        versions[key] = min(schema.since_version, versions.get(key, schema.since_version))
    return versions
