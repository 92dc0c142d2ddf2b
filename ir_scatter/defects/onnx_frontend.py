"""What OpenVINO's ONNX frontend does not read, whatever the device."""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.model import ONNX
from ir_scatter.core.shapes import is_static
from ir_scatter.defects.base import Defect, Meeting, Probe, Symptom, meets
from ir_scatter.defects.element_types import element_type_is
from ir_scatter.ops.spec import Role

_INDICES = frozenset({Role.INDICES})
_DEVICES = ("openvino:CPU", "openvino:GPU", "openvino:fold")


@Defect(
    "DEV132",
    "complex-numbers-refused",
    _DEVICES,
    Symptom.REFUSED,
    probes=(
        Probe("complex64", "ScatterElements-18", [1, 2, 3], [1], [5], 0, "complex64"),
        Probe("complex128", "ScatterND-16", [1, 2, 3], [[1]], [5], None, "complex128"),
    ),
    near=(Probe("f32", "ScatterElements-18", [1, 2, 3], [1], [5], 0),),
    avoid="scatter real and imaginary parts one by one",
    reads=frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.TYPES}),
)
def complex_numbers_refused(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO has no complex element types: "Unsupported type" when the model is loaded."""
    if scatter.node.domain != ONNX:
        return None
    return meets("data is complex", [element_type_is(scatter, "complex64", "complex128")], Role.DATA)


@Defect(
    "DEV133",
    "strings-refused",
    ("openvino:CPU", "openvino:GPU"),
    Symptom.REFUSED,
    probes=(
        Probe("elements", "ScatterElements-18", ["a", "b"], [1], ["c"], 0, "string"),
        Probe("tuples", "ScatterND-18", ["a", "b"], [[1]], ["c"], None, "string"),
        Probe("ir", "ScatterElementsUpdate-12", ["a", "b"], [1], ["c"], 0, "string"),
    ),
    avoid="scatter the numbers of the words instead",
    reads=frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.TYPES}),
)
def strings_refused(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's CPU plugin "does not support string for use with oneDNN"."""
    return meets("data is text", [element_type_is(scatter, "string")], Role.DATA)


@Defect(
    "DEV134",
    "empty-initializer-read-as-scalar",
    _DEVICES,
    Symptom.REFUSED,
    probes=(
        Probe("indices", "ScatterElements-18", (2, 3), (0, 3), (0, 3), 0, constants=_INDICES),
        Probe("data", "ScatterElements-16", (2, 0), (1, 0), (1, 0), 0, constants=frozenset({Role.DATA})),
        Probe("tuples", "ScatterND-18", (2, 3), (0, 1), (0, 3), None, constants=_INDICES),
    ),
    near=(Probe("full", "ScatterElements-18", (2, 3), (1, 3), (1, 3), 0, constants=_INDICES),),
    avoid="make what is empty with ConstantOfShape, or leave the node out",
    stays=True,
    reads=frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.PRODUCERS, Fact.SHAPES}),
)
def empty_initializer_read_as_scalar(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's ONNX frontend reads an initializer without elements as one without dimensions.

    An initializer of shape [0, 3] has rank 0 then, and the node is refused: "Indices rank and data rank are
    required to be equal. Got: 0".
    """
    if scatter.node.domain != ONNX:
        return None
    for operand in scatter.operands():
        shape = operand.shape
        is_empty = is_static(shape) and 0 in shape
        if operand.value.constant is not None and operand.value.producer is None and is_empty:
            return meets(f"{operand.port.name} is an initializer without elements", [True], operand.port.role)
    return None
