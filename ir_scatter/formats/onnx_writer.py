"""Patches to ONNX files: a copy of the model in which nodes are replaced and nothing else."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onnx import ModelProto, NodeProto

from ir_scatter.errors import NotEditable
from ir_scatter.formats.onnx_graph import OnnxGraph
from ir_scatter.formats.onnx_index import GraphIndex
from ir_scatter.formats.onnx_places import Place, find_places
from ir_scatter.formats.onnx_references import content
from ir_scatter.formats.onnx_template import Template, make_template
from ir_scatter.formats.onnx_types import DEFAULT_DOMAINS, normal_domain, text
from ir_scatter.fragment import Patch
from ir_scatter.model import Model, Node

LARGEST = 2**31 - 1
"""Bytes that a protobuf file can have."""

_INPUT_TAG = b"\x0a"
"""What stands before an input in the bytes of a node: field 1, a text."""


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
    numbers = _by_place(patches)
    names: list[tuple[str, ...]] = [()] * len(patches)
    templates: dict[int, Template] = {}
    for place in list(find_places(model, copy)):
        shift = 0
        for position, number in sorted(numbers.pop(place.index, {}).items()):
            patch = patches[number]
            key = id(patch.fragment)
            template = templates.get(key) or templates.setdefault(key, make_template(patch.fragment))
            names[number] = _replace(place, position + shift, patch.node, template)
            shift += len(template.steps)
    if numbers:
        raise ValueError("a node is to be replaced that the model does not have")
    if change is not None:
        change(copy)
    return OnnxText(_serialized(copy, model.path), tuple(names))


def _by_place(patches: Sequence[Patch]) -> dict[GraphIndex, dict[int, int]]:
    """Return the number of each patch by graph and position."""
    numbers: dict[GraphIndex, dict[int, int]] = defaultdict(dict)
    for number, patch in enumerate(patches):
        assert isinstance(patch.node.graph, OnnxGraph)
        positions = numbers[patch.node.graph.index]
        if patch.node.handle in positions:
            raise ValueError(f"{patch.node.scope} is replaced twice, expected once")
        positions[patch.node.handle] = number
    return dict(numbers)


def _replace(place: Place, position: int, node: Node, template: Template) -> tuple[str, ...]:
    """Insert the steps before the node at a position and edit the node; return their names."""
    nodes, base = place.nodes, node.name
    old = nodes[position]
    alias = old.domain if old.domain in DEFAULT_DOMAINS else ""  # a model may import one spelling only
    given = list(old.input)[: template.given]
    names = ["", *given, *[""] * (template.given - len(given))]
    for step in template.steps:
        new, name = step.proto, place.names.new(f"{base}/{step.label}")
        new.name = name
        new.output[:] = (name,)
        if step.inputs:
            _connect(new, [names[number] for number in step.inputs])
        nodes.insert(position, new)
        if alias and not new.domain:
            nodes[position].domain = alias
        names.append(name)
        position += 1
    _connect(old, [names[number] for number in template.inputs])
    _edit(old, place, node, template)
    return (*names[1 + template.given :], base)


def _connect(proto: NodeProto, names: "list[str | bytes]") -> None:
    """Write the inputs of a node, without those that are left out at the end."""
    while names and not names[-1]:
        names.pop()
    try:
        proto.input[:] = names
    except UnicodeDecodeError:  # protobuf hands out bytes that are not UTF-8, but does not take them
        del proto.input[:]
        for name in names:
            data = name.encode() if isinstance(name, str) else name
            proto.MergeFromString(_INPUT_TAG + _varint(len(data)) + data)


def _edit(proto: NodeProto, place: Place, node: Node, template: Template) -> None:
    """Make the replaced node the one that computes its result."""
    result = template.result
    proto.op_type = result.type
    if normal_domain(proto.domain) != result.domain:
        proto.domain = result.domain
    proto.ClearField("overload")
    if proto.attribute or template.attributes:
        _edit_attributes(proto, place, node, template)
    if proto.device_configurations:
        _drop_shardings(proto)


def _edit_attributes(proto: NodeProto, place: Place, node: Node, template: Template) -> None:
    """Leave the attributes that stay as they are, write those that do not."""
    wanted = dict(template.attributes)
    for at in reversed(range(len(proto.attribute))):
        attribute = proto.attribute[at]
        name = text(attribute.name)
        if attribute.ref_attr_name:
            is_kept = place.references.is_kept(attribute, node, template)
        else:
            new = wanted.get(name)
            is_kept = new is not None and (attribute == new or content(attribute) == content(new))
        if is_kept:
            wanted.pop(name, None)
        else:
            del proto.attribute[at]
    if wanted:
        proto.attribute.extend(wanted.values())


def _drop_shardings(proto: NodeProto) -> None:
    """Drop what says how to distribute an input that the node has no longer."""
    known = {*proto.input, *proto.output}
    for configuration in proto.device_configurations:
        for at in reversed(range(len(configuration.sharding_spec))):
            if configuration.sharding_spec[at].tensor_name not in known:
                del configuration.sharding_spec[at]


def _varint(number: int) -> bytes:
    """Write a length as protobuf does: seven bits a byte, the low ones first."""
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*written, number))


def _serialized(proto: ModelProto, path: str) -> bytes:
    """Return the bytes of a model."""
    try:
        data = bytes(proto.SerializeToString(deterministic=True))
    except Exception as error:
        # EncodeError or ValueError, as the version of protobuf has it; nothing else can be wrong here.
        raise _too_large(path) from error
    if len(data) > LARGEST:
        raise _too_large(path)
    return data


def _too_large(path: str) -> NotEditable:
    return NotEditable(
        f"{path}: with the new nodes the model takes more than 2 GiB, the most that a protobuf file "
        "can have, expected large tensors as external data"
    )
