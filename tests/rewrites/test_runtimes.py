"""Converted models on real runtimes: what they gave before they give after, and more of them run."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import parser

from ir_scatter import convert, evaluate, runners
from ir_scatter.inputs.model import draw_feeds
from ir_scatter.runners.base import Outcome, Runner, Status
from tests.models.ir_text import IrText, Output
from tests.rewrites.ir_models import given, held, one_onnx, one_scatter
from tests.rewrites.test_conditions import ND, SEU, SU, elements, slices, tuples
from tests.rewrites.test_rewrites import BEFORE, converted, name_of

SEEDS = range(3)
NOT_RUN = {"elements_to_tuples_unknown_rank", "slices_to_tuples_unknown_axis"}
"""Inputs of unknown rank CPU refuses; for an axis that is an input see below."""
NOT_RUN_BEFORE = {"slices_flattened", "onnx_elements_versions"}
"""What a runtime refuses before the conversion: that is why one converts."""


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


def demand_same(
    runner: Runner, before: Path | str, after: Path, feeds: Iterable[Any] = (), *, is_refused: bool = False
) -> None:
    """Demand equal outputs, by default on random inputs; or that the model is refused before and runs after."""
    for one in feeds or [draw_feeds(str(before), seed).feeds for seed in SEEDS]:
        old, new = run(runner, before, one), run(runner, after, one)
        assert new.status is Status.OK, new.message
        if is_refused:
            assert old.status in {Status.REFUSED, Status.UNSUPPORTED}, old.message
            continue
        assert old.status is Status.OK, old.message
        assert list(new.outputs) == list(old.outputs)
        for name, array in old.outputs.items():
            assert new.outputs[name].dtype == array.dtype
            np.testing.assert_allclose(new.outputs[name], array, 1e-5, 1e-5)


def written(path: Path | str, target: str, *assume: str) -> Path:
    """Convert a model and return the path of the new one."""
    found, after = convert(path, target, assume=assume), Path(path).with_stem("after")
    assert [one.message for one in found.refused] == []
    assert found.opset is None
    found.write(after, overwrite=True)
    return after


def golden(suffix: str) -> pytest.MarkDecorator:
    found = [path for path in BEFORE if path.suffix == suffix and name_of(path) not in NOT_RUN]
    return pytest.mark.parametrize("path", found, ids=name_of)


def demand_golden(path: Path, folder: Path, runner: Runner) -> None:
    found = converted(path, folder)
    after = Path(found.model.path).with_stem("after")
    found.write(after)
    demand_same(runner, found.model.path, after, is_refused=name_of(path) in NOT_RUN_BEFORE)


@pytest.mark.openvino
@golden(".xml")
def test_what_is_written_down_runs_on_cpu(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpu: Runner
) -> None:
    monkeypatch.chdir(tmp_path)
    demand_golden(path, tmp_path, cpu)


@pytest.mark.onnxruntime
@golden(".onnxtxt")
def test_what_is_written_down_runs_on_onnxruntime(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, onnxruntime: Runner
) -> None:
    monkeypatch.chdir(tmp_path)
    demand_golden(path, tmp_path, onnxruntime)


WORDS, MORE_WORDS = ("sum", "prod", "min", "max", "mean"), ("sum", "sub", "prod", "min", "max")
ANY = partial(given, "indices", "i64")
NODES: dict[str, tuple[Callable[[Path], str], str]] = {
    **{f"slices on {axis} named by {shape}": (partial(slices, indices=ANY(shape), updates=(*(6, 5)[: axis % 2], *shape, *(6, 5)[axis % 2 + 1 :]), data=(6, 5), axis=axis), f"{SEU}-12 {SEU}-3 {ND}-15 {ND}-3") for axis in (0, 1, -1) for shape in ((3,), (2, 2))},
    **{f"slices, {word}": (partial(elements, indices=held([[0, 4, -2]] * 4), shape=(4, 3), reduction=word, use_init_val="true"), f"{SU}-3") for word in WORDS},
    **{f"tuples of {depth}, {word}": (partial(tuples, indices=ANY((9, depth)), updates=(9, 5)[: 3 - depth], reduction=word), f"{SEU}-12") for depth in (1, 2) for word in MORE_WORDS},
    **{f"no slices on {axis} named by {shape}": (partial(slices, indices=held(np.zeros(shape)), updates=(*(4, 5)[:axis], *shape, *(4, 5)[axis + 1 :]), axis=axis), f"{SEU}-12 {ND}-15") for axis in (0, 1) for shape in ((0,), (2, 0))},
    **{f"no tuples of {leading}, {word}": (partial(tuples, indices=held(np.zeros((*leading, 1))), updates=(*leading, 5), reduction=word), f"{SEU}-12 {ND}-3 {SU}-3") for leading in ((0,), (2, 0)) for word in ("none", "sum")},
    **{f"tuples that differ, {word}": (partial(tuples, indices=held([[0, 1], [-1, 2], [3, -4]]), reduction=word), f"{SEU}-3 {ND}-3 {SU}-3") for word in MORE_WORDS},
}  # fmt: skip
REFUSED: dict[str, tuple[Callable[[Path], str], str]] = {
    "an index without dimensions": (partial(slices, indices=ANY(()), updates=(4,), axis=1), f"{SU}-3 {SEU}-12 {ND}-15 {ND}-3"),
    "one element where none is expected": (partial(tuples, indices=ANY((2,)), updates=(1,)), f"{SU}-3 {SEU}-12"),
}  # fmt: skip
"""What CPU refuses before the conversion, and runs after it."""


@pytest.mark.openvino
@pytest.mark.parametrize(
    "ranks", [(3, 2, 1), (3, 2, 2), (3, 2, 3), (3, 2, 4), (3, 3, 4), (3, 1, 2), (3, 1, 1), (3, 1, 0)]
)
@pytest.mark.parametrize("word", ["none", "sum"])
def test_tuples_of_which_ranks_tell_the_length(
    ranks: tuple[int, int, int], word: str, tmp_path: Path, cpu: Runner
) -> None:
    """Or of one tuple not even these do: what it names may be written as one element.

    A ScatterNDUpdate with tuples of no coordinates does nothing on CPU.
    """
    data, indices, updates = (("?",) * rank for rank in ranks)
    sources = given("data", "f32", data), ANY(indices), given("updates", "f32", updates)
    path = one_scatter(tmp_path, ND, "opset15", *sources, None, {"reduction": word})
    random, depth = np.random.default_rng(0), ranks[0] + ranks[1] - 1 - ranks[2]
    sizes, leading = (4, 3, 2), (2 if depth else 1,) * (ranks[1] - 1)
    flat = random.permutation(prod(sizes[:depth]))[: prod(leading)]
    at = np.stack(np.unravel_index(flat, sizes[:depth] or (1,)), -1)[:, :depth]
    feeds: Any = {
        "data": random.random(sizes, np.float32),
        "indices": at.reshape(*leading, depth).astype(np.int64),
        "updates": random.random((*leading, *sizes[depth:]), np.float32),
    }
    for target in (f"{SEU}-12", f"{SU}-3", *([f"{ND}-3"] if depth else [])):
        (output,) = run(cpu, written(path, target, "unique-indices"), feeds).outputs.values()
        np.testing.assert_array_equal(output, evaluate("ScatterNDUpdate-15", **feeds, reduction=word))


@pytest.mark.openvino
@pytest.mark.parametrize("name", [*NODES, *REFUSED])
def test_a_node_gives_the_same_on_cpu(name: str, tmp_path: Path, cpu: Runner) -> None:
    make, targets = (NODES | REFUSED)[name]
    for target in targets.split():
        path = make(tmp_path)
        demand_same(cpu, path, written(path, target), is_refused=name in REFUSED)


@pytest.mark.openvino
@pytest.mark.parametrize("type", ["u8", "u16", "u32", "i8", "i16", "i32"])
def test_differences_beyond_the_limits_of_a_type(type: str, tmp_path: Path, cpu: Runner) -> None:
    path = tuples(tmp_path, ANY((3, 2)), type=type, reduction="sub")
    dtype = np.dtype(type.replace("u", "uint") if type[0] == "u" else type.replace("i", "int"))
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    feeds: Any = {
        "data": np.full((4, 5), least, dtype),
        "indices": np.array([[0, 0], [1, 1], [0, 0]]),
        "updates": np.array([1, most, most], dtype),
    }
    feeds["data"][1] = most
    demand_same(cpu, path, written(path, f"{SEU}-12"), [feeds])


@pytest.mark.openvino
@pytest.mark.parametrize("reduction", ["sub", "sum", "prod"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_results_beyond_the_limits_of_eight_bits(
    dtype: Any, reduction: str, tmp_path: Path, cpu: Runner
) -> None:
    """CPU adds, subtracts and multiplies such numbers with saturation, but not where it scatters them."""
    limits = np.iinfo(dtype)
    name = {np.uint8: "u8", np.int8: "i8"}[dtype]
    path = tuples(tmp_path, ANY((4, 2)), updates=(4,), type=name, reduction=reduction)
    feeds: Any = {
        "data": np.full((4, 5), limits.max, dtype),
        "indices": np.array([[0, 0], [1, 1], [2, 2], [3, 3]]),
        "updates": np.array([limits.max, limits.min, 9, 3], dtype),
    }
    feeds["data"][1:3] = limits.min
    for target in (f"{SEU}-3", f"{ND}-3", f"{SEU}-12"):
        demand_same(cpu, path, written(path, target, "unique-indices"), [feeds])


@pytest.mark.openvino
@pytest.mark.onnxruntime
@pytest.mark.parametrize("sizes", [((4, 5), (2, 3)), ((None, None), (None, None)), ((None, 5), (2, 3))])
@pytest.mark.parametrize("target", ["ScatterElements-13", "ScatterND-13"])
def test_reductions_of_elements_that_reach_a_part_of_data(
    sizes: Any, target: str, tmp_path: Path, cpu: Runner, onnxruntime: Runner
) -> None:
    path, (data, part) = tmp_path / "before.onnx", sizes
    path.write_bytes(one_onnx("ScatterElements", 18, data, part, part, axis=1, reduction="add"))
    found, after = convert(path, target, opset=13, assume=["unique-indices"]), tmp_path / "after.onnx"
    found.write(after)
    random = np.random.default_rng(0)
    feeds: Any = {"data": random.random((4, 5), np.float32), "updates": random.random((2, 3), np.float32)}
    feeds["indices"] = np.array([[0, -1, 2], [1, 0, -2]])
    for runner in (cpu, onnxruntime):
        demand_same(runner, path, after, [feeds])


@pytest.mark.openvino
@pytest.mark.parametrize("target", [f"{SEU}-12", f"{ND}-15"])
def test_slices_on_an_axis_that_is_an_input(tmp_path: Path, target: str, cpu: Runner) -> None:
    data, updates = (given(name, "f32", ("?", "?")) for name in ("data", "updates"))
    path = one_scatter(tmp_path, SU, "opset3", data, ANY(("?",)), updates, given("axis", "i64", ()))
    random, feeds = np.random.default_rng(0), []
    for axis in (0, 1, -1, -2):
        shape = [4, 5]
        shape[axis] = 2
        arrays = random.random((4, 5), np.float32), np.array([3, 1]), random.random(shape, np.float32)
        feeds.append(
            dict(zip(("data", "indices", "updates", "axis"), (*arrays, np.array(axis)), strict=True))
        )
    demand_same(cpu, path, written(path, target), feeds)


@pytest.mark.onnxruntime
@pytest.mark.parametrize("opset", [11, 13, 17, 21])
@pytest.mark.parametrize(
    ("type", "attributes"),
    [
        ("ScatterElements", "axis = 0"),
        ("ScatterElements", "axis = 1"),
        ("ScatterElements", "axis = -2"),
        ("ScatterElements", 'axis = 0, reduction = "add"'),
        ("ScatterND", ""),
        ("ScatterND", '<reduction = "mul">'),
    ],
)
def test_unknown_ranks(tmp_path: Path, opset: int, type: str, attributes: str, onnxruntime: Runner) -> None:
    if "reduction" in attributes and opset < 16:
        return
    random, feeds = np.random.default_rng(0), list[dict[str, Any]]()
    if type == "ScatterElements":
        node, target, axis = f"{type} <{attributes}>", "ScatterND", int(attributes.split(",")[0][7:])
        for shape in ((2, 3), (4, 2, 2)):
            at = np.argsort(random.random(shape), axis)
            at[0] -= (5, 4, 3)[: len(shape)][axis]
            feeds.append({"data": (5, 4, 3)[: len(shape)], "at": at, "new": shape})
    else:
        node, target = f"{type} {attributes}", "ScatterElements"
        for at in (np.array([[0], [-1]]), np.array([[[0, -1]], [[2, 0]]]), np.array([1, 2, 0])):
            new = (*at.shape[:-1], *(4, 3, 2)[at.shape[-1] :])
            feeds.append({"data": (4, 3, 2), "at": at, "new": new})
    for one in feeds:
        one |= {name: np.asarray(random.random(one[name], np.float32)) for name in ("data", "new")}
    model = parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : {opset}]>
        unknown (float data, int64 at, float new) => (float out) {{ out = {node} (data, at, new) }}
    """)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.ClearField("shape")
    path = tmp_path / "before.onnx"
    path.write_bytes(model.SerializeToString())
    demand_same(onnxruntime, path, written(path, target), feeds)


def demand_documented(runner: Runner, path: str, target: str, operator: Any, **attributes: Any) -> None:
    """Demand what the document says of the node, where CPU gives something else before the conversion."""
    after = written(path, target)
    for seed in SEEDS:
        feeds = draw_feeds(path, seed).feeds
        (output,) = run(runner, after, feeds).outputs.values()
        np.testing.assert_array_equal(output, evaluate(operator, **{**feeds, **attributes}))


@pytest.mark.openvino
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("keeps", ["true", "false"])
@pytest.mark.parametrize("type", ["f32", "i32"])
def test_reductions_of_elements(tmp_path: Path, word: str, keeps: str, type: str, cpu: Runner) -> None:
    """CPU rounds a mean of whole numbers towards zero; what stands for it is rounded down."""
    path = elements(tmp_path, ANY((2, 7)), shape=(2, 7), type=type, reduction=word, use_init_val=keeps)
    if word == "mean" and type == "i32":
        told = {"reduction": word, "use_init_val": keeps == "true"}
        demand_documented(cpu, path, f"{ND}-15", f"{SEU}-12", axis=1, **told)
    else:
        demand_same(cpu, path, written(path, f"{ND}-15"))


@pytest.mark.openvino
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("type", ["f32", "i32"])
def test_reductions_that_the_target_lacks(tmp_path: Path, word: str, type: str, cpu: Runner) -> None:
    numbers = [[0, 1, 2], [4, -2, 2]]
    path = elements(tmp_path, held(numbers), type=type, reduction=word, use_init_val="true")
    for target in (f"{SEU}-3", f"{ND}-3"):
        if word == "mean" and type == "i32":
            demand_documented(cpu, path, target, f"{SEU}-12", indices=numbers, axis=1, reduction=word)
        else:
            demand_same(cpu, path, written(path, target))


@pytest.mark.openvino
def test_a_difference_of_booleans(tmp_path: Path, cpu: Runner) -> None:
    """CPU loses one of several updates of an element; what stands for it counts them all."""
    path = tuples(tmp_path, ANY((9, 2)), updates=(9,), type="boolean", reduction="sub")
    demand_documented(cpu, path, f"{SEU}-12", f"{ND}-15", reduction="sub")


@pytest.mark.openvino
@pytest.mark.parametrize("type", ["i4", "u4"])
def test_indices_of_half_a_byte_that_the_file_holds(type: str, tmp_path: Path, cpu: Runner) -> None:
    """OpenVINO's Broadcast of a constant takes its bytes for elements."""

    def packed(ir: IrText) -> Output:
        found = ir.const("indices", "i8", [0x52])  # 2 and 5
        ir.layers[found.layer] = (
            ir.layers[found.layer]
            .replace('"i8" shape="1"', f'"{type}" shape="2"')
            .replace('"I8"><dim>1', f'"{type.upper()}"><dim>2')
        )
        return Output(found.layer, found.port, type, (2,))

    path = slices(tmp_path, indices=packed, updates=(2, 3), data=(8, 3))
    assert f'"{type}" shape="2"' in Path(path).read_text()
    demand_same(cpu, path, written(path, f"{SEU}-12"))
