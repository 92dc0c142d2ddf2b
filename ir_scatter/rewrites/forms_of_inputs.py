"""Alternative forms of a node that change its inputs, or remove the node.

copied before:  data                       ->  a copy of data, which no other node or iteration reads
left out:       indices without elements   ->  data itself
by positions:   strings                    ->  the positions of the elements, and a Gather of them
u32 as i32:     constant data of u32       ->  the same bits as i32
"""

from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.core.model import ONNX, Value
from ir_scatter.core.shapes import LARGEST_DIM, UNKNOWN_DIM, element_count, static
from ir_scatter.ops.spec import OpSpec, Reduction, Role
from ir_scatter.rewrites.base import View
from ir_scatter.rewrites.builder import I64, Builder
from ir_scatter.rewrites.refusals import TYPE_UNKNOWN, Reason, Refusal

_I32, _U32 = ELEMENT_TYPES["i32"], ELEMENT_TYPES["u32"]


def _no_form(message: str) -> Refusal:
    return Refusal(Reason.NO_FORM, message)


def copied_before(view: View, build: Builder, _: OpSpec) -> Value | Refusal:
    """Copy data before the node."""
    return build.rebuilt(view.scatter, {Role.DATA: build.copy(view.data, "data_copied")}, view.reduction)


def left_out(view: View, build: Builder, _: OpSpec) -> Value | Refusal:
    """Return data, or an empty value of its shape, if there is nothing to write."""
    if not view.writes_nothing and not _has_no_tuples(view):
        return _no_form("there is something to write")
    shape, type = static(view.data.shape), view.data.element_type
    if build.domain == ONNX:
        if shape is None or 0 not in shape:
            return build.identity(view.data, "data_unchanged")
        return TYPE_UNKNOWN if type is None else build.empty(shape, type, "nothing")
    if shape is None:
        return _no_form("the shape of data is dynamic")
    return build.make("Reshape", [view.data, build.constant([*shape], "data_shape")], shape, "data_unchanged")


def _has_no_tuples(view: View) -> bool:
    """Return whether indices are a list of no tuples; a tuple of no coordinates selects all of data."""
    shape = static(view.indices.shape)
    return shape is not None and 0 in shape[:-1]


def by_positions(view: View, build: Builder, _: OpSpec) -> Value | Refusal:
    """Scatter the positions of elements in data and updates, then gather the elements."""
    if view.reduction is not Reduction.NONE:
        return _no_form("the reduction computes with elements")
    if view.writes_nothing:
        return _no_form("there is nothing to write")
    data, updates = view.data, view.updates
    sizes = [element_count(value.shape) for value in (data, updates)]
    if None in sizes or sum(size or 0 for size in sizes) > LARGEST_DIM:
        return _no_form("the number of elements is unknown, or too large for positions in i32")
    count_data, count_updates = (
        build.count_of(data, "count_of_data"),
        build.count_of(updates, "count_of_updates"),
    )
    old = _positions(build, count_data, data, "old_positions")
    new = _positions(build, count_updates, updates, "new_positions", after=count_data)
    places = build.rebuilt(view.scatter, {Role.DATA: old, Role.UPDATES: new}, Reduction.NONE)
    flat = [
        build.reshape(value, [-1], f"{label}_flat", (UNKNOWN_DIM,))
        for value, label in ((data, "data"), (updates, "updates"))
    ]
    both = build.concat(flat, 0, "data_and_updates", (UNKNOWN_DIM,))
    return build.gather(both, places, 0, "elements", data.shape)


def _positions(build: Builder, count: Value, like: Value, label: str, after: Value | None = None) -> Value:
    numbers = build.range(build.reshape(count, [], f"{label}_count"), f"{label}_list")
    if after is not None:
        numbers = build.binary("Add", numbers, after, f"{label}_after")
    numbers = build.convert(numbers, _I32, f"{label}_i32")
    return build.reshape(numbers, build.shape_of(like, f"{label}_shape"), label, like.shape)


def u32_as_i32(view: View, build: Builder, _: OpSpec) -> Value | Refusal:
    """Scatter the bits of u32 as i32, for devices that corrupt large u32 constants.

    A constant is converted by arithmetic in i64, which is folded before the device reads it.
    """
    type = view.data.element_type
    constants = [role for role in (Role.DATA, Role.UPDATES) if _is_constant(view, role)]
    if type is not _U32 or view.reduction is not Reduction.NONE or not constants:
        return _no_form("data is not a constant of u32 that is replaced")
    operands = dict[Role, Value]()
    for role, value, label in ((Role.DATA, view.data, "data"), (Role.UPDATES, view.updates, "updates")):
        if role in constants:
            wide = build.convert(value, I64, f"{label}_i64")
            is_small = build.binary(
                "Less", wide, build.constant(1 << 31, "half_of_values"), f"{label}_is_small"
            )
            wrapped = build.binary(
                "Subtract", wide, build.constant(1 << 32, "count_of_values"), f"{label}_wrapped"
            )
            value = build.select(is_small, wide, wrapped, f"{label}_signed")
        operands[role] = build.convert(value, _I32, f"{label}_i32")
    return build.convert(build.rebuilt(view.scatter, operands, Reduction.NONE), type, "updated_u32")


def _is_constant(view: View, role: Role) -> bool:
    operand = view.scatter.operand(role)
    return operand is not None and view.scatter.is_constant(operand.value)
