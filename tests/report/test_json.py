import json
from typing import Any

from ir_scatter.report.findings_json import render
from tests.report.reports import (
    BROKEN,
    EMPTY,
    HOSTILE,
    HOSTILE_REPORT,
    NAME,
    ONNX,
    REPORT,
    SHAPE,
    VERSIONS,
    report_of,
)


def _only(text: str) -> dict[str, Any]:
    """Return the only finding of the only file."""
    [file] = json.loads(text)["files"]
    [found] = file["diagnostics"]
    assert isinstance(found, dict)
    return found


def test_every_field() -> None:
    assert (
        render(report_of(SHAPE), versions={})
        == """\
{
  "schema": 1,
  "versions": {},
  "files": [
    {
      "path": "decoder.xml",
      "format": "openvino-ir",
      "readable": true,
      "scatter_nodes": 3,
      "diagnostics": [
        {
          "code": "SCT203",
          "rule": "updates-shape-mismatch",
          "severity": "error",
          "message": "updates is [3, 5], expected [2, 5] = data[:axis] + indices + data[axis+1:]",
          "line": 412,
          "column": 3,
          "scope": "If_23:then_body/cache/scatter",
          "port": "updates",
          "node": {
            "name": "cache/scatter",
            "type": "ScatterUpdate",
            "version": 3
          },
          "related": [
            {
              "message": "updates comes from Const \\"new_rows\\"",
              "path": "decoder.xml",
              "line": 397,
              "column": 3,
              "scope": "new_rows"
            }
          ]
        }
      ]
    }
  ],
  "summary": {
    "files": 1,
    "errors": 1,
    "warnings": 0,
    "notes": 0
  }
}
"""
    )


def test_what_is_not_known_is_null() -> None:
    found = _only(render(report_of(ONNX)))
    assert (found["line"], found["column"], found["port"]) == (None, None, None)
    assert found["node"] == {"name": "old", "type": "Scatter", "version": None}
    assert [related["scope"] for related in found["related"]] == ["main/call", ""]
    broken = _only(render(report_of(BROKEN)))
    assert (broken["node"], broken["scope"], broken["column"]) == (None, "", None)


def test_versions_and_totals() -> None:
    document = json.loads(render(REPORT, versions=VERSIONS))
    assert document["versions"] == VERSIONS
    assert document["summary"] == {"files": 3, "errors": 2, "warnings": 1, "notes": 0}
    assert [file["path"] for file in document["files"]] == [
        "clean.xml",
        "decoder.xml",
        "clean.onnx",
    ]
    assert json.loads(render(EMPTY))["files"] == []


def test_hostile_text_survives_and_can_be_printed() -> None:
    text = render(HOSTILE_REPORT, versions={NAME: NAME})
    assert json.loads(text.encode("utf-8")) == json.loads(text)
    assert all(line.isprintable() for line in text.split("\n"))
    found = _only(text)
    assert found["message"] == HOSTILE.message
    assert found["scope"] == NAME
    [file] = json.loads(text)["files"]
    assert (file["path"], file["format"], file["readable"]) == (HOSTILE.location.path, None, False)


def test_letters_stay_letters() -> None:
    assert "é" in render(HOSTILE_REPORT, versions={NAME: NAME})
