"""The file stores an input shape that contradicts the producer's.

Why: one of the two is stale; whoever reads the wrong one draws wrong conclusions.

Applies to: every input of every operator. A Const's and a Parameter's own declaration counts as
right.

Runtimes: OpenVINO and onnxruntime compute the shapes and ignore the stored ones.

Example: an input port [2] fed by a Const of shape [3].

Fix: save the model again with the runtime that reads it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.shapes import agree, show
from ir_scatter.rules.rule import Finding, Rule
from ir_scatter.rules.wording import operands

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


def _check(site: "Site") -> Iterator[Finding]:
    for operand in operands(site):
        stored = operand.stored_shape
        if not agree(stored, operand.shape):
            message = (
                f"the stored shape of {operand.port.name} is {show(stored)}, "
                f"but what flows in is {show(operand.shape)}"
            )
            yield Finding(message, role=operand.port.role)


_READS = frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES, Fact.TYPES, Fact.STORED})

RULE = Rule("SCT503", "stored-input-shape", Severity.WARNING, _check, reads=_READS)
