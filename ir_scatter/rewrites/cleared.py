"""What is done to data where old values take no part in a reduction: each target gets a start value.

Targets that constant indices name again and again get theirs once: all of it would be the same
value, but rules that look at indices cannot know that.
"""

from collections.abc import Callable

import numpy as np

from ir_scatter.core.model import Value
from ir_scatter.core.shapes import Shape
from ir_scatter.ops import targets
from ir_scatter.rewrites.builder import LARGEST_FOLDED, Builder
from ir_scatter.rewrites.conditions import Condition, Verdict
from ir_scatter.rewrites.refusals import Refusal
from ir_scatter.rewrites.view import View

StartValues = Callable[[Value, Shape], "Value | Refusal"]
"""Makes start values of a shape, as it is computed and as it is known."""


def cleared(
    view: View,
    build: Builder,
    tuples: Value,
    updates: Value,
    start_values: StartValues,
    scatter: Callable[[Value, Value], Value],
) -> "Value | Refusal":
    """Return data with a start value at each target.

    Args:
        view: a node whose indices name elements.
        build: makes the nodes.
        tuples: the coordinates of all targets.
        updates: what their values have the shape of.
        start_values: makes the values.
        scatter: writes values at targets, given both.
    """
    once = _each_once(view, build)
    if once is None:
        values = start_values(build.shape_of(updates, "updates_shape"), updates.shape)
    else:
        assert once.shape is not None
        tuples, values = once, start_values(build.constant([once.shape[0]], "targets_count"), once.shape[:1])
    return values if isinstance(values, Refusal) else scatter(tuples, values)


def _each_once(view: View, build: Builder) -> Value | None:
    """Return the targets of constant indices, each once; None if none repeats or nobody can tell."""
    if view.proof(Condition.UNIQUE).verdict is Verdict.PROVEN:
        return None
    array, axis, data = view.index_numbers(), view.site.axis, view.data.shape
    if array is None or axis is None or not 0 < array.size <= LARGEST_FOLDED:
        return None
    size = None if data is None else data[axis]
    counted = targets.from_front(array, size if isinstance(size, int) else 0)
    coordinates = np.indices(array.shape)
    coordinates[axis] = counted
    every = coordinates.reshape(array.ndim, -1).T
    once = np.unique(every, axis=0)
    if len(once) == len(every) or (counted < 0).any():
        return None
    return build.constant(once, "targets")
