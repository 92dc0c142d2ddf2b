import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from ir_scatter_cli.main import main
from tests.prefork import Prefork

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples"
COMMAND = Path(sys.executable).parent / "ir-scatter"


@dataclass(frozen=True, slots=True)
class Result:
    """What one run of the command line did."""

    code: int
    out: str
    err: str


Cli = Callable[..., Result]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in an empty folder, where no pyproject.toml gives defaults."""
    monkeypatch.chdir(tmp_path)
    for variable in ("NO_COLOR", "FORCE_COLOR", "IR_SCATTER_DEBUG"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """Run the command line in this process, as its script does."""

    def run(*arguments: str | Path) -> Result:
        monkeypatch.setattr(sys, "argv", ["ir-scatter", *map(str, arguments)])
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        sys.stdout.flush()
        sys.stderr.flush()
        captured = capfdbinary.readouterr()
        assert isinstance(ended.value.code, int)
        return Result(ended.value.code, captured.out.decode(), captured.err.decode())

    return run


def run_script(*arguments: str | Path, data: bytes = b"", **environment: str) -> Result:
    """Run the installed script in a process of its own."""
    done = subprocess.run(
        [COMMAND, *arguments],
        input=data,
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture(scope="session")
def prefork() -> Iterator[Prefork]:
    with Prefork() as process:
        yield process


@pytest.fixture
def script(prefork: Prefork) -> Cli:
    """Run the command line in another process."""

    def run(*arguments: str | Path, data: bytes = b"", **environment: str) -> Result:
        code, out, err = prefork.captured([*map(str, arguments)], {**os.environ, **environment}, data)
        return Result(code, out.decode(), err.decode())

    return run


@pytest.fixture
def broken(elsewhere: Path) -> Path:
    """A broken IR in the current folder: five errors, one warning."""
    return copy_sample("broken/scatter_update.xml", elsewhere)


@pytest.fixture
def clean(elsewhere: Path) -> Path:
    return copy_sample("kv_cache/decoder.xml", elsewhere)


@pytest.fixture
def warned(elsewhere: Path) -> Path:
    """A model with one warning."""
    return copy_sample("documented/scatter_1.onnx", elsewhere)


def copy_sample(name: str, folder: Path) -> Path:
    """Copy a model, and its weights, and return its path relative to the current folder."""
    source = SAMPLES / name
    for suffix in {source.suffix, ".bin"}:
        if source.with_suffix(suffix).exists():
            (folder / source.name).with_suffix(suffix).write_bytes(source.with_suffix(suffix).read_bytes())
    return (folder / source.name).relative_to(Path.cwd())


def codes(lines: str | Sequence[str]) -> list[str]:
    """Return the codes of concise output."""
    rows = lines.splitlines() if isinstance(lines, str) else lines
    return [row.split(": ", 1)[1].split()[1] for row in rows]
