"""How commands end: by a signal, without an answer, without room."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ir_scatter import runners
from ir_scatter.defects import all_defects
from ir_scatter.doctor import probe_defects
from ir_scatter.formats.base import ONNX_FORMAT
from ir_scatter.runners.base import Availability, Runner, Status, Streamed
from ir_scatter_cli.main import group
from tests.cli.conftest import ROOT
from tests.fuzz.test_campaign import Planted, Right
from tests.processes import running

_BUSY = """
import os
import sys
from ir_scatter.core.process import Child
from ir_scatter import runners
from ir_scatter.runners.base import Availability
from ir_scatter_cli.main import main
from tests.fuzz.test_campaign import Right

class Busy(Right):
    child = Child("tests.core.echo_child")
    def availability(self):
        return Availability(self.name, True)
    def another(self):
        return self
    def stream(self, model, feeds, **_):
        number = self.child.ask("state", limit=100)[0]["id"]
        os.write(1, f"begun {number} {model}\\n".encode())  # one write: print() mixes the parts of two threads
        self.child.ask("sleep", 1000.0, limit=1e6)

runners.find = lambda name, also=(): Busy()
sys.argv = ["ir-scatter", "fuzz", "--on", "planted", "--operator", "ScatterUpdate-3"]
main()
"""
_DEADLINE = 60.0
"""Seconds; what has not ended by then never will."""


def resolve(monkeypatch: pytest.MonkeyPatch, made: Mapping[str, Runner]) -> None:
    """Let names of runners mean these."""
    monkeypatch.setattr(runners, "find", lambda name, also=(): made[name])
    monkeypatch.setattr(runners, "known", lambda: [*made])


def is_running(process_id: int) -> bool:
    try:
        return "(zombie)" not in Path(f"/proc/{process_id}/status").read_text()
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at processes in /proc")
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, 143),
        pytest.param(signal.SIGHUP, -signal.SIGHUP, marks=pytest.mark.long),
        pytest.param(signal.SIGKILL, -signal.SIGKILL, marks=pytest.mark.long),
    ],
)
def test_a_signal_leaves_neither_files_nor_processes(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    with running(
        [sys.executable, "-c", _BUSY],
        cwd=ROOT,
        env=surroundings,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        word, child, model = process.stdout.readline().split()
        assert word == "begun"
        assert Path(model).is_relative_to(tmp_path)
        process.send_signal(number)
        out, err = process.communicate(timeout=_DEADLINE)
    assert process.returncode == code, err
    assert "Traceback" not in err
    if number is not signal.SIGKILL:
        assert "0 findings" in out
    end = time.monotonic() + _DEADLINE
    while (is_running(int(child)) or list(tmp_path.iterdir())) and time.monotonic() < end:
        time.sleep(0.02)
    assert not is_running(int(child))
    assert list(tmp_path.iterdir()) == []


class Mute(Planted):
    """Gives no answer, as its process cannot start."""

    def __init__(self, name: str, message: str = "", status: Status = Status.UNAVAILABLE) -> None:
        self.name, self.message, self.status = name, message, status

    def availability(self) -> Availability:
        return Availability(self.name, True)

    def another(self) -> Any:
        return self

    def stream(self, model_path: Any, feeds: Sequence[Mapping[str, Any]], **_: Any) -> list[Streamed]:
        return [Streamed(self.status, message=self.message) for _ in feeds]


class Good(Right):
    name = "good"

    def availability(self) -> Availability:
        return Availability(self.name, True)


FILES = "the process could not be started: too many open files"


@pytest.mark.parametrize(
    ("runner", "sentence"),
    [
        (Mute("mute", FILES), FILES),
        (Mute("mute", FILES, Status.REFUSED), FILES),
        (
            Mute("mute", "not run, as other inputs crashed the process"),
            "not run, as other inputs crashed the process",
        ),
    ],
)
@pytest.mark.parametrize("names", [["mute"], ["good", "mute"]])
def test_fuzz_says_which_runner_judged_nothing(
    runner: Mute, sentence: str, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve(monkeypatch, {"mute": runner, "good": Good()})
    on = [word for name in names for word in ("--on", name)]
    line = ["fuzz", *on, "--operator", "ScatterUpdate-3", "--cases", "30", "--format", "json"]
    done = CliRunner().invoke(group, line, standalone_mode=False)
    assert done.return_value == 4
    assert done.stderr == f"ir-scatter: no answer of mute could be judged: {sentence}\n"
    answers = json.loads(done.stdout)["answers"]
    assert answers["mute"] == {"judged": 0, "not_run": 30, "why_not": sentence}
    if "good" in names:
        assert answers["good"]["judged"] == 30


def test_fuzz_says_that_a_runner_reads_none_of_the_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = Mute("foreign")
    foreign.formats = (ONNX_FORMAT,)
    resolve(monkeypatch, {"foreign": foreign, "good": Good()})
    line = ["fuzz", "--on", "foreign", "--on", "good", "--operator", "ScatterUpdate-3", "--cases", "30"]
    done = CliRunner().invoke(group, line, standalone_mode=False)
    assert done.return_value == 4
    assert "no answer of foreign could be judged: it reads ONNX only" in done.stderr
    unnamed = CliRunner().invoke(group, ["fuzz", *line[5:]], standalone_mode=False)
    assert unnamed.return_value == 0


def test_a_probe_without_an_answer_has_no_result() -> None:
    defect = next(iter(all_defects()))
    unanswered = dict[str, str]()
    assert probe_defects(Mute("mute", FILES), [defect], unanswered) == {}
    assert set(unanswered.values()) == {FILES}


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of file sizes")
@pytest.mark.parametrize(
    "command", ["fuzz --on CPU --cases 30 --operator ScatterUpdate-3", "doctor --on CPU"]
)
def test_a_temporary_folder_without_room_is_named(command: str, tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    program = (
        "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); "
        f"sys.argv = ['ir-scatter', *{command.split()!r}]; "
        "runpy.run_module('ir_scatter_cli', run_name='__main__')"
    )
    surroundings = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": f"{ROOT}:{ROOT / 'cli'}"}
    done = subprocess.run(
        [sys.executable, "-B", "-c", program],
        cwd=ROOT,
        env=surroundings,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode in {3, 4}, done.stderr
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr
    assert "temporary folder" in done.stderr
    assert list(tmp_path.iterdir()) == []


_TERMINATED_AT_THE_SECOND_MODEL = """
import os, signal, sys
from ir_scatter.compare.run import _Session
from ir_scatter_cli.main import main

run_case, models = _Session.run_case, []

def run_or_end(self, number, feeds):
    models.append(number)
    if len(models) == 2:
        os.kill(os.getpid(), signal.SIGTERM)
    run_case(self, number, feeds)

_Session.run_case = run_or_end
sys.argv = ["ir-scatter", "compare", "--each", sys.argv[1], "--on", "CPU", "--cases", "1", "--format", "json"]
main()
"""


@pytest.mark.long
def test_terminated_compare_reports_the_finished_models(tmp_path: Path) -> None:
    for name in ("a.onnx", "b.onnx", "c.onnx"):
        (tmp_path / name).write_bytes((ROOT / "samples/operators/scatter_9.onnx").read_bytes())
    done = subprocess.run(
        [sys.executable, "-c", _TERMINATED_AT_THE_SECOND_MODEL, str(tmp_path)], cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=_DEADLINE,
    )  # fmt: skip
    assert done.returncode == 143, done.stderr
    assert "a.onnx" in done.stdout
    assert "2 of 3 models were not finished" in done.stdout
    assert "Traceback" not in done.stderr
