"""The quick way to the index of an IR: three regular expressions over the bytes."""

import re

from ir_scatter.formats.openvino.index import Body

_ID = rb'"(0|[1-9]\d*)"'
_NET = re.compile(rb"<net[^<>]*>\s*<layers>\s*(?=<layer |</layers>)")
_HEAD = (
    rb"<layer id=" + _ID + rb' name="[^"]*" type="([^"&\t\r\n]*)"(?: [\w:.-]+="[^"]*")*>'
    rb'(?:\s*<data element_type="([^"&\t\r\n]*)" shape="([^"&\t\r\n]*)"'
    rb' offset="(\d{1,19})" size="(\d{1,19})"\s*/>)?'
)
_FIRST = re.compile(_HEAD)
_NEXT = re.compile(rb"</layer>\s*" + _HEAD)
_LAYERS_END = re.compile(rb"</layer>\s*</layers>\s*<edges\s*(/?)>")
_EDGE = re.compile(
    rb"<edge from-layer=" + _ID + rb" from-port=" + _ID
    + rb" to-layer=" + _ID + rb" to-port=" + _ID + rb"\s*/>"
)  # fmt: skip
_LAYER_END = b"</layer>"
_BEFORE_ID = len(b'<layer id="')


def quick_index(data: bytes, root_start: int) -> Body | None:
    """Index an IR as `save_model` writes it; None if anything is unusual.

    Usual is: layers without bodies, one behind the other with nothing but space between, then the
    edges. The bytes must be well-formed XML without comments and processing instructions for the
    answer to mean something; a caller who does not know yet throws the answer away later.
    """
    match = _NET.match(data, root_start)
    first = _FIRST.match(data, match.end()) if match else None
    if match is None or first is None or data.find(b"<layers", match.end()) >= 0:
        return None
    net = Body("net", root_start, end=len(data), has_layers=True)
    position = _fill(net, data, first)
    end = _LAYERS_END.match(data, position)
    if end is None or data.count(_LAYER_END) != len(net.layers):
        return None
    return net if end[1] or _fill_edges(net, data, end.end()) else None


def _fill(net: Body, data: bytes, match: "re.Match[bytes]") -> int:
    """Enter the layers, the first of which `match` found; return the first byte of the last's end.

    A layer ends where the next one's match begins.
    """
    layers, constants = net.layers, net.constants
    types: dict[bytes, bytes] = {}
    id, type, element_type = match.group(1, 2, 3)
    start, position = match.start(), match.end()
    for following in _NEXT.finditer(data, position):
        end = following.start() + len(_LAYER_END)
        if id in layers:
            net.add_layer(net.new_key(id, start), (type, start, end))
        else:
            layers[id] = (types.setdefault(type, type), start, end)
            if element_type is not None and type == b"Const":
                constants[id] = (element_type, match[4], match[5], match[6])
        match = following
        id, type, element_type = match.group(1, 2, 3)
        start = match.start(1) - _BEFORE_ID
    last = data.find(_LAYER_END, match.end())
    key = net.new_key(id, start)
    net.add_layer(key, (type, start, last + len(_LAYER_END)))
    if element_type is not None and type == b"Const" and key == id:
        constants[id] = (element_type, match[4], match[5], match[6])
    return last if last >= 0 else len(data)


def _fill_edges(net: Body, data: bytes, start: int) -> bool:
    """Enter the edges; False if something else stands among them."""
    end = data.find(b"</edges>", start)
    edges = _EDGE.findall(data, start, end)
    net.add_edges(edges)
    return end >= 0 and data.count(b"<", start, end) == len(edges)
