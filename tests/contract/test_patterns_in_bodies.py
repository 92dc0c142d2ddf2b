"""The contract of export patterns whose indices are computed: each verdict is what holds for every input."""

import re
from pathlib import Path

import onnx
import onnx.parser
import pytest

from ir_scatter.contract import NodeContract, make_contract

_OPENING = '<ir_version: 8, opset_import: ["" : 18]>'

# name, inputs and output, body, size of each dimension symbol in the static variant, expected range, expected distinct
_Pattern = tuple[str, str, str, dict[str, int], str, str | None]
_PATTERNS: list[_Pattern] = [
    (
        "cache_write",
        "float[1,C,4] cache, int64[1,1,4] position, float[1,1,4] row",
        "y = ScatterElements<axis=1>(cache, position, row)",
        {"C": 16}, "conditional", "proven",
    ),
    (
        "total_minus_step",
        "float[C,4] cache, int64 total, float[S,4] row",
        """shape = Shape(row) zero = Constant<value_ints=[0]>() one = Constant<value_int=1>()
        origin = Constant<value_int=0>() scalar_at = Constant<value_int=0>()
        step = Gather(shape, scalar_at) start = Sub(total, step) offsets = Range(origin, step, one)
        positions = Add(start, offsets) axes = Constant<value_ints=[1]>() columns = Unsqueeze(positions, axes)
        y = ScatterND(cache, columns, row)""",
        # Two positions from -16 to 15 never repeat; the walker does not see it where some may be negative.
        {"C": 16, "S": 2}, "conditional", "conditional",
    ),
    (
        "windowed_cache",
        "float[16,4] cache, int64[1,1] position, float[1,4] row",
        """window = Constant<value_int=16>() slot = Mod(position, window)
        y = ScatterND(cache, slot, row)""",
        {}, "proven", "proven",
    ),
    (
        "masked_scatter_1d",
        "float[N] data",
        """threshold = Constant<value_float=0.0>() mask = Greater(data, threshold) found = NonZero(mask) columns = Transpose<perm=[1,0]>(found) rows = GatherND(data, columns)
        doubled = Add(rows, rows) base = Where(mask, data, data) y = ScatterND(base, columns, doubled)""",
        {"N": 6}, "proven", "proven",
    ),
    (
        "masked_scatter_2d",
        "float[N,M] data",
        """zero = Constant<value_float=0.0>() mask = Greater(data, zero) found = NonZero(mask)
        columns = Transpose<perm=[1,0]>(found) rows = GatherND(data, columns)
        y = ScatterND(data, columns, rows)""",
        {"N": 3, "M": 4}, "proven", "proven",
    ),
    (
        "masked_scatter_3d",
        "float[N,M,K] data",
        """zero = Constant<value_float=0.0>() mask = Greater(data, zero) found = NonZero(mask)
        columns = Transpose<perm=[1,0]>(found) rows = GatherND(data, columns)
        y = ScatterND(data, columns, rows)""",
        {"N": 2, "M": 3, "K": 4}, "proven", "proven",
    ),
    (
        "expert_routing",
        "float[N,8] scores",
        """k = Constant<value_ints=[2]>() zero = Constant<value_float=0.0>() base = Mul(scores, zero)
        values, experts = TopK<axis=1>(scores, k) y = ScatterElements<axis=1>(base, experts, values)""",
        {"N": 5}, "proven", "proven",
    ),
    (
        "inverse_permutation",
        "int64[N] order",
        """shape = Shape(order) origin = Constant<value_int=0>() one = Constant<value_int=1>()
        size = Gather(shape, origin) values, sorted = TopK<axis=0, largest=0>(order, shape)
        numbers = Range(origin, size, one) y = ScatterElements<axis=0>(order, sorted, numbers)""",
        {"N": 7}, "proven", "proven",
    ),
    (
        "block_table",
        "float[B,4] blocks, int64[N,1] table, float[N,4] rows",
        "y = ScatterND(blocks, table, rows)",
        {"B": 8, "N": 3}, "conditional", "conditional",
    ),
    (
        "one_hot",
        "float[N,10] base, int64[N,1] labels, float[N,1] ones",
        "y = ScatterElements<axis=1>(base, labels, ones)",
        {"N": 3}, "conditional", "proven",
    ),
    (
        "bincount",
        "float[10] base, int64[N] values, float[N] ones",
        'y = ScatterElements<axis=0, reduction="add">(base, values, ones)',
        {"N": 20}, "conditional", "conditional",
    ),
    (
        "wrapped_negative",
        "float[8,4] data, int64[1,1] position, float[1,4] row",
        """zero = Constant<value_int=0>() n = Constant<value_int=8>() negative = Less(position, zero)
        raised = Add(position, n) wrapped = Where(negative, raised, position) y = ScatterND(data, wrapped, row)""",
        {}, "conditional", "proven",
    ),
    (
        "clamp_guard",
        "float[8,4] data, int64[N,1] position, float[N,4] rows",
        """low = Constant<value_int=0>() high = Constant<value_int=7>() held = Clip(position, low, high)
        y = ScatterND(data, held, rows)""",
        {"N": 1}, "proven", None,
    ),
    (
        "remainder_guard",
        "float[8,4] data, int64[N,1] position, float[N,4] rows",
        "n = Constant<value_int=8>() held = Mod(position, n) y = ScatterND(data, held, rows)",
        {"N": 1}, "proven", None,
    ),
    (
        "floor_division",
        "float[4,4] data, int64[N,1] position, float[N,4] rows",
        "width = Constant<value_int=8>() bucket = Div(position, width) y = ScatterND(data, bucket, rows)",
        {"N": 3}, "conditional", None,
    ),
    (
        "unique_ids",
        "float[8] data, int64[N] ids",
        """uniques, first, inverse, counts = Unique(ids) values = Cast<to=1>(uniques)
        y = ScatterElements<axis=0>(data, uniques, values)""",
        # The ids -1 and 7 are two, and select one element.
        {"N": 3}, "conditional", "conditional",
    ),
    (
        "batch_beside_argmax",
        "float[B,8] scores, float[B] rows",
        """shape = Shape(scores) origin = Constant<value_int=0>() one = Constant<value_int=1>()
        size = Gather(shape, origin) numbers = Range(origin, size, one) axes = Constant<value_ints=[1]>()
        batch = Unsqueeze(numbers, axes) best = ArgMax<axis=1>(scores) pairs = Concat<axis=1>(batch, best)
        y = ScatterND(scores, pairs, rows)""",
        {"B": 3}, "proven", "proven",
    ),
    (
        "cumulative_sum_and_where",
        "float[N] data, float[N] rows",
        """threshold = Constant<value_float=0.0>() mask = Greater(data, threshold) ones = Cast<to=7>(mask)
        axis = Constant<value_int=0>() totals = CumSum(ones, axis) one = Constant<value_int=1>()
        before = Sub(totals, one) zero = Constant<value_int=0>() held = Where(mask, before, zero)
        y = ScatterElements<axis=0, reduction="add">(data, held, data)""",
        {"N": 6}, "proven", None,
    ),
    (
        "mesh_of_ranges",
        "float[N,M] data",
        """shape = Shape(data) zero = Constant<value_int=0>() one = Constant<value_int=1>()
        height = Gather(shape, zero) width = Gather(shape, one)
        i = Range(zero, height, one) j = Range(zero, width, one)
        last = Constant<value_ints=[1]>() first = Constant<value_ints=[0]>()
        column = Unsqueeze(i, last) row = Unsqueeze(j, first)
        rows = Expand(column, shape) columns = Expand(row, shape) deepest = Constant<value_ints=[2]>()
        left = Unsqueeze(rows, deepest) right = Unsqueeze(columns, deepest)
        mesh = Concat<axis=2>(left, right) y = ScatterND(data, mesh, data)""",
        {"N": 3, "M": 4}, "proven", "proven",
    ),
    (
        "flat_slice",
        "float[24] data, float[8] rows",
        """zero = Constant<value_int=0>() size = Constant<value_int=24>() one = Constant<value_int=1>()
        numbers = Range(zero, size, one) grid = Constant<value_ints=[4, 6]>() table = Reshape(numbers, grid)
        low = Constant<value_ints=[1]>() high = Constant<value_ints=[3]>() axes = Constant<value_ints=[1]>()
        part = Slice(table, low, high, axes) tuples = Constant<value_ints=[-1, 1]>()
        flat = Reshape(part, tuples) y = ScatterND(data, flat, rows)""",
        {}, "proven", "proven",
    ),
    (
        "shape_tensor",
        "float[N,M] data",
        """shape = Shape(data) place = Constant<value_ints=[1]>() axis = Constant<value_ints=[1]>()
        column = Unsqueeze(place, axis) size = Constant<value_ints=[5]>() y = ScatterND(shape, column, size)""",
        {"N": 3, "M": 4}, "proven", "proven",
    ),
]  # fmt: skip


def _in_branch(inputs: str, body: str) -> tuple[str, str]:
    """Return the inputs and body of a graph that computes a pattern in a branch of an If."""
    renamed = re.sub(r"\by =", "z =", body)
    then = f"then_branch = then () => (float[] z) {{ {renamed} }}, "
    otherwise = "else_branch = otherwise () => (float[] empty) { empty = Constant<value_float=0.0>() }"
    return f"bool condition, {inputs}", f"y = If (condition) <{then}{otherwise}>"


def _model(inputs: str, body: str) -> onnx.ModelProto:
    text = f"{_OPENING} pattern ({inputs}) => (float[] y) {{ {body} }}"
    model = onnx.parser.parse_model(text)
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


def _static(inputs: str, sizes: dict[str, int]) -> str:
    for symbol, size in sizes.items():
        inputs = inputs.replace(f"[{symbol}]", f"[{size}]").replace(f"[{symbol},", f"[{size},")
        inputs = inputs.replace(f",{symbol}]", f",{size}]").replace(f",{symbol},", f",{size},")
    return inputs


def _contract(inputs: str, body: str, path: Path) -> NodeContract:
    onnx.save(_model(inputs, body), path)
    (node,) = make_contract(path).nodes
    return node


@pytest.mark.parametrize("variant", ["static", "dynamic", "body"])
@pytest.mark.parametrize("pattern", _PATTERNS, ids=lambda pattern: pattern[0])
def test_pattern_has_true_verdict(pattern: _Pattern, variant: str, tmp_path: Path) -> None:
    _name, inputs, body, sizes, in_range, distinct = pattern
    if variant == "static":
        inputs = _static(inputs, sizes)
    elif variant == "body":
        inputs, body = _in_branch(inputs, body)
    node = _contract(inputs, body, tmp_path / "pattern.onnx")
    assert node.range.status == in_range, node.range
    if distinct is not None:
        assert node.distinct.status == distinct, node.distinct


def test_loop_counter_selects_rows(tmp_path: Path) -> None:
    """The counter of a loop stays below its trip count, which is the size of the axis."""
    body = """shape = Shape(data) first = Constant<value_int=0>() trips = Gather(shape, first)
        always = Constant<value_int=1>() running = Cast<to=9>(always)
        y = Loop(trips, running, data) <body = step (int64 i, bool go, float[N,4] rows)
            => (bool again, float[N,4] after) {
                again = Identity(go) tuple = Constant<value_ints=[1, 1]>() column = Reshape(i, tuple)
                row = GatherND(rows, column) after = ScatterND(rows, column, row) }>"""
    node = _contract("float[N,4] data", body, tmp_path / "loop.onnx")
    assert (node.range.status, node.distinct.status) == ("proven", "proven"), node
