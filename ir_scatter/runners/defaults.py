"""Defaults of runs, shared by the library, the command line and the runners. This module imports nothing."""

NUMPY = "numpy"
"""The name of the NumPy evaluator among runners."""

PRECISIONS = ("f32", "f16", "bf16", "default")
"""Floating-point precisions of inference; "default" leaves the choice to the device."""

PRECISION = "f32"

TAPS = ("scatter", "all")
"""Nodes whose inputs and outputs are read to locate a difference: scatter nodes, or all nodes."""

TAP_MEMORY = 1 << 30
"""Limit of tapped tensors in memory, in bytes: 1 GiB leaves room beside the model on a laptop."""

TIME_LIMIT = 600.0
"""Time limit for one run of a whole model, in seconds: compiling a large model for a GPU takes minutes."""

QUESTION_TIME_LIMIT = 300.0
"""Default time limit for one request to a child process, in seconds."""
