"""What is known of the shapes of plain operators without importing their kernels and NumPy.

Types of both dialects in lower case, but for those that are ONNX's alone.
"""

SHAPE_READERS = frozenset({"shapeof", "shape", "size"})
"""They read the shapes of their inputs only, and nothing of their values."""

SHAPE_KEEPERS = frozenset(
    {
        "abs", "cast", "castlike", "ceil", "ceiling", "convert", "convertlike", "cumsum", "floor",
        "identity", "logicalnot", "neg", "negative", "not", "relu", "sqrt",
    }
)  # fmt: skip
"""Their output has the shape of their first input."""

REPEATERS = frozenset({"broadcast", "expand"})
"""They repeat their first input along its dimensions of 1, and those that it does not have."""

REPEATING_MODES = frozenset({"numpy", "bidirectional"})
"""The words of their attribute `mode` with which trailing dimensions meet."""

RUNNING = frozenset({"cumsum"})
"""Of `SHAPE_KEEPERS` those whose elements depend on more than the element in the same place."""

ONNX_TYPE_KEEPERS = frozenset(
    {
        "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Clip", "Cos", "Cosh", "CumSum",
        "Elu", "Erf", "Exp", "Floor", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Log",
        "Neg", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh",
        "Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "ThresholdedRelu",
    }
)  # fmt: skip
"""Operators of ONNX whose only output has the element type and the shape of their first input."""

ONNX_BROADCASTERS = frozenset({"Add", "Div", "Mul", "Sub"})
"""Operators of ONNX whose output has the type of their first input, and the shape of both together."""
