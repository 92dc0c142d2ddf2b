"""Constant indices name the same target more than once, and there is no reduction.

Why: the document leaves the order of writing open, so the result may differ from run to run and
from device to device.
Applies to: every operator with reduction none.
Runtimes: OpenVINO's CPU plugin gives different results from run to run for ScatterUpdate and
ScatterNDUpdate; ScatterElementsUpdate was last-wins wherever it was measured.
Example: indices [3, 1, 3] of ScatterUpdate.
Fix: remove the repetition, or name the reduction that was meant.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.diagnostics import Severity
from ir_scatter.ops.spec import Layout, Reduction, Role
from ir_scatter.rules.base import OF_INDEX_FAULTS, Finding, Findings, Rule, constant_note


@Rule("SCT304", "repeated-targets", Severity.WARNING, reads=OF_INDEX_FAULTS)
def repeated_targets(scatter: ScatterNode) -> Findings:
    if scatter.reduction is not Reduction.NONE or scatter.out_of_range is not None:
        return
    found = scatter.repeats
    if found is None:
        return
    what = "tuples" if scatter.spec.layout is Layout.TUPLES else "indices"
    message = (
        f"{found.count} of {found.total} {what} repeat a target, first at {list(found.first)} that of "
        f"{list(found.earlier)}, expected different ones: with reduction none the order is undefined"
    )
    yield Finding(message, role=Role.INDICES, related=constant_note(scatter, Role.INDICES))
