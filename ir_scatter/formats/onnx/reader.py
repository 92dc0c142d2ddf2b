"""Reads ONNX files into a Model. A local function gets one graph for each signature of its calls.

A signature consists of the inputs' element types, shapes and constant contents, and the attributes.
"""

import sys
from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from math import prod

from onnx import ModelProto

from ir_scatter.core.diagnostics import Location, Related
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.graph_walk import follow
from ir_scatter.core.model import ONNX, FileDefect, Function, Model, Node, Value
from ir_scatter.core.shapes import is_static
from ir_scatter.core.tensors import Constant
from ir_scatter.formats.base import ONNX_FORMAT, ReadOptions
from ir_scatter.formats.onnx.checks import find_defects, function_defects
from ir_scatter.formats.onnx.graph import OnnxGraph, Shared
from ir_scatter.formats.onnx.index import (
    Bindings,
    Definition,
    Definitions,
    GraphIndex,
    bound,
    function_key,
    opsets_of,
    text,
)
from ir_scatter.formats.onnx.inference import Inference
from ir_scatter.formats.onnx.operators import misuses, suspects
from ir_scatter.formats.onnx.tensors import Tensors

INSTANCES = 1024
"""Limit of signatures of a function that get their own graph. The remaining calls share one graph."""

_OF_SHAPES = frozenset({"Shape", "Size"})
"""Operators whose output depends only on the shape of the input."""

_MOST_COMPARED_ELEMENTS = 4096
"""Limit of elements of constants that are compared by content in signatures; larger ones by identity."""

_SHARED = "any signature"


def read(path: str, data: bytes, options: ReadOptions) -> Model:
    """Read an ONNX model. External data is read on the first access to a constant.

    Shapes are inferred only if the model has a node of a type in `options.types`.

    Raises:
        UnreadableModel: the data is not a protobuf message, or has no graph.
    """
    proto = _parse(path, data)
    definitions = Definitions(proto)
    index = GraphIndex(proto.graph, definitions)
    opsets = opsets_of(proto.opset_import)
    tensors = Tensors(path, has_folder=options.has_folder)
    shared = Shared(path, options, tensors, proto.ir_version, opsets, definitions)
    every = [index, *(definition.index for definition in definitions.values())]
    is_needed = options.types is None or any(index.has_any(options.types) for index in every)
    inference = Inference(definitions, proto.ir_version, is_wanted=is_needed)
    infer = partial(inference.infer, index, opsets, input_shapes=options.input_shapes)
    graph = OnnxGraph(index, shared, infer, name=text(proto.graph.name))
    instances = _Instances(shared, inference)
    functions = instances.functions(graph)
    names = [text(name) for name in index.inputs if name not in index.initializers]
    return Model(
        path=path,
        format=ONNX_FORMAT,
        domain=ONNX,
        graph=graph,
        functions=functions,
        inputs=tuple(frozenset({name}) for name in names),
        opset_imports={text(domain): version for domain, version in opsets.items()},
        find_defects=partial(_defects, graph, functions),
        find_limits=partial(_limits, path, instances, inference),
        find_feeding=lambda _: suspects(graph, functions),
        source=proto,
    )


def _parse(path: str, data: bytes) -> ModelProto:
    location = Location(path)
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except Exception:
        # DecodeError; older versions of protobuf raise other errors for text that is not UTF-8.
        message = "the file is not a complete protobuf message: expected an ONNX model"
        raise UnreadableModel("malformed-protobuf", message, location) from None
    if model.HasField("graph"):
        return model
    if not model.ListFields():
        message = "the file has none of the fields of an ONNX model"
        raise UnreadableModel("malformed-protobuf", message, location)
    raise UnreadableModel("no-graph", "the model has no graph, expected one", location)


class _Instances:
    def __init__(self, shared: Shared, inference: Inference) -> None:
        self.shared_calls: set[str] = set()  # scopes of calls whose signature has no graph of its own
        self._shared = shared
        self._inference = inference
        definitions = shared.definitions.values()
        self._graphs: dict[Definition, dict[Hashable, OnnxGraph]] = {function: {} for function in definitions}
        self._callers: dict[OnnxGraph, dict[str, Related]] = {}
        self._contents = _Contents()

    def functions(self, main: OnnxGraph) -> tuple[Function, ...]:
        """Return every function, with the graphs for its calls that are reachable from the main graph.

        A function without such a call has one graph with unknown inputs.
        """
        self._follow(None, main)
        for definition, graphs in self._graphs.items():
            if not graphs:
                self._follow(definition, self._shared_instance(definition))
        for graph, callers in self._callers.items():
            graph.calls = tuple(callers.values())
        return tuple(
            Function(function.name, self._graph(function, function.defaults, None), tuple(graphs.values()))
            for function, graphs in self._graphs.items()
        )

    def _follow(self, definition: Definition | None, graph: OnnxGraph) -> None:
        definitions, pending = self._shared.definitions, deque([(definition, graph)])
        while pending:
            caller, graph = pending.popleft()
            for call in graph.walk_calls():
                assert isinstance(call.graph, OnnxGraph)
                callee = definitions[function_key(call.graph.index.nodes[call.handle])]
                if definitions.is_recursive(caller, callee):
                    continue
                count = len(self._graphs[callee])
                instance = self._instance(callee, call, call.graph)
                place = Related(f"called from {call.scope}", Location(self._shared.path, scope=call.scope))
                self._callers.setdefault(instance, {})[call.scope] = place
                if len(self._graphs[callee]) > count:
                    pending.append((callee, instance))

    def _instance(self, definition: Definition, call: Node, graph: OnnxGraph) -> OnnxGraph:
        """Return the graph for the signature of a call."""
        graphs, arguments = self._graphs[definition], self._arguments(definition, call)
        bindings = definition.bindings(graph.index.nodes[call.handle], graph.shared.bindings)
        values = [
            value and (value.element_type, value.shape, self._contents.of(value))
            for value in arguments.values()
        ]
        signature = (tuple(values), _serialize(bindings))
        if signature in graphs:
            return graphs[signature]
        if len(graphs) - (_SHARED in graphs) >= INSTANCES:
            self.shared_calls.add(call.scope)
            return self._shared_instance(definition)
        graphs[signature] = self._graph(definition, bindings, arguments)
        return graphs[signature]

    def _arguments(self, definition: Definition, call: Node) -> dict[str, Value | None]:
        """Return the inputs of a call, by the function's names for them; None for a missing one.

        Inputs that depend only on constants keep their producer, so that they can be computed.
        """
        arguments: dict[str, Value | None] = dict.fromkeys(definition.index.inputs)
        for name, port in zip(definition.index.inputs, call.inputs, strict=False):
            value = port.value
            if value is not None:
                is_computed = value.constant is None and self._contents.of(value) is not None
                producer = value.producer if is_computed else None
                facts = (value.element_type, value.shape, producer, value.output)
                arguments[name] = Value(text(name), *facts, value.constant, value.location)
            elif port.is_present:
                arguments[name] = Value(text(name), None, None)
        return arguments

    def _shared_instance(self, definition: Definition) -> OnnxGraph:
        graphs = self._graphs[definition]
        if _SHARED not in graphs:
            graphs[_SHARED] = self._graph(definition, definition.defaults, _unknown(definition))
        return graphs[_SHARED]

    def _graph(
        self, definition: Definition, bindings: Bindings, arguments: Mapping[str, Value | None] | None
    ) -> OnnxGraph:
        """Return a graph of a function for some inputs and attributes.

        If `arguments` is None, it is the graph of the definition, without inferred types.
        """
        index, opsets, name = definition.index, definition.opsets, definition.name
        shared = replace(self._shared, opsets=opsets, bindings=bindings, is_function=True)
        infer = partial(self._inference.infer, index, opsets, arguments=arguments, bindings=bindings)
        if arguments is None:
            return OnnxGraph(index, shared, name=name, scope=f"{name}/", arguments=_unknown(definition))
        return OnnxGraph(index, shared, infer, name=name, scope=f"{name}/", arguments=arguments)


class _Contents:
    """Numbers the contents of values that depend only on constants, without computing them.

    Equal numbers mean equal contents: the same operators were applied to the same constants.
    """

    def __init__(self) -> None:
        self._of: dict[Value, int | None] = {}
        self._numbers: dict[Hashable, int] = {}

    def of(self, value: Value) -> int | None:
        """Return a number that identifies the contents of a value; None if it depends on model inputs."""
        if value not in self._of:
            follow(value, self._of, self._sources, self._number, sys.maxsize)
        return self._of[value]

    def _sources(self, value: Value) -> list[Value]:
        node = _operator(value)
        if node is None or node.type in _OF_SHAPES:
            return []
        return [port.value for port in node.inputs if port.value is not None]

    def _number(self, value: Value) -> int | None:
        node, key = _operator(value), None if value.constant is None else _key(value.constant)
        if node is not None and node.type in _OF_SHAPES:
            shape = node.inputs[0].value.shape if node.inputs and node.inputs[0].value else None
            key = (node.type, _attributes(node), shape) if is_static(shape) else None
        elif node is not None and all(port.value or not port.is_present for port in node.inputs):
            inputs = tuple([port.value and self._of.get(port.value) for port in node.inputs])
            key = (node.type, node.opset, _attributes(node), inputs, value.output) if inputs else None
        return None if key is None else self._numbers.setdefault(key, len(self._numbers))


def _operator(value: Value) -> Node | None:
    """Return the node that computes a value; None for a constant, another domain, or a node with bodies."""
    node = value.producer if value.constant is None else None
    return None if node is None or node.domain or node.bodies else node


def _attributes(node: Node) -> Hashable:
    assert isinstance(node.graph, OnnxGraph)
    return _serialize(dict(bound(node.graph.index.nodes[node.handle], node.graph.shared.bindings)))


def _serialize(attributes: Bindings) -> Hashable:
    pairs = [(name, attributes[name]) for name in sorted(attributes, key=repr)]
    return tuple([(name, value.SerializeToString(deterministic=True)) for name, value in pairs])


def _key(constant: Constant) -> Hashable:
    array = constant.load() if prod(constant.shape) <= _MOST_COMPARED_ELEMENTS else None
    if array is None:
        return constant
    contents = repr(array.tolist()) if array.dtype == object else array.tobytes()
    return contents, constant.element_type, constant.shape


def _unknown(definition: Definition) -> dict[str, Value | None]:
    return {name: Value(text(name), None, None) for name in definition.index.inputs}


def _limits(path: str, instances: _Instances, inference: Inference) -> Iterator[FileDefect]:
    """Yield a note for each limit that was reached: number of signatures, time of inference."""
    location = Location(path)
    if instances.shared_calls:
        count = len(instances.shared_calls)
        calls = "1 call of a function is" if count == 1 else f"{count} calls of functions are"
        reason = f"a function is called with more than {INSTANCES} combinations of inputs and attributes"
        yield FileDefect("not-looked-at", f"{calls} not checked individually: {reason}", location)
    if inference.cut_short:
        graphs = f"{inference.cut_short} of {inference.count} graphs and function calls"
        message = f"shapes in {graphs} are unknown: inferring them takes too long for a file of this size"
        yield FileDefect("not-looked-at", message, location)


def _defects(graph: OnnxGraph, functions: tuple[Function, ...]) -> Iterator[FileDefect]:
    yield from find_defects(graph)
    for function in functions:
        assert isinstance(function.definition, OnnxGraph)
        yield from find_defects(function.definition)
    yield from function_defects(graph.shared.definitions, graph.shared.path)
    yield from misuses(graph, functions)
    yield from graph.shared.tensors.defects()
