"""Edits of bytes: what no edit names stays; and a diff that gives the edited text."""

import re
import shutil
import subprocess
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ir_scatter.formats.text_edits import Edit, apply_edits, line_lead, removal, unified_diff
from tests.operations import executed_lines


@st.composite
def edited(draw: st.DrawFn) -> tuple[bytes, list[Edit]]:
    """Draw a text and edits that never cut a character into pieces."""
    lines = st.sampled_from(["\n", "\r\n", "ab\n", " é\n", "\n" * 9, "x"])
    text = "".join(draw(st.lists(lines, max_size=20))).encode()
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    places = [place for place in places if place == len(text) or text[place] & 0xC0 != 0x80]
    pieces = st.sampled_from([b"", b"\n", b"x", b"x\n", b"\ny\nz", b"a\nb\nc\nd\n"])
    pairs = zip(places[::2], places[1::2], strict=False)
    return text, [Edit(*pair, draw(pieces)) for pair in pairs]


@given(edited(), st.randoms(use_true_random=False))
def test_every_piece_is_replaced_and_nothing_else(case: tuple[bytes, list[Edit]], random: Random) -> None:
    data, edits = case
    assume(len({edit[:2] for edit in edits}) == len(edits))  # those at one place keep their order
    expected = bytearray(data)
    for edit in reversed(edits):
        expected[edit.start : edit.end] = edit.text
    random.shuffle(edits)
    assert apply_edits(data, edits) == expected


def test_what_is_inserted_at_one_place_keeps_its_order() -> None:
    edits = [Edit(2, 3, b"_"), Edit(2, 2, b"1"), Edit(2, 2, b"2"), Edit(1, 2, b"-")]
    assert apply_edits(b"abcd", edits) == b"a-12_d"


@pytest.mark.parametrize("other", [Edit(1, 3, b""), Edit(2, 9, b""), Edit(3, 2, b""), Edit(-1, 0, b"")])
def test_edits_that_overlap_or_stand_outside_are_a_mistake_of_ours(other: Edit) -> None:
    with pytest.raises(AssertionError):
        apply_edits(b"abcd", [Edit(2, 4, b"x"), other])


class CountedBytes(bytes):
    """Bytes that count how many of them are copied out of slices."""

    copied = 0

    def __getitem__(self, place: Any) -> Any:
        part = super().__getitem__(place)
        self.copied += len(part) if isinstance(part, bytes) else 1
        return part


def test_each_byte_is_copied_once_however_many_edits_there_are() -> None:
    data = CountedBytes(4_000_000)
    edits = [Edit(n, n + 1, b"xx") for n in range(0, len(data), 40)]
    assert len(apply_edits(data, edits)) == len(data) + len(edits)
    assert data.copied == len(data) - len(edits)
    few, many = (executed_lines(partial(apply_edits, data, edits[:n])) for n in (1_000, 4_000))
    assert many < 4 * few


@pytest.mark.parametrize(
    ("before", "lead"),
    [
        (b"<a>\n\t\t", b"\n\t\t"),
        (b"<a>\r\n  ", b"\r\n  "),
        (b"<a>\n", b"\n"),
        (b"\n\n \t", b"\n \t"),
        (b"\n", b"\n"),
        (b"<a>", b""),
        (b"<a>  ", b""),
        (b"", b""),
        (b"<a>\n" + b" " * 300, b""),
    ],
)
def test_the_lead_is_a_line_break_and_white_space(before: bytes, lead: bytes) -> None:
    assert line_lead(before + b"<b/>", len(before)) == lead


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (b"<a/>\n\t<X/>\n\t<b/>", b"<a/>\n\t<b/>"),
        (b"<a/>\r\n\t<X/>\r\n\t<b/>", b"<a/>\r\n\t<b/>"),
        (b"<a/>\n\n\t<X/>  \n\t<b/>", b"<a/>\n\n\t<b/>"),
        (b"<a/>\n\t<X/>", b"<a/>"),
        (b"<a/><X/><b/>", b"<a/><b/>"),
        (b"<a/> <X/> <b/>", b"<a/> <b/>"),
        (b"<a/>\n<X/> <!-- why -->\n<b/>", b"<a/>\n <!-- why -->\n<b/>"),
        (b"<a/> <X/>\n<b/>", b"<a/>\n<b/>"),
        (b"<X/>", b""),
    ],
)
def test_a_piece_goes_with_its_line_if_nothing_else_stands_on_it(text: bytes, rest: bytes) -> None:
    start = text.index(b"<X/>")
    assert apply_edits(text, [removal(text, start, start + 4)]) == rest


@given(st.lists(st.sampled_from([b"<X/>", b"<y/>", b" ", b"\n", b"\t", b"\r\n", b"<!-- -->"]), max_size=12))
def test_removals_of_neighbours_never_overlap(pieces: list[bytes]) -> None:
    text = b"".join(pieces)
    starts = [n for n in range(len(text)) if text.startswith(b"<X/>", n)]
    found = apply_edits(text, [removal(text, start, start + 4) for start in starts])
    assert b"".join(found.split()) == b"".join(text.replace(b"<X/>", b"").split())


# As a diff.

_NO_END = "\\ No newline at end of file\n"
_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n")


def diff(data: bytes, edits: list[Edit], name: str = "a.xml") -> list[str]:
    return list(unified_diff(data, edits, name, name))


def lines_of(text: str) -> list[str]:
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def patched(text: str, shown: list[str]) -> str:
    """Apply a diff without any tolerance, and demand that all its numbers are true."""
    old, new = lines_of(text), list[str]()
    position, number = 0, 2
    assert [line[:4] for line in shown[:2]] == (["--- ", "+++ "] if shown else [])
    while number < len(shown):
        match = _HEADER.fullmatch(shown[number])
        assert match, shown[number]
        start, count, other, made = (int(part or 1) for part in match.groups())
        first = start - (1 if count else 0)
        new += old[position:first]
        assert len(new) == other - (1 if made else 0)
        position, before = first, len(new)
        number += 1
        while number < len(shown) and not shown[number].startswith("@@"):
            kind, line = shown[number][0], shown[number][1:]
            number += 1
            if number < len(shown) and shown[number].startswith("\\"):
                line = line.removesuffix("\n")
                number += 1
            if kind in " -":
                assert old[position] == line
                position += 1
            if kind in " +":
                new.append(line)
        assert (position - first, len(new) - before) == (count, made)
    return "".join([*new, *old[position:]])


@given(edited())
def test_a_diff_gives_theedited_text(case: tuple[bytes, list[Edit]]) -> None:
    data, edits = case
    assert patched(data.decode(), diff(data, edits)).encode() == apply_edits(data, edits)


def test_only_the_lines_around_edits_are_shown() -> None:
    data = b"".join(b"%d\n" % number for number in range(1, 101))
    at, then = data.index(b"50\n"), data.index(b"90\n")
    assert diff(data, [Edit(at, at + 2, b"fifty\nmore"), Edit(then, then + 2, b"ninety")]) == [
        "--- a.xml\n", "+++ a.xml\n", "@@ -47,7 +47,8 @@\n",
        " 47\n", " 48\n", " 49\n", "-50\n", "+fifty\n", "+more\n", " 51\n", " 52\n", " 53\n",
        "@@ -87,7 +88,7 @@\n",
        " 87\n", " 88\n", " 89\n", "-90\n", "+ninety\n", " 91\n", " 92\n", " 93\n",
    ]  # fmt: skip


def test_a_last_line_without_an_end() -> None:
    assert diff(b"a\nb", [Edit(2, 3, b"c")])[2:] == [
        "@@ -1,2 +1,2 @@\n", " a\n", "-b\n", _NO_END, "+c\n", _NO_END,
    ]  # fmt: skip


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs the program patch")
@pytest.mark.parametrize(
    "name", ["plain.xml", "with spaces.xml", 'a "quote".xml', "back\\slash.xml", "tab\t.xml"]
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_patch_applies_it(name: str, end: str, tmp_path: Path) -> None:
    data = end.join(f"line {number}" for number in range(30)).encode()
    edits = [
        Edit(0, 0, b"first" + end.encode()),
        Edit(data.index(b"line 12"), data.index(b"line 14"), "é".encode()),
    ]
    (tmp_path / name).write_bytes(data)
    text = "".join(unified_diff(data, edits, name, name)).encode()
    subprocess.run(["patch", "-p0", "--binary"], input=text, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / name).read_bytes() == apply_edits(data, edits)
