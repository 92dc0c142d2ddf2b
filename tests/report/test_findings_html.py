"""The page of findings: everything is on it, it is whole, and it needs nothing from elsewhere."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import pytest
from lxml import html

from ir_scatter.analysis.neighbourhood import MOST_CONSUMERS, MOST_PRODUCERS, Neighbour, Neighbourhood
from ir_scatter.core.files import Source
from ir_scatter.lint import Options, Report, check_file
from ir_scatter.report.findings_html import MOST_SHOWN
from ir_scatter.report.registry import RenderOptions, render
from tests.report.reports import AXIS, BROKEN, EMPTY, HOSTILE_REPORT, REPEATED, REPORT, SHAPE, report_of

SAMPLES = Path(__file__).parents[2] / "samples"
OPTIONS = Options(with_neighbourhoods=True)


def _page(report: Report, **options: Unpack[RenderOptions]) -> Any:
    """Return a page all of whose tags are closed, ids different and links right."""
    text = render("findings", "html", report, **options)
    page: Any = html.document_fromstring(text)
    paired = re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)
    for tag in set(re.findall(r"<([a-z][a-z0-9]*)", paired)) - {"meta", "rect", "path"}:
        assert len(re.findall(rf"<{tag}[ >]", paired)) == paired.count(f"</{tag}>"), tag
    ids = page.xpath("//@id")
    assert len(ids) == len(set(ids))
    local = [link for link in page.xpath("//a/@href") if link.startswith("#")]
    assert {link[1:] for link in local} <= set(ids)
    assert not page.xpath("//script | //link | //img | //iframe | //@src | //@onclick")
    assert "url(" not in text
    return page


def _text(element: Any) -> str:
    return " ".join(element.text_content().split())


@pytest.fixture(scope="module")
def broken() -> Report:
    paths = sorted((SAMPLES / "broken").glob("*.[xo][mn]*"))
    return Report(tuple(check_file(Source(str(path)), OPTIONS) for path in paths))


def test_every_finding_is_there_by_file_and_by_rule(broken: Report) -> None:
    page = _page(broken)
    cards, found = page.find_class("finding"), broken.diagnostics()
    assert len(cards) == len(found) > 20
    for card, one in zip(cards, found, strict=True):
        text = _text(card)
        for part in (one.code, one.rule, one.location.path, one.location.scope, one.message, one.help):
            assert " ".join(part.split()) in text
        for related in one.related:
            assert related.message in text
        link = f"//nav[@aria-labelledby='rules']//a[@href='#{card.get('id')}']"
        assert _text(page.xpath(link)[0]) == one.location.scope
    for file in broken.files:
        assert page.xpath(f"//nav[@aria-labelledby='files']//a[normalize-space()='{file.path}']")


def test_each_node_with_a_finding_has_its_surroundings(broken: Report) -> None:
    cards = _page(broken).find_class("finding")
    pictures = [card.xpath(".//*[local-name()='svg']") for card in cards]
    assert all(len(one) == 1 for one in pictures)
    told = {
        (Path(one.location.path).suffix, one.location.scope): svg.get("aria-label")
        for one, [svg] in zip(broken.diagnostics(), pictures, strict=True)
    }
    assert told[".xml", "too_wide"] == (
        "ScatterElementsUpdate too_wide f32 [4, 5] reads data: Parameter data f32 [4, 5]; indices: Parameter "
        "long i64 [2, 7]; updates: Parameter more f32 [2, 7]; axis: Const axis i64 []. "
        "It is read by input 0: Result result_1 f32 [4, 5]."
    )
    assert told[".onnx", "three_coordinates"] == (
        "ScatterND three_coordinates f32 [4, 5] reads data: input data f32 [4, 5]; indices: input triples i64 [2, 3]; "
        "updates: input cells f32 [2]. It is read by output three_coordinates f32 [4, 5]."
    )


def test_the_input_that_is_wrong_is_marked(broken: Report) -> None:
    number = next(at for at, one in enumerate(broken.diagnostics()) if one.location.scope == "too_wide")
    card = _page(broken).get_element_by_id(f"f{number}")
    [box] = card.xpath(".//*[local-name()='g'][contains(@class, 'fault')]/*[local-name()='title']")
    assert box.text.startswith("indices: Parameter long")
    assert [_text(mark) for mark in card.xpath(".//mark[@class='fault']")] == ["<dim>7</dim>"]


def test_a_node_in_a_body_and_one_in_a_function() -> None:
    for name in ("loop.xml", "branch.xml", "loop.onnx", "branch.onnx", "function.onnx"):
        file = check_file(Source(str(SAMPLES / "nested" / name)), OPTIONS)
        [one] = file.diagnostics
        around = file.neighbourhoods[one.location]
        assert around.node.operator == one.node.type if one.node else False
        assert [producer.role for producer in around.producers][:2] == ["data", "indices"]
        assert around.consumers, name


def test_surroundings_are_looked_for_only_if_asked_for() -> None:
    assert not check_file(Source(str(SAMPLES / "broken" / "scatter_nd.onnx")), Options()).neighbourhoods


def test_many_producers_and_readers_are_counted() -> None:
    one = Neighbour("Const", "name" * 40, "data", 0)
    producers = tuple(one._replace(port=port) for port in range(MOST_PRODUCERS))
    around = Neighbourhood(one, producers, (one,) * MOST_CONSUMERS, 1, 7)
    [file] = report_of(SHAPE).files
    report = Report((replace(file, neighbourhoods={SHAPE.location: around}),))
    svg = re.findall("<svg.*</svg>", render("findings", "html", report), flags=re.DOTALL)[0]
    assert svg.count("<rect") == 8
    assert "and 1 more input<" in svg
    assert "and 7 more readers<" in svg
    assert svg.count('<g class="fault">') == 1


def test_text_of_a_model_is_nothing_but_text() -> None:
    page = _page(HOSTILE_REPORT)
    assert "<9b32m" not in html.tostring(page, encoding="unicode")
    hostile = "<script>alert(1)</script>&amp;\"'"
    place = replace(SHAPE.location, scope=hostile)
    report = report_of(replace(SHAPE, message=hostile, help=hostile, rule=hostile, location=place))
    around = {place: Neighbourhood(Neighbour(hostile, hostile, hostile, 0), (), ())}
    report = Report((replace(report.files[0], neighbourhoods=around),))
    text = _text(_page(report))
    assert text.count(hostile) >= 4


def test_same_findings_give_the_same_page(broken: Report) -> None:
    assert render("findings", "html", broken) == render("findings", "html", broken)


def test_nothing_found_and_no_files() -> None:
    clean = report_of()
    page = _page(clean)
    assert [_text(one) for one in page.find_class("banner")] == ["no findings in 1 file (3 scatter nodes)"]
    assert page.find_class("agrees")
    assert not page.find_class("finding")
    assert "no files were checked" in _text(_page(EMPTY))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    page = _page(REPORT)
    assert _text(page.find_class("banner")[0]).endswith("2 files could not be read")
    [card] = [one for one in page.find_class("finding") if BROKEN.message in _text(one)]
    assert "broken.xml:5" in _text(card)
    gone = page.xpath("//tr[th[normalize-space()='gone.xml']]")[0]
    assert "could not be read" in _text(gone)
    (tmp_path / "cut.xml").write_text('<net name="n" version="11"><layers>')
    page = _page(Report((check_file(Source(str(tmp_path / "cut.xml")), OPTIONS),)))
    assert len(page.find_class("finding")) == 1


def test_rules_link_to_the_site() -> None:
    page = _page(report_of(AXIS), docs_url="https://models.example/")
    assert page.xpath("//a[@href='https://models.example/rules/SCT301.html']")
    assert not _page(report_of(AXIS)).xpath("//a[starts-with(@href, 'http')]")


def test_a_page_shows_so_many_findings_and_counts_all() -> None:
    """Errors come before warnings and notes; every count, and every link, stays true."""
    files, more = 3, 7
    per_file = MOST_SHOWN // files + more
    warnings = tuple(replace(REPEATED, message=f"number {number}") for number in range(per_file))
    first = report_of(*warnings)
    last = report_of(*[replace(AXIS, message=f"fault {number}") for number in range(per_file)])
    report = Report((*first.files, *first.files, *last.files))
    total = files * per_file
    page = _page(report)
    shown = page.find_class("finding")
    assert len(shown) == MOST_SHOWN
    assert sum("fault " in _text(card) for card in shown) == per_file
    assert f"first {MOST_SHOWN:,} of {total:,} findings" in _text(page.find_class("page")[0])
    assert _text(page.find_class("banner")[0]).startswith(f"{per_file} errors")
    assert [_text(one) for one in page.xpath("//div[@class='rule']/h3/span[@class='soft']")] == [
        str(per_file), str(2 * per_file),
    ]  # fmt: skip
    hidden = total - MOST_SHOWN
    assert [_text(one) for one in page.find_class("soft") if "not shown" in _text(one)] == [
        f"and {hidden} not shown", f"{hidden} other findings of this file not shown",
    ]  # fmt: skip


def test_a_page_that_shows_all_says_nothing_of_it() -> None:
    assert "not shown" not in _text(_page(REPORT))
    assert "Showing the first" not in _text(_page(REPORT))
