"""The file could not be checked because of a bug in ir-scatter.

Why: nothing can be said of the file; the other files are reported.

Fix: report it, with the file if you may; IR_SCATTER_DEBUG=1 shows where it happened.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT999", "internal-error", Severity.ERROR)
