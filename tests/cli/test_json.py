"""The JSON of `validate`: the fields and types that others build on."""

from pathlib import Path
from typing import Any

import pytest

from ir_scatter.rules import by_code
from tests.cli.conftest import SAMPLES, Cli
from tests.report.json_schemas import check


def _document(cli: Cli, *arguments: str | Path) -> dict[str, Any]:
    result = cli("validate", *arguments, "--format", "json")
    assert result.err.startswith("ir-scatter: exit code 3, as ") if result.code == 3 else not result.err
    return check("validate", result.out)


def test_all_samples_and_a_missing_file(cli: Cli) -> None:
    document = _document(cli, SAMPLES, "missing.onnx")
    models = [path for path in SAMPLES.rglob("*") if path.suffix in {".xml", ".onnx"}]
    assert len(document["files"]) == document["summary"]["files"] == len(models) + 1
    found = [one for file in document["files"] for one in file["diagnostics"]]
    for severity in ("error", "warning", "note"):
        assert document["summary"][f"{severity}s"] == sum(one["severity"] == severity for one in found)
    assert all(by_code()[one["code"]].name == one["rule"] for one in found)


def test_a_finding_in_an_ir(cli: Cli, broken: Path) -> None:
    (file,) = _document(cli, broken, "--select", "SCT203")["files"]
    assert file["scatter_nodes"] == 6
    (found,) = file["diagnostics"]
    line = Path(broken).read_text().splitlines()[found["line"] - 1]
    assert line[found["column"] - 1 :].startswith("<layer ")
    assert 'name="too_many_rows"' in line
    assert found["scope"] == "too_many_rows"
    assert found["port"] == "updates"
    assert found["node"] == {"name": "too_many_rows", "type": "ScatterUpdate", "version": 3}
    (related,) = found["related"]
    assert related["path"] == str(broken)
    assert 'name="short"' in Path(broken).read_text().splitlines()[related["line"] - 1]


@pytest.mark.parametrize(
    ("name", "count"),
    [("branch.xml", 2), ("loop.xml", 2), ("branch.onnx", 2), ("loop.onnx", 1), ("function.onnx", 1)],
)
def test_bodies_are_counted(cli: Cli, name: str, count: int) -> None:
    (file,) = _document(cli, SAMPLES / "nested" / name)["files"]
    assert file["scatter_nodes"] == count
