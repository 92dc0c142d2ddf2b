"""Patches to the text of an IR: every byte that they do not concern stays."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from ir_scatter.core.errors import NotEditable
from ir_scatter.core.fragment import Fragment, Patch
from ir_scatter.core.model import Model, Node, collector_paused
from ir_scatter.formats.edits import Edit, apply_edits, line_lead, removal
from ir_scatter.formats.openvino.edges import EdgePlace, edges_into
from ir_scatter.formats.openvino.editable import (
    check_node,
    check_text,
    check_weights,
    greatest_id,
    weights_size,
)
from ir_scatter.formats.openvino.graph import IrGraph
from ir_scatter.formats.openvino.layers import LayerText
from ir_scatter.formats.openvino.names import LayerNames
from ir_scatter.formats.openvino.new_constants import NewBytes
from ir_scatter.formats.openvino.plan import make_plan
from ir_scatter.formats.openvino.replaced import Changed, changing_part, new_part, tag_edits
from ir_scatter.formats.openvino.style import Style
from ir_scatter.formats.openvino.tags import Attribute, LayerTag, layer_tag
from ir_scatter.formats.openvino.template import EdgeTemplate, edges_template, layers_template

_STEP = b"\t"


@dataclass(frozen=True, slots=True)
class IrText:
    """A converted IR.

    Attributes:
        xml: the whole `.xml`.
        appended: what goes behind the end of a copy of the `.bin`.
        edits: of the text as it was read, without a byte order mark.
    """

    xml: bytes
    appended: bytes
    edits: tuple[Edit, ...] = ()


def write_ir(model: Model, patches: Sequence[Patch]) -> IrText:
    """Write patches into the text that a model was read from.

    Args:
        model: an IR.
        patches: each of another node; a fragment may stand in many of them.

    Raises:
        NotEditable: the file, or one of the nodes, is written in a way that cannot be edited safely.
    """
    assert isinstance(model.graph, IrGraph)
    check_text(model.source)
    with collector_paused():
        return _Writer(model.graph).write(patches)


class _Place(NamedTuple):
    """A node to replace.

    Attributes:
        node: the node.
        start: the first byte of its layer.
        end: the end of its layer.
        edges: those into it.
        found: the attributes of its layer.
        rest: what follows the start tag, up to the end.
        style: how it is written.
    """

    node: Node
    start: int
    end: int
    edges: list[EdgePlace]
    found: dict[bytes, Attribute]
    rest: bytes
    style: Style


class _Template:
    """A fragment; what is the same for many nodes is written once."""

    def __init__(self, fragment: Fragment) -> None:
        self.plan = make_plan(fragment)
        self._layers: dict[Style, bytes] = {}
        self._parts: dict[tuple[Style, bytes, bytes, tuple[bool, ...]], Changed] = {}
        self._edges: dict[tuple[Style, tuple[bytes, ...], tuple[bool, ...]], EdgeTemplate] = {}

    def layers(self, style: Style, new_bytes: NewBytes) -> bytes:
        """Return the new layers with gaps for ids and names."""
        if style not in self._layers:
            self._layers[style] = layers_template(self.plan, style, new_bytes)
        return self._layers[style]

    def part(self, part: bytes, layer: LayerText, is_kept: tuple[bool, ...], style: Style) -> Changed:
        """Change the beginning of what follows a start tag."""
        key = style, part, layer.outputs[0].id, is_kept
        if key not in self._parts:
            self._parts[key] = new_part(part, layer, self.plan, is_kept, style)
        return self._parts[key]

    def edges(self, style: Style, ports: tuple[bytes, ...], is_kept: tuple[bool, ...]) -> EdgeTemplate:
        """Return the new edges with gaps for ids."""
        key = style, ports, is_kept
        if key not in self._edges:
            self._edges[key] = edges_template(self.plan, ports, is_kept, style)
        return self._edges[key]


class _Writer:
    """Collects the edits of patches."""

    def __init__(self, net: IrGraph) -> None:
        self.net = net
        self.data = net.file.text.data
        self.new_bytes = NewBytes(weights_size(net))
        self.names = LayerNames(self.data, net.body)
        self.templates: dict[int, _Template] = {}
        self.edits: list[Edit] = []

    def write(self, patches: Sequence[Patch]) -> IrText:
        """Return the new text."""
        by_graph: dict[IrGraph, list[Patch]] = {}
        for patch in patches:
            check_node(patch.node)
            assert isinstance(patch.node.graph, IrGraph)
            by_graph.setdefault(patch.node.graph, []).append(patch)
        for graph, found in by_graph.items():
            self._enter_graph(graph, found)
        appended = self.new_bytes.join()
        if appended:
            check_weights(self.net)
        xml = self.net.file.text.mark + apply_edits(self.data, self.edits)
        return IrText(xml, appended, tuple(self.edits))

    def _enter_graph(self, graph: IrGraph, patches: list[Patch]) -> None:
        layers = graph.body.layers
        handles = {patch.node.handle for patch in patches}
        assert len(handles) == len(patches), "a node is replaced twice"
        edges = edges_into(self.data, graph.body, handles)
        next_id = greatest_id(graph.body) + 1
        for patch in sorted(patches, key=lambda patch: layers[patch.node.handle][1]):
            place = self._place(graph, patch.node, edges[patch.node.handle])
            template = self.templates.get(id(patch.fragment))
            if template is None:
                template = self.templates[id(patch.fragment)] = _Template(patch.fragment)
            ids = [b"%d" % (next_id + number) for number in range(len(template.plan.layers))]
            next_id += len(ids)
            self._enter_layers(place, template, ids)
            self._enter_replaced(graph, place, template, ids)

    def _place(self, graph: IrGraph, node: Node, edges: list[EdgePlace]) -> _Place:
        _, start, end = graph.body.layers[node.handle]
        if [place.edge for place in edges] != graph.body.edges[node.handle]:
            raise NotEditable(f"{node.scope}: the edges into it are written in an unusual way")
        tag = layer_tag(self.data, start)
        rest = self.data[tag.end : end]
        return _Place(node, start, end, edges, tag.found, rest, _style(self.data, start, rest, tag, edges[0]))

    def _enter_layers(self, place: _Place, template: _Template, ids: Sequence[bytes]) -> None:
        """Enter the new layers, before the one that is replaced."""
        if not ids:
            return
        raw = place.found[b"name"].raw if b"name" in place.found else b""
        name = raw or place.node.name.encode()
        gaps: list[bytes] = []
        for id, layer in zip(ids, template.plan.layers, strict=True):
            gaps += (id, self.names.new(name, layer.label))
        text = template.layers(place.style, self.new_bytes) % tuple(gaps)
        self.edits.append(Edit(place.start, place.start, text))

    def _enter_replaced(
        self, graph: IrGraph, place: _Place, template: _Template, ids: Sequence[bytes]
    ) -> None:
        """Enter the changes of the layer that stays, and of the edges into it."""
        layer = graph.layer(place.node.handle)
        part, first = changing_part(place.rest), place.end - len(place.rest)
        origins = {found.edge[3]: found.edge[:2] for found in place.edges}
        given = [origins[port.id] for port in layer.inputs]
        is_kept = tuple(
            [
                source.given is not None and number < len(given) and given[source.given] == given[number]
                for number, source in enumerate(template.plan.sources)
            ]
        )
        try:
            changed = template.part(part, layer, is_kept, place.style)
        except NotEditable as error:
            raise NotEditable(f"{place.node.scope} cannot be replaced: {error}") from None
        self.edits += tag_edits(place.node, place.found, template.plan, place.style)
        if changed.text != part:
            self.edits.append(Edit(first, first + len(part), changed.text))
        kept = {port for port, stays in zip(changed.ports, is_kept, strict=True) if stays}
        gone = [found for found in place.edges if found.edge[3] not in kept]
        near = gone[0] if gone else place.edges[-1]
        lead = line_lead(self.data, near.start)
        style = place.style if lead == place.style.lead else place.style._replace(lead=lead)
        edges = template.edges(style, changed.ports, is_kept)
        text = edges.fill([*ids, place.edges[0].edge[2], *chain.from_iterable(given)])
        self.edits += _edge_edits(self.data, gone, near, lead, text)


def _edge_edits(
    data: bytes, gone: Sequence[EdgePlace], near: EdgePlace, lead: bytes, text: bytes
) -> list[Edit]:
    """Put new edges where the first one goes, or behind the last one if none does."""
    if not text:
        return [removal(data, place.start, place.end) for place in gone]
    if not gone:
        return [Edit(near.end, near.end, lead + text)]
    others = [removal(data, place.start, place.end) for place in gone[1:]]
    return [Edit(near.start, near.end, text), *others]


def _style(data: bytes, start: int, rest: bytes, tag: LayerTag, edge: EdgePlace) -> Style:
    """Find out how a layer is written; what it does not show is taken from an edge into it."""
    lead, inner = line_lead(data, start), line_lead(rest, rest.find(b"<"))
    step = inner.removeprefix(lead) if inner.startswith(lead) else _STEP
    is_flat = not lead or not inner
    closing = b" " if data[edge.end - 3 : edge.end] == b" />" else b""
    return Style(lead, None if is_flat else step, tag.quote, closing)
