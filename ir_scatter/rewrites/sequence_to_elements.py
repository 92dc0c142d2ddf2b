"""A run of new positions in a cache becomes an index for each of its elements.

The index of an element is where the run of its batch begins plus its own position in the run; in
circular mode that wraps around at the length of the cache.
"""

from ir_scatter.core.model import Value
from ir_scatter.ops.scatter_onnx import SCATTER_ELEMENTS, TENSOR_SCATTER_24
from ir_scatter.ops.spec import OpSpec, Role
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.parts import axis_mask, axis_of, positions, size_on_axis
from ir_scatter.rewrites.rewrite import BY_SIGNATURE, Rewrite
from ir_scatter.rewrites.view import View


def _rewrite(view: View, build: Builder, target: OpSpec) -> Value:
    numbers = _positions(view, build)
    if view.site.attribute("mode") == "circular":
        numbers = build.binary("FloorMod", numbers, size_on_axis(build, view), "positions_wrapped")
    indices = build.broadcast(
        numbers, build.shape_of(view.updates, "updates_shape"), "indices", view.updates.shape
    )
    inputs = {Role.DATA: view.data, Role.INDICES: indices, Role.UPDATES: view.updates}
    return build.scatter(target, inputs, {}, axis=view.site.written_axis or 0)


def _positions(view: View, build: Builder) -> Value:
    """Return the position of each new element: [batch, 1, .., length, .., 1], or 1 for batch."""
    axis, shape = view.site.axis, view.updates.shape
    length = None if shape is None or axis is None else shape[axis]
    if isinstance(length, int):
        stop = build.constant(length, "length")
    else:
        dims = build.shape_of(view.updates, "updates_shape")
        stop = build.gather(dims, axis_of(build, view), 0, "length", ())
    run = build.range(stop, "run")
    if axis is None or view.data.shape is None:
        return _of_any_rank(view, build, run)
    rank = len(view.data.shape)
    column = build.unsqueeze(run, [place for place in range(rank) if place != axis], "run_unsqueezed")
    if view.site.indices is None:
        return column
    starts = build.unsqueeze(view.indices, range(1, rank), "starts")
    return build.binary("Add", starts, column, "positions")


def _of_any_rank(view: View, build: Builder, run: Value) -> Value:
    """Return the positions where the rank is only known when the model runs."""
    one, rest = build.constant(1, "one"), build.constant(-1, "rest")
    target = build.select(axis_mask(build, view), rest, one, "run_shape")
    column = build.reshape(run, target, "run_column")
    if view.site.indices is None:
        return column
    is_first = build.binary("Equal", positions(build, view), build.constant(0, "zero"), "is_first")
    starts = build.reshape(view.indices, build.select(is_first, rest, one, "starts_shape"), "starts")
    return build.binary("Add", starts, column, "positions")


REWRITES = tuple(
    Rewrite(
        "sequence-to-elements",
        TENSOR_SCATTER_24,
        target,
        _rewrite,
        carries=frozenset({"axis", "mode"}),
        reads=BY_SIGNATURE,
        conditions="linear and circular, with and without write_indices",
    )
    for target in SCATTER_ELEMENTS
)
