"""Three draws in a row hold what an operator allows: negative, first, last and repeated indices."""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ir_scatter import convert, evaluate_model, runners
from ir_scatter.analysis.conditions import Condition
from ir_scatter.analysis.interpreter import Step
from ir_scatter.convert import on_devices, proof
from ir_scatter.convert.conversion import ConversionRun
from ir_scatter.core.errors import Error
from ir_scatter.evaluate.model import (
    ForwardArrays,
    arguments_of,
    by_role,
    check_feeds,
    prepare,
    scatter_node_of,
)
from ir_scatter.inputs.model import draw_feeds, make_feeds
from ir_scatter.inputs.node import NodeInputs, draw_inputs
from ir_scatter.ops.lookup import SPECS, Lookup
from ir_scatter.ops.spec import IndexRange, Layout, OpSpec, Reduction, Role
from ir_scatter.runners.base import Outcome, Status
from tests.models.cases import random_case, write
from tests.models.ir_text import IrText
from tests.models.onnx_text import save

Array = npt.NDArray[Any]
CASES = 4
ROWS = {str(spec.key): spec for spec in SPECS.values() if not spec.is_removed}
MODELS = Path(__file__).parents[3] / "shared" / "models"


def demanded(
    spec: OpSpec, reduction: Reduction, sizes: Sequence[int], shape: Sequence[int], axis: int
) -> set[str]:
    """What three draws must hold, by the document's own words and the sizes."""
    rows = int(np.prod(shape[:-1] if spec.layout is Layout.TUPLES else shape))
    if not rows or not sizes or min(sizes) < 1:
        return set()
    found = {"first", "last"}
    found |= {"negative"} if spec.index_range is IndexRange.WRAPPING else set()
    meeting = shape[axis] if spec.layout is Layout.ELEMENTS else rows
    can_repeat = reduction is not Reduction.NONE and spec.layout is not Layout.SEQUENCE and meeting > 1
    return found | ({"repeated"} if can_repeat else set())


def held(spec: OpSpec, sizes: Sequence[int], indices: Array, axis: int) -> set[str]:
    """What one array of indices holds."""
    rows = indices.astype(np.int64).reshape(-1, len(sizes))
    found = {"negative"} if (rows < 0).any() else set()
    found |= {"first"} if (rows == 0).all(axis=1).any() else set()
    found |= {"last"} if (rows == np.array(sizes) - 1).all(axis=1).any() else set()
    targets = [tuple(int(n) % s for n, s in zip(row, sizes, strict=True)) for row in rows.tolist()]
    if spec.layout is Layout.ELEMENTS:
        places = [place[:axis] + place[axis + 1 :] for place in np.ndindex(indices.shape)]
        targets = [(*place, *target) for place, target in zip(places, targets, strict=True)]
    return found | ({"repeated"} if len(set(targets)) < len(targets) else set())


def sizes_of(
    spec: OpSpec, data: Sequence[int], indices: Array, updates: Array, axis: int, mode: str
) -> list[int]:
    if spec.layout is Layout.TUPLES:
        return list(data[: indices.shape[-1]])
    if spec.layout is Layout.SEQUENCE and mode != "circular":
        return [data[axis] - updates.shape[axis] + 1]
    return [data[axis]]


@pytest.mark.parametrize("name", ROWS)
def test_three_draws_for_one_node_hold_all(name: str, tmp_path: Path) -> None:
    random, spec, seen = np.random.default_rng(11), ROWS[name], Counter[str]()
    for number in range(CASES):
        case = random_case(spec, random, element_type="f32", index_type="i64")
        if case.indices is None:
            continue
        axis, mode = case.axis_from_front, case.attributes.get("mode", "linear")
        sizes = sizes_of(spec, case.data.shape, case.indices, case.updates, axis, mode)
        expected = demanded(spec, case.reduction, sizes, case.indices.shape, axis)
        path = write(case, tmp_path)
        draws = [make_feeds(path, number + more) for more in range(3)]
        for feeds in draws:
            prepare(path).run(feeds)
        found = set().union(*(held(spec, sizes, feeds["indices"], axis) for feeds in draws if expected))
        assert expected <= found, (case.indices.shape, sizes, [feeds["indices"] for feeds in draws])
        seen.update(expected)
    assert len(seen) >= 2


ROUTES = [
    ("ScatterElementsUpdate-12", "ScatterNDUpdate-15"),
    ("ScatterNDUpdate-15", "ScatterElementsUpdate-12"),
    ("ScatterUpdate-3", "ScatterElementsUpdate-12"),
    ("ScatterElementsUpdate-3", "ScatterNDUpdate-3"),
    ("ScatterElementsUpdate-12", "ScatterNDUpdate-3"),
    ("ScatterND-18", "ScatterElements-18"),
    ("ScatterElements-18", "ScatterND-18"),
]


@pytest.mark.parametrize(("name", "target"), ROUTES)
def test_three_cases_of_a_proof_hold_all(
    name: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[NodeInputs] = []

    def noted(*arguments: Any, **more: Any) -> list[NodeInputs]:
        drawn[:] = draw_inputs(*arguments, **more)
        return drawn

    monkeypatch.setattr(proof, "draw_inputs", noted)
    random, spec, verified = np.random.default_rng(5), ROWS[name], 0
    for _ in range(10):
        case = random_case(spec, random, element_type="f32", index_type="i64")
        if case.indices is None or not case.indices.size:
            continue
        drawn.clear()
        done = convert(write(case, tmp_path), target, verify=3)
        if not done.verified:
            continue
        verified += 1
        axis = case.axis_from_front
        sizes = sizes_of(spec, case.data.shape, case.indices, case.updates, axis, "")
        expected = demanded(spec, case.reduction, sizes, case.indices.shape, axis)
        found = [held(spec, sizes, one.arguments["indices"], axis) for one in drawn if expected]
        assert expected <= set().union(*found), (sizes, found)
    assert verified >= 5


def test_indices_behind_arithmetic(tmp_path: Path) -> None:
    """What reaches the node counts, whatever stands before it."""
    text = """<ir_version: 10, opset_import: ["" : 18]>
    g (float[7, 2] data, int64[3, 1] at, float[3, 2] rows) => (float[7, 2] out)
    <int64 three = {3}> {
      less = Sub (three, at)
      out = ScatterND <reduction = "add"> (data, less, rows)
    }"""
    path = save(text, tmp_path / "model.onnx")
    reached = [3 - make_feeds(path, seed)["at"] for seed in range(3)]
    found = [held(ROWS["ScatterND-18"], [7], indices, 0) for indices in reached]
    assert set().union(*found) == {"negative", "first", "last", "repeated"}


def test_an_input_that_another_node_takes_stays_legal_there(tmp_path: Path) -> None:
    """ScatterUpdate knows no negative indices, so there are none; Gather-8 does, Gather-1 does not."""
    for version, is_negative in (("opset8", True), ("opset1", False)):
        ir = IrText()
        data, at, new = ir.parameter("data", "f32", (5, 2)), ir.parameter("at", "i64", (3, 1)), None
        new = ir.parameter("new", "f32", (3, 2))
        axis = ir.const("axis", "i64", 0)
        out = ir.add("out", "ScatterNDUpdate", "opset15", [data, at, new], [("f32", (5, 2))])
        taken = ir.add("taken", "Gather", version, [data, at, axis], [("f32", (3, 1, 2))])
        for number, output in enumerate((out, taken)):
            ir.add(f"r{number}", "Result", "opset1", [output], [])
        path = ir.write(tmp_path, version)
        draws = [make_feeds(path, seed)["at"] for seed in range(3)]
        assert any((at < 0).any() for at in draws) is is_negative
        assert all(set(at.reshape(-1) % 5) <= set(range(5)) for at in draws)


def test_what_a_conversion_assumes_is_kept(tmp_path: Path) -> None:
    """Inputs that an assumption excludes tell nothing of the new model."""
    text = """<ir_version: 10, opset_import: ["" : 18]>
    g (float[7, 4] data, int64[3, 4] at, float[3, 4] rows) => (float[7, 4] out) {
      out = ScatterElements <reduction = "add"> (data, at, rows)
    }"""
    path = save(text, tmp_path / "model.onnx")
    model = prepare(path)
    (scope,) = [step.node.scope for step in model.plan.steps]
    assumed = ["unique-indices", "non-negative-indices", "equal-indices"]
    for chosen in (assumed[:1], assumed[1:2], assumed[2:], assumed):
        constraint = frozenset(chosen)
        for seed in range(6):
            drawn = draw_feeds(path, seed, constraints={scope: constraint})
            at = drawn.feeds["at"]
            assert drawn.repeated == ()
            if "unique-indices" in chosen:
                assert "repeated" not in held(ROWS["ScatterElements-18"], [7], at, 0)
            if "non-negative-indices" in chosen:
                assert (at >= 0).all()
            if "equal-indices" in chosen:
                assert (at == at[:, :1]).all()


class _Watching(ForwardArrays):
    """Notes the indices that reach scatter nodes."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.seen: list[tuple[Step, list[Array | None]]] = []

    def compute_arrays(self, step: Step, arrays: Sequence[Array | None]) -> Sequence[Array | None]:
        if isinstance(step.work, Lookup):
            self.seen.append((step, list(arrays)))
        return super().compute_arrays(step, arrays)


@pytest.mark.models
@pytest.mark.skipif(not MODELS.is_dir(), reason="needs the folder of real models beside the checkout")
def test_real_models_hold_all(figures: "Counter[str]") -> None:
    for entry in json.loads((MODELS / "manifest.json").read_text()):
        path = MODELS / entry["path"]
        try:
            program = prepare(path)
        except Error:
            continue
        inputs = {input.key for input in program.inputs if input.default is None}
        expected, found = dict[str, set[str]](), defaultdict[str, set[str]](set)
        for seed in range(3):
            machine = _Watching(program.plans)
            machine.run(program.plan, check_feeds(program.inputs, make_feeds(path, seed)))
            for step, arrays in machine.seen:
                scatter = scatter_node_of(step)
                place, name = scatter.spec.port_index(Role.INDICES) or 0, step.node.scope
                if place >= len(step.inputs) or step.inputs[place] not in inputs:
                    continue
                roles = by_role(scatter.lookup, arrays)
                of_axis = np.asarray(arguments_of(scatter, roles)[1].get("axis", 0)).reshape(-1)
                data, indices = roles[Role.DATA], roles[Role.INDICES]
                axis, mode = int(of_axis[0]) % max(data.ndim, 1), scatter.attribute("mode") or ""
                sizes = sizes_of(scatter.spec, data.shape, indices, roles[Role.UPDATES], axis, mode)
                reduction = scatter.reduction or Reduction.NONE
                expected[name] = demanded(scatter.spec, reduction, sizes, indices.shape, axis)
                found[name] |= held(scatter.spec, sizes, indices, axis) if sizes and indices.size else set()
        for name, features in expected.items():
            figures["nodes fed with indices"] += 1
            figures.update(features)
            assert features <= found[name], (path, name)


class _Numpy:
    """A runner that computes as documented."""

    name = "numpy"
    remarks = ()

    def run(self, path: str | Path, feeds: Any, **_: Any) -> Outcome:
        return Outcome(self.name, Status.OK, runs=(evaluate_model(path, feeds),))

    def close(self) -> None:
        pass


@pytest.mark.parametrize("name", ["ScatterElementsUpdate-12", "ScatterNDUpdate-15", "ScatterElements-18"])
def test_models_are_compared_on_inputs_that_were_assumed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An assumption that does not hold for an input is no difference of the models."""
    monkeypatch.setattr(runners, "find", lambda name: _Numpy())
    random, spec, equal = np.random.default_rng(3), ROWS[name], Counter[str]()
    targets = {"ScatterElementsUpdate-12": ("ScatterUpdate-3", "ScatterNDUpdate-3", "ScatterElementsUpdate-3"),
               "ScatterNDUpdate-15": ("ScatterUpdate-3", "ScatterNDUpdate-3", "ScatterElementsUpdate-3"),
               "ScatterElements-18": ("ScatterND-13", "ScatterElements-13", "ScatterND-18")}[name]  # fmt: skip
    for number in range(8):
        case = random_case(spec, random, element_type="f32", index_type="i64")
        before = write(case, tmp_path)
        for target in targets:
            done = convert(before, target, assume=list(Condition), verify=3, seed=number)
            if done.refused or not any(one.fragment for one in done.converted):
                continue
            found = on_devices.verify_on(ConversionRun(done), ["numpy"])
            assert found.conversion.refused == (), (case, [one.assumptions for one in done.converted])
            equal.update(assumption for one in done.converted for assumption in one.assumptions)
            equal["models"] += bool(found.devices)
    assert equal["models"] >= 4
    assert equal["unique-indices"] + equal["equal-indices"] + equal["non-negative-indices"]
