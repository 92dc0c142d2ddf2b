"""OpenVINO's GPU plugin on the CPU OpenCL runtime: how it is made to run, and that it does."""

import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter import UsageError, evaluate_model, runners
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import Layout, OpSpec, Reduction
from ir_scatter.runners.base import Outcome, Runner, Status, Tap
from ir_scatter.runners.gpu_on_cpu.layer import build_layer
from ir_scatter.runners.gpu_on_cpu.runner import FIDELITY, NAME, GpuOnCpuRunner
from tests.compare.models import write_node
from tests.models.cases import random_case
from tests.models.ir_text import IrText
from tests.models.nested_ir import floats

REASON = GpuOnCpuRunner().problem

runs_here = pytest.mark.skipif(bool(REASON), reason=REASON)
compiles_here = pytest.mark.skipif("C compiler" in REASON, reason=REASON)

REDUCTIONS = (Reduction.NONE, Reduction.SUM, Reduction.PROD, Reduction.MIN, Reduction.MAX)


@pytest.fixture
def gpu() -> Iterator[Runner]:
    found = runners.find("gpu@CPU")
    yield found
    found.close()


def run(gpu: Runner, folder: Path, type: str, opset: str, *inputs: Any, **attributes: Any) -> tuple[Any, Any]:
    """Return what the plugin gives for one operator, or its words, and what the document says."""
    path, feeds = write_node(folder, type, opset, inputs, **attributes)
    outcome = gpu.run(path, feeds)
    if outcome.status is not Status.OK:
        return outcome.message, None
    ((name, expected),) = evaluate_model(path, feeds).items()
    return outcome.outputs[name], expected


def draw(spec: OpSpec) -> Iterator[Any]:
    """Draw cases that the plugin is known to compute as the document says."""
    random = np.random.default_rng(7)
    is_tuples, count = spec.layout is Layout.TUPLES, 0
    while count < (len(REDUCTIONS) if len(spec.reductions) > 1 and not is_tuples else 2):
        reduction = REDUCTIONS[count % len(REDUCTIONS)] if len(spec.reductions) > 1 else None
        reduction = Reduction.NONE if is_tuples else reduction
        data_type, index_type = (("f32", "i64"), ("i32", "i32"))[count % 2]
        case = random_case(spec, random, reduction=reduction, element_type=data_type, index_type=index_type)
        assert case.indices is not None
        if not case.updates.size or (case.indices < 0).any() or (case.axis or 0) < 0:
            continue
        if is_tuples and case.indices.ndim < 2:
            continue
        count += 1
        yield case


OPSETS = {
    "ScatterUpdate-3": "opset3",
    "ScatterElementsUpdate-3": "opset3",
    "ScatterElementsUpdate-12": "opset12",
    "ScatterNDUpdate-3": "opset4",
    "ScatterNDUpdate-15": "opset15",
}


def test_all_operators_are_run() -> None:
    assert OPSETS.keys() == {str(key) for key in SPECS if key.domain == "openvino"}


@runs_here
@pytest.mark.parametrize("operator", OPSETS)
def test_legal_cases_are_computed_as_documented(operator: str, gpu: Runner, tmp_path: Path) -> None:
    spec = next(spec for spec in SPECS.values() if str(spec.key) == operator)
    for case in draw(spec):
        axis = () if case.axis is None else (np.array(case.axis),)
        inputs = (case.data, case.indices, case.updates, *axis)
        attributes = {name: str(value) for name, value in case.attributes.items()}
        found, expected = run(gpu, tmp_path, spec.key.type, OPSETS[operator], *inputs, **attributes)
        assert expected is not None, found
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=str(case))
        if attributes.get("reduction", "none") == "none":
            assert found.tobytes() == expected.tobytes()


DATA = np.arange(15, dtype=np.float32).reshape(3, 5)


@runs_here
def test_defects_of_the_plugin_are_seen(gpu: Runner, tmp_path: Path) -> None:
    """What the plugin of openvino 2026.4 computes otherwise than documented, without a write outside."""
    negative_axis = (DATA, np.array([1, 3]), -np.ones((3, 2), np.float32), np.array(-1))
    found, expected = run(gpu, tmp_path, "ScatterUpdate", "opset3", *negative_axis)
    assert found.shape == expected.shape
    assert not np.array_equal(found, expected)
    from_the_end = (DATA, np.array([[2, -4]]), -np.ones(1, np.float32))
    found, expected = run(gpu, tmp_path, "ScatterNDUpdate", "opset15", *from_the_end)
    assert found.shape == expected.shape
    assert not np.array_equal(found, expected)
    small = (DATA.astype(np.uint8), np.array([[1]]), np.ones((1, 1), np.uint8), np.array(0))
    refused, _ = run(gpu, tmp_path, "ScatterElementsUpdate", "opset12", *small)
    assert "u8" in refused


def run_layer(
    runner: Runner, folder: Path, type: str, feeds: Mapping[str, Any], shape: Any, **attributes: str
) -> Outcome:
    ir = IrText()
    element = "i32" if type == "NonZero" else "f32"
    inputs = [ir.parameter(name, element, array.shape) for name, array in feeds.items()]
    opset, made = ("opset3", "i32") if type == "NonZero" else ("opset1", "f32")
    found = ir.add("found", type, opset, inputs, [(made, shape)], attributes)
    ir.add("result", "Result", "opset1", [found], [])
    return runner.run(ir.write(folder), feeds)


@runs_here
def test_what_is_around_scatter_is_computed_too(gpu: Runner, tmp_path: Path) -> None:
    """With its kernels for subgroups, the plugin computes mostly zeros on this runtime."""
    random = np.random.default_rng(0)
    left, right = random.random((64, 64), np.float32), random.random((64, 64), np.float32)
    outcome = run_layer(gpu, tmp_path, "MatMul", {"left": left, "right": right}, (64, 64))
    np.testing.assert_allclose(outcome.outputs["found"], left @ right, rtol=1e-5)
    image, weights = random.random((1, 16, 8, 8), np.float32), random.random((16, 16, 3, 3), np.float32)
    sizes = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    feeds = {"image": image, "weights": weights}
    outcome = run_layer(gpu, tmp_path, "Convolution", feeds, (1, 16, 6, 6), **sizes)
    windows = np.lib.stride_tricks.sliding_window_view(image[0], (3, 3), axis=(1, 2))
    expected = np.einsum("cyxij,ocij->oyx", windows, weights)[None]
    np.testing.assert_allclose(outcome.outputs["found"], expected, rtol=1e-5)


@runs_here
def test_a_model_that_needs_subgroups_is_refused(gpu: Runner, tmp_path: Path) -> None:
    feeds = {"data": np.array([0, 3, 0, 5, 7, 0], np.int32)}
    refused = run_layer(gpu, tmp_path, "NonZero", feeds, (1, "?"), output_type="i32")
    assert "suitable kernel" in refused.message


@runs_here
def test_it_says_what_it_is(gpu: Runner, tmp_path: Path) -> None:
    inputs = [floats(4, 5), np.array([3, 1]), -floats(2, 5), np.array(0)]
    path, feeds = write_node(tmp_path, "ScatterUpdate", "opset3", inputs)
    assert gpu is runners.find("openvino:GPU@cpu") is not runners.find("GPU")
    outcome = gpu.run(path, feeds, taps=[Tap("node")])
    assert (outcome.status, outcome.message, outcome.runner) == (Status.OK, "", "openvino:GPU@cpu")
    ((name, expected),) = evaluate_model(path, feeds).items()
    assert np.array_equal(outcome.outputs[name], expected)
    assert np.array_equal(outcome.tapped[0].executions[0].output, expected)
    found = gpu.availability()
    assert re.fullmatch(r"plugin 20\S+, OpenCL driver 20\S+", found.driver)
    assert found.is_available
    assert found.full_name.startswith(f"{NAME} (")
    assert "iGPU" not in found.full_name
    assert found.remarks == FIDELITY
    assert set(found.versions) > {"openvino"}


def build_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return build_layer()


@compiles_here
def test_the_layer_is_built_once_for_each_compiler_and_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = build_in(tmp_path, monkeypatch)
    assert layer.is_relative_to(tmp_path / "ir-scatter")
    before = layer.stat()
    assert build_layer() == layer
    assert layer.stat() == before
    assert [path.name for path in layer.parent.iterdir()] == [layer.name]
    monkeypatch.setenv("CC", "cc -O0")
    assert build_layer() != layer
    assert build_layer().parent == layer.parent


@compiles_here
def test_processes_that_build_at_once_share_the_layer(tmp_path: Path) -> None:
    code = "from ir_scatter.runners.gpu_on_cpu.layer import build_layer; print(build_layer())"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", code]
    children = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    said = {child.communicate(timeout=60)[0].strip() for child in children}
    assert [child.returncode for child in children] == [0] * 4
    (layer,) = map(Path, said)
    assert [path.name for path in layer.parent.iterdir()] == [layer.name]
    assert layer.read_bytes().startswith(b"\x7fELF")


@compiles_here
def test_a_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file where folders are wanted: no user can make one there")
    layer = build_in(tmp_path / "cache", monkeypatch)
    assert layer.is_file()
    assert not layer.is_relative_to(tmp_path)
    assert stat.S_IMODE(layer.parent.stat().st_mode) == 0o700
    assert build_layer() == layer


@compiles_here
@pytest.mark.parametrize("told", ["", "relative/folder", "with:colon"])
def test_a_folder_that_is_no_good_is_not_used(
    told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The specification wants whole paths; the loader splits lists of layers at colons."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / told) if ":" in told else told)
    layer = build_layer()
    assert layer.is_file()
    assert layer.is_relative_to(tmp_path / "home" / ".cache") == (":" not in told)
    assert ":" not in str(layer)


@compiles_here
def test_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ir_scatter.runners.gpu_on_cpu.layer._compile_to", refuse)
    with pytest.raises(UsageError, match=r"^neither .* can be written \(No space left on device\), expected"):
        build_in(tmp_path, monkeypatch)


def test_there_is_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(UsageError, match=r"^none of cc, gcc and clang is on PATH, expected a C compiler"):
        build_in(tmp_path, monkeypatch)
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    with pytest.raises(UsageError, match=r"^no-such-compiler, which CC names, is not on PATH, expected"):
        build_in(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            "echo 'layer.c: In function f:'; echo 'layer.c:12: fatal error: string.h: none' >&2; exit 1",
            "string.h: none",
        ),
        ("exit 3", "it ended with 3"),
        ("sleep 5", "no answer within 0 seconds"),
    ],
)
def test_the_compiler_fails(script: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text(f"#!/bin/sh\n{script}\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    if "sleep" in script:
        monkeypatch.setattr("ir_scatter.runners.gpu_on_cpu.layer._TIME_LIMIT", 0.2)
    with pytest.raises(UsageError) as caught:
        build_in(tmp_path / "cache", monkeypatch)
    message = str(caught.value)
    assert message.startswith(f"{compiler} cannot compile the OpenCL layer (")
    assert said in message
    assert not list((tmp_path / "cache").rglob("*.so"))
    assert not list((tmp_path / "cache").rglob(".building*"))


def replace_packages(monkeypatch: pytest.MonkeyPatch, packages: Mapping[str, Any]) -> None:
    """Let packages be others; None is one that is not installed."""
    real: Callable[[str], metadata.Distribution] = metadata.distribution

    def find(name: str) -> Any:
        found = packages[name] if name in packages else real(name)
        if found is None:
            raise metadata.PackageNotFoundError(name)
        return found

    def version_of(name: str) -> str:
        try:
            return str(find(name).version)
        except metadata.PackageNotFoundError:
            return ""

    monkeypatch.setattr("ir_scatter.runners.gpu_on_cpu.runner.distribution", find)
    monkeypatch.setattr("ir_scatter.runners.gpu_on_cpu.runner.version_of", version_of)


@runs_here
@pytest.mark.parametrize(
    ("hidden", "said"),
    [
        (["intel-cmplr-lib-rt"], "intel-cmplr-lib-rt is not installed"),
        (["intel-opencl-rt", "tbb"], "tbb and intel-opencl-rt are not installed"),
        (
            ["intel-opencl-rt", "intel-cmplr-lib-rt", "tbb"],
            "tbb, intel-cmplr-lib-rt and intel-opencl-rt are not",
        ),
    ],
)
def test_packages_are_missing(hidden: list[str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_packages(monkeypatch, dict.fromkeys(hidden))
    found = GpuOnCpuRunner().availability()
    assert (found.is_available, found.versions, found.remedy) == (False, {}, "")
    assert found.reason.startswith(said)
    assert found.reason.endswith('pip install "ir-scatter[gpu-on-cpu]"')


@runs_here
def test_a_library_is_missing_from_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "ir_scatter.runners.gpu_on_cpu.runner._PACKAGES",
        {"intel-opencl-rt": ("libOpenCL.so.1", "libelsewhere.so")},
    )
    reason = "is installed without its libelsewhere.so: pip install --force-reinstall intel-opencl-rt"
    assert reason in GpuOnCpuRunner().problem


def test_another_machine_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    assert GpuOnCpuRunner().problem == "this is Darwin on arm64, expected Linux on x86_64"


@runs_here
def test_a_process_whose_libraries_do_not_load_says_why(
    gpu: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken.so"
    broken.write_text("no library")
    surroundings = gpu.environment() | {"OPENCL_LAYERS": str(broken)}
    monkeypatch.setattr(GpuOnCpuRunner, "environment", lambda _: surroundings)
    found = GpuOnCpuRunner().availability()
    assert found.reason.startswith(f"UsageError: {broken} cannot be loaded")


@runs_here
@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("2025.4.1", "openvino 2025.4.1 is installed, expected 2026.0 or later"),
        ("2026.0.0", ""),
        ("2027", ""),
        ("nightly", ""),
        (None, "openvino is not installed"),
    ],
)
def test_openvino_is_old(version: str | None, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Installed(metadata.PathDistribution):
        @property
        def version(self) -> str:
            return str(version)

    packages = {"openvino": None if version is None else Installed(Path("openvino.dist-info"))}
    replace_packages(monkeypatch, packages)
    assert GpuOnCpuRunner().problem.partition(": pip install")[0] == said
