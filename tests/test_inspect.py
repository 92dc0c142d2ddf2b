"""What is known of each scatter node."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from onnx import parser

from ir_scatter import read
from ir_scatter.inspect import IndexSummary, Inspection, NodeSummary, inspect, totals
from ir_scatter.report import inspection_text
from tests.rules.cases import Case, Tensor, legal, shaped, write_ir
from tests.rules.rows import ROWS, Row

UPDATE, ELEMENTS, ELEMENTS_12, TUPLES = ROWS[0], ROWS[1], ROWS[2], ROWS[4]


def one(row: Row, case: Case, folder: Path, opset: str | None = None) -> NodeSummary:
    (found,) = inspect(read(write_ir(row, {"scatter": case}, folder, opset)))
    return found


def with_values(case: Case, *values: int) -> Case:
    return replace(case, indices=replace(case.indices, values=list(values)))


def test_a_node(tmp_path: Path) -> None:
    found = one(UPDATE, with_values(legal(UPDATE), 4, 1), tmp_path)
    assert (found.name, found.operator) == ("scatter", "ScatterUpdate-3")
    assert (found.axis, found.reduction) == (0, None)
    assert found.inputs == {"data": "f32[5, 3]", "indices": "i64[2]", "updates": "f32[2, 3]", "axis": "i64[]"}
    assert found.indices == IndexSummary(True, 1, 4, 0)
    assert found.location.scope == "scatter"


@pytest.mark.parametrize(
    ("values", "summary", "text"),
    [
        ((4, 1), IndexSummary(True, 1, 4, 0), "constant 1..4"),
        ((3, 3), IndexSummary(True, 3, 3, 1), "constant 3..3, 1 repeated"),
        ((-1, 4), IndexSummary(True, -1, 4, 1), "constant -1..4, 1 repeated"),
    ],
)
def test_indices(values: tuple[int, ...], summary: IndexSummary, text: str, tmp_path: Path) -> None:
    found = one(TUPLES, with_values(legal(TUPLES), *values), tmp_path)
    assert found.indices == summary
    assert str(found.indices) == text


def test_indices_that_are_not_constant_or_empty(tmp_path: Path) -> None:
    assert str(one(UPDATE, legal(UPDATE), tmp_path).indices) == "not constant"
    empty = with_values(shaped(UPDATE, (5, 3), (0,), (0, 3)))
    assert str(one(UPDATE, empty, tmp_path).indices) == "constant, empty"


def test_an_attribute_that_is_not_at_its_default_is_shown(tmp_path: Path) -> None:
    case = replace(legal(ELEMENTS_12), attributes={"reduction": "max", "use_init_val": "false"})
    summary = one(ELEMENTS_12, case, tmp_path)
    assert summary.attributes == {"reduction": "max", "use_init_val": False}
    assert summary.unusual_attributes == {"use_init_val": False}
    text = inspection_text.render([Inspection("model.xml", "openvino", (summary,))])
    assert "max, use_init_val=false" in text
    usual = one(ELEMENTS_12, replace(case, attributes={"reduction": "max"}), tmp_path)
    assert usual.attributes == {"reduction": "max", "use_init_val": True}
    assert not usual.unusual_attributes


def test_repetitions_are_unknown_where_ranks_do_not_fit(tmp_path: Path) -> None:
    case = with_values(shaped(ELEMENTS, (5, 3), (2,), (2,)), 1, 1)
    assert one(ELEMENTS, case, tmp_path).indices.repeated is None


def test_what_is_unknown(tmp_path: Path) -> None:
    case = shaped(UPDATE, None, ("?",), ("1..5", 3), axis=Tensor("i32", ()))
    found = one(UPDATE, replace(case, updates=replace(case.updates, type="dynamic")), tmp_path)
    assert found.axis == "?"
    assert list(found.inputs.values()) == ["f32[...]", "i64[?]", "?[1..5, 3]", "i32[]"]


def test_reduction_and_axis(tmp_path: Path) -> None:
    case = replace(legal(ELEMENTS_12), attributes={"reduction": "SUM"}, axis=Tensor("i64", (1,), [-2]))
    found = one(ELEMENTS_12, case, tmp_path)
    assert (found.operator, found.axis, found.reduction) == ("ScatterElementsUpdate-12", -2, "sum")
    found = one(TUPLES, legal(TUPLES), tmp_path)
    assert (found.axis, found.reduction) == (None, "none")


def test_a_node_without_a_row(tmp_path: Path) -> None:
    found = one(UPDATE, legal(UPDATE), tmp_path, "extension")
    assert (found.operator, found.inputs, found.axis) == ("ScatterUpdate", {}, None)


def test_a_missing_input(tmp_path: Path) -> None:
    found = one(UPDATE, replace(legal(UPDATE), dropped=frozenset({"axis"})), tmp_path)
    assert found.inputs["axis"] == ""
    assert found.axis == "?"


MODEL = """<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
m (bool c, float[5, 3] data, float[2, 3] updates, int64[2, 1] rows) => (y, z)
{
    [first] y = own.put (data, rows, updates)
    [choice] z = If (c) <
        then_branch = yes () => (t) { [then] t = ScatterND <reduction = "add"> (data, rows, updates) },
        else_branch = no () => (e) { e = Identity (data) }
    >
}
<domain: "own", opset_import: ["" : 18]>
put (data, indices, updates) => (out) { [inner] out = ScatterND (data, indices, updates) }"""


def test_bodies_and_functions(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(parser.parse_model(MODEL).SerializeToString())
    found = inspect(read(path))
    assert [(one.location.scope, one.operator, one.reduction) for one in found] == [
        ("choice:then_branch/then", "ScatterND-18", "add"),
        ("own::put/inner", "ScatterND-18", "none"),
    ]
    assert found[1].inputs == {"data": "float[5, 3]", "indices": "int64[2, 1]", "updates": "float[2, 3]"}
    assert totals(found) == {"ScatterND-18": 2}


def test_totals_are_sorted(tmp_path: Path) -> None:
    node = one(UPDATE, legal(UPDATE), tmp_path)
    names: list[Any] = ["b", "a", "c", "c", "b", "a", "c"]
    counted = totals([replace(node, operator=name) for name in names])
    assert list(counted.items()) == [("c", 3), ("a", 2), ("b", 2)]
