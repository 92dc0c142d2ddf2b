"""Finds guards that a model already has, so that `convert` adds none twice. A guard makes indices legal.

A pattern consists of the nodes that a guard would add; it is compared with the nodes upstream of indices. A
node may have been converted after its guard was added. So patterns are also built for its possible origins,
nodes from which a conversion creates it:

    indices = ReduceSum(Multiply(guarded tuples, strides)), data = Reshape(old data)
    indices = Add(guarded starts, Range(length))

Such indices are in range like the guarded ones. Bounds analysis cannot prove that if sizes are dynamic.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from ir_scatter.analysis.conditions import Condition
from ir_scatter.analysis.ranges import bounds_of
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.symbolic import is_always_in_range, is_never_negative
from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType
from ir_scatter.core.fragment import Fragment, NewConstant, NewNode
from ir_scatter.core.model import Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Shape, lowest
from ir_scatter.ops.attributes import Attributes
from ir_scatter.ops.general import GeneralOp, find, named
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.lookup import find as find_scatter
from ir_scatter.ops.spec import Layout, OpSpec, Role
from ir_scatter.rewrites import route
from ir_scatter.rewrites.base import Promises, Rewrite, View, fragment_like
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.guard import (
    Guard,
    counts_from_end,
    guard_of,
    has_indices,
    rewrite_of,
    sizes_counted_on,
)
from ir_scatter.rewrites.refusals import Refusal

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

_WIDE_ENOUGH = 32
"""Minimum bits of an integer type for every position: real dimensions are below 2**31."""

_MOST_MOVES = 64
"""Limit of nodes upstream of indices that are searched for a guard."""

_MOVES_OF_GUARD = 8
"""Upper bound of the moving or converting nodes in a guard after its last Minimum or Select."""

_MOST_COORDINATES = 8
"""Limit of coordinates of a tuple that are tried if their number is unknown."""

_MOST_AXES = 4
"""Limit of axes, from each end, that are tried if the rank of data is unknown."""

_SUFFICIENT = {
    Guard.CLAMP: (Guard.CLAMP, Guard.DROP),
    Guard.WRAP: (Guard.WRAP, Guard.CLAMP, Guard.DROP),
    Guard.DROP: (Guard.CLAMP, Guard.DROP),
}
"""For each guard, the existing guards that make it superfluous."""

_NON_NEGATIVE = Promises(frozenset({Condition.NON_NEGATIVE}))


def is_needed(scatter: ScatterNode, guard: Guard) -> bool:
    """Return whether a guard may change an index of a node, judged by the facts of the file.

    Unknown sizes count as at least 1: in a dimension of size 0 no index is in range.
    """
    if not has_indices(scatter):
        return False
    assert scatter.indices is not None
    is_wrap = guard is Guard.WRAP
    if scatter.index_array is None and (is_never_negative if is_wrap else is_always_in_range)(scatter):
        return False
    highs = [max(lowest(dim), 1) - 1 for dim in sizes_counted_on(scatter)]
    bounds = bounds_of(scatter.facts, scatter.indices.value, len(highs), are_legal=is_wrap)
    lows = [-1 - high if counts_from_end(scatter.spec) else 0 for high in highs]
    if is_wrap and all(bound.is_within(0, inf) for bound in bounds):
        return False
    if not is_wrap and all(
        bound.is_within(low, high) for bound, low, high in zip(bounds, lows, highs, strict=True)
    ):
        return False
    if any(scatter.operand(role) is None for role in (Role.DATA, Role.UPDATES)):
        return True  # an input is missing, which the rewriter reports
    sufficient = _SUFFICIENT[guard]
    return not any(_has_guard(scatter, kind) for kind in sufficient) and not _is_converted(
        scatter, sufficient
    )


class _Pattern(NamedTuple):
    """The indices and data that a guard creates, and the inputs of the node for which it was built.

    `open_input` is the number of the input of unguarded indices.
    """

    fragment: Fragment
    indices: Value
    sources: Sequence[Value | None]
    open_input: int
    data: Value | None = None


def _has_guard(scatter: ScatterNode, guard: Guard) -> bool:
    """Return whether the nodes of a guard are upstream of indices, maybe before nodes that move elements."""
    assert scatter.indices is not None
    value: Value | None = scatter.indices.value
    if not _may_be_guarded(value):
        return False
    choices = product((True, False), (True, False))
    candidates = [_guard_pattern(scatter, guard, counts, knows_sizes=knows) for knows, counts in choices]
    patterns = [pattern for pattern in candidates if pattern is not None]
    for _ in range(_MOST_MOVES if patterns else 0):
        if value is None:
            break
        if any(_matches(scatter, pattern, value) for pattern in patterns):
            return True
        node = value.producer
        source = node.inputs[0].value if node is not None and node.inputs else None
        value = source if source is not None and _only_moves(scatter, source, value) else None
    return False


def _data_before_row(scatter: ScatterNode) -> Value | None:
    """Return data before a Concat along the (first) axis of indices added a row; None without such a node."""
    data = scatter.data
    node = None if data is None else data.value.producer
    op = None if node is None else find(node.domain, node.type)
    if node is None or op is not named("Concat") or len(node.inputs) != 2:
        return None
    axis = 0 if scatter.spec.layout is Layout.TUPLES else scatter.written_axis
    try:
        written = Attributes(node.attributes).integer("axis")
    except (ValueError, TypeError):  # no row is added along an axis that is no number
        return None
    rank = None if scatter.data_shape is None else len(scatter.data_shape)
    if axis is None or (axis != written and (rank is None or axis % max(rank, 1) != written % max(rank, 1))):
        return None
    return node.inputs[0].value


def _may_be_guarded(value: Value | None) -> bool:
    """Return whether the first computing operator upstream may be the end of a guard.

    This cheap test avoids building a pattern for nearly every node.
    """
    return _computed_by(value) in (named("Minimum"), named("Select"))


def _computed_by(value: Value | None) -> GeneralOp | None:
    """Return the first operator upstream that does more than move elements; None without one."""
    for _ in range(_MOST_MOVES + _MOVES_OF_GUARD):
        node = None if value is None else value.producer
        op = None if node is None else find(node.domain, node.type)
        if node is None or op is None or op.moves != (0,):
            return op
        value = node.inputs[0].value if node.inputs else None
    return None


def _only_moves(scatter: ScatterNode, source: Value, value: Value) -> bool:
    """Return whether a value contains only elements of its producer's first input, unchanged.

    False for a Gather, which may read out of range, and for a conversion to a narrow type.
    """
    node = value.producer
    op = None if node is None else find(node.domain, node.type)
    if op is None:
        return False
    if op.copies:
        types = [scatter.facts.element_type(end) for end in (source, value)]
        bits = [type.bits for type in types if type is not None and type.kind in {"signed", "unsigned"}]
        return len(bits) == len(types) and bits[1] >= min(bits[0], _WIDE_ENOUGH)
    return op.moves == (0,) and op.bounds is None and len(sizes_counted_on(scatter)) == 1


def _equals_broadcast(array: "Array", content: "Array") -> bool:
    """Return whether two arrays are equal after broadcasting one to the other."""
    try:
        return array.size == 0 == content.size or bool(array.size and (array == content).all())
    except ValueError:
        return False


def _guard_pattern(scatter: ScatterNode, guard: Guard, counts: bool, *, knows_sizes: bool) -> _Pattern | None:
    """Build the pattern of a guard for a copy of this node with unknown indices.

    The guard DROP surrounds the node, so its pattern is built for data before a row was added.
    """
    before = _data_before_row(scatter) if guard is Guard.DROP else None
    if guard is Guard.DROP and before is None:
        return None
    sources = [port.value for port in scatter.node.inputs]
    of_data, of_indices = (scatter.spec.port_index(role) for role in (Role.DATA, Role.INDICES))
    if before is not None and of_data is not None:
        sources[of_data] = before

    def make(number: int, value: Value) -> Value:
        value = before if before is not None and number == of_data else value
        return _pattern_input(scatter, value, is_open=number == of_indices, knows_sizes=knows_sizes)

    shape = _shape(scatter.data_shape if before is None else scatter.facts.shape(before), knows_sizes)
    fragment = fragment_like(scatter, make, shape)
    guarded = _apply_rewrites(fragment, scatter, (rewrite_of(guard, scatter.spec.key, counts),))
    if guarded is None or of_indices is None:
        return None
    again = next((new for new in guarded.news if new.type == scatter.node.type), None)
    indices = None if again is None else again.inputs[of_indices]
    return None if indices is None else _Pattern(guarded, indices, sources, of_indices)


def _shape(shape: Shape, knows_sizes: bool) -> Shape:
    return shape if knows_sizes or shape is None else (UNKNOWN_DIM,) * len(shape)


def _pattern_input(scatter: ScatterNode, value: Value, *, is_open: bool, knows_sizes: bool) -> Value:
    """Return a copy of a value as an input of a pattern; with `is_open` only its shape and type are known."""
    shape = scatter.facts.shape(value)
    shape = _shape(shape, knows_sizes or value.constant is not None)
    producer = None if is_open else partial(getattr, value, "producer")
    constant = None if is_open else value.constant
    copy = Value("input", scatter.facts.element_type(value), shape, producer, value.output, constant)
    scatter.facts.trust(copy)
    return copy


def _apply_rewrites(fragment: Fragment, scatter: ScatterNode, way: Sequence[Rewrite]) -> Fragment | None:
    """Apply rewrites to the only node of a fragment, as a conversion does; None if one is refused."""
    opset = scatter.node.opset if isinstance(scatter.node.opset, int) else None
    is_limited = False
    for rewrite in way:
        for node in reversed(fragment.nodes):
            lookup = find_scatter(node.domain, node.type, node.opset)
            if lookup is None or lookup.spec is not rewrite.source:
                continue
            view = View(ScatterNode(node, lookup, scatter.facts), _NON_NEGATIVE if is_limited else Promises())
            build = Builder([port.value for port in node.inputs], scatter.node.domain, opset)
            result = rewrite.build(view, build, rewrite.target)
            if isinstance(result, Refusal):
                return None
            fragment = fragment.substituted(node, build.fragment(result))
        is_limited = is_limited or guard_of(rewrite) in {Guard.CLAMP, Guard.DROP}
    return fragment


# Indices that a conversion computed of guarded ones


class _Origin(NamedTuple):
    """A node from which a conversion may have created the scatter node.

    Attributes:
        data: its data, without the row that the guard DROP adds.
        depth: the number of coordinates of its tuples; None if unknown.
        axis: the axis of its indices.
        mode: "linear" or "circular" for TensorScatter, "" for other nodes.
    """

    spec: OpSpec
    data: Value
    updates: Value
    depth: int | None = None
    axis: int = 0
    mode: str = ""


def _is_converted(scatter: ScatterNode, guards: Sequence[Guard]) -> bool:
    """Return whether an origin with a guard explains how the node's indices were computed."""
    assert scatter.indices is not None
    op = _computed_by(scatter.indices.value)
    for origin_guard in guards:
        for origin in _origins(scatter, origin_guard, op):
            types = _index_types(origin)
            for type, counts, knows in product(types, (True, False), (True, False)):
                pattern = _origin_pattern(scatter, origin, origin_guard, type, counts, knows_sizes=knows)
                if pattern is not None and _matches_conversion(scatter, pattern):
                    return True
    return False


def _index_types(origin: _Origin) -> Sequence[ElementType]:
    """Return the possible types of an origin's indices, the usual ones first."""
    port = origin.spec.port(Role.INDICES)
    names = sorted(port.element_types if port else (), key=lambda name: (name not in {"i64", "i32"}, name))
    types = [ELEMENT_TYPES[name] for name in names]
    return [type for type in types if type.kind in {"signed", "unsigned"}]


def _origins(scatter: ScatterNode, guard: Guard, op: GeneralOp | None) -> Iterator[_Origin]:
    """Yield the possible origins of a node; `op` is the operator that computed its indices."""
    if op is None:
        return
    opset = scatter.node.opset if isinstance(scatter.node.opset, int) else None
    rows = dict[Layout, OpSpec]()
    for spec in SPECS.values():  # the newest row of each layout
        if spec.key.domain == scatter.spec.key.domain and (opset is None or opset in spec.opsets):
            rows[spec.layout] = spec
    layout, runs = scatter.spec.layout, rows.get(Layout.SEQUENCE)
    if op is named("ReduceSum") and layout in {Layout.ELEMENTS, Layout.SLICES} and Layout.TUPLES in rows:
        yield from _origins_with_tuples(scatter, guard, rows[Layout.TUPLES])
    is_run = op in (named("Add"), named("FloorMod")) or layout is Layout.TUPLES
    if runs is not None and is_run and layout in {Layout.ELEMENTS, Layout.TUPLES}:
        is_circular = op is named("FloorMod") or layout is Layout.TUPLES
        for mode in ("linear", "circular") if is_circular else ("linear",):
            yield from _origins_on_axis(scatter, guard, runs, mode)
    if op is named("Select") and layout is Layout.TUPLES and scatter.data_shape is None:
        for other in (Layout.ELEMENTS, Layout.SLICES):
            if other in rows:
                yield from _origins_on_axis(scatter, guard, rows[other])


def _origins_with_tuples(scatter: ScatterNode, guard: Guard, spec: OpSpec) -> Iterator[_Origin]:
    """Yield ScatterND nodes whose tuples may have become the indices of a node."""
    assert scatter.data is not None
    assert scatter.updates is not None
    joined = _first_input_of(scatter.data.value, "Reshape")
    data = None if joined is None else _without_row(joined, guard)
    if joined is None or data is None:
        return
    before, after = scatter.facts.shape(joined), scatter.data_shape
    depth = None if before is None or after is None else len(before) - len(after) + 1
    for number in (None, *range(2, _MOST_COORDINATES + 1)) if depth is None else (depth,):
        yield _Origin(spec, data, scatter.updates.value, number)


def _origins_on_axis(scatter: ScatterNode, guard: Guard, spec: OpSpec, mode: str = "") -> Iterator[_Origin]:
    """Yield nodes with an axis from which a conversion may have created the scatter node."""
    assert scatter.data is not None
    assert scatter.updates is not None
    data, is_kept = _without_row(scatter.data.value, guard), scatter.spec.layout is Layout.ELEMENTS
    flat = None if is_kept else _first_input_of(scatter.updates.value, "Reshape")
    axes = [scatter.written_axis] if is_kept else _possible_axes(scatter)
    for axis, updates in product(axes, filter(None, (scatter.updates.value, flat))):
        shapes = [scatter.facts.shape(value) for value in (scatter.data.value, updates)]
        ranks = {len(shape) for shape in shapes if shape is not None}
        is_consistent = not mode or (
            len(ranks) < 2 and axis is not None and all(-rank <= axis < rank for rank in ranks)
        )
        if data is not None and axis is not None and is_consistent:
            yield _Origin(spec, data, updates, axis=axis, mode=mode)


def _possible_axes(scatter: ScatterNode) -> Sequence[int]:
    """Return the possible axes of an origin's indices."""
    shape = scatter.data_shape
    return range(-_MOST_AXES, _MOST_AXES) if shape is None else range(len(shape))


def _first_input_of(value: Value, operator: str) -> Value | None:
    """Return the first input of the operator that computes a value; None if it is another operator."""
    node = value.producer
    op = None if node is None else find(node.domain, node.type)
    return node.inputs[0].value if node is not None and node.inputs and op is named(operator) else None


def _without_row(value: Value, guard: Guard) -> Value | None:
    """Return data without the row that the guard DROP adds; other guards add none."""
    return _first_input_of(value, "Concat") if guard is Guard.DROP else value


def _origin_pattern(
    scatter: ScatterNode, origin: _Origin, guard: Guard, type: ElementType, counts: bool, *, knows_sizes: bool
) -> _Pattern | None:
    """Build the pattern of an origin: its guard, followed by the conversion; None if a step is refused."""
    opset = scatter.node.opset if isinstance(scatter.node.opset, int) else None
    way = route(origin.spec.key, scatter.spec.key, opset)
    of_indices, of_data = (origin.spec.port_index(role) for role in (Role.INDICES, Role.DATA))
    if way is None or of_indices is None or of_data is None:
        return None
    data, updates = (
        _pattern_input(scatter, value, is_open=False, knows_sizes=knows_sizes)
        for value in (origin.data, origin.updates)
    )
    is_run = origin.spec.layout is Layout.SEQUENCE
    indices_shape = (
        (UNKNOWN_DIM,) if is_run else None if origin.depth is None else (UNKNOWN_DIM, origin.depth)
    )
    indices = Value("input", type, indices_shape)
    scatter.facts.trust(indices)
    by_role = {Role.DATA: data, Role.INDICES: indices, Role.UPDATES: updates}
    given = tuple(by_role.get(port.role) for port in origin.spec.ports)
    attributes: dict[str, Any] = {"mode": origin.mode} if is_run else {}
    source = origin.spec.axis
    if source is not None and source.attribute is not None:
        attributes[source.attribute] = origin.axis
    elif source is not None:
        by_role[Role.AXIS] = Builder((), scatter.node.domain, opset).constant(origin.axis, "axis")
    inputs = tuple(by_role.get(port.role) for port in origin.spec.ports)
    output = Value("output", data.element_type, data.shape)
    key = origin.spec.key
    node = NewNode("origin", key.domain, key.type, opset or origin.spec.opsets[0], inputs, attributes, output)
    fragment = Fragment(given, [node])
    if origin.mode != "circular":
        way = (rewrite_of(guard, origin.spec.key, counts), *way)
    converted = _apply_rewrites(fragment, scatter, way)
    if converted is None:
        return None
    made = next((new for new in reversed(converted.news) if new.type == scatter.node.type), None)
    own_indices, own_data = (scatter.spec.port_index(role) for role in (Role.INDICES, Role.DATA))
    if made is None or own_indices is None or own_data is None:
        return None
    originals = {Role.DATA: origin.data, Role.UPDATES: origin.updates}
    sources = [originals.get(port.role) for port in origin.spec.ports]
    new_indices, new_data = made.inputs[own_indices], made.inputs[own_data]
    return None if new_indices is None else _Pattern(converted, new_indices, sources, of_indices, new_data)


def _matches_conversion(scatter: ScatterNode, pattern: _Pattern) -> bool:
    """Return whether data and indices of a node are computed as in the pattern of its origin.

    At the end, nodes that only repeat indices or change their shape may differ.
    """
    assert scatter.indices is not None
    expected, value = pattern.indices, scatter.indices.value
    if scatter.spec.layout is not Layout.TUPLES:
        while (new := pattern.fragment.producer(expected)) is not None and new.inputs[0] is not None:
            op = find(new.domain, new.type)
            if op is None or op.moves != (0,) or not (op.copies or op.bounds is None):
                break
            expected = new.inputs[0]
        for _ in range(_MOST_MOVES):
            node = value.producer
            source = node.inputs[0].value if node is not None and node.inputs else None
            if source is None or not _only_moves(scatter, source, value):
                break
            value = source
    return _matches(scatter, pattern, value, expected)


# Comparison of a pattern with the nodes of the model


def _matches(
    scatter: ScatterNode, pattern: _Pattern, value: Value, expected_indices: Value | None = None
) -> bool:
    """Return whether a value of the model is computed by the same nodes as the indices of a pattern.

    If the pattern belongs to an origin, data must be computed by the same nodes too.
    """
    fragment, guarded, sources = pattern.fragment, dict[int, Value](), pattern.sources

    def is_like(expected: Value | None, value: Value | None) -> bool:
        if expected is None or value is None:
            return expected is value
        number, new = fragment.number_given(expected), fragment.producer(expected)
        if number is not None:
            is_open = number == pattern.open_input or sources[number] is sources[pattern.open_input]
            return guarded.setdefault(number, value) is value if is_open else sources[number] is value
        if new is None:
            assert isinstance(expected.constant, NewConstant)
            array = scatter.facts.array(value)
            return array is not None and _equals_broadcast(array, expected.constant.array)
        node = value.producer
        if node is None or find(node.domain, node.type) is not find(new.domain, new.type):
            return False
        values = [port.value for port in node.inputs]
        is_said_so = all(
            str(node.attributes.get(name)) == str(attribute) for name, attribute in new.attributes.items()
        )
        return is_said_so and len(values) == len(new.inputs) and all(map(is_like, new.inputs, values))

    if pattern.data is not None and (scatter.data is None or not is_like(pattern.data, scatter.data.value)):
        return False
    return is_like(expected_indices or pattern.indices, value)
