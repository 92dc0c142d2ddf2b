"""OpenVINO's devices: outputs, names, types, and everything that goes wrong."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import parser

from ir_scatter import evaluate_model, runners
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.runners.base import Outcome, Runner, Status
from tests.rules.ir_text import PRECISIONS, IrText
from tests.unit.nested_ir import floats, write_branch, write_loop
from tests.unit.nested_onnx import save

pytestmark = pytest.mark.openvino
pytest.importorskip("openvino")

ROOT = Path(__file__).resolve().parents[2]
ENDLESS = """
<ir_version: 10, opset_import: ["" : 18]>
endless (float[3] start) => (float[3] last) <int64 trips = {9000000000}, bool true = {1}> {
  last = Loop (trips, true, start) <
    body = body (int64 step, bool again, float[3] old) => (bool goes_on, float[3] new) {
      new = Add (old, old)
      goes_on = Identity (again)
    }
  >
}
"""


@pytest.fixture(scope="module")
def cpu() -> Runner:
    return runners.find("CPU")


@pytest.fixture(scope="module", params=["CPU", "fold"])
def either(request: pytest.FixtureRequest) -> Runner:
    return runners.find(request.param)


def write_scatter(folder: Path, version: str = "opset12", rows: int = 2) -> str:
    """Write a ScatterElementsUpdate of data [4, 5] on axis 0."""
    ir = IrText()
    data = ir.parameter("data", shape=(4, 5), ports=' names="first,second"')
    indices = ir.parameter("indices", "i64", (rows, 5))
    updates = ir.parameter("updates", shape=(rows, 5))
    axis = ir.const("axis", "i64", 0)
    found = ir.add(
        "scatter",
        "ScatterElementsUpdate",
        version,
        [data, indices, updates, axis],
        [("f32", (4, 5))],
        {"reduction": "sum"},
    )
    ir.add("result", "Result", "opset1", [found], [])
    return ir.write(folder)


def scatter_feeds() -> dict[str, npt.NDArray[Any]]:
    indices = np.array([[0, 1, 2, 3, 0], [1, 1, 1, 1, 1]])
    return {"data": floats(4, 5), "indices": indices, "updates": floats(2, 5)}


def assert_same(outcome: Outcome, expected: Any) -> None:
    assert (outcome.status, outcome.message) == (Status.OK, "")
    assert list(outcome.outputs) == list(expected)
    for name, array in expected.items():
        assert outcome.outputs[name].dtype == array.dtype
        assert np.array_equal(outcome.outputs[name], array), name


def test_feeds_may_have_any_name_of_an_input(either: Runner, tmp_path: Path) -> None:
    path = write_scatter(tmp_path)
    feeds = scatter_feeds()
    expected = evaluate_model(path, feeds)
    for name in ("first", "second", "data"):
        renamed = {"updates": feeds["updates"], name: feeds["data"], "indices": feeds["indices"]}
        assert_same(either.run(path, renamed), expected)


def test_outputs_have_the_names_that_numpy_gives_them(cpu: Runner, tmp_path: Path) -> None:
    ir = IrText()
    x = ir.parameter("x", shape=(2,))
    named = ir.add("named", "ReLU", "opset1", [x], [("f32", (2,))], ports=' names="zeta,alpha\\,beta"')
    plain = ir.add("plain", "ReLU", "opset1", [named], [("f32", (2,))])
    halves = ir.add(
        "halves",
        "Split",
        "opset1",
        [plain, ir.const("axis", "i64", 0)],
        [("f32", (1,)), ("f32", (1,))],
        {"num_splits": "2"},
    )
    for number, source in enumerate((named, plain, named, halves)):
        ir.add(f"result_{number}", "Result", "opset1", [source], [])
    path = ir.write(tmp_path)
    feeds = {"x": np.array([1, -2], np.float32)}
    expected = evaluate_model(path, feeds)
    assert list(expected) == ["alpha,beta", "plain", "result_2", "halves.0"]
    assert_same(cpu.run(path, feeds), expected)


NO_NUMPY = {"nf4", "u1", "dynamic"}
SHAPES = ((2, 3), (), (0, 3), (5,))


def drawn(name: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return elements of a type, in column-major order where there is one."""
    count = int(np.prod(shape))
    if name == "string":
        return np.array(["ä", "", "abc", "d", "e", "f"][:count], object).reshape(shape)
    array = (np.arange(1, count + 1) % 3 % 2).reshape(shape).astype(dtype(ELEMENT_TYPES[name]))
    return np.asfortranarray(array) if array.ndim else array


@pytest.mark.parametrize("name", [name for name in PRECISIONS if name not in NO_NUMPY])
def test_every_element_type_and_rank_passes_through(either: Runner, name: str, tmp_path: Path) -> None:
    ir = IrText()
    for number, shape in enumerate(SHAPES):
        ir.add(f"y{number}", "Result", "opset1", [ir.parameter(f"x{number}", name, ["?"] * len(shape))], [])
    arrays = [drawn(name, shape) for shape in SHAPES]
    outcome = either.run(ir.write(tmp_path), {f"x{number}": array for number, array in enumerate(arrays)})
    assert (outcome.status, outcome.message) == (Status.OK, "")
    for found, array in zip(outcome.outputs.values(), arrays, strict=True):
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert found.tolist() == array.tolist() if name == "string" else found.tobytes() == array.tobytes()


def test_a_type_that_numpy_does_not_have_is_unsupported(cpu: Runner, tmp_path: Path) -> None:
    ir = IrText()
    ir.add("result", "Result", "opset1", [ir.parameter("x", "nf4", (4,))], [])
    outcome = cpu.run(ir.write(tmp_path), {"x": np.zeros(4, np.uint8)})
    assert outcome.status is Status.UNSUPPORTED
    assert "nf4" in outcome.message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"updates": None}, "no array is given for updates"),
        ({"data": None, "indices": None}, "no array is given for first, indices"),
        ({"more": floats(1)}, "the model has no input 'more', expected first, indices, updates"),
        ({"second": floats(4, 5)}, "'data' and 'second' are the same input, expected one of them"),
        ({"updates": floats(3, 5)}, "updates has shape [3, 5], expected [2, 5]"),
        ({"updates": floats(10)}, "updates has shape [10], expected [2, 5]"),
        ({"updates": np.zeros((2, 5))}, "updates is float64, expected float32"),
    ],
)
def test_wrong_feeds_are_refused_in_words(
    either: Runner, change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    feeds = {name: array for name, array in (scatter_feeds() | change).items() if array is not None}
    outcome = either.run(write_scatter(tmp_path), feeds)
    assert (outcome.status, outcome.message) == (Status.REFUSED, message)


def test_dynamic_dimensions_take_what_their_bounds_allow(cpu: Runner, tmp_path: Path) -> None:
    ir = IrText()
    x = ir.parameter("x", shape=("?", "1..3", 2))
    relu = ir.add("relu", "ReLU", "opset1", [x], [("f32", ("?", "?", 2))])
    ir.add("result", "Result", "opset1", [relu], [])
    path = ir.write(tmp_path)
    for shape in ((0, 1, 2), (5, 3, 2), (2, 2, 2)):
        assert cpu.run(path, {"x": floats(*shape)}).outputs["relu"].shape == shape
    outcome = cpu.run(path, {"x": floats(2, 4, 2)})
    assert outcome.status is Status.REFUSED
    assert outcome.message == "x has shape [2, 4, 2], expected [?, 1..3, 2]"


def test_a_crash_of_the_plugin_is_an_outcome_and_the_next_model_runs(tmp_path: Path) -> None:
    runner = runners.find("CPU")
    path, feeds = write_scatter(tmp_path), scatter_feeds()
    expected = evaluate_model(path, feeds)
    far = feeds | {"indices": np.full((2, 5), -(10**9))}
    outcome = runner.run(path, far)
    assert (outcome.status, outcome.message) == (Status.CRASHED, "the process crashed (SIGSEGV)")
    assert not outcome.outputs
    assert outcome.versions["openvino"]
    assert_same(runner.run(path, feeds), expected)


def test_a_model_that_never_ends_is_stopped(tmp_path: Path) -> None:
    path = tmp_path / "endless.onnx"
    path.write_bytes(parser.parse_model(ENDLESS).SerializeToString())
    runner = runners.find("CPU")
    outcome = runner.run(path, {"start": floats(3)}, timeout=3)
    assert (outcome.status, outcome.message) == (Status.TIMEOUT, "no answer within 3 seconds")
    assert_same(
        runner.run(write_scatter(tmp_path), scatter_feeds()),
        evaluate_model(write_scatter(tmp_path), scatter_feeds()),
    )


@pytest.mark.parametrize("device", ["GPU.7", "NPU.7", "AUTO:GPU.7,CPU", "HETERO:GPU.7,CPU"])
def test_a_missing_device_is_unavailable_and_no_other_takes_its_place(device: str, tmp_path: Path) -> None:
    runner = runners.find(device)
    outcome = runner.run(write_scatter(tmp_path), scatter_feeds())
    assert outcome.status is Status.UNAVAILABLE
    assert outcome.message
    assert "/" not in outcome.message.replace("I/O", "")
    found = runner.availability()
    assert not found.is_available
    assert found.reason
    assert found.remedy
    runner.close()


def test_the_processor_is_described(cpu: Runner) -> None:
    found = cpu.availability()
    assert found.is_available
    assert (found.reason, found.remedy) == ("", "")
    assert found.runner == "openvino:CPU"
    assert found.full_name
    assert "FP32" in found.capabilities
    assert found.default_precision in {"f32", "bf16", "f16"}


def test_a_model_that_openvino_does_not_know_is_unsupported(either: Runner, tmp_path: Path) -> None:
    path = Path(write_scatter(tmp_path))
    text = path.read_text().replace(
        'type="ScatterElementsUpdate" version="opset12"', 'type="Own" version="own"'
    )
    path.write_text(text)
    outcome = either.run(path, scatter_feeds())
    assert outcome.status is Status.UNSUPPORTED
    assert outcome.message == "Cannot create Own layer scatter id:4 from unsupported opset: own"


def test_a_model_that_openvino_rejects_is_refused_with_its_words(either: Runner, tmp_path: Path) -> None:
    path = Path(write_scatter(tmp_path))
    path.write_text(
        path.read_text().replace('"sum"', '"mean"').replace("f32", "boolean").replace("FP32", "BOOL")
    )
    outcome = either.run(path, scatter_feeds())
    assert outcome.status is Status.REFUSED
    expected = "ScatterElementsUpdate: The 'mean' reduction type is not supported for boolean tensors"
    assert outcome.message == expected


def test_a_file_that_is_not_there_is_refused_without_its_folder(cpu: Runner, tmp_path: Path) -> None:
    outcome = cpu.run(tmp_path / "missing.xml", {})
    assert outcome.status is Status.REFUSED
    assert "missing.xml" in outcome.message
    assert str(tmp_path) not in outcome.message


def test_repetitions_are_kept_apart(either: Runner, tmp_path: Path) -> None:
    outcome = either.run(write_scatter(tmp_path), scatter_feeds(), repeat=4)
    assert len(outcome.runs) == 4
    assert all(np.array_equal(run["scatter"], outcome.outputs["scatter"]) for run in outcome.runs)
    assert not np.shares_memory(outcome.runs[0]["scatter"], outcome.runs[1]["scatter"])


def test_a_model_with_a_memory_begins_anew_each_time(cpu: Runner, tmp_path: Path) -> None:
    ir = IrText()
    x = ir.parameter("x", shape=(3,))
    variable = {"variable_id": "v", "variable_type": "f32", "variable_shape": "3"}
    start = ir.const("start", "f32", [1, 1, 1])
    old = ir.add("old", "ReadValue", "opset6", [start], [("f32", (3,))], variable)
    new = ir.add("new", "Add", "opset1", [old, x], [("f32", (3,))])
    ir.add("kept", "Assign", "opset6", [new], [("f32", (3,))], variable)
    ir.add("result", "Result", "opset1", [new], [])
    path = ir.write(tmp_path)
    outcome = cpu.run(path, {"x": floats(3)}, repeat=3)
    assert [run["new"].tolist() for run in outcome.runs] == [[1, 1.25, 1.5]] * 3


def test_the_precision_is_that_which_is_asked_for(cpu: Runner, tmp_path: Path) -> None:
    ir = IrText()
    x = ir.parameter("x", shape=(64, 64))
    product = ir.add("product", "MatMul", "opset1", [x, x], [("f32", (64, 64))])
    ir.add("result", "Result", "opset1", [product], [])
    path = ir.write(tmp_path)
    feeds = {"x": (floats(64, 64) % 1.7).astype(np.float32)}
    full = cpu.run(path, feeds)
    assert full.precision == "f32"
    exact = feeds["x"].astype(np.float64) @ feeds["x"]
    assert np.abs(full.outputs["product"] - exact).max() < 1e-3
    if "BF16" in cpu.availability().capabilities:
        half = cpu.run(path, feeds, precision="bf16")
        assert half.precision == "bf16"
        assert np.abs(half.outputs["product"] - exact).max() > 1e-3


def test_what_the_runtime_made_of_the_nodes(cpu: Runner, tmp_path: Path) -> None:
    path = write_scatter(tmp_path)
    assert cpu.run(path, scatter_feeds()).facts == ()
    facts = cpu.run(path, scatter_feeds(), profile=True).facts
    (found,) = [one for one in facts if "scatter" in one.originals]
    assert found.kind == "ScatterElementsUpdate"
    assert found.precision == "f32"
    assert found.kernel
    assert found.microseconds is not None
    assert found.microseconds >= 0


def test_bodies_give_what_numpy_gives(either: Runner, tmp_path: Path) -> None:
    path = write_branch(tmp_path)
    for flag in (True, False):
        feeds = {"flag": np.array(flag), "a": floats(2, 3), "b": floats(2, 3) ** 2}
        assert_same(either.run(path, feeds), evaluate_model(path, feeds))
    path, feeds = write_loop(tmp_path, 3), {"cache": floats(7, 5) - 9, "row": floats(1, 5)}
    outcome = either.run(path, feeds)
    if outcome.status is not Status.OK:
        assert either.name == "openvino:fold"
        assert (outcome.status, outcome.message) == (Status.UNSUPPORTED, "Loop loop is not folded")
    else:
        assert_same(outcome, evaluate_model(path, feeds))


def write_sum(folder: Path, by: float, name: str = "sum") -> Path:
    ir = IrText()
    x = ir.parameter("x", shape=(3,))
    moved = ir.add("moved", "Add", "opset1", [x, ir.const("by", "f32", [by] * 3)], [("f32", (3,))])
    ir.add("result", "Result", "opset1", [moved], [])
    return Path(ir.write(folder, name))


def sums(runner: Runner, path: Path) -> Any:
    return runner.run(path, {"x": floats(3)}, profile=True).outputs["moved"].tolist()


def test_many_models_take_turns_and_changed_files_are_read_again(cpu: Runner, tmp_path: Path) -> None:
    paths = [write_sum(tmp_path, number, f"model_{number}") for number in range(8)]
    for _ in range(3):
        for number, path in enumerate(paths):
            assert sums(cpu, path) == [number, number + 0.25, number + 0.5]
    paths[0].with_suffix(".bin").write_bytes(np.full(3, 2, np.float32).tobytes())
    assert sums(cpu, paths[0]) == [2, 2.25, 2.5]
    paths[0].write_text(paths[0].read_text().replace('"Add"', '"Multiply"'))
    assert sums(cpu, paths[0]) == [0, 0.5, 1]


def test_a_model_may_be_prepared(tmp_path: Path) -> None:
    runner: Any = runners.find("CPU")
    runner.close()
    good, bad = write_sum(tmp_path, 1), write_sum(tmp_path, 1, "bad")
    bad.write_text(bad.read_text().replace('"Add"', '"NoSuchThing"'))
    starts = runner.child.starts
    runner.prepare(bad)
    runner.prepare(good)
    first = runner.run(good, {"x": floats(3)}, profile=True)
    again = runner.run(good, {"x": floats(3)}, profile=True)
    assert again.seconds < first.seconds, "what the first took has the compilation in it"
    assert first.outputs["moved"].tolist() == again.outputs["moved"].tolist() == [1, 1.25, 1.5]
    assert "NoSuchThing" in runner.run(bad, {"x": floats(3)}).message
    assert runner.child.starts == starts + 1
    runner.prepare(good)
    assert runner.run(good, {"x": floats(3)}, timeout=0.001).status is Status.TIMEOUT
    runner.prepare(good)
    runner.close()
    assert runner.child.process_id is None


def test_an_input_with_an_initializer_cannot_be_fed(cpu: Runner, tmp_path: Path) -> None:
    text = """
<ir_version: 10, opset_import: ["" : 18]>
default (float[3] x, float[3] w) => (float[3] y) <float[3] w = {1, 2, 3}> { y = Add (x, w) }
"""
    path = save(text, tmp_path / "default.onnx")
    assert cpu.run(path, {"x": floats(3)}).outputs["y"].tolist() == [1, 2.25, 3.5]
    outcome = cpu.run(path, {"x": floats(3), "w": floats(3)})
    assert outcome.status is Status.UNSUPPORTED
