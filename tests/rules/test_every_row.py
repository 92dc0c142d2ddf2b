"""Every row of the table, with exactly one thing broken at a time."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ir_scatter import Diagnostic, read, validate
from ir_scatter.ops.lookup import SPECS
from tests.rules.cases import onnx_model, write_ir
from tests.rules.every_row import every_case
from tests.rules.rows import CACHE, ROWS, Row

CASES = [(row, name) for row in ROWS for name, _, _ in every_case(row)]


def deprecation(row: Row) -> list[str]:
    """Return what is said of every node of a deprecated version."""
    if row.type != "Scatter":
        return []
    return [
        "SCT401 warning Scatter is deprecated" if row.version == 9 else "SCT401 error Scatter is deprecated"
    ]


def is_alone(name: str) -> bool:
    """Tell whether a case is such that it gets a model of its own."""
    return name.endswith("_list")


@cache
def found(row: Row, alone: str = "") -> dict[str, list[Diagnostic]]:
    """Validate one model that holds every case of a row as a node of its own, or one case alone."""
    cases = {name: case for name, case, _ in every_case(row) if alone == (name if is_alone(name) else "")}
    with TemporaryDirectory() as folder:
        if row.is_ir:
            path = write_ir(row, cases, Path(folder))
        else:
            path = str(Path(folder, "model.onnx"))
            Path(path).write_bytes(onnx_model(row, cases).SerializeToString())
        diagnostics = validate(read(path))
    grouped: dict[str, list[Diagnostic]] = {name: [] for name in cases}
    for diagnostic in diagnostics:
        assert diagnostic.node is not None
        grouped[diagnostic.node.name].append(diagnostic)
    return grouped


@pytest.mark.parametrize(("row", "name"), CASES, ids=[f"{row}-{name}" for row, name in CASES])
def test_exactly_what_is_broken_is_found(row: Row, name: str) -> None:
    expected = sorted(
        [*deprecation(row), *(text for other, _, texts in every_case(row) if other == name for text in texts)]
    )
    diagnostics = sorted(
        found(row, name if is_alone(name) else "")[name], key=lambda one: (one.code, one.port_index or 0)
    )
    texts = sorted(f"{one.code} {one.severity} {one.message}" for one in diagnostics)
    assert [text[:13] for text in texts] == [text[:13] for text in expected], texts
    for text, part in zip(texts, expected, strict=True):
        code, severity, message = part.split(" ", 2) if part.count(" ") > 1 else (*part.split(" "), "")
        assert text.startswith(f"{code} {severity} ")
        assert message in text
    for one in diagnostics:
        assert one.node is not None
        assert (one.node.type, one.node.version) == (row.type, row.version)


def test_the_table_has_exactly_these_rows() -> None:
    assert {(key.type, key.version) for key in SPECS} == {(row.type, row.version) for row in ROWS}


def test_no_case_has_a_name_twice() -> None:
    assert len(CASES) == len(set(CASES))
    assert {row.family for row in ROWS} >= {CACHE}
