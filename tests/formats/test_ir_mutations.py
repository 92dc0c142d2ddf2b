"""IRs changed at random: every one leads to a result, never to a bug of ours, and always to the same."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import TypeAlias
from xml.parsers import expat

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from ir_scatter.check import Checked, make_report
from ir_scatter.formats.xml_text import XmlText
from ir_scatter.report.formats import render
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

HOSTILE = [
    *(
        "-5",
        "-1",
        "99999999999999999999",
        "9223372036854775807",
        "9223372036854775808",
        "5..3",
        "1..",
        "..2",
        "?",
    ),
    *(
        "abc",
        "",
        "1e9",
        "0x10",
        " 7 ",
        "٣",
        "007",
        "+1",
        "0",
        "1",
        "2",
        "3",
        "4",
        "5",
        "2,2",
        "0,99999999999",
        "...",
    ),
    *(
        "9223372036854775807,9223372036854775807",
        "1," * 70 + "1",
        "[2]",
        "4294967296",
        "-0",
        "1.5",
        "\ud7ff",
        "&lt;",
    ),
    *("a\nb", "&#10;", "&#x1F600;", "true", "none", "x" * 9_000),
]
WORDS = [
    *(
        "Const",
        "Constant",
        "const",
        "Parameter",
        "parameter",
        "If",
        "Loop",
        "TensorIterator",
        "ScatterUpdate",
    ),
    *(
        "ScatterElementsUpdate",
        "ScatterNDUpdate",
        "scatterndupdate",
        "ShapeOf",
        "Reshape",
        "Unsqueeze",
        "Squeeze",
    ),
    *(
        "Broadcast",
        "Concat",
        "Range",
        "Gather",
        "Slice",
        "StridedSlice",
        "Add",
        "Multiply",
        "Transpose",
        "Convert",
    ),
    *(
        "opset1",
        "opset3",
        "opset4",
        "opset12",
        "opset15",
        "opset17",
        "opset99",
        "extension",
        "",
        "Result",
        "Tile",
    ),
    *(
        "i64",
        "i32",
        "i4",
        "u1",
        "u8",
        "f32",
        "f16",
        "bf16",
        "nf4",
        "string",
        "boolean",
        "dynamic",
        "undefined",
        "FP32",
    ),
    *(
        "sum",
        "mean",
        "numpy",
        "bidirectional",
        "then_body",
        "axis",
        "use_init_val",
        "reduction",
        "shape",
        "id",
    ),
]
TOKENS = [
    *(
        b"<",
        b">",
        b"</layer>",
        b"<layer>",
        b"<!--",
        b"-->",
        b"<![CDATA[",
        b"]]>",
        b"<?x?>",
        b"&amp;",
        b"&x;",
        b'"',
    ),
    *(
        b"\0",
        b"\xff",
        b"\xed\xa0\x80",
        b"\r",
        b"\n",
        b"\t",
        b"<body><layers/></body>",
        b"<edges/>",
        b"<layers/>",
    ),
    *(
        b"<port/>",
        b'<port id="0"/>',
        b"<data/>",
        b"<dim>-7</dim>",
        b"<!DOCTYPE a>",
        b'<edge from-layer="0"/>',
    ),
    *(b'xmlns="u"', b' xmlns:p="u" p:q="r" ', b"<p:data/>", b"<rt_info><layer/></rt_info>", b"\xef\xbb\xbf"),
]
KINDS = [
    *(
        "byte",
        "cut",
        "token",
        "token",
        "number",
        "number",
        "number",
        "number",
        "value",
        "value",
        "value",
        "unnamed",
    ),
    *("delete", "delete", "repeat", "repeat", "swap", "swap", "move", "move", "shuffle", "end", "type"),
]
Change: TypeAlias = tuple[str, int, int]
CHANGES = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 2**16), st.integers(0, 2**16)), min_size=1, max_size=5
)

_NUMBER = re.compile(rb'(?<=[">, ])-?\d+(?=[",<])')
_VALUE = re.compile(rb'(?<==")[^"<]*(?=")')
_TYPE = re.compile(rb'(?<= type=")[^"<]*(?=")')
_ATTRIBUTE = re.compile(rb' [\w:.-]+="[^"<]*"')
_TAG = re.compile(rb"<(/?)([A-Za-z_][\w:.-]*)[^<>]*?(/?)>")


def elements(text: bytes) -> list[tuple[int, int]]:
    """Return where elements begin and end, as far as that can be told."""
    found, opened = [], []
    for match in _TAG.finditer(text):
        if match[3]:
            found.append(match.span())
        elif not match[1]:
            opened.append((match[2], match.start()))
        elif opened and opened[-1][0] == match[2]:
            found.append((opened.pop()[1], match.end()))
    return sorted(found)


def replaced(text: bytes, pattern: "re.Pattern[bytes]", first: int, new: bytes) -> bytes:
    places = [match.span() for match in pattern.finditer(text)]
    if not places:
        return text
    start, end = places[first % len(places)]
    return text[:start] + new + text[end:]


def pick(choices: list[str], number: int) -> bytes:
    return choices[number % len(choices)].encode("utf-8", "surrogatepass")


def changed_bytes(text: bytes, kind: str, first: int, second: int) -> bytes:
    """Change bytes wherever they stand."""
    place = first % (len(text) + 1)
    if kind == "byte":
        return text[:place] + bytes([second % 256]) + text[place + 1 :]
    if kind == "cut":
        return text[:place] + text[place + second % 64 :]
    if kind == "token":
        return text[:place] + TOKENS[second % len(TOKENS)] + text[place:]
    return text[:place]


def changed_elements(text: bytes, kind: str, first: int, second: int) -> bytes:
    """Delete, repeat, swap or move elements."""
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
    if start > other:
        start, end, other, other_end = other, other_end, start, end
    if end > other:
        return text
    return text[:start] + text[other:other_end] + text[end:other] + text[start:end] + text[other_end:]


def changed(text: bytes, kind: str, first: int, second: int) -> bytes:
    """Make one change."""
    if kind in {"byte", "cut", "token", "end"}:
        return changed_bytes(text, kind, first, second)
    if kind in {"delete", "repeat", "move", "swap"}:
        return changed_elements(text, kind, first, second)
    if kind == "number":
        return replaced(text, _NUMBER, first, pick(HOSTILE, second))
    if kind == "value":
        return replaced(text, _VALUE, first, pick(WORDS + HOSTILE, second))
    if kind == "type":
        return replaced(text, _TYPE, first, pick(WORDS[:27], second))
    if kind == "unnamed":
        return replaced(text, _ATTRIBUTE, first, b"")
    attributes = _ATTRIBUTE.findall(text) or [b""]
    return replaced(text, _ATTRIBUTE, first, attributes[second % len(attributes)])


def after(text: str, changes: list[Change]) -> bytes:
    data = text.encode()
    for kind, first, second in changes:
        data = changed(data, kind, first, second)
    return data


def everything(checked: Checked) -> str:
    """Return all that is known of a result, as text."""
    return render(make_report([checked]), "json")


IN_PLACE = {"port": {"input", "output"}, "dim": {"port"}, "layer": {"layers"}}
MAPS = {"port_map", "then_port_map", "else_port_map"}


def is_counted_rightly(data: bytes) -> bool:
    """Tell whether each port stands in a section of a layer of a graph, where ports may be counted.

    And whether expat, the slow way, takes all characters that libxml2 takes in names.
    """
    text = XmlText("m.xml", data).data
    try:
        expat.ParserCreate("utf-8").Parse(text, True)
    except expat.ExpatError:
        return False
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
    start = time.perf_counter()
    checked = check(path)
    assert time.perf_counter() - start < 5
    render_all(checked)
    result = checked.result
    assert result is not None
    found = everything(checked)
    assert everything(check(path)) == found
    if result.is_readable and is_counted_rightly(data):
        assert everything(check(write(folder, data + b"<!-- -->", weights))) == found


SEEDS: Mapping[str, tuple[str, bytes]] = {"simple": (SIMPLE, WEIGHTS), "nested": (NESTED, WEIGHTS)}
BINARIES: list[Callable[[bytes], bytes | None]] = [
    lambda weights: weights,
    lambda weights: weights[: len(weights) // 2 + 1],
    lambda weights: b"",
    lambda weights: b"\xff" * len(weights),
    lambda weights: weights + b"\x7f" * 64,
    lambda weights: None,
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mutations")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("well_formed", [True, False])
@given(changes=CHANGES, binary=st.sampled_from(range(len(BINARIES))))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_changed_files(
    folder: Path, seed: str, well_formed: bool, changes: list[Change], binary: int
) -> None:
    text, weights = SEEDS[seed]
    if well_formed:
        changes = [
            change for change in changes if change[0] not in {"byte", "cut", "token", "end", "shuffle"}
        ]
    demand_sense(folder, after(text, changes), BINARIES[binary](weights))


@pytest.mark.models
@needs_models
@given(data=st.data(), changes=CHANGES, binary=st.sampled_from(range(len(BINARIES))))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_changed_real_models(folder: Path, data: st.DataObject, changes: list[Change], binary: int) -> None:
    path = data.draw(st.sampled_from(real_models(20_000)))
    weights = path.with_suffix(".bin")
    raw = weights.read_bytes() if weights.exists() else b""
    demand_sense(folder, after(path.read_text(), changes), BINARIES[binary](raw))


@pytest.mark.parametrize("number", range(len(HOSTILE)))
@pytest.mark.parametrize("seed", SEEDS)
def test_every_number_is_hostile_once(folder: Path, seed: str, number: int) -> None:
    text, weights = SEEDS[seed]
    data = text.encode()
    count = len(_NUMBER.findall(data))
    step = 1 if seed == "simple" else 7
    for place in range(number % step, count, step):
        check(write(folder, replaced(data, _NUMBER, place, pick(HOSTILE, number)), weights))


def test_files_cut_at_any_byte(folder: Path) -> None:
    data = SIMPLE.encode()
    end = data.index(b"</net>") + len(b"</net>")
    for length in range(end):
        checked = check(write(folder, data[:length]))
        assert codes(checked) == ["SCT903" if length else "SCT902"]
    for length in range(end, len(data)):
        assert codes(check(write(folder, data[:length]))) == []


def test_weights_cut_at_any_byte(folder: Path) -> None:
    for length in range(len(WEIGHTS)):
        checked = check(write(folder, NESTED, WEIGHTS[:length]))
        assert "SCT931" in codes(checked)


SCRIPT = """
import sys
from ir_scatter.check import Options, check_files, make_report
from ir_scatter.files import Source
from ir_scatter.report.formats import FORMATS, render
checked = check_files([Source(path) for path in sys.argv[1:]], Options())
assert not any(one.bug for one in checked)
for name in FORMATS:
    print(render(make_report(checked), name))
"""


def test_the_answer_does_not_depend_on_hashes(folder: Path) -> None:
    random = Random(7)
    paths = []
    for number in range(60):
        changes = [(random.choice(KINDS), random.randrange(2**16), random.randrange(2**16)) for _ in range(3)]
        text = random.choice([SIMPLE, NESTED]).replace("\n", random.choice(["", "\n"]))
        paths.append(str(write(folder, after(text, changes), WEIGHTS, f"changed_{number}")))
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT, *paths],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(outputs) == 1
    assert json.dumps(outputs.pop())
