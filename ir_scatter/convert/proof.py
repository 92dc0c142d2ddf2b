"""Old form against new, on generated legal inputs of the node's own shapes and types."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ir_scatter.analysis.conditions import Condition, Verdict
from ir_scatter.analysis.interpreter import Step
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.convert.rewriter import Rewriter, Rewritten
from ir_scatter.core.arrays import Array, are_equal, too_many_dimensions
from ir_scatter.core.errors import Error, NoInputs
from ir_scatter.core.fragment import Fragment
from ir_scatter.core.model import Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Shape, counted, show_numbers
from ir_scatter.evaluate.certainty import detail
from ir_scatter.evaluate.model import compute_node
from ir_scatter.evaluate.operator import make_case
from ir_scatter.inputs.node import MOST_ELEMENTS, Given, Misfit, TooLarge, draw_inputs
from ir_scatter.ops.general import find_computed
from ir_scatter.ops.lookup import find
from ir_scatter.ops.spec import Layout, Role
from ir_scatter.rewrites.base import Promises, View, fragment_like
from ir_scatter.rewrites.guard import Guard, guard_of
from ir_scatter.rewrites.refusals import Reason, Refusal

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
    proven = {condition for condition in Condition if view.proof(condition).verdict is Verdict.PROVEN}
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
    promises, first = rewriter.promises, rewritten.way[0] if rewritten.way else None
    guard = None if first is None else guard_of(first)
    if guard is not None:
        scatter = _with_open_indices(scatter)
    view = View(scatter, promises)
    wanted = {condition for rewrite in rewritten.way for condition in rewrite.requires(view, rewrite.target)}
    kept = wanted & {Condition.UNIQUE, Condition.EQUAL}
    if not view.may_be_negative:
        kept.add(Condition.NON_NEGATIVE)
    done, elements = 0, 0
    for operand in scatter.operands():
        if reason := too_many_dimensions(len(operand.shape or ())):
            return Refusal(Reason.NOT_EQUAL, f"could not be verified: {operand.port.name} {reason}")
    try:
        for given in draw_inputs(seed, scatter, kept, cases, keeps_constants=rewritten.is_bound):
            difference = _difference(rewritten.fragment, scatter, given, promises)
            if guard is not None and not difference:
                illegal = with_illegal_indices(scatter, given, guard, done)
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


def with_illegal_indices(scatter: ScatterNode, given: Given, guard: Guard, number: int) -> Given:
    """Return a case with indices that a guard makes legal, as inputs, and what it makes of them as arguments.

    All indices go on by so many positions that the first one comes to stand at an end, and what stands there
    goes beyond it: what was different stays so, and so does what was equal.
    """
    place, data = scatter.spec.port_index(Role.INDICES), given.data
    indices = None if place is None or place >= len(given.inputs) else given.inputs[place]
    if place is None or indices is None or not indices.size or indices.dtype.isbuiltin != 1:
        return given
    wide, is_high = indices.astype(np.int64), number % 2 == 0
    if scatter.spec.layout is Layout.TUPLES:
        sizes = rooms = np.asarray(data.shape[: indices.shape[-1]], np.int64)
        first = wide.reshape(-1, sizes.size)[0] if sizes.size else wide
    else:
        axis = int(np.asarray(given.arguments[Role.AXIS.value]).reshape(-1)[0])
        sizes = rooms = np.asarray(data.shape[axis], np.int64)
        first = wide.reshape(-1)[0]
        if scatter.spec.layout is Layout.SEQUENCE:  # the whole run is to fit
            rooms = sizes - np.shape(given.arguments[Role.UPDATES.value])[axis] + 1
    if not sizes.size or not rooms.all():
        return given
    legal = (wide - first + (rooms - 1 if is_high else 0)) % rooms
    if guard is Guard.WRAP:
        illegal = legal - sizes
    elif is_high:
        illegal = np.where(legal == rooms - 1, legal + 1 + number * sizes, legal)
    else:
        illegal = np.where(legal == 0, -1 - (number + scatter.wraps) * sizes, legal)
    limits = np.iinfo(indices.dtype)
    illegal = np.where((illegal < limits.min) | (illegal > limits.max), legal, illegal)
    inputs = [*given.inputs]
    inputs[place] = illegal.astype(indices.dtype)
    return replace(given, inputs=tuple(inputs), arguments={**given.arguments, Role.INDICES.value: legal})


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
