"""Rules for the elements of operators that move elements: Reshape, Transpose, Concat, Gather and others."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from ir_scatter.analysis.symbolic.case import Dims, NodeCase, Query, type_range
from ir_scatter.analysis.symbolic.linear import ONE, Knowledge, Linear
from ir_scatter.analysis.symbolic.numbers import (
    MOST_COLUMNS,
    CaseBounds,
    Cases,
    Condition,
    TensorNumbers,
    between,
    exactly,
    from_vector,
    of_some,
    union,
    unwrapped,
)
from ir_scatter.analysis.symbolic.rules.conditions import under_condition
from ir_scatter.analysis.symbolic.rules.dimensions import (
    gather_axis,
    kept_axes,
    slice_cuts,
    split_axis,
    split_lengths,
    strided_plan,
    transpose_order,
    unsqueezed_order,
)
from ir_scatter.analysis.symbolic.rules.registry import operator_name, rule_for_numbers
from ir_scatter.analysis.symbolic.rules.shared import (
    EXACT_INTEGERS,
    MOST_NESTED,
    joined_origin,
    moved_axes,
    rank_of,
    stretched,
)
from ir_scatter.analysis.symbolic.rules.tuples import are_disjoint, distinct_tuples
from ir_scatter.analysis.symbolic.words import is_checkable
from ir_scatter.ops.attributes import Attributes


@rule_for_numbers("Identity", "Dropout")
def _same(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    return (yield from case.numbers(0))


@rule_for_numbers("Convert", "ConvertLike")
def _cast(case: NodeCase) -> Generator[Query, Any, TensorNumbers | None]:
    source, output = case.value(0), case.node.outputs[case.output]
    if source is None:
        return None
    numbers = yield from case.numbers(0)
    facts = case.walker.facts
    before, after = facts.element_type(source), facts.element_type(output)
    if before is None or after is None:
        return None
    if after.kind == "boolean":
        dims = yield from case.output_dims()
        return (
            replace(numbers, cases=between(0, 1), columns=None)
            if before is after
            else TensorNumbers(between(0, 1), rank=rank_of(dims), varying=numbers.varying)
        )
    if before.kind == "float" and after.kind in {"signed", "unsigned"}:
        if source in case.walker.inputs:
            shape = yield from case.dims(0)
            case.walker.cast_inputs[output] = source
            return replace(case.walker.input_numbers(output, shape), unknown=None)
        return _narrowed(case, numbers, after.kind, type_range(after))
    if after.kind == "float":
        limit = EXACT_INTEGERS.get(after.name, 0)
        return numbers.mapped(
            lambda cases: tuple([_exact_float(case, part, before, limit) for part in cases])
        )
    return _narrowed(case, numbers, after.kind, type_range(after), type_range(before))


def _exact_float(case: NodeCase, part: CaseBounds, before: Any, limit: int) -> CaseBounds:
    """Return a case cast to floats, with the requirement that they hold its numbers exactly.

    `limit` is the magnitude up to which they do.
    """
    low, high = type_range(before)
    part = unwrapped(part, int(low), int(high), case.knowledge) if abs(low) < 2**70 else part
    if not part.lows or not part.highs:
        return CaseBounds(requires=part.requires)
    ends = part.lows[0].plus(limit), Linear(limit).minus(part.highs[0])
    requires = {end for end in ends if not case.knowledge.proves(end)}
    return part._replace(requires=part.requires | requires)


def _narrowed(
    case: NodeCase,
    numbers: TensorNumbers,
    kind: str,
    after: tuple[float, float],
    before: tuple[float, float] | None = None,
) -> TensorNumbers:
    """Return the facts about integers cast to another integer type.

    Numbers that may not fit are equal modulo the size of the type.
    """
    low, high = int(after[0]), int(after[1])
    narrows = before is not None and before[0] < low <= high < before[1] and low < 0

    def change(cases: Cases) -> Cases:
        changed = []
        for part in cases:
            if not narrows and before is not None and abs(before[0]) < 2**70:
                part = unwrapped(part, int(before[0]), int(before[1]), case.knowledge)
            fits = (
                any(case.knowledge.proves(end.plus(-low)) for end in part.lows)
                and any(case.knowledge.proves(Linear(high).minus(end)) for end in part.highs)
            )  # fmt: skip
            changed.append(part if fits and not part.may_wrap else part._replace(may_wrap=True))
        return tuple(changed)

    result = numbers.mapped(change)
    wrapping = [part for part in result.cases if part.may_wrap]
    if not wrapping or any(part.may_wrap for part in numbers.cases):
        return result
    if not all(part.lows and part.highs for part in wrapping):
        return replace(result, distinct=frozenset(), is_unique=False, tuples_axis=None, split=None)
    # numbers that are equal modulo the size of the type would be equal now
    fits = {end for part in wrapping for end in (part.lows[0].plus(-low), Linear(high).minus(part.highs[0]))}
    unproven = {end for end in fits if not case.knowledge.proves(end)}
    return replace(result, conditions=result.conditions | unproven, split=None)


@rule_for_numbers("Reshape", "Flatten", "Squeeze", "Unsqueeze")
def _reshaped_numbers(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    """Reshape, Flatten, Squeeze and Unsqueeze: the same elements in another shape."""
    numbers = yield from case.numbers(0)
    before, after = (yield from case.dims(0)), (yield from case.output_dims())
    name = operator_name(case)
    order: list[int | None] | None = None
    if before is not None and after is not None:
        if name == "Unsqueeze":
            order = unsqueezed_order(case, len(before))
        elif name == "Squeeze":
            kept = kept_axes(case, before)
            order = None if kept is None else [*kept]
        else:
            order = _matching_axes(before, after)
    if order is not None:
        return moved_axes(numbers, order)
    if before is not None and after is not None:
        return _merged(numbers, before, after)
    return TensorNumbers(
        numbers.cases, rank=rank_of(after), is_unique=numbers.is_unique, origin=numbers.origin,
        unknown=numbers.unknown, conditions=numbers.conditions,
    )  # fmt: skip


def _matching_axes(before: Sequence[Linear], after: Sequence[Linear]) -> list[int | None] | None:
    """Return the axis of `before` for each axis of `after`, None for a new axis of size 1.

    None instead of a list if the shapes differ by more than dimensions of size 1.
    """
    rest = [axis for axis, size in enumerate(before) if size != ONE]
    if [before[axis] for axis in rest] != [size for size in after if size != ONE]:
        return None
    return [None if size == ONE else rest.pop(0) for size in after]


def _merged(numbers: TensorNumbers, before: Sequence[Linear], after: Sequence[Linear]) -> TensorNumbers:
    """Return the facts after a Reshape that joins or splits dimensions.

    If the last dimension stays, so do its columns: index tuples [B, S, 2] as [B * S, 2] stay distinct.
    """
    keeps_last = bool(before) and bool(after) and before[-1] == after[-1] and before[-1].is_constant
    last = len(before) - 1
    stays = keeps_last and numbers.columns is not None and numbers.column_axis == last
    is_tuples = keeps_last and numbers.tuples_axis == last
    columns = numbers.columns if stays else None
    if columns is None and numbers.columns is not None and len(after) == 1 and len(before) == 1:
        columns = numbers.columns
    return TensorNumbers(
        numbers.cases, columns, len(after) - 1, len(after), None,
        frozenset(range(len(after))) if numbers.is_unique else frozenset(), numbers.is_unique,
        len(after) - 1 if is_tuples else None, numbers.split, numbers.origin, numbers.unknown,
        numbers.conditions,
    )  # fmt: skip


@rule_for_numbers("Transpose")
def _transposed_numbers(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    numbers, source = (yield from case.numbers(0)), (yield from case.dims(0))
    order = None if source is None else transpose_order(case, len(source))
    if order is None:
        return replace(numbers.bounds_only(), is_unique=numbers.is_unique, conditions=numbers.conditions)
    return moved_axes(numbers, [*order])


@rule_for_numbers("Broadcast", "Tile")
def _broadcast_numbers(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    """Broadcast and Tile: elements stay distinct along the axes that are not repeated."""
    numbers, before, after = (
        (yield from case.numbers(0)),
        (yield from case.dims(0)),
        (yield from case.output_dims()),
    )
    if before is None or after is None or len(before) > len(after):
        return numbers.bounds_only()
    mode = str(case.node.attributes.get("mode", "numpy")).lower()
    places: list[int] | None = [*range(len(after) - len(before), len(after))]
    if case.is_openvino and operator_name(case) == "Broadcast" and mode not in {"numpy", "bidirectional"}:
        places = case.constants(2) if mode in {"explicit", "none"} else None
    if places is None or len(places) != len(before) or sorted(places) != places:
        return numbers.bounds_only()
    order: list[int | None] = [None] * len(after)
    for axis, place in enumerate(places):
        order[place] = axis
    return stretched(numbers, order, before, after, case.knowledge, is_tile=operator_name(case) == "Tile")


@rule_for_numbers("Concat")
def _joined_numbers(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    """Concat: parts joined along the last axis are the columns of index tuples."""
    parts, shapes = [], []
    for port in range(len(case.node.inputs)):
        parts.append((yield from case.numbers(port)))
        shapes.append((yield from case.dims(port)))
    dims = yield from case.output_dims()
    cases = union([part.cases for part in parts])
    unknown = next((part.unknown for part in parts if part.unknown is not None), None)
    origin = joined_origin(parts, ", ")
    result = TensorNumbers(cases, rank=rank_of(dims), origin=origin, unknown=unknown)
    if dims is None or any(shape is None for shape in shapes):
        return result
    axis = Attributes(case.node.attributes).integer("axis") % len(dims)
    widths = [shape[axis] for shape in shapes if shape is not None]
    columns: list[Cases] | None = []
    for part, width in zip(parts, widths, strict=True):
        if columns is None or not width.is_constant or len(columns) + width.constant > MOST_COLUMNS:
            columns = None
        elif part.columns is not None and part.column_axis == axis and len(part.columns) == width.constant:
            columns += part.columns
        else:
            columns += [part.cases] * width.constant
    varying_axes = (
        None if any(part.varying is None for part in parts)
        else frozenset([axis]).union(*[part.varying for part in parts if part.varying is not None])
    )  # fmt: skip
    distinct = frozenset.intersection(*[part.distinct for part in parts]) - {axis}
    conditions = (
        frozenset[Condition]().union(*[part.conditions for part in parts]) if distinct else frozenset()
    )
    vectors = next((part for part in parts if part.tuples_axis == axis), None)
    tuples = None if vectors is None else True
    if vectors is not None:
        conditions, distinct = vectors.conditions, frozenset()
    if tuples is None:
        # a part without a column distinguishes nothing: [4, 0] has no two equal elements, but equal rows
        joined_parts = [
            (value, part)
            for value, part, width in zip(case.values(), parts, widths, strict=True)
            if value is not None and case.knowledge.proves(width.plus(-1))
        ]
        numbers = yield from distinct_tuples(
            case, [value for value, _ in joined_parts], [part for _, part in joined_parts], axis, dims
        )
        tuples = True if numbers is not None else None
        conditions, distinct = (conditions, distinct) if numbers is None else (numbers, frozenset())
    is_ordered = columns is not None and len(dims) == 1
    joined = replace(
        result, columns=tuple(columns) if columns else None, column_axis=axis, varying=varying_axes,
        distinct=distinct, tuples_axis=axis if tuples else None, conditions=conditions,
    )  # fmt: skip
    if is_ordered and columns is not None:
        vector = from_vector(columns, origin=origin)
        return replace(joined, distinct=vector.distinct, is_unique=vector.is_unique)
    if are_disjoint(case.knowledge, parts) and all(axis in part.distinct for part in parts):
        joined = replace(
            joined, distinct=joined.distinct | {axis},
            is_unique=all(part.is_unique for part in parts),
            conditions=conditions.union(*[part.conditions for part in parts]),
        )  # fmt: skip
    return joined


@rule_for_numbers("Split", "VariadicSplit")
def _split_numbers(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    numbers, source = (yield from case.numbers(0)), (yield from case.dims(0))
    axis = split_axis(case, source)
    if axis is None or source is None:
        return numbers.bounds_only()
    columns = None
    if numbers.columns is not None and numbers.column_axis == axis:
        dims = yield from case.output_dims()
        lengths: list[Linear] | None = None
        if operator_name(case) == "VariadicSplit":
            lengths = yield from case.vector(2)
        elif not case.is_openvino:
            lengths = yield from split_lengths(case)
        width = None if dims is None or not dims[axis].is_constant else dims[axis].constant
        start: int | None = None
        if lengths is not None and all(length.is_constant for length in lengths[: case.output]):
            if all(length.constant >= 0 for length in lengths[: case.output]):
                start = sum(length.constant for length in lengths[: case.output])
        elif lengths is None and width is not None:
            start = case.output * width
        if start is not None and width is not None:
            columns = numbers.columns[start : start + width]
    elif numbers.columns is not None:
        columns = numbers.columns
    return _part(numbers, axis, columns)


def _part(numbers: TensorNumbers, axis: int, columns: tuple[Cases, ...] | None) -> TensorNumbers:
    """Return the facts about a part of a tensor along an axis, with the columns of that part."""
    cases = union(columns) if columns and numbers.column_axis == axis else of_some(numbers.cases)
    return replace(
        numbers, cases=cases, columns=columns or None, split=None,
        tuples_axis=None if numbers.tuples_axis == axis else numbers.tuples_axis,
    )  # fmt: skip


@rule_for_numbers("Slice")
def _sliced_numbers(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    numbers, source = (yield from case.numbers(0)), (yield from case.dims(0))
    cuts = yield from slice_cuts(case, source)
    if cuts is None or source is None:
        return replace(numbers.bounds_only(), is_unique=numbers.is_unique, conditions=numbers.conditions)
    for axis, (start, end, step) in cuts.items():
        numbers = _part(numbers, axis, _cut_columns(numbers, axis, start, end, step))
    return numbers


def _cut_columns(
    numbers: TensorNumbers, axis: int, start: Linear | None, end: Linear | None, step: int | None
) -> tuple[Cases, ...] | None:
    if numbers.columns is None or numbers.column_axis != axis:
        return numbers.columns
    if start is None or end is None or not (start.is_constant and end.is_constant) or not step:
        return None
    return numbers.columns[_python_slice(start.constant, end.constant, step, len(numbers.columns))]


def _python_slice(start: int, end: int, step: int, size: int) -> slice:
    if step < 0 and end < -size:
        return slice(min(start, size - 1) if start >= 0 else start, None, step)
    return slice(start, end, step)


@rule_for_numbers("StridedSlice")
def _strided_numbers(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    numbers, source = (yield from case.numbers(0)), (yield from case.dims(0))
    plan = yield from strided_plan(case, source)
    if plan is None or source is None:
        return replace(numbers.bounds_only(), is_unique=numbers.is_unique, conditions=numbers.conditions)
    order: list[int | None] = []
    for axis, cut in plan:
        if axis is None:
            order.append(None)
        elif isinstance(cut, tuple) and not isinstance(cut, Linear):
            numbers = _part(numbers, axis, _cut_columns(numbers, axis, *cut))
            order.append(axis)
        else:
            numbers = _selected(numbers, axis, cut if isinstance(cut, Linear) else None)
    return moved_axes(numbers, order)


def _selected(numbers: TensorNumbers, axis: int, place: Linear | None) -> TensorNumbers:
    """Return the facts at one position of an axis, which stays as an axis of size 1."""
    columns = numbers.columns
    if columns is not None and numbers.column_axis == axis:
        is_known = place is not None and place.is_constant
        number = place.constant if place is not None else 0
        columns = (columns[number],) if is_known and -len(columns) <= number < len(columns) else None
    part = _part(numbers, axis, columns)
    return replace(part, varying=None if part.varying is None else part.varying - {axis})


@rule_for_numbers("Gather")
def _gathered_numbers(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    """Gather: distinct indices into distinct elements give distinct elements."""
    numbers, source = (yield from case.numbers(0)), (yield from case.dims(0))
    places, shape = (yield from case.numbers(1)), (yield from case.dims(1))
    axis = gather_axis(case, source)
    batch = Attributes(case.node.attributes).integer("batch_dims", 0) if case.is_openvino else 0
    if axis is None or source is None or shape is None:
        return TensorNumbers(
            union([of_some(numbers.cases), exactly(0)]) if case.is_openvino else of_some(numbers.cases),
            unknown=numbers.unknown,
        )
    chosen = yield from _filtered(case, source)
    if chosen is not None:
        return replace(chosen.bounds_only(), rank=len(source) + len(shape) - 1 - batch)
    constants = case.constants(1)
    size = source[axis]
    is_inside = _is_inside(case.knowledge, places, size)
    cases, columns, column_axis = of_some(numbers.cases), numbers.columns, numbers.column_axis
    rank = len(source) + len(shape) - 1 - batch
    if columns is not None and column_axis == axis:
        if constants is not None and all(-len(columns) <= place < len(columns) for place in constants):
            picked = tuple([columns[place] for place in constants])
            cases, is_inside = union(picked) if picked else cases, True
            columns, column_axis = (picked or None) if len(shape) == 1 else None, axis
        else:
            columns = None
    elif columns is not None:
        column_axis += (len(shape) - 1 - batch) if column_axis > axis else 0
    required: frozenset[Linear] = frozenset()
    if not is_inside and case.is_openvino:  # Gather-8 gives 0 for an index out of range
        checkable = _inside_conditions(case, places, size)
        if checkable is None:
            cases, columns = union([cases, exactly(0)]), None
        else:
            required, is_inside = checkable, True
            numbers = replace(numbers, conditions=numbers.conditions | required)
            cases = tuple([part._replace(requires=part.requires | required) for part in cases])
            columns = (
                None
                if columns is None
                else tuple(
                    [
                        tuple([part._replace(requires=part.requires | required) for part in each])
                        for each in columns
                    ]
                )
            )
    result = TensorNumbers(cases, columns, column_axis, rank, origin=numbers.origin, unknown=numbers.unknown)
    if batch or not is_inside:
        return result
    new = range(axis, axis + len(shape))
    is_distinct = axis in numbers.distinct and _is_one_sign(case.knowledge, places)
    distinct = {place + axis for place in places.distinct} if is_distinct else set()
    shift = len(shape) - 1
    distinct |= {_axis_after_gather(before, axis, shift) for before in numbers.distinct if before != axis}
    moved = {_axis_after_gather(before, axis, shift) for before in numbers.varying or () if before != axis}
    varying_axes = (
        None if numbers.varying is None or places.varying is None
        else frozenset(moved).union(place + axis for place in places.varying if axis in numbers.varying)
    )  # fmt: skip
    tuples_axis = None
    if numbers.tuples_axis is not None and numbers.tuples_axis != axis and places.is_unique:
        tuples_axis = _axis_after_gather(numbers.tuples_axis, axis, shift)
    is_unique = numbers.is_unique and places.is_unique and _is_one_sign(case.knowledge, places)
    is_single = not new
    return replace(
        result, distinct=frozenset(distinct), varying=varying_axes, tuples_axis=tuples_axis,
        is_unique=is_unique or (is_single and numbers.is_unique),
        conditions=numbers.conditions | places.conditions,
    )  # fmt: skip


def _axis_after_gather(before: int, axis: int, shift: int) -> int:
    """Return the output axis of a Gather for another axis of its data.

    `shift` is the number of axes by which later axes move, as indices replace the gathered axis.
    """
    return before + (shift if before > axis else 0)


def _filtered(case: NodeCase, source: Sequence[Linear]) -> Generator[Query, Any, TensorNumbers | None]:
    """Return the elements of a 1-D tensor that a condition on them selects; None for other Gathers.

    Example:
        Gather (i, NonZero (And (i >= 0, i < n)))      elements of i from 0 to n - 1
    """
    data, value = case.value(0), case.value(1)
    views = {"Reshape", "Squeeze", "Transpose", "Cast", "Convert", "Identity", "Gather"}
    for _ in range(MOST_NESTED):
        node = None if value is None or value.is_input or value.constant is not None else value.producer
        if node is None or not node.inputs or node.type not in views | {"NonZero"}:
            return None
        value = node.inputs[0].value
        if node.type == "NonZero":
            break
    else:
        return None
    if value is None or data is None or len(source) != 1:
        return None
    mask_shape: Dims = yield Query(value, True)
    if mask_shape is None or len(mask_shape) != 1 or mask_shape[0] != source[0]:
        return None
    return (yield from under_condition(case.walker, data, value, truth=True))


def _is_inside(knowledge: Knowledge, places: TensorNumbers, size: Linear) -> bool:
    """Return whether all indices are proven to be from -size to size - 1."""
    return all(
        not case.requires
        and any(knowledge.proves(low.plus(size)) for low in case.lows)
        and any(knowledge.proves(size.minus(high).plus(-1)) for high in case.highs)
        for case in places.cases
    )


def _inside_conditions(case: NodeCase, places: TensorNumbers, size: Linear) -> frozenset[Linear] | None:
    """Return conditions that put indices between -size and size - 1; None if users cannot check them."""
    knowledge, conditions = case.knowledge, set[Linear]()
    for part in places.cases:
        if part.may_wrap or not part.lows or not part.highs:
            return None
        needed = [*part.requires]
        if not any(knowledge.proves(low.plus(size)) for low in part.lows):
            needed.append(part.lows[0].plus(size))
        if not any(knowledge.proves(size.minus(high).plus(-1)) for high in part.highs):
            needed.append(size.minus(part.highs[0]).plus(-1))
        conditions |= {each for each in needed if not knowledge.proves(each)}
    return frozenset(conditions) if all(is_checkable(each, case.walker) for each in conditions) else None


def _is_one_sign(knowledge: Knowledge, places: TensorNumbers) -> bool:
    """Return whether indices are all negative, or all non-negative.

    Otherwise -1 and size - 1, which are distinct, select the same element.
    """
    is_positive = all(any(knowledge.proves(low) for low in case.lows) for case in places.cases)
    return is_positive or all(
        any(knowledge.proves(high.times(-1).plus(-1)) for high in case.highs) for case in places.cases
    )


@rule_for_numbers("GatherElements", "GatherND")
def _gathered_elements_numbers(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    numbers, dims = (yield from case.numbers(0)), (yield from case.output_dims())
    cases = union([of_some(numbers.cases), exactly(0)]) if case.is_openvino else of_some(numbers.cases)
    return TensorNumbers(cases, rank=rank_of(dims), origin=numbers.origin, unknown=numbers.unknown)
