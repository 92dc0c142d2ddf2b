"""Shapes with a dimension of 0 where a reshape cannot say it: there a 0 copies a dimension."""

from typing import TYPE_CHECKING

from ir_scatter.model import Value
from ir_scatter.ops.dialects import written
from ir_scatter.rewrites.folding import array_of
from ir_scatter.shapes import Shape

if TYPE_CHECKING:
    from ir_scatter.rewrites.builder import Builder


def is_misread(build: "Builder", value: Value, target: Value) -> bool:
    """Tell whether a 0 in a target would copy a dimension that is not known to be 0."""
    numbers = array_of(target)
    if numbers is None or array_of(value) is not None or 0 not in numbers:
        return False
    if written(build.domain, "reshape", build.opset, {}).attributes:  # they say what a 0 means
        return False
    shape = value.shape or ()
    zeros = [place for place, number in enumerate(numbers) if number == 0]
    return any(place >= len(shape) or shape[place] != 0 for place in zeros)


def reshaped_empty(build: "Builder", value: Value, target: Value, shape: Shape, label: str) -> Value:
    """Give a value without elements a shape: flat, then a column of no elements, repeated."""
    numbers = array_of(target)
    assert numbers is not None
    place = numbers.tolist().index(0)
    others = [number for number in range(len(numbers)) if number != place]
    flat = build.reshape(value, [-1], f"{label}_flat", (0,))
    column = build.unsqueeze(flat, others, f"{label}_column")
    return build.broadcast(column, target, label, shape)
