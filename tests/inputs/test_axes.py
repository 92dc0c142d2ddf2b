"""An axis that is an input is drawn so that shapes fit each other, if any axis lets them."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ir_scatter.evaluate.model import Sketch, make_sketch, prepare
from ir_scatter.inputs.model import draw_feeds, make_feeds
from tests.models.fed_axes import write_flat, write_loop
from tests.models.ir_text import Dims, IrText
from tests.models.nested_ir import result
from tests.scale import in_part_and_whole


def seeds(is_whole: bool) -> range:
    return range(50 if is_whole else 8)


SCATTERS: dict[str, tuple[str, str, Sequence[Dims]]] = {
    "slices on the first axis": ("ScatterUpdate", "opset3", [(4, 5), (2,), (2, 5)]),
    "slices on the last axis": ("ScatterUpdate", "opset3", [(4, 5), (2,), (4, 2)]),
    "slices in the middle": ("ScatterUpdate", "opset3", [(3, 4, 5), (2, 7), (3, 2, 7, 5)]),
    "slices on axes apart": ("ScatterUpdate", "opset3", [(3, 4, 3), (3,), (3, 4, 3)]),
    "elements on the last axis": ("ScatterElementsUpdate", "opset3", [(3, 2), (3, 6), (3, 6)]),
    "elements on the first axis": ("ScatterElementsUpdate", "opset12", [(3, 2, 4), (7, 2, 4), (7, 2, 4)]),
    "elements on any axis": ("ScatterElementsUpdate", "opset12", [(3, 4), (2, 2), (2, 2)]),
    "open slices": ("ScatterUpdate", "opset3", [("?", "?"), ("?",), ("?", 3)]),
    "slices of open data": ("ScatterUpdate", "opset3", [("?", 5), (2,), (4, 2)]),
    "open elements": ("ScatterElementsUpdate", "opset3", [("?", 2), ("?", 6), (3, "?")]),
}  # fmt: skip


@pytest.mark.parametrize("write", [write_flat, write_loop])
@pytest.mark.parametrize("name", SCATTERS)
@pytest.mark.parametrize("make", [prepare, make_sketch])
@in_part_and_whole
def test_axes_of_scatter_nodes_fit_shapes(
    name: str, write: Callable[..., str], make: Callable[[str], Sketch], tmp_path: Path, is_whole: bool
) -> None:
    """Of a model that is looked at as `run` does, and as `compare` does."""
    path = write(tmp_path, *SCATTERS[name])
    program, model = prepare(path), make(path)
    for seed in seeds(is_whole):
        program.run(draw_feeds(model, seed).feeds)


def test_every_axis_that_fits_is_drawn(tmp_path: Path) -> None:
    program = prepare(write_flat(tmp_path, *SCATTERS["elements on any axis"]))
    assert {int(make_feeds(program, seed)["axis"]) for seed in seeds(True)} == {0, 1}


@pytest.mark.parametrize("positions", [[4, 0], None])
@in_part_and_whole
def test_axes_of_gather_fit_what_comes_after_it(
    positions: Sequence[int] | None, tmp_path: Path, is_whole: bool
) -> None:
    """Positions that a constant names are in range on one axis; the shape after it fits on one axis."""
    ir = IrText()
    data = ir.parameter("data", "f32", (3, 5) if positions else (2, 4, 5))
    at = ir.const("at", "i64", positions) if positions else ir.parameter("at", "i64", (3,))
    axis = ir.parameter("axis", "i64", ())
    shape = [3, 2] if positions else [2, 3, 5]
    rows = ir.add("rows", "Gather", "opset8", [data, at, axis], [("f32", shape)], {"batch_dims": "0"})
    table, indices = ir.parameter("table", "f32", shape), ir.parameter("indices", "i64", shape)
    first = ir.const("first", "i64", 0)
    inputs = [table, indices, rows, first]
    result(ir, ir.add("scatter", "ScatterElementsUpdate", "opset3", inputs, [("f32", shape)]))
    program = prepare(ir.write(tmp_path, "gather"))
    for seed in seeds(is_whole):
        feeds = make_feeds(program, seed)
        assert int(feeds["axis"]) == 1
        program.run(feeds)
