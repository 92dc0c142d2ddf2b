"""A node stands before a node that produces one of its inputs.

Why: ONNX demands that nodes are sorted; some readers take the first pass as the only one.

Runtimes: onnx.checker refuses it; onnxruntime and OpenVINO sort.

Fix: sort the nodes.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT927", "not-sorted", Severity.WARNING)
