"""Guards: new nodes that make runtime indices legal by clamping or wrapping them, or that drop updates.

    wrap: Select(Less(indices, 0), indices + size, indices)
    clamp: Minimum(Maximum(indices, 0), size - 1), after a wrap if the version counts from the end
    drop: data gets one more row, indices out of range become its position, and the row is cut off again:
        Slice(Scatter(Concat(data, row), Minimum(Select(Less(indices, 0), size, indices), size), updates))

The version of the operator decides which indices are legal, even if runtimes accept more. For "drop", the
extra row is exact for every reduction. Writing a neutral value to a legal row would be wrong: it could
overwrite a legal update of that row, start a reduction without old values there, or propagate NaN in min and
max.

A guard is a rewrite of a node into itself, applied before all other rewrites of the node; it is not a route.
"""

from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING

from ir_scatter.analysis.ranges import bounds_of
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.fragment import Fragment
from ir_scatter.core.model import ONNX, OpKey, Value
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.shapes import UNKNOWN_DIM, Dim, element_count, highest
from ir_scatter.ops import index_values
from ir_scatter.ops.general import find, named
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.lookup import find as find_scatter
from ir_scatter.ops.spec import IndexRange, Layout, OpSpec, Role
from ir_scatter.rewrites.base import Rewrite, View
from ir_scatter.rewrites.builder import I64, WIDE, Builder
from ir_scatter.rewrites.refusals import TYPE_UNKNOWN, Reason, Refusal

if TYPE_CHECKING:
    pass

_NEGATIVE_AXES, _SLICE_OF_INPUTS = 11, 10
"""The ONNX opsets since which an axis of Concat may be negative, and since which the limits of Slice are
inputs.
"""


class Guard(StrEnum):
    """How indices that are not proven to be in range are made legal."""

    CLAMP = "clamp"
    WRAP = "wrap"
    DROP = "drop"


NAMES = {Guard.CLAMP: "indices-clamped", Guard.WRAP: "indices-wrapped", Guard.DROP: "updates-dropped"}
"""The names of the guards in reports."""


@cache
def rewrite_of(guard: Guard, key: OpKey, counts: bool | None = None) -> Rewrite:
    """Return the rewrite that adds a guard to the indices of a node and keeps the operator.

    The version of the operator decides whether negative indices count from the end. `counts` overrides that,
    for a node that was rewritten from another version.
    """
    spec = SPECS[key]
    wraps = counts_from_end(spec) if counts is None else counts

    def build(view: View, build: Builder, _: OpSpec) -> Value | Refusal:
        if 0 in sizes_counted_on(view.scatter):
            message = "indices refer to a dimension of size 0, where no index is in range"
            return Refusal(Reason.NOTHING_IN_RANGE, message)
        if guard is Guard.DROP:
            return _without_dropped(view, build, wraps)
        number = spec.port_index(Role.INDICES)
        assert number is not None
        indices = _clamped(view, build, wraps) if guard is Guard.CLAMP else _wrapped(view, build)
        return build.again(view.scatter.node, {number: indices}, view.data)

    return Rewrite(NAMES[guard], spec, spec, build, carries=None)


def guard_of(rewrite: Rewrite) -> Guard | None:
    """Return the guard that a rewrite adds; None if it adds none."""
    return next((guard for guard in Guard if rewrite.name == NAMES[guard]), None)


def may_exceed_32_bits(scatter: ScatterNode) -> bool:
    """Return whether an index may not fit into 32 bits.

    Some runtimes truncate such an index before the guard's nodes are computed.
    """
    if not has_indices(scatter) or scatter.indices is None:
        return False
    (bounds,) = bounds_of(scatter.facts, scatter.indices.value)
    return not bounds.is_within(-(1 << (WIDE - 1)), (1 << (WIDE - 1)) - 1)


def counts_from_end(spec: OpSpec) -> bool:
    """Return whether the version's specification counts a negative index from the end."""
    return spec.index_range is IndexRange.WRAPPING


def has_indices(scatter: ScatterNode) -> bool:
    """Return whether a node has indices that may be illegal."""
    if scatter.indices is None or element_count(scatter.indices_shape) == 0 or scatter.depth == 0:
        return False
    # In a circular cache any position is taken modulo the length.
    return scatter.spec.layout is not Layout.SEQUENCE or scatter.attribute("mode") == "linear"


def refuse_illegal(scatter: ScatterNode, guard: Guard) -> Refusal | None:
    """Return a refusal if some indices are proven to be illegal; None otherwise.

    Such a constant is often intended to mean "write nothing". Clamping would write its update to another
    position, and wrapping would leave it illegal.
    """
    if guard is Guard.DROP or not has_indices(scatter):
        return None
    assert scatter.indices is not None
    sizes, array = sizes_counted_on(scatter), scatter.index_array
    ranges = [_legal_range(scatter, size, guard) for size in sizes]
    if array is None:
        pairs = zip(bounds_of(scatter.facts, scatter.indices.value, len(sizes)), ranges, strict=True)
        numbers = next((b for b, legal in pairs if legal and (b.low > legal[1] or b.high < legal[0])), None)
        if numbers is None:
            return None
        value = int(numbers.low if numbers.low > 0 else numbers.high)
        message = f"{scatter.indices.port.name} are {'at least' if value > 0 else 'at most'} {value}"
        low, high = next(legal for legal in ranges if legal)
    else:
        if len(sizes) > 1 and (not array.ndim or array.shape[-1] != len(sizes)):
            return None
        bad = index_values.outside(index_values.whole_numbers(array), ranges)
        if bad is None:
            return None
        where = f"{scatter.indices.port.name}{[*bad.position] if bad.position else ''}"
        value, low, high = bad.value, bad.low, bad.high
        message = f"{where} is {value}"
    expected = f"expected {low} to {high} in {scatter.spec.key}"
    if guard is Guard.WRAP:
        ways = f"{Parameter('guard', 'wrap')} would leave it illegal"
    elif -high - 1 <= value < 0:
        ways = f"{Parameter('guard', 'wrap')} counts it from the end"
    else:
        ways = f"{Parameter('guard', 'clamp')} would move its update to another position"
    drop = Parameter("guard", "drop")
    return Refusal(Reason.ILLEGAL_INDICES, f"{message}, {expected}; {ways}, {drop} drops its update")


def _legal_range(scatter: ScatterNode, size: Dim, guard: Guard) -> tuple[int, int] | None:
    """Return the (least, greatest) index of a dimension that a guard leaves unchanged; None if unknown."""
    high = highest(size)
    if high is None:
        return None
    length = high
    if scatter.spec.layout is Layout.SEQUENCE and scatter.data_shape and scatter.axis is not None:
        length = highest(scatter.data_shape[scatter.axis]) or high
    is_from_end = guard is Guard.WRAP or counts_from_end(scatter.spec)
    return -length if is_from_end else 0, high - 1


def sizes_counted_on(scatter: ScatterNode) -> tuple[Dim, ...]:
    """Return the sizes of the dimensions that indices refer to, with unknown ones as UNKNOWN_DIM."""
    shape, axis, depth = scatter.data_shape, scatter.axis, scatter.depth
    if scatter.spec.layout is Layout.TUPLES:
        return (UNKNOWN_DIM,) * (depth or 1) if shape is None or depth is None else shape[:depth]
    if shape is None or axis is None:
        return (UNKNOWN_DIM,)
    if scatter.spec.layout is not Layout.SEQUENCE:
        return (shape[axis],)
    updates = scatter.updates.shape if scatter.updates else None
    length, new = shape[axis], updates[axis] if updates else None
    return (length - new + 1,) if isinstance(length, int) and isinstance(new, int) else (UNKNOWN_DIM,)


def _sizes(view: View, build: Builder) -> Value:
    """Return the sizes of the dimensions that indices refer to, as a value that broadcasts to indices."""
    if view.scatter.spec.layout is not Layout.TUPLES:
        return view.size_on_axis(build)
    # shaped as for elements and slices along axis 0, so that a guard of one kind also serves the other
    if view.depth == 1:
        shape = view.data.shape
        if shape and isinstance(shape[0], int):
            return build.constant(shape[0], "size")
        dims = build.shape_of(view.data, "data_shape")
        return build.gather(dims, build.constant(0, "place"), 0, "size", ())
    return view.tuple_dims(build)


def _wrapped(view: View, build: Builder) -> Value:
    return build.from_front(view.indices, _sizes(view, build), "indices_counted_from_front")


def _clamped(view: View, build: Builder, wraps: bool) -> Value:
    """Return indices clamped to 0 .. size - 1, with `wraps` after counting negative ones from the end.

    The result has no negative indices, because not every device accepts them.
    """
    sizes = _sizes(view, build)
    last = build.binary("Subtract", sizes, build.constant(1, "one"), "last_index")
    if view.scatter.spec.layout is Layout.SEQUENCE:  # a whole run of positions must fit
        last = build.binary("Subtract", sizes, view.size_on_axis(build, view.updates, "length"), "last_start")
    indices, type = view.indices, view.indices.element_type
    # i64 would turn large values negative
    if type is not None and type.kind == "unsigned" and type.bits > WIDE:
        indices = _extreme(
            build, "Minimum", indices, build.in_type(last, type, "last_index"), "indices_limited"
        )
    if type is None or type.bits < WIDE or type.kind == "unsigned":
        # Some runtimes treat wide unsigned numbers as signed: limit them on both sides.
        indices, type = build.convert(indices, I64, "indices_i64"), I64
    if wraps and not _is_unsigned(view.indices):
        indices = build.from_front(indices, sizes, "indices_counted_from_front")
    if not _is_unsigned(view.indices) or (view.indices.element_type or type).bits >= WIDE:
        indices = _extreme(build, "Maximum", indices, build.constant(0, "zero", type), "indices_from_0")
    return _extreme(build, "Minimum", indices, build.in_type(last, type, "last_index"), "indices_in_range")


def _is_unsigned(value: Value) -> bool:
    return value.element_type is not None and value.element_type.kind == "unsigned"


def _without_dropped(view: View, build: Builder, wraps: bool) -> Value | Refusal:
    """Return the node's result without the updates whose indices are out of range."""
    scatter, data = view.scatter, view.data
    is_sequence, is_tuples = (scatter.spec.layout is layout for layout in (Layout.SEQUENCE, Layout.TUPLES))
    axis = 0 if is_tuples else scatter.axis if scatter.axis is not None else scatter.written_axis
    problem = _no_extra_row(view, build, axis)
    if problem is not None:
        return problem
    assert axis is not None
    assert data.element_type is not None
    count = view.size_on_axis(build, view.updates, "length") if is_sequence else build.constant(1, "one")
    dims, positions = build.shape_of(data, "data_shape"), view.positions(build)
    is_axis = build.is_first(positions) if is_tuples else view.axis_mask(build)
    extra, whole = None, None
    if data.shape is not None:
        added = 1 if not is_sequence else view.updates.shape[axis] if view.updates.shape else UNKNOWN_DIM
        old = data.shape[axis]
        total = old + added if isinstance(old, int) and isinstance(added, int) else UNKNOWN_DIM
        extra, whole = [(*data.shape[:axis], dim, *data.shape[axis + 1 :]) for dim in (added, total)]
    row_dims = build.select(is_axis, count, dims, "extra_row_shape")
    filling = build.constant(1, "filling", data.element_type)
    row = build.broadcast(filling, row_dims, "extra_row", extra)
    data = build.concat([data, row], axis, "data_extended", whole)
    number, of_data = scatter.spec.port_index(Role.INDICES), scatter.spec.port_index(Role.DATA)
    assert number is not None
    assert of_data is not None
    inputs = {number: _with_dropped_last(view, build, wraps), of_data: data}
    updated = build.again(scatter.node, inputs, data, "updated")
    if is_sequence:
        end = build.reshape(
            build.binary("Subtract", build.constant(0, "zero"), count, "end"), [1], "end_list"
        )
    else:
        end = build.constant([-1], "end")
    return build.slice(
        updated, build.constant([0], "begin"), end, [axis], "without_extra_row", view.data.shape
    )


def _no_extra_row(view: View, build: Builder, axis: int | None) -> Refusal | None:
    """Return a refusal if data cannot get another row; None if it can."""
    type, message = view.data.element_type, ""
    if type is None:
        return TYPE_UNKNOWN
    if view.scatter.spec.layout is Layout.TUPLES and not view.depth:
        message = "the number of coordinates of a tuple is unknown"
    elif axis is None:
        message = "the axis is known only when the model runs"
    elif build.domain == ONNX and build.opset is not None and build.opset < _SLICE_OF_INPUTS:
        message = f"opset {build.opset} has no Slice with inputs; move to opset {_SLICE_OF_INPUTS} before"
    elif build.domain == ONNX and build.opset is not None and axis < 0 and build.opset < _NEGATIVE_AXES:
        message = "the rank of data is known only when the model runs"
    elif type.kind not in _EXTENDED:
        message = f"data of {type.name} cannot be extended"
    return Refusal(Reason.NO_FORM, f"no row can be added for dropped updates: {message}") if message else None


_EXTENDED = frozenset({"signed", "unsigned", "float", "boolean", "complex"})


def _with_dropped_last(view: View, build: Builder, wraps: bool) -> Value:
    """Return indices in which those out of range are replaced by the position of the extra row."""
    sizes = _sizes(view, build)
    indices, type = view.indices, view.indices.element_type
    if type is None or type.bits < WIDE or type.kind == "unsigned":
        indices, type = build.convert(indices, I64, "indices_i64"), I64
    if wraps and not _is_unsigned(view.indices):
        indices = build.from_front(indices, sizes, "indices_counted_from_front")
    behind = build.in_type(sizes, type, "sizes")
    zero = build.constant(0, "zero", type)
    is_below = build.binary("Less", indices, zero, "is_below")
    indices = build.select(is_below, behind, indices, "indices_from_0")
    if view.scatter.spec.layout is Layout.SEQUENCE:  # a whole run of positions must fit
        length = view.size_on_axis(build, view.updates, "length")
        last = build.in_type(build.binary("Subtract", sizes, length, "last_start"), type, "last_start")
        return build.select(
            build.binary("Less", last, indices, "is_above"), behind, indices, "indices_or_extra"
        )
    indices = _extreme(build, "Minimum", indices, behind, "indices_or_extra")
    depth = view.depth
    if view.scatter.spec.layout is not Layout.TUPLES or depth == 1:
        return indices
    assert depth is not None
    is_out = build.convert(build.binary("Equal", indices, behind, "is_out"), I64, "is_out_i64")
    count = build.reduce("ReduceSum", is_out, -1, "count_out", keeps=True)
    is_legal = build.binary("Less", count, build.constant(1, "one"), "is_legal")
    is_first = build.is_first(build.constant(range(depth), "places"))
    extra = build.select(is_first, behind, zero, "extra_place")
    last = build.in_type(
        build.binary("Subtract", sizes, build.constant(1, "one"), "last_index"), type, "last_index"
    )
    in_range = _extreme(
        build, "Minimum", indices, last, "indices_in_range"
    )  # changes nothing, but proves the bounds to later analyses
    return build.select(is_legal, in_range, extra, "tuples_or_extra")


def _extreme(build: Builder, operation: str, indices: Value, end: Value, label: str) -> Value:
    assert indices.element_type is not None
    if named(operation).takes(build.domain, indices.element_type, build.opset):
        return build.binary(operation, indices, end, label)
    pair = (indices, end) if operation == "Minimum" else (end, indices)
    return build.select(build.binary("Less", *pair, f"{label}_is_less"), indices, end, label)


# Before or after another rewrite


def is_counted_after(scatter: ScatterNode, fragment: Fragment) -> bool | None:
    """Return whether a guard placed after a rewrite counts negative indices from the end.

    None if the guard must stay before the rewrite: it may follow only if the rewrite merely moves indices,
    and reads no data with them. False if the rewrite already makes negative indices non-negative.
    """
    number = scatter.spec.port_index(Role.INDICES)
    if number is None or scatter.spec.layout is Layout.SEQUENCE:
        return None
    moved, counts = {id(fragment.given[number])}, counts_from_end(scatter.spec)
    for new in fragment.news:
        uses = [place for place, value in enumerate(new.inputs) if id(value) in moved]
        op = find(new.domain, new.type)
        if not uses or (op is not None and op.reads_shapes_only):
            continue
        if op is None:
            if find_scatter(new.domain, new.type, new.opset) is None:
                return None
            continue
        if op in (named("Less"), named("Add"), named("Select")):
            if op is named("Less") and not counts_from_end(scatter.spec):
                return None  # the rewrite makes indices legal that this version forbids
            counts = counts and op is not named("Less")
        elif not (op.moves is None or (op.moves == (0,) and uses == [0])):
            return None
        moved.add(id(new.output))
    return counts
