"""What OpenVINO's ONNX frontend does not read, whatever the device."""

from ir_scatter.analysis.scatter_node import Operand, ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.model import ONNX
from ir_scatter.core.shapes import is_static
from ir_scatter.defects.base import Defect, Meeting, Probe, Stage, Symptom, meets
from ir_scatter.defects.element_types import element_type_is
from ir_scatter.ops.spec import Layout, Role

_INDICES = frozenset({Role.INDICES})
_EVERY = frozenset({Role.DATA, Role.INDICES, Role.UPDATES})
_ALL = len(_EVERY)
_READS = frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.PRODUCERS, Fact.SHAPES})
_DEVICES = ("openvino:CPU", "openvino:GPU", "openvino:fold")


@Defect(
    "DEV132",
    "complex-numbers-refused",
    _DEVICES,
    Symptom.REFUSED,
    strikes=Stage.LOAD,
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
    strikes=Stage.COMPILE,
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
    strikes=Stage.READ,
    probes=(
        Probe("indices", "ScatterElements-18", (2, 3), (0, 3), (0, 3), 0, constants=_INDICES),
        Probe("data", "ScatterElements-16", (2, 0), (1, 0), (1, 0), 0, constants=frozenset({Role.DATA})),
        Probe("tuples", "ScatterND-18", (2, 3), (0, 1), (0, 3), None, constants=_INDICES),
    ),
    near=(Probe("full", "ScatterElements-18", (2, 3), (1, 3), (1, 3), 0, constants=_INDICES),),
    avoid="make what is empty with ConstantOfShape, or leave the node out",
    stays=True,
    reads=_READS,
)
def empty_initializer_read_as_scalar(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's ONNX frontend reads an initializer without elements as one without dimensions.

    An initializer of shape [0, 3] has rank 0 then, and the node is refused: "Indices rank and data rank are
    required to be equal. Got: 0".
    """
    found = _empty_initializers(scatter)
    if not found or (len(found) == _ALL and scatter.spec.layout is Layout.ELEMENTS):
        return None
    return meets(f"{found[0].port.name} is an initializer without elements", [True], found[0].port.role)


@Defect(
    "DEV135",
    "empty-initializers-crash",
    _DEVICES,
    Symptom.CRASHED,
    strikes=Stage.COMPILE,
    probes=(
        Probe("elements", "ScatterElements-18", (2, 0), (1, 0), (1, 0), 0, constants=_EVERY),
        Probe("scatter", "Scatter-9", (0,), (0,), (0,), 0, constants=_EVERY),
    ),
    near=(Probe("fed", "ScatterElements-18", (2, 0), (1, 0), (1, 0), 0),),
    avoid="make what is empty with ConstantOfShape, or leave the node out",
    stays=True,
    reads=_READS,
)
def empty_initializers_crash(scatter: ScatterNode) -> Meeting | None:
    """If data, indices and updates are initializers without elements, the process ends (SIGSEGV).

    All three are read as scalars (DEV134), so that no rank gives that away, and the node is folded.
    """
    is_all = len(_empty_initializers(scatter)) == _ALL and scatter.spec.layout is Layout.ELEMENTS
    return meets("all inputs are initializers without elements", [is_all])


def _empty_initializers(scatter: ScatterNode) -> list[Operand]:
    return [
        one
        for one in scatter.operands()
        if scatter.node.domain == ONNX
        and one.value.constant is not None
        and one.value.producer is None
        and is_static(one.shape)
        and 0 in one.shape
    ]
