"""A conversion from files that somebody writes over meanwhile is refused, whole: versions do not mix."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ir_scatter import convert
from ir_scatter.core.errors import CannotWrite
from tests.cli.conftest import Cli
from tests.rules.ir_text import IrText

Write = Callable[[Path, bool], Path]


def onnx_model(folder: Path, is_other: bool = False) -> Path:
    """Write a model with external data; the other one has the same sizes, and other numbers."""
    rows = np.full((5, 4), 2.0 if is_other else 1.0, np.float32)
    node = helper.make_node("ScatterElements", ["table", "at", "new"], ["out"], name="scatter")
    info = helper.make_tensor_value_info
    inputs = [info("at", TensorProto.INT64, [2, 4]), info("new", TensorProto.FLOAT, [2, 4])]
    graph = helper.make_graph(
        [node],
        "g",
        inputs,
        [info("out", TensorProto.FLOAT, [5, 4])],
        [numpy_helper.from_array(rows, "table")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    model.producer_name = "b" if is_other else "a"
    path = folder / "model.onnx"
    (folder / "model.data").unlink(missing_ok=True)
    onnx.save(model, path, save_as_external_data=True, location="model.data", size_threshold=0)
    return path


def ir_model(folder: Path, is_other: bool = False) -> Path:
    ir = IrText()
    rows = ir.const("table", "f32", np.full((5, 4), 2.0 if is_other else 1.0))
    at, new = ir.parameter("at", "i64", [2, 4]), ir.parameter("new", "f32", [2, 4])
    axis = ir.const("axis", "i64", 0)
    out = ir.add("scatter", "ScatterElementsUpdate", "opset3", [rows, at, new, axis], [("f32", [5, 4])], {})
    ir.add("result", "Result", "opset1", [out], [])
    return Path(ir.write(folder, "model"))


FORMATS = {
    "onnx": (onnx_model, "ScatterND", "model.data"),
    "ir": (ir_model, "ScatterElementsUpdate-12", "model.bin"),
}


def over(path: Path, data: bytes) -> None:
    """Write a file over, in place: it keeps its inode and its size."""
    before = path.stat()
    with path.open("r+b") as file:
        file.write(data)
    if path.stat().st_mtime_ns == before.st_mtime_ns:  # clocks of file systems are coarse
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


def exchange(path: Path, data: bytes) -> None:
    other = path.with_name("new")
    other.write_bytes(data)
    other.replace(path)


@pytest.fixture(params=FORMATS)
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("how", [over, exchange])
@pytest.mark.parametrize("is_model", [False, True])
@pytest.mark.parametrize("place", ["out", ""])
def test_a_file_that_changed_before_writing(
    dialect: str, tmp_path: Path, how: Callable[[Path, bytes], None], is_model: bool, place: str
) -> None:
    make, target, weights = FORMATS[dialect]
    (tmp_path / "other").mkdir()
    (tmp_path / "out").mkdir()
    other, path = make(tmp_path / "other", True), make(tmp_path, False)
    found = convert(path, target)
    assert found.converted
    name = path.name if is_model else weights
    data = other.with_name(name).read_bytes()
    how(tmp_path / name, data)
    before = {one: one.read_bytes() for one in tmp_path.rglob("*") if one.is_file()}
    with pytest.raises(CannotWrite, match=rf"{name} .*: it has changed meanwhile"):
        found.write(tmp_path / place / path.name, overwrite=True)
    assert {one: one.read_bytes() for one in tmp_path.rglob("*") if one.is_file()} == before


def test_files_that_change_while_they_are_copied(
    dialect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """Another process puts both files of another version in place before the weights are copied."""
    make, target, weights = FORMATS[dialect]
    (tmp_path / "out").mkdir()
    (tmp_path / "other").mkdir()
    other, path = make(tmp_path / "other", True), make(tmp_path, False)
    copy = os.copy_file_range

    def late(origin: int, file: int, size: int) -> int:
        copied = copy(origin, file, size)
        for name in (weights, path.name):
            if (other.parent / name).exists():
                (other.parent / name).replace(path.with_name(name))
        return copied

    monkeypatch.setattr(os, "copy_file_range", late)
    result = cli("convert", path, "--to", target, "-o", tmp_path / "out" / path.name)
    assert (result.code, result.out) == (3, ""), result.err
    assert "it has changed meanwhile" in result.err
    assert list((tmp_path / "out").iterdir()) == []


def test_a_link_leads_to_the_file_that_was_read(dialect: str, tmp_path: Path) -> None:
    make, target, _ = FORMATS[dialect]
    (tmp_path / "kept").mkdir()
    (tmp_path / "out").mkdir()
    kept = make(tmp_path / "kept", False)
    for file in kept.parent.iterdir():
        (tmp_path / file.name).symlink_to(file)
    path = tmp_path / kept.name
    convert(path, target).write(tmp_path / "out" / path.name)
    assert len(list((tmp_path / "out").iterdir())) == 2
