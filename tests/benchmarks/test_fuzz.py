"""Judged cases for each second, by stream, against a model for each case in the same run.

    pytest tests/benchmarks/test_fuzz.py --benchmark-only -s

Nothing is asserted about seconds: machines differ, ratios say what matters. On a machine that others use too,
the CPU seconds of this process and of the runtime's are what counts: they overlap, so the larger is the limit.
"""

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ir_scatter import runners
from ir_scatter.cases.case import Case
from ir_scatter.cases.judge import judge
from ir_scatter.cases.workshop import NODES, Workshop
from ir_scatter.fuzz.campaign import Campaign, FuzzPlan, operators
from ir_scatter.fuzz.rounds import Drawer, FeatureCoverage
from ir_scatter.runners.base import Runner

CPU = "openvino:CPU"
SECONDS = 30.0
_FIRST = 3
"""So many rounds find out what is refused."""


class Cost(NamedTuple):
    """Seconds for each judged case: by the wall, of this process, of the runtime's."""

    wall: float
    ours: float
    runtime: float

    def __str__(self) -> str:
        return (
            f"{1 / self.wall:6.0f}/s; CPU microseconds a case: "
            f"{self.ours * 1e6:.0f} ours, {self.runtime * 1e6:.0f} the runtime's"
        )


def cost(kind: str, draw: Callable[[int], list[Case]], folder: Path, seconds: float) -> Cost:
    """Draw, run and judge rounds, one after the other, after a first few that find out what is refused."""
    runner, judged = runners.find(CPU), 0
    workshop = Workshop(str(folder), 60.0)

    def done(number: int) -> int:
        cases = draw(number)
        answers = workshop.answers(runner, kind, cases, 1)
        found = [judge(case, answer) for case, answer in zip(cases, answers, strict=True)]
        return sum(one.is_run for one in found)

    for number in range(_FIRST):
        done(number)
    started, number = spent(runner), _FIRST
    while time.perf_counter() - started[0] < seconds:
        judged += done(number)
        number += 1
    differences = [after - before for before, after in zip(started, spent(runner), strict=True)]
    runner.close()
    return Cost(*(one / judged for one in differences))


def spent(runner: Runner) -> tuple[float, float, float]:
    """Return the time, and the CPU seconds of this process and of the runtime's, with those before it."""
    fields = Path(f"/proc/{runner.child.process_id}/stat").read_text().rpartition(")")[2].split()
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = int(fields[11]) + int(fields[12])
    runtime = ended.ru_utime + ended.ru_stime + ticks / os.sysconf("SC_CLK_TCK")
    return time.perf_counter(), time.process_time(), runtime


@pytest.mark.openvino
@pytest.mark.parametrize(
    "name", ["ScatterElementsUpdate-12", "ScatterNDUpdate-15", "ScatterUpdate-3", "ScatterElements-18"]
)
def test_cases_for_each_second(benchmark: Any, tmp_path: Path, name: str) -> None:
    pytest.importorskip("openvino")
    (spec,) = operators([name])
    drawer = Drawer(0, "plain", FeatureCoverage())
    streams: dict[str, tuple[str, Callable[[int], list[Case]]]] = {
        "a model for each case": ("batches", lambda number: drawer.batch(spec, number, 1)),
        "batches": ("batches", lambda number: drawer.batch(spec, number, NODES)),
        "forms": ("forms", lambda number: drawer.forms(spec, number)),
    }
    costs = {title: cost(kind, draw, tmp_path, SECONDS / 3) for title, (kind, draw) in streams.items()}
    single = costs["a model for each case"]
    for title, found in costs.items():
        print(f"\n{name}, {title}: {found}, {single.wall / found.wall:.1f} x", end="")
        benchmark.extra_info[title] = found
    campaign = Campaign(FuzzPlan((spec,), SECONDS, None, 0, "plain"), [runners.find(CPU)])
    signatures = [one.signature for one in campaign.run()]
    campaign.runners[0].close()
    print(f"\n{name}, {SECONDS:.0f} s of both: {campaign.rates.as_json()}, {len(signatures)} findings")
    benchmark.pedantic(lambda: drawer.forms(spec, 0), rounds=1)
