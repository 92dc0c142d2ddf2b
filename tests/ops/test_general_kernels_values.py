"""General operators against naive loops, NumPy's own types and the interface that callers rely on."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.ops.general import find
from ir_scatter.ops.general_kernels import compute
from tests.ops.arrays import count
from tests.ops.arrays import run as computed

SHAPES = st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)
QUICK = settings(max_examples=60, deadline=None)


def run(*arguments: Any, **attributes: Any) -> Any:
    return computed(*arguments, **attributes)[0]


def places(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    return product(*map(range, shape))


def test_reads_shapes_without_elements() -> None:
    view = np.broadcast_to(np.int8(0), (2**20, 2**20))
    for domain, type in [("openvino", "ShapeOf"), ("", "Shape"), ("", "Size")]:
        op = find(domain, type)
        assert op is not None
        assert op.reads_shapes_only
        (found,) = compute(op, domain, [view], {}, opset=18, element_limit=2)
        assert np.array_equal(found, 2**40 if type == "Size" else [2**20, 2**20])


@pytest.mark.parametrize(
    ("source", "name", "expected"),
    [
        (np.array([300, -9, 9, 17]), "i4", [-4, 7, -7, 1]),
        (np.array([300, -9, 9, 17]), "u4", [12, 7, 9, 1]),
        (np.array([2**63 + 5], np.uint64), "i8", [5]),
        (np.array([-1, 2**40 + 3]), "u32", [2**32 - 1, 3]),
        (np.array([7.9, -8.9]), "i4", [7, -8]),
        (np.array([np.nan, -0.0, 0.2]), "boolean", [True, False, True]),
        (np.array([True, False]), "bf16", [1, 0]),
        (np.array([70000.0, -1e9]), "f16", [np.inf, -np.inf]),
        (np.array([6.4, -99.0, 0.3]), "f4e2m1", [6, -6, 0.5]),
        (np.array([2.0, 0.25]), "f8e8m0", [2, 0.25]),
        (np.array([3, -3], ml_dtypes.int4), "f32", [3, -3]),
        (np.array([1.5, -2.75], ml_dtypes.bfloat16), "i64", [1, -2]),
        (np.array([-(2.0**63)]), "i64", [-(2**63)]),
    ],
)
def test_converts(source: Any, name: str, expected: Any) -> None:
    found = run("openvino", "Convert", source, destination_type=name.upper())
    assert found.dtype.name == ELEMENT_TYPES[name].dtype_name
    assert found.astype(np.float64).tolist() == np.array(expected, np.float64).tolist()


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, np.float16])
@pytest.mark.parametrize(("type", "function"), [("Add", np.add), ("Mul", np.multiply), ("Div", np.divide)])
def test_short_floats_round_once(type: str, function: Any, dtype: Any) -> None:
    numbers = np.random.default_rng(0).normal(size=(2, 50)).astype(dtype)
    exact = function(numbers[0].astype(np.float64), numbers[1].astype(np.float64))
    found = run("", type, numbers[0], numbers[1])
    assert np.array_equal(found, exact.astype(np.float32).astype(dtype))
    assert found.dtype == dtype


def test_reductions_of_an_ir_drop_axes_by_default() -> None:
    assert run("openvino", "ReduceSum", count(2, 3), np.array([1])).tolist() == [3, 12]


def test_whole_numbers_wrap_in_their_own_type() -> None:
    nibbles = np.array([7, -8, 5], ml_dtypes.int4)
    assert run("", "Add", nibbles, nibbles).astype(int).tolist() == [-2, 0, -6]
    least = np.array([-(2**31)], np.int32)
    assert run("", "Div", least, np.array([-1], np.int32)).tolist() == [-(2**31)]
    assert run("", "Mod", least, np.array([-1], np.int32)).tolist() == [0]
    assert run("", "Abs", least).tolist() == [-(2**31)]
    assert run("", "ReduceSum", np.array([100, 100], np.int8)).tolist() == [-56]
    assert run("", "CumSum", np.array([100, 100], np.int8), np.array(0)).tolist() == [100, -56]
    assert run("", "Pow", np.array([3], np.uint8), np.array([6], np.uint8)).tolist() == [217]


def test_mod_of_floats_has_the_sign_of_the_divisor_from_opset_28_on() -> None:
    left, right = np.array([[-7.5, 7.5, -1, 0], [2, -2, np.inf, -3]], np.float32)
    found = run("", "Mod", left, right, opset=28)
    assert found.tolist() == [0.5, -0.5, np.inf, 0]
    assert np.signbit(found[3])


def test_moves_strings() -> None:
    words = np.array([["a", "b", "c"]], object)
    assert run("", "Transpose", words).tolist() == [["a"], ["b"], ["c"]]
    assert run("", "Gather", words, np.array(-1), axis=1).tolist() == ["c"]
    masks = {"begin_mask": "0,0", "end_mask": "0,0", "shrink_axis_mask": "1,1"}
    ends = np.array([0, 2])
    found = run("openvino", "StridedSlice", words, ends, ends + 1, np.array([1, 1]), **masks)
    assert (found.dtype, found.shape, found[()]) == (np.dtype(object), (), "c")


@QUICK
@given(SHAPES, st.data())
def test_gathers_in_batches_as_the_formula_says(shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    batch = data.draw(st.integers(0, axis))
    tail = data.draw(st.lists(st.integers(0, 3), max_size=2))
    numbers = count(*shape) + 1
    indices = np.random.default_rng(0).integers(-5, 5, (*shape[:batch], *tail))
    if shape[axis] == 0 and indices.size:
        return
    found = run("openvino", "Gather", numbers, indices, np.array(axis - len(shape)), batch_dims=str(batch))
    assert found.shape == (*shape[:axis], *tail, *shape[axis + 1 :])
    for place in places(found.shape):
        middle = place[axis : axis + len(tail)]
        index = indices[(*place[:batch], *middle)]
        is_inside = -shape[axis] <= index < shape[axis]
        source = (*place[:axis], index, *place[axis + len(tail) :])
        assert found[place] == (numbers[source] if is_inside else 0)


@QUICK
@given(SHAPES.filter(lambda shape: 0 not in shape), st.data())
def test_gathers_tuples_as_the_formula_says(shape: tuple[int, ...], data: st.DataObject) -> None:
    batch = data.draw(st.integers(0, len(shape) - 1))
    depth = data.draw(st.integers(1, len(shape) - batch))
    tail = tuple(data.draw(st.lists(st.integers(0, 3), max_size=2)))
    random = np.random.default_rng(0)
    columns = [random.integers(-size, size, (*shape[:batch], *tail)) for size in shape[batch : batch + depth]]
    indices, numbers = np.stack(columns, -1), count(*shape)
    found = run("", "GatherND", numbers, indices, batch_dims=batch)
    assert found.shape == (*indices.shape[:-1], *shape[batch + depth :])
    for place in places(indices.shape[:-1]):
        source = (*place[:batch], *indices[place])
        assert np.array_equal(found[place], numbers[source])


@QUICK
@given(SHAPES, st.data())
def test_strided_slices_are_numpy_indexing(shape: tuple[int, ...], data: st.DataObject) -> None:
    words = st.sampled_from(["slice", "open", "back", "new_axis", "shrink_axis", "ellipsis"])
    names = data.draw(st.lists(words, max_size=4))
    slices = sum(name not in {"new_axis", "ellipsis"} for name in names)
    if names.count("ellipsis") > 1 or slices > len(shape) or ("shrink_axis" in names and 0 in shape):
        return
    begin, end, stride, index = [], [], [], []
    for name in names:
        low, high = data.draw(st.sampled_from([(0, 3), (-9, 2), (1, 9), (3, 1), (-1, 9)]))
        step = -2 if name == "back" else 2 if name == "slice" else 1
        choices: dict[str, Any] = {
            "slice": slice(low, high, step), "open": slice(None), "back": slice(None, None, step),
            "new_axis": None, "shrink_axis": 0, "ellipsis": ...,
        }  # fmt: skip
        index.append(choices[name])
        begin.append(0 if name == "shrink_axis" else low)
        end.append(high)
        stride.append(step)
    masks = {
        f"{mask}_mask": ", ".join(str(int(name == mask)) for name in names)
        for mask in ("new_axis", "shrink_axis", "ellipsis")
    }
    opened = ",".join(str(int(name in {"open", "back"})) for name in names)
    lists = [np.array(numbers, np.int64) for numbers in (begin, end, stride)]
    numbers = count(*shape)
    found = run("openvino", "StridedSlice", numbers, *lists, begin_mask=opened, end_mask=opened, **masks)
    expected = numbers[tuple(index)]
    assert found.shape == expected.shape
    assert np.array_equal(found, expected)


@QUICK
@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(-5, 5).filter(bool))
def test_ranges_are_python_ranges(start: int, stop: int, step: int) -> None:
    bounds = [np.array(bound) for bound in (start, stop, step)]
    expected = list(range(start, stop, step))
    assert run("", "Range", *bounds).tolist() == expected
    for name in ("i32", "f16", "f64"):
        assert run("openvino", "Range", *bounds, output_type=name).tolist() == expected


def test_ranges_reach_both_ends_of_64_bits() -> None:
    bounds = [np.array(bound) for bound in (-(2**63), 2**63 - 1, 2**62)]
    assert run("", "Range", *bounds).tolist() == [-(2**63), -(2**62), 0, 2**62]
