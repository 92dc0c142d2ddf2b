"""Indices are empty, or hold empty tuples.

Why: with no index nothing is written, and the node only copies data. With tuples of no
coordinates (k = 0) each update is the whole tensor by the formula of the shapes; no document says
so.
Applies to: every operator.
Runtimes: all copy data for empty indices. For k = 0 onnxruntime and OpenVINO's constant folding
replace the whole tensor, OpenVINO's CPU plugin leaves data alone.
Example: indices of shape [0].
Fix: remove the node if it was not meant to be empty.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.shapes import show
from ir_scatter.ops.spec import Layout, Role
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule("SCT305", "empty-indices", Severity.NOTE, reads={Fact.OPERATOR, Fact.SHAPES})
def empty_indices(scatter: ScatterNode) -> Findings:
    shape = scatter.indices_shape
    if not shape or 0 not in shape:
        return
    if scatter.spec.layout is Layout.TUPLES and 0 not in shape[:-1]:
        message = f"indices is {show(shape)}, so k is 0: runtimes differ on what is written"
    else:
        message = f"indices is {show(shape)}: nothing is written"
    yield Finding(message, role=Role.INDICES)
