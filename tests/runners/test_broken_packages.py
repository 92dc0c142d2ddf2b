"""Runtimes that are installed but do not import: an outcome with their words, wherever they are asked."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter.runners.base import Status
from ir_scatter.runners.openvino.runner import OpenVinoRunner
from tests.cli.conftest import COMMAND, SAMPLES
from tests.compare.models import floats, write_node

BROKEN = {
    "raises ImportError": "raise ImportError('libbroken.so.1: cannot open shared object file')",
    "raises OSError": "raise OSError('libbroken.so.1: cannot open shared object file')",
    "raises anything": "raise RuntimeError('libbroken.so.1 is of another machine')",
    "is no Python": "libbroken.so.1 (",
    "lacks everything": "version = 'libbroken.so.1'",
    "leaves": "import sys; sys.exit('libbroken.so.1')",
    "leaves in silence": "import os; os._exit(3)",
    "dies": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "talks": "print('libbroken.so.1'); raise ImportError('libbroken.so.1')",
}
WORDS = {
    "is no Python": "SyntaxError",
    "lacks everything": "has no attribute",
    "leaves in silence": "the process ended with 3",
    "dies": "the process crashed (SIGKILL)",
}


def ir_scatter(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command with the packages of a folder in front of all others."""
    return subprocess.run(
        [COMMAND, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "broken")},
    )


def break_package(folder: Path, name: str, how: str) -> str:
    """Put a broken package in front of a real one and return what is to be said of it."""
    package = folder / "broken" / name
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(BROKEN[how] + "\n")
    return WORDS.get(how, "libbroken.so.1")


def onnx_model() -> str:
    found = sorted((SAMPLES / "operators").glob("scatter_elements*.onnx"))
    return str(found[0])


@pytest.fixture
def model(tmp_path: Path) -> str:
    inputs = [floats(3, 4), np.array([2, 0]), -floats(2, 4), np.array(0)]
    return str(write_node(tmp_path, "ScatterUpdate", "opset3", inputs)[0])


@pytest.mark.parametrize("how", BROKEN)
def test_an_outcome_with_its_words(
    how: str, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = break_package(tmp_path, "openvino", how)
    monkeypatch.syspath_prepend(tmp_path / "broken")
    runner = OpenVinoRunner("CPU")
    for outcome in (runner.run(model, {}), runner.run(model, {})):
        assert outcome.status in {Status.UNAVAILABLE, Status.CRASHED}
        assert words in outcome.message
    runner.close()


@pytest.mark.parametrize(("name", "how"), [("openvino", "raises OSError"), ("onnxruntime", "dies")])
def test_the_others_are_compared(name: str, how: str, model: str, tmp_path: Path) -> None:
    if name == "onnxruntime":
        pytest.importorskip("onnxruntime")
        model = onnx_model()
    words = break_package(tmp_path, name, how)
    runner = "openvino:CPU" if name == "openvino" else name
    other = "onnx-reference" if name == "onnxruntime" else "numpy"
    names = ("--on", "numpy", "--on", runner, "--on", other)
    done = ir_scatter(tmp_path, "compare", model, *names, "--format", "json")
    assert (done.returncode, done.stderr) == (4, "")
    outcomes: dict[str, Any] = {one["runner"]: one for one in json.loads(done.stdout)["outcomes"]}
    assert outcomes[runner]["status"] in {"unavailable", "crashed"}
    assert words in outcomes[runner]["message"]
    assert outcomes[other]["status"] == outcomes["numpy"]["status"] == "ok"


@pytest.mark.parametrize(
    ("package", "how", "names"),
    [
        ("openvino", "lacks everything", ("openvino:CPU", "openvino:fold")),
        ("openvino", "dies", ("openvino:CPU", "openvino:fold")),
        ("onnx", "raises OSError", ("onnxruntime", "onnx-reference")),
    ],
)
def test_devices_lists_it(package: str, how: str, names: tuple[str, ...], tmp_path: Path) -> None:
    words = break_package(tmp_path, package, how)
    done = ir_scatter(tmp_path, "devices", "--format", "json")
    assert done.returncode == 0, done.stderr
    found: Any = json.loads(done.stdout)
    told = {one["runner"]: one for one in found["runners"]}
    for runner in names:
        assert not told[runner]["available"]
        assert words in told[runner]["reason"]
    assert told["numpy"]["available"]


@pytest.mark.parametrize("how", ["lacks everything", "dies"])
def test_whoever_else_asks_openvino_hears_it(how: str, model: str, tmp_path: Path) -> None:
    words = break_package(tmp_path, "openvino", how)
    source = SAMPLES / "operators" / "scatter_elements_update_12_sum.xml"
    convert = ("convert", str(source), "--to", "ScatterNDUpdate", "-o", "out.xml")
    done = ir_scatter(tmp_path, *convert, "--verify-on", "CPU")
    assert done.returncode == 4, done.stderr
    assert words in done.stdout + done.stderr
    done = ir_scatter(tmp_path, "validate", model, "--input-shape", "data=3,4")
    assert done.returncode in {0, 1}, done.stderr
    assert words in done.stdout + done.stderr
    done = ir_scatter(tmp_path, "convert", onnx_model(), "-o", "out_of_onnx.xml")
    assert done.returncode == 3, done.stderr
    assert words in done.stdout + done.stderr


@pytest.mark.parametrize("how", ["raises OSError", "lacks everything", "is no Python"])
def test_an_ir_needs_no_onnx(how: str, model: str, tmp_path: Path) -> None:
    words = break_package(tmp_path, "onnx", how)
    assert ir_scatter(tmp_path, "validate", model).returncode == 0
    names = ("--on", "numpy", "--on", "CPU")
    assert ir_scatter(tmp_path, "compare", model, *names).returncode == 0
    done = ir_scatter(tmp_path, "validate", onnx_model())
    assert done.returncode == 3
    assert words in " ".join(done.stdout.split()) or how == "lacks everything"
    assert "the package onnx cannot be imported" in done.stdout


def test_nothing_of_the_folder_it_is_called_in_is_imported(model: str, tmp_path: Path) -> None:
    for name in ("json", "openvino", "numpy", "runpy"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('of this folder')\n")
    done = ir_scatter(tmp_path, "compare", model, "--on", "numpy", "--on", "CPU")
    assert (done.returncode, done.stderr) == (0, "")
    done = ir_scatter(tmp_path, "validate", model, "--input-shape", "data=3,4")
    assert (done.returncode, done.stderr) == (0, "")
