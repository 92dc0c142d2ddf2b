"""Scatter operators in OpenVINO IR and ONNX models.

import ir_scatter as irs
irs.read("model.xml")               bytes, onnx.ModelProto, openvino.Model
irs.inspect(model)                  scatter nodes: operator, shapes, indices
irs.validate(model, select="SCT3")  violations of specifications
irs.contract(model)                 what makes indices legal for all inputs
irs.explain("SCT302")               a rule or an operator in words
irs.convert(model, "ScatterND")     equal nodes of other operators
irs.evaluate("ScatterND", data=..)  an operator in NumPy; evaluate_detailed
irs.evaluate_model(model, feeds)    a model in NumPy
irs.compare(model, on=["CPU"])      which runtime computes wrong results
irs.fuzz(on=["CPU"])                bugs of a runtime
irs.devices()                       the runtimes of this machine

A model is a result of irs.read, or anything that it accepts. For more,
with examples: help(irs.validate). Exceptions are subclasses of irs.Error.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ir_scatter.core.diagnostics import Diagnostic, Location, NodeRef, Related, Severity
from ir_scatter.core.errors import (
    BadFeed,
    BadGiven,
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
from ir_scatter.version import __version__

if TYPE_CHECKING:
    from ir_scatter.evaluate import evaluate, evaluate_detailed
    from ir_scatter.inspect import IndexSummary, NodeSummary
    from ir_scatter.notebook import (
        ComparisonResult,
        Contract,
        Conversion,
        Devices,
        Explanation,
        Findings,
        Model,
        Outputs,
        ScatterNodes,
        compare,
        contract,
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

__all__ = [
    "BadFeed",
    "BadGiven",
    "BrokenModel",
    "CannotWrite",
    "ComparisonResult",
    "Contract",
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
    "contract",
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


_ELSEWHERE = {
    **dict.fromkeys(("evaluate", "evaluate_detailed"), "evaluate"),
    **dict.fromkeys(("IndexSummary", "NodeSummary"), "inspect"),
    "OperatorName": "ops.names",
}
"""Modules of names that are imported on first use; all other names come from `notebook`."""


class _Package(ModuleType):
    """The module type of this package: names are imported on first use.

    A function keeps its name even if a module of the same name is imported later.
    """

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


def _lazy(source: str, name: str) -> property:
    given: list[Any] = []

    def get(_: _Package) -> Any:
        return given[-1] if given else getattr(import_module(f"{__name__}.{source}"), name)

    def set(_: _Package, value: Any) -> None:
        # a module with the name of a function was imported: keep the function
        if not isinstance(value, ModuleType):
            given[:] = [value]

    return property(get, set)


class _Names(list[str]):
    """The public names, hidden from pydoc: `help(ir_scatter)` would print hundreds of lines for each."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) and sys._getframe(1).f_globals.get("__name__") != "pydoc"


if not TYPE_CHECKING:
    __all__ = _Names(__all__)
    for _name in __all__:
        if _name not in globals():
            setattr(_Package, _name, _lazy(_ELSEWHERE.get(_name, "notebook"), _name))
    sys.modules[__name__].__class__ = _Package
