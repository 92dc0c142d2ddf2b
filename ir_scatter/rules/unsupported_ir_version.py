"""The version of the IR is not 10 or 11.

Why: the layout of older files differs, and OpenVINO reads them no longer.

Runtimes: OpenVINO: "Unable to read the model", or "stoll" where the version is no number.

Example: <net name="m" version="7">.

Fix: convert the original model again with a recent OpenVINO.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT908", "unsupported-ir-version", Severity.ERROR)
