"""A file with the values of constants cannot be read.

Why: scatter operators are still checked, but constant indices and axes are unknown.

Applies to: the .bin beside an IR's .xml, and external data of ONNX models.

Runtimes: OpenVINO: "Empty weights data in bin file or bin file cannot be found!". onnxruntime
refuses the model.

Fix: put the file where the model expects it; git lfs pull.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT930", "weights-missing", Severity.WARNING)
