"""Find, validate and explain the scatter operators of OpenVINO IR and ONNX models."""

from ir_scatter.diagnostics import Diagnostic, Location, NodeRef, Related, Severity
from ir_scatter.errors import Error, UnreadableModel, UsageError
from ir_scatter.model import Model
from ir_scatter.validate import read, validate
from ir_scatter.version import __version__

__all__ = [
    "Diagnostic",
    "Error",
    "Location",
    "Model",
    "NodeRef",
    "Related",
    "Severity",
    "UnreadableModel",
    "UsageError",
    "__version__",
    "read",
    "validate",
]
