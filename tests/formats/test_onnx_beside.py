"""The files that go along with a copy of a model: all that any tensor names, and none outside."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import AttributeProto, ModelProto, SparseTensorProto, TensorProto, helper, numpy_helper, parser

from ir_scatter import formats
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.model import Model
from ir_scatter.formats.base import ONNX_FORMAT, FileBeside
from ir_scatter.formats.onnx import FORMAT
from ir_scatter.formats.onnx import reader as onnx_model


def external(location: str, **entries: str) -> TensorProto:
    tensor = TensorProto(name=f"in {location}", data_type=TensorProto.INT64, dims=[2])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def sparse(values: str, indices: str) -> SparseTensorProto:
    return SparseTensorProto(values=external(values), indices=external(indices), dims=[8])


def model_with(*tensors: TensorProto) -> ModelProto:
    graph = helper.make_graph([], "g", [], [], list(tensors))
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)])


def read_in(folder: Path, proto: ModelProto, *files: str, **links: Path) -> Model:
    folder.mkdir(exist_ok=True)
    for name, target in links.items():
        (folder / name).symlink_to(target)
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(np.arange(2).tobytes())
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return formats.read(str(path), format=ONNX_FORMAT)


def external_files(model: Model) -> Sequence[FileBeside]:
    return FORMAT.files_beside(model, Path(model.path))


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


def test_a_model_that_holds_all_of_its_tensors(tmp_path: Path) -> None:
    model = read_in(tmp_path, model_with(numpy_helper.from_array(np.arange(3), "a")))
    assert external_files(model) == []


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


def test_links_are_followed(tmp_path: Path) -> None:
    stored = tmp_path / "store" / "w.bin"
    model = read_in(tmp_path, model_with(external("named")), "store/w.bin", named=stored)
    assert external_files(model) == [FileBeside(stored, "named")]


def test_the_store_of_a_model_that_is_a_link(tmp_path: Path) -> None:
    store, named = tmp_path / "store", tmp_path / "named"
    read_in(store, model_with(external("w.bin")), "1111")
    named.mkdir()
    (named / "model.onnx").symlink_to(store / "model.onnx")
    (named / "w.bin").symlink_to(store / "1111")
    model = formats.read(str(named / "model.onnx"), format=ONNX_FORMAT)
    assert external_files(model) == [FileBeside(store / "1111", "w.bin")]


@pytest.mark.parametrize("location", ["link/../w.bin", "link/../../w.bin"])
def test_a_detour_through_a_link_is_refused(tmp_path: Path, location: str) -> None:
    """Beside a copy there is no such link: the same words would name another file, or none."""
    proto = model_with(external("w.bin"), external(location))
    model = read_in(tmp_path, proto, "w.bin", "deep/w.bin", "deep/er/w.bin", link=tmp_path / "deep" / "er")
    with pytest.raises(
        UnreadableModel, match=r"leads through a link and back, expected a path without '\.\.'"
    ):
        external_files(model)


@pytest.mark.parametrize(
    ("entries", "kind", "message"),
    [
        (
            {"location": "../w.bin"},
            "external-data-path",
            "outside of the model's folder, expected a file inside",
        ),
        ({"location": "linked"}, "external-data-path", "outside of the model's folder"),
        ({"location": "/etc/passwd"}, "external-data-path", "expected a path relative to the model's folder"),
        ({"location": ""}, "external-data-path", "the location of external data is empty"),
        (
            {"location": "sub/w.bin", "offset": "-1"},
            "bad-number",
            "the offset of the external data of 'in sub/w.bin'",
        ),
    ],
)
def test_what_cannot_be_copied(tmp_path: Path, entries: Mapping[str, str], kind: str, message: str) -> None:
    folder = tmp_path / "model"
    (tmp_path / "w.bin").write_bytes(b"outside")
    model = read_in(folder, model_with(external(**entries)), "sub/w.bin", linked=tmp_path / "w.bin")
    with pytest.raises(UnreadableModel, match=rf"model\.onnx: .*{message}") as raised:
        external_files(model)
    assert raised.value.defect == kind


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("none.bin", "'none.bin' cannot be read (no such file or directory)"),
        ("sub", "'sub' is no regular file"),
    ],
)
def test_what_is_not_there(tmp_path: Path, location: str, message: str) -> None:
    (one,) = external_files(read_in(tmp_path, model_with(external(location)), "sub/w.bin"))
    assert (one.path, one.location) == (tmp_path / location, location)
    assert message in (one.problem or "")


def test_standard_input_has_nothing_beside_it() -> None:
    model = onnx_model.read("<stdin>", model_with(external("w.bin")).SerializeToString())
    (one,) = external_files(model)
    assert one.problem == "there is no 'w.bin' beside standard input"
