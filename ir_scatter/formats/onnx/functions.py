"""Uses of local functions: one graph for each signature that a function is called with."""

from collections import deque
from collections.abc import Hashable, Mapping
from dataclasses import replace
from math import prod

from ir_scatter.core.diagnostics import Location, Related
from ir_scatter.core.model import Function, Node, Value
from ir_scatter.core.tensors import Constant
from ir_scatter.formats.onnx.attributes import Bindings, bound
from ir_scatter.formats.onnx.definitions import Definition, Definitions
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.formats.onnx.index import function_key
from ir_scatter.formats.onnx.inference import Inference
from ir_scatter.formats.onnx.scope import Scope
from ir_scatter.formats.onnx.tensors import COMPARED
from ir_scatter.formats.onnx.types import text

INSTANCES = 64
"""Signatures of a function that get a graph of their own; the others share one."""

_Arguments = Mapping[str, Value | None]
_Pending = deque[tuple[Definition | None, OnnxGraph]]
_SHARED = "any signature"


class Instances:
    """Follows the calls of a model and makes the graphs that they need.

    Attributes:
        shared_calls: where the calls stand whose signature has no graph of its own.
    """

    def __init__(self, definitions: Definitions, shared: Scope, inference: Inference) -> None:
        self._definitions = definitions
        self._shared = shared
        self._inference = inference
        self._made: dict[Definition, dict[Hashable, OnnxGraph]] = {
            definition: {} for definition in definitions
        }
        self._callers: dict[OnnxGraph, dict[str, Related]] = {}
        self._contents: dict[Constant, Hashable] = {}
        self.shared_calls: set[str] = set()

    def functions(self, main: OnnxGraph) -> tuple[Function, ...]:
        """Return every function of the model, with the uses that start in the main graph.

        A function that is not used has one graph of unknown signature.
        """
        self._follow(deque([(None, main)]))
        for definition, made in self._made.items():
            if not made:
                self._follow(deque([(definition, self._shared_instance(definition))]))
        for graph, callers in self._callers.items():
            graph.calls = tuple(callers.values())
        return tuple(
            Function(definition.name, self._definition(definition), tuple(made.values()))
            for definition, made in self._made.items()
        )

    def _follow(self, pending: _Pending) -> None:
        while pending:
            caller, graph = pending.popleft()
            for call in graph.walk_calls():
                definition = self._called_by(call)
                if self._definitions.is_recursive(caller, definition):
                    continue
                known = len(self._made[definition])
                instance = self._instance(definition, call)
                scope = call.scope
                place = Related(f"called from {scope}", Location(self._shared.path, scope=scope))
                self._callers.setdefault(instance, {})[scope] = place
                if len(self._made[definition]) > known:
                    pending.append((definition, instance))

    def _called_by(self, call: Node) -> Definition:
        assert isinstance(call.graph, OnnxGraph)
        return self._definitions[function_key(call.graph.index.nodes[call.handle])]

    def _instance(self, definition: Definition, call: Node) -> OnnxGraph:
        """Return the graph of a call's signature."""
        made = self._made[definition]
        arguments = _arguments(definition, call)
        bindings = _bindings(definition, call)
        signature = (
            tuple(map(self._describe, arguments.values())),
            tuple(
                (name, bindings[name].SerializeToString(deterministic=True))
                for name in sorted(bindings, key=repr)
            ),
        )
        if signature in made:
            return made[signature]
        if len(made) - (_SHARED in made) >= INSTANCES:
            self.shared_calls.add(call.scope)
            return self._shared_instance(definition)
        made[signature] = self._make(definition, bindings, arguments)
        return made[signature]

    def _shared_instance(self, definition: Definition) -> OnnxGraph:
        made = self._made[definition]
        if _SHARED not in made:
            made[_SHARED] = self._make(definition, definition.defaults, _unknown(definition))
        return made[_SHARED]

    def _make(self, definition: Definition, bindings: Bindings, arguments: _Arguments) -> OnnxGraph:
        return OnnxGraph(
            definition.index,
            self._scope(definition, bindings),
            lambda: self._inference.instance(
                definition.index,
                definition.opsets,
                self._definitions,
                arguments,
                bindings,
            ),
            name=definition.name,
            scope=f"{definition.name}/",
            arguments=arguments,
        )

    def _definition(self, definition: Definition) -> OnnxGraph:
        return OnnxGraph(
            definition.index,
            self._scope(definition, definition.defaults),
            name=definition.name,
            scope=f"{definition.name}/",
            arguments=_unknown(definition),
        )

    def _scope(self, definition: Definition, bindings: Bindings) -> Scope:
        shared = self._shared
        return replace(shared, opsets=definition.opsets, bindings=bindings)

    def _describe(self, value: Value | None) -> Hashable:
        """Return what two calls must have in common in one argument."""
        if value is None:
            return None
        constant = value.constant
        if constant is not None and constant not in self._contents:
            self._contents[constant] = _contents(constant)
        content = self._contents[constant] if constant is not None else None
        return value.element_type, value.shape, content


def _contents(constant: Constant) -> Hashable:
    """Return the bytes of a small constant, and the constant itself for one that is not."""
    if prod(constant.shape) > COMPARED:
        return constant
    array = constant.load()
    if array is None:
        return constant
    return repr(array.tolist()) if array.dtype == object else array.tobytes()


def _arguments(definition: Definition, call: Node) -> dict[str, Value | None]:
    """Return the inputs of a function, seen from inside: None for one that is left out."""
    given = [
        _renamed(port.value, name) if port.is_present else None
        for port, name in zip(call.inputs, definition.index.inputs, strict=False)
    ]
    missing = len(definition.index.inputs) - len(given)
    return dict(zip(definition.index.inputs, [*given, *[None] * missing], strict=True))


def _renamed(value: Value | None, name: str) -> Value:
    """Return what is known of an argument, under the name that the function has for it."""
    if value is None:
        return Value(text(name), None, None)
    return Value(
        text(name),
        value.element_type,
        value.shape,
        constant=value.constant,
        location=value.location,
    )


def _unknown(definition: Definition) -> dict[str, Value | None]:
    return {name: Value(text(name), None, None) for name in definition.index.inputs}


def _bindings(definition: Definition, call: Node) -> Bindings:
    """Return the attributes of a call that its function asks for, or their defaults."""
    assert isinstance(call.graph, OnnxGraph)
    given = dict(bound(call.graph.index.nodes[call.handle], call.graph.shared.bindings))
    bindings = dict(definition.defaults)
    for name in (*definition.proto.attribute, *definition.defaults):
        if text(name) in given:
            bindings[name] = given[text(name)]
    return bindings
