"""Runners of ONNX models: onnxruntime, and the reference evaluator of the package onnx."""

from ir_scatter.formats.base import ONNX_FORMAT
from ir_scatter.runners.base import Family, Runner

NOT_FROM_NUMPY = "from NumPy"
"""How the message ends where a release cannot be given an element type, though it may compute in it."""


class OnnxRuntimeRunner(Runner):
    """onnxruntime on the processor, with its graph optimizations as they are by default."""

    name = "onnxruntime"
    module = "ir_scatter.runners.onnx.onnxruntime"
    packages = ("onnxruntime",)
    install = "pip install onnxruntime"
    formats = (ONNX_FORMAT,)
    declines = NOT_FROM_NUMPY


class OnnxReferenceRunner(Runner):
    """`onnx.reference.ReferenceEvaluator` as it is."""

    name = "onnx-reference"
    module = "ir_scatter.runners.onnx.reference"
    packages = ("onnx",)
    install = "pip install onnx"
    formats = (ONNX_FORMAT,)
    is_default = False
    remarks = (
        "It broadcasts illegal updates in silence.",
        "A Loop joins its scan outputs instead of stacking them, and fails if it never runs.",
        "It keeps every value of a model until the end, whatever --tap-memory allows.",
    )


FAMILIES = (
    Family.of_one(OnnxRuntimeRunner.name, OnnxRuntimeRunner, 30),
    Family.of_one(OnnxReferenceRunner.name, OnnxReferenceRunner, 40),
)
