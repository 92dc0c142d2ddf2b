"""Rewrites of ScatterND(Update): to elements, to slices, or to another version.

Each tuple becomes one index on axis 0. A tuple of one coordinate is the index itself. Otherwise the indexed
dimensions of data are joined into one, and the result is reshaped to the shape of data:

    data [3, 4, 5], indices [[2, 1]]   ->   data [12, 5], indices [9], as 2 * 4 + 1 = 9

tuples-to-elements: Each index is broadcast over its slice. Reduction sub becomes sum of negated updates.
Types without negative values are converted to wider ones for that, and the result wraps around (for booleans,
the parity).

tuples-to-slices: Each index selects a slice on axis 0.

tuples-versions: A reduction that a version lacks is computed before the node, if no two tuples are equal.
"""

from dataclasses import dataclass
from math import prod

from ir_scatter.analysis.conditions import Condition
from ir_scatter.core.model import Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Dim, Shape, lowest, static
from ir_scatter.ops import scatter_onnx as onnx_ops
from ir_scatter.ops import scatter_openvino as openvino_ops
from ir_scatter.ops.spec import Layout, OpSpec, Reduction
from ir_scatter.rewrites.base import View, between
from ir_scatter.rewrites.builder import BOOLEAN, I64, LAST, Builder, array_of
from ir_scatter.rewrites.reductions import CARRIED, has, joined, needs_unique, saturates, wrap_to_type
from ir_scatter.rewrites.refusals import TYPE_UNKNOWN, Reason, Refusal

_WIDE = 32
"""Minimum bits of unsigned types in which runtimes correctly wrap negative numbers around."""


@dataclass(frozen=True, slots=True, eq=False)
class _Linear:
    """Data, indices and updates of a node after its tuples were replaced by single indices on axis 0."""

    data: Value  # shape [product of the indexed dimensions, other dimensions...]
    indices: Value  # shape [count]
    updates: Value  # shape [count, other dimensions...]
    column: Value | None  # the indices as [count, 1], if the node already has them in that shape


def _to_one_index(view: View, build: Builder, target: OpSpec) -> Value | Refusal:
    if view.writes_nothing and view.data.shape:
        return _writing_nothing(view, build, target, view.data.shape)
    parts = _linear(view, build, target)
    indices = parts.indices
    if target.layout is Layout.ELEMENTS:
        indices = build.fitting_indices(_repeated(build, parts), target)
    make = _difference if _is_difference(view, target) else _reduced
    result = make(view, build, target, parts, indices)
    if isinstance(result, Refusal) or view.depth == 1:
        return result
    return build.reshape(result, build.shape_of(view.data, "data_shape"), "data_restored", view.data.shape)


def _writing_nothing(view: View, build: Builder, target: OpSpec, shape: tuple[Dim, ...]) -> Value:
    """Return a new node on axis 0 that writes nothing.

    Off the axis, its indices are not longer than data.
    """
    if target.layout is Layout.ELEMENTS:
        short = [0, *(min(lowest(dim), 1) for dim in shape[1:])]
        indices, updates = view.without_elements(build, short)
    else:
        slice_sizes = static(shape[1:])
        whole: Value | list[int] = [0, *(slice_sizes or ())]
        if slice_sizes is None:
            rest = build.slice(
                build.shape_of(view.data, "data_shape"), build.constant([1], "one"),
                build.constant([LAST], "end"), [0], "other_dims", (len(shape) - 1,),
            )  # fmt: skip
            whole = build.concat([build.constant([0], "no_row"), rest], 0, "updates_shape", (len(shape),))
        indices, updates = view.without_elements(build, whole)
        indices = build.reshape(indices, [0], "indices_flat")
    return build.scatter(target, view.data, build.fitting_indices(indices, target), updates)


def _to_version(view: View, build: Builder, target: OpSpec) -> Value | Refusal:
    updates, reduction, indices = view.updates, view.reduction, view.indices
    if view.writes_nothing:
        return build.scatter(target, view.data, indices, updates)
    if not has(target, reduction):
        joined_values = joined_updates(view, build)
        if isinstance(joined_values, Refusal):
            return joined_values
        updates, reduction = joined_values, Reduction.NONE
    if view.must_be_non_negative(target) and view.scatter.depth != 0:
        indices = build.from_front(indices, view.tuple_dims(build))
    return build.scatter(target, view.data, indices, updates, reduction)


def _repeated(build: Builder, parts: _Linear) -> Value:
    """Broadcast every index over its slice."""
    shape = parts.updates.shape
    if shape is not None and len(shape) == 1:
        return parts.indices
    dims = build.shape_of(parts.updates, "updates_shape")
    if shape is not None:
        column = parts.indices if parts.column is None else parts.column
        rank_of_column = 1 if parts.column is None else 2
        column = build.unsqueeze(column, range(rank_of_column, len(shape)), "indices_column")
        return build.repeated_indices(column, parts.updates, "indices_repeated", shape)
    places = build.range(build.reshape(build.shape_of(dims, "rank"), [], "rank_scalar"), "places")
    column = build.along(build.is_first(places), parts.indices, "indices_column")
    return build.broadcast(column, dims, "indices_repeated")


def _is_difference(view: View, target: OpSpec) -> bool:
    """Return whether reduction sub must become a sum of negated updates, maybe in a wider signed type."""
    if view.reduction is not Reduction.SUB or has(target, Reduction.SUB) or not has(target, Reduction.SUM):
        return False
    type = view.data.element_type
    return type is None or type.kind != "unsigned" or type.bits < I64.bits


def _difference(
    view: View, build: Builder, target: OpSpec, parts: _Linear, indices: Value
) -> Value | Refusal:
    type, data, updates = view.data.element_type, parts.data, parts.updates
    if type is None:
        return TYPE_UNKNOWN
    if type.kind not in {"float", "signed", "boolean", "unsigned"}:
        return Refusal(Reason.NO_SUCH_REDUCTION, f"reduction sub of {type.name} cannot be written as a sum")
    is_wrapped = type.kind == "boolean" or saturates(build, type)
    is_wrapped = is_wrapped or (type.kind == "unsigned" and type.bits < _WIDE)
    if is_wrapped:
        data, updates = build.convert(data, I64, "data_i64"), build.convert(updates, I64, "updates_i64")
    # unsigned types have no negation, and OpenVINO's CPU plugin saturates i64 to i32
    if type.kind == "unsigned" and not is_wrapped:
        negated = build.binary("Subtract", build.constant(0, "zero", type), updates, "updates_negated")
    else:
        negated = build.make("Negative", [updates], updates.shape, "updates_negated")
    sums = build.scatter(target, data, indices, negated, Reduction.SUM)
    if not is_wrapped:
        return sums
    if type.kind != "boolean":
        return wrap_to_type(build, sums, type, "difference")
    parity = build.binary("FloorMod", sums, build.constant(2, "count_of_values"), "difference_wrapped")
    return build.convert(parity, type, f"difference_{type.name}")


def _reduced(view: View, build: Builder, target: OpSpec, parts: _Linear, indices: Value) -> Value | Refusal:
    """Return the new scatter node; if its version lacks the reduction, this is computed before it."""
    if has(target, view.reduction):
        return build.scatter(target, parts.data, indices, parts.updates, view.reduction)
    updates = joined_updates(view, build)
    if isinstance(updates, Refusal):
        return updates
    if parts.updates is not view.updates:
        dims = build.shape_of(parts.updates, "updates_shape")
        updates = build.reshape(updates, dims, "joined_reshaped", parts.updates.shape)
    return build.scatter(target, parts.data, indices, updates)


def joined_updates(view: View, build: Builder) -> Value | Refusal:
    """Return updates reduced with the old values at their targets; index tuples must be unique."""
    if view.writes_nothing:
        return view.updates
    indices, shape = view.indices, view.updates.shape
    if view.depth == 0:  # tuples of no coordinates select all of data
        dims = build.shape_of(view.updates, "updates_shape")
        return joined(view, build, build.broadcast(view.data, dims, "old_values", shape), view.updates)
    if view.depth is None:  # runtimes accept no GatherND of dynamic rank
        numbers = _numbers(view, build)
        old = build.gather(_front_joined(view, build), numbers, 0, "old_slices", (UNKNOWN_DIM,) * 2)
        dims = build.shape_of(view.updates, "updates_shape")
        return joined(view, build, build.reshape(old, dims, "old_values", shape), view.updates)
    if not isinstance((indices.shape or (None,))[-1], int):
        leading, depth = _leading_dims(view, build), build.constant([view.depth], "depth")
        tuples_shape = None if indices.shape is None else (*indices.shape[:-1], view.depth)
        full = None if tuples_shape is None else (len(tuples_shape),)
        dims = build.concat([leading, depth], 0, "tuples_shape", full)
        indices = build.reshape(indices, dims, "tuples", tuples_shape)
    if view.counts_from_end(build):
        indices = build.from_front(indices, view.tuple_dims(build), "places")
    # Not the shape of updates: a port stores what its own inputs make.
    places, sizes = indices.shape, view.data.shape
    shape = None if places is None or sizes is None else (*places[:-1], *sizes[view.depth :])
    old = build.make("GatherND", [view.data, indices], shape, "old_values")
    return joined(view, build, old, view.updates)


def _leading_dims(view: View, build: Builder) -> Value:
    """Return the dimensions of indices, without the last one (the length of a tuple)."""
    dims, shape = build.shape_of(view.indices, "indices_shape"), view.indices.shape
    begin, end = build.constant([0], "begin"), build.constant([-1], "last")
    rank = UNKNOWN_DIM if shape is None else len(shape) - 1
    return build.slice(dims, begin, end, [0], "leading_dims", (rank,))


def _linear(view: View, build: Builder, target: OpSpec) -> _Linear:
    """Replace every tuple by one index into data with the indexed dimensions joined."""
    depth, data, updates, column = view.depth, view.data, view.updates, None
    shape = data.shape
    dims = build.shape_of(data, "data_shape")
    if depth == 1:
        indices = view.indices
        if view.must_be_non_negative(target):
            if shape is not None and isinstance(shape[0], int):
                size = build.constant(shape[0], "size")
            else:
                size = build.gather(dims, build.constant(0, "place"), 0, "size", ())
            indices = build.from_front(indices, size)
        flat = build.reshape(indices, [-1], "indices_flat", (UNKNOWN_DIM,))
        column = indices if indices.shape is not None and len(indices.shape) == 2 else None
    else:
        flat, data = _numbers(view, build), _front_joined(view, build)
    count = flat.shape[0] if flat.shape else UNKNOWN_DIM
    updates_shape: Shape = (count, UNKNOWN_DIM)
    if depth is not None:
        updates_shape = None if shape is None else (count, *shape[depth:])
    index_shape, own_shape = view.indices.shape, updates.shape
    is_one_list = index_shape is not None and len(index_shape) == 2
    if not (
        is_one_list
        and own_shape is not None
        and updates_shape is not None
        and len(own_shape) == len(updates_shape)
    ):
        slice_dims = _slice_dims(view, build)
        sizes = array_of(slice_dims)
        if sizes is not None and sizes.all():  # next to a 0, a -1 would be ambiguous
            updates = build.reshape(updates, [-1, *sizes.tolist()], "updates_reshaped", updates_shape)
        else:
            rank = None if updates_shape is None else (len(updates_shape),)
            new = build.concat([build.count_of(flat, "count"), slice_dims], 0, "updates_shape", rank)
            updates = build.reshape(updates, new, "updates_reshaped", updates_shape)
    if depth == 0 and view.reduction is Reduction.NONE and isinstance(count, int) and count > 1:
        # Several empty tuples select all of data: the order is unspecified, so keep the last update.
        begin, end = build.constant([count - 1], "last_begin"), build.constant([count], "last_end")
        last = None if updates.shape is None else (1, *updates.shape[1:])
        flat = build.constant([0], "indices_flat")
        updates = build.slice(updates, begin, end, [0], "last_update", last)
    return _Linear(data, flat, updates, column)


def _slice_dims(view: View, build: Builder) -> Value:
    """Return the dimensions of a slice; joined into one if their number is unknown."""
    dims = view.tuple_dims(build, are_front=False)
    if view.depth is not None:
        return dims
    dims = build.concat([build.constant([1], "one_column"), dims], 0, "one_and_others", (UNKNOWN_DIM,))
    return build.reduce("ReduceProd", dims, 0, "slice_size", keeps=True)


def _front_joined(view: View, build: Builder) -> Value:
    """Return data with the indexed dimensions joined into one: [3, 4, 5] -> [12, 5] for tuples of two."""
    depth, shape = view.depth, view.data.shape
    joined_shape: Shape = (UNKNOWN_DIM,) * 2 if depth is None else None
    if depth is not None and shape is not None:
        first = static(shape[:depth])
        joined_shape = (UNKNOWN_DIM if first is None else prod(first), *shape[depth:])
    slice_dims = _slice_dims(view, build)
    numbers = array_of(slice_dims)
    if numbers is not None and numbers.all():
        return build.reshape(view.data, [-1, *numbers.tolist()], "data_joined", joined_shape)
    front = build.reduce("ReduceProd", view.tuple_dims(build), 0, "front_size", keeps=True)
    rank = None if joined_shape is None else (len(joined_shape),)
    target = build.concat([front, slice_dims], 0, "data_joined_shape", rank)
    return build.reshape(view.data, target, "data_joined", joined_shape)


def _numbers(view: View, build: Builder) -> Value:
    """Return one row-major index for each tuple: (2, 1) in [3, 4] -> 2 * 4 + 1 = 9."""
    indices, depth, shape = build.convert(view.indices, I64, "indices_i64"), view.depth, view.indices.shape
    if depth == 0:  # each tuple selects all of data, which is position 0
        leading = static(None if shape is None else shape[:-1])
        if leading is not None:
            count = build.constant([prod(leading)], "count")
        else:
            count = build.reduce("ReduceProd", _leading_dims(view, build), 0, "count", keeps=True)
        return build.broadcast(build.constant(0, "zero"), count, "indices_flat", (UNKNOWN_DIM,))
    counted = view.tuple_dims(build)
    if view.may_be_negative:
        indices = build.from_front(indices, counted)
    if depth is None:
        places = build.range(build.reshape(build.shape_of(counted, "depth"), [], "depth_scalar"), "places")
        rows = build.reshape(places, [-1, 1], "places_column", (UNKNOWN_DIM, 1))
        is_behind = build.binary("Less", rows, places, "is_behind")
    else:
        table = [[row < column for column in range(depth)] for row in range(depth)]
        is_behind = build.constant(table, "is_behind", BOOLEAN)
    behind = build.select(is_behind, counted, build.constant(1, "one"), "dims_behind")
    strides = build.reduce("ReduceProd", behind, 1, "strides")
    scaled = build.binary("Multiply", indices, strides, "coordinates_scaled")
    numbers = build.reduce("ReduceSum", scaled, -1, "indices_joined")
    return build.reshape(numbers, [-1], "indices_flat", (UNKNOWN_DIM,))


def _requires_unique(view: View, target: OpSpec) -> tuple[Condition, ...]:
    return () if _is_difference(view, target) else needs_unique(view, target)


REWRITES = (
    *between(
        "tuples-to-elements",
        [
            (openvino_ops.SCATTER_ND_UPDATE, openvino_ops.SCATTER_ELEMENTS_UPDATE),
            (onnx_ops.SCATTER_ND, onnx_ops.SCATTER_ELEMENTS),
        ],
        _to_one_index,
        carries=CARRIED,
        requires=_requires_unique,
        conditions="any number of coordinates; sub becomes the sum of negated updates; "
        "other reductions that the target lacks require unique indices",
    ),
    *between(
        "tuples-to-slices",
        [(openvino_ops.SCATTER_ND_UPDATE, openvino_ops.SCATTER_UPDATE)],
        _to_one_index,
        carries=CARRIED,
        requires=needs_unique,
        conditions="any number of coordinates; a reduction requires unique indices",
    ),
    *between(
        "tuples-versions",
        [
            (openvino_ops.SCATTER_ND_UPDATE, openvino_ops.SCATTER_ND_UPDATE),
            (onnx_ops.SCATTER_ND, onnx_ops.SCATTER_ND),
        ],
        _to_version,
        carries=CARRIED,
        requires=needs_unique,
        conditions="a reduction that the target lacks requires unique indices",
    ),
)
