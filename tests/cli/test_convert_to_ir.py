"""`ir-scatter convert model.onnx -o model.xml`: through OpenVINO, and then checked like the rest."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from ir_scatter import runners
from ir_scatter.inputs.model import make_feeds
from tests.cli.conftest import Cli, copy_sample
from tests.cli.scatter_models import demand_equal, deprecated, files, findings, onnx_model, operators

pytest.importorskip("openvino")
pytestmark = pytest.mark.openvino

_SUM = """
    <ir_version: 8, opset_import: ["" : 18]>
    g (float[4,5] data, int64[2,5] at, float[2,5] rows) => (float[4,5] out) {
      out = ScatterElements <reduction = "add"> (data, at, rows)
    }
"""
_ILLEGAL = _SUM.replace("int64[2,5] at", "int64[2,6] at")
_UNKNOWN = _SUM.replace("out = ", "a = ").replace(
    "(data, at, rows)\n    }", "(data, at, rows)\n      out = Mystery (a)\n    }"
)


@pytest.mark.parametrize("opset", [9, 13, 18])
def test_deprecated_operators(opset: int, cli: Cli) -> None:
    source, new = deprecated(opset), Path("new.xml")
    result = cli("convert", source, "-o", new)
    assert (result.code, result.err) == (0, "")
    version = 9 if opset < 11 else 11
    assert f": first  Scatter-{version} -> ScatterElementsUpdate-12  safe\n" in result.out
    assert "note:" not in result.out
    assert "equal on NumPy (8 cases); " in result.out
    assert (operators(new), findings(new)) == (["ScatterElementsUpdate-12"] * 2, [])
    assert Path("new.bin").exists()
    if opset < 11:
        demand_equal(source, new)


@pytest.mark.parametrize(
    ("target", "expected"),
    [("ScatterNDUpdate", "ScatterNDUpdate-15"), ("ScatterElementsUpdate-12", "ScatterElementsUpdate-12")],
)
def test_to_an_operator(target: str, expected: str, cli: Cli) -> None:
    source, new = onnx_model(_SUM), Path("new.xml")
    result = cli("convert", source, "-o", new, "--to", target, "--format", "json")
    assert (result.code, result.err) == (0, "")
    document = json.loads(result.out)
    (one,) = document["converted"]
    assert (one["node"], one["from"], one["to"]) == ("out", "ScatterElements-18", expected)
    assert (document["model"], document["output"], document["remarks"]) == ("model.onnx", "new.xml", [])
    assert document["verified_on"] == {"NumPy": 8}
    assert operators(new) == [expected]
    demand_equal(source, new)


def test_tensor_scatter(cli: Cli) -> None:
    source, new = (
        onnx_model("""
        <ir_version: 11, opset_import: ["" : 24]>
        g (float[2,3,8,5] cache, float[2,3,4,5] new, int64[2] at) => (float[2,3,8,5] out) {
          out = TensorScatter <mode = "circular"> (cache, new, at)
        }
    """),
        Path("new.xml"),
    )
    result = cli("convert", source, "-o", new, "--verify-on", "CPU")
    assert result.code == 0
    assert "out  TensorScatter-24 -> ScatterElementsUpdate-12  safe\n" in result.out
    assert "note: openvino:CPU: the original model is unsupported: " in result.out
    assert "; the converted one runs, and agrees with NumPy\n" in result.out
    demand_equal(source, new)


def test_weights_keep_their_precision(cli: Cli) -> None:
    source = onnx_model(
        _SUM.replace("data, at, rows)\n", "data, at, extra)\n").replace(
            "=> (float[4,5] out) {",
            "=> (float[4,5] out) <float[2,5] extra = {0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1.1}> {",
        )
    )
    assert cli("convert", source, "-o", "new.xml").code == 0
    extra = onnx.numpy_helper.to_array(onnx.load(str(source)).graph.initializer[0])
    assert extra.astype(np.float32).tobytes() in Path("new.bin").read_bytes()
    assert "FP16" not in Path("new.xml").read_text()


@pytest.mark.parametrize(
    ("text", "options", "code", "sentence"),
    [
        (
            _ILLEGAL,
            [],
            1,
            "out  ScatterElements  refused: CVT101\n"
            "    breaks SCT203: updates is [2, 5], expected [2, 6] = indices\n",
        ),
        (
            _UNKNOWN,
            [],
            3,
            "ir-scatter: model.onnx: OpenVINO cannot read it: "
            "No conversion rule found for operations: Mystery-18\n",
        ),
        (_SUM, ["--opset", "18"], 2, "--opset is for ONNX models, and the output is an IR"),
        (_SUM, ["--to", "ScatterND"], 2, "'ScatterND' is not a target in OpenVINO"),
        (
            _SUM,
            ["--from", "ScatterElements", "--to", "ScatterUpdate"],
            2,
            "is not a scatter operator of OpenVINO",
        ),
        (_SUM, ["--node", "nobody", "--to", "ScatterUpdate"], 2, "no scatter node is named 'nobody'"),
        (_SUM, ["--dry-run", "--to", "ScatterNDUpdate"], 0, "; nothing written\n"),
    ],
)
def test_nothing_is_written(text: str, options: list[str], code: int, sentence: str, cli: Cli) -> None:
    source = onnx_model(text)
    before = files()
    result = cli("convert", source, "-o", "new.xml", *options)
    assert result.code == code
    assert sentence in (result.err if code > 1 else result.out)
    assert "" in (result.out, result.err)
    assert files() == before


def test_a_rule_that_openvino_passes_over(cli: Cli) -> None:
    source = onnx_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[4,5] data, int32[2,1] at, float[2,5] rows) => (float[4,5] out) {
          out = ScatterND (data, at, rows)
        }
    """)
    result = cli("convert", source, "-o", "new.xml")
    assert result.code == 1
    assert "breaks SCT204: indices is int32, expected int64\n" in result.out
    assert not Path("new.xml").exists()
    result = cli("convert", source, "-o", "new.xml", "--partial")
    assert result.code == 1
    assert (
        "not verified: nodes that break a rule have no specified result (--verify-on compares both"
        in result.out
    )
    assert operators(Path("new.xml")) == ["ScatterNDUpdate-15"]


def test_what_is_written_in_part_is_compared(cli: Cli) -> None:
    result = cli("convert", onnx_model(_SUM), "-o", "new.xml", "--to", "ScatterUpdate", "--partial")
    assert result.code == 1
    assert "1 node converted, 1 refused, verified: equal on NumPy (8 cases); new.xml written" in result.out


def test_on_how_many_cases_models_are_compared_is_what_was_wanted(cli: Cli) -> None:
    result = cli("convert", onnx_model(_SUM), "-o", "new.xml", "--verify", "0")
    assert result.out.endswith(
        "converted, not verified: no case was requested (--verify 0); new.xml written\n"
    )
    result = cli("convert", onnx_model(_SUM), "-o", "new.xml", "--verify", "2", "--overwrite")
    assert result.out.endswith("converted, verified: equal on NumPy (2 cases); new.xml written\n")


def test_tensor_scatter_that_breaks_rules_is_not_written(cli: Cli, elsewhere: Path) -> None:
    source = copy_sample("broken/tensor_scatter.onnx", elsewhere)
    before = files()
    for options in ([], ["--partial"]):
        result = cli("convert", source, "-o", "new.xml", *options)
        assert result.code == 1
        assert result.out.endswith("5 refused; nothing written\n")
        assert files() == before


@pytest.mark.parametrize("name", ["new.xml", "new.bin"])
def test_files_that_exist(name: str, cli: Cli) -> None:
    source = onnx_model(_SUM)
    Path(name).write_bytes(b"of somebody else")
    before = files()
    assert cli("convert", source, "-o", "new.xml").code == 2
    assert files() == before
    assert cli("convert", source, "-o", "new.xml", "--overwrite").code == 0


def test_what_numpy_does_not_compute_is_said(cli: Cli) -> None:
    source = onnx_model(
        _SUM.replace("out = ", "a = ").replace(
            "rows)\n    }", "rows)\n      out = RandomNormalLike (a)\n    }"
        )
    )
    result = cli("convert", source, "-o", "new.xml")
    assert result.code == 0
    assert "1 node converted, not verified: NumPy computes nothing after " in result.out


@pytest.mark.onnxruntime
@pytest.mark.parametrize(
    ("opset", "axis", "is_moved"), [(11, 1, True), (12, 0, True), (11, 2, False), (13, 1, False)]
)
def test_softmax_of_a_matrix_stays_one(opset: int, axis: int, is_moved: bool, cli: Cli) -> None:
    text = f"""
        <ir_version: 8, opset_import: ["" : {opset}]>
        g (float[2,3,4] x, float[4,5] data, int64[2,5] at, float[2,5] rows)
            => (float[2,3,4] y, float[4,5] out) {{
          y = Softmax <axis = {axis}> (x)
          out = ScatterElements (data, at, rows)
        }}
    """
    source, new = onnx_model(text), Path("new.xml")
    result = cli("convert", source, "-o", new, "--verify-on", "CPU")
    assert (result.code, result.err) == (0, "")
    assert "equal on openvino:CPU (2 cases)" in result.out
    assert ("Reshape" in new.read_text()) == is_moved
    feeds = make_feeds(source, 0)
    before = runners.find("onnxruntime").run(source, feeds)
    after = runners.find("CPU").run(new, feeds)
    np.testing.assert_allclose(after.outputs["y"], before.outputs["y"], rtol=1e-5)
