"""Writes an ONNX model with patches: a copy of the message in which single nodes are replaced."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from google.protobuf.wrappers_pb2 import BytesValue
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    TensorProto,
    ValueInfoProto,
    helper,
)

from ir_scatter.core.element_types import ElementType
from ir_scatter.core.errors import NotEditable
from ir_scatter.core.fragment import NewConstant, NewNode, Patch, free_name
from ir_scatter.core.model import Model, Node, Value
from ir_scatter.core.shapes import Shape, claims_more, excludes, show
from ir_scatter.formats.base import NewNodes, OneNode, OpsetMove
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.formats.onnx.index import (
    DEFAULT_DOMAINS,
    GraphIndex,
    function_key,
    graphs_of,
    is_graph,
    kind_of,
    normal_domain,
    schema_of,
    text,
)
from ir_scatter.formats.onnx.inference import declared, tensor_message
from ir_scatter.formats.onnx.reader import INSTANCES
from ir_scatter.formats.onnx.tensors import make_attribute, make_tensor

LARGEST = 2**31 - 1
"""Limit of bytes of a protobuf file."""


def write_onnx(model: Model, patches: Sequence[Patch], move: OpsetMove | None = None) -> bytes:
    """Replace nodes in a copy of a model, and change its opset.

    A node of a function is replaced in the definition, for all calls. There is at most one patch for each
    node. The IR version stays: no checker and no runtime connects it with the opset.

    Raises:
        NotEditable: a replaced node has different attributes in different calls of its function, or the
            result would be too large for a protobuf file.
    """
    copy = ModelProto()
    copy.CopyFrom(model.source)
    by_graph: dict[GraphIndex, dict[int, Patch | NewNodes]] = defaultdict(dict)
    for patch in patches:
        positions = by_graph[_onnx(patch.node.graph).index]
        assert patch.node.handle not in positions, "a node is replaced twice"
        positions[patch.node.handle] = patch
    for (index, position), new in move.changes.items() if move is not None else ():
        by_graph[index][position] = new
    places, template = list(_places(model, copy)), cache(_template)
    doubtful = doubtful_shapes(model, patches)
    if any(map(_hides_rank, patches)):
        _keep_ranks(model, places)
    for place in reversed(places):  # bodies before the nodes that contain them
        _replace(place, by_graph.pop(place.index, {}), template)
    for place in places:
        _clear_unproven(place.graph, doubtful.get(place.index, {}))
    assert not by_graph, "a patch names a node that the model does not have"
    for owner in (copy, *copy.functions) if move is not None else ():
        for entry in owner.opset_import:
            if move is not None and normal_domain(entry.domain) == "":
                entry.version = move.opset
    try:
        data = bytes(copy.SerializeToString(deterministic=True))
    except Exception:
        # EncodeError or ValueError, depending on the version of protobuf: the message is too large.
        data = b""
    if not 0 < len(data) <= LARGEST:
        raise NotEditable(
            f"{model.path}: the new model would exceed 2 GiB, the limit of a protobuf file, expected large "
            "tensors as external data"
        )
    return data


def _onnx(graph: object) -> OnnxGraph:
    assert isinstance(graph, OnnxGraph)
    return graph


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """A graph during editing. `uses` are the graphs of its function, one for each signature of calls."""

    index: GraphIndex
    graph: GraphProto | FunctionProto
    used_names: Callable[[], set[str]]
    uses: Sequence[OnnxGraph] = ()


def _places(model: Model, copy: ModelProto) -> Iterator[_Place]:
    """Yield every graph of a model in file order: main graph, then functions, each before its bodies.

    A graph and its bodies share one set of names, because a value of a body must not have the name of an
    outer value. Nodes share it too, because a new node has the name of its output.
    """
    index = _onnx(model.graph).index
    parts = [part for info in copy.training_info for part in (info.initialization, info.algorithm)]
    yield from _with_bodies(
        _Place(index, copy.graph, cache(partial(_names_of, [index, *map(GraphIndex, parts)])))
    )
    first = {function_key(function): function for function in reversed(copy.functions)}
    for key, function in zip(_onnx(model.graph).shared.definitions, model.functions, strict=True):
        index = _onnx(function.definition).index
        used_names = cache(partial(_names_of, [index]))
        yield from _with_bodies(_Place(index, first[key], used_names, [*map(_onnx, function.instances)]))


def _with_bodies(place: _Place) -> Iterator[_Place]:
    yield place
    for position, bodies in place.index.bodies.items():
        attributes = [value for value in place.graph.node[position].attribute if is_graph(value)]
        graphs = dict(pair for value in attributes if not value.ref_attr_name for pair in graphs_of(value))
        for name, body in bodies.items():
            yield from _with_bodies(_Place(body, graphs[name], place.used_names, place.uses))


def _names_of(graphs: Iterable[GraphIndex]) -> set[str]:
    """Return all names in graphs, including references to outer values and names in value_info."""
    names = set[str]()
    for index in [inner for graph in graphs for inner in graph.all_graphs()]:
        names.update(index.producers, index.inputs, index.outputs, index.initializers)
        names.update(index.sparse_initializers, index.stored)
        for node in index.nodes:
            names.add(node.name)
            names.update(node.input)
    return names


def _template(new: NewNode | NewConstant) -> NodeProto:
    """Return the message of a new node without names."""
    if isinstance(new, NewConstant):
        proto, tensor = NodeProto(op_type="Constant"), make_tensor(new.array, new.element_type)
        proto.attribute.add(name="value", type=AttributeProto.TENSOR, t=tensor)
        return proto
    proto = NodeProto(op_type=new.type, domain=new.domain)
    proto.attribute.extend(make_attribute(*item) for item in new.attributes.items())
    return proto


def _replace(
    place: _Place,
    changes: Mapping[int, Patch | NewNodes],
    template: Callable[[NewNode | NewConstant], NodeProto],
) -> None:
    """Replace nodes of one graph. If nodes are added, the list is rebuilt: repeated insertion is slow."""
    nodes, done, gone = list[NodeProto](), 0, set[str]()
    for position, change in sorted(changes.items()):
        nodes += place.graph.node[done:position]
        done = position + 1
        if isinstance(change, NewNodes):
            nodes += _with_free_names(change, place.used_names())
            gone.update(change.gone)
        else:
            nodes += _nodes_for(place, change, template)
    nodes += place.graph.node[done:]
    if len(nodes) > len(place.graph.node) or any(isinstance(change, NewNodes) for change in changes.values()):
        del place.graph.node[:]
        place.graph.node.extend(nodes)
    for number in reversed(range(len(place.graph.value_info) if gone else 0)):
        if place.graph.value_info[number].name in gone:
            del place.graph.value_info[number]


def _with_free_names(new: NewNodes, used_names: set[str]) -> list[NodeProto]:
    chosen = {name: free_name(name, used_names) for name in new.names}
    for node in (nodes := [NodeProto.FromString(proto.SerializeToString()) for proto in new.nodes]):
        node.name = chosen.get(node.name, node.name)
        for names in (node.input, node.output):
            for number, name in enumerate(names):
                if name in chosen:
                    names[number] = chosen[name]
    return nodes


def _nodes_for(
    place: _Place, patch: Patch, template: Callable[[NewNode | NewConstant], NodeProto]
) -> list[NodeProto]:
    """Change the replaced node to the result node of its fragment.

    Returns all nodes of the fragment in topological order; the result node comes last.
    """
    proto, node, fragment = place.graph.node[patch.node.handle], patch.node, patch.fragment
    alias = proto.domain if proto.domain in DEFAULT_DOMAINS else ""  # the model may import only this spelling
    names: dict[int, str | bytes] = dict.fromkeys(map(id, fragment.given), "")
    names.update(zip(map(id, fragment.given), proto.input, strict=False))
    names[id(None)] = ""
    nodes = list[NodeProto]()

    def insert(new: NewNode | NewConstant, inputs: list[str | bytes]) -> str:
        nodes.append(written := NodeProto())
        written.CopyFrom(template(new))
        if alias and not written.domain:
            written.domain = alias
        _connect(written, inputs)
        written.name = free_name(f"{node.name}/{new.label}", place.used_names())
        written.output.append(written.name)
        return written.name

    for new in fragment.news:
        for value in new.inputs:
            if value is not None and id(value) not in names:
                if not isinstance(value.constant, NewConstant):
                    raise ValueError(f"{new.label} reads {value.name!r}, which no earlier node computes")
                names[id(value)] = insert(value.constant, [])
        inputs = [names[id(value)] for value in new.inputs]
        if new is not fragment.result:
            names[id(new.output)] = insert(new, inputs)
    _connect(proto, inputs)
    _become_result(proto, place, node, fragment.result, template(fragment.result), is_alone=not nodes)
    return [*nodes, proto]


def _connect(proto: NodeProto, names: list[str | bytes]) -> None:
    while names and not names[-1]:
        names.pop()
    if names == proto.input[:]:
        return
    del proto.input[:]
    for name in names:
        if isinstance(name, str):
            proto.input.append(name)
        else:  # protobuf returns bytes but does not accept them; field 1 of both messages has this type
            proto.MergeFromString(BytesValue(value=name).SerializeToString())


def _become_result(
    proto: NodeProto, place: _Place, node: Node, result: NewNode, new: NodeProto, *, is_alone: bool
) -> None:
    """Change the replaced node to the result node of its fragment; fields that need no change stay."""
    proto.op_type = new.op_type
    if normal_domain(proto.domain) != new.domain:
        proto.domain = new.domain
    if proto.overload:
        proto.ClearField("overload")
    missing = {text(attribute.name): attribute for attribute in new.attribute}
    for at in reversed(range(len(proto.attribute))):
        attribute = proto.attribute[at]
        written = missing.get(text(attribute.name))
        if attribute == written:
            is_kept = True
        elif attribute.ref_attr_name:
            is_kept = _keeps_reference(attribute, node, place.uses, result, written, is_alone=is_alone)
        else:
            is_kept = written is not None and _content(attribute) == _content(written)
        if is_kept:
            missing.pop(text(attribute.name), None)
        else:
            del proto.attribute[at]
    proto.attribute.extend(missing.values())
    for configuration in proto.device_configurations:
        # Also remove the quantization data of an input that the node no longer has.
        names = {*proto.input, *proto.output}
        specs = [spec for spec in configuration.sharding_spec if spec.tensor_name in names]
        del configuration.sharding_spec[:]
        configuration.sharding_spec.extend(specs)


# Attributes from calls of a function


def _keeps_reference(
    reference: AttributeProto,
    node: Node,
    uses: Sequence[OnnxGraph],
    result: NewNode,
    written: AttributeProto | None,
    *,
    is_alone: bool,
) -> bool:
    """Return whether an attribute that refers to an attribute of the call (`axis = @dim`) can stay.

    `uses` are the graphs of the function, `written` the attribute that the new node should have. `is_alone`
    means that the replacement is a single node. Example: in the graph of `node` dim is 1, and the new node
    has axis = 1. The reference stays if the node is alone; otherwise every call must have dim = 1.

    Raises:
        NotEditable: calls have different values, but the new node has only one.
    """
    name, source = text(reference.name), reference.ref_attr_name
    bound_value = _onnx(node.graph).shared.bindings.get(source)
    before = _content(bound_value or _default(node.domain, node.type, node.opset, name))
    after = _content(written or _default(result.domain, result.type, result.opset, name))
    is_equal = before is not None and before == after
    if is_equal and is_alone:
        return True
    content = _content(bound_value)
    if len(uses) > INSTANCES or any(_content(use.shared.bindings.get(source)) != content for use in uses):
        raise NotEditable(
            f"{node.scope}: {name!r} refers to {text(source)!r}, which may differ between calls of the "
            f"function, expected the same value in all calls, as the new {result.type} can have only one",
            [node],
        )
    return is_equal and bound_value is not None and written is not None


def _content(attribute: AttributeProto | None) -> bytes | None:
    """Return the value of an attribute as comparable bytes, without its name and unknown fields."""
    if attribute is None:
        return None
    copy = AttributeProto()
    copy.CopyFrom(attribute)
    copy.DiscardUnknownFields()
    copy.type = kind_of(attribute)  # type: ignore[assignment]  # an int is one
    for field in ("name", "doc_string", "ref_attr_name"):
        copy.ClearField(field)
    return bytes(copy.SerializeToString(deterministic=True))


def _default(domain: str, type: str, opset: str | int | None, name: str) -> AttributeProto | None:
    schema = schema_of(domain, type, {domain: opset}) if isinstance(opset, int) else None
    formal = {} if schema is None else schema.attributes
    return formal[name].default_value if name in formal and formal[name].default_value.type else None


# Stored shapes

_OF_SHAPES = frozenset({"Shape", "Size"})


def doubtful_shapes(model: Model, patches: Sequence[Patch]) -> dict[GraphIndex, dict[str, Shape]]:
    """Return proven shapes of values whose stored sizes are doubtful and read by new nodes.

    onnxruntime folds a stored size to a constant, even if it is wrong. The replaced nodes did not read sizes
    and were correct for any size; new nodes would compute with a wrong one. Declared shapes of outputs are
    trusted, as a promise to callers, unless they are provably wrong.
    """

    @cache
    def callers() -> list[OnnxGraph]:
        graphs = [model.graph, *[function.definition for function in model.functions]]
        return [inner for graph in map(_onnx, graphs) for inner in graph.with_bodies()]

    asking = [patch.node for patch in patches if any(new.type in _OF_SHAPES for new in patch.fragment.news)]
    graphs = [(_onnx(node.graph), node.handle) for node in asking]
    waiting = [(graph, name) for graph, at in graphs for name in graph.index.nodes[at].input]
    visited, doubtful = set[tuple[OnnxGraph, str]](), defaultdict[GraphIndex, dict[str, Shape]](dict)
    while waiting:
        graph, name = waiting.pop()
        index, parent = graph.index, graph.parent
        if (graph, name) in visited or not name or name in index.initializers:
            continue
        visited.add((graph, name))
        stored, proven = graph.stored_type(name).shape, graph.type_of(name).shape
        says_sizes = any(isinstance(dim, int) for dim in stored or ())
        is_doubtful = proven is None or claims_more(stored, proven)
        if name in index.outputs:
            is_doubtful = excludes(proven, stored)
        if says_sizes and is_doubtful:
            doubtful[index][name] = proven
        if name in index.producers:
            position = index.producers[name][0]
            bodies = graph.bodies_at(position).values()
            waiting += [(graph, input) for input in index.nodes[position].input]
            waiting += [(body, output) for body in bodies for output in body.index.outputs]
        elif name in index.inputs and parent is not None:
            waiting += [(graph, output) for output in index.outputs]
            holders = [at for at, inner in parent.index.bodies.items() if index in inner.values()]
            waiting += [(parent, input) for at in holders for input in parent.index.nodes[at].input]
        elif parent is not None:
            waiting.append((parent, name))
        elif name in index.inputs:
            definitions = graph.shared.definitions.items()
            keys = [key for key, definition in definitions if definition.index is index]
            for caller in callers() if keys else ():
                calls = [caller.index.nodes[at] for at in caller.index.calls]
                called = [call for call in calls if function_key(call) in keys]
                waiting += [(caller, input) for call in called for input in call.input]
    return doubtful


def _clear_unproven(graph: GraphProto | FunctionProto, proven: Mapping[str, Shape]) -> None:
    """Remove unproven sizes from stored shapes."""
    outputs = graph.output if isinstance(graph, GraphProto) else ()
    for info in (*graph.value_info, *outputs) if proven else ():
        message, shape = tensor_message(info.type), proven.get(info.name)
        if info.name not in proven or message is None:
            continue
        if shape is None or len(shape) != len(message.shape.dim):
            message.ClearField("shape")
            continue
        for dim, size in zip(message.shape.dim, shape, strict=True):
            if dim.dim_value != size:
                dim.ClearField("dim_value")


# Outputs of Scans


def _keep_ranks(model: Model, places: Iterable[_Place]) -> None:
    """Declare the ranks of the outputs of Scan bodies, if new nodes may hide the ranks.

    onnxruntime needs these ranks to run a Scan. It infers the rank of a scatter node from its data, but not
    that of a Reshape to a computed shape. Stored shapes stay. Sizes are declared dynamic, because inferred
    ones may hold for certain inputs only.
    """
    values: dict[tuple[GraphIndex, str], list[Value | None]] = defaultdict(list)
    for node in model.walk(frozenset({"Scan"})):
        for body in map(_onnx, node.bodies.values()):
            for name in body.index.outputs:
                values[body.index, name].append(body.find(name))
    for place in places:
        for output in place.graph.output if isinstance(place.graph, GraphProto) else ():
            key = place.index, output.name
            shapes = [value.shape if value else None for value in values.get(key, ())]
            ranks = {None if shape is None else len(shape) for shape in shapes}
            message = tensor_message(output.type)
            rank = ranks.pop() if len(ranks) == 1 else None
            if rank is not None and message is not None and not message.HasField("shape"):
                message.shape.SetInParent()
                for _ in range(rank):
                    message.shape.dim.add()


def _hides_rank(patch: Patch) -> bool:
    """Return whether runtimes cannot infer the shape of the result from an input of the replaced node."""
    result = patch.fragment.result
    data = result.inputs[0] if result.inputs else None
    is_given = data is not None and patch.fragment.number_given(data) is not None
    transparent = _onnx(patch.node.graph).shared.options.scatter_types | {patch.node.type}
    return not is_given or bool(result.domain) or result.type not in transparent


# Texts for users

_NAMED = 5
"""Limit of values that a remark lists by name."""

_SHORT = 16
"""Limit of elements of a new constant whose values a diff shows."""


def node_lines(patch: Patch) -> Iterator[str]:
    node, news = patch.node, patch.fragment.news
    names = [port.value.name if port.value is not None else "" for port in node.inputs]
    result = node.outputs[0].name if node.outputs else node.name
    written = _onnx(node.graph).index.nodes[node.handle].attribute
    references = {
        text(value.name): f"@{text(value.ref_attr_name)}" for value in written if value.ref_attr_name
    }

    def line(output: str, type: str, attributes: Mapping[str, Any], inputs: list[str]) -> str:
        items = ", ".join(f"{name}={value}" for name, value in attributes.items())
        return f"{output} = {type}{f'<{items}>' if items else ''}({', '.join(inputs)})"

    def name_of(value: Value | None) -> str:
        if value is None:
            return ""
        number = patch.fragment.number_given(value)
        if number is not None:
            return names[number]
        if isinstance(value.constant, NewConstant):
            array = value.constant.array
            return str(array.tolist()) if array.size <= _SHORT else f"{array.dtype.name}{show(array.shape)}"
        return f"{node.name}/{value.name}"

    yield f"@@ {node.location.scope}\n"
    yield f"-{line(result, node.type, {**node.attributes, **references}, names)}\n"
    for new in news:
        output = result if new is patch.fragment.result else f"{node.name}/{new.label}"
        references_kept = references if len(news) == 1 else {}
        attributes = {name: references_kept.get(name, value) for name, value in new.attributes.items()}
        yield f"+{line(output, new.type, attributes, [*map(name_of, new.inputs)])}\n"


def shape_lines(model: Model, patches: Sequence[Patch]) -> Iterator[str]:
    for graph, shapes in doubtful_shapes(model, patches).items():
        for name, proven in shapes.items():
            yield f"-{text(name)}: {show(declared(graph.stored[name]).shape)}\n"
            yield f"+{text(name)}: {show(proven)}\n"


def remark_on_shapes(model: Model, patches: Sequence[Patch]) -> str:
    """Return a sentence that lists the values whose stored sizes are removed; "" without such values."""
    names = [repr(text(name)) for shapes in doubtful_shapes(model, patches).values() for name in shapes]
    if not names:
        return ""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    values = ", ".join(names[:_NAMED]) + more
    which = f"the stored sizes of {values} are made dynamic"
    return f"{which}: they are not proven, and new nodes depend on them"


IR_VERSION = 10
"""The highest IR version of written models: all current runtimes read it."""

_FIRST_WITH_FUNCTIONS = 8
"""The first IR version of models with functions."""

_LOCAL = "local"
"""The domain of functions in written models."""


def write_nodes(nodes: Sequence[OneNode]) -> bytes:
    """Return a new ONNX model of independent nodes with the same opset.

    Raises:
        TypeError: an array or an attribute has a type that ONNX lacks.
    """
    inputs, constants, written, outputs = [], list[TensorProto](), [], []
    opset, functions = helper.make_opsetid("", int(nodes[0].opset)), list[FunctionProto]()
    for node in nodes:
        for input in {input.name: input for input in node.inputs if input is not None}.values():
            if input.is_constant:
                constants.append(make_tensor(input.array, input.element_type))
                constants[-1].name = input.name
            else:
                inputs.append(_declared(input.name, input.element_type, input.declared))
        names, prefix = ["" if input is None else input.name for input in node.inputs], node.prefix
        written.append(helper.make_node(node.type, names, [f"{prefix}output"], name=f"{prefix}node"))
        written[-1].attribute.extend(make_attribute(name, value) for name, value in node.attributes.items())
        if node.in_function:
            functions.append(_function_of(written[-1], f"{prefix}function", opset))
            written[-1] = _call_of(functions[-1], f"{prefix}node")
        outputs.append(_declared(f"{prefix}output", node.element_type, node.shape))
    name = "one_node" if len(nodes) == 1 else "nodes"
    graph = helper.make_graph(written, name, inputs, outputs, constants)
    version = min(IR_VERSION, helper.find_min_ir_version_for([opset]))
    opsets = [opset, *([helper.make_opsetid(_LOCAL, 1)] if functions else [])]
    if functions:
        version = max(version, _FIRST_WITH_FUNCTIONS)
    model = helper.make_model(
        graph, ir_version=version, producer_name="ir-scatter", opset_imports=opsets, functions=functions
    )
    return bytes(model.SerializeToString(deterministic=True))


def _function_of(node: NodeProto, name: str, opset: OperatorSetIdProto) -> FunctionProto:
    """Return a function that contains only this node, with the same inputs and output."""
    names = [name for name in dict.fromkeys(node.input) if name]
    return helper.make_function(_LOCAL, name, names, node.output, [node], [opset])


def _call_of(function: FunctionProto, name: str) -> NodeProto:
    return helper.make_node(function.name, function.input, function.output, name=name, domain=function.domain)


def _declared(name: str, type: ElementType, shape: Shape) -> ValueInfoProto:
    if type.onnx_number is None:
        raise TypeError(f"{name} is of type {type.name}, expected one that ONNX has")
    dims = None if shape is None else [dim if isinstance(dim, int) else None for dim in shape]
    return helper.make_tensor_value_info(name, type.onnx_number, dims)
