"""IRs with one thing changed, and what the tests of many changes make them with."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import strategies as st

from tests.formats.ir_files import NESTED, SIMPLE, WEIGHTS, check, codes, write


def words(text: str) -> list[str]:
    return text.split()


HOSTILE = [
    *words(
        "-5 -1 99999999999999999999 9223372036854775807 9223372036854775808 5..3 1.. ..2 ? abc 1e9 0x10 ٣"
    ),
    *words("007 +1 0 1 2 3 4 5 2,2 0,99999999999 ... [2] 4294967296 -0 1.5 &lt; &#10; &#x1F600; true none"),
    *["", " 7 ", "a\nb", "9223372036854775807,9223372036854775807", "1," * 70 + "1", "x" * 9_000],
]
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
TOKENS = [
    *words("< > </layer> <layer> <!-- --> <![CDATA[ ]]> <?x?> &amp; &x; <edges/> <layers/> <port/> <data/>"),
    *words('" <body><layers/></body> <dim>-7</dim> xmlns="u" <p:data/> <rt_info><layer/></rt_info> \ufeff'),
    *[
        "\0",
        "\r",
        "\n",
        "\t",
        "<!DOCTYPE a>",
        '<port id="0"/>',
        '<edge from-layer="0"/>',
        ' xmlns:p="u" p:q="r" ',
    ],
]
BYTES = [b"\xff", b"\xed\xa0\x80", b"\xc3", *map(str.encode, TOKENS)]
KINDS = words("""
    byte cut token token number number number number value value value unnamed
    delete delete repeat repeat swap swap move move shuffle end type
""")
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
        return text[:place] + BYTES[second % len(BYTES)] + text[place:]
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
        return replaced(text, _VALUE, first, pick(["", *TYPES, *OTHERS, *HOSTILE], second))
    if kind == "type":
        return replaced(text, _TYPE, first, pick(["", *TYPES], second))
    if kind == "unnamed":
        return replaced(text, _ATTRIBUTE, first, b"")
    attributes = _ATTRIBUTE.findall(text) or [b""]
    return replaced(text, _ATTRIBUTE, first, attributes[second % len(attributes)])


def after(text: str, changes: list[Change]) -> bytes:
    data = text.encode()
    for kind, first, second in changes:
        data = changed(data, kind, first, second)
    return data


SEEDS: Mapping[str, tuple[str, bytes]] = {"simple": (SIMPLE, WEIGHTS), "nested": (NESTED, WEIGHTS)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mutations")


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
