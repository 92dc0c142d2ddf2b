"""Indices are longer than data on a dimension other than the axis.

Why: off the axis the position of an index is the position in data, and there is none.
Applies to: ScatterElementsUpdate, Scatter and ScatterElements.
Runtimes: OpenVINO's CPU plugin writes outside its memory and may end the process; onnxruntime
refuses it.
Example: data [3, 4], indices [2, 5], axis 0: on dimension 1 expected at most 4.
Fix: slice indices and updates to the size of data; if the long dimension is the one meant, the
axis is wrong.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.shapes import show
from ir_scatter.ops.spec import IndicesLimit, Role
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule("SCT210", "indices-longer-than-data", reads={Fact.OPERATOR, Fact.AXIS, Fact.SHAPES})
def indices_longer_than_data(scatter: ScatterNode) -> Findings:
    if scatter.spec.indices_limit is IndicesLimit.NOWHERE:
        return
    data, longer = scatter.data_shape, scatter.longer_dimensions()
    if scatter.written_axis is not None:
        off_axis = [dim for dim in longer if dim != scatter.axis] if scatter.axis is not None else []
    else:
        off_axis = longer if len(longer) > 1 else []
    if off_axis:
        axes = ", ".join(map(str, off_axis))
        message = (
            f"indices is {show(scatter.indices_shape)}, longer than data {show(data)} on dimension {axes}, "
            f"expected at most data's size off the axis"
        )
        yield Finding(message, role=Role.INDICES)
