"""Tensors in files beside the model: found, missing, too short, outside of the folder; and which go along."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import AttributeProto, ModelProto, SparseTensorProto, TensorProto, helper, numpy_helper, parser

from ir_scatter import formats
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.model import Model
from ir_scatter.formats.base import ONNX_FORMAT, FileBeside, ReadOptions
from ir_scatter.formats.onnx import FORMAT
from tests.formats.onnx_patches import content, model_of, read

VALUES = np.array([[2, 3, 5], [7, 11, 13]], np.int64)


def external(location: str | None, name: str = "a", **entries: str) -> TensorProto:
    tensor = TensorProto(name=name, data_type=TensorProto.INT64, dims=[2, 3])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {**({} if location is None else {"location": location}), **entries}.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def model_with(*tensors: TensorProto) -> ModelProto:
    """Return a model in which every tensor is looked at by a node."""
    for number, tensor in enumerate(tensors):
        tensor.name = f"{tensor.name}{number or ''}"
    return model_of(
        [helper.make_node("Identity", [one.name], [f"y_{one.name}"]) for one in tensors], *tensors
    )


def read_in(folder: Path, proto: ModelProto, *files: str, **links: Path) -> Model:
    """Read a model that has files, which hold the values, and links beside it."""
    folder.mkdir(exist_ok=True)
    for name, target in links.items():
        (folder / name).symlink_to(target)
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(VALUES.tobytes())
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return formats.read(str(path), format=ONNX_FORMAT)


def loaded(model: Model) -> list[object]:
    return [content(node.inputs[0].value) for node in model.walk()]


def external_files(model: Model) -> Sequence[FileBeside]:
    return FORMAT.files_beside(model, Path(model.path))


def test_external_data_is_mapped(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "w.bin").write_bytes(b"x" * 9 + VALUES.tobytes() + VALUES.tobytes())
    first = external("sub/w.bin", offset="9", length="48")
    model = read_in(tmp_path, model_with(first, external("sub/../sub/w.bin", offset="57")))
    assert model.defects == ()
    assert loaded(model) == [VALUES.tolist(), VALUES.tolist()]


@pytest.mark.parametrize(("count", "tensors"), [(1, "1 tensor"), (2, "2 tensors")])
def test_a_missing_file_is_told_once(tmp_path: Path, count: int, tensors: str) -> None:
    model = read_in(tmp_path, model_with(*[external("none.bin") for _ in range(count)]))
    assert [(defect.kind, defect.message) for defect in model.defects] == [
        (
            "weights-missing",
            "'none.bin' cannot be read (no such file or directory): "
            f"the values of {tensors} are unknown; the first is the initializer 'a'",
        )
    ]
    assert loaded(model) == [None] * count


def test_standard_input_has_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "w.bin").write_bytes(VALUES.tobytes())
    monkeypatch.chdir(tmp_path)
    proto = model_with(external("w.bin"))
    model = read(proto)
    assert [defect.kind for defect in model.defects] == ["weights-missing"]
    assert "standard input" in model.defects[0].message
    assert loaded(model) == [None]
    (one,) = external_files(model)
    assert one.problem == "there is no 'w.bin' beside standard input"
    assert loaded(read(proto, ReadOptions())) == [VALUES.tolist()]


def test_a_file_that_is_too_short(tmp_path: Path) -> None:
    model = read_in(
        tmp_path, model_with(external("w.bin", offset="8"), external("w.bin", offset="8")), "w.bin"
    )
    assert [(defect.kind, defect.message) for defect in model.defects] == [
        (
            "weights-truncated",
            "'w.bin' has 48 bytes, the initializer 'a' needs bytes 8 to 56, "
            "the first of 2 tensors that end beyond it",
        )
    ]
    assert loaded(model) == [None, None]


NUMBER, PLACE, MISSING = "bad-number", "external-data-path", "weights-missing"


@pytest.mark.parametrize(
    ("tensor", "kind", "message"),
    [
        (external("w.bin", offset="-8"), NUMBER, "the offset of the external data of 'a' is '-8'"),
        (external("w.bin", offset="eight"), NUMBER, ""),
        (external("w.bin", length="4.5"), NUMBER, ""),
        (external("w.bin", length="9" * 5000), NUMBER, ""),
        (external("w.bin", length="47"), "constant-size", ""),
        (external(""), PLACE, "the location of external data is empty"),
        (external(None), PLACE, ""),
        (external("/etc/passwd"), PLACE, "expected a path relative to the model's folder"),
        (external("C:\\weights.bin"), PLACE, ""),
        (external("../outside.bin"), PLACE, "outside of the model's folder, expected a file inside"),
        (external("sub/../../outside.bin"), PLACE, ""),
        (external("link.bin"), PLACE, "outside of the model's folder"),
        (external("linked/outside.bin"), PLACE, ""),
        (external("w\0.bin"), MISSING, ""),
        (external("w" * 5000), MISSING, ""),
        (external("none.bin"), MISSING, "'none.bin' cannot be read (no such file or directory)"),
        (external("sub"), MISSING, "'sub' is not a regular file"),
        pytest.param(
            external("pipe"),
            MISSING,
            "",
            marks=pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes"),
        ),
    ],
)
def test_places_that_are_none(tmp_path: Path, tensor: TensorProto, kind: str, message: str) -> None:
    folder, outside = tmp_path / "model", tmp_path / "outside.bin"
    (folder / "sub").mkdir(parents=True)
    outside.write_bytes(VALUES.tobytes())
    if "pipe" in str(tensor):
        os.mkfifo(folder / "pipe")
    links = {"link.bin": outside, "linked": tmp_path}
    model = read_in(folder, model_with(tensor), "w.bin", **links)
    assert [defect.kind for defect in model.defects] == [kind]
    assert message in model.defects[0].message
    assert loaded(model) == [None]
    if kind == MISSING:
        (one,) = external_files(model)
        assert message in (one.problem or "")
    elif kind != "constant-size":
        with pytest.raises(UnreadableModel, match=re.escape(message) or None) as raised:
            external_files(model)
        assert (raised.value.defect, raised.value.location.path) == (kind, model.path)


def test_a_model_that_is_a_link_keeps_its_weights_beside_its_target(tmp_path: Path) -> None:
    store, named = tmp_path / "store", tmp_path / "named"
    read_in(store, model_with(external("w.bin")), "1111")
    named.mkdir()
    (named / "model.onnx").symlink_to(store / "model.onnx")
    (named / "w.bin").symlink_to(store / "1111")
    model = formats.read(str(named / "model.onnx"), format=ONNX_FORMAT)
    assert model.defects == ()
    assert loaded(model) == [VALUES.tolist()]
    assert external_files(model) == [FileBeside(store / "1111", "w.bin")]


@pytest.mark.parametrize("count", [0, 5])
@pytest.mark.parametrize(
    "type", sorted(set(TensorProto.DataType.values()) - {TensorProto.UNDEFINED, TensorProto.STRING})
)
def test_external_data_of_every_type(tmp_path: Path, type: int, count: int) -> None:
    array = np.array([1, 0, 1, 1, 0][:count]).astype(helper.tensor_dtype_to_np_dtype(type))
    embedded = numpy_helper.from_array(array, "e")
    (tmp_path / "data").write_bytes(embedded.raw_data)
    tensor = external("data")
    tensor.data_type, tensor.dims[:] = type, [count]
    model = read_in(tmp_path, model_with(embedded, tensor))
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


def sparse(values: str, indices: str) -> SparseTensorProto:
    return SparseTensorProto(values=external(values), indices=external(indices), dims=[8])


def everywhere() -> tuple[ModelProto, list[str]]:
    """Return a model that has tensors in files wherever tensors can be, and the files in order."""
    model = parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 18, "own" : 1]>
        main (bool c) => (int64[2] y) {
            y = If (c) <
                then_branch = then () => (int64[2] a) { a = Constant () },
                else_branch = other () => (int64[2] b) { b = own.Function () }
            >
        }
        <domain: "own", opset_import: ["" : 18]> Function () => (z) { z = Constant () }
    """)
    graph, function = model.graph, model.functions[0]
    graph.initializer.append(external("initializer"))
    graph.sparse_initializer.append(sparse("values", "indices"))
    then = graph.node[0].attribute[0].g
    then.initializer.append(external("in_body"))
    then.node[0].attribute.append(helper.make_attribute("value", external("constant_in_body")))
    custom = graph.node.add(op_type="Custom", domain="own", output=["unused"])
    custom.attribute.append(AttributeProto(name="old", t=external("no_attribute_type")))
    custom.attribute.append(helper.make_attribute("many", [external("first"), external("second")]))
    custom.attribute.append(helper.make_attribute("sparse", sparse("attribute_values", "attribute_indices")))
    custom.attribute.append(helper.make_attribute("all", [sparse("list_values", "list_indices")]))
    body = helper.make_graph([], "b", [], [], [external("graph_list")])
    custom.attribute.append(helper.make_attribute("graphs", [body]))
    custom.attribute.append(helper.make_attribute("axis", 1))
    training = model.training_info.add()
    training.initialization.initializer.append(external("initialization"))
    training.algorithm.initializer.append(external("algorithm"))
    function.attribute_proto.append(helper.make_attribute("default", external("default")))
    function.node[0].attribute.append(helper.make_attribute("value", external("function")))
    return model, [
        "initializer", "values", "indices", "in_body", "constant_in_body", "no_attribute_type", "first", "second",
        "attribute_values", "attribute_indices", "list_values", "list_indices", "graph_list", "initialization",
        "algorithm", "default", "function",
    ]  # fmt: skip


def test_every_place_that_holds_tensors(tmp_path: Path) -> None:
    proto, names = everywhere()
    proto.graph.initializer.append(external("initializer", offset="0", length="16"))
    proto.graph.initializer.append(numpy_helper.from_array(np.arange(3), "inside"))
    unused = numpy_helper.from_array(np.arange(3), "inside_too")
    unused.external_data.add(key="location", value="../not_external")
    proto.graph.initializer.append(unused)
    model = read_in(tmp_path, proto, *names)
    assert {*external_files(model)} == {FileBeside(tmp_path / name, name) for name in names}


def test_locations_of_one_file(tmp_path: Path) -> None:
    locations = ["sub/w.bin", "sub/../sub/w.bin", "./sub//w.bin", "other/w.bin"]
    model = read_in(tmp_path, model_with(*map(external, locations)), "sub/w.bin", "other/w.bin")
    sub, other = tmp_path / "sub" / "w.bin", tmp_path / "other" / "w.bin"
    assert external_files(model) == [
        FileBeside(sub, "sub/w.bin"),
        FileBeside(sub, "sub/../sub/w.bin"),
        FileBeside(sub, "./sub//w.bin"),
        FileBeside(other, "other/w.bin"),
    ]


@pytest.mark.parametrize("location", ["link/../w.bin", "link/../../w.bin"])
def test_a_detour_through_a_link_is_refused(tmp_path: Path, location: str) -> None:
    """Beside a copy there is no such link: the same words would name another file, or none."""
    proto = model_with(external("w.bin"), external(location))
    model = read_in(tmp_path, proto, "w.bin", "deep/w.bin", "deep/er/w.bin", link=tmp_path / "deep" / "er")
    with pytest.raises(
        UnreadableModel, match=r"leads through a link and back, expected a path without '\.\.'"
    ):
        external_files(model)
