"""The file holds no graph.

Why: there is nothing to check, and nothing to run.

Example: <net version="11"/> without <layers>; a ModelProto without a graph.

Fix: export the model again.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT909", "no-graph", Severity.ERROR)
