"""How the plain operations that rewrites need are written in each dialect."""

from collections.abc import Mapping
from typing import Any

from ir_scatter.elements import ElementType
from ir_scatter.model import OPENVINO
from ir_scatter.ops.dialects import onnx_words, openvino_words
from ir_scatter.ops.dialects.written import Written

__all__ = ["Written", "takes", "written"]


def written(domain: str, operation: str, opset: int | None, values: Mapping[str, Any]) -> Written:
    """Return how an operation is written.

    Args:
        domain: "openvino", or "" for ONNX.
        operation: "reshape", "unsqueeze", ...: the names of the methods of a builder.
        opset: that of an ONNX model; an IR names one for each operator.
        values: what the operation is told beside its inputs: axes, an element type.
    """
    if domain == OPENVINO:
        return openvino_words.OPERATIONS[operation](values)
    assert opset is not None
    return onnx_words.OPERATIONS[operation](values, opset)


def takes(domain: str, operation: str, type: ElementType, opset: int | None) -> bool:
    """Tell whether an operation that joins two numbers takes a type; see `written`."""
    if domain == OPENVINO:
        return True
    assert opset is not None
    return onnx_words.takes(operation, type, opset)
