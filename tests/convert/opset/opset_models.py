"""Small models of one opset, to be moved to another one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import (
    AttributeProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    checker,
    helper,
    numpy_helper,
    shape_inference,
)

from ir_scatter.convert.opset.move import plan_move
from ir_scatter.core.model import Model
from ir_scatter.formats.base import ReadOptions
from ir_scatter.formats.onnx import reader as onnx_model
from ir_scatter.formats.onnx.writer import write_onnx
from tests.models.runtimes import run_all

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Case:
    """One node at one opset, and what to feed it.

    Behind the inputs that are `fed` come initializers, None for an input that is left out. The model may not
    tell the shapes of its inputs, or not even their ranks. Outputs are of the type of the first input if no
    other is told.
    """

    name: str
    opset: int
    node: str
    fed: tuple[Array, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    constants: tuple[Array | None, ...] = ()
    outputs: int = 1
    knows_shapes: bool = True
    ranks: bool = True
    output_types: tuple[int, ...] = ()

    def proto(self) -> ModelProto:
        """Return the model."""
        fed = [f"x{number}" for number in range(len(self.fed))]
        constants = ["" if array is None else f"c{number}" for number, array in enumerate(self.constants)]
        outputs = [f"y{number}" for number in range(self.outputs)]
        node = helper.make_node(self.node, [*fed, *constants], outputs, name="node")
        for name, value in self.attributes.items():
            kind = AttributeProto.INTS if value == [] else None
            node.attribute.append(helper.make_attribute(name, value, attr_type=kind))
        first = type_of(self.fed[0])
        types = self.output_types or (first,) * self.outputs
        given = {
            name: array for name, array in zip(constants, self.constants, strict=True) if array is not None
        }
        return model_of(
            [node],
            [self._input(name, array) for name, array in zip(fed, self.fed, strict=True)],
            [
                helper.make_tensor_value_info(name, type, None)
                for name, type in zip(outputs, types, strict=True)
            ],
            opset=self.opset,
            constants=given,
        )

    def _input(self, name: str, array: Array) -> ValueInfoProto:
        shape: list[int | str] | None = None
        if self.ranks:
            shape = list(array.shape) if self.knows_shapes else [f"d{axis}" for axis in range(array.ndim)]
        return helper.make_tensor_value_info(name, type_of(array), shape)


def type_of(array: Array) -> int:
    """Return ONNX's number for the type of an array."""
    return int(helper.np_dtype_to_tensor_dtype(array.dtype))


def model_of(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    *,
    opset: int,
    constants: Mapping[str, Array] | None = None,
    **others: Any,
) -> ModelProto:
    """Return a model of the default domain."""
    tensors: list[TensorProto] = [
        numpy_helper.from_array(array, name) for name, array in (constants or {}).items()
    ]
    graph = helper.make_graph(list(nodes), "graph", list(inputs), list(outputs), tensors)
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, **others)


def read(proto: ModelProto) -> Model:
    """Read a model as the reader does."""
    return onnx_model.read("model.onnx", proto.SerializeToString(), ReadOptions(has_folder=False))


def moved(proto: ModelProto, opset: int) -> ModelProto:
    """Return the model at another opset; it must get there, and be sound."""
    model = read(proto)
    move = plan_move(model, opset)
    assert move.obstacles == ()
    copy: ModelProto = ModelProto.FromString(write_onnx(model, [], move))
    assert_sound(copy)
    return copy


def assert_sound(proto: ModelProto) -> None:
    """Assert that onnx finds nothing wrong with a model, its types and shapes included."""
    shape_inference.infer_shapes(proto, check_type=True, strict_mode=True)
    copy = ModelProto()
    copy.CopyFrom(proto)
    for value in (*copy.graph.input, *copy.graph.output):
        value.type.tensor_type.shape.SetInParent()
    checker.check_model(copy)


def reasons(proto: ModelProto, opset: int) -> list[str]:
    """Return what stands in the way of a move."""
    return [obstacle.reason for obstacle in plan_move(read(proto), opset).obstacles]


def types_of(proto: ModelProto) -> list[str]:
    """Return the operators of the main graph in order."""
    return [node.op_type for node in proto.graph.node]


def outputs_of(
    jobs: Mapping[str, tuple[ModelProto, Sequence[Array]]], folder: Path
) -> dict[str, list[Array] | str]:
    """Return what onnxruntime computes for each model, or why it does not."""
    listed = {}
    for number, (name, (proto, fed)) in enumerate(jobs.items()):
        path = folder / f"{number}.onnx"
        path.write_bytes(proto.SerializeToString())
        listed[name] = (path, fed)
    found = run_all("onnxruntime", listed, folder)
    return {name: outcome.error or outcome.outputs for name, outcome in found.items()}


def assert_moves_mean_the_same(pairs: Sequence[tuple[Case, int]], folder: Path) -> None:
    """Assert that cases give the same bytes at other opsets."""
    jobs: dict[str, tuple[ModelProto, Sequence[Array]]] = {}
    for case, opset in pairs:
        proto = case.proto()
        jobs[f"{case.node} {case.name} at {case.opset}"] = (proto, case.fed)
        jobs[f"{case.node} {case.name} moved to {opset}"] = (moved(proto, opset), case.fed)
    found = outputs_of(jobs, folder)
    for case, opset in pairs:
        before = found[f"{case.node} {case.name} at {case.opset}"]
        after = found[f"{case.node} {case.name} moved to {opset}"]
        assert not isinstance(before, str), f"{case.node} {case.name}: {before}"
        assert not isinstance(after, str), f"{case.node} {case.name} at {opset}: {after}"
        assert_equal(before, after, f"{case.node} {case.name} at {opset}")


def assert_equal(before: Sequence[Array], after: Sequence[Array], where: str) -> None:
    """Assert that two lists of arrays are equal, byte by byte."""
    assert len(before) == len(after), where
    for left, right in zip(before, after, strict=True):
        assert left.dtype == right.dtype, where
        assert left.shape == right.shape, where
        assert left.tobytes() == right.tobytes(), where


def numbers(*shape: int, seed: int = 0, type: str = "float32") -> Array:
    """Return random numbers, small ones with many equal among them if the type has no fractions."""
    generator = np.random.default_rng(seed)
    if np.dtype(type).kind == "f":
        return generator.standard_normal(shape).astype(type)
    return generator.integers(0, 6, shape).astype(type)
