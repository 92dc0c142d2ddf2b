"""Whoever waits for a comparison sees what is being done, and may stop it and keep what is finished."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter import runners
from ir_scatter.convert import fixes
from ir_scatter.runners.base import Outcome
from ir_scatter_cli.output import Clock, spinner
from tests.cli.conftest import COMMAND, Cli, copy_sample
from tests.compare.models import floats, write_node
from tests.compare.planted import FakeRunner, wrong_at


class Screen(io.StringIO):
    encoding = "utf-8"
    is_terminal = True

    def isatty(self) -> bool:
        return self.is_terminal


def watched(monkeypatch: pytest.MonkeyPatch, **environment: str) -> Screen:
    """Return a terminal that is now standard error."""
    for name, value in (
        {"TERM": "xterm", "CI": "", "COLUMNS": "30", "IR_SCATTER_NO_PROGRESS": ""} | environment
    ).items():
        monkeypatch.setenv(name, value)
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    return screen


class Ticks(Clock):
    """A clock whose first waits are over at once; then it waits for the end of the work."""

    def __init__(self, waits: int) -> None:
        self.left, self.seconds, self.is_over = waits, 0.0, threading.Event()

    def now(self) -> float:
        return self.seconds

    def wait(self, ended: threading.Event, seconds: float) -> bool:
        if not self.left:
            self.is_over.set()
            return ended.wait()
        self.left, self.seconds = self.left - 1, self.seconds + seconds
        return False


def written(screen: Screen, waits: int, *phases: object, **options: Any) -> str:
    """Return what a spinner writes within some waits, with phases that change without the clock."""
    clock = Ticks(waits)
    with spinner(phases[0], clock=clock, **options) as update:
        for phase in phases[1:]:
            update(phase)
        assert options.get("quiet") or clock.is_over.wait(60)
    return screen.getvalue()


def test_a_terminal_shows_the_phase_and_is_clean_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = written(watched(monkeypatch), 3, "openvino:CPU with taps, case 3 of 7 \x1b[31m")
    assert "\r⠋ " in shown
    assert "⠙ " in shown
    lines = [line for line in shown.split("\r") if line.strip("\x1b[K")]
    assert all(len(line.removesuffix("\x1b[K")) < 30 for line in lines)
    assert lines[0].startswith("⠋ openvino:")
    assert shown.count("\x1b") == shown.count("\x1b[K")
    assert shown.endswith("\r\x1b[K")


def test_lines_below_the_first_are_drawn_in_place_and_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    phase = "3 of 9 jobs\n  ##... a 2\n  #.... b 1 which is a long line"
    shown = written(watched(monkeypatch), 3, phase)
    assert "⠋ 3 of 9 jobs, 0 s\x1b[K\n  ##... a 2\x1b[K\n  #.... b" in shown
    assert shown.count("\n") == 2 * shown.count("\x1b[2A")
    assert shown.endswith("\x1b[2A\r\x1b[J")


class Cases:
    """A campaign of the fuzzer: it says how far it is whenever it is asked."""

    number = 0

    def __str__(self) -> str:
        self.number += 1
        return f"{self.number} cases"


def test_what_moves_on_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = written(watched(monkeypatch), 2, Cases())
    assert "⠋ 1 cases, 0 s" in shown
    assert "⠙ 2 cases, " in shown


def test_what_is_done_at_once_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert written(watched(monkeypatch), 0, "reading", "running") == ""


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"CI": "true"}, None], ids=str)
def test_without_a_terminal_a_line_is_written_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str] | None
) -> None:
    screen = watched(monkeypatch, **(environment or {}))
    screen.is_terminal = environment is not None
    lines = written(screen, 2, Cases()).splitlines()
    assert lines == ["ir-scatter: 1 cases, 10 s", "ir-scatter: 2 cases, 20 s"]


def test_a_line_has_the_first_line_of_a_phase_and_no_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = watched(monkeypatch, CI="1")
    shown = written(screen, 1, "3 of 9 jobs \x1b[31m\n  ##... a 2")
    assert shown == "ir-scatter: 3 of 9 jobs \\x1b[31m, 10 s\n"


@pytest.mark.parametrize("environment", [{}, {"CI": "1"}], ids=["terminal", "file"])
def test_quiet_commands_show_no_progress(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    assert written(watched(monkeypatch, **environment), 5, "reading", quiet=True) == ""


def test_a_process_that_forks_has_no_other_thread_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool is forked before the first file is finished."""
    screen, clock, before = watched(monkeypatch, CI="1"), Ticks(1), threading.active_count()
    with spinner(may_fork=True, clock=clock) as update:
        assert threading.active_count() == before
        update("1 of 2 files")
        assert clock.is_over.wait(60)
    assert screen.getvalue() == "ir-scatter: 1 of 2 files, 10 s\n"


class Stopped(FakeRunner):
    """The user presses Ctrl-C while it runs for the last time; before that it is right."""

    def __init__(self, name: str, runs: int) -> None:
        super().__init__(name)
        self.left = runs

    def run(self, *arguments: Any, **named: Any) -> Outcome:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().run(*arguments, **named)


Stop = Callable[..., None]


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch) -> Stop:
    def known(*made: FakeRunner) -> None:
        names = {one.name: one for one in made}
        monkeypatch.setattr(runners, "find", lambda name, also=(): names[name])

    return known


@pytest.fixture
def model(elsewhere: Path) -> str:
    inputs = [floats(3, 4), np.array([2, 0]), -floats(2, 4), np.array(0)]
    return write_node(elsewhere, "ScatterUpdate", "opset3", inputs)[0].name


def test_finished_cases_and_runners_are_told_and_what_is_missing(cli: Cli, model: str, stop: Stop) -> None:
    a, b = FakeRunner("a", wrong_at(3)), Stopped("b", 3)  # each case is run without taps and with them
    stop(a, b)
    done = cli("compare", model, "--on", "a", "--on", "b", "--cases", "4")
    assert done.code == 130
    first = done.out.splitlines()[0]
    assert first.startswith("a is wrong at node: ")
    assert first.endswith("; interrupted: b did not finish case 2 of 4, 2 cases did not begin")
    assert a.closed
    assert b.closed
    b.left = 3
    found = json.loads(
        cli("compare", model, "--on", "a", "--on", "b", "--cases", "4", "--format", "json").out
    )
    assert found["interrupted"] == "interrupted: b did not finish case 2 of 4, 2 cases did not begin"
    assert (found["state"], found["cases"]) == ("differs", 2)
    nodes = [(one["subject"], one["case"]) for one in found["comparisons"] if one["level"] == "node"]
    assert nodes == [("a", 0), ("b", 0), ("a", 1)]
    assert [one["case"] for one in found["comparisons"] if one["level"] == "model"] == [0, 0]


def test_an_interrupt_after_all_cases_loses_none(
    cli: Cli, model: str, stop: Stop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_fixes(done: object) -> object:
        raise KeyboardInterrupt

    stop(FakeRunner("a", wrong_at(3)))
    monkeypatch.setattr(fixes, "with_fixes", with_fixes)
    done = cli("compare", model, "--on", "a")
    assert done.code == 130
    assert done.out.splitlines()[0].startswith("a is wrong at node: ")
    assert done.err.endswith("while looking for a way around defects; the comparison is complete\n")


def test_finished_cases_of_two_models(cli: Cli, model: str, stop: Stop) -> None:
    stop(Stopped("b", 3))  # two runs for each case
    found = json.loads(cli("compare", model, model, "--on", "b", "--cases", "3", "--format", "json").out)
    missing = "interrupted: b did not finish case 2 of 3, 1 case did not begin"
    assert (found["state"], found["interrupted"]) == ("interrupted", missing)
    assert {one["case"] for one in found["comparisons"]} == {0}
    assert found["headline"].endswith(missing)


def test_agreement_of_a_part_is_no_agreement(cli: Cli, model: str, stop: Stop) -> None:
    stop(Stopped("b", 2))
    found = json.loads(cli("compare", model, "--on", "b", "--cases", "2", "--format", "json").out)
    assert found["state"] == "interrupted"
    assert found["headline"] == (
        "numpy and b agree on 1 node, 2 cases; interrupted: b did not finish case 2 of 2"
    )


def test_nothing_is_told_or_written_if_nothing_was_finished(cli: Cli, model: str, stop: Stop) -> None:
    stop(Stopped("b", 1))
    done = cli("compare", model, "--on", "b", "--save", "saved")
    assert (done.code, done.out) == (130, "")
    assert done.err == "ir-scatter: interrupted before anything was compared\n"
    assert not Path("saved").exists()


def test_models_that_were_finished(cli: Cli, model: str, stop: Stop) -> None:
    stop(Stopped("b", 3))
    for name in ("b.xml", "c.xml"):
        Path(name).write_bytes(Path(model).read_bytes())
        Path(name).with_suffix(".bin").write_bytes(Path(model).with_suffix(".bin").read_bytes())
    done = cli("compare", "--each", ".", "--on", "b")
    assert done.code == 130
    first = "no difference in 1 model; interrupted: 2 of 3 models were not finished"
    assert done.out.splitlines()[0] == first
    stop(Stopped("b", 3))
    found = json.loads(cli("compare", "--each", ".", "--on", "b", "--format", "json").out)
    assert (found["headline"], found["state"], len(found["reports"])) == (first, "interrupted", 1)


def test_a_folder_is_for_each(cli: Cli, elsewhere: Path) -> None:
    done = cli("compare", ".", "--on", "numpy")
    assert done.code == 2
    assert ". is a folder; with --each every model in it is compared separately" in done.err


@pytest.mark.long
@pytest.mark.openvino
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
def test_ctrl_c_on_a_terminal(elsewhere: Path) -> None:
    """The phase is shown, the cases that were finished are told, and no process is left."""
    copy_sample("plugins/large_numbers.xml", elsewhere)
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "CI": "", "IR_SCATTER_NO_PROGRESS": ""}
    command = [str(COMMAND), "compare", "large_numbers.xml", "--on", "CPU", "--cases", "500"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        while not re.search(rb"openvino:CPU( with taps)?, case (?![12] )", shown):  # some are finished
            shown += os.read(ours, 65536)
        children = [
            int(path.name)
            for path in Path("/proc").glob("[0-9]*")
            if f"\nPPid:\t{process.pid}\n" in (path / "status").read_text(errors="replace")
        ]
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        out = process.stdout.read().decode()
        assert process.wait(60) == 130
    os.close(ours)
    assert "of 500" in shown.decode()
    assert out.startswith("numpy and openvino:CPU agree on 1 node, ")
    assert "; interrupted: " in out.splitlines()[0]
    assert " of 500" in out.splitlines()[0]
    assert children
    assert not any(Path(f"/proc/{child}").exists() for child in children)
