"""The shape of updates is not the one that data, indices and axis demand.

Why: a runtime either refuses the model or reads past the end of updates.

Applies to: every operator. The expected shape is that of the operator's document. Unknown
dimensions agree with everything. For ScatterNDUpdate one element of any rank may stand for 0-D
updates.

Runtimes: OpenVINO refuses it where shapes are static. The reference evaluator of ONNX broadcasts
it in silence; onnx.checker does not look.

Example: data [4, 5], indices [2], axis 0, updates [3, 5]: expected [2, 5].

Fix: reshape or slice updates; if a dimension is off by one, the axis or the indices are wrong
instead.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.shapes import agree, element_count, show
from ir_scatter.ops.spec import Role
from ir_scatter.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


def _check(site: "Site") -> Iterator[Finding]:
    expected = site.expected_updates()
    if site.updates is None or not expected:
        return
    shape = site.updates.shape
    if any(agree(candidate, shape) for candidate in expected):
        return
    if site.spec.scalar_updates and () in expected and element_count(shape) in (1, None):
        return
    shapes = " or ".join(dict.fromkeys(map(show, expected)))
    name, formula = site.updates.port.name, site.spec.updates_formula
    yield Finding(f"{name} is {show(shape)}, expected {shapes} = {formula}", role=Role.UPDATES)


_READS = frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.AXIS, Fact.SHAPES})

RULE = Rule("SCT203", "updates-shape-mismatch", Severity.ERROR, _check, reads=_READS)
