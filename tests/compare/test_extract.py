"""Models of single nodes that differ: they must show the difference again."""

import shlex
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ir_scatter.compare.extract import extract
from ir_scatter.compare.measure import Tolerances, Verdict
from ir_scatter.compare.result import CompareSettings, Level
from ir_scatter.compare.run import compare
from ir_scatter.core.errors import CannotWrite, UsageError
from ir_scatter.core.parameters import spelled
from ir_scatter.evaluate.archive import fit_types, read_arrays
from ir_scatter.formats import dataflow_of
from ir_scatter.reading import read
from ir_scatter.validate import validate
from ir_scatter_cli.spelling import OptionSpelling
from tests.compare.models import Array, Inputs, floats, only, run, write_node
from tests.compare.planted import FakeRunner, wrong_at
from tests.models.ir_text import IrText

Operands = list[Array]


def extracted(path: Path, feeds: Inputs, folder: Path, **settings: Any) -> list[Path]:
    found = compare(path, [FakeRunner("fake", wrong_at(0))], CompareSettings(**settings), feeds=feeds)
    lines = list(extract(found, folder))
    assert all(" extracted to " in line for line in lines)
    return [Path(line.split(" extracted to ")[1]) for line in lines]


def feeds_of(model: Path) -> Inputs:
    return fit_types(read_arrays(model.parent / "inputs.npz"), dataflow_of(read(model)).inputs)


CASES: dict[str, tuple[str, str | int, Operands, tuple[str, ...], dict[str, Any]]] = {
    "ir": ("ScatterUpdate", "opset3", [floats(3, 4), np.array([2]), -floats(1, 4), np.array(0)], ("axis",), {}),
    "constant indices": (
        "ScatterElementsUpdate", "opset12",
        [np.arange(6).reshape(2, 3), np.array([[1]]), np.array([[7]]), np.array(-1)], ("axis", "indices"),
        {"reduction": "sum", "use_init_val": "false"},
    ),
    "f16": (
        "ScatterNDUpdate", "opset15", [np.ones(3, np.float16), np.array([[1]]), np.ones(1, np.float16)], (),
        {"reduction": "max"},
    ),
    "bf16": (
        "ScatterNDUpdate", "opset4",
        [floats(3).astype(ml_dtypes.bfloat16), np.array([[1]]), floats(1).astype(ml_dtypes.bfloat16)], (), {},
    ),
    "onnx": (
        "ScatterElements", 18, [floats(3, 4), np.array([[1, 2]]), -floats(1, 2)], (),
        {"axis": 1, "reduction": "add"},
    ),
    "onnx constant": ("ScatterND", 13, [floats(3), np.array([[1]]), floats(1)], ("indices",), {}),
}  # fmt: skip


def write_case(folder: Path, name: str) -> tuple[Path, Inputs]:
    type, opset, inputs, constants, attributes = CASES[name]
    return write_node(folder, type, opset, inputs, constants, **attributes)


@pytest.mark.parametrize("name", CASES)
def test_a_node_comes_back_as_it_was(tmp_path: Path, name: str) -> None:
    path, feeds = write_case(tmp_path, name)
    (model,) = extracted(path, feeds, tmp_path / "out")
    assert sorted(file.name for file in model.parent.iterdir()) == sorted(
        {"README.txt", "inputs.npz", model.name} | ({"model.bin"} if model.suffix == ".xml" else set())
    )
    assert [found.code for found in validate(read(model)) if found.severity == "error"] == []
    again = feeds_of(model)
    assert set(again) == set(feeds)
    assert all(
        np.array_equal(again[key], feeds[key]) and again[key].dtype == feeds[key].dtype for key in feeds
    )
    found = compare(model, [FakeRunner("fake", wrong_at(0))], CompareSettings(), feeds=again)
    assert only(found, Level.NODE, "fake").measure.verdict is Verdict.MISMATCH


def test_the_command_has_what_was_asked_for(tmp_path: Path) -> None:
    path, feeds = write_case(tmp_path, "ir")
    settings = {"precision": "f16", "tolerances": Tolerances(["node=0.5,0.25"])}
    (model,) = extracted(path, feeds, tmp_path / "from python", **settings)
    call = 'compare("model.xml", on=["numpy", "fake"], inputs="inputs.npz", precision="f16", tolerance="0.5,0.25")'
    assert call in (model.parent / "README.txt").read_text()
    with spelled(OptionSpelling("compare").spell):
        (model,) = extracted(path, feeds, tmp_path / "out", **settings)
    text = (model.parent / "README.txt").read_text()
    (command,) = [line.strip() for line in text.splitlines() if line.startswith("    ir-scatter")]
    assert shlex.split(command) == [
        *("ir-scatter", "compare", "model.xml", "--on", "numpy", "--on", "fake", "--inputs", "inputs.npz"),
        *("--precision", "f16", "--tolerance", "0.5,0.25"),
    ]
    assert "1 of 12 differ" in text
    assert "[0, 0] is 1.25, expected 0.25" in text


def test_names_that_are_no_file_names(tmp_path: Path) -> None:
    names = ["../../up", "../../up ", "a" * 300, "\u202e/x", "con"]
    ir = IrText()
    ports = [ir.parameter("data", shape=(3,)), ir.parameter("indices", "i64", (1,))]
    ports += [ir.parameter("updates", shape=(1,)), ir.const("axis", "i64", 0)]
    for name in names:
        written = ir.add(name, "ScatterUpdate", "opset3", ports, [("f32", (3,))])
        ir.add(f"r{len(ir.layers)}", "Result", "opset1", [written], [])
    feeds = {"data": floats(3), "indices": np.array([1]), "updates": floats(1)}
    models = extracted(Path(ir.write(tmp_path)), feeds, tmp_path / "out")
    assert len({model.parent for model in models}) == len(names)
    assert all(model.parent.parent == tmp_path / "out" for model in models)


def test_only_mismatches_and_each_node_once(tmp_path: Path) -> None:
    path, feeds = write_case(tmp_path, "ir")
    found = compare(
        path, [FakeRunner("a"), FakeRunner("b", wrong_at(0))], CompareSettings(cases=3), feeds=feeds
    )
    assert len(list(extract(found, tmp_path / "out"))) == 1
    assert (
        list(extract(compare(path, [FakeRunner("a")], CompareSettings(), feeds=feeds), tmp_path / "none"))
        == []
    )
    assert not (tmp_path / "none").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite, match="cannot be written"):
        extracted(path, feeds, tmp_path / "file")


@pytest.mark.openvino
def test_a_plugin_shows_the_same_difference(tmp_path: Path) -> None:
    inputs = [np.array([2**40 + 1, 2, 3]), np.array([1]), np.array([5]), np.array(0)]
    path, feeds = write_node(tmp_path, "ScatterUpdate", "opset3", inputs, ("indices", "axis"))
    whole = run(path, ["CPU"], feeds)
    (line,) = extract(whole, tmp_path / "out")
    model = Path(line.split(" extracted to ")[1])
    assert set(feeds_of(model)) == {"data", "updates"}
    then, now = (
        only(one, Level.NODE, "openvino:CPU").measure for one in (whole, run(model, ["CPU"], feeds_of(model)))
    )
    assert (then.verdict, then.mismatched, then.worst) == (now.verdict, now.mismatched, now.worst)


def test_models_that_came_in_between_stay(tmp_path: Path) -> None:
    """What was extracted before is replaced; what is not of that kind stays unless it may be overwritten."""
    path, feeds = write_node(tmp_path, *CASES["ir"][:4])
    found = compare(path, [FakeRunner("fake", wrong_at(0))], CompareSettings(), feeds=feeds)
    (line,) = extract(found, tmp_path / "out", overwrite=False)
    (again,) = extract(found, tmp_path / "out", overwrite=False)
    assert line == again
    model = Path(line.split(" extracted to ")[1])
    model.write_text("mine")
    (model.parent / "README.txt").unlink()
    (model.parent / "inputs.npz").unlink()
    with pytest.raises(UsageError, match="exists, expected a path that is free or overwrite=True"):
        list(extract(found, tmp_path / "out", overwrite=False))
    assert model.read_text() == "mine"
    assert not (model.parent / "inputs.npz").exists()
    assert list(extract(found, tmp_path / "out")) == [line]
    assert model.read_text() != "mine"
