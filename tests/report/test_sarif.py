import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from ir_scatter.lint import Report
from ir_scatter.report import findings_sarif as sarif
from ir_scatter.rules import by_code
from tests.report.reports import AXIS, EMPTY, HOSTILE_REPORT, REPEATED, REPORT, SHAPE, report_of
from tests.report.sarif_schema import SCHEMA


def _run(report: Report) -> dict[str, Any]:
    """Return the only run of the log."""
    log = json.loads(sarif.render(report).encode("utf-8"))
    [run] = log["runs"]
    assert isinstance(run, dict)
    return run


@pytest.mark.parametrize("report", [EMPTY, REPORT, HOSTILE_REPORT, report_of()])
def test_the_log_is_valid(report: Report) -> None:
    log = json.loads(sarif.render(report))
    jsonschema.validate(log, SCHEMA)
    [run] = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]


def test_a_rule_is_described_by_its_documentation() -> None:
    documentation = by_code()["SCT203"].documentation
    [rule] = _run(report_of(SHAPE))["tool"]["driver"]["rules"]
    assert rule["shortDescription"]["text"] == " ".join(documentation.split("\n\n")[0].split())
    assert rule["help"]["text"].startswith(rule["fullDescription"]["text"])


def test_a_code_that_is_no_rule_describes_itself() -> None:
    refused = replace(REPEATED, code="CVT101", rule="axis-not-constant")
    [rule] = _run(report_of(refused))["tool"]["driver"]["rules"]
    assert rule["name"] == "AxisNotConstant"
    assert rule["shortDescription"] == {"text": "axis-not-constant"}
    assert rule["defaultConfiguration"] == {"level": "warning"}
    assert rule["properties"] == {"tags": ["scatter"]}


def test_a_fingerprint_survives_another_line() -> None:
    def fingerprints(*found: Any) -> list[str]:
        results = _run(report_of(*found))["results"]
        return [result["partialFingerprints"]["irScatter/v1"] for result in results]

    moved = replace(SHAPE, location=replace(SHAPE.location, line=9, column=1), message="other")
    [before] = fingerprints(SHAPE)
    assert [before] == fingerprints(moved)
    others = fingerprints(
        replace(SHAPE, code="SCT204"),
        replace(SHAPE, port="indices"),
        replace(SHAPE, location=replace(SHAPE.location, scope="x")),
        replace(SHAPE, location=replace(SHAPE.location, path="x")),
    )
    assert len({before, *others}) == 5
    first, second = fingerprints(SHAPE, moved)
    assert (first, second) == (before, before.removesuffix(":1") + ":2")


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("a b/m.xml", "a%20b/m.xml"),
        ("./m.xml", "m.xml"),
        ("../m.xml", "../m.xml"),
        ("c:d.xml", "c%3Ad.xml"),
        ("50%#?.xml", "50%25%23%3F.xml"),
        ("é\udcff.xml", "%C3%A9%FF.xml"),
        ("\ud800.xml", "%ED%A0%80.xml"),
        ("/models/a b.xml", "file:///models/a%20b.xml"),
    ],
)
def test_paths_become_uris(path: str, uri: str) -> None:
    found = replace(AXIS, location=replace(AXIS.location, path=path))
    [result] = _run(report_of(found))["results"]
    for location in result["locations"]:
        assert location["physicalLocation"]["artifactLocation"] == {"uri": uri}


def test_a_second_location_says_what_is_wrong_at_the_node() -> None:
    [result] = _run(report_of(SHAPE))["results"]
    node, fault = result["locations"]
    assert node["physicalLocation"]["region"] == {"startLine": 412, "startColumn": 3}
    assert fault["physicalLocation"]["region"] == {
        "startLine": 416,
        "startColumn": 5,
        "endLine": 416,
        "endColumn": 17,
    }
    assert fault["message"] == {"text": "expected 2"}
    assert result["properties"] == {"help": "slice updates to [2, 5]"}
    [result] = _run(report_of(replace(SHAPE, span=None)))["results"]
    assert result["locations"] == [node]


def test_the_page_of_a_rule_is_named() -> None:
    [rule] = _run(report_of(SHAPE))["tool"]["driver"]["rules"]
    assert "helpUri" not in rule
    assert "file:" not in json.dumps(rule)
    for url in ("https://models.example/docs", "https://models.example/docs/"):
        log = json.loads(sarif.render(report_of(SHAPE), docs_url=url))
        [rule] = log["runs"][0]["tool"]["driver"]["rules"]
        assert rule["helpUri"] == "https://models.example/docs/rules/SCT203.html"
    [rule] = _run(report_of(replace(REPEATED, code="CVT101")))["tool"]["driver"]["rules"]
    assert "helpUri" not in rule


def test_a_message_has_neither_placeholders_nor_links() -> None:
    found = replace(AXIS, message="name is {0} [click](http://example.com)")
    [result] = _run(report_of(found))["results"]
    assert result["message"]["text"] == "name is {{0}} [click] (http://example.com)"
