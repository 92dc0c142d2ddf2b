"""There are more indices than positions they could name, and there is no reduction.

Why: some target must be named more than once, and then the order of writing is undefined.

Applies to: every operator with reduction none whose indices are not constant.

Runtimes: see SCT304.

Example: 7 indices of ScatterUpdate on a dimension of size 5.

Fix: name the reduction that was meant, or give fewer indices.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.diagnostics import Severity
from ir_scatter.ops.spec import IndicesLimit, Reduction, Role
from ir_scatter.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from ir_scatter.site import Site


def _check(site: "Site") -> Iterator[Finding]:
    if site.reduction is not Reduction.NONE or site.has_constant_indices:
        return
    if site.spec.indices_limit is IndicesLimit.EVERYWHERE:
        return
    count, positions = site.index_count(), site.position_count()
    if count is not None and positions is not None and count > positions:
        message = f"{count} indices for {positions} positions: some are named more than once"
        yield Finding(message, role=Role.INDICES)


RULE = Rule("SCT306", "more-indices-than-positions", Severity.NOTE, _check)
