"""ONNX models as text: with bodies and functions, with computed indices, with unknown operators."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import parser

Feeds = Mapping[str, npt.NDArray[Any]]
_HEADER = '<ir_version: 10, opset_import: ["" : 18]>\n'

_BRANCH = """
chosen (bool flag, float[4, 5] data, float[2, 5] rows) => (float[4, 5] out, int64[2] picked)
<int64[2, 1] first = {3, 1}, int64[2, 1] second = {0, 2}> {
  low = Relu(rows)
  out, picked = If (flag) <
    then_branch = then () => (float[4, 5] a, int64[2] b) {
      a = ScatterND (data, first, low)
      axes = Constant <value_ints = [1]> ()
      b = Squeeze (first, axes)
    },
    else_branch = other () => (float[4, 5] c, int64[2] d) {
      c = ScatterND <reduction = "add"> (data, second, rows)
      axes = Constant <value_ints = [1]> ()
      d = Squeeze (second, axes)
    }
  >
}
"""

_LOOP = """
looped (int64 trips, bool start, float[7, 5] cache, float[N, 5] news) =>
  (float[7, 5] last, float[M, 5] seen, int64[M] counts)
<int64 zero = {0}, int64[1] first = {0}, int64 limit = {4}> {
  last, seen, counts = Loop (trips, start, cache) <
    body = body (int64 step, bool again, float[7, 5] old)
        => (bool goes_on, float[7, 5] new, float[5] row, int64 count) {
      place = Unsqueeze (step, first)
      row = Gather (news, step)
      doubled = Add (row, row)
      wide = Unsqueeze (doubled, first)
      new = If (again) <
        then_branch = then () => (float[7, 5] updated) {
          tuples = Unsqueeze (place, first)
          updated = ScatterND (old, tuples, wide)
        },
        else_branch = other () => (float[7, 5] kept) { kept = Identity (old) }
      >
      count = Add (step, zero)
      goes_on = Less (step, limit)
    }
  >
}
"""

_CAPTURED_DEEP = """
deep (float[3] data, int64 trips) => (float[3] out) <bool true = {1}> {
  twice = Add (data, data)
  out = Loop (trips, true, data) <
    body = body (int64 step, bool again, float[3] old) => (bool again, float[3] new) {
      new = If (again) <
        then_branch = then () => (float[3] sum) {
          sum = If (again) <
            then_branch = inner () => (float[3] inside) { inside = Add (old, twice) },
            else_branch = never () => (float[3] nothing) { nothing = Identity (data) }
          >
        },
        else_branch = other () => (float[3] same) { same = Identity (old) }
      >
    }
  >
}
"""

_SCAN = """
scanned (float[3] start, float[4, 3] rows, float[2, 4] columns) =>
  (float[3] total, float[3, 4] sums, float[4, 2] parts) {
  total, sums, parts = Scan (start, rows, columns) <
    num_scan_inputs = 2,
    scan_input_axes = [0, 1],
    scan_input_directions = [0, 1],
    scan_output_axes = [1, 0],
    scan_output_directions = [1, 0],
    body = body (float[3] old, float[3] row, float[2] column)
        => (float[3] new, float[3] sum, float[2] part) {
      new = Add (old, row)
      sum = Identity (new)
      part = Relu (column)
    }
  >
}
"""

_FUNCTIONS = """
<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
calls (float[4, 3] small, float[7, 3] large, float[1, 3] row)
  => (float[4, 3] a, float[7, 3] b, float[7, 3] c) {
  a = own.Store <place = [2]> (small, row)
  b = own.StoreTwice <first = [6]> (large, row)
  c = own.Optional (large)
}
<domain: "own", opset_import: ["" : 18]>
Store <place, how: string = "none"> (table, row) => (stored) {
  indices = Constant <value_ints: ints = @place> ()
  last = Constant <value_ints = [1]> ()
  tuples = Unsqueeze (indices, last)
  stored = ScatterND <reduction: string = @how> (table, tuples, row)
}
<domain: "own", opset_import: ["" : 18, "own" : 1]>
StoreTwice <first> (table, row) => (stored) {
  once = own.Store <place: ints = @first> (table, row)
  stored = own.Store <place = [6], how = "add"> (once, row)
}
<domain: "own", opset_import: ["" : 18]>
Optional (table, row) => (stored) { stored = Relu (table) }
"""


def _floats(*shape: int) -> npt.NDArray[Any]:
    return (np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 7 - 3) / 4


def _loop_feeds(trips: int, start: bool) -> Feeds:
    return {
        "trips": np.array(trips),
        "start": np.array(start),
        "cache": _floats(7, 5),
        "news": _floats(6, 5) + 1,
    }


def _branch_feeds(flag: bool) -> Feeds:
    return {"flag": np.array(flag), "data": _floats(4, 5), "rows": _floats(2, 5) * 8}


NESTED: Mapping[str, tuple[str, Feeds]] = {
    "then": (_HEADER + _BRANCH, _branch_feeds(True)),
    "else": (_HEADER + _BRANCH, _branch_feeds(False)),
    "loop_by_trips": (_HEADER + _LOOP, _loop_feeds(3, True)),
    "loop_by_condition": (_HEADER + _LOOP, _loop_feeds(6, True)),
    "loop_never_by_trips": (_HEADER + _LOOP, _loop_feeds(0, True)),
    "loop_never_by_condition": (_HEADER + _LOOP, _loop_feeds(5, False)),
    "captured_deep": (_HEADER + _CAPTURED_DEEP, {"data": _floats(3), "trips": np.array(2)}),
    "scan": (_HEADER + _SCAN, {"start": _floats(3), "rows": _floats(4, 3), "columns": _floats(2, 4) * 2}),
    "functions": (_FUNCTIONS, {"small": _floats(4, 3), "large": _floats(7, 3), "row": _floats(1, 3)}),
}
"""Models with bodies and functions, each with inputs for which it is computed."""

# Indices are made of inputs in one way or another.

_LEGAL: Mapping[str, str] = {
    "direct": """
        direct (float[7, 3] data, int64[4, 1] at, float[4, 3] rows) => (float[7, 3] out) {
          out = ScatterND (data, at, rows)
        }""",
    "through_movement": """
        moved (float[5, 6] data, int32[2, 3] at, float[6] rows) => (float[5, 6] out)
        <int64[1] last = {1}, int64[2] flat = {6, 1}> {
          turned = Transpose (at)
          wide = Cast <to = 7> (turned)
          column = Reshape (wide, flat)
          grid = Expand (column, flat)
          places = Reshape (grid, flat)
          column_updates = Unsqueeze (rows, last)
          twice = Concat <axis = 1> (places, places)
          zero = Sub (places, places)
          tuples = Concat <axis = 1> (zero, places)
          out = ScatterND (data, tuples, rows)
        }""",
    "offset": """
        offset (float[4] data, int64[3] at, float[3] rows) => (float[4] out)
        <int64 shift = {-10}> {
          places = Add (at, shift)
          out = ScatterElements (data, places, rows)
        }""",
    "reversed": """
        reversed (float[4] data, int64[4] at, float[4] rows) => (float[4] out) <int64 end = {3}> {
          places = Sub (end, at)
          out = ScatterElements (data, places, rows)
        }""",
    "remainder": """
        remainder (float[5] data, int64[5] at, float[5] rows) => (float[5] out) <int64 size = {5}> {
          places = Mod (at, size)
          out = ScatterElements (data, places, rows)
        }""",
    "wrapped_by_where": """
        wrapped (float[6] data, int64[6] at, float[6] rows) => (float[6] out)
        <int64 size = {6}, int64 zero = {0}> {
          is_negative = Less (at, zero)
          from_end = Add (at, size)
          places = Where (is_negative, from_end, at)
          out = ScatterElements (data, places, rows)
        }""",
    "pairs": """
        pairs (float[3, 4] data, int64[9] i, int64[9] j, float[9] values) => (float[3, 4] out)
        <int64[1] last = {1}> {
          rows = Unsqueeze (i, last)
          columns = Unsqueeze (j, last)
          tuples = Concat <axis = 1> (rows, columns)
          out = ScatterND (data, tuples, values)
        }""",
    "flattened": """
        flattened (float[20] data, int64[12] y, int64[12] x, float[12] values) => (float[20] out)
        <int64 width = {5}> {
          begin = Mul (y, width)
          places = Add (begin, x)
          out = ScatterElements (data, places, values)
        }""",
    "two_limits": """
        limits (float[9] large, float[4] small, int64[3] at, float[3] values)
            => (float[9] a, float[4] b) {
          a = ScatterElements (large, at, values)
          b = ScatterElements (small, at, values)
        }""",
    "as_float": """
        floats (float[6] data, float[5] at, float[5] values) => (float[6] out) {
          places = Cast <to = 7> (at)
          out = ScatterElements (data, places, values)
        }""",
    "looked_up": """
        looked_up (float[6] data, int64[8] table, int64[4] which, float[4] values) => (float[6] out) {
          places = Gather (table, which)
          out = ScatterElements (data, places, values)
        }""",
    "edges": """
        edges (float[5, 2] nodes, int64[2, 7] edge_index) => (float[5, 2] out)
        <int64 zero = {0}, int64 one = {1}, int64[1] last = {1}, int64[2] wide = {7, 2}> {
          sources = Gather (edge_index, zero)
          targets = Gather (edge_index, one)
          messages = Gather (nodes, sources)
          column = Unsqueeze (targets, last)
          grid = Expand (column, wide)
          out = ScatterElements <axis = 0, reduction = "add"> (nodes, grid, messages)
        }""",
    "in_a_loop": """
        in_a_loop (float[4, 3] data, int64[3, 2] at, float[2, 3] rows) => (float[4, 3] out)
        <int64 trips = {3}, bool true = {1}, int64[1] last = {1}> {
          out = Loop (trips, true, data) <
            body = body (int64 step, bool again, float[4, 3] old) => (bool again, float[4, 3] new) {
              mine = Gather (at, step)
              tuples = Unsqueeze (mine, last)
              new = ScatterND (old, tuples, rows)
            }
          >
        }""",
    "in_a_branch": """
        in_a_branch (bool flag, float[4] data, int64[3] at, float[3] values) => (float[4] out) {
          out = If (flag) <
            then_branch = then () => (float[4] a) { a = ScatterElements (data, at, values) },
            else_branch = other () => (float[4] b) {
              b = ScatterElements <reduction = "max"> (data, at, values)
            }
          >
        }""",
    "divided": """
        divided (int64[4] data, int64[4] by, int64[2] at, int64[2] values) => (int64[4] out) {
          parts = Div (data, by)
          out = ScatterElements (parts, at, values)
        }""",
    "moved_by_scatter": """
        chained (float[6] data, int64[5] places, int64[2] at, int64[2] new, float[5] values)
            => (float[6] out) {
          changed = ScatterElements (places, at, new)
          out = ScatterElements (data, changed, values)
        }""",
    "dynamic": """
        dynamic (float[N, 3] data, int64[M, 1] at, float[K, L] rows, float[P, 3] more)
            => (float[N, 3] out) {
          written = ScatterND (data, at, rows)
          out = Add (written, more)
        }""",
    "dynamic_cache": """
        cached (float[B, H, S, 4] cache, int64[T] positions, float[B, H, T, 4] new)
            => (float[B, H, S, 4] out) {
          whole = Shape (new)
          last = Constant <value_ints = [1]> ()
          column = Unsqueeze (positions, last)
          places = Expand (column, whole)
          out = ScatterElements <axis = 2> (cache, places, new)
        }""",
}

LEGAL = {name: _HEADER + text for name, text in _LEGAL.items()}

NEVER_LEGAL = (
    _HEADER
    + """
    never (float[3] data, int64[2] at, float[2] values) => (float[3] out) <int64 far = {5}> {
      high = Relu (at)
      places = Add (high, far)
      out = ScatterElements (data, places, values)
    }"""
)

_HEADER_WITH_CUSTOM = '<ir_version: 10, opset_import: ["" : 18, "custom" : 1], domain: "custom">\n'

# NumPy does not compute some of the operators.

_SKETCHED: Mapping[str, str] = {
    "around_matmul": """
        around (float[5, 4] data, int64[3, 1] at, float[3, 6] rows) => (float[5, 6] out)
        <float[4, 6] weights = {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}> {
          product = MatMul (data, weights)
          written = ScatterND (product, at, rows)
          out = Softmax (written)
        }""",
    "gathered": """
        gathered (float[3, 4] data, int64[6] at) => (float[6, 4] out) {
          wide = Exp (data)
          out = Gather (wide, at)
        }""",
    "dynamic": """
        dynamic (float[A, B] data, int64[C, D] at, float[E, F] rows, float[G, H] more) => (float[I, J] out)
        <float[5, 2] weights = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}> {
          product = MatMul (data, weights)
          written = ScatterElements (product, at, rows)
          out = Add (written, more)
        }""",
    "convolved": """
        convolved (float[N, C, H, W] picture) => (float[N, K, I, J] out)
        <float[1, 3, 5, 5] weights = {
          1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
          1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
          1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
        }> {
          out = Conv (picture, weights)
        }""",
    "top": """
        top (float[2, 5] data, int64[1] k) => (float[2, N] values, int64[2, N] places) {
          values, places = TopK <axis = 1> (data, k)
        }""",
    "hot": """
        hot (int64[7] classes, int64 depth, float[2] ends) => (float[7, N] out) {
          out = OneHot (classes, depth, ends)
        }""",
    "reversed": """
        reversed (float[6, 3] data, int64[3] lengths) => (float[6, 3] out) {
          out = ReverseSequence (data, lengths)
        }""",
    "classes": """
        classes (float[4, 3, 2] scores, int64[4, 2] wanted) => (float out) {
          out = NegativeLogLikelihoodLoss (scores, wanted)
        }""",
    "reshaped": """
        reshaped (float[4, 6] data, int64[3] shape) => (float[A, B, C] out) {
          wide = Exp (data)
          out = Reshape (wide, shape)
        }""",
    "reshaped_as_declared": """
        reshaped (float[4, 6] data, int64[3] shape) => (float[2, 4, 3] out) {
          wide = Exp (data)
          out = Reshape (wide, shape)
        }""",
    "expanded": """
        expanded (float[3, 1] data, int64[3] shape) => (float[A, B, C] out) {
          wide = Exp (data)
          out = Expand (wide, shape)
        }""",
    "padded": """
        padded (float[2, 3] data, int64[4] pads) => (float[4, 5] out) {
          wide = Exp (data)
          out = Pad (wide, pads)
        }""",
    "sliced": """
        sliced (float[6, 7] data, int64[2] starts, int64[2] ends, int64[2] axes, int64[2] steps)
            => (float[A, B] out) {
          wide = Exp (data)
          out = Slice (wide, starts, ends, axes, steps)
        }""",
    "reduced": """
        reduced (float[2, 3, 5] data, int64[2] axes) => (float[2, 1, 1] out) {
          out = ReduceMean (data, axes)
        }""",
    "split": """
        split (float[7] data, int64[3] sizes) => (float[A] a, float[B] b, float[C] c) {
          wide = Exp (data)
          a, b, c = Split (wide, sizes)
        }""",
    "ranged": """
        ranged (int64 start, int64 limit, int64 delta) => (float[N] out) {
          numbers = Range (start, limit, delta)
          wide = Cast <to = 1> (numbers)
          out = Exp (wide)
        }""",
    "resized": """
        resized (float[1, 1, 3, 4] data, int64[4] sizes) => (float[1, 1, 6, 4] out) {
          out = Resize (data, , , sizes)
        }""",
    "tiled": """
        tiled (float[2, 3] data, int64[2] times) => (float[4, 3] out) {
          wide = Exp (data)
          out = Tile (wide, times)
        }""",
    "chosen": """
        chosen (float[3] data, int64[2] at, float[2] rows) => (float[3] out) {
          total = ReduceMax <keepdims = 0> (data)
          high = RandomNormalLike (total)
          is_high = Cast <to = 9> (high)
          out = If (is_high) <
            then_branch = then () => (float[3] a) { a = ScatterElements (data, at, rows) },
            else_branch = other () => (float[3] b) { b = ScatterElements (data, at, rows) }
          >
        }""",
    "looped": """
        looped (float[3] data, int64[2] at, float[2] rows, float often) => (float[3] out)
        <bool true = {1}> {
          high = RandomNormalLike (often)
          trips = Cast <to = 7> (high)
          out = Loop (trips, true, data) <
            body = body (int64 step, bool again, float[3] old) => (bool goes_on, float[3] new) {
              goes_on = Identity (again)
              new = ScatterElements (old, at, rows)
            }
          >
        }""",
}

SKETCHED = {name: _HEADER_WITH_CUSTOM + text for name, text in _SKETCHED.items()}

OPAQUE = (
    _HEADER_WITH_CUSTOM
    + """
    opaque (float[5, 4] data, int64[3, 1] at, float[3, 4] rows, float[2, 4] other) => (float[5, 4] out) {
      same = custom.Mystery (data, other)
      out = ScatterND (same, at, rows)
    }"""
)
"""A node whose output has no known shape."""

CROWDED = (
    _HEADER_WITH_CUSTOM
    + """
    constant (float[3] data, float[2] rows, int64[4] at) => (float[3] out, float[4] taken)
    <int64[2] far = {1, 7}> {
      out = ScatterElements (data, far, rows)
      wide = Exp (data)
      taken = Gather (wide, at)
    }"""
)
"""A constant index that is out of range."""

_GHOSTS = {
    "then_branch": "out = If (flag) <then_branch = t () => (float[4] a) { a = ScatterElements (data, at, ghost) },"
    " else_branch = e () => (float[4] b) { b = Identity (data) }>",
    "two_bodies_deep": "out = If (flag) <then_branch = t () => (float[4] a) { a = If (flag) <"
    "then_branch = tt () => (float[4] c) { c = ScatterElements (data, ghost, rows) },"
    " else_branch = ee () => (float[4] d) { d = Identity (data) }> },"
    " else_branch = e () => (float[4] b) { b = Identity (data) }>",
    "output_of_a_branch": "out = If (flag) <then_branch = t () => (float[4] ghost) "
    "{ a = ScatterElements (data, at, rows) }, else_branch = e () => (float[4] b) { b = Identity (data) }>",
    "condition": "out = If (ghost) <then_branch = t () => (float[4] a) { a = ScatterElements (data, at, rows) },"
    " else_branch = e () => (float[4] b) { b = Identity (data) }>",
    "loop": "out = Loop (trips, flag, data) <body = l (int64 step, bool on, float[4] old) => "
    "(bool again, float[4] new) { again = Identity (on) new = ScatterElements (old, at, ghost) }>",
    "trip_count": "out = Loop (ghost, flag, data) <body = l (int64 step, bool on, float[4] old) => "
    "(bool again, float[4] new) { again = Identity (on) new = ScatterElements (old, at, rows) }>",
    "carried": "out = Loop (trips, flag, ghost) <body = l (int64 step, bool on, float[4] old) => "
    "(bool again, float[4] new) { again = Identity (on) new = ScatterElements (old, at, rows) }>",
    "condition_of_a_body": "out = Loop (trips, flag, data) <body = l (int64 step, bool on, float[4] old) => "
    "(bool ghost, float[4] new) { new = ScatterElements (old, at, rows) }>",
    "scan": "out = Scan (data, several) <num_scan_inputs = 1, body = s (float[4] old, int64[1] at1) => "
    "(float[4] new) { new = ScatterElements (old, at1, ghost) }>",
    "function": "out = own.Store (data, at, ghost)",
}

GHOSTS = {
    name: '<ir_version: 10, opset_import: ["" : 18, "own" : 1]>\n'
    "haunted (float[4] data, int64[1] at, float[1] rows, bool flag, int64 trips, int64[3, 1] several)"
    f" => (float[4] out) {{ {text} }}\n"
    '<domain: "own", opset_import: ["" : 18]>\n'
    "Store (table, at, rows) => (stored) { stored = ScatterElements (table, at, rows) }"
    for name, text in _GHOSTS.items()
}
"""Models that name a value which nothing produces."""


def save(text: str, path: Path) -> Path:
    """Write a model of this text."""
    path.write_bytes(parser.parse_model(text).SerializeToString())
    return path


def check(path: Path) -> None:
    """Hold a model against onnx's own checker."""
    onnx.checker.check_model(str(path), full_check=True)
