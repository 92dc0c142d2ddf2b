"""`convert --for` of a device of OpenVINO inlines local functions, whose calls its frontend refuses."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from ir_scatter import convert, evaluate_model, runners, validate
from ir_scatter.convert.fixes import _remaining_defects
from ir_scatter.runners.base import Status

HEAD = '<ir_version: 10, opset_import: ["" : 18, "own" : 1]>'
OWN = '<domain: "own", opset_import: ["" : 18, "own" : 1]>'
MODELS = {
    "twice": f"""{HEAD} main (float[2, 3] data, int64[1, 3] at, float[1, 3] new) => (float[2, 3] out) {{
            a = own.put <axis = 0> (data, at, new) out = own.put (a, at, new) }}
        {OWN} put <axis: int = 0> (d, i, u) => (o) {{
            o = ScatterElements <axis: int = @axis, reduction = "add"> (d, i, u) }}""",
    "in bodies, through another function": f"""
        {HEAD} main (float[2, 3] data, int64[1, 3] at, float[1, 3] new, bool on) => (float[2, 3] out) {{
            out = If (on) <
                then_branch = t () => (float[2, 3] o) {{ o = own.more (data, at, new) }},
                else_branch = e () => (float[2, 3] o) {{ o = own.put <axis = 0> (data, at, new) }}> }}
        {OWN} put <axis> (d, i, u) => (o) {{ o = ScatterElements <axis: int = @axis> (d, i, u) }}
        {OWN} more (d, i, u) => (o) {{ n = Neg (u) o = own.put <axis = 0> (d, i, n) }}""",
    "of tuples, reduced": f"""
        {HEAD} main (float[2, 3] data, int64[1, 1] at, float[1, 3] new) => (float[2, 3] out) {{
            out = own.put (data, at, new) }}
        {OWN} put (d, i, u) => (o) {{ o = ScatterND <reduction = "mul"> (d, i, u) }}""",
    "without scatter nodes": f"""
        {HEAD} main (float[2, 3] data) => (float[2, 3] out) {{ out = own.f (data) }}
        {OWN} f (a) => (b) {{ b = Neg (a) }}""",
    "of an older opset": f"""
        {HEAD} main (float[2, 3] data, int64[1, 3] at, float[1, 3] new) => (float[2, 3] out) {{
            out = own.put (data, at, new) }}
        <domain: "own", opset_import: ["" : 11]> put (d, i, u) => (o) {{
            s = ReduceSum <axes = [0], keepdims = 1> (u)
            o = ScatterElements <axis = 0> (d, i, s) }}""",
}


def written(name: str, folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(parser.parse_model(MODELS[name]), path)
    return path


def feeds_of(path: Path) -> dict[str, np.ndarray]:
    shapes = {"data": (2, 3), "new": (1, 3)}
    feeds = {
        name: np.arange(6, dtype=np.float32)[: np.prod(size)].reshape(size) for name, size in shapes.items()
    }
    feeds["new"] = feeds["new"] + 7
    inputs = {info.name: info for info in onnx.load(path).graph.input}
    if "at" in inputs:
        feeds["at"] = np.ones([dim.dim_value for dim in inputs["at"].type.tensor_type.shape.dim], np.int64)
    feeds["on"] = np.array(True)
    return {name: feeds[name] for name in inputs}


@pytest.mark.parametrize("device", ["CPU", pytest.param("GPU@cpu", marks=pytest.mark.long)])
@pytest.mark.parametrize("name", MODELS)
def test_the_device_refuses_it_before_and_is_right_after(name: str, device: str, tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    runner = runners.find(device)
    if not runner.availability().is_available:
        pytest.skip(f"{device} does not run here")
    path = written(name, tmp_path)
    feeds = feeds_of(path)
    assert runner.run(path, feeds, timeout=60).status is not Status.OK
    conversion = convert(path, targets=[device])
    assert not conversion.refused
    assert conversion.inlined
    conversion.write(after := tmp_path / "after.onnx")
    onnx.checker.check_model(after, full_check=True)
    outcome = runner.run(after, feeds, timeout=60)
    runner.close()
    assert outcome.status is Status.OK, outcome.message
    for found, expected in zip(outcome.outputs.values(), evaluate_model(path, feeds).values(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("device", ["onnxruntime"])
def test_functions_stay_where_a_runtime_calls_them(device: str, tmp_path: Path) -> None:
    conversion = convert(written("twice", tmp_path), targets=[device])
    assert not conversion.inlined
    assert conversion.model.functions


def test_functions_stay_without_a_device(tmp_path: Path) -> None:
    assert not convert(written("of tuples, reduced", tmp_path), "ScatterElements").inlined


def test_a_node_is_chosen_by_its_place_in_the_function(tmp_path: Path) -> None:
    path = written("of tuples, reduced", tmp_path)
    conversion = convert(path, "ScatterElements", targets=["CPU"], nodes=["own::put/o"])
    assert [converted.node.scope for converted in conversion.converted] == ["out"]
    assert conversion.inlined_from == {"out": "own::put/o"}


def test_the_finding_is_gone_after_the_conversion(tmp_path: Path) -> None:
    path = written("twice", tmp_path)
    (finding,) = [each for each in validate(path, targets=["CPU"]) if each.code == "DEV117"]
    conversion = convert(path, targets=["CPU"])
    assert finding.location.scope in conversion.inlined_from.values()
    conversion.write(after := tmp_path / "after.onnx")
    assert "DEV117" not in {each.code for each in validate(after, targets=["CPU"])}
    left = _remaining_defects(str(path), ("CPU",))
    assert left is not None
    assert "DEV117" not in left[finding.location.scope]


def test_what_cannot_be_inlined_is_refused_with_the_reason(tmp_path: Path) -> None:
    text = f"""{HEAD} main (float[2] x) => (float[2] y) {{ y = own.f (x) }}
        {OWN} f (a) => (b) {{ b = own.f (a) }}"""
    path = tmp_path / "model.onnx"
    onnx.save(parser.parse_model(text), path)
    conversion = convert(path, targets=["CPU"])
    assert [(refused.code, refused.message) for refused in conversion.refused] == [
        (
            "CVT113",
            "OpenVINO refuses calls of functions, and they cannot be inlined: function own::f calls itself",
        )
    ]


def test_external_weights_stay_beside_the_model(tmp_path: Path) -> None:
    model = parser.parse_model(f"""{HEAD} main (float[64] x) => (float[64] y) {{ y = own.f (x, w) }}
        {OWN} f (a, b) => (c) {{ c = Add (a, b) }}""")
    weights = np.arange(64, dtype=np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    (folder := tmp_path / "source").mkdir()
    path = folder / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    (new := tmp_path / "new").mkdir()
    convert(path, targets=["CPU"]).write(after := new / "model.onnx")
    (result,) = evaluate_model(after, {"x": weights}).values()
    np.testing.assert_array_equal(result, 2 * weights)
    assert (new / "w.bin").read_bytes() == (folder / "w.bin").read_bytes()
