"""The text of a boolean attribute is no boolean.

Why: OpenVINO reads every text but "false" and "0" as true, so "no" and "off" mean yes.
Applies to: attributes of an IR that are documented as boolean (use_init_val).
Runtimes: OpenVINO takes true, false, 1 and 0 in any case; anything else is true.
Example: <data use_init_val="off"/>: the initial values are used.
Fix: write "true" or "false".
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.ops.spec import Kind
from ir_scatter.rules.base import Finding, Findings, Rule

_WORDS = frozenset({"true", "false", "1", "0"})


@Rule("SCT106", "attribute-not-boolean", reads={Fact.OPERATOR, Fact.ATTRIBUTES})
def attribute_not_boolean(scatter: ScatterNode) -> Findings:
    for row in scatter.spec.attributes:
        written = scatter.node.attributes.get(row.name)
        if row.kind is Kind.BOOLEAN and isinstance(written, str) and written.lower() not in _WORDS:
            yield Finding(f"{row.name} is {written!r}, which is read as true, expected true or false")
