"""Indexes an ONNX file by names and node positions, in one walk over each graph and function.

A position is the index of a node in the list of its graph. Names stay as in the file: protobuf returns a
name that is not UTF-8 as bytes, which serve as a key; `text` makes them printable.
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
"""Largest opset number that `onnx.defs` accepts."""

_Key = TypeVar("_Key")
_Declaration = TypeVar("_Declaration")

FunctionKey = tuple[str, str, str]
"""(domain, name, overload) of a function."""

Named: TypeAlias = "int | tuple[bool, ...]"
"""The number of inputs or outputs of a node. If some have an empty name: for each, whether it has a name."""


class Usage(NamedTuple):
    """The parts of a node that decide whether it is a legal use of its operator, without names and values.

    Nodes with equal usage are checked once. `attributes` are (name, type, whether it is set). An attribute
    is set if the field of its type has a value, or if it refers to an attribute of the surrounding function.
    An attribute without a type is not set.
    """

    domain: str
    type: str
    inputs: Named
    outputs: Named
    attributes: tuple[tuple[str, int, bool], ...]


Bindings = Mapping[str, AttributeProto]
"""Attributes that a call passes to its function, by name."""

DEFAULT_DOMAINS = frozenset({"", "ai.onnx"})
FIELDS: Mapping[int, str] = {
    AttributeProto.FLOAT: "f", AttributeProto.INT: "i", AttributeProto.STRING: "s",
    AttributeProto.TENSOR: "t", AttributeProto.GRAPH: "g", AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints", AttributeProto.STRINGS: "strings", AttributeProto.TENSORS: "tensors",
    AttributeProto.GRAPHS: "graphs",
}  # fmt: skip
"""The protobuf field that holds the value of an attribute, by attribute type."""

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
"""The attributes of Constant: the field with the value, and element type and field of an equal tensor."""


def text(name: str | bytes) -> str:
    """Return a name as printable text; protobuf returns bytes for a name that is not UTF-8."""
    return name if isinstance(name, str) else name.decode("utf-8", errors="backslashreplace")


def normal_domain(domain: str) -> str:
    return "" if domain in DEFAULT_DOMAINS else domain


def kind_of(attribute: AttributeProto) -> int:
    """Return the type of an attribute.

    Files of IR versions 1 and 2 do not store it; there the field with a value decides.
    """
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
    """Return the value of a Constant as a tensor; None for other attributes and for a sparse tensor."""
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
    return name == "sparse_value" and kind_of(attribute) == AttributeProto.SPARSE_TENSOR


def bound(node: NodeProto, bindings: Bindings) -> list[tuple[str, AttributeProto]]:
    """Return a node's attributes by name, with references to function attributes resolved.

    A reference to an attribute that the call does not pass is omitted.
    """
    attributes = []
    for attribute in node.attribute:
        reference = attribute.ref_attr_name
        value = bindings.get(reference) if reference else attribute
        if value is not None:
            attributes.append((text(attribute.name), value))
    return attributes


def function_key(proto: NodeProto | FunctionProto) -> FunctionKey:
    name = proto.op_type if isinstance(proto, NodeProto) else proto.name
    return normal_domain(proto.domain), name, proto.overload


def schema_of(domain: str, type: str, opsets: Mapping[str, int]) -> OpSchema | None:
    """Return the schema of an operator in the imported opset of its domain (opset 1 if not imported).

    None if the opset does not contain the operator.
    """
    normalized = normal_domain(domain)
    return _schema(text(normalized), text(type), min(opsets.get(normalized, 1), _LARGEST_OPSET))


@lru_cache(1 << 12)
def _schema(domain: str, type: str, opset: int) -> OpSchema | None:
    is_known = opset > 0 and onnx.defs.has(type, opset, domain)
    return onnx.defs.get_schema(type, opset, domain) if is_known else None


def opsets_of(imports: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    """Return the opset versions by domain. Both "" and "ai.onnx" become ""."""
    return {normal_domain(entry.domain): entry.version for entry in imports}


class GraphIndex:
    """The index of a graph or of a function's definition.

    Attributes:
        name: as in the file.
        inputs: declarations by name; None for the inputs of a function.
        stored: declarations of value_info and outputs, by name.
        duplicates: names that are defined again, each with the position of the second node (None: an input
            or initializer).
        producers: (position of the node, number of the output) by name.
        by_type: positions of the nodes of the default domain, by operator type.
        usages: positions of nodes, by their `Usage`.
        calls: positions of the nodes that call a function of the model.
        tensors: tensors of Constant nodes, by position.
        sparse: sparse tensors by position and attribute, including those of Constant nodes.
        attributes: tensors in attributes of other nodes, by position and name.
        early: (position, name) of uses before the node that produces the name.
        missing: (position, name) of uses of names that this graph does not define.
        captured: names of outer graphs that this graph or its bodies use.
    """

    def __init__(self, proto: GraphProto | FunctionProto, functions: Container[FunctionKey] = ()) -> None:
        self.name = proto.name
        self.nodes = list(proto.node)
        self.duplicates: list[tuple[str, int | None]] = []
        self.stored = {info.name: info for info in proto.value_info}
        self.inputs: dict[str, ValueInfoProto | None] = {}
        self.initializers: dict[str, TensorProto] = {}
        self.sparse_initializers: dict[str, SparseTensorProto] = {}
        if isinstance(proto, FunctionProto):
            self.outputs = list(proto.output)
            self._declare(self.inputs, [(name, None) for name in proto.input])
        else:
            self.outputs = [info.name for info in proto.output]
            self._declare(self.inputs, [(info.name, info) for info in proto.input])
            self._declare(self.initializers, [(tensor.name, tensor) for tensor in proto.initializer])
            sparse = [(tensor.values.name, tensor) for tensor in proto.sparse_initializer]
            self._declare(self.sparse_initializers, sparse)
            outputs = [info for info in proto.output if info.name not in self.inputs]
            declared = [info for info in outputs if info.HasField("type")]
            last = {info.name: info for info in declared}
            self.duplicates += [(info.name, None) for info in declared if info.type != last[info.name].type]
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
        defined = {"", *self.inputs, *self.initializers, *self.sparse_initializers}
        for position, node in enumerate(self.nodes):
            domain, operator, inputs, results = node.domain, node.op_type, node.input[:], node.output[:]
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
            presence = _presence(inputs), _presence(results)
            usages.setdefault((domain, operator, *presence, tuple(attributes)), []).append(position)
            uses.extend([(position, name) for name in inputs if name not in defined])
            for body in self.bodies.get(position, {}).values():
                uses.extend((position, name) for name in sorted(body.captured - defined, key=repr))
            for number, name in enumerate(results):
                if name and name in defined:
                    self.duplicates.append((name, position))
                elif name:
                    self.producers[name] = (position, number)
                    defined.add(name)
        self.usages = {Usage(*key): positions for key, positions in usages.items()}
        self.early = [use for use in uses if use[1] in self.producers]
        self.missing = [use for use in uses if use[1] not in self.producers]
        self.captured: set[str] = {name for _, name in self.missing} | (set(self.outputs) - defined)

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
        """Return the functions called by the graph and its bodies, with one entry for each call."""
        return tuple(function_key(graph.nodes[at]) for graph in self.all_graphs() for at in graph.calls)

    def predecessors(self) -> dict[int, set[int]]:
        positions = {}
        for position, node in enumerate(self.nodes):
            names = set(node.input)
            for body in self.bodies.get(position, {}).values():
                names |= body.captured
            positions[position] = {self.producers[name][0] for name in names if name in self.producers}
        return positions

    def sorted_positions(self) -> Sequence[int]:
        """Node positions in topological order. Nodes on a cycle, and all nodes downstream, come last."""
        every = range(len(self.nodes))
        return [*dict.fromkeys([*_sources_first(self.predecessors()), *every])] if self.early else every


def _presence(names: list[str]) -> Named:
    return len(names) if "" not in names else tuple(map(bool, names))


def _sources_first(predecessors: Mapping[_Key, Collection[_Key]]) -> list[_Key]:
    """Return the keys in topological order, without those on cycles or downstream of cycles."""
    sorter, order = TopologicalSorter(predecessors), list[_Key]()
    with suppress(CycleError):
        sorter.prepare()
    while ready := sorter.get_ready():
        order += ready
        sorter.done(*ready)
    return order


class Definition:
    """The definition of a local function. `defaults` are the values of its optional attributes."""

    def __init__(self, proto: FunctionProto, functions: Container[FunctionKey]) -> None:
        self.key = function_key(proto)
        self.proto = proto
        self.index = GraphIndex(proto, functions)
        self.opsets: Mapping[str, int] = opsets_of(proto.opset_import)
        self.defaults: Bindings = {attribute.name: attribute for attribute in proto.attribute_proto}

    def bindings(self, call: NodeProto, around: Bindings) -> Bindings:
        """Return the attributes of a call; `around` are those of the function that contains the call."""
        declared = {*self.proto.attribute, *self.defaults}
        return {**self.defaults, **{name: value for name, value in bound(call, around) if name in declared}}

    @property
    def name(self) -> str:
        """Return the full name "domain::name:overload", without empty parts."""
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
        self._group = {function.key: number for number, group in enumerate(self.cycles) for function in group}

    def is_recursive(self, caller: Definition | None, callee: Definition) -> bool:
        """Return whether a call from `caller` to `callee` is part of a recursion."""
        group = self._group.get(callee.key)
        return caller is not None and group is not None and group == self._group.get(caller.key)

    def needed_by(self, index: GraphIndex) -> list[Definition]:
        """Return the functions that a graph calls, directly or indirectly, without recursive ones."""
        needed, pending = set[FunctionKey](), [*index.called()]
        while pending:
            key = pending.pop()
            if key not in needed and key not in self._group:
                needed.add(key)
                pending += self._callees[key]
        return [definition for key, definition in self.items() if key in needed]

    def count_calls(self, index: GraphIndex) -> int:
        """Return the number of function calls if all functions were inlined."""
        return sum(self._counts.get(key, 1) for key in index.called())

    @cached_property
    def _counts(self) -> dict[FunctionKey, int]:
        counts: dict[FunctionKey, int] = {}
        for key in _sources_first(self._callees):
            counts[key] = 1 + sum(counts[callee] for callee in self._callees[key])
        return counts
