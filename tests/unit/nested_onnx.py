"""ONNX models with bodies and functions, as text; each with inputs for which it is computed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import parser

Feeds = Mapping[str, npt.NDArray[Any]]

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

_HEADER = '<ir_version: 10, opset_import: ["" : 18]>\n'


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
    "scan": (
        _HEADER + _SCAN,
        {"start": _floats(3), "rows": _floats(4, 3), "columns": _floats(2, 4) * 2},
    ),
    "functions": (
        _FUNCTIONS,
        {"small": _floats(4, 3), "large": _floats(7, 3), "row": _floats(1, 3)},
    ),
}


def save(text: str, path: Path) -> Path:
    """Write a model of this text."""
    path.write_bytes(parser.parse_model(text).SerializeToString())
    return path


def check(path: Path) -> None:
    """Hold a model against onnx's own checker."""
    onnx.checker.check_model(str(path), full_check=True)
