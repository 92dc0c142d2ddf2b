"""The start positions of a cache are not one per batch.

Why: every sample of the batch has its own position to write at.

Applies to: write_indices of TensorScatter: its shape is [batch_size].

Runtimes: onnxruntime refuses it; no frontend of OpenVINO reads the operator.

Example: past_cache [8, 32, 2048, 128], write_indices [1]: expected [8].

Fix: expand write_indices to the batch.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.shapes import agree, show
from ir_scatter.ops.spec import Layout, Role
from ir_scatter.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


def _check(site: "Site") -> Iterator[Finding]:
    data, indices = site.data_shape, site.indices_shape
    if site.spec.layout is not Layout.SEQUENCE or site.indices is None or not data:
        return
    expected = data[:1]
    if not agree(indices, expected):
        message = f"{site.indices.port.name} is {show(indices)}, expected {show(expected)} = [batch_size]"
        yield Finding(message, role=Role.INDICES)


_READS = frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES})

RULE = Rule("SCT208", "batch-mismatch", Severity.ERROR, _check, reads=_READS)
