"""The table of general operators that a device has no kernel for, checked on the installed runtime."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper, save

from ir_scatter import runners
from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.core.fragment import Fragment, NewNode
from ir_scatter.core.model import ONNX, Value
from ir_scatter.defects.general_operators import MISSING_KERNELS, missing_kernels
from ir_scatter.ops.general import named
from ir_scatter.runners.base import Runner, Status

TYPES = {
    "f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "f64": TensorProto.DOUBLE, "bf16": TensorProto.BFLOAT16,
    "i8": TensorProto.INT8, "i16": TensorProto.INT16, "i32": TensorProto.INT32, "i64": TensorProto.INT64,
    "u8": TensorProto.UINT8, "u16": TensorProto.UINT16, "u32": TensorProto.UINT32, "u64": TensorProto.UINT64,
    "boolean": TensorProto.BOOL,
}  # fmt: skip
MORE = {
    "Reshape": [3, 2], "Unsqueeze": [0], "Broadcast": [2, 2, 3], "Gather": [0], "GatherND": [[0]],
    "GatherElements": [[0, 0, 0]], "ReduceSum": [0], "ReduceProd": [0],
}  # fmt: skip
"""The second input of an operator, a constant."""

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
ATTRIBUTES: Mapping[str, Mapping[str, Any]] = {
    "Concat": {"axis": 0},
    "Transpose": {"perm": [1, 0]},
    "FloorMod": {"fmod": 0},
}
RESULTS = {"Equal": TensorProto.BOOL, "Less": TensorProto.BOOL, "NonZero": TensorProto.INT64}
OPERATORS = sorted({*MORE, *BINARY, "Transpose", "Slice", "NonZero", "Negative", "Select"})
NOT_IN_ONNX = {
    ("Less", "boolean"), ("FloorMod", "boolean"), ("Minimum", "boolean"), ("Maximum", "boolean"),
    ("Negative", "boolean"), *((name, "boolean") for name in ("Add", "Subtract", "Multiply", "Divide")),
    *(("Negative", type) for type in ("u8", "u16", "u32", "u64")),
    *((name, type) for name in ("ReduceSum", "ReduceProd") for type in ("boolean", "i8", "i16", "u8", "u16")),
}  # fmt: skip
"""What the specification does not allow, which no device can be asked for."""


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
    rows = [row for row in MISSING_KERNELS["onnxruntime"] if row.operator == operator]
    folder, wrong = tmp_path_factory.mktemp("kernels"), list[str]()
    for name, type in TYPES.items():
        if (operator, name) in NOT_IN_ONNX:
            continue
        inputs = [helper.make_tensor_value_info("x", type, [2, 3])]
        constants = []
        if operator in BINARY or operator == "Select":
            inputs.append(helper.make_tensor_value_info("y", type, [2, 3]))
        if operator == "Select":
            inputs.insert(0, helper.make_tensor_value_info("c", TensorProto.BOOL, [2, 3]))
        if operator in MORE:
            constants = [numpy_helper.from_array(np.array(MORE[operator], np.int64), "numbers")]
        if operator == "Slice":
            pairs = (("begin", 0), ("end", 1), ("axes", 0))
            constants = [
                numpy_helper.from_array(np.array([number], np.int64), word) for word, number in pairs
            ]
        attributes = dict(ATTRIBUTES.get(operator, {}))
        if operator == "FloorMod":
            attributes["fmod"] = int(name in {"f16", "f32", "f64", "bf16"})
        output = helper.make_tensor_value_info("z", RESULTS.get(operator, type), None)
        names = [one.name for one in inputs] + [one.name for one in constants]
        node = helper.make_node(named(operator).type_in(ONNX), names, ["z"], **attributes)
        graph = helper.make_graph([node], "g", inputs, [output], constants)
        path = folder / "model.onnx"
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
        dtype = {one: np.ones([2, 3], helper.tensor_dtype_to_np_dtype(t)) for one, t in _typed(inputs)}
        outcome = runner.run(path, dtype, timeout=60)
        is_missing = any(name in row.types for row in rows)
        if is_missing != (outcome.status is not Status.OK):
            wrong.append(f"{operator} of {name}: {outcome.status} {outcome.message[:200]}")
    assert wrong == []


def _typed(inputs: Sequence[ValueInfoProto]) -> Iterator[tuple[str, int]]:
    return ((one.name, one.type.tensor_type.elem_type) for one in inputs)


def test_what_select_chooses_from_counts() -> None:
    condition = Value("c", ELEMENT_TYPES["boolean"], (2,))
    for type, expected in (("i16", ["Select of i16"]), ("i64", [])):
        values = Value("x", ELEMENT_TYPES[type], (2,))
        given = (condition, values, values)
        output = Value("y", ELEMENT_TYPES[type], (2,))
        fragment = Fragment(given, [NewNode("s", ONNX, "Where", 18, given, {}, output)])
        assert list(missing_kernels(fragment, "onnxruntime")) == expected
