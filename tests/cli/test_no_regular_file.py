"""Files that settings, options and other files name: none is waited for, none is read without end."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ir_scatter.core import files
from ir_scatter.core.files import open_regular, read_regular
from tests.cli.conftest import COMMAND, SAMPLES, Cli

MODEL = SAMPLES / "documented" / "scatter_1.onnx"


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.mkdir()


def huge(path: Path) -> None:
    """Make a file of a terabyte, of which nothing is on the disk."""
    with path.open("wb") as file:
        file.truncate(1 << 40)


KINDS = (pipe, link_to_pipe, device, folder, huge)


@pytest.mark.parametrize("make", KINDS)
def test_only_regular_files_of_a_bounded_size_are_read(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "x")
    with pytest.raises(OSError, match=r"not a regular file|[Ii]s a directory|expected at most 268435456"):
        read_regular(tmp_path / "x")
    if make is not huge:
        with pytest.raises(OSError, match=r"not a regular file|[Ii]s a directory"):
            open_regular(tmp_path / "x")


def test_a_regular_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    assert read_regular(path, 5) == read_regular(str(path)) == b"12345"
    with pytest.raises(OSError, match="it has 5 bytes, expected at most 4"):
        read_regular(path, 4)
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "y")
    monkeypatch.setattr(files, "_demand_regular", lambda *_: None)  # it grows when it has been looked at
    with pytest.raises(OSError, match="expected at most 4"):
        read_regular(path, 4)


@pytest.mark.parametrize("make", [pipe, device, huge])
@pytest.mark.parametrize(
    "line",
    [
        ["validate", MODEL, "--baseline", "x"],
        ["validate", MODEL, "settings"],
        ["run", MODEL, "--inputs", "x"],
        ["compare", MODEL, "--on", "numpy", "--inputs", "x"],
        ["compare", MODEL, "--on", "numpy", "--against", "against"],
        ["fuzz", "--replay", "replay"],
        ["fuzz", "--on", "numpy", "-o", "replay", "--resume"],
        *(
            ["validate", MODEL, "--scheduler", "tls://127.0.0.1:1",
             *(word for name in ("ca", "cert", "key") for word in (f"--tls-{name}", "x" if name == bad else "y"))]
            for bad in ("ca", "cert", "key")
        ),
    ],
    ids=lambda line: f"{line[0]}{line[-2]}",
)  # fmt: skip
def test_commands(cli: Cli, line: list[str | Path], make: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "y").write_text("")
    make(tmp_path / "x")
    for name, inside in (("against", "results.json"), ("replay", "fuzz.json")):
        (tmp_path / name).mkdir()
        (tmp_path / name / inside).symlink_to(tmp_path / "x")
    if line[-1] == "settings":
        (tmp_path / "pyproject.toml").write_text('[tool.ir-scatter]\nbaseline = "x"\n')
        line = line[:-1]
    done = cli(*line)
    assert done.code == 2, done.err
    assert "Traceback" not in done.err
    assert not done.out


def test_settings_that_are_no_regular_file_are_none(cli: Cli, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pyproject.toml")
    done = cli("validate", MODEL)
    assert done.code == 0, done.err


def test_what_doctor_recorded_is_no_regular_file(tmp_path: Path) -> None:
    """It counts as what is not there."""
    from ir_scatter.defects.evidence import read_rows

    os.mkfifo(tmp_path / "doctor.json")
    assert read_rows(tmp_path / "doctor.json") == []


def test_a_model_from_a_pipe_is_still_read(tmp_path: Path) -> None:
    """As a shell's <(...) gives it."""
    text = f"'{COMMAND}' inspect <(cat '{SAMPLES}/documented/scatter_1.onnx') -o out.txt && cat out.txt"
    done = subprocess.run(["bash", "-c", text], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert "Scatter" in done.stdout, done.stderr


def test_a_model_that_is_too_large_is_not_read(cli: Cli, tmp_path: Path) -> None:
    """Of sparse files, which take no space; a reader would take all of it as memory."""
    for name in ("model.onnx", "model.xml"):
        path = tmp_path / name
        with path.open("wb") as file:
            file.truncate(1 << 31)
        done = cli("validate", str(path))
        assert done.code == 3
        assert "cannot be read: it has 2147483648 bytes, expected at most 2147483647" in done.out + done.err
