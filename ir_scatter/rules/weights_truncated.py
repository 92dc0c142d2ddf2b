"""A constant ends behind the end of the file that holds its values.

Why: the file was cut off, or belongs to another model.

Runtimes: OpenVINO: "Incorrect weights in bin file!".

Fix: fetch the file again; take .xml and .bin from the same export.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT931", "weights-truncated", Severity.ERROR)
