"""Every form of a constant in ONNX is read: the attributes of Constant, sparse tensors, references in functions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import AttributeProto, SparseTensorProto, TensorProto, helper, numpy_helper, parser

from ir_scatter import evaluate_model, read, validate
from ir_scatter.core.errors import BrokenModel
from ir_scatter.inputs.model import make_feeds

Array = npt.NDArray[Any]

_SCATTER = (
    '<ir_version: 9, opset_import: ["" : 18]>'
    " g (float[4] data, float[N] rows) => (float[4] out) { out = ScatterElements (data, at, rows) }"
)


def sparse(
    values: Any, indices: Any, dims: Sequence[int], *, type: Any = np.int64, name: str = "at"
) -> SparseTensorProto:
    tensor = numpy_helper.from_array(np.array(values, type), name)
    places = None if indices is None else numpy_helper.from_array(np.array(indices, np.int64))
    return helper.make_sparse_tensor(tensor, places, dims) if places else SparseTensorProto(
        values=tensor, dims=dims
    )  # fmt: skip


def with_initializer(folder: Path, tensor: SparseTensorProto) -> Path:
    model = parser.parse_model(_SCATTER)
    model.graph.sparse_initializer.append(tensor)
    return saved(folder, model)


def with_constant(folder: Path, tensor: SparseTensorProto) -> Path:
    model = parser.parse_model(_SCATTER)
    node = helper.make_node("Constant", [], ["at"], name="c")
    node.attribute.append(helper.make_attribute("sparse_value", tensor))
    model.graph.node.insert(0, node)
    return saved(folder, model)


def in_function(folder: Path, tensor: SparseTensorProto) -> Path:
    """The constant of a function is an attribute of its call."""
    model = parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 18, "own" : 1]>'
        " g (float[4] data, float[N] rows) => (float[4] out) { out = own.F (data, rows) }"
        ' <domain: "own", opset_import: ["" : 18]> F <where> (d, r) => (o) { o = ScatterElements (d, at, r) }'
    )
    model.graph.node[0].attribute.append(helper.make_attribute("where", tensor))
    node = helper.make_node("Constant", [], ["at"], name="c")
    node.attribute.append(
        AttributeProto(name="sparse_value", ref_attr_name="where", type=AttributeProto.SPARSE_TENSOR)
    )
    model.functions[0].node.insert(0, node)
    return saved(folder, model)


def saved(folder: Path, model: onnx.ModelProto) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


FORMS = {"initializer": with_initializer, "constant": with_constant, "function": in_function}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("values", "indices", "dims", "found"),
    [
        ([9], [1], [2], "indices[1] is 9, expected -4 to 3"),
        ([3, 9], [[0], [2]], [3], "indices[2] is 9, expected -4 to 3"),
        ([-5], [0], [1], "indices[0] is -5, expected -4 to 3"),
        ([1, 2], [1, 2], [3], ""),
        ([], None, [1], ""),
    ],
)
def test_sparse_indices(
    form: str, values: Any, indices: Any, dims: Sequence[int], found: str, tmp_path: Path
) -> None:
    path = FORMS[form](tmp_path, sparse(values, indices, dims))
    wrong = [one.message for one in validate(read(path)) if one.code == "SCT302"]
    assert wrong == ([found] if found else [])
    if found:
        with pytest.raises(BrokenModel, match="SCT302"):
            evaluate_model(path, {})
        return
    dense = np.zeros(dims, np.int64)
    dense[tuple(np.array(indices).reshape(len(values), -1).T) if values else ()] = values or 0
    rows = np.arange(1, dims[0] + 1, dtype=np.float32)
    data = np.zeros(4, np.float32)
    expected = data.copy()
    expected[dense] = rows
    assert evaluate_model(path, {"data": data, "rows": rows})["out"].tolist() == expected.tolist()
    assert make_feeds(path)["rows"].shape == tuple(dims)


@pytest.mark.parametrize("form", ["initializer", "constant"])
@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]], ids=["flat", "rows"])
def test_a_sparse_tensor_of_two_dimensions(form: str, indices: Any, tmp_path: Path) -> None:
    path = FORMS[form](tmp_path, sparse([2.5, -1], indices, [2, 3], type=np.float32))
    model = onnx.load(path)
    del model.graph.node[-1]
    model.graph.node.append(helper.make_node("Identity", ["at"], ["out"]))
    found = evaluate_model(saved(tmp_path, model), {"data": np.zeros(4, "f4"), "rows": np.zeros(1, "f4")})
    assert found["out"].tolist() == [[0, 2.5, 0], [0, 0, -1]]


MALFORMED = {
    "a place outside": (sparse([1], [3], [3]), "has index [3] for value 0, expected one within [3]"),
    "below 0": (sparse([1], [-1], [3]), "has index [-1] for value 0, expected one within [3]"),
    "a row outside": (
        sparse([1], [[0, 3]], [2, 3]), "has index [0, 3] for value 0, expected one within [2, 3]",
    ),
    "twice": (sparse([1, 2], [1, 1], [3]), "has index [1] for value 1 after [1], expected ascending indices"),
    "falling": (
        sparse([1, 2], [[1, 0], [0, 2]], [2, 3]),
        "has index [0, 2] for value 1 after [1, 0], expected ascending indices",
    ),
    "fewer indices": (sparse([1, 2], [0], [3]), "have shape [1], expected [2] or [2, 1]"),
    "values of two dimensions": (sparse([[1]], [0], [3]), "have shape [1, 1], expected rank 1"),
    "no indices": (sparse([1], None, [3]), "are missing, expected 1"),
    "a negative dimension": (sparse([1], [0], [-3]), "are [-3], expected numbers >= 0"),
    "a huge one": (sparse([1], [2**62], [2**61]), "expected one within"),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_sparse_tensors(form: str, name: str, tmp_path: Path) -> None:
    tensor, sentence = MALFORMED[name]
    path = FORMS[form](tmp_path, tensor)
    found = [one.message for one in validate(read(path)) if one.code in {"SCT928", "SCT932"}]
    assert len(found) == 1, found
    assert sentence in found[0]
    assert f"the sparse {'attribute' if form == 'function' else form}" in found[0]
    with pytest.raises(BrokenModel):
        evaluate_model(path, {})


def test_a_sparse_tensor_that_is_too_large_to_be_dense(tmp_path: Path) -> None:
    path = with_constant(tmp_path, sparse([9], [1], [1 << 40]))
    assert "SCT302" not in {one.code for one in validate(read(path))}


@pytest.mark.parametrize(
    ("attribute", "at"), [("value_int = 9", "Reshape (c, one)"), ("value_ints = [9]", "Identity (c)")]
)
def test_attributes_of_a_constant(attribute: str, at: str, tmp_path: Path) -> None:
    text = _SCATTER.replace("{", f"<int64[1] one = {{1}}> {{ c = Constant <{attribute}> () at = {at} ")
    found = validate(read(saved(tmp_path, parser.parse_model(text))))
    assert [one.message for one in found if one.code == "SCT302"] == ["indices[0] is 9, expected -4 to 3"]


@pytest.mark.parametrize("written", [", value = int64[1] {9}", ""])
def test_a_constant_of_a_shape(written: str, tmp_path: Path) -> None:
    attribute = f"<{written[2:]}>" if written else ""
    body = f"<int64[1] one = {{1}}> {{ c = ConstantOfShape {attribute} (one) at = Cast <to = 7> (c) "
    text = _SCATTER.replace("[N]", "[1]").replace("{", body)
    found = validate(read(saved(tmp_path, parser.parse_model(text))))
    assert [one.code for one in found] == (["SCT302"] if written else [])


_CALLED = (
    '<ir_version: 9, opset_import: ["" : 18, "own" : 1]>'
    " g (float[4] data, int64[1] at, float[1] rows) => (float[4] out) { out = own.F <CALL> (data, at, rows) }"
    ' <domain: "own", opset_import: ["" : 18]> F <w> (d, i, r) => (o) { BODY o = ScatterElements AXIS (d, c, r) }'
)
_REFERENCES = {
    "an int for ints": ("w = 9", "c = Constant <value_ints: ints = @w> ()", "'value_ints'", "an int"),
    "ints for an int": ("w = [9]", "c = Constant <value_int: int = @w> ()", "'value_int'", "an ints"),
    "ints for a tensor": ("w = [9]", "c = Constant <value: tensor = @w> ()", "'value'", "an ints"),
    "a tensor for ints": ("w = int64[1] {9}", "c = Constant <value_ints: ints = @w> ()", "'value_ints'", "a tensor"),
    "an axis": ("w = [0]", "c = Concat <axis: int = @w> (i)", "'axis'", "an ints"),
    "a permutation": ("w = 0", "c = Transpose <perm: ints = @w> (i)", "'perm'", "an int"),
}  # fmt: skip


@pytest.mark.parametrize("name", _REFERENCES)
def test_references_to_attributes_of_another_type(name: str, tmp_path: Path) -> None:
    call, body, attribute, kind = _REFERENCES[name]
    text = _CALLED.replace("CALL", call).replace("BODY", body).replace("AXIS", "")
    path = saved(tmp_path, parser.parse_model(text))
    found = [one.message for one in validate(read(path)) if one.code == "SCT937"]
    assert len(found) == 1
    assert found[0].startswith(
        f"attribute {attribute} refers to 'w' of the call, which is {kind}, expected a"
    )
    with pytest.raises(BrokenModel):
        evaluate_model(path, {})
    assert make_feeds(path)["data"].shape == (4,)


@pytest.mark.parametrize("call", ["w = [0]", 'w = "x"', "w = int64[1] {0}", "w = 0.5"])
def test_an_axis_of_a_scatter_node_that_is_no_number(call: str, tmp_path: Path) -> None:
    text = _CALLED.replace("CALL", call).replace("BODY", "c = Identity (i)")
    path = saved(tmp_path, parser.parse_model(text.replace("AXIS", "<axis: int = @w>")))
    assert [one.code for one in validate(read(path))] == ["SCT107"]
    assert make_feeds(path)["data"].shape == (4,)


def test_references_of_the_right_type(tmp_path: Path) -> None:
    text = _CALLED.replace("CALL", "w = [3]").replace("BODY", "c = Constant <value_ints: ints = @w> ()")
    path = saved(tmp_path, parser.parse_model(text.replace("AXIS", "")))
    assert validate(read(path)) == []


@pytest.mark.parametrize("location", ["w.data/", "w.data//", "w.data/."])
def test_a_location_of_external_data_that_names_a_folder(location: str, tmp_path: Path) -> None:
    model = parser.parse_model(_SCATTER)
    tensor = TensorProto(name="at", data_type=TensorProto.INT64, dims=[1])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    model.graph.initializer.append(tensor)
    (tmp_path / "w.data").write_bytes(np.array([9]).tobytes())
    (found,) = [one for one in validate(read(saved(tmp_path, model))) if one.code == "SCT930"]
    assert f"{location!r} cannot be read (not a directory)" in found.message
