"""Real models: nothing that their exporters wrote may break us."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ROOT, run_script

MODELS = ROOT.parent / "shared" / "models"

pytestmark = [
    pytest.mark.models,
    pytest.mark.skipif(not MODELS.is_dir(), reason="needs the folder of real models beside the checkout"),
]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    result = run_script("validate", MODELS, "--format", "json", "-j", "2")
    assert result.code in {1, 3}
    assert result.err == ""
    found: dict[str, Any] = json.loads(result.out)
    return found


def _manifest() -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads((MODELS / "manifest.json").read_text())
    return entries


def test_there_is_no_internal_error(document: dict[str, Any]) -> None:
    found = [one["code"] for file in document["files"] for one in file["diagnostics"]]
    assert "SCT999" not in found


def test_every_model_has_an_entry(document: dict[str, Any]) -> None:
    paths = {str(Path(file["path"]).relative_to(MODELS)) for file in document["files"]}
    assert {entry["path"] for entry in _manifest()} <= paths


def test_every_scatter_node_is_counted(document: dict[str, Any]) -> None:
    counts = {
        str(Path(file["path"]).relative_to(MODELS)): file["scatter_nodes"]
        for file in document["files"]
        if file["readable"]
    }
    wrong = {
        entry["path"]: (entry["n_scatter"], counts[entry["path"]])
        for entry in _manifest()
        if entry["path"] in counts and entry["n_scatter"] != counts[entry["path"]]
    }
    assert wrong == {}


def test_places_in_an_ir_are_those_of_the_node(document: dict[str, Any]) -> None:
    for file in document["files"]:
        if file["format"] != "openvino-ir":
            continue
        lines = Path(file["path"]).read_text(encoding="utf-8").splitlines()
        for found in file["diagnostics"]:
            if found["node"] is not None:
                assert lines[found["line"] - 1][found["column"] - 1 :].startswith("<layer ")


def test_inspect_lists_them_all() -> None:
    result = run_script("inspect", MODELS, "--format", "json")
    assert result.code in {0, 3}
    document = json.loads(result.out)
    assert {entry["path"] for entry in _manifest()} <= {
        str(Path(file["path"]).relative_to(MODELS)) for file in document["files"]
    }
