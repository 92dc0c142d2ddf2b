"""Bounds rules: bounds of the integers in an output, from those of the inputs.

The rows of `general.py` name the rules. Without a rule, moved elements keep their bounds, and others have the
bounds of their element type.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import ceil, floor, inf, isfinite, isnan
from typing import Any, NamedTuple, TypeAlias

from ir_scatter.core.shapes import Dim, Shape, highest, lowest
from ir_scatter.ops.attributes import Attributes


class Interval(NamedTuple):
    """The smallest and the largest possible integer of an element; infinite if unknown."""

    low: float = -inf
    high: float = inf

    def joined(self, bounds: "Interval") -> "Interval":
        """Return the smallest interval that contains both."""
        return Interval(min(self.low, bounds.low), max(self.high, bounds.high))

    def is_within(self, low: float, high: float) -> bool:
        return low <= self.low and self.high <= high


ANY = Interval()


_LARGE = 2**31 - 1
"""Bounds of at least this magnitude come from the element type, and are not printed."""


def show_bounds(low: float, high: float) -> str:
    """Format bounds, one of which is known: "5", "5 to 9", "5 or more"."""
    if low == high:
        return str(int(low))
    if high >= _LARGE:
        return f"{int(low)} or more"
    return f"{int(high)} or less" if low < -_LARGE else f"{int(low)} to {int(high)}"


class BoundsCase(NamedTuple):
    """Known facts about a node: bounds and shapes of its inputs. A missing input has `ANY` and None."""

    inputs: Sequence[Interval]
    shapes: Sequence[Shape]
    attributes: Mapping[str, Any]
    is_onnx: bool
    output: int
    opset: int | None = None


BoundsRule: TypeAlias = Callable[[BoundsCase], Interval]


def least(case: BoundsCase) -> Interval:
    return Interval(*map(min, zip(*case.inputs, strict=True)))


def greatest(case: BoundsCase) -> Interval:
    return Interval(*map(max, zip(*case.inputs, strict=True)))


def clamped(case: BoundsCase) -> Interval:
    """Bounds of a clamped input. Limits are attributes, or inputs 1 and 2; the upper limit wins.

    Clamping is monotonic in all three inputs, so lower bounds give the lower bound, upper ones the upper.
    """
    written = [case.attributes.get(name) for name in ("min", "max")]
    if case.is_onnx and written == [None, None]:
        lower = case.inputs[1] if len(case.inputs) > 1 else (-inf, -inf)
        upper = case.inputs[2] if len(case.inputs) > 2 else (inf, inf)
    else:
        numbers = [
            float(end) if end is not None else default
            for end, default in zip(written, (-inf, inf), strict=True)
        ]
        if any(map(isnan, numbers)):
            return ANY
        lower, upper = [(_whole(floor, number), _whole(ceil, number)) for number in numbers]
    low, high = [
        min(max(end, low), high) for end, low, high in zip(case.inputs[0], lower, upper, strict=True)
    ]
    return ANY if low == inf or high == -inf else Interval(low, high)


def _whole(rounded: Callable[[float], int], number: float) -> float:
    return rounded(number) if isfinite(number) else number


def added(case: BoundsCase) -> Interval:
    left, right = case.inputs
    return Interval(left.low + right.low, left.high + right.high)


def subtracted(case: BoundsCase) -> Interval:
    left, right = case.inputs
    return Interval(left.low - right.high, left.high - right.low)


def multiplied(case: BoundsCase) -> Interval:
    left, right = case.inputs
    if left.low >= 0 <= right.low:
        return Interval(left.low * right.low, left.high * right.high if left.high and right.high else 0)
    if not all(map(isfinite, (*left, *right))):
        return ANY
    ends = [left_end * right_end for left_end, right_end in product(left, right)]
    return Interval(min(ends), max(ends))


def not_below_zero(case: BoundsCase) -> Interval:
    """A result is 0 or more if the inputs are."""
    return Interval(0) if case.inputs[0].low >= 0 else ANY


def remainder(case: BoundsCase) -> Interval:
    """A remainder has the sign of the divisor; with a truncated quotient, that of the dividend."""
    dividend, divisor = case.inputs
    truncates = bool(Attributes(case.attributes).integer("fmod", 0))
    return ANY if divisor.low < 1 or (truncates and dividend.low < 0) else Interval(0, divisor.high - 1)


def counting(case: BoundsCase) -> Interval:
    """Numbers from input 0 up to input 1, in positive steps of input 2."""
    first, stop, step = case.inputs[:3]
    return ANY if step.low < 1 else Interval(first.low, stop.high - 1)


def gathered(case: BoundsCase) -> Interval:
    """Elements of input 0, if every index in input 1 is in range on the axis.

    The axis is an attribute in ONNX, and input 2 in OpenVINO.
    """
    if case.is_onnx:
        axis: float = Attributes(case.attributes).integer("axis", 0)
    else:
        axis, last = case.inputs[2]
        if axis != last:
            return ANY
    return _chosen(case, [_shape(case, 0)[int(axis)]], counts_from_end=case.is_onnx or _is_since(case, 8))


def gathered_nd(case: BoundsCase) -> Interval:
    """Elements of input 0, if every coordinate in input 1 is in range."""
    first, depth = Attributes(case.attributes).integer("batch_dims", 0), _shape(case, 1)[-1]
    dims = _shape(case, 0)[first : first + depth if isinstance(depth, int) else None]
    return _chosen(case, dims, counts_from_end=case.is_onnx or _is_since(case, 8))


def gathered_elements(case: BoundsCase) -> Interval:
    """Elements of input 0, if every index in input 1 is in range on the axis."""
    axis = Attributes(case.attributes).integer("axis", 0 if case.is_onnx else None)
    return _chosen(case, [_shape(case, 0)[axis]], counts_from_end=case.is_onnx)


def _chosen(case: BoundsCase, dims: Sequence[Dim], *, counts_from_end: bool) -> Interval:
    """Return the bounds of input 0 if input 1 is in range on all of `dims`; unknown bounds otherwise.

    For an index out of range Gather-8 returns 0, and runtimes without a check read beyond the data.
    """
    size = min(map(lowest, dims), default=0)
    is_in_range = case.inputs[1].is_within(-size if counts_from_end else 0, size - 1)
    return case.inputs[0] if is_in_range else ANY


def _shape(case: BoundsCase, port: int) -> tuple[Dim, ...]:
    shape = case.shapes[port]
    if shape is None:
        raise LookupError(port)
    return shape


def _is_since(case: BoundsCase, opset: int) -> bool:
    return case.opset is not None and case.opset >= opset


def position(case: BoundsCase) -> Interval:
    """A position on the axis of input 0."""
    shape, axis = case.shapes[0], Attributes(case.attributes).integer("axis", 0)
    if shape is None or not -len(shape) <= axis < len(shape):
        return Interval(0)
    return Interval(0, _most(shape[axis]) - 1)


def top_position(case: BoundsCase) -> Interval:
    """Output 0 is an element of input 0, output 1 a position on the axis."""
    if case.output == 0:
        return case.inputs[0]
    axis = Attributes(case.attributes).integer("axis", -1)
    return position(case._replace(attributes={"axis": axis}))


def any_position(case: BoundsCase) -> Interval:
    """A position on any axis of input 0."""
    return Interval(0, max([max(_most(dim) - 1, 0) for dim in case.shapes[0] or ()], default=inf))


def size(case: BoundsCase) -> Interval:
    """A size of input 0."""
    return Interval(0, max(map(_most, case.shapes[0] or ()), default=inf))


def _most(dim: Dim) -> float:
    high = highest(dim)
    return inf if high is None else high
