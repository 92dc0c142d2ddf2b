"""An input is connected that the operator does not have.

Why: what it was meant to do is not done, or the runtime refuses the model.

Applies to: every operator.

Runtimes: OpenVINO ends with "node index is out of range" or ignores it; onnxruntime refuses the
model.

Example: a ScatterNDUpdate with a fourth input, an axis: the ND operators have none.

Fix: remove the input, or use the operator that has it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


def _check(site: "Site") -> Iterator[Finding]:
    expected = len(site.spec.ports)
    for index in range(expected, len(site.node.inputs)):  # an empty name counts as one, too
        message = f"input {index} is superfluous, expected {site.spec.input_names()} only"
        yield Finding(message, port=f"input {index}", port_index=index)


_READS = frozenset({Fact.OPERATOR, Fact.INPUTS})

RULE = Rule("SCT102", "superfluous-input", Severity.ERROR, _check, reads=_READS)
