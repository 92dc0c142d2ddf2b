"""ONNX models with operators that NumPy does not compute, as text."""

from collections.abc import Mapping

_HEADER = '<ir_version: 10, opset_import: ["" : 18, "custom" : 1], domain: "custom">\n'

_MODELS: Mapping[str, str] = {
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
          high = Exp (total)
          is_high = Cast <to = 9> (high)
          out = If (is_high) <
            then_branch = then () => (float[3] a) { a = ScatterElements (data, at, rows) },
            else_branch = other () => (float[3] b) { b = ScatterElements (data, at, rows) }
          >
        }""",
    "looped": """
        looped (float[3] data, int64[2] at, float[2] rows, float often) => (float[3] out)
        <bool true = {1}> {
          high = Exp (often)
          trips = Cast <to = 7> (high)
          out = Loop (trips, true, data) <
            body = body (int64 step, bool again, float[3] old) => (bool goes_on, float[3] new) {
              goes_on = Identity (again)
              new = ScatterElements (old, at, rows)
            }
          >
        }""",
}

SKETCHED = {name: _HEADER + text for name, text in _MODELS.items()}

OPAQUE = (
    _HEADER
    + """
    opaque (float[5, 4] data, int64[3, 1] at, float[3, 4] rows, float[2, 4] other) => (float[5, 4] out) {
      same = custom.Mystery (data, other)
      out = ScatterND (same, at, rows)
    }"""
)
"""A node whose output has no known shape."""

CROWDED = (
    _HEADER
    + """
    constant (float[3] data, float[2] rows, int64[4] at) => (float[3] out, float[4] taken)
    <int64[2] far = {1, 7}> {
      out = ScatterElements (data, far, rows)
      wide = Exp (data)
      taken = Gather (wide, at)
    }"""
)
"""A constant index that is out of range."""
