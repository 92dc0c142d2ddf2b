"""Find, validate, explain, convert and compute the scatter operators of OpenVINO IR and ONNX models."""

from ir_scatter.convert import Conversion, convert
from ir_scatter.core.diagnostics import Diagnostic, Location, NodeRef, Related, Severity
from ir_scatter.core.errors import (
    BadFeed,
    BrokenModel,
    CannotWrite,
    Error,
    EvaluationFailed,
    IllegalCase,
    IllegalIndex,
    NotEditable,
    UnknownOperator,
    UnreadableModel,
    UsageError,
)
from ir_scatter.core.model import Model
from ir_scatter.evaluate import evaluate, evaluate_detailed, evaluate_model
from ir_scatter.reading import read
from ir_scatter.validate import validate
from ir_scatter.version import __version__

__all__ = [
    "BadFeed",
    "BrokenModel",
    "CannotWrite",
    "Conversion",
    "Diagnostic",
    "Error",
    "EvaluationFailed",
    "IllegalCase",
    "IllegalIndex",
    "Location",
    "Model",
    "NodeRef",
    "NotEditable",
    "Related",
    "Severity",
    "UnknownOperator",
    "UnreadableModel",
    "UsageError",
    "__version__",
    "convert",
    "evaluate",
    "evaluate_detailed",
    "evaluate_model",
    "read",
    "validate",
]
