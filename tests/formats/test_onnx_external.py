"""Tensors in files beside the model: found, missing, too short, outside of the folder."""

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from ir_scatter import formats
from ir_scatter.core.model import Model
from ir_scatter.formats.base import ONNX_FORMAT, ReadOptions
from ir_scatter.formats.onnx import reader as onnx_model

VALUES = np.array([[2, 3, 5], [7, 11, 13]], np.int64)


def external(name: str, entries: Mapping[str, str]) -> TensorProto:
    tensor = TensorProto(name=name, data_type=TensorProto.INT64, dims=[2, 3])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def model_with(*tensors: TensorProto) -> ModelProto:
    nodes = [helper.make_node("Identity", [tensor.name], [f"y_{tensor.name}"]) for tensor in tensors]
    graph = helper.make_graph(nodes, "g", [], [], list(tensors))
    opset = helper.make_opsetid("", 18)
    return helper.make_model(graph, ir_version=10, opset_imports=[opset])


def read_from(folder: Path, *tensors: TensorProto) -> Model:
    path = folder / "model.onnx"
    path.write_bytes(model_with(*tensors).SerializeToString())
    return formats.read(str(path), format=ONNX_FORMAT)


def loaded(model: Model) -> list[object]:
    found: list[object] = []
    for node in model.walk():
        value = node.inputs[0].value
        assert value is not None
        assert value.constant is not None
        assert value.shape == (2, 3)
        array = value.constant.load()
        found.append(None if array is None else array.tolist())
    return found


def test_external_data_is_mapped(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "w.bin").write_bytes(b"x" * 9 + VALUES.tobytes() + VALUES.tobytes())
    model = read_from(
        tmp_path,
        external("a", {"location": "sub/w.bin", "offset": "9", "length": "48"}),
        external("b", {"location": "sub/../sub/w.bin", "offset": "57"}),
    )
    assert model.defects == ()
    assert loaded(model) == [VALUES.tolist(), VALUES.tolist()]


def test_a_missing_file_is_told_once(tmp_path: Path) -> None:
    model = read_from(tmp_path, *(external(name, {"location": "none.bin"}) for name in "ab"))
    assert [(defect.kind, defect.message) for defect in model.defects] == [
        (
            "weights-missing",
            "'none.bin' cannot be read (no such file or directory): "
            "the values of 2 tensors are unknown, the first is the initializer 'a'",
        )
    ]
    assert loaded(model) == [None, None]


def test_standard_input_has_no_folder(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(VALUES.tobytes())
    data = model_with(external("a", {"location": "w.bin"})).SerializeToString()
    model = onnx_model.read(str(tmp_path / "model.onnx"), data)
    assert [defect.kind for defect in model.defects] == ["weights-missing"]
    assert "standard input" in model.defects[0].message
    assert loaded(model) == [None]
    model = onnx_model.read(str(tmp_path / "model.onnx"), data, ReadOptions())
    assert loaded(model) == [VALUES.tolist()]


def test_a_file_that_is_too_short(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(VALUES.tobytes())
    entries = {"location": "w.bin", "offset": "8"}
    model = read_from(tmp_path, external("a", entries), external("b", entries))
    assert [(defect.kind, defect.message) for defect in model.defects] == [
        (
            "weights-truncated",
            "'w.bin' has 48 bytes, the initializer 'a' needs bytes 8 to 56, "
            "the first of 2 tensors that end beyond it",
        )
    ]
    assert loaded(model) == [None, None]


@pytest.mark.parametrize(
    ("entries", "kind"),
    [
        ({"location": "w.bin", "offset": "-8"}, "bad-number"),
        ({"location": "w.bin", "offset": "eight"}, "bad-number"),
        ({"location": "w.bin", "length": "4.5"}, "bad-number"),
        ({"location": "w.bin", "length": "9" * 5000}, "bad-number"),
        ({"location": "w.bin", "length": "47"}, "constant-size"),
        ({"location": ""}, "external-data-path"),
        ({}, "external-data-path"),
        ({"location": "/etc/passwd"}, "external-data-path"),
        ({"location": "C:\\weights.bin"}, "external-data-path"),
        ({"location": "../outside.bin"}, "external-data-path"),
        ({"location": "sub/../../outside.bin"}, "external-data-path"),
        ({"location": "link.bin"}, "external-data-path"),
        ({"location": "linked/outside.bin"}, "external-data-path"),
        ({"location": "w\0.bin"}, "weights-missing"),
        ({"location": "w" * 5000}, "weights-missing"),
        ({"location": "sub"}, "weights-missing"),
    ],
)
def test_places_that_are_none(tmp_path: Path, entries: Mapping[str, str], kind: str) -> None:
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    (folder / "w.bin").write_bytes(VALUES.tobytes())
    (tmp_path / "outside.bin").write_bytes(VALUES.tobytes())
    (folder / "link.bin").symlink_to(tmp_path / "outside.bin")
    (folder / "linked").symlink_to(tmp_path)
    model = read_from(folder, external("a", entries))
    assert [defect.kind for defect in model.defects] == [kind]
    assert loaded(model) == [None]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "w.bin")
    model = read_from(tmp_path, external("a", {"location": "w.bin"}))
    assert [defect.kind for defect in model.defects] == ["weights-missing"]


def test_a_model_that_is_a_link_keeps_its_weights_beside_its_target(tmp_path: Path) -> None:
    store, named = tmp_path / "store", tmp_path / "named"
    store.mkdir()
    named.mkdir()
    data = model_with(external("a", {"location": "w.bin"})).SerializeToString()
    (store / "1111").write_bytes(data)
    (store / "2222").write_bytes(VALUES.tobytes())
    (named / "model.onnx").symlink_to(store / "1111")
    (named / "w.bin").symlink_to(store / "2222")
    model = formats.read(str(named / "model.onnx"), format=ONNX_FORMAT)
    assert model.defects == ()
    assert loaded(model) == [VALUES.tolist()]


@pytest.mark.parametrize("count", [0, 5])
@pytest.mark.parametrize(
    "type", sorted(set(TensorProto.DataType.values()) - {TensorProto.UNDEFINED, TensorProto.STRING})
)
def test_external_data_of_every_type(tmp_path: Path, type: int, count: int) -> None:
    array = np.array([1, 0, 1, 1, 0][:count]).astype(helper.tensor_dtype_to_np_dtype(type))
    embedded = numpy_helper.from_array(array, "e")
    (tmp_path / "w.bin").write_bytes(embedded.raw_data)
    tensor = TensorProto(name="t", data_type=type, dims=[count])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    model = read_from(tmp_path, embedded, tensor)
    assert model.defects == ()
    inside, outside = (node.inputs[0].value for node in model.walk())
    assert inside is not None
    assert inside.constant is not None
    assert outside is not None
    assert outside.constant is not None
    expected, found = inside.constant.load(), outside.constant.load()
    assert expected is not None
    if type in (TensorProto.FLOAT6E2M3, TensorProto.FLOAT6E3M2):
        assert found is None
        return
    assert found is not None
    assert (found.dtype, found.tobytes()) == (expected.dtype, expected.tobytes())
