"""An input is fed by something that does not exist.

Why: the node cannot be computed.

Applies to: edges of an IR that come from a missing layer or port; inputs of ONNX nodes that
nothing produces.

Runtimes: OpenVINO: "Can not find output port with id 7 in layer". onnxruntime: INVALID_GRAPH.

Fix: name an existing producer.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT921", "unknown-value", Severity.ERROR)
