"""Tuples become one index each, which names a slice on axis 0.

The dimensions that tuples count on are joined into one; with one coordinate that is data as it is.
"""

from ir_scatter.core.model import Value
from ir_scatter.ops.scatter_openvino import SCATTER_ND_UPDATE_3, SCATTER_ND_UPDATE_15, SCATTER_UPDATE_3
from ir_scatter.ops.spec import OpSpec, Reduction, Role
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.linear import like_updates, linear
from ir_scatter.rewrites.reductions import CARRIED, needs_unique
from ir_scatter.rewrites.refusals import Refusal
from ir_scatter.rewrites.rewrite import BY_SIGNATURE, Rewrite
from ir_scatter.rewrites.tuples_joined import tuples_joined
from ir_scatter.rewrites.view import View


def _rewrite(view: View, build: Builder, target: OpSpec) -> "Value | Refusal":
    parts = linear(view, build, target)
    updates = parts.updates
    if view.reduction is not Reduction.NONE:
        joined = tuples_joined(view, build)
        if isinstance(joined, Refusal):
            return joined
        updates = like_updates(view, build, parts, joined)
    inputs = {Role.DATA: parts.data, Role.INDICES: parts.indices, Role.UPDATES: updates}
    found = build.scatter(target, inputs, {})
    if not parts.is_flattened:
        return found
    return build.reshape(found, build.shape_of(view.data, "data_shape"), "data_restored", view.data.shape)


REWRITES = tuple(
    Rewrite(
        "tuples-to-slices",
        source,
        SCATTER_UPDATE_3,
        _rewrite,
        carries=CARRIED,
        requires=needs_unique,
        reads=BY_SIGNATURE,
        conditions="any number of coordinates; a reduction: unique indices",
    )
    for source in (SCATTER_ND_UPDATE_15, SCATTER_ND_UPDATE_3)
)
