"""`doctor`: releases are installed after a question, and nothing else installs them."""

import json
import os
import pty
import re
import selectors
import signal
import subprocess
from math import inf
from pathlib import Path
from typing import Any, Self

import pytest

from ir_scatter import UsageError
from ir_scatter.defects import all_defects
from ir_scatter.doctor import names_of_releases
from ir_scatter.runners.base import Availability, Streamed
from tests.cli.conftest import COMMAND, Cli
from tests.cli.test_ends import resolve
from tests.fuzz.test_campaign import Right
from tests.runners.test_releases import cache, index, make_wheels  # noqa: F401
from tests.scale import thinned


@pytest.mark.usefixtures("cache")
def test_nobody_can_be_asked(cli: Cli) -> None:
    done = cli("doctor", "--on", "CPU", "--release", "2025.4")
    assert done.code == 4
    assert done.err == (
        "ir-scatter: openvino@2025.4 is not installed: ir-scatter devices --install openvino@2025.4\n"
    )
    assert cli("doctor", "--on", "CPU", "--release", "2025.4", "--record").code == 4


def answered(words: str, *arguments: str) -> tuple[int, str]:
    """Return the exit code of a command on a terminal, and what was seen there; no words are an interrupt."""
    near, far = pty.openpty()
    process = subprocess.Popen([COMMAND, *arguments], stdin=far, stdout=far, stderr=far)
    os.close(far)
    seen, is_answered = b"", False
    while True:
        is_asked = b"[Y/n]" in seen
        if is_asked and words and not is_answered:
            os.write(near, words.encode())
            is_answered = True
        if (
            is_asked and not words
        ):  # again and again: one that comes just before the read begins is not seen by it
            process.send_signal(signal.SIGINT)
        with selectors.DefaultSelector() as selector:  # select() takes no descriptor above 1023
            selector.register(near, selectors.EVENT_READ)
            if not selector.select(1):
                continue
        try:
            part = os.read(near, 1024)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(near)
    return process.wait(), seen.decode()


def test_no_is_taken_as_such(cache: Path, index: Path) -> None:  # noqa: F811
    code, seen = answered("n\n", "doctor", "--on", "CPU", "--release", "2099.6")
    assert code == 4
    assert "openvino@2099.6 is not installed. Install it separately with pip" in seen
    assert "ir-scatter devices --install openvino@2099.6" in seen
    assert not list(cache.glob("*/*"))


def test_an_interrupt_at_the_question(cache: Path, index: Path) -> None:  # noqa: F811
    code, seen = answered("", "doctor", "--on", "CPU", "--release", "2099.6")
    assert (code, "Install it separately with pip" in seen) == (130, True)
    assert not list(cache.glob("*/*"))


@pytest.mark.parametrize("how", thinned(["yes", "--yes"], 2))
def test_yes_installs(how: str, cache: Path, index: Path) -> None:  # noqa: F811
    make_wheels(index, "2099.6.0")
    arguments = ("doctor", "--on", "CPU", "--release", "2099.6")
    if how == "yes":
        answered("y\n", *arguments)
    else:
        subprocess.run([COMMAND, *arguments, "--yes"], stdin=subprocess.DEVNULL, capture_output=True)
    assert [path.name for path in cache.glob("*/*")] == ["openvino@2099.6.0"]


def test_what_pip_cannot_do_is_told(cache: Path, index: Path) -> None:  # noqa: F811
    done = subprocess.run(
        [COMMAND, "doctor", "--on", "CPU", "--release", "2099.7", "--yes"], capture_output=True, text=True
    )
    assert done.returncode == 4
    assert "openvino@2099.7 cannot be installed by pip" in done.stderr


@pytest.mark.usefixtures("cache")
def test_a_release_is_one_of_its_runtime() -> None:
    assert "openvino@2025.4:CPU" in (names := names_of_releases((), ["2025.4"]))
    assert not [name for name in names if name.startswith("onnx")]
    assert names_of_releases((), ["1.17"]) == ["onnxruntime@1.17"]
    assert names_of_releases(["onnxruntime", "CPU"], []) == ["onnxruntime", "CPU"]


@pytest.mark.parametrize(
    ("names", "release", "message"),
    [
        (["CPU@2025.4"], "2024.6", "'CPU@2025.4' names a release, expected none beside "),
        (["GPU@cpu"], "2025.4", "names no device"),
        ([], "x", "'openvino@x' is not a release"),
        (["AUTO"], "2025.4", "distributes work to other devices"),
    ],
)
def test_releases_of_nothing_are_wrong_usage(names: list[str], release: str, message: str, cli: Cli) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        names_of_releases(names, [release])
    words = [word for name in names for word in ("--on", name)]
    done = cli("doctor", *words, "--release", release)
    assert done.code == 2
    assert message in done.err


class Interrupted(Right):
    """Computes as NumPy; the user presses Ctrl-C when it has run some models."""

    def __init__(self, name: str, models: float) -> None:
        self.name, self.left = name, models

    def availability(self) -> Availability:
        return Availability(self.name, True)

    def another(self) -> Self:
        return self

    def stream(self, *arguments: Any, **named: Any) -> list[Streamed]:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().stream(*arguments, **named)


@pytest.mark.usefixtures("cache")
def test_an_interrupt_reports_devices_and_how_far_it_came(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("openvino:CPU", "openvino:NPU")
    resolve(monkeypatch, {names[0]: Interrupted(names[0], inf), names[1]: Interrupted(names[1], 9)})
    of_numbers = [defect for defect in all_defects() if defect.symptom.is_of_numbers][:4]
    monkeypatch.setattr("ir_scatter.doctor.all_defects", lambda: of_numbers)
    monkeypatch.setattr("ir_scatter.doctor.concerns", lambda target, defect: True)
    done = cli("doctor", "--on", names[0], "--on", names[1], "--format", "json")
    assert done.code == 130
    assert [device["runner"] for device in json.loads(done.out)["devices"]] == [names[0]]
    assert re.fullmatch(
        r"ir-scatter: interrupted at openvino:NPU: \d of 4 known defects; 1 device tested before\n", done.err
    )
