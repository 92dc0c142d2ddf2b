"""Numbers that certainly occur among the elements of a value, whatever a model is given.

Bounds say where all elements lie. Some elements are known more exactly: the ends of a Range, of a constant or
of what counts the iterations of a loop, and the parts that a Concat joins.

    Range (1, 6)         1 and 5 occur
    Add (that, 2)        3 and 7 occur

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
)
from ir_scatter.core.model import Node, Value
from ir_scatter.core.shapes import Shape, lowest
from ir_scatter.ops.attributes import Attributes
from ir_scatter.ops.general import GeneralOp, named
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
    """

    columns: Columns
    source: Value
    is_all: bool = False
    is_certain: bool = True
    remark: str = ""


class Outside(NamedTuple):
    """Indices that are certainly out of range, or negative where that is forbidden.

    Attributes:
        bounds: between which numbers they lie.
        column: the coordinate of tuples that they are; None if there is one only, or it may be any.
        size: the size that they count on, the greatest if it may be any; None if it is not known.
        is_negative: whether they are negative and may be in range if they count from the end.
    """

    occurrence: Occurrence
    bounds: Interval
    column: int | None
    size: int | None
    is_negative: bool


def find_outside(
    facts: Facts, value: Value, sizes: Sequence[int | None], *, forbids_negative: bool, is_in_body: bool
) -> Outside | None:
    """Return elements of a value that are certainly out of range.

    The sizes they count on are one, or one for each coordinate of a tuple.
    """
    fallback = None
    for occurrence in occurrences(facts, value, is_in_body=is_in_body):
        is_by_column = len(occurrence.columns) == len(sizes)
        for column, bounds in enumerate(occurrence.columns):
            limits = [sizes[column]] if is_by_column else sizes
            is_outside = all(size is not None and _is_outside(bounds, size) for size in limits)
            if not is_outside and not (forbids_negative and bounds.high < 0):
                continue
            number = column if is_by_column and len(sizes) > 1 else None
            known = [size for size in limits if size is not None]
            size = max(known) if len(known) == len(limits) else None
            outside = Outside(occurrence, bounds, number, size, not is_outside)
            if occurrence.is_certain:
                return outside
            fallback = fallback or outside
    return fallback


def _is_outside(bounds: Interval, size: int) -> bool:
    return size > 0 and (bounds.high < -size or bounds.low >= size)


class _Step(NamedTuple):
    """A node that reads a value at a port, on the way to the value that was asked for."""

    value: Value
    node: Node
    op: GeneralOp
    port: int


def occurrences(facts: Facts, value: Value, *, is_in_body: bool) -> Iterator[Occurrence]:
    """Yield what certainly occurs in a value, first what holds for all of its elements.

    Iterations are counted only where the value is read in the body of a node (`is_in_body`).
    """
    yield Occurrence(bounds_of(facts, value, None), value, True, _is_filled(facts.shape(value)))
    steps: dict[Value, _Step | None] = {value: None}
    pending = [value]
    while pending and len(steps) < _MOST_VISITED:
        current = pending.pop()
        for occurrence in _begin(facts, current, steps[current], is_in_body=is_in_body):
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


def _begin(facts: Facts, value: Value, step: _Step | None, *, is_in_body: bool) -> Iterator[Occurrence]:
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
    if is_in_body and (value.is_input or node is None):
        from ir_scatter.analysis.reachability import reachability_of  # which few models need

        reachability = facts.derived(reachability_of)
        trips = None if reachability is None else reachability.trips(value)
        if trips:
            yield Occurrence(
                (Interval(trips - 1, trips - 1),), value, remark="the number of the last iteration"
            )
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
        for columns in _passed_on(facts, step, value, occurrence.columns):
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
        side_by_side = bounds_within_type(facts, step.value, None, known) if rank else ()
        if len(side_by_side) > 1:
            yield side_by_side
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


def _is_filled(shape: Shape) -> bool:
    """Tell whether a value of a shape certainly has elements."""
    return shape is not None and all(lowest(dim) > 0 for dim in shape)
