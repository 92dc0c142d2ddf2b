"""Rewrites of ScatterElements(Update): to slices, to tuples, or to another version.

elements-to-slices: Indices that are equal along every other axis select whole slices, which is faster. They
become the list of their values along the axis; updates already have the shape of the slices.

    indices [[2, 2], [0, 0]] on axis 0   ->   [2, 0]

elements-to-tuples: Every element gets all its coordinates: its own position, with its index as the coordinate
on the axis. If old values take no part in the reduction, its neutral element is written first, and then the
updates are reduced into that. A mean becomes a sum divided by a count.

    indices [[2, 2], [0, 0]] on axis 0   ->   [[[2, 0], [2, 1]], [[0, 0], [0, 1]]]

elements-versions: The deprecated predecessor becomes its successor. A reduction that a version lacks is
computed before the node, if no two updates have the same target.
"""

from ir_scatter.analysis.conditions import Condition
from ir_scatter.core.model import Value
from ir_scatter.core.shapes import UNKNOWN_DIM
from ir_scatter.ops import scatter_onnx as onnx_ops
from ir_scatter.ops import scatter_openvino as openvino_ops
from ir_scatter.ops.spec import OpSpec, Reduction
from ir_scatter.rewrites.base import View, between
from ir_scatter.rewrites.builder import LAST, Builder
from ir_scatter.rewrites.reductions import (
    CARRIED,
    clear_targets,
    counted_mean,
    has,
    joined,
    needs_unique,
    neutral,
    summing_type,
    supports_reduction,
)
from ir_scatter.rewrites.refusals import Reason, Refusal


def _to_slices(view: View, build: Builder, target: OpSpec) -> Value | Refusal:
    indices, axis = view.indices.shape or (), view.scatter.axis
    for place, dim in enumerate(indices):
        if dim == 0 and place != axis and axis is not None:
            message = f"indices have no position on axis {place}, so there is no list of indices to read"
            return Refusal(Reason.NO_FORM, message)
    updates = _joined(view, build, are_slices=True)
    if isinstance(updates, Refusal):
        return updates
    index_list = _one_list(view, build)
    if view.must_be_non_negative(target):
        index_list = build.from_front(index_list, view.size_on_axis(build))
    return build.scatter(target, view.data, index_list, updates, axis=view.given_axis)


def _one_list(view: View, build: Builder) -> Value:
    """Return the list of indices along the axis, read at position 0 of all other axes."""
    indices, axis, shape = view.indices, view.scatter.axis, view.indices.shape
    if shape is not None and axis is not None:
        other_axes = [place for place in range(len(shape)) if place != axis]
        if not other_axes:
            return indices
        if any(shape[place] != 1 for place in other_axes):
            begin = build.constant([0] * len(other_axes), "begin")
            end = build.constant([1] * len(other_axes), "end")
            cut_shape = tuple(dim if place == axis else 1 for place, dim in enumerate(shape))
            indices = build.slice(indices, begin, end, other_axes, "indices_cut", cut_shape)
        return build.reshape(indices, [-1], "indices_list", (shape[axis],))
    # With a dynamic axis: gather every stride-th element of the flattened indices, beginning with the first.
    place, dims = view.axis_value(build), build.shape_of(indices, "indices_shape")
    count = build.gather(dims, place, 0, "count", ())
    after = build.binary("Add", place, build.constant(1, "one"), "next_axis")
    after = build.reshape(after, [1], "after_axis")
    behind = build.slice(dims, after, build.constant([LAST], "end"), [0], "dims_behind", (UNKNOWN_DIM,))
    step = build.reduce("ReduceProd", behind, 0, "step")
    places = build.binary("Multiply", build.range(count, "run"), step, "places")
    flat = build.reshape(indices, [-1], "indices_flat", (UNKNOWN_DIM,))
    return build.gather(flat, places, 0, "indices_list", (UNKNOWN_DIM,))


def _to_tuples(view: View, build: Builder, target: OpSpec) -> Value | Refusal:
    if view.writes_nothing:
        return build.scatter(target, view.data, *view.coordinates(build, view.indices))
    has_word, is_counted = has(target, view.reduction), _is_counted(view, target)
    if not has_word and not is_counted and view.keeps_initial:  # targets are unique: reduce before the node
        tuples, updates = view.coordinates(build, _places(view, build))
        old = build.make("GatherND", [view.data, tuples], updates.shape, "old_values")
        joined_values = joined(view, build, old, updates)
        return (
            joined_values
            if isinstance(joined_values, Refusal)
            else build.scatter(target, view.data, tuples, joined_values)
        )
    data, tuples, updates = view.data, *view.coordinates(build, view.element_indices(build, target))
    if not has_word:
        if is_counted:
            return counted_mean(view, build, target, tuples, updates)
        return build.scatter(target, data, tuples, updates)
    if not view.keeps_initial:
        start = neutral(view, build)
        if isinstance(start, Refusal):
            return start
        data = clear_targets(view, build, target, (data, tuples, updates), start, "start_values")
    return build.scatter(target, data, tuples, updates, view.reduction)


def _is_counted(view: View, target: OpSpec) -> bool:
    if view.reduction is not Reduction.MEAN or not has(target, Reduction.SUM):
        return False
    type = view.data.element_type
    return type is None or summing_type(type) is not None


def _to_version(view: View, build: Builder, target: OpSpec) -> Value | Refusal:
    updates, reduction = view.updates, view.reduction
    if not supports_reduction(view, target):
        joined_values = _joined(view, build, are_slices=False)
        if isinstance(joined_values, Refusal):
            return joined_values
        updates, reduction = joined_values, Reduction.NONE
    indices, keeps = view.element_indices(build, target), view.keeps_initial or reduction is Reduction.NONE
    axis = view.given_axis
    return build.scatter(target, view.data, indices, updates, reduction, keeps_initial=keeps, axis=axis)


def _joined(view: View, build: Builder, *, are_slices: bool) -> Value | Refusal:
    """Return updates reduced with the old values at their targets; without a reduction, updates unchanged.

    Targets must be unique. If indices may be shorter than data off the axis, old values are read with
    GatherND: OpenVINO removes the slice before a `GatherElements` and then refuses its shapes.
    """
    if view.reduction is Reduction.NONE or not view.keeps_initial or view.writes_nothing:
        return view.updates
    axis, places = view.scatter.axis, _places(view, build)
    shorter = [] if are_slices or axis is None else _shorter(view, axis)
    if axis is not None and not shorter:
        wide = build.fitting_indices(places)
        old = build.make("GatherElements", [view.data, wide], wide.shape, "old_values", axis=axis)
        return joined(view, build, old, view.updates)
    tuples, new = view.coordinates(build, places)
    shape = None if tuples.shape is None else tuples.shape[:-1]
    old = build.make("GatherND", [view.data, tuples], shape, "old_values")
    if new is not view.updates:
        dims = build.shape_of(view.updates, "updates_shape")
        old = build.reshape(old, dims, "old_values_reshaped", view.updates.shape)
    return joined(view, build, old, view.updates)


def joined_updates(view: View, build: Builder) -> Value | Refusal:
    return _joined(view, build, are_slices=False)


def _places(view: View, build: Builder) -> Value:
    """Return indices for reading old values: made non-negative if Gather requires that."""
    if not view.counts_from_end(build):
        return view.indices
    return build.from_front(view.indices, view.size_on_axis(build), "places")


def _shorter(view: View, axis: int) -> list[int]:
    """Return the axes, other than `axis`, along which indices may be shorter than data."""
    data, indices = view.data.shape, view.indices.shape
    other_axes = [place for place in range(len(data or indices or ())) if place != axis]
    if data is None or indices is None:
        return other_axes
    return [
        place for place in other_axes if not (isinstance(data[place], int) and data[place] == indices[place])
    ]


REWRITES = (
    *between(
        "elements-to-slices",
        [(openvino_ops.SCATTER_ELEMENTS_UPDATE, openvino_ops.SCATTER_UPDATE)],
        _to_slices,
        carries=CARRIED,
        requires=lambda view, target: (Condition.EQUAL, Condition.FULL, *needs_unique(view, target)),
        conditions="indices equal along the other axes and as long as data there; "
        "a reduction requires unique indices",
    ),
    *between(
        "elements-to-tuples",
        [
            (openvino_ops.SCATTER_ELEMENTS_UPDATE, openvino_ops.SCATTER_ND_UPDATE),
            (onnx_ops.SCATTER_ELEMENTS, onnx_ops.SCATTER_ND),
        ],
        _to_tuples,
        carries=CARRIED | {"axis"},
        requires=lambda view, target: () if _is_counted(view, target) else needs_unique(view, target),
        conditions="any axis and shape; mean becomes a sum and a count; "
        "other reductions that the target lacks require unique indices",
    ),
    *between(
        "elements-versions",
        [
            (openvino_ops.SCATTER_ELEMENTS_UPDATE, openvino_ops.SCATTER_ELEMENTS_UPDATE),
            (onnx_ops.SCATTERS, onnx_ops.SCATTER_ELEMENTS),
            (onnx_ops.SCATTER_ELEMENTS, onnx_ops.SCATTER_ELEMENTS),
        ],
        _to_version,
        carries=CARRIED | {"axis"},
        requires=lambda view, target: () if supports_reduction(view, target) else (Condition.UNIQUE,),
        conditions="a reduction that the target lacks requires unique indices",
    ),
)
