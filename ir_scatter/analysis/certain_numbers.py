"""Finds numbers that certainly occur among the elements of a value, for every input of the model.

Rules report such an index if it is out of range. `ranges` only bounds all elements of a value. Some elements
are known more precisely: the ends of a Range or a constant, the first and last number of a loop counter, and
the inputs of a Concat.

    r = Range (1, 6)         1 and 5 occur
    Add (r, 2)               3 and 7 occur

If indices are limited by a dynamic dimension of size n, numbers are also tracked as n plus a constant:

    Range (0, n + 1)         0 and n occur, so index n is out of range for every n

An element is tracked through operators whose output contains all elements of an input
(`GeneralOp.keeps_all`), or one result for each of them.
"""

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.ranges import (
    Columns,
    bounds_of,
    bounds_within_type,
    columns_of_array,
    hull,
    row_of,
    side_by_side,
)
from ir_scatter.analysis.relative_sizes import LARGE, DimSize, Relative, RelativeSizes
from ir_scatter.core.model import Graph, Node, Value
from ir_scatter.core.shapes import Shape, highest, lowest
from ir_scatter.ops.attributes import Attributes
from ir_scatter.ops.general import Arithmetic, GeneralOp, named
from ir_scatter.ops.general_bounds import ANY, Interval

_MOST_VISITED = 48
"""Limit of values that are visited upstream of one value; exporters compute indices with about a dozen
nodes."""


class Occurrence(NamedTuple):
    """Bounds of an element, or of a row of coordinates, that certainly occurs in a value.

    Attributes:
        columns: one interval for each coordinate, or one for all.
        source: the upstream value where the element was found.
        is_all: whether the bounds hold for all elements of the value.
        is_certain: whether the value certainly has elements.
        remark: the element of the source, "the last number"; "" for any element.
        size: the dynamic size to which the bounds must be added; None for absolute numbers.
    """

    columns: Columns
    source: Value
    is_all: bool = False
    is_certain: bool = True
    remark: str = ""
    size: DimSize | None = None


class Outside(NamedTuple):
    """Indices that are out of range, or illegally negative, for every input of the model.

    Attributes:
        bounds: the bounds of the indices.
        column: the coordinate of the index tuples; None if there is only one, or if it is unknown.
        size: the size of the dimension, or its upper bound; None if it is unknown.
        is_negative: whether the indices are negative, and would be in range if counted from the end.
        relative: the dynamic size that limits the indices, if `bounds` must be added to `occurrence.size`.
    """

    occurrence: Occurrence
    bounds: Interval
    column: int | None
    size: int | None
    is_negative: bool
    relative: Relative | None = None


def find_outside(
    facts: Facts,
    value: Value,
    sizes: Sequence[int | None],
    *,
    forbids_negative: bool,
    reader: Graph,
    open_sizes: Sequence[Relative | None] = (),
) -> Outside | None:
    """Return indices that are out of range for every input of the model; None if there are none.

    Args:
        facts: facts about the values of the model.
        value: the indices.
        sizes: the sizes that limit the indices, by coordinate; None for a dynamic size.
        forbids_negative: whether negative indices are illegal.
        reader: the graph of the node that reads the indices.
        open_sizes: the dynamic sizes, by coordinate; None for a static or unknown one.
    """
    fallback = None
    for occurrence in occurrences(facts, value, reader=reader, counts_on_open=any(open_sizes)):
        is_by_column = len(occurrence.columns) == len(sizes)
        for column, bounds in enumerate(occurrence.columns):
            number = column if is_by_column and len(sizes) > 1 else None
            places = slice(column, column + 1) if is_by_column else slice(None)
            if occurrence.size is not None:
                outside = _beyond_dynamic(occurrence, bounds, number, open_sizes[places])
            else:
                outside = _beyond_static(occurrence, bounds, number, sizes[places], forbids_negative)
            if outside is None:
                continue
            if occurrence.is_certain:
                return outside
            fallback = fallback or outside
    return fallback


def _beyond_static(
    occurrence: Occurrence,
    bounds: Interval,
    column: int | None,
    limits: Sequence[int | None],
    forbids_negative: bool,
) -> Outside | None:
    """Return the indices if they exceed every size that may limit them, or are illegally negative."""
    is_outside = all(size is not None and _is_outside(bounds, size) for size in limits)
    if not is_outside and not (forbids_negative and bounds.high < 0):
        return None
    static_sizes = [size for size in limits if size is not None]
    size = max(static_sizes) if len(static_sizes) == len(limits) else None
    return Outside(occurrence, bounds, column, size, not is_outside)


def _beyond_dynamic(
    occurrence: Occurrence, bounds: Interval, column: int | None, limits: Sequence[Relative | None]
) -> Outside | None:
    """Return the indices if they are at least as large as the dynamic size that limits them."""
    comparable = [limit for limit in limits if limit is not None and limit.size == occurrence.size]
    if len(comparable) < len(limits) or any(bounds.low < limit.offset for limit in comparable):
        return None
    greatest = max(comparable, key=lambda limit: limit.offset)
    return Outside(occurrence, bounds, column, None, False, greatest)


def _is_outside(bounds: Interval, size: int) -> bool:
    return size > 0 and (bounds.high < -size or bounds.low >= size)


class _Step(NamedTuple):
    """A node on the path from an upstream value to the analysed value.

    Attributes:
        value: the output of the node on the path.
        port: the number of the input on the path.
    """

    value: Value
    node: Node
    op: GeneralOp
    port: int


def occurrences(
    facts: Facts, value: Value, *, reader: Graph, counts_on_open: bool = False
) -> Iterator[Occurrence]:
    """Yield elements that certainly occur in a value; first the bounds of all elements.

    Loop counters are considered only if `reader`, the graph that reads the value, is a body. Elements
    relative to dynamic sizes are considered only with `counts_on_open`.
    """
    yield Occurrence(bounds_of(facts, value, None), value, True, _is_filled(facts.shape(value)))
    steps: dict[Value, _Step | None] = {value: None}
    pending = [value]
    while pending and len(steps) < _MOST_VISITED:
        current = pending.pop()
        starts = [*_find_local(facts, current, steps[current], reader)]
        if counts_on_open:
            starts += _find_relative(facts.result_of(RelativeSizes), current)
        for occurrence in starts:
            yield from _propagate(facts, occurrence, current, steps)
        for step in _upstream(facts, current):
            source = step.node.inputs[step.port].value
            if source is not None and source not in steps:
                steps[source] = step
                pending.append(source)


def _upstream(facts: Facts, value: Value) -> Iterator[_Step]:
    """Yield the inputs of a value's producer whose elements all occur in the value, maybe changed."""
    node = value.producer if value.constant is None and not value.is_input else None
    op = row_of(node)
    if node is None or op is None or facts.array(value) is not None:
        return
    if op.is_elementwise:
        ports = range(len(node.inputs))
    else:
        ports = (
            range(len(node.inputs) if op.moves is None else min(len(node.inputs), 1))
            if op.keeps_all or op.is_pointwise
            else range(0)
        )
    for port in ports:
        yield _Step(value, node, op, port)


def _find_local(facts: Facts, value: Value, step: _Step | None, reader: Graph) -> Iterator[Occurrence]:
    """Yield the elements that are known from a value or its producer alone."""
    is_filled = _is_filled(facts.shape(value))
    array = facts.whole_numbers(value)
    if array is not None:
        if array.size:
            columns = columns_of_array(array)
            for number, bounds in enumerate(columns):
                for end in {*bounds}:
                    yield Occurrence(_replace_column(columns, number, Interval(end, end)), value)
        return
    if step is not None and step.op is named("Concat"):
        yield Occurrence(bounds_of(facts, value, None), value, is_certain=is_filled)
    node = value.producer
    if reader.scope and (value.is_input or node is None):
        # imported here, as only few models need it
        from ir_scatter.analysis.reachability import reachability_of

        reachability = facts.result_of(reachability_of)
        numbers = [] if reachability is None else reachability.counted_numbers(value, reader)
        for number, iteration in numbers:
            columns = bounds_within_type(facts, value, (Interval(number, number),))
            yield Occurrence(columns, value, remark=f"the number of the {iteration} iteration")
    if node is None or row_of(node) is not named("Range") or len(node.inputs) < 3:
        return
    start, stop, increment = [
        ANY if port.value is None else hull(bounds_of(facts, port.value)) for port in node.inputs[:3]
    ]
    if increment.low >= 1:
        last = Interval(max(stop.low - increment.high, start.low), stop.high - 1)
        is_filled = is_filled or start.high < stop.low
    elif increment.high <= -1:
        last = Interval(stop.low + 1, min(stop.high - increment.low, start.high))
        is_filled = is_filled or start.low > stop.high
    else:
        return
    for bounds, remark in ((start, "the first number"), (last, "the last number")):
        columns = bounds_within_type(facts, value, (bounds,))
        yield Occurrence(columns, value, is_certain=is_filled, remark=remark)


def _find_relative(sizes: RelativeSizes, value: Value) -> Iterator[Occurrence]:
    """Yield elements that are a dynamic size plus a constant, known from a value or its producer alone."""
    terms = sizes.terms(value)
    if terms is not None:
        width = terms.sizes.shape[-1] if terms.sizes.ndim else 1
        rows = zip(terms.sizes.reshape(-1).tolist(), terms.offsets.reshape(-1).tolist(), strict=True)
        kinds = {(place % width, *row): None for place, row in enumerate(rows) if row[0]}
        for column, number, offset in kinds:
            columns = _replace_column((ANY,) * width, column, Interval(offset, offset))
            yield Occurrence(columns, value, terms.sizes.size == 1, size=sizes.size(number))
        return
    node = value.producer
    if (
        node is None
        or row_of(node) is not named("Range")
        or len(node.inputs) < 3
        or not sizes.holds_sizes(value)
    ):
        return
    ends = [sizes.scalar(port.value) for port in node.inputs[:3]]
    start, stop, increment = ends
    if start is None or stop is None or increment is None or increment[0] is not None or not increment[1]:
        return
    step = increment[1]
    is_filled = _is_before(sizes, start, stop) if step > 0 else _is_before(sizes, stop, start)
    if is_filled is False:
        return
    last = sorted((stop[1] - step, stop[1] - (1 if step > 0 else -1)))
    numbers = ((start[0], [start[1]] * 2, "the first number"), (stop[0], last, "the last number"))
    for size, (low, high), remark in numbers:
        if size is not None:
            bounds = Interval(low, high)
            yield Occurrence((bounds,), value, is_certain=bool(is_filled), remark=remark, size=size)


def _is_before(
    sizes: RelativeSizes, first: tuple[DimSize | None, int], second: tuple[DimSize | None, int]
) -> bool | None:
    """Return whether the sum `first` of a size and an offset is less than `second`; None if sizes decide."""
    if first[0] == second[0]:
        return first[1] < second[1]
    if first[0] is None and second[0] is not None:
        return True if first[1] < lowest(sizes.dim(second[0])) + second[1] else None
    high = highest(sizes.dim(first[0])) if first[0] is not None and second[0] is None else None
    return True if high is not None and high + first[1] < second[1] else None


def _replace_column(columns: Columns, number: int, bounds: Interval) -> Columns:
    return (*columns[:number], bounds, *columns[number + 1 :])


def _propagate(
    facts: Facts, occurrence: Occurrence, value: Value, steps: Mapping[Value, _Step | None]
) -> Iterator[Occurrence]:
    """Propagate an element of an upstream value to the analysed value; yield its bounds there."""
    pending = [(occurrence, value)]
    while pending:
        occurrence, value = pending.pop()
        step = steps[value]
        if step is None:
            yield occurrence
            continue
        is_certain = _stays_filled(facts, step, value, occurrence)
        transfer = _transfer if occurrence.size is None else _transfer_relative
        for columns in transfer(facts, step, value, occurrence.columns):
            pending.append((occurrence._replace(columns=columns, is_certain=is_certain), step.value))


def _stays_filled(facts: Facts, step: _Step, value: Value, occurrence: Occurrence) -> bool:
    """Return whether the output of a node certainly has elements if the input on the path has some."""
    if _is_filled(facts.shape(step.value)):
        return True
    if not occurrence.is_certain or step.op.aligns:
        return False
    if not step.op.is_elementwise:
        return True
    operands = [port.value for port in step.node.inputs if port.value is not value]
    return all(operand is not None and _is_filled(facts.shape(operand)) for operand in operands)


def _transfer(facts: Facts, step: _Step, value: Value, columns: Columns) -> Iterator[Columns]:
    """Propagate an input element with bounds `columns` through a node; yield its bounds in the output."""
    changed: dict[Value, Columns | None] = {value: columns}
    inputs = ChainMap(changed, facts.bounds[False])
    shape = facts.shape(value)
    if step.op is named("Concat"):
        try:
            axis, rank = Attributes(step.node.attributes).integer("axis", -1), len(shape or ())
        except (ValueError, TypeError):  # the axis attribute is not a number
            return
        if rank and axis not in {-1, rank - 1}:
            yield columns
            return
        joined_columns = bounds_within_type(facts, step.value, None, inputs) if rank else ()
        if len(joined_columns) > 1:
            yield joined_columns
        else:
            yield from ((bounds,) for bounds in columns)
        return
    if step.op.copies or step.op.aligns_last(step.node.attributes):
        results = bounds_within_type(facts, step.value, None, inputs)
        is_row = len(columns) > 1 or (shape is not None and shape[-1:] in {(), (1,)})
        yield results if is_row or step.op.copies else (hull(results),)
        return
    for bounds in columns:  # the node may move them to other columns
        changed[value] = (bounds,)
        yield bounds_within_type(facts, step.value, None, inputs)


def _transfer_relative(facts: Facts, step: _Step, value: Value, columns: Columns) -> Iterator[Columns]:
    """Like `_transfer`, for bounds that must be added to a dynamic size."""
    node, op = step.node, step.op
    if not facts.result_of(RelativeSizes).holds_sizes(step.value):
        return
    if op is named("Concat"):
        inputs = [columns if port.value is value else (ANY,) for port in node.inputs]
        shapes = [None if port.value is None else facts.shape(port.value) for port in node.inputs]
        try:
            axis, rank = Attributes(node.attributes).integer("axis"), len(facts.shape(value) or ())
            joined_columns = side_by_side(node, inputs, shapes)
        except (ValueError, TypeError):  # the axis attribute is not a number
            return
        if rank and axis not in {-1, rank - 1}:
            yield columns
        elif len(joined_columns) > 1:
            yield joined_columns
        else:
            yield from ((bounds,) for bounds in columns)
    elif op.copies:
        yield columns
    elif op.arithmetic is Arithmetic.SUM or (op.arithmetic is Arithmetic.DIFFERENCE and step.port == 0):
        operand = node.inputs[1 - step.port].value
        bounds = ANY if operand is None else hull(bounds_of(facts, operand))
        if not bounds.is_within(-LARGE, LARGE):  # the sum may overflow
            return
        low, high = bounds if op.arithmetic is Arithmetic.SUM else (-bounds.high, -bounds.low)
        shape = facts.shape(value)
        is_row = op.aligns_last(node.attributes) and (len(columns) > 1 or (shape and shape[-1] == 1))
        shifted = [Interval(column.low + low, column.high + high) for column in columns]
        yield from [tuple(shifted)] if is_row else [(column,) for column in shifted]
    elif op.keeps_all:
        yield from ((bounds,) for bounds in columns)  # the node may move them to other columns


def _is_filled(shape: Shape) -> bool:
    """Return whether a value of this shape certainly has elements."""
    return shape is not None and all(lowest(dim) > 0 for dim in shape)
