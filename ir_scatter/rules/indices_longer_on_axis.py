"""Indices are longer than data on the axis, which this version forbids.

Why: the text demands that no dimension of indices exceeds data's; some target is named twice.

Applies to: ScatterElementsUpdate-3. Version 12 and ONNX allow it. A warning, as runtimes take it
as meant.

Runtimes: OpenVINO's CPU and GPU plugins compute it like version 12.

Example: data [3], indices [5].

Fix: use version="opset12", whose text allows it; `ir-scatter convert` writes it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.shapes import show
from ir_scatter.ops.spec import IndicesLimit, Role
from ir_scatter.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


def _check(site: "Site") -> Iterator[Finding]:
    if site.spec.indices_limit is not IndicesLimit.EVERYWHERE:
        return
    longer = site.longer_dimensions()
    on_axis = site.axis in longer if site.written_axis is not None else len(longer) == 1
    if on_axis:
        message = (
            f"indices is {show(site.indices_shape)}, longer than data {show(site.data_shape)} "
            f"on the axis {longer[0] if site.axis is None else site.axis}, expected at most data's size"
        )
        yield Finding(message, role=Role.INDICES)


_READS = frozenset({Fact.OPERATOR, Fact.AXIS, Fact.SHAPES})

RULE = Rule("SCT211", "indices-longer-on-axis", Severity.ERROR, _check, reads=_READS, mended_by="--to {type}")
