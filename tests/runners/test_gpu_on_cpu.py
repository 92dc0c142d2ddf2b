"""OpenVINO's GPU plugin on the CPU OpenCL runtime: how it is made to run, and that it does."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter import UsageError, evaluate
from ir_scatter.inputs import random_case
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import Layout, Reduction
from ir_scatter.runners import gpu_on_cpu
from ir_scatter.runners.gpu_on_cpu import find_libraries
from ir_scatter.runners.gpu_on_cpu.layer import build_layer

CHILD = Path(__file__).with_name("gpu_on_cpu_child.py")
REASON = gpu_on_cpu.problem()

runs_here = pytest.mark.skipif(REASON is not None, reason=str(REASON))
compiles_here = pytest.mark.skipif(
    REASON is not None and "C compiler" in REASON, reason=f"no C compiler: {REASON}"
)

REDUCTIONS = (Reduction.NONE, Reduction.SUM, Reduction.PROD, Reduction.MIN, Reduction.MAX)


@dataclass(frozen=True)
class Job:
    """One operator with its inputs."""

    operator: str
    inputs: Mapping[str, Any]
    axis: int | None = None
    attributes: Mapping[str, Any] | None = None

    @property
    def expected(self) -> Any:
        axis = {} if self.axis is None else {"axis": self.axis}
        return evaluate(self.operator, **self.inputs, **axis, **(self.attributes or {}))


def run(jobs: Sequence[Job], folder: Path, *, subgroups: bool = False) -> list[Any]:
    """Return the output of each, or the plugin's message."""
    for number, job in enumerate(jobs):
        told = {"operator": job.operator, "axis": job.axis, "attributes": dict(job.attributes or {})}
        np.savez(folder / f"{number:04}.npz", told=np.array(json.dumps(told)), **job.inputs)
    done = subprocess.run(
        [sys.executable, CHILD, folder],
        env={**os.environ, **gpu_on_cpu.environment(subgroups=subgroups)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = []
    for number in range(len(jobs)):
        with np.load(folder / f"{number:04}.out.npz") as archive:
            found.append(archive["output"] if "output" in archive else str(archive["error"]))
    return found


def draw(operator: str) -> Iterator[Job]:
    """Draw cases that the plugin is known to compute as the document says."""
    spec = next(spec for spec in SPECS.values() if str(spec.key) == operator)
    random = np.random.default_rng(7)
    count = 0
    while count < (len(REDUCTIONS) if len(spec.reductions) > 1 and spec.layout is not Layout.TUPLES else 2):
        reduction = REDUCTIONS[count % len(REDUCTIONS)] if len(spec.reductions) > 1 else None
        if spec.layout is Layout.TUPLES:
            reduction = Reduction.NONE
        data_type, index_type = (("f32", "i64"), ("i32", "i32"))[count % 2]
        case = random_case(spec, random, reduction=reduction, element_type=data_type, index_type=index_type)
        assert case.indices is not None
        if not case.updates.size or (case.indices < 0).any() or (case.axis or 0) < 0:
            continue
        if spec.layout is Layout.TUPLES and case.indices.ndim < 2:
            continue
        count += 1
        inputs = {"data": case.data, "indices": case.indices, "updates": case.updates}
        yield Job(operator, inputs, case.axis, case.attributes)


OPERATORS = sorted(str(key) for key in SPECS if key.domain == "openvino")


@runs_here
def test_legal_cases_are_computed_as_documented(tmp_path: Path) -> None:
    jobs = [job for operator in OPERATORS for job in draw(operator)]
    for job, found in zip(jobs, run(jobs, tmp_path), strict=True):
        assert not isinstance(found, str), found
        assert found.dtype == job.inputs["data"].dtype
        np.testing.assert_allclose(found, job.expected, rtol=1e-6, err_msg=str(job))
        if (job.attributes or {}).get("reduction", "none") == "none":
            assert np.asarray(found).tobytes() == job.expected.tobytes()
    name, devices = json.loads((tmp_path / "devices.json").read_text())
    assert [one for one in devices if one.startswith("GPU")] == ["GPU"]
    assert gpu_on_cpu.device_name(name).startswith(f"{gpu_on_cpu.NAME} (")
    assert "iGPU" not in gpu_on_cpu.device_name(name)


DATA = np.arange(15, dtype=np.float32).reshape(3, 5)

DEFECTS = {
    "a negative axis of data of rank 2": Job(
        "ScatterUpdate-3",
        {"data": DATA, "indices": np.array([1, 3]), "updates": -np.ones((3, 2), np.float32)},
        axis=-1,
    ),
    "an index from the end": Job(
        "ScatterNDUpdate-15",
        {"data": DATA, "indices": np.array([[2, -4]]), "updates": -np.ones(1, np.float32)},
    ),
}
"""What the plugin of openvino 2026.4 computes otherwise than documented, without a write outside."""


DEFECT_FREE = Job(
    "ScatterUpdate-3",
    {"data": DATA, "indices": np.array([2, 0]), "updates": -np.ones((2, 5), np.float32)},
    axis=0,
)


@runs_here
def test_defects_of_the_plugin_are_seen(tmp_path: Path) -> None:
    bytes_of_u8 = {
        "data": DATA.astype(np.uint8),
        "indices": np.array([[1]]),
        "updates": np.ones((1, 1), np.uint8),
    }
    jobs = [*DEFECTS.values(), Job("ScatterElementsUpdate-12", bytes_of_u8, axis=0)]
    *computed, refused = run(jobs, tmp_path)
    for what, job, found in zip(DEFECTS, jobs, computed, strict=False):
        assert found.shape == job.expected.shape
        assert not np.array_equal(found, job.expected), f"{what} is computed as documented now: say so"
    assert isinstance(refused, str)
    assert "u8" in refused


@runs_here
def test_what_is_around_scatter_is_computed_too(tmp_path: Path) -> None:
    """With its kernels for subgroups, the plugin computes mostly zeros on this runtime."""
    random = np.random.default_rng(0)
    left, right = random.random((64, 64), np.float32), random.random((64, 64), np.float32)
    image, weights = random.random((1, 16, 8, 8), np.float32), random.random((16, 16, 3, 3), np.float32)
    jobs = [
        Job("MatMul-1", {"left": left, "right": right}),
        Job("Convolution-1", {"image": image, "weights": weights}),
    ]
    product, convolved = run(jobs, tmp_path)
    np.testing.assert_allclose(product, left @ right, rtol=1e-5)
    windows = np.lib.stride_tricks.sliding_window_view(image[0], (3, 3), axis=(1, 2))
    expected = np.einsum("cyxij,ocij->oyx", windows, weights)[None]
    np.testing.assert_allclose(convolved, expected, rtol=1e-5)


@runs_here
def test_kernels_that_need_subgroups(tmp_path: Path) -> None:
    job = Job("NonZero-3", {"data": np.array([0, 3, 0, 5, 7, 0], np.int32)})
    (tmp_path / "without").mkdir()
    (refused,) = run([job], tmp_path / "without")
    assert isinstance(refused, str)
    assert "suitable kernel" in refused
    (tmp_path / "with").mkdir()
    found, written = run([job, DEFECT_FREE], tmp_path / "with", subgroups=True)
    np.testing.assert_array_equal(found, [[1, 3, 4]])
    np.testing.assert_array_equal(written, DEFECT_FREE.expected)


def build_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return build_layer()


@compiles_here
def test_the_layer_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = build_in(tmp_path, monkeypatch)
    assert layer.is_relative_to(tmp_path / "ir-scatter")
    before = layer.stat()
    assert build_layer() == layer
    assert layer.stat() == before
    assert [path.name for path in layer.parent.iterdir()] == [layer.name]


@compiles_here
def test_another_compiler_or_flag_builds_another_layer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = build_in(tmp_path, monkeypatch)
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


def forbid_writing(folder: Path) -> None:
    """Put a file where folders are wanted: no user, root included, can make one there."""
    folder.write_text("")


@compiles_here
def test_a_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_writing(tmp_path / "cache")
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

    monkeypatch.setattr("ir_scatter.runners.gpu_on_cpu.layer._keep", refuse)
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


def hide_packages(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    real: Callable[[str], metadata.Distribution] = metadata.distribution

    def find(name: str) -> metadata.Distribution:
        if name in names:
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr("ir_scatter.runners.gpu_on_cpu.distribution", find)


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
    hide_packages(monkeypatch, *hidden)
    message = gpu_on_cpu.problem()
    assert message is not None
    assert message.startswith(said)
    assert message.endswith('pip install "ir-scatter[gpu-on-cpu]"')
    assert not set(gpu_on_cpu.versions()) & set(hidden)
    with pytest.raises(UsageError) as caught:
        gpu_on_cpu.environment()
    assert str(caught.value) == message


@runs_here
def test_a_library_is_missing_from_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "ir_scatter.runners.gpu_on_cpu._PACKAGES",
        {"intel-opencl-rt": ("libOpenCL.so.1", "libelsewhere.so")},
    )
    message = gpu_on_cpu.problem()
    assert message is not None
    assert (
        "is installed without its libelsewhere.so: pip install --force-reinstall intel-opencl-rt" in message
    )


def test_another_machine_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    assert gpu_on_cpu.problem() == "this is Darwin on arm64, expected Linux on x86_64"


@runs_here
def test_the_versions_are_those_installed() -> None:
    assert set(gpu_on_cpu.versions()) == {"tbb", "intel-cmplr-lib-rt", "intel-opencl-rt"}
    assert gpu_on_cpu.versions()["intel-opencl-rt"] == metadata.version("intel-opencl-rt")
    assert [path.name.split(".so")[0] for path in find_libraries().values()][-1] == "libintelocl"


def prepared(code: str, environment: Mapping[str, str]) -> str:
    """Return the last line that a process says which prepares itself and runs code before that."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nfrom ir_scatter.runners import gpu_on_cpu\ngpu_on_cpu.prepare()"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return (done.stderr.strip().splitlines() or [""])[-1]


@runs_here
def test_a_process_that_cannot_be_prepared_says_why(tmp_path: Path) -> None:
    environment = gpu_on_cpu.environment()
    assert prepared("", environment) == ""
    assert "before openvino is imported" in prepared("import sys; sys.modules['openvino'] = sys", environment)
    assert "variables of environment()" in prepared("import os; os.environ.pop('OPENCL_LAYERS', 0)", {})
    broken = tmp_path / "broken.so"
    broken.write_text("no library")
    said = prepared("", {**environment, "OPENCL_LAYERS": str(broken)})
    assert "UsageError" in said
    assert f"{broken} cannot be loaded" in said


def test_what_a_result_is_worth_is_said() -> None:
    text = " ".join(gpu_on_cpu.FIDELITY)
    assert gpu_on_cpu.NAME == "GPU plugin on the CPU OpenCL runtime"
    assert gpu_on_cpu.NAME in gpu_on_cpu.FIDELITY[0]
    assert all(sentence.endswith(".") for sentence in gpu_on_cpu.FIDELITY)
    assert all(
        one in gpu_on_cpu.FIDELITY_WITH_SUBGROUPS
        for one in gpu_on_cpu.FIDELITY
        if one != gpu_on_cpu.FIDELITY[1]
    )
    for word in ("subgroups", "Races", "NaN", "out of bounds", "Times"):
        assert word in text
    assert gpu_on_cpu.device_name("AMD EPYC (iGPU)") == f"{gpu_on_cpu.NAME} (AMD EPYC)"


@runs_here
@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("2025.4.1", "openvino 2025.4.1 is installed, expected 2026.0 or later"),
        ("2026.0.0", None),
        ("2027", None),
        ("nightly", None),
        (None, "openvino is not installed"),
    ],
)
def test_openvino_is_old(version: str | None, said: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    class Installed(metadata.PathDistribution):
        @property
        def version(self) -> str:
            return str(version)

    real: Callable[[str], metadata.Distribution] = metadata.distribution

    def find(name: str) -> metadata.Distribution:
        if name != "openvino":
            return real(name)
        if version is None:
            raise metadata.PackageNotFoundError(name)
        return Installed(Path("openvino.dist-info"))

    monkeypatch.setattr("ir_scatter.runners.gpu_on_cpu.distribution", find)
    message = gpu_on_cpu.problem()
    assert (message is None) == (said is None)
    assert message is None or message.startswith(f"{said}: pip install")
