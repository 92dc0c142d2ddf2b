"""Bounds rules: between which whole numbers elements of an output lie, given those of the inputs.

Rules stand in the rows of `general.py`. Where there is none, elements that are only moved keep their bounds,
and others have those of their type.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import ceil, floor, inf, isfinite, isnan
from typing import Any, NamedTuple, TypeAlias

from ir_scatter.core.shapes import Shape, highest
from ir_scatter.ops.attributes import Attributes

End: TypeAlias = int | None
"""None: no bound is known."""


class Bounds(NamedTuple):
    """The least and the greatest number that an element can be."""

    low: End = None
    high: End = None

    def joined(self, other: "Bounds") -> "Bounds":
        """Return bounds of what is one or the other."""
        return Bounds(_extreme(min, self.low, other.low), _extreme(max, self.high, other.high))

    def is_within(self, low: End, high: End) -> bool:
        is_above = low is None or (self.low is not None and self.low >= low)
        return is_above and (high is None or (self.high is not None and self.high <= high))


ANY = Bounds()


class BoundsCase(NamedTuple):
    """What is known of a node: bounds and shapes of its inputs, `ANY` and None for one that is left out."""

    inputs: Sequence[Bounds]
    shapes: Sequence[Shape]
    attributes: Mapping[str, Any]
    is_onnx: bool
    output: int


BoundsRule: TypeAlias = Callable[[BoundsCase], Bounds]


def _extreme(pick: Callable[[int, int], int], *ends: End) -> End:
    """Return the least or greatest of ends; None if one of them is not known."""
    found: End = ends[0]
    for end in ends[1:]:
        found = None if found is None or end is None else pick(found, end)
    return found


def least(case: BoundsCase) -> Bounds:
    highs = [one.high for one in case.inputs if one.high is not None]
    return Bounds(_extreme(min, *[one.low for one in case.inputs]), min(highs, default=None))


def greatest(case: BoundsCase) -> Bounds:
    lows = [one.low for one in case.inputs if one.low is not None]
    return Bounds(max(lows, default=None), _extreme(max, *[one.high for one in case.inputs]))


def clamped(case: BoundsCase) -> Bounds:
    """The ends are attributes, or inputs 1 and 2; the upper one wins. It is monotonic in all three."""
    written = [case.attributes.get(name) for name in ("min", "max")]
    if case.is_onnx and written == [None, None]:
        lower = _ends(case.inputs[1]) if len(case.inputs) > 1 else (-inf, -inf)
        upper = _ends(case.inputs[2]) if len(case.inputs) > 2 else (inf, inf)
    else:
        numbers = [
            float(end) if end is not None else given for end, given in zip(written, (-inf, inf), strict=True)
        ]
        if any(map(isnan, numbers)):
            return ANY
        lower, upper = [(_whole(floor, number), _whole(ceil, number)) for number in numbers]
    found = [
        min(max(own, low), high) for own, low, high in zip(_ends(case.inputs[0]), lower, upper, strict=True)
    ]
    return Bounds(*[int(end) if isfinite(end) else None for end in found])


def _ends(bounds: Bounds) -> tuple[float, float]:
    low, high = bounds
    return -inf if low is None else low, inf if high is None else high


def _whole(rounded: Callable[[float], int], number: float) -> float:
    return rounded(number) if isfinite(number) else number


def added(case: BoundsCase) -> Bounds:
    one, other = case.inputs
    return Bounds(_total(one.low, other.low), _total(one.high, other.high))


def subtracted(case: BoundsCase) -> Bounds:
    one, other = case.inputs
    return Bounds(_total(one.low, _negative(other.high)), _total(one.high, _negative(other.low)))


def multiplied(case: BoundsCase) -> Bounds:
    ends = [left * right for left, right in product(*case.inputs) if left is not None and right is not None]
    return Bounds(min(ends), max(ends)) if len(ends) == 4 else ANY


def _total(one: End, other: End) -> End:
    return None if one is None or other is None else one + other


def _negative(end: End) -> End:
    return None if end is None else -end


def remainder(case: BoundsCase) -> Bounds:
    """What is left has the sign of the divisor, or of the dividend where it is cut off."""
    dividend, divisor = case.inputs
    is_cut = bool(Attributes(case.attributes).integer("fmod", 0))
    if divisor.low is None or divisor.low < 1 or (is_cut and (dividend.low is None or dividend.low < 0)):
        return ANY
    return Bounds(0, None if divisor.high is None else divisor.high - 1)


def counting(case: BoundsCase) -> Bounds:
    """Numbers from input 0 up to input 1, by steps of input 2 that are positive."""
    first, stop, step = case.inputs[:3]
    if step.low is None or step.low < 1:
        return ANY
    return Bounds(first.low, None if stop.high is None else stop.high - 1)


def position(case: BoundsCase) -> Bounds:
    """A position on the axis of input 0; of more outputs than one the second has them."""
    shape, axis = case.shapes[0], Attributes(case.attributes).integer("axis", 0)
    if shape is None or not -len(shape) <= axis < len(shape):
        return Bounds(0)
    size = highest(shape[axis])
    return Bounds(0, None if size is None else size - 1)


def top_position(case: BoundsCase) -> Bounds:
    if case.output == 0:
        return case.inputs[0]
    axis = Attributes(case.attributes).integer("axis", -1)
    return position(case._replace(attributes={"axis": axis}))


def any_position(case: BoundsCase) -> Bounds:
    """A position on any axis of input 0."""
    return _sizes(case.shapes[0], -1)


def size(case: BoundsCase) -> Bounds:
    """A size of input 0."""
    return _sizes(case.shapes[0], 0)


def _sizes(shape: Shape, more: int) -> Bounds:
    if not shape:
        return Bounds(0)
    high = _extreme(max, *map(highest, shape))
    return Bounds(0, None if high is None else max(high + more, 0))
