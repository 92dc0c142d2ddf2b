"""An edge goes to a layer that does not exist.

Why: the file contradicts itself; what the edge was for is lost.

Runtimes: OpenVINO ignores the edge.

Fix: remove the edge, or restore the layer.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT925", "dangling-edge", Severity.WARNING)
