"""The file is no ONNX model: its bytes are not the protobuf message that a model is.

Why: nothing in it can be read; a download was cut off, or it is a Git LFS pointer.

Runtimes: onnx: "Error parsing message with type 'onnx.ModelProto'".

Fix: fetch the file again (git lfs pull).
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT904", "malformed-protobuf", Severity.ERROR)
