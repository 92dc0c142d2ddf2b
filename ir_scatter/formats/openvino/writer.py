"""Writes patches into the text of an IR as text edits. Every other byte stays.

A patch replaces one layer by a fragment. New layers go before it. The layer itself becomes the result
node of the fragment, so that its id and outgoing edges stay:

    <layer id="7" name="s" type="ScatterUpdate">   ->   <layer id="9" name="s/indices_flat" type="Reshape">
                                                        <layer id="7" name="s" type="ScatterNDUpdate">
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ir_scatter.core.element_types import ElementType
from ir_scatter.core.errors import NotEditable
from ir_scatter.core.fragment import Fragment, NewConstant, NewNode, Patch
from ir_scatter.core.memory import collector_paused
from ir_scatter.core.model import Model, Node, OperatorUse, Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Shape, claims_more
from ir_scatter.formats.base import FileBeside, ReadOptions, Written
from ir_scatter.formats.openvino.elements import (
    NewBytes,
    NewElement,
    Style,
    escape,
    new_edge,
    new_layer,
    new_port,
)
from ir_scatter.formats.openvino.graph import CONST, PARAMETER, IrGraph, Port
from ir_scatter.formats.openvino.index import EdgePlace, edge_places
from ir_scatter.formats.openvino.layers import LayerText
from ir_scatter.formats.openvino.xml_text import (
    attribute_places,
    attributes,
    parse_elements,
    show_text,
    tag_end,
    unescape,
)
from ir_scatter.formats.text_edits import Edit, apply_edits, line_lead, removal

_LONGEST_ID = 18
"""Limit of digits of an id: OpenVINO reads ids as signed 64-bit numbers."""
_INPUT_END = b"</input>"
_USUAL_NAME = re.compile(rb'<layer id="[^"]*" name="([^"&\t\r\n]*)"')


def write_ir(model: Model, patches: Sequence[Patch]) -> Written:
    """Apply patches, at most one for each node, to the text that a model was read from.

    Raises:
        NotEditable: the file, or one of the nodes, has an unusual form that cannot be edited safely.
    """
    net = model.graph
    assert isinstance(net, IrGraph)
    if model.source.is_transcoded:
        raise NotEditable(f"{model.path} is written in another encoding, expected UTF-8")
    with collector_paused():
        writer = _Writer(net)
        by_graph: dict[IrGraph, dict[bytes, Patch]] = {}
        for patch in patches:
            assert isinstance(patch.node.graph, IrGraph)
            for problem in _problems(patch.node.graph, patch.node.handle):
                raise NotEditable(f"{patch.node.scope} cannot be replaced: {problem}", [patch.node])
            by_graph.setdefault(patch.node.graph, {})[patch.node.handle] = patch
        assert sum(map(len, by_graph.values())) == len(patches), "a node is replaced twice"
        for graph, graph_patches in by_graph.items():
            writer.replace(graph, graph_patches)
        appended = writer.new_bytes.join()
        size, end = _weights_size(net), _constants_end(net)
        if appended and end > size:
            weights, missing = net.file.weights, "a model from standard input has no .bin"
            if weights is not None:
                missing = f"{weights.path.name} cannot be read ({weights.error})" if weights.error else ""
            reason = missing or f"its constants end at byte {end} of a .bin that has {size}"
            raise NotEditable(
                f"{net.file.text.path}: {reason}: new constants cannot be appended",
                [patch.node for patch in patches if patch.fragment.constants],
            )
        xml = net.file.text.mark + apply_edits(net.file.text.data, writer.edits)
        return Written(xml, appended, tuple(writer.edits))


def _problems(graph: IrGraph, key: bytes) -> Iterator[str]:
    """Yield the reasons why a layer cannot be replaced: unusual ids, edges, bodies or outputs."""
    body, id, layer = graph.body, graph.id_of(key), graph.layer(key)
    edges = body.edges.get(id.encode(), [])
    if body.repeated_layers:
        yield f"several layers have the id {show_text(graph.id_of(body.repeated_layers[0]))}, expected one"
    if not _is_id(id.encode()):
        yield f"its id is '{show_text(id)}', expected a number"
    if key in body.bodies:
        yield "it has bodies, expected none"
    inputs = [port.id for port in layer.inputs]
    ids = [*inputs, *(port.id for port in layer.outputs)]
    if len({*ids}) < len(ids) or not all(map(_is_id, ids)):
        yield "the ids of its ports are not unique numbers"
    if len(layer.outputs) != 1:
        yield f"it has {len(layer.outputs)} outputs, expected one"
    if sorted(edge[3] for edge in edges) != sorted(inputs):
        yield "not every input has exactly one edge"
    variable = [edge[:2] for edge in edges if edge[1] != b"0" or edge[0] not in body.constants]
    if not all(port in graph.output_ports(origin) for origin, port in variable):
        yield "one of its inputs comes from a layer or a port that does not exist"


def _is_id(id: bytes) -> bool:
    return id.isdigit() and len(id) <= _LONGEST_ID


def weights_beside(model: Model, path: Path) -> FileBeside:
    """Return the `.bin` of an IR, with the file name for a copy of the model at `path`."""
    net = model.graph
    assert isinstance(net, IrGraph)
    original, copy, weights = Path(model.path).with_suffix(".bin"), path.with_suffix(".bin"), net.file.weights
    identity = None if weights is None else weights.identity
    if original.is_file():
        return FileBeside(original, copy.name, identity, None if weights is None else weights.size)
    is_missed = copy != original and _constants_end(net) > _weights_size(net)
    problem = f"there is no {original}, so none was written" if is_missed else ""
    return FileBeside(original, copy.name, identity, problem=problem)


def _weights_size(net: IrGraph) -> int:
    return (net.file.weights.size or 0) if net.file.weights else 0


def _constants_end(net: IrGraph) -> int:
    places = [graph.declared(key)[2] for graph in net.with_bodies() for key in graph.keys_of(CONST)]
    return max((sum(place) for place in places if place), default=0)


def _placeholder(name: str) -> str:
    """Return a placeholder, marked by a byte that XML forbids."""
    return f"\0{name}\0"


def _fill(text: bytes, values: Mapping[bytes, bytes]) -> bytes:
    parts = text.split(b"\0")
    parts[1::2] = [values[name] for name in parts[1::2]]
    return b"".join(parts)


class _Template(NamedTuple):
    """The XML text of new layers with placeholders, filled once for each node with equal signature.

    Placeholders: `id0`, `name0` ... of new layers (names end in `labels`); `from0`, `port0` ... of the
    sources of the replaced layer; `self` for the id of the replaced layer. `part` is the new text after the
    start tag of the replaced layer.
    """

    labels: list[str]
    layers: bytes
    edges: bytes
    part: bytes


class _Writer:
    def __init__(self, net: IrGraph) -> None:
        self.data = net.file.text.data
        self.new_bytes = NewBytes(_weights_size(net))
        self.edits: list[Edit] = []
        self.names: set[bytes] = set()
        self.numbers: dict[bytes, int] = {}
        self.templates: dict[tuple[object, ...], _Template] = {}
        for graph in net.with_bodies():
            for _, start, _ in graph.body.layers.values():
                match = _USUAL_NAME.match(self.data, start)
                tag = {} if match else attributes(self.data, start, tag_end(self.data, start))
                self.names.add(match[1] if match else tag.get(b"name", b""))

    def replace(self, graph: IrGraph, patches: Mapping[bytes, Patch]) -> None:
        body = graph.body
        edges: dict[bytes, list[EdgePlace]] = {key: [] for key in patches}
        for place in edge_places(self.data, body):
            if place.edge[2] in edges:
                edges[place.edge[2]].append(place)
        named = {*body.layers, *body.edges, *(edge[0] for fed in body.edges.values() for edge in fed)}
        next_id = max((int(id) for id in named if _is_id(id)), default=-1) + 1
        for key in sorted(patches, key=lambda key: body.layers[key][1]):
            try:
                next_id += self._replace_one(graph, patches[key], edges[key], next_id)
            except NotEditable as error:
                raise NotEditable(str(error), [patches[key].node]) from None

    def _replace_one(self, graph: IrGraph, patch: Patch, edges: list[EdgePlace], next_id: int) -> int:
        """Add the edits of one patch; return the number of new layer ids."""
        data, (node, fragment) = self.data, patch
        layer, (_, start, end) = graph.layer(node.handle), graph.body.layers[node.handle]
        first = tag_end(data, start)
        tag = attribute_places(data, start, first)
        part = _changing_part(data[first:end])

        lead, inner = line_lead(data, start), line_lead(part, part.find(b"<"))
        step = inner.removeprefix(lead) if inner.startswith(lead) else b"\t"
        closing = b" " if data[edges[0].end - 3 : edges[0].end] == b" />" else b""
        quote = data[tag[b"id"][1] : tag[b"id"][1] + 1]
        style = Style(lead, step if lead and inner else None, quote, closing)

        origins = {place.edge[3]: place.edge[:2] for place in edges}
        sources = [origins[port.id] for port in layer.inputs]
        numbers = [fragment.number_given(value) for value in _inputs(fragment.result)]
        is_same = tuple(
            number is not None and place < len(sources) and sources[number] == sources[place]
            for place, number in enumerate(numbers)
        )
        same = {port.id for port, stays in zip(layer.inputs, is_same, strict=False) if stays}
        gone = [place for place in edges if place.edge[3] not in same]
        near = gone[0] if gone else edges[-1]
        edge_lead = line_lead(data, near.start)
        stored = tuple([_stored(graph, origin) for origin in sources])
        key = fragment, style, edge_lead, part, layer.outputs[0].id, is_same, stored
        if key not in self.templates:
            new = _with_stored_types(fragment, stored, graph.file.options)
            self.templates[key] = self._template(node, new, layer, style, edge_lead, part, is_same)
        template = self.templates[key]

        name = data[slice(*tag[b"name"])] if b"name" in tag else b""
        values = {b"self": edges[0].edge[2]}
        for number, label in enumerate(template.labels):
            values[b"id%d" % number] = b"%d" % (next_id + number)
            values[b"name%d" % number] = self._new_name(name or node.name.encode(), label)
        for number, (origin, port) in enumerate(sources):
            values |= {b"from%d" % number: origin, b"port%d" % number: port}

        self.edits += [Edit(start, start, _fill(template.layers, values))] if template.layers else []
        result = fragment.result
        if node.type.lower() != result.type.lower():
            self.edits.append(Edit(*tag[b"type"], escape(result.type)))
        if node.opset != result.opset and b"version" in tag:
            self.edits.append(Edit(*tag[b"version"], escape(str(result.opset))))
        elif node.opset != result.opset:
            behind = tag[b"type"][1] + len(quote)
            self.edits.append(Edit(behind, behind, style.attribute("version", str(result.opset))))
        if template.part != part:
            self.edits.append(Edit(first, first + len(part), template.part))
        text = _fill(template.edges, values)
        if text and gone:
            self.edits.append(Edit(near.start, near.end, text))
        elif text:
            self.edits.append(Edit(near.end, near.end, edge_lead + text))
        self.edits += [removal(data, place.start, place.end) for place in (gone[1:] if text else gone)]
        return len(template.labels)

    def _new_name(self, raw: bytes, label: str) -> bytes:
        """Return an unused layer name, escaped, and reserve it in the whole file.

        `raw` is an escaped name of the file. The result is valid within both kinds of quotation marks.
        """
        base = raw.replace(b'"', b"&quot;").replace(b"'", b"&apos;")
        name = preferred = b"%b/%b" % (base, escape(label))
        number = self.numbers.get(preferred, 1)
        while (unescape(name) if b"&" in name else name) in self.names:
            number += 1
            name = b"%b_%d" % (preferred, number)
        self.numbers[preferred] = number
        self.names.add(unescape(name) if b"&" in name else name)
        return name

    def _template(
        self, node: Node, fragment: Fragment, layer: LayerText, style: Style, edge_lead: bytes, part: bytes,
        is_same: tuple[bool, ...],
    ) -> _Template:  # fmt: skip
        result = fragment.result
        labels: list[str] = []
        layers: list[NewElement] = []
        edges: list[NewElement] = []
        feeds = {
            id(value): (_placeholder(f"from{number}"), _placeholder(f"port{number}"))
            for number, value in reversed([*enumerate(fragment.given)])
        }

        def begin(label: str) -> tuple[str, str]:
            labels.append(label)
            return _placeholder(f"id{len(labels) - 1}"), _placeholder(f"name{len(labels) - 1}")

        for new in fragment.news:
            inputs = _inputs(new)
            for value in inputs:
                if isinstance(value.constant, NewConstant) and id(value) not in feeds:
                    place, name = begin(value.constant.label)
                    layers.append(self.new_bytes.layer(place, name, value.constant))
                    feeds[id(value)] = place, "0"
            if new is not result:
                place, name = begin(new.label)
                layers.append(new_layer(place, name, new.type, new.opset, new.attributes, inputs, new.output))
                edges += [new_edge(feeds[id(value)], (place, str(port))) for port, value in enumerate(inputs)]
                feeds[id(new.output)] = place, str(len(inputs))
        part, ports = _new_part(node, layer, result, style, part, is_same)
        for value, port, stays in zip(_inputs(result), ports, is_same, strict=True):
            if not stays:
                edges.append(new_edge(feeds[id(value)], (_placeholder("self"), port)))
        texts = [style.text(element, style.lead) + style.lead for element in layers]
        return _Template(
            labels, b"".join(texts), edge_lead.join(style.text(element, b"") for element in edges), part
        )


def _stored(graph: IrGraph, origin: Port) -> tuple[ElementType | None, Shape]:
    """Return the (element type, shape) that the file stores for an output port."""
    key, id = origin
    if graph.type_of(key) in {CONST, PARAMETER}:
        return graph.declared(key)[:2]
    port = graph.layer(key).outputs[graph.output_ports(key)[id]]
    return port.element_type, port.shape


def _with_stored_types(
    fragment: Fragment, stored: Sequence[tuple[ElementType | None, Shape]], options: ReadOptions
) -> Fragment:
    """Return a fragment with types and shapes recomputed from those stored in the file for its inputs.

    If the file contradicts itself, inferred shapes differ from stored ones, and new ports with inferred
    shapes would contradict their sources.
    """
    weakened: dict[Value | None, Value] = {}

    def weaken(value: Value, type: ElementType | None, shape: Shape) -> None:
        is_other = None not in {type, value.element_type} and type is not value.element_type
        if is_other or claims_more(value.shape, shape):
            is_like = value.shape is not None and shape is not None and len(value.shape) == len(shape)
            pairs = zip(value.shape or (), shape or (), strict=False)
            dims = (
                tuple(dim if dim == stored_dim else UNKNOWN_DIM for dim, stored_dim in pairs)
                if is_like
                else None
            )
            weakened[value] = replace(
                value, element_type=None if is_other else value.element_type, shape=dims
            )

    for value, result in zip(fragment.given, stored, strict=True):
        if value is not None:
            weaken(value, *result)
    if not weakened or options.operators is None:
        return fragment
    news = []
    for new in fragment.news:
        inputs = [weakened.get(value, value) for value in _inputs(new)]
        arrays = [
            input.constant.array if isinstance(input.constant, NewConstant) else None for input in inputs
        ]
        types, shapes = [input.element_type for input in inputs], [input.shape for input in inputs]

        def numbers(port: int, arrays: Sequence[Any] = arrays) -> list[int] | None:
            array = arrays[port] if port < len(arrays) else None
            return None if array is None else array.reshape(-1).tolist()

        use = OperatorUse(new.type, new.opset, new.attributes, types, shapes, numbers)
        results = (
            [*zip(types, shapes, strict=True)]
            if new.type in options.scatter_types
            else options.operators.outputs(use)
        )
        for result in results[:1]:
            weaken(new.output, *result)
        news.append(replace(new, inputs=tuple(inputs), output=weakened.get(new.output, new.output)))
    return Fragment([weakened.get(value, value) for value in fragment.given], news)


def _inputs(new: NewNode) -> list[Value]:
    values = [value for value in new.inputs if value is not None]
    if len(values) < len(new.inputs):
        raise NotEditable(f"the new {new.type} '{new.label}' omits an input, expected all of them")
    return values


def _changing_part(rest: bytes) -> bytes:
    """Return the text from the end of a start tag to the end of `<input>`; all text of an unusual layer.

    Layers that differ only in the names of their outputs have this text in common.
    """
    part = rest[: rest.find(_INPUT_END) + len(_INPUT_END)]
    is_usual = (
        _INPUT_END in part and rest.count(b"<data") == part.count(b"<data") and rest.count(b"<input") == 1
    )
    return part if is_usual and b"<!" not in part and b"<?" not in part else rest


def _new_part(
    node: Node, layer: LayerText, new: NewNode, style: Style, part: bytes, is_same: tuple[bool, ...]
) -> tuple[bytes, list[str]]:
    """Replace `<data>` and input ports by those of a fragment's result node.

    `is_same` says for each input whether its edge stays. Returns the new text and the ids of the input ports:
    existing ids first, then unused ones.
    """
    root, values = parse_elements(part), _inputs(new)
    datas, inputs, ports = (list(root.iterfind(path)) for path in ("data", "input", "input/port"))
    problem = ""
    if len(datas) > 1:
        problem = f"<data> {len(datas)} times, expected once"
    elif len(inputs) != 1:
        problem = f"<input> {len(inputs)} times, expected once"
    elif len(ports) != len(layer.inputs) or not ports:
        problem = f"{len(ports)} input ports, expected {len(layer.inputs) or 'some'}"
    if problem:
        raise NotEditable(f"{node.scope} cannot be replaced: it has {problem}")

    edits = []
    if dict(new.attributes) != layer.attributes:
        data = style.text(NewElement("data", new.attributes), b"")
        if datas:
            start, end = datas[0].start, datas[0].end
            edits.append(Edit(start, end, data) if new.attributes else removal(part, start, end))
        elif new.attributes:
            edits.append(Edit(0, 0, style.inner(style.lead) + data))

    ids = [port.id.decode() for port in layer.inputs]
    first = max(int(port.id) for port in (*layer.inputs, *layer.outputs)) + 1
    ids += [str(first + number) for number in range(len(values) - len(ids))]
    for number, port in enumerate(ports):
        if number >= len(values):
            edits.append(removal(part, port.start, port.end))
        elif not is_same[number]:
            old, value = layer.inputs[number], values[number]
            dims = tuple(dim if isinstance(dim, int) else UNKNOWN_DIM for dim in value.shape or ())
            is_right = old.element_type is value.element_type and dims == (old.shape or ())
            if not is_right or old.bad_dims or b"rt_info" in part[port.start : port.end]:
                text = style.text(new_port(ids[number], value), line_lead(part, port.start))
                edits.append(Edit(port.start, port.end, text))
    place, lead = ports[-1].end, line_lead(part, ports[-1].start)
    for number in range(len(ports), len(values)):
        edits.append(Edit(place, place, lead + style.text(new_port(ids[number], values[number]), lead)))
    return apply_edits(part, edits), ids[: len(values)]
