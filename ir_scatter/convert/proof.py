"""Old form against new, on generated legal inputs of the node's own shapes and types."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ir_scatter.analysis.conditions import Condition, ProofState
from ir_scatter.analysis.interpreter import Step
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.convert.rewriter import Rewriter, Rewritten
from ir_scatter.core.arrays import Array, are_equal, too_many_dimensions
from ir_scatter.core.errors import Error, NoInputs
from ir_scatter.core.fragment import Fragment
from ir_scatter.core.model import Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Shape, show_numbers
from ir_scatter.core.words import counted
from ir_scatter.evaluate.certainty import detail
from ir_scatter.evaluate.model import compute_node
from ir_scatter.evaluate.operator import make_case
from ir_scatter.inputs.node import MOST_ELEMENTS, Given, Misfit, TooLarge, draw_inputs
from ir_scatter.ops.general import find_computed
from ir_scatter.ops.lookup import find
from ir_scatter.ops.spec import Layout, Role
from ir_scatter.rewrites.base import Promises, View, fragment_like
from ir_scatter.rewrites.guard import Guard, counts_from_end, guard_of
from ir_scatter.rewrites.refusals import Reason, Refusal

_BY_VERSION = frozenset({Guard.CLAMP, Guard.DROP})
"""The guards for which a negative index is out of range where the version forbids it."""

_SMALL = 8
"""Dimensions up to here are no large ones."""


def prove(
    rewriter: Rewriter, scatter: ScatterNode, rewritten: Rewritten, opset: int | None, cases: int, seed: int
) -> int | Refusal:
    """Return on how many cases both forms give the same.

    Elements that more than one update writes without a reduction must be one of the candidates;
    floating-point reductions may differ by what rounding in another order makes of them. Where the node's
    own inputs would take too much memory, a node with smaller ones stands for it.
    """
    try:
        return _prove(rewriter, scatter, rewritten, cases, seed)
    except TooLarge as error:
        problem = Refusal(Reason.NOT_EQUAL, f"could not be verified: {error}")
    view, promises = View(scatter, rewriter.promises), rewriter.promises
    proven = {condition for condition in Condition if view.proof(condition).verdict is ProofState.PROVEN}
    other = Rewriter(rewriter.model, replace(promises, conditions=promises.conditions | proven))
    like = other.scatter(_with_unknown_sizes(scatter).nodes[0])
    assert like is not None
    form = other.along(like, rewritten.way, opset)
    try:
        return problem if isinstance(form, Refusal) else _prove(other, like, form, cases, seed)
    except TooLarge:
        return problem


def _prove(
    rewriter: Rewriter, scatter: ScatterNode, rewritten: Rewritten, cases: int, seed: int
) -> int | Refusal:
    promises = rewriter.promises
    guard = next(filter(None, map(guard_of, rewritten.way)), None)
    if guard is not None:
        scatter = _with_open_indices(scatter)
    view = View(scatter, promises)
    wanted = {condition for rewrite in rewritten.way for condition in rewrite.requires(view, rewrite.target)}
    kept = wanted & {Condition.UNIQUE, Condition.EQUAL}
    if not view.may_be_negative or (guard in _BY_VERSION and not counts_from_end(scatter.spec)):
        kept.add(Condition.NON_NEGATIVE)
    done, elements = 0, 0
    for operand in scatter.operands():
        if reason := too_many_dimensions(len(operand.shape or ())):
            return Refusal(Reason.NOT_EQUAL, f"could not be verified: {operand.port.name} {reason}")
    try:
        for given in draw_inputs(seed, scatter, kept, cases, keeps_constants=rewritten.is_bound):
            difference = _difference(rewritten.fragment, scatter, given, promises)
            if guard is not None and not difference:
                make = with_dropped_updates if guard is Guard.DROP else with_illegal_indices
                illegal = make(scatter, given, guard, done)
                difference = _difference(rewritten.fragment, scatter, illegal, promises)
            if difference:
                return Refusal(Reason.NOT_EQUAL, f"{difference} (case {done} of seed {seed})")
            done += 1
            elements += given.data.size
            if elements > MOST_ELEMENTS:
                break  # large nodes get one case
    except Misfit:
        return Refusal(Reason.BREAKS_RULES, "no legal shapes were found that the node can have")
    except TooLarge:
        raise
    except NoInputs as error:
        return Refusal(Reason.NOT_EQUAL, f"could not be verified: {error}")
    return done


def _with_open_indices(scatter: ScatterNode) -> ScatterNode:
    """Return a node like another one whose indices are no constants, as a guard has them."""

    def make(number: int, value: Value) -> Value:
        if scatter.spec.ports[number].role is not Role.INDICES:
            return value
        return Value("indices", value.element_type, scatter.facts.shape(value))

    node = fragment_like(scatter, make, scatter.data_shape).nodes[0]
    return ScatterNode(node, scatter.lookup, scatter.facts)


class _Sizes(NamedTuple):
    """What the indices of a case count on: sizes, how many of them are legal, and the indices themselves.

    `place` is the number of the input of indices, `axis` the first axis that they count on.
    """

    sizes: Array
    rooms: Array
    wide: Array
    place: int
    axis: int


def _sizes_of(scatter: ScatterNode, given: Given) -> _Sizes | None:
    """Return what indices of a case count on, None if there is nothing that a guard could change."""
    place, data = scatter.spec.port_index(Role.INDICES), given.data
    indices = None if place is None or place >= len(given.inputs) else given.inputs[place]
    if place is None or indices is None or not indices.size or indices.dtype.isbuiltin != 1:
        return None
    axis = 0
    if scatter.spec.layout is Layout.TUPLES:
        sizes = rooms = np.asarray(data.shape[: indices.shape[-1]], np.int64)
    else:
        axis = int(np.asarray(given.arguments[Role.AXIS.value]).reshape(-1)[0]) % data.ndim
        sizes = rooms = np.asarray(data.shape[axis], np.int64)
        if scatter.spec.layout is Layout.SEQUENCE:  # the whole run is to fit
            rooms = sizes - np.shape(given.arguments[Role.UPDATES.value])[axis] + 1
    if not sizes.size or not rooms.all():
        return None
    return _Sizes(sizes, rooms, indices.astype(np.int64), place, axis)


def with_illegal_indices(scatter: ScatterNode, given: Given, guard: Guard, number: int) -> Given:
    """Return a case with indices that a guard makes legal, as inputs, and what it makes of them as arguments.

    All indices go on by so many positions that the first one comes to stand at an end, and what stands there
    goes beyond it: what was different stays so, and so does what was equal.
    """
    found = _sizes_of(scatter, given)
    if found is None:
        return given
    sizes, rooms, wide, place, _ = found
    is_high, is_from_end = number % 2 == 0, counts_from_end(scatter.spec)
    first = wide.reshape(-1, sizes.size)[0] if scatter.spec.layout is Layout.TUPLES else wide.reshape(-1)[0]
    legal = (wide - first + (rooms - 1 if is_high else 0)) % rooms
    if guard is Guard.WRAP:
        illegal = legal - sizes
    elif is_high:
        illegal = np.where(legal == rooms - 1, legal + 1 + number * sizes, legal)
    else:
        illegal = np.where(legal == 0, -1 - (number // 2 + is_from_end) * sizes, legal)
    indices = _in_type(given, place, illegal, legal)
    return _with_indices(given, place, indices, {Role.INDICES.value: legal})


def _in_type(given: Given, place: int, illegal: Array, legal: Array) -> Array:
    """Return illegal indices in the type of the input, legal ones where it does not hold them."""
    type = np.asarray(given.inputs[place]).dtype
    limits = np.iinfo(type)
    is_beyond = (illegal < limits.min) | (illegal > limits.max)
    return np.asarray(np.where(is_beyond, legal, illegal).astype(type))


def _with_indices(given: Given, place: int, indices: Array, arguments: Mapping[str, Array]) -> Given:
    inputs = (*given.inputs[:place], indices, *given.inputs[place + 1 :])
    return replace(given, inputs=inputs, arguments={**given.arguments, **arguments})


def with_dropped_updates(scatter: ScatterNode, given: Given, _: Guard, number: int) -> Given:
    """Return a case with indices that are out of range, and as arguments a larger one that is legal.

    There what is dropped is written behind the last row. One case in four drops everything.
    """
    found = _sizes_of(scatter, given)
    if found is None:
        return given
    sizes, rooms, wide, place, axis = found
    from_front = np.where(wide < 0, wide + sizes, wide)
    legal = np.clip(from_front, 0, rooms - 1)
    count = legal.size // max(sizes.size, 1) if scatter.spec.layout is Layout.TUPLES else legal.size
    is_out = (np.arange(count) + number) % 3 != 1 if number % 4 != 3 else np.ones(count, bool)
    step = 1 + number // 2
    beyond = rooms - 1 + step if number % 2 == 0 else -step - (sizes if counts_from_end(scatter.spec) else 0)
    if scatter.spec.layout is Layout.TUPLES:  # one coordinate alone is out of range, each in turn
        is_out = is_out.reshape(wide.shape[:-1])
        column = np.arange(sizes.size) == (np.arange(count) % sizes.size).reshape((*is_out.shape, 1))
        illegal = np.where(is_out[..., None] & column, beyond, wide)
        extra = np.where(np.arange(sizes.size) == 0, sizes, 0)
        placed = np.where(is_out[..., None], extra, legal)
    else:
        is_out = is_out.reshape(wide.shape)
        illegal, placed = np.where(is_out, beyond, wide), np.where(is_out, sizes, legal)
    indices = _in_type(given, place, illegal, wide)
    is_kept = np.asarray(indices == wide)  # also what the type does not hold
    if scatter.spec.layout is Layout.TUPLES:
        is_kept = np.asarray(is_kept.all(-1, keepdims=True))
    placed = np.where(is_kept, legal, placed)
    more = int(sizes - rooms + 1) if scatter.spec.layout is Layout.SEQUENCE else 1
    rows = np.ones((*given.data.shape[:axis], more, *given.data.shape[axis + 1 :]), given.data.dtype)
    data = np.concatenate([given.data, rows], axis)
    return _with_indices(given, place, indices, {Role.DATA.value: data, Role.INDICES.value: placed})


def _with_unknown_sizes(scatter: ScatterNode) -> Fragment:
    """Return a node like another one whose inputs are no constants, and whose sizes are small or unknown."""

    def unknown(shape: Shape) -> Shape:
        if shape is None:
            return None
        return tuple(dim if isinstance(dim, int) and dim <= _SMALL else UNKNOWN_DIM for dim in shape)

    shapes = {Role.DATA: scatter.data_shape, Role.INDICES: scatter.indices_shape}
    shapes[Role.UPDATES] = scatter.updates.shape if scatter.updates else None

    def make(number: int, value: Value) -> Value:
        role = scatter.spec.ports[number].role
        return Value("input", value.element_type, unknown(shapes[role])) if role in shapes else value

    return fragment_like(scatter, make, unknown(scatter.data_shape))


def _difference(fragment: Fragment, scatter: ScatterNode, given: Given, promises: Promises) -> str:
    """Return how the new form differs from the old one, "" if it does not."""
    try:
        expected = detail(make_case(str(scatter.spec.key), **given.arguments)).settled()
        found = run_fragment(fragment, given.inputs, wraps=promises.keeps_negative)
    except Error as error:
        return f"could not be computed: {error}"
    found = _with_extra_rows(found, expected.values)
    if are_equal(found, expected.values):
        return ""
    # Seldom needed, and with everything that a comparison finds it takes as long to import as some proofs.
    from ir_scatter.compare.measure import EXACT, Verdict, measure

    differs = measure(found, expected.values, EXACT, bound=2 * expected.rounding_bound)
    wrong = Verdict.MISMATCH
    if differs.verdict is wrong and not differs.remark and expected.contested.any():
        differs = measure(found, expected.values, EXACT, contested=expected.allows(found))
    if differs.verdict is not wrong:
        return ""
    if differs.worst is None:
        return f"the new form {differs.remark}"
    place, count = differs.worst.index, f"{differs.mismatched} of {counted(differs.elements, 'element')}"
    return f"{count} differ: {found[place]} at {show_numbers(place)}, expected {expected.values[place]}"


def _with_extra_rows(found: Array, expected: Array) -> Array:
    """Return a result with the rows of a larger one behind it, which are of no concern."""
    if found.ndim != expected.ndim:
        return found
    for axis, size in enumerate(found.shape):
        if expected.shape[axis] > size:
            rows = expected.take(range(size, expected.shape[axis]), axis)
            return np.concatenate([found, rows], axis) if rows.dtype == found.dtype else found
    return found


def run_fragment(fragment: Fragment, inputs: Sequence[Array | None], *, wraps: bool = False) -> Array:
    """Compute the result of a fragment from the inputs of the node that it replaces.

    If it `wraps`, negative indices count from the end where the text forbids them, as in every runtime.
    """
    # A node may name further inputs that are left out, "" at the end of an ONNX node.
    pairs = zip(fragment.given, inputs, strict=False)
    known: dict[int, Array | None] = {id(value): array for value, array in pairs if value is not None}
    known |= {id(value): value.constant.load() for value in fragment.constants if value.constant}
    for node, new in zip(fragment.nodes, fragment.news, strict=True):
        arrays = [None if value is None else known[id(value)] for value in new.inputs]
        work = find(node.domain, node.type, node.opset) or find_computed(node.domain, node.type)
        assert work is not None
        step = Step(node, (), ("output",), work, ())
        (known[id(new.output)],) = compute_node(step, arrays, wraps=wraps)
    found = known[id(fragment.result.output)]
    assert found is not None
    return found
