"""Which opset holds which version: every word of an IR and every number of ONNX."""

from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from ir_scatter import Diagnostic, read, validate
from tests.rules.cases import legal, onnx_model, write_ir
from tests.rules.rows import ROWS, Row

IR_TYPES = sorted({row.type for row in ROWS if row.is_ir})
ONNX_TYPES = sorted({row.type for row in ROWS if not row.is_ir})


def first_and_last(type: str) -> str:
    rows = [row for row in ROWS if row.type == type]
    return f"opset{rows[0].opsets[0]} to opset{rows[-1].opsets[1]}"


def row_of(type: str, opset: int) -> Row | None:
    return next((row for row in ROWS if row.type == type and row.opsets[0] <= opset <= row.opsets[1]), None)


def demand_version(found: Diagnostic, row: Row | None) -> None:
    """Demand that the superfluous attribute is found in a node of this row, or that the opset has none."""
    assert found.node is not None
    assert (found.code, found.severity) == ("SCT402" if row is None else "SCT103", "error")
    assert found.node.version == (row.version if row else None)


def onnx_findings(model: onnx.ModelProto, folder: Path) -> list[Diagnostic]:
    """Validate a node with a superfluous attribute, so that its version is told."""
    model.graph.node[0].attribute.add(name="nothing", i=1, type=2)
    path = folder / "m.onnx"
    path.write_bytes(model.SerializeToString())
    return [one for one in validate(read(path)) if one.code != "SCT401"]


def ir(type: str, word: str, folder: Path) -> list[Diagnostic]:
    """Validate a legal node with a superfluous attribute, so that its version is told."""
    row = next(row for row in ROWS if row.type == type and row.is_ir)
    case = replace(legal(row), attributes={"nothing": "1"})
    return validate(read(write_ir(row, {"scatter": case}, folder, word)))


@pytest.mark.parametrize("type", IR_TYPES)
def test_every_word_of_an_ir(type: str, tmp_path: Path) -> None:
    for number in range(1, 18):
        (found,) = ir(type, f"opset{number}", tmp_path)
        row = row_of(type, number)
        demand_version(found, row)
        if row is None:
            assert found.message == f"{type} is not in opset{number}, expected {first_and_last(type)}"


@pytest.mark.parametrize("type", IR_TYPES)
def test_words_that_are_no_opset(type: str, tmp_path: Path) -> None:
    for word in ("opset0", "opset18", "opset99", "extension", "", "3", "opset", "opset03"):
        (found,) = ir(type, word, tmp_path)
        assert (found.code, found.severity) == ("SCT403", "error")
        assert f"is {word!r}, expected {first_and_last(type)}" in found.message
        assert found.node is not None
        assert found.node.version is None


@pytest.mark.parametrize("spelled", ["scatterupdate", "SCATTERUPDATE", "ScatterUPDATE"])
def test_an_ir_spells_types_in_any_case(spelled: str, tmp_path: Path) -> None:
    row = next(row for row in ROWS if row.type == "ScatterUpdate")
    path = Path(write_ir(row, {"scatter": legal(row)}, tmp_path))
    path.write_text(path.read_text().replace('type="ScatterUpdate"', f'type="{spelled}"'))
    model = read(path)
    assert validate(model) == []
    broken = path.read_text().replace('version="opset3"', 'version="opset2"')
    path.write_text(broken)
    (found,) = validate(read(path))
    assert found.node is not None
    assert (found.code, found.node.type) == ("SCT402", "ScatterUpdate")


@pytest.mark.parametrize("type", ONNX_TYPES)
def test_every_number_of_onnx(type: str, tmp_path: Path) -> None:
    """A newer opset than the table's gets the newest row, and a note."""
    row = next(row for row in ROWS if row.type == type)
    for opset in range(1, 31):
        found, *more = onnx_findings(onnx_model(row, {"scatter": legal(row)}, opset), tmp_path)
        demand_version(found, row_of(type, min(opset, 28)))
        is_noted = opset > 28 and type != "Scatter"  # which has been deprecated since 11
        notes = [("SCT404", f"opset {opset}: {type} may have changed; checked up to 28")] * is_noted
        assert [(one.code, one.message) for one in more] == notes


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_both_spellings_of_the_default_domain(domain: str, tmp_path: Path) -> None:
    row = next(row for row in ROWS if str(row) == "ScatterND-18")
    model = onnx_model(row, {"scatter": legal(row)})
    model.graph.node[0].domain = domain
    model.opset_import[0].domain = "" if domain else "ai.onnx"
    assert [one.code for one in onnx_findings(model, tmp_path)] == ["SCT103"]
