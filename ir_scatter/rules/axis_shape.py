"""The axis input is neither a scalar nor of shape [1].

Why: the operator has one axis.
Applies to: operators whose axis is an input (ScatterUpdate, ScatterElementsUpdate).
Runtimes: OpenVINO refuses most; an axis constant of shape [0] ends the process of the CPU plugin.
Example: an axis of shape [2].
Fix: make the axis one number.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.shapes import agree, show
from ir_scatter.ops.spec import Role
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule("SCT212", "axis-shape", reads={Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES})
def axis_shape(scatter: ScatterNode) -> Findings:
    operand = scatter.operand(Role.AXIS)
    if operand is None or agree(operand.shape, ()) or agree(operand.shape, (1,)):
        return
    yield Finding(f"axis is {show(operand.shape)}, expected [] or [1]", role=Role.AXIS)
