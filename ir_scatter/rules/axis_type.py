"""The element type of the axis input is no integer.

Why: runtimes refuse the model.

Applies to: operators whose axis is an input (ScatterUpdate, ScatterElementsUpdate).

Runtimes: OpenVINO: "Axis element type must be integer".

Example: an axis Const of type f32.

Fix: make the axis an i64 constant.
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
    yield from wrong_type(site, Role.AXIS)


_READS = frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.TYPES})

RULE = Rule("SCT205", "axis-type", Severity.ERROR, _check, reads=_READS)
