"""The element type of indices is none that the document allows.

Why: runtimes refuse the model; those that convert may cut large values.

Applies to: indices of every operator: any integer for ScatterUpdate and ScatterElementsUpdate,
i32 and i64 for ScatterNDUpdate, int32 and int64 for ScatterElements, int64 only for ScatterND and
TensorScatter.

Runtimes: onnxruntime refuses int32 indices of ScatterND; OpenVINO's frontend takes them.

Example: ScatterND with int32 indices.

Fix: convert the indices to i64.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.ops.spec import Role
from ir_scatter.rules.rule import Finding, Rule
from ir_scatter.rules.wording import wrong_type

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


def _check(site: "Site") -> Iterator[Finding]:
    yield from wrong_type(site, Role.INDICES)


_READS = frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.TYPES})

RULE = Rule("SCT204", "index-type", Severity.ERROR, _check, reads=_READS)
