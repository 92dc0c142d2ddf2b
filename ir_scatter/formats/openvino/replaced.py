"""The layer that a node had and keeps: what of its text changes when a fragment takes its place."""

from collections.abc import Sequence
from typing import NamedTuple

from ir_scatter.core.errors import NotEditable
from ir_scatter.core.model import Node
from ir_scatter.core.shapes import UNKNOWN_DIM, Shape
from ir_scatter.formats.edits import Edit, apply_edits, line_lead, removal
from ir_scatter.formats.openvino.layers import LayerText, PortText
from ir_scatter.formats.openvino.plan import Plan
from ir_scatter.formats.openvino.style import Style
from ir_scatter.formats.openvino.tags import Attribute, Element, children, escaped
from ir_scatter.formats.openvino.template import input_ports

_INPUT_END = b"</input>"


class Form(NamedTuple):
    """Where the parts of a layer stand, counted from the end of its start tag.

    Attributes:
        data: `<data>`, if there is one.
        ports: of `<input>`.
    """

    data: Element | None
    ports: tuple[Element, ...]


class Changed(NamedTuple):
    """What stands behind the start tag, up to where nothing changes, and the ids of the input ports."""

    text: bytes
    ports: tuple[bytes, ...]


def changing_part(rest: bytes) -> bytes:
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


def find_form(part: bytes, layer: LayerText) -> Form:
    """Find the parts of a layer.

    Raises:
        NotEditable: they are not there, or there twice.
    """
    found = children(part, 0, len(part))
    data = [element for element in found if element.name == b"data"]
    inputs = [element for element in found if element.name == b"input"]
    if len(data) > 1:
        raise NotEditable(f"it has <data> {len(data)} times, expected once")
    if len(inputs) != 1:
        raise NotEditable(f"it has <input> {len(inputs)} times, expected once")
    inside = children(part, inputs[0].inner, inputs[0].inner_end)
    ports = tuple(element for element in inside if element.name == b"port")
    if len(ports) != len(layer.inputs) or not ports:
        raise NotEditable(f"it has {len(ports)} input ports, expected {len(layer.inputs) or 'some'}")
    return Form(data[0] if data else None, ports)


def new_part(part: bytes, layer: LayerText, plan: Plan, is_kept: Sequence[bool], style: Style) -> Changed:
    """Change `<data>` and the input ports into those of a fragment's result.

    Args:
        part: from the end of the start tag on.
        layer: the layer as it was read.
        plan: the fragment.
        is_kept: of each input of the result, whether it is the same as before.
        style: how the layer is written.

    Raises:
        NotEditable: it is written in a way that cannot be edited.
    """
    form = find_form(part, layer)
    edits = _data_edits(part, form.data, layer, plan, style)
    wanted = input_ports(plan.result)
    ids = _port_ids(layer, len(wanted))
    leads = [line_lead(part, port.start) for port in form.ports]
    for number, element in enumerate(form.ports):
        if number >= len(wanted):
            edits.append(removal(part, element.start, element.end))
        elif not is_kept[number] and not _is_right(
            plan, number, layer.inputs[number], part[element.start : element.end]
        ):
            text = style.port(ids[number], *wanted[number][1:], leads[number])
            edits.append(Edit(element.start, element.end, text))
    place, lead = form.ports[-1].end, leads[-1]
    for number in range(len(form.ports), len(wanted)):
        edits.append(Edit(place, place, lead + style.port(ids[number], *wanted[number][1:], lead)))
    return Changed(apply_edits(part, edits), ids)


def tag_edits(node: Node, found: dict[bytes, Attribute], plan: Plan, style: Style) -> list[Edit]:
    """Return the edits of type and version in a start tag."""
    new, edits = plan.result, []
    if node.type.lower() != new.type.lower():
        type = found[b"type"]
        edits.append(Edit(type.start, type.end, escaped(new.type)))
    if node.opset != new.opset:
        version, text = found.get(b"version"), escaped(str(new.opset))
        if version is not None:
            edits.append(Edit(version.start, version.end, text))
        else:
            place = found[b"type"].end + len(style.quote)
            edits.append(Edit(place, place, style.attributes([("version", text)])))
    return edits


def _data_edits(part: bytes, old: Element | None, layer: LayerText, plan: Plan, style: Style) -> list[Edit]:
    wanted = dict(plan.result.attributes)
    if wanted == layer.attributes:
        return []
    if not wanted:
        return [removal(part, old.start, old.end)] if old else []
    if old:
        return [Edit(old.start, old.end, style.data(wanted))]
    return [Edit(0, 0, style.deeper(style.lead) + style.data(wanted))]


def _port_ids(layer: LayerText, count: int) -> tuple[bytes, ...]:
    """Return ids for so many input ports: those that are there, then some that no port has."""
    ids = [port.id for port in layer.inputs]
    first = max(int(port.id) for port in (*layer.inputs, *layer.outputs)) + 1
    ids += [b"%d" % (first + number) for number in range(count - len(ids))]
    return tuple(ids[:count])


def _is_right(plan: Plan, number: int, old: PortText, text: bytes) -> bool:
    """Tell whether a port is right as it is written for another input than before."""
    value = plan.result.inputs[number]
    assert value is not None
    is_plain = b"rt_info" not in text and not old.bad_dims
    is_alike = value.element_type is old.element_type and _stored(value.shape) == _stored(old.shape)
    return is_plain and is_alike


def _stored(shape: Shape) -> Shape:
    """Return a shape as a port stores it: nothing but numbers and unknown dimensions."""
    return tuple(dim if isinstance(dim, int) else UNKNOWN_DIM for dim in shape or ())
