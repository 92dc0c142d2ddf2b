"""Uses of local functions: one graph for each signature that a function is called with.

An attribute of a node in a function may be what each call gives (`axis = @axis`); what replaces such a
node is made for one value, and `attribute_is_kept` says whether it may stand for all calls.
"""

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import prod

import onnx
from onnx import AttributeProto

from ir_scatter.core.diagnostics import Location, Related
from ir_scatter.core.errors import NotEditable
from ir_scatter.core.fragment import NewNode
from ir_scatter.core.model import Function, Node, Value
from ir_scatter.core.tensors import Constant
from ir_scatter.formats.onnx.graph import OnnxGraph, Shared
from ir_scatter.formats.onnx.index import Bindings, Definition, bound, function_key, kind_of, text
from ir_scatter.formats.onnx.inference import NOTHING, Inference, Inferred

INSTANCES = 64
"""Signatures of a function that get a graph of their own; the others share one."""

_COMPARED = 4096
"""Elements of a constant up to which two calls of a function are compared by its contents."""

_LARGEST_OPSET = 2**31 - 1
"""onnx counts in 32 bits, what is written in a file has 64."""

_Arguments = Mapping[str, Value | None]
_SHARED = "any signature"


class Instances:
    """Follows the calls of a model and makes the graphs that they need.

    Attributes:
        shared_calls: where the calls stand whose signature has no graph of its own.
    """

    def __init__(self, shared: Shared, inference: Inference) -> None:
        self.shared_calls: set[str] = set()
        self._shared = shared
        self._inference = inference
        self._made: dict[Definition, dict[Hashable, OnnxGraph]] = {
            definition: {} for definition in inference.definitions.values()
        }
        self._callers: dict[OnnxGraph, dict[str, Related]] = {}
        self._contents: dict[Constant, Hashable] = {}

    def functions(self, main: OnnxGraph) -> tuple[Function, ...]:
        """Return every function of the model, with the uses that start in the main graph.

        A function that is not used has one graph of unknown signature.
        """
        self._follow(None, main)
        for definition, made in self._made.items():
            if not made:
                self._follow(definition, self._shared_instance(definition))
        for graph, callers in self._callers.items():
            graph.calls = tuple(callers.values())
        found = []
        for definition, made in self._made.items():
            written = self._graph(definition, definition.defaults, _unknown(definition), is_called=False)
            found.append(Function(definition.name, written, tuple(made.values())))
        return tuple(found)

    def _follow(self, definition: Definition | None, graph: OnnxGraph) -> None:
        pending = deque([(definition, graph)])
        while pending:
            caller, graph = pending.popleft()
            for call in graph.walk_calls():
                assert isinstance(call.graph, OnnxGraph)
                callee = self._inference.definitions[function_key(call.graph.index.nodes[call.handle])]
                if self._inference.definitions.is_recursive(caller, callee):
                    continue
                known = len(self._made[callee])
                instance = self._instance(callee, call, call.graph)
                place = Related(f"called from {call.scope}", Location(self._shared.path, scope=call.scope))
                self._callers.setdefault(instance, {})[call.scope] = place
                if len(self._made[callee]) > known:
                    pending.append((callee, instance))

    def _instance(self, definition: Definition, call: Node, graph: OnnxGraph) -> OnnxGraph:
        """Return the graph of a call's signature."""
        made, arguments = self._made[definition], _arguments(definition, call)
        given = dict(bound(graph.index.nodes[call.handle], graph.shared.bindings))
        bindings = dict(definition.defaults)
        for name in (*definition.proto.attribute, *definition.defaults):
            if text(name) in given:
                bindings[name] = given[text(name)]
        names = sorted(bindings, key=repr)
        signature = (
            tuple(map(self._describe, arguments.values())),
            tuple([(name, bindings[name].SerializeToString(deterministic=True)) for name in names]),
        )
        if signature in made:
            return made[signature]
        if len(made) - (_SHARED in made) >= INSTANCES:
            self.shared_calls.add(call.scope)
            return self._shared_instance(definition)
        made[signature] = self._graph(definition, bindings, arguments)
        return made[signature]

    def _shared_instance(self, definition: Definition) -> OnnxGraph:
        made = self._made[definition]
        if _SHARED not in made:
            made[_SHARED] = self._graph(definition, definition.defaults, _unknown(definition))
        return made[_SHARED]

    def _graph(
        self, definition: Definition, bindings: Bindings, arguments: _Arguments, *, is_called: bool = True
    ) -> OnnxGraph:
        def infer() -> Inferred:
            return self._inference.instance(definition, arguments, bindings) if is_called else NOTHING

        shared = replace(self._shared, opsets=definition.opsets, bindings=bindings)
        name = definition.name
        return OnnxGraph(definition.index, shared, infer, name=name, scope=f"{name}/", arguments=arguments)

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
    array = constant.load() if prod(constant.shape) <= _COMPARED else None
    if array is None:
        return constant
    return repr(array.tolist()) if array.dtype == object else array.tobytes()


def _arguments(definition: Definition, call: Node) -> dict[str, Value | None]:
    """Return the inputs of a function under the names that it has for them; None for one left out."""
    found: dict[str, Value | None] = dict.fromkeys(definition.index.inputs)
    for name, port in zip(definition.index.inputs, call.inputs, strict=False):
        value = port.value
        if value is not None:
            known = (value.element_type, value.shape)
            found[name] = Value(text(name), *known, constant=value.constant, location=value.location)
        elif port.is_present:
            found[name] = Value(text(name), None, None)
    return found


def _unknown(definition: Definition) -> dict[str, Value | None]:
    return {name: Value(text(name), None, None) for name in definition.index.inputs}


# Attributes that calls give


def attribute_references(node: Node) -> dict[str, str]:
    """Return what each call of a function gives a node, "@axis" by the name of the attribute."""
    assert isinstance(node.graph, OnnxGraph)
    written = node.graph.index.nodes[node.handle].attribute
    return {text(one.name): f"@{text(one.ref_attr_name)}" for one in written if one.ref_attr_name}


def attribute_is_kept(
    reference: AttributeProto,
    node: Node,
    uses: Sequence[OnnxGraph],
    result: NewNode,
    written: AttributeProto | None,
    *,
    is_alone: bool,
) -> bool:
    """Tell whether a node's attribute that calls give remains one of the node that replaces it.

    Args:
        reference: the attribute.
        node: the node that is replaced.
        uses: the graphs of the function.
        result: the node that replaces it.
        written: the result's attribute of that name.
        is_alone: whether nothing else replaces the node.

    Raises:
        NotEditable: the value matters, and calls may give another one than was seen.
    """
    assert isinstance(node.graph, OnnxGraph)
    name, asked = text(reference.name), reference.ref_attr_name
    given = node.graph.shared.bindings.get(asked)
    before = given or _default(node.domain, node.type, node.opset, name)
    after = written or _default(result.domain, result.type, result.opset, name)
    is_equal = before is not None and after is not None and content(before) == content(after)
    if is_equal and is_alone:
        return True
    seen = content(given)
    if len(uses) > INSTANCES or any(content(use.shared.bindings.get(asked)) != seen for use in uses):
        raise NotEditable(
            f"{node.scope}: {name!r} is what each call of the function gives as {text(asked)!r}, "
            f"expected the same value in all calls, as {result.type} is written for one value"
        )
    return is_equal and given is not None and written is not None


def content(attribute: AttributeProto | None) -> bytes | None:
    """Return what an attribute holds, whatever it is called and whatever later versions know of it."""
    if attribute is None:
        return None
    copy = AttributeProto()
    copy.CopyFrom(attribute)
    copy.DiscardUnknownFields()
    copy.type = kind_of(attribute)  # type: ignore[assignment]  # an int is one
    for field in ("name", "doc_string", "ref_attr_name"):
        copy.ClearField(field)
    return bytes(copy.SerializeToString(deterministic=True))


@cache
def _default(domain: str, type: str, opset: str | int | None, name: str) -> AttributeProto | None:
    """Return what an attribute is where it is not written; None if it has no such value."""
    if not isinstance(opset, int) or not 0 < opset <= _LARGEST_OPSET:
        return None
    try:
        schema = onnx.defs.get_schema(type, opset, domain)
    except onnx.defs.SchemaError:
        return None
    default = schema.attributes[name].default_value if name in schema.attributes else None
    return default if default is not None and default.type else None
