"""Inputs that we draw are legal: the model is computed on them, whatever its bodies do with indices."""

from collections import Counter
from pathlib import Path

import pytest

from ir_scatter import evaluate_model
from ir_scatter.inputs.model import make_feeds
from tests.campaigns.body_models import write
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
