"""Rewrites one node along a route (a chain of rewrites): returns its new nodes, or a refusal."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeAlias

from ir_scatter.analysis.conditions import Condition, Proof, ProofState
from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.diagnostics import Diagnostic, Severity
from ir_scatter.core.fragment import Fragment, NewConstant
from ir_scatter.core.model import Model, Node, Value
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.shapes import UNKNOWN_DIM, Shape, agree, claims_more, element_count, lowest, narrow, show
from ir_scatter.ops.lookup import find
from ir_scatter.ops.spec import IndexRange, Layout, OpSpec, Reduction, Role
from ir_scatter.rewrites import leads_to, route
from ir_scatter.rewrites.base import BY_SIGNATURE, Promises, Rewrite, View, fragment_like
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.existing_guards import is_needed
from ir_scatter.rewrites.forms import NodeForm
from ir_scatter.rewrites.guard import Guard, guard_of, is_counted_after, refuse_illegal, rewrite_of
from ir_scatter.rewrites.refusals import Reason, Refusal
from ir_scatter.rules import all_rules
from ir_scatter.rules.index_values import (
    index_out_of_range,
    more_indices_than_positions,
    negative_index,
    repeated_targets,
)
from ir_scatter.validate import Check

KEPT_NEGATIVE = "negative-indices-kept"
"""The assumption, in reports, that runtimes accept negative indices, as the user promised."""

ON_STORED = "rests-on-stored-shape"
"""The assumption, in reports, that shapes stored in the file are correct, as new sizes depend on them."""

FIXED_BY_GUARD = frozenset({index_out_of_range.code, negative_index.code})
"""The rules that constant indices satisfy after a guard was added."""

UNCHANGED = frozenset({more_indices_than_positions.code})
"""Rules that every form of a node breaks if the node does: each form loses the same updates.

The original node may break another rule instead: a version that forbids longer indices breaks SCT211.
"""

_LIMITING = frozenset({Guard.CLAMP, Guard.DROP})
"""The guards after which no index is negative. A guard consists of nodes that make indices legal."""

_ONE_SIZE = 3
"""Number of nodes that compute one size at run time: ShapeOf, Gather of the dimension, Convert."""

_Known: TypeAlias = "dict[Proof | None, Rewritten | Refusal | None]"
"""Results for the nodes of a group, by their proof of condition `EQUAL`; None if no rewrite needed that.

All other conditions have the same answer within a group whose indices have no faults or are equal.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Rewritten:
    """A rewritten node; nodes of a group share a fragment.

    Attributes:
        fragment: the new nodes.
        way: the rewrites that were applied, in order.
        assumptions: the promises that the new nodes depend on.
        is_bound: whether they contain values of constant indices, so that they are wrong for other indices.
        seen: the node with only those facts that the new nodes depend on, if the file stores more.
    """

    fragment: Fragment
    way: tuple[Rewrite, ...]
    assumptions: tuple[str, ...]
    is_bound: bool = False
    seen: ScatterNode | None = None


class Rewriter:
    """Rewrites nodes of one model.

    Nodes with equal facts get the same result, as far as rules and rewrites declare these facts in `reads`.
    If a rule or a rewrite declares more than a group compares, each node is rewritten separately.
    """

    def __init__(self, model: Model, promises: Promises, given: Sequence[str] = ()) -> None:
        self.model = model
        self.promises = promises
        self.check = Check(model, [rule for rule in all_rules() if rule.is_legality], given=given)
        self._known: dict[Hashable, _Known] = defaultdict(dict)
        self._judged: dict[Condition, Proof] = {}
        self._numbers_of: set[Role] = set()
        self._depends_on_sizes: dict[Rewritten, bool] = {}
        self._settled: dict[Hashable, Rewritten | Refusal] = {}
        self.defects_of: dict[Rewritten, tuple[Sequence[str], Set[str]]] = {}
        """The known defects that affect a form for all inputs, and for some inputs; `around` fills it."""

    @cached_property
    def proven(self) -> Facts:
        """Facts inferred from inputs, constants and attributes only, not from stored shapes."""
        facts = self.check.facts
        return Facts(facts.max_elements, self.model, trusts_stored=False, given=facts.given)

    def scatter(self, node: Node) -> ScatterNode | None:
        """Return the view of a scatter node by roles; None for any other node."""
        lookup = find(node.domain, node.type, node.opset)
        return None if lookup is None else ScatterNode(node, lookup, self.check.facts)

    def news(self, rewritten: "Rewritten") -> list[ScatterNode]:
        """Return the new scatter nodes, with facts as if they were read from the written file."""
        nodes = rewritten.fragment.connected()
        for node in nodes:
            self.check.facts.forget(node.handle.output)
        return [new for new in map(self.scatter, nodes) if new is not None]

    def rewrite(
        self,
        scatters: Sequence[ScatterNode],
        target: OpSpec | None,
        opset: int | None,
        guard: Guard | None = None,
        *,
        is_anew: bool = False,
        form: NodeForm | None = None,
    ) -> "Rewritten | Refusal | None":
        """Rewrite a node as a target operator version; return None if it needs no change.

        Args:
            scatters: the node, once for each signature of its function; facts that differ count as unknown.
            target: the operator version to reach; None keeps the operator.
            opset: the opset of the new nodes in ONNX.
            guard: the guard for its indices, applied before the rewrite.
            is_anew: whether to rewrite a node even if it already has the target form.
            form: another form of the node's own operator version, to be applied first.
        """
        self._judged.clear()
        self._numbers_of.clear()
        scatter, way = scatters[0], _rewrites_to(scatters[0], target, opset) or ()
        is_grouped = not self.check.of_each and all(rewrite.reads <= BY_SIGNATURE for rewrite in way)
        group = self.check.groups.representative(scatter) if len(scatters) == 1 and is_grouped else None
        outcomes: _Known = {}
        if group is not None and scatter.computed_outside is None:
            faults = scatter.index_array if scatter.has_faults(group.limits) else None
            numbers = None if faults is None else (faults.dtype.str, faults.tobytes())
            request = target and target.key, guard, is_anew, form and form.name
            outcomes = self._known[group, request, opset, numbers]
        proof: Proof | None = None
        if outcomes and None not in outcomes:
            first = self.scatter(as_fragment(scatter).nodes[0])
            assert first is not None
            proof = self._view(first).proof(Condition.EQUAL)
        if proof in outcomes:
            outcome = outcomes[proof]
        else:
            outcome = self._rewrite_ungrouped(scatters, target, opset, guard, is_anew, form)
            proof = self._judged.get(Condition.EQUAL)
            if not self._numbers_of and (proof is None or len(way) == 1):
                outcomes[proof] = outcome
        return self._with_sizes(scatter, outcome, opset) if isinstance(outcome, Rewritten) else outcome

    def _rewrite_ungrouped(
        self,
        scatters: Sequence[ScatterNode],
        target: OpSpec | None,
        opset: int | None,
        guard: Guard | None,
        is_anew: bool,
        form: NodeForm | None,
    ) -> "Rewritten | Refusal | None":
        """Rewrite a node without the cache of its group, after checking it against the rules."""
        diagnostics: list[Diagnostic] = []
        for scatter in scatters:
            if scatter.lookup.spec is None:
                opset_name = scatter.node.opset
                where = opset_name if isinstance(opset_name, str) else f"opset {opset_name}"
                return Refusal(Reason.BREAKS_RULES, f"{scatter.lookup.type} is not in {where}")
            for number, (port, input) in enumerate(
                zip(scatter.spec.ports, scatter.node.inputs, strict=False)
            ):
                if input.is_present and input.value is None:  # the file is faulty, not the node
                    message = f"input {number}, {port.name}, is connected to a value that does not exist"
                    return Refusal(Reason.BREAKS_RULES, message)
            diagnostics += self.check.node(scatter, scatter.node.graph)
            illegal = refuse_illegal(scatter, guard) if guard is not None else None
            if illegal is not None:
                return illegal
        mended = FIXED_BY_GUARD if guard else ()
        for diagnostic in diagnostics:
            if diagnostic.severity is Severity.ERROR and diagnostic.code not in mended:
                return Refusal(Reason.BREAKS_RULES, f"breaks {diagnostic.code}: {diagnostic.message}")
        # a guard says itself that nothing is in range of a dimension of size 0
        for problem in filter(None, map(_contradiction, scatters)) if guard is None else ():
            return Refusal(Reason.BREAKS_RULES, problem)
        scatter = scatters[0]
        way = _rewrites_to(scatter, target, opset)
        if way is None and target is not None:
            return Refusal(Reason.NO_ROUTE, f"no rewrite leads from {scatter.spec.key} to {target.key}")
        if way and not is_anew and way[0].is_done(self._view(scatter), way[0].target):
            way = ()
        if form is not None:
            way = (*form.rewrites, *(way or ()))
        if guard is not None:
            way = (rewrite_of(guard, scatter.spec.key), *(way or ()))
            diagnostics = [diagnostic for diagnostic in diagnostics if diagnostic.code not in mended]
        if not way:
            return None
        rewritten = self.along(scatter, way, opset, diagnostics)
        if guard is None or len(way) == 1 or isinstance(rewritten, Refusal):
            return rewritten
        if not any(is_needed(new, guard) for new in self.news(rewritten)):
            return rewritten
        # A guard that precedes sizes computed at run time cannot be recognised later, so put it last if
        # possible.
        plain = self.along(scatter, way[1:], opset, diagnostics, will_be_guarded=guard is not Guard.WRAP)
        counts = None if isinstance(plain, Refusal) else is_counted_after(scatter, plain.fragment)
        if counts is not None:
            last = rewrite_of(guard, way[-1].target.key, counts)
            guarded_last = self.along(
                scatter, (*way[1:], last), opset, diagnostics, will_be_guarded=guard is not Guard.WRAP
            )
            if isinstance(guarded_last, Rewritten) and not any(
                is_needed(new, guard) for new in self.news(guarded_last)
            ):
                return guarded_last
        return rewritten  # legal indices stay legal, even if a later run cannot recognise that

    def _with_sizes(self, scatter: ScatterNode, stored: Rewritten, opset: int | None) -> Rewritten | Refusal:
        """Replace sizes that come only from stored shapes by sizes computed at run time.

        If that is costly, and the stored sizes may be correct, they are kept and become an assumption.
        """

        def without(value: Value) -> Shape:
            shape = scatter.facts.shape(value)
            return shape if shape is None or value.constant else (UNKNOWN_DIM,) * len(shape)

        def proven(value: Value) -> Shape:
            inferred = self.proven.shape(value)
            return without(value) if inferred is None else inferred

        def form(shape_of: Callable[[Value], Shape]) -> Rewritten | Refusal:
            node = as_fragment(scatter, self.proven, shape_of).nodes[0]
            proven_scatter = ScatterNode(node, scatter.lookup, self.proven)
            self._numbers_of.clear()
            rewritten = self.along(
                proven_scatter, stored.way, opset, [*self.check.node(scatter, scatter.node.graph)]
            )
            return rewritten if isinstance(rewritten, Refusal) else replace(rewritten, seen=proven_scatter)

        if stored not in self._depends_on_sizes:
            self._depends_on_sizes[stored] = not _have_equal_nodes(form(without), stored)
        if not self._depends_on_sizes[stored]:
            return stored
        values = [port.value for port in scatter.node.inputs if port.value]
        indices = scatter.operand(Role.INDICES)
        is_constant = indices is None or self.proven.array(indices.value) is not None
        is_proven = is_constant or not scatter.has_constant_indices
        if is_proven and not any(claims_more(scatter.facts.shape(value), proven(value)) for value in values):
            return stored
        is_vague = any(map(self.proven.is_vague, values))
        key = stored, is_constant, is_vague, tuple(map(proven, values))
        if key not in self._settled:
            settled = form(proven)
            if _have_equal_nodes(settled, stored):
                settled = stored
            elif is_vague and (
                isinstance(settled, Refusal)
                or len(settled.fragment.news) > len(stored.fragment.news) + _ONE_SIZE
            ):
                settled = replace(stored, assumptions=tuple(sorted((*stored.assumptions, ON_STORED))))
            self._settled[key] = settled
        return self._settled[key]

    def _view(self, scatter: ScatterNode) -> View:
        return View(scatter, self.promises, judged=self._judged, numbers_of=self._numbers_of)

    def along(
        self,
        scatter: ScatterNode,
        way: tuple[Rewrite, ...],
        opset: int | None,
        diagnostics: Sequence[Diagnostic] = (),
        *,
        will_be_guarded: bool = False,
    ) -> Rewritten | Refusal:
        """Apply rewrites to a node, one after the other.

        New nodes may break no rule that the original node does not break; `diagnostics` are those of the
        original. After a guard that limits indices, rewrites need not handle negative ones. The same holds
        before a guard if the node `will_be_guarded` and its version forbids negative indices.
        """
        fragment, assumptions = as_fragment(scatter), set[str]()
        for port in fragment.nodes[0].inputs:  # do not analyse the nodes upstream again
            if port.value is not None:
                self.check.facts.trust(port.value)
        is_limited = will_be_guarded and scatter.spec.index_range is IndexRange.NON_NEGATIVE
        for rewrite in way:
            for node in reversed(fragment.nodes):
                lookup = find(node.domain, node.type, node.opset)
                if lookup is None or lookup.spec is not rewrite.source:
                    continue
                view = self._view(ScatterNode(node, lookup, scatter.facts))
                if is_limited and guard_of(rewrite) is None:
                    view = replace(view, promises=_with_non_negative(self.promises))
                replacement = _apply(rewrite, view, opset)
                if isinstance(replacement, Refusal):
                    return replacement
                fragment = fragment.substituted(node, replacement)
                promised = {Condition.NON_NEGATIVE} - self.promises.conditions if is_limited else set()
                assumptions.update(view.relied_on - promised)
            is_limited = is_limited or guard_of(rewrite) in _LIMITING
        expected_codes = {diagnostic.code for diagnostic in diagnostics} | UNCHANGED
        if scatter.reduction is Reduction.NONE and scatter.repeats is not None:
            expected_codes.add(
                repeated_targets.code
            )  # the updates may be equal, which some forms hide from the rule
        if self.promises.keeps_negative:
            expected_codes.add(negative_index.code)
            is_strict = any(rewrite.target.index_range is IndexRange.NON_NEGATIVE for rewrite in way)
            if is_strict and self._view(scatter).may_be_negative:
                assumptions.add(KEPT_NEGATIVE)
        for new in filter(None, map(self.scatter, fragment.nodes)):
            for diagnostic in self.check.node(new, fragment):
                if diagnostic.severity is not Severity.NOTE and diagnostic.code not in expected_codes:
                    message = f"the new node would break {diagnostic.code}: {diagnostic.message}"
                    return Refusal(Reason.TARGET_BREAKS_RULES, message)
        return Rewritten(fragment, way, tuple(sorted(assumptions)), bool(self._numbers_of))


def _with_non_negative(promises: Promises) -> Promises:
    """Return the promises with "non-negative indices" added, which a guard ensures."""
    return replace(promises, conditions=promises.conditions | {Condition.NON_NEGATIVE})


def _rewrites_to(
    scatter: ScatterNode, target: OpSpec | None, opset: int | None
) -> tuple[Rewrite, ...] | None:
    """Return the rewrites to apply, () if the node needs none; None if no route leads to the target."""
    spec = scatter.lookup.spec
    if spec is None or target is None or (spec.key == target.key and not leads_to(target.key, target.key)):
        return ()
    return route(spec.key, target.key, opset)


def _contradiction(scatter: ScatterNode) -> str:
    """Return the reason why no data fits the other inputs; "" if some data may fit.

    Rules compare inputs with data. If the rank of data is dynamic, the shapes of the other inputs alone may
    prove that the node cannot run; then there is nothing to rewrite.
    """
    data, source, axis = scatter.data, scatter.spec.axis, scatter.written_axis
    updates = scatter.updates
    whole, written = (None if operand is None else operand.shape for operand in (data, updates))
    if element_count(whole) == 0 and written is not None and all(map(lowest, written)):
        return f"updates is {show(written)}, and data is {show(whole)}: nothing can be written"
    same = {Layout.ELEMENTS: (scatter.indices, scatter.updates), Layout.SEQUENCE: (scatter.updates,)}
    for operand in same.get(
        scatter.spec.layout, ()
    ):  # the first operand with a known rank, which is that of data
        if data is None or operand is None or operand.shape is None:
            continue
        rank = len(operand.shape)
        subject = f"{operand.port.name} is {show(operand.shape)} of rank {rank}"
        if rank < data.port.min_rank:
            return f"{subject}, expected rank {data.port.min_rank} at least, like {data.port.name}"
        if data.shape is not None and rank != len(data.shape):
            return f"{subject}, expected rank {len(data.shape)} like {data.port.name}"
        if axis is None or source is None or (-rank <= axis < rank and axis % rank not in source.excluded):
            return ""
        return f"{subject}, and axis {axis} is not an axis of {data.port.name}"
    return ""


def _have_equal_nodes(first: Rewritten | Refusal, second: Rewritten) -> bool:
    """Return whether two results have the same new nodes and assumptions."""
    if isinstance(first, Refusal) or first.assumptions != second.assumptions:
        return False
    return _nodes_key(first.fragment) == _nodes_key(second.fragment)


def _nodes_key(fragment: Fragment) -> list[Hashable]:
    """Return a key of the new nodes, without their names and the facts about their values."""
    places = {id(new.output): place for place, new in enumerate(fragment.news)}

    def source(value: Value | None) -> Hashable:
        if value is None or id(value) in places:
            return value and ("node", places[id(value)])
        held, number = value.constant, fragment.number_given(value)
        if number is not None or not isinstance(held, NewConstant):
            return number
        return held.array.dtype.str, held.array.shape, held.array.tobytes()

    return [
        (new.type, new.opset, repr([*new.attributes.items()]), *map(source, new.inputs))
        for new in fragment.news
    ]


def _apply(rewrite: Rewrite, view: View, opset: int | None) -> Fragment | Refusal:
    spec, scatter, carries = rewrite.source, view.scatter, rewrite.carries
    for name in () if carries is None else scatter.node.attributes:
        row = spec.attribute(name)
        if row is None:
            message = f"{name} is not an attribute of {spec.key}, and its meaning is unknown"
            return Refusal(Reason.ATTRIBUTE_LOST, message)
        if carries is not None and name not in carries and scatter.attribute(name) != row.default:
            return Refusal(Reason.ATTRIBUTE_LOST, f"{name} is {scatter.attribute(name)}, which is lost")
    for condition in rewrite.requires(view, rewrite.target):
        if view.holds(condition):
            continue
        proof, words = view.proof(condition), condition.replace("-", " ")
        if proof.verdict is ProofState.VIOLATED:
            return Refusal(Reason.CONDITION_VIOLATED, f"{proof.reason}, expected {words}")
        message = f"{words} are not proven; {Parameter('assume', str(condition))} asserts them"
        return Refusal(Reason.CONDITION_UNKNOWN, message)
    build = Builder([port.value for port in scatter.node.inputs], scatter.node.domain, opset)
    result = rewrite.build(view, build, rewrite.target)
    return result if isinstance(result, Refusal) else build.fragment(result)


def as_fragment(
    scatter: ScatterNode, facts: Facts | None = None, shape_of: Callable[[Value], Shape] | None = None
) -> Fragment:
    """Return the unchanged node as a fragment whose inputs have the best known types and shapes.

    For ScatterElements, the shapes of indices and updates complete each other. Pass other `facts` and
    `shape_of` to depend on fewer shapes.
    """
    facts, shape_of = facts or scatter.facts, shape_of or scatter.facts.shape
    operands = {role: scatter.operand(role) for role in (Role.DATA, Role.INDICES, Role.UPDATES)}
    inferred = {role: shape_of(operand.value) for role, operand in operands.items() if operand is not None}
    if scatter.spec.layout is Layout.ELEMENTS:
        indices, updates = inferred.get(Role.INDICES), inferred.get(Role.UPDATES)
        if agree(indices, updates):
            inferred[Role.INDICES] = inferred[Role.UPDATES] = narrow(indices, updates)
        ranks = [len(shape) for shape in inferred.values() if shape is not None]
        if ranks:
            unknown = (UNKNOWN_DIM,) * ranks[0]
            inferred = {role: unknown if dims is None else dims for role, dims in inferred.items()}
    shapes = {operand.index: inferred[role] for role, operand in operands.items() if operand is not None}

    def with_facts(number: int, value: Value) -> Value:
        narrowed = Value(
            value.name,
            scatter.facts.element_type(value) or scatter.node.inputs[number].stored_type,
            shapes.get(number, shape_of(value)),
            partial(getattr, value, "producer"),
            value.output,
            value.constant,
            producer_type=value.producer_type,
            is_input=value.is_input,
        )
        facts.trust(narrowed)
        return narrowed

    return fragment_like(scatter, with_facts, inferred.get(Role.DATA))
