"""Find, validate, explain and compute the scatter operators of OpenVINO IR and ONNX models."""

from ir_scatter.diagnostics import Diagnostic, Location, NodeRef, Related, Severity
from ir_scatter.errors import (
    BadFeed,
    BrokenModel,
    Error,
    EvaluationFailed,
    IllegalCase,
    IllegalIndex,
    UnknownOperator,
    UnreadableModel,
    UsageError,
)
from ir_scatter.evaluate import evaluate, evaluate_detailed
from ir_scatter.graphs import evaluate_model
from ir_scatter.model import Model
from ir_scatter.validate import read, validate
from ir_scatter.version import __version__

__all__ = [
    "BadFeed",
    "BrokenModel",
    "Diagnostic",
    "Error",
    "EvaluationFailed",
    "IllegalCase",
    "IllegalIndex",
    "Location",
    "Model",
    "NodeRef",
    "Related",
    "Severity",
    "UnknownOperator",
    "UnreadableModel",
    "UsageError",
    "__version__",
    "evaluate",
    "evaluate_detailed",
    "evaluate_model",
    "read",
    "validate",
]
