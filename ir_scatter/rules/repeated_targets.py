"""Constant indices name the same target more than once, and there is no reduction.

Why: the document leaves the order of writing open, so the result may differ from run to run and
from device to device.

Applies to: every operator with reduction none.

Runtimes: OpenVINO's CPU plugin gives different results from run to run for ScatterUpdate and
ScatterNDUpdate; ScatterElementsUpdate was last-wins wherever it was measured.

Example: indices [3, 1, 3] of ScatterUpdate.

Fix: remove the repetition, or name the reduction that was meant.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.ops.spec import Layout, Reduction, Role
from ir_scatter.rules.rule import Finding, Rule
from ir_scatter.rules.wording import constant_note

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


def _check(site: "Site") -> Iterator[Finding]:
    if site.reduction is not Reduction.NONE or site.out_of_range is not None:
        return
    found = site.repeats
    if found is None:
        return
    what = "tuples" if site.spec.layout is Layout.TUPLES else "indices"
    message = (
        f"{found.count} of {found.total} {what} repeat a target, first at {list(found.first)} that of "
        f"{list(found.earlier)}, expected different ones: with reduction none the order is undefined"
    )
    yield Finding(message, role=Role.INDICES, related=constant_note(site, Role.INDICES))


_READS = frozenset({Fact.OPERATOR, Fact.ATTRIBUTES, Fact.AXIS, Fact.INPUTS, Fact.SHAPES, Fact.INDEX_FAULTS})

RULE = Rule("SCT304", "repeated-targets", Severity.WARNING, _check, reads=_READS)
