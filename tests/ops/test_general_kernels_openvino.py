"""The IR's general operators against OpenVINO: `Model.evaluate` and the CPU plugin."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter.ops.general import ROWS
from tests.ops.arrays import DIVISORS, FLAGS, REALS, SIGNS, count, demand_same, f32, i32, i64, run

openvino = pytest.importorskip("openvino")
from openvino import opset1, opset5, opset7, opset8, opset15, opset16  # noqa: E402

pytestmark = pytest.mark.openvino


ZERO = np.array(0, np.int64)
ONE = np.array(1, np.int64)
CUBE = count(2, 3, 5)


@dataclass(frozen=True)
class Example:
    """A node, and who computes of it what the document says."""

    type: str
    build: Callable[..., Any]
    inputs: Sequence[Any]
    cpu: bool = True
    evaluate: bool = True


def sliced(**masks: Sequence[int]) -> Callable[..., Any]:
    zeros = [0] * max(map(len, masks.values()), default=1)

    def build(*nodes: Any) -> Any:
        return opset1.strided_slice(*nodes, **({"begin_mask": zeros, "end_mask": zeros} | masks))

    return build


def example(type: str, build: Callable[..., Any], *inputs: Any, **oracles: bool) -> Example:
    return Example(type, build, [np.asarray(value) for value in inputs], **oracles)


def constant(array: Any) -> Any:
    return openvino.op.Constant(openvino.Tensor(array))


def pairs(types: str, *inputs: Any) -> list[Example]:
    """Give the same inputs to several operators that have no attributes."""
    words = {type: re.sub("(?<!^)([A-Z])", r"_\1", type).lower() for type in types.split()}
    return [example(type, getattr(opset1, word), *inputs) for type, word in words.items()]


EXAMPLES = [
    example("Identity", opset16.identity, CUBE, evaluate=False),
    example("Convert", lambda x: opset1.convert(x, "i64"), REALS),
    example("Convert", lambda x: opset1.convert(x, "u8"), SIGNS),
    example("Convert", lambda x: opset1.convert(x, "boolean"), REALS),
    example("Convert", lambda x: opset1.convert(x, "f16"), f32([1e6, 0.1])),
    example("ConvertLike", opset1.convert_like, REALS, SIGNS, evaluate=False),
    example("Reshape", lambda x, y: opset1.reshape(x, y, True), CUBE, i64(0, -1)),
    example("Reshape", lambda x, y: opset1.reshape(x, y, False), count(2, 0), i64(0, 4)),
    example("Squeeze", opset1.squeeze, count(1, 3, 1), i64(0, -1)),
    example("Squeeze", opset15.squeeze, count(1, 3, 1), i64(0, 1)),
    example("Squeeze", opset15.squeeze, count(1, 3, 1), ZERO),
    example("Squeeze", opset15.squeeze, count(1, 3, 1)),
    example("Unsqueeze", opset1.unsqueeze, count(2, 3), i64(-1, 0)),
    example("Unsqueeze", opset1.unsqueeze, count(2, 3), ONE),
    example("Transpose", opset1.transpose, CUBE, i64(2, 0, 1)),
    example("Transpose", opset1.transpose, CUBE, i64()),
    example("Broadcast", opset15.broadcast, count(3, 1), i64(2, 3, 5)),
    example("Broadcast", lambda x, y: opset15.broadcast(x, y, None, "bidirectional"), count(3, 1), i64(1, 5)),
    example("Broadcast", lambda x, y, z: opset15.broadcast(x, y, z, "explicit"), count(3, 5), i64(2, 3, 5, 7),
            i64(1, 2)),
    example("Tile", opset1.tile, count(2, 3), i64(2, 1, 2)),
    example("Tile", opset1.tile, count(2, 3), i64(2)),
    example("Concat", lambda x, y: opset1.concat([x, y], -1), count(2, 3), count(2, 1)),
    example("Split", lambda x, y: opset1.split(x, y, 3), count(2, 6), ONE),
    example("VariadicSplit", opset1.variadic_split, count(2, 6), np.array(-1), i64(2, -1, 1)),
    example("ShapeOf", opset1.shape_of, CUBE),
    example("ShapeOf", lambda x: opset15.shape_of(x, "i32"), CUBE),
    example("Gather", opset1.gather, CUBE, np.array([[2, 0]]), ONE),
    example("Gather", lambda x, y, z: opset7.gather(x, y, z, 1), CUBE, np.array([[2], [0]]), i64(2)),
    example("Gather", lambda x, y, z: opset8.gather(x, y, z, -1), CUBE, np.array([[-1], [0]]), ONE),
    example("Gather", opset8.gather, count(4), i64(3, 4, -5, -1), ZERO, cpu=False),
    example("GatherND", opset8.gather_nd, CUBE, np.array([[0, 1], [1, 2]]), evaluate=False),
    example("GatherND", lambda x, y: opset8.gather_nd(x, y, 2), CUBE, count(2, 3, 1) % 5, evaluate=False),
    example("GatherND", lambda x, y: opset5.gather_nd(x, y, 2), CUBE, count(2, 3, 1) % 5, evaluate=False),
    example("GatherElements", lambda x, y: opset8.gather_elements(x, y, 1), count(2, 3),
            np.array([[2, 0], [1, 1]]), evaluate=False),
    example("Slice", opset8.slice, CUBE, i64(1, 4), i64(9, -9), i64(1, -2), i64(1, -1)),
    example("Slice", opset8.slice, CUBE, i64(0, -2), i64(2**63 - 1, 9), i64(1, 1)),
    example("StridedSlice", sliced(), count(6), i64(-9), i64(4), i64(2)),
    example("StridedSlice", sliced(), count(6), i64(9), i64(-9), i64(-2)),
    example("StridedSlice", sliced(), count(6), i64(-9), i64(-9 + 1), i64(-1)),
    example("StridedSlice", sliced(begin_mask=[1], end_mask=[1]), count(6), i64(2), i64(3), i64(-1)),
    example("StridedSlice", sliced(begin_mask=[1, 0], end_mask=[0, 1]), CUBE, i64(9, 1), i64(1, 0),
            i64(1, 1)),
    example("StridedSlice", sliced(new_axis_mask=[1, 0, 1]), CUBE, i64(7, 0, 7), i64(7, 1, 7), i64(1, 1, 1)),
    example("StridedSlice", sliced(shrink_axis_mask=[0, 1]), CUBE, i64(0, -1), i64(2, 0), i64(1, 1)),
    example("StridedSlice", sliced(shrink_axis_mask=[1, 0, 0], ellipsis_mask=[0, 1, 0]), CUBE,
            i64(1, 0, -4), i64(2, 0, -1), i64(1, 1, 1)),
    example("StridedSlice", sliced(new_axis_mask=[0, 0, 1, 0], ellipsis_mask=[0, 1, 0, 0]), CUBE,
            i64(1, 0, 0, 1), i64(2, 0, 0, 3), i64(1, 1, 1, 1)),
    example("Range", lambda x, y, z: opset15.range(x, y, z, "i32"), np.array(23), np.array(2), np.array(-3)),
    example("Range", lambda x, y, z: opset15.range(x, y, z, "f32"), f32(1), f32(2.5), f32(0.5)),
    example("Range", opset1.range, i32(2), i32(9), i32(3)),
    example("NonZero", lambda x: opset8.non_zero(x, "i32"), FLAGS),
    example("Add", lambda x, y: opset1.add(x, y, "none"), CUBE, CUBE),
    example("Divide", opset1.divide, SIGNS, DIVISORS, cpu=False),
    example("Divide", opset1.divide, REALS, np.full(6, 4, np.float32)),
    example("Mod", opset1.mod, REALS, f32([2, -2, 3, 2, -1, 3]), evaluate=False),
    example("FloorMod", opset1.floor_mod, REALS, f32([2, -2, 3, 2, -1, 3])),
    example("Power", opset1.power, SIGNS, np.abs(DIVISORS)),
    *pairs("Abs Negative Ceiling", SIGNS),
    *pairs("Floor Ceiling", REALS),
    example("Sqrt", opset1.sqrt, f32([0, 4, 6.25])),
    example("Sqrt", opset1.sqrt, count(11)),
    example("ReLU", opset1.relu, REALS),
    example("Select", opset1.select, FLAGS, count(4, 2, 3), i32(9)),
    *pairs("Less LessEqual", REALS, REALS[::-1].copy()),
    *pairs("Greater GreaterEqual Equal NotEqual Minimum Maximum Mod FloorMod", SIGNS, DIVISORS),
    *pairs("LogicalAnd LogicalOr LogicalXor", FLAGS, FLAGS[:1]),
    *pairs("Add Subtract Multiply", CUBE, count(3, 1)),
    example("LogicalNot", opset1.logical_not, FLAGS),
    example("CumSum", opset8.cum_sum, count(2, 3), np.array(-1), evaluate=False),
    example("CumSum", lambda x, y: opset8.cum_sum(x, y, True, True), count(2, 3), ONE, evaluate=False),
    example("ReduceSum", opset1.reduce_sum, CUBE, i64(0, -1)),
    example("ReduceSum", opset1.reduce_sum, CUBE, i64(), cpu=False),
    example("ReduceProd", lambda x, y: opset1.reduce_prod(x, y, True), CUBE + 1, i64(1)),
    example("ReduceMax", opset1.reduce_max, CUBE, ONE),
    example("ReduceMin", opset1.reduce_min, CUBE, i64(0)),
]  # fmt: skip


def computed(given: Example, folder: Path) -> tuple[Any, ...]:
    """Compute a node from the attributes that OpenVINO writes into an IR."""
    node = given.build(*map(constant, given.inputs))
    model = openvino.Model(node.outputs(), [])
    openvino.serialize(model, folder / "model.xml")
    layers = ElementTree.parse(folder / "model.xml").getroot().iter("layer")
    (layer,) = [layer for layer in layers if layer.get("type") not in {"Const", "Result"}]
    data = layer.find("data")
    assert layer.get("type", "").lower() == given.type.lower()
    attributes: Any = {} if data is None else data.attrib
    opset = int(layer.get("version", "").removeprefix("opset"))
    return run("openvino", given.type, *given.inputs, opset=opset, **attributes)


@pytest.mark.parametrize(
    "given", [given for given in EXAMPLES if given.evaluate], ids=lambda given: given.type
)
def test_agrees_with_evaluate(given: Example, tmp_path: Path) -> None:
    node = given.build(*map(constant, given.inputs))
    model = openvino.Model(node.outputs(), [])
    outputs = [
        openvino.Tensor(
            output.element_type, output.shape if output.partial_shape.is_static else openvino.Shape([0])
        )
        for output in model.outputs
    ]
    assert model.evaluate(outputs, [])
    demand_same(computed(given, tmp_path), [output.data for output in outputs])


@pytest.mark.parametrize("given", [given for given in EXAMPLES if given.cpu], ids=lambda given: given.type)
@pytest.mark.long
def test_agrees_with_the_cpu_plugin(given: Example, tmp_path: Path) -> None:
    first, *others = given.inputs
    parameter = opset1.parameter(list(first.shape), openvino.Type(first.dtype))
    node = given.build(parameter, *map(constant, others))
    model = openvino.Model(node.outputs(), [parameter])
    compiled = openvino.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled([first])
    demand_same(computed(given, tmp_path), [results[port] for port in compiled.outputs])


def test_every_operator_has_an_example() -> None:
    computed_types = {row.type_in("openvino") for row in ROWS if row.kernel_in("openvino")} - {""}
    assert computed_types - {"Xor"} == {given.type for given in EXAMPLES}  # opset1's name for LogicalXor
