"""An id or a name that must be unique is used twice.

Why: edges and inputs name ids, so it is not known which one is meant.

Applies to: layer ids and port ids of an IR; names of values in an ONNX graph.

Runtimes: OpenVINO: "Cannot create layer ... from unsupported opset" and other misleading words.
onnx.checker: "Graph must be in single static assignment (SSA) form".

Fix: give the second one an id of its own.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT920", "duplicate-id", Severity.ERROR)
