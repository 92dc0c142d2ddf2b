"""Shapes, types and words that the document forbids, and that a runtime takes."""

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
    avoid="cut indices and updates to the shape of data",
    reads=_SHAPES,
)
def longer_indices_taken(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO does not look whether indices are longer than data on another axis than their own.

    The plugins write elements of one row into another; folding writes behind data, and the process may end.
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
    avoid="give the axis one element",
    reads=_SHAPES,
)
def axis_of_another_shape_taken(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO reads the first number of an axis for elements, whether there is one or not.

    Of a constant without elements it reads what happens to be in memory: the process may end, or another axis
    is taken. Slices are refused. A process that ends does so when the model is read.
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
    avoid="scatter the numbers of the words instead",
    reads=frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.TYPES}),
)
def text_of_slices_folded(scatter: ScatterNode) -> Meeting | None:
    """Folding slices of text, which the document does not know, ends the process; CPU computes them."""
    if scatter.spec.layout is not Layout.SLICES:
        return None
    return meets("data is text", [element_type_is(scatter, "string")], Role.DATA)


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
    avoid="write one of the words that the document has",
    reads=frozenset({Fact.OPERATOR, Fact.ATTRIBUTES}),
)
def unknown_reduction_taken(scatter: ScatterNode) -> Meeting | None:
    """Onnxruntime takes a reduction that no version has for none."""
    if scatter.node.domain != ONNX or scatter.reduction is not None:
        return None
    word = scatter.attribute("reduction")
    return meets(f"the reduction is {word!r}", [True], part=Part(Side.ATTRIBUTE, name="reduction"))
