"""The shapes given with --input-shape could not be propagated.

Why: the rules saw the shapes that the file stores.

Runtimes: the message is that of the runtime that was asked: OpenVINO for an IR, onnx for ONNX.

Fix: mend the errors that are reported beside it, or give other shapes.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT940", "shapes-not-propagated", Severity.WARNING)
