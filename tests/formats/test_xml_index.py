"""Both ways to the index of an IR, held against a tree of the same file that lxml made."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from ir_scatter.formats.base import ReadOptions
from ir_scatter.formats.openvino.index import Body, edge_places, exact_index
from ir_scatter.formats.openvino.layers import LayerText, _port, parse_layer
from ir_scatter.formats.openvino.reader import read
from ir_scatter.formats.openvino.xml_text import Element, shortest
from tests.formats.ir_files import (
    NESTED,
    SIMPLE,
    all_bodies,
    for_lxml,
    indices_of,
    meant,
    needs_models,
    net,
    real_models,
    restored,
)

Plain: TypeAlias = tuple[Any, ...]
FIELDS = ("from-layer", "from-port", "to-layer", "to-port")
DECLARED = ("element_type", "shape", "offset", "size")


def plain(element: "etree._Element") -> Plain:
    """Return an element without anything that depends on how it is written."""
    if isinstance(element, etree._Comment | etree._ProcessingInstruction):
        return (type(element).__name__, element.text)
    prefixes = {uri: prefix for prefix, uri in element.nsmap.items() if prefix}
    attributes = {named(str(key), prefixes): value for key, value in element.attrib.items()}
    children = tuple((plain(child), child.tail or "") for child in element)
    return named(element.tag, prefixes), tuple(sorted(attributes.items())), element.text or "", children


def named(tag: str, prefixes: dict[str, str]) -> str:
    """Return the name as it stands in the file."""
    uri, _, local = tag.rpartition("}")
    prefix = prefixes.get(uri.removeprefix("{"))
    return f"{prefix}:{local}" if uri and prefix else local


def number(text: str | None) -> bytes:
    """Return an id as the index has it."""
    if text is not None and re.fullmatch(r"[ \t\r\n]*\+?[0-9]+[ \t\r\n]*", text):
        text = str(int(text))
    return (text or "").encode()


def children(parent: "etree._Element | None", tag: str) -> "list[etree._Element]":
    return [] if parent is None else [child for child in parent if child.tag == tag]


def first(parent: "etree._Element", tag: str) -> "etree._Element | None":
    return next(iter(children(parent, tag)), None)


def described_by_tree(body: "etree._Element") -> Plain:
    """Walk a body in lxml's tree: layers, edges, constants, bodies."""
    layers, bodies, constants, taken = [], [], {}, set()
    for place, layer in enumerate(children(first(body, "layers"), "layer")):
        id, type = number(layer.get("id")), layer.get("type", "")
        layers.append((id, type.encode(), plain(layer)))
        data = first(layer, "data")
        texts = [data.get(name) for name in DECLARED] if data is not None else [None]
        numbers = [re.fullmatch(r"[0-9]{1,19}", text or "") for text in texts[2:]]
        if type == "Const" and id not in taken and None not in texts and all(numbers):
            constants[id] = tuple((text or "").encode() for text in texts)
        taken.add(id)
        inner: dict[str, Plain] = {}
        for child in layer:
            if isinstance(child.tag, str) and "body" in child.tag and child.tag not in inner:
                inner[child.tag] = described_by_tree(child)
        bodies += [(place, name, found) for name, found in inner.items()]
    edges = [
        tuple(number(edge.get(key)) for key in FIELDS) for edge in children(first(body, "edges"), "edge")
    ]
    return tuple(layers), grouped(edges), constants, tuple(bodies)


def grouped(edges: Iterable[tuple[bytes, ...]]) -> Plain:
    """Group edges by the layer that they go to, in the order of the file."""
    found: dict[bytes, list[tuple[bytes, ...]]] = {}
    for edge in edges:
        found.setdefault(edge[2], []).append(edge)
    return tuple((key, tuple(group)) for key, group in found.items())


def described_by_index(data: bytes, body: Body) -> Plain:
    """Say of an index what `described_by_tree` says, from bytes parsed again."""
    layers, bodies = [], []
    for place, (key, (type, start, end)) in enumerate(body.layers.items()):
        parser = etree.XMLParser(recover=True, huge_tree=True, resolve_entities=False)
        tree = etree.fromstring(for_lxml(data[start:end].decode()).encode(), parser)
        layers.append((key.partition(b"\0")[0], type, plain(tree)))
        inner = body.bodies.get(key, {})
        bodies += [(place, name, described_by_index(data, one)) for name, one in inner.items()]
    edges = tuple((key, tuple(group)) for key, group in body.edges.items())
    return tuple(layers), edges, body.constants, tuple(bodies)


def demand_equal(text: str, encoding: "Callable[[str], bytes]" = str.encode) -> Body | None:
    """Hold both indices against the tree; return the quick one, if it answered."""
    raw = encoding(text)
    source, exact, quick = indices_of(raw)
    parser = etree.XMLParser(huge_tree=True, resolve_entities=False, strip_cdata=False, recover=True)
    tree = described_by_tree(etree.fromstring(encoding(for_lxml(text)), parser))
    assert restored(described_by_index(source.data, exact)) == restored(tree)
    taken: set[bytes] = set()
    for key in exact.layers:
        id = key.partition(b"\0")[0]
        assert (key == id) == (id not in taken)
        taken.add(id)
    assert exact.repeated_layers == [key for key in exact.layers if b"\0" in key]
    if quick is not None:
        assert list(quick.layers.items()) == list(exact.layers.items())
        assert list(quick.edges.items()) == list(exact.edges.items())
        assert quick.constants.items() <= exact.constants.items()
        assert quick.repeated_layers == exact.repeated_layers
        assert not any(body.layers or body.edges for body in all_bodies(exact) if body is not exact)
    demand_same_layers(source.data, exact)
    return quick


def demand_same_layers(data: bytes, index: Body) -> None:
    """Demand that layers read by regular expressions are those that lxml reads."""
    for body in all_bodies(index):
        places = list(edge_places(data, body))
        assert grouped(place.edge for place in places) == tuple(
            (key, tuple(group)) for key, group in body.edges.items()
        )
        for place in places:
            assert data.startswith(b"<edge", place.start)
            assert data.endswith(b">", 0, place.end)
        for key, (_, start, end) in body.layers.items():
            if key in body.bodies:
                continue
            expected = layer_of_lxml(data[start:end])
            text = data[start:end]
            assert described(parse_layer(text)) == described(expected)


def layer_of_lxml(text: bytes) -> LayerText:
    """Read a layer with lxml."""
    parser = etree.XMLParser(recover=True, huge_tree=True, resolve_entities=False, strip_cdata=False)
    root = etree.fromstring(for_lxml(text.decode()).encode(), parser)
    prefixes = {uri: prefix for prefix, uri in root.nsmap.items() if prefix}
    data = first(root, "data")
    attributes = (
        {} if data is None else {named(str(key), prefixes): meant(str(value)) for key, value in data.items()}
    )
    version = root.get("version")
    ports = (
        tuple(
            _port(
                Element(
                    "port",
                    {name: meant(port.get(name, "")) for name in ("id", "precision")},
                    children=[Element("dim", text=first_text(dim)) for dim in children(port, "dim")],
                )
            )
            for port in children(first(root, section), "port")
        )
        for section in ("input", "output")
    )
    return LayerText(
        meant(root.get("name", "")), None if version is None else meant(version), attributes, *ports
    )


def first_text(element: "etree._Element") -> str:
    """Return the first text that is more than space, as pugixml has it; CDATA is text of its own."""
    written = etree.tostring(element, encoding="unicode", with_tail=False)
    inside = written[written.find(">") + 1 :]
    for piece in re.split(r"(<!\[CDATA\[.*?\]\]>|<!--.*?-->|<\?.*?\?>|<[^>]*>)", inside, flags=re.DOTALL):
        if piece.startswith("<![CDATA["):
            return piece[9:-3]
        if piece.strip(" \t\r\n") and not piece.startswith("<"):
            return meant(etree.fromstring(f"<a>{piece}</a>").text or "")
    return ""


def described(layer: Any) -> Plain:
    ports = tuple(map(port_of, layer.inputs)), tuple(map(port_of, layer.outputs))
    return layer.name, layer.version, layer.attributes, *ports


def port_of(port: Any) -> Plain:
    return port.id, port.element_type, port.shape, tuple(text.strip() for text in port.bad_dims)


ENCODINGS: dict[str, Callable[[str], bytes]] = {
    "plain": str.encode,
    "mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "utf-16": lambda text: text.encode("utf-16"),
    "big": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "latin": lambda text: declared(text, "ISO-8859-1"),
    "ascii": lambda text: declared(text, "us-ascii"),
    "upper": lambda text: declared(text, "UTF-8"),
    "windows": lambda text: declared(text, "windows-1252"),
    "russian": lambda text: declared(text, "KOI8-R"),
    "japanese": lambda text: declared(text, "Shift_JIS"),
}


def declared(text: str, encoding: str) -> bytes:
    """Encode with a declaration, and what has no place in the encoding as a reference."""
    body = re.sub(r"^<\?xml[^>]*>", "", text)
    plain = "".join(letter if encodable(letter, encoding) else "x" for letter in body)
    return f'<?xml version="1.0" encoding="{encoding}"?>'.encode() + plain.encode(encoding)


def encodable(letter: str, encoding: str) -> bool:
    try:
        return letter.encode(encoding).decode(encoding) == letter
    except UnicodeError:
        return False


@pytest.mark.parametrize("text", [SIMPLE, NESTED], ids=["simple", "nested"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_made_files(text: str, encoding: str) -> None:
    quick = demand_equal(text, ENCODINGS[encoding])
    assert (quick is not None) == (text is SIMPLE)


@pytest.mark.models
@needs_models
@pytest.mark.parametrize("path", real_models(), ids=lambda path: path.parent.name)
def test_real_models(path: Path) -> None:
    demand_equal(path.read_bytes().decode())


@pytest.mark.models
@needs_models
@given(data=st.data())
def test_real_models_with_something_between(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(real_models(60_000)))
    text = path.read_text().replace("\r\n", "\n")
    tags = [match.start() for match in re.finditer(r"<(?=[a-z/])", text)][1:]
    inserted = data.draw(
        st.lists(
            st.tuples(
                st.sampled_from(tags),
                st.sampled_from(
                    ["<!-- </layer> -->", "<?x?>", "<![CDATA[<edge/>]]>", "é", " ", "<more/>", "\r\n"]
                ),
            ),
            max_size=4,
        )
    )
    for place, aside in sorted(inserted, reverse=True):
        text = text[:place] + aside + text[place:]
    demand_equal(text)


def layers_of(text: str) -> list[bytes]:
    _, exact, _ = indices_of(text.encode())
    return [exact_bytes[0] for exact_bytes in exact.layers.values()]


@pytest.mark.parametrize(
    "inside",
    [
        "<body/>",
        "<body></body>",
        "<then_body/><else_body/>",
        "<body><layers/></body>",
        "<body/><body><layers><layer/></layers></body>",
        "<body><layers><layer id='0'><body><layers><layer id='0'><body/></layer></layers></body></layer></layers></body>",
        "<p:body/>",
        "<a><body/></a>",
    ],
)
@pytest.mark.parametrize("aside", ["", "<!-- -->"])
def test_bodies_of_one_layer(inside: str, aside: str) -> None:
    ports = '<input><port id="0"/></input>'
    text = net(f'<layer id="0" name="a" type="If">{aside}{inside}{ports}</layer>\n')
    demand_equal(text)
    model = read("m.xml", text.encode(), ReadOptions(has_folder=False))
    assert [len(node.inputs) for node in model.graph.walk() if node.scope == "a"] == [1]


def test_bodies_of_layers_with_one_id() -> None:
    inner = '<body><layers><layer id="0" name="{}" type="ScatterUpdate"/></layers></body>'
    first, second = (
        f'<layer id="7" name="{name}" type="If">{inner.format(name)}</layer>' for name in ("a", "b")
    )
    empty = '<layer id="7" name="c" type="Other"/>'
    text = net(empty + first + second)
    demand_equal(text)
    model = read("m.xml", text.encode(), ReadOptions(has_folder=False))
    assert [node.scope for node in model.graph.walk(frozenset({"ScatterUpdate"}))] == ["a:body/a", "b:body/b"]


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("0", b"0"),
        (" 007\n", b"7"),
        ("+7", b"7"),
        ("000", b"0"),
        ("-7", b"-7"),
        ("7x", b"7x"),
        ("٣", "٣".encode()),
        ("", b""),
        ("1" * 50_000, b"1" * 50_000),
    ],
)
def test_shortest_ids(text: str, id: bytes) -> None:
    assert shortest(text.encode()) == id


def test_only_the_first_edges_count() -> None:
    one, two = '<edges><edge from-layer="1"/></edges>', '<edges><edge from-layer="2"/></edges>'
    text = net("").replace("<edges>\n</edges>", one + two)
    demand_equal(text)
    assert exact_index(text.encode()).edges == {b"": [(b"1", b"", b"", b"")]}


def test_only_the_first_data_counts() -> None:
    good = '<data element_type="i64" shape="1" offset="0" size="8"/>'
    bad = '<data element_type="i64" shape="1" offset="x" size="8"/>'
    layers = "".join(
        f'<layer id="{id}" type="Const">{inside}</layer>'
        for id, inside in enumerate((good + bad, bad + good))
    )
    assert exact_index(net(layers).encode()).constants.keys() == {b"0"}
