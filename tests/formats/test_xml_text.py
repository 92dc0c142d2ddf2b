"""From bytes to text and places: encodings, lines and columns, what is not well-formed."""

from pathlib import Path
from random import Random
from xml.parsers import expat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir_scatter import read as read_model
from ir_scatter import validate
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.formats import detect
from ir_scatter.formats.base import ReadOptions
from ir_scatter.formats.openvino.reader import read
from ir_scatter.formats.openvino.xml_text import XmlText
from tests.formats.ir_files import (
    SIMPLE,
    WEIGHTS,
    check,
    codes,
    layer,
    needs_models,
    port,
    real_models,
    write,
)

Place = tuple[int | None, int | None]


def places_of_expat(data: bytes) -> list[tuple[int, Place]]:
    """Return offset, line and column of every start tag."""
    found: list[tuple[int, Place]] = []
    parser = expat.ParserCreate()

    def start(_: str, __: dict[str, str]) -> None:
        place = parser.CurrentLineNumber, parser.CurrentColumnNumber + 1
        found.append((parser.CurrentByteIndex, place))

    parser.StartElementHandler = start
    parser.Parse(data, True)
    return found


def place(text: XmlText, offset: int) -> Place:
    location = text.location(offset)
    return location.line, location.column


def demand_places(data: bytes, seed: int) -> None:
    """Ask for the places of all tags, to and fro."""
    text = XmlText("m.xml", data)
    expected = places_of_expat(text.data)
    Random(seed).shuffle(expected)
    assert [place(text, offset) for offset, _ in expected] == [there for _, there in expected]
    lines = text.data.decode().split("\n")
    for _, (line, column) in expected[:200]:
        assert line is not None
        assert column is not None
        excerpt, first, goes_on = text.excerpt(line, column)
        whole = lines[line - 1].removesuffix("\r")
        assert excerpt == whole[first - 1 : first - 1 + len(excerpt)]
        assert excerpt[column - first] == "<"
        assert len(excerpt) >= min(len(whole), 500)
        assert len(excerpt) <= 2000
        assert goes_on == (first - 1 + len(excerpt) < len(whole))


LONG = {"many": "x" * 9_000, "wide": "𝄞é" * 5_000}
PARTS = ["<a>", "<b/>", "</a>", "\n", "\r\n", "\t", "é", "𝄞", "日本", " ", "<c x='>\n'/>", *LONG]


@given(st.lists(st.sampled_from(PARTS), max_size=40), st.integers(0, 99))
def test_places_are_those_of_expat(parts: list[str], seed: int) -> None:
    depth, kept = 0, []
    for part in parts:
        depth += (part == "<a>") - (part == "</a>")
        if depth < 0:
            depth = 0
            continue
        kept.append(LONG.get(part, part))
    demand_places(f"<net>{''.join(kept)}{'</a>' * depth}</net>".encode(), seed)


@pytest.mark.models
@needs_models
@pytest.mark.parametrize("path", real_models(200_000), ids=lambda path: path.parent.name)
def test_places_in_real_models(path: Path) -> None:
    demand_places(path.read_bytes(), 0)


DECOY = '<!-- <edge from-layer="0" from-port="0" to-layer="7" to-port="0"/> -->'
EDGES = f"\n<edges>{DECOY}\n é<edge to-port='0' x='>' to-layer='7'\nfrom-port='0' from-layer=' 0'/></edges>"
LAYERS = f"<layers>{layer(0, 'A', outputs=[port(0)])}</layers>"
INNER = "<body><edges>\n  <edge to-layer='4'/></edges><layers/></body>"
IN_BODIES = (
    f"<body>\n<edges>\n <edge to-layer='5'/></edges><layers>{layer(0, 'If', inside=INNER)}</layers></body>"
)


@pytest.mark.parametrize(
    ("inside", "columns"),
    [
        (LAYERS + EDGES, [3]),
        (EDGES + LAYERS, [3]),
        (f"<layers>{layer(0, 'If', inside=IN_BODIES)}</layers>", [2, 3]),
    ],
)
def test_places_of_edges(inside: str, columns: list[int], tmp_path: Path) -> None:
    """Wherever the edges stand, however they are written, and whatever looks like one before."""
    path = write(tmp_path, f'<net version="11">{DECOY}{inside}</net>')
    checked = check(path)
    places = [one.location for one in checked.diagnostics if one.code == "SCT925"]
    assert sorted(place.column or 0 for place in places) == columns
    for place in places:
        line = path.read_text().split("\n")[(place.line or 0) - 1]
        assert line[(place.column or 0) - 1 :].startswith("<edge to-")


MALFORMED = {
    "mismatch": ("<net>\n\té<a></b></net>", 2),
    "unclosed": ("<net>\n\n<a>", 3),
    "attribute": ("<net>\n<a b=c/></net>", 2),
    "repeated": ('<net>\n<a b="c" b="d"/></net>', 2),
    "entity": ("<net>\n\n&nothing;</net>", 3),
    "less": ('<net>\n<a b="<"/></net>', 2),
    "control": ("<net>\n\x01</net>", 2),
    "null": ("<net>\n\x00</net>", 2),
    "empty": (" \n ", 2),
    "text": ("hello", 1),
    "two": ("<net/>\n<net/>", 2),
    "aside": ("<net>\n<!-- -- --></net>", 2),
    "late": ("<net>" + "\n" * 70_000 + "</other>", 70_001),
    "declaration": ("<net>\n<?xml version='1.0'?></net>", 2),
    "version": ("<?xml version='2.0'?><net/>", 1),
    "reference": ("<net>\n&#0;</net>", 2),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_not_well_formed(name: str, tmp_path: Path) -> None:
    text, line = MALFORMED[name]
    text = text.replace("<net", '<net version="11"')
    checked = check(write(tmp_path, text))
    assert codes(checked) == ["SCT903"]
    found = checked.diagnostics[0]
    assert found.location.line == line
    assert found.message.startswith("not well-formed XML: ")
    assert "XML_PARSE" not in found.message
    assert "xmlParse" not in found.message


DECLARED = "utf-16 nonsense rot13 zlib undefined idna punycode unicode_escape us-ascii"
ENDS = {"punycode": "-", "unicode_escape": "\\d"}
"""What text in such an encoding may end with."""
NO_TEXT = [
    b"\xff\xfe\x00\xd8<\x00",
    b"\xfe\xff<\x00",
    b"\xff\xfe<",
    b"\xff\xfe\x00\x00<\x00\x00\x00",
    b"<net version='11'>\xff<layers/></net>",
    b"<net version='11'>\xc0\x80<layers/></net>",
    b"<net version='11'>\xed\xa0\x80<layers/></net>",
    b"<net\xff version='11'><layers/></net\xff>",
    b"<n\xff><layers/></n\xff>",
]


@pytest.mark.parametrize("name", DECLARED.split())
def test_encodings_that_a_file_is_not_in(name: str, tmp_path: Path) -> None:
    letter = "é" if name == "us-ascii" else "e"
    text = f"<?xml version='1.0' encoding='{name}'?><net version='11' name='{letter}'><layers/></net>"
    text += ENDS.get(name, "")
    assert codes(check(write(tmp_path, text))) == ["SCT903"]


@pytest.mark.parametrize("data", NO_TEXT)
def test_bytes_that_are_no_text(data: bytes, tmp_path: Path) -> None:
    assert codes(check(write(tmp_path, data))) == ["SCT903"]


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ("", "utf-8"),
        ("", "utf-8-sig"),
        ("", "utf-16"),
        ("<?xml version='1.0' encoding='utf8'?>", "utf-8"),
        ("<?xml version='1.0' encoding='ASCII'?>", "ascii"),
        ("<?xml version='1.0' encoding='latin-1'?>", "latin-1"),
        ("<?xml version='1.0' encoding=\"cp1252\" standalone='no' ?>", "cp1252"),
        ("<?xml version='1.0' encoding='UTF-16'?>", "utf-16"),
        ("<?xml version='1.1'?>", "utf-8"),
        ("<?xml-model encoding='utf-16'?>", "utf-8"),
    ],
)
@pytest.mark.parametrize("aside", ["", "<!-- -->"])
def test_encodings(head: str, encoding: str, aside: str, tmp_path: Path) -> None:
    text = SIMPLE.partition("?>")[2].strip().replace("<layers>", f"<layers>{aside}")
    text = text.replace(' name="n4"', ' name="é"')
    if encoding == "ascii":
        text = text.replace("é", "e")
    path = write(tmp_path, (head + text).encode(encoding), b"\0" * 8 + b"\4" + b"\0" * 7)
    checked = check(path)
    assert [one.code for one in checked.diagnostics] == ["SCT302"]
    found = checked.diagnostics[0]
    assert found.node is not None
    assert found.node.name == ("e" if encoding == "ascii" else "é")
    line = (head + text).split("\n")[(found.location.line or 0) - 1]
    assert line.find('<layer id="4"') == (found.location.column or 0) - 1


@pytest.mark.parametrize(
    "text",
    [
        "<!DOCTYPE net><net version='11'><layers/></net>",
        "<?xml version='1.0'?>\n<!-- --><!DOCTYPE net [<!ENTITY a 'b'>]><net version='11'><layers/></net>",
        "<!DOCTYPE net SYSTEM 'file:///etc/passwd'><net version='11'>&a;<layers/></net>",
        "<!DOCTYPE a ["
        + "".join(f"<!ENTITY a{n + 1} '{f'&a{n};' * 10}'>" for n in range(30))
        + "]><net>&a30;</net>",
        "<!DOCTYPE",
    ],
)
def test_doctypes(text: str, tmp_path: Path) -> None:
    assert codes(check(write(tmp_path, text))) == ["SCT906"]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("<!-- <net version='3'> -->\n<net version='7'/>", "'7'"),
        ("<net é='version=\"10\"' version='7'/>", "'7'"),
        ("<net version='7' é='version=\"10\"'/>", "'7'"),
        ("<net x='/>' version='7' y='>'/>", "'7'"),
        ("<net/>", "no version"),
        (f"<net version='{'9' * 9_000}'/>", "'9999"),
        ("<net version='١١'/>", "'١١'"),
    ],
)
def test_the_root(text: str, version: str, tmp_path: Path) -> None:
    checked = check(write(tmp_path, text))
    assert [one.code for one in checked.diagnostics] == ["SCT908"]
    found = checked.diagnostics[0]
    assert version in found.message
    assert len(found.message) < 200
    lines = text.split("\n")
    assert lines[(found.location.line or 0) - 1][(found.location.column or 0) - 1 :].startswith("<net")


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    for raw in (data, b"<net version='11'>" + data, b"<?xml " + data, b"\xff\xfe" + data):
        detect("m", raw)
        with pytest.raises(UnreadableModel):
            read("m.xml", raw, ReadOptions(has_folder=False))


LARGE = "x" * ((10 << 20) + 1)
LARGE_PARTS = {
    "comment": f"<!--{LARGE}-->",
    "instruction": f"<?note {LARGE}?>",
    "CDATA": f"<rt_info><![CDATA[{LARGE}]]></rt_info>",
    "attribute": f'<rt_info value="{LARGE}"/>',
    "name": f"<{'a' * 60_000}/>",
}


@pytest.mark.parametrize("name", LARGE_PARTS)
def test_what_is_merely_large_is_read(name: str, tmp_path: Path) -> None:
    """libxml2 has limits of its own, which OpenVINO has not."""
    path = write(tmp_path, SIMPLE.replace("</net>", f"{LARGE_PARTS[name]}</net>"), WEIGHTS)
    assert [found.code for found in validate(read_model(path))] == []


def test_beside_large_parts_other_limits_stay(tmp_path: Path) -> None:
    deep = f"<!--{LARGE}-->{'<a>' * 300}{'</a>' * 300}"
    path = write(tmp_path, SIMPLE.replace("</net>", f"{deep}</net>"), WEIGHTS)
    with pytest.raises(UnreadableModel, match="elements are nested deeper than 256"):
        read_model(path)
    write(tmp_path, SIMPLE.replace("</net>", f"<!--{LARGE}--><a></net>"), WEIGHTS)
    with pytest.raises(UnreadableModel, match="not well-formed XML: "):
        read_model(path)
