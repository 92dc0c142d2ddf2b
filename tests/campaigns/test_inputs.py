"""Inputs that we draw are legal: the model is computed on them, whatever its bodies do with indices."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from ir_scatter import evaluate_model
from ir_scatter.evaluate.model import make_sketch, prepare
from ir_scatter.inputs.coverage import draw_further, optional_bodies
from ir_scatter.inputs.model import draw_feeds, make_feeds
from tests.campaigns.body_models import write
from tests.models.fed_axes import draw_shapes, write_flat, write_loop
from tests.scale import cases, generator, in_part_and_whole


@pytest.mark.parametrize("dialect", ["onnx", "ir"])
@in_part_and_whole
def test_inputs_of_bodies_are_legal(
    dialect: str, tmp_path: Path, figures: "Counter[str]", is_whole: bool
) -> None:
    for number in cases(60, is_whole):
        chance = generator(f"inputs of {dialect}", number)
        path, _ = write(chance, tmp_path, is_onnx=dialect == "onnx")
        evaluate_model(path, make_feeds(path, number))
        figures["models"] += 1


@pytest.mark.parametrize("dialect", ["onnx", "ir"])
@in_part_and_whole
def test_every_body_runs_in_some_case(
    dialect: str, tmp_path: Path, figures: "Counter[str]", is_whole: bool
) -> None:
    """Conditions and trip counts are inputs, or constants of at least 1."""
    for number in cases(60, is_whole):
        chance = generator(f"bodies of {dialect}", number)
        path, _ = write(chance, tmp_path, is_onnx=dialect == "onnx")
        model = make_sketch(path)
        bodies = {(0, body.scope) for body in optional_bodies(model, has_scatter=False)}
        drawn = [draw_feeds(model, number)]
        further = draw_further(partial(draw_feeds, model), drawn, bodies, number + 1)
        entered = set()
        for case in (*drawn, *further.cases):
            assert case.run is not None
            entered |= case.run.entered
            evaluate_model(path, case.feeds)
        assert bodies <= entered, path
        figures["models"] += 1
        figures["further cases"] += len(further.cases)


@pytest.mark.parametrize("write", [write_flat, write_loop])
@pytest.mark.parametrize("operator", [("ScatterUpdate", "opset3"), ("ScatterElementsUpdate", "opset12")])
@in_part_and_whole
def test_axes_that_are_inputs_fit(
    operator: tuple[str, str],
    write: Callable[..., str],
    tmp_path: Path,
    figures: "Counter[str]",
    is_whole: bool,
) -> None:
    for number in cases(60, is_whole):
        chance = generator(f"axes of {operator[0]}", number)
        path = write(tmp_path, *operator, draw_shapes(chance, operator[0]))
        prepare(path).run(draw_feeds(make_sketch(path), number).feeds)
        figures["models"] += 1
