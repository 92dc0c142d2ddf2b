"""What goes in and out of nodes, on every runtime, in the main graph and inside bodies.

The output of a node must be what the kernel gives for the very inputs that came out with it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import parser

import ir_scatter
from ir_scatter import runners
from ir_scatter.core.model import Node
from ir_scatter.ops.lookup import find, scatter_types
from ir_scatter.runners.base import Execution, Outcome, Status, Tap, tap_of
from tests.models.ir_text import IrText
from tests.models.nested_ir import floats, write_loop
from tests.models.onnx_text import NESTED, save

pytestmark = pytest.mark.openvino
pytest.importorskip("openvino")

Feeds = Mapping[str, npt.NDArray[Any]]
OF_ONNX = ("onnxruntime", "onnx-reference", "CPU", "fold")


def run_tapped(runner: str, path: Path | str, feeds: Feeds, **options: Any) -> tuple[Outcome, list[Node]]:
    if runner == "onnxruntime":
        pytest.importorskip("onnxruntime")
    model = ir_scatter.read(path)
    nodes = list(model.walk(scatter_types(model.domain)))
    taps = [tap_of(node, model.format) for node in nodes]
    outcome = runners.find(runner).run(path, feeds, taps=taps, **options)
    assert [tapped.tap for tapped in outcome.tapped] == (taps if outcome.status is Status.OK else [])
    return outcome, nodes


def assert_true(node: Node, execution: Execution) -> None:
    """Hold a node's output against the kernel's on the node's own inputs."""
    lookup = find(node.domain, node.type, node.opset)
    assert lookup is not None
    assert lookup.spec is not None
    data, indices, updates, *rest = execution.inputs
    attributes = dict(node.attributes)
    if node.domain and rest and rest[0] is not None:
        attributes["axis"] = int(rest[0].item())
    operator: Any = str(lookup.spec.key)
    expected = ir_scatter.evaluate(operator, data=data, indices=indices, updates=updates, **attributes)
    assert execution.output.dtype == expected.dtype
    assert np.array_equal(execution.output, expected)


def assert_all_true(outcome: Outcome, nodes: list[Node]) -> int:
    """Return how many executions there were."""
    assert (outcome.status, outcome.message) == (Status.OK, "")
    for node, tapped in zip(nodes, outcome.tapped, strict=True):
        assert tapped.problem == ""
        for execution in tapped.executions:
            assert_true(node, execution)
    return sum(len(tapped.executions) for tapped in outcome.tapped)


def write_chain(folder: Path) -> str:
    """Write two scatter nodes, one behind the other: constants, an input and a result among their inputs."""
    ir = IrText()
    data, updates = ir.parameter("data", shape=(4, 5)), ir.parameter("updates", shape=("?", 5))
    indices = ir.const("indices", "i64", [3, 1])
    axis = ir.const("axis", "i32", 0)
    relu = ir.add("relu", "ReLU", "opset1", [data], [("f32", (4, 5))])
    first = ir.add("first", "ScatterUpdate", "opset3", [relu, indices, updates, axis], [("f32", (4, 5))])
    second = ir.add("second", "ScatterUpdate", "opset3", [first, indices, updates, axis], [("f32", (4, 5))])
    ir.add("result", "Result", "opset1", [second], [])
    return ir.write(folder, "chain")


CHAIN = {"data": floats(4, 5) - 2, "updates": floats(2, 5)}


@pytest.mark.parametrize("runner", ["CPU", "fold"])
def test_inputs_and_output_of_each_node_come_out(runner: str, tmp_path: Path) -> None:
    path = write_chain(tmp_path)
    outcome, nodes = run_tapped(runner, path, CHAIN, repeat=3)
    assert assert_all_true(outcome, nodes) == 2
    plain = runners.find(runner).run(path, CHAIN)
    assert plain.tapped == ()
    assert len(outcome.runs) == 3
    assert list(outcome.outputs) == list(plain.outputs) == ["second"]
    assert np.array_equal(outcome.outputs["second"], plain.outputs["second"])
    first, second = (tapped.executions[0] for tapped in outcome.tapped)
    found = [None if array is None else array.tolist() for array in first.inputs]
    relu = np.maximum(CHAIN["data"], 0)
    assert found == [relu.tolist(), [3, 1], CHAIN["updates"].tolist(), 0]
    assert np.array_equal(first.output, np.asarray(second.inputs[0]))
    assert np.array_equal(second.output, outcome.outputs["second"])
    assert first.place == ()


@pytest.mark.parametrize("runner", ["CPU", "onnxruntime"])
def test_batches_give_the_same_as_all_at_once(runner: str, tmp_path: Path) -> None:
    path: Path | str = write_chain(tmp_path)
    feeds: Feeds = CHAIN
    if runner != "CPU":
        path, feeds = save(NESTED["loop_by_trips"][0], tmp_path / "loop.onnx"), NESTED["loop_by_trips"][1]
    whole, nodes = run_tapped(runner, path, feeds)
    cut, _ = run_tapped(runner, path, feeds, tap_memory=1)
    assert assert_all_true(cut, nodes) == assert_all_true(whole, nodes)
    for one, other in zip(whole.tapped, cut.tapped, strict=True):
        for execution, same in zip(one.executions, other.executions, strict=True):
            assert np.array_equal(execution.output, same.output)
    assert list(cut.outputs) == list(whole.outputs)


DOES_NOT_RUN = {
    "onnxruntime": {},
    "onnx-reference": {
        "loop_never_by_trips": Status.REFUSED,
        "loop_never_by_condition": Status.REFUSED,
        "scan": Status.REFUSED,
        "functions": Status.REFUSED,
    },
    "CPU": {"captured_deep": Status.REFUSED, "functions": Status.UNSUPPORTED},
    "fold": {
        "captured_deep": Status.REFUSED,
        "functions": Status.UNSUPPORTED,
        "loop_by_trips": Status.UNSUPPORTED,
        "loop_by_condition": Status.UNSUPPORTED,
        "loop_never_by_trips": Status.UNSUPPORTED,
        "loop_never_by_condition": Status.UNSUPPORTED,
        "scan": Status.UNSUPPORTED,
    },
}
"""The models that a runtime does not run, with or without taps, and how it ends; it runs all others."""


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("runner", OF_ONNX)
def test_nodes_in_bodies_and_functions_of_onnx(name: str, runner: str, tmp_path: Path) -> None:
    text, feeds = NESTED[name]
    path = save(text, tmp_path / f"{name}.onnx")
    plain = runners.find(runner).run(path, feeds)
    outcome, nodes = run_tapped(runner, path, feeds)
    assert (outcome.status, outcome.message) == (plain.status, plain.message)
    assert outcome.status is DOES_NOT_RUN[runner].get(name, Status.OK)
    if outcome.status is not Status.OK:
        return
    for output, array in plain.outputs.items():
        assert np.array_equal(array, outcome.outputs[output])
    times = {"then": 1, "else": 1, "loop_by_trips": 3, "loop_by_condition": 5, "functions": 3}
    assert assert_all_true(outcome, nodes) == times.get(name, 0)
    found = [execution for tapped in outcome.tapped for execution in tapped.executions]
    if name == "loop_by_trips":
        assert [execution.place for execution in found] == [(0,), (1,), (2,)]
    if name == "functions" and runner.startswith("onnx"):
        assert [one.caller for one in found] == ["a", "own::StoreTwice/once", "own::StoreTwice/stored"]


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_nodes_in_a_loop_of_an_ir(trips: int, tmp_path: Path) -> None:
    feeds = {"cache": floats(7, 5), "row": floats(1, 5)}
    outcome, nodes = run_tapped("CPU", write_loop(tmp_path, trips), feeds)
    assert assert_all_true(outcome, nodes) == trips
    assert [execution.place for execution in outcome.tapped[0].executions] == [(n,) for n in range(trips)]


def write_outer_loop(folder: Path, trips: str, goes_on: str, inside: str, around: str) -> Path:
    """Write a Loop of a constant number of trips, with a body, and perhaps a body around it."""
    bodies = {
        "": "stored = ScatterElements(old, indices, updates)",
        "if": """flag = Constant<value = bool {1}>()
            stored = If(flag) <
                then_branch = t () => (float[4] x) { x = ScatterElements(old, indices, updates) },
                else_branch = e () => (float[4] y) { y = Identity(old) }>""",
        "loop": """yes = Constant<value = bool {1}>()
            stored = Loop(twice, yes, old) <body = inner (int64 i2, bool c2, float[4] o2) => (bool g2, float[4] s2)
                { g2 = Identity(c2) s2 = ScatterElements(o2, indices, updates) }>""",
    }  # fmt: skip
    loop = f"""= Loop(trips, {goes_on}, DATA) <
        body = b (int64 i, bool c, float[4] old) => (bool on, float[4] stored) {{
            {bodies[inside]} limit = Constant<value = int64 {{0}}>() on = Less(i, limit) }}>"""
    arounds = {
        "": f"done {loop.replace('DATA', 'data')}",
        "loop": f"""yes2 = Constant<value = bool {{1}}>()
            done = Loop(twice, yes2, data) <body = outer (int64 i3, bool c3, float[4] x3) => (bool g3, float[4] y3)
                {{ g3 = Identity(c3) y3 {loop.replace('DATA', 'x3')} }}>""",
        "if": f"""done = If(yes3) <then_branch = t2 () => (float[4] x4) {{ x4 {loop.replace('DATA', 'data')} }},
            else_branch = e2 () => (float[4] y4) {{ y4 = Identity(data) }}>""",
    }  # fmt: skip
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
        model (float[4] data, int64[2] indices, float[2] updates, bool go, bool yes3) => (float[4] done)
        <int64 trips = {{{trips}}}, int64 twice = {{2}}> {{ {arounds[around]} }}"""
    return save(text, folder / "model.onnx")


@pytest.mark.parametrize("around", ["", "loop", "if"])
@pytest.mark.parametrize("inside", ["", "loop", "if"])
@pytest.mark.parametrize(("trips", "goes_on", "count"), [("3", "go", 0), ("0", "", 0), ("3", "", 1)])
@pytest.mark.parametrize("runner", ["CPU", "onnxruntime"])
def test_only_iterations_that_ran_come_out(
    runner: str, trips: str, goes_on: str, count: int, inside: str, around: str, tmp_path: Path
) -> None:
    """OpenVINO stacks as many as a constant allows, and those that did not run are what is in memory."""
    path = write_outer_loop(tmp_path, trips, goes_on, inside, around)
    feeds = {"data": floats(4), "indices": np.array([1, 3]), "updates": floats(2) + 7,
             "go": np.array(False), "yes3": np.array(True)}  # fmt: skip
    plain = runners.find(runner).run(path, feeds)
    outcome, nodes = run_tapped(runner, path, feeds)
    assert (outcome.status, outcome.message) == (plain.status, plain.message)
    if plain.status is not Status.OK:
        assert "dead weak ptr" in plain.message
        return
    assert np.array_equal(outcome.outputs["done"], plain.outputs["done"])
    (tapped,) = outcome.tapped
    for execution in tapped.executions:
        assert_true(nodes[0], execution)
    times = count * (2 if inside == "loop" else 1) * (2 if around == "loop" else 1)
    assert len(tapped.executions) == (0 if tapped.problem else times)
    assert tapped.problem in {"", "OpenVINO has no node for the output 'stored'"}


def test_a_name_that_the_model_does_not_have_is_told(tmp_path: Path) -> None:
    path = Path(write_chain(tmp_path))
    taps = [Tap("nothing"), Tap("relu"), Tap("first")]
    for runner in ("CPU", "fold"):
        outcome = runners.find(runner).run(path, CHAIN, taps=taps)
        problems = [tapped.problem for tapped in outcome.tapped]
        assert problems == ["OpenVINO has no node of this name", "OpenVINO converts it to Relu", ""]
    path.write_text(path.read_text().replace('type="ReLU"', 'type="Own"'))
    outcome = runners.find("CPU").run(path, CHAIN, taps=taps)
    assert (outcome.status, outcome.tapped) == (Status.UNSUPPORTED, ())
    onnx_path = save(NESTED["then"][0], tmp_path / "then.onnx")
    taps = [Tap("nothing", "nowhere", ("f32",), (None,))]
    for runner, problem in (
        ("onnx-reference", "the model has no node of this name and output"),
        ("CPU", "OpenVINO has no node for the output 'nowhere'"),
    ):
        outcome = runners.find(runner).run(onnx_path, NESTED["then"][1], taps=taps)
        assert [tapped.problem for tapped in outcome.tapped] == [problem]


def write_choice(folder: Path, variant: str) -> str:
    """Write an If of two scatter nodes, which take their data and updates as inputs, or hold constants alone.

    With the variant "f64" the updates follow from constants, in f64.
    """
    ir, type = IrText(), "f64" if variant == "f64" else "f32"
    flag, data = ir.parameter("flag", "boolean"), ir.parameter("data", type, shape=("?", 2))
    bodies = []
    for name, row in (("then", 1), ("else", 0)):
        body = IrText(ir.weights)
        table = body.parameter("table", type, shape=("?", 2))
        if variant == "constants":
            table = body.const("rows", type, [[1, 2], [3, 4]])
        indices, axis = body.const("indices", "i64", [row]), body.const("axis", "i64", 0)
        updates = body.const("news", type, [[8, 9]])
        if variant != "constants":
            updates = body.add("updates", "Add", "opset1", [updates, updates], [(type, (1, 2))])
        inputs = [table, indices, updates, axis]
        written = body.add("written", "ScatterUpdate", "opset3", inputs, [(type, ("?", 2))])
        body.add("z_last", "Result", "opset1", [written], [])
        ports = '<input external_port_id="1" internal_layer_id="0"/>'
        ports += f'<output external_port_id="2" internal_layer_id="{body.count - 1}"/>'
        bodies.append(f"<{name}_port_map>{ports}</{name}_port_map>{body.body(f'{name}_body')}")
    chosen = ir.add("chosen", "If", "opset8", [flag, data], [(type, ("?", 2))], inside="".join(bodies))
    ir.add("result", "Result", "opset1", [chosen], [])
    return ir.write(folder, variant)


@pytest.mark.parametrize("runner", ["CPU", pytest.param("GPU@cpu", marks=pytest.mark.long)])
@pytest.mark.parametrize("variant", ["fed", "constants", "f64"])
def test_taps_of_branches_change_nothing(variant: str, runner: str, tmp_path: Path) -> None:
    """The GPU plugin sorts the outputs of a body by name, and computes no outputs that are constants."""
    if not (available := runners.find(runner).availability()).is_available:
        pytest.skip(available.why_not)
    path = write_choice(tmp_path, variant)
    for flag in (True, False):
        type = np.float64 if variant == "f64" else np.float32
        feeds = {"flag": np.array(flag), "data": floats(3, 2).astype(type)}
        outcome, nodes = run_tapped(runner, path, feeds)
        assert assert_all_true(outcome, nodes) == 1
        (expected,) = ir_scatter.evaluate_model(path, feeds).values()
        (got,) = outcome.outputs.values()
        assert got.tolist() == expected.tolist()


def write_iterator(folder: Path) -> str:
    """Write a TensorIterator that changes the second row of each pair of rows."""
    ir = IrText()
    table, row = ir.parameter("table", shape=(6, 5)), ir.parameter("row", shape=(1, 5))
    body = IrText(ir.weights)
    pair, new = body.parameter("pair", shape=(2, 5)), body.parameter("new", shape=(1, 5))
    axis, indices = body.const("axis", "i64", 0), body.const("indices", "i64", [1])
    written = body.add("written", "ScatterUpdate", "opset3", [pair, indices, new, axis], [("f32", (2, 5))])
    body.add("kept", "Result", "opset1", [written], [])
    cut = 'axis="0" start="0" end="-1" stride="2" part_size="2"'
    maps = f'''<input external_port_id="0" internal_layer_id="{pair.layer}" {cut}/>
<input external_port_id="1" internal_layer_id="{new.layer}"/>
<output external_port_id="2" internal_layer_id="{body.count - 1}" {cut}/>'''
    inside = f"<port_map>{maps}</port_map><back_edges/>{body.body('body')}"
    done = ir.add("pairs", "TensorIterator", "opset1", [table, row], [("f32", (6, 5))], inside=inside)
    ir.add("result", "Result", "opset1", [done], [])
    return ir.write(folder, "iterator")


def test_nodes_in_a_tensor_iterator(tmp_path: Path) -> None:
    outcome, nodes = run_tapped(
        "CPU", write_iterator(tmp_path), {"table": floats(6, 5), "row": -floats(1, 5)}
    )
    assert assert_all_true(outcome, nodes) == 3
    parts = [np.asarray(execution.inputs[0]).tolist() for execution in outcome.tapped[0].executions]
    assert parts == floats(6, 5).reshape(3, 2, 5).tolist()


NESTED_LOOPS = """
<ir_version: 10, opset_import: ["" : OPSET]>
loops (float[4, 3] cache, int64 outer, int64 inner) => (float[4, 3] last)
<int64 zero = {0}, int64 one = {1}, bool true = {1}, int64[1, 1] place = {2}> {
  last = Loop (outer, true, cache) <
    body = rows (int64 i, bool again, float[4, 3] old) => (bool more, float[4, 3] new) {
      more = Identity (again)
      new = Loop (inner, true, old) <
        body = columns (int64 j, bool on, float[4, 3] before) => (bool go, float[4, 3] after) {
          go = Identity (on)
          odd = Equal (j, one)
          after = If (odd) <
            then_branch = then () => (float[4, 3] written) {
              first = Constant <value_ints = [0]> ()
              row = Gather (cache, first)
              doubled = Add (row, row)
              written = ScatterND (before, place, doubled)
            },
            else_branch = other () => (float[4, 3] same) { same = Add (before, before) }
          >
        }
      >
    }
  >
}
"""


@pytest.mark.parametrize("opset", [12, 18])
@pytest.mark.parametrize("runner", ["onnxruntime", "onnx-reference"])
def test_a_branch_in_a_loop_in_a_loop(runner: str, opset: int, tmp_path: Path) -> None:
    path = save(NESTED_LOOPS.replace("OPSET", str(opset)), tmp_path / "loops.onnx")
    feeds = {"cache": floats(4, 3), "outer": np.array(2), "inner": np.array(4)}
    outcome, nodes = run_tapped(runner, path, feeds)
    assert assert_all_true(outcome, nodes) == 2
    assert [execution.place for execution in outcome.tapped[0].executions] == [(0, 1), (1, 1)]


DYNAMIC = NESTED_LOOPS.replace("float[4, 3]", "float[N, M]").replace("OPSET", "18")


@pytest.mark.parametrize("runner", ["onnxruntime", "onnx-reference"])
def test_what_cannot_be_tapped_is_told_and_the_model_runs(runner: str, tmp_path: Path) -> None:
    path = save(DYNAMIC, tmp_path / "dynamic.onnx")
    feeds = {"cache": floats(4, 3), "outer": np.array(2), "inner": np.array(4)}
    outcome, _ = run_tapped(runner, path, feeds)
    assert outcome.status is Status.OK
    expected = ir_scatter.evaluate_model(path, feeds)
    assert np.array_equal(outcome.outputs["last"], expected["last"])
    problem = "it is in a branch inside a loop, and the shape of a value is unknown"
    assert [tapped.problem for tapped in outcome.tapped] == [problem]


GROWING = """
<ir_version: 10, opset_import: ["" : 18]>
growing (float[N] start, float[2] more, int64 trips) => (float[M] last, float[2] other)
<bool true = {1}, int64[1, 1] place = {0}> {
  one = Constant <value_floats = [1.0]> ()
  other = ScatterND (more, place, one)
  last = Loop (trips, true, start) <
    body = body (int64 i, bool again, float[K] old) => (bool on, float[L] new) {
      on = Identity (again)
      first = Constant <value_floats = [7.0]> ()
      written = ScatterND (old, place, first)
      new = Concat <axis = 0> (written, more)
    }
  >
}
"""


@pytest.mark.onnxruntime
def test_a_loop_whose_values_grow_costs_only_the_taps_inside(tmp_path: Path) -> None:
    path = save(GROWING, tmp_path / "growing.onnx")
    feeds = {"start": floats(3), "more": floats(2), "trips": np.array(3)}
    outcome, nodes = run_tapped("onnxruntime", path, feeds)
    assert outcome.status is Status.OK
    assert np.array_equal(outcome.outputs["last"], ir_scatter.evaluate_model(path, feeds)["last"])
    by_scope = {tapped.tap.scope: tapped for tapped in outcome.tapped}
    assert by_scope["last:body/written"].problem.startswith(
        "the model fails if values in its bodies are added as outputs: "
    )
    (execution,) = by_scope["other"].executions
    assert_true(next(node for node in nodes if node.scope == "other"), execution)


@pytest.mark.onnxruntime
@pytest.mark.parametrize("runner", ["onnxruntime", "onnx-reference", "CPU"])
def test_tensors_beside_the_model_are_found(runner: str, tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18]>
    stored (float[2, 3] rows) => (float[4, 3] out) <int64[2, 1] places = {3, 0}, float[4, 3] data = {
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> { out = ScatterND (data, places, rows) }
    """
    model = parser.parse_model(text)
    for tensor in model.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    path = tmp_path / "stored.onnx"
    onnx.save(model, path, save_as_external_data=True, location="stored.data", size_threshold=0)
    assert (tmp_path / "stored.data").stat().st_size >= 48
    outcome, nodes = run_tapped(runner, path, {"rows": floats(2, 3)})
    assert assert_all_true(outcome, nodes) == 1
    data = outcome.tapped[0].executions[0].inputs[0]
    assert data is not None
    assert data.ravel().tolist() == list(range(1, 13))
