"""The element type of data or updates is none that the document allows.

Why: runtimes refuse the model, or fail when they look for a kernel.

Applies to: data and updates of every operator. Boolean data has a rule of its own, SCT214.

Runtimes: OpenVINO refuses most at reading; strings end the process of the CPU plugin.
onnxruntime: "Type Error: Type 'tensor(...)' of input parameter is invalid".

Example: ScatterElements with bfloat16 data at opset 11, which came with version 13.

Fix: convert to an allowed type before the node and back after it, or raise the opset.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


def _check(site: "Site") -> Iterator[Finding]:
    data = site.data.element_type if site.data else None
    for operand in (site.data, site.updates):
        if operand is None or operand.element_type is None or operand.element_type.kind == "boolean":
            continue
        if operand is site.updates and operand.element_type == data:
            continue
        if operand.element_type.name not in operand.port.element_types:
            allowed = site.spec.show_types(operand.port)
            message = (
                f"{operand.port.name} is {site.spec.show_type(operand.element_type)}, expected {allowed}"
            )
            yield Finding(message, role=operand.port.role)


_READS = frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.TYPES})

RULE = Rule("SCT201", "element-type", Severity.ERROR, _check, reads=_READS)
