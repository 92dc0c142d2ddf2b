"""The reference evaluator of the package onnx, with its own operators."""

from ir_scatter.formats.base import ONNX_FORMAT
from ir_scatter.runners.child_runner import ChildRunner
from ir_scatter.runners.runner import Family, Runner

NAME = "onnx-reference"


class OnnxReferenceRunner(ChildRunner):
    """`onnx.reference.ReferenceEvaluator` as it is."""

    name = NAME
    module = "ir_scatter.runners.onnx.reference_child"
    packages = ("onnx",)
    install = "pip install onnx"
    formats = (ONNX_FORMAT,)
    remarks = (
        "It broadcasts illegal updates in silence.",
        "A Loop joins its scan outputs instead of stacking them, and fails if it never runs.",
        "It keeps every value of a model until the end, whatever --tap-memory allows.",
    )


def _make(name: str) -> Runner | None:
    return OnnxReferenceRunner() if name == NAME else None


FAMILY = Family((NAME,), _make, 40)
