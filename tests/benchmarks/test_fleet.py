"""What a fleet of three workers costs, against the same work in two and in three processes of one machine.

    pytest tests/benchmarks/test_fleet.py --benchmark-only -s

IR_SCATTER_FLEET_FILES says how many models. Scheduler and three workers are commands on this machine, with
TLS. Nothing is asserted about seconds: machines differ, ratios say what matters.
"""

import os
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

pytest.importorskip("distributed")
pytest.importorskip("cryptography")

import psutil

from ir_scatter.compare.request import CompareRequest, run_job
from ir_scatter.core.files import Source
from ir_scatter.jobs import Job as Work
from ir_scatter.jobs.fleet import Fleet
from ir_scatter.jobs.local import local
from ir_scatter.jobs.runner import FleetRunners
from ir_scatter.jobs.security import NAMES, Address
from ir_scatter.lint import Options, check_files
from tests.jobs.commands import ROOT, Lab
from tests.jobs.variants import make

pytestmark = [pytest.mark.timeout(7200)]

FILES = int(os.environ.get("IR_SCATTER_FLEET_FILES", 1000))
LARGE = 256 << 20
SMALL = ROOT / "samples" / "operators" / "scatter_update_3_axis_0.xml"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("lab"))
    try:
        for name in "abc":
            made.worker(name)
        make(made.folder / "models", FILES)
        yield made
    finally:
        made.close()


def connect(lab: Lab) -> "closing[Fleet]":
    ca, cert, key = (str(lab.folder / "lab" / name) for name in NAMES)
    return closing(Fleet(Address(lab.address, ca, cert, key)))


def processor_seconds(*roots: Any) -> float:
    """Sum what processes have used, with all that they began, whether that has ended or not."""
    total = 0.0
    for root in roots:
        for one in (root, *root.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                times = one.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
    return total


class Clock:
    """Wall and processor seconds of this process, of the scheduler and of the workers."""

    def __init__(self, lab: Lab) -> None:
        self._of = {name: psutil.Process(one.pid) for name, one in lab.running.items()}
        self._begun = time.monotonic(), self._now()

    def _now(self) -> dict[str, float]:
        others = {name: processor_seconds(one) for name, one in self._of.items()}
        me = psutil.Process()
        here = processor_seconds(me) - sum(processor_seconds(one) for one in self._of.values())
        return {"client": here, **others}

    @property
    def told(self) -> tuple[float, dict[str, float]]:
        wall, before = self._begun
        return time.monotonic() - wall, {name: now - before[name] for name, now in self._now().items()}


@pytest.mark.openvino
def test_comparing(benchmark: Any, lab: Lab) -> None:
    pytest.importorskip("openvino")
    job = CompareRequest((str(lab.folder / "models"),), ("openvino:CPU",), each=True)
    alone = {}
    for count in (2, 3):
        clock = Clock(lab)
        with local(count) as executor:
            here = run_job(job, executor=executor)
            wall, told = clock.told
        alone[count] = wall, told["client"]
    clock = Clock(lab)
    with connect(lab) as fleet:
        there = run_job(job, executor=fleet, directory=FleetRunners(fleet))
        wall, used = clock.told
        sent = sum(one.bytes for one in fleet.shares.values())
    assert len(there.found) == len(here.found)
    ratio = sum(used.values()) / alone[3][1]
    print(
        f"\n{FILES} compares: {sum(used.values()):.1f} processor seconds and {wall:.1f} s on three workers; client "
        f"{used['client']:.1f}, scheduler {used['scheduler']:.1f}; {sent / FILES:.0f} bytes per job"
    )
    for count, (wall_here, used_here) in alone.items():
        print(
            f"{used_here:.1f} and {wall_here:.1f} s in {count} processes here: {sum(used.values()) / used_here:.3f} x "
            f"and {wall / wall_here:.3f} x"
        )
    benchmark.extra_info["ratio"] = ratio
    benchmark.pedantic(lambda: None, rounds=1)


def test_validating(benchmark: Any, lab: Lab) -> None:
    """What the scheduler and the client take for a job that is next to nothing."""
    sources = [
        Source(str(path)) for path in sorted((lab.folder / "models").rglob("*.*")) if path.suffix != ".bin"
    ]
    with connect(lab) as fleet:
        check_files(sources[:30], Options(), executor=fleet)
        before, clock = sum(one.bytes for one in fleet.shares.values()), Clock(lab)
        check_files(sources, Options(), executor=fleet)
        wall, used = clock.told
        sent = sum(one.bytes for one in fleet.shares.values()) - before
    each = {name: 1000 * seconds / len(sources) for name, seconds in used.items()}
    print(
        f"\n{len(sources)} files validated: {len(sources) / wall:.0f} each second; of processor time "
        f"{', '.join(f'{name} {one:.2f} ms' for name, one in each.items())}; {sent / len(sources):.0f} bytes per job"
    )
    benchmark.pedantic(lambda: None, rounds=1)


def test_a_large_file(benchmark: Any, lab: Lab, tmp_path: Path) -> None:
    """Weights in pieces through the scheduler, with TLS, and whether they are whole."""
    model = Path(copy(SMALL, tmp_path / "m.xml"))
    model.with_suffix(".bin").write_bytes(os.urandom(1 << 20) * (LARGE >> 20))
    with connect(lab) as fleet:
        for name in "ab":
            begun = time.monotonic()
            fleet.submit(Work("validate", (Source(str(model)), Options()), str(model), name)).result()
            seconds = time.monotonic() - begun
            print(f"\n{LARGE >> 20} MiB to {name}: {LARGE / 1e6 / seconds:.0f} MB each second")
    benchmark.pedantic(lambda: None, rounds=1)
