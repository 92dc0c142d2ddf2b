"""Real models: every route that applies, and nothing but the nodes that are meant changes."""

from contextlib import suppress
from pathlib import Path

import pytest

from ir_scatter.convert.pipeline import convert
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.errors import NotEditable, UnreadableModel
from ir_scatter.core.model import ONNX, Model
from ir_scatter.reading import read
from ir_scatter.validate import validate
from tests.cli.conftest import ROOT

MODELS = ROOT.parent / "shared" / "models"

pytestmark = [
    pytest.mark.models,
    pytest.mark.skipif(not MODELS.is_dir(), reason="needs the folder of real models beside the checkout"),
]

_IR_TARGETS = (
    "ScatterUpdate",
    "ScatterElementsUpdate",
    "ScatterElementsUpdate-3",
    "ScatterNDUpdate",
    "ScatterNDUpdate-3",
)
_ONNX_TARGETS = (None, "ScatterElements", "ScatterND")
_TRUE_OF_THE_MODEL = {"CVT101", "CVT104", "CVT105", "CVT106", "CVT108", "CVT110", "CVT112"}
"""Refusals that say something of the model; the others would be our fault."""


_TOO_OLD = "ir_v7_templates"
"""The folder of IRs of a version that OpenVINO reads no more."""


def _models(*, is_too_old: bool = False) -> list[Path]:
    paths = sorted(path for path in MODELS.rglob("*") if path.suffix in {".xml", ".onnx"})
    return [path for path in paths if (path.parent.name == _TOO_OLD) is is_too_old]


def _found(model: Model) -> set[tuple[str, str]]:
    wanted = (one for one in validate(model) if one.severity is not Severity.NOTE)
    return {(one.code, one.location.scope) for one in wanted}


def test_an_ir_of_an_old_version_is_refused() -> None:
    paths = _models(is_too_old=True)
    assert paths
    for path in paths:
        with pytest.raises(UnreadableModel, match="expected 10 or 11"):
            read(path)


@pytest.mark.parametrize("path", _models(), ids=lambda path: str(path.relative_to(MODELS)))
def test_every_route(path: Path, tmp_path: Path) -> None:
    model = read(path)
    before = _found(model)
    for target in _ONNX_TARGETS if model.domain == ONNX else _IR_TARGETS:
        found = convert(model, target, verify=2)
        assert {one.code for one in found.refused} <= _TRUE_OF_THE_MODEL
        assert len(found.verified) == len(found.converted)
        if not found.converted or found.is_stuck:
            continue
        new = tmp_path / f"new{path.suffix}"
        if model.domain != ONNX and not path.with_suffix(".bin").exists():
            # new constants go behind the end of a file that is not there
            with suppress(NotEditable):
                found.write(new, partial=True, overwrite=True)
                assert not new.with_suffix(".bin").exists()
            continue
        found.write(new, partial=True, overwrite=True)
        assert _found(read(new)) <= before
