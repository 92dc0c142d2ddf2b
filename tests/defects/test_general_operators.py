"""The table of general operators that a device has no kernel for, checked on the installed runtime."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper, save

from ir_scatter import evaluate_model, runners
from ir_scatter.core.arrays import Array
from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.core.fragment import Fragment, NewNode
from ir_scatter.core.model import ONNX, OPENVINO, Value
from ir_scatter.defects.general_operators import MISSING_KERNELS, missing_kernels
from ir_scatter.ops.general import named
from ir_scatter.runners.base import Outcome, Runner, Status
from tests.defects.general_nodes import OPERATORS as GENERAL_OPERATORS
from tests.defects.general_nodes import RANKS, REDUCING, General, write_general

TYPES = {
    "f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "f64": TensorProto.DOUBLE, "bf16": TensorProto.BFLOAT16,
    "i8": TensorProto.INT8, "i16": TensorProto.INT16, "i32": TensorProto.INT32, "i64": TensorProto.INT64,
    "u8": TensorProto.UINT8, "u16": TensorProto.UINT16, "u32": TensorProto.UINT32, "u64": TensorProto.UINT64,
    "boolean": TensorProto.BOOL,
}  # fmt: skip
BINARY = {
    "Concat",
    "Add",
    "Subtract",
    "Multiply",
    "Divide",
    "FloorMod",
    "Equal",
    "Less",
    "Minimum",
    "Maximum",
}
RESULTS = {
    "Equal": TensorProto.BOOL, "Less": TensorProto.BOOL, "NonZero": TensorProto.INT64, "ShapeOf": TensorProto.INT64,
    "Convert": TensorProto.FLOAT,
}  # fmt: skip
OPERATORS = sorted({*GENERAL_OPERATORS, "Convert"})
NOT_IN_ONNX = {
    ("Less", "boolean"), ("FloorMod", "boolean"), ("Minimum", "boolean"), ("Maximum", "boolean"),
    ("Negative", "boolean"), *((name, "boolean") for name in ("Add", "Subtract", "Multiply", "Divide")),
    *(("Negative", type) for type in ("u8", "u16", "u32", "u64")),
    *((name, type) for name in ("ReduceSum", "ReduceProd") for type in ("boolean", "i8", "i16", "u8", "u16")),
}  # fmt: skip
"""What the specification does not allow, which no device can be asked for."""
ONNX_SIZES = (2, 3, 1, 2, 1, 2, 1, 2)
ONNX_RANKS = (0, 1, 2, 3, 4, 5, 6, 8)
WITHOUT_SCALARS = {"Concat", "Slice", "Gather", "GatherND", "GatherElements", "ReduceSum", "ReduceProd"}
"""Operators that have no 0-D input."""


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    pytest.importorskip("onnxruntime")
    found = runners.find("onnxruntime")
    yield found
    found.close()


@pytest.mark.long
@pytest.mark.onnxruntime
@pytest.mark.parametrize("operator", OPERATORS)
def test_kernels_of_onnxruntime(
    operator: str, runner: Runner, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A node is refused or wrong where the table says so, and right in every other type and rank."""
    rows = [row for row in MISSING_KERNELS["onnxruntime"] if row.operator == operator]
    folder, differing = tmp_path_factory.mktemp("kernels"), list[str]()
    for rank in ONNX_RANKS:
        for name in TYPES:
            if (operator, name) in NOT_IN_ONNX or (rank == 0 and operator in WITHOUT_SCALARS):
                continue
            path, feeds = write_onnx(folder, operator, name, rank)
            outcome = runner.run(path, feeds, timeout=60)
            is_right = outcome.status is Status.OK and are_right(path, feeds, outcome)
            is_missing = any(name in row.types and row.rank_of_input in {None, rank} for row in rows)
            if is_right == is_missing:
                message = outcome.message[:200]
                differing.append(f"{operator} of {name} with {rank} dimensions: {outcome.status} {message}")
    assert differing == []


def are_right(path: Path | str, feeds: Mapping[str, Array], outcome: Outcome) -> bool:
    """Return whether outputs are what NumPy computes."""
    expected = evaluate_model(path, feeds)
    return all(
        np.array_equal(got.astype(np.float64), array.astype(np.float64), equal_nan=True)
        for got, array in zip(outcome.outputs.values(), expected.values(), strict=True)
    )


def write_onnx(folder: Path, operator: str, type: str, rank: int) -> tuple[Path, dict[str, Array]]:
    """Write a model of one node, and return its path and inputs."""
    sizes, kind = ONNX_SIZES[:rank], TYPES[type]
    inputs: list[ValueInfoProto] = [helper.make_tensor_value_info("x", kind, sizes)]
    if operator in BINARY or operator == "Select":
        inputs.append(helper.make_tensor_value_info("y", kind, sizes))
    if operator == "Select":
        inputs.insert(0, helper.make_tensor_value_info("c", TensorProto.BOOL, sizes))
    constants = [
        numpy_helper.from_array(np.array(numbers, np.int64), f"constant_{number}")
        for number, numbers in enumerate(_constants_of_onnx(operator, sizes))
    ]
    attributes = dict(_attributes_of_onnx(operator, type, rank))
    output = helper.make_tensor_value_info("z", RESULTS.get(operator, kind), None)
    names = [*(input.name for input in inputs), *(constant.name for constant in constants)]
    node = helper.make_node(named(operator).type_in(ONNX), names, ["z"], **attributes)
    graph = helper.make_graph([node], "g", inputs, [output], constants)
    path = folder / "model.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    feeds = {}
    for number, input in enumerate(inputs):
        numbers = np.arange(np.prod(sizes, dtype=int)).reshape(sizes) % 3 + 1 + number
        dtype = helper.tensor_dtype_to_np_dtype(input.type.tensor_type.elem_type)
        feeds[input.name] = np.asarray(numbers % 2 if dtype == np.bool_ else numbers).astype(dtype)
    return path, feeds


def _constants_of_onnx(operator: str, sizes: Sequence[int]) -> Sequence[Any]:
    constants: Mapping[str, Sequence[Any]] = {
        "Reshape": [[-1, 1]], "Unsqueeze": [[0]], "Broadcast": [[2, *sizes]], "Gather": [[0]], "GatherND": [[[0]]],
        "GatherElements": [np.zeros((1, *sizes[1:]))], "ReduceSum": [[0]], "ReduceProd": [[0]],
        "Slice": [[0], [1], [0]],
    }  # fmt: skip
    return constants.get(operator, [])


def _attributes_of_onnx(operator: str, type: str, rank: int) -> Mapping[str, Any]:
    attributes: Mapping[str, Mapping[str, Any]] = {
        "Concat": {"axis": 0}, "Transpose": {"perm": [*range(rank)][::-1]} if rank else {},
        "FloorMod": {"fmod": int(type in {"f16", "f32", "f64", "bf16"})}, "Convert": {"to": TensorProto.FLOAT},
    }  # fmt: skip
    return attributes.get(operator, {})


MEASURED = {
    "CPU": (
        "f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1", "i64", "i32", "i16", "i8", "i4",
        "u64", "u32", "u16", "u8", "u4", "u2", "boolean",
    ),
    "GPU@cpu": (
        "f32", "f16", "i64", "i32", "i16", "i8", "u8", "u16", "u32", "u64", "boolean", "u2", "f8e4m3", "f4e2m1",
    ),
}  # fmt: skip
"""Element types by device; the CPU plugin is asked for dynamic shapes too."""
NOT_IN_OPENVINO = {
    "Add",
    "Subtract",
    "Multiply",
    "Divide",
    "FloorMod",
    "Minimum",
    "Maximum",
    "Negative",
    *REDUCING,
}
"""Operators that have no booleans in the specification."""
SATURATING = {("Subtract", "u8"), ("Subtract", "u4")}
"""What the CPU plugin keeps at 0, where numbers should wrap around; rewrites do not count on that."""
ONE_WAY = {("GPU@cpu", "Convert to f32", "f4e2m1")}
"""A type that a device converts, but not back."""


@pytest.fixture(scope="module")
def open_runners() -> Iterator[dict[str, Runner]]:
    opened = dict[str, Runner]()
    yield opened
    for runner in opened.values():
        runner.close()


def nodes(device: str, operator: str) -> Iterator[General]:
    """Every type with known sizes and with none, and one type in the other ranks."""
    for type in MEASURED[device]:
        if (
            (type == "boolean" and operator in NOT_IN_OPENVINO)
            or (operator, type) in SATURATING
            or (device, operator, type) in ONE_WAY
        ):
            continue
        if operator.startswith("Convert") and (operator == "Convert to f32") != (
            type[0] in "fb" and type != "boolean"
        ):
            continue  # a type is widened to one of its kind
        for shape in ("static", "open") if device == "CPU" else ("static",):
            yield General(operator, type, 2, shape)
    yield from (General(operator, "f32", rank, "static") for rank in RANKS if rank != 2)


@pytest.mark.long
@pytest.mark.openvino
@pytest.mark.parametrize("device", MEASURED)
@pytest.mark.parametrize("operator", [*GENERAL_OPERATORS, "Convert to f32", "Convert to i32"])
def test_kernels_of_openvino(
    operator: str, device: str, open_runners: dict[str, Runner], tmp_path: Path
) -> None:
    """A node is refused or wrong where the table says so, and right everywhere else."""
    pytest.importorskip("openvino")
    runner = open_runners.setdefault(device, runners.find(device))
    if not runner.availability().is_available:
        pytest.skip(f"{runner.name} does not run here")
    differing = []
    for node in nodes(device, operator):
        if not node.is_possible:
            continue
        path, fed = write_general(tmp_path, node)
        outcome = runner.run(path, fed, timeout=60)
        is_right = outcome.status is Status.OK and are_right(path, fed, outcome)
        is_missing = any(
            row.operator == node.row and node.type in row.types and node.rank_of_result >= row.least_rank
            for row in MISSING_KERNELS[runners.original(runner.name)]
        )
        if is_right == is_missing:
            differing.append(f"{node}: {outcome.status} {outcome.message[:200]}")
    assert differing == []


def test_large_ranks_have_no_kernel() -> None:
    """The GPU plugin has no Select of six dimensions, and one of five."""
    for rank, expected in ((5, []), (6, ["Select of f32 with 6 dimensions"])):
        condition = Value("c", ELEMENT_TYPES["boolean"], (2,) * rank)
        values = Value("x", ELEMENT_TYPES["f32"], (2,) * rank)
        given = (condition, values, values)
        output = Value("y", ELEMENT_TYPES["f32"], (2,) * rank)
        fragment = Fragment(given, [NewNode("s", OPENVINO, "Select", "opset1", given, {}, output)])
        assert list(missing_kernels(fragment, "openvino:GPU")) == expected


def test_what_select_chooses_from_counts() -> None:
    condition = Value("c", ELEMENT_TYPES["boolean"], (2,))
    for type, expected in (("i16", ["Select of i16"]), ("i64", [])):
        values = Value("x", ELEMENT_TYPES[type], (2,))
        given = (condition, values, values)
        output = Value("y", ELEMENT_TYPES[type], (2,))
        fragment = Fragment(given, [NewNode("s", ONNX, "Where", 18, given, {}, output)])
        assert list(missing_kernels(fragment, "onnxruntime")) == expected
