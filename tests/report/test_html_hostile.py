"""Names out of a model cannot become anything but text."""

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir_scatter.compare.request import NotCompared
from ir_scatter.compare.result import Guarded, Level, NotTapped, Outlier
from ir_scatter.runners.base import Availability, NodeFacts, Outcome, Status
from tests.report.comparisons import (
    GPU,
    MISMATCH,
    ONE_OFF,
    ZEROS,
    compared,
    of_node,
    of_output,
    ok,
    page_text,
    parse_page,
)

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style></title></svg><b>",
    "' onmouseover='alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;&amp;",
    "$\\frac{x}{y}$",
]


def poisoned(text: str) -> str:
    """Return a page in which everything that may come from a file is the text."""
    alike = of_node(text, ONE_OFF, ZEROS, text)
    found = compared(
        alike,
        replace(alike, operator=text),
        of_output(text, ONE_OFF, ZEROS, text, text),
        replace(MISMATCH, measure=replace(MISMATCH.measure, remark=text), subject_model=text),
        model=text,
        other=text,
        outcomes=(ok(GPU), Outcome(text, Status.REFUSED, text, precision=text, versions={text: text})),
        guarded=(
            Guarded(text, text, text, 0, text, text),
            Guarded(text, text, text, 0, "repeated", text, False),
        ),
        outliers=(Outlier(Level.NODE, text, text, 0, (text,), text),),
        not_tapped=(NotTapped(text, text + "2", text),),
        remarks=(text,),
        facts={text: (NodeFacts(text, (text,), text, text, text, (text,), 1.0),)},
        feeds=({text: ZEROS},),
    )
    device = Availability(text, is_available=True, full_name=text, remarks=(text,), versions={text: text})
    return page_text(
        (found, replace(found, comparisons=())),
        devices={text: device},
        failures=(NotCompared(text, text, is_unreadable=True),),
        skipped=((text, text),),
        inputs=text,
    )


def skeleton(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return the tags of a page with the names of their attributes."""
    page = parse_page(text)
    return [
        (str(one.tag), tuple(sorted(name for name in one.attrib if name != "title"))) for one in page.iter()
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_becomes_a_tag(text: str) -> None:
    page = poisoned(text)
    harmless, spans = (
        [one for one in skeleton(text) if one[0] != "span"] for text in (poisoned("name"), page)
    )
    assert spans == harmless
    assert text in parse_page(page).text_content()


def remarked(text: str) -> str:
    """Return a page without pictures in which a text is at several places."""
    found = compared(of_node(text, ZEROS, ZEROS), model=text, remarks=(text,))
    return page_text((found,))


@cache
def plain() -> list[tuple[str, tuple[str, ...]]]:
    return skeleton(remarked("name"))


@given(st.text(st.characters(codec=None), min_size=1, max_size=30))
def test_no_text_at_all_becomes_a_tag_or_hides(text: str) -> None:
    page = remarked(text)
    assert page.encode("utf-8")
    assert page.replace("\n", "").isprintable()
    assert skeleton(page) == plain()


def test_what_cannot_be_seen_is_spelled_out() -> None:
    page = poisoned("a\x1b[31m\u202eb\u200b\n\udcff")
    assert "a\\x1b[31m\\u202eb\\u200b\\n\\xff" in page
    assert page.replace("\n", "").isprintable()


def test_long_names_are_shortened_in_tables_and_kept_in_full_below() -> None:
    name = "/".join(f"block{number}" for number in range(60))
    page = parse_page(page_text((compared(replace(MISMATCH, node=name)),)))
    (cell,) = page.xpath("//table[contains(@class, 'matrix')]//tbody//bdi")
    assert len(cell.text) < 100
    assert cell.get("title") == name
    assert page.findtext(".//article//h3/bdi") == name
    endless = parse_page(page_text((compared(replace(MISMATCH, node="x" * 100_000)),)))
    assert len(endless.text_content()) < 30_000
