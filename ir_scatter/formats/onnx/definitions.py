"""The local functions of an ONNX model as they are written, and which calls which."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from onnx import AttributeProto, FunctionProto, ModelProto, OperatorSetIdProto

from ir_scatter.formats.cycles import find_cycles
from ir_scatter.formats.onnx.index import (
    FunctionKey,
    GraphIndex,
    function_key,
    index_function,
)
from ir_scatter.formats.onnx.tensors import is_small_and_sound
from ir_scatter.formats.onnx.types import normal_domain, text

EXPANDED_NODES = 20_000
_EXPANDED_PER_NODE = 100
"""Inference walks a function anew for every call: above this, and above so many for each node that is
written, functions are left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """A function as it is written.

    Attributes:
        key: what a call names.
        proto: the message.
        index: its nodes.
        opsets: its versions by domain.
        defaults: the attributes that need not be given.
        callees: the functions that its nodes call, one entry per call.
    """

    key: FunctionKey
    proto: FunctionProto
    index: GraphIndex
    opsets: Mapping[str, int]
    defaults: Mapping[str, AttributeProto]
    callees: tuple[FunctionKey, ...]

    @property
    def name(self) -> str:
        """Return "domain::name:overload", each part only if it is there."""
        domain, name, overload = map(text, self.key)
        return f"{domain}::{name}"[0 if domain else 2 :] + (f":{overload}" if overload else "")

    @property
    def size(self) -> int:
        """Return the nodes, those of bodies included."""
        return sum(len(graph.nodes) for graph in self.index.all_graphs())


class Definitions:
    """All functions of a model.

    Attributes:
        cycles: groups of functions that call each other.
        duplicates: names that more than one function has.
        left_out: for how many graphs the functions that they call were too many.
    """

    def __init__(self, model: ModelProto) -> None:
        self.keys = frozenset(map(function_key, model.functions))
        self.duplicates: list[str] = []
        self.left_out = 0
        self._by_key: dict[FunctionKey, Definition] = {}
        for function in model.functions:
            definition = _define(function, self.keys)
            if definition.key in self._by_key:
                self.duplicates.append(definition.name)
            else:
                self._by_key[definition.key] = definition
        callees = {key: definition.callees for key, definition in self._by_key.items()}
        self.cycles = [[self._by_key[key] for key in keys] for keys in find_cycles(callees)]
        self._group = {
            definition.key: number for number, group in enumerate(self.cycles) for definition in group
        }
        self._prepared: dict[FunctionKey, FunctionProto] = {}

    def __iter__(self) -> Iterator[Definition]:
        return iter(self._by_key.values())

    def __getitem__(self, key: FunctionKey) -> Definition:
        return self._by_key[key]

    def is_recursive(self, caller: Definition | None, callee: Definition) -> bool:
        """Tell whether a call leads back to the function that makes it."""
        group = self._group.get(callee.key)
        return caller is not None and group is not None and group == self._group.get(caller.key)

    def needed_by(self, index: GraphIndex) -> list[FunctionProto]:
        """Return what inference needs of the functions that a graph calls, directly or not.

        Recursive ones are left out, and all if so many calls in calls would keep it busy for long.
        """
        called = calls_of(index)
        sizes: dict[FunctionKey, int] = {}
        pending = [key for key in called if key not in self._group]
        while pending:
            definition = self._by_key[pending[-1]]
            callees = [key for key in definition.callees if key not in self._group]
            unknown = [key for key in callees if key not in sizes]
            if unknown:
                pending.extend(unknown)
            else:
                sizes[definition.key] = definition.size + sum(sizes[key] for key in callees)
                pending.pop()
        written = sum(len(graph.nodes) for graph in index.all_graphs())
        written += sum(self._by_key[key].size for key in sizes)
        if sum(sizes.get(key, 0) for key in called) > max(EXPANDED_NODES, _EXPANDED_PER_NODE * written):
            self.left_out += 1
            return []
        return [self._prepare(self._by_key[key]) for key in self._by_key if key in sizes]

    def _prepare(self, definition: Definition) -> FunctionProto:
        if definition.key not in self._prepared:
            self._prepared[definition.key] = _without_traps(definition)
        return self._prepared[definition.key]


def calls_of(index: GraphIndex) -> tuple[FunctionKey, ...]:
    """Return what the nodes of a graph and of its bodies call, one entry per call."""
    return tuple(
        function_key(graph.nodes[position]) for graph in index.all_graphs() for position in graph.calls
    )


def opsets_of(imports: "Iterator[OperatorSetIdProto] | list[OperatorSetIdProto]") -> dict[str, int]:
    """Return the versions by domain; both spellings of the default domain are ""."""
    return {normal_domain(entry.domain): entry.version for entry in imports}


def _define(function: FunctionProto, keys: frozenset[FunctionKey]) -> Definition:
    index = index_function(function, keys)
    return Definition(
        function_key(function),
        function,
        index,
        opsets_of(list(function.opset_import)),
        {attribute.name: attribute for attribute in function.attribute_proto},
        calls_of(index),
    )


def _without_traps(definition: Definition) -> FunctionProto:
    """Return a function that inference can read: each domain imported, no large constants."""
    index = definition.index
    large = [at for at, tensor in index.tensors.items() if not is_small_and_sound(tensor)]
    domains = set().union(*(graph.domains for graph in index.all_graphs()))
    copy = FunctionProto()
    copy.CopyFrom(definition.proto)
    del copy.opset_import[:]
    for domain in sorted({*definition.opsets, *domains}, key=repr):
        version = definition.opsets.get(normal_domain(domain), 1)
        copy.opset_import.add(domain=domain, version=version)
    for position in large:
        del copy.node[position].attribute[:]
    if "ai.onnx" in index.domains:
        for node in copy.node:
            node.domain = "" if node.domain == "ai.onnx" else node.domain
    return copy
