"""A constant has other bytes than its type and shape need.

Why: the values are not those that were saved.

Runtimes: OpenVINO: "Attribute and shape size are inconsistent for Const op!".

Example: element_type="i64" shape="2" size="8": 16 bytes are needed.

Fix: mend type, shape or size, or export the model again.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT932", "constant-size", Severity.ERROR)
