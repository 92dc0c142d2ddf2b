"""Which nodes in bodies of loops a device updates in place; what is expected was measured."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from ir_scatter import runners
from ir_scatter.cases.from_probe import case_of
from ir_scatter.core.arrays import Array
from ir_scatter.core.model import Node
from ir_scatter.defects import by_code
from ir_scatter.defects.base import Result
from ir_scatter.defects.evidence import Row, Target
from ir_scatter.formats import FORMATS
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.portability import Portability, diagnose, portability_to
from ir_scatter.reading import read
from ir_scatter.runners.base import Runner
from tests.campaigns.body_models import IrGraph
from tests.models.ir_text import IrText
from tests.models.nested_ir import PARTS, put_in, put_out, result
from tests.models.onnx_text import save

_ROW = Row("openvino", "9", "CPU", {"DEV112/elements": Result.WRONG, "DEV116/elements": Result.WRONG})
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


_VIEWS: dict[str, list[tuple[str, str, list[list[int]], list[int]]]] = {
    "none": [],
    "Reshape": [("Reshape", "opset1", [[4, 1]], [4, 1]), ("Reshape", "opset1", [[4]], [4])],
    "Unsqueeze, Squeeze": [("Unsqueeze", "opset1", [[0]], [1, 4]), ("Squeeze", "opset1", [[0]], [4])],
    "Slice": [("Slice", "opset8", [[0], [4], [1], [0]], [4])],
    "Concat": [("Concat", "opset1", [], [4])],
    "Abs": [("Abs", "opset1", [], [4])],
}
"""What stands between an input of a body and a node: types, opsets, whole numbers, shapes of outputs."""
_VIEW_DATA = {"Reshape": {"special_zero": "false"}, "Concat": {"axis": "0"}}


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    pytest.importorskip("openvino")
    runner = runners.find("CPU")
    yield runner
    runner.close()


def tensor_iterator(
    view: str, folder: Path, *, sizes: tuple[int | str, ...] = (3,), reads: tuple[bool, ...] = (True,),
    part: str = PARTS, has_state: bool = False, reader: str = "",
) -> Path:  # fmt: skip
    """Write a TensorIterator that adds 10 to the first element of an invariant in each iteration.

    Its inputs that are cut into parts have these sizes; the body reads some of them. The invariant may be a
    state that the model writes back unchanged. A reader of the invariant is an operator whose result is added
    to that of the node, or ReduceMax, whose result replaces the 10.
    """
    ir = IrText()
    body = IrText(ir.weights)
    parts = [ir.parameter(f"parts{number}", "f32", (size, 1)) for number, size in enumerate(sizes)]
    data = ir.parameter("data", "f32", (4,))
    if has_state:
        state = {"variable_id": "state", "variable_type": "f32", "variable_shape": "4"}
        data = ir.add("read", "ReadValue", "opset6", [data], [("f32", (4,))], state)
        ir.add("written", "Assign", "opset6", [data], [("f32", (4,))], state)
    cut = [body.parameter(f"part{number}", "f32", (1, 1)) for number in range(len(sizes))]
    old = body.parameter("old", "f32", (4,))
    value = old
    for number, (type, opset, numbers, shape) in enumerate(_VIEWS[view]):
        name = f"view{number}"
        more = [body.const(f"{name}_{place}", "i64", content) for place, content in enumerate(numbers)]
        value = body.add(name, type, opset, [value, *more], [("f32", shape)], _VIEW_DATA.get(type))
    fixed = [body.const("at", "i64", [0]), body.const("ten", "f32", [10]), body.const("axis", "i64", 0)]
    first, words = body.const("first", "i64", [0]), {"reduction": "sum", "use_init_val": "true"}
    if reader == "ReduceMax":
        fixed[1] = body.add("most", reader, "opset1", [old, first], [("f32", (1,))], {"keep_dims": "true"})
    made = body.add("node", "ScatterElementsUpdate", "opset12", [value, *fixed], [("f32", (4,))], words)
    made = body.add("row", "Unsqueeze", "opset1", [made, first], [("f32", (1, 4))])
    if reader and reader != "ReduceMax":
        beside = body.add("beside", reader, "opset1", [old], [("f32", (4,))])
        made = body.add("both", "Add", "opset1", [made, beside], [("f32", (1, 4))])
    for number, (one, is_read) in enumerate(zip(cut, reads, strict=True)):
        if is_read:
            made = body.add(f"sum{number}", "Add", "opset1", [made, one], [("f32", (1, 4))])
    last = result(body, made)
    maps = [put_in(number, one, part) for number, one in enumerate(cut)]
    maps += [put_in(len(cut), old), put_out(len(cut) + 1, last, PARTS)]
    inside = f"<port_map>{''.join(maps)}</port_map><back_edges/>{body.body('body')}"
    count = sizes[0] if isinstance(sizes[0], int) else -1
    loop = ir.add("loop", "TensorIterator", "opset1", [*parts, data], [("f32", (count, 4))], inside=inside)
    result(ir, loop)
    return Path(ir.write(folder))


def severities(path: Path, code: str = "DEV112") -> list[str]:
    told = diagnose(read(path), Portability([Target("openvino:CPU", "9")], [_ROW], []))
    return [one.severity for one in told if one.code == code]


def first_elements(
    path: Path, sizes: tuple[int, ...], runner: Runner, inferences: int = 1
) -> list[list[float]]:
    feeds: dict[str, Array] = {
        f"parts{number}": np.zeros((size, 1), np.float32) for number, size in enumerate(sizes)
    }
    feeds |= {"data": np.ones(4, np.float32)}
    outcome = runner.run(path, feeds, timeout=60, repeat=inferences)
    return [[float(row[0]) for row in output] for outputs in outcome.runs for output in outputs.values()]


@pytest.mark.openvino
@pytest.mark.parametrize("view", _VIEWS)
def test_an_invariant_of_a_tensor_iterator(view: str, tmp_path: Path, runner: Runner) -> None:
    path = tensor_iterator(view, tmp_path)
    is_copy = view == "Abs"
    assert first_elements(path, (3,), runner) == [[11, 11, 11] if is_copy else [11, 21, 31]]
    assert severities(path) == ([] if is_copy else ["error"])


@pytest.mark.openvino
@pytest.mark.parametrize(
    ("sizes", "reads", "part", "elements", "expected"),
    [
        ((1,), (True,), PARTS, [11], []),
        ((2,), (True,), ' axis="0" start="-1" end="0" stride="-1"', [11, 21], ["error"]),
        ((2,), (True,), ' axis="0"', [11, 21], ["error"]),
        ((2, 2), (True, False), PARTS, [11, 21], ["error"]),
        ((2,), (False,), PARTS, [11], []),  # the plugin drops the input, and with it an iteration
    ],
)
def test_iterations_of_a_tensor_iterator(
    sizes: tuple[int, ...], reads: tuple[bool, ...], part: str, elements: list[float], expected: list[str],
    tmp_path: Path, runner: Runner,
) -> None:  # fmt: skip
    path = tensor_iterator("none", tmp_path, sizes=sizes, reads=reads, part=part)
    assert first_elements(path, sizes, runner) == [elements]
    assert severities(path) == expected


@pytest.mark.openvino
@pytest.mark.parametrize(
    ("reader", "elements", "expected"),
    [
        ("Negative", [10, 10, 10], []),  # may be computed after the node, so that the plugin copies
        ("ReduceMax", [2, 4, 8], ["error"]),  # is computed before, as the node reads it
    ],
)
def test_another_reader_of_an_invariant_of_a_tensor_iterator(
    reader: str, elements: list[float], expected: list[str], tmp_path: Path, runner: Runner
) -> None:
    path = tensor_iterator("none", tmp_path, reader=reader)
    assert first_elements(path, (3,), runner) == [elements]
    assert severities(path) == expected


def test_a_tensor_iterator_of_unknown_length(tmp_path: Path) -> None:
    assert severities(tensor_iterator("none", tmp_path, sizes=("?",))) == ["warning"]


@pytest.mark.openvino
def test_a_state_that_is_the_invariant_of_a_tensor_iterator(tmp_path: Path, runner: Runner) -> None:
    """The loop copies it: iterations share memory, but the next inference reads the state as it was."""
    path = tensor_iterator("none", tmp_path, has_state=True)
    assert first_elements(path, (3,), runner, 3) == [[11, 21, 31]] * 3
    assert severities(path) == ["error"]
    assert severities(path, "DEV116") == []


_AROUND = """<ir_version: 10, opset_import: ["": 18]>
g (float[4] x, float[N] open, int64[1] i, float[1] u) => (float[3, M] z) {{
  three = Constant <value = int64 {{3}}> () c = Constant <value = bool {{1}}> ()
  at = Constant <value = int64[1] {{1}}> () zero = Constant <value = float[1] {{0}}> ()
  four = Constant <value_ints = [4]> () k = Constant <value = float[4] {{0, 0, 0, 0}}> ()
  {around}
  z = Loop (three, c) <body = b (int64 it, bool ci) => (bool co, float[M] y) {{
    co = Identity (ci) {body} }}>
}}"""


@pytest.mark.openvino
@pytest.mark.parametrize(
    ("around", "body", "expected", "result"),
    [
        ("w = Identity (k)", _ON_W, [], [10, 10, 10]),
        ("w = Sin (k)", _ON_W, [], [10, 10, 10]),
        ("v = Reshape (k, four) w = Sin (v)", _ON_W, [], [10, 10, 10]),
        ("w = ScatterElements (k, at, zero)", _ON_W, [], [10, 10, 10]),
        ("s = Shape (x) w = ConstantOfShape (s)", _ON_W, [], [10, 10, 10]),
        ("s = Shape (open) w = ConstantOfShape (s)", _ON_W, ["error"], [10, 20, 30]),
        ("w = Sin (x)", _ON_W, ["error"], [10, 20, 30]),
        (
            "w = If (c) <then_branch = t () => (float[4] d) { d = Sin (k) }, "
            "else_branch = e () => (float[4] f) { f = Neg (k) }>",
            _ON_W,
            ["warning"],
            [10, 20, 30],
        ),
        (
            "v = Sin (zero) w = Identity (x)",
            "j = Cast <to = 7> (v) y = ScatterElements (w, j, u)",
            [],
            [10, 10, 10],
        ),
    ],
)
def test_what_a_loop_is_given_that_is_folded(
    around: str, body: str, expected: list[str], result: list[float], tmp_path: Path, runner: Runner
) -> None:
    path = save(_AROUND.format(around=around, body=body), tmp_path / "model.onnx")
    assert severities(path) == expected
    feeds: dict[str, Array] = {
        "x": np.zeros(4, np.float32), "open": np.zeros(4, np.float32), "i": np.zeros(1, np.int64),
        "u": np.full(1, 10, np.float32),
    }  # fmt: skip
    (output,) = runner.run(path, feeds, timeout=60).outputs.values()
    assert [row[0] for row in output.tolist()] == result


_NO_END = 2**63 - 1


@pytest.mark.openvino
@pytest.mark.parametrize(
    ("type", "numbers", "masks", "is_shared"),
    [
        ("StridedSlice", [9, 1, 1], "1", True),
        ("StridedSlice", [0, _NO_END, 1], "0", True),
        ("StridedSlice", [0, 2**31 - 1, 1], "0", False),
        ("Slice", [0, _NO_END, 1, 0], "", True),
        ("Slice", [0, 2**31 - 1, 1, 0], "", False),
        ("Slice", [0, 4, 1, 0], "", False),
    ],
)
def test_slices_of_open_invariants(
    type: str, numbers: list[int], masks: str, is_shared: bool, runner: Runner, tmp_path: Path
) -> None:
    """A slice shares memory though its size is open, if it begins at 0 and has no end."""
    graph = IrGraph(Random(0))
    data, total = graph.input("f32", ("N",)), graph.input("f32", ("N",))
    attributes = {"begin_mask": masks, "end_mask": masks} if masks else {}

    def body(inner: Any, step: Any, states: list[Any], parts: list[Any], fixed: list[Any]) -> list[Any]:
        limits = [inner.const("i64", [number]) for number in numbers]
        view = inner.node(
            type, "opset8" if type == "Slice" else "opset1", [*fixed, *limits], "f32", ("N",), **attributes
        )
        at, ten = inner.const("i64", [0]), inner.const("f32", [10])
        return [inner.apply("Add", states[0], inner.scatter("elements", view, at, ten, 0, "sum"))]

    graph.result(graph.loop(3, [total], [], [data], body)[0])
    path = Path(graph.text.write(tmp_path))
    feeds = {"in0": np.ones(4, np.float32), "in1": np.zeros(4, np.float32)}
    (output,) = runner.run(path, feeds, timeout=60).outputs.values()
    assert output[0] == (11 + 21 + 31 if is_shared else 33)
    diagnostics = diagnose(read(path), portability_to(("CPU",)))
    assert [one.severity for one in diagnostics if one.code == "DEV112"] == ["error"] * is_shared
