"""Small networks as ONNX text: the inputs of each must fit together, or be certain numbers."""

import numpy as np
from numpy.typing import NDArray
from onnx import numpy_helper, parser

_HEADER = '<ir_version: 10, opset_import: ["" : 18]>\n'
_RANDOM = np.random.default_rng(0)


def _weights(*shape: int) -> NDArray[np.float32]:
    return _RANDOM.standard_normal(shape, np.float32) / np.float32(4)


def _decoder(layers: int) -> str:
    """Return a decoder with past keys and values: the mask is as long as past and current ones together."""
    inputs = ["int64[B,S] ids", "int64[B,A] mask", "int64[B,S] positions"]
    outputs, body, last = list[str](), "", "x"
    for layer in range(layers):
        inputs += [f"float[B,2,P,8] key{layer}", f"float[B,2,P,8] value{layer}"]
        outputs += [f"float[B,2,K{layer},8] keys{layer}", f"float[B,2,V{layer},8] values{layer}"]
        body += f"""
          four{layer} = Reshape ({last}, heads)
          query{layer} = Transpose <perm = [0, 2, 1, 3]> (four{layer})
          keys{layer} = Concat <axis = 2> (key{layer}, query{layer})
          values{layer} = Concat <axis = 2> (value{layer}, query{layer})
          turned{layer} = Transpose <perm = [0, 1, 3, 2]> (keys{layer})
          scores{layer} = MatMul (query{layer}, turned{layer})
          biased{layer} = Add (scores{layer}, bias)
          shares{layer} = Softmax <axis = -1> (biased{layer})
          mixed{layer} = MatMul (shares{layer}, values{layer})
          back{layer} = Transpose <perm = [0, 2, 1, 3]> (mixed{layer})
          x{layer} = Reshape (back{layer}, whole)"""
        last = f"x{layer}"
    return f"""decoder ({", ".join(inputs)}) => (float[B,S,16] y, {", ".join(outputs)}) {{
      words = Gather (table, ids)
      places = Gather (positions_table, positions)
      x = Add (words, places)
      heads = Constant <value_ints = [0, 0, 2, 8]> ()
      whole = Constant <value_ints = [0, 0, 16]> ()
      numbers = Cast <to = 1> (mask)
      axes = Constant <value_ints = [1, 2]> ()
      wide = Unsqueeze (numbers, axes)
      one = Constant <value_float = 1.0> ()
      large = Constant <value_float = -10000.0> ()
      inverse = Sub (one, wide)
      bias = Mul (inverse, large)
      {body}
      y = Identity ({last})
    }}"""


_TABLES = {"table": _weights(1000, 16), "positions_table": _weights(64, 16)}
_CONVOLUTIONS = {
    "w1": _weights(4, 3, 3, 3), "w2": _weights(4, 4, 3, 3), "w3": _weights(4, 8, 3, 3),
    "w4": _weights(2, 8, 1, 1), "w5": _weights(4, 4, 2, 2), "double": np.array([1, 1, 2, 2], np.float32),
    "w6": _weights(4, 3, 7, 7),
}  # fmt: skip
_UP_AND_DOWN = """up_and_down (float[N,3,H,W] image) => (float[N,2,I,J] y) {{
  a = Conv <pads = [1, 1, 1, 1]> (image, w1)
  b = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (a)
  c = Conv <pads = [1, 1, 1, 1]> (b, w2)
  d = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (c)
  e = {} (d{})
  f = Concat <axis = 1> (e, c)
  g = Conv <pads = [1, 1, 1, 1]> (f, w3)
  h = {} (g{})
  i = Concat <axis = 1> (h, a)
  y = Conv (i, w4)
}}"""
_TRANSPOSED = "ConvTranspose <strides = [2, 2]>", ", w5"
_RESIZED = 'Resize <mode = "nearest">', ", , double"

NETWORKS = {
    "decoder": _decoder(1),
    "deep_decoder": _decoder(12),
    "masked": """masked (int64[B,S] ids, int64[B,T] mask) => (float[B,S,16] y) {
      x = Gather (table, ids)
      is_there = Cast <to = 9> (mask)
      axis = Constant <value_ints = [1]> ()
      wide = Unsqueeze (is_there, axis)
      turned = Transpose <perm = [0, 2, 1]> (x)
      scores = MatMul (x, turned)
      least = Constant <value = float {-inf}> ()
      chosen = Where (wide, scores, least)
      shares = Softmax <axis = -1> (chosen)
      y = MatMul (shares, x)
    }""",
    "counted": """counted (int64[B,S] ids, int64[B,S] mask) => (float[B,S,16] y) {
      one = Constant <value_int = 1> ()
      zero = Constant <value_int = 0> ()
      sums = CumSum (mask, one)
      places = Sub (sums, one)
      is_left_out = Equal (mask, zero)
      positions = Where (is_left_out, one, places)
      x = Gather (positions_table, positions)
      words = Gather (table, ids)
      y = Add (words, x)
    }""",
    "resized": _UP_AND_DOWN.format(*_RESIZED, *_RESIZED),
    "transposed": _UP_AND_DOWN.format(*_TRANSPOSED, *_TRANSPOSED),
    "strided": """strided (float[N,3,H,W] image) => (float[N,4] y) {
      a = Conv <strides = [4, 4]> (image, w6)
      b = Conv <strides = [2, 2]> (a, w2)
      c = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (b)
      d = GlobalAveragePool (c)
      y = Flatten (d)
    }""",
    "recurrent": """recurrent (float[T,B,4] x, int32[C] lengths, float[1,D,8] hidden, float[1,E,8] cell)
        => (float[T,1,B,8] y, float[1,B,8] y_h, float[1,B,8] y_c) {
      y, y_h, y_c = LSTM <hidden_size = 8> (x, w, r, , lengths, hidden, cell)
    }""",
    "suppressed": """suppressed (float[B,N,4] boxes, float[C,D,M] scores) => (int64[K,3] y) {
      most = Constant <value_ints = [5]> ()
      y = NonMaxSuppression (boxes, scores, most)
    }""",
    "positive": """positive (float[N,4,H] x, float[4] mean, float[4] variance, float[N] a, float[N] b)
        => (float[N,4,H] y, float[N] z) {
      y = BatchNormalization (x, four, four, mean, variance)
      root = Sqrt (a)
      logarithm = Log (b)
      z = Div (logarithm, root)
    }""",
}
"""Models by name, whose weights `network` adds."""


def network(name: str) -> bytes:
    """Return an ONNX model."""
    model = parser.parse_model(_HEADER + NETWORKS[name])
    weights = {
        **_TABLES, **_CONVOLUTIONS, "w": _weights(1, 32, 4), "r": _weights(1, 32, 8), "four": _weights(4)
    }  # fmt: skip
    used = {input for node in model.graph.node for input in node.input}
    tensors = [numpy_helper.from_array(array, key) for key, array in weights.items() if key in used]
    model.graph.initializer.extend(tensors)
    data: bytes = model.SerializeToString()
    return data
