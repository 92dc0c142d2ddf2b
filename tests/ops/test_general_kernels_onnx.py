"""ONNX's general operators against ONNX's reference evaluator and onnxruntime."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, defs, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from ir_scatter.ops.general import ROWS
from tests.ops import arrays
from tests.ops.arrays import DIVISORS, FLAGS, REALS, SIGNS, f32, i32, i64, typed


def count(*shape: int, dtype: Any = np.float32) -> Any:
    return arrays.count(*shape, dtype=dtype)


CUBE = count(2, 3, 5)
TO_8_BITS = f32([0, 2.5, -0.3, 447, 460, 470, -6e4, 1e9, -np.inf, np.nan])


@dataclass(frozen=True)
class Example:
    type: str
    inputs: Sequence[Any]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    opset: int = 18
    outputs: int = 1
    reference: bool = True
    onnxruntime: bool = True


EXAMPLES = [
    Example("Identity", [CUBE]),
    Example("Cast", [REALS], {"to": TensorProto.INT64}),
    Example("Cast", [REALS], {"to": TensorProto.BOOL}),
    Example("Cast", [SIGNS], {"to": TensorProto.UINT8}),
    Example("Cast", [FLAGS], {"to": TensorProto.FLOAT16}),
    *(
        Example("Cast", [TO_8_BITS], {"to": type, "saturate": saturate}, opset=19, onnxruntime=False)
        for type in (
            TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E4M3FNUZ,
            TensorProto.FLOAT8E5M2FNUZ,
        )
        for saturate in (0, 1)
    ),
    Example("CastLike", [REALS, SIGNS]),
    Example("Reshape", [CUBE, i64(0, -1)]),
    Example("Reshape", [count(0, 3), i64(3, 0)], {"allowzero": 1}),
    Example("Reshape", [count(1), i64()]),
    *(Example("Flatten", [CUBE], written) for written in ({}, {"axis": 0}, {"axis": -1}, {"axis": 3})),
    Example("Squeeze", [count(1, 3, 1)]),
    Example("Squeeze", [count(1, 3, 1), i64(-1)]),
    Example("Squeeze", [count(1, 3, 1)], {"axes": [0]}, opset=11),
    Example("Unsqueeze", [count(3), i64(0, -1)]),
    Example("Unsqueeze", [count(3)], {"axes": [1]}, opset=11),
    Example("Transpose", [CUBE]),
    Example("Transpose", [CUBE], {"perm": [2, 0, 1]}),
    Example("Expand", [count(3, 1), i64(2, 1, 5)]),
    Example("Expand", [count(3, 4), i64(1)]),
    Example("Tile", [count(2, 3), i64(2, 1)]),
    Example("Tile", [count(2, 3), i64(0, 2)]),
    Example("ConstantOfShape", [i64(2, 3)]),
    Example("ConstantOfShape", [i64()], {"value": np.array([7], np.int64)}),
    Example("Concat", [count(2, 3), count(2, 1)], {"axis": -1}),
    Example("Split", [count(7), i64(2, 5)], outputs=2),
    Example("Split", [count(7)], {"num_outputs": 3}, outputs=3),
    Example("Split", [count(2, 6)], {"axis": 1}, opset=13, outputs=3),
    Example("Split", [count(5)], {"split": [2, 3]}, opset=11, outputs=2),
    Example("Shape", [CUBE]),
    Example("Shape", [CUBE], {"start": -2, "end": 99}),
    Example("Shape", [CUBE], {"start": 2, "end": 1}),
    Example("Size", [CUBE]),
    Example("Gather", [CUBE, i64(-1, 0)], {"axis": 1}),
    Example("Gather", [CUBE, np.array(2, np.int32)], {"axis": -1}),
    Example("GatherND", [CUBE, np.array([[0, 1], [-1, -1]])]),
    Example("GatherND", [CUBE, np.array([[2], [-3]])], {"batch_dims": 1}),
    Example("GatherElements", [count(3, 3), np.array([[1, -1, 0], [2, 0, 0]])]),
    Example("GatherElements", [count(2, 3), np.array([[1, -1], [2, 0]])], {"axis": 1}),
    Example("Slice", [count(2, 4)], {"starts": [0, 1], "ends": [-1, 1000]}, opset=9),
    Example("Slice", [CUBE, i64(1, 9), i64(9, -9), i64(-2, 2), i64(1, -2)]),
    Example("Slice", [CUBE, i64(-9), i64(-9), i64(2), i64(-1)], reference=False),
    Example("Slice", [CUBE, i64(0), i64(2**63 - 1), None, i64(2**62)]),
    Example("Slice", [CUBE, i64(4), i64(-(2**63)), i64(2), i64(-1)]),
    Example("Range", [np.array(10), np.array(4), np.array(-2)]),
    Example("Range", [np.array(3), np.array(3), np.array(1)]),
    Example("Range", [f32(0.5), f32(2.5), f32(0.25)]),
    Example("NonZero", [FLAGS]),
    Example("NonZero", [f32(0)], onnxruntime=False),
    Example("Add", [CUBE, count(3, 1)]),
    Example("Add", [np.array([120], np.int8), np.array([100], np.int8)]),
    Example("Sub", [np.array([3], np.uint8), np.array([5], np.uint8)]),
    Example("Mul", [CUBE, CUBE]),
    Example("Div", [SIGNS, DIVISORS], reference=False),
    Example("Div", [REALS, np.zeros(6, np.float32)]),
    Example("Mod", [SIGNS, DIVISORS], {"fmod": 1}),
    Example("Mod", [REALS, f32([2, -2, 3, 0, -1, 3])], {"fmod": 1}),
    Example("Pow", [i32([2, -3, 5]), i32([3, 3, 0])]),
    Example("Pow", [REALS, typed("int64", [2])]),
    Example("Pow", [i32([4, 9]), f32([0.5])], reference=False),
    Example("Min", [CUBE, count(3, 1), f32(7)]),
    Example("Max", [f32([1, np.nan]), f32([2, 2])]),
    Example("Abs", [SIGNS]),
    Example("Neg", [np.array([-128, 5], np.int8)]),
    *(Example(type, [REALS]) for type in ("Floor", "Ceil", "Relu")),
    Example("Sqrt", [f32([0, 2, 6.25])]),
    Example("Where", [FLAGS, count(3), f32(9)]),
    *(Example(type, [REALS, REALS[::-1].copy()]) for type in ("Less", "LessOrEqual")),
    *(Example(type, [SIGNS, DIVISORS]) for type in ("Greater", "GreaterOrEqual", "Mod", "Max")),
    Example("Equal", [f32([1, np.nan]), f32([1, np.nan])]),
    *(Example(type, [FLAGS, FLAGS[:1]]) for type in ("And", "Or", "Xor")),
    Example("Not", [FLAGS]),
    Example("CumSum", [count(2, 3), np.array(-1)]),
    *(
        Example("CumSum", [count(2, 3), np.array(axis)], {"reverse": reverse, "exclusive": exclusive})
        for axis, reverse, exclusive in ((1, 0, 1), (0, 1, 0), (1, 1, 1))
    ),
    Example("ReduceSum", [CUBE, i64(-1)]),
    Example("ReduceSum", [CUBE, i64()], {"noop_with_empty_axes": 1}),
    Example("ReduceSum", [CUBE], {"keepdims": 0}),
    Example("ReduceSum", [count(0, 3), i64(0)]),
    Example("ReduceProd", [CUBE + 1], {"axes": [1], "keepdims": 0}, opset=13),
    Example("ReduceMax", [CUBE, i64(0, 2)]),
    Example("ReduceMax", [count(0, 3), i64(0)], opset=20),
    Example("ReduceMax", [FLAGS, i64(1)], opset=20),
    Example("ReduceMin", [np.zeros((2, 0), np.int32), i64(1)], opset=20, onnxruntime=False),
]  # fmt: skip


def label(example: Example) -> str:
    return f"{example.type}-{example.opset}"


def model_of(example: Example) -> tuple[Any, dict[str, Any]]:
    names = [f"x{index}" if x is not None else "" for index, x in enumerate(example.inputs)]
    arrays = {name: np.asarray(x) for name, x in zip(names, example.inputs, strict=True) if name}
    outputs = [f"y{index}" for index in range(example.outputs)]
    written = {
        name: numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        for name, value in example.attributes.items()
    }
    node = helper.make_node(example.type, names, outputs, **written)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in arrays.items()
    ]
    graph = helper.make_graph([node], "general", inputs, [*map(helper.make_empty_tensor_value_info, outputs)])
    opsets = [helper.make_opsetid("", example.opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), arrays


def demand(example: Example, expected: Sequence[Any]) -> None:
    options: Any = {"opset": example.opset, "outputs": example.outputs, **example.attributes}
    arrays.demand_same(arrays.run("", example.type, *example.inputs, **options), expected)


@pytest.mark.parametrize("example", [x for x in EXAMPLES if x.reference], ids=label)
@pytest.mark.long
def test_agrees_with_the_reference_evaluator(example: Example) -> None:
    model, arrays = model_of(example)
    with np.errstate(all="ignore"):
        expected: Any = ReferenceEvaluator(model).run(None, arrays)
    demand(example, expected)


@pytest.mark.onnxruntime
@pytest.mark.parametrize("example", [x for x in EXAMPLES if x.onnxruntime], ids=label)
def test_agrees_with_onnxruntime(example: Example) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    model, arrays = model_of(example)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    demand(example, session.run(None, arrays))


def test_every_operator_has_an_example() -> None:
    computed_types = {row.type_in("") for row in ROWS if row.kernel_in("")} - {""}
    assert computed_types == {example.type for example in EXAMPLES}


def test_every_documented_attribute_is_known() -> None:
    rows = [row for row in ROWS if row.type_in("") and row.kernel_in("")]
    legacy = {"consumed_inputs", "broadcast", "axis"}
    documented: dict[str, set[str]] = {row.type_in(""): set() for row in rows}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.name in documented:
            documented[schema.name] |= set(schema.attributes)
    for row in rows:
        assert documented[row.type_in("")] - legacy == set(row.attributes_in("")) - legacy
