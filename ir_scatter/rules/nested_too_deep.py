"""Elements are nested deeper than 256.

Why: no exporter writes that; readers run out of stack.

Fix: export the model again.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT907", "nested-too-deep", Severity.ERROR)
