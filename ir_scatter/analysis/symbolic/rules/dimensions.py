"""Rules for the symbolic dimensions of outputs."""

from collections.abc import Generator, Sequence
from typing import Any, TypeAlias

from ir_scatter.analysis.symbolic.case import Dims, NodeCase, Query
from ir_scatter.analysis.symbolic.linear import ONE, ZERO, Knowledge, Linear, product, quotient
from ir_scatter.analysis.symbolic.rules.registry import rule_for_dims
from ir_scatter.analysis.symbolic.rules.shared import count_of
from ir_scatter.core.shapes import LARGEST_DIM
from ir_scatter.ops.attributes import Attributes, zero_copies

_OPEN_END = 2**31 - 1
"""From this number on, the end of a slice means the end of the dimension."""


@rule_for_dims("Reshape")
def _reshaped(case: NodeCase) -> Generator[Query, Any, Dims]:
    source = yield from case.dims(0)
    target = yield from case.numbers(1)
    elements = target.vector()
    output = case.node.outputs[case.output]
    if elements is None:
        if target.columns is None or target.rank != 1:
            return None
        elements = [
            cases[0].number if len(cases) == 1 and cases[0].number is not None
            else case.walker.size(output, axis)
            for axis, cases in enumerate(target.columns)
        ]  # fmt: skip
    copies = zero_copies(Attributes(case.node.attributes), is_onnx=not case.is_openvino)
    result: list[Linear | None] = []
    for axis, element in enumerate(elements):
        if element == ZERO and copies:
            result.append(source[axis] if source is not None and axis < len(source) else None)
        elif element == Linear(-1):
            result.append(None)
        else:
            result.append(element if case.knowledge.least(element) >= 0 else case.walker.size(output, axis))
    missing = [axis for axis, size in enumerate(result) if size is None]
    if len(missing) == 1 and elements[missing[0]] == Linear(-1) and source is not None:
        result[missing[0]] = _quotient_of_sizes(source, [size for size in result if size is not None])
    return tuple(case.walker.size(output, axis) if size is None else size for axis, size in enumerate(result))


def _quotient_of_sizes(source: Sequence[Linear], sizes: Sequence[Linear]) -> Linear | None:
    """Return the number of elements of a tensor divided by `sizes`; None if it is not exact."""
    rest = [*source]
    for size in sizes:
        if size in rest:
            rest.remove(size)
        elif size != ONE:
            count = product(rest)
            if count is None or not size.is_constant or not size.constant:
                return None
            if any(coefficient % size.constant for _, coefficient in count.terms):
                return None
            if count.constant % size.constant:
                return None
            part = quotient(count, size.constant, truncates=False, knowledge=Knowledge())
            if part is None:
                return None
            rest = [part]
    return product(rest)


@rule_for_dims("Flatten")
def _flattened(case: NodeCase) -> Generator[Query, Any, Dims]:
    source = yield from case.dims(0)
    axis = Attributes(case.node.attributes).integer("axis", 1)
    if source is None:
        return None
    axis = axis + len(source) if axis < 0 else axis
    parts = [product(source[:axis]), product(source[axis:])]
    output = case.node.outputs[case.output]
    return tuple(
        case.walker.size(output, number) if part is None else part for number, part in enumerate(parts)
    )


def _axes(case: NodeCase, port: int, rank: int) -> list[int] | None:
    """Return the non-negative axes from an attribute or a constant input; None if unknown."""
    if "axes" in case.node.attributes:
        axes: list[int] | None = Attributes(case.node.attributes).integers("axes")
    else:
        axes = case.constants(port)
    if axes is None:
        return None
    return [axis + rank if axis < 0 else axis for axis in axes]


@rule_for_dims("Squeeze")
def _squeezed(case: NodeCase) -> Generator[Query, Any, Dims]:
    source = yield from case.dims(0)
    kept = None if source is None else kept_axes(case, source)
    return None if kept is None or source is None else tuple([source[axis] for axis in kept])


def kept_axes(case: NodeCase, source: Sequence[Linear]) -> list[int] | None:
    """Return the axes that a Squeeze keeps; None if unknown."""
    if case.value(1) is None and "axes" not in case.node.attributes:
        if not all(size.is_constant or case.knowledge.least(size) > 1 for size in source):
            return None
        return [axis for axis, size in enumerate(source) if size != ONE]
    axes = _axes(case, 1, len(source))
    return None if axes is None else [axis for axis in range(len(source)) if axis not in axes]


@rule_for_dims("Unsqueeze")
def _unsqueezed(case: NodeCase) -> Generator[Query, Any, Dims]:
    source = yield from case.dims(0)
    order = None if source is None else unsqueezed_order(case, len(source))
    if order is None or source is None:
        return None
    return tuple([ONE if axis is None else source[axis] for axis in order])


def unsqueezed_order(case: NodeCase, rank: int) -> list[int | None] | None:
    """Return the input axis for each output axis of an Unsqueeze, None for a new axis; None if unknown."""
    written = Attributes(case.node.attributes).integers("axes") if "axes" in case.node.attributes else None
    axes = case.constants(1) if written is None else written
    if axes is None:
        return None
    total = rank + len(axes)
    new = {axis % total for axis in axes}
    rest = iter(range(rank))
    return [None if axis in new else next(rest) for axis in range(total)]


@rule_for_dims("Transpose")
def _transposed(case: NodeCase) -> Generator[Query, Any, Dims]:
    source = yield from case.dims(0)
    order = None if source is None else transpose_order(case, len(source))
    return None if source is None or order is None else tuple([source[axis] for axis in order])


def transpose_order(case: NodeCase, rank: int) -> list[int] | None:
    if case.is_openvino:
        order = case.constants(1)
    else:
        order = Attributes(case.node.attributes).integers("perm", [*range(rank)][::-1])
    if order is not None and not order:
        order = [*range(rank)][::-1]
    return order if order is not None and sorted(order) == [*range(rank)] else None


@rule_for_dims("Concat")
def _joined(case: NodeCase) -> Generator[Query, Any, Dims]:
    shapes: list[tuple[Linear, ...]] = []
    for port in range(len(case.node.inputs)):
        shape = yield from case.dims(port)
        if shape is None or len(shape) != len((shapes or [shape])[0]):
            return None
        shapes.append(shape)
    if not shapes:
        return None
    rank = len(shapes[0])
    axis = Attributes(case.node.attributes).integer("axis") % rank
    total = ZERO
    for shape in shapes:
        total = total.plus(shape[axis])
    first = shapes[0]
    best = [next((s[n] for s in shapes if s[n].is_constant), first[n]) for n in range(rank)]
    return tuple([total if number == axis else size for number, size in enumerate(best)])


@rule_for_dims("Gather")
def _gathered(case: NodeCase) -> Generator[Query, Any, Dims]:
    source, places = (yield from case.dims(0)), (yield from case.dims(1))
    axis = gather_axis(case, source)
    if source is None or places is None or axis is None:
        return None
    batch = Attributes(case.node.attributes).integer("batch_dims", 0) if case.is_openvino else 0
    return (*source[:axis], *places[batch:], *source[axis + 1 :])


def gather_axis(case: NodeCase, source: Dims) -> int | None:
    if case.is_openvino:
        axes = case.constants(2)
        axis = axes[0] if axes and len(axes) == 1 else None
    else:
        axis = Attributes(case.node.attributes).integer("axis", 0)
    if axis is None or source is None or not -len(source) <= axis < len(source):
        return None
    return axis % len(source)


@rule_for_dims("GatherElements")
def _gathered_elements(case: NodeCase) -> Generator[Query, Any, Dims]:
    return (yield from case.dims(1))


@rule_for_dims("GatherND")
def _gathered_nd(case: NodeCase) -> Generator[Query, Any, Dims]:
    source, places = (yield from case.dims(0)), (yield from case.dims(1))
    batch = Attributes(case.node.attributes).integer("batch_dims", 0)
    if source is None or not places or not places[-1].is_constant:
        return None
    return (*places[:-1], *source[batch + places[-1].constant :])


@rule_for_dims("Broadcast")
def _expanded(case: NodeCase) -> Generator[Query, Any, Dims]:
    source, target = (yield from case.dims(0)), (yield from case.vector(1))
    mode = str(case.node.attributes.get("mode", "numpy")).lower()
    if source is None or target is None:
        return None
    output = case.node.outputs[case.output]
    if case.is_openvino and mode not in {"numpy", "bidirectional"}:
        return tuple(target)
    rank = max(len(source), len(target))
    result = []
    for axis in range(rank):
        at_source, at_target = axis - rank + len(source), axis - rank + len(target)
        written = source[at_source] if at_source >= 0 else ONE
        asked = target[at_target] if at_target >= 0 else ONE
        if written in {ONE, asked}:
            result.append(asked)
        elif asked == ONE or (written.is_constant and written.constant > 1):
            result.append(written)
        elif asked.is_constant and asked.constant > 1:
            result.append(asked)
        else:
            result.append(case.walker.size(output, axis))
    return tuple(result)


@rule_for_dims("Tile")
def _tiled(case: NodeCase) -> Generator[Query, Any, Dims]:
    source, repeats = (yield from case.dims(0)), (yield from case.vector(1))
    if source is None or repeats is None:
        return None
    rank = max(len(source), len(repeats))
    sizes = [ONE] * (rank - len(source)) + [*source]
    factors = [ONE] * (rank - len(repeats)) + [*repeats]
    output = case.node.outputs[case.output]
    return tuple(
        size.multiplied(factor) or case.walker.size(output, axis)
        for axis, (size, factor) in enumerate(zip(sizes, factors, strict=True))
    )


@rule_for_dims("ConstantOfShape")
def _filled(case: NodeCase) -> Generator[Query, Any, Dims]:
    elements = yield from case.vector(0)
    return None if elements is None else tuple(elements)


@rule_for_dims("ShapeOf")
def _rank_of(case: NodeCase) -> Generator[Query, Any, Dims]:
    source = yield from case.dims(0)
    if source is None:
        return None
    return (Linear(len(range(*shape_part(case, len(source))))),)


def shape_part(case: NodeCase, rank: int) -> tuple[int, int]:
    attributes = Attributes(case.node.attributes)
    start, end = attributes.integer("start", 0), attributes.integer("end", rank)
    start, end = [min(max(place + rank if place < 0 else place, 0), rank) for place in (start, end)]
    return start, max(start, end)


@rule_for_dims("Size")
def _no_dims(case: NodeCase) -> Generator[Query, Any, Dims]:
    yield from ()
    return ()


@rule_for_dims("Range")
def _counted_dims(case: NodeCase) -> Generator[Query, Any, Dims]:
    start = (yield from case.numbers(0)).number
    stop = (yield from case.numbers(1)).number
    step = (yield from case.numbers(2)).number
    output = case.node.outputs[case.output]
    size = case.walker.size(output, 0)
    if start is None or stop is None or step is None:
        return (size,)
    if step == ONE:
        count = stop.minus(start)
        if case.knowledge.proves(count):
            return (count,)
    return (size,)


@rule_for_dims("NonZero")
def _non_zero_dims(case: NodeCase) -> Generator[Query, Any, Dims]:
    source = yield from case.dims(0)
    mask = case.value(0)
    if source is None or mask is None:
        return None
    count = count_of(case.walker, mask, source)
    return (Linear(max(len(source), 1)), count)


@rule_for_dims("TopK")
def _top_dims(case: NodeCase) -> Generator[Query, Any, Dims]:
    source = yield from case.dims(0)
    kept = (yield from case.numbers(1)).number
    if source is None:
        return None
    axis = Attributes(case.node.attributes).integer("axis", -1) % len(source)
    if "k" in case.node.attributes:
        kept = Linear(Attributes(case.node.attributes).integer("k"))
    size = case.walker.size(case.node.outputs[case.output], axis) if kept is None else kept
    return (*source[:axis], size, *source[axis + 1 :])


@rule_for_dims("ArgMax", "ArgMin")
def _arg_dims(case: NodeCase) -> Generator[Query, Any, Dims]:
    source = yield from case.dims(0)
    if source is None:
        return None
    attributes = Attributes(case.node.attributes)
    axis = attributes.integer("axis", 0) % len(source)
    kept = (ONE,) if attributes.integer("keepdims", 1) else ()
    return (*source[:axis], *kept, *source[axis + 1 :])


_REDUCTIONS = (
    "ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1", "ReduceL2",
    "ReduceLogicalAnd", "ReduceLogicalOr", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare",
)  # fmt: skip


@rule_for_dims(*_REDUCTIONS)
def _reduced_dims(case: NodeCase) -> Generator[Query, Any, Dims]:
    source = yield from case.dims(0)
    if source is None:
        return None
    axes, keeps = reduced_axes(case, len(source))
    if axes is None:
        return None
    if keeps:
        return tuple([ONE if axis in axes else size for axis, size in enumerate(source)])
    return tuple([size for axis, size in enumerate(source) if axis not in axes])


def reduced_axes(case: NodeCase, rank: int) -> tuple[list[int] | None, bool]:
    attributes = Attributes(case.node.attributes)
    keeps = (
        attributes.boolean("keep_dims", False)
        if case.is_openvino
        else bool(attributes.integer("keepdims", 1))
    )
    if case.value(1) is None and "axes" not in case.node.attributes:
        is_copy = bool(attributes.integer("noop_with_empty_axes", 0)) if not case.is_openvino else False
        return ([] if is_copy else [*range(rank)]), keeps
    axes = _axes(case, 1, rank)
    if axes == [] and not case.is_openvino and not attributes.integer("noop_with_empty_axes", 0):
        axes = [*range(rank)]
    return axes, keeps


@rule_for_dims("Split")
def _split_dims(case: NodeCase) -> Generator[Query, Any, Dims]:
    source = yield from case.dims(0)
    axis = split_axis(case, source)
    if source is None or axis is None:
        return None
    size = case.walker.size(case.node.outputs[case.output], axis)
    count = len(case.node.outputs)
    if case.is_openvino:
        count = Attributes(case.node.attributes).integer("num_splits")
        if all(coefficient % count == 0 for _, coefficient in source[axis].terms):
            size = quotient(source[axis], count, truncates=False, knowledge=case.knowledge) or size
    else:
        lengths = yield from split_lengths(case)
        if lengths is not None and case.output < len(lengths):
            size = lengths[case.output]
        elif lengths is None and source[axis].is_constant and not source[axis].constant % count:
            size = Linear(source[axis].constant // count)
    return (*source[:axis], size, *source[axis + 1 :])


def split_lengths(case: NodeCase) -> Generator[Query, Any, list[Linear] | None]:
    if "split" in case.node.attributes:
        return [Linear(length) for length in Attributes(case.node.attributes).integers("split")]
    if case.value(1) is None:
        return None
    return (yield from case.vector(1))


def split_axis(case: NodeCase, source: Dims) -> int | None:
    if source is None:
        return None
    if case.is_openvino:
        axes = case.constants(1)
        axis = axes[0] if axes else None
    else:
        axis = Attributes(case.node.attributes).integer("axis", 0)
    return axis % len(source) if axis is not None and -len(source) <= axis < len(source) else None


@rule_for_dims("MatMul")
def _product_dims(case: NodeCase) -> Generator[Query, Any, Dims]:
    left, right = (yield from case.dims(0)), (yield from case.dims(1))
    if left is None or right is None or len(left) < 2 or len(right) < 2:
        return None
    attributes = Attributes(case.node.attributes)
    flips = [case.is_openvino and attributes.boolean(name, False) for name in ("transpose_a", "transpose_b")]
    rows, columns = left[-1 if flips[0] else -2], right[-2 if flips[1] else -1]
    if len(right) == 2:
        return (*left[:-2], rows, columns)
    if len(left) == len(right) and left[:-2] == right[:-2]:
        return (*left[:-2], rows, columns)
    return None


@rule_for_dims("Slice")
def _sliced_dims(case: NodeCase) -> Generator[Query, Any, Dims]:
    source = yield from case.dims(0)
    cuts = yield from slice_cuts(case, source)
    if source is None or cuts is None:
        return None
    output = case.node.outputs[case.output]
    result = [*source]
    for axis, (start, end, step) in cuts.items():
        size = _length(case.knowledge, source[axis], start, end, step)
        if size is None:
            size = case.walker.size(output, axis)
            if step is not None and abs(step) >= 1:
                case.knowledge.add(source[axis].minus(size))
        result[axis] = size
    return tuple(result)


_Cut: TypeAlias = "tuple[Linear | None, Linear | None, int | None]"


def slice_cuts(case: NodeCase, source: Dims) -> Generator[Query, Any, dict[int, _Cut] | None]:
    """Return (start, end, step) by axis of a Slice, None for unknown ones; None if the axes are unknown."""
    if source is None:
        return None
    attributes = case.node.attributes
    if "starts" in attributes:
        lists = Attributes(attributes)
        starts: list[Linear | None] = [Linear(number) for number in lists.integers("starts")]
        ends: list[Linear | None] = [Linear(number) for number in lists.integers("ends")]
        axes: list[int] | None = lists.integers("axes", [*range(len(starts))])
        steps: list[int] | None = [1] * len(starts)
    else:
        places = []
        for port in (1, 2):
            numbers = yield from case.numbers(port)
            elements = numbers.vector()
            columns = numbers.columns if elements is None and numbers.rank == 1 else None
            places.append(
                elements if columns is None
                else [cases[0].number if len(cases) == 1 else None for cases in columns]
            )  # fmt: skip
        if places[0] is None or places[1] is None:
            return None
        starts, ends = [*places[0]], [*places[1]]
        axes_port, steps_port = (4, 3) if case.is_openvino else (3, 4)
        axes = case.constants(axes_port) if case.value(axes_port) is not None else [*range(len(starts))]
        steps = case.constants(steps_port) if case.value(steps_port) is not None else [1] * len(starts)
    if axes is None or len(ends) != len(starts) or len(axes) != len(starts):
        return None
    if steps is None:
        return None
    rank = len(source)
    triples = zip(axes, starts, ends, steps, strict=True)
    return {axis % rank: (start, end, step) for axis, start, end, step in triples if -rank <= axis < rank}


def _slice_position(knowledge: Knowledge, place: Linear | None, size: Linear) -> Linear | None:
    """Return a start or end of a slice as a position from 0 to the size; None if unknown."""
    if place is None:
        return None
    if place.is_constant and place.constant >= _OPEN_END:
        return size
    if place.is_constant and place.constant <= -_OPEN_END:
        return ZERO
    if not place.is_constant and knowledge.least(place) < 0:
        return None
    moved = size.plus(place) if place.is_constant and place.constant < 0 else place
    if knowledge.proves(moved) and knowledge.proves(size.minus(moved)):
        return moved
    if place.is_constant and place.constant >= 0 and knowledge.proves(place.minus(size)):
        return size
    return None


def _length(
    knowledge: Knowledge, size: Linear, start: Linear | None, end: Linear | None, step: int | None
) -> Linear | None:
    if step == -1:
        is_whole = start is not None and end is not None and start.is_constant and end.is_constant
        if is_whole and start is not None and end is not None:
            goes_from_end = start.constant == -1 or start.constant >= _OPEN_END
            if goes_from_end and end.constant <= -_OPEN_END:
                return size
        return None
    if step != 1:
        return None
    first, last = _slice_position(knowledge, start, size), _slice_position(knowledge, end, size)
    if first is None or last is None:
        return None
    length = last.minus(first)
    return length if knowledge.proves(length) else None


@rule_for_dims("StridedSlice")
def _strided_dims(case: NodeCase) -> Generator[Query, Any, Dims]:
    source = yield from case.dims(0)
    plan = yield from strided_plan(case, source)
    if plan is None or source is None:
        return None
    output = case.node.outputs[case.output]
    result = []
    for axis, cut in plan:
        if axis is None:
            result.append(ONE)
        elif isinstance(cut, tuple):
            size = _length(case.knowledge, source[axis], *cut)
            if size is None:
                size = case.walker.size(output, len(result))
                case.knowledge.add(source[axis].minus(size))
            result.append(size)
    return tuple(result)


def _mask(case: NodeCase, name: str, length: int) -> list[bool]:
    written = Attributes(case.node.attributes).integers(name, [])
    return [bool(number) for number in written] + [False] * (length - len(written))


def strided_plan(
    case: NodeCase, source: Dims
) -> Generator[Query, Any, "list[tuple[int | None, _Cut | Linear | None]] | None"]:
    """Return the parts of a StridedSlice in order: (axis, cut), or (axis, position) for a selected position.

    A new axis of size 1 is (None, None). None if the parts are unknown.
    """
    if source is None:
        return None
    begin, end = (yield from case.numbers(1)), (yield from case.numbers(2))
    lists = [begin.vector(), end.vector()]
    columns = [
        [*elements] if elements is not None
        else None if numbers.columns is None
        else [cases[0].number if len(cases) == 1 else None for cases in numbers.columns]
        for numbers, elements in zip((begin, end), lists, strict=True)
    ]  # fmt: skip
    begins, ends = columns
    if begins is None or ends is None:
        return None
    count = len(begins)
    steps = case.constants(3) if case.value(3) is not None else [1] * count
    if steps is None or len(ends) != count or len(steps) != count:
        return None
    names = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")
    no_begin, no_end, new, shrink, ellipsis = [_mask(case, name, count) for name in names]
    plan: list[tuple[int | None, _Cut | Linear | None]] = []
    axis, whole = 0, (ZERO, Linear(_OPEN_END), 1)
    used = sum(not new[number] and not ellipsis[number] for number in range(count))
    for number in range(count):
        if ellipsis[number]:
            for _ in range(len(source) - used):
                plan.append((axis, whole))
                axis += 1
        elif new[number]:
            plan.append((None, None))
        elif axis >= len(source):
            return None
        elif shrink[number]:
            plan.append((axis, ZERO if no_begin[number] else begins[number]))
            axis += 1
        else:
            start = ZERO if no_begin[number] else begins[number]
            stop = Linear(_OPEN_END) if no_end[number] else ends[number]
            if steps[number] < 0 and (no_begin[number] or no_end[number]):
                start = Linear(-1) if no_begin[number] else start
                stop = Linear(-LARGEST_DIM) if no_end[number] else stop
            plan.append((axis, (start, stop, steps[number])))
            axis += 1
    plan += [(rest, whole) for rest in range(axis, len(source))]
    return plan


@rule_for_dims("Unique")
def _unique_dims(case: NodeCase) -> Generator[Query, Any, Dims]:
    source = yield from case.dims(0)
    output = case.node.outputs[case.output]
    if case.output == 2 and source is not None and "axis" not in case.node.attributes:
        return (product(source) or case.walker.size(output, 0),)
    if "axis" in case.node.attributes and case.output == 0:
        return None
    return (
        case.walker.size(case.node.outputs[0], 0)
        if case.output in {0, 1, 3}
        else case.walker.size(output, 0),
    )
