import shlex
from dataclasses import replace
from typing import Any

import pytest

from ir_scatter.compare.result import Compared, Comparison, Settings
from ir_scatter.compare.tolerance import Tolerances
from ir_scatter.core.shapes import parse_shape
from ir_scatter.report.comparison_html.difference import repeat_command
from ir_scatter_cli.compare import command
from tests.report.comparisons import CPU, GPU, MISMATCH, ONE_OFF, ZEROS, compared, of_output

SETTINGS = Settings(
    seed=7,
    cases=5,
    repeat=4,
    values="edge",
    input_shapes={"x": parse_shape("1,3,8"), "a b": parse_shape("")},
    tolerances=Tolerances(["y=0.5,1e-06", "0.25,0"]),
    precision="f16",
)


def parsed(found: Compared, one: Comparison, **source: Any) -> dict[str, Any]:
    """Return what the command line makes of the command."""
    words = shlex.split(repeat_command(found, one, **source))
    assert words[:2] == ["ir-scatter", "compare"]
    return command.make_context("compare", words[2:]).params


def test_the_command_says_what_was_asked() -> None:
    one = replace(MISMATCH, case=3)
    found = parsed(compared(one, settings=SETTINGS), one)
    assert found["models"] == ("model.xml",)
    assert found["names"] == ("numpy", "GPU@cpu")
    assert (found["seed"], found["cases"], found["repeat"]) == (10, 1, 1)
    assert (found["values"], found["precision"]) == ("edge", "f16")
    assert dict(found["input_shape"]) == SETTINGS.input_shapes
    assert Tolerances(found["tolerance"]).named == SETTINGS.tolerances.named


def test_defaults_are_left_out() -> None:
    words = repeat_command(compared(MISMATCH), MISMATCH)
    assert words == "ir-scatter compare model.xml --on numpy --on GPU@cpu --seed 0"


def test_what_changes_from_run_to_run_is_run_as_often() -> None:
    one = of_output("y", ONE_OFF, ZEROS, CPU, CPU)
    found = parsed(compared(one, settings=SETTINGS), one)
    assert (found["names"], found["repeat"]) == (("CPU",), 4)


def test_inputs_of_a_file_are_not_drawn() -> None:
    found = parsed(compared(MISMATCH, settings=SETTINGS), MISMATCH, inputs="my feeds.npz")
    assert (found["inputs"], found["seed"], found["values"]) == ("my feeds.npz", 0, "plain")


def test_further_cases_beside_a_file_are_drawn() -> None:
    one = replace(MISMATCH, case=2)
    found = parsed(compared(one, settings=SETTINGS), one, inputs="my feeds.npz")
    assert (found["inputs"], found["seed"], found["values"]) == (None, 9, "edge")


def test_saved_results_are_named_by_their_folder() -> None:
    one = replace(MISMATCH, reference="saved:openvino:CPU")
    found = parsed(compared(one), one, against="results")
    assert (found["names"], found["against"], found["inputs"]) == (("GPU@cpu",), "results", None)


def test_two_models() -> None:
    one = of_output("y", ONE_OFF, ZEROS, GPU, GPU)
    found = parsed(compared(one, other="after.xml"), one)
    assert found["models"] == ("model.xml", "after.xml")


@pytest.mark.parametrize(
    "path", ["a b.xml", "it's.xml", "$(reboot).xml", "-weird.xml", "--on.xml", "ß;&|.xml"]
)
def test_a_path_stays_one_word(path: str) -> None:
    (found,) = parsed(compared(MISMATCH, model=path), MISMATCH)["models"]
    assert found == (f"./{path}" if path.startswith("-") else path)
