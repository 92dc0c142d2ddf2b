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
def files() -> dict[str, dict[str, Any]]:
    """What validate says of each file, by its path below the folder."""
    result = run_script("validate", MODELS, "--format", "json", "-j", "2")
    assert result.code in {1, 3}
    unread = "" if result.code == 1 else "ir-scatter: exit code 3, as a file cannot be read: "
    assert result.err.startswith(unread)
    assert len(result.err.splitlines()) == (result.code == 3)
    return _by_path(result.out)


@pytest.fixture(scope="module")
def manifest() -> dict[str, int]:
    """How many scatter nodes each model has."""
    entries = json.loads((MODELS / "manifest.json").read_text())
    return {entry["path"]: entry["n_scatter"] for entry in entries}


def _by_path(document: str) -> dict[str, dict[str, Any]]:
    return {str(Path(file["path"]).relative_to(MODELS)): file for file in json.loads(document)["files"]}


def test_there_is_no_internal_error(files: dict[str, dict[str, Any]]) -> None:
    assert "SCT999" not in [one["code"] for file in files.values() for one in file["diagnostics"]]


def test_every_scatter_node_is_counted(files: dict[str, dict[str, Any]], manifest: dict[str, int]) -> None:
    assert manifest.keys() <= files.keys()
    counts = {path: files[path]["scatter_nodes"] for path in manifest if files[path]["readable"]}
    assert counts == {path: manifest[path] for path in counts}


def test_places_in_an_ir_are_those_of_the_node(files: dict[str, dict[str, Any]]) -> None:
    for file in files.values():
        if file["format"] != "openvino-ir":
            continue
        lines = Path(file["path"]).read_text(encoding="utf-8").splitlines()
        for found in file["diagnostics"]:
            if found["node"] is not None:
                assert lines[found["line"] - 1][found["column"] - 1 :].startswith("<layer ")


def test_inspect_lists_them_all(manifest: dict[str, int]) -> None:
    result = run_script("inspect", MODELS, "--format", "json")
    assert result.code in {0, 3}
    assert manifest.keys() <= _by_path(result.out).keys()
