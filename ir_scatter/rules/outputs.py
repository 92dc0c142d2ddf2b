"""The node has another number of outputs than the operator.

Why: runtimes refuse the model, or ignore an output that somebody may read.

Applies to: every operator: each has exactly one output, with the shape and type of data.

Runtimes: onnx.checker and onnxruntime refuse the model; OpenVINO fails where the second is read.

Example: outputs ["y", "mask"] on ScatterElements.

Fix: remove the superfluous output, or give the node the one it has.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


def _check(site: "Site") -> Iterator[Finding]:
    count = len(site.node.outputs)
    if count != 1:
        yield Finding(f"the node has {count} outputs, expected 1: {site.spec.output}")


_READS = frozenset({Fact.OPERATOR, Fact.INPUTS})

RULE = Rule("SCT109", "outputs", Severity.ERROR, _check, reads=_READS)
