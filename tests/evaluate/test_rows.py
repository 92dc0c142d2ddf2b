"""A node in a model gives what `evaluate` gives for the same operator."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from ir_scatter import evaluate, evaluate_model
from ir_scatter.core.arrays import Array
from ir_scatter.core.model import ONNX
from ir_scatter.inputs import Case, random_case
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import OpSpec, Role
from tests.rules.ir_text import IrText

CASES = 60
ROWS = {str(spec.key): spec for spec in SPECS.values() if not spec.is_removed}


@pytest.mark.parametrize("name", ROWS)
def test_a_node_gives_what_its_operator_gives(name: str, tmp_path: Path) -> None:
    random, spec = np.random.default_rng(5), ROWS[name]
    cases = {f"n{number}": _case(spec, random, number) for number in range(CASES)}
    path = _write_onnx(spec, cases, tmp_path) if spec.key.domain == ONNX else _write_ir(spec, cases, tmp_path)
    found = evaluate_model(path, {})
    assert found.keys() == cases.keys()
    for node, case in cases.items():
        expected = evaluate(case.operator, **case.arguments())
        assert found[node].dtype == expected.dtype
        np.testing.assert_array_equal(found[node], expected, err_msg=node)


def _case(spec: OpSpec, random: np.random.Generator, number: int) -> Case:
    """Draw a case of types that both file formats and the tests can write."""
    indices = spec.port(Role.INDICES)
    assert indices is not None
    index_type = "i32" if number % 2 and "i32" in indices.element_types else "i64"
    return random_case(spec, random, element_type=("f32", "i8")[number % 3 == 0], index_type=index_type)


def _operands(case: Case) -> dict[Role, Array | None]:
    found = {Role.DATA: case.data, Role.INDICES: case.indices, Role.UPDATES: case.updates}
    return {**found, Role.AXIS: np.array(case.axis)}


def _write_onnx(spec: OpSpec, cases: dict[str, Case], folder: Path) -> Path:
    graph = onnx.GraphProto(name="rows")
    for name, case in cases.items():
        arrays, inputs = _operands(case), []
        for port in spec.ports:
            array = arrays[port.role]
            inputs.append("" if array is None else f"{name}.{port.role}")
            if array is not None:
                graph.initializer.append(onnx.numpy_helper.from_array(array, inputs[-1]))
        attributes = dict(case.attributes)
        if spec.axis is not None and spec.axis.attribute is not None:
            attributes[spec.axis.attribute] = case.axis
        graph.node.append(helper.make_node(spec.key.type, inputs, [name], name, **attributes))
        number = helper.np_dtype_to_tensor_dtype(case.data.dtype)
        graph.output.append(helper.make_tensor_value_info(name, number, case.data.shape))
    opset = spec.opsets[-1]
    assert isinstance(opset, int)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    path = folder / "rows.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def _write_ir(spec: OpSpec, cases: dict[str, Case], folder: Path) -> str:
    ir = IrText()
    for name, case in cases.items():
        arrays, inputs = _operands(case), []
        types = {Role.INDICES: case.index_type.name, Role.AXIS: "i64"}
        for port in spec.ports:
            array, type = arrays[port.role], types.get(port.role, case.element_type.name)
            assert array is not None
            inputs.append(ir.const(f"{name}.{port.role}", type, array, array.shape))
        attributes = {key: str(value) for key, value in case.attributes.items()}
        outputs = [(case.element_type.name, case.data.shape)]
        node = ir.add(name, spec.key.type, str(spec.opsets[-1]), inputs, outputs, attributes)
        ir.add(f"{name}.result", "Result", "opset1", [node], [])
    return ir.write(folder)
