import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from ir_scatter.core.diagnostics import Severity
from ir_scatter.lint import Report
from ir_scatter.report import findings_sarif as sarif
from ir_scatter.rules.base import Rule
from ir_scatter.version import __version__
from tests.report.reports import (
    AXIS,
    BROKEN,
    EMPTY,
    HOSTILE_REPORT,
    ONNX,
    REPEATED,
    REPORT,
    SHAPE,
    report_of,
)
from tests.report.sarif_schema import SCHEMA

DOCUMENTATION = "updates has another shape\nthan indices.\n\nMore text."


@pytest.fixture(autouse=True)
def _rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Know one rule, whatever the folder of rules holds."""
    rule = Rule("SCT203", SHAPE.rule, Severity.ERROR, documentation=DOCUMENTATION)
    monkeypatch.setattr(sarif, "by_code", lambda: {rule.code: rule})


def _run(report: Report) -> dict[str, Any]:
    """Return the only run of the log."""
    log = json.loads(sarif.render(report).encode("utf-8"))
    [run] = log["runs"]
    assert isinstance(run, dict)
    return run


@pytest.mark.parametrize(
    "report", [EMPTY, REPORT, HOSTILE_REPORT, report_of(ONNX), report_of(BROKEN), report_of()]
)
def test_the_log_is_valid(report: Report) -> None:
    log = json.loads(sarif.render(report))
    jsonschema.validate(log, SCHEMA)
    [run] = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]


def test_one_result() -> None:
    [result] = _run(report_of(SHAPE))["results"]
    fingerprint = result.pop("partialFingerprints")
    assert list(fingerprint) == ["irScatter/v1"]
    assert result == {
        "ruleId": "SCT203",
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": SHAPE.message},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "decoder.xml"},
                    "region": {"startLine": 412, "startColumn": 3},
                },
                "logicalLocations": [
                    {
                        "name": "cache/scatter",
                        "fullyQualifiedName": "If_23:then_body/cache/scatter",
                        "kind": "node",
                    }
                ],
            }
        ],
        "relatedLocations": [
            {
                "id": 1,
                "physicalLocation": {
                    "artifactLocation": {"uri": "decoder.xml"},
                    "region": {"startLine": 397, "startColumn": 3},
                },
                "logicalLocations": [{"name": "new_rows", "fullyQualifiedName": "new_rows", "kind": "node"}],
                "message": {"text": 'updates comes from Const "new_rows"'},
            }
        ],
    }


def test_the_driver_and_its_rules() -> None:
    driver = _run(REPORT)["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("ir-scatter", __version__)
    assert [rule["id"] for rule in driver["rules"]] == ["SCT203", "SCT301", "SCT305"]
    assert driver["rules"][0] == {
        "id": "SCT203",
        "name": "UpdatesShapeMismatch",
        "shortDescription": {"text": "updates has another shape than indices."},
        "fullDescription": {"text": DOCUMENTATION},
        "help": {"text": f"{DOCUMENTATION}\n\nRun: ir-scatter explain SCT203"},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["scatter", "shapes"]},
    }


def test_a_code_that_is_no_rule_describes_itself() -> None:
    refused = replace(REPEATED, code="CVT101", rule="axis-not-constant")
    [rule] = _run(report_of(refused))["tool"]["driver"]["rules"]
    assert rule["name"] == "AxisNotConstant"
    assert rule["shortDescription"] == {"text": "axis-not-constant"}
    assert rule["defaultConfiguration"] == {"level": "warning"}
    assert rule["properties"] == {"tags": ["scatter"]}


def test_levels() -> None:
    results = _run(report_of(AXIS, REPEATED, ONNX))["results"]
    assert [result["level"] for result in results] == ["error", "warning", "note"]


def test_what_is_not_known_is_left_out() -> None:
    [result] = _run(report_of(ONNX))["results"]
    [location] = result["locations"]
    assert location["physicalLocation"] == {"artifactLocation": {"uri": "model.onnx"}}
    [broken] = _run(report_of(BROKEN))["results"]
    [location] = broken["locations"]
    assert location == {
        "physicalLocation": {
            "artifactLocation": {"uri": "broken.xml"},
            "region": {"startLine": 5},
        }
    }


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


def test_an_unreadable_file_is_a_failed_invocation() -> None:
    [invocation] = _run(HOSTILE_REPORT)["invocations"]
    assert invocation["executionSuccessful"] is False
    assert len(invocation["toolExecutionNotifications"]) == 1
    assert _run(REPORT)["invocations"] == [{"executionSuccessful": True, "toolExecutionNotifications": []}]


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
    [location] = result["locations"]
    assert location["physicalLocation"]["artifactLocation"] == {"uri": uri}


def test_only_the_uri_of_a_hostile_file_is_literal() -> None:
    text = sarif.render(HOSTILE_REPORT)
    [result] = json.loads(text)["runs"][0]["results"]
    assert "name is e\\x1b[31m\n::error" in result["message"]["text"]
    [location] = result["locations"]
    uri = location["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "a%2Cb%3Ac%25%07%20%C3%A9%FF.xml"
    assert location["logicalLocations"][0]["name"].isprintable()
    assert all(line.isprintable() for line in text.split("\n"))


def test_a_message_has_neither_placeholders_nor_links() -> None:
    found = replace(AXIS, message="name is {0} [click](http://example.com)")
    [result] = _run(report_of(found))["results"]
    assert result["message"]["text"] == "name is {{0}} [click] (http://example.com)"
