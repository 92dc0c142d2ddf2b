import re
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ir_scatter.compare.request import Failure
from ir_scatter.compare.result import Compared, Settings
from ir_scatter.compare.tolerance import Tolerances
from ir_scatter.runners.base import Availability, Outcome, Status
from ir_scatter.runners.gpu_on_cpu import FIDELITY
from ir_scatter.version import __version__
from tests.report.comparisons import (
    CPU,
    EQUAL,
    EVERYTHING,
    GPU,
    MISMATCH,
    NUMPY,
    ONE_OFF,
    ZEROS,
    compared,
    of_node,
    of_output,
    ok,
    page_text,
    parse_page,
)

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


def row(table: Element, name: str) -> list[str]:
    (found,) = [one for one in table.iter("tr") if words(one[0]).split(" ")[0] == name]
    return [words(cell) for cell in found[1:]]


PAGES = {
    "everything": (EVERYTHING,),
    "two models": (replace(EVERYTHING, other="after.xml"),),
    "nothing": (compared(),),
    "many": (compared(EQUAL, model="a.xml"), EVERYTHING, compared(MISMATCH, model="b.xml")),
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


def test_the_same_comparison_gives_the_same_page() -> None:
    first = page_text((EVERYTHING,))
    assert page_text((EVERYTHING,)) == first
    assert not re.search(r"20\d\d-\d\d-\d\d", first)


def test_summary() -> None:
    page = page_of(EVERYTHING)
    header = page.find(".//header")
    assert header is not None
    assert "1 of 3 nodes and 1 of 1 output differ; illegal indices at 1 node" in words(header)
    tiles = {words(one[1]).split(" ")[-1]: words(one[0]) for one in header.iter("li")}
    assert tiles == {
        "mismatch": "2",
        "nondeterministic": "1",
        "contested": "1",
        "close": "0",
        "equal": "2",
        "indices": "1",
    }


def test_a_cell_says_the_verdict_in_a_word() -> None:
    nodes = section(page_of(EVERYTHING), "Scatter nodes")
    assert row(nodes, "quiet") == ["= equal", "–"]
    assert row(nodes, "loud") == ["–", "≠ mismatch 1 of 20"]
    assert row(nodes, "open") == ["∈ contested 1 of 20", "–"]
    assert row(nodes, "bad") == ["! illegal indices", "–"]
    assert row(nodes, "hidden") == ["– not tapped", "–"]
    outputs = section(page_of(EVERYTHING), "Outputs")
    assert row(outputs, "logits") == ["≠ mismatch 1 of 20, changes from run to run", "= equal"]


def test_runners() -> None:
    known = Availability(CPU, is_available=True, full_name="A Fine Processor", remarks=("It rounds.",))
    runners = section(page_of(EVERYTHING, devices={CPU: known}), "Runners")
    text = words(runners)
    for part in ("A Fine Processor", "openvino 2026.4.1", "0.50 s", "f32", "no such device"):
        assert part in text
    assert row(runners, "onnxruntime")[:2] == ["crashed", "ended by SIGSEGV"]
    assert row(runners, "openvino:NPU")[0] == "unavailable"
    assert "About openvino:CPU It rounds." in text


def test_what_the_gpu_plugin_on_the_cpu_is_worth_is_always_said() -> None:
    for found in ((EVERYTHING,), (EVERYTHING, compared(EQUAL)), (compared(outcomes=(ok(GPU),)),)):
        text = words(page_of(*found))
        for sentence in FIDELITY:
            assert text.count(sentence) == 1
    assert FIDELITY[0] not in words(page_of(compared(EQUAL)))


def test_a_difference_in_full() -> None:
    (one,) = page_of(compared(MISMATCH)).iter("article")
    text = words(one)
    for part in (
        "≠ mismatch loud ScatterUpdate-3, openvino:GPU@cpu against numpy",
        "Outside tolerance 1 of 20 elements",
        "Tensor f32[4, 5]",
        "Required absolute 7.5 allowed 0.001",
        "Required relative ∞ allowed 1e-05",
        "[2, 3] 7.5 0 +7.5",
        "data f32[4, 5]",
        "indices i64[1] [2]",
        "updates left out",
        "ir-scatter compare model.xml --on numpy --on GPU@cpu --seed 0",
    ):
        assert part in text, part
    assert [svg.get("aria-label") for svg in one.iter("svg")] == [
        "Histogram of the absolute error",
        "Heat map of got minus expected",
    ]


def test_cells_link_to_their_difference() -> None:
    page = page_of(EVERYTHING)
    (link,) = section(page, "Scatter nodes").iter("a")
    (target,) = page.xpath(f"//*[@id='{link.get('href')[1:]}']")
    assert "loud" in words(target)


def test_cases_and_iterations_of_a_tensor_are_one_difference() -> None:
    worse = ZEROS.copy()
    worse[0] = 1
    found = [
        of_node("n", ONE_OFF, ZEROS, case=0, place=(0,)),
        of_node("n", ZEROS, ZEROS, case=0, place=(1,)),
        of_node("n", worse, ZEROS, case=2, place=(1,)),
    ]
    page = page_of(compared(*found, feeds=({}, {}, {})))
    (one,) = page.iter("article")
    assert "case 2, iteration 1, the worst of 2 runs in which it differs (cases 0, 2)" in words(one)
    assert "--seed 2" in words(one)
    assert row(section(page, "Scatter nodes"), "n") == ["≠ mismatch in 2 of 3"]


def test_other_shapes_and_missing_outputs_have_no_pictures() -> None:
    page = page_of(compared(of_output("y", np.zeros(3), np.zeros((1, 3)))))
    (one,) = page.iter("article")
    assert "The output is float64 [3], expected float64 [1, 3]." in words(one)
    assert not list(one.iter("svg"))
    assert row(section(page, "Outputs"), "y") == ["≠ mismatch another shape or type"]


def test_indices_who_is_wrong_and_what_else_there_is() -> None:
    page = page_of(EVERYTHING)
    assert "loud : the GPU departs from what the others say" in words(section(page, "Who is wrong"))
    indices = section(page, "Indices")
    assert row(indices, "bad")[1:] == ["! illegal: out-of-range", "indices[0] is 9, expected 0 to 3"]
    assert row(indices, "open")[2] == "several updates meet in 1 of 20 elements (2 times)"
    assert "its body is fused away" in words(section(page, "Not tapped"))
    assert "changes when nodes are tapped" in words(section(page, "Remarks"))
    kernels = section(page, "How the nodes were run")
    assert row(kernels, "loud") == [CPU, "jit_avx512", "f32", "f32", "1,234 µs"]
    assert f"ir-scatter {__version__}, " in words(page.find(".//footer"))


def test_how_it_was_compared() -> None:
    settings = Settings(seed=5, cases=2, repeat=3, values="edge", tolerances=Tolerances(["0.5,0.25"]))
    close = of_node("n", ZEROS + np.float32(1e-9), ZEROS, tolerance=settings.tolerances.named[""])
    text = words(section(page_of(compared(close, settings=settings)), "How it was compared"))
    assert "1 case, edge values, seed 5, each run 3 times" in text
    assert "nodes, f32: absolute 0.5, relative 0.25" in text
    assert "NaN equals NaN" in text
    assert "x f32[2, 3]" in text
    text = words(section(page_of(compared(close), inputs="feeds.npz"), "How it was compared"))
    assert "from feeds.npz" in text


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


def test_many_models_have_an_index_that_begins_with_the_worst() -> None:
    refused = compared(model="c.xml", outcomes=(ok(NUMPY), Outcome(CPU, Status.REFUSED, "no such operator")))
    page = page_of(
        compared(EQUAL, model="a.xml"),
        compared(MISMATCH, model="b.xml"),
        refused,
        failures=(Failure("d.xml", "no model at all", is_unreadable=True),),
        skipped=(("openvino:NPU", "no driver"),),
    )
    (index,) = page.iter("nav")
    rows = [words(one) for one in index.iter("tr")][1:]
    assert rows == [
        "b.xml 1 of 1 node differs ≠ 1 mismatch",
        "c.xml Nothing was compared: openvino:CPU refused",
        "a.xml No difference = 1 equal",
        "d.xml unreadable no model at all",
    ]
    assert "1 of 3 models differs; 1 model could not be compared" in words(page.find(".//header"))
    assert [words(one) for one in page.iter("h2")] == ["Models", "b.xml", "c.xml", "a.xml"]
    assert "openvino:NPU was passed over: no driver" in words(page.find(".//footer"))
    closed = page.xpath("//section[h2[contains(., 'a.xml')]]/details")
    assert len(closed) == 1


def test_pairs_have_columns_of_their_own() -> None:
    found = compared(
        of_output("y", ZEROS, ZEROS, CPU, NUMPY),
        of_output("y", ONE_OFF, ZEROS, GPU, NUMPY),
        of_output("y", ONE_OFF, ZEROS, GPU, CPU),
    )
    outputs = section(page_of(found), "Outputs")
    assert [words(one) for one in outputs.iter("th")][1:4] == [
        "openvino:CPU against numpy",
        "openvino:GPU@cpu against numpy",
        "openvino:GPU@cpu against openvino:CPU",
    ]
    assert row(outputs, "y") == ["= equal", "≠ mismatch 1 of 20", "≠ mismatch 1 of 20"]


def test_headlines() -> None:
    def headline(found: Compared) -> str:
        banner = page_of(found).find_class("banner")[0]
        return words(banner)

    refused = (ok(NUMPY), Outcome(CPU, Status.REFUSED))
    assert headline(compared(EQUAL)) == "= No difference"
    assert headline(compared()) == "∅ Nothing was compared"
    assert headline(compared(outcomes=refused)) == "! Nothing was compared: openvino:CPU refused"
    assert headline(compared(EQUAL, outcomes=refused)) == "! No difference, but openvino:CPU refused"
    illegal = replace(EVERYTHING, comparisons=())
    assert headline(illegal) == "! Illegal indices at 1 node"
    assert headline(compared(MISMATCH, EQUAL)) == "≠ 1 of 2 nodes differs"


def test_pictures_of_a_page_are_limited() -> None:
    found = [
        compared(of_node("n", ONE_OFF[2, 3], ZEROS[2, 3]), model=f"{number}.xml") for number in range(70)
    ]
    page = page_of(*found)
    assert len(list(page.iter("article"))) == 60
    assert words(page).count("1 more difference is in the tables above") == 10
