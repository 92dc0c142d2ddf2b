import itertools
import re
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ir_scatter.compare.headline import headline as headline_of
from ir_scatter.compare.headline import headline_of_many
from ir_scatter.compare.request import ComparedModels
from ir_scatter.compare.result import Compared, Level, ModelFacts, NotTapped, Outlier
from ir_scatter.fuzz.campaign import Campaign
from ir_scatter.report import fuzz_html
from ir_scatter.report.comparison_html import MOST_ROWS, render
from ir_scatter.runners.base import Availability, Outcome, Status
from ir_scatter.version import versions
from tests.report.comparisons import (
    CPU,
    EQUAL,
    EVERYTHING,
    GPU,
    MANY,
    MISMATCH,
    ONE_OFF,
    QUIET,
    TWO,
    ZEROS,
    compared,
    of_node,
    of_output,
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
    (found,) = [one.getparent() for one in page.iter("h2", "h3") if words(one) == title]
    assert found is not None
    return found


PAGES = {"everything": (EVERYTHING,), "nothing": (compared(),), "many": MANY.found}


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
    "page": (
        ComparedModels((replace(EVERYTHING, devices={CPU: DEVICE}),)),
        {"inputs": "feeds.npz", "command": "ir-scatter compare model.xml", "date": "today", "host": "here"},
    ),
    "two_models": (ComparedModels((TWO,)), {"against": "results"}),
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
    quiet = [of_node(f"node{number}", ZEROS, ZEROS) for number in range(MOST_ROWS - 1)]
    text = page_text((compared(MISMATCH, *quiet),))
    page = parse_page(text)
    nodes = section(page, "Scatter nodes")
    (details,) = nodes.iter("details")
    assert words(details[0]) == f"{MOST_ROWS - 1} nodes equal on every runner"
    assert details.get("open") is None
    assert len(list(details.iter("tr"))) == MOST_ROWS
    (loud,) = [table for table in nodes.iter("table") if not list(table.iterancestors("details"))]
    assert [words(one[0]) for one in loud.iter("tr")] == ["Node", "loud ScatterUpdate-3"]
    assert len(text) < 500_000


def test_few_of_many_differences_are_shown_in_full() -> None:
    nodes = [of_node(f"node{number}", ONE_OFF[2:3], ZEROS[2:3]) for number in range(30)]
    outputs = [of_output(f"output{number}", ONE_OFF[2:3], ZEROS[2:3]) for number in range(10)]
    page = page_of(compared(*outputs, *nodes))
    shown = [one.findtext(".//h3/bdi") for one in page.iter("article")]
    assert shown == [*(f"node{number}" for number in range(15)), *(f"output{number}" for number in range(5))]
    assert "20 more differences are in the tables above" in words(page)


def test_headlines() -> None:
    def told(found: Compared) -> str:
        banner = page_of(found).find_class("banner")[0]
        return words(banner)

    for found in (
        EVERYTHING,
        TWO,
        compared(),
        compared(EQUAL),
        compared(outcomes=(Outcome(CPU, Status.REFUSED),)),
    ):
        assert told(found).partition(" ")[2] == headline_of(found).sentence
    assert [told(found)[0] for found in (EVERYTHING, compared(EQUAL), compared())] == ["≠", "=", "∅"]
    assert told(replace(EVERYTHING, comparisons=()))[0] == "!"
    page = page_of(*MANY.found, failures=MANY.failures)
    assert words(page.find_class("banner")[0]).partition(" ")[2] == headline_of_many(MANY).sentence


def test_what_was_run_and_where() -> None:
    facts = ModelFacts("a/model.xml", "OpenVINO IR", ("opset1", "opset3"), (("a/model.xml", 1234, "5" * 64),))
    device = replace(DEVICE, driver="plugin 7, driver 8")
    found = replace(EVERYTHING, model_facts=(facts,), devices={CPU: device})
    page = parse_page(
        render(ComparedModels((found,)), command="ir-scatter compare a", date="today", host="a machine")
    )
    told = words(section(page, "What was run, and where"))
    assert "Command ir-scatter compare a Date today Machine a machine" in told
    assert f"OpenVINO IR opset1, opset3 model.xml , 1,234 bytes, SHA-256 {'5' * 64}" in told
    assert "A Fine Processor plugin 7, driver 8" in words(section(page, "Runners"))
    assert "What was run" not in render(ComparedModels((EVERYTHING,)))


def test_which_machine_of_a_fleet_gave_which_value() -> None:
    """Also where no runner was named with its machine."""
    found = replace(EVERYTHING, machine="lab-arc")
    assert "All runners ran on lab-arc." in words(section(page_of(found), "Runners"))
    page = page_of(found, replace(found, machine="b"), EVERYTHING)
    (index,) = page.find_class("index")
    told = [words(row).split()[1:3] for row in index.iter("tr")]
    assert told[1:] == [["on", "lab-arc"], ["on", "b"], ["openvino:GPU@cpu", "is"]]
    assert "ran on" not in page_text((EVERYTHING,))


def test_words_are_explained_where_they_stand() -> None:
    page = page_of(EVERYTHING)
    for item in page.find_class("tiles")[0]:
        assert item.find_class("meaning")
    assert "crashed : its process crashed" in words(section(page, "Runners")).replace(
        "crashed its", "crashed : its"
    )
    assert "Required ULP" in words(section(page, "Differences").find_class("meanings")[0])
    assert "not tapped" in words(section(page, "Scatter nodes").find_class("meanings")[0])


def test_operators_by_runners() -> None:
    page = page_of(replace(EVERYTHING, operators={"loud": "ScatterUpdate-3"}))
    header, row = section(page, "Operators").iter("tr")
    assert [words(cell) for cell in header] == ["Operator", CPU, GPU, "openvino:NPU", "onnxruntime"]
    assert [words(cell) for cell in row] == [
        "ScatterUpdate-3",
        "works 2",
        "≠ differs 1",
        "refuses 1",
        "refuses 1",
    ]


def test_only_differences_can_be_shown_without_a_script() -> None:
    page = page_of(*MANY.found)
    (box,) = page.iter("input")
    assert (box.get("type"), box.get("id")) == ("checkbox", page.find(".//label").get("for"))
    assert "body:has(#only:checked) .quiet { display: none; }" in page.find(".//style").text
    quiet = {words(row[0]) for row in page.find_class("index")[0].iter("tr") if row.get("class") == "quiet"}
    assert quiet == {"quiet.xml", "before.xml"}
    hidden = [words(one.find("h2")) for one in page.find_class("model") if "quiet" in one.get("class")]
    assert {*hidden} == quiet
    rows = {
        words(row[0]).split()[0]: row.get("class")
        for row in section(page_of(EVERYTHING), "Scatter nodes").iter("tr")
    }
    assert (rows["loud"], rows["quiet"]) == (None, "quiet")
    assert not list(page_of(QUIET).iter("input"))


def test_a_model_of_one_node_is_not_shown_at_two_levels() -> None:
    both = compared(of_output("y", ONE_OFF, ZEROS, GPU), MISMATCH, is_one_node=True)
    page = page_of(both)
    assert "Outputs" not in [words(one) for one in page.iter("h2")]
    assert len(list(page.iter("article"))) == 1
    assert len(list(page_of(replace(both, is_one_node=False)).iter("article"))) == 2


def test_who_is_wrong_is_told_once_of_a_model_of_one_node() -> None:
    """The plain run and the tapped one may differ in their worst element."""
    of_the_node = Outlier(Level.NODE, "loud", "out", 0, (GPU,), "departs at [2, 3]")
    of_the_output = Outlier(Level.MODEL, None, "y", 0, (GPU,), "departs at [0, 1]")
    both = compared(
        of_output("y", ONE_OFF, ZEROS, GPU), MISMATCH, outliers=(of_the_node, of_the_output), is_one_node=True
    )
    (told,) = page_of(both).find_class("blame")
    assert [words(one) for one in told.iter("li")] == ["loud : departs at [2, 3]"]
    (both_levels,) = page_of(replace(both, is_one_node=False)).find_class("blame")
    assert len(list(both_levels.iter("li"))) == 2


def test_cells_name_their_column_for_cards() -> None:
    """On a narrow screen a row is a card: each cell says what its column is."""
    page = page_of(*MANY.found)
    for table in page.find_class("cards"):
        header = [words(cell) for cell in table.find("thead/tr")]
        for row in table.findall("tbody/tr"):
            cells = [cell for cell in row if cell.tag == "td" and not cell.get("colspan")]
            if cells:
                labels = [cell.get("data-label") for cell in cells]
                pairs = zip(labels, header[1:], strict=True)
                assert all(label and name.startswith(label) for label, name in pairs), (labels, header)


def test_headings_skip_no_level() -> None:
    for page in (page_of(EVERYTHING), page_of(*MANY.found, failures=MANY.failures), page_of(QUIET)):
        levels = [int(one.tag[1]) for one in page.iter("h1", "h2", "h3", "h4", "h5")]
        assert levels[0] == 1
        assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_pictures_of_a_page_are_limited() -> None:
    found = [
        compared(of_node("n", ONE_OFF[2, 3], ZEROS[2, 3]), model=f"{number}.xml") for number in range(70)
    ]
    page = page_of(*found)
    assert len(list(page.iter("article"))) == 60
    assert words(page).count("1 more difference is in the tables above") == 10


def test_a_page_shows_so_many_rows_and_says_so() -> None:
    """The worst come first, and every count stays true."""
    more = 5
    equal = [of_node(f"quiet{number}", ZEROS, ZEROS) for number in range(MOST_ROWS)]
    loud = [of_node(f"loud{number}", ONE_OFF, ZEROS) for number in range(more)]
    page = parse_page(page_text([compared(*equal, *loud)]))
    text = page.text_content()
    assert f"Showing {MOST_ROWS:,} of {MOST_ROWS + more:,} nodes, the worst first" in text
    assert f"{MOST_ROWS} nodes equal on every runner" in text
    rows = page.xpath("//table[contains(@class, 'matrix')]//tbody//th")
    names = [row.text_content().split()[0] for row in rows]
    assert len(names) == MOST_ROWS
    assert [name[:4] for name in names[:more]] == ["loud"] * more
    hidden = tuple(NotTapped(GPU, f"hidden{number}", "because") for number in range(MOST_ROWS + more))
    text = page_text([compared(EQUAL, not_tapped=hidden)])
    assert f"and {more} more; JSON contains all" in text


def test_a_page_that_shows_all_rows_says_nothing_of_it() -> None:
    text = page_text([EVERYTHING])
    assert "Showing" not in text
    assert "JSON contains all" not in text


def test_a_page_of_the_fuzzer_shows_so_many_findings() -> None:
    one = {
        "operator": "ScatterUpdate-3", "runner": CPU, "symptom": "wrong-value", "when": "always",
        "message": "is wrong", "defects": [], "minimal": {}, "others": {}, "twins": {}, "path": "",
        "signature": "s",
    }  # fmt: skip
    for total in (fuzz_html.MOST_SHOWN, fuzz_html.MOST_SHOWN + 3):
        told = {
            "findings": [one] * total, "cases": total, "runners": [CPU], "illegal": False, "seconds": 1,
            "seed": 0, "rates": {"forms": 1, "batches": 1}, "coverage": {"pairs": 0, "features": {}},
            "versions": {},
        }  # fmt: skip
        text = fuzz_html.render(cast(Campaign, SimpleNamespace(as_json=lambda told=told: told)))
        page = parse_page(text)
        assert len(page.xpath("//article")) == fuzz_html.MOST_SHOWN
        ids = set(page.xpath("//@id"))
        assert {link[1:] for link in page.xpath("//a/@href") if link.startswith("#")} <= ids
        limited = f"Showing the first {fuzz_html.MOST_SHOWN:,} of {total:,} findings; JSON contains all."
        assert (limited in text) is (total > fuzz_html.MOST_SHOWN)
