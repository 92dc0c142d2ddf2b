"""The file stores an output type that is not that of data.

Why: tools that trust the file see another model than the runtime, which computes the type anew.

Applies to: every operator: the output has the type of data.

Runtimes: OpenVINO computes the type and ignores the stored one; onnxruntime refuses the model.

Example: data f32, output port FP16.

Fix: save the model again with the runtime that reads it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


def _check(site: "Site") -> Iterator[Finding]:
    if site.data is None or site.data.element_type is None or not site.node.outputs:
        return
    stored, data = site.node.outputs[0].stored_type, site.data.element_type
    if stored is not None and stored != data:
        shown, expected = site.spec.show_type(stored), site.spec.show_type(data)
        message = f"the stored type of {site.spec.output} is {shown}, expected {expected}"
        yield Finding(f"{message} like {site.data.port.name}", port=site.spec.output)


_READS = frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.TYPES, Fact.STORED})

RULE = Rule("SCT502", "stored-output-type", Severity.WARNING, _check, reads=_READS)
