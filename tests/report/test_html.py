import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from ir_scatter.compare.headline import headline
from ir_scatter.compare.request import Done
from ir_scatter.compare.result import Compared
from ir_scatter.report.comparison_html import render
from ir_scatter.runners.base import Availability, Outcome, Status
from ir_scatter.version import versions
from tests.report.comparisons import (
    CPU,
    EQUAL,
    EVERYTHING,
    MANY,
    MISMATCH,
    NUMPY,
    ONE_OFF,
    TWO,
    ZEROS,
    compared,
    of_node,
    of_output,
    ok,
    page_text,
    parse_page,
)
from tests.report.golden import assert_golden

Element = Any
"""Of a page: lxml's types tell apart what no test does."""


def page_of(*found: Compared, **more: Any) -> Element:
    return parse_page(page_text(found, **more))


def words(element: Element) -> str:
    return " ".join(" ".join(element.itertext()).split())


def section(page: Element, title: str) -> Element:
    (found,) = [one.getparent() for one in page.iter("h3") if words(one) == title]
    assert found is not None
    return found


PAGES = {
    "everything": (EVERYTHING,),
    "nothing": (compared(),),
    "many": MANY.found,
}


@pytest.mark.parametrize("found", PAGES.values(), ids=PAGES.keys())
def test_the_page_needs_no_network_and_no_script(found: tuple[Compared, ...]) -> None:
    text = page_text(found)
    page = parse_page(text)
    assert not list(page.iter("script", "link", "iframe", "object", "img", "form"))
    for element in page.iter():
        for name, value in element.attrib.items():
            assert not name.startswith("on"), (element.tag, name)
            if name.endswith(("href", "src")):
                assert value.startswith(("#", "data:image/png;base64,")), value
    (style,) = page.iter("style")
    assert "url(" not in (style.text or "")
    assert "@import" not in (style.text or "")
    assert "default-src 'none'" in text


@pytest.mark.parametrize("found", PAGES.values(), ids=PAGES.keys())
def test_names_inside_the_page_are_unique_and_lead_somewhere(found: tuple[Compared, ...]) -> None:
    page = parse_page(page_text(found))
    counts = Counter(page.xpath("//@id"))
    assert [name for name, count in counts.items() if count > 1] == []
    links = [link[1:] for link in page.xpath("//@href") if link.startswith("#")]
    assert {*links} - {"top"} <= counts.keys()


DEVICE = Availability(CPU, is_available=True, full_name="A Fine Processor", remarks=("It rounds.",))
GOLDEN = {
    "page": (Done((replace(EVERYTHING, devices={CPU: DEVICE}),)), {"inputs": "feeds.npz"}),
    "two_models": (Done((TWO,)), {"against": "results"}),
    "many_models": (MANY, {}),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_what_it_looks_like(request: pytest.FixtureRequest, name: str) -> None:
    """But for the style and the colours of pictures."""
    done, source = GOLDEN[name]
    text = render(done, **source)
    assert render(done, **source) == text
    text = re.sub(r"<style>.*?</style>", "<style/>", text, flags=re.DOTALL)
    text = re.sub(r"data:image/png;base64,[^\"]+", "PNG", text)
    shown = ", ".join(f"{package} {version}" for package, version in versions().items())
    assert_golden(request, f"{name}.html", text.replace(f"<p>{shown}</p>", "<p>VERSIONS</p>"))


def test_equal_nodes_of_a_large_model_are_collapsed() -> None:
    quiet = [of_node(f"node{number}", ZEROS, ZEROS) for number in range(1000)]
    text = page_text((compared(MISMATCH, *quiet),))
    page = parse_page(text)
    nodes = section(page, "Scatter nodes")
    (details,) = nodes.iter("details")
    assert words(details[0]) == "1000 nodes equal on every runner"
    assert details.get("open") is None
    assert len(list(details.iter("tr"))) == 1001
    (loud,) = [table for table in nodes.iter("table") if not list(table.iterancestors("details"))]
    assert [words(one[0]) for one in loud.iter("tr")] == ["Node", "loud ScatterUpdate-3"]
    assert len(text) < 500_000


def test_few_of_many_differences_are_shown_in_full() -> None:
    nodes = [of_node(f"node{number}", ONE_OFF[2:3], ZEROS[2:3]) for number in range(30)]
    outputs = [of_output(f"output{number}", ONE_OFF[2:3], ZEROS[2:3]) for number in range(10)]
    page = page_of(compared(*outputs, *nodes))
    shown = [one.findtext(".//h4/bdi") for one in page.iter("article")]
    assert shown == [*(f"node{number}" for number in range(15)), *(f"output{number}" for number in range(5))]
    assert "20 more differences are in the tables above" in words(page)


def test_the_banner_says_what_every_report_says() -> None:
    refused = (ok(NUMPY), Outcome(CPU, Status.REFUSED))
    for mark, found in (
        ("=", compared(EQUAL)),
        ("∅", compared()),
        ("!", compared(outcomes=refused)),
        ("!", compared(EQUAL, outcomes=refused)),
        ("!", replace(compared(EQUAL), interrupted="after 1 of 2 cases")),
        ("!", replace(EVERYTHING, comparisons=())),
        ("≠", compared(MISMATCH, EQUAL)),
        ("=", TWO),
    ):
        banner = page_of(found).find_class("banner")[0]
        assert words(banner) == f"{mark} {headline(found).sentence}"


def test_pictures_of_a_page_are_limited() -> None:
    found = [
        compared(of_node("n", ONE_OFF[2, 3], ZEROS[2, 3]), model=f"{number}.xml") for number in range(70)
    ]
    page = page_of(*found)
    assert len(list(page.iter("article"))) == 60
    assert words(page).count("1 more difference is in the tables above") == 10
