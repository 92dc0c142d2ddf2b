"""The file is not well-formed XML.

Why: nothing behind the place can be read; an export or a download was cut off, or an editor broke
it.

Runtimes: OpenVINO: "Unable to read the model" or a byte offset.

Example: <dim>3</dmi>.

Fix: mend the place that is named, or export the model again.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT903", "malformed-xml", Severity.ERROR)
