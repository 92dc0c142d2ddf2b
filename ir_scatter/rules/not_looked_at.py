"""Functions of an ONNX model are called so often, or in so many ways, that not all was looked at.

Why: functions that call functions twice each stand for more nodes than anybody can look at; what was
not looked at may break rules.

Applies to: calls of a function beyond 64 kinds of inputs and attributes, and graphs whose shapes take
too long to infer for the size of the file.

Fix: inline the functions, or store the shapes.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT941", "not-looked-at", Severity.NOTE)
