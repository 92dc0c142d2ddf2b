"""`ir-scatter convert` writes all of its files or none, never over what it was not told to, nor of mixed versions."""

import os
import resource
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ir_scatter import convert
from ir_scatter.core.errors import CannotWrite, UsageError
from tests.cli.conftest import COMMAND, Cli
from tests.cli.scatter_models import (
    chain,
    demand_equal,
    deprecated,
    external,
    files,
    findings,
    onnx_model,
    operators,
    slices,
)

_TO = ("--to", "ScatterNDUpdate")
_W = np.arange(6, dtype=np.float32)
_ITSELF = "is a file of the model itself, expected another one or --in-place"
_TAKEN = "exists, expected a path that is free or --overwrite"


def _stored(*locations: str) -> Path:
    """Write a model with two deprecated nodes and external data, and return its path."""
    path = deprecated(13).rename(_made("source") / "m.onnx")
    return external(
        path, {f"w{number}": (location, _W + number) for number, location in enumerate(locations)}
    )


def _made(name: str) -> Path:
    Path(name).mkdir()
    return Path(name)


def _refused(cli: Cli, *arguments: str | Path, code: int = 2) -> str:
    before = files()
    result = cli("convert", *arguments)
    assert (result.code, result.out) == (code, "")
    assert files() == before
    return result.err


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        *(
            (name, _ITSELF)
            for name in ("model.xml", "./model.xml", "sub/../model.xml", "link.xml", "hard.xml")
        ),
        *((name, _ITSELF) for name in ("binlink.xml", "binhard.xml")),
        ("model.XML", f"model.bin {_ITSELF}"),
        ("model.bin", "expected an output that ends in .xml"),
        ("new.onnx", "an IR cannot become an ONNX model, expected an output that ends in .xml"),
        ("new", "the output is 'new', expected an output that ends in .xml"),
        ("", "the output is '', expected an output that ends in .xml"),
        ("folder.xml", "'folder.xml' is a folder, expected the name of a file"),
        ("folder.xml/", "expected an output that ends in .xml"),
        ("nowhere/new.xml", "nowhere/new.xml cannot be written: there is no folder nowhere\n"),
        ("model.xml/new.xml", "model.xml/new.xml cannot be written: there is no folder model.xml\n"),
    ],
)
def test_an_output_that_cannot_be(output: str, sentence: str, overwrite: list[str], cli: Cli) -> None:
    source = slices()
    for name in ("sub", "folder.xml"):
        _made(name)
    Path("link.xml").symlink_to(source)
    Path("hard.xml").hardlink_to(source)
    Path("binlink.bin").symlink_to(source.with_suffix(".bin"))
    Path("binhard.bin").hardlink_to(source.with_suffix(".bin"))
    code = 3 if "no folder" in sentence else 2
    assert sentence in _refused(cli, source, "-o", output, *_TO, *overwrite, code=code)


def test_an_onnx_output_that_is_a_folder(cli: Cli) -> None:
    source = deprecated(13)
    for output in (".", "", "/"):
        error = _refused(cli, source, "-o", output, "--overwrite")
        assert "is a folder, expected the name of a file" in error


def test_files_that_exist(cli: Cli) -> None:
    source = slices()
    Path("new.bin").symlink_to("nowhere")
    assert f"new.bin {_TAKEN}" in _refused(cli, source, "-o", "new.xml", *_TO)
    for name in ("new.bin", "new.xml"):
        Path(name).unlink(missing_ok=True)
        Path(name).write_bytes(b"of somebody else")
        assert f"{name} {_TAKEN}" in _refused(cli, source, "-o", "new.xml", *_TO)
        assert cli("convert", source, "-o", "new.xml", *_TO, "--overwrite").code == 0
        demand_equal(source, Path("new.xml"))
        Path("new.bin").unlink()


def test_in_place_through_a_link(cli: Cli) -> None:
    source = slices(folder=_made("kept"))
    Path("link.xml").symlink_to(source)
    Path("link.bin").symlink_to(source.with_suffix(".bin"))
    before = source.read_bytes()
    assert cli("convert", "link.xml", "--in-place", *_TO).code == 0
    assert Path("link.xml").is_symlink()
    assert Path("link.bin").is_symlink()
    assert source.read_bytes() != before
    assert (operators(source), findings(source)) == (["ScatterNDUpdate-15"], [])


def test_what_was_appended_stays_where_it_is(cli: Cli) -> None:
    source = chain(["a", "b"])
    shutil.copy(source, "original.xml")
    shutil.copy("model.bin", "original.bin")
    for node, target in (("a", "ScatterNDUpdate"), ("b", "ScatterElementsUpdate")):
        weights = Path("model.bin").read_bytes()
        assert cli("convert", source, "--in-place", "--to", target, "--node", node).code == 0
        appended = Path("model.bin").read_bytes().removeprefix(weights)
        assert 0 < len(appended) < Path("model.bin").stat().st_size
        demand_equal(Path("original.xml"), source)
    assert findings(source) == []


def test_a_missing_bin(cli: Cli) -> None:
    source = slices()
    source.with_suffix(".bin").unlink()
    result = cli("convert", source, "-o", "new.xml", *_TO)
    assert (result.code, result.err) == (1, "")
    assert "refused: CVT111\n" in result.out
    assert "new constants cannot be appended" in result.out
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
    before = files()
    del before["source/m.onnx"]
    assert cli("convert", source, "-o", "source/new.onnx").code == 0
    assert cli("convert", source, "--in-place").code == 0
    after = files()
    assert after.items() >= before.items()
    assert set(after) == {*before, "source/m.onnx", "source/new.onnx"}


def test_external_data_that_is_there_already(cli: Cli) -> None:
    source = _stored("a/w.bin", "v.bin")
    _made("out")
    _made("out/a")
    there = Path("out/a/w.bin")
    taken = "out/a/w.bin exists, expected a path that is free, or to overwrite it"
    there.write_bytes(b"of somebody else")
    assert taken in _refused(cli, source, "-o", "out/new.onnx")
    assert cli("convert", source, "-o", "out/new.onnx", "--overwrite").code == 0
    assert there.read_bytes() == Path("source/a/w.bin").read_bytes()
    status = there.stat()
    assert cli("convert", source, "-o", "out/again.onnx").code == 0
    assert there.stat().st_ino == status.st_ino
    there.write_bytes(bytes(status.st_size))  # within one tick of the clock
    os.utime(there, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert taken in _refused(cli, source, "-o", "out/other.onnx")


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
    error = _refused(cli, _stored("../w.bin"), "-o", "new.onnx", code=3)
    assert "is outside of the model's folder, expected a file inside it" in error


def test_folders_are_made_with_all_that_is_in_them_or_not(cli: Cli) -> None:
    source = _stored("a/b/w.bin")
    Path("source/a/b/w.bin").write_bytes(bytes(9000))
    _made("out")
    done = subprocess.run(
        [COMMAND, "convert", source, "-o", "out/new.onnx"],
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)),
        timeout=60,
        check=False,
    )
    assert done.returncode == 3
    assert b"cannot be written: file too large" in done.stderr
    assert list(Path("out").iterdir()) == []
    Path("out/a").write_bytes(b"no folder")
    error = _refused(cli, source, "-o", "out/new.onnx", code=3)
    assert error == "ir-scatter: the folder out/a cannot be made: file exists\n"


# Sources that change meanwhile


def _of_version(dialect: str, folder: str, number: int) -> Path:
    """Write a model with weights; versions have the same sizes."""
    if dialect == "ir":
        source = slices(values=[number, 3], folder=_made(folder))
        source.write_text(source.read_text().replace('name="model"', f'name="m{number:04}"'))
        return source
    text = f"""
        <ir_version: 8, producer_name: "{number}", opset_import: ["" : 18]>
        g (int64[2,4] at, float[2,4] new) => (float[5,4] out) {{ out = ScatterElements (table, at, new) }}
    """
    path = onnx_model(text).rename(_made(folder) / "model.onnx")
    return external(path, {"table": ("model.data", np.full((5, 4), number))})


_DIALECTS = {"ir": ("ScatterElementsUpdate-12", "model.bin"), "onnx": ("ScatterND", "model.data")}


@pytest.mark.parametrize("dialect", _DIALECTS)
@pytest.mark.parametrize("is_exchanged", [False, True])
@pytest.mark.parametrize("is_model", [False, True])
@pytest.mark.parametrize("place", ["new", "old"])
def test_a_file_that_changed_before_writing(
    dialect: str, is_exchanged: bool, is_model: bool, place: str
) -> None:
    path, other = _of_version(dialect, "old", 1), _of_version(dialect, "other", 2)
    _made("new")
    target, weights = _DIALECTS[dialect]
    found = convert(path, target)
    assert found.converted
    name = path.name if is_model else weights
    before = os.stat(path.with_name(name))
    if is_exchanged:
        shutil.move(other.with_name(name), path.with_name(name))
    else:
        with path.with_name(name).open("r+b") as file:
            file.write(other.with_name(name).read_bytes())
        if (
            os.stat(path.with_name(name)).st_mtime_ns == before.st_mtime_ns
        ):  # clocks of file systems are coarse
            os.utime(path.with_name(name), ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    there = files()
    with pytest.raises(CannotWrite, match=rf"{name} .*: it has changed meanwhile"):
        found.write(Path(place, path.name), overwrite=True)
    assert files() == there


@pytest.mark.parametrize("dialect", _DIALECTS)
def test_files_that_change_while_they_are_copied(
    dialect: str, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """Another process puts both files of another version in place before the weights are copied."""
    path, other = _of_version(dialect, "old", 1), _of_version(dialect, "other", 2)
    _made("new")
    copy, (target, weights) = os.copy_file_range, _DIALECTS[dialect]

    def late(origin: int, file: int, size: int) -> int:
        copied = copy(origin, file, size)
        for name in (weights, path.name):
            if other.with_name(name).exists():
                other.with_name(name).replace(path.with_name(name))
        return copied

    monkeypatch.setattr(os, "copy_file_range", late)
    result = cli("convert", path, "--to", target, "-o", f"new/{path.name}")
    assert (result.code, result.out) == (3, ""), result.err
    assert "it has changed meanwhile" in result.err
    assert files(Path("new")) == {}


@pytest.mark.parametrize("dialect", _DIALECTS)
def test_a_link_leads_to_the_file_that_was_read(dialect: str) -> None:
    path = _of_version(dialect, "kept", 1)
    for file in path.parent.iterdir():
        Path(file.name).symlink_to(file)
    _made("new")
    convert(path.name, _DIALECTS[dialect][0]).write(Path("new", path.name))
    assert len(files(Path("new"))) == 2


# Files and nodes that cannot be edited in place


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1"])
def test_other_encodings(encoding: str, cli: Cli) -> None:
    source = chain(["a", "b"])
    text = f'<?xml version="1.0" encoding="{encoding}"?>\n' + source.read_text().replace('"a"', '"ä"')
    source.write_bytes(text.encode(encoding))
    assert cli("validate", source).code == 0
    before, sentence = files(), "model.xml is written in another encoding, expected UTF-8"
    for options in ([], ["--partial"], ["--dry-run"], ["--diff"]):
        result = cli("convert", source, "-o", "new.xml", *_TO, *options)
        lines = (result.out + result.err).splitlines()
        assert (result.code, lines[0].split()) == (1, ["model.xml", "refused:", "CVT111"])
        assert lines[1] == f"    {sentence}"
        assert lines[-1].endswith("; nothing written")
    result = cli("convert", source, "-o", "new.xml", *_TO, "--format", "json")
    assert f'"code": "CVT111",\n      "reason": "{sentence}"' in result.out
    assert files() == before


def test_nodes_that_cannot_be_replaced(cli: Cli) -> None:
    source = chain(["a", "b", "c"])

    def spoil(name: str) -> None:  # a second <data> is one that a reader must choose from
        tag = f'name="{name}" type="ScatterUpdate" version="opset3">'
        assert source.read_text().count(tag) == 1
        source.write_text(source.read_text().replace(tag, f"{tag}<data/><data/>"))

    spoil("b")
    result = cli("convert", source, "-o", "new.xml", *_TO)
    states = [line.split("  ")[-1] for line in result.out.splitlines() if "-> " in line]
    assert (result.code, states) == (1, ["safe", "refused: CVT111", "safe"])
    assert "    b cannot be replaced: it has <data> 2 times, expected once\n" in result.out
    assert not Path("new.xml").exists()
    result = cli("convert", source, "-o", "new.xml", *_TO, "--partial")
    assert result.code == 1
    assert result.out.endswith("2 nodes converted, 1 refused, verified on 8 cases each; new.xml written\n")
    assert operators(Path("new.xml")) == ["ScatterNDUpdate-15", "ScatterUpdate-3", "ScatterNDUpdate-15"]
    spoil("a")
    spoil("c")
    before = files()
    for options in (["-o", "newer.xml"], ["-o", "newer.xml", "--partial"], ["--in-place"]):
        result = cli("convert", source, *_TO, *options)
        assert result.code == 1
        assert "CVT111\n    a cannot be replaced: it has <data> 2 times" in result.out
        assert files() == before


def test_calls_of_a_function_that_give_different_attributes(cli: Cli) -> None:
    source = onnx_model("""
        <ir_version: 8, opset_import: ["" : 18, "own" : 1]>
        g (float[4,5] data, int64[2,5] at, float[2,5] rows) => (float[4,5] out) {
          a = own.F <where = 0> (data, at, rows)
          out = own.F <where = 1> (a, at, rows)
        }
        <domain: "own", opset_import: ["" : 18]>
        F <where> (data, at, rows) => (o) { o = ScatterElements <axis: int = @where> (data, at, rows) }
    """)
    before = files()
    result = cli("convert", source, "-o", "new.onnx", "--to", "ScatterND")
    assert (result.code, result.err) == (1, "")
    assert "refused: CVT1" in result.out
    assert files() == before


@pytest.mark.parametrize("kind", ["ir", "onnx"])
def test_of_two_conversions_to_one_new_path_the_second_is_refused(
    kind: str, cli: Cli, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have found the path free; the first is done while the second writes its temporary files."""
    source = slices(axis=0) if kind == "ir" else deprecated(13)
    target = Path(f"new{source.suffix}")
    to = "ScatterNDUpdate" if kind == "ir" else "ScatterElements"
    first, second = convert(source, to=to), convert(source, to=to)
    real = os.fsync

    def other_first(file: int) -> None:
        monkeypatch.setattr(os, "fsync", real)
        first.write(target)
        target.write_bytes(target.read_bytes() + b"\n")
        real(file)

    monkeypatch.setattr(os, "fsync", other_first)
    with pytest.raises(UsageError, match="exists, expected a path that is free or overwrite=True"):
        second.write(target)
    assert target.read_bytes().endswith(b"\n")
    assert not list(elsewhere.glob(".*"))
    second.write(target, overwrite=True)
    assert operators(target)[0].startswith(to)


def test_outputs_of_a_run_replace_none_that_appear_meanwhile(
    cli: Cli, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '<ir_version: 8, opset_import: ["" : 18]> g (float[4] x) => (float[4] y) { y = Relu (x) }'
    path, real = onnx_model(text), os.fsync

    def other_first(file: int) -> None:
        Path("out.npz").write_bytes(b"other")
        real(file)

    monkeypatch.setattr(os, "fsync", other_first)
    result = cli("run", path, "-o", "out.npz")
    assert result.code == 2
    assert _TAKEN in result.err
    assert Path("out.npz").read_bytes() == b"other"
