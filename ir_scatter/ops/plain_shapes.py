"""What is known of the shapes of plain operators without importing their kernels and NumPy.

Types of both dialects in lower case.
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
