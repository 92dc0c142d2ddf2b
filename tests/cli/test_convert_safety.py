"""`ir-scatter convert` writes all of its files or none, and never over what it was not told to."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import COMMAND, Cli, run_script
from tests.cli.scatter_models import (
    chain,
    demand_equal,
    deprecated,
    external,
    files,
    findings,
    operators,
    slices,
)

_TO = ("--to", "ScatterNDUpdate")
_W = np.arange(6, dtype=np.float32)


def _stored(*locations: str, folder: str = "source") -> Path:
    """Write a model with two deprecated nodes and external data, and return its path."""
    Path(folder).mkdir()
    path = deprecated(13).rename(Path(folder) / "m.onnx")
    return external(
        path, {f"w{number}": (location, _W + number) for number, location in enumerate(locations)}
    )


def _refused(cli: Cli, *arguments: str | Path, code: int = 2) -> str:
    before = files()
    result = cli("convert", *arguments)
    assert (result.code, result.out) == (code, "")
    assert files() == before
    return result.err


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
@pytest.mark.parametrize(
    "output",
    ["model.xml", "./model.xml", "sub/../model.xml", "link.xml", "hard.xml", "binlink.xml", "binhard.xml"],
)
def test_the_source_is_not_written_over(output: str, overwrite: list[str], cli: Cli) -> None:
    source = slices()
    Path("sub").mkdir()
    Path("link.xml").symlink_to(source)
    Path("hard.xml").hardlink_to(source)
    Path("binlink.bin").symlink_to(source.with_suffix(".bin"))
    Path("binhard.bin").hardlink_to(source.with_suffix(".bin"))
    error = _refused(cli, source, "-o", output, *_TO, *overwrite)
    assert "is a file of the model itself, expected another one or --in-place" in error


def test_an_output_that_is_the_weights(cli: Cli) -> None:
    source = slices()
    assert "expected an output that ends in .xml" in _refused(
        cli, source, "-o", "model.bin", *_TO, "--overwrite"
    )
    error = _refused(cli, source, "-o", "model.XML", *_TO, "--overwrite")
    assert "model.bin is a file of the model itself" in error


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("new.onnx", "an IR cannot become an ONNX model, expected an output that ends in .xml"),
        ("new", "it is 'new', expected an output that ends in .xml"),
        ("", "it is '', expected an output that ends in .xml"),
        ("folder.xml", "'folder.xml' is a folder, expected the name of a file"),
        ("folder.xml/", "expected an output that ends in .xml"),
    ],
)
def test_an_output_of_another_kind(output: str, sentence: str, cli: Cli) -> None:
    Path("folder.xml").mkdir()
    assert sentence in _refused(cli, slices(), "-o", output, *_TO, "--overwrite")


def test_an_onnx_output_that_is_a_folder(cli: Cli) -> None:
    source = deprecated(13)
    for output in (".", "", "/"):
        assert "is a folder, expected the name of a file" in _refused(
            cli, source, "-o", output, "--overwrite"
        )


@pytest.mark.parametrize("name", ["new.xml", "new.bin"])
def test_files_that_exist(name: str, cli: Cli) -> None:
    source = slices()
    Path(name).write_bytes(b"of somebody else")
    error = _refused(cli, source, "-o", "new.xml", *_TO)
    assert f"{name} exists, expected a path that is free or --overwrite" in error
    assert cli("convert", source, "-o", "new.xml", *_TO, "--overwrite").code == 0
    demand_equal(source, Path("new.xml"))


def test_a_dangling_link_exists(cli: Cli) -> None:
    source = slices()
    Path("new.bin").symlink_to("nowhere")
    assert "new.bin exists" in _refused(cli, source, "-o", "new.xml", *_TO)


def test_a_folder_that_does_not_exist(cli: Cli) -> None:
    source = slices()
    for output in ("nowhere/new.xml", "model.xml/new.xml"):
        error = _refused(cli, source, "-o", output, *_TO, code=3)
        assert error == f"ir-scatter: {output} cannot be written: there is no folder {Path(output).parent}\n"


def test_in_place_through_a_link(cli: Cli) -> None:
    source = slices(folder=_made("kept"))
    Path("link.xml").symlink_to(source)
    Path("link.bin").symlink_to(source.with_suffix(".bin"))
    before = source.read_bytes()
    assert cli("convert", "link.xml", "--in-place", *_TO).code == 0
    assert Path("link.xml").is_symlink()
    assert Path("link.bin").is_symlink()
    assert source.read_bytes() != before
    assert operators(source) == ["ScatterNDUpdate-15"]
    assert findings(source) == []


def _made(name: str) -> Path:
    Path(name).mkdir()
    return Path(name)


def test_what_was_appended_stays_where_it_is(cli: Cli) -> None:
    source = chain("model", ["a", "b"])
    shutil.copy(source, "original.xml")
    shutil.copy("model.bin", "original.bin")
    sizes = [Path("model.bin").stat().st_size]
    for node, target in (("a", "ScatterNDUpdate"), ("b", "ScatterElementsUpdate")):
        weights = Path("model.bin").read_bytes()
        assert cli("convert", source, "--in-place", "--to", target, "--node", node).code == 0
        assert Path("model.bin").read_bytes().startswith(weights)
        sizes.append(Path("model.bin").stat().st_size)
        demand_equal(Path("original.xml"), source)
    assert sizes == sorted(set(sizes))
    assert findings(source) == []


def test_a_missing_bin(cli: Cli) -> None:
    source = slices()
    source.with_suffix(".bin").unlink()
    result = cli("convert", source, "-o", "new.xml", *_TO)
    assert (result.code, result.err) == (1, "")
    assert "refused: CVT111\n" in result.out
    assert "there is no place for new ones" in result.out
    assert not Path("new.xml").exists()
    result = cli("convert", source, "-o", "new.xml", "--to", "ScatterUpdate")
    assert result.code == 0
    assert result.out.splitlines()[0] == "note: there is no model.bin, so none was written"
    assert Path("new.xml").read_bytes() == source.read_bytes()
    assert not Path("new.bin").exists()


def test_external_data_goes_along(cli: Cli) -> None:
    source = _stored("w.bin", "a/b/w.bin", "c/../d.bin")
    _made("out")
    result = cli("convert", source, "-o", "out/new.onnx")
    assert (result.code, result.err) == (0, "")
    for name in ("w.bin", "a/b/w.bin", "d.bin"):
        assert Path("out", name).read_bytes() == Path("source", name).read_bytes()
    assert Path("out/c").is_dir()
    assert operators(Path("out/new.onnx")) == ["ScatterElements-13"] * 2
    assert findings(Path("out/new.onnx")) == []


def test_external_data_beside_the_source_stays(cli: Cli) -> None:
    source = _stored("w.bin")
    before = {name: data for name, data in files().items() if name != "source/m.onnx"}
    assert cli("convert", source, "-o", "source/new.onnx").code == 0
    assert cli("convert", source, "--in-place").code == 0
    after = files()
    assert {name: after[name] for name in before} == before
    assert set(after) == {*before, "source/m.onnx", "source/new.onnx"}


def test_a_collision_of_external_data(cli: Cli) -> None:
    source = _stored("a/w.bin", "v.bin")
    _made("out")
    _made("out/a")
    Path("out/a/w.bin").write_bytes(b"of somebody else")
    error = _refused(cli, source, "-o", "out/new.onnx")
    assert "out/a/w.bin exists, expected a path that is free, or to overwrite it" in error
    assert cli("convert", source, "-o", "out/new.onnx", "--overwrite").code == 0
    assert Path("out/a/w.bin").read_bytes() == Path("source/a/w.bin").read_bytes()


def test_the_same_external_data_is_no_collision(cli: Cli) -> None:
    source = _stored("w.bin")
    _made("out")
    shutil.copy("source/w.bin", "out/w.bin")
    status = Path("out/w.bin").stat()
    assert cli("convert", source, "-o", "out/new.onnx").code == 0
    assert Path("out/w.bin").stat().st_ino == status.st_ino
    Path("out/w.bin").write_bytes(bytes(status.st_size))  # within one tick of the clock
    os.utime("out/w.bin", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert "out/w.bin exists" in _refused(cli, source, "-o", "out/other.onnx")


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("source/w.bin", "is a file of the model itself"),
        ("out/link.onnx", "is a file of the model itself"),
        ("out/w.bin", "is the name of the model's weights, expected another one"),
    ],
)
def test_an_output_that_is_external_data(output: str, sentence: str, cli: Cli) -> None:
    source = _stored("w.bin")
    _made("out")
    Path("out/link.onnx").symlink_to("../source/w.bin")
    assert f"{output} {sentence}" in _refused(cli, source, "-o", output, "--overwrite")


def test_missing_external_data(cli: Cli) -> None:
    source = _stored("w.bin", "v.bin")
    Path("source/w.bin").unlink()
    _made("out")
    result = cli("convert", source, "-o", "out/new.onnx")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[-2:] == [
        "note: 'w.bin' cannot be read (no such file or directory)",
        "2 nodes converted, verified on 8 cases each; out/new.onnx written",
    ]
    assert sorted(files(Path("out"))) == ["new.onnx", "v.bin"]
    assert cli("convert", source, "--in-place").code == 0


def test_external_data_outside_of_the_folder(cli: Cli) -> None:
    source = _stored("../w.bin")
    error = _refused(cli, source, "-o", "new.onnx", code=3)
    assert "is outside of the model's folder, expected a file inside it" in error


def test_a_folder_that_cannot_be_made(cli: Cli) -> None:
    source = _stored("a/w.bin")
    _made("out")
    Path("out/a").write_bytes(b"no folder")
    error = _refused(cli, source, "-o", "out/new.onnx", code=3)
    assert error == "ir-scatter: the folder out/a cannot be made: file exists\n"


def _demand_no_space(*arguments: str | Path) -> bytes:
    """Convert where files may not grow large, and return what is said of it; no file may change."""
    before = files()
    done = subprocess.run(
        [COMMAND, "convert", *arguments],
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)),
        timeout=60,
        check=False,
    )
    assert (done.returncode, files()) == (3, before)
    return done.stderr


@pytest.mark.parametrize("options", [["-o", "new.xml"], ["--in-place"]])
def test_no_space(options: list[str], cli: Cli) -> None:
    source = chain("model", [f"node_{number}" for number in range(20)])
    assert b"cannot be written: file too large" in _demand_no_space(source, *_TO, *options)


def test_no_space_takes_back_new_folders() -> None:
    source = _stored("a/b/w.bin")
    Path("source/a/b/w.bin").write_bytes(bytes(9000))
    _made("out")
    _demand_no_space(source, "-o", "out/new.onnx")
    assert list(Path("out").iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_no_permission(cli: Cli) -> None:
    source = slices()
    _made("out").chmod(0o500)
    error = _refused(cli, source, "-o", "out/new.xml", *_TO, code=3)
    assert "cannot be written: permission denied" in error


@pytest.mark.skipif(sys.platform != "linux", reason="what stays behind depends on the system")
def test_a_kill_leaves_the_old_or_the_new() -> None:
    source = chain("model", [f"node_{number}" for number in range(40)])
    old = files()
    assert run_script("convert", source, "-o", "new.xml", *_TO, "--verify", "0").code == 0
    new = {name.replace("new.", "model."): data for name, data in files().items() if name.startswith("new.")}
    for name in ("new.xml", "new.bin"):
        Path(name).unlink()
    command: list[str | Path] = [COMMAND, "convert", source, "--in-place", *_TO, "--verify", "0"]
    started = time.monotonic()
    subprocess.run(command, capture_output=True, check=True, timeout=60)
    whole = time.monotonic() - started
    for step in range(8):
        for name, data in old.items():
            Path(name).write_bytes(data)
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(whole * (0.5 + step * 0.07))
        child.send_signal(signal.SIGKILL)
        child.wait(60)
        found = {name: data for name, data in files().items() if not name.endswith(".tmp")}
        assert found["model.xml"] in (old["model.xml"], new["model.xml"])
        # the weights come first: those of the new model hold all that the old one needs
        assert found["model.bin"] in (old["model.bin"], new["model.bin"])
        assert found["model.xml"] == old["model.xml"] or found["model.bin"] == new["model.bin"]
        assert findings(source) == []
    for name, data in old.items():
        Path(name).write_bytes(data)
    assert subprocess.run(command, capture_output=True, check=True, timeout=60).returncode == 0
    assert files() == new
