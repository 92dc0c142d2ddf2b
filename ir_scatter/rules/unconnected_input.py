"""No edge goes to an input port.

Why: the node lacks an operand.

Runtimes: OpenVINO: "index '3' out of range", or "layer is inconsistent".

Fix: add the edge.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT922", "unconnected-input", Severity.ERROR)
