"""The public functions of the library, which accept models from any source, and their result types."""

from ir_scatter.contract import Contract
from ir_scatter.notebook.functions import (
    compare,
    contract,
    convert,
    devices,
    evaluate_model,
    explain,
    fuzz,
    inspect,
    validate,
)
from ir_scatter.notebook.shown import ComparisonResult, Devices, Explanation, Findings, Outputs, ScatterNodes
from ir_scatter.notebook.shown import ShownConversion as Conversion
from ir_scatter.notebook.shown import ShownModel as Model
from ir_scatter.notebook.sources import InputShapes, Readable, read

__all__ = [
    "ComparisonResult",
    "Contract",
    "Conversion",
    "Devices",
    "Explanation",
    "Findings",
    "InputShapes",
    "Model",
    "Outputs",
    "Readable",
    "ScatterNodes",
    "compare",
    "contract",
    "convert",
    "devices",
    "evaluate_model",
    "explain",
    "fuzz",
    "inspect",
    "read",
    "validate",
]
