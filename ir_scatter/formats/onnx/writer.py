"""Patches to ONNX files: a copy of the model in which nodes are replaced and nothing else.

What has to go along with such a copy are the files beside the model that its tensors are in.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
)

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.element_types import ElementType
from ir_scatter.core.errors import NotEditable, UnreadableModel
from ir_scatter.core.fragment import Fragment, NewConstant, NewNode, Patch
from ir_scatter.core.model import Model, Node, Value
from ir_scatter.formats.base import FileBeside, OneInput, OneNode
from ir_scatter.formats.onnx.functions import attribute_is_kept, content
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.formats.onnx.index import (
    DEFAULT_DOMAINS,
    GraphIndex,
    function_key,
    graphs_of,
    index_graph,
    is_graph,
    normal_domain,
    text,
)
from ir_scatter.formats.onnx.scan_outputs import keep_ranks
from ir_scatter.formats.onnx.tensors import Problem, is_external, make_attribute, make_tensor, span_of

LARGEST = 2**31 - 1
"""Bytes that a protobuf file can have."""


@dataclass(frozen=True, slots=True)
class OnnxText:
    """A model to be written.

    Attributes:
        data: the bytes of the file.
        names: for each patch the names of the nodes that it put in, the one of the result last.
    """

    data: bytes
    names: tuple[tuple[str, ...], ...]


def write_onnx(
    model: Model, patches: Sequence[Patch], change: Callable[[ModelProto], None] | None = None
) -> OnnxText:
    """Replace nodes in a copy of a model.

    A node of a function is replaced in the definition, for all calls.

    Args:
        model: as it was read; it stays as it is.
        patches: at most one for each node.
        change: what else is to be done with the copy, after the nodes were replaced.

    Raises:
        NotEditable: calls of a function give a replaced node different attributes, or the result
            would be larger than a protobuf file can be.
    """
    copy = ModelProto()
    copy.CopyFrom(model.source)
    by_graph: dict[GraphIndex, dict[int, int]] = defaultdict(dict)
    for number, patch in enumerate(patches):
        assert isinstance(patch.node.graph, OnnxGraph)
        positions = by_graph[patch.node.graph.index]
        if patch.node.handle in positions:
            raise ValueError(f"{patch.node.scope} is replaced twice, expected once")
        positions[patch.node.handle] = number
    names: list[tuple[str, ...]] = [()] * len(patches)
    templates: dict[int, _Template] = {}
    places = list(_places(model, copy))
    keep_ranks(model, ((place.index, place.graph) for place in places), patches)
    for place in reversed(places):  # bodies go before the nodes that hold them
        wanted = sorted(by_graph.pop(place.index, {}).items())
        made = _replace(place, {at: patches[number] for at, number in wanted}, templates)
        for (_, number), new in zip(wanted, made, strict=True):
            names[number] = new
    if by_graph:
        raise ValueError("a node is to be replaced that the model does not have")
    if change is not None:
        change(copy)
    try:
        data = bytes(copy.SerializeToString(deterministic=True))
    except Exception as error:
        # EncodeError or ValueError, as the version of protobuf has it; nothing else can be wrong here.
        raise _too_large(model.path) from error
    if len(data) > LARGEST:
        raise _too_large(model.path)
    return OnnxText(data, tuple(names))


def _too_large(path: str) -> NotEditable:
    return NotEditable(
        f"{path}: with the new nodes the model takes more than 2 GiB, the most that a protobuf file "
        "can have, expected large tensors as external data"
    )


# Where nodes are put


class _Names:
    """The names of a model's main graph, or of a function, with all bodies and what trains them.

    Values of a body may not have the name of a value around it, so that all share one set. So do
    values and nodes, because a new node has the name of its output.
    """

    def __init__(self, graphs: Iterable[GraphIndex]) -> None:
        self._graphs = [*graphs]
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}

    def new(self, wanted: str) -> str:
        """Return a name that nothing else has, and take it."""
        while self._graphs:
            self._taken.update(*_names_of(self._graphs.pop()))
        name, number = wanted, self._numbers.get(wanted, 2)
        while name in self._taken:
            name, number = f"{wanted}_{number}", number + 1
        self._numbers[wanted] = number
        self._taken.add(name)
        return name


def _names_of(index: GraphIndex) -> Iterator[Iterable[str]]:
    """Yield what a graph names or refers to; a stored type without a value has a name, too."""
    yield [node.name for node in index.nodes]
    yield from (index.producers, index.inputs, index.outputs, index.initializers)
    yield from (index.sparse_initializers, index.stored)
    yield from [node.input[:] for node in index.nodes]


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """A graph of the model, and what it is in the copy.

    Attributes:
        index: the graph as it was read.
        graph: the one in the copy.
        names: of the graph and of all that it shares names with.
        uses: the graphs that calls make of it, if it is one of a function.
    """

    index: GraphIndex
    graph: GraphProto | FunctionProto
    names: _Names
    uses: Sequence[OnnxGraph] = ()


def _places(model: Model, copy: ModelProto) -> Iterator[_Place]:
    """Yield every graph of a model in the order of the file: main graph, functions, bodies behind each."""
    assert isinstance(model.graph, OnnxGraph)
    index = model.graph.index
    training = [
        index_graph(graph, frozenset())
        for info in copy.training_info
        for graph in (info.initialization, info.algorithm)
    ]
    names = _Names([*index.all_graphs(), *(inner for graph in training for inner in graph.all_graphs())])
    yield from _with_bodies(_Place(index, copy.graph, names))
    first = {function_key(function): function for function in reversed(copy.functions)}
    keys = dict.fromkeys(map(function_key, copy.functions))
    for key, function in zip(keys, model.functions, strict=True):
        assert isinstance(function.definition, OnnxGraph)
        uses = [use for use in function.instances if isinstance(use, OnnxGraph)]
        index = function.definition.index
        yield from _with_bodies(_Place(index, first[key], _Names(index.all_graphs()), uses))


def _with_bodies(place: _Place) -> Iterator[_Place]:
    yield place
    for position, bodies in place.index.bodies.items():
        attributes = [one for one in place.graph.node[position].attribute if is_graph(one)]
        graphs = dict(pair for one in attributes if not one.ref_attr_name for pair in graphs_of(one))
        for name, body in bodies.items():
            yield from _with_bodies(_Place(body, graphs[name], place.names, place.uses))


# Fragments as messages


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """A node to insert: its fields but for names, what it computes, and what it reads by number."""

    fields: bytes
    domain: str
    label: str
    inputs: tuple[int, ...] = ()


@dataclass(slots=True, eq=False)
class _Template:
    """A fragment as messages, made once for all the nodes that it replaces.

    What nodes read is a number: 0 is nothing, then come the inputs of the node that is replaced, then
    the outputs of the steps.

    Attributes:
        fragment: what is written.
        result: the node that the replaced one becomes.
        steps: the nodes to insert, each constant before the first node that reads it.
        inputs: what the result reads.
        attributes: those of the result, by name.
    """

    fragment: Fragment
    result: NewNode = field(init=False)
    steps: list[_Step] = field(default_factory=list)
    inputs: tuple[int, ...] = ()
    attributes: Mapping[str, AttributeProto] = field(default_factory=dict)
    _made: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the messages.

        Raises:
            TypeError: an attribute or a constant is of a type that ONNX does not have.
            ValueError: a node reads what no node before it computes.
        """
        *before, self.result = self.fragment.news
        for new in before:
            inputs = self._wires(new)
            proto = NodeProto(op_type=new.type, domain=new.domain)
            proto.attribute.extend(make_attribute(*item) for item in new.attributes.items())
            self._add(new.output, new.label, proto, inputs)
        self.inputs = self._wires(self.result)
        self.attributes = {
            name: make_attribute(name, value) for name, value in self.result.attributes.items()
        }

    def keeps_inputs(self, count: int) -> bool:
        """Tell whether only the fields of a replaced node with so many inputs change."""
        return not self.steps and self.inputs == tuple(range(1, 1 + count))

    def _wires(self, new: NewNode) -> tuple[int, ...]:
        return tuple(0 if value is None else self._wire(new, value) for value in new.inputs)

    def _wire(self, new: NewNode, value: Value) -> int:
        """Return the number of an input; a new constant becomes a step."""
        given, made = self.fragment.number_given(value), self._made.get(id(value))
        if given is not None:
            return 1 + given
        if made is not None:
            return made
        constant = value.constant
        if not isinstance(constant, NewConstant):
            raise ValueError(f"{new.label} reads {value.name!r}, which no node before it computes")
        proto = NodeProto(op_type="Constant")
        tensor = make_tensor(constant.array, constant.element_type)
        proto.attribute.add(name="value", type=AttributeProto.TENSOR, t=tensor)
        return self._add(value, constant.label, proto)

    def _add(self, output: Value, label: str, proto: NodeProto, inputs: tuple[int, ...] = ()) -> int:
        number = self._made[id(output)] = 1 + len(self.fragment.given) + len(self.steps)
        self.steps.append(_Step(proto.SerializeToString(deterministic=True), proto.domain, label, inputs))
        return number


def _replace(
    place: _Place, patches: Mapping[int, Patch], templates: dict[int, _Template]
) -> Iterator[tuple[str, ...]]:
    """Replace nodes of one graph; yield the names of the nodes that each patch put in.

    A graph that grows is written anew at once: to insert nodes one by one moves all that follow.
    """
    old, grown, done = place.graph.node[:] if patches else [], list[NodeProto](), 0
    for position, patch in patches.items():
        key = id(patch.fragment)
        template = templates.get(key) or templates.setdefault(key, _Template(patch.fragment))
        proto, steps = old[position], list[NodeProto]()
        if not template.keeps_inputs(len(proto.input)):
            grown += old[done:position]
            done = position
            steps = _connect(place, proto, patch.node.name, template)
            grown += steps
        _edit(proto, place, patch.node, template)
        yield (*(step.name for step in steps), patch.node.name)
    if grown:
        grown += old[done:]
        del place.graph.node[:]
        place.graph.node.extend(grown)


def _connect(place: _Place, old: NodeProto, base: str, template: _Template) -> list[NodeProto]:
    """Connect the node that is replaced to the steps before it; return them."""
    alias = old.domain if old.domain in DEFAULT_DOMAINS else ""  # a model may import one spelling only
    count, steps = len(template.fragment.given), list[NodeProto]()
    given = old.input[:count]
    names: list[str | bytes] = ["", *given, *[""] * (count - len(given))]
    for step in template.steps:
        name = place.names.new(f"{base}/{step.label}")
        node = NodeProto.FromString(step.fields)
        if alias and not step.domain:
            node.domain = alias
        _name(node, [names[number] for number in step.inputs], name)
        steps.append(node)
        names.append(name)
    _name(old, [names[number] for number in template.inputs])
    return steps


def _name(proto: NodeProto, inputs: "list[str | bytes]", name: str | None = None) -> None:
    """Write the inputs of a node, without what is left out at the end, and its name."""
    while inputs and not inputs[-1]:
        inputs.pop()
    del proto.input[:]
    if any(isinstance(one, bytes) for one in inputs):  # protobuf hands out what it does not take
        proto.MergeFromString(b"".join(map(_input_field, inputs)))
    else:
        proto.input.extend(inputs)
    if name is not None:
        proto.name = name
        proto.output.append(name)


def _input_field(name: str | bytes) -> bytes:
    """Return an input of a node as protobuf writes it."""
    content, length = name.encode() if isinstance(name, str) else name, bytearray()
    rest = len(content)
    while rest > 0x7F:
        length.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes((NodeProto.INPUT_FIELD_NUMBER << 3 | 2, *length, rest)) + content


def _edit(proto: NodeProto, place: _Place, node: Node, template: _Template) -> None:
    """Make the replaced node the one that computes its result."""
    result, wanted = template.result, dict(template.attributes)
    proto.op_type = result.type
    if normal_domain(proto.domain) != result.domain:
        proto.domain = result.domain
    if proto.overload:
        proto.ClearField("overload")
    for at in reversed(range(len(proto.attribute))):
        attribute = proto.attribute[at]
        name = text(attribute.name)
        new = wanted.get(name)
        if attribute.ref_attr_name:
            written, is_alone = template.attributes.get(name), not template.steps
            is_kept = attribute_is_kept(attribute, node, place.uses, result, written, is_alone=is_alone)
        else:
            is_kept = new is not None and (attribute == new or content(attribute) == content(new))
        if is_kept:
            wanted.pop(name, None)
        else:
            del proto.attribute[at]
    if wanted:
        proto.attribute.extend(wanted.values())
    known = {*proto.input, *proto.output} if proto.device_configurations else set()
    for configuration in proto.device_configurations:
        # What says how to distribute an input that the node has no longer goes, too.
        for at in reversed(range(len(configuration.sharding_spec))):
            if configuration.sharding_spec[at].tensor_name not in known:
                del configuration.sharding_spec[at]


# Files beside the model


def external_files(model: Model) -> list[FileBeside]:
    """Return every place outside of the file that a tensor of a model names, in the order of use.

    Raises:
        UnreadableModel: a file is outside of the model's folder, a tensor names no file, or two files
            could not be told apart beside a copy of the model.
    """
    assert isinstance(model.graph, OnnxGraph)
    found: dict[str, FileBeside] = {}
    by_name: dict[str, FileBeside] = {}
    for tensor in _external_tensors(model.source):
        span = span_of(tensor)
        if isinstance(span, Problem):
            raise _unreadable(model, span)
        location = span.location
        if location in found:
            continue
        weights = model.graph.shared.tensors.file(location)
        if isinstance(weights, Problem):
            if weights.kind != "weights-missing":
                raise _unreadable(model, weights)
            path = Path(model.path).parent / location
            found[location] = FileBeside(path, location, problem=weights.message)
            continue
        file = found[location] = FileBeside(weights.path, location, weights.identity)
        name = os.path.normpath(location)
        if name.split(os.sep)[0] == os.pardir or by_name.setdefault(name, file).path != file.path:
            # `link/../weights.bin` is another file where the link is a folder.
            message = f"external data is at {location!r}, which leads through a link and back"
            raise _unreadable(
                model, Problem("external-data-path", f"{message}, expected a path without '..'")
            )
    return [*found.values()]


def _external_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Yield the tensors in other files: of graphs, functions, bodies, attributes and what trains a model."""
    yield from _of_graph(model.graph)
    for training in model.training_info:
        yield from _of_graph(training.initialization)
        yield from _of_graph(training.algorithm)
    for function in model.functions:
        yield from _of_attributes(function.attribute_proto)
        for node in function.node:
            yield from _of_attributes(node.attribute)


def _of_graph(graph: GraphProto) -> Iterator[TensorProto]:
    yield from filter(is_external, graph.initializer)
    yield from _of_sparse(graph.sparse_initializer)
    for attributes in [node.attribute for node in graph.node if node.attribute]:
        yield from _of_attributes(attributes)


_WITHOUT_TENSORS = frozenset(
    {
        AttributeProto.INT, AttributeProto.INTS, AttributeProto.FLOAT, AttributeProto.FLOATS,
        AttributeProto.STRING, AttributeProto.STRINGS, AttributeProto.TYPE_PROTO, AttributeProto.TYPE_PROTOS,
    }
)  # fmt: skip


def _of_attributes(attributes: Iterable[AttributeProto]) -> Iterator[TensorProto]:
    for attribute in attributes:
        if attribute.type not in _WITHOUT_TENSORS:
            yield from filter(is_external, (attribute.t, *attribute.tensors))
            yield from _of_sparse([attribute.sparse_tensor, *attribute.sparse_tensors])
            for graph in (attribute.g, *attribute.graphs):
                yield from _of_graph(graph)


def _of_sparse(tensors: Iterable[SparseTensorProto]) -> Iterator[TensorProto]:
    for sparse in tensors:
        yield from filter(is_external, (sparse.values, sparse.indices))


def _unreadable(model: Model, problem: Problem) -> UnreadableModel:
    return UnreadableModel(problem.kind, problem.message, Location(model.path))


IR_VERSION = 10
"""One that every runtime of the last years reads."""


def write_single_node(node: OneNode) -> bytes:
    """Return an ONNX model with this node.

    Raises:
        TypeError: an array or an attribute is of a type that ONNX has not.
    """
    model = ModelProto(ir_version=IR_VERSION, producer_name="ir-scatter")
    model.opset_import.add(domain="", version=int(node.opset))
    graph = model.graph
    graph.name = "one_node"
    written = graph.node.add(op_type=node.type, name="node")
    for one in node.inputs:
        written.input.append("" if one is None else one.name)
        if one is not None:
            _declare(graph, one)
    written.output.append("output")
    written.attribute.extend(make_attribute(name, value) for name, value in node.attributes.items())
    output = graph.output.add(name="output").type.tensor_type
    _describe(output, node.element_type, node.shape)
    return bytes(model.SerializeToString(deterministic=True))


def _declare(graph: GraphProto, one: OneInput) -> None:
    if one.is_constant:
        tensor = make_tensor(one.array, one.element_type)
        tensor.name = one.name
        graph.initializer.append(tensor)
    elif all(known.name != one.name for known in graph.input):
        _describe(graph.input.add(name=one.name).type.tensor_type, one.element_type, one.array.shape)


def _describe(target: Any, type: ElementType, shape: Sequence[int]) -> None:
    target.elem_type = type.onnx_number
    target.shape.SetInParent()
    for dim in shape:
        target.shape.dim.add(dim_value=dim)
