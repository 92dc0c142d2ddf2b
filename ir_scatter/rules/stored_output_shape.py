"""The file stores an output shape that is not that of data.

Why: tools that trust the file see another model than the runtime, which computes the shape anew.

Applies to: every operator: the output has the shape of data.

Runtimes: OpenVINO and onnxruntime compute the shape and ignore the stored one.

Example: data [4, 5], output port [4, 6].

Fix: save the model again with the runtime that reads it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.shapes import agree, show
from ir_scatter.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


def _check(site: "Site") -> Iterator[Finding]:
    if site.data is None or not site.node.outputs:
        return
    stored, data = site.node.outputs[0].stored_shape, site.data_shape
    if not agree(stored, data):
        message = f"the stored shape of {site.spec.output} is {show(stored)}, expected {show(data)}"
        yield Finding(f"{message} like {site.data.port.name}", port=site.spec.output)


_READS = frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES, Fact.STORED})

RULE = Rule("SCT501", "stored-output-shape", Severity.WARNING, _check, reads=_READS)
