"""New layers and edges as text with gaps, so that one fragment is written once for many nodes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from ir_scatter.core.element_types import ElementType
from ir_scatter.core.fragment import NewConstant, NewNode
from ir_scatter.core.shapes import Shape
from ir_scatter.formats.openvino.new_constants import NewBytes
from ir_scatter.formats.openvino.plan import NewLayer, Plan, Source
from ir_scatter.formats.openvino.style import Style
from ir_scatter.formats.openvino.tags import escaped

_GAP = b"\0"
"""Stands for a gap until the text is complete; no XML holds this byte."""


@dataclass(frozen=True, slots=True, eq=False)
class EdgeTemplate:
    """Edges with gaps for what is different from node to node.

    Attributes:
        text: for `%`.
        pick: takes the texts of the gaps from those that `fill` is given.
    """

    text: bytes
    pick: Callable[[Sequence[bytes]], tuple[bytes, ...]]

    def fill(self, values: Sequence[bytes]) -> bytes:
        """Write the edges.

        Args:
            values: the ids of the new layers, that of the replaced one, then layer and port of
                whatever feeds each of its inputs.
        """
        return self.text % self.pick(values)


def layers_template(plan: Plan, style: Style, bytes: NewBytes) -> bytes:
    """Write the new layers with gaps for the id and the name of each, in their order.

    Raises:
        NotEditable: a constant is of a type that cannot be written.
    """
    return _template(b"".join(_layer(layer, style, bytes) + style.lead for layer in plan.layers))


def edges_template(plan: Plan, ports: Sequence[bytes], is_kept: Sequence[bool], style: Style) -> EdgeTemplate:
    """Write the edges into the new layers, and those into the result that are new.

    Args:
        plan: the fragment.
        ports: the ids of the result's input ports.
        is_kept: of each of them, whether its edge is there already.
        style: the lead is that of the edges.
    """
    count = len(plan.layers)
    ends: list[tuple[Source, int, bytes]] = [
        (source, number, b"%d" % port)
        for number, layer in enumerate(plan.layers)
        for port, source in enumerate(layer.sources)
    ]
    for source, port, kept in zip(plan.sources, ports, is_kept, strict=True):
        if not kept:
            ends.append((source, count, port))
    edges: list[bytes] = []
    gaps: list[int] = []
    for source, to, to_port in ends:
        if source.given is None:
            gaps += (source.layer, to)
            origin_port = b"%d" % source.port
        else:
            first = count + 1 + 2 * source.given
            gaps += (first, first + 1, to)
            origin_port = _GAP
        edges.append(style.edge((_GAP, origin_port, _GAP, to_port)))
    return EdgeTemplate(_template(style.lead.join(edges)), _picker(gaps))


def _picker(gaps: Sequence[int]) -> Callable[[Sequence[bytes]], tuple[bytes, ...]]:
    if not gaps:
        return lambda _: ()
    pick: Any = itemgetter(*gaps)  # at least two: the ends of an edge
    found: Callable[[Sequence[bytes]], tuple[bytes, ...]] = pick
    return found


def _template(text: bytes) -> bytes:
    return text.replace(b"%", b"%%").replace(_GAP, b"%b")


def _layer(layer: NewLayer, style: Style, bytes: NewBytes) -> bytes:
    made = layer.made
    if isinstance(made, NewConstant):
        return _constant(made, style, bytes)
    parts = [style.data(made.attributes)] if made.attributes else []
    inputs = input_ports(made)
    if inputs:
        parts.append(style.ports(b"input", inputs))
    output = (b"%d" % len(inputs), made.output.element_type, made.output.shape)
    parts.append(style.ports(b"output", [output]))
    return style.layer(_head(style, escaped(made.type), escaped(str(made.opset))), parts)


def _constant(constant: NewConstant, style: Style, bytes: NewBytes) -> bytes:
    offset, size = bytes.place(constant)
    element_type = constant.element_type
    data = {
        "element_type": element_type.name if element_type else "",
        "shape": ", ".join(map(str, constant.shape)),
        "offset": str(offset),
        "size": str(size),
    }
    output = style.ports(b"output", [(b"0", element_type, constant.shape)])
    return style.layer(_head(style, b"Const", b"opset1"), [style.data(data), output])


def _head(style: Style, type: bytes, version: bytes) -> bytes:
    return style.attributes([("id", _GAP), ("name", _GAP), ("type", type), ("version", version)])


def input_ports(new: NewNode) -> list[tuple[bytes, ElementType | None, Shape]]:
    """Return id, type and shape of each input port of a new node."""
    return [
        (b"%d" % number, value.element_type, value.shape)
        for number, value in enumerate(new.inputs)
        if value is not None
    ]
