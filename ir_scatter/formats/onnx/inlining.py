"""Inlines the local functions of an ONNX model, and proves that the new model computes the same.

`onnx.inliner` does the inlining. It loses default values of attributes and outputs that are inputs, and skips
functions with another opset; so calls and functions are completed first. Afterwards both models are compared
as terms. The term of a value consists of its operator, the operator's attributes, and the terms of its
inputs.

    before:  out = own.F <axis = 1> (x), where own.F (a) => (b) { b = Softmax <axis = @axis> (a) }
    after:   out = Softmax <axis = 1> (x)
    term:    Softmax-13(axis = 1)(input x), of both
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, inliner

from ir_scatter.core.model import Model
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.formats.onnx.index import (
    Bindings,
    Definition,
    Definitions,
    FunctionKey,
    GraphIndex,
    bound,
    function_key,
    graphs_of,
    is_graph,
    normal_domain,
    opsets_of,
    schema_of,
    text,
)

MOST_NODES = 200_000
"""Limit of nodes after inlining: functions that call each other twice grow exponentially."""

_ORIGIN = "ir_scatter.origin"
"""The metadata key of a node's original scope during inlining."""


class CannotInline(Exception):
    """Error: the functions of a model cannot be inlined; the message has the reason."""


class OtherOpset(CannotInline):
    """Error: an operator of a function has another version in the model's opset."""


class Inlined(NamedTuple):
    """A model whose functions are inlined.

    Attributes:
        model: the new model.
        calls: the number of calls of each function in the main graph and its bodies, by the function's name.
    """

    model: ModelProto
    calls: Mapping[str, int]


def inline(model: ModelProto) -> Inlined:
    """Replace all calls of local functions by the functions' nodes.

    Raises:
        CannotInline: a function calls itself, is of another opset, or the new model would be too large or
            another one.
    """
    definitions = Definitions(model)
    calls = _calls(model, definitions)
    if definitions.duplicates:
        raise CannotInline(f"function {definitions.duplicates[0]} is defined twice")
    if definitions.cycles:
        raise CannotInline(f"function {definitions.cycles[0][0].name} calls itself")
    if any(_has_calls(part, definitions) for part in _training(model)):
        raise CannotInline("a training graph calls a function")
    if _size(model, definitions) > MOST_NODES:
        raise CannotInline(f"inlining creates more than {MOST_NODES} nodes")
    copy = ModelProto()
    copy.CopyFrom(model)
    tensors = _without_tensors(copy)
    _complete(copy, definitions)
    copy = _inlined(copy)
    del copy.graph.initializer[:]
    copy.graph.initializer.extend(tensors)
    if not _are_equal(model, copy):
        raise CannotInline("the inlined model would compute something else")
    return Inlined(copy, calls)


def calls_functions(model: ModelProto) -> bool:
    """Return whether a node of the main graph or of its bodies calls a local function."""
    return bool(model.functions) and _has_calls(model.graph, Definitions(model))


def _has_calls(graph: GraphProto, definitions: Definitions) -> bool:
    return any(function_key(node) in definitions for node in _nodes(graph))


def _training(model: ModelProto) -> list[GraphProto]:
    return [part for info in model.training_info for part in (info.initialization, info.algorithm)]


def _calls(model: ModelProto, definitions: Definitions) -> dict[str, int]:
    counts = dict[str, int]()
    for key in map(function_key, _nodes(model.graph)):
        if key in definitions:
            name = definitions[key].name
            counts[name] = counts.get(name, 0) + 1
    return counts


def _nodes(graph: GraphProto | FunctionProto) -> Iterator[NodeProto]:
    """Yield the nodes of a graph and of its bodies."""
    waiting = [graph]
    while waiting:
        for node in waiting.pop().node:
            yield node
            waiting += [body for value in node.attribute if is_graph(value) for _, body in graphs_of(value)]


def _size(model: ModelProto, definitions: Definitions) -> int:
    """Return the number of nodes after inlining; functions do not call themselves."""
    sizes = dict[FunctionKey, int]()

    def size_of(graph: GraphProto | FunctionProto) -> int:
        return sum(sizes.get(function_key(node), 1) for node in _nodes(graph))

    waiting = definitions.needed_by(GraphIndex(model.graph, definitions))
    while waiting:
        ready = [each for each in waiting if all(callee in sizes for callee in each.index.called())]
        sizes |= {definition.key: size_of(definition.proto) for definition in ready}
        waiting = [definition for definition in waiting if definition.key not in sizes]
    return size_of(model.graph)


def _without_tensors(model: ModelProto) -> list[TensorProto]:
    """Replace the initializers of the main graph by small ones with their names; return them."""
    tensors = list[TensorProto]()
    for tensor in model.graph.initializer:
        whole = TensorProto()
        whole.CopyFrom(tensor)
        tensors.append(whole)
        name, type = tensor.name, tensor.data_type
        tensor.Clear()
        tensor.name, tensor.data_type = name, type
    return tensors


# What the inliner needs


def _complete(model: ModelProto, definitions: Definitions) -> None:
    """Make functions and their opsets fit the model, and give their nodes the scopes that they come from."""
    versions = opsets_of(model.opset_import)
    spelled = next((entry.domain for entry in model.opset_import if not normal_domain(entry.domain)), "")
    needed = {definition.key for definition in definitions.needed_by(GraphIndex(model.graph, definitions))}
    for number in reversed(range(len(model.functions))):
        if function_key(model.functions[number]) not in needed:
            del model.functions[number]
    for function in model.functions:
        definition = definitions[function_key(function)]
        for entry in function.opset_import:
            domain = normal_domain(entry.domain)
            if domain not in versions:
                versions[domain] = entry.version
                model.opset_import.add(domain=entry.domain, version=entry.version)
            elif entry.version != versions[domain]:
                _demand_equal_versions(definition, domain, entry.version, versions)
                entry.version = versions[domain]
            entry.domain = spelled if not domain else entry.domain
        _pass_on(function)
        for node in _nodes(function):
            node.domain = node.domain if normal_domain(node.domain) else spelled
            if node.output:
                name = text(node.name) or text(node.output[0])
                node.metadata_props.add(key=_ORIGIN, value=f"{definition.name}/{name}")


def _demand_equal_versions(
    definition: Definition, domain: str, version: int, versions: Mapping[str, int]
) -> None:
    """Raise OtherOpset if an operator of a function is another one in the opset of the model."""
    for node in _nodes(definition.proto):
        if normal_domain(node.domain) == domain:
            old, new = (
                schema_of(domain, node.op_type, {domain: number}) for number in (version, versions[domain])
            )
            if old is None or new is None or old.since_version != new.since_version:
                raise OtherOpset(
                    f"function {definition.name} is of opset {version}, and {text(node.op_type)} is another "
                    f"operator in opset {versions[domain]} of the model"
                )


def _pass_on(function: FunctionProto) -> None:
    """Add an Identity for each output that is an input of the function or another output."""
    names = {name for node in _nodes(function) for name in (*node.input, *node.output)}
    names.update(function.input, function.output)
    taken = set(function.input)
    for number, output in enumerate(function.output):
        if output in taken:
            free = f"{text(output)}_passed_{number}"
            while free in names:
                free += "_"
            names.add(free)
            function.node.add(op_type="Identity", input=[output], output=[free])
            function.output[number] = free
        taken.add(output)


def _inlined(model: ModelProto) -> ModelProto:
    """Inline callers before the functions that they call, since calls get the values of attributes first."""
    local = {function.domain for function in model.functions}
    while True:
        definitions = Definitions(model)
        index = GraphIndex(model.graph, definitions)
        called = set(index.called())
        if not called:
            break
        for node in _nodes(model.graph):
            if function_key(node) in called:
                _write_defaults(node, definitions[function_key(node)])
        inner = {callee for each in definitions.needed_by(index) for callee in each.index.called()}
        names = {key[:2] for key in called - inner} - {key[:2] for key in inner}
        chosen = [key for key in called if key[:2] in (names or {key[:2] for key in called})]
        ids = list({(definitions[key].proto.domain, key[1]) for key in chosen})
        try:
            model = inliner.inline_selected_functions(model, ids)
        except Exception as error:  # the inliner raises RuntimeError, ValueError or its own errors
            raise CannotInline(f"onnx.inliner: {error}") from None
        if called <= set(GraphIndex(model.graph, Definitions(model)).called()):
            raise CannotInline("onnx.inliner does not inline all calls")
    del model.functions[:]
    used = {normal_domain(node.domain) for node in _nodes(model.graph)}
    for number in reversed(range(len(model.opset_import))):
        domain = model.opset_import[number].domain
        if normal_domain(domain) and domain not in used and domain in local:
            del model.opset_import[number]
    return model


def _write_defaults(call: NodeProto, definition: Definition) -> None:
    written = {text(attribute.name) for attribute in call.attribute}
    call.attribute.extend(value for name, value in definition.defaults.items() if text(name) not in written)


def take_origins(model: Model, types: frozenset[str]) -> dict[str, str]:
    """Return where nodes of some types of an inlined model come from, and remove the notes about it.

    Returns: the scope in the old model of each node that comes from a function, by its scope in the new one.
    """
    origins = dict[str, str]()
    for node in model.walk(types):
        assert isinstance(node.graph, OnnxGraph)
        for entry in node.graph.index.nodes[node.handle].metadata_props:
            if entry.key == _ORIGIN:
                origins[node.scope] = entry.value
    for proto in _nodes(model.source.graph):
        for number in reversed(range(len(proto.metadata_props))):
            if proto.metadata_props[number].key == _ORIGIN:
                del proto.metadata_props[number]
    return origins


# The proof

_Term: TypeAlias = int
_Names: TypeAlias = dict[str | bytes, "_Term | None"]


class _Terms:
    """Numbers terms, so that equal computations have equal numbers."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, _Term] = {}

    def number(self, key: Hashable) -> _Term:
        return self._numbers.setdefault(key, len(self._numbers))

    def outputs(self, model: ModelProto) -> list[_Term | None]:
        graph, definitions = model.graph, Definitions(model)
        initializers = [tensor.name for tensor in graph.initializer]
        sparse = [tensor.values.name for tensor in graph.sparse_initializer]
        names = {info.name for info in graph.input}.union(initializers, sparse)
        scope: _Names = {name: self.number(("outer", name)) for name in names}
        walk = _Walk(self, definitions, opsets_of(model.opset_import), {})
        walk.nodes(graph.node, scope, 0)
        return [scope.get(info.name) for info in graph.output]


class _Walk:
    """Computes the terms of a graph, of its bodies and of the functions that it calls."""

    def __init__(
        self, terms: _Terms, definitions: Definitions, opsets: Mapping[str, int], bindings: Bindings
    ) -> None:
        self._terms = terms
        self._definitions = definitions
        self._opsets = opsets
        self._bindings = bindings

    def nodes(self, nodes: Iterable[NodeProto], scope: _Names, depth: int) -> None:
        """Add the outputs of nodes to the names in scope; `depth` is the number of bodies around them."""
        for node in nodes:
            inputs = [scope.get(name) if name else None for name in node.input]
            while inputs and inputs[-1] is None:
                inputs.pop()
            definition = self._definitions.get(function_key(node))
            if definition is not None:
                self._call(node, definition, inputs, scope, depth)
                continue
            domain = normal_domain(node.domain)
            if (domain, node.op_type) == ("", "Identity") and inputs:
                scope[node.output[0]] = inputs[0]  # functions get an Identity where an output is an input
                continue
            schema = schema_of(node.domain, node.op_type, self._opsets)
            version = self._opsets.get(domain, 1) if schema is None else schema.since_version
            attributes = [
                self._attribute(name, value, scope, depth) for name, value in bound(node, self._bindings)
            ]
            presence = [bool(name) for name in node.output]
            while presence and not presence[-1]:
                presence.pop()
            operator = domain, node.op_type, node.overload, version, tuple(sorted(attributes, key=repr))
            term = self._terms.number((operator, tuple(inputs), tuple(presence)))
            scope |= {name: self._terms.number((term, at)) for at, name in enumerate(node.output) if name}

    def _call(
        self,
        node: NodeProto,
        definition: Definition,
        inputs: Sequence[_Term | None],
        scope: _Names,
        depth: int,
    ) -> None:
        function = definition.proto
        inner: _Names = dict.fromkeys(function.input)
        inner |= dict(zip(function.input, inputs, strict=False))
        bindings = definition.bindings(node, self._bindings)
        walk = _Walk(self._terms, self._definitions, definition.opsets, bindings)
        walk.nodes(function.node, inner, depth)
        scope |= {
            name: inner.get(output)
            for name, output in zip(node.output, function.output, strict=False)
            if name
        }

    def _attribute(self, name: str, value: AttributeProto, scope: _Names, depth: int) -> tuple[Hashable, ...]:
        if is_graph(value):
            return name, *(self._body(graph, scope, depth + 1) for _, graph in graphs_of(value))
        plain = AttributeProto()
        plain.CopyFrom(value)
        for field in ("name", "doc_string", "ref_attr_name"):
            plain.ClearField(field)
        return name, bytes(plain.SerializeToString(deterministic=True))

    def _body(self, graph: GraphProto, around: Mapping[str | bytes, _Term | None], depth: int) -> _Term:
        scope = dict(around)
        for tensor in graph.initializer:
            plain = TensorProto()
            plain.CopyFrom(tensor)
            plain.ClearField("name")
            scope[tensor.name] = self._terms.number(("tensor", plain.SerializeToString(deterministic=True)))
        for sparse in graph.sparse_initializer:
            scope[sparse.values.name] = self._terms.number(
                ("sparse", sparse.SerializeToString(deterministic=True))
            )
        scope |= {info.name: self._terms.number(("input", depth, at)) for at, info in enumerate(graph.input)}
        self.nodes(graph.node, scope, depth)
        outputs = tuple([scope.get(info.name) for info in graph.output])
        return self._terms.number(("body", len(graph.input), outputs))


def _are_equal(before: ModelProto, after: ModelProto) -> bool:
    """Return whether two models compute their outputs from the same inputs by the same operators.

    A value that is missing in one model differs from every other value.
    """
    terms = _Terms()
    outputs = [terms.outputs(model) for model in (before, after)]
    is_known = None not in outputs[0]
    old, new = before.graph, after.graph
    interfaces = [
        (list(graph.input), list(graph.output), [text(x.name) for x in graph.initializer])
        for graph in (old, new)
    ]
    return is_known and outputs[0] == outputs[1] and interfaces[0] == interfaces[1]
