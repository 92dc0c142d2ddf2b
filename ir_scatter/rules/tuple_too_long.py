"""A tuple of coordinates has more numbers than data has dimensions.

Why: there is no dimension that the last numbers could count on.

Applies to: the ND operators: k, the last dimension of indices, is at most the rank of data.

Runtimes: OpenVINO and onnxruntime refuse it; onnx.checker does not look.

Example: data [4], indices [5]: k = 5 > 1. A list of positions must be [5, 1].

Fix: unsqueeze the last dimension of indices, as most such indices are a list of positions.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.shapes import lowest, show
from ir_scatter.ops.spec import Layout, Role
from ir_scatter.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


def _check(site: "Site") -> Iterator[Finding]:
    data, indices = site.data_shape, site.indices_shape
    if site.spec.layout is not Layout.TUPLES or data is None or not indices:
        return
    if lowest(indices[-1]) > len(data):
        message = (
            f"indices is {show(indices)}, so k is {show(indices[-1:])[1:-1]}, "
            f"expected at most {len(data)}, the rank of data {show(data)}"
        )
        yield Finding(message, role=Role.INDICES)


_READS = frozenset({Fact.OPERATOR, Fact.SHAPES})

RULE = Rule("SCT209", "tuple-too-long", Severity.ERROR, _check, reads=_READS)
