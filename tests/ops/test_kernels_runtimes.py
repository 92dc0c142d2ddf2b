"""The kernels against runtimes, for the types that these compute as the documents say."""

import re
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ir_scatter import evaluate_detailed
from ir_scatter.evaluate.certainty import DetailedResult
from ir_scatter.ops.spec import Layout, OpSpec, Reduction, Role
from tests.ops.naive_scatter import positions
from tests.ops.scatter_cases import ROWS, cases

Array = Any
WHOLE = frozenset({"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"})
ARITHMETIC = WHOLE | {"f32", "f64"}
ALL_OF_ONNXRUNTIME = ARITHMETIC | {"boolean", "f16", "bf16", "string"}
"""Complex types it does not know at all, f8 and 4 bits not in TensorScatter."""


def orders_nan(case: Any) -> bool:
    """Tell whether NaN meets min or max: runtimes drop it or not, depending on the order."""
    if case.attributes.get("reduction") not in {"min", "max"} or case.data.dtype == object:
        return False
    values = np.append(case.data, case.updates).astype(np.float64)
    return bool(np.isnan(values).any())


def onnxruntime_types(spec: OpSpec, reduction: Reduction) -> frozenset[str]:
    """Return the types that onnxruntime 1.31.1 has a kernel for."""
    if reduction is Reduction.NONE:
        return ALL_OF_ONNXRUNTIME - ({"string"} if spec.layout is Layout.SEQUENCE else set())
    if reduction in {Reduction.SUM, Reduction.PROD}:
        return ARITHMETIC | {"boolean"}
    return ARITHMETIC | ({"f16"} if spec.layout is Layout.ELEMENTS else set())


def run_onnxruntime(case: Any) -> Array:
    """Run a model of the one node; bf16 goes in and comes out as f32, which holds it exactly."""
    import onnxruntime
    from onnx import TensorProto, helper

    given = {Role.DATA: case.data, Role.INDICES: case.indices, Role.UPDATES: case.updates}
    feeds = {port.name: given[port.role] for port in case.spec.ports if given[port.role] is not None}
    narrow = [name for name, array in feeds.items() if array.dtype.name == "bfloat16"]
    feeds |= {name: feeds[name].astype(np.float32) for name in narrow}
    types = {
        name: TensorProto.STRING if array.dtype == object else helper.np_dtype_to_tensor_dtype(array.dtype)
        for name, array in feeds.items()
    }
    inputs = [helper.make_tensor_value_info(name, types[name], array.shape) for name, array in feeds.items()]
    attributes = case.attributes | ({} if case.axis is None else {"axis": case.axis})
    names = [f"{name} in bf16" if name in narrow else name for name in feeds]
    nodes = [
        helper.make_node("Cast", [name], [f"{name} in bf16"], to=TensorProto.BFLOAT16) for name in narrow
    ]
    nodes.append(helper.make_node(case.spec.key.type, names, ["result"], **attributes))
    if narrow:
        nodes.append(helper.make_node("Cast", ["result"], ["in f32"], to=TensorProto.FLOAT))
    output = helper.make_tensor_value_info(nodes[-1].output[0], next(iter(types.values())), None)
    graph = helper.make_graph(nodes, "one", inputs, [output])
    opset = helper.make_opsetid("", int(case.spec.opsets[0]))
    model = helper.make_model(graph, opset_imports=[opset], ir_version=10).SerializeToString()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    found: Array = session.run(None, feeds)[0]
    return found.astype(case.data.dtype) if narrow else found


def demand_agreement(case: Any, ours: DetailedResult, theirs: Array) -> None:
    """Demand equality, one of the candidates where elements are contested, the bound where rounded."""
    assert theirs.shape == ours.values.shape
    for position in positions(case.data.shape):
        found, expected = theirs[position], ours.values[position]
        if ours.contested[position]:
            allowed = ours.candidates(position)
            assert any(same(found, value) for value in allowed), f"{found} of {allowed} at {position}"
            continue
        if same(found, expected):
            continue
        bound = 2 * ours.rounding_bound[position]
        assert bound > 0, f"{found} instead of {expected} at {position}"
        assert np.isinf(bound) or abs(float(found) - float(expected)) <= bound


def same(left: Any, right: Any) -> bool:
    return bool(left == right) or (left != left and right != right)


ONNX_ROWS = [name for name, spec in ROWS.items() if spec.key.domain == "" and not spec.is_removed]


@pytest.mark.onnxruntime
@pytest.mark.parametrize("operator", ONNX_ROWS)
@given(choice=st.data())
def test_onnxruntime_agrees(operator: str, choice: st.DataObject) -> None:
    """Demand what onnxruntime gives; negative positions in a circular cache it refuses."""
    pytest.importorskip("onnxruntime")
    spec = ROWS[operator]
    reduction = choice.draw(st.sampled_from(sorted(set(spec.reductions.values()) or {Reduction.NONE})))
    drawn = cases(spec, frozenset({reduction}), onnxruntime_types(spec, reduction))
    case = choice.draw(drawn)
    assume(not orders_nan(case))
    assume("mode" not in case.attributes or case.indices is None or (case.indices >= 0).all())
    demand_agreement(case, evaluate_detailed(case.operator, **case.arguments()), run_onnxruntime(case))


OPENVINO_ROWS = [name for name, spec in ROWS.items() if spec.key.domain == "openvino"]
OPENVINO_TYPES = frozenset({"f32", "f16", "i32", "u8", "i8", "boolean"})
"""f64, i64 and u64 the CPU plugin computes in narrower types."""


def run_openvino(case: Any) -> Array:
    import openvino
    from openvino import opset3

    arrays = [case.data, case.indices, case.updates]
    ports = [opset3.parameter(list(array.shape), array.dtype) for array in arrays]
    axis = [] if case.axis is None else [opset3.constant(case.axis, np.int64)]
    opset = import_module(f"openvino.{case.spec.opsets[0]}")
    name = "_".join(re.findall("Scatter|Elements|ND|Update", case.spec.key.type)).lower()
    node = getattr(opset, name)(*ports, *axis, **case.attributes)
    settings = {"INFERENCE_PRECISION_HINT": "f32"}
    compiled = openvino.Core().compile_model(openvino.Model([node], ports, "one"), "CPU", settings)
    found: Array = compiled(arrays)[0]
    return found


def is_right_in_openvino(case: Any) -> bool:
    """Tell whether the CPU plugin takes a case, and computes it by the text."""
    wrong = {("i", "mean"), ("u", "mean"), ("b", "sub")}
    if case.indices.ndim == 0 or (case.data.dtype.kind, case.attributes.get("reduction")) in wrong:
        return False
    if case.spec.layout is not Layout.TUPLES:
        return True
    depth = case.indices.shape[-1]
    return bool(depth > 0 and case.updates.shape == case.indices.shape[:-1] + case.data.shape[depth:])


@pytest.mark.openvino
@pytest.mark.parametrize("operator", OPENVINO_ROWS)
@given(choice=st.data())
def test_openvino_agrees(operator: str, choice: st.DataObject) -> None:
    """Demand what the CPU plugin gives, but where it is known to be wrong.

    It refuses 0-D indices and one element for 0-D updates, leaves data alone where k is 0, lets the
    sum of an integer mean wrap, and takes updates that are XORed into one element together as one.
    """
    pytest.importorskip("openvino")
    index_type = choice.draw(st.sampled_from(["i32", "i64"]))
    case = choice.draw(cases(ROWS[operator], None, OPENVINO_TYPES, index_type, smallest=1))
    assume(is_right_in_openvino(case) and not orders_nan(case))
    demand_agreement(case, evaluate_detailed(case.operator, **case.arguments()), run_openvino(case))
