"""Parts of index tuples without a column: no two of their elements are equal, but their rows are."""

import pytest
from onnx import parser

from ir_scatter.contract import make_contract
from ir_scatter.reading import read

_HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'
_TAIL = "[write] y = ScatterND(d, i, u)\n}"


def distinct_of(text: str) -> tuple[str, tuple[str, ...]]:
    model = read("model.onnx", parser.parse_model(_HEAD + text + _TAIL).SerializeToString())
    (node,) = make_contract(model).nodes
    return str(node.distinct.status), tuple(node.distinct.conditions)


@pytest.mark.parametrize("columns", ["0", "K"])
@pytest.mark.parametrize("order", ["z, t", "t, z"])
def test_a_part_without_columns_makes_no_rows_distinct(columns: str, order: str) -> None:
    """With `K` of 0 the elements of z [4, K] are distinct whatever t is."""
    text = f"g (int64[4,{columns}] z, int64[4,2] t, float[3,3] d, float[4] u) => (float[3,3] y) {{ "
    _, conditions = distinct_of(f"{text} i = Concat<axis=1>({order})\n")
    assert "z distinct" not in conditions


def test_a_range_without_columns_makes_no_rows_distinct() -> None:
    """A slice of no columns of a table of different numbers, joined with the first column of another."""
    text = """g (int64[4,1] t, float[3] d, float[4] u) => (float[3] y)
        <int64[4,1] table = {0, 1, 2, 3}, int64[1] none = {0}, int64[1] last = {1}> {
        empty = Slice(table, none, none, last)
        i = Concat<axis=1>(empty, t)
    """
    status, _ = distinct_of(text)
    assert status != "proven"


def test_tuples_of_no_coordinates_are_equal() -> None:
    text = "g (float[4,0] r, float[3] d, float[4,3] u) => (float[3] y) { i = Cast<to = 7>(r)\n"
    status, _ = distinct_of(text)
    assert status != "proven"


def test_a_part_with_columns_still_counts() -> None:
    text = "g (int64[4,1] t, int64[4,1] z, float[3,3] d, float[4] u) => (float[3,3] y) { "
    status, conditions = distinct_of(f"{text} i = Concat<axis=1>(z, t)\n")
    assert status == "conditional"
    assert "z distinct" in conditions
