"""Edits of bytes: what no edit names stays."""

import time
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir_scatter.formats.text_edits import Edit, apply_edits, line_lead, removal


@st.composite
def texts_and_edits(draw: st.DrawFn) -> tuple[bytes, list[Edit]]:
    data = draw(st.binary(max_size=30))
    ends = sorted(draw(st.sets(st.integers(0, len(data)), max_size=8)))
    return data, [
        Edit(*pair, draw(st.binary(max_size=3))) for pair in zip(ends[::2], ends[1::2], strict=False)
    ]


@given(texts_and_edits(), st.randoms(use_true_random=False))
def test_every_piece_is_replaced_and_nothing_else(made: tuple[bytes, list[Edit]], random: Random) -> None:
    data, edits = made
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


def test_time_grows_with_the_number_of_edits() -> None:
    data = bytes(4_000_000)
    edits = [Edit(n, n + 1, b"xx") for n in range(0, len(data), 40)]
    start = time.perf_counter()
    assert len(apply_edits(data, edits)) == len(data) + len(edits)
    assert time.perf_counter() - start < 2


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
