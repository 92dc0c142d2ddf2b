"""The file is XML, but no OpenVINO IR.

Why: its root element is not <net>.

Fix: name the right file; files like this are passed over when a folder is searched.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT905", "not-a-model", Severity.ERROR)
