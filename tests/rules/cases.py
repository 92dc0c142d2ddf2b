"""One scatter node for one test: a legal one of every row, changed in one thing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import onnx
from onnx import helper

from tests.rules.ir_text import Dims, IrText, Output, array_of
from tests.rules.rows import CACHE, ELEMENTS, SLICES, TUPLES, Row

_INT_TYPES = {
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "uint8": "u8",
    "float": "f32",
    "bool": "boolean",
}
_SHAPES: dict[str, tuple[Dims, Dims, Dims]] = {
    SLICES: ((5, 3), (2,), (2, 3)),
    ELEMENTS: ((5, 3), (2, 3), (2, 3)),
    TUPLES: ((5, 3), (2, 1), (2, 3)),
    CACHE: ((2, 7, 3), (2,), (2, 4, 3)),
}


@dataclass(frozen=True)
class Tensor:
    """A tensor that flows into the node; with values it is a constant."""

    type: str
    shape: Dims | None
    values: Any = None


@dataclass(frozen=True)
class Case:
    """A node and its inputs.

    Attributes:
        axis: the fourth input of an IR's row; a constant if it has values.
        attributes: text in an IR, Python values in ONNX.
        dropped: roles that are not connected.
        extra: superfluous inputs.
        outputs: how many outputs the node has.
        output: what the file stores for the first of them.
        stored: what an IR stores at the input ports of some roles.
    """

    data: Tensor
    indices: Tensor
    updates: Tensor
    axis: Tensor = field(default_factory=lambda: Tensor("i64", (), 0))
    attributes: Mapping[str, Any] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    extra: Sequence[Tensor] = ()
    outputs: int = 1
    output: Tensor | None = None
    stored: Mapping[str, Tensor] = field(default_factory=dict)

    def with_tensor(self, role: str, tensor: Tensor) -> "Case":
        """Return the case with another tensor for a role."""
        tensors = {"data": self.data, "indices": self.indices, "updates": self.updates, role: tensor}
        return replace(self, data=tensors["data"], indices=tensors["indices"], updates=tensors["updates"])


def legal(row: Row) -> Case:
    """Return a case of a row in which nothing is wrong."""
    number, whole = ("f32", "i64") if row.is_ir else ("float", "int64")
    data, indices, updates = _SHAPES[row.family]
    return Case(Tensor(number, data), Tensor(whole, indices), Tensor(number, updates))


def shaped(row: Row, data: Dims | None, indices: Dims | None, updates: Dims | None, **more: Any) -> Case:
    """Return the legal case with other shapes."""
    case = legal(row)
    return replace(
        case,
        data=replace(case.data, shape=data),
        indices=replace(case.indices, shape=indices),
        updates=replace(case.updates, shape=updates),
        **more,
    )


def with_axis(row: Row, case: Case, axis: int) -> Case:
    """Return the case with another axis, as an attribute or as a constant."""
    if row.has_axis_input:
        return replace(case, axis=Tensor("i64", (), axis))
    return replace(case, attributes={**case.attributes, "axis": axis})


def _inputs(row: Row, case: Case) -> dict[str, Tensor]:
    roles = {"data": case.data, "indices": case.indices, "updates": case.updates}
    if row.family == CACHE:
        roles = {"data": case.data, "updates": case.updates, "indices": case.indices}
    if row.has_axis_input:
        roles["axis"] = case.axis
    roles |= {f"extra{number}": tensor for number, tensor in enumerate(case.extra)}
    return roles


def write_ir(row: Row, cases: Mapping[str, Case], folder: Path, opset: str | None = None) -> str:
    """Write an IR with one node for each case, named like it; return its path."""
    ir = IrText()
    for name, case in cases.items():
        inputs = []
        for role, tensor in _inputs(row, case).items():
            if role not in case.dropped:
                inputs.append(_ir_input(ir, f"{name}.{role}", tensor, case.stored.get(role)))
        output = case.output or case.data
        outputs = [(output.type, output.shape or ())] * case.outputs
        word = f"opset{row.opsets[0]}" if opset is None else opset
        ir.add(name, row.type, word, inputs, outputs, case.attributes)
    return ir.write(folder)


def _ir_input(ir: IrText, name: str, tensor: Tensor, stored: Tensor | None) -> Output:
    if tensor.values is None:
        source = ir.parameter(name, tensor.type, tensor.shape)
    else:
        source = ir.const(name, tensor.type, tensor.values, _static(tensor.shape))
    if stored is None:
        return source
    return replace(source, precision=stored.type, dims=stored.shape or ())


def _static(shape: Dims | None) -> list[int]:
    return [dim for dim in shape or () if isinstance(dim, int)]


def onnx_model(row: Row, cases: Mapping[str, Case], opset: int | None = None) -> onnx.ModelProto:
    """Return an ONNX model with one node for each case, named like it."""
    graph = onnx.GraphProto(name="cases")
    for name, case in cases.items():
        names = []
        for role, tensor in _inputs(row, case).items():
            label = f"{name}.{role}"
            if role in case.dropped:
                names.append("")
            elif tensor.values is None:
                graph.input.append(_declared(label, tensor))
                names.append(label)
            else:
                array = array_of(_INT_TYPES[tensor.type], tensor.values, _static(tensor.shape))
                graph.initializer.append(onnx.numpy_helper.from_array(array, label))
                names.append(label)
        while names and not names[-1]:
            names.pop()
        outputs = [f"{name}.out{number}" for number in range(case.outputs)]
        graph.node.append(helper.make_node(row.type, names, outputs, name, **case.attributes))
        if outputs:
            graph.output.append(_declared(outputs[0], case.output or case.data))
    imports = [helper.make_opsetid("", row.opsets[0] if opset is None else opset)]
    return helper.make_model(graph, ir_version=10, opset_imports=imports)


def _declared(name: str, tensor: Tensor) -> onnx.ValueInfoProto:
    info = onnx.ValueInfoProto(name=name)
    number = 0 if tensor.type == "undefined" else onnx.TensorProto.DataType.Value(tensor.type.upper())
    info.type.tensor_type.elem_type = number
    if tensor.shape is not None:
        info.type.tensor_type.shape.SetInParent()
        for dim in tensor.shape:
            written = info.type.tensor_type.shape.dim.add()
            if isinstance(dim, int):
                written.dim_value = dim
            elif dim != "?":
                written.dim_param = dim
    return info
