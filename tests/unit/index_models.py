"""Models whose indices are made of inputs in one way or another, as text of ONNX."""

from collections.abc import Mapping

_HEADER = '<ir_version: 10, opset_import: ["" : 18]>\n'

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

UNKNOWN_RANK = (
    _HEADER
    + """
    ranks (float data, int64[2] at, float[2] values) => (float out) {
      out = ScatterElements (data, at, values)
    }"""
)
