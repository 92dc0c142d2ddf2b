"""What general operators refuse: illegal, undefined and oversized cases, whatever they are given."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ir_scatter.ops.general import ROWS, GeneralOp, find
from ir_scatter.ops.general_kernels import UnsupportedCase, compute
from tests.ops.arrays import count, f32, i32, i64, typed
from tests.ops.arrays import run as computed

LIMIT = 1000
run = partial(computed, limit=LIMIT)


OPENVINO_CASES: list[tuple[str, Sequence[Any], Mapping[str, str]]] = [
    ("Convert", [count(2)], {"destination_type": "f33"}),
    ("Convert", [count(2)], {"destination_type": "string"}),
    ("Convert", [count(2)], {"destination_type": "i64", "no_such": "1"}),
    ("Convert", [f32([np.nan])], {"destination_type": "i32"}),
    ("Convert", [f32([3e9])], {"destination_type": "i32"}),
    ("Convert", [f32([np.nan])], {"destination_type": "f4e2m1"}),
    ("Convert", [f32([3])], {"destination_type": "f8e8m0"}),
    ("Convert", [], {"destination_type": "i64"}),
    ("Reshape", [count(6), i64(2, 3)], {"special_zero": "yes"}),
    ("Reshape", [count(6), i64(2, 2)], {"special_zero": "true"}),
    ("Reshape", [count(6), i64(-1, -1)], {"special_zero": "true"}),
    ("Reshape", [count(6), i64(6, 0)], {"special_zero": "true"}),
    ("Reshape", [count(0, 3), i64(0, -1)], {"special_zero": "false"}),
    ("Reshape", [count(1), np.ones(65, np.int64)], {"special_zero": "false"}),
    ("Squeeze", [count(1, 2), i64(2)], {}),
    ("Unsqueeze", [count(2), i64(0, 0)], {}),
    ("Transpose", [count(2, 3), i64(0, 0)], {}),
    ("Broadcast", [count(1), i64(2**62, 2**62)], {}),
    ("Broadcast", [count(3), i64(2, 3)], {"mode": "pdpd"}),
    ("Broadcast", [count(3, 2), i64(2, 3), i64(1, 0)], {"mode": "explicit"}),
    ("Tile", [count(3), i64(2**62)], {}),
    ("Concat", [count(2), count(2, dtype=np.int64)], {"axis": "0"}),
    ("Concat", [count(600), count(600)], {"axis": "0"}),
    ("Split", [count(7), np.array(0)], {"num_splits": "2"}),
    ("Split", [count(0), np.array(0)], {"num_splits": "99999999999"}),
    ("VariadicSplit", [count(7), np.array(0), i64(2, 4)], {}),
    ("Gather", [count(3), f32([0]), np.array(0)], {}),
    ("Gather", [count(3), i64(0), np.array(0)], {"batch_dims": "1"}),
    ("Gather", [count(3, 3), count(2, 3), np.array(1)], {"batch_dims": "1"}),
    ("GatherND", [count(3), np.zeros((2, 0), int)], {}),
    ("GatherElements", [count(2, 3), np.zeros((1, 1), int)], {"axis": "1"}),
    ("Slice", [count(3), i64(0), i64(3), i64(0)], {}),
    ("Slice", [count(3, 3), i64(0, 0), i64(3, 3), i64(1, 1), i64(0, -2)], {}),
    ("Slice", [count(3), i64(-9), i64(-10), i64(-1)], {}),
    ("Range", [np.array(0), np.array(10**9), np.array(1)], {"output_type": "i64"}),
    ("Range", [np.array(0), np.array(300), np.array(1)], {"output_type": "u8"}),
    ("Range", [np.array(0), f32(2.5), np.array(1)], {"output_type": "i64"}),
    ("Range", [f32(0), f32(np.inf), f32(1)], {"output_type": "f32"}),
    ("Range", [f32(0), f32(0.1) * f32(9), f32(0.1)], {"output_type": "f32"}),
    ("Range", [np.array(0), np.array(5), np.array(1)], {"output_type": "boolean"}),
    ("Add", [count(2, 2), count(2)], {"auto_broadcast": "none"}),
    ("Add", [count(2), count(2, dtype=np.int64)], {}),
    ("Add", [count(40, 1), count(1, 40)], {}),
    ("Add", [np.array(["a"], object), np.array(["b"], object)], {}),
    ("Divide", [count(2), count(2)], {}),
    ("Power", [count(2), i32([-1, 1])], {}),
    ("Sqrt", [i32([-1])], {}),
    ("Select", [count(2), count(2), count(2)], {}),
    ("Select", [np.ones((2, 1), bool), count(3), count(3)], {}),
    ("LogicalAnd", [count(2), count(2)], {}),
    ("ReduceSum", [count(2, 2), i64(0, -2)], {}),
    ("ReduceMax", [count(0, 2), i64(0)], {}),
    ("ReduceSum", [np.zeros((0, 2000)), i64(0)], {}),
    ("CumSum", [np.array(3), np.array(0)], {}),
    ("Relu", [np.zeros(2000, np.float32)], {}),
]

MASKED: list[tuple[Sequence[Any], Mapping[str, str]]] = [
    ([count(6), i64(2), i64(2), i64(1)], {}),
    ([count(6), i64(2), i64(3), i64(0)], {}),
    ([count(6), i64(2), i64(3, 4), i64(1)], {}),
    ([count(6), i64(2, 2), i64(3, 3), i64(1, 1)], {}),
    ([count(6), i64(6), i64(7), i64(1)], {"shrink_axis_mask": "1"}),
    ([count(6), i64(3), i64(4), i64(1)], {"begin_mask": "1", "shrink_axis_mask": "1"}),
    ([count(6), i64(3), i64(4), i64(1)], {"new_axis_mask": "1", "shrink_axis_mask": "1"}),
    ([count(6), i64(3), i64(4), i64(1)], {"ellipsis_mask": "2"}),
    ([count(6), i64(3, 3), i64(4, 4), i64(1, 1)], {"ellipsis_mask": "1,1"}),
    ([count(6), i64(1, 1, 1), i64(2, 2, 2), i64(1, 1, 1)], {"ellipsis_mask": "1"}),
]

ONNX_CASES: list[tuple[str, Sequence[Any], Mapping[str, Any]]] = [
    ("Cast", [f32([np.inf])], {"to": 7}),
    ("Cast", [typed("complex64", [1])], {"to": 1}),
    ("Reshape", [count(0, 3), i64(0, -1)], {"allowzero": 1}),
    ("Squeeze", [count(1), i64()], {}),
    ("Expand", [count(1), i64(2**40)], {}),
    ("Tile", [count(2), i64(2, 2)], {}),
    ("ConstantOfShape", [i64(1001)], {}),
    ("ConstantOfShape", [i64(2)], {"value": count(2)}),
    ("Split", [count(5)], {"num_outputs": 2**40}),
    ("Split", [count(5), i64(2, 2)], {}),
    ("Gather", [count(3), i64(-4)], {}),
    ("Gather", [count(3), typed("uint64", [2**64 - 1])], {}),
    ("GatherND", [np.zeros((2, 3)), np.zeros((3, 1), int)], {"batch_dims": 1}),
    ("GatherElements", [count(2, 3), np.zeros((3, 3), int)], {"axis": 1}),
    ("Range", [np.array(0), np.array(2**63 - 1), np.array(1)], {}),
    ("Add", [count(2), count(2)], {"broadcast": 1}),
    ("Mod", [f32([1]), f32([2])], {}),
    ("Pow", [i32([10]), f32([99])], {}),
    ("Cast", [count(2)], {"to": 7.5}),
    ("Gather", [count(2), i64(0)], {"axis": 2**70}),
    ("ReduceSum", [count(2)], {"keepdims": 2}),
]


@pytest.mark.parametrize(("type", "inputs", "attributes"), OPENVINO_CASES)
def test_refuses_in_an_ir(type: str, inputs: Any, attributes: Any) -> None:
    with pytest.raises(UnsupportedCase, match=find("openvino", type).type_in("openvino")):  # type: ignore[union-attr]
        run("openvino", type, *inputs, **attributes)


@pytest.mark.parametrize(("inputs", "attributes"), MASKED)
def test_refuses_masks(inputs: Any, attributes: Any) -> None:
    masks = {"begin_mask": "0", "end_mask": "0"} | attributes
    with pytest.raises(UnsupportedCase):
        run("openvino", "StridedSlice", *inputs, **masks)


@pytest.mark.parametrize(("type", "inputs", "attributes"), ONNX_CASES)
def test_refuses_in_onnx(type: str, inputs: Any, attributes: Any) -> None:
    with pytest.raises(UnsupportedCase, match=type):
        run("", type, *inputs, **attributes)


def test_refuses_uneven_parts_before_num_outputs() -> None:
    with pytest.raises(UnsupportedCase, match="5 cannot be split into 2 parts"):
        run("", "Split", count(5), outputs=2, opset=13)


@pytest.mark.parametrize("opset", [27, None])
def test_refuses_mod_of_floats_before_opset_28(opset: int | None) -> None:
    with pytest.raises(UnsupportedCase, match="fmod is 0, expected 1"):
        run("", "Mod", f32([1]), f32([2]), opset=opset)


@pytest.mark.parametrize("opset", [1, 7, None])
def test_early_gathers_know_no_negative_indices(opset: int | None) -> None:
    with pytest.raises(UnsupportedCase, match="an index is -1, expected 0 to 2"):
        run("openvino", "Gather", count(3), i64(-1), np.array(0), opset=opset)
    with pytest.raises(UnsupportedCase, match="an index is -1, expected 0 to 2"):
        run("openvino", "GatherND", count(3), i64(-1), opset=opset)


ARRAYS = st.builds(
    lambda dtype, shape, seed: (
        np.random.default_rng(seed).choice([0, 1, 2, 3, 5, 40, 127], shape).astype(dtype)
        * np.array(1 - 2 * (seed % 3 == 0), "i1").astype(dtype)
    ),
    st.sampled_from([np.int64, np.int32, np.uint8, np.float32, np.float16, ml_dtypes.bfloat16]),
    st.sampled_from([(), (0,), (1,), (2,), (3,), (4,), (2, 3), (3, 1), (0, 10**6), (1, 2, 3)]),
    st.integers(0, 2**32),
)
EXTREMES = st.sampled_from([i64(2**63 - 1), i64(-(2**63)), i64(2**40, 2**40), np.array(2**62)])
FLAGS = st.sampled_from([np.array(True), np.array([True, False]), np.zeros((0, 3), bool)])
WRITTEN = st.sampled_from(
    [0, 1, -1, 3, 2**62, 2**70, [], [0], [1, 0], [0, 2**62], 2.5, None, i64(7)]
) | st.sampled_from(["1", "0,1", "", "x", "true", "i64", "f32", "u8", "numpy", "explicit", "none"])


COMPUTED = [(row, domain) for domain in ("openvino", "") for row in ROWS
            if row.type_in(domain) and row.kernel_in(domain)]  # fmt: skip
NETWORKS = [(row, domain) for domain in ("openvino", "") for row in ROWS
            if row.type_in(domain) and row.model_kernel_in(domain) != row.kernel_in(domain)]  # fmt: skip


@pytest.mark.parametrize(("op", "domain"), COMPUTED, ids=[row.type_in(domain) for row, domain in COMPUTED])
@settings(max_examples=settings().max_examples // 3, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_nothing_but_a_refusal_comes_out(op: GeneralOp, domain: str, data: st.DataObject) -> None:
    demand_outputs_or_a_refusal(op, domain, data)


@pytest.mark.parametrize(("op", "domain"), NETWORKS, ids=[row.type_in(domain) for row, domain in NETWORKS])
@pytest.mark.long
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_nothing_but_a_refusal_comes_out_of_networks(op: GeneralOp, domain: str, data: st.DataObject) -> None:
    demand_outputs_or_a_refusal(op, domain, data)


def demand_outputs_or_a_refusal(op: GeneralOp, domain: str, data: st.DataObject) -> None:
    inputs = data.draw(st.lists(ARRAYS | EXTREMES | FLAGS | st.none(), max_size=5))
    known = op.attributes_in(domain)
    names = st.sampled_from(known) if known else st.nothing()
    attributes = data.draw(st.dictionaries(names, WRITTEN, max_size=len(known)))
    opset = data.draw(st.sampled_from([None, 1, 8, 18, 28]))
    try:
        outputs = compute(op, domain, inputs, attributes, opset=opset, output_count=2, element_limit=LIMIT)
    except UnsupportedCase:
        return
    assert outputs
    assert all(isinstance(output, np.ndarray) for output in outputs)
    assert all(output.size <= LIMIT for output in outputs)
    if op.keeps_shape:
        assert inputs[0] is not None
        assert outputs[0].shape == inputs[0].shape
