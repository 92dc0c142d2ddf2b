"""The opset does not contain the operator.

Why: the runtime does not find the operator and refuses the model.

Applies to: every operator. ScatterNDUpdate came with opset4, not opset3; opset17 holds newly
added operators only.

Runtimes: OpenVINO: "Opset opset3 doesn't contain the operation with type: ScatterNDUpdate".
onnxruntime: "is not a registered function/op".

Example: <layer type="ScatterNDUpdate" version="opset3">.

Fix: write an opset that contains the operator.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


def _check(site: "Site") -> Iterator[Finding]:
    if site.lookup.spec is None and site.lookup.is_known_opset:
        opset = site.node.opset if isinstance(site.node.opset, str) else f"opset {site.node.opset}"
        yield Finding(f"{site.lookup.type} is not in {opset}, expected {site.lookup.show_opsets()}")


_READS = frozenset({Fact.OPERATOR})

RULE = Rule("SCT402", "not-in-opset", Severity.ERROR, _check, reads=_READS, needs_row=False)
