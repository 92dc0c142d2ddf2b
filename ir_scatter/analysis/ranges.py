"""Bounds of the integers in a value, valid for every input of the model.

Operators that only move elements keep their bounds; others have a rule in their row of `ops/general.py`.
There is one interval for all elements, or one for each position on the last axis (a *column*), because the
coordinates of index tuples are limited by different sizes:

    Range (0, 8)                      0 to 7
    Concat (row, column), last axis   (0 to 7, 0 to 3): one interval per coordinate
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
"""Limit of positions on the last axis that get intervals of their own; index tuples have one coordinate
per dimension.
"""

Columns: TypeAlias = tuple[Interval, ...]
"""One interval for all elements, or one for each position on the last axis."""


def bounds_of(facts: Facts, value: Value, count: int | None = 1, *, are_legal: bool = False) -> Columns:
    """Return the bounds of a value: `count` intervals, one for each coordinate of an index tuple.

    Args:
        facts: facts about the values of the model.
        value: the value.
        count: the number of intervals; None for one interval per column if these are known, else one for all.
        are_legal: assume that all indices are legal: a negative one counts from the end, and numbers computed
            from indices do not overflow.
    """
    cache = facts.bounds[are_legal]

    def make(value: Value) -> Columns:
        return _compute(facts, value, cache, are_legal)

    if value not in cache:
        follow(value, cache, partial(_sources, facts), make, maxsize)
    columns = cache[value] or _type_bounds(facts, value)
    if count is None or count == len(columns):
        return columns
    return (hull(columns),) * count


def row_of(node: Node | None) -> GeneralOp | None:
    """Return the table row of a node's operator; None if the row has no rule for bounds."""
    op = None if node is None or node.bodies else find(node.domain, node.type)
    return op if op is not None and (op.bounds or op.moves != ()) else None


def _sources(facts: Facts, value: Value) -> list[Value]:
    """Return the inputs that determine the bounds of a value."""
    has_bounds = value.constant is None and _type_bounds(facts, value) != (ANY,)
    node = value.producer if has_bounds else None
    op = row_of(node)
    if node is None or op is None or op.reads_shapes_only:
        return []
    moved = range(len(node.inputs)) if op.bounds else op.moved_inputs(len(node.inputs))
    values = [node.inputs[number].value for number in moved if number < len(node.inputs)]
    return [source for source in values if source is not None]


def _compute(facts: Facts, value: Value, cache: Mapping[Value, Columns | None], are_legal: bool) -> Columns:
    """Compute the bounds of a value from those of its inputs.

    An interval beyond the element type may overflow, so it is replaced by the bounds of the type.
    """
    type_bounds = _type_bounds(facts, value)
    if type_bounds == (ANY,):
        return type_bounds
    (limit,) = type_bounds
    columns = _select_bounds(facts, value, cache, are_legal) or _operator_bounds(facts, value, cache)
    return tuple(
        [
            bounds if bounds.is_within(*limit) else _clip(bounds, limit) if are_legal else limit
            for bounds in columns
        ]
    )


def bounds_within_type(
    facts: Facts, value: Value, columns: Columns | None, inputs: Mapping[Value, Columns | None] | None = None
) -> Columns:
    """Return columns limited to the element type of a value; without columns, those computed from `inputs`.

    An interval beyond the type may overflow, so it is replaced by the bounds of the type.
    """
    if columns is None:
        return _compute(facts, value, inputs or {}, are_legal=False)
    type_bounds = _type_bounds(facts, value)
    if type_bounds == (ANY,):
        return type_bounds
    (limit,) = type_bounds
    return tuple([bounds if bounds.is_within(*limit) else limit for bounds in columns])


def _clip(bounds: Interval, limit: Interval) -> Interval:
    """Return the intersection of bounds and a limit."""
    return Interval(max(bounds.low, limit.low), min(bounds.high, limit.high))


def _type_bounds(facts: Facts, value: Value) -> Columns:
    """Return the bounds of an integer or boolean type; `ANY` for other types, which may hold NaN."""
    type = facts.element_type(value)
    if type is None or type.kind not in {"signed", "unsigned", "boolean"}:
        return (ANY,)
    if type.kind == "signed":
        return (Interval(-(1 << (type.bits - 1)), (1 << (type.bits - 1)) - 1),)
    return (Interval(0, (1 << type.bits) - 1 if type.kind == "unsigned" else 1),)


def _operator_bounds(facts: Facts, value: Value, cache: Mapping[Value, Columns | None]) -> Columns:
    """Return the bounds of a constant, or those by the rule of the producer's operator."""
    array = facts.whole_numbers(value)
    if array is not None:
        return columns_of_array(array)
    node = value.producer
    op = row_of(node)
    if node is None or op is None:
        return (ANY,)
    values = [port.value for port in node.inputs]
    inputs = [(source is not None and cache.get(source)) or (ANY,) for source in values]
    shapes = [None if source is None else facts.shape(source) for source in values]
    if op.bounds is None:
        moved = [number for number in op.moved_inputs(len(inputs)) if number < len(inputs)]
        inputs, shapes = [inputs[number] for number in moved], [shapes[number] for number in moved]
    columns = inputs[0] if inputs else (ANY,)
    aligns_last = op.copies or op.aligns_last(node.attributes)
    if not aligns_last and (op.bounds is not None or op.moves is not None):
        inputs = [(hull(columns),) for columns in inputs]
    try:
        if op.moves is None:
            return side_by_side(node, inputs, shapes)
        if op is named("ReduceSum") and _is_along_last(facts, node, shapes[0]):
            return (_row_sum(columns, shapes[0]),)
        is_onnx, opset = node.domain != OPENVINO, opset_number(node)
        case = BoundsCase((), shapes, node.attributes, is_onnx, value.output, opset)
        rule = op.bounds or (lambda case: hull(case.inputs))
        return tuple([rule(case._replace(inputs=column)) for column in zip(*_align(inputs), strict=True)])
    except (LookupError, TypeError, ValueError):
        return (ANY,)


def columns_of_array(array: "Array") -> Columns:
    """Return the bounds of each column of an array, or of all elements if there are many columns."""
    columns = array.shape[-1] if array.ndim and 0 < array.shape[-1] <= _MOST_COLUMNS else 1
    table = array.reshape(-1, columns)
    if not table.size:
        return (Interval(0, 0),)
    return tuple(map(Interval, table.min(0).tolist(), table.max(0).tolist()))


def _is_along_last(facts: Facts, node: Node, shape: Shape) -> bool:
    """Return whether a node reduces the last axis only."""
    axes_input = node.inputs[1].value if len(node.inputs) > 1 else None
    array = None if axes_input is None else facts.whole_numbers(axes_input)
    axes = Attributes(node.attributes).integers("axes", []) if array is None else array.reshape(-1).tolist()
    return axes == [-1] or (shape is not None and axes == [len(shape) - 1])


def _row_sum(columns: Columns, shape: Shape) -> Interval:
    """Return the bounds of the sum of a row; an interval for all columns counts once per column."""
    width = shape[-1] if shape else UNKNOWN_DIM
    if len(columns) == 1 and isinstance(width, int) and width <= _MOST_COLUMNS:
        columns *= width
    elif len(columns) != width:
        return Interval(0) if all(bounds.low >= 0 for bounds in columns) else ANY
    return reduce(lambda total, bounds: added(_case(total, bounds)), columns)


def _select_bounds(
    facts: Facts, value: Value, cache: Mapping[Value, Columns | None], are_legal: bool
) -> Columns | None:
    """Return the bounds of a Select by a Less, more precise than the union of its branches.

    Recognises min, max, clip, and the usual normalisation of negative indices; None for other values:

        Select (a < b, a, b)          min; max with the branches swapped
        Select (a < c, x, a)          a is at least the constant c where it is selected
        Select (c < a, x, a)          a is at most the constant c where it is selected
        Select (a < 0, a + size, a)   a counted from the end
    """
    choice = None if value.constant is not None else _inputs_of_type(value, "Select")
    compared = None if choice is None else _inputs_of_type(choice[0], "Less")
    if choice is None or compared is None:
        return None
    _, then, otherwise = choice
    columns = [cache.get(source) or (ANY,) for source in compared]
    if compared in ([then, otherwise], [otherwise, then]):
        rule = least if then is compared[0] else greatest
        return tuple([rule(_case(*pair)) for pair in zip(*_align(columns), strict=True)])
    end = facts.whole_numbers(compared[1])
    if otherwise is compared[0] and end is not None and end.size and not _is_sum_of(then, otherwise):
        constant = Interval(int(end.min()), int(end.max()))
        parts = [columns[0], (constant,), cache.get(then) or (ANY,)]
        return tuple([_select_at_least(*part) for part in zip(*_align(parts), strict=True)])
    start = facts.whole_numbers(compared[0])
    if otherwise is compared[1] and start is not None and start.size:
        constant = Interval(int(start.min()), int(start.max()))
        parts = [columns[1], (constant,), cache.get(then) or (ANY,)]
        return tuple([_select_at_most(*part) for part in zip(*_align(parts), strict=True)])
    terms = _inputs_of_type(then, "Add")
    if terms is None or {compared[0], terms[0]} != {otherwise} or end is None or not end.size or end.any():
        return None
    sizes = cache.get(terms[1]) or (ANY,)
    pairs = zip(*_align([columns[0], sizes]), strict=True)
    return tuple([_normalise(numbers, size, are_legal) for numbers, size in pairs])


def _is_sum_of(value: Value, term: Value) -> bool:
    return term in (_inputs_of_type(value, "Add") or ())


def _select_at_least(numbers: Interval, constant: Interval, replacement: Interval) -> Interval:
    """Return the bounds of Select (numbers < constant, replacement, numbers)."""
    selected = Interval(max(numbers.low, constant.low), max(numbers.high, constant.low))
    return selected.joined(replacement)


def _select_at_most(numbers: Interval, constant: Interval, replacement: Interval) -> Interval:
    """Return the bounds of Select (constant < numbers, replacement, numbers)."""
    selected = Interval(min(numbers.low, constant.high), min(numbers.high, constant.high))
    return selected.joined(replacement)


def _inputs_of_type(value: Value, type: str) -> list[Value] | None:
    """Return the inputs of a value's producer if it has the operator type `type`, else None.

    None also if an input is missing, or if broadcasting does not align the last axes: columns do not
    correspond then.
    """
    node, op = value.producer, named(type)
    if node is None or find(node.domain, node.type) is not op or not op.aligns_last(node.attributes):
        return None
    values = [port.value for port in node.inputs]
    present = [source for source in values if source is not None]
    return present if len(present) == len(values) else None


def _normalise(numbers: Interval, size: Interval, are_legal: bool) -> Interval:
    """Return the bounds of Select (numbers < 0, numbers + size, numbers)."""
    if numbers.low >= 0:
        return numbers
    if are_legal:
        return Interval(0, size.high - 1)
    return Interval(min(numbers.low + size.low, 0), max(numbers.high, size.high - 1))


def _case(*inputs: Interval) -> BoundsCase:
    return BoundsCase(inputs, (), {}, False, 0)


def side_by_side(node: Node, inputs: Sequence[Columns], shapes: Sequence[Shape]) -> Columns:
    """Return the columns of a Concat: those of all inputs if it is along the last axis, else one interval."""
    axis = Attributes(node.attributes).integer("axis")
    is_last = axis == -1 or any(shape is not None and len(shape) == axis + 1 for shape in shapes)
    widths = static(tuple([shape[-1] if shape else UNKNOWN_DIM for shape in shapes]))
    if is_last and widths is not None and sum(widths) <= _MOST_COLUMNS:
        pairs = zip(inputs, widths, strict=True)
        parts = [columns if len(columns) == width else (hull(columns),) * width for columns, width in pairs]
        return tuple([column for part in parts for column in part])
    return (hull([bounds for columns in inputs for bounds in columns]),)


def _align(inputs: Sequence[Columns]) -> list[Columns]:
    """Return equally many columns for each input; an interval for all columns is repeated."""
    count = max(map(len, inputs))
    if any(len(columns) not in {1, count} for columns in inputs):
        return [(hull(columns),) for columns in inputs]
    return [columns if len(columns) == count else columns * count for columns in inputs]


def hull(columns: Sequence[Interval]) -> Interval:
    """Return the smallest interval that contains all columns."""
    return reduce(Interval.joined, columns)
