"""Many models in the same processes."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ir_scatter.compare import request as jobs
from ir_scatter.compare.request import Sources
from ir_scatter.core.arrays import Array
from ir_scatter.runners.base import Outcome
from tests.compare.planted import FakeRunner

SAMPLES = Path(__file__).parents[2] / "samples" / "operators"
MODELS = tuple(str(SAMPLES / f"scatter_update_3_{name}.xml") for name in ("axis_0", "matrix_of_indices"))
REMARK = "results differed in processes that had run other models, and do not in fresh ones"


class Spoilt(FakeRunner):
    """Gives wrong outputs from the second model on, until its process is a fresh one."""

    def __init__(self, *, for_good: bool = False) -> None:
        super().__init__("openvino:fake")
        self.for_good, self.models = for_good, set[str]()

    def close(self) -> None:
        super().close()
        self.models.clear()

    def run(self, model_path: str | Path, feeds: Mapping[str, Array], **options: Any) -> Outcome:
        self.models.add(str(model_path))
        found = super().run(model_path, feeds, **options)
        if len(self.models) < 2 and not self.for_good:
            return found
        runs = tuple({name: array + 1 for name, array in run.items()} for run in found.runs)
        return replace(found, runs=runs)


def each(runner: FakeRunner, monkeypatch: pytest.MonkeyPatch) -> jobs.Done:
    sources = Sources((runner,), with_numpy=True)
    monkeypatch.setattr(jobs, "find_sources", lambda *_, **__: sources)
    return jobs.run_job(jobs.Job(models=MODELS, names=("numpy", "fake"), each=True))


def test_what_an_earlier_model_has_spoilt_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Spoilt()
    first, second = each(runner, monkeypatch).found
    assert not first.differs
    assert not second.differs
    assert REMARK not in first.remarks
    assert REMARK in second.remarks


def test_what_a_fresh_process_shows_as_well_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = each(Spoilt(for_good=True), monkeypatch).found
    assert first.differs
    assert second.differs
    assert REMARK not in second.remarks


def test_models_that_agree_share_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = FakeRunner("openvino:fake")
    found = each(runner, monkeypatch).found
    assert not any(one.differs for one in found)
    assert runner.closed == 1
