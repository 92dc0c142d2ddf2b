"""The verdicts about patterns that exporters write: with dynamic and with static sizes, and in a body."""

import re

import onnx
import pytest

from ir_scatter.contract import make_contract
from ir_scatter.reading import read

_HEADER = '<ir_version: 10, opset_import: ["" : 18]>\n'
_SIZES = {"A": 3, "B": 4, "C": 16, "M": 5, "N": 6, "S": 64, "T": 7, "V": 9, "W": 8}
"""The sizes of the static twin; other names are counts that only a run knows."""

_PATTERNS = {
    "position": """
g (float[1,C,4] cache, int64[1] position, float[1,1,4] row) => (float[1,C,4] y)
<int64[2] a = {0, 2}>
{ s = Shape (row)
  at = Unsqueeze (position, a)
  w = Expand (at, s)
  [n] y = ScatterElements <axis = 1> (cache, w, row) }
""",
    "total - step": """
g (float[C,4] cache, int64[1] total, float[1,4] row) => (float[C,4] y)
<int64[1] a = {1}>
{ one = Constant <value = int64[1] {1}> ()
  at = Sub (total, one)
  col = Unsqueeze (at, a)
  [n] y = ScatterND (cache, col, row) }
""",
    "windowed": """
g (float[W,4] cache, int64[1] position, float[1,4] row) => (float[W,4] y)
<int64[1] a = {1}>
{ s = Shape <start = 0, end = 1> (cache)
  at = Mod (position, s)
  col = Unsqueeze (at, a)
  [n] y = ScatterND (cache, col, row) }
""",
    "masked 1": """
g (float[N] x, bool[N] m, float[K] u) => (float[N] y)
{ nz = NonZero (m)
  t = Transpose <perm = [1, 0]> (nz)
  [n] y = ScatterND (x, t, u) }
""",
    "masked 2 of data": """
g (float[N,M] x, float[K] u) => (float[N,M] y)
{ z = Constant <value = float {0}> ()
  m = Greater (x, z)
  nz = NonZero (m)
  t = Transpose <perm = [1, 0]> (nz)
  [n] y = ScatterND (x, t, u) }
""",
    "masked 3": """
g (float[A,B,C] x, float[K] u) => (float[A,B,C] y)
{ z = Constant <value = float {0}> ()
  m = Greater (x, z)
  nz = NonZero (m)
  t = Transpose <perm = [1, 0]> (nz)
  [n] y = ScatterND (x, t, u) }
""",
    "cumsum where": """
g (float[N] x, bool[N] m, float[N] u) => (float[N] y)
{ c = Cast <to = 7> (m)
  zero = Constant <value = int64 {0}> ()
  one = Constant <value = int64 {1}> ()
  s = CumSum (c, zero)
  p = Sub (s, one)
  at = Where (m, p, zero)
  [n] y = ScatterElements <axis = 0, reduction = "add"> (x, at, u) }
""",
    "routing": """
g (float[T,8] logits) => (float[T,8] y)
{ k = Constant <value = int64[1] {2}> ()
  v, i = TopK <axis = -1> (logits, k)
  s = Shape (logits)
  z = ConstantOfShape (s)
  [n] y = ScatterElements <axis = 1> (z, i, v) }
""",
    "mesh": """
g (float[A,B] x, float[A,B] u) => (float[A,B] y)
<int64[1] ax1 = {1}, int64[1] ax2 = {2}>
{ a = Shape <start=0,end=1> (x)
  b = Shape <start=1,end=2> (x)
  a0 = Squeeze (a)
  b0 = Squeeze (b)
  zero = Constant <value = int64 {0}> ()
  one = Constant <value = int64 {1}> ()
  r = Range (zero, a0, one)
  c = Range (zero, b0, one)
  s = Shape (x)
  r1 = Unsqueeze (r, ax1)
  re = Expand (r1, s)
  ce = Expand (c, s)
  r2 = Unsqueeze (re, ax2)
  c2 = Unsqueeze (ce, ax2)
  t = Concat <axis = -1> (r2, c2)
  [n] y = ScatterND (x, t, u) }
""",
    "flat slice": """
g (float[A,4] x, float[A] u) => (float[K] y)
<int64[1] m1 = {-1}, int64[1] ax1 = {1}>
{ flat = Reshape (x, m1)
  n0 = Size (x)
  zero = Constant <value = int64 {0}> ()
  one = Constant <value = int64 {1}> ()
  r = Range (zero, n0, one)
  s = Shape (x)
  grid = Reshape (r, s)
  first = Gather <axis = 1> (grid, zero)
  col = Unsqueeze (first, ax1)
  [n] y = ScatterND (flat, col, u) }
""",
    "inverse permutation": """
g (float[N] x) => (int64[N] y)
{ n0 = Shape (x)
  v, i = TopK <axis = 0, largest = 0> (x, n0)
  z = ConstantOfShape <value = int64[1] {0}> (n0)
  s0 = Squeeze (n0)
  zero = Constant <value = int64 {0}> ()
  one = Constant <value = int64 {1}> ()
  r = Range (zero, s0, one)
  [n] y = ScatterElements <axis = 0> (z, i, r) }
""",
    "block table": """
g (float[S,4] pool, int64[B] table, int64[B] slot, float[B,4] rows) => (float[S,4] y)
<int64[1] ax1 = {1}>
{ sixteen = Constant <value = int64 {16}> ()
  base = Mul (table, sixteen)
  at = Add (base, slot)
  col = Unsqueeze (at, ax1)
  [n] y = ScatterND (pool, col, rows) }
""",
    "one-hot": """
g (int64[B,1] label) => (float[B,10] y)
{ s = Shape <start=0,end=1> (label)
  ten = Constant <value = int64[1] {10}> ()
  full = Concat <axis = 0> (s, ten)
  z = ConstantOfShape (full)
  ls = Shape (label)
  ones = ConstantOfShape <value = float[1] {1}> (ls)
  [n] y = ScatterElements <axis = 1> (z, label, ones) }
""",
    "bincount": """
g (int64[N] ids, float[10] z) => (float[10] y)
{ s = Shape (ids)
  ones = ConstantOfShape <value = float[1] {1}> (s)
  [n] y = ScatterElements <axis = 0, reduction = "add"> (z, ids, ones) }
""",
    "built shape": """
g (float[N,4] x) => (float[K] y)
<int64[1] m1 = {-1}>
{ z = Constant <value = int64[3] {1, 1, 1}> ()
  s = Shape <start=0,end=1> (x)
  at = Constant <value = int64[1,1] {1}> ()
  [n] shape = ScatterND (z, at, s)
  y0 = ConstantOfShape (shape)
  y = Reshape (y0, m1) }
""",
    "wrapped": """
g (float[N] x, int64[1] position, float[1] u) => (float[N] y)
{ zero = Constant <value = int64 {0}> ()
  s = Shape (x)
  moved = Add (position, s)
  neg = Less (position, zero)
  at = Where (neg, moved, position)
  [n] y = ScatterElements <axis = 0> (x, at, u) }
""",
    "clamp": """
g (float[N] x, int64[1] position, float[1] u) => (float[N] y)
{ zero = Constant <value = int64 {0}> ()
  one = Constant <value = int64 {1}> ()
  s = Shape (x)
  s0 = Squeeze (s)
  last = Sub (s0, one)
  at = Clip (position, zero, last)
  [n] y = ScatterElements <axis = 0> (x, at, u) }
""",
    "remainder": """
g (float[N] x, int64[1] position, float[1] u) => (float[N] y)
{ n = Shape (x)
  at = Mod (position, n)
  [n] y = ScatterElements <axis = 0> (x, at, u) }
""",
    "bucket": """
g (float[B] x, int64[K] v, float[K] u) => (float[B] y)
{ w = Constant <value = int64 {8}> ()
  at = Div (v, w)
  [n] y = ScatterElements <axis = 0, reduction = "add"> (x, at, u) }
""",
    "unique ids": """
g (float[N] x, int64[K] ids, float[U] u) => (float[N] y)
{ d = Unique (ids)
  [n] y = ScatterElements <axis = 0> (x, d, u) }
""",
    "argmax": """
g (float[B,V] x, float[B] u) => (float[B,V] y)
<int64[1] ax1 = {1}>
{ b = Shape <start=0,end=1> (x)
  b0 = Squeeze (b)
  zero = Constant <value = int64 {0}> ()
  one = Constant <value = int64 {1}> ()
  r = Range (zero, b0, one)
  m = ArgMax <axis = 1, keepdims = 0> (x)
  r1 = Unsqueeze (r, ax1)
  m1 = Unsqueeze (m, ax1)
  t = Concat <axis = 1> (r1, m1)
  [n] y = ScatterND (x, t, u) }
""",
    "loop counter": """
g (float[N,4] x, float[1,4] u) => (float[N,4] y)
{ s = Shape <start=0,end=1> (x)
  trips = Squeeze (s)
  on = Constant <value = bool {1}> ()
  y = Loop (trips, on, x) <body = b (int64 i, bool c, float[N,4] t) => (bool c2, float[N,4] t2) { c2 = Identity (c)
  k = Constant <value = int64[2] {1, 1}> ()
  at = Reshape (i, k)
  [n] t2 = ScatterND (t, at, u) }> }
""",
}

_EXPECTED = {
    # range and distinct with dynamic sizes, then range with static ones
    "position": ("conditional", "proven", "conditional"),
    "total - step": ("conditional", "proven", "conditional"),
    "windowed": ("conditional", "proven", "proven"),
    "masked 1": ("conditional", "proven", "proven"),
    "masked 2 of data": ("proven", "proven", "proven"),
    "masked 3": ("proven", "proven", "proven"),
    "cumsum where": ("conditional", "unknown", "proven"),
    "routing": ("proven", "proven", "proven"),
    "mesh": ("proven", "proven", "proven"),
    "flat slice": ("proven", "proven", "proven"),
    "inverse permutation": ("proven", "proven", "proven"),
    "block table": ("conditional", "unknown", "conditional"),
    "one-hot": ("conditional", "proven", "conditional"),
    "bincount": ("conditional", "conditional", "conditional"),
    "built shape": ("proven", "proven", "proven"),
    "wrapped": ("conditional", "proven", "conditional"),
    "clamp": ("conditional", "proven", "proven"),
    "remainder": ("conditional", "proven", "proven"),
    "bucket": ("conditional", "unknown", "conditional"),
    "unique ids": ("conditional", "conditional", "conditional"),
    "argmax": ("proven", "proven", "proven"),
    "loop counter": ("proven", "proven", "proven"),
}
"""What is true of each pattern: a dimension that may be 0, or a position that callers pass, is a condition."""


def _static(text: str) -> str:
    """Return a pattern with numbers in place of the names of dimensions."""

    def sized(shape: "re.Match[str]") -> str:
        dims = [str(_SIZES.get(dim, dim)) for dim in shape[2].split(",")]
        return f"{shape[1]}[{','.join(dims)}]"

    return re.sub(r"\b(float|int64|bool)\[([A-Z0-9,]+)\]", sized, text)


def _in_branch(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model with the nodes of another one in both branches of an If."""
    branches = []
    for prefix in ("then", "else"):
        graph = onnx.GraphProto()
        graph.CopyFrom(model.graph)
        made = {name for node in graph.node for name in node.output} | {
            each.name for each in graph.initializer
        }
        for node in graph.node:
            node.name = f"{prefix}_{node.name}" if node.name else ""
            node.input[:] = [f"{prefix}_{name}" if name in made else name for name in node.input]
            node.output[:] = [f"{prefix}_{name}" for name in node.output]
        for tensor in (*graph.initializer, *graph.output):
            tensor.name = f"{prefix}_{tensor.name}"
        del graph.input[:]
        graph.name = prefix
        branches.append(graph)
    condition = onnx.helper.make_tensor_value_info("condition", onnx.TensorProto.BOOL, [])
    node = onnx.helper.make_node("If", ["condition"], ["y"], then_branch=branches[0], else_branch=branches[1])
    graph = onnx.helper.make_graph([node], "g", [condition, *model.graph.input], model.graph.output)
    return onnx.helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def _verdicts(model: onnx.ModelProto) -> set[tuple[str, str]]:
    contract = make_contract(read("m.onnx", model.SerializeToString()))
    return {(node.range.status, node.distinct.status) for node in contract.nodes}


@pytest.mark.parametrize("name", _PATTERNS)
def test_a_pattern_has_the_verdict_that_is_true(name: str) -> None:
    open_range, distinct, static_range = _EXPECTED[name]
    open_model = onnx.parser.parse_model(_HEADER + _PATTERNS[name])
    assert _verdicts(open_model) == {(open_range, distinct)}
    static = onnx.parser.parse_model(_HEADER + _static(_PATTERNS[name]))
    assert _verdicts(static) == {(static_range, distinct)}
    if name != "loop counter":  # its own body has names that a copy would repeat
        assert _verdicts(_in_branch(open_model)) == {(open_range, distinct)}


def test_every_pattern_has_an_expectation() -> None:
    assert _PATTERNS.keys() == _EXPECTED.keys()


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        ("position", "position in -cache.shape[1]..cache.shape[1] - 1"),
        ("wrapped", "position in -2 * x.shape[0]..x.shape[0] - 1"),
        ("clamp", "x.shape[0] >= 1"),
        ("bucket", "v >= -8 * x.shape[0] - 7"),
    ],
)
def test_conditions_are_exact(name: str, condition: str) -> None:
    model = onnx.parser.parse_model(_HEADER + _PATTERNS[name])
    (node,) = make_contract(read("m.onnx", model.SerializeToString())).nodes
    assert condition in node.range.conditions


def test_conditions_prove_if_they_are_given() -> None:
    """Every condition that a pattern prints can be given, and the range is proven then."""
    for text in _PATTERNS.values():
        model = read("m.onnx", onnx.parser.parse_model(_HEADER + text).SerializeToString())
        for node in make_contract(model).nodes:
            if node.range.status == "conditional":
                again = make_contract(model, node.range.conditions)
                assert {each.range.status for each in again.nodes} == {"proven"}, node.range.conditions
