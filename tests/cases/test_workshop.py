"""Batches of nodes on a runner that refuses some of them: each gets its own answer, after few models."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter import read
from ir_scatter.cases.case import Case
from ir_scatter.cases.workshop import Refusals, Workshop
from ir_scatter.core.model import Node
from ir_scatter.core.process import Failure
from ir_scatter.fuzz.campaign import operators
from ir_scatter.fuzz.rounds import Drawer, FeatureCoverage
from ir_scatter.runners.base import PROGRESS_BYTES, Runner, Status, Streamed

(SPEC,) = operators(["ScatterUpdate-3"])


class Refusing(Runner):
    """Answers a model of which it refuses no node."""

    name = "refusing"
    packages = ()

    def __init__(self, refuses: Callable[[Node], bool], message: str = "no", status: str = "refused") -> None:
        self.refuses, self.message, self.status, self.models = refuses, message, Status(status), 0

    def stream(self, model_path: Any, feeds: Sequence[Mapping[str, Any]], **_: Any) -> list[Streamed]:
        self.models += 1
        nodes = list(read(model_path).walk(frozenset({"ScatterUpdate"})))
        guilty = [node.name for node in nodes if self.refuses(node)]
        if guilty:
            message = self.message.format(guilty[-1])
            return [Streamed(self.status, message=message) for _ in feeds]
        return [Streamed(Status.OK, [np.array(number) for number in range(len(nodes))]) for _ in feeds]


def batches(
    runner: Runner, folder: Path, count: int, *, passes_over: bool = True
) -> list[list[tuple[Case, Streamed]]]:
    drawer = Drawer(0, "plain", FeatureCoverage())
    workshop = Workshop(str(folder), 60.0, passes_over=passes_over)
    drawn = [
        [case for case in drawer.batch(SPEC, number, 60) if case.element_type.name != "string"]
        for number in range(count)
    ]
    return [list(zip(cases, workshop.batch(runner, cases), strict=True)) for cases in drawn]


def is_guilty(case: Case) -> bool:
    return case.indices is not None and case.indices.ndim == 0


def of_scalars(node: Node) -> bool:
    value = node.inputs[1].value
    return value is not None and value.shape == ()


@pytest.mark.parametrize("message", ["no scalars", "{} has a scalar"])
@pytest.mark.parametrize("status", ["refused", "crashed"])
def test_each_node_has_its_own_answer(tmp_path: Path, message: str, status: str) -> None:
    runner = Refusing(of_scalars, message, status)
    for answers in batches(runner, tmp_path, 2):
        for case, answer in answers:
            if is_guilty(case):
                assert answer.status in {status, "unavailable"}
            else:
                assert answer.status == "ok"
    assert not list(tmp_path.iterdir())


def test_what_is_known_to_be_refused_is_not_put_among_others_again(tmp_path: Path) -> None:
    runner, taken, seen = Refusing(of_scalars), list[int](), 0
    for answers in batches(runner, tmp_path, 4):
        assert sum(is_guilty(case) for case, _ in answers) > 5
        taken.append(runner.models - seen)
        seen = runner.models
    assert sum(taken[1:]) < 30
    assert taken[-1] <= 4


def test_an_exception_does_not_hide_what_is_refused() -> None:
    """What is refused nearly always is run by itself, not among innocent nodes, and goes on to be run."""
    refusals, traits = Refusals(), frozenset({("Op", "1 element", "0-D updates")})
    for number in range(20):
        refusals.count(traits, is_refused=number != 1)
        assert bool(refusals.evidence(traits)[0]) is (number == 0 or number > 4)
        assert not number or not refusals.is_certain(traits)
    other = refusals.copy()
    for _ in range(5):
        other.count(traits, is_refused=False)
    assert not other.evidence(traits)[0]
    assert refusals.evidence(traits)[0]
    refusals.merge(other)
    assert not refusals.evidence(traits)[0]


def test_what_is_certain_is_blamed_alone() -> None:
    """A rare type that meets three refusals for another reason is no reason of its own."""
    refusals, reason, rare = Refusals(), ("Op", "scalar", "scalar"), ("Op", "f8e8m0", "f8e8m0")
    for number in range(9):
        other = rare if number > 3 else ("Op", f"type {number}", f"type {number}")
        refusals.count(frozenset({reason, other}), is_refused=True)
    assert refusals.is_certain(frozenset({reason}))
    assert refusals.evidence(frozenset({rare})) == (0, 0)
    assert refusals.evidence(frozenset({("Op", "type 0", "type 0")})) == (1, 1)


def test_what_explains_passes_nothing_over(tmp_path: Path) -> None:
    for answers in batches(Refusing(of_scalars), tmp_path, 2, passes_over=False):
        for case, answer in answers:
            assert answer.status == ("refused" if is_guilty(case) else "ok")


class Dying(Runner):
    """Its process dies of some feeds; a damaged one of what comes behind them too."""

    name, packages, module = "dying", (), ""

    def __init__(self, guilty: set[int]) -> None:
        self.guilty, self.asked = guilty, 0

    def ask(self, name: str, *arguments: Any, limit: float = 0.0, again: bool = True) -> tuple[Any, str]:
        _, feeds, progress = arguments
        self.asked += 1
        for number, one in enumerate(feeds):
            Path(progress).write_bytes(number.to_bytes(PROGRESS_BYTES))
            if int(one["x"]) in self.guilty:
                raise Failure("crashed", "the process crashed (SIGSEGV)")
        return [Streamed(Status.OK, [one["x"]]) for one in feeds], ""


@pytest.mark.parametrize(
    ("guilty", "most", "expected"),
    [
        ({3}, 4, ["ok", "ok", "ok", "crashed", "ok", "ok"]),
        ({3}, 1, ["unavailable"] * 3 + ["crashed"] + ["unavailable"] * 2),
        ({1, 2, 3, 4, 5}, 4, ["ok", "crashed", "crashed", *["unavailable"] * 3]),
    ],
)
def test_a_model_whose_feeds_end_processes_ends_few_of_them(
    guilty: set[int], most: int, expected: list[str]
) -> None:
    runner = Dying(guilty)
    found = runner.stream("model.xml", [{"x": np.array(number)} for number in range(6)], most_deaths=most)
    assert [one.status.value for one in found] == expected
    assert runner.asked <= 2 * most


def test_what_goes_wrong_in_no_known_way_is_the_end_of_a_process(tmp_path: Path) -> None:
    class Odd(Refusing):
        def stream(self, *arguments: Any, **options: Any) -> list[Streamed]:
            answers = super().stream(*arguments, **options)
            if answers[0].status is Status.REFUSED:
                raise RuntimeError("Traceback (most recent call last):\n  ...\nValueError: map::at\n")
            return answers

    for pairs in batches(Odd(of_scalars), tmp_path, 2, passes_over=False):
        for case, answer in pairs:
            assert (answer.status is Status.CRASHED) == is_guilty(case)
            assert (
                answer.status is Status.OK or answer.message == "the process is damaged: ValueError: map::at"
            )
