"""Two edges go to the same input port.

Why: it is not known which value is meant.

Runtimes: OpenVINO: "has incorrect input with index".

Fix: remove one of the two.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT924", "duplicate-edge", Severity.ERROR)
