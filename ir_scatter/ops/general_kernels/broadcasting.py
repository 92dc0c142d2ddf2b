"""Shapes that are made to fit each other."""

from collections.abc import Sequence
from itertools import zip_longest

from ir_scatter.core.shapes import show
from ir_scatter.ops.general_kernels.case import Array, Case, UnsupportedCase


def broadcast_shape(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that all shapes broadcast to, aligned at the right, in both directions."""
    reversed_shape = []
    for dims in zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1):
        wide = {dim for dim in dims if dim != 1}
        if len(wide) > 1:
            raise UnsupportedCase(f"{' and '.join(map(show, map(tuple, shapes)))} do not broadcast")
        reversed_shape.append(wide.pop() if wide else 1)
    return tuple(reversed(reversed_shape))


def require_broadcast_to(shape: Sequence[int], target: Sequence[int]) -> None:
    """Refuse a shape that does not broadcast to `target` without changing it."""
    if broadcast_shape(shape, target) != tuple(target):
        raise UnsupportedCase(f"{show(tuple(shape))} does not broadcast to {show(tuple(target))}")


def elementwise_shape(case: Case, *arrays: Array) -> tuple[int, ...]:
    """Return the output's shape under the IR's `auto_broadcast`; ONNX always broadcasts."""
    shapes = [array.shape for array in arrays]
    rule = case.attributes.text("auto_broadcast", "numpy", {"numpy", "none"})
    if rule == "none" and len(set(shapes)) > 1:
        raise UnsupportedCase(f"shapes are {', '.join(map(show, shapes))}, expected equal ones")
    return case.reserve(broadcast_shape(*shapes))
