"""Whether bodies fit the If, Loop or TensorIterator that holds them, as OpenVINO's reader asks."""

import re
from collections.abc import Collection, Iterator
from typing import TypeAlias

from ir_scatter.formats.openvino.graph import BODIES, PARAMETER, RESULT, IrGraph
from ir_scatter.formats.openvino.xml_text import Element, shown

Found: TypeAlias = tuple[str, str, Element, str]
"""The kind of a defect, what is wrong, and the element and the attribute where it stands."""

_MISMATCH, _DANGLING = "body-mismatch", "dangling-edge"
_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,19}\s*")
_CUT = ("axis", "start", "end", "stride", "part_size")


def port_map_defects(graph: IrGraph, key: bytes) -> Iterator[Found]:
    """Yield what is wrong with the port maps and back edges of a layer.

    An If need not hand out its inputs. Outputs are taken in the order of the numbers that are named for them,
    whatever these are: there must be enough.
    """
    type, layer, element = graph.type_of(key), graph.layer(key), graph.places(key).layer
    ports, targets = ({port.id for port in side} for side in (layer.inputs, layer.outputs))
    for prefix in BODIES[type]:
        body, found = graph.graphs(key).get(f"{prefix}body"), element.find(f"{prefix}port_map")
        if body is None or not body.body.has_layers:
            yield _MISMATCH, f"there is no <{prefix}body> with <layers>, expected one", element, ""
            continue
        parameters, results = _ids(body, PARAMETER), _ids(body, RESULT)
        port_map = found or Element("")
        inputs, outputs = [*port_map.iterfind("input")], [*port_map.iterfind("output")]
        for entry in inputs:
            yield from _names(entry, "external_port_id", ports, "input port of the layer")
            yield from _names(entry, "internal_layer_id", parameters, "Parameter of the body")
            yield from _cut(entry)
        for entry in outputs:
            yield from _names(entry, "external_port_id", targets, "output port of the layer", dangles=True)
            yield from _names(entry, "internal_layer_id", results, "Result of the body")
            yield from _cut(entry)
        if type != b"if":
            first = 2 if type == b"loop" else 0  # its trip count and its condition
            needed = [port.id for port in layer.inputs][first:]
            yield from _left_out(needed, inputs, f"input of <{prefix}port_map>", found or element)
        if len({entry.id("external_port_id") for entry in outputs if not _is_negative(entry)}) < len(targets):
            needed = [port.id for port in layer.outputs]
            yield from _left_out(needed, outputs, f"output of <{prefix}port_map>", found or element)
        if type == b"loop" and all(entry.get("purpose") != "execution_condition" for entry in outputs):
            message = "no output of <port_map> has purpose='execution_condition', expected one"
            yield _MISMATCH, message, found or element, ""
        for edge in element.iterfind("back_edges/edge"):
            yield from _names(edge, "from-layer", results, "Result of the body")
            yield from _names(edge, "to-layer", parameters, "Parameter of the body", dangles=True)
            if edge.id("to-layer") in [one.id("internal_layer_id") for one in inputs if _is_negative(one)]:
                message = f"a back edge goes to Parameter {edge.get('to-layer')} of the body"
                yield _MISMATCH, f"{message}, which no input port of the layer feeds", edge, "to-layer"


def _ids(body: IrGraph, type: bytes) -> set[bytes]:
    return {key.partition(b"\0")[0] for key in body.keys_of(type)}


def _is_negative(entry: Element) -> bool:
    """Tell whether an entry names no port of the layer, as that of the iteration's number."""
    text = entry.get("external_port_id")
    return text.strip().startswith("-") and _INTEGER.fullmatch(text) is not None


def _names(
    entry: Element, attribute: str, known: Collection[bytes], what: str, *, dangles: bool = False
) -> Iterator[Found]:
    """Yield whether an entry names what does not exist, which leaves it dangling or breaks the layer."""
    id = entry.id(attribute)
    if id not in known and not (attribute == "external_port_id" and _is_negative(entry)):
        kind = _DANGLING if dangles and id.isdigit() else _MISMATCH
        text = entry.attributes.get(attribute)
        is_ = "is missing" if text is None else f"is {shown(text)!r}"
        place = "a back edge" if entry.name == "edge" else f"an {entry.name} of a port map"
        expected = f"expected the id of {'an' if what[0] in 'io' else 'a'} {what}"
        yield kind, f"{attribute} of {place} {is_}, {expected}", entry, attribute


def _cut(entry: Element) -> Iterator[Found]:
    for word in _CUT if "axis" in entry.attributes else ():
        text = entry.get(word, "1")
        least = {"part_size": "other than 0", "axis": "of 0 or more"}.get(word, "")
        least = least if entry.name == "input" else ""
        number = int(text) if _INTEGER.fullmatch(text) else None
        if number is None or (least and (number == 0 if word == "part_size" else number < 0)):
            expected = f"a number {least}".strip()
            place = f"{word} of an {entry.name} of a port map"
            yield _MISMATCH, f"{place} is {shown(text)!r}, expected {expected}", entry, word


def _left_out(ids: list[bytes], entries: list[Element], what: str, at: Element) -> Iterator[Found]:
    named = {entry.id("external_port_id") for entry in entries}
    for id in ids:
        if id not in named:
            name = id.decode() if id.isdigit() else repr(shown(id.decode("utf-8", "replace")))
            yield _MISMATCH, f"no {what} names port {name}, expected one", at, ""
