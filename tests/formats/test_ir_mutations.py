"""IRs changed at random: every one leads to a result, never to a bug of ours, and always to the same."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import TypeAlias
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from ir_scatter.formats.openvino.xml_text import XmlText
from ir_scatter.lint import FileResult, make_report
from ir_scatter.report.registry import render
from tests.formats.ir_files import (
    NESTED,
    SIMPLE,
    WEIGHTS,
    check,
    codes,
    needs_models,
    real_models,
    render_all,
    write,
)
from tests.models import nested_ir
from tests.scale import in_part_and_whole, thinned


def words(text: str) -> list[str]:
    return text.split()


HOSTILE = words("""
    -5 -1 99999999999999999999 9223372036854775807 9223372036854775808 5..3 1.. ..2 ? abc 1e9 0x10 ٣ 007 +1 0 1
    2 3 4 5 2,2 0,99999999999 ... [2] 4294967296 -0 1.5 &lt; &#10; &#x1F600; true none
    9223372036854775807,9223372036854775807
""")
HOSTILE += ["", " 7 ", "a\nb", "1," * 70 + "1", "x" * 9_000]
TYPES = words("""
    Const Constant const Parameter parameter If Loop TensorIterator ScatterUpdate ScatterElementsUpdate
    ScatterNDUpdate scatterndupdate ShapeOf Reshape Unsqueeze Squeeze Broadcast Concat Range Gather
    Slice StridedSlice Add Multiply Transpose Convert Result Tile
""")
OTHERS = words("""
    opset1 opset3 opset4 opset12 opset15 opset17 opset99 extension i64 i32 i4 u1 u8 f32 f16 bf16 nf4
    string boolean dynamic undefined FP32 sum mean numpy bidirectional then_body axis use_init_val
    reduction shape id
""")
TOKENS = words("""
    < > </layer> <layer> <!-- --> <![CDATA[ ]]> <?x?> &amp; &x; <edges/> <layers/> <port/> <data/> "
    <body><layers/></body> <dim>-7</dim> xmlns="u" <p:data/> <rt_info><layer/></rt_info> \ufeff
""")
TOKENS += [*"\0\r\n\t", "<!DOCTYPE a>", '<port id="0"/>', '<edge from-layer="0"/>', ' xmlns:p="u" p:q="r" ']
BYTES = [b"\xff", b"\xed\xa0\x80", b"\xc3", *map(str.encode, TOKENS)]
OF_BYTES = ("byte", "cut", "token", "end")
OF_ELEMENTS = ("delete", "repeat", "move", "swap")
ATTRIBUTE = re.compile(rb' [\w:.-]+="[^"<]*"')
OF_TEXTS: Mapping[str, tuple[re.Pattern[bytes], list[str] | None]] = {
    "number": (re.compile(rb'(?<=[">, ])-?\d+(?=[",<])'), HOSTILE),
    "value": (re.compile(rb'(?<==")[^"<]*(?=")'), ["", *TYPES, *OTHERS, *HOSTILE]),
    "type": (re.compile(rb'(?<= type=")[^"<]*(?=")'), ["", *TYPES]),
    "unnamed": (ATTRIBUTE, [""]),
    "shuffle": (ATTRIBUTE, None),  # another attribute of the file
}
TAG = re.compile(rb"<(/?)([A-Za-z_][\w:.-]*)[^<>]*?(/?)>")
KINDS = [*OF_BYTES, *OF_ELEMENTS, *OF_ELEMENTS, *OF_TEXTS, *["token"] * 2, *["number", "value"] * 3]
Change: TypeAlias = tuple[str, int, int]


def changes(kinds: list[str]) -> st.SearchStrategy[list[Change]]:
    place = st.integers(0, 2**16)
    return st.lists(st.tuples(st.sampled_from(kinds), place, place), min_size=1, max_size=5)


def elements(text: bytes) -> list[tuple[int, int]]:
    """Return where elements begin and end, as far as that can be told."""
    found, opened = [], []
    for match in TAG.finditer(text):
        if match[3]:
            found.append(match.span())
        elif not match[1]:
            opened.append((match[2], match.start()))
        elif opened and opened[-1][0] == match[2]:
            found.append((opened.pop()[1], match.end()))
    return sorted(found)


def changed(text: bytes, kind: str, first: int, second: int) -> bytes:
    """Make one change."""
    if kind in OF_BYTES:
        place = first % (len(text) + 1)
        new = {"byte": bytes([second % 256]), "token": BYTES[second % len(BYTES)]}.get(kind, b"")
        gone = {"byte": 1, "token": 0, "cut": second % 64, "end": len(text)}[kind]
        return text[:place] + new + text[place + gone :]
    if kind in OF_TEXTS:
        pattern, texts = OF_TEXTS[kind]
        found = [match.span() for match in pattern.finditer(text)]
        choices = pattern.findall(text) if texts is None else [one.encode() for one in texts]
        start, end = found[first % len(found)] if found else (0, 0)
        return text[:start] + choices[second % len(choices)] + text[end:] if found else text
    places = elements(text)[1:]
    if len(places) < 2:
        return text
    (start, end), (other, other_end) = places[first % len(places)], places[second % len(places)]
    element = text[start:end]
    if kind == "delete":
        return text[:start] + text[end:]
    if kind == "repeat":
        return text[:other] + element + text[other:]
    if kind == "move":
        rest = text[:start] + text[end:]
        return rest[:other] + element + rest[other:]
    (start, end), (other, other_end) = sorted([(start, end), (other, other_end)])
    if end > other:
        return text
    return text[:start] + text[other:other_end] + text[end:other] + text[start:end] + text[other_end:]


def after(text: str, changes: list[Change]) -> bytes:
    data = text.encode()
    for kind, first, second in changes:
        data = changed(data, kind, first, second)
    return data


SEEDS = {"simple": SIMPLE, "nested": NESTED}
WELL_FORMED = [kind for kind in KINDS if kind not in {*OF_BYTES, "shuffle"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mutations")


@in_part_and_whole
@pytest.mark.parametrize("seed", SEEDS)
def test_every_number_is_hostile_once(folder: Path, seed: str, is_whole: bool) -> None:
    data, step = SEEDS[seed].encode(), (1 if seed == "simple" else 7) * (1 if is_whole else 11)
    count = len(OF_TEXTS["number"][0].findall(data))
    for number in range(len(HOSTILE)):
        for place in range(number % step, count, step):
            check(write(folder, changed(data, "number", place, number)))


def test_files_cut_at_any_byte(folder: Path) -> None:
    data = SIMPLE.encode()
    end = data.index(b"</net>") + len(b"</net>")
    for length in range(len(data)):
        expected = [] if length >= end else ["SCT903" if length else "SCT902"]
        assert codes(check(write(folder, data[:length]))) == expected


def test_weights_cut_at_any_byte(folder: Path) -> None:
    for length in range(len(WEIGHTS)):
        assert "SCT931" in codes(check(write(folder, NESTED, WEIGHTS[:length])))


def test_ports_that_edges_lead_from(folder: Path) -> None:
    """What a contradiction makes necessary to follow may lead nowhere."""
    branch = Path(nested_ir.write_branch(folder)).read_text()
    gone = branch.replace('<port id="4"', '<port id="1e9"')
    assert {"SCT921", "SCT928"} <= {*codes(check(write(folder, gone)))}
    stale = SIMPLE.replace('"1,5" element_type="f32"', '"1,5" element_type="i32"')
    assert "SCT505" in codes(check(write(folder, stale.replace('"Parameter"', '"Add"', 1))))


def everything(checked: FileResult) -> str:
    """Return all that is known of a result, as text."""
    return render("findings", "json", make_report([checked]))


IN_PLACE = {"port": {"input", "output"}, "dim": {"port"}, "layer": {"layers"}}
MAPS = {"port_map", "then_port_map", "else_port_map"}


def is_counted_rightly(data: bytes) -> bool:
    """Tell whether each port stands in a section of a layer of a graph, where ports may be counted."""
    text = XmlText("m.xml", data).data
    tree = etree.fromstring(text, etree.XMLParser(recover=True, huge_tree=True, resolve_entities=False))
    for element in tree.iter("port", "input", "output", "layer", "dim"):
        tag, parents = str(element.tag), [str(parent.tag) for parent in element.iterancestors()]
        before = element.getprevious()
        if tag in {"input", "output"} and parents[0] in MAPS:
            continue
        if "rt_info" in parents or parents[0] not in IN_PLACE.get(tag, {"layer"}):
            return False
        if tag in {"input", "output"} and before is not None and before.tag in {tag, "output"}:
            return False
    return True


def demand_sense(folder: Path, data: bytes, weights: bytes | None) -> None:
    """Check a file, demand a result at once, and the same one on the slow way through the file."""
    path = write(folder, data, weights)
    checked = check(path)
    render_all(checked)
    found = everything(checked)
    assert everything(check(path)) == found
    if checked.is_readable and is_counted_rightly(data):
        assert everything(check(write(folder, data + b"<!-- -->", weights))) == found


def binaries(weights: bytes) -> st.SearchStrategy[bytes | None]:
    """Draw weights, cut, gone, of other bytes or with more behind them."""
    cut, other = weights[: len(weights) // 2 + 1], b"\xff" * len(weights)
    return st.sampled_from([weights, cut, b"", other, weights + b"\x7f" * 64, None])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kinds", [WELL_FORMED, KINDS], ids=["well-formed", "any"])
@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_changed_files(folder: Path, seed: str, kinds: list[str], data: st.DataObject) -> None:
    demand_sense(folder, after(SEEDS[seed], data.draw(changes(kinds))), data.draw(binaries(WEIGHTS)))


@pytest.mark.models
@needs_models
@given(data=st.data(), changes=changes(KINDS))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_changed_real_models(folder: Path, data: st.DataObject, changes: list[Change]) -> None:
    path = data.draw(st.sampled_from(real_models(20_000)))
    demand_sense(folder, after(path.read_text(), changes), data.draw(binaries(weights_of(path) or b"")))


def weights_of(path: Path) -> bytes | None:
    weights = path.with_suffix(".bin")
    return weights.read_bytes() if weights.exists() else None


def rewritten(element: "etree._Element", random: Random) -> str:
    """Write an element in another way that means the same."""
    attributes = []
    for name, value in element.attrib.items():
        quote = single if random.random() < 0.5 else quoteattr
        attributes.append(f" {name!s} = {quote(str(value))}")
    random.shuffle(attributes)
    space = random.choice(["", "\r\n", "<!-- <layer/> -->"])
    inside = "".join(rewritten(child, random) + space for child in element if isinstance(child.tag, str))
    text = escape(element.text or "")
    if not inside and not text and random.random() < 0.5:
        return f"<{element.tag}{''.join(attributes)}/>"
    return f"<{element.tag}{''.join(attributes)} >{text}{inside}</{element.tag}>"


def single(text: str) -> str:
    return "'" + escape(text, {"'": "&apos;", "\n": "&#10;", "a": "&#97;"}) + "'"


def findings(checked: FileResult) -> list[str]:
    """Return what was found but for the places, in any order."""
    return sorted(
        f"{one.code} {one.severity} {one.message} {one.location.scope} {one.port} {one.node}"
        f"{[(note.message, note.location.scope) for note in one.related]}"
        for one in checked.diagnostics
    )


def demand_same_findings(folder: Path, data: bytes, weights: bytes | None, seed: int) -> None:
    """Check a file and the same one in other words."""
    random = Random(seed)
    checked = check(write(folder, data, weights))
    if checked.is_readable and is_counted_rightly(data):
        parser = etree.XMLParser(remove_comments=True, remove_pis=True, resolve_entities=False)
        text = rewritten(etree.fromstring(data, parser), random)
        other = text.encode(random.choice(["utf-8", "utf-16", "utf-8-sig"]))
        assert findings(check(write(folder, other, weights))) == findings(checked)


@pytest.mark.parametrize("seed", SEEDS)
@given(changes=changes(WELL_FORMED), number=st.integers(0, 2**32))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_how_a_file_is_written_does_not_matter(
    folder: Path, seed: str, changes: list[Change], number: int
) -> None:
    demand_same_findings(folder, after(SEEDS[seed], changes), WEIGHTS, number)


@pytest.mark.models
@needs_models
@pytest.mark.parametrize("path", thinned(real_models(200_000), 6), ids=lambda path: path.parent.name)
def test_how_real_models_are_written_does_not_matter(folder: Path, path: Path) -> None:
    demand_same_findings(folder, path.read_bytes(), weights_of(path), 1)


SCRIPT = """
import sys
from ir_scatter.lint import Options, check_files, make_report
from ir_scatter.core.files import Source
from ir_scatter.report.registry import formats, render
checked = check_files([Source(path) for path in sys.argv[1:]], Options())
assert not any(one.bug for one in checked)
for name in formats("findings"):
    print(render("findings", name, make_report(checked)))
"""


def test_the_answer_does_not_depend_on_hashes(folder: Path) -> None:
    random, paths = Random(7), []
    for number in range(24):
        changes = [(random.choice(KINDS), random.randrange(2**16), random.randrange(2**16)) for _ in range(3)]
        text = random.choice([SIMPLE, NESTED]).replace("\n", random.choice(["", "\n"]))
        paths.append(str(write(folder, after(text, changes), WEIGHTS, f"changed_{number}")))
    command = [sys.executable, "-c", SCRIPT, *paths]
    outputs = set()
    for seed in ("0", "1"):
        hashed = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"}
        outputs.add(subprocess.run(command, capture_output=True, check=True, env=hashed).stdout)
    assert len(outputs) == 1
    assert b"changed_0" in outputs.pop()
