"""The element type of the axis input is no integer.

Why: runtimes refuse the model.

Applies to: operators whose axis is an input (ScatterUpdate, ScatterElementsUpdate).

Runtimes: OpenVINO: "Axis element type must be integer".

Example: an axis Const of type f32.

Fix: make the axis an i64 constant.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.diagnostics import Severity
from ir_scatter.ops.spec import Role
from ir_scatter.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from ir_scatter.site import Site


def _check(site: "Site") -> Iterator[Finding]:
    operand = site.operand(Role.AXIS)
    if operand is None or operand.element_type is None:
        return
    if operand.element_type.name not in operand.port.element_types:
        shown, allowed = (
            site.spec.show_type(operand.element_type),
            site.spec.show_types(operand.port),
        )
        yield Finding(f"{operand.port.name} is {shown}, expected {allowed}", role=Role.AXIS)


RULE = Rule("SCT205", "axis-type", Severity.ERROR, _check)
