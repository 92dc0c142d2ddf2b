"""Jobs on this machine."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from ir_scatter import jobs
from ir_scatter.core.errors import UsageError
from ir_scatter.core.parameters import Parameter, spelled
from ir_scatter.jobs import Executor, Job, NotDone
from ir_scatter.jobs.local import Processes, local
from ir_scatter_cli.spelling import OptionSpelling


def work(word: str) -> str:
    """Do as the word says."""
    if word == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "refuse":
        raise UsageError("no")
    if word == "wait":
        time.sleep(0.2)
    return f"{word} done"


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(jobs.TABLE, "work", work)
    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or ModuleType(__name__))
    monkeypatch.setattr(sys.modules[__name__], "work", work, raising=False)
    monkeypatch.setattr("threading.active_count", lambda: 1)  # a fork has the row of the table, too


def told(executor: Executor, words: list[str]) -> list[str]:
    futures, found = [executor.submit(Job("work", (word,))) for word in words], []
    for future in futures:
        try:
            found.append(future.result())
        except (NotDone, UsageError) as error:
            found.append(str(error))
    return found


@pytest.mark.parametrize("count", [1, 2, 3])
def test_results_come_in_the_order_of_jobs(count: int) -> None:
    words = ["wait", "a", "b", "wait", "refuse", "c"]
    with local(count) as executor:
        assert told(executor, words) == ["no" if word == "refuse" else f"{word} done" for word in words]


@pytest.mark.parametrize("place", range(5))
def test_only_the_job_that_ends_its_process_is_given_up(place: int) -> None:
    words = ["wait", "a", "b", "wait", "c"]
    words[place] = "die"
    gone = "its process ended"
    with local(2) as executor:
        assert told(executor, words) == [gone if word == "die" else f"{word} done" for word in words]
        assert isinstance(executor, Processes)


def test_all_jobs_end_their_processes() -> None:
    with local(3) as executor:
        assert told(executor, ["die"] * 3) == ["its process ended"] * 3


SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.mark.parametrize(
    ("words", "ours"),
    [
        (["validate", str(SAMPLES / "operators"), "-j", "2"], {"ir_scatter.jobs", "ir_scatter.jobs.local"}),
        pytest.param(["devices"], None, marks=pytest.mark.long),
        (["compare", "--each", str(SAMPLES / "nested"), "--on", "numpy"], None),
    ],
    ids=["validate", "devices", "compare"],
)
def test_nothing_of_a_fleet_is_imported_here(words: list[str], ours: set[str] | None) -> None:
    code = (
        "import sys; from ir_scatter_cli.main import main\n"
        "try: main()\nexcept SystemExit as end: print(end.code in {0, 1, 4})\n"
        "print(*(name for name in sys.modules if name.startswith('ir_scatter.jobs')))\n"
        "print({name.partition('.')[0] for name in sys.modules} & {'dask', 'distributed', 'cryptography', 'tornado'})"
    )
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    is_done, jobs, foreign = done.stdout.splitlines()[-3:]
    assert (is_done, foreign) == ("True", "set()"), done.stderr
    assert ours is None or set(jobs.split()) == ours


@pytest.mark.parametrize("threads", [1, 2], ids=["forked", "spawned"])
def test_processes_spell_parameters_as_their_parent_does(
    monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.setattr("threading.active_count", lambda: threads)
    monkeypatch.setitem(jobs.TABLE, "spell", str)
    job = Job("spell", (Parameter("sources", "Scatter", "convert"),))
    with spelled(OptionSpelling("validate").spell), local(2) as executor:
        assert executor.submit(job).result() == "--from Scatter"
    with local(2) as executor:
        assert executor.submit(job).result() == 'sources="Scatter"'
