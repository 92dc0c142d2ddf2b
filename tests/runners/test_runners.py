"""Every runtime: outputs, names, types, and everything that goes wrong."""

import os
import signal
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest

from ir_scatter import evaluate_model, runners
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.core.process import Failure
from ir_scatter.runners.base import Outcome, Runner, Status
from ir_scatter.runners.openvino.inputs import to_array
from tests.models.ir_text import PRECISIONS, IrText
from tests.models.nested_ir import floats, write_branch, write_loop
from tests.models.onnx_graph import OnnxGraph
from tests.models.onnx_text import save

pytestmark = [pytest.mark.openvino, pytest.mark.onnxruntime]
pytest.importorskip("openvino")
pytest.importorskip("onnxruntime")

SCATTER = """
<ir_version: 10, opset_import: ["" : 18]>
scatter (float[4, N] data, int64[2, 5] indices, float[2, 5] updates, float[4, 5] more) => (float[4, N] out, float[4, N] sum)
<float[4, 5] more = {MORE}> {
  out = ScatterElements <axis = 0, reduction = "add"> (data, indices, updates)
  sum = Add (out, more)
}
""".replace("MORE", ", ".join(["1"] * 20))
FEEDS: dict[str, npt.NDArray[Any]] = {
    "data": floats(4, 5),
    "indices": np.array([[0, 1, 2, 3, 0], [1, 1, 1, 1, 1]]),
    "updates": floats(2, 5),
}
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


@pytest.fixture(scope="module", params=["onnxruntime", "onnx-reference"])
def of_onnx(request: pytest.FixtureRequest) -> Runner:
    return runners.find(request.param)


@pytest.fixture(scope="module", params=["CPU", "fold", "onnxruntime", "onnx-reference"])
def runner(request: pytest.FixtureRequest) -> Runner:
    return runners.find(request.param)


def write_scatter(folder: Path) -> str:
    """Write a ScatterElementsUpdate of data [4, 5] on axis 0."""
    ir = IrText()
    data = ir.parameter("data", shape=(4, 5), ports=' names="first,second"')
    indices, updates = ir.parameter("indices", "i64", (2, 5)), ir.parameter("updates", shape=(2, 5))
    inputs = [data, indices, updates, ir.const("axis", "i64", 0)]
    attributes = {"reduction": "sum"}
    found = ir.add("scatter", "ScatterElementsUpdate", "opset12", inputs, [("f32", (4, 5))], attributes)
    ir.add("result", "Result", "opset1", [found], [])
    return ir.write(folder)


def assert_same(outcome: Outcome, expected: Any) -> None:
    assert (outcome.status, outcome.message) == (Status.OK, "")
    assert list(outcome.outputs) == list(expected)
    for name, array in expected.items():
        assert outcome.outputs[name].dtype == array.dtype
        assert np.array_equal(outcome.outputs[name], array), name


def test_a_model_gives_what_it_should(runner: Runner, tmp_path: Path) -> None:
    path = save(SCATTER, tmp_path / "m.onnx")
    outcome = runner.run(path, FEEDS, repeat=2)
    assert outcome.precision == ("f32" if runner.name == "openvino:CPU" else "model")
    assert outcome.versions == runner.versions != {}
    expected = evaluate_model(path, FEEDS)
    assert_same(outcome, expected)
    first, second = outcome.runs
    assert all(np.array_equal(second[name], first[name]) for name in expected)
    assert not np.shares_memory(first["out"], second["out"])


def test_an_input_with_an_initializer_may_be_fed_unless_it_is_a_constant(
    runner: Runner, tmp_path: Path
) -> None:
    path = save(SCATTER, tmp_path / "m.onnx")
    outcome = runner.run(path, FEEDS | {"more": np.full((4, 5), 3, np.float32)})
    if runner.name.startswith("openvino"):
        message = "OpenVINO reads input 'more' as a constant, as it has an initializer"
        assert (outcome.status, outcome.message) == (Status.UNSUPPORTED, message)
    else:
        assert np.array_equal(outcome.outputs["sum"], evaluate_model(path, FEEDS)["sum"] + 2)


def test_feeds_may_have_any_name_of_an_input(either: Runner, tmp_path: Path) -> None:
    path = write_scatter(tmp_path)
    expected = evaluate_model(path, FEEDS)
    for name in ("first", "second", "data"):
        renamed = {"updates": FEEDS["updates"], name: FEEDS["data"], "indices": FEEDS["indices"]}
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
def write_results(folder: Path, name: str) -> Path:
    """Write inputs of a type that are outputs, as an IR or, where ONNX alone has the type, as its own."""
    ir = IrText()
    for number, shape in enumerate(SHAPES):
        ir.add(f"y{number}", "Result", "opset1", [ir.parameter(f"x{number}", name, ["?"] * len(shape))], [])
    return Path(ir.write(folder))


def write_identities(folder: Path, name: str) -> Path:
    graph = OnnxGraph(23, ir_version=11)
    for n, shape in enumerate(SHAPES):
        sizes = [None] * len(shape)
        graph.output(graph.add("Identity", [graph.input(f"x{n}", name, sizes)], f"y{n}"), name, sizes)
    return graph.write(folder / "identity.onnx")


OF_ONNXRUNTIME = ("f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "u8", "boolean", "string")
OF_THE_REFERENCE = (*OF_ONNXRUNTIME, "i4", "u4", "f4e2m1", "complex64")
OF_AN_IR = [name for name in PRECISIONS if name not in NO_NUMPY]
TYPES = [(end, name) for end in ("CPU", "fold") for name in OF_AN_IR]
TYPES += [(end, name) for end in ("onnxruntime", "onnx-reference") for name in OF_THE_REFERENCE]


@pytest.mark.parametrize(("end", "name"), TYPES)
def test_every_element_type_and_rank_passes_through(end: str, name: str, tmp_path: Path) -> None:
    arrays = [drawn(name, shape) for shape in SHAPES]
    path = (write_identities if end.startswith("onnx") else write_results)(tmp_path, name)
    outcome = runners.find(end).run(path, {f"x{number}": array for number, array in enumerate(arrays)})
    if end == "onnxruntime" and name not in OF_ONNXRUNTIME:
        assert outcome.status is Status.UNSUPPORTED
        assert outcome.message
        return
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


OPENVINO, ONNX = ("CPU", "fold"), ("onnxruntime", "onnx-reference")
WRONG_FEEDS: list[tuple[tuple[str, ...], dict[str, Any], str]] = [
    (OPENVINO + ONNX, {"updates": None}, "no array is given for updates"),
    (OPENVINO + ONNX, {"updates": floats(3, 5)}, "updates has shape [3, 5], expected [2, 5]"),
    (OPENVINO + ONNX, {"updates": floats(10)}, "updates has shape [10], expected [2, 5]"),
    (OPENVINO + ONNX, {"updates": np.zeros((2, 5))}, "updates is float64, expected float32"),
    (ONNX, {"other": floats(1)}, "the model has no input 'other', expected data, indices, updates, more"),
    (ONNX, {"data": floats(4)}, "data has shape [4], expected [4, N]"),
    (OPENVINO, {"data": None, "indices": None}, "no array is given for first, indices"),
    (OPENVINO, {"more": floats(1)}, "the model has no input 'more', expected first, indices, updates"),
    (OPENVINO, {"second": floats(4, 5)}, "'data' and 'second' are the same input, expected one of them"),
]


@pytest.mark.parametrize(
    ("name", "change", "message"), [(name, *rest) for names, *rest in WRONG_FEEDS for name in names]
)
def test_wrong_feeds_are_refused_in_words(
    name: str, change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = write_scatter(tmp_path) if name in OPENVINO else save(SCATTER, tmp_path / "m.onnx")
    feeds = {name: array for name, array in (FEEDS | change).items() if array is not None}
    outcome = runners.find(name).run(path, feeds)
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
    path = write_scatter(tmp_path)
    expected = evaluate_model(path, FEEDS)
    outcome = runner.run(path, FEEDS | {"indices": np.full((2, 5), -(10**9))})
    assert (outcome.status, outcome.message) == (Status.CRASHED, "the process crashed (SIGSEGV)")
    assert not outcome.outputs
    assert outcome.versions["openvino"]
    assert_same(runner.run(path, FEEDS), expected)


def test_a_model_that_never_ends_is_stopped(cpu: Runner, tmp_path: Path) -> None:
    outcome = cpu.run(save(ENDLESS, tmp_path / "endless.onnx"), {"start": floats(3)}, timeout=2)
    assert (outcome.status, outcome.message) == (Status.TIMEOUT, "no answer within 2 seconds")
    path = write_scatter(tmp_path)
    assert_same(cpu.run(path, FEEDS), evaluate_model(path, FEEDS))


@pytest.mark.parametrize("device", ["GPU.7", "NPU.7", "AUTO:GPU.7,CPU", "HETERO:GPU.7,CPU"])
def test_a_missing_device_is_unavailable_and_no_other_takes_its_place(device: str, tmp_path: Path) -> None:
    runner = runners.find(device)
    outcome = runner.run(write_scatter(tmp_path), FEEDS)
    assert outcome.status is Status.UNAVAILABLE
    assert outcome.message
    assert "/" not in outcome.message.replace("I/O", "")
    found = runner.availability()
    assert not found.is_available
    assert found.reason
    assert found.remedy
    runner.close()


def test_they_are_described(runner: Runner) -> None:
    found = runner.availability()
    assert (found.runner, found.is_available, found.reason, found.remedy) == (runner.name, True, "", "")
    assert found.full_name
    assert found.versions == {name: metadata.version(name) for name in runner.packages}
    if runner.name == "openvino:CPU":
        assert "FP32" in found.capabilities
        assert found.default_precision in {"f32", "bf16", "f16"}


def test_a_model_that_openvino_does_not_know_is_unsupported(either: Runner, tmp_path: Path) -> None:
    path = Path(write_scatter(tmp_path))
    text = path.read_text().replace(
        'type="ScatterElementsUpdate" version="opset12"', 'type="Own" version="own"'
    )
    path.write_text(text)
    outcome = either.run(path, FEEDS)
    assert outcome.status is Status.UNSUPPORTED
    assert outcome.message == "Cannot create Own layer scatter id:4 from unsupported opset: own"


def test_a_model_that_openvino_rejects_is_refused_with_its_words(either: Runner, tmp_path: Path) -> None:
    path = Path(write_scatter(tmp_path))
    path.write_text(
        path.read_text().replace('"sum"', '"mean"').replace("f32", "boolean").replace("FP32", "BOOL")
    )
    outcome = either.run(path, FEEDS)
    assert outcome.status is Status.REFUSED
    expected = "ScatterElementsUpdate: The 'mean' reduction type is not supported for boolean tensors"
    assert outcome.message == expected


def test_a_file_that_is_not_there_is_refused_without_its_folder(cpu: Runner, tmp_path: Path) -> None:
    outcome = cpu.run(tmp_path / "missing.xml", {})
    assert outcome.status is Status.REFUSED
    assert "missing.xml" in outcome.message
    assert str(tmp_path) not in outcome.message


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
    feeds, once, on = {"x": floats(3)}, [1, 1.25, 1.5], [[1, 1.25, 1.5], [1, 1.5, 2], [1, 1.75, 2.5]]
    for keeps_states, expected in ((False, [once] * 3), (True, on), (True, on), (False, [once] * 3)):
        outcome = cpu.run(path, feeds, repeat=3, keeps_states=keeps_states)
        assert [run["new"].tolist() for run in outcome.runs] == expected
        answers = cpu.stream(path, [feeds] * 3, keeps_states=keeps_states)
        assert [answer.outputs[0].tolist() for answer in answers] == expected


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
    assert cpu.run(path, FEEDS).facts == ()
    facts = cpu.run(path, FEEDS, profile=True).facts
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


def test_what_the_first_run_took_has_the_compilation_in_it(tmp_path: Path) -> None:
    runner, path = runners.find("CPU"), write_sum(tmp_path, 1)
    runner.close()
    runner.start()
    assert runner.child.process_id is not None
    first, again = (runner.run(path, {"x": floats(3)}) for _ in range(2))
    assert again.seconds < first.seconds
    os.kill(runner.child.process_id, signal.SIGSTOP)  # a small model may be quicker than any limit
    assert runner.run(path, {"x": floats(3)}, timeout=0.01).status is Status.TIMEOUT


def test_an_operator_without_implementation_is_unsupported(tmp_path: Path) -> None:
    text = SCATTER.replace('"" : 18', '"" : 10').replace("ScatterElements", "Scatter")
    path = save(text.replace(', reduction = "add"', ""), tmp_path / "old.onnx")
    assert runners.find("onnxruntime").run(path, FEEDS).status is Status.OK
    outcome = runners.find("onnx-reference").run(path, FEEDS)
    assert outcome.status is Status.UNSUPPORTED
    expected = "RuntimeImplementationError: No registered implementation for operator 'Scatter' and domain ''"
    assert outcome.message == expected


def test_an_unknown_operator_is_unsupported(of_onnx: Runner, tmp_path: Path) -> None:
    path = save(SCATTER.replace("ScatterElements", "Unknown"), tmp_path / "unknown.onnx")
    outcome = of_onnx.run(path, FEEDS)
    assert outcome.status is Status.UNSUPPORTED
    assert "Unknown" in outcome.message


def test_an_illegal_index_is_refused_with_the_words_of_the_runtime(of_onnx: Runner, tmp_path: Path) -> None:
    outcome = of_onnx.run(save(SCATTER, tmp_path / "m.onnx"), FEEDS | {"indices": np.full((2, 5), 9)})
    assert outcome.status is Status.REFUSED
    assert "9" in outcome.message
    assert "[ONNXRuntimeError]" not in outcome.message
    assert str(Path(onnx.__file__).parent) not in outcome.message


def test_a_model_that_does_not_load_is_refused_without_its_folder(of_onnx: Runner, tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"\x08\x0a\x3a\xff\xff\xff\xff\x0f")
    outcome = of_onnx.run(path, FEEDS)
    assert outcome.status is Status.REFUSED
    assert outcome.message
    assert str(tmp_path) not in outcome.message


def test_a_tensor_that_cannot_be_read_is_of_a_process_that_is_damaged() -> None:
    """Folding that writes outside its memory may hit what OpenVINO knows of the output."""
    import openvino

    class Damaged:
        def get_element_type(self) -> Any:
            return openvino.Type.f32

        @property
        def data(self) -> Any:
            raise IndexError("map::at")

    with pytest.raises(Failure, match="the process is damaged: an output cannot be read: map::at"):
        to_array(Damaged())
