"""A conversion was killed while it replaced the files of a model.

Why: some of the files are those of the new model and some those of the old one: they do not belong
together.

Applies to: models beside which the conversion left a list of what it had not replaced yet.

Runtimes: none can tell; weights of another model are read as they are.

Fix: convert from or to the same path again: that first replaces the files that are left, and says so.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT934", "half-replaced", Severity.ERROR)
