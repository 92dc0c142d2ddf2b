"""Results that are saved, read again, damaged, and compared with what runs later."""

import json
import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ir_scatter.compare.measure import Tolerances, Verdict
from ir_scatter.compare.result import Compared, CompareSettings, Level
from ir_scatter.compare.run import compare
from ir_scatter.compare.snapshot import ArrayShelf, ArrayStore, load, save
from ir_scatter.core.errors import BadFeed, CannotWrite, Error, UsageError
from ir_scatter.evaluate.archive import write_arrays
from ir_scatter.runners.base import NodeFacts, Status
from tests.compare.models import Array, floats, verdicts, write_node
from tests.compare.planted import FakeRunner, wrong_at

FACTS = [NodeFacts("node", ("node",), "X", "kernel", "f32", ("f32",), None)]


def model(folder: Path) -> tuple[Path, Any]:
    inputs = [floats(3, 4), np.array([2, 0]), -floats(2, 4), np.array(0)]
    return write_node(folder, "ScatterUpdate", "opset3", inputs)


def saved(folder: Path, *runners: FakeRunner, **settings: Any) -> tuple[Path, Compared]:
    path, feeds = model(folder)
    found = compare(path, runners, CompareSettings(keeps_runs=True, describes=True, **settings), feeds=feeds)
    assert save(found, folder / "results") == f"results saved in {folder / 'results'}"
    return path, found


def again(folder: Path, path: Path, *runners: FakeRunner, numpy: bool = False, **settings: Any) -> Compared:
    wanted = CompareSettings(reference=numpy, **settings)
    return compare(path, runners, wanted, with_numpy=numpy, against=folder / "results")


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    _, found = saved(tmp_path, FakeRunner("a", facts=FACTS), FakeRunner("b", ending=Status.CRASHED), cases=2)
    back = load(tmp_path / "results")
    assert back.model == found.model
    assert [[one.plain.runner for one in run] for run in back.runs] == [
        ["saved:numpy", "saved:a", "saved:b"]
    ] * 2
    assert [one.plain.status for one in back.runs[0]] == [Status.OK, Status.OK, Status.CRASHED]
    for then, now in zip(found.feeds, back.feeds, strict=True):
        assert then.keys() == now.keys()
        assert all(np.array_equal(then[name], now[name]) for name in then)
    tapped, original = (one.runs[0][1].tapped[0].tapped[0] for one in (back, found))
    assert tapped.tap.scope == "node"
    assert np.array_equal(tapped.executions[0].output, original.executions[0].output)
    assert back.facts == {"saved:a": tuple(FACTS)}
    told = json.loads((tmp_path / "results" / "results.json").read_text())
    assert told["devices"]["a"]["is_available"] is True


@pytest.mark.parametrize(
    "array",
    [
        np.array(["a", "", "\0", "ü" * 40], object).reshape(2, 2),
        np.array([1, -2, 7]).astype(ml_dtypes.int4),
        np.array([1.5, np.nan, -0.0]).astype(ml_dtypes.bfloat16),
        np.array([1, 2, 4.0]).astype(ml_dtypes.float8_e8m0fnu),
        np.array([1.5, -6]).astype(ml_dtypes.float4_e2m1fn),
        np.array([True, False]),
        np.array(2**63, np.uint64),
        np.zeros((0, 3), np.float16),
        np.zeros((0, 3), ml_dtypes.bfloat16),
        np.array([], object),
        np.arange(12, dtype=np.float32).reshape(3, 4).T,
    ],
    ids=lambda array: f"{array.dtype.name}{list(array.shape)}",
)
def test_arrays_of_every_type(tmp_path: Path, array: Array) -> None:
    store = ArrayStore()
    told = json.loads(json.dumps(store.add(array)))
    assert store.add(array) is store.add(array)
    with (tmp_path / "a.npz").open("wb") as file:
        write_arrays(file, store.stored)
    back = ArrayShelf(tmp_path / "a.npz").get(told)
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    if array.dtype == object:
        assert back.tolist() == array.tolist()
    else:
        assert np.ascontiguousarray(back).tobytes() == np.ascontiguousarray(array).tobytes()


def test_hostile_names_stay_names(tmp_path: Path) -> None:
    _, found = saved(tmp_path, FakeRunner("a"))
    hostile = {"../../etc/passwd": floats(1), "a/b": floats(2), "\x1b[31m": floats(1), "": floats(1)}
    save(replace(found, feeds=(hostile,), runs=((),)), tmp_path / "hostile")
    assert sorted(path.name for path in (tmp_path / "hostile").iterdir()) == ["case_0.npz", "results.json"]
    assert list(load(tmp_path / "hostile").feeds[0]) == list(hostile)


def test_another_day_without_the_device(tmp_path: Path) -> None:
    path, _ = saved(tmp_path, FakeRunner("gpu", wrong_at(5)), FakeRunner("cpu"))
    found = again(tmp_path, path, FakeRunner("cpu"), numpy=True)
    assert {(one.level, one.subject, one.reference, one.measure.verdict) for one in found.comparisons} == {
        (Level.MODEL, "cpu", "numpy", Verdict.EQUAL),
        (Level.NODE, "cpu", "numpy", Verdict.EQUAL),
        (Level.MODEL, "numpy", "saved:numpy", Verdict.EQUAL),
        (Level.MODEL, "cpu", "saved:cpu", Verdict.EQUAL),
        (Level.MODEL, "saved:gpu", "numpy", Verdict.MISMATCH),
        (Level.NODE, "saved:gpu", "numpy", Verdict.MISMATCH),
        (Level.NODE, "saved:cpu", "numpy", Verdict.EQUAL),
    }
    assert found.failed == ()
    assert found.differs
    driver = again(tmp_path, path, FakeRunner("cpu", wrong_at(2)))
    of_outputs = [one for one in driver.comparisons if one.node is None and one.subject == "cpu"]
    assert [(one.reference, one.measure.verdict) for one in of_outputs] == [("saved:cpu", Verdict.MISMATCH)]


def test_nothing_runs_and_tolerances_change(tmp_path: Path) -> None:
    path, then = saved(tmp_path, FakeRunner("gpu", wrong_at(5)), FakeRunner("cpu"))
    same = again(tmp_path, path)
    assert verdicts(same, Level.NODE) == {
        (node, f"saved:{runner}"): verdict for (node, runner), verdict in verdicts(then, Level.NODE).items()
    }
    assert len(same.comparisons) == len(then.comparisons)
    assert [odd.runners for odd in same.outliers] == [("saved:gpu",), ("saved:gpu",)]
    assert not again(tmp_path, path, tolerances=Tolerances(["1,0"])).differs
    assert [one.runner for one in same.outcomes] == ["saved:numpy", "saved:gpu", "saved:cpu"]


def test_results_of_results(tmp_path: Path) -> None:
    path, _ = saved(tmp_path, FakeRunner("gpu", wrong_at(5)))
    found = again(tmp_path, path, keeps_runs=True)
    save(found, tmp_path / "results")
    assert [one.plain.runner for one in load(tmp_path / "results").runs[0]] == ["saved:numpy", "saved:gpu"]


def test_nobody_ran(tmp_path: Path) -> None:
    path, feeds = model(tmp_path)
    found = compare(path, (), CompareSettings(keeps_runs=True), with_numpy=False, feeds=feeds)
    save(found, tmp_path / "results")
    assert load(tmp_path / "results").runs == ((),)
    assert [one.runner for one in again(tmp_path, path, numpy=True).outcomes] == ["numpy"]


def test_a_model_with_other_inputs(tmp_path: Path) -> None:
    saved(tmp_path, FakeRunner("a"))
    (tmp_path / "other").mkdir()
    inputs = [floats(9, 4), np.array([2, 0]), -floats(2, 4), np.array(0)]
    path, _ = write_node(tmp_path / "other", "ScatterUpdate", "opset3", inputs)
    with pytest.raises(BadFeed, match=r"that were saved: data has shape \[3, 4\], expected \[9, 4\]"):
        again(tmp_path, path)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    _, found = saved(tmp_path, FakeRunner("a"))
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite, match="cannot be written: file exists"):
        save(found, tmp_path / "file")


@pytest.mark.parametrize("name", ["../case_0.npz", "none.npz"])
def test_arrays_that_are_not_in_the_folder(tmp_path: Path, name: str) -> None:
    saved(tmp_path, FakeRunner("a"))
    path = tmp_path / "results" / "results.json"
    (tmp_path / "case_0.npz").write_bytes((tmp_path / "results" / "case_0.npz").read_bytes())
    path.write_text(path.read_text().replace("case_0.npz", name))
    with pytest.raises(BadFeed):
        load(tmp_path / "results")


def test_damaged_results_are_bad_feeds_and_nothing_else(tmp_path: Path) -> None:
    path, _ = saved(tmp_path, FakeRunner("a", wrong_at(1), facts=FACTS), FakeRunner("b"))
    folder, chance = tmp_path / "results", random.Random(0)
    whole = json.loads((folder / "results.json").read_text())
    values: list[Any] = [
        None,
        -1,
        2**70,
        "x",
        [],
        {},
        1.5,
        float("inf"),
        True,
        "openvino:CPU",
        [[]],
        {"key": "0"},
    ]
    for _ in range(150):
        damaged = json.loads(json.dumps(whole))
        place: Any = damaged
        while True:
            keys = list(place) if isinstance(place, dict) else range(len(place))
            key = chance.choice(keys)
            if not isinstance(place[key], dict | list) or not place[key] or chance.random() < 0.15:
                break
            place = place[key]
        if chance.random() < 0.3:
            del place[key]
        else:
            place[key] = chance.choice(values)
        (folder / "results.json").write_text(json.dumps(damaged))
        with suppress(Error):
            again(tmp_path, path)


def test_damaged_arrays(tmp_path: Path) -> None:
    path, _ = saved(tmp_path, FakeRunner("a"))
    file, chance = tmp_path / "results" / "case_0.npz", random.Random(0)
    whole = file.read_bytes()
    for _ in range(60):
        damaged = bytearray(whole)
        if chance.random() < 0.3:
            damaged = damaged[: chance.randrange(len(damaged))]
        else:
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        file.write_bytes(damaged)
        with suppress(Error):
            again(tmp_path, path)


def test_results_that_came_in_between_stay(tmp_path: Path) -> None:
    path, found = saved(tmp_path, FakeRunner("a"))
    folder = tmp_path / "results"
    (folder / "results.json").write_text("of another run")
    (folder / "case_0.npz").write_text("of another run")
    with pytest.raises(
        UsageError, match=r"results\.json exists, expected a path that is free or --overwrite"
    ):
        save(found, folder, overwrite=False)
    assert sorted(path.name for path in folder.iterdir()) == ["case_0.npz", "results.json"]
    assert all(path.read_text() == "of another run" for path in folder.iterdir())
    save(found, folder)
    assert not again(tmp_path, path).differs
