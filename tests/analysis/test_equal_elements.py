"""Which elements are certainly the same number, and what that means for targets that repeat."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter import evaluate_model
from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.equal_elements import varying_axes
from ir_scatter.analysis.scatter_node import scatter_nodes
from ir_scatter.core.arrays import bits_of
from ir_scatter.core.model import Model
from ir_scatter.defects import by_code
from ir_scatter.ops.spec import Layout
from ir_scatter.reading import read
from ir_scatter.validate import validate
from tests.models.ir_text import IrText
from tests.models.onnx_text import save

SHAPE = "shape = Constant <value_ints = [4, 3]> ()"
ALL = frozenset({-2, -1})
FILLS: dict[str, tuple[list[str], frozenset[int] | None]] = {
    "an input": (["v = Identity (full)"], ALL),
    "one element expanded": ([SHAPE, "v = Expand (one, shape)"], frozenset()),
    "one element tiled": ([SHAPE, "v = Tile (one2, shape)"], frozenset()),
    "a row expanded": ([SHAPE, "v = Expand (row, shape)"], frozenset({-1})),
    "a column expanded": ([SHAPE, "v = Expand (column, shape)"], frozenset({-2})),
    "a row tiled": (["r = Constant <value_ints = [4, 1]> ()", "v = Tile (row2, r)"], frozenset({-1})),
    "a shape filled": ([SHAPE, "v = ConstantOfShape <value = float[1] {2}> (shape)"], frozenset()),
    "an open shape filled": (["s = Shape (full)", "v = ConstantOfShape (s)"], frozenset()),
    "computed of a fill": (
        [SHAPE, "e = Expand (one, shape)", "n = Neg (e)", "c = Cast <to = 6> (n)", "v = Cast <to = 1> (c)"],
        frozenset(),
    ),
    "a fill and a number": ([SHAPE, "e = Expand (one, shape)", "v = Mul (e, scalar)"], frozenset()),
    "a fill and a row": ([SHAPE, "e = Expand (one, shape)", "v = Add (e, row)"], frozenset({-1})),
    "a fill and an input": ([SHAPE, "e = Expand (one, shape)", "v = Add (e, full)"], ALL),
    "a choice of two numbers": (
        [SHAPE, "e = Expand (one, shape)", "b = Greater (one, scalar)", "v = Where (b, e, scalar)"],
        frozenset(),
    ),
    "a choice by element": (["b = Greater (full, scalar)", "v = Where (b, one, scalar)"], ALL),
    "reshaped": (
        ["s = Constant <value_ints = [12]> ()", "e = Expand (one, s)", SHAPE, "v = Reshape (e, shape)"],
        frozenset(),
    ),
    "a row that is reshaped": ([SHAPE, "e = Expand (row, shape)", "v = Reshape (e, shape)"], ALL),
    "two fills side by side": (
        ["s = Constant <value_ints = [2, 3]> ()", "a = Expand (one, s)", "b = Expand (scalar, s)",
         "v = Concat <axis = 0> (a, b)"],
        ALL,
    ),
    "a random number": (["v = Bernoulli (full)"], ALL),
    "both zeros": ([SHAPE, "v = Expand (zeros, shape)"], frozenset({-2})),
    "both zeros as whole numbers": ([SHAPE, "i = Cast <to = 7> (zeros)", "e = Expand (i, shape)", "v = Cast <to = 1> (e)"], frozenset({-2})),
}  # fmt: skip
HEADER = '<ir_version: 10, opset_import: ["" : 18]>\n'
SIGNATURE = "(float[1] one, float[1, 1] one2, float scalar, float[3] row, float[1, 3] row2, float[4, 1] column, float[4, 3] full)"
CONSTANTS = "<float[4, 1] zeros = {0, -0, 0, 0}>"


def model_of(lines: list[str], folder: Path, output: str = "float[4, 3] v") -> Model:
    body = "\n".join(lines)
    text = f"{HEADER}m {SIGNATURE} => ({output})\n{CONSTANTS} {{\n{body}\n}}"
    return read(save(text, folder / "model.onnx"))


@pytest.mark.parametrize("name", FILLS)
def test_along_which_axes_elements_differ(name: str, tmp_path: Path) -> None:
    lines, expected = FILLS[name]
    model = model_of(lines, tmp_path)
    (value,) = [value for node in model.walk() for value in node.outputs if value.name == "v"]
    axes = varying_axes(Facts(model=model), value)
    assert axes == expected
    if name == "a random number":
        return
    feeds: dict[str, Any] = {
        "one": np.full(1, 3, "f4"), "one2": np.full((1, 1), 4, "f4"), "scalar": np.float32(5),
        "row": np.arange(3, dtype="f4"), "row2": np.arange(3, dtype="f4")[None],
        "column": np.arange(4, dtype="f4")[:, None], "full": np.arange(12, dtype="f4").reshape(4, 3),
    }  # fmt: skip
    bits = bits_of(evaluate_model(model, feeds)["v"])
    assert axes is not None
    for axis in {0, 1} - {place + 2 for place in axes}:
        assert (bits == bits.take([0], axis=axis)).all()


def codes(model: Model) -> list[str]:
    return [found.code for found in validate(model)]


ROWS = "rows = Constant <value = int64[4, 1] {4, 1, 4, 1}> ()"
COLUMNS = "columns = Constant <value_ints = [1, 1, 0, 2]> ()"
GRID = "grid = Constant <value = int64[4, 3] {4, 1, 4, 1, 4, 1, 4, 4, 0, 2, 3, 2}> ()"
TUPLES = "y = ScatterND (data, rows, v)"
ELEMENTS = "y = ScatterElements (data, grid, v)"
REPEATED: dict[str, tuple[list[str], list[str]]] = {
    "tuples, an input": (["v = Identity (full)", ROWS, TUPLES], ["SCT304"]),
    "tuples, a fill": ([SHAPE, "v = Expand (one, shape)", ROWS, TUPLES], []),
    "tuples, equal rows": ([SHAPE, "v = Expand (row, shape)", ROWS, TUPLES], []),
    "tuples, different rows": ([SHAPE, "v = Expand (column, shape)", ROWS, TUPLES], ["SCT304"]),
    "tuples, added": ([SHAPE, "v = Expand (column, shape)", ROWS, 'y = ScatterND <reduction = "add"> (data, rows, v)'], []),
    "elements, a fill": ([SHAPE, "v = Expand (one, shape)", GRID, ELEMENTS], []),
    "elements, equal along the axis": ([SHAPE, "v = Expand (row, shape)", GRID, ELEMENTS], []),
    "elements, equal along another": ([SHAPE, "v = Expand (column, shape)", GRID, ELEMENTS], ["SCT304"]),
    "constants equal by target": (["v = Constant <value = float[4, 3] {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}> ()", ROWS, TUPLES], []),
    "constants that differ by target": (["v = Constant <value = float[4, 3] {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 7}> ()", ROWS, TUPLES], ["SCT304"]),
    "zeros of both signs, each for its own target": ([SHAPE, "v = Expand (zeros, shape)", "rows = Constant <value = int64[4, 1] {4, 1, 4, 0}> ()", TUPLES], []),
    "zeros of both signs for one target": ([SHAPE, "v = Expand (zeros, shape)", "rows = Constant <value = int64[4, 1] {1, 1, 4, 0}> ()", TUPLES], ["SCT304"]),
    "a column for each target": ([SHAPE, "v = Expand (column, shape)", "rows = Constant <value = int64[4, 1] {1, 3, 4, 0}> ()", TUPLES], []),
}  # fmt: skip


@pytest.mark.parametrize("name", REPEATED)
def test_equal_updates_have_no_order(name: str, tmp_path: Path) -> None:
    lines, expected = REPEATED[name]
    data = "data = Constant <value = float[5, 3] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}> ()"
    model = model_of([data, *lines], tmp_path, "float[5, 3] y")
    assert codes(model) == expected
    (scatter,) = scatter_nodes(model.graph, Facts(model=model))
    defect = by_code()["DEV405" if scatter.spec.layout is Layout.TUPLES else "DEV111"]
    assert defect.affects is not None
    met = defect.affects(scatter)
    is_added = "added" in name
    is_open = bool(expected) or is_added
    assert (met is not None) == is_open


def slices(folder: Path, axis: int, fill: bool, indices: list[int] | None) -> Model:
    """Return an IR with a ScatterUpdate of [5, 3], whose 4 updates are a fill along the axis or not."""
    ir = IrText()
    data = ir.parameter("data", "f32", (5, 3))
    count = 7 if indices is None else len(indices)
    shape = (count, 3) if axis == 0 else (5, count)
    places = ir.parameter("indices", "i64", (7,)) if indices is None else ir.const("indices", "i64", indices)
    updates = ir.parameter(
        "updates", "f32", tuple(1 if fill and n == axis else dim for n, dim in enumerate(shape))
    )
    if fill:
        target = ir.const("shape", "i64", list(shape))
        updates = ir.add(
            "spread", "Broadcast", "opset3", [updates, target], [("f32", shape)], {"mode": "bidirectional"}
        )
    inputs = [data, places, updates, ir.const("axis", "i64", axis, ())]
    scatter = ir.add("scatter", "ScatterUpdate", "opset3", inputs, [("f32", (5, 3))])
    ir.add("result", "Result", "opset1", [scatter], [])
    return read(ir.write(folder))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("indices", "code"), [([1, 2, 1, 1], "SCT304"), (None, "SCT306")])
def test_slices_that_are_equal_along_the_axis(
    axis: int, indices: list[int] | None, code: str, tmp_path: Path
) -> None:
    assert codes(slices(tmp_path, axis, False, indices)) == [code]
    assert codes(slices(tmp_path, axis, True, indices)) == []


def test_nodes_alike_but_for_their_updates(tmp_path: Path) -> None:
    """Of two nodes with the same indices, one of which has equal updates, the other one is told of."""
    lines = [
        SHAPE, "v = Expand (one, shape)", ROWS, "data = Expand (row2, five)", "a = ScatterND (data, rows, v)",
        "y = ScatterND (a, rows, full)", "z = ScatterND (y, rows, v)",
    ]  # fmt: skip
    model = model_of(["five = Constant <value_ints = [5, 3]> ()", *lines], tmp_path, "float[5, 3] z")
    assert [(found.code, found.node and found.node.name) for found in validate(model)] == [("SCT304", "y")]
