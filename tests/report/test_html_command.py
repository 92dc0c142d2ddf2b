import shlex
from dataclasses import replace
from typing import Any

import pytest

from ir_scatter.compare.measure import Tolerances
from ir_scatter.compare.result import Compared, CompareSettings, Comparison
from ir_scatter.core.shapes import parse_shape
from ir_scatter.report.comparison_html.difference import repeat_command
from ir_scatter_cli.compare import command
from tests.report.comparisons import CPU, MISMATCH, ONE_OFF, ZEROS, compared, of_output

SETTINGS = CompareSettings(
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


DRAWN = {"values": "edge", "input_shape": tuple(SETTINGS.input_shapes.items()), "inputs": None}
COMMANDS: list[tuple[Comparison, dict[str, str], dict[str, str], dict[str, Any]]] = [
    (replace(MISMATCH, case=3), {}, {}, {**DRAWN, "seed": 10, "cases": 1, "repeat": 1, "precision": "f16"}),
    (MISMATCH, {}, {}, {"names": ("numpy", "GPU@cpu"), "models": ("model.xml",)}),
    (of_output("y", ONE_OFF, ZEROS, CPU, CPU), {}, {}, {"names": ("CPU",), "repeat": 4}),
    (MISMATCH, {}, {"inputs": "my feeds.npz"}, {"inputs": "my feeds.npz", "seed": 0, "values": "plain"}),
    (replace(MISMATCH, case=2), {}, {"inputs": "my feeds.npz"}, {**DRAWN, "seed": 9}),
    (
        replace(MISMATCH, reference="saved:openvino:CPU"),
        {},
        {"against": "results"},
        {"names": ("GPU@cpu",), "against": "results", "inputs": None},
    ),
    (MISMATCH, {"other": "after.xml"}, {}, {"models": ("model.xml", "after.xml")}),
]


@pytest.mark.parametrize(("one", "more", "source", "expected"), COMMANDS)
def test_the_command_says_what_was_asked(one: Comparison, more: Any, source: Any, expected: Any) -> None:
    found = parsed(compared(one, settings=SETTINGS, **more), one, **source)
    assert {name: found[name] for name in expected} == expected
    assert Tolerances(found["tolerance"]).named == SETTINGS.tolerances.named


def test_defaults_are_left_out() -> None:
    words = repeat_command(compared(MISMATCH), MISMATCH)
    assert words == "ir-scatter compare model.xml --on numpy --on GPU@cpu --seed 0"


@pytest.mark.parametrize(
    "path", ["a b.xml", "it's.xml", "$(reboot).xml", "-weird.xml", "--on.xml", "ß;&|.xml"]
)
def test_a_path_stays_one_word(path: str) -> None:
    (found,) = parsed(compared(MISMATCH, model=path), MISMATCH)["models"]
    assert found == (f"./{path}" if path.startswith("-") else path)
