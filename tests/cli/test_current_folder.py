"""The current folder may be anybody's: no command, and no process of one, imports a module from it."""

import ast
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, ROOT, SAMPLES
from tests.jobs.lab import free_port

_NAMES = [
    "pip", "openvino", "onnx", "onnxruntime", "numpy", "json", "distributed", "dask", "tornado", "ir_scatter",
    "ir_scatter_cli", "click", "lxml", "rich", "sitecustomize", "usercustomize", "multiprocessing", "pickle",
    "struct", "ml_dtypes", "google", "typing", "ctypes", "tempfile",
]  # fmt: skip
_MODULE = "import os\nwith open(os.environ['MARK'], 'a') as file: file.write(__name__ + '\\n')\n"
_LIMIT = 300


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    folder = tmp_path / "evil"
    folder.mkdir()
    for name in _NAMES:
        (folder / f"{name}.py").write_text(_MODULE)
    for name in ("kv_cache/decoder.xml", "kv_cache/decoder.bin", "documented/scatter_1.onnx"):
        shutil.copy(SAMPLES / name, folder)
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    more = {"MARK": str(tmp_path / "mark"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    dropped = {"PYTHONPATH", "PYTHONSAFEPATH"}
    return {**{name: value for name, value in os.environ.items() if name not in dropped}, **more}


def marked(environment: dict[str, str]) -> str:
    path = Path(environment["MARK"])
    return path.read_text() if path.exists() else ""


def test_a_module_of_the_folder_would_be_seen(evil: Path, environment: dict[str, str]) -> None:
    subprocess.run([sys.executable, "-m", "pip"], cwd=evil, env=environment, check=False, timeout=60)
    assert "__main__" in marked(environment)


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ("validate decoder.xml scatter_1.onnx -j 2", {0, 1}),
        pytest.param("validate decoder.xml --for CPU", {0, 1}, marks=pytest.mark.long),
        pytest.param("inspect decoder.xml scatter_1.onnx", {0}, marks=pytest.mark.long),
        ("run scatter_1.onnx", {0}),
        pytest.param("convert scatter_1.onnx -o new.onnx", {0}, marks=pytest.mark.long),
        pytest.param("convert scatter_1.onnx -o new.xml --verify-on CPU", {0}, marks=pytest.mark.long),
        pytest.param("compare decoder.xml --on CPU", {0, 1}, marks=pytest.mark.long),
        ("compare scatter_1.onnx --on onnxruntime --on onnx-reference", {0, 1, 4}),
        pytest.param("compare decoder.xml --on GPU@cpu", {0, 1, 4}, marks=pytest.mark.long),
        pytest.param(
            "fuzz --on CPU --on fold --cases 20 --operator ScatterUpdate-3 -o findings",
            {0, 1},
            marks=pytest.mark.long,
        ),
        pytest.param(
            "fuzz --on onnxruntime --cases 20 --operator ScatterElements-18", {0, 1}, marks=pytest.mark.long
        ),
        pytest.param("doctor --on onnx-reference", {0, 1}, marks=pytest.mark.long),
        pytest.param("devices", {0}, marks=pytest.mark.long),
        ("explain SCT203", {0}),
    ],
)
def test_commands_import_nothing_from_the_current_folder(
    line: str, codes: set[int], evil: Path, environment: dict[str, str]
) -> None:
    command: list[str | Path] = [COMMAND, *line.split()]
    done = subprocess.run(command, cwd=evil, env=environment, capture_output=True, text=True, timeout=_LIMIT)
    assert marked(environment) == ""
    assert done.returncode in codes, done.stdout + done.stderr


@pytest.mark.long
def test_a_release_is_installed_by_the_real_pip(
    evil: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    """Which may be one that PYTHONPATH leads to: that stays as it is."""
    index = tmp_path / "index"
    index.mkdir()
    for name, version in (
        ("openvino", "2099.1.0"),
        ("onnx", "1.0"),
        ("ml_dtypes", "1.0"),
        ("numpy", "2.4.0"),
    ):
        about = f"{name}-{version}.dist-info"
        with zipfile.ZipFile(index / f"{name}-{version}-py3-none-any.whl", "w") as file:
            file.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            file.writestr(f"{about}/RECORD", "")
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_CONFIG_FILE": os.devnull}
    command: list[str | Path] = [COMMAND, "devices", "--install", "openvino@2099.1"]
    done = subprocess.run(
        command, cwd=evil, env=environment | offline, capture_output=True, text=True, timeout=_LIMIT
    )
    assert marked(environment) == ""
    assert "openvino@2099.1.0 is installed" in done.stdout, done.stderr
    command = [
        COMMAND,
        "doctor",
        "--on",
        "CPU",
        "--release",
        "2099.1",
        "--yes",
    ]  # of which no module is there
    subprocess.run(
        command, cwd=evil, env=environment | offline, capture_output=True, timeout=_LIMIT, check=False
    )
    assert marked(environment) == ""


def test_processes_that_are_spawned(evil: Path, environment: dict[str, str]) -> None:
    """As beside threads, where none is forked; what the caller's environment says stays."""
    program = (
        "import os, threading; from ir_scatter.jobs import Job; from ir_scatter.jobs.local import local\n"
        "from ir_scatter.core.files import Source; from ir_scatter.lint import Options\n"
        "if __name__ == '__main__':\n"
        "    end = threading.Event(); threading.Thread(target=end.wait).start()\n"
        "    with local(2) as engine:\n"
        "        jobs = [Job('validate', (Source('decoder.xml'), Options())) for _ in range(3)]\n"
        "        print([one.result().is_readable for one in [engine.submit(job) for job in jobs]])\n"
        "    end.set(); print(os.environ.get('PYTHONSAFEPATH'))\n"
    )
    path = evil.parent / "program.py"
    path.write_text(program)
    command = [sys.executable, "-P", str(path)]
    done = subprocess.run(command, cwd=evil, env=environment, capture_output=True, text=True, timeout=_LIMIT)
    assert marked(environment) == ""
    assert done.stdout == "[True, True, True]\nNone\n", done.stderr


@pytest.mark.long
def test_machines_of_a_fleet(evil: Path, environment: dict[str, str]) -> None:
    pytest.importorskip("distributed")
    address, log = f"tcp://127.0.0.1:{free_port()}", evil.parent / "log"
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str, sign: str) -> None:
        with log.open("ab") as file:
            command: list[str | Path] = [COMMAND, *words]
            started.append(subprocess.Popen(command, cwd=evil, env=environment, stdout=file, stderr=file))
        while sign not in log.read_text():
            assert started[-1].poll() is None, log.read_text()
            with pytest.raises(subprocess.TimeoutExpired):
                started[-1].wait(0.1)

    try:
        start("scheduler", "--listen", address, sign="listens")
        start("worker", address, sign="works for")
        command: list[str | Path] = [COMMAND, "validate", "decoder.xml", "--scheduler", address]
        done = subprocess.run(
            command, cwd=evil, env=environment, capture_output=True, text=True, timeout=_LIMIT
        )
        assert done.returncode == 0, done.stderr
    finally:
        for process in started[::-1]:
            process.send_signal(signal.SIGINT)
            process.wait(30)
    assert marked(environment) == ""


def test_what_is_on_the_python_path_is_found(evil: Path, environment: dict[str, str], tmp_path: Path) -> None:
    """Processes find what their parent finds: a runtime may be where PYTHONPATH leads to."""
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "onnxruntime.py").write_text("raise ImportError('mine')")
    command: list[str | Path] = [COMMAND, "compare", "scatter_1.onnx", "--on", "onnxruntime"]
    environment["PYTHONPATH"] = str(tmp_path / "packages")
    done = subprocess.run(command, cwd=evil, env=environment, capture_output=True, text=True, timeout=_LIMIT)
    assert "mine" in done.stdout + done.stderr
    assert marked(environment) == ""


# Every place that starts a process


def _nodes() -> Iterator[tuple[str, ast.AST]]:
    for folder in ("ir_scatter", "cli"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                yield name, node


def test_every_python_process_is_started_in_one_way() -> None:
    """Python's program is named in one function; `multiprocessing` starts processes in one module."""
    named, spawned = set[str](), set[str]()
    for path, node in _nodes():
        text = ""
        if isinstance(node, ast.Attribute):
            text = f"{node.value.id}.{node.attr}" if isinstance(node.value, ast.Name) else node.attr
        assert not text.startswith(
            ("os.exec", "os.spawn", "os.posix_spawn", "os.popen", "os.system", "runpy.")
        )
        if text in {"sys.executable", "sys._base_executable"}:
            named.add(path)
        if isinstance(node, ast.Name | ast.alias) or text:
            word = text or (node.id if isinstance(node, ast.Name) else getattr(node, "name", ""))
            if word.rpartition(".")[2] in {
                "get_context",
                "ProcessPoolExecutor",
                "SpawnContext",
                "set_start_method",
            }:
                spawned.add(path)
    assert named == {"ir_scatter/core/process.py"}
    assert spawned == {"ir_scatter/jobs/local.py", "ir_scatter/jobs/spawn.py"}
    process = (ROOT / "ir_scatter/core/process.py").read_text(encoding="utf-8")
    assert process.count("sys.executable") == process.count('[sys.executable, "-P", ') == 1
