"""The kernels against runtimes, for the types that these compute as the documents say."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ir_scatter import evaluate_detailed
from ir_scatter.evaluate.detailed import DetailedResult
from ir_scatter.ops.spec import Layout, OpSpec, Reduction, Role
from tests.ops.naive_scatter import positions
from tests.ops.scatter_cases import ROWS, Case, cases

Array = Any
WHOLE = frozenset({"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"})
ARITHMETIC = WHOLE | {"f32", "f64"}
ALL_OF_ONNXRUNTIME = ARITHMETIC | {"boolean", "f16", "bf16", "string"}
"""Complex types it does not know at all, f8 and 4 bits not in TensorScatter."""


def onnxruntime_types(spec: OpSpec, reduction: Reduction) -> frozenset[str]:
    """Return the types that onnxruntime 1.31.1 has a kernel for."""
    if reduction is Reduction.NONE:
        return ALL_OF_ONNXRUNTIME - ({"string"} if spec.layout is Layout.SEQUENCE else set())
    if reduction in {Reduction.SUM, Reduction.PROD}:
        return ARITHMETIC | {"boolean"}
    return ARITHMETIC | ({"f16"} if spec.layout is Layout.ELEMENTS else set())


def run_onnxruntime(case: Case) -> Array:
    """Run a model of the one node; bf16 goes in and comes out as f32, which holds it exactly."""
    import onnxruntime

    given = {Role.DATA: case.data, Role.INDICES: case.indices, Role.UPDATES: case.updates}
    feeds = {port.name: given[port.role] for port in case.spec.ports if given[port.role] is not None}
    narrow = [name for name, array in feeds.items() if array.dtype.name == "bfloat16"]
    feeds |= {name: feeds[name].astype(np.float32) for name in narrow}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        onnx_model(case, feeds, narrow), options, providers=["CPUExecutionProvider"]
    )
    found: Array = session.run(None, feeds)[0]
    return found.astype(case.data.dtype) if narrow else found


def onnx_model(case: Case, feeds: dict[str, Array], narrow: list[str]) -> bytes:
    from onnx import TensorProto, helper

    inputs = [
        helper.make_tensor_value_info(name, onnx_number(array), array.shape) for name, array in feeds.items()
    ]
    attributes = case.attributes | ({} if case.axis is None else {"axis": case.axis})
    names = [f"{name} in bf16" if name in narrow else name for name in feeds]
    nodes = [
        helper.make_node("Cast", [name], [f"{name} in bf16"], to=TensorProto.BFLOAT16) for name in narrow
    ]
    nodes.append(helper.make_node(case.spec.key.type, names, ["result"], **attributes))
    if narrow:
        nodes.append(helper.make_node("Cast", ["result"], ["in f32"], to=TensorProto.FLOAT))
    last = nodes[-1].output[0]
    output = helper.make_tensor_value_info(last, onnx_number(next(iter(feeds.values()))), None)
    graph = helper.make_graph(nodes, "one", inputs, [output])
    opset = helper.make_opsetid("", int(case.spec.opsets[0]))
    return bytes(helper.make_model(graph, opset_imports=[opset], ir_version=10).SerializeToString())


def onnx_number(array: Array) -> int:
    from onnx import TensorProto, helper

    return int(TensorProto.STRING if array.dtype == object else helper.np_dtype_to_tensor_dtype(array.dtype))


def demand_agreement(case: Case, ours: DetailedResult, theirs: Array) -> None:
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
    """Demand what onnxruntime gives, but for NaN in min and max, which it drops or not by the order.

    Negative positions in a circular cache it refuses.
    """
    pytest.importorskip("onnxruntime")
    spec = ROWS[operator]
    reduction = choice.draw(st.sampled_from(sorted(set(spec.reductions.values()) or {Reduction.NONE})))
    drawn = cases(spec, frozenset({reduction}), onnxruntime_types(spec, reduction))
    case = choice.draw(drawn)
    is_order = reduction in {Reduction.MIN, Reduction.MAX}
    assume(not is_order or not np.isnan(np.append(case.data, case.updates).astype(np.float64)).any())
    assume("mode" not in case.attributes or case.indices is None or (case.indices >= 0).all())
    demand_agreement(case, evaluate_detailed(case.operator, **case.arguments()), run_onnxruntime(case))
