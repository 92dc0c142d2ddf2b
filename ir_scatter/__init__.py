"""Scatter operators in OpenVINO IR and ONNX models.

import ir_scatter as irs
irs.read("model.xml")               bytes, onnx.ModelProto, openvino.Model
irs.inspect(model)                  scatter nodes: operator, shapes, indices
irs.validate(model, select="SCT3")  where it breaks the documents
irs.explain("SCT302")               a rule or an operator in words
irs.convert(model, "ScatterND")     equal nodes of other operators
irs.evaluate("ScatterND", data=..)  an operator in NumPy; evaluate_detailed
irs.evaluate_model(model, feeds)    a model in NumPy
irs.compare(model, on=["CPU"])      which runtime computes something else
irs.fuzz(on=["CPU"])                what a runtime gets wrong
irs.devices()                       the runtimes that are here

A model is what irs.read gives, or anything that it takes. For more, with
examples: help(irs.validate). Exceptions are subclasses of irs.Error.
"""

import sys
from typing import TYPE_CHECKING

from ir_scatter.core.diagnostics import Diagnostic, Location, NodeRef, Related, Severity
from ir_scatter.core.errors import (
    BadFeed,
    BrokenModel,
    CannotWrite,
    Error,
    EvaluationFailed,
    IllegalCase,
    IllegalIndex,
    NoInputs,
    NotEditable,
    UnknownOperator,
    UnreadableModel,
    UsageError,
)
from ir_scatter.evaluate import evaluate, evaluate_detailed
from ir_scatter.inspect import IndexSummary, NodeSummary

# `notebook` imports every module that has the name of a function before the functions take these names,
# so that no later import gives them to the modules again.
from ir_scatter.notebook import (
    ComparisonResult,
    Conversion,
    Devices,
    Explanation,
    Findings,
    Model,
    Outputs,
    ScatterNodes,
    compare,
    convert,
    devices,
    evaluate_model,
    explain,
    fuzz,
    inspect,
    read,
    validate,
)
from ir_scatter.ops.names import OperatorName
from ir_scatter.version import __version__

__all__ = [
    "BadFeed",
    "BrokenModel",
    "CannotWrite",
    "ComparisonResult",
    "Conversion",
    "Devices",
    "Diagnostic",
    "Error",
    "EvaluationFailed",
    "Explanation",
    "Findings",
    "IllegalCase",
    "IllegalIndex",
    "IndexSummary",
    "Location",
    "Model",
    "NoInputs",
    "NodeRef",
    "NodeSummary",
    "NotEditable",
    "OperatorName",
    "Outputs",
    "Related",
    "ScatterNodes",
    "Severity",
    "UnknownOperator",
    "UnreadableModel",
    "UsageError",
    "__version__",
    "compare",
    "convert",
    "devices",
    "evaluate",
    "evaluate_detailed",
    "evaluate_model",
    "explain",
    "fuzz",
    "inspect",
    "read",
    "validate",
]


class _Names(list[str]):
    """Names that pydoc takes for hidden: each would be hundreds of lines in `help(ir_scatter)`."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) and sys._getframe(1).f_globals.get("__name__") != "pydoc"


if not TYPE_CHECKING:
    __all__ = _Names(__all__)
