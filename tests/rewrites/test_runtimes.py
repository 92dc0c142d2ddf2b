"""Converted models on real runtimes: what they gave before they give after, and more of them run."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import parser

from ir_scatter import convert, evaluate, runners
from ir_scatter.inputs.model import draw_feeds
from ir_scatter.runners.base import Outcome, Runner, Status
from tests.rewrites.ir_models import given, held, one_scatter
from tests.rewrites.test_conditions import ND, SEU, SU, elements, slices, tuples
from tests.rewrites.test_rewrites import BEFORE, converted, name_of
from tests.unit.runtimes import run_all

Array = Any
SEEDS = range(3)
NOT_ON_CPU = {"elements_to_tuples_unknown_rank", "slices_to_tuples_unknown_axis"}
"""Inputs of unknown rank it refuses; for an axis that is an input see below."""
IR = [path for path in BEFORE if path.suffix == ".xml" and name_of(path) not in NOT_ON_CPU]
ONNX = [path for path in BEFORE if path.suffix == ".onnxtxt"]
NOT_IN_ONNXRUNTIME = {"onnx_elements_versions"}
"""It refuses what the model holds before the conversion: that is why one converts."""


@pytest.fixture(scope="module")
def cpu() -> Iterator[Runner]:
    runner = runners.find("CPU")
    yield runner
    runner.close()


@pytest.fixture(scope="module")
def onnxruntime() -> Iterator[Runner]:
    runner = runners.find("onnxruntime")
    yield runner
    runner.close()


def run(runner: Runner, path: Path | str, feeds: Any) -> Outcome:
    outcome = runner.run(Path(path), feeds)
    assert outcome.status is not Status.UNAVAILABLE, outcome.message
    return outcome


def demand_same(runner: Runner, before: Path | str, after: Path | str, *, is_refused: bool = False) -> None:
    """Demand equal outputs on random inputs; or that the model is refused before and runs after."""
    for seed in SEEDS:
        feeds = draw_feeds(str(before), seed).feeds
        old, new = run(runner, before, feeds), run(runner, after, feeds)
        assert new.status is Status.OK, new.message
        if is_refused:
            assert old.status in {Status.REFUSED, Status.UNSUPPORTED}, old.message
            continue
        assert old.status is Status.OK, old.message
        assert list(new.outputs) == list(old.outputs)
        for name, array in old.outputs.items():
            assert new.outputs[name].dtype == array.dtype
            np.testing.assert_allclose(new.outputs[name], array, 1e-5, 1e-5)


def check(runner: Runner, path: str, target: str, folder: Path, *, is_refused: bool = False) -> None:
    found = convert(path, target)
    assert [one.message for one in found.refused] == []
    result = folder / f"after{Path(path).suffix}"
    found.write(result, overwrite=True)
    demand_same(runner, path, result, is_refused=is_refused)


@pytest.mark.openvino
@pytest.mark.parametrize("path", IR, ids=name_of)
def test_what_is_written_down_runs_on_cpu(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpu: Runner
) -> None:
    monkeypatch.chdir(tmp_path)
    found = converted(path, tmp_path)
    found.write(tmp_path / "after.xml")
    is_refused = name_of(path) == "slices_flattened"
    demand_same(cpu, tmp_path / found.model.path, tmp_path / "after.xml", is_refused=is_refused)


@pytest.mark.onnxruntime
@pytest.mark.parametrize("path", ONNX, ids=name_of)
def test_what_is_written_down_runs_on_onnxruntime(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, onnxruntime: Runner
) -> None:
    monkeypatch.chdir(tmp_path)
    found = converted(path, tmp_path)
    found.write(tmp_path / "after.onnx")
    is_refused = name_of(path) in NOT_IN_ONNXRUNTIME
    demand_same(onnxruntime, tmp_path / found.model.path, tmp_path / "after.onnx", is_refused=is_refused)


WORDS, MORE_WORDS = ("sum", "prod", "min", "max", "mean"), ("sum", "sub", "prod", "min", "max")
ANY = partial(given, "indices", "i64")
NODES: dict[str, tuple[Callable[[Path], str], str]] = {
    **{f"slices on {axis} named by {shape}": (partial(slices, indices=ANY(shape), updates=(*(6, 5)[: axis % 2], *shape, *(6, 5)[axis % 2 + 1 :]), data=(6, 5), axis=axis), f"{SEU}-12 {SEU}-3 {ND}-15 {ND}-3") for axis in (0, 1, -1) for shape in ((3,), (2, 2))},
    **{f"slices, {word}": (partial(elements, indices=held([[0, 4, -2]] * 4), shape=(4, 3), reduction=word, use_init_val="true"), f"{SU}-3") for word in WORDS},
    **{f"tuples of {depth}, {word}": (partial(tuples, indices=ANY((9, depth)), updates=(9, 5)[: 3 - depth], reduction=word), f"{SEU}-12") for depth in (1, 2) for word in MORE_WORDS},
    **{f"tuples that differ, {word}": (partial(tuples, indices=held([[0, 1], [-1, 2], [3, -4]]), reduction=word), f"{SEU}-3 {ND}-3 {SU}-3") for word in MORE_WORDS},
}  # fmt: skip
REFUSED: dict[str, tuple[Callable[[Path], str], str]] = {
    "an index without dimensions": (partial(slices, indices=ANY(()), updates=(4,), axis=1), f"{SU}-3 {SEU}-12 {ND}-15 {ND}-3"),
    "one element where none is expected": (partial(tuples, indices=ANY((2,)), updates=(1,)), f"{SU}-3 {SEU}-12"),
}  # fmt: skip
"""What CPU refuses before the conversion, and runs after it."""


@pytest.mark.openvino
@pytest.mark.parametrize("name", [*NODES, *REFUSED])
def test_a_node_gives_the_same_on_cpu(name: str, tmp_path: Path, cpu: Runner) -> None:
    make, targets = (NODES | REFUSED)[name]
    for target in targets.split():
        check(cpu, make(tmp_path), target, tmp_path, is_refused=name in REFUSED)


@pytest.mark.openvino
@pytest.mark.parametrize("target", [f"{SEU}-12", f"{ND}-15"])
def test_slices_on_an_axis_that_is_an_input(tmp_path: Path, target: str, cpu: Runner) -> None:
    shape = ("?", "?")
    sources = (
        given("data", "f32", shape),
        given("indices", "i64", ("?",)),
        given("updates", "f32", shape),
        given("axis", "i64", ()),
    )
    path = one_scatter(tmp_path, SU, "opset3", *sources)
    found = convert(path, target)
    assert found.refused == ()
    found.write(tmp_path / "after.xml")
    random = np.random.default_rng(0)
    for axis in (0, 1, -1, -2):
        updates = [4, 5]
        updates[axis] = 2
        feeds = {
            "data": random.random((4, 5), np.float32),
            "indices": np.array([3, 1]),
            "updates": random.random(updates, np.float32),
            "axis": np.array(axis),
        }
        old, new = run(cpu, path, feeds), run(cpu, tmp_path / "after.xml", feeds)
        assert old.status is new.status is Status.OK, old.message + new.message
        for name, array in old.outputs.items():
            np.testing.assert_array_equal(new.outputs[name], array)


_UNKNOWN_RANKS = """
<ir_version: 10, opset_import: ["" : {opset}]>
unknown (float data, int64 at, float new) => (float out) {{ out = {node} (data, at, new) }}
"""


@pytest.mark.onnxruntime
@pytest.mark.parametrize("opset", [11, 13, 17, 21])
@pytest.mark.parametrize("attributes", ["", "axis = 1", "axis = -2", 'reduction = "add"'])
def test_elements_of_unknown_rank(tmp_path: Path, opset: int, attributes: str) -> None:
    if "reduction" in attributes and opset < 16:
        return
    node = f"ScatterElements <{attributes}>" if attributes else "ScatterElements"
    random, cases = np.random.default_rng(0), []
    for shape in ((2, 3), (4, 2, 2)):
        data, new = (random.random(size, np.float32) for size in ((5, 4, 3)[: len(shape)], shape))
        axis = int(re.sub(r"[^-\d]", "", attributes) or 0)
        at = np.argsort(random.random(shape), axis)
        at[0] -= data.shape[axis]
        cases.append((data, at, new))
    _demand_same_onnx(tmp_path, opset, node, "ScatterND", cases)


@pytest.mark.onnxruntime
@pytest.mark.parametrize("opset", [11, 13, 17, 21])
@pytest.mark.parametrize("attributes", ["", 'reduction = "mul"'])
def test_tuples_of_unknown_rank(tmp_path: Path, opset: int, attributes: str) -> None:
    if attributes and opset < 16:
        return
    node = f"ScatterND <{attributes}>" if attributes else "ScatterND"
    random, cases = np.random.default_rng(0), []
    for at in (np.array([[0], [-1]]), np.array([[[0, -1]], [[2, 0]]]), np.array([1, 2, 0])):
        data = random.random((4, 3, 2), np.float32)
        new = random.random((*at.shape[:-1], *data.shape[at.shape[-1] :]), np.float32)
        cases.append((data, at, new))
    _demand_same_onnx(tmp_path, opset, node, "ScatterElements", cases)


def _demand_same_onnx(
    folder: Path, opset: int, node: str, target: str, cases: list[tuple[Array, ...]]
) -> None:
    before, after = folder / "before.onnx", folder / "after.onnx"
    model = parser.parse_model(_UNKNOWN_RANKS.format(opset=opset, node=node))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.ClearField("shape")
    before.write_bytes(model.SerializeToString())
    found = convert(before, target)
    assert found.refused == ()
    assert found.opset is None
    found.write(after)
    jobs = {
        f"{number} {path.stem}": (path, arrays)
        for number, arrays in enumerate(cases)
        for path in (before, after)
    }
    outcomes = run_all("onnxruntime", jobs, folder)
    for number in range(len(cases)):
        old, new = (outcomes[f"{number} {path.stem}"] for path in (before, after))
        assert old.error == new.error == ""
        np.testing.assert_array_equal(new.outputs[0], old.outputs[0])


def demand_documented(runner: Runner, path: str, target: str, operator: str, **attributes: Any) -> None:
    """Demand what the document says of the node, where CPU gives something else before the conversion."""
    found = convert(path, target)
    after = Path(path).with_name("after.xml")
    found.write(after)
    for seed in SEEDS:
        feeds = draw_feeds(path, seed).feeds
        (output,) = run(runner, after, feeds).outputs.values()
        np.testing.assert_array_equal(output, evaluate(operator, **feeds, **attributes))


@pytest.mark.openvino
@pytest.mark.parametrize("word", ["sum", "prod", "min", "max", "mean"])
@pytest.mark.parametrize("keeps", ["true", "false"])
@pytest.mark.parametrize("type", ["f32", "i32"])
def test_reductions_of_elements(tmp_path: Path, word: str, keeps: str, type: str, cpu: Runner) -> None:
    """CPU rounds a mean of whole numbers towards zero; what stands for it is rounded down."""
    indices = given("indices", "i64", (2, 7))
    path = elements(tmp_path, indices, shape=(2, 7), type=type, reduction=word, use_init_val=keeps)
    if word == "mean" and type == "i32":
        told = {"reduction": word, "use_init_val": keeps == "true"}
        demand_documented(cpu, path, f"{ND}-15", f"{SEU}-12", axis=1, **told)
    else:
        check(cpu, path, f"{ND}-15", tmp_path)


@pytest.mark.openvino
@pytest.mark.parametrize("word", ["sum", "prod", "min", "max", "mean"])
@pytest.mark.parametrize("target", [f"{SEU}-3", f"{ND}-3"])
@pytest.mark.parametrize("type", ["f32", "i32"])
def test_reductions_that_the_target_lacks(
    tmp_path: Path, word: str, target: str, type: str, cpu: Runner
) -> None:
    numbers = [[0, 1, 2], [4, -2, 2]]
    path = elements(tmp_path, held(numbers), type=type, reduction=word, use_init_val="true")
    if word == "mean" and type == "i32":
        demand_documented(cpu, path, target, f"{SEU}-12", indices=numbers, axis=1, reduction=word)
    else:
        check(cpu, path, target, tmp_path)


@pytest.mark.openvino
def test_a_difference_of_booleans(tmp_path: Path, cpu: Runner) -> None:
    """CPU loses one of several updates of an element; what stands for it counts them all."""
    path = tuples(tmp_path, given("indices", "i64", (9, 2)), updates=(9,), type="boolean", reduction="sub")
    demand_documented(cpu, path, f"{SEU}-12", f"{ND}-15", reduction="sub")
