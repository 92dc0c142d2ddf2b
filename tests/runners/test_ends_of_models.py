"""Inputs and outputs that a runtime names, types or shapes in another way than the file does."""

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import ir_scatter
from ir_scatter import runners
from ir_scatter.compare.nodes import nodes_by_tap
from ir_scatter.compare.result import CompareSettings
from ir_scatter.compare.run import compare
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.core.errors import BadFeed
from ir_scatter.inputs.model import make_feeds
from ir_scatter.report import comparison_json, comparison_text
from ir_scatter.runners.base import Outcome, Runner, Status
from tests.cli.conftest import Cli, cli, elsewhere
from tests.compare.planted import FakeRunner
from tests.models.ir_text import IrText, Output
from tests.models.onnx_text import save

__all__ = ["cli", "elsewhere"]

TYPES = ["f16", "f32", "f64", "bf16", "boolean", "u8", "i8", "i16", "u16", "i32", "u32", "i64", "u64"]


def write_version_10(folder: Path, type: str) -> Path:
    """Write a model with what version 10 is adapted at, and with conversions of its own."""
    ir = IrText()
    data, updates = ir.parameter("data", type, (3, 4)), ir.parameter("updates", type, (1, 4))
    floats = ir.parameter("floats", "f32", (2, 3))
    indices, axis = ir.const("indices", "i64", [1]), ir.const("axis", "i32", 0)
    first = ir.const("first", "i64", 0)
    inputs = [data, indices, updates, axis]
    scatter = ir.add("zz", "ScatterUpdate", "opset3", inputs, [(type, (3, 4))])
    into = ir.add("into", "Convert", "opset1", [floats], [("f16", (2, 3))], {"destination_type": "f16"})
    back = ir.add("back", "Convert", "opset1", [into], [("f32", (2, 3))], {"destination_type": "f32"})
    truth = ir.add(
        "truth", "Convert", "opset1", [floats], [("boolean", (2, 3))], {"destination_type": "boolean"}
    )
    shape = ir.const("shape", "i64", [4, 3])
    turned = ir.add(
        "turned", "Reshape", "opset1", [scatter, shape], [(type, (4, 3))], {"special_zero": "false"}
    )
    halves = [(type, (2, 3)), (type, (2, 3))]
    half = ir.add("half", "Split", "opset1", [turned, first], halves, {"num_splits": "2"})
    for number, source in enumerate((scatter, back, truth, Output(half.layer, half.port + 1, type, (2, 3)))):
        ir.add(f"result{number}", "Result", "opset1", [source], [])
    path = Path(ir.write(folder))
    text = path.read_text()
    assert 'version="11"' in text
    path.write_text(text.replace('version="11"', 'version="10"', 1))
    return path


@pytest.mark.parametrize("type", TYPES)
def test_version_10_keeps_its_types_and_names(type: str, tmp_path: Path) -> None:
    path = write_version_10(tmp_path, type)
    feeds = make_feeds(path, seed=3)
    assert feeds["data"].dtype == dtype(ELEMENT_TYPES[type])
    expected = ir_scatter.evaluate_model(path, feeds)
    taps = tuple(nodes_by_tap(ir_scatter.read(path)))
    for name in ("CPU", "fold"):
        outcome = runners.find(name).run(path, feeds, taps=taps)
        assert (outcome.status, outcome.message) == (Status.OK, "")
        assert {name: (one.dtype, one.shape) for name, one in outcome.outputs.items()} == {
            name: (one.dtype, one.shape) for name, one in expected.items()
        }
        for output, array in expected.items():
            assert np.array_equal(outcome.outputs[output], array), (name, output)
        (tapped,) = outcome.tapped
        assert tapped.problem == ""
        assert np.array_equal(tapped.executions[0].output, expected["zz"])


def test_version_10_is_compared(cli: Cli, tmp_path: Path) -> None:
    for type in ("f16", "boolean"):
        path = write_version_10(tmp_path, type)
        done = cli("compare", str(path), "--on", "numpy", "--on", "CPU", "--on", "fold")
        assert (done.code, done.err) == (0, "")
        assert done.out.endswith("\n10 equal on 1 case\n"), done.out


ENDS = {
    "an input in front of a Dropout": ("", "d = Dropout (data)", "d", ""),
    "two of them": ("", "c = Dropout (data) d = Dropout (c)", "d", ""),
    "one that is read beside it": ("", "d = Dropout (data) e = Relu (data)", "d", ", float[3, 4] e"),
    "one that is an output": ("", "d = Dropout (data)", "d", ", float[3, 4] d"),
    "an input behind which nothing happens": ("", "d = Identity (data)", "d", ""),
    "inputs of a Loop that never begins": (
        ", float[2] more",
        """trips = Constant <value_int = 3> () no = Constant <value = bool {0}> ()
  m, d = Loop (trips, no, more, data) <
    body = g (int64 i, bool k, float[2] a, float[3, 4] b) => (bool goes, float[2] c, float[3, 4] e) {
      goes = Identity (k) c = Add (a, a) e = Add (b, b)
    }
  >""",
        "d",
        ", float[2] m",
    ),
    "an input that is an output": ("", "", "data", ", float[3, 4] data"),
    "an output twice": ("", "", "data", ", float[3, 4] out"),
    "an input that nobody reads": (", float[2] more", "", "data", ""),
}


@pytest.mark.onnxruntime
@pytest.mark.parametrize("ends", ENDS)
def test_ends_of_onnx_models_are_compared(ends: str, cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    inputs, nodes, data, outputs = ENDS[ends]
    text = f"""
<ir_version: 10, opset_import: ["" : 18]>
ends (float[3, 4] data{inputs}, int64[2, 4] indices, float[2, 4] updates) => (float[3, 4] out{outputs}) {{
  {nodes}
  out = ScatterElements ({data}, indices, updates)
}}
"""
    save(text, tmp_path / "ends.onnx")
    done = cli("compare", "ends.onnx", "--on", "CPU", "--on", "onnxruntime", "--on", "onnx-reference")
    assert done.code == 0, done.out + done.err
    assert "not compared" not in done.out


RENAMED = {
    "the first of a sequence": "s = SequenceConstruct (p, q) a = SequenceAt (s, zero)",
    "the second of a sequence": "s = SequenceConstruct (p, q) a = SequenceAt (s, one)",
    "what was inserted": "s = SequenceConstruct (p) t = SequenceInsert (s, q) a = SequenceAt (t, one)",
    "both": "s = SequenceConstruct (p, q) b = SequenceAt (s, zero) c = SequenceAt (s, one) a = Sub (b, c)",
    "a sequence and a Dropout": "d = Dropout (q) s = SequenceConstruct (d, p) a = SequenceAt (s, zero)",
}


@pytest.mark.onnxruntime
@pytest.mark.parametrize("name", RENAMED)
def test_inputs_that_the_frontend_renames(name: str, tmp_path: Path) -> None:
    """OpenVINO gives an input the name of what is taken out of a sequence; the order of inputs stays."""
    pytest.importorskip("onnxruntime")
    text = f"""
<ir_version: 10, opset_import: ["" : 18]>
renamed (float[2, 3] p, float[2, 3] q, int64[1, 1] i, float[1, 3] u) => (float[2, 3] y) {{
  zero = Constant <value_int = 0> () one = Constant <value_int = 1> ()
  {RENAMED[name]}
  y = ScatterND (a, i, u)
}}
"""
    path = save(text, tmp_path / "renamed.onnx")
    feeds = {
        "p": np.arange(6, dtype=np.float32).reshape(2, 3), "q": np.full((2, 3), 50, np.float32),
        "i": np.array([[1]]), "u": np.full((1, 3), 7, np.float32),
    }  # fmt: skip
    first, second = (runners.find(runner).run(path, feeds) for runner in ("CPU", "onnxruntime"))
    assert (first.status, first.message) == (Status.OK, "")
    assert np.array_equal(first.outputs["y"], second.outputs["y"])


def test_an_input_that_is_a_sequence_is_named(cli: Cli, tmp_path: Path) -> None:
    text = """
<ir_version: 10, opset_import: ["" : 18]>
sequence (seq(float[2, 3]) a, int64[1, 1] i, float[1, 3] u) => (float[2, 3] y) {
  zero = Constant <value_int = 0> ()
  d = SequenceAt (a, zero)
  y = ScatterND (d, i, u)
}
"""
    save(text, tmp_path / "sequence.onnx")
    done = cli("compare", "sequence.onnx", "--on", "CPU")
    assert "input a is of type sequence, expected a tensor" in done.out + done.err
    assert "not known" not in done.out + done.err


@pytest.mark.onnxruntime
def test_an_input_without_a_shape_takes_any(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    text = """
<ir_version: 10, opset_import: ["" : 18]>
shapeless (float[] data, int64[2, 4] indices, float[2, 4] updates) => (float[] out) {
  out = ScatterElements (data, indices, updates)
}
"""
    path = save(text, tmp_path / "shapeless.onnx")
    model = onnx.load(path)
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.ClearField("shape")
    onnx.save(model, path)
    done = cli("compare", "shapeless.onnx", "--on", "numpy", "--on", "onnxruntime", "--on", "onnx-reference")
    assert done.code == 0, done.out + done.err
    done = cli("compare", "shapeless.onnx", "--on", "CPU", "--on", "numpy", "--on", "onnxruntime")
    assert done.code in {0, 4}  # OpenVINO's words, if it does not want it, and the others all the same
    assert "Error" not in done.err
    assert "equal" in done.out


class Complaining(FakeRunner):
    """Has something against every feed."""

    def run(self, *_: Any, **__: Any) -> Outcome:
        raise BadFeed("data is red, expected blue")


def test_a_complaint_of_a_runner_is_its_own(tmp_path: Path) -> None:
    path = write_version_10(tmp_path, "f32")
    model = ir_scatter.read(path)
    fakes: list[Runner] = [Complaining("picky"), runners.find("CPU")]
    for found in (compare(path, fakes, CompareSettings()), compare([model, model], fakes, CompareSettings())):
        told = {one.runner: one for one in found.outcomes}
        assert told["picky"].status is Status.REFUSED
        assert told["picky"].message.endswith("data is red, expected blue")
        assert told["openvino:CPU"].status is Status.OK
        assert found.comparisons
    with pytest.raises(BadFeed):
        compare(path, fakes, CompareSettings(), feeds={"data": np.zeros((3, 4), np.float32)})


def test_a_process_that_died_and_was_started_again_is_remarked_on(tmp_path: Path) -> None:
    path = write_version_10(tmp_path, "f32")
    runner = runners.find("CPU")
    assert runner.availability().is_available
    process = runner.child.process_id
    assert process is not None
    os.kill(process, signal.SIGKILL)
    found = compare(path, [runner], CompareSettings())
    said = (
        "openvino:CPU: the process crashed (SIGKILL), after other requests; a new process completed this one"
    )
    assert said in found.remarks
    assert said in comparison_text.text(found)
    assert said in comparison_json.document(found)["remarks"]
    assert not found.differs
    assert said not in compare(path, [runner], CompareSettings()).remarks
