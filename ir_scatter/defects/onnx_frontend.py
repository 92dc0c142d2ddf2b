"""Defects of OpenVINO's ONNX frontend, on all devices."""

from collections.abc import Mapping
from typing import NamedTuple

from ir_scatter.analysis.reachability import Reachability, reachability_of
from ir_scatter.analysis.scatter_node import Operand, ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.dataflow import BodySource
from ir_scatter.core.model import ONNX, Value
from ir_scatter.core.shapes import Bounds, element_count
from ir_scatter.defects.base import Defect, Meeting, Probe, Stage, Symptom, meets
from ir_scatter.defects.element_types import element_type_is
from ir_scatter.ops.general import find
from ir_scatter.ops.spec import Layout, Role

_INDICES = frozenset({Role.INDICES})
_EVERY = frozenset({Role.DATA, Role.INDICES, Role.UPDATES})
_ALL = len(_EVERY)
_OF_RANKS = frozenset({"Squeeze", "Unsqueeze"})
_VIEWS = _OF_RANKS | {"Concat", "Reshape", "Slice", "Transpose"}
"""Operators that OpenVINO refuses, or whose output gets another rank, if it reads their first input as 0-D.
"""
_LONGEST_CHAIN = 1000
"""Maximum operators followed upstream to find a constant; exporters insert only a few."""
_AXES_OF_SCALARS = {0, -1}
"""Axes that OpenVINO accepts for 0-D data (measured; others are refused)."""
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
    avoid="scatter real and imaginary parts separately",
    stays=True,
    remains="OpenVINO has no complex numbers, and refuses the model whatever its operators",
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
    avoid="scatter numbers that represent the strings",
    reads=frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.TYPES}),
)
def strings_refused(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's CPU plugin "does not support string for use with oneDNN"."""
    return meets("data is of type string", [element_type_is(scatter, "string")], Role.DATA)


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
    avoid="create the empty tensor with ConstantOfShape, or leave the node out",
    stays=True,
)
def empty_initializer_read_as_scalar(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's ONNX frontend reads an empty constant as 0-D.

    An initializer or a Constant node of shape [0, 3] gets rank 0, and so do values computed from it by
    Identity, Cast, Abs and the like. The scatter node is refused: "Indices rank and data rank are required to
    be equal. Got: 0". A Reshape, Transpose, Slice or Concat between the constant and the node is refused
    itself.

    A scatter node in the body of a Loop, Scan or If is refused too if it reads such a constant from outside,
    by name or as a loop-carried value. So is a node that reads a body output with such a constant. A Scan
    over such a constant fails: "Accessing out-of-range dimension".

    An initializer without any data field becomes an input of the model instead, which the caller cannot know;
    `onnx.helper.make_tensor` makes such an initializer from an empty list. A body that uses it by name is
    refused.
    """
    constants = _empty_constants(scatter)
    if not constants or _is_folded(scatter, constants):
        return None
    stage = None
    if _are_all_scalars(scatter, constants):
        ways = {constant.is_carried for constant in constants.values()}
        if True not in ways:
            return None
        if False not in ways:  # ranks agree, so that only compilation fails: "does not support scalar input"
            stage = Stage.COMPILE
    ((operand, constant), *_) = constants.items()
    is_direct = operand.value.producer is None and operand.value is constant.value
    kind = f"{'an initializer' if is_direct else 'a constant'} without elements"
    if constant.is_input:
        kind += ", whose data field is missing"
    meeting = meets(f"{operand.port.name} is {kind}", [True], operand.port.role)
    return meeting and meeting._replace(strikes=stage)


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
    avoid="create the empty tensor with ConstantOfShape, or leave the node out",
    stays=True,
)
def empty_initializers_crash(scatter: ScatterNode) -> Meeting | None:
    """If data, indices and updates are empty constants, the process crashes (SIGSEGV).

    All three are read as 0-D (DEV134). As their ranks agree, the model is not refused, and the process
    crashes when the node is folded. This also happens in a body that uses the constants by name, but not if
    one of them is a loop-carried value.
    """
    constants = _empty_constants(scatter)
    is_carried = any(constant.is_carried for constant in constants.values())
    is_all = _are_all_scalars(scatter, constants) and not is_carried
    return meets("all inputs are constants without elements", [is_all])


class _EmptyConstant(NamedTuple):
    """A constant without elements from which an input of a scatter node is computed.

    Attributes:
        value: the initializer, or the output of the Constant node.
        is_scalar: whether the input is read as 0-D; otherwise an operator between the two is refused.
        is_carried: whether it is a loop-carried value.
        is_input: whether it becomes an input of the model.
    """

    value: Value
    is_scalar: bool
    is_carried: bool
    is_input: bool


def _are_all_scalars(scatter: ScatterNode, constants: Mapping[Operand, _EmptyConstant]) -> bool:
    """Return whether all inputs are read as 0-D, so that OpenVINO accepts the ranks and the axis."""
    if scatter.spec.layout is not Layout.ELEMENTS or scatter.written_axis not in _AXES_OF_SCALARS:
        return False
    return len(constants) == _ALL and all(constant.is_scalar for constant in constants.values())


def _is_folded(scatter: ScatterNode, constants: Mapping[Operand, _EmptyConstant]) -> bool:
    """Return whether the node is replaced by constant data before the rank of updates is checked.

    Measured: this happens if data is a constant, updates are the only empty constant, and indices are an
    input of the model that certainly has no elements, but whose number of coordinates is unknown: then no
    rank of updates is expected.
    """
    data, indices = scatter.data, scatter.indices_shape
    if scatter.spec.layout is not Layout.TUPLES or data is None or indices is None:
        return False
    is_open = isinstance(indices[-1], Bounds) if indices else False
    roles = {operand.port.role for operand in constants}
    is_constant = data.value.constant is not None
    return roles == {Role.UPDATES} and is_constant and is_open and element_count(indices) == 0


def _empty_constants(scatter: ScatterNode) -> dict[Operand, _EmptyConstant]:
    """Return the inputs that are computed from empty constants."""
    if scatter.node.domain != ONNX:
        return {}
    reachability = scatter.facts.result_of(reachability_of)
    pairs = [(operand, _empty_constant(operand, reachability)) for operand in scatter.operands()]
    return {operand: constant for operand, constant in pairs if constant is not None}


def _empty_constant(operand: Operand, reachability: Reachability | None) -> _EmptyConstant | None:
    """Return the empty constant upstream of an input; None if the search ends at anything else.

    It follows elementwise operators and operators that move elements. From an input of a body it goes on at
    the value outside, from an output of a node with bodies at the results of all its bodies.
    """
    pending, seen, constants = [operand.value], {operand.value}, list[Value]()
    is_pointwise, is_carried = True, False
    while pending and len(seen) <= _LONGEST_CHAIN:
        value = pending.pop()
        if value.constant is not None:
            if 0 not in value.constant.shape:
                return None
            constants.append(value)
            continue
        sources = [] if reachability is None else reachability.results(value)
        entry = None if reachability is None else reachability.outer_source(value)
        if entry is not None:
            source, way = entry
            is_carried = is_carried or way is BodySource.CARRIED
            is_pointwise = is_pointwise and way is not BodySource.PART
            sources = [source]
        if not sources:
            node = value.producer
            op = None if node is None else find(node.domain, node.type)
            first = node.inputs[0].value if node is not None and node.inputs else None
            if op is None or first is None or not (op.keeps_shape or op.type in _VIEWS):
                return None
            is_pointwise = is_pointwise and (op.keeps_shape or op.type in _OF_RANKS)
            sources = [first]
        pending += [source for source in dict.fromkeys(sources) if source not in seen]
        seen.update(sources)
    if pending or not constants:
        return None
    first = constants[0]
    rank = None if first.constant is None else len(first.constant.shape)
    is_same_rank = operand.shape is not None and len(operand.shape) == rank
    bare = [value for value in constants if _becomes_input(value)]
    is_scalar = is_pointwise and is_same_rank and not bare
    return _EmptyConstant([*bare, first][0], is_scalar, is_carried, is_input=bool(bare))


def _becomes_input(value: Value) -> bool:
    """Return whether a constant is an initializer without a data field, which becomes a model input."""
    return value.producer is None and value.constant is not None and not value.constant.stores_data
