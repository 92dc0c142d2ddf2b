"""What `evaluate` takes, what it refuses, and in which words."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ir_scatter
from ir_scatter import Error, IllegalCase, IllegalIndex, UsageError, evaluate

Array = Any
DATA = np.arange(6, dtype=np.float32).reshape(2, 3)


def row(**changes: Any) -> dict[str, Any]:
    """Give the arguments of a legal ScatterElementsUpdate-12, some of them changed or left out."""
    legal = {"data": DATA, "indices": [[1, 2]], "updates": np.array([[7, 8]], np.float32), "axis": 1}
    return {name: value for name, value in (legal | changes).items() if value is not ...}


def refusal(operator: Any = "ScatterElementsUpdate-12", **arguments: Any) -> Error:
    with pytest.raises(Error) as caught:
        evaluate(operator, **arguments)
    return caught.value


@pytest.mark.parametrize("axis", [1, -1, np.int8(1), np.array(1), [1], np.array([-1], np.int16)])
def test_an_axis_is_a_number_or_an_array_of_one(axis: Any) -> None:
    assert evaluate("ScatterElementsUpdate-12", **row(axis=axis)).tolist() == [[0, 7, 8], [3, 4, 5]]
    assert evaluate("ScatterElements-18", **row(axis=axis)).tolist() == [[0, 7, 8], [3, 4, 5]]


def test_an_onnx_axis_has_the_default_of_its_row() -> None:
    found = evaluate("ScatterElements-13", **row(axis=..., indices=[[1, 0]]))
    assert found.tolist() == [[0, 8, 2], [7, 4, 5]]


@pytest.mark.parametrize("use_init_val", [False, np.False_, "false", "0", "FALSE"])
def test_use_init_val_is_a_bool_or_a_word_of_a_file(use_init_val: Any) -> None:
    found = evaluate("ScatterElementsUpdate-12", **row(reduction="sum", use_init_val=use_init_val))
    assert found.tolist() == [[0, 7, 8], [3, 4, 5]]


def test_an_operator_is_found_in_any_case() -> None:
    assert evaluate("scatterelementsupdate-12", **row()).tolist() == [[0, 7, 8], [3, 4, 5]]  # type: ignore[arg-type]


def test_words_that_a_version_does_not_document_are_taken_as_meant() -> None:
    assert evaluate("ScatterElements-16", **row(reduction="max"))[0].tolist() == [0, 7, 8]
    assert evaluate("ScatterElementsUpdate-12", **row(reduction="SUM"))[0].tolist() == [0, 8, 10]


def test_what_runtimes_take_as_meant_is_computed() -> None:
    boolean: dict[str, Any] = {"data": [True, False], "indices": [1], "updates": [True], "axis": 0}
    assert evaluate("ScatterUpdate-3", **boolean).tolist() == [True, True]
    longer: dict[str, Any] = {"data": [1.0, 2.0], "indices": [0, 1, 1], "updates": [3.0, 4.0, 5.0], "axis": 0}
    assert evaluate("ScatterElementsUpdate-3", **longer).tolist() == [3, 5]


def test_the_result_is_new_even_if_nothing_is_written() -> None:
    found = evaluate(
        "ScatterND-18", data=DATA, indices=np.zeros((0, 1), np.int64), updates=np.zeros((0, 3), "f")
    )
    assert not np.shares_memory(found, DATA)
    assert np.array_equal(found, DATA)


ELEMENTS = "ScatterElementsUpdate-12"
ONNX_ELEMENTS = "ScatterElements-18"
CACHE: dict[str, Any] = {"data": DATA, "axis": 1}
REFUSALS: list[tuple[Any, dict[str, Any], str]] = [
    ("Gather-8", row(), "operator is 'Gather-8', expected one of ScatterUpdate-3"),
    (7, row(), "operator is 7"),
    (ELEMENTS, row(axis=...), "axis is missing, expected data, indices, updates, axis"),
    (ELEMENTS, row(data=None), "data is missing"),
    (ONNX_ELEMENTS, row(indices=None), "indices is missing, expected data, indices, updates"),
    (ELEMENTS, row(mode="linear"), "attribute mode is not in the specification"),
    (ELEMENTS, row(colour=[3]), "attribute colour is not in the specification"),
    ("ScatterND-18", row(), "attribute axis is not in the specification, expected reduction"),
    ("ScatterElementsUpdate-3", row(reduction="sum"), "has no reduction: expected ScatterElementsUpdate-12"),
    (ELEMENTS, row(reduction="add"), "reduction is 'add', expected none, sum"),
    (ONNX_ELEMENTS, row(reduction="sum"), "reduction is 'sum', expected none, add"),
    (ONNX_ELEMENTS, row(reduction=1), "reduction is an int, expected a string"),
    (ELEMENTS, row(use_init_val=1), "use_init_val is an int, expected a bool"),
    (ELEMENTS, row(use_init_val="no"), "use_init_val is 'no', which is read as true"),
    (ELEMENTS, row(axis=2), r"axis is 2, expected -2 to 1 for data \[2, 3\]"),
    (ELEMENTS, row(axis=2**70), "expected a number of 64 bits at most"),
    (ELEMENTS, row(axis=[[1]]), r"axis is \[1, 1\], expected \[\] or \[1\]"),
    (ELEMENTS, row(axis=1.0), "axis is f64, expected any integer type"),
    (ELEMENTS, row(axis=True), "axis is boolean, expected any integer type"),
    (ONNX_ELEMENTS, row(axis=1.0), "axis is not a whole number"),
    (ONNX_ELEMENTS, row(axis=True), "axis is not a whole number"),
    (ELEMENTS, row(axis="1"), "axis is string, expected any integer type"),
    (ELEMENTS, row(indices=[[0.0, 1.0]]), "indices is f64, expected any integer type"),
    (
        "ScatterND-18", row(axis=..., indices=np.array([[0]], np.int32), updates=DATA[:1]),
        "indices is int32, expected int64",
    ),
    (ELEMENTS, row(updates=np.array([[7.0, 8.0]])), "updates is f64, expected f32 like data"),
    (ELEMENTS, row(updates=[[True, False]]), "updates is boolean, expected f32"),
    (ELEMENTS, row(updates=DATA), r"updates is \[2, 3\], expected \[1, 2\] = indices"),
    (ELEMENTS, row(indices=[1, 2], updates=[1, 2]), r"indices is \[2\] of rank 1, expected rank 2"),
    (ELEMENTS, row(data=DATA[0, 0]), r"data is \[\] of rank 0, expected rank 1"),
    (
        ELEMENTS, row(indices=np.zeros((3, 1), int), updates=np.zeros((3, 1), "f")),
        r"indices is \[3, 1\], longer than data \[2, 3\] on dimension 0",
    ),
    (ELEMENTS, row(data=[[1, [2]]]), "data cannot be read as an array"),
    (ELEMENTS, row(data=[[object()]]), "data holds objects of type object"),
    (ELEMENTS, row(data=np.array(["2020"], "M8[D]")), "is the dtype of no element type"),
    (ELEMENTS, row(data=DATA.astype(complex)), "data is complex128, expected any type"),
    (ELEMENTS, row(data=DATA > 1, updates=[[True] * 2], reduction="mean"), "reduction is mean on boolean data"),
    (
        ONNX_ELEMENTS, row(data=np.full((2, 3), "a"), updates=[["b", "c"]], reduction="add"),
        "reduction is add on string data",
    ),
    (
        "ScatterNDUpdate-15", {"data": DATA, "indices": [[0, 0, 0]], "updates": [1.0]},
        "so k is 3, expected at most 2",
    ),
    ("TensorScatter-24", {**CACHE, "updates": DATA[:, :1], "axis": 0}, "axis is 0, the batch dimension of data"),
    (
        "TensorScatter-24", {**CACHE, "updates": DATA[:, :1], "indices": [0, 1, 2]},
        r"write_indices is \[3\], expected \[2\] = \[batch_size\]",
    ),
    ("TensorScatter-24", {**CACHE, "updates": DATA[:1]}, r"update is \[1, 3\], expected"),
    ("TensorScatter-24", {**CACHE, "updates": DATA, "mode": "round"}, "mode is 'round'"),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "arguments", "message"), REFUSALS)
def test_a_refusal_says_what_is_and_what_was_expected(operator: Any, arguments: Any, message: str) -> None:
    with pytest.raises((UsageError, IllegalCase), match=message):
        evaluate(operator, **arguments)


def test_a_broken_rule_is_named() -> None:
    error = refusal(**row(updates=DATA))
    assert isinstance(error, IllegalCase)
    assert error.code == "SCT203"


@pytest.mark.parametrize("operator", ["ScatterElementsUpdate-12", "ScatterElements-18"])
def test_an_index_out_of_range_is_described(operator: str) -> None:
    indices = [[1, -3, 3], [0, -4, 2]]
    error = refusal(operator, **row(indices=indices, updates=DATA))
    assert isinstance(error, IllegalIndex)
    assert (error.position, error.value, error.limits, error.count) == ((0, 2), 3, (-3, 2), 2)
    assert error.code == "SCT302"
    assert str(error) == "indices[0, 2] is 3, expected -3 to 2 (2 such values)"


@pytest.mark.parametrize("operator", ["ScatterUpdate-3", "ScatterElementsUpdate-3", "ScatterNDUpdate-3"])
def test_a_negative_index_is_refused_where_the_text_forbids_it(operator: str) -> None:
    indices = [[1], [-1]] if "ND" in operator else [1, -1]
    axis = ... if "ND" in operator else 0
    error = refusal(operator, **row(data=[1.0, 2.0], indices=indices, updates=[3.0, 4.0], axis=axis))
    assert isinstance(error, IllegalIndex)
    assert error.code == "SCT303"
    assert str(error).endswith(f"is -1, expected 0 to 1 in {operator}")


def test_an_index_of_an_empty_dimension_is_refused() -> None:
    error = refusal("ScatterUpdate-3", data=np.zeros((2, 0)), indices=0, updates=np.zeros(2), axis=1)
    assert str(error) == "indices is 0, expected no index: the dimension is empty"
    nothing = refusal("ScatterUpdate-3", data=np.zeros((0, 3)), indices=[9], updates=np.zeros((0, 1)), axis=1)
    assert nothing.args == ("indices[0] is 9, expected 0 to 2",)


@pytest.mark.parametrize("value", [2**63, 2**64 - 1, 2**32, 2**31 + 1])
def test_no_index_is_wrapped_through_a_narrower_type(value: int) -> None:
    error = refusal(**row(indices=np.array([[1, value]], np.uint64)))
    assert isinstance(error, IllegalIndex)
    assert error.value == value
    assert error.position == (0, 1)


@pytest.mark.parametrize(
    "kind", [np.int8, np.uint8, np.int16, np.uint32, np.uint64, ml_dtypes.int4, ml_dtypes.uint4]
)
def test_indices_have_any_integer_type(kind: Any) -> None:
    data, last = np.zeros(300, np.float32), -1 if np.array([-1]).astype(kind)[0] == -1 else 7
    found = evaluate(
        "ScatterElementsUpdate-12", data=data, indices=np.array([last]).astype(kind), updates=[1], axis=0
    )
    assert np.flatnonzero(found).tolist() == [last % 300]


def test_a_run_past_the_end_of_a_cache_is_refused_in_linear_mode_only() -> None:
    given: dict[str, Any] = {"data": DATA, "updates": DATA[:, :2] + 10, "indices": [1, 2], "axis": 1}
    error = refusal("TensorScatter-24", **given)
    assert str(error) == "write_indices[1] is 2, expected 0 to 1"
    found = evaluate("TensorScatter-24", **given, mode="circular")
    assert found.tolist() == [[0, 10, 11], [14, 4, 13]]
    far = given | {"indices": [2**63 - 1, -(2**63)]}
    found = evaluate("TensorScatter-24", **far, mode="circular")
    starts = [(2**63 - 1) % 3, -(2**63) % 3]
    for batch, start in enumerate(starts):
        for step in range(2):
            assert found[batch, (start + step) % 3] == DATA[batch, step] + 10


def test_the_package_names_what_is_public() -> None:
    assert {"evaluate", "evaluate_detailed", "IllegalCase", "IllegalIndex"} <= set(ir_scatter.__all__)
