"""Runners by name."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ir_scatter import runners
from ir_scatter.core.errors import BadFeed, UsageError
from ir_scatter.formats.base import IR, ONNX_FORMAT
from ir_scatter.runners.base import Status
from ir_scatter.runners.onnx.runner import OnnxRuntimeRunner
from ir_scatter.runners.openvino.runner import OpenVinoRunner


@pytest.mark.parametrize(
    ("written", "long"),
    [
        ("CPU", "openvino:CPU"), ("openvino:CPU", "openvino:CPU"), (" cpu ", "openvino:CPU"),
        ("GPU", "openvino:GPU"), ("gpu.1", "openvino:GPU.1"), ("NPU", "openvino:NPU"),
        ("AUTO", "openvino:AUTO"), ("AUTO:GPU,CPU", "openvino:AUTO:GPU,CPU"),
        ("auto:-gpu,cpu", "openvino:AUTO:-GPU,CPU"), ("HETERO:GPU.1,CPU", "openvino:HETERO:GPU.1,CPU"),
        ("openvino:MULTI:GPU(4),CPU(2)", "openvino:MULTI:GPU(4),CPU(2)"),
        ("BATCH:CPU(16)", "openvino:BATCH:CPU(16)"), ("fold", "openvino:fold"),
        ("openvino:FOLD", "openvino:fold"), ("onnxruntime", "onnxruntime"),
        ("ONNX-Reference", "onnx-reference"),
    ],
)  # fmt: skip
def test_a_runner_is_found_by_each_of_its_names(written: str, long: str) -> None:
    found = runners.find(written)
    assert found.name == long
    assert runners.find(long) is found


@pytest.mark.parametrize(
    "written",
    ["", "CPUU", "openvino:", "AUTO:", "AUTO:CPU,", "CPU,GPU", "HETERO:GPU;CPU", "onnx", "CPU GPU", "XPU.0"],
)
def test_another_name_is_refused_with_those_that_there_are(written: str) -> None:
    with pytest.raises(UsageError) as caught:
        runners.find(written, also=("numpy",))
    message = str(caught.value)
    assert message.startswith(f"there is no runner {written!r}")
    for name in ("numpy", "openvino:CPU", "openvino:GPU", "openvino:fold", "onnxruntime", "onnx-reference"):
        assert name in message


@pytest.mark.parametrize(
    ("written", "meant"),
    [("CPUU", "CPU"), ("openvino:GUP", "openvino:GPU"), ("onnxruntme", "onnxruntime"), ("nunpy", "numpy")],
)
def test_a_misspelt_name_is_guessed(written: str, meant: str) -> None:
    with pytest.raises(UsageError, match=rf"did you mean {meant}\?"):
        runners.find(written, also=("numpy",))


def test_known_runners_are_found_by_their_names() -> None:
    names = runners.known()
    assert len(names) == len(set(names))
    assert [runners.find(name).name for name in names] == names
    assert names.index("openvino:CPU") < names.index("openvino:fold") < names.index("onnxruntime")


def test_finding_runners_imports_no_runtime() -> None:
    code = (
        "import sys; from ir_scatter import runners; runners.find('CPU').versions; runners.known(); "
        "print(*{'openvino', 'onnxruntime', 'onnx'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


class _Missing(OpenVinoRunner):
    packages = ("openvino", "no-such-package")
    install = "pip install no-such-package"


def test_a_runner_whose_package_is_missing_says_what_to_install(tmp_path: Path) -> None:
    runner = _Missing("CPU")
    assert runner.versions == {}
    found = runner.availability()
    assert not found.is_available
    assert found.reason == "no-such-package is not installed"
    assert found.remedy == "pip install no-such-package"
    outcome = runner.run(tmp_path / "any.xml", {})
    assert (outcome.status, outcome.message) == (Status.UNAVAILABLE, found.reason)
    assert runner.child.starts == 0


class _OfOtherSurroundings(OnnxRuntimeRunner):
    name = "other"
    module = "tests.core.echo_child"

    def environment(self) -> dict[str, str]:
        return {"IR_SCATTER_TEST": "other"}


def test_a_subclass_brings_its_own_process_and_environment() -> None:
    runner = _OfOtherSurroundings()
    state, _ = runner.child.ask("state", limit=60)
    assert state["variable"] == "other"
    runner.close()
    assert runner.child.process_id is None


def test_what_no_runner_takes_is_refused_before_it_is_asked() -> None:
    with pytest.raises(UsageError, match="precision is 'fp32', expected f32, f16, bf16, default"):
        runners.find("CPU").run("any.onnx", {}, precision="fp32")
    with pytest.raises(BadFeed, match="when is datetime64"):
        runners.find("CPU").run("any.onnx", {"when": np.zeros(1, "datetime64[s]")})


def test_without_names_the_runners_are_those_that_users_deploy_on() -> None:
    """Emulations, OpenVINO's constant folding and onnx's reference evaluator must be named."""
    devices = ["openvino:CPU", "openvino:GPU", "openvino:NPU"]
    assert runners.default_runners() == [*devices, "onnxruntime"]
    assert runners.default_runners(ONNX_FORMAT) == [*devices, "onnxruntime"]
    assert runners.default_runners(IR) == devices
