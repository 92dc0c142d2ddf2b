"""Rules about the shape and the value of the axis."""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.shapes import agree, show
from ir_scatter.ops.general_bounds import show_bounds
from ir_scatter.ops.spec import Role
from ir_scatter.rules.base import Finding, Findings, Rule, attribute


@Rule("SCT212", "axis-shape", reads={Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES})
def axis_shape(scatter: ScatterNode) -> Findings:
    """The axis input is not a scalar and not of shape [1].

    Why: the operator has one axis.
    Applies to: operators whose axis is an input (ScatterUpdate, ScatterElementsUpdate).
    Runtimes: OpenVINO refuses most other shapes; an axis constant of shape [0] crashes the CPU plugin.
    Example: an axis of shape [2].
    Fix: make the axis one number.
    """
    operand = scatter.operand(Role.AXIS)
    if operand is None or agree(operand.shape, ()) or agree(operand.shape, (1,)):
        return
    message = f"axis is {show(operand.shape)}, expected [] or [1]"
    yield Finding(message, role=Role.AXIS, aspect="shape", help="make the axis one number, of shape []")


@Rule("SCT301", "axis-out-of-range", reads={Fact.OPERATOR, Fact.AXIS, Fact.SHAPES})
def axis_out_of_range(scatter: ScatterNode) -> Findings:
    """The axis is out of range for the rank of data.

    Why: the runtime refuses the model, or uses another dimension than intended.
    Applies to: every operator with an axis: -r to r-1 is legal for data of rank r. For TensorScatter it
    cannot be 0, the batch dimension.
    Runtimes: OpenVINO: "Axis ... out of the tensor rank range". onnx.checker does not check it.
    Example: axis 2 with data [4, 5].
    Fix: count the axis in the shape of data at this node; a squeeze or a layout change upstream shifts it.
    """
    axis, data, source = scatter.written_axis, scatter.data_shape, scatter.spec.axis
    yield from _check_computed_axis(scatter)
    if axis is None or data is None or source is None:
        return
    rank = len(data)
    role = Role.AXIS if source.attribute is None else None
    part = None if source.attribute is None else attribute(source.attribute)
    if not -rank <= axis < rank:
        legal = f"{-rank} to {rank - 1}" if rank else "data of rank 1 at least"
        help = f"write an axis from {-rank} to {rank - 1}: data has {rank} dimensions here" if rank else ""
        message = f"axis is {axis}, expected {legal} for data {show(data)}"
        yield Finding(message, role=role, part=part, help=help)
    elif axis % rank in source.excluded:
        legal_axes = [str(dim) for dim in range(rank) if dim not in source.excluded]
        help = f"write axis {' or '.join(legal_axes)}" if legal_axes else ""
        message = f"axis is {axis}, the batch dimension of data {show(data)}, expected another axis"
        yield Finding(message, role=role, part=part, help=help)


def _check_computed_axis(scatter: ScatterNode) -> Findings:
    """Report an axis that is computed from inputs and cannot be a dimension of data."""
    bounds, data = scatter.computed_axis, scatter.data_shape
    if bounds is None or data is None or scatter.reach.is_never:
        return
    rank, when = len(data), scatter.reach.when
    if bounds.high < -rank or bounds.low >= rank:
        legal = f"{-rank} to {rank - 1}" if rank else "data of rank 1 at least"
        condition = when and f", if {when}"
        message = f"axis is {show_bounds(*bounds)}, expected {legal} for data {show(data)}{condition}"
        yield Finding(message, role=Role.AXIS, is_tolerated=bool(when))
