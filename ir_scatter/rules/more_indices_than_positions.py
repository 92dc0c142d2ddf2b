"""There are more indices than positions they could name, and there is no reduction.

Why: some target must be named more than once, and then the order of writing is undefined.

Applies to: every operator with reduction none whose indices are not constant.

Runtimes: see SCT304.

Example: 7 indices of ScatterUpdate on a dimension of size 5.

Fix: name the reduction that was meant, or give fewer indices.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.shapes import LARGEST_DIM, counted, element_count
from ir_scatter.ops.spec import IndicesLimit, Layout, Reduction, Role
from ir_scatter.rules.base import Finding, Findings, rule


@rule(
    "SCT306",
    "more-indices-than-positions",
    Severity.NOTE,
    reads={Fact.OPERATOR, Fact.ATTRIBUTES, Fact.AXIS, Fact.SHAPES, Fact.CONSTANCY},
)
def more_indices_than_positions(scatter: ScatterNode) -> Findings:
    if scatter.reduction is not Reduction.NONE or scatter.has_constant_indices:
        return
    if scatter.spec.indices_limit is IndicesLimit.EVERYWHERE:
        return
    count, positions = _index_count(scatter), _position_count(scatter)
    if count is not None and positions is not None and positions < count <= LARGEST_DIM:
        message = f"{count} indices for {counted(positions, 'position')}: some are named more than once"
        yield Finding(message, role=Role.INDICES)


def _index_count(scatter: ScatterNode) -> int | None:
    """Return how many targets are named; on the axis, where each index names one element."""
    shape, layout = scatter.indices_shape, scatter.spec.layout
    if not shape or layout is Layout.SEQUENCE:
        return None
    if layout is Layout.TUPLES:
        return element_count(shape[:-1])
    if layout is Layout.SLICES:
        return element_count(shape)
    if scatter.axis is None or scatter.axis >= len(shape) or not element_count(shape):
        return None
    count = shape[scatter.axis]
    return count if isinstance(count, int) else None


def _position_count(scatter: ScatterNode) -> int | None:
    """Return how many different targets there are, counted in the same way."""
    data = scatter.data_shape
    if data is None:
        return None
    if scatter.spec.layout is Layout.TUPLES:
        depth = scatter.depth
        return None if depth is None or depth > len(data) else element_count(data[:depth])
    size = None if scatter.axis is None else data[scatter.axis]
    return size if isinstance(size, int) else None
