"""Defaults of runs that the library, the command line and the runners share; this module imports nothing."""

NUMPY = "numpy"
"""The name of the NumPy evaluator among runners."""

PRECISIONS = ("f32", "f16", "bf16", "default")
"""Floating-point precisions of inference; "default" leaves the choice to the device."""

PRECISION = "f32"

TAPS = ("scatter", "all")
"""Nodes whose values are read to find where a difference arises: scatter nodes, or all nodes."""

TAP_MEMORY = 1 << 30
"""Bytes of tapped tensors in memory at once: 1 GiB, which leaves room beside the model on a laptop."""

TIME_LIMIT = 600.0
"""Seconds for one run of a whole model: compiling a large model for a GPU takes minutes."""

QUESTION_TIME_LIMIT = 300.0
"""Seconds for one question to a runtime's process, unless the caller sets another limit."""
