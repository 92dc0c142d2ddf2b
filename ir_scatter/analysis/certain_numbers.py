"""Numbers that certainly occur among the elements of a value, whatever a model is given.

Bounds say where all elements lie. Some elements are known more exactly: the ends of a Range, of a constant or
of what counts the iterations of a loop, and the parts that a Concat joins.

    Range (1, 6)         1 and 5 occur
    Add (that, 2)        3 and 7 occur

Where indices count on an open dimension of size n, numbers are also followed as n plus a constant:

    Range (0, n + 1)     n occurs, and 0

An element is followed through operators whose output has all elements of an input (`GeneralOp.keeps_all`), or
computes one of each.
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
    joined,
    row_of,
    side_by_side,
)
from ir_scatter.analysis.relative_sizes import LARGE, Relative, RelativeSizes, Size
from ir_scatter.core.model import Graph, Node, Value
from ir_scatter.core.shapes import Shape, highest, lowest
from ir_scatter.ops.attributes import Attributes
from ir_scatter.ops.general import Arithmetic, GeneralOp, named
from ir_scatter.ops.general_bounds import ANY, Interval

_MOST_VISITED = 48
"""At most this many values upstream are looked at for one value."""


class Occurrence(NamedTuple):
    """Elements that a value certainly has: a row with one in each column, or one element of any column.

    Attributes:
        source: the value of which it was known first.
        is_all: whether all elements of the value are like that.
        is_certain: whether it is known that the value has elements at all.
        remark: which element of the source it is, "the last number"; "" for any.
        size: of which dimension's size the numbers are known; the columns are what is added to it.
    """

    columns: Columns
    source: Value
    is_all: bool = False
    is_certain: bool = True
    remark: str = ""
    size: Size | None = None


class Outside(NamedTuple):
    """Indices that are certainly out of range, or negative where that is forbidden.

    Attributes:
        bounds: between which numbers they lie.
        column: the coordinate of tuples that they are; None if there is one only, or it may be any.
        size: the size that they count on, the greatest if it may be any; None if it is not known.
        is_negative: whether they are negative and may be in range if they count from the end.
        relative: the open dimension that they count on, if the bounds are what is added to `occurrence.size`.
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
    """Return elements of a value that are certainly out of range.

    The sizes they count on are one, or one for each coordinate of a tuple; `open_sizes` are those of which
    no number is known. The reader is the graph of the node whose indices they are.
    """
    fallback = None
    for occurrence in occurrences(facts, value, reader=reader, counts_on_open=any(open_sizes)):
        is_by_column = len(occurrence.columns) == len(sizes)
        for column, bounds in enumerate(occurrence.columns):
            number = column if is_by_column and len(sizes) > 1 else None
            places = slice(column, column + 1) if is_by_column else slice(None)
            if occurrence.size is not None:
                outside = _beyond_open(occurrence, bounds, number, open_sizes[places])
            else:
                outside = _beyond_known(occurrence, bounds, number, sizes[places], forbids_negative)
            if outside is None:
                continue
            if occurrence.is_certain:
                return outside
            fallback = fallback or outside
    return fallback


def _beyond_known(
    occurrence: Occurrence,
    bounds: Interval,
    column: int | None,
    limits: Sequence[int | None],
    forbids_negative: bool,
) -> Outside | None:
    is_outside = all(size is not None and _is_outside(bounds, size) for size in limits)
    if not is_outside and not (forbids_negative and bounds.high < 0):
        return None
    known = [size for size in limits if size is not None]
    size = max(known) if len(known) == len(limits) else None
    return Outside(occurrence, bounds, column, size, not is_outside)


def _beyond_open(
    occurrence: Occurrence, bounds: Interval, column: int | None, limits: Sequence[Relative | None]
) -> Outside | None:
    """Return elements that are the size they count on, or more, whatever that size is."""
    known = [limit for limit in limits if limit is not None and limit.size == occurrence.size]
    if len(known) < len(limits) or any(bounds.low < limit.offset for limit in known):
        return None
    greatest = max(known, key=lambda limit: limit.offset)
    return Outside(occurrence, bounds, column, None, False, greatest)


def _is_outside(bounds: Interval, size: int) -> bool:
    return size > 0 and (bounds.high < -size or bounds.low >= size)


class _Step(NamedTuple):
    """A node that reads a value at a port, on the way to the value that was asked for."""

    value: Value
    node: Node
    op: GeneralOp
    port: int


def occurrences(
    facts: Facts, value: Value, *, reader: Graph, counts_on_open: bool = False
) -> Iterator[Occurrence]:
    """Yield what certainly occurs in a value, first what holds for all of its elements.

    Iterations are counted only where the graph that reads the value is the body of a node. What is known
    as the size of a dimension and a constant is yielded only if that is asked for.
    """
    yield Occurrence(bounds_of(facts, value, None), value, True, _is_filled(facts.shape(value)))
    steps: dict[Value, _Step | None] = {value: None}
    pending = [value]
    while pending and len(steps) < _MOST_VISITED:
        current = pending.pop()
        begun = [*_begin(facts, current, steps[current], reader)]
        if counts_on_open:
            begun += _begin_at_sizes(facts, facts.derived(RelativeSizes), current)
        for occurrence in begun:
            yield from _follow(facts, occurrence, current, steps)
        for step in _upstream(facts, current):
            source = step.node.inputs[step.port].value
            if source is not None and source not in steps:
                steps[source] = step
                pending.append(source)


def _upstream(facts: Facts, value: Value) -> Iterator[_Step]:
    """Yield the ports of the producer of a value all of whose elements show in it."""
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


def _begin(facts: Facts, value: Value, step: _Step | None, reader: Graph) -> Iterator[Occurrence]:
    """Yield what is known of single elements of a value without looking upstream."""
    is_filled = _is_filled(facts.shape(value))
    array = facts.whole_numbers(value)
    if array is not None:
        if array.size:
            columns = columns_of_array(array)
            for number, bounds in enumerate(columns):
                for end in {*bounds}:
                    yield Occurrence(_with(columns, number, Interval(end, end)), value)
        return
    if step is not None and step.op is named("Concat"):
        yield Occurrence(bounds_of(facts, value, None), value, is_certain=is_filled)
    node = value.producer
    if reader.scope and (value.is_input or node is None):
        from ir_scatter.analysis.reachability import reachability_of  # which few models need

        reachability = facts.derived(reachability_of)
        numbers = [] if reachability is None else reachability.counted_numbers(value, reader)
        for number, iteration in numbers:
            columns = bounds_within_type(facts, value, (Interval(number, number),))
            yield Occurrence(columns, value, remark=f"the number of the {iteration} iteration")
    if node is None or row_of(node) is not named("Range") or len(node.inputs) < 3:
        return
    start, stop, increment = [
        ANY if port.value is None else joined(bounds_of(facts, port.value)) for port in node.inputs[:3]
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


def _begin_at_sizes(facts: Facts, sizes: RelativeSizes, value: Value) -> Iterator[Occurrence]:
    """Yield elements of a value that are the size of a dimension plus a constant, as `_begin` does others."""
    terms = sizes.terms(value)
    if terms is not None:
        width = terms.sizes.shape[-1] if terms.sizes.ndim else 1
        rows = zip(terms.sizes.reshape(-1).tolist(), terms.offsets.reshape(-1).tolist(), strict=True)
        kinds = {(place % width, *row): None for place, row in enumerate(rows) if row[0]}
        for column, number, offset in kinds:
            columns = _with((ANY,) * width, column, Interval(offset, offset))
            yield Occurrence(columns, value, terms.sizes.size == 1, size=sizes.size(number))
        return
    node = value.producer
    if node is None or row_of(node) is not named("Range") or len(node.inputs) < 3 or not sizes.counts(value):
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
    found = ((start[0], [start[1]] * 2, "the first number"), (stop[0], last, "the last number"))
    for size, (low, high), remark in found:
        if size is not None:
            bounds = Interval(low, high)
            yield Occurrence((bounds,), value, is_certain=bool(is_filled), remark=remark, size=size)


def _is_before(
    sizes: RelativeSizes, first: tuple[Size | None, int], second: tuple[Size | None, int]
) -> bool | None:
    """Tell whether a number is less than another one; None if that depends on the sizes."""
    if first[0] == second[0]:
        return first[1] < second[1]
    if first[0] is None and second[0] is not None:
        return True if first[1] < lowest(sizes.dim(second[0])) + second[1] else None
    high = highest(sizes.dim(first[0])) if first[0] is not None and second[0] is None else None
    return True if high is not None and high + first[1] < second[1] else None


def _with(columns: Columns, number: int, bounds: Interval) -> Columns:
    return (*columns[:number], bounds, *columns[number + 1 :])


def _follow(
    facts: Facts, occurrence: Occurrence, value: Value, steps: Mapping[Value, _Step | None]
) -> Iterator[Occurrence]:
    """Yield what becomes of an element of a value in the value that was asked for."""
    pending = [(occurrence, value)]
    while pending:
        occurrence, value = pending.pop()
        step = steps[value]
        if step is None:
            yield occurrence
            continue
        is_certain = _stays_filled(facts, step, value, occurrence)
        pass_on = _passed_on if occurrence.size is None else _passed_on_with_size
        for columns in pass_on(facts, step, value, occurrence.columns):
            pending.append((occurrence._replace(columns=columns, is_certain=is_certain), step.value))


def _stays_filled(facts: Facts, step: _Step, value: Value, occurrence: Occurrence) -> bool:
    """Tell whether an output certainly has elements if the input has some."""
    if _is_filled(facts.shape(step.value)):
        return True
    if not occurrence.is_certain or step.op.aligns:
        return False
    others = (
        [port.value for port in step.node.inputs if port.value is not value] if step.op.is_elementwise else []
    )
    return all(other is not None and _is_filled(facts.shape(other)) for other in others)


def _passed_on(facts: Facts, step: _Step, value: Value, columns: Columns) -> Iterator[Columns]:
    """Yield what the columns of an input of a node become in its output."""
    changed: dict[Value, Columns | None] = {value: columns}
    known = ChainMap(changed, facts.bounds[False])
    shape = facts.shape(value)
    if step.op is named("Concat"):
        try:
            axis, rank = Attributes(step.node.attributes).integer("axis", -1), len(shape or ())
        except (ValueError, TypeError):  # nothing is joined along an axis that is no number
            return
        if rank and axis not in {-1, rank - 1}:
            yield columns
            return
        joined_columns = bounds_within_type(facts, step.value, None, known) if rank else ()
        if len(joined_columns) > 1:
            yield joined_columns
        else:
            yield from ((bounds,) for bounds in columns)
        return
    if step.op.copies or step.op.aligns_last(step.node.attributes):
        found = bounds_within_type(facts, step.value, None, known)
        is_row = len(columns) > 1 or (shape is not None and shape[-1:] in {(), (1,)})
        yield found if is_row or step.op.copies else (joined(found),)
        return
    for bounds in columns:  # they may stand in other columns
        changed[value] = (bounds,)
        yield bounds_within_type(facts, step.value, None, known)


def _passed_on_with_size(facts: Facts, step: _Step, value: Value, columns: Columns) -> Iterator[Columns]:
    """Yield what becomes in the output of what is added to a size in the columns of an input."""
    node, op = step.node, step.op
    if not facts.derived(RelativeSizes).counts(step.value):
        return
    if op is named("Concat"):
        inputs = [columns if port.value is value else (ANY,) for port in node.inputs]
        shapes = [None if port.value is None else facts.shape(port.value) for port in node.inputs]
        try:
            axis, rank = Attributes(node.attributes).integer("axis"), len(facts.shape(value) or ())
            joined_columns = side_by_side(node, inputs, shapes)
        except (ValueError, TypeError):  # nothing is joined along an axis that is no number
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
        other = node.inputs[1 - step.port].value
        bounds = ANY if other is None else joined(bounds_of(facts, other))
        if not bounds.is_within(-LARGE, LARGE):  # the sum may overflow
            return
        low, high = bounds if op.arithmetic is Arithmetic.SUM else (-bounds.high, -bounds.low)
        shape = facts.shape(value)
        is_row = op.aligns_last(node.attributes) and (len(columns) > 1 or (shape and shape[-1] == 1))
        changed = [Interval(one.low + low, one.high + high) for one in columns]
        yield from [tuple(changed)] if is_row else [(one,) for one in changed]
    elif op.keeps_all:
        yield from ((bounds,) for bounds in columns)  # they may stand in other columns


def _is_filled(shape: Shape) -> bool:
    """Tell whether a value of a shape certainly has elements."""
    return shape is not None and all(lowest(dim) > 0 for dim in shape)
