"""Verifies a rewrite: computes the old and the new nodes in NumPy on random inputs, and compares.

Inputs have the node's own shapes and types, and are legal for its version.
"""

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
from ir_scatter.inputs.node import MOST_ELEMENTS, InputsTooLarge, Misfit, NodeInputs, draw_inputs
from ir_scatter.ops.general import find_computed
from ir_scatter.ops.lookup import find
from ir_scatter.ops.spec import Layout, Role
from ir_scatter.rewrites.base import Promises, View, fragment_like
from ir_scatter.rewrites.guard import Guard, counts_from_end, guard_of
from ir_scatter.rewrites.refusals import Reason, Refusal

_BY_VERSION = frozenset({Guard.CLAMP, Guard.DROP})
"""Guards that treat a negative index as out of range if the version forbids it."""

_SMALL = 8
"""Limit of a dimension in the small copy of a node that is too large to compute. Larger dimensions become
dynamic.
"""


def prove(
    rewriter: Rewriter, scatter: ScatterNode, rewritten: Rewritten, opset: int | None, cases: int, seed: int
) -> int | Refusal:
    """Return the number of cases on which both forms agree, or a refusal.

    Without a reduction, an element with several updates may have any of their values. Floating-point
    reductions may differ by rounding in another order. If the node's own inputs are too large, a copy with
    smaller inputs is used.
    """
    try:
        return _prove(rewriter, scatter, rewritten, cases, seed)
    except InputsTooLarge as error:
        problem = Refusal(Reason.NOT_EQUAL, f"could not be verified: {error}")
    view, promises = View(scatter, rewriter.promises), rewriter.promises
    proven = {condition for condition in Condition if view.proof(condition).verdict is ProofState.PROVEN}
    smaller = Rewriter(rewriter.model, replace(promises, conditions=promises.conditions | proven))
    like = smaller.scatter(_with_unknown_sizes(scatter).nodes[0])
    assert like is not None
    form = smaller.along(like, rewritten.way, opset)
    try:
        return problem if isinstance(form, Refusal) else _prove(smaller, like, form, cases, seed)
    except InputsTooLarge:
        return problem


def _prove(
    rewriter: Rewriter, scatter: ScatterNode, rewritten: Rewritten, cases: int, seed: int
) -> int | Refusal:
    promises = rewriter.promises
    guard = next(filter(None, map(guard_of, rewritten.way)), None)
    if guard is not None:
        scatter = _with_open_indices(scatter)
    view = View(scatter, promises)
    required = {
        condition for rewrite in rewritten.way for condition in rewrite.requires(view, rewrite.target)
    }
    preserved = required & {Condition.UNIQUE, Condition.EQUAL}
    if not view.may_be_negative or (guard in _BY_VERSION and not counts_from_end(scatter.spec)):
        preserved.add(Condition.NON_NEGATIVE)
    done, elements = 0, 0
    for operand in scatter.operands():
        if reason := too_many_dimensions(len(operand.shape or ())):
            return Refusal(Reason.NOT_EQUAL, f"could not be verified: {operand.port.name} {reason}")
    try:
        for case in draw_inputs(seed, scatter, preserved, cases, keeps_constants=rewritten.is_bound):
            difference = _difference(rewritten.fragment, scatter, case, promises)
            if guard is not None and not difference:
                make = with_dropped_updates if guard is Guard.DROP else with_illegal_indices
                illegal = make(scatter, case, guard, done)
                difference = _difference(rewritten.fragment, scatter, illegal, promises)
            if difference:
                return Refusal(Reason.NOT_EQUAL, f"{difference} (case {done} of seed {seed})")
            done += 1
            elements += case.data.size
            if elements > MOST_ELEMENTS:
                break  # enough work: large nodes get one case
    except Misfit:
        return Refusal(Reason.BREAKS_RULES, "no legal shapes were found that the node can have")
    except InputsTooLarge:
        raise
    except NoInputs as error:
        return Refusal(Reason.NOT_EQUAL, f"could not be verified: {error}")
    return done


def _with_open_indices(scatter: ScatterNode) -> ScatterNode:
    """Return a copy of a node with runtime indices instead of constant ones, for testing a guard."""

    def make(number: int, value: Value) -> Value:
        if scatter.spec.ports[number].role is not Role.INDICES:
            return value
        return Value("indices", value.element_type, scatter.facts.shape(value))

    node = fragment_like(scatter, make, scatter.data_shape).nodes[0]
    return ScatterNode(node, scatter.lookup, scatter.facts)


class _Sizes(NamedTuple):
    """The sizes of the dimensions that the indices of a random input refer to.

    Attributes:
        sizes: the size of each dimension.
        rooms: the number of legal start positions in each; fewer than `sizes` for successive positions.
        wide: the indices as i64.
        place: the number of the indices input.
        axis: the first axis that indices refer to.
    """

    sizes: Array
    rooms: Array
    wide: Array
    place: int
    axis: int


def _sizes_of(scatter: ScatterNode, case: NodeInputs) -> _Sizes | None:
    """Return the dimensions that indices refer to; None if no index can be out of range."""
    place, data = scatter.spec.port_index(Role.INDICES), case.data
    indices = None if place is None or place >= len(case.inputs) else case.inputs[place]
    if place is None or indices is None or not indices.size or indices.dtype.isbuiltin != 1:
        return None
    axis = 0
    if scatter.spec.layout is Layout.TUPLES:
        sizes = rooms = np.asarray(data.shape[: indices.shape[-1]], np.int64)
    else:
        axis = int(np.asarray(case.arguments[Role.AXIS.value]).reshape(-1)[0]) % data.ndim
        sizes = rooms = np.asarray(data.shape[axis], np.int64)
        if scatter.spec.layout is Layout.SEQUENCE:  # a whole run of positions must fit
            rooms = sizes - np.shape(case.arguments[Role.UPDATES.value])[axis] + 1
    if not sizes.size or not rooms.all():
        return None
    return _Sizes(sizes, rooms, indices.astype(np.int64), place, axis)


def with_illegal_indices(scatter: ScatterNode, case: NodeInputs, guard: Guard, number: int) -> NodeInputs:
    """Return a case with illegal indices as inputs, and the guarded ones as arguments of the reference.

    All indices are rotated until the first one is at an end of its dimension. Then those at that end are
    moved beyond it. Equal indices stay equal and different ones different:

        size 5, clamp:  [1, 3, 1]  ->  legal [4, 1, 4]  ->  illegal [5, 1, 5]
    """
    counted = _sizes_of(scatter, case)
    if counted is None:
        return case
    sizes, rooms, wide, place, _ = counted
    is_high, is_from_end = number % 2 == 0, counts_from_end(scatter.spec)
    first = wide.reshape(-1, sizes.size)[0] if scatter.spec.layout is Layout.TUPLES else wide.reshape(-1)[0]
    legal = (wide - first + (rooms - 1 if is_high else 0)) % rooms
    if guard is Guard.WRAP:
        illegal = legal - sizes
    elif is_high:
        illegal = np.where(legal == rooms - 1, legal + 1 + number * sizes, legal)
    else:
        illegal = np.where(legal == 0, -1 - (number // 2 + is_from_end) * sizes, legal)
    indices = _in_type(case, place, illegal, legal)
    return _with_indices(case, place, indices, {Role.INDICES.value: legal})


def _in_type(case: NodeInputs, place: int, illegal: Array, legal: Array) -> Array:
    """Return illegal indices in the type of the input; values that the type cannot represent stay legal."""
    type = np.asarray(case.inputs[place]).dtype
    limits = np.iinfo(type)
    is_beyond = (illegal < limits.min) | (illegal > limits.max)
    return np.asarray(np.where(is_beyond, legal, illegal).astype(type))


def _with_indices(case: NodeInputs, place: int, indices: Array, arguments: Mapping[str, Array]) -> NodeInputs:
    inputs = (*case.inputs[:place], indices, *case.inputs[place + 1 :])
    return replace(case, inputs=inputs, arguments={**case.arguments, **arguments})


def with_dropped_updates(scatter: ScatterNode, case: NodeInputs, _: Guard, number: int) -> NodeInputs:
    """Return a case with indices out of range as inputs, and a larger legal case as arguments.

    In the larger case data has an extra row, which receives the dropped updates. Every fourth case drops all.
    """
    counted = _sizes_of(scatter, case)
    if counted is None:
        return case
    sizes, rooms, wide, place, axis = counted
    from_front = np.where(wide < 0, wide + sizes, wide)
    legal = np.clip(from_front, 0, rooms - 1)
    count = legal.size // max(sizes.size, 1) if scatter.spec.layout is Layout.TUPLES else legal.size
    is_out = (np.arange(count) + number) % 3 != 1 if number % 4 != 3 else np.ones(count, bool)
    step = 1 + number // 2
    beyond = rooms - 1 + step if number % 2 == 0 else -step - (sizes if counts_from_end(scatter.spec) else 0)
    if scatter.spec.layout is Layout.TUPLES:  # in each case another coordinate is out of range, alone
        is_out = is_out.reshape(wide.shape[:-1])
        column = np.arange(sizes.size) == (np.arange(count) % sizes.size).reshape((*is_out.shape, 1))
        illegal = np.where(is_out[..., None] & column, beyond, wide)
        extra = np.where(np.arange(sizes.size) == 0, sizes, 0)
        placed = np.where(is_out[..., None], extra, legal)
    else:
        is_out = is_out.reshape(wide.shape)
        illegal, placed = np.where(is_out, beyond, wide), np.where(is_out, sizes, legal)
    indices = _in_type(case, place, illegal, wide)
    is_kept = np.asarray(indices == wide)  # includes values that the type cannot represent
    if scatter.spec.layout is Layout.TUPLES:
        is_kept = np.asarray(is_kept.all(-1, keepdims=True))
    placed = np.where(is_kept, legal, placed)
    more = int(sizes - rooms + 1) if scatter.spec.layout is Layout.SEQUENCE else 1
    rows = np.ones((*case.data.shape[:axis], more, *case.data.shape[axis + 1 :]), case.data.dtype)
    data = np.concatenate([case.data, rows], axis)
    return _with_indices(case, place, indices, {Role.DATA.value: data, Role.INDICES.value: placed})


def _with_unknown_sizes(scatter: ScatterNode) -> Fragment:
    """Return a copy of a node with runtime inputs and small or dynamic sizes."""

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


def _difference(fragment: Fragment, scatter: ScatterNode, case: NodeInputs, promises: Promises) -> str:
    """Describe how the results of the old and the new nodes differ; "" if they agree."""
    try:
        expected = detail(make_case(str(scatter.spec.key), **case.arguments)).settled()
        values = run_fragment(fragment, case.inputs, wraps=promises.keeps_negative)
    except Error as error:
        return f"could not be computed: {error}"
    values = _with_extra_rows(values, expected.values)
    if are_equal(values, expected.values):
        return ""
    # Imported here: seldom needed, and the import takes as long as a small proof.
    from ir_scatter.compare.measure import EXACT, Verdict, measure

    differs = measure(values, expected.values, EXACT, bound=2 * expected.rounding_bound)
    wrong = Verdict.MISMATCH
    if differs.verdict is wrong and not differs.remark and expected.contested.any():
        differs = measure(values, expected.values, EXACT, contested=expected.allows(values))
    if differs.verdict is not wrong:
        return ""
    if differs.worst is None:
        return f"the new form {differs.remark}"
    place, count = differs.worst.index, f"{differs.mismatched} of {counted(differs.elements, 'element')}"
    return f"{count} differ: {values[place]} at {show_numbers(place)}, expected {expected.values[place]}"


def _with_extra_rows(values: Array, expected: Array) -> Array:
    """Append the rows that only `expected` has to `values`, so that these rows are equal in a comparison."""
    if values.ndim != expected.ndim:
        return values
    for axis, size in enumerate(values.shape):
        if expected.shape[axis] > size:
            rows = expected.take(range(size, expected.shape[axis]), axis)
            return np.concatenate([values, rows], axis) if rows.dtype == values.dtype else values
    return values


def run_fragment(fragment: Fragment, inputs: Sequence[Array | None], *, wraps: bool = False) -> Array:
    """Compute the result of a fragment from the inputs of the node that it replaces.

    With `wraps`, negative indices count from the end even if the specification forbids them, as in runtimes.
    """
    # An ONNX node may end with omitted inputs (""), which the fragment does not have.
    pairs = zip(fragment.given, inputs, strict=False)
    arrays_by_value: dict[int, Array | None] = {
        id(value): array for value, array in pairs if value is not None
    }
    arrays_by_value |= {id(value): value.constant.load() for value in fragment.constants if value.constant}
    for node, new in zip(fragment.nodes, fragment.news, strict=True):
        arrays = [None if value is None else arrays_by_value[id(value)] for value in new.inputs]
        work = find(node.domain, node.type, node.opset) or find_computed(node.domain, node.type)
        assert work is not None
        step = Step(node, (), ("output",), work, ())
        (arrays_by_value[id(new.output)],) = compute_node(step, arrays, wraps=wraps)
    result = arrays_by_value[id(fragment.result.output)]
    assert result is not None
    return result
