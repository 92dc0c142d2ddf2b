"""onnxruntime and the reference evaluator of onnx: outputs, types, and everything that goes wrong."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from ir_scatter import runners
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.runners.base import Runner, Status
from tests.unit.nested_ir import floats
from tests.unit.nested_onnx import save

pytestmark = pytest.mark.onnxruntime
pytest.importorskip("onnxruntime")

SCATTER = """
<ir_version: 10, opset_import: ["" : 18]>
scatter (float[4, N] data, int64[2, 5] indices, float[2, 5] updates, float[4, 5] more) => (float[4, N] out, float[4, N] sum)
<float[4, 5] more = {MORE}> {
  out = ScatterElements <axis = 0, reduction = "add"> (data, indices, updates)
  sum = Add (out, more)
}
""".replace("MORE", ", ".join(["1"] * 20))
FEEDS = {"data": floats(4, 5), "indices": np.ones((2, 5), np.int64), "updates": floats(2, 5)}
EXPECTED = floats(4, 5) + np.array([0, 1, 0, 0])[:, None] * floats(2, 5).sum(0)


@pytest.fixture(scope="module", params=["onnxruntime", "onnx-reference"])
def runner(request: pytest.FixtureRequest) -> Runner:
    return runners.find(request.param)


def test_a_model_gives_what_it_should(runner: Runner, tmp_path: Path) -> None:
    outcome = runner.run(save(SCATTER, tmp_path / "m.onnx"), FEEDS, repeat=2)
    assert (outcome.status, outcome.message, outcome.precision) == (Status.OK, "", "model")
    assert outcome.versions == runner.versions() != {}
    for run in outcome.runs:
        assert list(run) == ["out", "sum"]
        assert np.array_equal(run["out"], EXPECTED)
        assert np.array_equal(run["sum"], EXPECTED + 1)
    assert not np.shares_memory(outcome.runs[0]["out"], outcome.runs[1]["out"])


def test_an_input_with_an_initializer_may_be_fed(runner: Runner, tmp_path: Path) -> None:
    feeds = FEEDS | {"more": np.full((4, 5), 3, np.float32)}
    outcome = runner.run(save(SCATTER, tmp_path / "m.onnx"), feeds)
    assert np.array_equal(outcome.outputs["sum"], EXPECTED + 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"updates": None}, "no array is given for updates"),
        ({"other": floats(1)}, "the model has no input 'other', expected data, indices, updates"),
        ({"updates": floats(3, 5)}, "updates has shape [3, 5], expected [2, 5]"),
        ({"data": floats(4)}, "data has shape [4], expected [4, N]"),
        ({"indices": np.ones((2, 5), np.int32)}, "indices is int32, expected int64"),
    ],
)
def test_wrong_feeds_are_refused_in_words(
    runner: Runner, change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    feeds = {name: array for name, array in (FEEDS | change).items() if array is not None}
    outcome = runner.run(save(SCATTER, tmp_path / "m.onnx"), feeds)
    assert outcome.status is Status.REFUSED
    assert outcome.message == message


OF_ONNXRUNTIME = ("f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "u8", "boolean", "string")
OF_THE_REFERENCE = (*OF_ONNXRUNTIME, "i4", "u4", "f4e2m1", "complex64")


SHAPES = ((2, 3), (), (0, 3), (5,))


@pytest.mark.parametrize("name", OF_THE_REFERENCE)
def test_element_types_and_ranks_pass_through(runner: Runner, name: str, tmp_path: Path) -> None:
    row = ELEMENT_TYPES[name]
    assert row.onnx_number is not None
    ends = {
        end: [
            helper.make_tensor_value_info(f"{end}{number}", row.onnx_number, [None] * len(shape))
            for number, shape in enumerate(SHAPES)
        ]
        for end in "xy"
    }
    nodes = [helper.make_node("Identity", [f"x{n}"], [f"y{n}"]) for n in range(len(SHAPES))]
    graph = helper.make_graph(nodes, "g", ends["x"], ends["y"])
    model = helper.make_model(graph, ir_version=11, opset_imports=[helper.make_opsetid("", 23)])
    path = tmp_path / "identity.onnx"
    path.write_bytes(model.SerializeToString())
    feeds: dict[str, Any] = {}
    for number, shape in enumerate(SHAPES):
        count = int(np.prod(shape))
        array: Any = (np.arange(1, count + 1) % 3 % 2).reshape(shape)
        if name == "string":
            array = np.array(["ä", "", "abc", "d", "e", "f"][:count], object).reshape(shape)
        feeds[f"x{number}"] = array if name == "string" else array.astype(dtype(row))
    outcome = runner.run(path, feeds)
    if runner.name == "onnxruntime" and name not in OF_ONNXRUNTIME:
        assert outcome.status is Status.UNSUPPORTED
        assert outcome.message
        return
    assert (outcome.status, outcome.message) == (Status.OK, "")
    for found, array in zip(outcome.outputs.values(), feeds.values(), strict=True):
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert found.tolist() == array.tolist() if name == "string" else found.tobytes() == array.tobytes()


def test_an_operator_without_implementation_is_unsupported(tmp_path: Path) -> None:
    text = (
        SCATTER.replace('"" : 18', '"" : 10')
        .replace("ScatterElements", "Scatter")
        .replace(', reduction = "add"', "")
    )
    path = save(text, tmp_path / "old.onnx")
    assert runners.find("onnxruntime").run(path, FEEDS).status is Status.OK
    outcome = runners.find("onnx-reference").run(path, FEEDS)
    assert outcome.status is Status.UNSUPPORTED
    expected = "RuntimeImplementationError: No registered implementation for operator 'Scatter' and domain ''"
    assert outcome.message == expected


def test_an_unknown_operator_is_unsupported(runner: Runner, tmp_path: Path) -> None:
    path = save(SCATTER.replace("ScatterElements", "Unknown"), tmp_path / "unknown.onnx")
    outcome = runner.run(path, FEEDS)
    assert outcome.status is Status.UNSUPPORTED
    assert "Unknown" in outcome.message


def test_an_illegal_index_is_refused_with_the_words_of_the_runtime(runner: Runner, tmp_path: Path) -> None:
    outcome = runner.run(save(SCATTER, tmp_path / "m.onnx"), FEEDS | {"indices": np.full((2, 5), 9)})
    assert outcome.status is Status.REFUSED
    assert "9" in outcome.message
    assert "[ONNXRuntimeError]" not in outcome.message
    assert str(Path(onnx.__file__).parent) not in outcome.message


def test_a_model_that_does_not_load_is_refused_without_its_folder(runner: Runner, tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"\x08\x0a\x3a\xff\xff\xff\xff\x0f")
    outcome = runner.run(path, FEEDS)
    assert outcome.status is Status.REFUSED
    assert outcome.message
    assert str(tmp_path) not in outcome.message


def test_they_are_described(runner: Runner) -> None:
    found = runner.availability()
    assert found.is_available
    assert (found.reason, found.remedy) == ("", "")
    assert found.full_name
    assert found.versions == runner.versions()
