"""External data of an ONNX model lies outside of the model's folder.

Why: a model must not read other files of the machine it runs on.

Runtimes: onnx: "Data of TensorProto should be file inside".

Example: location "../../etc/passwd", an absolute path, or a symbolic link that leads outside.

Fix: put the data beside the model and name it relatively.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT933", "external-data-path", Severity.ERROR)
