"""Which nodes in bodies of loops a device updates in place; what is expected was measured."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ir_scatter.cases.from_probe import case_of
from ir_scatter.core.model import Node
from ir_scatter.defects import by_code
from ir_scatter.defects.base import Result
from ir_scatter.defects.evidence import Row, Target
from ir_scatter.formats import FORMATS
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.portability import Portability, diagnose
from ir_scatter.reading import read
from tests.models.onnx_text import save

_ROW = Row("openvino", "9", "CPU", {"DEV112/elements": Result.WRONG})
_ADD = 'y = ScatterElements <reduction = "add"> (x, i, u)'
_ON_W = _ADD.replace("(x", "(w")
_ALL, _ZEROS, _FOUR, _NOTHING = "x, zeros, fours, zeros, ones", "pads", "fours", "nothing"
_MODEL = """<ir_version: 10, opset_import: ["": 18]>
g (float[4] x, int64[1] i, float[1] u, int64 n) => (float[4] z) {{
  three = Constant <value = int64 {{3}}> () one = Constant <value = int64 {{1}}> ()
  zeros = Constant <value_ints = [0]> () fours = Constant <value_ints = [4]> ()
  ones = Constant <value_ints = [1]> () pads = Constant <value_ints = [0, 0]> ()
  nothing = Constant <value_floats = [0.0]> ()
  c = Constant <value = bool {{1}}> () k = Constant <value = float[4] {{1, 1, 1, 1}}> ()
  z = Loop ({trips}, c, x)
    <body = b (int64 it, bool ci, float[4] st) => (bool co, float[4] out) {{ co = Identity (ci) {body} }}>
}}"""


@pytest.mark.parametrize(
    ("body", "trips", "found"),
    [
        (f"{_ADD} out = Identity (y)", "three", ["error"]),
        (f"{_ADD} out = Identity (y)", "one", []),
        (f"{_ADD} out = Identity (y)", "n", ["warning"]),
        (f"{_ADD} out = Add (y, x)", "three", []),
        (f"{_ADD.replace('(x', '(st')} out = Identity (y)", "three", []),
        (f"{_ADD.replace('(x', '(k')} out = Identity (y)", "three", []),
        (f"w = Relu (x) {_ADD.replace('(x', '(w')} out = Identity (y)", "three", []),
        ("y = ScatterElements (x, i, u) out = Identity (y)", "three", []),
        ("j = Add (i, it) y = ScatterElements (x, j, u) out = Identity (y)", "three", ["warning"]),
        (f"{_ADD} dead = Neg (x) out = Identity (y)", "three", ["error"]),
        (f"{_ADD} n = Shape (x) m = Cast <to = 1> (n) out = Add (y, m)", "three", ["error"]),
        # what moves nothing shares memory
        (f"w = Identity (x) {_ON_W} out = Identity (y)", "three", ["error"]),
        (f"w = Cast <to = 1> (x) {_ON_W} out = Identity (y)", "three", ["error"]),
        (f"v = Cast <to = 11> (x) w = Cast <to = 1> (v) {_ON_W} out = Identity (y)", "three", ["error"]),
        (f"w = Dropout (x) {_ON_W} out = Identity (y)", "three", ["error"]),
        (f"w = Sum (x) {_ON_W} out = Identity (y)", "three", ["error"]),
        (f"w = Transpose <perm = [0]> (x) {_ON_W} out = Identity (y)", "three", ["error"]),
        (f"v = Flatten (x) w = Squeeze (v) {_ON_W} out = Identity (y)", "three", ["error"]),
        (
            f"v, s = Split <num_outputs = 2> (x) w = Concat <axis = 0> (v, s) {_ON_W} out = Identity (y)",
            "three",
            ["error"],
        ),
        (
            f"v, s = Split <num_outputs = 2> (x) w = Concat <axis = 0> (s, v) {_ON_W} out = Identity (y)",
            "three",
            [],
        ),
        (f"w = ScatterElements (x, i, u) {_ON_W} out = Identity (y)", "three", ["error"]),
        (f"w = Slice ({_ALL}) {_ON_W} out = Identity (y)", "three", ["error"]),
        (f"w = Slice ({_ALL}) {_ON_W} out = Add (y, x)", "three", []),
        (f"w = Pad (x, {_ZEROS}) {_ON_W} out = Identity (y)", "three", ["error"]),
        (f"w = Expand (x, {_FOUR}) {_ON_W} out = Identity (y)", "three", ["error"]),
        (f"w = Add (x, {_NOTHING}) {_ON_W} out = Identity (y)", "three", ["error"]),
        (f"w = Add (x, u) {_ON_W} out = Identity (y)", "three", []),
        # what indices and updates are computed from is read before it is written
        ("v = ReduceMax (x) y = ScatterElements (x, i, v) out = Identity (y)", "three", ["warning"]),
        (f"v = Neg (x) {_ADD} out = Add (y, v)", "three", []),
    ],
)
def test_what_is_updated_in_place(body: str, trips: str, found: list[str], tmp_path: Path) -> None:
    model = read(save(_MODEL.format(body=body, trips=trips), tmp_path / "model.onnx"))
    told = diagnose(model, Portability([Target("openvino:CPU", "9")], [_ROW], []))
    assert [one.severity for one in told if one.code == "DEV112"] == found


def test_a_body_is_walked_once_for_all_of_its_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads data is known of a whole body, as hundreds of nodes may share it."""
    walk, walks = OnnxGraph.walk, list[int]()

    def counting(graph: OnnxGraph, types: frozenset[str] | None = None) -> Iterator[Node]:
        walks[-1] += types is None
        return walk(graph, types)

    monkeypatch.setattr(OnnxGraph, "walk", counting)
    for count in (3, 30):
        nodes = " ".join(_ADD.replace("y =", f"y{number} =") for number in range(count))
        total = ", ".join(f"y{number}" for number in range(count))
        text = _MODEL.format(body=f"{nodes} out = Sum ({total})", trips="three")
        model = read(save(text, tmp_path / f"{count}.onnx"))
        walks.append(0)
        found = diagnose(model, Portability([Target("openvino:CPU", "9")], [_ROW], []))
        assert "DEV112" not in {one.code for one in found}  # each of them has other readers
    assert walks[0] == walks[1] > 0


@pytest.mark.parametrize(
    ("source", "codes"),
    [
        ('from-layer="0" from-port="0"', {"DEV112"}),  # what is carried stays as it is
        ('from-layer="4" from-port="4"', set()),
    ],
)
def test_what_a_body_carries(source: str, codes: set[str], tmp_path: Path) -> None:
    probe = by_code()["DEV112"].probes[0]
    files = FORMATS["openvino-ir"].nodes([case_of(probe).node()])
    text = files[".xml"].decode()
    layer = '<layer id="8" name="kept" type="Result" version="opset1"><input><port id="0" precision="FP32">'
    layer += "<dim>4</dim></port></input></layer>"
    back = '<back_edges><edge from-layer="8" to-layer="0" /></back_edges>'
    text = text.replace("<back_edges />", back).replace("</layers>", f"{layer}</layers>", 1)
    text = text.replace("<edges>", f'<edges><edge {source} to-layer="8" to-port="0" />', 1)
    (tmp_path / "model.xml").write_text(text)
    (tmp_path / "model.bin").write_bytes(files[".bin"])
    told = diagnose(read(tmp_path / "model.xml"), Portability([Target("openvino:CPU", "9")], [_ROW], []))
    assert {one.code for one in told} & {"DEV112"} == codes
    openvino = pytest.importorskip("openvino")
    request = openvino.Core().compile_model(tmp_path / "model.xml", "CPU").create_infer_request()
    request.infer([*case_of(probe).feeds().values()])
    assert request.get_output_tensor(0).data[0] == 31  # wrong where the state is carried as it is
