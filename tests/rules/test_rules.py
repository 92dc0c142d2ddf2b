"""Every case file: exactly what its comments expect is found, where they expect it."""

from pathlib import Path

import pytest
from onnx import parser

from ir_scatter import Diagnostic, read, validate
from tests.rules.expectations import (
    Expectation,
    case_files,
    ir_expectations,
    onnx_expectations,
    without_comments,
    write_weights,
)

IR_FILES = case_files(".xml")
ONNX_FILES = case_files(".onnxtxt")


def check(found: list[tuple[str, Diagnostic]], expected: list[Expectation]) -> None:
    pairs = sorted((place, one.code) for place, one in found)
    shown = [f"{place}: {one.code} {one.severity} {one.message}" for place, one in found]
    assert pairs == sorted((one.place, one.code) for one in expected), shown
    left = list(found)
    for wanted in expected:
        met = [
            (place, one)
            for place, one in left
            if (place, one.code) == (wanted.place, wanted.code) and wanted.is_met_by(one)
        ]
        assert met, f"expected {wanted} in {shown}"
        left.remove(met[0])


def read_ir(path: Path, folder: Path, *, has_comments: bool) -> list[Diagnostic]:
    text = path.read_text()
    copy = folder / path.name
    copy.write_text(text if has_comments else without_comments(text))
    write_weights(text, copy.with_suffix(".bin"))
    return validate(read(copy))


@pytest.mark.parametrize("has_comments", [True, False], ids=["as_is", "without_comments"])
@pytest.mark.parametrize("path", IR_FILES, ids=lambda path: path.stem)
def test_ir(path: Path, has_comments: bool, tmp_path: Path) -> None:
    """Without comments the quick index is taken, with them the exact one."""
    found = read_ir(path, tmp_path, has_comments=has_comments)
    check([(str(one.location.line), one) for one in found], ir_expectations(path.read_text()))
    lines = path.read_text().splitlines()
    for one in found:
        if one.location.line is not None and one.location.column is not None:
            line = lines[one.location.line - 1]
            assert one.location.column == len(line) - len(line.lstrip()) + 1


@pytest.mark.parametrize("path", ONNX_FILES, ids=lambda path: path.stem)
def test_onnx(path: Path, tmp_path: Path) -> None:
    model = parser.parse_model(path.read_text())
    copy = tmp_path / "model.onnx"
    copy.write_bytes(model.SerializeToString())
    found = [(one.location.scope, one) for one in validate(read(copy))]
    check(found, onnx_expectations(path.read_text()))


def test_files_are_named_for_a_rule() -> None:
    assert IR_FILES
    assert ONNX_FILES
    from ir_scatter.rules import by_code

    for path in (*IR_FILES, *ONNX_FILES):
        code, _, name = path.stem.partition("_")
        assert code in by_code()
        assert name
