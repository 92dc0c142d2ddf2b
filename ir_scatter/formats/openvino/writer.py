"""Patches to the text of an IR: every byte that they do not concern stays."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ir_scatter.core.element_types import ElementType, dtype
from ir_scatter.core.errors import NotEditable
from ir_scatter.core.fragment import Fragment, NewConstant, NewNode, Patch
from ir_scatter.core.model import Model, Node, Value, collector_paused
from ir_scatter.core.shapes import UNKNOWN_DIM, Shape
from ir_scatter.formats.base import FileBeside, OneNode, Written
from ir_scatter.formats.openvino.graph import CONST, IrGraph, byte_range
from ir_scatter.formats.openvino.index import Body, EdgePlace, edge_places
from ir_scatter.formats.openvino.layers import LayerText, PortText
from ir_scatter.formats.openvino.xml_text import (
    Element,
    attribute_places,
    attributes,
    parse_elements,
    shown,
    tag_end,
    unescaped,
)
from ir_scatter.formats.text_edits import Edit, apply_edits, line_lead, removal

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

_LONGEST_ID = 18
"""OpenVINO reads ids as signed numbers of 64 bits."""
_STEP = b"\t"
_INPUT_END = b"</input>"
_USUAL_NAME = re.compile(rb'<layer id="[^"]*" name="([^"&\t\r\n]*)"')
_GAP = re.compile(rb"\0(\w+)\0")
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}
    | {space: f"&#{ord(space)};" for space in "\t\r\n"}
)

Feed: TypeAlias = tuple[bytes, bytes]
"""What feeds an input, as an edge names it: a layer's id and its output port, or gaps for them."""


def write_ir(model: Model, patches: Sequence[Patch]) -> Written:
    """Write patches into the text that a model was read from.

    Args:
        model: an IR.
        patches: each of another node; a fragment may stand in many of them.

    Raises:
        NotEditable: the file, or one of the nodes, is written in a way that cannot be edited safely.
    """
    assert isinstance(model.graph, IrGraph)
    if model.source.is_transcoded:
        raise NotEditable(f"{model.path} is written in another encoding, expected UTF-8")
    with collector_paused():
        return _Writer(model.graph).write(patches)


class _Writer:
    """Collects the edits of patches."""

    def __init__(self, net: IrGraph) -> None:
        self.net = net
        self.data = net.file.text.data
        self.new_bytes = NewBytes(_weights_size(net))
        self.names = _LayerNames(self.data, net)
        self.templates: dict[tuple[Fragment, _Look], _Template] = {}
        self.edits: list[Edit] = []

    def write(self, patches: Sequence[Patch]) -> Written:
        by_graph: dict[IrGraph, dict[bytes, Patch]] = {}
        for patch in patches:
            _check_node(patch.node)
            assert isinstance(patch.node.graph, IrGraph)
            by_graph.setdefault(patch.node.graph, {})[patch.node.handle] = patch
        assert sum(map(len, by_graph.values())) == len(patches), "a node is replaced twice"
        for graph, found in by_graph.items():
            edges: dict[bytes, list[EdgePlace]] = {key: [] for key in found}
            for place in edge_places(self.data, graph.body):
                if place.edge[2] in edges:
                    edges[place.edge[2]].append(place)
            next_id = _greatest_id(graph.body) + 1
            for key in sorted(found, key=lambda key: graph.body.layers[key][1]):
                next_id += self._replace(found[key], graph, edges[key], next_id)
        appended = self.new_bytes.join()
        if appended:
            _demand_weights(self.net)
        xml = self.net.file.text.mark + apply_edits(self.data, self.edits)
        return Written(xml, appended, tuple(self.edits))

    def _replace(self, patch: Patch, graph: IrGraph, edges: list[EdgePlace], next_id: int) -> int:
        """Enter the edits of one patch, and return how many layers are new."""
        data, node, fragment = self.data, patch.node, patch.fragment
        layer, (_, start, end) = graph.layer(node.handle), graph.body.layers[node.handle]
        first = tag_end(data, start)
        tag = attribute_places(data, start, first)
        part = _changing_part(data[first:end])
        quote = data[tag[b"id"][1] : tag[b"id"][1] + 1]
        style = _style(data, start, part, quote, edges[0])

        origins = {place.edge[3]: place.edge[:2] for place in edges}
        given = [origins[port.id] for port in layer.inputs]
        numbers = [fragment.number_given(value) for value in _inputs(fragment.result)]
        is_kept = tuple(
            number is not None and place < len(given) and given[number] == given[place]
            for place, number in enumerate(numbers)
        )
        kept = {port.id for port, stays in zip(layer.inputs, is_kept, strict=False) if stays}
        gone = [place for place in edges if place.edge[3] not in kept]
        near = gone[0] if gone else edges[-1]
        look = _Look(style, line_lead(data, near.start), part, layer.outputs[0].id, is_kept)
        template = self.templates.get((fragment, look))
        if template is None:
            template = _Template(fragment, look, layer, self.new_bytes, node)
            self.templates[fragment, look] = template

        raw = data[slice(*tag[b"name"])] if b"name" in tag else b""
        values = {b"self": edges[0].edge[2]}
        for id, (id_gap, name_gap, label) in enumerate(template.new_layers, next_id):
            values[id_gap] = b"%d" % id
            values[name_gap] = self.names.new(raw or node.name.encode(), label)
        for (from_gap, port_gap), origin in zip(template.feeds, given, strict=True):
            values[from_gap], values[port_gap] = origin

        if template.new_layers:
            self.edits.append(Edit(start, start, template.layers % values))
        self.edits += _tag_edits(node, fragment.result, tag, style)
        if template.part != part:
            self.edits.append(Edit(first, first + len(part), template.part))
        self.edits += self._edge_edits(gone, near, look.edge_lead, template.edges % values)
        return len(template.new_layers)

    def _edge_edits(
        self, gone: Sequence[EdgePlace], near: EdgePlace, lead: bytes, text: bytes
    ) -> Iterator[Edit]:
        """Put new edges where the first one goes, or behind the last one if none does."""
        if text and gone:
            yield Edit(near.start, near.end, text)
        elif text:
            yield Edit(near.end, near.end, lead + text)
        for place in gone[1:] if text else gone:
            yield removal(self.data, place.start, place.end)


def write_single_node(node: OneNode) -> tuple[bytes, bytes]:
    """Return the `.xml` and the `.bin` of a model with one node.

    Raises:
        NotEditable: a constant is of a type that cannot be written.
    """
    style, weights = Style(b"\n\t\t", b"\t", b'"', b" "), NewBytes(0)
    given = [one for one in node.inputs if one is not None]
    values = [Value(None, one.element_type, one.array.shape) for one in given]
    layers, edges = [], []
    count = b"%d" % len(given)
    for number, (one, value) in enumerate(zip(given, values, strict=True)):
        id, name = b"%d" % number, escaped(one.name)
        if one.is_constant:
            constant = NewConstant(one.name, one.element_type, one.array)
            layers.append(style.constant(id, name, constant, weights))
        else:
            data = {"shape": ",".join(map(str, one.array.shape)), "element_type": one.element_type.name}
            parts = [style.data(data), style.ports(b"output", [value], names=name)]
            layers.append(style.layer(id, name, "Parameter", "opset1", parts))
        edges.append(style.edge((id, b"0"), (count, id)))
    output = Value(None, node.element_type, node.shape)
    attributes = {name: str(value) for name, value in node.attributes.items()}
    layers.append(style.node(count, b"node", node.type, node.opset, attributes, values, output, b"output"))
    result = b"%d" % (len(given) + 1)
    layers.append(style.layer(result, b"result", "Result", "opset1", [style.ports(b"input", [output])]))
    edges.append(style.edge((count, count), (result, b"0")))
    text = (
        b'<?xml version="1.0"?>\n<net name="one_node" version="11">\n'
        b"\t<layers>%b\n\t</layers>\n\t<edges>%b\n\t</edges>\n</net>\n"
    )
    return text % tuple(
        b"".join(style.lead + one for one in ones) for ones in (layers, edges)
    ), weights.join()


# Whether a node can be replaced.


def _check_node(node: Node) -> None:
    """Demand that a node can be replaced: one layer with its id, one edge into each input, one output."""
    assert isinstance(node.graph, IrGraph)
    for problem in _problems(node.graph, node.handle):
        raise NotEditable(f"{node.scope} cannot be replaced: {problem}")


def _problems(graph: IrGraph, key: bytes) -> Iterator[str]:
    body, id, layer = graph.body, graph.id_of(key), graph.layer(key)
    edges = body.edges.get(id.encode(), [])
    if body.repeated_layers:
        yield f"several layers have the id {shown(graph.id_of(body.repeated_layers[0]))}, expected one"
    if not _is_id(id.encode()):
        yield f"its id is '{shown(id)}', expected a number"
    if key in body.bodies:
        yield "it holds bodies, expected none"
    inputs = [port.id for port in layer.inputs]
    ids = [*inputs, *(port.id for port in layer.outputs)]
    if len({*ids}) < len(ids) or not all(map(_is_id, ids)):
        yield "the ids of its ports are not different numbers"
    if len(layer.outputs) != 1:
        yield f"it has {len(layer.outputs)} outputs, expected one"
    if sorted(edge[3] for edge in edges) != sorted(inputs):
        yield "there is not one edge into each of its inputs"
    if not all(graph.has_output(origin, port) for origin, port, _, _ in edges):
        yield "one of its inputs comes from a layer or a port that does not exist"


def _is_id(id: bytes) -> bool:
    return id.isdigit() and len(id) <= _LONGEST_ID


def _greatest_id(body: Body) -> int:
    """Return the greatest id that a body or one of its edges names; those that are no ids do not count."""
    named = {*body.layers, *body.edges}
    for edges in body.edges.values():
        named.update([edge[0] for edge in edges])
    return max((int(id) for id in named if _is_id(id)), default=-1)


def weights_beside(model: Model, path: Path) -> FileBeside:
    """Return the `.bin` of an IR, as a copy of it at a path would name it."""
    assert isinstance(model.graph, IrGraph)
    own, location = Path(model.path).with_suffix(".bin"), path.with_suffix(".bin").name
    known = model.graph.file.weights
    identity = None if known is None else known.identity
    if own.is_file():
        return FileBeside(own, location, identity, None if known is None else known.size)
    is_copied = path.with_suffix(".bin") != own
    is_missed = is_copied and max(_constant_ends(model.graph), default=0) > _weights_size(model.graph)
    problem = f"there is no {own}, so none was written" if is_missed else ""
    return FileBeside(own, location, identity, problem=problem)


def _demand_weights(graph: IrGraph) -> None:
    """Demand that no constant lies where new ones would be appended: the `.bin` may end too soon."""
    size = _weights_size(graph)
    end = max(_constant_ends(graph), default=0)
    if end > size:
        raise NotEditable(
            f"{graph.file.text.path}: its constants end at byte {end} of a .bin that has {size}: "
            "there is no place for new ones"
        )


def _weights_size(graph: IrGraph) -> int:
    weights = graph.file.weights
    return (weights.size or 0) if weights else 0


def _constant_ends(net: IrGraph) -> Iterator[int]:
    for graph in net.with_bodies():
        for _, _, offset, size in graph.body.constants.values():
            yield int(offset) + int(size)
        for key in graph.keys_of(CONST):
            if key not in graph.body.constants:
                yield sum(byte_range(graph.layer(key)) or (0,))


# What is written.


class Style(NamedTuple):
    """How a file is written.

    Attributes:
        lead: line break and indentation of a layer; nothing if it does not begin a line.
        step: what its content is indented by beyond that; None if it stands on the same line.
        quote: the quotation mark.
        closing: what stands before `/>`.
    """

    lead: bytes
    step: bytes | None
    quote: bytes
    closing: bytes

    def deeper(self, lead: bytes) -> bytes:
        """Return the lead of what is inside an element with this lead."""
        return b"" if not lead or self.step is None else lead + self.step

    def attributes(self, pairs: Iterable[tuple[str, bytes]]) -> bytes:
        """Write attributes whose values are escaped already."""
        return b"".join(b" %b=%b%b%b" % (name.encode(), self.quote, text, self.quote) for name, text in pairs)

    def element(
        self, name: bytes, pairs: Iterable[tuple[str, bytes]], inside: Sequence[bytes], lead: bytes
    ) -> bytes:
        """Write an element that stands behind a lead, without that lead."""
        written = name + self.attributes(pairs)
        if not inside:
            return b"<%b%b/>" % (written, self.closing)
        inner = self.deeper(lead)
        return b"<%b>%b%b</%b>" % (
            written, b"".join(inner + one for one in inside), lead if inner else b"", name,
        )  # fmt: skip

    def data(self, pairs: Mapping[str, str]) -> bytes:
        """Write `<data>`."""
        return self.element(b"data", ((name, escaped(text)) for name, text in pairs.items()), (), b"")

    def port(self, id: bytes, value: Value, lead: bytes, names: bytes = b"") -> bytes:
        """Write a port with the dimensions of a value."""
        pairs = [("id", id), ("precision", _precision(value.element_type))]
        pairs += [("names", names)] if names else []
        dims = [b"<dim>%d</dim>" % (dim if isinstance(dim, int) else -1) for dim in value.shape or ()]
        return self.element(b"port", pairs, dims, lead)

    def ports(self, name: bytes, values: Sequence[Value], first: int = 0, names: bytes = b"") -> bytes:
        """Write the `<input>` or `<output>` of a layer."""
        lead = self.deeper(self.lead)
        inner = self.deeper(lead)
        ports = [self.port(b"%d" % number, value, inner, names) for number, value in enumerate(values, first)]
        return self.element(name, (), ports, lead)

    def layer(self, id: bytes, name: bytes, type: str, version: object, parts: Sequence[bytes]) -> bytes:
        """Write a layer; its id and its name are escaped already."""
        texts = (id, name, escaped(type), escaped(str(version)))
        pairs = zip(("id", "name", "type", "version"), texts, strict=True)
        return self.element(b"layer", pairs, parts, self.lead)

    def node(
        self, id: bytes, name: bytes, type: str, version: object,
        attributes: Mapping[str, str], inputs: Sequence[Value], output: Value, names: bytes = b"",
    ) -> bytes:  # fmt: skip
        """Write the layer of a node with one output, and the names of its tensor."""
        parts = [self.data(attributes)] if attributes else []
        parts += [self.ports(b"input", inputs)] if inputs else []
        parts.append(self.ports(b"output", [output], len(inputs), names))
        return self.layer(id, name, type, version, parts)

    def edge(self, feed: Feed, to: Feed) -> bytes:
        """Write an edge."""
        names = ("from-layer", "from-port", "to-layer", "to-port")
        return self.element(b"edge", zip(names, feed + to, strict=True), (), b"")

    def constant(self, id: bytes, name: bytes, constant: NewConstant, bytes: "NewBytes") -> bytes:
        """Write a Const, and place what is in it."""
        offset, size = bytes.place(constant)
        assert constant.element_type is not None
        data = {
            "element_type": constant.element_type.name,
            "shape": ", ".join(map(str, constant.shape)),
            "offset": str(offset),
            "size": str(size),
        }
        value = Value("", constant.element_type, constant.shape)
        return self.layer(id, name, "Const", "opset1", [self.data(data), self.ports(b"output", [value])])


@lru_cache(1 << 8)
def escaped(text: str) -> bytes:
    """Return a text as the value of an attribute, between quotation marks of either kind."""
    return text.translate(_ESCAPES).encode()


def _precision(element_type: ElementType | None) -> bytes:
    if element_type is None:
        return b"UNSPECIFIED"
    return (element_type.ir_name or element_type.name.upper()).encode()


def _style(data: bytes, start: int, part: bytes, quote: bytes, edge: EdgePlace) -> Style:
    """Find out how a layer is written; what it does not show is taken from an edge into it."""
    lead, inner = line_lead(data, start), line_lead(part, part.find(b"<"))
    step = inner.removeprefix(lead) if inner.startswith(lead) else _STEP
    is_flat = not lead or not inner
    closing = b" " if data[edge.end - 3 : edge.end] == b" />" else b""
    return Style(lead, None if is_flat else step, quote, closing)


class _Look(NamedTuple):
    """What of a node's text, and of the edges into it, decides how a fragment is written in its place.

    Attributes:
        style: of the layer.
        edge_lead: what stands before the edges.
        part: what follows the start tag, up to where nothing changes.
        output: the id of the output port.
        is_kept: of each input of the fragment's result, whether it is the one that was there before.
    """

    style: Style
    edge_lead: bytes
    part: bytes
    output: bytes
    is_kept: tuple[bool, ...]


class _Template:
    """A fragment as text for all nodes of one look, which differ in ids and names.

    Attributes:
        new_layers: for each, the names of the gaps for its id and its name, and the end of that name.
        feeds: for each input of the replaced node, the names of the gaps for what feeds it.
        layers: the new layers with gaps for `%`.
        edges: with gaps as well; `self` is the layer that stays.
        part: what stands behind the start tag of the layer that stays.
    """

    def __init__(
        self, fragment: Fragment, look: _Look, layer: LayerText, new_bytes: "NewBytes", node: Node
    ) -> None:
        style, result = look.style, fragment.result
        self.new_layers: list[tuple[bytes, bytes, str]] = []
        self.feeds = [(b"from%d" % number, b"port%d" % number) for number in range(len(layer.inputs))]
        layers: list[bytes] = []
        ends: list[tuple[Feed, Feed]] = []
        feeds: dict[int, Feed] = {}

        given = [(_gap(origin), _gap(port)) for origin, port in self.feeds]

        def feed(value: Value) -> Feed:
            number = fragment.number_given(value)
            return feeds[id(value)] if number is None else given[number]

        def begin(label: str) -> tuple[bytes, bytes]:
            number = len(self.new_layers)
            names = b"id%d" % number, b"name%d" % number
            self.new_layers.append((*names, label))
            return _gap(names[0]), _gap(names[1])

        for new in fragment.news:
            inputs = _inputs(new)
            for value in inputs:
                constant = value.constant
                is_known = id(value) in feeds or fragment.number_given(value) is not None
                if isinstance(constant, NewConstant) and not is_known:
                    place, name = begin(constant.label)
                    layers.append(style.constant(place, name, constant, new_bytes))
                    feeds[id(value)] = place, b"0"
            if new is not result:
                place, name = begin(new.label)
                head = place, name, new.type, new.opset
                layers.append(style.node(*head, new.attributes, inputs, new.output))
                ends += [(feed(value), (place, b"%d" % port)) for port, value in enumerate(inputs)]
                feeds[id(new.output)] = place, b"%d" % len(inputs)

        self.part, ports = _new_part(look, layer, result, node)
        for value, port, is_kept in zip(_inputs(result), ports, look.is_kept, strict=True):
            if not is_kept:
                ends.append((feed(value), (_gap(b"self"), port)))
        self.layers = _template(b"".join(text + style.lead for text in layers))
        self.edges = _template(look.edge_lead.join(style.edge(*end) for end in ends))


def _gap(name: bytes) -> bytes:
    return b"\0%b\0" % name


def _template(text: bytes) -> bytes:
    """Return a text with gaps as `%` takes it; no XML holds the byte 0."""
    return _GAP.sub(rb"%(\1)b", text.replace(b"%", b"%%"))


def _inputs(new: NewNode) -> list[Value]:
    found = [value for value in new.inputs if value is not None]
    if len(found) < len(new.inputs):
        raise NotEditable(f"the new {new.type} '{new.label}' leaves an input out, expected all of them")
    return found


# What changes in the layer that stays.


def _changing_part(rest: bytes) -> bytes:
    """Return what follows a start tag up to the end of `<input>`, or all of it if that is unusual.

    Layers that look the same but for the names of what they compute have it in common.
    """
    end = rest.find(_INPUT_END) + len(_INPUT_END)
    is_usual = (
        end >= len(_INPUT_END)
        and rest.find(b"<data", end) < 0
        and rest.find(b"<input", end) < 0
        and rest.find(b"<!", 0, end) < 0
        and rest.find(b"<?", 0, end) < 0
    )
    return rest[:end] if is_usual else rest


def _tag_edits(
    node: Node, new: NewNode, tag: Mapping[bytes, tuple[int, int]], style: Style
) -> Iterator[Edit]:
    """Yield the edits of type and version in a start tag."""
    if node.type.lower() != new.type.lower():
        yield Edit(*tag[b"type"], escaped(new.type))
    if node.opset != new.opset:
        version = escaped(str(new.opset))
        if b"version" in tag:
            yield Edit(*tag[b"version"], version)
        else:
            place = tag[b"type"][1] + len(style.quote)
            yield Edit(place, place, style.attributes([("version", version)]))


def _new_part(look: _Look, layer: LayerText, new: NewNode, node: Node) -> tuple[bytes, list[bytes]]:
    """Change `<data>` and the input ports into those of a fragment's result.

    Returns:
        The text, and the ids of the input ports: those that are there, then some that no port has.
    """
    part, style, wanted = look.part, look.style, _inputs(new)
    data, ports = _find_parts(part, layer, node)
    edits = _data_edits(part, data, layer, new, style)
    ids = [port.id for port in layer.inputs]
    first = max(int(port.id) for port in (*layer.inputs, *layer.outputs)) + 1
    ids += [b"%d" % (first + number) for number in range(len(wanted) - len(ids))]
    leads = [line_lead(part, port.start) for port in ports]
    for number, port in enumerate(ports):
        if number >= len(wanted):
            edits.append(removal(part, port.start, port.end))
        elif not look.is_kept[number] and not _is_right(
            layer.inputs[number], wanted[number], part[port.start : port.end]
        ):
            text = style.port(ids[number], wanted[number], leads[number])
            edits.append(Edit(port.start, port.end, text))
    place, lead = ports[-1].end, leads[-1]
    for number in range(len(ports), len(wanted)):
        edits.append(Edit(place, place, lead + style.port(ids[number], wanted[number], lead)))
    return apply_edits(part, edits), ids[: len(wanted)]


def _find_parts(part: bytes, layer: LayerText, node: Node) -> tuple[Element | None, list[Element]]:
    """Return `<data>`, if there is one, and the input ports."""
    root = parse_elements(part)
    data, inputs = (list(root.iterfind(name)) for name in ("data", "input"))
    ports = list(root.iterfind("input/port"))
    problem = ""
    if len(data) > 1:
        problem = f"<data> {len(data)} times, expected once"
    elif len(inputs) != 1:
        problem = f"<input> {len(inputs)} times, expected once"
    elif len(ports) != len(layer.inputs) or not ports:
        problem = f"{len(ports)} input ports, expected {len(layer.inputs) or 'some'}"
    if problem:
        raise NotEditable(f"{node.scope} cannot be replaced: it has {problem}")
    return (data[0] if data else None), ports


def _data_edits(part: bytes, old: Element | None, layer: LayerText, new: NewNode, style: Style) -> list[Edit]:
    wanted = dict(new.attributes)
    if wanted == layer.attributes:
        return []
    if not wanted:
        return [removal(part, old.start, old.end)] if old else []
    if old:
        return [Edit(old.start, old.end, style.data(wanted))]
    return [Edit(0, 0, style.deeper(style.lead) + style.data(wanted))]


def _is_right(old: PortText, value: Value, text: bytes) -> bool:
    """Tell whether a port is right as it is written for another input than before."""
    is_plain = b"rt_info" not in text and not old.bad_dims
    return is_plain and value.element_type is old.element_type and _stored(value.shape) == _stored(old.shape)


def _stored(shape: Shape) -> Shape:
    """Return a shape as a port stores it: nothing but numbers and unknown dimensions."""
    return tuple(dim if isinstance(dim, int) else UNKNOWN_DIM for dim in shape or ())


class _LayerNames:
    """Gives new layers names that are unique among all layers of a file, its bodies included."""

    def __init__(self, data: bytes, net: IrGraph) -> None:
        self._taken: set[bytes] = set()
        self._numbers: dict[bytes, int] = {}
        for graph in net.with_bodies():
            for _, start, _ in graph.body.layers.values():
                match = _USUAL_NAME.match(data, start)
                self._taken.add(match[1] if match else _name(data, start))

    def new(self, raw: bytes, label: str) -> bytes:
        """Take a name that begins with one as written, and return it as it is to be written.

        It may stand in other quotation marks than the one that it begins with.
        """
        base = raw.replace(b'"', b"&quot;").replace(b"'", b"&apos;")
        name = wanted = b"%b/%b" % (base, escaped(label))
        meaning = unescaped(name) if b"&" in name else name
        if meaning in self._taken:
            number = self._numbers.get(wanted, 1)
            while meaning in self._taken:
                number += 1
                name = b"%b_%d" % (wanted, number)
                meaning = unescaped(name)
            self._numbers[wanted] = number
        self._taken.add(meaning)
        return name


def _name(data: bytes, start: int) -> bytes:
    return attributes(data, start, tag_end(data, start)).get(b"name", b"")


# New constants.


class NewBytes:
    """What goes behind the end of a `.bin` that has `first` bytes; equal bytes are kept once."""

    def __init__(self, first: int) -> None:
        self._size = first
        self._offsets: dict[bytes, int] = {}

    def place(self, constant: NewConstant) -> tuple[int, int]:
        """Return the offset and the size of a constant; an empty one takes a byte, as in `save_model`.

        Raises:
            NotEditable: constants of this type cannot be written.
        """
        data = _encoded(constant) or b"\0"
        offset = self._offsets.get(data)
        if offset is None:
            offset = self._offsets[data] = self._size
            self._size += len(data)
        return offset, len(data)

    def join(self) -> bytes:
        """Return all bytes."""
        return b"".join(self._offsets)


def _encoded(constant: NewConstant) -> bytes:
    """Return a constant as a `.bin` holds it; types below a byte are packed, the low bits first."""
    element_type = constant.element_type
    wanted = None if element_type is None or element_type.kind == "string" else dtype(element_type)
    if element_type is None or wanted is None or (element_type.bits < 8 and element_type.bits not in (2, 4)):
        name = "unknown" if element_type is None else element_type.name
        raise NotEditable(f"the new constant '{constant.label}' is of type {name}, which cannot be written")
    array = constant.array.astype(wanted.newbyteorder("<"))
    return array.tobytes() if element_type.bits >= 8 else _packed(array, element_type)


def _packed(array: "Array", element_type: ElementType) -> bytes:
    import numpy

    bits = element_type.bits
    per_byte = 8 // bits
    flat = numpy.zeros(element_type.byte_size(array.size) * per_byte, numpy.uint8)
    flat[: array.size] = array.reshape(-1).view(numpy.uint8) & ((1 << bits) - 1)
    shifts = numpy.arange(0, 8, bits, dtype=numpy.uint8)
    packed = numpy.bitwise_or.reduce(flat.reshape(-1, per_byte) << shifts, axis=1)
    return bytes(packed.astype(numpy.uint8))
