"""Rules about the file itself, such as broken edges.

Readers find these defects; the pages in `docs/rules` document them.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.base import Rule


def _defect(code: str, name: str, severity: Severity = Severity.ERROR) -> Rule:
    return Rule(code, name, severity, is_legality=False)


FILE_DEFECTS = (
    _defect("SCT505", "stored-contradiction", Severity.WARNING),
    _defect("SCT901", "unreadable-file"),
    _defect("SCT902", "empty-file"),
    _defect("SCT903", "malformed-xml"),
    _defect("SCT904", "malformed-protobuf"),
    _defect("SCT905", "not-a-model"),
    _defect("SCT906", "doctype"),
    _defect("SCT907", "nested-too-deep"),
    _defect("SCT908", "unsupported-ir-version"),
    _defect("SCT909", "no-graph"),
    _defect("SCT920", "duplicate-id"),
    _defect("SCT921", "unknown-value"),
    _defect("SCT922", "unconnected-input"),
    _defect("SCT923", "unknown-port"),
    _defect("SCT924", "duplicate-edge"),
    _defect("SCT925", "dangling-edge", Severity.WARNING),
    _defect("SCT926", "cycle"),
    _defect("SCT927", "not-sorted", Severity.WARNING),
    _defect("SCT928", "bad-number"),
    _defect("SCT929", "unknown-type"),
    _defect("SCT930", "weights-missing", Severity.WARNING),
    _defect("SCT931", "weights-truncated"),
    _defect("SCT932", "constant-size"),
    _defect("SCT933", "external-data-path"),
    _defect("SCT934", "half-replaced"),
    _defect("SCT935", "missing-attribute"),
    _defect("SCT936", "body-mismatch"),
    _defect("SCT937", "misused-operator"),
    _defect("SCT938", "custom-version", Severity.WARNING),
    _defect("SCT940", "shapes-not-propagated", Severity.WARNING),
    _defect("SCT941", "not-looked-at", Severity.NOTE),
    _defect("SCT942", "untested-device", Severity.NOTE),
    _defect("SCT999", "internal-error"),
)
