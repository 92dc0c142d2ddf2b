"""The file is empty.

Why: an export or a download that was cut off leaves such files.

Runtimes: OpenVINO: "Unable to read the model".

Fix: export or download the model again.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT902", "empty-file", Severity.ERROR)
