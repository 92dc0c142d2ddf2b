"""Rewrites TensorScatter as ScatterElements: each new element in a cache gets its own index.

The index of an element is the write index of its batch plus its own position in the update. In circular mode
it wraps around at the length of the cache:

    linear, updates of length 2:                    write_indices [2, 1]  ->  [[2, 3], [1, 2]]
    circular, updates of length 2, cache of 4:      write_indices [3, 1]  ->  [[3, 0], [1, 2]]
"""

from ir_scatter.core.model import Value
from ir_scatter.ops import scatter_onnx as onnx_ops
from ir_scatter.ops.spec import OpSpec
from ir_scatter.rewrites.base import View, between
from ir_scatter.rewrites.builder import Builder


def _to_elements(view: View, build: Builder, target: OpSpec) -> Value:
    # The position of each new element: [batch, 1, .., length, .., 1], or 1 for batch.
    axis, shape = view.scatter.axis, view.updates.shape
    dims = build.shape_of(view.updates, "updates_shape")
    length = None if shape is None or axis is None else shape[axis]
    if isinstance(length, int):
        stop = build.constant(length, "length")
    else:
        stop = build.gather(dims, view.axis_value(build), 0, "length", ())
    run, rank = build.range(stop, "run"), None if view.data.shape is None else len(view.data.shape)
    if axis is None or rank is None:
        numbers = build.along(view.axis_mask(build), run, "run_column")
    else:
        numbers = build.unsqueeze(run, [place for place in range(rank) if place != axis], "run_unsqueezed")
    if view.scatter.indices is not None:
        if axis is None or rank is None:
            starts = build.along(build.is_first(view.positions(build)), view.indices, "starts")
        else:
            starts = build.unsqueeze(view.indices, range(1, rank), "starts")
        numbers = build.binary("Add", starts, numbers, "positions")
    if view.scatter.attribute("mode") == "circular":
        numbers = build.binary("FloorMod", numbers, view.size_on_axis(build), "positions_wrapped")
    indices = build.repeated_indices(numbers, view.updates, "indices", view.updates.shape)
    return build.scatter(target, view.data, indices, view.updates, axis=view.given_axis)


REWRITES = between(
    "sequence-to-elements",
    [(onnx_ops.TENSOR_SCATTER, onnx_ops.SCATTER_ELEMENTS)],
    _to_elements,
    carries=frozenset({"axis", "mode"}),
    conditions="linear and circular, with and without write_indices",
)
