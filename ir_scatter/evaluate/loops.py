"""How loops cut arrays into parts, and put parts together."""

from collections.abc import Callable, Sequence

import numpy as np

from ir_scatter.core.dataflow import GraphOutput, Slice
from ir_scatter.core.element_types import dtype
from ir_scatter.core.shapes import show
from ir_scatter.evaluate.failures import failure
from ir_scatter.evaluate.plan import Step
from ir_scatter.ops.general_kernels.base import Array


def part_count(step: Step, cut: Slice, shape: Sequence[int]) -> int:
    """Return into how many parts an array is cut."""
    first, last = _span(step, cut, shape)
    length = abs(last - first) + 1 if shape[cut.axis] else 0
    return length // cut.part


def part_of(step: Step, cut: Slice, shape: Sequence[int], number: int) -> Callable[[Array], Array]:
    """Return what takes a part out of an array."""
    first, _ = _span(step, cut, shape)
    begin = first + number * cut.stride - (cut.part - 1 if cut.stride < 0 else 0)
    place: list[slice | int] = [slice(None)] * len(shape)
    place[cut.axis] = slice(begin, begin + cut.part) if cut.keeps_axis else begin
    return lambda array: array[tuple(place)]


def put_together(step: Step, cut: Slice, output: GraphOutput) -> Callable[..., Array]:
    """Return what joins the parts that the iterations made; without parts the result is empty."""

    def join(*parts: Array) -> Array:
        if len({(part.shape, part.dtype) for part in parts}) > 1:
            shapes = ", ".join(show(part.shape) for part in parts)
            raise failure(step, f"the parts of an output are {shapes}, expected equal ones")
        if not parts:
            return _nothing(step, cut, output)
        shape, rank = parts[0].shape, parts[0].ndim + (not cut.keeps_axis)
        if not -rank <= cut.axis < rank:
            raise failure(step, f"axis is {cut.axis}, expected -{rank} to {rank - 1}")
        ordered = parts[::-1] if cut.stride < 0 else parts
        if not cut.keeps_axis:
            return np.stack(ordered, cut.axis)
        if shape[cut.axis] != cut.part:
            raise failure(step, f"a part is {show(shape)}, expected {cut.part} on axis {cut.axis}")
        return np.concatenate(ordered, cut.axis)

    return join


def _nothing(step: Step, cut: Slice, output: GraphOutput) -> Array:
    """Return the output of a loop that ran never: no element on the axis."""
    known = None if output.element_type is None else dtype(output.element_type)
    if known is None or output.shape is None:
        raise failure(step, f"the shape of output {output.name} is not known, and the body never ran")
    shape = [dim if isinstance(dim, int) else 0 for dim in output.shape]
    if not -len(shape) <= cut.axis < len(shape) + (not cut.keeps_axis):
        raise failure(step, f"axis is {cut.axis} of {show(output.shape)}")
    if cut.keeps_axis:
        shape[cut.axis] = 0
    else:
        shape.insert(cut.axis % (len(shape) + 1), 0)
    return np.empty(shape, known)


def _span(step: Step, cut: Slice, shape: Sequence[int]) -> tuple[int, int]:
    """Return the first and the last position that belong to a part."""
    if not -len(shape) <= cut.axis < len(shape):
        raise failure(step, f"axis is {cut.axis} of {show(tuple(shape))}")
    if cut.part < 1 or abs(cut.stride) != cut.part:
        raise failure(step, f"the stride is {cut.stride} and a part {cut.part} long, expected the same")
    size = shape[cut.axis]
    first, last = (end + size if end < 0 else end for end in (cut.start, cut.end))
    is_inside = all(0 <= end < size for end in (first, last)) or size == 0
    if not is_inside or ((last < first) is not (cut.stride < 0) and last != first):
        raise failure(step, f"parts from {cut.start} to {cut.end} by {cut.stride} of {size} positions")
    return first, last
