"""What makes indices safe that only a run tells: limited to their range, or counted from the front.

    wrap: Select(Less(indices, 0), indices + size, indices)
    clamp: Minimum(Maximum(indices, 0), size - 1), behind a wrap where the row counts from the end

It becomes part of the way of a node, in front of whatever else is done with it, and is no route by itself.
"""

from enum import StrEnum
from functools import cache, partial
from math import inf
from typing import TYPE_CHECKING

from ir_scatter.analysis.ranges import bounds_of
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.fragment import Fragment, NewConstant
from ir_scatter.core.model import OpKey, Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Dim, element_count, lowest
from ir_scatter.ops.general import find, named
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import IndexRange, Layout, OpSpec, Role
from ir_scatter.rewrites.base import Rewrite, View, fragment_like
from ir_scatter.rewrites.builder import I64, WIDE, Builder
from ir_scatter.rewrites.refusals import Reason, Refusal

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

_WIDE_ENOUGH = 32
"""Bits of a type of whole numbers that holds every position: a dimension has fewer than 2**31."""

_MOST_MOVES = 64
"""So far in front of indices a guard is looked for."""

_MOVES_OF_GUARD = 8
"""More than the nodes that move or convert numbers in a guard, after its last Minimum or Select."""


class Guard(StrEnum):
    """What becomes of indices that are not proven to be in range."""

    CLAMP = "clamp"
    WRAP = "wrap"


NAMES = {Guard.CLAMP: "indices-clamped", Guard.WRAP: "indices-wrapped"}
"""How reports say that a node is guarded."""


@cache
def rewrite_of(guard: Guard, key: OpKey) -> Rewrite:
    """Return the rewrite of a node into itself with its indices guarded."""
    spec, make = SPECS[key], _clamped if guard is Guard.CLAMP else _wrapped

    def build(view: View, build: Builder, _: OpSpec) -> Value | Refusal:
        if 0 in _counted_on(view.scatter):
            message = "indices count on a dimension of size 0, where nothing is in range"
            return Refusal(Reason.NOTHING_IN_RANGE, message)
        number = spec.port_index(Role.INDICES)
        assert number is not None
        return build.again(view.scatter.node, {number: make(view, build)}, view.data)

    return Rewrite(NAMES[guard], spec, spec, build, carries=None)


def guard_of(rewrite: Rewrite) -> Guard | None:
    """Return the guard that a rewrite adds, None if it is none."""
    return next((one for one in Guard if rewrite is rewrite_of(one, rewrite.source.key)), None)


def is_needed(scatter: ScatterNode, guard: Guard) -> bool:
    """Tell whether a guard may change an index of a node, as far as the file tells.

    Sizes that are not known are 1 at least: in none nothing is in range.
    """
    indices = scatter.indices
    if indices is None or element_count(scatter.indices_shape) == 0 or scatter.depth == 0:
        return False
    if scatter.spec.layout is Layout.SEQUENCE and scatter.attribute("mode") != "linear":
        return False  # any position is taken modulo the length
    highs = [max(lowest(dim), 1) - 1 for dim in _counted_on(scatter)]
    bounds = bounds_of(scatter.facts, indices.value, len(highs), are_legal=guard is Guard.WRAP)
    is_from_end = scatter.wraps if guard is Guard.CLAMP else scatter.spec.index_range is IndexRange.WRAPPING
    pairs = [(one, -1 - high if is_from_end else 0, high) for one, high in zip(bounds, highs, strict=True)]
    if guard is Guard.WRAP and all(one.is_within(low, inf) for one, low, _ in pairs):
        return False
    if all(one.is_within(low, high) for one, low, high in pairs):
        return False
    if any(scatter.operand(role) is None for role in (Role.DATA, Role.UPDATES)):
        return True  # one comes from nothing that exists: whoever rewrites it says so
    return not any(_is_there(scatter, one) for one in {guard, Guard.CLAMP})


def _counted_on(scatter: ScatterNode) -> tuple[Dim, ...]:
    """Return the sizes that indices count on; one that may be anything where they are not known."""
    shape, axis, depth = scatter.data_shape, scatter.axis, scatter.depth
    if scatter.spec.layout is Layout.TUPLES:
        return (UNKNOWN_DIM,) * (depth or 1) if shape is None or depth is None else shape[:depth]
    if shape is None or axis is None:
        return (UNKNOWN_DIM,)
    if scatter.spec.layout is not Layout.SEQUENCE:
        return (shape[axis],)
    updates = scatter.updates.shape if scatter.updates else None
    length, new = shape[axis], updates[axis] if updates else None
    return (length - new + 1,) if isinstance(length, int) and isinstance(new, int) else (UNKNOWN_DIM,)


def _sizes(view: View, build: Builder) -> Value:
    """Return the sizes that indices count on, whole numbers that are broadcast to them."""
    if view.scatter.spec.layout is not Layout.TUPLES:
        return view.size_on_axis(build)
    if view.depth == 1 and view.data.shape is None:  # a list of sizes might be longer, and hide the depth
        return build.gather(
            build.shape_of(view.data, "data_shape"), build.constant(0, "place"), 0, "size", ()
        )
    return view.tuple_dims(build)


def _wrapped(view: View, build: Builder) -> Value:
    return build.from_front(view.indices, _sizes(view, build), "indices_counted_from_front")


def _clamped(view: View, build: Builder) -> Value:
    """Return indices from 0 to the last one: not every device takes those that count from the end."""
    sizes = _sizes(view, build)
    last = build.binary("Subtract", sizes, build.constant(1, "one"), "last_index")
    if view.scatter.spec.layout is Layout.SEQUENCE:  # the whole run is to fit
        last = build.binary("Subtract", sizes, view.size_on_axis(build, view.updates, "length"), "last_start")
    indices, type = view.indices, view.indices.element_type
    if type is None or type.bits < WIDE:
        indices, type = build.convert(indices, I64, "indices_i64"), I64
    if view.scatter.wraps and type.kind != "unsigned":
        indices = build.from_front(indices, sizes, "indices_counted_from_front")
    if type.kind != "unsigned":
        indices = _extreme(build, "Maximum", indices, build.constant(0, "zero", type), "indices_from_0")
    return _extreme(build, "Minimum", indices, build.in_type(last, type, "last_index"), "indices_in_range")


def _extreme(build: Builder, operation: str, indices: Value, end: Value, label: str) -> Value:
    assert indices.element_type is not None
    if named(operation).takes(build.domain, indices.element_type, build.opset):
        return build.binary(operation, indices, end, label)
    pair = (indices, end) if operation == "Minimum" else (end, indices)
    return build.select(build.binary("Less", *pair, f"{label}_is_less"), indices, end, label)


# What is guarded already


def _is_there(scatter: ScatterNode, guard: Guard) -> bool:
    """Tell whether the very nodes that a guard adds stand in front of indices, moved or not."""
    assert scatter.indices is not None
    value: Value | None = scatter.indices.value
    number = scatter.indices.index
    if not _may_be_guarded(value):
        return False
    made = [_pattern(scatter, guard, knows_sizes=knows) for knows in (True, False)]
    patterns = [one for one in made if one is not None]
    for _ in range(_MOST_MOVES):
        if value is None:
            break
        if any(_matches(scatter, one, one.result.inputs[number], value) for one in patterns):
            return True
        node = value.producer
        source = node.inputs[0].value if node is not None and node.inputs else None
        value = source if source is not None and _is_moved(scatter, source, value) else None
    return False


def _may_be_guarded(value: Value | None) -> bool:
    """Tell whether the first operator upstream that does not only move numbers may be the last of a guard.

    That costs little, and spares making a pattern for nearly every node.
    """
    for _ in range(_MOST_MOVES + _MOVES_OF_GUARD):
        node = None if value is None else value.producer
        op = None if node is None else find(node.domain, node.type)
        if node is None or op is None or op.moves != (0,):
            return op in (named("Minimum"), named("Select"))
        value = node.inputs[0].value if node.inputs else None
    return False


def _is_moved(scatter: ScatterNode, source: Value, value: Value) -> bool:
    """Tell whether a value holds nothing but numbers of its producer's first input, as they are there.

    A gather gives other numbers if an index is out of range, and a conversion if its type is narrow.
    """
    node = value.producer
    op = None if node is None else find(node.domain, node.type)
    if op is None:
        return False
    if op.copies:
        types = [scatter.facts.element_type(one) for one in (source, value)]
        bits = [type.bits for type in types if type is not None and type.kind in {"signed", "unsigned"}]
        return len(bits) == len(types) and bits[1] >= min(bits[0], _WIDE_ENOUGH)
    return op.moves == (0,) and op.bounds is None and len(_counted_on(scatter)) == 1


def _is_filled(array: "Array", content: "Array") -> bool:
    """Tell whether an array holds nothing but a content, repeated to its shape or the other way round."""
    try:
        return array.size == 0 == content.size or bool(array.size and (array == content).all())
    except ValueError:
        return False


def _pattern(scatter: ScatterNode, guard: Guard, *, knows_sizes: bool) -> Fragment | None:
    """Return a node like this one with a guard in front of indices that may be anything."""

    def make(number: int, value: Value) -> Value:
        is_open, shape = scatter.spec.ports[number].role is Role.INDICES, scatter.facts.shape(value)
        if not knows_sizes and value.constant is None and shape is not None:
            shape = (UNKNOWN_DIM,) * len(shape)
        producer = None if is_open else partial(getattr, value, "producer")
        constant = None if is_open else value.constant
        type = scatter.facts.element_type(value)
        made = Value("input", type, shape, producer, value.output, constant)
        scatter.facts.trust(made)
        return made

    fragment = fragment_like(scatter, make, scatter.data_shape)
    view = View(ScatterNode(fragment.nodes[0], scatter.lookup, scatter.facts))
    opset = scatter.node.opset if isinstance(scatter.node.opset, int) else None
    build = Builder(fragment.given, scatter.node.domain, opset)
    result = rewrite_of(guard, scatter.spec.key).build(view, build, scatter.spec)
    return None if isinstance(result, Refusal) else build.fragment(result)


def _matches(scatter: ScatterNode, pattern: Fragment, wanted: Value | None, value: Value | None) -> bool:
    """Tell whether a value of the model is computed as one of a pattern, whatever its indices are."""
    indices, guarded = scatter.indices and scatter.indices.value, dict[int, Value]()

    def is_like(wanted: Value | None, value: Value | None) -> bool:
        if wanted is None or value is None:
            return wanted is value
        number, new = pattern.number_given(wanted), pattern.producer(wanted)
        if number is not None:
            own = scatter.node.inputs[number].value
            return guarded.setdefault(number, value) is value if own is indices else own is value
        if new is None:
            assert isinstance(wanted.constant, NewConstant)
            array = scatter.facts.array(value)
            return array is not None and _is_filled(array, wanted.constant.array)
        node = value.producer
        if node is None or find(node.domain, node.type) is not find(new.domain, new.type):
            return False
        values = [port.value for port in node.inputs]
        is_said_so = all(str(node.attributes.get(name)) == str(said) for name, said in new.attributes.items())
        return is_said_so and len(values) == len(new.inputs) and all(map(is_like, new.inputs, values))

    return is_like(wanted, value)
