"""Both ways to the index of an IR, held against a tree of the same file that lxml made."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from ir_scatter.formats.base import ReadOptions
from ir_scatter.formats.openvino.index import Body, edge_places
from ir_scatter.formats.openvino.layers import LayerText, _port, parse_layer
from ir_scatter.formats.openvino.reader import read
from ir_scatter.formats.openvino.xml_text import XmlElement
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
    if text is not None and re.fullmatch(r"[ \t\r\n]*\+?[0-9]+", text):
        text = str(int(text))
    return (text or "").encode()


def children(parent: "etree._Element | None", tag: str) -> "list[etree._Element]":
    return [] if parent is None else [child for child in parent if child.tag == tag]


def first(parent: "etree._Element", tag: str) -> "etree._Element | None":
    return next(iter(children(parent, tag)), None)


def described_by_tree(body: "etree._Element") -> Plain:
    """Walk a body in lxml's tree: layers, edges, constants, bodies."""
    layers, bodies = [], []
    constants: dict[bytes, tuple[bytes, ...]] = {}
    for place, layer in enumerate(children(first(body, "layers"), "layer")):
        id, type = number(layer.get("id")), layer.get("type", "")
        layers.append((id, type.encode(), plain(layer)))
        data = first(layer, "data")
        texts = [data.get(name) for name in DECLARED] if data is not None else [None]
        numbers = [re.fullmatch(r"[0-9]{1,19}", text or "") for text in texts[2:]]
        constants.pop(id, None)  # of layers with one id the last counts
        if type == "Const" and None not in texts and all(numbers):
            constants[id] = tuple((text or "").encode() for text in texts)
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
    constants = {key: found for key, found in body.constants.items() if b"\0" not in key}
    return tuple(layers), edges, constants, tuple(bodies)


def demand_equal(text: str, encoding: "Callable[[str], bytes]" = str.encode) -> Body | None:
    """Hold both indices against the tree; return the quick one, if it answered."""
    raw = encoding(text)
    source, exact, quick = indices_of(raw)
    parser = etree.XMLParser(huge_tree=True, resolve_entities=False, strip_cdata=False, recover=True)
    tree = described_by_tree(etree.fromstring(encoding(for_lxml(text)), parser))
    assert restored(described_by_index(source.data, exact)) == restored(tree)
    taken: set[bytes] = set()
    for key in reversed(exact.layers):
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
    name, version = ((text if text is None else meant(text)) for text in map(root.get, ("name", "version")))
    ports = (
        tuple(
            _port(
                XmlElement(
                    "port",
                    {name: meant(port.get(name, "")) for name in ("id", "precision")},
                    children=[XmlElement("dim", text=first_text(dim)) for dim in children(port, "dim")],
                )
            )
            for port in children(first(root, section), "port")
        )
        for section in ("input", "output")
    )
    return LayerText(name, version, attributes, *ports)


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
    return port.id, port.element_type, port.shape, tuple(text.strip() for _, text in port.bad_dims)


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


DECLARED_ENCODINGS = ("ISO-8859-1", "us-ascii", "UTF-8", "windows-1252", "KOI8-R", "Shift_JIS")
ENCODINGS: dict[str, Callable[[str], bytes]] = {
    "plain": str.encode,
    "mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "utf-16": lambda text: text.encode("utf-16"),
    "big": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    **{name: partial(declared, encoding=name) for name in DECLARED_ENCODINGS},
}


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


GOOD, BAD = (f'<data element_type="i64" shape="1" offset="{at}" size="8"/>' for at in "0x")
ONE, TWO = (f'<edges><edge from-layer="{id}"/></edges>' for id in "12")


@pytest.mark.parametrize(
    "text",
    [
        net("").replace("<edges>\n</edges>", ONE + TWO),
        net(f'<layer id="0" type="Const">{GOOD + BAD}</layer>'),
        net(f'<layer id="0" type="Const">{BAD + GOOD}</layer>'),
    ],
)
def test_only_the_first_of_each_counts(text: str) -> None:
    demand_equal(text)


# Files written at random.

BETWEEN = [
    "<!-- <layer id='0'> </layers> -->", "<!---->", "<?php <edge/> ?>", "<?layer id='7'?>",
    "<![CDATA[<layer id='1'></layer>]]>", "<![CDATA[]]>", "text &amp; > more", "é𝄞",
]  # fmt: skip
"""What may stand between two elements."""
ODD_DIMS = [
    "<!-- c -->4", "4<!-- c -->2", " <?p q?> 4 ", "<![CDATA[4]]>", "<![CDATA[]]>4", "&#52;&#x32;", "<x/>4<x/>2",
    "+4", "&#01;4", "-5", " 7 ", "",
]  # fmt: skip
DIMS = [*(f"<dim>{text}</dim>" for text in ODD_DIMS), "<dim/>", "<other/>", "text"]
JUNK = [
    "<rt_info><layer id='0'><data a='b'/></layer><edges><edge/></edges><body/></rt_info>",
    "<rt_info><input><port id='9'/></input><output><port id='8'></port></output></rt_info>",
    '<rt_info><layers><layer id="5" name="x" type="y"></layer></layers></rt_info>',
    '<rt_info><layer id="5" name="x" type="y"></layer><layer id="6" name="x" type="y"></layer></rt_info>',
    *["<p:data a='b'/>", "<group><layer id='3'/><edge/></group>", "<blobs><edges/></blobs>", "<output/>"],
    *["<data x='y'></data>", "<port id='1'><dim>4</dim></port>"],
]
"""Elements that mean nothing where they stand."""


class Writer:
    """Writes IRs at random, the odder the greater `oddity`."""

    def __init__(self, random: Random, oddity: float) -> None:
        self.random = random
        self.oddity = oddity
        self.line_end = random.choice(["\n", "\r\n"]) if oddity else "\n"

    def odd(self) -> bool:
        return self.random.random() < self.oddity

    def choose(self, usual: str, *others: str) -> str:
        return self.random.choice(others) if self.odd() else usual

    def space(self) -> str:
        """Return what may stand between two elements."""
        parts = [self.choose(self.line_end, "", "  ", "\t", " \n\n ")]
        while self.odd():
            parts.append(self.random.choice(BETWEEN))
        return "".join(parts)

    def referred(self, text: str) -> str:
        """Return a text of references to characters."""
        return "".join(
            self.random.choice([f"&#{ord(one)};", f"&#x{ord(one):x};", f"&#0{ord(one)};", one])
            for one in text
        )

    def value(self, text: str) -> str:
        """Return an attribute's value in quotes."""
        more = [f"{text}{end}" for end in ("&gt;", ">", "/>", "\n", "&#01;&#31;&#x8;", "&#xFFFE;")]
        others = [f"&#x41;{text}", f"é {text}", self.referred(text), f"&quot;{text}&apos;&amp;#50;&lt;"]
        text = self.choose(text, *more, *others)
        quote = self.choose('"', "'")
        return f"{quote}{text}{quote}"

    def id(self, text: str) -> str:
        quote = self.choose('"', "'")
        more = [f"0{text}", f" {text}", f"+{text}", f"{text}\t", self.referred(text)]
        text = self.choose(text, *more, "abc", "", "-1", "&#49;", "&#01;", "٣")
        return f"{quote}{text}{quote}"

    def attributes(self, pairs: Sequence[tuple[str, str]]) -> str:
        """Write attributes whose values are written already."""
        chosen = list(pairs)
        if self.odd():
            self.random.shuffle(chosen)
        if self.odd() and chosen:
            chosen.pop(self.random.randrange(len(chosen)))
        if self.odd():
            chosen.append(("other", self.value("x")))
        if self.odd():
            chosen.append(("p:other", self.value("y")))
        texts = [f"{name}{self.choose('=', ' = ', '= ')}{value}" for name, value in chosen]
        return "".join(self.choose(" ", "\n", "\t  ") + text for text in texts)

    def element(self, tag: str, attributes: str, inside: str) -> str:
        tail = self.choose("", " ", "\n")
        if not inside:
            return self.choose(f"<{tag}{attributes}{tail}/>", f"<{tag}{attributes}{tail}></{tag}{tail}>")
        return f"<{tag}{attributes}{tail}>{inside}</{tag}{tail}>"

    def joined(self, parts: Iterable[str]) -> str:
        return self.space() + "".join(part + self.space() for part in parts)

    def ports(self, tag: str, count: int) -> str:
        found = []
        for place in range(count):
            counts = range(self.random.randrange(3))
            dims = [self.element("dim", "", str(self.random.randrange(9))) for _ in counts]
            dims += [self.random.choice(DIMS)] if self.odd() else []
            pairs = [("id", self.id(str(place))), ("precision", self.value(self.choose("FP32", "I64", "x")))]
            found.append(self.element("port", self.attributes(pairs), self.joined(dims) if dims else ""))
        if self.odd():
            found.append(self.junk())
        text = self.element(tag, "", self.joined(found)) if found else ""
        return self.choose(text, text + text, f"<wrapper>{text}</wrapper>")

    def junk(self) -> str:
        return self.random.choice(JUNK)

    def layer(self, id: int, depth: int) -> str:
        type = self.random.choice(["Const", "Parameter", "ScatterUpdate", "If", "Const"])
        pairs = [("id", self.id(str(id))), ("name", self.value(f"n/{id}")), ("type", self.value(type))]
        pairs += [("version", self.value("opset1"))] if not self.odd() else []
        parts = []
        if type == "Const":
            size = self.choose("8", "-8", "x", "9" * 19, "9" * 20)
            texts = ("i64", "2, 3", str(self.random.randrange(99)), size)
            data = [(name, self.value(text)) for name, text in zip(DECLARED, texts, strict=True)]
            parts.append(self.element("data", self.attributes(data), ""))
        parts += [self.ports(section, self.random.randrange(3)) for section in ("input", "output")]
        parts += [self.junk()] if self.odd() else []
        if type == "If" and depth and self.oddity:
            kinds = ["body", "then_body", "else_body"]
            names = [self.random.choice(kinds) for _ in range(self.random.randrange(3))]
            parts += [self.body(name, "", depth - 1) for name in names]
        if self.odd():
            self.random.shuffle(parts)
        parts = [part for part in parts if part]
        return self.element("layer", self.attributes(pairs), self.joined(parts) if parts else "")

    def body(self, tag: str, attributes: str, depth: int) -> str:
        count = self.random.randrange(8)
        ids = [place if not self.odd() else self.random.randrange(3) for place in range(count)]
        layers = [self.layer(id, depth) for id in ids]
        layers += [self.junk()] if self.odd() else []
        edges = []
        for _ in range(self.random.randrange(5)):
            pairs = [(name, self.id(str(self.random.randrange(5)))) for name in FIELDS]
            edges.append(self.element("edge", self.attributes(pairs), self.junk() if self.odd() else ""))
        sections = (("layers", layers), ("edges", edges))
        parts = [self.element(name, "", self.joined(found)) for name, found in sections]
        while self.odd():
            parts.append(self.random.choice([*parts, self.junk()]))
        if self.odd():
            self.random.shuffle(parts)
        return self.element(tag, attributes, self.joined(parts))

    def file(self) -> str:
        prolog = self.choose('<?xml version="1.0"?>', "<?xml version='1.0' standalone='yes' ?>", "")
        asides = [part for part in ("<!-- <net> -->", "<?a b?>", "\n\n") if self.odd()]
        attributes = self.choose(' name="m" version="11"', " a='>' version = '10'") + ' xmlns:p="urn:p"'
        inside = self.body("net", attributes, 3)
        return prolog + "".join(asides) + inside + self.choose("", "\n", "<!-- -->", "<?e?>")


@given(st.integers(0, 2**63), st.sampled_from([0.0, 0.01, 0.05, 0.2]), st.sampled_from(sorted(ENCODINGS)))
def test_files_written_at_random(seed: int, oddity: float, encoding: str) -> None:
    demand_equal(Writer(Random(seed), oddity).file(), ENCODINGS[encoding])


@pytest.mark.parametrize("seed", range(20))
def test_the_quick_way_answers_for_usual_files(seed: int) -> None:
    writer = Writer(Random(seed), 0.0)
    layers = "".join(f"{writer.layer(id, 0)}\n" for id in range(seed))
    quick = demand_equal(net(re.sub(r"(<layer [^>]*)/>", r"\1></layer>", layers)))
    assert (quick is not None) == (seed > 0)
