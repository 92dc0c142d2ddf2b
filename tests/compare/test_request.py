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
    """Gives wrong outputs from some model on, until its process is a fresh one."""

    def __init__(self, begins: int) -> None:
        super().__init__("openvino:fake")
        self.begins, self.models = begins, set[str]()

    def close(self) -> None:
        super().close()
        self.models.clear()

    def run(self, model_path: str | Path, feeds: Mapping[str, Array], **options: Any) -> Outcome:
        self.models.add(str(model_path))
        found = super().run(model_path, feeds, **options)
        is_spoilt = len(self.models) >= self.begins
        return replace(found, runs=tuple({k: v + is_spoilt for k, v in run.items()} for run in found.runs))


@pytest.mark.parametrize(
    ("begins", "differs", "closed"),
    [
        pytest.param(2, [False, False], 2, id="what an earlier model has spoilt is no difference"),
        pytest.param(1, [True, True], 2, id="what a fresh process shows as well is one"),
        pytest.param(9, [False, False], 1, id="models that agree share a process"),
    ],
)
def test_many_models(begins: int, differs: list[bool], closed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Spoilt(begins)
    monkeypatch.setattr(jobs, "find_sources", lambda *_, **__: Sources((runner,), with_numpy=True))
    done = jobs.run_job(jobs.CompareRequest(models=MODELS, names=("numpy", "fake"), each=True))
    assert [one.differs for one in done.found] == differs
    assert [REMARK in one.remarks for one in done.found] == [False, begins == 2]
    assert runner.closed == closed
