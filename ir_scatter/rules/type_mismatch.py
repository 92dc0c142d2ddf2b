"""Data and updates have different element types.

Why: there is one type T for both and for the output; runtimes refuse the model.

Applies to: every operator.

Runtimes: OpenVINO: "Element types for input data and updates do not match". onnxruntime: "Type
parameter (T) bound to different types".

Example: data f32, updates f16.

Fix: convert updates to the type of data.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.ops.spec import Role
from ir_scatter.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


def _check(site: "Site") -> Iterator[Finding]:
    data, updates = site.data, site.updates
    if data is None or updates is None or data.element_type is None or updates.element_type is None:
        return
    if data.element_type != updates.element_type:
        show = site.spec.show_type
        message = (
            f"{updates.port.name} is {show(updates.element_type)}, "
            f"expected {show(data.element_type)} like {data.port.name}"
        )
        yield Finding(message, role=Role.UPDATES)


_READS = frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.TYPES})

RULE = Rule("SCT202", "type-mismatch", Severity.ERROR, _check, reads=_READS)
