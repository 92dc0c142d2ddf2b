"""What plugins and runtimes are known to do, found by comparing; each on the smallest model."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.result import Compared, Level
from ir_scatter.runners.base import Status
from tests.compare.models import Array, floats, only, run, verdicts, write_node

CPU, FOLD, GPU = "openvino:CPU", "openvino:fold", "openvino:GPU@cpu"

pytestmark = pytest.mark.openvino


def i64(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def statuses(found: Compared) -> dict[str, Status]:
    return {one.runner: one.status for one in found.outcomes}


def compared(folder: Path, names: list[str], type: str, opset: str, *inputs: Array, **named: Any) -> Compared:
    """Compare a model of one node; the reduction is an attribute of it, the rest are settings."""
    attributes = {"reduction": named.pop("reduction")} if "reduction" in named else {}
    path, feeds = write_node(folder, type, opset, inputs, **attributes)
    return run(path, names, feeds, **named)


def test_what_is_right_is_equal(tmp_path: Path) -> None:
    inputs = [floats(3, 5), i64(2, 0), -floats(2, 5), i64(0)]
    found = compared(tmp_path, [CPU, FOLD], "ScatterUpdate", "opset3", *inputs)
    assert not found.differs
    assert set(verdicts(found, Level.MODEL).values()) == {Verdict.EQUAL}
    assert set(verdicts(found, Level.NODE)) == {("node", CPU), ("node", FOLD)}
    assert all(one.got is None and one.inputs == () for one in found.comparisons)
    assert not any((found.guarded, found.outliers, found.not_tapped, found.remarks))


Known = tuple[str, str, list[Array], dict[str, str], dict[str, Verdict]]
EQUAL, WRONG = Verdict.EQUAL, Verdict.MISMATCH
KNOWN: dict[str, Known] = {
    "folding, and a dimension of 1 behind the axis": (
        "ScatterUpdate", "opset3", [floats(3, 2, 1), i64(2, 0), -floats(2, 2, 1), i64(0)], {},
        {CPU: EQUAL, FOLD: WRONG},
    ),
    "f64 that is computed as f32": (
        "ScatterUpdate", "opset3", [np.array([0.1, 0.5]), i64(1), np.array([0.25]), i64(0)], {}, {CPU: WRONG},
    ),
    "data that are left alone where each update is the whole": (
        "ScatterNDUpdate", "opset4", [floats(2, 3), np.zeros((1, 0), np.int64), -floats(1, 2, 3)], {},
        {CPU: WRONG, FOLD: EQUAL},
    ),
    "a mean of whole numbers that is rounded towards zero": (
        "ScatterElementsUpdate", "opset12",
        [np.array([-3, 4], np.int32), i64(0, 0), np.array([-4, -4], np.int32), i64(0)], {"reduction": "mean"},
        {CPU: WRONG, FOLD: EQUAL},
    ),
    "a negative axis on GPU": (
        "ScatterUpdate", "opset3", [floats(3, 4), i64(2, 0), -floats(3, 2), i64(-1)], {}, {CPU: EQUAL, GPU: WRONG},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_who_is_wrong_is_named(tmp_path: Path, name: str) -> None:
    type, opset, inputs, attributes, expected = KNOWN[name]
    found = compared(tmp_path, list(expected), type, opset, *inputs, **attributes)
    for level in Level:
        assert {runner: only(found, level, runner).measure.verdict for runner in expected} == expected
    wrong = [runner for runner, verdict in expected.items() if verdict is WRONG]
    if len(expected) > 1:
        assert [odd.runners for odd in found.outliers] == [tuple(wrong)] * 2
    worst = only(found, Level.NODE, wrong[0]).measure.worst
    assert worst is not None
    assert len(expected) < 2 or f": {list(worst.index)} is" in found.outliers[1].message
    if GPU in expected:
        assert "not a GPU" in found.about[GPU][0]


def test_the_cpu_plugin_computes_64_bits_in_32(tmp_path: Path) -> None:
    inputs = [i64(2**40 + 1, 5, 7), i64(1), i64(9), i64(0)]
    found = compared(tmp_path, [CPU, FOLD], "ScatterUpdate", "opset3", *inputs)
    one = only(found, Level.NODE, CPU).measure
    assert (one.verdict, one.mismatched, one.max_abs) == (Verdict.MISMATCH, 1, 2.0**40)
    assert one.worst is not None
    assert (one.worst.index, one.worst.got, one.worst.expected) == ((0,), 1, 2**40 + 1)
    (facts,) = found.facts[CPU]
    assert (facts.originals, facts.precision, found.types) == (("node",), "i32", {"node": "i64"})


def test_edge_values_find_it_without_inputs_of_one_s_own(tmp_path: Path) -> None:
    inputs = [np.zeros(9, np.int64), i64(1, 3), i64(0, 0), i64(0)]
    path, _ = write_node(tmp_path, "ScatterUpdate", "opset3", inputs, ("indices", "axis"))
    assert not run(path, [CPU]).differs
    assert run(path, [CPU], values="edge").differs


@pytest.mark.parametrize(
    ("runner", "type", "opset", "inputs", "reduction"),
    [
        (CPU, "ScatterUpdate", "opset3", [floats(3, 5), np.array(1), -floats(5), i64(0)], {}),
        (
            GPU, "ScatterElementsUpdate", "opset12",
            [np.array([1, 2, 3], np.uint8), i64(0), np.array([1], np.uint8), i64(0)], {"reduction": "sum"},
        ),
    ],
    ids=["an index without dimensions", "a type"],
)  # fmt: skip
def test_what_a_plugin_refuses(
    tmp_path: Path, runner: str, type: str, opset: str, inputs: list[Array], reduction: dict[str, str]
) -> None:
    found = compared(tmp_path, [runner], type, opset, *inputs, **reduction)
    assert statuses(found)["numpy"] is Status.OK
    assert statuses(found)[runner] in {Status.REFUSED, Status.UNSUPPORTED}
    assert (found.comparisons, [one.runner for one in found.failed]) == ((), [runner])


@pytest.mark.parametrize("type", ["ScatterUpdate", "ScatterNDUpdate"])
def test_repeated_indices_are_contested_and_change_from_run_to_run(tmp_path: Path, type: str) -> None:
    """On a machine with one core they may not change; whatever comes is one of the candidates."""
    updates = np.arange(3000 * 64, dtype=np.float32).reshape(3000, 64)
    inputs: list[Array] = [np.full((4, 64), -1, np.float32), np.zeros((3000, 1), np.int64), updates]
    if type == "ScatterUpdate":
        inputs[1:2] = [inputs[1].reshape(-1)]
        inputs.append(i64(0))
    opset = "opset4" if type == "ScatterNDUpdate" else "opset3"
    found = compared(tmp_path, [CPU], type, opset, *inputs, repeat=10)
    node = only(found, Level.NODE, CPU).measure
    assert (node.verdict, node.contested, node.mismatched) == (Verdict.CONTESTED, 64, 0)
    of_outputs = {one.measure.verdict for one in found.comparisons if one.level is Level.MODEL}
    assert of_outputs <= {Verdict.EQUAL, Verdict.CONTESTED, Verdict.NONDETERMINISTIC}
    assert {(one.kind, one.is_illegal) for one in found.guarded} == {("repeated", False)}


def test_illegal_indices_are_reported_whatever_the_plugin_makes_of_them(tmp_path: Path) -> None:
    inputs = [i64(1, 2, 3, 4), i64(9), i64(7), i64(0)]
    found = compared(tmp_path, [CPU, FOLD], "ScatterUpdate", "opset3", *inputs)
    assert statuses(found)[CPU] in {Status.OK, Status.REFUSED, Status.CRASHED}
    assert statuses(found)["numpy"] is statuses(found)[FOLD] is Status.REFUSED
    assert {one.kind for one in found.guarded} == {"out-of-range"}
    assert found.guarded[0].message == "indices[0] is 9, expected 0 to 3"
    assert found.differs
    inputs = [floats(3, 4), np.full((1, 4), -1), -floats(1, 4), i64(0)]
    found = compared(tmp_path, [CPU], "ScatterElementsUpdate", "opset3", *inputs)
    assert {(one.runner, one.kind) for one in found.guarded} == {("numpy", "negative"), (CPU, "negative")}
    assert found.differs


def test_a_model_that_breaks_rules_does_not_end_the_comparison(tmp_path: Path) -> None:
    """Indices longer than data off the axis have crashed the plugin."""
    inputs = [floats(2, 3), np.zeros((1, 5000), np.int64), -floats(1, 5000), i64(0)]
    found = compared(tmp_path, [CPU, FOLD], "ScatterElementsUpdate", "opset3", *inputs)
    assert statuses(found)["numpy"] is Status.REFUSED
    assert ("numpy", "illegal") in [(one.runner, one.kind) for one in found.guarded]
    assert found.differs
    sane = [floats(3), i64(1), floats(1), i64(0)]
    assert not compared(tmp_path, [CPU, FOLD], "ScatterUpdate", "opset3", *sane).differs


@pytest.mark.parametrize("type", [np.float32, np.float16])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_sums_of_many_updates_are_close(tmp_path: Path, type: type, reduction: str) -> None:
    random = np.random.default_rng(0)
    inputs: list[Array] = [random.normal(size=3).astype(type), random.integers(0, 3, 3000)]
    inputs += [random.normal(size=3000).astype(type), i64(0)]
    found = compared(tmp_path, [CPU, FOLD], "ScatterElementsUpdate", "opset12", *inputs, reduction=reduction)
    assert not found.differs, verdicts(found, Level.NODE)


def test_a_lower_precision_is_asked_for_and_said(tmp_path: Path) -> None:
    data = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    path, feeds = write_node(tmp_path, "ScatterUpdate", "opset3", [data, i64(1), -data[:1], i64(0)])
    found = run(path, [CPU], feeds, precision="bf16")
    assert [one.precision for one in found.outcomes] == ["model", "bf16"]
    assert not found.differs
    default = run(path, [CPU], feeds, precision="default")
    assert default.outcomes[1].precision in {"f32", "bf16", "f16"}
    assert not default.differs


@pytest.mark.onnxruntime
def test_a_word_that_means_nothing_runs_as_none(tmp_path: Path) -> None:
    inputs = [floats(4), i64(1).reshape(1, 1), -floats(1)]
    path, feeds = write_node(tmp_path, "ScatterND", 18, inputs, (), reduction="sum")
    found = run(path, ["onnxruntime", CPU], feeds)
    assert statuses(found) == {"numpy": Status.REFUSED, "onnxruntime": Status.OK, CPU: Status.REFUSED}
    assert {(one.runner, one.kind) for one in found.guarded} == {
        (name, "illegal") for name in ("numpy", "onnxruntime")
    }
    assert "reduction is 'sum'" in found.guarded[0].message


@pytest.mark.onnxruntime
def test_strings_bf16_and_every_runtime_of_onnx(tmp_path: Path) -> None:
    short = np.dtype(ml_dtypes.bfloat16)
    inputs = [floats(4, 2).astype(short), i64(2, 0).reshape(1, 2), -floats(1, 2).astype(short)]
    texts: list[Array] = [np.array(["a", "b"], object), np.array([1]), np.array(["ä\0z"], object)]
    for given, names in ((inputs, ["onnxruntime", "onnx-reference"]), (texts, ["onnxruntime"])):
        path, feeds = write_node(tmp_path, "ScatterElements", 18, given, ())
        assert {one.measure.verdict for one in run(path, names, feeds).comparisons} == {Verdict.EQUAL}
