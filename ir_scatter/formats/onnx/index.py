"""What an ONNX file says, by names and positions: one walk over each graph and each function.

Names are those of the file, which protobuf gives as bytes where they are not UTF-8; they serve as
keys all the same, and `text` makes them printable.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple, TypeAlias, TypeVar

import onnx
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    SparseTensorProto,
    TensorProto,
    ValueInfoProto,
)
from onnx.defs import OpSchema

from ir_scatter.formats.cycles import find_cycles

ONLY_CONSTANTS = 4
"""The first IR version whose initializers need not be inputs."""

_LARGEST_OPSET = (1 << 31) - 1

_Key = TypeVar("_Key")
_Declaration = TypeVar("_Declaration")

FunctionKey = tuple[str, str, str]
"""Domain, name, overload."""

Named: TypeAlias = "int | tuple[bool, ...]"
"""How many inputs or outputs a node has; where names are left out, which ones it has."""


class Usage(NamedTuple):
    """What a node is but for names and numbers; `attributes` have a name, a type, and whether they are set.

    An attribute is set by the field that its type names, or by an attribute of the function around it; one
    without a type is not.
    """

    domain: str
    type: str
    inputs: Named
    outputs: Named
    attributes: tuple[tuple[str, int, bool], ...]


Bindings = Mapping[str, AttributeProto]
"""What a call gives for the attributes of a function, by name."""

DEFAULT_DOMAINS = frozenset({"", "ai.onnx"})
FIELDS: Mapping[int, str] = {
    AttributeProto.FLOAT: "f", AttributeProto.INT: "i", AttributeProto.STRING: "s",
    AttributeProto.TENSOR: "t", AttributeProto.GRAPH: "g", AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints", AttributeProto.STRINGS: "strings", AttributeProto.TENSORS: "tensors",
    AttributeProto.GRAPHS: "graphs",
}  # fmt: skip
"""By the type of an attribute, the field that holds it."""

_SINGLE = {kind: field for kind, field in FIELDS.items() if not field.endswith("s") or field == "s"}

_CONSTANTS = {
    "value": ("t", 0, ""),
    "value_int": ("i", TensorProto.INT64, "int64_data"),
    "value_ints": ("ints", TensorProto.INT64, "int64_data"),
    "value_float": ("f", TensorProto.FLOAT, "float_data"),
    "value_floats": ("floats", TensorProto.FLOAT, "float_data"),
    "value_string": ("s", TensorProto.STRING, "string_data"),
    "value_strings": ("strings", TensorProto.STRING, "string_data"),
}
"""Attributes of a Constant: the field that holds them, and the type and the field of the tensor they mean."""


def text(name: str | bytes) -> str:
    """Return a name that can be printed: protobuf hands out bytes where it is not UTF-8."""
    return name if isinstance(name, str) else name.decode("utf-8", errors="backslashreplace")


def normal_domain(domain: str) -> str:
    return "" if domain in DEFAULT_DOMAINS else domain


def kind_of(attribute: AttributeProto) -> int:
    """Return the type of an attribute; files of IR versions 1 and 2 set a field and do not write it."""
    if attribute.type:
        return attribute.type
    written = {field.name for field, _ in attribute.ListFields()}
    return next((kind for kind, field in FIELDS.items() if field in written), AttributeProto.UNDEFINED)


def is_graph(attribute: AttributeProto) -> bool:
    return kind_of(attribute) in (AttributeProto.GRAPH, AttributeProto.GRAPHS)


def graphs_of(attribute: AttributeProto) -> Iterator[tuple[str, GraphProto]]:
    name = text(attribute.name)
    if attribute.HasField("g"):
        yield name, attribute.g
    for number, graph in enumerate(attribute.graphs):
        yield f"{name}[{number}]", graph


def constant_tensor(name: str, attribute: AttributeProto) -> TensorProto | None:
    """Return the tensor that an attribute of a Constant stands for; None for any other, and a sparse one."""
    field, data_type, target = _CONSTANTS.get(name, ("", 0, ""))
    if FIELDS.get(kind_of(attribute)) != field:
        return None
    value = getattr(attribute, field)
    if isinstance(value, TensorProto):
        return value
    is_list = name.endswith("s")
    tensor = TensorProto(data_type=data_type, dims=[len(value)] if is_list else [])
    getattr(tensor, target).extend(value if is_list else [value])
    return tensor


def is_sparse_value(name: str, attribute: AttributeProto) -> bool:
    """Tell whether an attribute of a Constant is a sparse tensor."""
    return name == "sparse_value" and kind_of(attribute) == AttributeProto.SPARSE_TENSOR


def bound(node: NodeProto, bindings: Bindings) -> list[tuple[str, AttributeProto]]:
    """Return a node's attributes by name; one that the call does not give is left out."""
    found = []
    for attribute in node.attribute:
        reference = attribute.ref_attr_name
        value = bindings.get(reference) if reference else attribute
        if value is not None:
            found.append((text(attribute.name), value))
    return found


def function_key(proto: NodeProto | FunctionProto) -> FunctionKey:
    name = proto.op_type if isinstance(proto, NodeProto) else proto.name
    return normal_domain(proto.domain), name, proto.overload


def schema_of(domain: str, type: str, opsets: Mapping[str, int]) -> OpSchema | None:
    """Return what onnx documents of an operator in the opset of its domain, 1 if none is imported."""
    known = normal_domain(domain)
    return _schema(text(known), text(type), min(opsets.get(known, 1), _LARGEST_OPSET))


@lru_cache(1 << 12)
def _schema(domain: str, type: str, opset: int) -> OpSchema | None:
    is_known = opset > 0 and onnx.defs.has(type, opset, domain)
    return onnx.defs.get_schema(type, opset, domain) if is_known else None


def opsets_of(imports: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    """Return the versions by domain; both spellings of the default domain are ""."""
    return {normal_domain(entry.domain): entry.version for entry in imports}


class GraphIndex:
    """A graph, or the definition of a function, by the names and the positions of its nodes.

    Attributes:
        name: as written.
        inputs: a function's have no declaration.
        stored: what value_info and outputs declare.
        duplicates: names that something else in the graph has already, and the position of the
            node that repeats it (None: an input or initializer).
        producers: by name, the position of the node and the number of its output.
        by_type: the nodes of the default domain.
        usages: the nodes that differ in names and numbers only.
        calls: the nodes that call a function of the model.
        tensors: what Constant nodes hold.
        sparse: sparse tensors by node and attribute, those of Constant nodes included.
        attributes: other tensors that nodes hold, by position and name.
        early: uses before the node that produces the name.
        missing: uses of names that the graph does not have.
        captured: what the graph, or a body in it, takes from outside.
    """

    def __init__(self, proto: GraphProto | FunctionProto, functions: Container[FunctionKey] = ()) -> None:
        self.name = proto.name
        self.nodes = list(proto.node)
        self.duplicates: list[tuple[str, int | None]] = []
        self.stored = {one.name: one for one in proto.value_info}
        self.inputs: dict[str, ValueInfoProto | None] = {}
        self.initializers: dict[str, TensorProto] = {}
        self.sparse_initializers: dict[str, SparseTensorProto] = {}
        if isinstance(proto, FunctionProto):
            self.outputs = list(proto.output)
            self._declare(self.inputs, [(name, None) for name in proto.input])
        else:
            self.outputs = [one.name for one in proto.output]
            self._declare(self.inputs, [(one.name, one) for one in proto.input])
            self._declare(self.initializers, [(one.name, one) for one in proto.initializer])
            sparse = [(one.values.name, one) for one in proto.sparse_initializer]
            self._declare(self.sparse_initializers, sparse)
            declared = [one for one in proto.output if one.name not in self.inputs and one.HasField("type")]
            last = {one.name: one for one in declared}
            self.duplicates += [(one.name, None) for one in declared if one.type != last[one.name].type]
            self.stored.update(last)
        self.producers: dict[str, tuple[int, int]] = {}
        self.by_type: dict[str, list[int]] = {}
        usages: dict[tuple[Any, ...], list[int]] = {}
        self.domains = {node.domain for node in self.nodes}
        self.bodies: dict[int, dict[str, GraphIndex]] = {}
        self.calls: list[int] = []
        self.tensors: dict[int, TensorProto] = {}
        self.sparse: dict[tuple[int, str], SparseTensorProto] = {}
        self.attributes: dict[tuple[int, str], TensorProto] = {}
        uses: list[tuple[int, str]] = []
        seen = {"", *self.inputs, *self.initializers, *self.sparse_initializers}
        for position, node in enumerate(self.nodes):
            domain, operator, inputs, outputs = node.domain, node.op_type, node.input[:], node.output[:]
            type = operator if domain in DEFAULT_DOMAINS else None
            if type is not None:
                self.by_type.setdefault(type, []).append(position)
            if functions and function_key(node) in functions:
                self.calls.append(position)
            attributes = []
            for attribute in node.attribute:
                kind, is_reference = attribute.type, bool(attribute.ref_attr_name)
                field = _SINGLE.get(kind)
                is_set = is_reference or (attribute.HasField(field) if field else kind != 0)
                attributes.append((attribute.name, kind, is_set))
                if is_reference:
                    continue
                if is_graph(attribute):
                    for name, graph in graphs_of(attribute):
                        self.bodies.setdefault(position, {})[name] = GraphIndex(graph, functions)
                elif type == "Constant":
                    tensor = constant_tensor(attribute.name, attribute)
                    if tensor is not None:
                        self.tensors[position] = tensor
                elif kind == AttributeProto.TENSOR:
                    self.attributes[position, text(attribute.name)] = attribute.t
                if kind == AttributeProto.SPARSE_TENSOR:
                    self.sparse[position, text(attribute.name)] = attribute.sparse_tensor
            named = _named(inputs), _named(outputs)
            usages.setdefault((domain, operator, *named, tuple(attributes)), []).append(position)
            uses.extend([(position, name) for name in inputs if name not in seen])
            for body in self.bodies.get(position, {}).values():
                uses.extend((position, name) for name in sorted(body.captured - seen, key=repr))
            for number, name in enumerate(outputs):
                if name and name in seen:
                    self.duplicates.append((name, position))
                elif name:
                    self.producers[name] = (position, number)
                    seen.add(name)
        self.usages = {Usage(*key): positions for key, positions in usages.items()}
        self.early = [use for use in uses if use[1] in self.producers]
        self.missing = [use for use in uses if use[1] not in self.producers]
        self.captured: set[str] = {name for _, name in self.missing} | (set(self.outputs) - seen)

    def _declare(self, table: dict[str, _Declaration], declared: Iterable[tuple[str, _Declaration]]) -> None:
        for name, declaration in declared:
            if name in table:
                self.duplicates.append((name, None))
            else:
                table[name] = declaration

    def all_graphs(self) -> Iterator["GraphIndex"]:
        yield self
        for bodies in self.bodies.values():
            for body in bodies.values():
                yield from body.all_graphs()

    def has_any(self, types: frozenset[str]) -> bool:
        return any(not types.isdisjoint(graph.by_type) for graph in self.all_graphs())

    def called(self) -> tuple[FunctionKey, ...]:
        """Return the functions that the nodes call, those of bodies too, one entry for each call."""
        return tuple(function_key(graph.nodes[at]) for graph in self.all_graphs() for at in graph.calls)

    def predecessors(self) -> dict[int, set[int]]:
        found = {}
        for position, node in enumerate(self.nodes):
            names = set(node.input)
            for body in self.bodies.get(position, {}).values():
                names |= body.captured
            found[position] = {self.producers[name][0] for name in names if name in self.producers}
        return found

    def sorted_positions(self) -> Sequence[int]:
        """Return the nodes, producers first; nodes on a cycle, and what needs them, come last."""
        every = range(len(self.nodes))
        return [*dict.fromkeys([*_sources_first(self.predecessors()), *every])] if self.early else every


def _named(names: list[str]) -> Named:
    return len(names) if "" not in names else tuple(map(bool, names))


def _sources_first(predecessors: Mapping[_Key, Collection[_Key]]) -> list[_Key]:
    """Return the keys in topological order, without those on cycles and what needs these."""
    sorter, order = TopologicalSorter(predecessors), list[_Key]()
    with suppress(CycleError):
        sorter.prepare()
    while ready := sorter.get_ready():
        order += ready
        sorter.done(*ready)
    return order


class Definition:
    """A function as it is written; `defaults` are the attributes that need not be given."""

    def __init__(self, proto: FunctionProto, functions: Container[FunctionKey]) -> None:
        self.key = function_key(proto)
        self.proto = proto
        self.index = GraphIndex(proto, functions)
        self.opsets: Mapping[str, int] = opsets_of(proto.opset_import)
        self.defaults: Bindings = {attribute.name: attribute for attribute in proto.attribute_proto}

    def bindings(self, call: NodeProto, around: Bindings) -> Bindings:
        """Return the attributes as a call gives them that stands in a function with those `around` it."""
        known = {*self.proto.attribute, *self.defaults}
        return {**self.defaults, **{name: value for name, value in bound(call, around) if name in known}}

    @property
    def name(self) -> str:
        """Return "domain::name:overload", each part only if it is there."""
        domain, name, overload = map(text, self.key)
        return f"{domain}::{name}"[0 if domain else 2 :] + (f":{overload}" if overload else "")


class Definitions(dict[FunctionKey, Definition]):
    """All functions of a model, by key.

    Attributes:
        duplicates: names that more than one function has.
        cycles: groups of functions that call each other.
    """

    def __init__(self, model: ModelProto) -> None:
        super().__init__()
        keys = frozenset(map(function_key, model.functions))
        self.duplicates: list[str] = []
        for function in model.functions:
            definition = Definition(function, keys)
            if self.setdefault(definition.key, definition) is not definition:
                self.duplicates.append(definition.name)
        self._callees = {key: definition.index.called() for key, definition in self.items()}
        self.cycles = [[self[key] for key in keys] for keys in find_cycles(self._callees)]
        self._group = {one.key: number for number, group in enumerate(self.cycles) for one in group}

    def is_recursive(self, caller: Definition | None, callee: Definition) -> bool:
        """Tell whether a call leads back to the function that makes it."""
        group = self._group.get(callee.key)
        return caller is not None and group is not None and group == self._group.get(caller.key)

    def needed_by(self, index: GraphIndex) -> list[Definition]:
        """Return the functions that a graph calls, directly or not, without those that call each other."""
        needed, pending = set[FunctionKey](), [*index.called()]
        while pending:
            key = pending.pop()
            if key not in needed and key not in self._group:
                needed.add(key)
                pending += self._callees[key]
        return [definition for key, definition in self.items() if key in needed]

    def count_calls(self, index: GraphIndex) -> int:
        """Return how often functions are called, the calls in functions as often as those are called."""
        return sum(self._counts.get(key, 1) for key in index.called())

    @cached_property
    def _counts(self) -> dict[FunctionKey, int]:
        counts: dict[FunctionKey, int] = {}
        for key in _sources_first(self._callees):
            counts[key] = 1 + sum(counts[one] for one in self._callees[key])
        return counts
