"""Orders of axes that are computed when the model runs: the axis to the front, and back."""

from ir_scatter.core.model import Value
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.parts import axis_of, positions
from ir_scatter.rewrites.view import View


def front_order(view: View, build: Builder) -> Value:
    """Return axis, 0, 1, ..., axis - 1, axis + 1, ...: the axis comes first."""
    places, axis = positions(build, view), axis_of(build, view)
    before = build.binary("Subtract", places, build.constant(1, "one"), "one_before")
    is_behind = build.binary("Less", axis, places, "is_behind_axis")
    rest = build.select(is_behind, places, before, "others")
    is_first = build.binary("Equal", places, build.constant(0, "zero"), "is_first")
    return build.select(is_first, axis, rest, "front_order")


def back_order(view: View, build: Builder) -> Value:
    """Return 1, 2, ..., axis, 0, axis + 1, ...: the first axis goes back to its place."""
    places, axis = positions(build, view), axis_of(build, view)
    after = build.binary("Add", places, build.constant(1, "one"), "one_after")
    is_before = build.binary("Less", places, axis, "is_before_axis")
    rest = build.select(is_before, after, places, "others")
    is_axis = build.binary("Equal", places, axis, "is_axis")
    return build.select(is_axis, build.constant(0, "zero"), rest, "back_order")
