"""A required input is missing.

Why: the runtime refuses the model, most with a message that names neither the input nor the node.

Applies to: every operator; optional inputs (write_indices of TensorScatter) may be left out.

Runtimes: OpenVINO: "node index is out of range" or "is inconsistent". onnxruntime: INVALID_GRAPH.

Example: a ScatterUpdate with data, indices and updates: expected the fourth input, axis.

Fix: connect the input; an exporter that forgot the axis meant axis 0 more often than not, but
look.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.shapes import counted
from ir_scatter.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


def _check(site: "Site") -> Iterator[Finding]:
    inputs = site.node.inputs
    for index, port in enumerate(site.spec.ports):
        if not port.is_optional and (index >= len(inputs) or not inputs[index].is_present):
            given = counted(len(inputs), "input")
            message = f"{port.name} is missing: {given}, expected {site.spec.input_names()}"
            yield Finding(message, role=port.role)


_READS = frozenset({Fact.OPERATOR, Fact.INPUTS})

RULE = Rule("SCT101", "missing-input", Severity.ERROR, _check, reads=_READS)
