import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import helper

import ir_scatter
from ir_scatter import BrokenModel, EvaluationFailed, UnknownOperator, UnreadableModel, evaluate_model
from ir_scatter.analysis.interpreter import Step
from ir_scatter.evaluate.model import ForwardArrays, prepare
from tests.models.ir_text import IrText, Output
from tests.models.onnx_text import save

HEADER = '<ir_version: 10, opset_import: ["" : 18, "own" : 1]>\n'
LENGTH = 10_000

Onnx = Callable[[str], Path]


@pytest.fixture
def onnx_file(tmp_path: Path) -> Onnx:
    return lambda text: save(HEADER + text, tmp_path / "model.onnx")


def _floats(*numbers: float) -> npt.NDArray[Any]:
    return np.array(numbers, np.float32)


def test_a_model_that_was_read_runs_as_often_as_one_likes(onnx_file: Onnx) -> None:
    model = ir_scatter.read(onnx_file("g (float[1] x) => (float[1] y) { y = Add (x, x) }"))
    program = prepare(model)
    assert [program.run({"x": _floats(n)})["y"].tolist() for n in (1, 2)] == [[2], [4]]
    assert list(evaluate_model(model, {"x": _floats(1)})) == ["y"]


def test_a_word_of_a_later_version_is_taken_as_meant(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 16]>
        g (float[3] x, int64[2] at, float[2] u) => (float[3] y) {
          y = ScatterElements <reduction = "max"> (x, at, u)
        }"""
    feeds = {"x": _floats(1, 2, 3), "at": np.array([0, 0]), "u": _floats(5, 4)}
    assert evaluate_model(save(text, tmp_path / "m.onnx"), feeds)["y"].tolist() == [5, 2, 3]


def test_long_chains_of_onnx(onnx_file: Onnx) -> None:
    body = "\n".join(f"t{n + 1} = Neg (t{n})" for n in range(LENGTH))
    path = onnx_file(f"g (float[2] t0) => (float[2] t{LENGTH}) {{ {body} }}")
    assert evaluate_model(path, {"t0": _floats(1, 2)})[f"t{LENGTH}"].tolist() == [1, 2]


def test_long_chains_of_ir(tmp_path: Path) -> None:
    ir = IrText()
    value = ir.parameter("x", shape=(2,))
    for number in range(LENGTH):
        value = ir.add(f"n{number}", "Negative", "opset1", [value], [("f32", (2,))])
    ir.add("r", "Result", "opset1", [value], [])
    found = evaluate_model(ir.write(tmp_path), {"x": _floats(1, 2)})
    assert found[f"n{LENGTH - 1}"].tolist() == [1, 2]


@pytest.mark.parametrize("depth", [150, 2000])
def test_functions_that_call_functions(depth: int, tmp_path: Path) -> None:
    opsets = 'opset_import: ["own" : 1, "" : 18]'
    bodies = [*(f"own.f{n + 1} (x)" for n in range(depth - 1)), "Neg (x)"]
    functions = "".join(
        f'<domain: "own", {opsets}> f{n} (x) => (y) {{ y = {body} }}\n' for n, body in enumerate(bodies)
    )
    main = f"<ir_version: 10, {opsets}> g (float[1] x) => (float[1] y) {{ y = own.f0 (x) }}\n"
    path = save(main + functions, tmp_path / "calls.onnx")
    if depth < 1000:
        assert evaluate_model(path, {"x": _floats(3)})["y"].tolist() == [-3]
        return
    with pytest.raises(EvaluationFailed, match="the graphs are nested too deeply"):
        evaluate_model(path, {"x": _floats(3)})


class _Counting(ForwardArrays):
    """Counts how many results are alive at once."""

    most = 0

    def __init__(self, plans: Any) -> None:
        super().__init__(plans)
        self.alive: weakref.WeakSet[Any] = weakref.WeakSet()

    def compute_arrays(
        self, step: Step, arrays: Sequence[npt.NDArray[Any] | None]
    ) -> Sequence[npt.NDArray[Any] | None]:
        computed = super().compute_arrays(step, arrays)
        found = [array.copy().view(_Tracked) for array in computed if array is not None]
        self.alive.update(found)
        self.most = max(self.most, len(self.alive))
        return found


class _Tracked(np.ndarray[Any, np.dtype[Any]]):
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __eq__(self, other: object) -> Any:
        return self is other


def test_arrays_are_let_go(onnx_file: Onnx) -> None:
    body = "\n".join(f"t{n + 1} = Add (t{n}, t{n})" for n in range(50))
    program = prepare(onnx_file(f"g (float[2] t0) => (float[2] t50) {{ {body} }}"))
    counting = _Counting(program.plans)
    counting.run(program.plan, [_floats(0, 0)])
    assert counting.most == 2


def test_what_no_output_needs_is_not_computed(onnx_file: Onnx) -> None:
    path = onnx_file("g (float[2] x) => (float[2] y) { y = Relu (x) z = Softmax (x) w = Nothing (z) }")
    assert evaluate_model(path, {"x": _floats(-1, 1)})["y"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("ports", "data", "name"),
    [
        ('names="b,a"', "", "a"),
        ('names="x\\,y"', "", "x,y"),
        ("", "", "relu"),
        ('names="a"', 'output_names="own"', "own"),
    ],
)
def test_names_of_outputs_of_an_ir(ports: str, data: str, name: str, tmp_path: Path) -> None:
    ir = IrText()
    x = ir.parameter("x", shape=(2,))
    relu = ir.add("relu", "ReLU", "opset1", [x], [("f32", (2,))], ports=f" {ports}" if ports else "")
    ir.add("result", "Result", "opset1", [relu], [])
    path = Path(ir.write(tmp_path))
    path.write_text(path.read_text().replace('type="Result"', f'type="Result" {data}'))
    assert list(evaluate_model(path, {"x": _floats(1, 2)})) == [name]


def test_outputs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    ir = IrText()
    x = ir.parameter("x", shape=(3,))
    axis = ir.const("axis", "i64", 0)
    parts: list[tuple[str, Sequence[int]]] = [("f32", (1,))] * 3
    split = ir.add("split", "Split", "opset1", [x, axis], parts, {"num_splits": "3"})
    for name, port in (("first", 0), ("again", 0), ("last", 2)):
        ir.add(name, "Result", "opset1", [Output(split.layer, split.port + port, "f32", (1,))], [])
    found = evaluate_model(ir.write(tmp_path), {"x": _floats(1, 2, 3)})
    assert {name: array.tolist() for name, array in found.items()} == {
        "split.0": [1], "again": [1], "split.2": [3],
    }  # fmt: skip


def test_an_operator_that_numpy_does_not_compute(onnx_file: Onnx) -> None:
    path = onnx_file(
        """g (float[2, 2] x, bool flag) => (float[2, 2] y) {
          y = If (flag) <
            then_branch = a () => (float[2, 2] p) { q = RandomNormalLike (x) p = own.Thing (q) },
            else_branch = b () => (float[2, 2] r) { r = Bernoulli (x) }
          >
        }"""
    )
    with pytest.raises(UnknownOperator) as raised:
        evaluate_model(path, {"x": np.ones((2, 2), np.float32), "flag": np.array(True)})
    text = str(raised.value)
    assert text.startswith("NumPy does not compute ")
    for part in (
        "RandomNormalLike at y:then_branch/q (",
        "own::Thing at ",
        f"Bernoulli at y:else_branch/r ({path})",
    ):
        assert part in text


def test_the_line_of_an_operator_is_named(tmp_path: Path) -> None:
    ir = IrText()
    value = ir.add("soft", "Thing", "own", [ir.parameter("x", shape=(2,))], [("f32", (2,))])
    ir.add("r", "Result", "opset1", [value], [])
    with pytest.raises(UnknownOperator, match=r"Thing at soft \(.*model.xml:4\)$"):
        evaluate_model(ir.write(tmp_path), {"x": _floats(1, 2)})


def test_a_model_that_breaks_rules_is_refused(onnx_file: Onnx) -> None:
    path = onnx_file(
        """g (float[3] x, float[2] u) => (float[3] y) <int64[2] at = {0, 3}> {
          y = ScatterElements (x, at, u)
        }"""
    )
    with pytest.raises(BrokenModel, match=r"SCT302 indices\[1\] is 3") as raised:
        evaluate_model(path, {})
    assert [found.code for found in raised.value.diagnostics] == ["SCT302"]


def test_an_index_that_is_illegal_in_this_run(onnx_file: Onnx) -> None:
    path = onnx_file(
        "g (float[3] x, int64[2] at, float[2] u) => (float[3] y) { y = ScatterElements (x, at, u) }"
    )
    feeds = {"x": _floats(0, 0, 0), "at": np.array([2, 3]), "u": _floats(1, 1)}
    with pytest.raises(EvaluationFailed, match=r"^ScatterElements y \(.*\): indices\[1\] is 3") as raised:
        evaluate_model(path, feeds)
    assert raised.value.breaks_rule
    assert raised.value.location.scope == "y"


def test_values_that_a_plain_operator_refuses(onnx_file: Onnx) -> None:
    path = onnx_file("g (int64[1] x) => (int64[1] y) { y = Div (x, x) }")
    with pytest.raises(EvaluationFailed, match=r"^Div y \(.*divided by 0") as raised:
        evaluate_model(path, {"x": np.array([0])})
    assert not raised.value.breaks_rule


def test_constants_that_are_not_there(tmp_path: Path) -> None:
    ir = IrText()
    value = ir.add(
        "sum", "Add", "opset1", [ir.parameter("x", "i64", (1,)), ir.const("c", "i64", [1])], [("i64", (1,))]
    )
    ir.add("r", "Result", "opset1", [value], [])
    path = Path(ir.write(tmp_path))
    path.with_suffix(".bin").unlink()
    with pytest.raises(UnreadableModel, match=r"model\.bin cannot be read"):
        evaluate_model(path, {"x": np.array([1])})


def test_attributes_that_hold_tensors(onnx_file: Onnx) -> None:
    path = onnx_file(
        """g (int64[2] shape) => (int64[M, N] y) {
          y = ConstantOfShape <value: tensor = int64[1] {7}> (shape)
        }"""
    )
    assert evaluate_model(path, {"shape": np.array([1, 2])})["y"].tolist() == [[7, 7]]


def _with_sparse(folder: Path, place: int) -> Path:
    """Write the sum of x and a sparse constant of two elements, one of which is stored."""
    sparse = helper.make_sparse_tensor(
        onnx.numpy_helper.from_array(np.array([4], np.float32)),
        onnx.numpy_helper.from_array(np.array([place])),
        [2],
    )
    node = helper.make_node("Constant", [], ["c"], sparse_value=sparse)
    ends = [helper.make_tensor_value_info(name, 1, [2]) for name in "xy"]
    graph = helper.make_graph([node, helper.make_node("Add", ["x", "c"], ["y"])], "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    path = folder / "sparse.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_sparse_constants_are_computed(tmp_path: Path) -> None:
    feeds = {"x": np.array([1, 2], np.float32)}
    assert evaluate_model(_with_sparse(tmp_path, 1), feeds)["y"].tolist() == [1, 6]


def test_sparse_constants_that_contradict_themselves_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BrokenModel, match=r"has index \[2\] for value 0, expected one within \[2\]"):
        evaluate_model(_with_sparse(tmp_path, 2), {"x": _floats(1, 2)})
