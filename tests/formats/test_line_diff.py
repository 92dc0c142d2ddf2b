"""A diff says what edits do: applied line by line it gives the edited text."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir_scatter.formats.text_edits import Edit, apply_edits, unified_diff

_NO_END = "\\ No newline at end of file\n"
_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n")


def _diff(data: bytes, edits: list[Edit], name: str = "a.xml") -> list[str]:
    return list(unified_diff(data, edits, name, name))


def _lines(text: str) -> list[str]:
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def _patched(text: str, diff: list[str]) -> str:
    """Apply a diff without any tolerance, and demand that all its numbers are true."""
    old, new = _lines(text), list[str]()
    position, number = 0, 2
    assert [line[:4] for line in diff[:2]] == (["--- ", "+++ "] if diff else [])
    while number < len(diff):
        match = _HEADER.fullmatch(diff[number])
        assert match, diff[number]
        start, count, other, made = (int(part or 1) for part in match.groups())
        first = start - (1 if count else 0)
        new += old[position:first]
        assert len(new) == other - (1 if made else 0)
        position, before = first, len(new)
        number += 1
        while number < len(diff) and not diff[number].startswith("@@"):
            kind, line = diff[number][0], diff[number][1:]
            number += 1
            if number < len(diff) and diff[number].startswith("\\"):
                line = line.removesuffix("\n")
                number += 1
            if kind in " -":
                assert old[position] == line
                position += 1
            if kind in " +":
                new.append(line)
        assert (position - first, len(new) - before) == (count, made)
    return "".join([*new, *old[position:]])


@st.composite
def _edited(draw: st.DrawFn) -> tuple[bytes, list[Edit]]:
    text = draw(st.text(st.sampled_from("\n\n\nab\r é"), max_size=90)).encode()
    places = draw(st.lists(st.integers(0, len(text)), max_size=8).map(sorted))
    # an edit of a file never cuts a character into pieces
    places = [place for place in places if place == len(text) or text[place] & 0xC0 != 0x80]
    pieces = [st.sampled_from([b"", b"\n", b"x", b"x\n", b"\ny\nz", b"a\nb\nc\nd\n"])]
    return text, [
        Edit(start, end, draw(pieces[0])) for start, end in zip(places[::2], places[1::2], strict=False)
    ]


@given(_edited())
def test_a_diff_gives_the_edited_text(case: tuple[bytes, list[Edit]]) -> None:
    data, edits = case
    assert _patched(data.decode(), _diff(data, edits)).encode() == apply_edits(data, edits)


def test_only_the_lines_around_edits_are_shown() -> None:
    data = b"".join(b"%d\n" % number for number in range(1, 101))
    at = data.index(b"50\n")
    assert _diff(data, [Edit(at, at + 2, b"fifty\nmore")]) == [
        "--- a.xml\n", "+++ a.xml\n", "@@ -47,7 +47,8 @@\n",
        " 47\n", " 48\n", " 49\n", "-50\n", "+fifty\n", "+more\n", " 51\n", " 52\n", " 53\n",
    ]  # fmt: skip


def test_edits_that_change_nothing_show_nothing() -> None:
    assert _diff(b"a\nb\n", [Edit(2, 3, b"b")])[2:] == []
    assert _diff(b"a\nb\n", []) == []


def test_a_last_line_without_an_end() -> None:
    assert _diff(b"a\nb", [Edit(2, 3, b"c")])[2:] == [
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
