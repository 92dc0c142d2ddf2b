"""The element type of the axis input is no integer.

Why: runtimes refuse the model.
Applies to: operators whose axis is an input (ScatterUpdate, ScatterElementsUpdate).
Runtimes: OpenVINO: "Axis element type must be integer".
Example: an axis Const of type f32.
Fix: make the axis an i64 constant.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.ops.spec import Role
from ir_scatter.rules.base import Findings, Rule, wrong_type


@Rule("SCT205", "axis-type", reads={Fact.OPERATOR, Fact.INPUTS, Fact.TYPES})
def axis_type(scatter: ScatterNode) -> Findings:
    yield from wrong_type(scatter, Role.AXIS)
