"""Defects: shapes, types and attribute values that the specification forbids but a runtime accepts."""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.diagnostics import Part, Side
from ir_scatter.core.model import ONNX
from ir_scatter.core.shapes import element_count
from ir_scatter.defects.base import Defect, Meeting, Probe, Stage, Symptom, meets
from ir_scatter.defects.element_types import element_type_is
from ir_scatter.ops.spec import Layout, Role

_LONGER, _AXIS, _WORD = "indices-longer-than-data", "axis-shape", "attribute-value"
_FIVE = (2, 2, 2, 2, 2)
_MEAN = {"reduction": "mean"}
_SHAPES = frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.AXIS, Fact.SHAPES})


@Defect(
    "DEV141",
    "longer-indices-taken",
    ("openvino:CPU", "openvino:GPU", "openvino:fold"),
    Symptom.ACCEPTED_ILLEGAL,
    strikes=Stage.RUN,
    probes=(
        Probe("behind", "ScatterElementsUpdate-12", (2, 2), (2, 9), (2, 9), 0, breaks=_LONGER),
        Probe("in-front", "ScatterElementsUpdate-3", (2, 3, 4), (5, 3, 4), (5, 3, 4), 1, breaks=_LONGER),
    ),
    near=(Probe("as-long", "ScatterElementsUpdate-12", (2, 2), (2, 2), (2, 2), 0),),
    avoid="slice indices and updates to the shape of data",
    reads=_SHAPES,
)
def longer_indices_taken(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO does not check whether indices are longer than data on an axis other than `axis`.

    The plugins write elements of one row into another; constant folding writes past the end of data, and the
    process may crash.
    """
    longer = [axis for axis in scatter.longer_dimensions() if axis != scatter.axis]
    if scatter.spec.layout is not Layout.ELEMENTS or scatter.axis is None or not longer:
        return None
    return meets(f"indices are longer than data on axis {longer[0]}", [True], Role.INDICES)


@Defect(
    "DEV142",
    "axis-of-another-shape-taken",
    ("openvino:CPU", "openvino:GPU", "openvino:fold"),
    Symptom.ACCEPTED_ILLEGAL,
    strikes=Stage.RUN,
    probes=(
        Probe("two", "ScatterElementsUpdate-12", (3, 4), (3, 4), (3, 4), 0, axis_shape=(2,), breaks=_AXIS),
        Probe("none", "ScatterElementsUpdate-3", _FIVE, _FIVE, _FIVE, 0, axis_shape=(0,), breaks=_AXIS),
    ),
    near=(Probe("one", "ScatterElementsUpdate-12", (3, 4), (3, 4), (3, 4), 0, axis_shape=(1,)),),
    avoid="make the axis input a single element",
    reads=_SHAPES,
)
def axis_of_another_shape_taken(scatter: ScatterNode) -> Meeting | None:
    """For ScatterElementsUpdate OpenVINO reads the first element of the axis input, even if it is empty.

    From an empty constant it reads arbitrary memory: the process may crash when the model is read, or another
    axis is used. For ScatterUpdate an empty axis is refused.
    """
    axis = scatter.operand(Role.AXIS)
    count = None if axis is None else element_count(axis.shape)
    if scatter.spec.layout is not Layout.ELEMENTS or count in {None, 1}:
        return None
    reason = f"the axis has {count or 'no'} elements"
    return Meeting(
        reason, Role.AXIS, probes=("two" if count else "none",), strikes=None if count else Stage.READ
    )


@Defect(
    "DEV203",
    "text-of-slices-folded",
    ("openvino:fold",),
    Symptom.CRASHED,
    strikes=Stage.COMPILE,
    probes=(Probe("slices", "ScatterUpdate-3", ["a", "b"], [1], ["c"], 0, "string", breaks="element-type"),),
    avoid="scatter numbers that represent the strings",
    reads=frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.TYPES}),
)
def text_of_slices_folded(scatter: ScatterNode) -> Meeting | None:
    """Constant folding of ScatterUpdate crashes on strings, which the specification forbids."""
    if scatter.spec.layout is not Layout.SLICES:
        return None
    return meets("data is of type string", [element_type_is(scatter, "string")], Role.DATA)


@Defect(
    "DEV406",
    "unknown-reduction-taken",
    ("onnxruntime",),
    Symptom.ACCEPTED_ILLEGAL,
    strikes=Stage.RUN,
    probes=(
        Probe("elements", "ScatterElements-18", (4,), [1], (1,), 0, attributes=_MEAN, breaks=_WORD),
        Probe("tuples", "ScatterND-16", (4,), [[1]], (1,), None, attributes=_MEAN, breaks=_WORD),
    ),
    avoid="use a reduction that the specification names",
    reads=frozenset({Fact.OPERATOR, Fact.ATTRIBUTES}),
)
def unknown_reduction_taken(scatter: ScatterNode) -> Meeting | None:
    """Onnxruntime treats an unknown reduction as "none"."""
    if scatter.node.domain != ONNX or scatter.reduction is not None:
        return None
    word = scatter.attribute("reduction")
    return meets(f"the reduction is {word!r}", [True], part=Part(Side.ATTRIBUTE, name="reduction"))
