"""An attribute is written that no version of the operator has.

Why: an IR's reader drops it in silence, so what it asks for does not happen; ONNX runtimes refuse
it.

Applies to: every operator.

Runtimes: OpenVINO ignores it in an IR. onnx.checker and onnxruntime: "Unrecognized attribute".

Example: <data axis="1"/> on ScatterUpdate, whose axis is an input.

Fix: remove it, or say the same in the way the document has for it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


def _check(site: "Site") -> Iterator[Finding]:
    for name in site.node.attributes:
        if not any(spec.attribute(name) for spec in site.lookup.family):
            known = ", ".join(row.name for row in site.spec.attributes) or "none"
            yield Finding(f"attribute {name} is not documented, expected {known}")


_READS = frozenset({Fact.OPERATOR, Fact.ATTRIBUTES})

RULE = Rule("SCT103", "unknown-attribute", Severity.ERROR, _check, reads=_READS)
