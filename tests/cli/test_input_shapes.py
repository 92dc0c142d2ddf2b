"""`--input-shape`: shapes that the file leaves open."""

from pathlib import Path

import pytest

from tests.cli.conftest import Cli, codes
from tests.models.onnx_graph import OnnxGraph

pytestmark = pytest.mark.openvino

SHAPE = ("n", "m")


@pytest.fixture
def dynamic_onnx(elsewhere: Path) -> Path:
    """A ScatterElements whose shapes follow from its inputs, through a Relu."""
    graph = OnnxGraph()
    x, i, u = graph.input("x", "f32", SHAPE), graph.input("i", "i64", SHAPE), graph.input("u", "f32", SHAPE)
    positive = graph.add("Relu", [u], "positive", "relu")
    graph.output(graph.add("ScatterElements", [x, i, positive], "y", "scatter"), "f32", SHAPE)
    graph.write(elsewhere / "dynamic.onnx")
    return Path("dynamic.onnx")


def _shapes(*shapes: str) -> list[str]:
    return [word for shape in shapes for word in ("--input-shape", shape)]


@pytest.mark.parametrize(
    ("shapes", "found"),
    [
        ([], []),
        (["hidden=1,3,8", "position=3"], []),
        (["hidden=1,3,8", "position=2"], ["SCT203", "SCT203"]),
        (["hidden=1,?,8", "position=2"], []),
        (["hidden=1,1..2,8", "position=3"], ["SCT203", "SCT203"]),
        (["hidden=?,?,?"], []),
        (["hidden=..."], []),
    ],
)
def test_ir(cli: Cli, clean: Path, shapes: list[str], found: list[str]) -> None:
    result = cli("validate", clean, "--format", "concise", *_shapes(*shapes))
    assert codes(result.out) == found
    assert result.code == bool(found)


@pytest.mark.parametrize(
    ("shapes", "found"),
    [
        ([], []),
        (["x=4,5", "i=2,5", "u=2,5"], []),
        (["x=4,5", "i=2,5", "u=3,5"], ["SCT203"]),
        (["i=2,5", "u=3,5"], ["SCT203"]),
        (["x=4,5", "i=2,7", "u=2,7"], ["SCT210"]),
        (["i=2,?", "u=3,?"], ["SCT203"]),
    ],
)
def test_onnx(cli: Cli, dynamic_onnx: Path, shapes: list[str], found: list[str]) -> None:
    result = cli("validate", dynamic_onnx, "--format", "concise", *_shapes(*shapes))
    assert codes(result.out) == found


@pytest.mark.parametrize("name", ["hiden", "HIDDEN", "value_cache/scatter"])
def test_an_unknown_name_is_wrong_usage(cli: Cli, clean: Path, name: str) -> None:
    result = cli("validate", clean, "--input-shape", f"{name}=1")
    assert (result.code, result.out) == (2, "")
    assert name in result.err
    assert "hidden, past_key, past_value, position" in result.err


def test_a_rank_that_the_model_contradicts_is_wrong_usage(cli: Cli, clean: Path, dynamic_onnx: Path) -> None:
    for model, shape, known in ((clean, "hidden=1,3", "[1, ?, 8]"), (dynamic_onnx, "x=5", "[n, m]")):
        name = shape.partition("=")[0]
        result = cli("validate", model, "--input-shape", shape)
        assert (result.code, result.out) == (2, "")
        assert f"--input-shape: {model}: {name} has shape {known} of rank" in result.err
        assert cli("run", model, "--input-shape", shape).code in {2, 4}


def test_a_name_that_one_of_two_models_has(cli: Cli, clean: Path, dynamic_onnx: Path) -> None:
    result = cli("validate", clean, dynamic_onnx, *_shapes("i=2,5", "u=3,5"), "--format", "concise")
    assert codes(result.out) == ["SCT203"]


@pytest.mark.parametrize(
    "text", ["hidden", "=1,2", "hidden=1,x", "hidden=1,,2", "hidden=-5", "hidden=5..3", ""]
)
def test_a_text_that_is_no_shape_is_wrong_usage(cli: Cli, clean: Path, text: str) -> None:
    result = cli("validate", clean, "--input-shape", text)
    assert (result.code, result.out) == (2, "")
