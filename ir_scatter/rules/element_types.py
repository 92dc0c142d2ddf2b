"""Rules about the element types of inputs."""

from ir_scatter.analysis.scatter_node import Operand, ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.ops.spec import Role
from ir_scatter.rules.base import Finding, Findings, Rule, attribute, newest_version, to_opset


def check_type(scatter: ScatterNode, role: Role) -> Findings:
    """Report an input whose element type is not allowed."""
    operand = scatter.operand(role)
    if operand is None or operand.element_type is None:
        return
    if operand.element_type.name not in operand.port.element_types:
        actual = scatter.spec.show_type(operand.element_type)
        allowed = scatter.spec.show_types(operand.port)
        message = f"{operand.port.name} is {actual}, expected {allowed}"
        yield Finding(message, role=role, aspect="type", help=_help_for_type(scatter, operand))


def _help_for_type(scatter: ScatterNode, operand: Operand) -> str:
    """Return the advice for an input of a wrong type: an opset that allows the type, else a conversion."""
    name, type = operand.port.name, operand.element_type
    for spec in scatter.lookup.family:
        port = spec.port(operand.port.role)
        is_later = spec.key.version > scatter.spec.key.version
        if type is not None and port is not None and is_later and type.name in port.element_types:
            return f"{to_opset(spec.opsets[0])}, which allows {scatter.spec.show_type(type)}"
    if operand.port.role in (Role.INDICES, Role.AXIS):
        return f"convert {name} to {scatter.spec.show_type(ELEMENT_TYPES['i64'])}"
    return f"convert {name} to an allowed type before the node, and the output back after it"


@Rule("SCT201", "element-type", reads={Fact.OPERATOR, Fact.INPUTS, Fact.TYPES})
def element_type(scatter: ScatterNode) -> Findings:
    """Unsupported element type of data or updates: the specification does not allow it.

    Why: runtimes refuse the model, or find no kernel for the type.
    Applies to: data and updates of every operator, and inputs of an ONNX node that are not tensors: a
    sequence, an optional, a map or a sparse tensor. For boolean data see SCT214.
    Runtimes: OpenVINO refuses most of them when it reads the model; strings crash the CPU plugin.
    onnxruntime: "Type Error: Type 'tensor(...)' of input parameter is invalid".
    Example: ScatterElements with bfloat16 data at opset 11; version 13 added that type.
    Fix: convert to an allowed type before the node and back after it, or raise the opset.
    """
    data = scatter.data.element_type if scatter.data else None
    for operand in (scatter.data, scatter.updates):
        if operand is None or operand.element_type is None or operand.element_type.kind == "boolean":
            continue
        if operand is scatter.updates and operand.element_type == data:
            continue
        yield from check_type(scatter, operand.port.role)


@Rule("SCT202", "type-mismatch", reads={Fact.OPERATOR, Fact.INPUTS, Fact.TYPES})
def type_mismatch(scatter: ScatterNode) -> Findings:
    """Data and updates have different element types.

    Why: the specification has one type T for data, updates and output; runtimes refuse the model.
    Applies to: every operator.
    Runtimes: OpenVINO: "Element types for input data and updates do not match". onnxruntime: "Type
    parameter (T) bound to different types".
    Example: data f32, updates f16.
    Fix: convert updates to the type of data.
    """
    data, updates = scatter.data, scatter.updates
    if data is None or updates is None or data.element_type is None or updates.element_type is None:
        return
    if data.element_type != updates.element_type:
        show = scatter.spec.show_type
        message = (
            f"{updates.port.name} is {show(updates.element_type)}, "
            f"expected {show(data.element_type)} like {data.port.name}"
        )
        help = f"convert {updates.port.name} to {show(data.element_type)}"
        yield Finding(message, role=Role.UPDATES, aspect="type", help=help)


@Rule("SCT204", "index-type", reads={Fact.OPERATOR, Fact.INPUTS, Fact.TYPES})
def index_type(scatter: ScatterNode) -> Findings:
    """Unsupported element type of indices: the specification does not allow it.

    Why: runtimes refuse the model; a runtime that converts the type may truncate large values.
    Applies to: indices of every operator. Allowed are all integer types for ScatterUpdate and
    ScatterElementsUpdate, i32 and i64 for ScatterNDUpdate, int32 and int64 for ScatterElements, and only
    int64 for ScatterND and TensorScatter.
    Runtimes: onnxruntime refuses int32 indices of ScatterND; OpenVINO's frontend accepts them.
    Example: ScatterND with int32 indices.
    Fix: convert the indices to i64.
    """
    yield from check_type(scatter, Role.INDICES)


@Rule("SCT205", "axis-type", reads={Fact.OPERATOR, Fact.INPUTS, Fact.TYPES})
def axis_type(scatter: ScatterNode) -> Findings:
    """The element type of the axis input is not an integer type.

    Why: runtimes refuse the model.
    Applies to: operators whose axis is an input (ScatterUpdate, ScatterElementsUpdate).
    Runtimes: OpenVINO: "Axis element type must be integer".
    Example: an axis Const of type f32.
    Fix: make the axis an i64 constant.
    """
    yield from check_type(scatter, Role.AXIS)


@Rule("SCT213", "reduction-type", reads={Fact.OPERATOR, Fact.ATTRIBUTES, Fact.INPUTS, Fact.TYPES})
def reduction_type(scatter: ScatterNode) -> Findings:
    """The reduction is not defined for the element type of data.

    Why: booleans have no mean, strings have no sum, and complex numbers have no order for max and min.
    Applies to: operators with a reduction. On booleans sum is OR, prod is AND, sub is XOR; mean is
    illegal.
    Runtimes: OpenVINO refuses mean on boolean; onnxruntime has no reductions of strings.
    Example: ScatterElementsUpdate-12 with boolean data and reduction="mean".
    Fix: convert data to a numeric type first, or choose another reduction (on booleans max is OR).
    """
    reduction = scatter.reduction
    if scatter.data is None or scatter.data.element_type is None or reduction is None:
        return
    if scatter.data.element_type.name in scatter.spec.reduction_excludes.get(reduction, ()):
        type_name = scatter.spec.show_type(scatter.data.element_type)
        written = scatter.attribute("reduction")
        message = f"reduction is {written} on {type_name} data, expected another type"
        yield Finding(message, role=Role.DATA, aspect="type", part=attribute("reduction"))


@Rule("SCT214", "boolean-data", reads={Fact.OPERATOR, Fact.INPUTS, Fact.TYPES})
def boolean_data(scatter: ScatterNode) -> Findings:
    """Boolean data, where the specification requires a numeric type.

    Why: the specification of this version gives no result for it. A warning, because runtimes compute it as
    intended.
    Applies to: ScatterUpdate-3, ScatterElementsUpdate-3 and ScatterNDUpdate-3.
    Runtimes: OpenVINO's CPU plugin computes it; the GPU plugin does not support ScatterElementsUpdate on
    boolean data.
    Example: ScatterNDUpdate-3 on a boolean mask.
    Fix: use ScatterElementsUpdate-12 or ScatterNDUpdate-15, which allow boolean data, or convert to u8.
    """
    data = scatter.data
    if data is None or data.element_type is None or data.element_type.kind != "boolean":
        return
    if data.element_type.name not in data.port.element_types:
        message, type = f"{data.port.name} is boolean, expected a numeric type", data.element_type.name
        later = [spec for spec in scatter.lookup.family if type in spec.ports[0].element_types]
        help, fixed_by = f"convert {data.port.name} to u8", None
        if later:
            help, fixed_by = f"{later[0].key} allows boolean", newest_version(scatter)
        yield Finding(message, role=Role.DATA, aspect="type", help=help, fixed_by=fixed_by)
