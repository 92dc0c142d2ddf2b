"""Models before and after a conversion: in NumPy and on runtimes, with indices of every kind."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ir_scatter import convert, evaluate_model, runners
from ir_scatter.convert.conversion import Conversion
from ir_scatter.core.errors import Error
from ir_scatter.core.shapes import Bounds, parse_shape
from ir_scatter.evaluate.model import prepare
from ir_scatter.inputs.model import Drawn, draw_feeds
from ir_scatter.runners.base import Runner, Status
from tests.campaigns.body_models import Plan, write
from tests.scale import cases, generator, in_part_and_whole

Feeds = Mapping[str, npt.NDArray[Any]]

ROUTES = {
    "ir": (
        "ScatterUpdate-3", "ScatterElementsUpdate-3", "ScatterElementsUpdate-12", "ScatterNDUpdate-3",
        "ScatterNDUpdate-15",
    ),
    "onnx": ("ScatterElements", "ScatterND"),
}  # fmt: skip
RUNNERS = {"ir": ("CPU",), "onnx": ("onnxruntime", "CPU")}
SIZES = ({"S": 7, "D": 4, "N": 3}, {"S": 9, "D": 5, "N": 1})
"""What dynamic dimensions are in two of the draws; the first one chooses."""


@pytest.fixture(scope="module")
def open_runners() -> Iterator[Mapping[str, Runner]]:
    names = {name for every in RUNNERS.values() for name in every}
    found = {name: runners.find(name) for name in sorted(names)}
    yield found
    for runner in found.values():
        runner.close()


@pytest.mark.openvino
@pytest.mark.onnxruntime
@pytest.mark.parametrize("dialect", ["onnx", "ir"])
@in_part_and_whole
def test_conversions_before_and_after(
    dialect: str, tmp_path: Path, figures: "Counter[str]", open_runners: Mapping[str, Runner], is_whole: bool
) -> None:
    pytest.importorskip("openvino")
    pytest.importorskip("onnxruntime")
    differences: list[str] = []
    for number in cases(10, is_whole):
        chance = generator(f"conversions of {dialect}", number)
        before, plan = write(chance, tmp_path, is_onnx=dialect == "onnx", name="before")
        figures["models"] += 1
        trial = _Trial(before, plan, figures)
        for name in RUNNERS[dialect]:
            trial.run_before(open_runners[name], name)
        for target in ROUTES[dialect]:
            after = tmp_path / f"after{before.suffix}"
            if _converted(before, target, after, number, figures):
                for name in RUNNERS[dialect]:
                    trial.run_after(open_runners[name], name, after)
        differences += (f"{number}: {one}" for one in trial.differences)
    figures["differences"] += len(differences)
    assert differences == []


def _converted(before: Path, target: str, after: Path, seed: int, figures: "Counter[str]") -> bool:
    """Convert a model, and tell whether something was changed."""
    figures["conversions"] += 1
    found: Conversion = convert(before, target, verify=4, seed=seed)
    figures.update(f"refusal {one.code}" for one in found.refused)
    if found.refused or not any(one.fragment for one in found.converted):
        figures["unchanged"] += not found.refused
        return False
    assert len(found.verified) == len([one for one in found.converted if one.fragment])
    found.write(after, overwrite=True)
    figures["verified"] += 1
    return True


class _Trial:
    """One model, what it gives on several inputs, and how what was made of it differs."""

    def __init__(self, before: Path, plan: Plan, figures: "Counter[str]") -> None:
        self.before, self.figures = before, figures
        self.differences: list[str] = []
        drawn = [draw_feeds(before, seed) for seed in range(3)]
        if plan.is_dynamic:
            drawn += self._sized()
        self.cases: list[Feeds] = [one.feeds for one in drawn]
        self.is_vague = [bool(one.repeated) for one in drawn]
        figures["cases that nothing determines"] += sum(self.is_vague)
        self.expected = [evaluate_model(before, feeds) for feeds in self.cases]
        self.agrees: dict[tuple[str, int], bool] = {}

    def _sized(self) -> Iterator[Drawn]:
        """Draw inputs with other sizes, as far as the model lets them be chosen."""
        inputs = prepare(self.before).inputs
        for seed, sizes in enumerate(SIZES):
            shapes = {}
            for input in inputs:
                known = [
                    str(sizes.get(dim.symbol or "", "?")) if isinstance(dim, Bounds) else str(dim)
                    for dim in input.shape or ()
                ]
                shapes[input.names[0]] = parse_shape(",".join(known))
            try:
                yield draw_feeds(self.before, seed, shapes)
            except Error:
                self.figures["sizes that do not fit"] += 1

    def run_before(self, runner: Runner, name: str) -> None:
        for number, (feeds, expected) in enumerate(zip(self.cases, self.expected, strict=True)):
            outcome = runner.run(self.before, feeds, timeout=60)
            self.figures["runs"] += 1
            if outcome.status is not Status.OK:
                self.figures[f"{name} before: {outcome.status}, {_sentence(outcome.message)}"] += 1
                continue
            is_same = same(list(outcome.outputs.values()), list(expected.values()))
            self.agrees[name, number] = is_same
            if not is_same and not self.is_vague[number]:
                self.figures[f"{name} before is not as documented"] += 1

    def run_after(self, runner: Runner, name: str, after: Path) -> None:
        for number, (feeds, expected) in enumerate(zip(self.cases, self.expected, strict=True)):
            wanted = list(expected.values())
            if not self.is_vague[number] and not same(list(evaluate_model(after, feeds).values()), wanted):
                self.differences.append(f"NumPy, case {number}")
            outcome = runner.run(after, feeds, timeout=60)
            self.figures["runs"] += 1
            before = self.agrees.get((name, number))
            if outcome.status is not Status.OK:
                self.figures[f"{name} after: {outcome.status}"] += 1
                if before is not None:
                    self.differences.append(f"{name}, case {number}: {outcome.status} {outcome.message}")
            elif not same(list(outcome.outputs.values()), wanted) and not self.is_vague[number]:
                self.figures[f"{name} after is not as documented"] += 1
                if before:
                    self.differences.append(f"{name}, case {number}")


def _sentence(message: str) -> str:
    """Return the words of a runtime without what differs from model to model."""
    return re.sub(r"[A-Za-z_:]*\d+", "N", message).replace(",", ";")[:80]


def same(found: list[npt.NDArray[Any]], wanted: list[npt.NDArray[Any]]) -> bool:
    """Tell whether outputs are equal, but for rounding of products."""
    return len(found) == len(wanted) and all(
        one.shape == other.shape
        and one.dtype == other.dtype
        and np.allclose(one, other, 1e-5, 1e-5, equal_nan=True)
        for one, other in zip(found, wanted, strict=True)
    )
