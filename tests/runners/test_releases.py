"""Runners of other releases: their names, their environments, and that a child finds nothing else."""

import fcntl
import hashlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from ir_scatter import runners
from ir_scatter.core.errors import UsageError
from ir_scatter.fuzz.replay import replay
from ir_scatter.runners.base import Status
from ir_scatter.runners.releases import environments
from ir_scatter.runners.releases.environments import (
    CannotInstall,
    find,
    install,
    installed,
    parse_release,
    remove,
)
from tests.cli.conftest import COMMAND, SAMPLES
from tests.compare.models import floats, write_node
from tests.scale import thinned

HERE = f"{sys.implementation.cache_tag}-"
PACKAGES = ("openvino", "numpy", "onnx", "ml_dtypes", "google", "typing_extensions")
"""What the child imports, and what that imports."""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give an empty cache, and forget runners that were found in it."""
    before = dict(runners._RUNNERS)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield tmp_path / "cache" / "ir-scatter" / "releases"
    for name in runners._RUNNERS.keys() - before.keys():
        runners._RUNNERS.pop(name).close()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give an empty folder that is all that pip looks into."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(folder), "CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    for name in ("EXTRA_INDEX_URL", "CONSTRAINT", "REQUIRE_HASHES"):
        monkeypatch.delenv(f"PIP_{name}", raising=False)
    return folder


def make_environment(cache: Path, name: str, packages: tuple[str, ...] = (), python: str = "") -> Path:
    """Make an environment by hand, of links to packages of this Python."""
    folder = cache / (python or environments.THIS_PYTHON) / name
    folder.mkdir(parents=True)
    for package in packages:
        spec = importlib.util.find_spec(package)
        assert spec is not None
        place = Path([*(spec.submodule_search_locations or ()), spec.origin or ""][0])
        (folder / place.name).symlink_to(place)
    wheels = [{"name": name.partition("@")[0], "version": name.partition("@")[2], "sha256": "0"}]
    (folder / "record.json").write_text(json.dumps({"bytes": 7_000_000, "wheels": wheels}))
    return folder


def make_wheel(index: Path, name: str, version: str, requires: str = "") -> Path:
    """Write a wheel with one module that says its version."""
    path, about = index / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {requires}"] if requires else []
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{name}.py", f"version = {version!r}\n")
        file.writestr(f"{about}/METADATA", "\n".join([*lines, ""]))
        file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{about}/RECORD", "")
    return path


def make_wheels(index: Path, *versions: str) -> None:
    for version in versions:
        make_wheel(index, "openvino", version, "numpy")
    for name, version in (("numpy", "1.26.4"), ("numpy", "2.4.0"), ("onnx", "1.0"), ("ml_dtypes", "1.0")):
        make_wheel(index, name, version)


def wheels_of(text: str) -> dict[str, str]:
    """Return the packages of an environment and the hashes of their wheels."""
    found = find(parse_release(text))
    assert found is not None
    wheels = json.loads((found.folder / "record.json").read_text())["wheels"]
    return {f"{one['name']}-{one['version']}": one["sha256"] for one in wheels}


@pytest.mark.parametrize(
    ("written", "long"),
    [
        ("openvino@2099.1:CPU", "openvino@2099.1.10:CPU"),
        ("OpenVINO@2099.1.9:cpu", "openvino@2099.1.9:CPU"),
        ("CPU@2099.1", "openvino@2099.1.10:CPU"),
        ("openvino:gpu.1@2099.1", "openvino@2099.1.10:GPU.1"),
        ("openvino@2099.1:AUTO:GPU,CPU", "openvino@2099.1.10:AUTO:GPU,CPU"),
        ("openvino@2099.1:FOLD", "openvino@2099.1.10:fold"),
        ("openvino@2099.10:CPU", "openvino@2099.10:CPU"),
        ("onnxruntime@9.9", "onnxruntime@9.9.1"),
        (" ONNXRuntime@9.8 ", "onnxruntime@9.8"),
    ],
)
def test_a_short_release_is_its_newest_patch_that_is_installed(cache: Path, written: str, long: str) -> None:
    for name in ("openvino@2099.1.9", "openvino@2099.1.10", "openvino@2099.2.0", "onnxruntime@9.9.1"):
        make_environment(cache, name)
    make_environment(cache, "openvino@2099.1.11", python="cpython-30-other")
    found = runners.find(written)
    assert found.name == long
    assert runners.find(long) is found


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            "openvino@x:CPU",
            "'openvino@x' is not a release, expected one like openvino@2025.4 or onnxruntime@1",
        ),
        ("openvino@2025:CPU", "'openvino@2025' is not a release"),
        ("openvino@2025.4.0.1:CPU", "'openvino@2025.4.0.1' is not a release"),
        ("openvino@../..:CPU", "'openvino@../..' is not a release"),
        ("openvino@2025.4", "names no device, expected openvino@2025.4:CPU or the like"),
        ("openvino@2025.4:XPU", "names no device, expected openvino@2025.4:CPU or the like"),
        ("onnxruntime@1.17:CPU", "names a device, expected onnxruntime@1.17 alone"),
        ("numpy@2.0", "there is no runner 'numpy@2.0'"),
    ],
)
def test_a_name_that_is_none_is_refused_in_words(cache: Path, written: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        runners.find(written)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["openvino@2099.3:CPU", "openvino@2099.3:fold", "onnxruntime@2099.3"])
def test_a_release_that_is_not_there_is_an_outcome_with_the_command(cache: Path, name: str) -> None:
    runner = runners.find(name)
    command = f"ir-scatter devices --install {name.partition(':')[0]}"
    outcome = runner.run("any.xml", {})
    assert outcome.status is Status.UNAVAILABLE
    assert outcome.message.endswith(command)
    told = runner.availability()
    assert (told.is_available, told.reason, told.remedy) == (False, outcome.message, "")
    make_environment(cache, f"{name.partition(':')[0]}.4")
    assert runner.problem == ""


@pytest.mark.parametrize(
    "line",
    thinned([
        ["compare", str(SAMPLES / "plugins" / "one_behind_the_axis.xml"), "--on"],
        ["fuzz", "--cases", "1", "--on"],
        ["convert", str(SAMPLES / "plugins" / "scalar_index.xml"), "-o", "new.xml", "--to", "ScatterUpdate",
         "--verify-on"],
    ], 3),
    ids=lambda line: str(line[0]),
)  # fmt: skip
def test_commands_that_need_it_exit_with_4_and_install_nothing(
    cache: Path, tmp_path: Path, line: list[str]
) -> None:
    done = subprocess.run(
        [COMMAND, *line, "openvino@2099.4:CPU"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 4, done.stdout + done.stderr
    assert "ir-scatter devices --install openvino@2099.4" in done.stdout + done.stderr
    assert not cache.exists()


def test_a_finding_of_a_release_is_replayed_on_it_alone(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    program = "import os, sys; print(os.environ.get('PYTHONPATH')); sys.exit(1)"
    (tmp_path / "one" / "repro.py").write_text(program)
    finding = {"signature": "one", "symptom": "", "runner": "openvino@2099.8:CPU"}
    (tmp_path / "fuzz.json").write_text(json.dumps({"schema": 1, "findings": [finding]}))
    (missing,) = replay(tmp_path)
    assert missing.outcome == "cannot run"
    assert missing.message.endswith("ir-scatter devices --install openvino@2099.8")
    folder = make_environment(cache, "openvino@2099.8.0")
    assert list(replay(tmp_path, run_scripts=True)) == [("one", "still there", str(folder))]


@pytest.mark.openvino
@pytest.mark.parametrize("device", ["CPU", "fold"])
def test_it_runs_with_the_packages_of_its_environment(cache: Path, tmp_path: Path, device: str) -> None:
    pytest.importorskip("openvino")
    folder = make_environment(cache, "openvino@2099.5.0", PACKAGES)
    indices, updates = np.array([2, 0]), floats(2, 3) + 9
    path, feeds = write_node(
        tmp_path, "ScatterUpdate", "opset3", [floats(4, 3), indices, updates, np.array(0)]
    )
    runner = runners.find(f"openvino@2099.5:{device}")
    expected = floats(4, 3)
    expected[indices] = updates
    outcome = runner.run(path, feeds)
    assert (outcome.status, outcome.message) == (Status.OK, "")
    assert [array.tolist() for array in outcome.outputs.values()] == [expected.tolist()]
    assert outcome.versions == {"openvino@2099.5.0": "2099.5.0"}
    runner.close()
    (folder / "openvino").unlink()
    assert "No module named 'openvino'" in runner.availability().reason


@pytest.mark.long
def test_pip_fills_an_environment_and_its_wheels_are_recorded(cache: Path, index: Path) -> None:
    make_wheels(index, "2099.6.0", "2099.6.1", "2099.7.0", "2023.3.0")
    made = install(parse_release("openvino@2099.6"))
    assert (str(made.release), made.python) == ("openvino@2099.6.1", environments.THIS_PYTHON)
    assert made.python.startswith(HERE)
    assert (made.folder / "openvino.py").read_text() == "version = '2099.6.1'\n"
    assert made.folder == cache / made.python / "openvino@2099.6.1"
    wheels = wheels_of("openvino@2099.6")
    assert wheels.keys() == {"openvino-2099.6.1", "numpy-2.4.0", "onnx-1.0", "ml_dtypes-1.0"}
    for name, known in wheels.items():
        assert hashlib.sha256((index / f"{name}-py3-none-any.whl").read_bytes()).hexdigest() == known
    install(parse_release("openvino@2023.3"))
    assert "numpy-1.26.4" in wheels_of("openvino@2023.3")
    for wheel in index.iterdir():
        wheel.unlink()
    assert install(parse_release("openvino@2099.6")) == made  # pip is not asked
    assert [str(one.release) for one in installed()] == ["openvino@2023.3.0", "openvino@2099.6.1"]
    assert [one.release.version for one in remove(parse_release("openvino@2099.6"))] == ["2099.6.1"]
    assert not made.folder.exists()
    with pytest.raises(UsageError, match=r"openvino@2099.6 is not installed, expected openvino@2023.3.0"):
        remove(parse_release("openvino@2099.6"))


@pytest.mark.long
def test_what_pip_cannot_do_is_told_and_leaves_nothing(cache: Path, index: Path) -> None:
    with pytest.raises(CannotInstall, match="cannot be installed by pip: Could not find a version"):
        install(parse_release("openvino@2099.1"))
    make_wheels(index, "2099.6.0", "2099.7.0", "2099.8.0.dev1")
    python = "Python {}.{}".format(*sys.version_info)
    with pytest.raises(CannotInstall) as caught:
        install(parse_release("openvino@2022.1"))
    assert str(caught.value).endswith(
        f"no wheel for {python} on this machine, expected one of 2099.6.0, 2099.7.0"
    )
    assert not list(cache.glob("*/*"))


@pytest.mark.long
def test_a_half_made_environment_is_made_anew(cache: Path, index: Path) -> None:
    make_wheels(index, "2099.6.0")
    half = make_environment(cache, "openvino@2099.6.0")
    assert len(installed()) == 1
    for text in ("", "{}", "[1]", '{"bytes": "x"}'):
        (half / "record.json").write_text(text)
        assert installed() == []
    (half / "record.json").unlink()
    (half / "left").mkdir()
    stale = half.parent / ".unfinished-of-a-killed-one"
    stale.mkdir()
    assert install(parse_release("openvino@2099.6")).folder == half
    assert sorted(path.name for path in half.parent.iterdir()) == ["openvino@2099.6.0"]
    assert not (half / "left").exists()


@pytest.mark.long
def test_two_installers_wait_for_each_other(
    cache: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wheels(index, "2099.6.0")
    make_environment(cache, "openvino@2099.5.0")
    descriptor = os.open(cache, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    command = [str(COMMAND), "devices", "--install", "openvino@2099.6"]
    waiting = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for one in waiting:
        assert one.stderr is not None
        said = "ir-scatter: waiting for another ir-scatter process that installs or removes a release\n"
        assert one.stderr.readline() == said
    monkeypatch.setattr(environments, "_PATIENCE", 0.1)
    with pytest.raises(
        CannotInstall, match="is locked, as another ir-scatter process installs or removes a release"
    ):
        remove(parse_release("openvino@2099.5"))
    assert len(installed()) == 1
    os.close(descriptor)
    assert [one.wait(120) for one in waiting] == [0, 0]
    for one in waiting:
        assert one.stderr is not None
        one.stderr.close()
    assert [str(one.release) for one in installed()] == ["openvino@2099.5.0", "openvino@2099.6.0"]
    assert [str(one.release) for one in remove(parse_release("openvino@2099.5"))] == ["openvino@2099.5.0"]


def test_an_interrupt_leaves_nothing_half_made(cache: Path, index: Path, tmp_path: Path) -> None:
    slow = tmp_path / "slow" / "pip"
    slow.mkdir(parents=True)
    (slow / "__init__.py").write_text("")
    (slow / "__main__.py").write_text("import time\ntime.sleep(60)\n")
    environment = {**os.environ, "PYTHONPATH": str(slow.parent)}
    command = [str(COMMAND), "devices", "--install", "openvino@2099.6"]
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    end = time.monotonic() + 60
    while not list(cache.glob("*/.unfinished-*")):
        assert time.monotonic() < end
        time.sleep(0.05)
    for _ in range(30):  # one that comes while a process is started may be lost
        os.killpg(process.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(2)
            break
    assert process.returncode == 130
    assert not list(cache.glob("*/*"))


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("a file where folders are wanted")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert installed() == []
    with pytest.raises(CannotInstall, match=r"releases cannot be written: not a directory"):
        install(parse_release("openvino@2099.6"))


@pytest.mark.long
@pytest.mark.parametrize("text", ["openvino@2023.0", "openvino@2024.6.0", "onnxruntime@1.17"])
def test_real_releases(cache: Path, tmp_path: Path, text: str) -> None:
    """The oldest releases run what is known of them, in every type that they have."""
    try:
        install(parse_release(text))
    except CannotInstall as error:
        pytest.skip(str(error))
    data, indices, updates = floats(2, 3, 2), np.array([1, 0]), floats(2, 2, 2) + 9
    expected = data.copy()
    expected[:, indices] = updates
    is_onnx = text.startswith("onnx")
    inputs = [data, indices, updates, np.array(1)]
    path, feeds = write_node(tmp_path, "ScatterUpdate", "opset3", inputs)
    if is_onnx:
        at, new = np.array([[2, 0]]), np.array([["ä", "b"]], object)
        path, feeds = write_node(
            tmp_path, "ScatterElements", 11, [np.array([["x", "y", "z"]], object), at, new], (), axis=1
        )
        expected = np.array([["b", "y", "ä"]], object)
    runner = runners.find(text if is_onnx else f"{text}:CPU")
    told = runner.availability()
    assert told.is_available, told.reason
    outcome = runner.run(path, feeds)
    assert (outcome.status, outcome.message) == (Status.OK, "")
    assert [array.tolist() for array in outcome.outputs.values()] == [expected.tolist()]
    if not is_onnx:
        wrong = SAMPLES / "plugins" / "one_behind_the_axis.xml"
        command: list[str | Path] = [
            COMMAND,
            "compare",
            str(wrong),
            "--on",
            f"{text}:CPU",
            "--on",
            f"{text}:fold",
            "--format",
            "json",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        verdicts = {one["subject"]: one["verdict"] for one in json.loads(done.stdout)["comparisons"]}
        release = runner.name.partition(":")[0]
        assert verdicts == {f"{release}:CPU": "equal", f"{release}:fold": "mismatch"}
