"""Old form against new, on generated legal inputs of the node's own shapes and types."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ir_scatter.analysis.conditions import Condition
from ir_scatter.analysis.interpreter import Step
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.compare.measure import are_equal, measure
from ir_scatter.compare.result import Verdict
from ir_scatter.compare.tolerance import EXACT
from ir_scatter.convert.rewriter import Promises, Rewritten
from ir_scatter.core.arrays import Array, kind
from ir_scatter.core.errors import Error, NoInputs
from ir_scatter.core.fragment import Fragment, NewConstant
from ir_scatter.core.model import Node
from ir_scatter.core.shapes import counted, show_numbers
from ir_scatter.evaluate import evaluate_detailed
from ir_scatter.evaluate.model import compute_node
from ir_scatter.inputs.constraints import IndexConstraint
from ir_scatter.inputs.node import MOST_ELEMENTS, Given, Misfit, TooLarge, draw_inputs
from ir_scatter.ops import targets
from ir_scatter.ops.general import find_computed
from ir_scatter.ops.lookup import find
from ir_scatter.ops.spec import IndexRange, OpSpec, Role
from ir_scatter.rewrites.base import Rewrite, View
from ir_scatter.rewrites.refusals import Reason, Refusal


@dataclass(frozen=True, slots=True)
class Proven:
    """A node whose old and new form gave the same on so many cases."""

    cases: int


def prove(
    rewritten: Rewritten, site: ScatterNode, promises: Promises, cases: int, seed: int
) -> "Proven | Refusal":
    """Compute both forms and compare them.

    Elements that more than one update writes without a reduction must be one of the candidates;
    floating-point reductions may differ by what rounding in another order makes of them.

    Raises:
        TooLarge: the node's own inputs would take too much memory.
    """
    random, constraint = np.random.default_rng(seed), _constraint(rewritten.way, site, promises)
    done = elements = 0
    for number in range(cases):
        if done and elements > MOST_ELEMENTS:
            break  # large nodes get one case
        try:
            keeps = rewritten.is_bound or done == 0
            given = draw_inputs(random, site, constraint, number, keeps_constants=keeps)
        except Misfit:
            return Refusal(Reason.BREAKS_RULES, "no legal shapes were found that the node can have")
        except TooLarge:
            raise
        except NoInputs as error:
            return Refusal(Reason.NOT_EQUAL, f"could not be verified: {error}")
        difference = _difference(rewritten.fragment, site, given, wraps=promises.keeps_negative)
        if difference:
            return Refusal(Reason.NOT_EQUAL, f"{difference} (case {done} of seed {seed})")
        done += 1
        elements += given.data.size
    return Proven(done)


def _constraint(way: Sequence[Rewrite], site: ScatterNode, promises: Promises) -> IndexConstraint:
    """Return what the rewrites rely on."""
    view = View(site, promises.conditions, promises.keeps_negative)
    wanted = {condition for rewrite in way for condition in rewrite.requires(view, rewrite.target)}
    is_unique, are_equal = Condition.UNIQUE in wanted, Condition.EQUAL in wanted
    return IndexConstraint(is_unique, not view.may_be_negative, are_equal)


def _difference(fragment: Fragment, site: ScatterNode, given: Given, *, wraps: bool) -> str:
    """Return how the new form differs from the old one, "" if it does not."""
    spec = site.spec
    try:
        expected = evaluate_detailed(str(spec.key), **given.arguments)
        found = run_fragment(fragment, given.inputs, wraps=wraps)
    except Error as error:
        return f"could not be computed: {error}"
    if are_equal(found, expected.values):
        return ""
    differs = measure(found, expected.values, EXACT, bound=2 * expected.rounding_bound)
    if differs.verdict is Verdict.MISMATCH and not differs.remark and expected.contested.any():
        differs = measure(found, expected.values, EXACT, contested=expected.allows(found))
    if differs.verdict is not Verdict.MISMATCH:
        return ""
    if differs.worst is None:
        return f"the new form {differs.remark}"
    place, count = differs.worst.index, f"{differs.mismatched} of {counted(differs.elements, 'element')}"
    return f"{count} differ: {found[place]} at {show_numbers(place)}, expected {expected.values[place]}"


def run_fragment(fragment: Fragment, inputs: Sequence[Array | None], *, wraps: bool = False) -> Array:
    """Compute the result of a fragment.

    Args:
        fragment: the new nodes.
        inputs: those of the node that it replaces.
        wraps: whether negative indices count from the end where the text forbids them, as they do
            in every runtime.

    Raises:
        EvaluationFailed: a node cannot be computed.
    """
    # A node may name further inputs that are left out, "" at the end of an ONNX node.
    pairs = zip(fragment.given, inputs, strict=False)
    known: dict[int, Array | None] = {id(value): array for value, array in pairs if value is not None}
    for node, new in zip(fragment.nodes, fragment.news, strict=True):
        arrays = []
        for value in new.inputs:
            if value is not None and id(value) not in known:
                assert isinstance(value.constant, NewConstant)
                known[id(value)] = value.constant.array
            arrays.append(None if value is None else known[id(value)])
        known[id(new.output)] = _run(node, arrays, wraps=wraps)
    result = known[id(fragment.result.output)]
    assert result is not None
    return result


def _run(node: Node, arrays: Sequence[Array | None], *, wraps: bool) -> Array:
    lookup = find(node.domain, node.type, node.opset)
    if wraps and lookup is not None and lookup.spec is not None:
        arrays = _from_front(lookup.spec, arrays)
    work = lookup or find_computed(node.domain, node.type)
    assert work is not None
    (found,) = compute_node(Step(node, (), ("output",), work, ()), arrays)
    return found


def _from_front(spec: OpSpec, arrays: Sequence[Array | None]) -> Sequence[Array | None]:
    """Return the inputs of a scatter node with indices counted from the front, if the text demands it."""
    number, axis = spec.port_index(Role.INDICES), spec.port_index(Role.AXIS)
    if spec.index_range is not IndexRange.NON_NEGATIVE or number is None:
        return arrays
    data, indices = arrays[spec.port_index(Role.DATA) or 0], arrays[number]
    assert data is not None
    assert indices is not None
    if kind(indices) != "signed":
        return arrays
    at = None if axis is None else arrays[axis]
    sizes = data.shape[: indices.shape[-1]] if at is None else data.shape[int(at.reshape(-1)[0])]
    return [*arrays[:number], targets.from_front(indices, sizes), *arrays[number + 1 :]]
