"""Models with a node that NumPy does not compute: whatever does not depend on it is computed and judged."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter.compare.headline import headline
from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.result import Compared, CompareSettings, Level, Relation
from ir_scatter.compare.run import compare
from ir_scatter.compare.snapshot import save as save_results
from ir_scatter.core.errors import EvaluationFailed, UnknownOperator
from ir_scatter.evaluate.model import prepare
from ir_scatter.reading import read
from ir_scatter.report import comparison_text
from ir_scatter.report.comparison_json import document
from ir_scatter.runners.base import Status
from ir_scatter.runners.defaults import NUMPY
from tests.compare.planted import Planted
from tests.models.onnx_text import save

HEADER = '<ir_version: 10, opset_import: ["" : 18, "com.acme" : 1]>\n'
FEEDS = {
    "data": np.arange(4, dtype=np.float32),
    "indices": np.array([[1], [3]]),
    "new": np.array([7, 8], np.float32),
}
INPUTS = "float[4] data, int64[2, 1] indices, float[2] new"

HASH = (
    HEADER + f"g ({INPUTS}) => (float[4] y, float[4] z) <float[4] h> {{"
    "y = ScatterND (data, indices, new) h = com.acme.Hash (y) z = Add (h, y) }"
)
NOISE = (
    HEADER + f"g ({INPUTS}) => (float[4] y, float[4] z) <float[4] n> {{"
    "y = ScatterND (data, indices, new) n = RandomNormalLike (y) z = Add (n, y) }"
)
BEHIND = (
    HEADER + f"g ({INPUTS}) => (float[4] y, float[4] z) <float[4] h> {{"
    "y = Neg (data) h = com.acme.Hash (data) z = ScatterND (h, indices, new) }"
)


def _compared(folder: Path, text: str, *runners: Planted, feeds: Any = FEEDS, **settings: Any) -> Compared:
    path = save(text, folder / "model.onnx")
    return compare(path, runners or [Planted("a"), Planted("b")], CompareSettings(**settings), feeds=feeds)


def _changed(name: str, by: float) -> Any:
    return lambda output, array, *_: array + by if output == name else array


def _verdicts(found: Compared, level: Level = Level.MODEL) -> dict[tuple[str, str, str], Verdict]:
    return {
        (each.tensor if level is Level.MODEL else each.node or "", each.subject, each.reference): (
            each.measure.verdict
        )
        for each in found.comparisons
        if each.level is level
    }


def test_outputs_before_the_node_are_judged_by_numpy_and_others_against_each_other(tmp_path: Path) -> None:
    found = _compared(tmp_path, HASH)
    numpy = found.outcomes[0]
    assert (numpy.runner, numpy.status, numpy.not_computed) == (NUMPY, Status.OK, ("z",))
    assert numpy.message == (
        "NumPy computes nothing after h (com.acme::Hash): output z is judged by node only"
    )
    assert _verdicts(found) == {
        ("y", "a", "numpy"): Verdict.EQUAL,
        ("y", "b", "numpy"): Verdict.EQUAL,
        ("z", "b", "a"): Verdict.EQUAL,
    }
    assert not found.differs
    assert headline(found).sentence == (
        "3 runners agree on 1 node and 2 outputs, 1 case; NumPy does not compute output z"
    )
    assert numpy.message in comparison_text.text(found)
    (outcome, *_) = document(found)["outcomes"]
    assert (outcome["status"], outcome["not_computed"]) == ("ok", ("z",))
    assert all("not_computed" not in each for each in document(found)["outcomes"][1:])


def test_two_models_that_numpy_computes_in_part(tmp_path: Path) -> None:
    """Each output that NumPy computes is compared with it in both models; others only between the models."""
    models = [read(save(HASH, tmp_path / name)) for name in ("first.onnx", "second.onnx")]
    found = compare(models, [Planted("a")], CompareSettings(), feeds=FEEDS)
    assert {outcome.message for outcome in found.by_model["numpy"]} == {
        "NumPy computes nothing after h (com.acme::Hash): output z has no reference"
    }
    assert not found.differs
    pairs = {(each.tensor, each.subject, each.relation) for each in found.comparisons}
    assert ("z", "a", Relation.MODELS) in pairs
    assert ("y", "a", Relation.DOCUMENT) in pairs
    assert ("z", "a", Relation.DOCUMENT) not in pairs
    wrong = Planted("a", output=lambda name, array, *_: array + 1 if name == "y" else array)
    found = compare(models, [wrong], CompareSettings(), feeds=FEEDS)
    assert found.differs


def test_a_wrong_output_before_the_node_is_found(tmp_path: Path) -> None:
    found = _compared(tmp_path, HASH, Planted("a", output=_changed("y", 1)))
    assert headline(found).sentence.startswith("a is wrong at output y: [0] is 1, NumPy computes 0")


def test_a_wrong_output_behind_the_node_is_no_concern_of_numpy(tmp_path: Path) -> None:
    found = _compared(tmp_path, HASH, Planted("a"), Planted("b", output=_changed("z", 1)))
    assert _verdicts(found)["z", "b", "a"] is Verdict.MISMATCH
    assert ("z", "b", "numpy") not in _verdicts(found)


def test_a_node_behind_it_is_judged_from_its_tapped_inputs(tmp_path: Path) -> None:
    found = _compared(tmp_path, BEHIND, Planted("a"))
    assert _verdicts(found, Level.NODE) == {("z", "a", "numpy"): Verdict.EQUAL}

    def is_wrong(name: str, array: Any, *_: Any) -> Any:
        return array + 1

    wrong = _compared(tmp_path, BEHIND, Planted("a", tap=is_wrong))
    assert _verdicts(wrong, Level.NODE) == {("z", "a", "numpy"): Verdict.MISMATCH}


def test_illegal_indices_behind_it_are_found(tmp_path: Path) -> None:
    feeds = FEEDS | {"indices": np.array([[1], [4]])}
    found = compare(save(BEHIND, tmp_path / "model.onnx"), [], CompareSettings(), feeds=feeds)
    assert [(each.node, each.message) for each in found.guarded] == [
        ("z", "indices[1, 0] is 4, expected -4 to 3")
    ]


UNDEFINED = (
    HEADER + f"g ({INPUTS}) => (float[4] y, float[4] z) {{"
    "y = ScatterND (data, indices, new) m = Mod (y, data) z = Add (m, y) }"
)


def test_a_case_that_no_specification_defines_ends_it_too(tmp_path: Path) -> None:
    found = compare(save(UNDEFINED, tmp_path / "model.onnx"), [], CompareSettings(), feeds=FEEDS)
    numpy = found.outcomes[0]
    assert (numpy.status, numpy.not_computed) == (Status.OK, ("z",))
    assert numpy.message == (
        "NumPy computes nothing after m (Mod: fmod is 0, expected 1 for floating-point numbers): "
        "output z is judged by node only"
    )
    program = prepare(tmp_path / "model.onnx")
    assert [*program.run_in_part(FEEDS).outputs] == ["y"]
    with pytest.raises(EvaluationFailed, match=r"^Mod m \(.*: Mod: fmod is 0, expected 1"):
        program.run(FEEDS)
    alone = save(UNDEFINED.replace("float[4] y, float[4] z", "float[4] z"), tmp_path / "alone.onnx")
    (numpy,) = compare(alone, [], CompareSettings(), feeds=FEEDS).outcomes
    assert numpy.status is Status.REFUSED
    assert numpy.message.startswith("Mod m: Mod: fmod is 0")


def test_random_operators_are_named(tmp_path: Path) -> None:
    found = _compared(tmp_path, NOISE, Planted("a", seed=1), Planted("b", seed=2))
    assert found.outcomes[0].message == (
        "NumPy computes nothing after n (RandomNormalLike, which draws random numbers): "
        "output z is judged by node only"
    )
    assert _verdicts(found) == {
        ("y", "a", "numpy"): Verdict.EQUAL,
        ("y", "b", "numpy"): Verdict.EQUAL,
        ("z", "b", "a"): Verdict.CONTESTED,
    }
    assert not found.differs


def test_saved_results_tell_which_outputs_were_not_computed(tmp_path: Path) -> None:
    found = _compared(tmp_path, HASH, keeps_runs=True)
    save_results(found, tmp_path / "results")
    again = compare(
        tmp_path / "model.onnx", (), CompareSettings(), with_numpy=False, against=tmp_path / "results"
    )
    assert not again.differs
    assert {each.tensor for each in again.comparisons if each.level is Level.MODEL} == {"y", "z"}


BODIES = {
    "a branch that is taken": (
        "h = com.acme.Hash (data) no = Constant <value = bool {0}> ()"
        "z = If (no) < then_branch = t () => (float[4] p) { p = Neg (h) },"
        " else_branch = e () => (float[4] q) { q = Neg (data) } >",
        True,
    ),
    "a branch with an unknown operator that is not taken": (
        "no = Constant <value = bool {0}> ()"
        "z = If (no) < then_branch = t () => (float[4] p) { p = com.acme.Hash (data) },"
        " else_branch = e () => (float[4] q) { q = Neg (data) } >",
        True,
    ),
    "an unknown condition": (
        "h = com.acme.Hash (data) one = Constant <value = float {1}> () s = ReduceSum <keepdims = 0> (h)"
        "c = Less (s, one)"
        "z = If (c) < then_branch = t () => (float[4] p) { p = Neg (data) },"
        " else_branch = e () => (float[4] q) { q = Identity (data) } >",
        False,
    ),
    "an unknown trip count": (
        "h = com.acme.Hash (data) n = Cast <to = 7> (h) m = ReduceMax <keepdims = 0> (n)"
        "z = Loop (m, , data) < body = b (int64 i, bool c, float[4] x) => (bool d, float[4] o)"
        " { d = Identity (c) o = Neg (x) } >",
        False,
    ),
    "a loop that carries an unknown value beside a known one": (
        "k = Constant <value = int64 {3}> ()"
        "w, z = Loop (k, , data, data) < body = b (int64 i, bool c, float[4] x, float[4] v)"
        " => (bool d, float[4] o, float[4] p)"
        " { d = Identity (c) o = com.acme.Hash (x) p = Neg (v) } >",
        True,
    ),
    "a loop that goes on as long as an unknown value says": (
        "k = Constant <value = int64 {3}> () zero = Constant <value = float {0}> ()"
        "z = Loop (k, , data) < body = b (int64 i, bool c, float[4] x) => (bool d, float[4] o)"
        " { o = Neg (x) h = com.acme.Hash (x) s = ReduceSum <keepdims = 0> (h) d = Less (s, zero) } >",
        False,
    ),
    "a scan output of unknown parts": (
        "k = Constant <value = int64 {3}> ()"
        "w, z = Loop (k, , data) < body = b (int64 i, bool c, float[4] x) => (bool d, float[4] o, float[4] p)"
        " { d = Identity (c) o = Neg (x) p = com.acme.Hash (x) } >",
        False,
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies(name: str, tmp_path: Path) -> None:
    lines, is_computed = BODIES[name]
    text = HEADER + f"g (float[4] data) => (float[4] y, float[N] z) {{ y = Relu (data) {lines} }}"
    path, feeds = save(text, tmp_path / "model.onnx"), {"data": FEEDS["data"]}
    program = prepare(path)
    outputs, not_computed, _ = program.run_in_part(feeds)
    assert [*outputs] == (["y", "z"] if is_computed else ["y"])
    assert [*not_computed] == ([] if is_computed else ["z"])
    if is_computed:
        assert program.run(feeds).keys() == {"y", "z"}
    else:
        with pytest.raises(UnknownOperator, match=r"NumPy does not compute com\.acme::Hash at "):
            program.run(feeds)
    found = compare(path, [], CompareSettings(), feeds=feeds)
    assert found.outcomes[0].status is Status.OK
    assert found.outcomes[0].not_computed == (() if is_computed else ("z",))
