"""Findings that are run again: the folder is data, whoever made it."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter.cases.case import Case
from ir_scatter.cases.judge import Judgement
from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.core.errors import UsageError
from ir_scatter.defects.base import Symptom
from ir_scatter.fuzz.conditions import FailureCondition
from ir_scatter.fuzz.explain import FuzzFinding
from ir_scatter.fuzz.findings import write_finding
from ir_scatter.fuzz.replay import replay
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import Reduction

EVIL = "import pathlib, sys; pathlib.Path(__file__).with_name('ran').touch(); sys.exit(1)"


def write(folder: Path, symptom: Symptom = Symptom.WRONG_VALUE, data: float = 0.0) -> Path:
    """Write a folder with one finding of the reference runner of ONNX, which computes it as documented."""
    spec = {str(key): row for key, row in SPECS.items()}["ScatterElements-18"]
    values, indices = np.full(3, data, np.float32), np.array([2, 0])
    case = Case(
        spec, values, indices, np.array([1, 2], np.float32), 0, {}, ELEMENT_TYPES["f32"],
        ELEMENT_TYPES["i64"], Reduction.NONE, decisions=(1,),
    )  # fmt: skip
    finding = FuzzFinding(
        "one", "onnx-reference", case.operator, symptom, FailureCondition(), 1, 0, case, Judgement(symptom)
    )
    write_finding(finding, folder, {})
    report(folder, finding.as_json())
    return folder / "one"


def report(folder: Path, *findings: Any) -> None:
    (folder / "fuzz.json").write_text(json.dumps({"schema": 1, "findings": list(findings)}))


def test_a_stored_case_is_judged_by_what_was_stored(tmp_path: Path) -> None:
    place = write(tmp_path)
    assert list(replay(tmp_path)) == [("one", "gone", "gone: as specified")]
    with np.load(place / "expected.npz") as stored:
        arrays = dict(stored)
    arrays["expected"] = arrays["expected"] + 1
    np.savez(place / "expected.npz", **arrays)
    (again,) = replay(tmp_path)
    assert again == ("one", "still there", "wrong-value: element [0] is 2.0, expected 3.0")


@pytest.mark.parametrize("is_older", [False, True])
def test_no_script_is_run_unless_that_is_asked_for(tmp_path: Path, is_older: bool) -> None:
    """A folder of an earlier version says what its case is in the script alone, which is read as data."""
    place = write(tmp_path)
    script = (place / "repro.py").read_text()
    (place / "repro.py").write_text(f"{EVIL}\n{script}")
    if is_older:
        (place / "case.json").unlink()
    assert [one.outcome for one in replay(tmp_path)] == ["gone"]
    assert not (place / "ran").exists()
    list(replay(tmp_path, run_scripts=True))
    assert (place / "ran").exists()


def test_modules_beside_the_model_are_not_imported(tmp_path: Path) -> None:
    place = write(tmp_path)
    for name in ("numpy", "onnx", "json", "sitecustomize"):
        (place / f"{name}.py").write_text(EVIL)
    assert [one.outcome for one in replay(tmp_path)] == ["gone"]
    assert [one.outcome for one in replay(tmp_path, run_scripts=True)] == ["gone"]
    assert not (place / "ran").exists()


def test_a_folder_without_a_report(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "fuzz.json").unlink()
    with pytest.raises(UsageError, match=r"holds no findings, expected a folder that `fuzz -o` wrote"):
        list(replay(tmp_path, run_scripts=True))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": 1, "findings": 1}', '{"schema": 1, "findings": [1]}',
             '{"schema": 1, "findings": [{}]}', '{"schema": 1, "findings": [{"signature": []}]}',
             '{"schema": 1, "findings": []}'],
)  # fmt: skip
def test_a_report_that_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "fuzz.json").write_text(text)
    with pytest.raises(UsageError, match=r"cannot be read|is not a report of fuzz|names none"):
        list(replay(tmp_path))


@pytest.mark.parametrize(
    "signature", ["..", ".", "", "/etc", "one/../one", "../one", "a\nb", "::error::x", "%0A", "a" * 300, "\0"]
)
@pytest.mark.parametrize("run_scripts", [False, True])
def test_a_name_that_leads_out_of_the_folder(signature: str, run_scripts: bool, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    write(inner)
    shutil.copytree(inner / "one", tmp_path / "one")
    for place in (tmp_path / "one", inner / "one", tmp_path, inner):
        (place / "repro.py").write_text(EVIL)
    report(inner, {"signature": signature, "runner": "onnx-reference", "symptom": "wrong-value"})
    shutil.rmtree(inner / "one")
    (found,) = replay(inner, run_scripts=run_scripts)
    assert (found.outcome, found.message) == ("cannot run", "its signature is not the name of a folder")
    assert not list(tmp_path.rglob("ran"))


def link(place: Path, name: str) -> None:
    path = place / name
    path.rename(place.parent.parent / f"elsewhere-{name}")
    path.symlink_to(place.parent.parent / f"elsewhere-{name}")


def damage(name: str, data: bytes = b"\0") -> Callable[[Path], None]:
    def change(place: Path) -> None:
        (place / name).write_bytes(data)

    return change


def changed_case(**changes: Any) -> Callable[[Path], None]:
    def change(place: Path) -> None:
        told = json.loads((place / "case.json").read_text())
        (place / "case.json").write_text(json.dumps(told | changes))

    return change


def pipe(place: Path) -> None:
    (place / "inputs.npz").unlink()
    os.mkfifo(place / "inputs.npz")


def outside(place: Path) -> None:
    """Let the model take its data from a file that is not in the folder."""
    import onnx

    model = onnx.load(place / "model.onnx")
    tensor = model.graph.initializer.add(name="secret", data_type=2, dims=[4])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="other.bin")
    (place / "other.bin").write_bytes(b"1234")
    onnx.save(model, place / "model.onnx")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda place: link(place.parent, "one"), "its folder is a link"),
        (lambda place: link(place, "model.onnx"), "model.onnx is a link"),
        (lambda place: link(place, "inputs.npz"), "inputs.npz is a link"),
        (lambda place: link(place, "expected.npz"), "expected.npz is a link"),
        (lambda place: link(place, "case.json"), "case.json is a link"),
        (lambda place: shutil.rmtree(place), "it has no folder"),
        (lambda place: (place / "model.onnx").unlink(), "it has no model"),
        (pipe, "inputs.npz cannot be read: it is not a regular file"),
        (damage("case.json"), "does not describe its inputs"),
        (damage("case.json", b"[]"), "does not describe its inputs"),
        (damage("model.onnx"), "the model cannot be read"),
        (damage("inputs.npz"), ""),
        (outside, "the model has weights in other files"),
        (
            changed_case(inputs={"data": {"type": {"name": "f31"}, "shape": []}}),
            "does not describe its inputs",
        ),
        (
            changed_case(inputs={"data": {"type": {"name": "f32"}, "shape": ["x"]}}),
            "does not describe its inputs",
        ),
        (changed_case(inputs=[]), "does not describe its inputs"),
        (changed_case(output='"""'), "does not describe its inputs"),
    ],
)
def test_a_folder_that_is_not_what_it_should_be(
    change: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    change(write(folder))
    (found,) = replay(folder)
    assert found.outcome == "cannot run"
    assert message in found.message


def test_names_that_would_end_a_string_of_the_program(tmp_path: Path) -> None:
    place = write(tmp_path)
    name = '"""); open("ran", "w") #\\'
    changed_case(inputs={name: {"type": {"name": "f32"}, "shape": []}})(place)
    (found,) = replay(tmp_path)
    assert found.outcome == "cannot run"
    assert name.split(";")[0] in found.message.replace("\\", "") or "KeyError" in found.message
    assert not Path("ran").exists()
