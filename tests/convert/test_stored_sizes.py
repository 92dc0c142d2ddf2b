"""Sizes that only a stored port gives: taken when the model runs, or said to be what the new form rests on."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ir_scatter import convert, runners, validate
from ir_scatter.convert.conversion import Conversion, ConversionRun
from ir_scatter.convert.on_devices import verify_on
from ir_scatter.inputs.model import make_feeds
from ir_scatter.report import conversion_json, conversion_text
from ir_scatter.runners.base import Runner, Status
from tests.models.ir_text import Dims, IrText, Output
from tests.scale import thinned

OPAQUE = "ShuffleChannels"
"""A layer that OpenVINO has and `ops/general.py` does not; with one group it changes nothing."""

RESTS = "rests-on-stored-shape"
SIZE = 8
"""What a port remembers of the first dimension of data, which is dynamic."""

TYPES: Mapping[str, tuple[str, npt.ArrayLike]] = {
    "ScatterUpdate": ("opset3", [1, 5]),
    "ScatterElementsUpdate": ("opset12", [[-1] * 3, [2] * 3]),
    "ScatterNDUpdate": ("opset15", [[-1], [2]]),
}
TARGETS = ("ScatterUpdate", "ScatterElementsUpdate-3", "ScatterElementsUpdate", "ScatterNDUpdate-3")


def through(ir: IrText, type: str, source: Output, dims: tuple[int, ...]) -> Output:
    data = {"axis": "0", "group": "1"} if type == OPAQUE else {}
    return ir.add(f"{type}_{ir.count}", type, "opset1", [source], [(source.precision, dims)], data)


def model(
    folder: Path,
    type: str,
    between: str,
    indices: npt.ArrayLike,
    index_type: str = "i64",
    *,
    data: Dims = ("?", 3),
    updates: Dims = (2, 3),
) -> str:
    """Write a scatter node on dynamic data, behind a layer whose output is stored as [8, 3]."""
    ir = IrText()
    behind = through(ir, between, ir.parameter("data", "f32", data), (SIZE, 3))
    inputs = [behind, ir.const("indices", index_type, indices), ir.parameter("updates", "f32", updates)]
    if "ND" not in type:
        inputs.append(ir.const("axis", "i64", 0))
    found = ir.add("scatter", type, TYPES[type][0], inputs, [("f32", (SIZE, 3))], {}, ports=' names="out"')
    ir.add("result", "Result", "opset1", [found], [])
    return ir.write(folder)


def pairs(folder: Path, between: str) -> str:
    """Write a node whose tuples count on both dimensions, which flat data has to be numbered by."""
    return model(folder, "ScatterNDUpdate", between, [[-1, 1], [0, 1]], data=("?", "?"), updates=(2,))


@pytest.fixture(scope="module")
def cpu() -> Iterator[Runner]:
    pytest.importorskip("openvino")
    found = runners.find("CPU")
    yield found
    found.close()


def demand_same(cpu: Runner, before: str, after: Path, feeds: Mapping[str, npt.NDArray[Any]]) -> None:
    found = [cpu.run(one, feeds, timeout=60) for one in (before, after)]
    assert [one.status for one in found] == [Status.OK] * 2, [one.message for one in found]
    for name, array in found[0].outputs.items():
        np.testing.assert_array_equal(found[1].outputs[name], array)


@pytest.mark.openvino
@pytest.mark.parametrize(("between", "index_type"), [("Relu", "i64"), (OPAQUE, "i32")])
@pytest.mark.parametrize("type", TYPES)
def test_sizes_are_taken_when_the_model_runs(
    type: str, between: str, index_type: str, tmp_path: Path, cpu: Runner
) -> None:
    path, new = model(tmp_path, type, between, TYPES[type][1], index_type), tmp_path / "new.xml"
    converted = 0
    for target in TARGETS:
        found = convert(path, target, assume=["full-indices"])
        assert found.refused == ()
        if found.is_empty:
            continue
        converted += 1
        assert [RESTS in one.assumptions for one in found.converted] == [False]
        found.write(new, overwrite=True)
        for size in (SIZE, 13):
            demand_same(cpu, path, new, drawn((size, 3), (2, 3)))
    assert converted >= 3


def drawn(data: tuple[int, ...], updates: tuple[int, ...]) -> dict[str, npt.NDArray[Any]]:
    random = np.random.default_rng(0)
    return {"data": random.normal(size=data).astype("f"), "updates": random.normal(size=updates).astype("f")}


@pytest.mark.openvino
@pytest.mark.parametrize("target", ["ScatterUpdate", "ScatterElementsUpdate"])
def test_what_follows_from_inputs_rests_on_nothing(target: str, tmp_path: Path, cpu: Runner) -> None:
    """Behind a layer that keeps the shape the stored one is wrong, whatever the new form costs."""
    path, new = pairs(tmp_path, "Relu"), tmp_path / "new.xml"
    found = convert(path, target)
    assert [one.assumptions for one in found.converted] == [()]
    found.write(new)
    demand_same(cpu, path, new, drawn((5, 4), (2,)))


def test_a_promise_that_only_a_stale_size_keeps_is_asked_for(tmp_path: Path) -> None:
    indices = np.repeat(np.arange(2), 3).reshape(2, 3)
    for between, codes in (("Relu", ["CVT105"]), (OPAQUE, [])):
        path = model(tmp_path, "ScatterElementsUpdate", between, indices, data=("?", "?"))
        assert [one.code for one in convert(path, "ScatterUpdate").refused] == codes


def resting(folder: Path) -> Conversion:
    found = convert(pairs(folder, OPAQUE), "ScatterUpdate")
    assert [one.assumptions for one in found.converted] == [(RESTS,)]
    assert not found.converted[0].is_safe
    assert found.is_whole
    return found


def test_a_form_that_rests_on_a_stored_shape_says_so(tmp_path: Path) -> None:
    done = ConversionRun(resting(tmp_path))
    assert f"assumed: {RESTS}" in conversion_text.render(done)
    narrow = conversion_text.render(done, width=40)
    assert narrow.split() == conversion_text.render(done).split()
    assert max(map(len, narrow.splitlines())) <= 40
    (one,) = json.loads(conversion_json.render(done))["converted"]
    assert (one["applicability"], one["assumptions"]) == ("assumed", [RESTS])


@pytest.mark.openvino
def test_a_device_shows_what_rests_on_a_wrong_size(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    (refused,) = verify_on(ConversionRun(resting(tmp_path)), ["CPU"]).conversion.refused
    assert (refused.code, refused.message[:30]) == ("CVT109", "openvino:CPU: the converted mo")


@pytest.mark.parametrize("seed", range(4))
def test_sizes_that_are_drawn_are_not_those_that_are_stored(seed: int, tmp_path: Path) -> None:
    data = make_feeds(pairs(tmp_path, OPAQUE), seed)["data"]
    assert not {SIZE, 3} & {*data.shape}


ROWS, FEW, MANY = 8, 2, 4
"""The first dimension of data, and of indices and updates: as stored, and as edited by hand."""

EDITS: Mapping[str, Mapping[int, str]] = {
    "data is larger": {ROWS: "13"},
    "data is dynamic": {ROWS: "?"},
    "indices are longer": {FEW: str(MANY)},
    "all are dynamic": {ROWS: "?", FEW: "?"},
}
FED = {
    "ScatterUpdate": ((FEW,), (FEW, 3)),
    "ScatterElementsUpdate": ((FEW, 3), (FEW, 3)),
    "ScatterNDUpdate": ((FEW, 1), (FEW, 3)),
}
"""Shapes of indices and updates."""

PROMISES = ("equal-indices", "full-indices", "non-negative-indices", "unique-indices")


def edited(folder: Path, type: str, edit: str) -> str:
    """Write a node fed by inputs through two layers each, all of which remember the sizes before an edit."""
    ir, indices, updates = IrText(), *FED[type]
    inputs = []
    for name, precision, shape in (
        ("data", "f32", (ROWS, 3)),
        ("at", "i64", indices),
        ("new", "f32", updates),
    ):
        value = ir.parameter(name, precision, shape)
        inputs.append(through(ir, "Abs", through(ir, "Abs", value, shape), shape))
        parameter = ir.layers[value.layer]
        first = f'shape="{shape[0]}'
        assert first in parameter
        ir.layers[value.layer] = parameter.replace(
            first, f'shape="{EDITS[edit].get(shape[0], str(shape[0]))}'
        )
    if "ND" not in type:
        inputs.append(ir.const("axis", "i64", 0))
    found = ir.add("scatter", type, TYPES[type][0], inputs, [("f32", (ROWS, 3))], {}, ports=' names="out"')
    ir.add("result", "Result", "opset1", [found], [])
    return ir.write(folder)


def stored_wrongly(path: str | Path) -> Counter[str]:
    return Counter(one.code for one in validate(path) if one.code.startswith("SCT5"))


@pytest.mark.openvino
@pytest.mark.parametrize(("edit", "type"), thinned(product(EDITS, TYPES), len(TYPES) + 1))
def test_new_ports_store_what_that_which_feeds_them_does(
    type: str, edit: str, tmp_path: Path, cpu: Runner
) -> None:
    path, new = edited(tmp_path, type, edit), tmp_path / "new.xml"
    before, converted, feeds = stored_wrongly(path), 0, runs(type, edit)
    assert before["SCT505"]
    for target in (*TARGETS, "ScatterNDUpdate"):
        found = convert(path, target, assume=PROMISES)
        assert found.refused == ()
        if found.is_empty:
            continue
        converted += 1
        found.write(new, overwrite=True)
        assert stored_wrongly(new) - before == Counter(), target
        demand_same(cpu, path, new, feeds)
    assert converted >= 3


def runs(type: str, edit: str) -> dict[str, npt.NDArray[Any]]:
    """Inputs of sizes that the edited model takes, which are none that it remembers."""
    rows, few = (int(EDITS[edit].get(size, str(size)).replace("?", str(size + 2))) for size in (ROWS, FEW))
    at, new = (tuple(few if size == FEW else size for size in shape) for shape in FED[type])
    random = np.random.default_rng(0)
    indices = np.broadcast_to(random.permutation(rows)[:few].reshape(few, *at[1:] and (1,)), at)
    data, updates = drawn((rows, 3), new).values()
    return {"data": np.abs(data), "at": indices, "new": np.abs(updates)}
