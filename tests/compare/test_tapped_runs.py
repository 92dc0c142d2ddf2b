"""A runner that says something else when nodes are tapped, and nodes that change from run to run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter.compare import request as jobs
from ir_scatter.compare.headline import headline
from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.request import ComparedModels, Sources
from ir_scatter.compare.result import Compared, CompareSettings, Comparison, Level
from ir_scatter.compare.run import compare
from ir_scatter.compare.snapshot import save
from ir_scatter.reading import read
from ir_scatter.report.comparison_html import render
from ir_scatter.report.comparison_json import document
from ir_scatter.report.comparison_text import text
from ir_scatter.runners.base import Status
from tests.compare.models import run
from tests.compare.planted import Planted, at
from tests.compare.test_contested import BY_ELEMENT, FEEDS, write
from tests.models.ir_text import IrText
from tests.models.onnx_text import save as save_onnx

PLAIN = {**FEEDS, "indices": np.array([[2], [3], [4]])}
"""Nothing is contested."""


def model(folder: Path) -> Path:
    shape, lines, _ = BY_ELEMENT["added"]
    return write(folder, shape, *lines)


def compared(
    path: Path, *runners: Planted, numpy: bool = True, feeds: Any = None, **settings: Any
) -> Compared:
    return compare(path, runners, CompareSettings(**settings), with_numpy=numpy, feeds=feeds or PLAIN)


class Turning(Planted):
    """Another update wins with taps than without, or in every second run."""

    def __init__(self, *, by_taps: bool, **changes: Any) -> None:
        super().__init__(**changes)
        self.by_taps = by_taps

    def run(self, *arguments: Any, **named: Any) -> Any:
        is_first = bool(named.get("taps")) if self.by_taps else len(self.asked) % 2 == 0
        self.order = "first" if is_first else "last"
        return super().run(*arguments, **named)


OF_TAPS = [(Level.MODEL, "planted", "planted", Verdict.NONDETERMINISTIC)]


def differences(found: Compared) -> list[tuple[Level, str, str, Verdict]]:
    return [
        (one.level, one.subject, one.reference, one.measure.verdict)
        for one in found.comparisons
        if one.measure.verdict.is_difference
    ]


@pytest.mark.parametrize("numpy", [True, False])
def test_only_the_run_without_taps_is_wrong(tmp_path: Path, numpy: bool) -> None:
    """NumPy tells even if nobody asked for it."""
    found = compared(model(tmp_path), Planted(output=at(3, tapped=False)), numpy=numpy)
    assert differences(found) == [(Level.MODEL, "planted", "numpy", Verdict.MISMATCH)]
    assert [odd.message for odd in found.outliers] == [
        "planted contradicts itself when nodes are tapped: [3] is 111 with taps and 91 without; "
        "the specification requires 111: right with taps, wrong without"
    ]


def test_only_the_run_with_taps_is_wrong(tmp_path: Path) -> None:
    found = compared(model(tmp_path), Planted(output=at(3, tapped=True)))
    assert differences(found) == OF_TAPS
    assert found.outliers[0].runners == ("planted",)
    first, *rest = text(found).splitlines()
    contradiction = "planted contradicts itself when nodes are tapped: [3] is 91 with taps and 111 without"
    assert first.startswith(f"output out: {contradiction}; the specification requires 111: wrong with taps")
    assert "nondeterministic: out on planted: changes when nodes are tapped; needs" in "\n".join(rest)
    assert contradiction not in "\n".join(rest)
    (row,) = [row for row in document(found)["comparisons"] if row["verdict"] == "nondeterministic"]
    assert (row["tapped"], row["worst"]) == (True, {"index": [3], "got": 91, "expected": 111})
    assert "without taps and with them" in render(ComparedModels((found,)))


def test_one_runner_that_contradicts_itself_is_named_beside_others(tmp_path: Path) -> None:
    found = compared(model(tmp_path), Planted("a"), Planted("b", output=at(3, tapped=True)), Planted("c"))
    assert [odd.runners for odd in found.outliers] == [("b",)]
    both = compared(model(tmp_path), Planted("a"), Planted("b", output=at(3, tapped=False)), Planted("c"))
    assert [odd.runners for odd in both.outliers] == [("b",)]
    assert any("b contradicts itself" in remark for remark in both.remarks)


def test_an_output_that_is_missing_with_taps(tmp_path: Path) -> None:
    path = write(
        tmp_path, "int32[6] more, int32[6]", "more = Neg (data)", "out = ScatterND (data, indices, new)"
    )

    def lacking(name: str, array: Any, is_tapped: bool, number: int) -> Any:
        return None if is_tapped and name == "more" else array

    found = compared(path, Planted(output=lacking))
    assert differences(found) == OF_TAPS
    assert "is missing when nodes are tapped" in text(found)


def test_contested_elements_may_change_and_others_may_not(tmp_path: Path) -> None:
    path = model(tmp_path)
    found = compared(path, Turning(by_taps=True), feeds=FEEDS)
    assert not found.differs
    assert found.remarks == (
        "planted: output out changes by up to 1 when nodes are tapped: an upstream node has repeated indices",
    )
    assert (
        differences(compared(path, Turning(by_taps=True, output=at(0, tapped=True)), feeds=FEEDS)) == OF_TAPS
    )
    found = compared(path, Turning(by_taps=False), feeds=FEEDS, repeat=4)
    assert {one.measure.verdict for one in of_nodes(found)} == {Verdict.CONTESTED}
    assert not found.differs
    wrong = compared(path, Turning(by_taps=False, tap=at(0, runs=[2])), feeds=FEEDS, repeat=4)
    assert of_nodes(wrong)[0].measure.verdict is Verdict.MISMATCH


def write_ir(folder: Path, name: str, *, is_known: bool) -> Path:
    """Write a model behind whose scatter node may stand an operator that NumPy does not compute."""
    ir = IrText()
    ports = [ir.parameter("data", "i32", (6,)), ir.parameter("indices", "i64", (3, 1))]
    ports.append(ir.parameter("new", "i32", (3,)))
    found = ir.add("s", "ScatterNDUpdate", "opset4", ports, [("i32", (6,))])
    if not is_known:
        found = ir.add("unknown", "Unknown", "opset1", [found], [("i32", (6,))])
    ir.add("out", "Result", "opset1", [found], [])
    return Path(ir.write(folder, name))


class Knowing(Planted):
    """Knows that operator, which gives what it gets: it runs the model without it."""

    def __init__(self, path: Path, **changes: Any) -> None:
        super().__init__(**changes)
        self.path = path

    def run(self, model_path: Any, feeds: Any, **named: Any) -> Any:
        found = super().run(self.path, feeds, **named)
        taps = [replace(one, tap=tap) for tap, one in zip(named.get("taps", ()), found.tapped, strict=False)]
        return replace(found, tapped=tuple(taps))


@pytest.mark.parametrize("is_node_wrong", [False, True])
def test_where_numpy_cannot_tell_the_node_level_may(tmp_path: Path, is_node_wrong: bool) -> None:
    is_wrong = {"tap": at(0)} if is_node_wrong else {}
    known, path = (write_ir(tmp_path, name, is_known=name == "known") for name in ("known", "unknown"))
    runner = Knowing(known, output=at(3, tapped=False), **is_wrong)
    feeds = {name: array for name, array in PLAIN.items() if name != "other"}
    found = compare(path, [runner], CompareSettings(), feeds=feeds)
    assert found.outcomes[0].status is Status.UNSUPPORTED
    (one,) = (one for one in found.comparisons if one.level is Level.MODEL)
    assert one.measure.verdict is (Verdict.NONDETERMINISTIC if is_node_wrong else Verdict.MISMATCH)
    assert one.tapped
    assert found.differs
    if not is_node_wrong:
        assert "on planted against planted with taps: 1 of 6 elements differ" in text(found)
        assert found.outliers[0].message.endswith("with taps every scatter node is right")


def test_saved_results_are_judged_once_more(tmp_path: Path) -> None:
    path = model(tmp_path)
    for runner, verdict in (
        (Planted(output=at(3, tapped=True)), Verdict.NONDETERMINISTIC),
        (Planted(tap=at(3, runs=[1])), Verdict.MISMATCH),
    ):
        found = compared(path, runner, keeps_runs=True, repeat=3)
        save(found, tmp_path / "results")
        again = compare(read(path), (), CompareSettings(), with_numpy=False, against=tmp_path / "results")
        assert [one[-1] for one in differences(again)] == [verdict]


def test_one_of_many_models_that_contradicts_itself_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process of its own it does not, which makes it no better."""
    paths = []
    for name in "ab":
        (tmp_path / name).mkdir()
        paths.append(str(model(tmp_path / name)))

    class Once(Planted):
        def run(self, *arguments: Any, **named: Any) -> Any:
            self.output = at(3, tapped=True, runs=[1])  # of the second model, and not again
            return super().run(*arguments, **named)

    runner = Once()
    monkeypatch.setattr(jobs, "find_sources", lambda *_, **__: Sources((runner,), True))
    first, second = jobs.run_job(jobs.CompareRequest(models=tuple(paths), each=True)).found
    assert not first.differs
    assert second.differs
    assert [odd.runners for odd in second.outliers] == [("planted",)]


def of_nodes(found: Compared) -> list[Comparison]:
    return [one for one in found.comparisons if one.level is Level.NODE]


def test_each_repetition_with_taps_is_judged(tmp_path: Path) -> None:
    path = model(tmp_path)
    for number in range(3):
        found = compared(path, Planted(tap=at(3, runs=[number])), repeat=3)
        (one,) = of_nodes(found)
        assert (one.measure.verdict, one.measure.mismatched, one.wrong_runs) == (Verdict.MISMATCH, 1, (1, 3))
        assert found.differs
        assert "in 1 of 3 runs" in text(found)
        row = document(found)["comparisons"][-1]
        assert row["wrong_runs"] == {"wrong": 1, "of": 3}
    (one,) = of_nodes(compared(path, Planted(tap=at(3)), repeat=3))
    assert (one.measure.verdict, one.wrong_runs) == (Verdict.MISMATCH, None)
    assert not compared(path, Planted(), repeat=3).differs


def test_a_run_with_taps_that_fails_ends_the_repetitions(tmp_path: Path) -> None:
    ending = lambda is_tapped, number: Status.CRASHED if is_tapped and number == 1 else Status.OK  # noqa: E731
    for runner, verdicts, reason in (
        (Planted(ending=ending), [Verdict.EQUAL], "the run with taps: crashed as it was told"),
        (Planted(silent=["s"]), [], "the runner gave no answer for it"),
    ):
        found = compared(model(tmp_path), runner, repeat=3)
        assert [one.measure.verdict for one in of_nodes(found)] == verdicts
        assert [(one.node, one.reason) for one in found.not_tapped] == [("s", reason)]


def test_results_that_nobody_can_judge_are_held_against_each_other(tmp_path: Path) -> None:
    """Inputs of a type that the operator does not take: NumPy says nothing of them."""

    class Mistyped(Planted):
        def run(self, *arguments: Any, **named: Any) -> Any:
            found = super().run(*arguments, **named)
            tapped = []
            for one in found.tapped:
                executions = (replace(each, inputs=(None, *each.inputs[1:])) for each in one.executions)
                tapped.append(replace(one, executions=tuple(executions)))
            return replace(found, tapped=tuple(tapped))

    path = model(tmp_path)
    assert not compared(path, Mistyped(), repeat=2).differs
    found = compared(path, Mistyped(tap=at(3, runs=[1])), repeat=2)
    assert differences(found) == [(Level.NODE, "planted", "planted", Verdict.NONDETERMINISTIC)]


@pytest.mark.openvino
def test_the_cpu_plugin_updates_an_input_of_a_body_in_place(tmp_path: Path) -> None:
    """With taps it does not, which is how 31 in place of 11 was seen, and passed over."""
    ir = IrText()
    parts, data = ir.parameter("parts", "i32", (3, 2)), ir.parameter("data", "i32", (2,))
    body = IrText(ir.weights)
    part, old = body.parameter("part", "i32", (1, 2)), body.parameter("old", "i32", (2,))
    indices, axis = body.const("indices", "i64", [0]), body.const("axis", "i64", 0)
    ten = body.const("ten", "i32", [10])
    given, word = [old, indices, ten, axis], {"reduction": "sum"}
    written = body.add("written", "ScatterElementsUpdate", "opset12", given, [("i32", (2,))], word)
    both = body.add("both", "Add", "opset1", [part, written], [("i32", (1, 2))])
    last = body.add("last", "Result", "opset1", [written], [])
    each = body.add("each", "Result", "opset1", [both], [])
    cut = 'axis="0" start="0" end="-1" stride="1" part_size="1"'
    maps = (
        f'<port_map><input external_port_id="0" internal_layer_id="{part.layer}" {cut}/>'
        f'<input external_port_id="1" internal_layer_id="{old.layer}"/>'
        f'<output external_port_id="2" internal_layer_id="{last.layer}"/>'
        f'<output external_port_id="3" internal_layer_id="{each.layer}" {cut}/></port_map><back_edges/>'
    )
    results, inside = [("i32", (2,)), ("i32", (3, 2))], maps + body.body("body")
    done = ir.add("done", "TensorIterator", "opset1", [parts, data], results, inside=inside)
    ir.add("r0", "Result", "opset1", [done], [])
    ir.add("r1", "Result", "opset1", [replace(done, port=done.port + 1, dims=(3, 2))], [])
    feeds = {"parts": np.zeros((3, 2), np.int32), "data": np.array([1, 5], np.int32)}
    for numpy in (True, False):
        found = run(ir.write(tmp_path), ["openvino:CPU"], feeds, with_numpy=numpy)
        wrong = differences(found)
        assert wrong, found.remarks
        assert {(level, verdict) for level, _, _, verdict in wrong} == {(Level.MODEL, Verdict.MISMATCH)}
        worst = next(one.measure.worst for one in found.comparisons if one.measure.worst)
        assert (worst.got, worst.expected) == (31, 11)
        assert any("contradicts itself" in odd.message for odd in found.outliers)


class ChangedByTaps(Planted):
    """Computes other indices for a node if there are taps, and with `breaks` other outputs as well."""

    breaks: tuple[bool, ...] = (True,)

    def _once(self, path: str, feeds: Any, taps: Any, number: int) -> Any:
        outputs, tapped = super()._once(path, feeds, taps, number)
        if bool(taps) in self.breaks:
            outputs = {name: array + 1 for name, array in outputs.items()}
        illegal = []
        for one in tapped:
            executions = []
            for execution in one.executions:
                data, indices, *rest = execution.inputs
                assert indices is not None
                executions.append(replace(execution, inputs=(data, indices + 99, *rest)))
            illegal.append(replace(one, executions=tuple(executions)))
        return outputs, tuple(illegal)


@pytest.mark.parametrize(("breaks", "is_illegal"), [((True,), False), ((), False), ((True, False), True)])
def test_illegal_indices_with_taps_only(breaks: tuple[bool, ...], is_illegal: bool, tmp_path: Path) -> None:
    """The inputs are legal, and the run without taps is right: taps are to blame, not the inputs."""
    text = """<ir_version: 10, opset_import: ["" : 18]>
    taps (float[4, 3] data, int64[2, 1] i, float[2, 3] u) => (float[4, 3] y) { y = ScatterND (data, i, u) }"""
    path = save_onnx(text, tmp_path / "taps.onnx")
    runner = ChangedByTaps("planted")
    runner.breaks = breaks
    found = compare(path, [runner], CompareSettings(), with_numpy=True)
    head = headline(found)
    assert any(one.is_illegal for one in found.guarded) == is_illegal
    assert ("illegal indices on planted" in head.sentence) == is_illegal
    if not is_illegal:
        (missing,) = found.not_tapped
        assert missing.reason.startswith("with taps it computes different indices, which are illegal (")
    assert runner.closed
