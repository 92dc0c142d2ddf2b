"""Runners of ONNX models: onnxruntime, and the reference evaluator of the onnx package."""

from ir_scatter.formats.base import ONNX_FORMAT
from ir_scatter.runners.base import Family, Optimizations, Runner

NOT_FROM_NUMPY = "from NumPy"
"""End of the message if a release of onnxruntime does not accept an element type from NumPy."""


ISSUE = {
    "Describe the issue": "description",
    "To reproduce": "steps",
    "Urgency": "Not known.",
    "Platform": "platform",
    "OS Version": "system",
    "ONNX Runtime Version or Commit ID": "version",
    "ONNX Runtime API": "Python",
    "Architecture": "architecture",
    "Execution Provider": "Default CPU",
    "Is it a regression": "regression",
}
"""The form of https://github.com/microsoft/onnxruntime/issues; see `Runner.issue_form`."""


class OnnxRuntimeRunner(Runner):
    """Runs models with onnxruntime on the CPU, with its default graph optimizations."""

    name = "onnxruntime"
    module = "ir_scatter.runners.onnx.onnxruntime"
    packages = ("onnxruntime",)
    install = "pip install onnxruntime"
    formats = (ONNX_FORMAT,)
    declines = NOT_FROM_NUMPY
    issue_form = ISSUE

    def optimizations(self) -> Optimizations:
        from ir_scatter.runners.onnx.optimizations import OPTIMIZATIONS

        return OPTIMIZATIONS


class OnnxReferenceRunner(Runner):
    """Runs models with `onnx.reference.ReferenceEvaluator`."""

    name = "onnx-reference"
    module = "ir_scatter.runners.onnx.reference"
    packages = ("onnx",)
    install = "pip install onnx"
    formats = (ONNX_FORMAT,)
    is_default = False
    remarks = (
        "It silently broadcasts illegal updates.",
        "A Loop joins its scan outputs instead of stacking them, and fails if it never runs.",
        "It keeps every value of a model until the end, whatever the memory limit.",
    )


FAMILIES = (
    Family.of_one(OnnxRuntimeRunner.name, OnnxRuntimeRunner, 30),
    Family.of_one(OnnxReferenceRunner.name, OnnxReferenceRunner, 40),
)
