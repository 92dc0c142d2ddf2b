"""A layer has a type that no operator has.

Why: "Constant" is an easy slip for "Const" and ends OpenVINO's process when it is read.

Example: <layer type="Constant">.

Fix: write "Const".
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT929", "unknown-type", Severity.ERROR)
