"""One scatter node for one test: a legal one of every row, changed in one thing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import onnx
from onnx import helper

from tests.models.ir_text import Dims, IrText, Output, array_of
from tests.rules.rows import CACHE, ELEMENTS, SLICES, TUPLES, Row

_IR_TYPES = {"int64": "i64", "float": "f32"}
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
    """A node and its inputs; of a row with an axis attribute the axis is not used.

    Attributes are text in an IR; roles that are dropped are not connected, and `output` is what the file
    stores for the first of the outputs.
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

    def with_tensor(self, role: str, tensor: Tensor) -> "Case":
        changes: dict[str, Any] = {role: tensor}
        return replace(self, **changes)


def legal(row: Row) -> Case:
    number, whole = ("f32", "i64") if row.is_ir else ("float", "int64")
    data, indices, updates = _SHAPES[row.family]
    return Case(Tensor(number, data), Tensor(whole, indices), Tensor(number, updates))


def shaped(row: Row, data: Dims | None, indices: Dims | None, updates: Dims | None, **more: Any) -> Case:
    case = legal(row)
    for role, shape in (("data", data), ("indices", indices), ("updates", updates)):
        case = case.with_tensor(role, replace(getattr(case, role), shape=shape))
    return replace(case, **more)


def with_axis(row: Row, case: Case, axis: int) -> Case:
    """Return the case with another axis, as an attribute or as a constant."""
    if row.has_axis_input:
        return replace(case, axis=Tensor("i64", (), axis))
    return replace(case, attributes={**case.attributes, "axis": axis})


def _inputs(row: Row, case: Case) -> dict[str, Tensor]:
    order = ("data", "updates", "indices") if row.family == CACHE else ("data", "indices", "updates")
    roles: dict[str, Tensor] = {role: getattr(case, role) for role in order}
    if row.has_axis_input:
        roles["axis"] = case.axis
    roles |= {f"extra{number}": tensor for number, tensor in enumerate(case.extra)}
    return roles


def write_ir(row: Row, cases: Mapping[str, Case], folder: Path, opset: str | None = None) -> str:
    """Write an IR with one node for each case, named like it; return its path."""
    ir = IrText()
    for name, case in cases.items():
        tensors = _inputs(row, case).items()
        inputs = [_ir_input(ir, f"{name}.{role}", one) for role, one in tensors if role not in case.dropped]
        output = case.output or case.data
        outputs = [(output.type, output.shape or ())] * case.outputs
        word = f"opset{row.opsets[0]}" if opset is None else opset
        ir.add(name, row.type, word, inputs, outputs, case.attributes)
    return ir.write(folder)


def _ir_input(ir: IrText, name: str, tensor: Tensor) -> Output:
    if tensor.values is None:
        return ir.parameter(name, tensor.type, tensor.shape)
    return ir.const(name, tensor.type, tensor.values, _static(tensor.shape))


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
                names.append(label)
                if tensor.type == "undefined":  # no input may be, but what comes from a stranger
                    graph.node.append(helper.make_node("Make", [], [label], domain="strange"))
                else:
                    graph.input.append(_declared(label, tensor))
            else:
                array = array_of(_IR_TYPES[tensor.type], tensor.values, _static(tensor.shape))
                graph.initializer.append(onnx.numpy_helper.from_array(array, label))
                names.append(label)
        while names and not names[-1]:
            names.pop()
        outputs = [f"{name}.out{number}" for number in range(case.outputs)]
        graph.node.append(helper.make_node(row.type, names, outputs, name, **case.attributes))
        if outputs:
            graph.output.append(_declared(outputs[0], case.output or case.data))
    opsets = {"": row.opsets[0] if opset is None else opset, "strange": 1}
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return helper.make_model(graph, ir_version=10, opset_imports=imports)


def _declared(name: str, tensor: Tensor) -> onnx.ValueInfoProto:
    info = onnx.ValueInfoProto(name=name)
    if tensor.type == "undefined":
        return info
    info.type.tensor_type.elem_type = onnx.TensorProto.DataType.Value(tensor.type.upper())
    if tensor.shape is not None:
        info.type.tensor_type.shape.SetInParent()
        for dim in tensor.shape:
            written = info.type.tensor_type.shape.dim.add()
            if isinstance(dim, int):
                written.dim_value = dim
            elif dim != "?":
                written.dim_param = dim
    return info
