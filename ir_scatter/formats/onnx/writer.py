"""Patches to ONNX files: a copy of the model in which nodes are replaced and nothing else.

But for what `scan_outputs` adds where a runtime would refuse the copy.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from onnx import ModelProto, NodeProto

from ir_scatter.core.errors import NotEditable
from ir_scatter.core.fragment import Patch
from ir_scatter.core.model import Model, Node
from ir_scatter.formats.onnx.bytes import bytes_field, encoded
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.formats.onnx.index import GraphIndex
from ir_scatter.formats.onnx.places import Place, find_places
from ir_scatter.formats.onnx.references import content
from ir_scatter.formats.onnx.scan_outputs import keep_ranks
from ir_scatter.formats.onnx.template import INPUT, Template, make_template
from ir_scatter.formats.onnx.types import DEFAULT_DOMAINS, normal_domain, text

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
    numbers = _by_place(patches)
    names: list[tuple[str, ...]] = [()] * len(patches)
    templates: dict[int, Template] = {}
    places = list(find_places(model, copy))
    keep_ranks(model, places, patches)
    for place in reversed(places):  # bodies go before the nodes that hold them
        wanted = numbers.pop(place.index, {})
        found = {at: (number, patches[number]) for at, number in sorted(wanted.items())}
        for number, made in _replace_all(place, found, templates):
            names[number] = made
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


def _replace_all(
    place: Place, patches: Mapping[int, tuple[int, Patch]], templates: dict[int, Template]
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Replace nodes of one graph; yield the numbers of the patches and the names of what they put in.

    A graph that grows is written anew at once: to insert nodes one by one moves all that follow.
    """
    nodes, fields, done = place.nodes, list[bytes](), 0
    for position, (number, patch) in patches.items():
        key = id(patch.fragment)
        template = templates.get(key) or templates.setdefault(key, make_template(patch.fragment))
        proto = nodes[position]
        if template.steps:
            fields += [bytes_field(place.number, node.SerializeToString()) for node in nodes[done:position]]
            done = position
        if template.keeps_inputs(len(proto.input)):
            yield number, (patch.node.name,)
        else:
            yield number, _insert(fields, place, proto, patch.node.name, template)
        _edit(proto, place, patch.node, template)
    if fields:
        fields += [bytes_field(place.number, node.SerializeToString()) for node in nodes[done:]]
        place.graph.ClearField("node")
        place.graph.MergeFromString(b"".join(fields))


def _insert(
    fields: list[bytes], place: Place, old: NodeProto, base: str, template: Template
) -> tuple[str, ...]:
    """Add the steps and connect the node that is replaced; return the names of all."""
    alias = old.domain if old.domain in DEFAULT_DOMAINS else ""  # a model may import one spelling only
    given = old.input[: template.given]
    names = ["", *given, *[""] * (template.given - len(given))]
    for step in template.steps:
        name = place.names.new(f"{base}/{step.label}")
        inputs = _without_left_out([names[number] for number in step.inputs])
        fields.append(bytes_field(place.number, step.content(inputs, name, alias)))
        names.append(name)
    _connect(old, _without_left_out([names[number] for number in template.inputs]))
    return (*names[1 + template.given :], base)


def _without_left_out(names: "list[str | bytes]") -> "list[str | bytes]":
    """Drop inputs that are left out at the end."""
    while names and not names[-1]:
        names.pop()
    return names


def _connect(proto: NodeProto, names: "list[str | bytes]") -> None:
    """Write the inputs of a node."""
    del proto.input[:]
    proto.MergeFromString(b"".join([bytes_field(INPUT, encoded(name)) for name in names]))


def _edit(proto: NodeProto, place: Place, node: Node, template: Template) -> None:
    """Make the replaced node the one that computes its result."""
    result = template.result
    proto.op_type = result.type
    if normal_domain(proto.domain) != result.domain:
        proto.domain = result.domain
    if proto.overload:
        proto.ClearField("overload")
    written = tuple([attribute.SerializeToString() for attribute in proto.attribute[:]])
    if (written or template.attributes) and written not in template.kept:
        _edit_attributes(proto, place, node, template)
        if not any(attribute.ref_attr_name for attribute in proto.attribute):
            after = tuple([attribute.SerializeToString() for attribute in proto.attribute[:]])
            template.kept.update({written} & {after})
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
