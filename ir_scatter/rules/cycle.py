"""Nodes depend on each other in a cycle.

Why: none of them can be computed first.

Applies to: the graphs of both formats, and ONNX functions that call themselves.

Runtimes: OpenVINO: "Attempt to access node 4 that not in graph."

Fix: remove the edge that leads back; a recurrence belongs in a Loop or a TensorIterator.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT926", "cycle", Severity.ERROR)
