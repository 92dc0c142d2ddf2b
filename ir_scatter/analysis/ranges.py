"""Between which whole numbers the elements of a value lie, whatever a model is given.

Elements that are only moved keep their bounds; what an operator makes of others, its row in `ops/general.py`
says. Bounds are those of all elements, or one pair for each position on the last axis: coordinates of tuples
count on different sizes.
"""

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from sys import maxsize
from typing import TYPE_CHECKING, TypeAlias

from ir_scatter.analysis.constants import Facts
from ir_scatter.core.graph_walk import follow
from ir_scatter.core.model import OPENVINO, Node, Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Shape, static
from ir_scatter.ops.attributes import Attributes
from ir_scatter.ops.general import GeneralOp, find, named
from ir_scatter.ops.general_bounds import ANY, BoundsCase, Interval, added, greatest, least
from ir_scatter.ops.lookup import opset_number

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

_MOST_COLUMNS = 16

Columns: TypeAlias = tuple[Interval, ...]
"""One for all elements, or one for each position on the last axis."""


def bounds_of(facts: Facts, value: Value, count: int | None = 1, *, are_legal: bool = False) -> Columns:
    """Return the bounds of a value: one for each of `count` coordinates of its tuples, or one for all.

    With None there are as many as are known: one for each position on the last axis, or one for all elements.

    If indices `are_legal`, numbers below 0 that are counted from the end name positions, and what is made of
    positions fits its type.
    """
    known = facts.bounds[are_legal]

    def made(value: Value) -> Columns:
        return _made(facts, value, known, are_legal)

    if value not in known:
        follow(value, known, partial(_sources, facts), made, maxsize)
    found = known[value] or _of_type(facts, value)
    if count is None or count == len(found):
        return found
    return (joined(found),) * count


def row_of(node: Node | None) -> GeneralOp | None:
    """Return the row of the operator of a node, if it says something of bounds."""
    op = None if node is None or node.bodies else find(node.domain, node.type)
    return op if op is not None and (op.bounds or op.moves != ()) else None


def _sources(facts: Facts, value: Value) -> list[Value]:
    """Return what bounds rest on; nothing in front of operators that say nothing of them."""
    has_bounds = value.constant is None and _of_type(facts, value) != (ANY,)
    node = value.producer if has_bounds else None
    op = row_of(node)
    if node is None or op is None or op.reads_shapes_only:
        return []
    moved = range(len(node.inputs)) if op.bounds else op.moved_inputs(len(node.inputs))
    values = [node.inputs[number].value for number in moved if number < len(node.inputs)]
    return [one for one in values if one is not None]


def _made(facts: Facts, value: Value, known: Mapping[Value, Columns | None], are_legal: bool) -> Columns:
    """Return what is known of a value whose sources are known; within its type, or else that of its type."""
    own = _of_type(facts, value)
    if own == (ANY,):
        return own
    (limit,) = own
    found = _chosen(facts, value, known, are_legal) or _computed(facts, value, known)
    return tuple(
        [one if one.is_within(*limit) else _cut(one, limit) if are_legal else limit for one in found]
    )


def bounds_within_type(
    facts: Facts, value: Value, columns: Columns | None, known: Mapping[Value, Columns | None] | None = None
) -> Columns:
    """Return columns, or else what follows from those `known` of its inputs; within the type of a value.

    What is not within its type may be any number of it.
    """
    if columns is None:
        return _made(facts, value, known or {}, are_legal=False)
    own = _of_type(facts, value)
    if own == (ANY,):
        return own
    (limit,) = own
    return tuple([bounds if bounds.is_within(*limit) else limit for bounds in columns])


def _cut(bounds: Interval, limit: Interval) -> Interval:
    """Return bounds without what is beyond a limit."""
    return Interval(max(bounds.low, limit.low), min(bounds.high, limit.high))


def _of_type(facts: Facts, value: Value) -> Columns:
    """Return the bounds of a type of whole numbers; none of others, whose numbers may be none."""
    type = facts.element_type(value)
    if type is None or type.kind not in {"signed", "unsigned", "boolean"}:
        return (ANY,)
    if type.kind == "signed":
        return (Interval(-(1 << (type.bits - 1)), (1 << (type.bits - 1)) - 1),)
    return (Interval(0, (1 << type.bits) - 1 if type.kind == "unsigned" else 1),)


def _computed(facts: Facts, value: Value, known: Mapping[Value, Columns | None]) -> Columns:
    array = facts.whole_numbers(value)
    if array is not None:
        return columns_of_array(array)
    node = value.producer
    op = row_of(node)
    if node is None or op is None:
        return (ANY,)
    values = [port.value for port in node.inputs]
    inputs = [(one is not None and known.get(one)) or (ANY,) for one in values]
    shapes = [None if one is None else facts.shape(one) for one in values]
    if op.bounds is None:
        moved = [number for number in op.moved_inputs(len(inputs)) if number < len(inputs)]
        inputs, shapes = [inputs[number] for number in moved], [shapes[number] for number in moved]
    columns = inputs[0] if inputs else (ANY,)
    aligns_last = op.copies or op.aligns_last(node.attributes)
    if not aligns_last and (op.bounds is not None or op.moves is not None):
        inputs = [(joined(one),) for one in inputs]
    try:
        if op.moves is None:
            return side_by_side(node, inputs, shapes)
        if op is named("ReduceSum") and _is_along_last(facts, node, shapes[0]):
            return (_total(columns, shapes[0]),)
        is_onnx, opset = node.domain != OPENVINO, opset_number(node)
        case = BoundsCase((), shapes, node.attributes, is_onnx, value.output, opset)
        rule = op.bounds or (lambda case: joined(case.inputs))
        return tuple([rule(case._replace(inputs=column)) for column in zip(*_repeated(inputs), strict=True)])
    except (LookupError, TypeError, ValueError):
        return (ANY,)


def columns_of_array(array: "Array") -> Columns:
    columns = array.shape[-1] if array.ndim and 0 < array.shape[-1] <= _MOST_COLUMNS else 1
    table = array.reshape(-1, columns)
    if not table.size:
        return (Interval(0, 0),)
    return tuple(map(Interval, table.min(0).tolist(), table.max(0).tolist()))


def _is_along_last(facts: Facts, node: Node, shape: Shape) -> bool:
    """Tell whether the last axis alone is reduced."""
    given = node.inputs[1].value if len(node.inputs) > 1 else None
    axes = None if given is None else facts.whole_numbers(given)
    found = Attributes(node.attributes).integers("axes", []) if axes is None else axes.reshape(-1).tolist()
    return found == [-1] or (shape is not None and found == [len(shape) - 1])


def _total(columns: Columns, shape: Shape) -> Interval:
    """Return the bounds of the sum of all columns; of one that stands for all as many as a shape tells."""
    width = shape[-1] if shape else UNKNOWN_DIM
    if len(columns) == 1 and isinstance(width, int) and width <= _MOST_COLUMNS:
        columns *= width
    elif len(columns) != width:
        return Interval(0) if all(one.low >= 0 for one in columns) else ANY
    return reduce(lambda one, other: added(_case(one, other)), columns)


def _chosen(
    facts: Facts, value: Value, known: Mapping[Value, Columns | None], are_legal: bool
) -> Columns | None:
    """Return the bounds of the lesser or greater of two values, and of numbers counted from the end.

    That is what a Select of Less makes; None of any other value.
    """
    choice = None if value.constant is not None else _inputs(value, "Select")
    compared = None if choice is None else _inputs(choice[0], "Less")
    if choice is None or compared is None:
        return None
    _, then, other = choice
    columns = [known.get(one) or (ANY,) for one in compared]
    if compared in ([then, other], [other, then]):
        rule = least if then is compared[0] else greatest
        return tuple([rule(_case(*pair)) for pair in zip(*_repeated(columns), strict=True)])
    end = facts.whole_numbers(compared[1])
    if other is compared[0] and end is not None and end.size and not _is_sum_of(then, other):
        # What is chosen where it is not less than a constant is that constant at least.
        least_end = Interval(int(end.min()), int(end.max()))
        parts = [columns[0], (least_end,), known.get(then) or (ANY,)]
        return tuple([_not_less(*part) for part in zip(*_repeated(parts), strict=True)])
    start = facts.whole_numbers(compared[0])
    if other is compared[1] and start is not None and start.size:
        most = Interval(int(start.min()), int(start.max()))
        parts = [columns[1], (most,), known.get(then) or (ANY,)]
        return tuple([_not_more(*part) for part in zip(*_repeated(parts), strict=True)])
    added = _inputs(then, "Add")
    if added is None or {compared[0], added[0]} != {other} or end is None or not end.size or end.any():
        return None
    sizes = known.get(added[1]) or (ANY,)
    pairs = zip(*_repeated([columns[0], sizes]), strict=True)
    return tuple([_from_front(numbers, size, are_legal) for numbers, size in pairs])


def _is_sum_of(value: Value, term: Value) -> bool:
    return term in (_inputs(value, "Add") or ())


def _not_less(numbers: Interval, end: Interval, instead: Interval) -> Interval:
    """Return the bounds of numbers where they are not less than an end, of others elsewhere."""
    kept = Interval(max(numbers.low, end.low), max(numbers.high, end.low))
    return kept.joined(instead)


def _not_more(numbers: Interval, end: Interval, instead: Interval) -> Interval:
    """Return the bounds of numbers where they are not more than an end, of others elsewhere."""
    kept = Interval(min(numbers.low, end.high), min(numbers.high, end.high))
    return kept.joined(instead)


def _inputs(value: Value, type: str) -> list[Value] | None:
    """Return the inputs of the node that makes a value, if it is of a type and none is left out.

    None where the last dimensions of its inputs are not aligned: it combines other elements then.
    """
    node, op = value.producer, named(type)
    if node is None or find(node.domain, node.type) is not op or not op.aligns_last(node.attributes):
        return None
    values = [port.value for port in node.inputs]
    present = [one for one in values if one is not None]
    return present if len(present) == len(values) else None


def _from_front(numbers: Interval, size: Interval, are_legal: bool) -> Interval:
    if numbers.low >= 0:
        return numbers
    if are_legal:
        return Interval(0, size.high - 1)
    return Interval(min(numbers.low + size.low, 0), max(numbers.high, size.high - 1))


def _case(*inputs: Interval) -> BoundsCase:
    return BoundsCase(inputs, (), {}, False, 0)


def side_by_side(node: Node, inputs: Sequence[Columns], shapes: Sequence[Shape]) -> Columns:
    """Return the columns of values that are joined along the last axis; those of all along another one."""
    axis = Attributes(node.attributes).integer("axis")
    is_last = axis == -1 or any(shape is not None and len(shape) == axis + 1 for shape in shapes)
    widths = static(tuple([shape[-1] if shape else UNKNOWN_DIM for shape in shapes]))
    if is_last and widths is not None and sum(widths) <= _MOST_COLUMNS:
        pairs = zip(inputs, widths, strict=True)
        parts = [one if len(one) == width else (joined(one),) * width for one, width in pairs]
        return tuple([column for part in parts for column in part])
    return (joined([column for one in inputs for column in one]),)


def _repeated(inputs: Sequence[Columns]) -> list[Columns]:
    """Return as many columns of each input; one may stand for all."""
    count = max(map(len, inputs))
    if any(len(one) not in {1, count} for one in inputs):
        return [(joined(one),) for one in inputs]
    return [one if len(one) == count else one * count for one in inputs]


def joined(columns: Sequence[Interval]) -> Interval:
    """Return the bounds of elements of any column."""
    return reduce(Interval.joined, columns)
