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
from ir_scatter.core.diagnostics import Diagnostic
from ir_scatter.core.errors import Error
from ir_scatter.core.shapes import Bounds, parse_shape
from ir_scatter.defects import by_code
from ir_scatter.defects.base import Symptom
from ir_scatter.evaluate.model import prepare
from ir_scatter.inputs.model import Drawn, draw_feeds
from ir_scatter.portability import diagnose, portability_to
from ir_scatter.reading import read
from ir_scatter.runners.base import Outcome, Runner, Status
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
ROUTES["deep"] = ROUTES["ir"]
RUNNERS = {"ir": ("CPU",), "onnx": ("onnxruntime", "CPU"), "deep": ("GPU@cpu",)}
"""By dialect; a "deep" model is an IR with static shapes, whose inputs have any rank from 1 to 8."""
LARGEST_RANK = 8
SIZES = ({"S": 7, "D": 4, "N": 3}, {"S": 9, "D": 5, "N": 1})
"""What dynamic dimensions are in two of the draws; the first one chooses."""
_TOLD = frozenset({Symptom.REFUSED, Symptom.WRONG_VALUE})


@pytest.fixture(scope="module")
def open_runners() -> Iterator[dict[str, Runner]]:
    opened = dict[str, Runner]()
    yield opened
    for runner in opened.values():
        runner.close()


@pytest.mark.openvino
@pytest.mark.onnxruntime
@pytest.mark.parametrize("dialect", RUNNERS)
@in_part_and_whole
def test_conversions_before_and_after(
    dialect: str, tmp_path: Path, figures: "Counter[str]", open_runners: dict[str, Runner], is_whole: bool
) -> None:
    pytest.importorskip("openvino")
    pytest.importorskip("onnxruntime")
    for name in RUNNERS[dialect]:
        runner = open_runners.setdefault(name, runners.find(name))
        if not runner.availability().is_available:
            pytest.skip(f"{name} does not run here")
    found = [*differences(dialect, cases(10, is_whole), tmp_path, figures, open_runners)]
    figures["differences"] += len(found)
    assert found == []


def differences(
    dialect: str, numbers: range, folder: Path, figures: "Counter[str]", opened: Mapping[str, Runner]
) -> Iterator[str]:
    """Yield what a conversion changes of models by their numbers."""
    for number in numbers:
        before, plan = draw(dialect, number, folder)
        figures.update(["models", *(word for word in plan.words if word.startswith("rank"))])
        trial = _Trial(before, plan, figures)
        for name in RUNNERS[dialect]:
            trial.run_before(opened[name], name)
        for target in ROUTES[dialect]:
            after = folder / f"after{before.suffix}"
            if _converted(before, target, after, number, figures):
                for name in RUNNERS[dialect]:
                    trial.run_after(opened[name], name, after)
        yield from (f"{number}: {difference}" for difference in trial.differences)


def draw(dialect: str, number: int, folder: Path) -> tuple[Path, Plan]:
    chance, ranks = generator(f"conversions of {dialect}", number), LARGEST_RANK * (dialect == "deep")
    return write(chance, folder, is_onnx=dialect == "onnx", name="before", ranks=ranks)


def test_every_rank_is_drawn(tmp_path: Path) -> None:
    ranks = Counter[tuple[int, str]]()
    for number in range(600):
        path, plan = draw("deep", number, tmp_path)
        shapes = [input.shape or () for input in prepare(path).inputs]
        assert all(isinstance(dim, int) for shape in shapes for dim in shape)
        assert max(map(len, shapes)) <= LARGEST_RANK
        ranks[len(shapes[0]), plan.kind] += 1
    expected = {(rank, kind) for rank in range(1, 9) for kind in ("elements", "rows", "slices", "pairs")}
    assert ranks.keys() == expected - {(1, "pairs")}


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
        self.before, self.plan, self.figures = before, plan, figures
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

    def _run(self, runner: Runner, path: Path, feeds: Feeds) -> Outcome:
        """Run a model, twice if the GPU plugin takes the trip count of a Loop from the inference before."""
        is_late = "told" in self.plan.words and runner.name.startswith("openvino:GPU")
        return runner.run(path, feeds, timeout=60, repeat=1 + is_late)

    def run_before(self, runner: Runner, name: str) -> None:
        for number, (feeds, expected) in enumerate(zip(self.cases, self.expected, strict=True)):
            outcome = self._run(runner, self.before, feeds)
            self.figures["runs"] += 1
            if outcome.status is not Status.OK:
                self.figures[f"{name} before: {outcome.status}, {_sentence(outcome.message)}"] += 1
                continue
            is_same = same(list(outcome.runs[-1].values()), list(expected.values()))
            self.agrees[name, number] = is_same
            if not is_same and not self.is_vague[number]:
                self.figures[f"{name} before is not as documented"] += 1

    def run_after(self, runner: Runner, name: str, after: Path) -> None:
        """Run what a model was converted to: what fails must be reported of it by `validate --for`."""
        for number, (feeds, expected) in enumerate(zip(self.cases, self.expected, strict=True)):
            wanted = list(expected.values())
            if not self.is_vague[number] and not same(list(evaluate_model(after, feeds).values()), wanted):
                self.differences.append(f"NumPy, case {number}")
            outcome = self._run(runner, after, feeds)
            self.figures["runs"] += 1
            before = self.agrees.get((name, number))
            if outcome.status is not Status.OK:
                self.figures[f"{name} after: {outcome.status}"] += 1
                if before is not None and not self._is_known(name, after):
                    self.differences.append(f"{name}, case {number}: {outcome.status} {outcome.message}")
            elif not same(list(outcome.runs[-1].values()), wanted) and not self.is_vague[number]:
                self.figures[f"{name} after is not as documented"] += 1
                if before and not self._is_known(name, after):
                    self.differences.append(f"{name}, case {number}")

    def _is_known(self, name: str, path: Path) -> bool:
        is_known = bool(failures(name, path))
        self.figures[f"{name} after: known to fail"] += is_known
        return is_known


def failures(name: str, path: Path) -> list[Diagnostic]:
    """Return what `validate --for` reports of why a device may refuse a model or compute it wrong."""
    diagnostics = diagnose(read(path), portability_to((name,)))
    return [one for one in diagnostics if one.code in by_code() and by_code()[one.code].symptom in _TOLD]


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
