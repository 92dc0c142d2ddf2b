"""A runner with planted defects: each is found once, with the sentence that describes it."""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from math import prod
from pathlib import Path
from threading import Event, Timer
from time import monotonic, sleep
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from ir_scatter import evaluate_model, read
from ir_scatter.formats.base import ONNX_FORMAT
from ir_scatter.fuzz.campaign import Campaign, FuzzPlan, operators
from ir_scatter.fuzz.explain import FuzzFinding
from ir_scatter.fuzz.features import Feature
from ir_scatter.report.fuzz_text import render
from ir_scatter.runners.base import Runner, Status, Streamed


class Planted(Runner):
    """NumPy, but for what is planted."""

    name = "planted"
    packages = ()

    def start(self) -> None:
        pass

    def close(self) -> None:
        pass

    def stream(self, model_path: Any, feeds: Sequence[Mapping[str, Any]], **_: Any) -> list[Streamed]:
        model = read(model_path)
        nodes = list(model.walk(frozenset({"ScatterElementsUpdate"})))
        answers = []
        for one in feeds:
            outputs = [np.array(found) for found in evaluate_model(model, one).values()]
            for number, node in enumerate(nodes):
                data, axis = node.inputs[0].value, node.inputs[3].value
                assert data is not None
                assert data.shape is not None
                type = data.element_type.name if data.element_type else ""
                if node.attributes.get("reduction") == "prod" and type == "i32":
                    return [Streamed(Status.CRASHED, message="the process crashed (SIGSEGV)") for _ in feeds]
                if type == "u8":
                    return [Streamed(Status.REFUSED, message="no kernel for u8") for _ in feeds]
                constant = None if axis is None else axis.constant
                axes = one.get(f"n{number}_axis", one.get("axis", constant.load() if constant else None))
                is_negative = int(np.asarray(axes).reshape(-1)[0]) < 0
                is_text = outputs[number].dtype.kind in "OUS"
                if is_negative and len(data.shape) < 3 and outputs[number].size and not is_text:
                    flat = outputs[number].reshape(-1)
                    flat[0] = ~flat[0] if flat.dtype.kind == "b" else flat[0] + flat.dtype.type(3)
            answers.append(Streamed(Status.OK, outputs))
        return answers


@pytest.fixture(scope="module")
def found() -> Campaign:
    plan = FuzzPlan(operators(["ScatterElementsUpdate-12"]), None, 3000, values="plain")
    campaign = Campaign(plan, [Planted()])
    list(campaign.run())
    return campaign


def of(found: Campaign, symptom: str) -> list[FuzzFinding]:
    return [one for one in found.findings if one.symptom.value == symptom]


@pytest.mark.long
def test_what_was_planted_is_found_once_each(found: Campaign) -> None:
    assert {one.symptom.value: str(one.condition) for one in found.findings} == {
        "crashed": "element type is i32 and reduction is prod",
        "refused": "element type is u8",
        "wrong-value": "axis is negative and rank(data) < 3",
    }
    assert len(found.findings) == 3
    for one in found.findings:
        assert one.case is not None
        assert one.case.data.size <= 8
        assert one.failing > 5


@pytest.mark.long
def test_a_run_that_goes_on_reports_nothing_again(found: Campaign) -> None:
    earlier = json.loads(json.dumps(found.as_json()))
    again = Campaign(
        FuzzPlan(operators(["ScatterElementsUpdate-12"]), None, 4500, values="plain"), [Planted()], earlier
    )
    assert list(again.run()) == []
    assert [one.signature for one in again.findings] == [one.signature for one in found.findings]
    assert again.cases > found.cases


class Right(Planted):
    """NumPy."""

    def stream(self, model_path: Any, feeds: Sequence[Mapping[str, Any]], **_: Any) -> list[Streamed]:
        model = read(model_path)
        return [Streamed(Status.OK, list(evaluate_model(model, one).values())) for one in feeds]


def test_what_is_right_raises_nothing() -> None:
    campaign = Campaign(FuzzPlan(operators([]), None, 500), [Right()])
    assert list(campaign.run()) == []
    assert campaign.cases >= 500


class Counting(Planted):
    """Computes nothing, and counts; what it does before, a test says."""

    def __init__(self, name: str, before: Callable[[], None] = lambda: None) -> None:
        self.name, self.models, self.before = name, list[str](), before  # which the processes of it share

    def stream(self, model_path: Any, feeds: Sequence[Mapping[str, Any]], **_: Any) -> list[Streamed]:
        self.models.append(Path(model_path).read_text())
        self.before()
        return [Streamed(Status.UNAVAILABLE) for _ in feeds]


def test_a_slow_runner_holds_nobody_up() -> None:
    """While it computes its first model, another computes more than it may be behind."""
    done = Event()

    def wait() -> None:
        while campaign.cases < 800 and not done.wait(0.01):
            pass
        campaign.started -= 100  # the time is over
        done.set()

    campaign = Campaign(
        FuzzPlan(operators(["ScatterUpdate-3"]), 100.0), [Counting("slow", wait), Counting("quick")]
    )
    Timer(50, done.set).start()
    assert list(campaign.run()) == []
    assert campaign.cases >= 800


def test_what_nobody_reads_is_not_drawn() -> None:
    """Beside a runner of IR, one that reads ONNX alone drew rounds of IR without end, and held it up."""

    class Elsewhere(Counting):
        formats = (ONNX_FORMAT,)

    def wait() -> None:
        if monotonic() < campaign.deadline:
            sleep(5)
            campaign.started -= 100  # the time is over

    campaign = Campaign(
        FuzzPlan(operators(["ScatterUpdate-3"]), 100.0), [Counting("ours", wait), Elsewhere("other")]
    )
    assert list(campaign.run()) == []
    assert 1 <= campaign.as_json()["rounds"] <= 7  # that of its first model, and what is asked for ahead


def test_a_number_of_cases_is_computed_by_all() -> None:
    slow, quick = Counting("slow", lambda: sleep(0.1)), Counting("quick")
    campaign = Campaign(FuzzPlan(operators(["ScatterUpdate-3"]), None, 250), [slow, quick])
    assert list(campaign.run()) == []
    assert campaign.cases == 250
    assert slow.models
    assert sorted(slow.models) == sorted(quick.models)  # in several processes in any order


@pytest.mark.long
def test_one_seed_finds_the_same_however_long_a_runner_takes() -> None:
    class Refusing(Right):
        def stream(
            self, model_path: Any, feeds: Sequence[Mapping[str, Any]], **options: Any
        ) -> list[Streamed]:
            sleep(next(self.numbers) % 3 * self.pace)
            if 'element_type="f16"' in Path(model_path).read_text():
                return [Streamed(Status.REFUSED, message="no f16") for _ in feeds]
            return super().stream(model_path, feeds, **options)

        def __init__(self, pace: float) -> None:
            self.pace, self.numbers = pace, count()

    told = []
    for pace in (0.0, 0.02):
        campaign = Campaign(FuzzPlan(operators(["ScatterUpdate-3"]), None, 1500), [Refusing(pace)])
        list(campaign.run())
        report = campaign.as_json()
        told.append({name: value for name, value in report.items() if name not in {"seconds", "rates"}})
    assert told[0] == told[1]
    assert [one["symptom"] for one in told[0]["findings"]] == ["refused"]


class Wrong(Right):
    """NumPy, but for elements of which a test says, by the bytes of data, that they are wrong."""

    def __init__(self, is_wrong: Callable[[bytes], bool]) -> None:
        self.is_wrong = is_wrong

    def another(self) -> Any:
        return self

    def stream(self, model_path: Any, feeds: Sequence[Mapping[str, Any]], **_: Any) -> list[Streamed]:
        model, answers = read(model_path), []
        nodes = list(model.walk(frozenset({"ScatterUpdate"})))
        for one in feeds:
            outputs = [np.array(found) for found in evaluate_model(model, one).values()]
            for node, output in zip(nodes, outputs, strict=True):
                value = node.inputs[0].value
                assert value is not None
                constant = value.constant
                data = np.asarray(constant.load() if constant else one[value.name])
                if output.dtype == np.float32 and output.size and self.is_wrong(data.tobytes()):
                    output.reshape(-1)[0] += 3
            answers.append(Streamed(Status.OK, outputs))
        return answers


@pytest.mark.long
def test_what_no_feature_tells_is_said_to_be_unexplained() -> None:
    campaign = Campaign(
        FuzzPlan(operators(["ScatterUpdate-3"]), None, 700, values="plain"),
        [Wrong(lambda data: crc32(data) % 3 == 0)],
    )
    found = list(campaign.run())
    assert [one.is_explained for one in found].count(False) == 1
    for one in campaign.findings:
        total = one.failing + one.passing
        assert one.failing >= 0.9 * total or (not one.is_explained and "no short condition" in one.when)


@pytest.mark.long
def test_what_a_fresh_process_computes_right_is_said_to_need_others() -> None:
    class Used(Wrong):
        has_run = False

        def another(self) -> Any:
            return Right() if self.has_run else self

        def stream(self, *arguments: Any, **options: Any) -> list[Streamed]:
            self.has_run = True
            return super().stream(*arguments, **options)

    runner = Used(lambda data: True)
    campaign = Campaign(FuzzPlan(operators(["ScatterUpdate-3"]), None, 400, values="plain"), [runner])
    (found, *_) = campaign.run()
    assert found.fresh == {"right": 2}
    assert found.when.endswith("only in a process that has run other cases before")
    assert not found.is_steady


def test_what_the_end_of_the_time_cuts_off_does_not_hang() -> None:
    class Slow(Counting):
        def stream(
            self, model_path: Any, feeds: Sequence[Mapping[str, Any]], **options: Any
        ) -> list[Streamed]:
            assert options["timeout"] <= 3
            sleep(0.2)
            return [Streamed(Status.TIMEOUT, message="no answer within 1 second") for _ in feeds]

    assert list(Campaign(FuzzPlan(operators(["ScatterUpdate-3"]), 3.0), [Slow("slow")]).run()) == []


class Careless(Right):
    """Refuses what is forbidden, but for an axis of two elements; its process ends where that has none."""

    def stream(self, model_path: Any, feeds: Sequence[Mapping[str, Any]], **_: Any) -> list[Streamed]:
        (node,) = read(model_path).walk(frozenset({"ScatterElementsUpdate"}))
        axis = node.inputs[3].value
        assert axis is not None
        answers = {
            0: Streamed(Status.CRASHED, message="the process crashed (SIGFPE)"),
            2: Streamed(Status.OK, [np.zeros(1)]),
        }
        shape = axis.constant.shape if axis.constant else ()
        sizes = [one["axis"].size if "axis" in one else prod(shape) for one in feeds]
        return [answers.get(size, Streamed(Status.REFUSED, message="no")) for size in sizes]


def test_a_case_that_fails_otherwise_does_not_show_the_symptom() -> None:
    """That an axis of two elements is taken disproves that every wrong shape of an axis ends the process."""
    plan = FuzzPlan(operators(["ScatterElementsUpdate-12"]), None, 400, is_illegal=True)
    campaign = Campaign(plan, [Careless()])
    list(campaign.run())
    (crashed,), (taken,) = of(campaign, "crashed"), of(campaign, "accepted-illegal")
    features: dict[str, Feature] = {"broken": "axis-shape", "rank(axis)": 1}
    assert crashed.condition.holds({**features, "elements(axis)": 0})
    assert not crashed.condition.holds({**features, "elements(axis)": 2})
    assert crashed.when.endswith(f": {crashed.failing} of {crashed.failing} crash")
    assert "more crash" in taken.when or not taken.condition.holds({**features, "elements(axis)": 0})


@pytest.mark.long
def test_failures_that_no_time_was_left_to_look_at_are_told() -> None:
    class Late(Right):
        def stream(self, *arguments: Any, **options: Any) -> list[Streamed]:
            sleep(max(campaign.deadline + 0.1 - monotonic(), 0))  # the time is over
            answers = super().stream(*arguments, **options)
            return [Streamed(Status.OK, [np.zeros(97) for _ in one.outputs]) for one in answers]

    campaign = Campaign(FuzzPlan(operators(["ScatterUpdate-3"]), 3.0, values="plain"), [Late()])
    assert list(campaign.run()) == []
    assert campaign.unexplained > 0
    assert campaign.as_json()["unexplained"] == campaign.unexplained
    assert "not examined: time limit reached" in render(campaign)
