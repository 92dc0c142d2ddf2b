import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ir_scatter import BadFeed, evaluate_model
from ir_scatter.evaluate.archive import read_arrays
from tests.models.ir_text import IrText
from tests.models.onnx_text import save
from tests.ops.strange_arrays import FORMS

GOOD: Mapping[str, Any] = {"x": np.zeros((2, 3), np.float32), "at": np.zeros(2, np.int64)}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    text = """<ir_version: 10, opset_import: ["" : 18]>
        g (float[N, 3] x, int64[2] at, float[1] shift = {2}) => (float[N, 3] y, float[2, 3] z) {
          y = Add (x, shift)
          z = Gather (x, at)
        }"""
    return save(text, tmp_path / "model.onnx")


def test_an_input_with_a_default_may_be_left_out(model: Path) -> None:
    assert evaluate_model(model, GOOD)["y"].tolist() == [[2, 2, 2], [2, 2, 2]]
    found = evaluate_model(model, {**GOOD, "shift": np.ones(1, np.float32)})
    assert found["y"].tolist() == [[1, 1, 1], [1, 1, 1]]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"x": None}, "no array is given for x"),
        ({"x": None, "at": None}, "no array is given for x, at"),
        ({"more": np.zeros(1)}, "the model has no input 'more', expected x, at, shift"),
        ({"x": np.zeros((2, 4), np.float32)}, "x has shape [2, 4], expected [N, 3]"),
        ({"x": np.zeros(3, np.float32)}, "x has shape [3], expected [N, 3]"),
        ({"x": np.zeros((2, 3))}, "x is float64, expected float32"),
        ({"at": [0.0, 1.0]}, "at is float64, expected int64"),
        ({"at": ["a", "b"]}, "expected int64"),
        ({"shift": np.zeros(2, np.float32)}, "shift has shape [2], expected [1]"),
    ],
)
def test_wrong_feeds(changes: Mapping[str, Any], sentence: str, model: Path) -> None:
    feeds = {name: array for name, array in {**GOOD, **changes}.items() if array is not None}
    with pytest.raises(BadFeed) as raised:
        evaluate_model(model, feeds)
    assert sentence in str(raised.value)


def _ir(folder: Path, type: str, shape: tuple[int | str, ...] | None) -> str:
    ir = IrText()
    x = ir.parameter("layer", type, shape, ports=' names="b,a"')
    same = ir.add("same", "Identity", "opset16", [x], [(type, shape or ())])
    ir.add("r", "Result", "opset1", [same], [])
    return ir.write(folder)


@pytest.mark.parametrize("name", ["layer", "a", "b"])
def test_every_name_of_an_input_will_do(name: str, tmp_path: Path) -> None:
    path = _ir(tmp_path, "f32", (1,))
    assert evaluate_model(path, {name: np.ones(1, np.float32)})["same"].tolist() == [1]


def test_two_names_of_one_input(tmp_path: Path) -> None:
    array = np.ones(1, np.float32)
    with pytest.raises(BadFeed, match="'a' and 'layer' are the same input"):
        evaluate_model(_ir(tmp_path, "f32", (1,)), {"a": array, "layer": array})


@pytest.mark.parametrize(
    ("type", "shape", "array"),
    [
        ("f32", ("2..5", 3), np.zeros((2, 3), np.float32)),
        ("f32", ("2..5", 3), np.zeros((5, 3), np.float32)),
        ("f32", None, np.zeros((1, 2, 3), np.float32)),
        ("bf16", (1,), np.array([1.5], ml_dtypes.bfloat16)),
        ("string", (2,), np.array(["a", "bc"])),
        ("string", (2,), np.array(["a", "bc"], object)),
        ("string", (2,), ["a", "bc"]),
    ],
)
def test_what_an_input_takes(type: str, shape: Any, array: Any, tmp_path: Path) -> None:
    found = evaluate_model(_ir(tmp_path, type, shape), {"a": array})["same"]
    assert found.dtype == (object if type == "string" else array.dtype)
    assert found.tolist() == np.asarray(array).tolist()


@pytest.mark.parametrize(
    ("type", "shape", "array", "sentence"),
    [
        ("f32", ("2..5", 3), np.zeros((1, 3), np.float32), r"expected \[2..5, 3\]"),
        ("f32", ("2..5", 3), np.zeros((6, 3), np.float32), r"expected \[2..5, 3\]"),
        ("string", (2,), np.array([1, 2]), "is int64, expected strings"),
        ("string", (2,), np.array(["a", 1], object), "holds more than strings"),
    ],
)
def test_what_an_input_does_not_take(
    type: str, shape: Any, array: Any, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(BadFeed, match=sentence):
        evaluate_model(_ir(tmp_path, type, shape), {"a": array})


def test_feeds_may_have_any_dtype_of_their_type(model: Path, tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    expected = evaluate_model(model, {"x": values, "at": [1, 0]})
    np.savez(tmp_path / "big.npz", x=values.astype(">f4"), at=np.array([1, 0], ">i8"))
    stored = read_arrays(tmp_path / "big.npz")
    assert {array.dtype for array in stored.values()} == {np.dtype(np.float32), np.dtype(np.int64)}
    for form in FORMS.values():
        feeds = {"x": form(values), "at": form(np.array([1, 0]))}
        found = evaluate_model(model, feeds)
        for name, array in found.items():
            assert array.tolist() == expected[name].tolist()
            assert array.dtype == np.float32
            assert array.dtype.isbuiltin == 1
            assert not np.may_share_memory(array, feeds["x"])


def test_a_list_that_no_type_holds_is_refused(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
        g (double[2] x) => (double[2] y) { y = Identity (x) }"""
    path = save(text, tmp_path / "double.onnx")
    assert evaluate_model(path, {"x": [2.0, -1.0]})["y"].tolist() == [2, -1]
    with pytest.raises(BadFeed, match="x holds -1 and 9223372036854775809, expected whole numbers"):
        evaluate_model(path, {"x": [2**63 + 1, -1]})


def test_an_archive_may_be_big_endian(tmp_path: Path) -> None:
    kind = np.dtype(ml_dtypes.bfloat16)
    array = np.array([1.5, -2], kind)
    np.savez(tmp_path / "in.npz", swapped=array.astype(kind.newbyteorder(">")), plain=array)
    found = read_arrays(tmp_path / "in.npz")
    assert found["swapped"].tobytes() == found["plain"].tobytes() == array.tobytes()


def test_an_archive_that_unpacks_to_more_than_the_memory(tmp_path: Path) -> None:
    """A few bytes may say so, whatever they are: nothing is unpacked."""
    path = tmp_path / "large.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.npy", bytes(1000))
        archive.filelist[0].file_size = 1 << 50
    with pytest.raises(
        BadFeed, match=rf"large\.npz: its arrays have {1 << 50} bytes, expected at most \d+, "
    ):
        read_arrays(path)
