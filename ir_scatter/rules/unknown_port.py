"""An edge goes to an input port that the layer does not have.

Why: the value is lost, or the reader stops.

Runtimes: OpenVINO: "Can not find input port with id 9 in layer".

Fix: let the edge name a port of the layer.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT923", "unknown-port", Severity.ERROR)
