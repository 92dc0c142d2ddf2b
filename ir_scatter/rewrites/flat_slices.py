"""Slices with one list of indices, whatever the rank of the indices was."""

from ir_scatter.core.model import Value
from ir_scatter.core.shapes import UNKNOWN_DIM, element_count
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.parts import axis_mask, count_of, shape_with
from ir_scatter.rewrites.view import View


def flat_indices(view: View, build: Builder) -> Value:
    """Return the indices as one list."""
    return build.reshape(view.indices, [-1], "indices_flat")


def flat_updates(view: View, build: Builder) -> Value:
    """Return updates with one dimension, on the axis, in the place of those of indices."""
    shape = view.indices.shape
    if shape is not None and len(shape) == 1:
        return view.updates
    axis, updates = view.site.axis, view.updates
    if shape == () and axis is not None:
        return build.unsqueeze(updates, [axis], "updates_unsqueezed")
    length, dims = (
        count_of(build, flat_indices(view, build), "count"),
        build.shape_of(view.data, "data_shape"),
    )
    target = build.select(axis_mask(build, view), length, dims, "updates_flat_shape")
    count = element_count(shape)
    known = shape_with(view.data.shape, axis, UNKNOWN_DIM if count is None else count)
    return build.reshape(updates, target, "updates_flat", known)
