"""Defects with element types that a runtime does not support, or computes in another type."""

from collections.abc import Callable
from typing import Any

from ir_scatter.analysis.scatter_node import Operand, ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.shapes import element_count, is_static, lowest
from ir_scatter.defects.base import Defect, Meeting, Probe, Stage, Symptom, Ternary, has_elements, meets
from ir_scatter.ops.general import find
from ir_scatter.ops.spec import Layout, Reduction, Role

_NOT_REPLACED = 12
"""First version of ScatterElementsUpdate that OpenVINO never replaces by ScatterUpdate."""
_VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze"})
_DATA = frozenset({Role.DATA})
_TYPES = frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.TYPES})
_VALUES = frozenset({*_TYPES, Fact.ATTRIBUTES, Fact.SHAPES, Fact.VALUES, Fact.INDICES, Fact.CONSTANCY})


def type_name(operand: Operand | None) -> str:
    return operand.element_type.name if operand is not None and operand.element_type is not None else ""


def element_type_is(scatter: ScatterNode, *names: str, role: Role = Role.DATA) -> Ternary:
    name = type_name(scatter.operand(role))
    return Ternary(name in names if name else None, f"{role.value} is {' or '.join(names)}")


@Defect(
    "DEV103",
    "u2-refused",
    ("openvino:CPU",),
    Symptom.REFUSED,
    strikes=Stage.RUN,
    probes=(
        Probe("u2-indices", "ScatterElementsUpdate-3", (4,), [2], [9], 0, index_type="u2"),
        Probe("u2-data", "ScatterElementsUpdate-12", [1, 2, 3, 0], [2], [1], 0, "u2"),
        Probe("u2-tuples", "ScatterNDUpdate-15", [1, 2, 3, 0], [[2]], [1], None, "u2"),
    ),
    near=(Probe("u4-indices", "ScatterElementsUpdate-3", (4,), [2], [9], 0, index_type="u4"),),
    avoid="cast to u8 before the node and back after it",
    reads=_VALUES,
)
def u2_refused(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's CPU plugin does not compile indices of type u2, nor non-empty data of that type.

    It does not support the type: it reports "Unsupported data type" for indices, and for data a missing
    Convert from f32 to u2. (ScatterUpdate accepts data of type u2, but gives wrong values: see DEV104.)
    Indices are refused when the model is compiled, data when it runs. Constant data may be folded if there is
    nothing to write.
    """
    if type_name(scatter.indices) == "u2":
        return Meeting("indices are u2", Role.INDICES, strikes=Stage.COMPILE)
    if scatter.spec.layout is Layout.SLICES or scatter.data is None:
        return None
    others = [operand for operand in scatter.operands() if operand is not scatter.data]
    is_idle = any(element_count(operand.shape) == 0 for operand in others)
    is_left_out = is_idle and scatter.facts.array(scatter.data.value) is not None
    is_kept = Ternary(None if is_left_out else True, "the node is not folded")
    is_there = has_elements(scatter), are_there(scatter.data), is_kept
    return meets("data is u2", [element_type_is(scatter, "u2"), *is_there], Role.DATA)


@Defect(
    "DEV120",
    "computed-in-i32",
    ("openvino:CPU", "openvino:GPU"),
    Symptom.WRONG_VALUE,
    strikes=Stage.RUN,
    probes=(
        Probe("i64", "ScatterElementsUpdate-12", [2**40 + 1, 2], [1], [3], 0, "i64"),
        Probe("u64", "ScatterElementsUpdate-3", [2**40 + 1, 2], [1], [3], 0, "u64"),
        Probe("i64-slices", "ScatterUpdate-3", [2, 3], [1], [2**40 + 1], 0, "i64"),
        Probe("u32-constant", "ScatterNDUpdate-15", [2, 2**31 + 1], [[0]], [1], None, "u32", constants=_DATA),
    ),
    near=(Probe("small", "ScatterElementsUpdate-12", [2**31 - 1, -(2**31)], [1], [3], 0, "i64"),),
    avoid="keep all values within the range of i32, or split each into two halves before the model",
    stays=True,
    remains="the device reads i64 and u64 as i32 before any operator: no form of a node keeps larger numbers",
    per_model=Severity.NOTE,
    reads=_VALUES,
)
def computed_in_i32(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's CPU and GPU plugins compute i64, u64 and u32 as i32.

    2^40 + 1 becomes 1, even in elements without an update; constants saturate instead. Without a reduction
    u32 keeps its bits, so that only constants of u32 become wrong.
    """
    meeting = meets(f"data is {type_name(scatter.data)}", [element_type_is(scatter, "i64", "u64", "u32")])
    if meeting is None or not type_name(scatter.data):
        return None

    def is_beyond(array: Any) -> Any:
        return (array > 2**31 - 1) | (array < -(2**31))

    when = "a number is outside the range of i32"
    if type_name(scatter.data) == "u32" and scatter.reduction is Reduction.NONE:
        is_met, role = _holds_beyond(scatter, is_beyond)
        if not is_met:
            return None
        meeting = meeting._replace(reason=f"{when}, in constant {role.value}", role=role, is_likely=True)
    return _beyond(meeting, scatter, is_beyond, when)


def _holds_beyond(scatter: ScatterNode, is_beyond: Callable[[Any], Any]) -> tuple[bool, Role]:
    """Return whether constant data or updates contain a number out of range, and which of the two does."""
    for role in (Role.DATA, Role.UPDATES):
        operand = scatter.operand(role)
        value = None if operand is None else operand.value
        while value is not None and value.constant is None and value.producer is not None:
            op = find(value.producer.domain, value.producer.type)
            is_view = op is not None and op.type in _VIEWS
            value = value.producer.inputs[0].value if is_view else None
        array = None if value is None else scatter.facts.array(value)
        if array is not None and bool(is_beyond(array).any()):
            return True, role
    return False, Role.DATA


@Defect(
    "DEV121",
    "computed-in-f32",
    ("openvino:CPU", "openvino:GPU"),
    Symptom.WRONG_VALUE,
    strikes=Stage.RUN,
    probes=(
        Probe("f64", "ScatterElementsUpdate-12", [2.0**24 + 1, 2.0], [1], [3.0], 0, "f64"),
        Probe("f64-large", "ScatterNDUpdate-3", [1e300, 2.0], [[1]], [3.0], None, "f64"),
        Probe("f64-slices", "ScatterUpdate-3", [2.0, 3.0], [1], [0.1], 0, "f64"),
    ),
    near=(Probe("exact", "ScatterElementsUpdate-12", [0.5, 2.0], [1], [3.0], 0, "f64"),),
    avoid="use only values that f32 represents exactly",
    stays=True,
    remains="the device reads f64 as f32 before any operator, so no form of a node keeps its digits",
    per_model=Severity.NOTE,
    reads=_VALUES,
)
def computed_in_f32(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's plugins compute f64 as f32: digits are lost, and values outside its range are clamped."""
    meeting = meets(f"{Role.DATA.value} is f64", [element_type_is(scatter, "f64")], Role.DATA)
    when = "a value is not exact in f32"
    if meeting is None:
        return None
    import numpy as np

    with np.errstate(all="ignore"):
        # a device may replace numbers up to the smallest normal one by 0
        least = np.finfo(np.float64).tiny
        return _beyond(meeting, scatter, lambda array: np.abs(array.astype(np.float32) - array) > least, when)


def _beyond(meeting: Meeting, scatter: ScatterNode, is_beyond: Callable[[Any], Any], when: str) -> Meeting:
    """Add a condition to the meeting: a value is outside the range of the type that the device computes in.

    The meeting stays unconditional if a constant is out of range, and no update overwrites it.
    """
    written = element_count(scatter.updates.shape if scatter.updates else None)
    for role in (Role.DATA, Role.UPDATES) if scatter.reduction is Reduction.NONE else ():
        operand = scatter.operand(role)
        array = None if operand is None else scatter.facts.array(operand.value)
        if array is None or not array.size:
            continue
        count, is_data = int(is_beyond(array).sum()), role is Role.DATA
        is_unique = scatter.has_constant_indices and scatter.repeats is None
        if count and (written is not None and count > written if is_data else is_unique):
            return meeting._replace(reason=f"{when}, in {role.value}", role=role)
    return meeting._replace(when=when)


@Defect(
    "DEV104",
    "types-below-a-byte-of-slices",
    ("openvino:CPU", "openvino:fold"),
    Symptom.WRONG_VALUE,
    strikes=Stage.RUN,
    probes=(
        Probe("u2", "ScatterUpdate-3", [[1, 2, 3, 1], [3, 2, 1, 2]], [2, 0], [[3, 1], [1, 3]], 1, "u2"),
        Probe("u4", "ScatterUpdate-3", [[1, 2, 3, 4, 5], [6, 7, 8, 9, 1]], [2], [[3], [1]], 1, "u4"),
        Probe("f4e2m1", "ScatterUpdate-3", [[1, 2, 3], [4, 6, 1]], [2], [[3], [1]], 1, "f4e2m1"),
    ),
    avoid="cast to an 8-bit type before the node and back after it",
    reads=_TYPES | {Fact.PRODUCERS},
)
def types_below_a_byte_of_slices(scatter: ScatterNode) -> Meeting | None:
    """ScatterUpdate copies slices of packed elements (several in a byte) by whole bytes.

    Two u4 share a byte: if a slice does not end at a byte boundary, its neighbour is overwritten too.
    OpenVINO also replaces ScatterElementsUpdate-3 by ScatterUpdate, if a Broadcast repeats its indices.
    """
    if scatter.spec.layout is not Layout.SLICES and not _becomes_slices(scatter):
        return None
    packed = element_type_is(scatter, "u1", "u2", "u3", "u4", "u6", "i4", "nf4", "f4e2m1")
    meeting = meets(
        "elements of data share bytes",
        [packed, Ternary(None, "a slice does not fill whole bytes")],
        Role.DATA,
    )
    return meeting and meeting._replace(is_likely=packed.truth is True)


def _becomes_slices(scatter: ScatterNode) -> bool:
    """Return whether OpenVINO replaces a node by ScatterUpdate when it compiles the model."""
    is_old = scatter.spec.layout is Layout.ELEMENTS and scatter.spec.key.version < _NOT_REPLACED
    producer = None if scatter.indices is None else scatter.indices.value.producer
    return is_old and producer is not None and producer.type == "Broadcast"


@Defect(
    "DEV108",
    "f4e2m1-of-open-shapes-refused",
    ("openvino:CPU",),
    Symptom.REFUSED,
    strikes=Stage.RUN,
    probes=(
        Probe("elements", "ScatterElementsUpdate-12", (4,), [2], (1,), 0, "f4e2m1", shapes="dynamic"),
        Probe("tuples", "ScatterNDUpdate-3", (4,), [[2]], (1,), None, "f4e2m1", shapes="bounded"),
        Probe("data", "ScatterNDUpdate-15", (3,), [[2], [0]], (2,), None, "f4e2m1", shapes="bounded"),
    ),
    near=(
        Probe("static", "ScatterElementsUpdate-12", [1, 2, 3, 4], [2], [6], 0, "f4e2m1"),
        Probe("empty", "ScatterElementsUpdate-12", (0,), (0,), (0,), 0, "f4e2m1", shapes="dynamic"),
        Probe("even", "ScatterElementsUpdate-12", (4,), [2, 0], (2,), 0, "f4e2m1", shapes="dynamic"),
    ),
    avoid="make all shapes static, or cast to f32 before the node",
    reads=frozenset({*_TYPES, Fact.SHAPES}),
)
def f4e2m1_of_open_shapes_refused(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's CPU plugin has no Reorder for f4e2m1 of dynamic shape with an odd number of elements.

    Two elements share a byte. The plugin needs that Reorder when the model runs. If all shapes are static,
    and for constants, it converts without it.
    """
    for operand in scatter.operands() if scatter.spec.layout is not Layout.SLICES else ():
        is_even = any(type(dim) is int and dim % 2 == 0 for dim in operand.shape or ())
        if type_name(operand) == "f4e2m1" and not is_static(operand.shape) and not is_even:
            port = operand.port
            condition = Ternary(None, f"{port.name} has an odd number of elements")
            meeting = meets(f"{port.name} of a dynamic shape is f4e2m1", [condition], port.role)
            return meeting and meeting._replace(is_likely=True)
    return None


def are_there(operand: Operand) -> Ternary:
    """Return whether an input has elements when the model runs; unknown for some dynamic shapes."""
    is_known = operand.shape is not None and all(lowest(dim) > 0 for dim in operand.shape)
    return Ternary(is_known or None, f"{operand.port.name} is not empty")
