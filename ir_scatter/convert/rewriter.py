"""One node along a route: its fragment, or why there is none."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeAlias

from ir_scatter.analysis.conditions import Condition, Proof, ProofState
from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.diagnostics import Diagnostic, Severity
from ir_scatter.core.fragment import Fragment, NewConstant
from ir_scatter.core.model import Model, Node, Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Shape, agree, claims_more, narrow, show
from ir_scatter.ops.lookup import find
from ir_scatter.ops.spec import IndexRange, Layout, OpSpec, Reduction, Role
from ir_scatter.rewrites import leads_to, route
from ir_scatter.rewrites.base import BY_SIGNATURE, Promises, Rewrite, View, fragment_like
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.guard import (
    Guard,
    guard_of,
    illegal_for_sure,
    is_counted_after,
    is_needed,
    rewrite_of,
)
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
"""How the report records that negative indices were vouched for."""

ON_STORED = "rests-on-stored-shape"
"""How the report says that the new form is right for sizes that nothing but the file remembers."""

MENDED = frozenset({index_out_of_range.code, negative_index.code})
"""The rules that a guard makes constant indices keep."""

UNCHANGED = frozenset({more_indices_than_positions.code})
"""The rules that no form of a node keeps, if it breaks them: how many updates are lost is the same in all.

Of the node as it is another rule may tell it: a version that forbids more indices breaks SCT211.
"""

_LIMITING = frozenset({Guard.CLAMP, Guard.DROP})
"""The guards after which no index is negative."""

_ONE_SIZE = 3
"""What a size at run time may cost: ShapeOf, the dimension taken from it, and its type."""

_Known: TypeAlias = "dict[Proof | None, Rewritten | Refusal | None]"
"""What became of nodes of one group, by what is proven of `EQUAL`, None if nobody asked.

All other conditions they meet alike, if their indices have no faults or are the same.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Rewritten:
    """One node, rewritten; nodes that look the same share a fragment.

    If it `is_bound`, it is made of the numbers of constant indices, and right for no others. `seen` is the
    node with all that the form is made for, where that is less than what the file stores.
    """

    fragment: Fragment
    way: tuple[Rewrite, ...]
    assumptions: tuple[str, ...]
    is_bound: bool = False
    seen: ScatterNode | None = None


class Rewriter:
    """Rewrites nodes of one model.

    What it finds for one node it finds for all others that are the same in what the rules and the
    rewrites declare to read; where one of them reads more, each node is handled for itself.
    """

    def __init__(self, model: Model, promises: Promises) -> None:
        self.model = model
        self.promises = promises
        self.check = Check(model, [rule for rule in all_rules() if rule.is_legality])
        self._known: dict[Hashable, _Known] = defaultdict(dict)
        self._judged: dict[Condition, Proof] = {}
        self._numbers_of: set[Role] = set()
        self._rests: dict[Rewritten, bool] = {}
        self._settled: dict[Hashable, Rewritten | Refusal] = {}

    @cached_property
    def proven(self) -> Facts:
        """What follows from inputs, constants and attributes, whatever the file stores."""
        return Facts(self.check.facts.max_elements, self.model, trusts_stored=False)

    def scatter(self, node: Node) -> ScatterNode | None:
        """Return a scatter node seen by role; None for any other node."""
        lookup = find(node.domain, node.type, node.opset)
        return None if lookup is None else ScatterNode(node, lookup, self.check.facts)

    def news(self, made: "Rewritten") -> list[ScatterNode]:
        """Return the new scatter nodes, of which all is known that a file with them tells."""
        nodes = made.fragment.connected()
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
        form: Rewrite | None = None,
    ) -> "Rewritten | Refusal | None":
        """Rewrite one node into what is wanted in an opset; None if it is what it should be.

        There is a scatter for each signature of the function that the node is in. What they do not share is
        taken as unknown. Its indices are guarded before, if that is wanted; without a target that is all.
        It may be wanted anew, in the form that rewrites give it, though it is what it should be; or get
        another form of its own row first.
        """
        self._judged.clear()
        self._numbers_of.clear()
        scatter, way = scatters[0], _way(scatters[0], target, opset) or ()
        is_grouped = not self.check.of_each and all(rewrite.reads <= BY_SIGNATURE for rewrite in way)
        group = self.check.groups.representative(scatter) if len(scatters) == 1 and is_grouped else None
        known: _Known = {}
        if group is not None and scatter.computed_outside is None:
            faults = scatter.index_array if scatter.has_faults(group.limits) else None
            numbers = None if faults is None else (faults.dtype.str, faults.tobytes())
            wanted = target and target.key, guard, is_anew, form and form.name
            known = self._known[group, wanted, opset, numbers]
        proof: Proof | None = None
        if known and None not in known:
            first = self.scatter(as_fragment(scatter).nodes[0])
            assert first is not None
            proof = self._view(first).proof(Condition.EQUAL)
        if proof in known:
            outcome = known[proof]
        else:
            outcome = self._closely(scatters, target, opset, guard, is_anew, form)
            proof = self._judged.get(Condition.EQUAL)
            if not self._numbers_of and (proof is None or len(way) == 1):
                known[proof] = outcome
        return self._with_sizes(scatter, outcome, opset) if isinstance(outcome, Rewritten) else outcome

    def _closely(
        self,
        scatters: Sequence[ScatterNode],
        target: OpSpec | None,
        opset: int | None,
        guard: Guard | None,
        is_anew: bool,
        form: Rewrite | None,
    ) -> "Rewritten | Refusal | None":
        """Rewrite one node, whose values are made and held against the rules."""
        found: list[Diagnostic] = []
        for scatter in scatters:
            if scatter.lookup.spec is None:
                own = scatter.node.opset
                where = own if isinstance(own, str) else f"opset {own}"
                return Refusal(Reason.BREAKS_RULES, f"{scatter.lookup.type} is not in {where}")
            for number, (port, given) in enumerate(
                zip(scatter.spec.ports, scatter.node.inputs, strict=False)
            ):
                if given.is_present and given.value is None:  # the file is at fault, not the node
                    message = f"input {number}, {port.name}, comes from nothing that exists"
                    return Refusal(Reason.BREAKS_RULES, message)
            found += self.check.node(scatter, scatter.node.graph)
            illegal = illegal_for_sure(scatter, guard) if guard is not None else None
            if illegal is not None:
                return illegal
        mended = MENDED if guard else ()
        for diagnostic in found:
            if diagnostic.severity is Severity.ERROR and diagnostic.code not in mended:
                return Refusal(Reason.BREAKS_RULES, f"breaks {diagnostic.code}: {diagnostic.message}")
        for problem in filter(None, map(_contradiction, scatters)):
            return Refusal(Reason.BREAKS_RULES, problem)
        scatter = scatters[0]
        way = _way(scatter, target, opset)
        if way is None and target is not None:
            return Refusal(Reason.NO_ROUTE, f"no rewrite leads from {scatter.spec.key} to {target.key}")
        if way and not is_anew and way[0].is_done(self._view(scatter), way[0].target):
            way = ()
        if form is not None:
            way = (form, *(way or ()))
        if guard is not None:
            way = (rewrite_of(guard, scatter.spec.key), *(way or ()))
            found = [one for one in found if one.code not in mended]
        if not way:
            return None
        made = self.along(scatter, way, opset, found)
        if guard is None or len(way) == 1 or isinstance(made, Refusal):
            return made
        if not any(is_needed(new, guard) for new in self.news(made)):
            return made
        # Sizes that only a run tells hide the guard from whoever reads the new form: it comes last if it can.
        plain = self.along(scatter, way[1:], opset, found, will_be_guarded=guard is not Guard.WRAP)
        counts = None if isinstance(plain, Refusal) else is_counted_after(scatter, plain.fragment)
        if counts is not None:
            last = rewrite_of(guard, way[-1].target.key, counts)
            other = self.along(
                scatter, (*way[1:], last), opset, found, will_be_guarded=guard is not Guard.WRAP
            )
            if isinstance(other, Rewritten) and not any(is_needed(new, guard) for new in self.news(other)):
                return other
        return self.along(scatter, (*way, rewrite_of(guard, way[-1].target.key)), opset, found)

    def _with_sizes(self, scatter: ScatterNode, stored: Rewritten, opset: int | None) -> Rewritten | Refusal:
        """Return the form with sizes taken at run time where a stored one is not proven.

        Where that costs much, and the stored one may yet be right, the form stays and the report says so.
        """

        def without(value: Value) -> Shape:
            shape = scatter.facts.shape(value)
            return shape if shape is None or value.constant else (UNKNOWN_DIM,) * len(shape)

        def proven(value: Value) -> Shape:
            found = self.proven.shape(value)
            return without(value) if found is None else found

        def form(shape_of: Callable[[Value], Shape]) -> Rewritten | Refusal:
            node = as_fragment(scatter, self.proven, shape_of).nodes[0]
            seen = ScatterNode(node, scatter.lookup, self.proven)
            self._numbers_of.clear()
            made = self.along(seen, stored.way, opset, [*self.check.node(scatter, scatter.node.graph)])
            return made if isinstance(made, Refusal) else replace(made, seen=seen)

        if stored not in self._rests:
            self._rests[stored] = not _are_alike(form(without), stored)
        if not self._rests[stored]:
            return stored
        values = [port.value for port in scatter.node.inputs if port.value]
        indices = scatter.operand(Role.INDICES)
        is_constant = indices is None or self.proven.array(indices.value) is not None
        is_proven = is_constant or not scatter.has_constant_indices
        if is_proven and not any(claims_more(scatter.facts.shape(one), proven(one)) for one in values):
            return stored
        is_vague = any(map(self.proven.is_vague, values))
        key = stored, is_constant, is_vague, tuple(map(proven, values))
        if key not in self._settled:
            made = form(proven)
            if _are_alike(made, stored):
                made = stored
            elif is_vague and (
                isinstance(made, Refusal) or len(made.fragment.news) > len(stored.fragment.news) + _ONE_SIZE
            ):
                made = replace(stored, assumptions=tuple(sorted((*stored.assumptions, ON_STORED))))
            self._settled[key] = made
        return self._settled[key]

    def _view(self, scatter: ScatterNode) -> View:
        return View(scatter, self.promises, judged=self._judged, numbers_of=self._numbers_of)

    def along(
        self,
        scatter: ScatterNode,
        way: tuple[Rewrite, ...],
        opset: int | None,
        found: Sequence[Diagnostic] = (),
        *,
        will_be_guarded: bool = False,
    ) -> Rewritten | Refusal:
        """Rewrite a node by these rewrites, one after the other.

        New nodes may not break a rule that the node as it is does not break; `found` is what rules have
        against that. After a guard that limits indices no rewrite counts them from the front again; nor does
        one before it, if the node `will_be_guarded` and its own version forbids negative indices.
        """
        fragment, assumptions = as_fragment(scatter), set[str]()
        for port in fragment.nodes[0].inputs:  # what stands in front of them is not looked at again
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
                other = _apply(rewrite, view, opset)
                if isinstance(other, Refusal):
                    return other
                fragment = fragment.substituted(node, other)
                promised = {Condition.NON_NEGATIVE} - self.promises.conditions if is_limited else set()
                assumptions.update(view.relied_on - promised)
            is_limited = is_limited or guard_of(rewrite) in _LIMITING
        known = {diagnostic.code for diagnostic in found} | UNCHANGED
        if scatter.reduction is Reduction.NONE and scatter.repeats is not None:
            known.add(repeated_targets.code)  # the updates may be equal, which not every form shows
        if self.promises.keeps_negative:
            known.add(negative_index.code)
            is_strict = any(rewrite.target.index_range is IndexRange.NON_NEGATIVE for rewrite in way)
            if is_strict and self._view(scatter).may_be_negative:
                assumptions.add(KEPT_NEGATIVE)
        for new in filter(None, map(self.scatter, fragment.nodes)):
            for diagnostic in self.check.node(new, fragment):
                if diagnostic.severity is not Severity.NOTE and diagnostic.code not in known:
                    message = f"the new node would break {diagnostic.code}: {diagnostic.message}"
                    return Refusal(Reason.TARGET_BREAKS_RULES, message)
        return Rewritten(fragment, way, tuple(sorted(assumptions)), bool(self._numbers_of))


def _with_non_negative(promises: Promises) -> Promises:
    """Return promises of a node whose indices a guard limits, before or after it is rewritten."""
    return replace(promises, conditions=promises.conditions | {Condition.NON_NEGATIVE})


def _way(scatter: ScatterNode, target: OpSpec | None, opset: int | None) -> tuple[Rewrite, ...] | None:
    """Return the rewrites to be applied, () if the node is what it should be; None if none lead there."""
    spec = scatter.lookup.spec
    if spec is None or target is None or (spec.key == target.key and not leads_to(target.key, target.key)):
        return ()
    return route(spec.key, target.key, opset)


def _contradiction(scatter: ScatterNode) -> str:
    """Say why no data fits the other inputs, "" if some does.

    A rule holds an input against data. Where the rank of data, or of indices, is only known when the model
    runs, the other inputs may still tell that no such model can run: there is nothing to rewrite then.
    """
    data, source, axis = scatter.data, scatter.spec.axis, scatter.written_axis
    same = {Layout.ELEMENTS: (scatter.indices, scatter.updates), Layout.SEQUENCE: (scatter.updates,)}
    for operand in same.get(scatter.spec.layout, ()):  # the first whose rank is known: it is that of data
        if data is None or operand is None or operand.shape is None:
            continue
        rank = len(operand.shape)
        told = f"{operand.port.name} is {show(operand.shape)} of rank {rank}"
        if rank < data.port.min_rank:
            return f"{told}, expected rank {data.port.min_rank} at least, like {data.port.name}"
        if data.shape is not None and rank != len(data.shape):
            return f"{told}, expected rank {len(data.shape)} like {data.port.name}"
        if axis is None or source is None or (-rank <= axis < rank and axis % rank not in source.excluded):
            return ""
        return f"{told}, so that axis {axis} is none of {data.port.name}"
    return ""


def _are_alike(made: Rewritten | Refusal, other: Rewritten) -> bool:
    """Tell whether two forms are made of the same nodes under the same conditions."""
    if isinstance(made, Refusal) or made.assumptions != other.assumptions:
        return False
    return _written(made.fragment) == _written(other.fragment)


def _written(fragment: Fragment) -> list[Hashable]:
    """Return what new nodes are, without names and without what is known of their values."""
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
            message = f"{name} is no attribute of {spec.key}, so that it is not known what it means"
            return Refusal(Reason.ATTRIBUTE_LOST, message)
        if carries is not None and name not in carries and scatter.attribute(name) != row.default:
            return Refusal(Reason.ATTRIBUTE_LOST, f"{name} is {scatter.attribute(name)}, which is lost")
    for condition in rewrite.requires(view, rewrite.target):
        if view.holds(condition):
            continue
        proof, what = view.proof(condition), condition.replace("-", " ")
        if proof.verdict is ProofState.VIOLATED:
            return Refusal(Reason.CONDITION_VIOLATED, f"{proof.reason}, expected {what}")
        message = f"{what} are not known; --assume {condition} promises them"
        return Refusal(Reason.CONDITION_UNKNOWN, message)
    build = Builder([port.value for port in scatter.node.inputs], scatter.node.domain, opset)
    result = rewrite.build(view, build, rewrite.target)
    return result if isinstance(result, Refusal) else build.fragment(result)


def as_fragment(
    scatter: ScatterNode, facts: Facts | None = None, shape_of: Callable[[Value], Shape] | None = None
) -> Fragment:
    """Return the node itself as a fragment, its inputs with the best that is known of them.

    The shapes of elements tell of each other. Other facts may have to trust in other shapes.
    """
    facts, shape_of = facts or scatter.facts, shape_of or scatter.facts.shape
    operands = {role: scatter.operand(role) for role in (Role.DATA, Role.INDICES, Role.UPDATES)}
    found = {role: shape_of(one.value) for role, one in operands.items() if one is not None}
    if scatter.spec.layout is Layout.ELEMENTS:
        indices, updates = found.get(Role.INDICES), found.get(Role.UPDATES)
        if agree(indices, updates):
            found[Role.INDICES] = found[Role.UPDATES] = narrow(indices, updates)
        ranks = [len(shape) for shape in found.values() if shape is not None]
        if ranks:
            unknown = (UNKNOWN_DIM,) * ranks[0]
            found = {role: unknown if dims is None else dims for role, dims in found.items()}
    shapes = {one.index: found[role] for role, one in operands.items() if one is not None}

    def known(number: int, value: Value) -> Value:
        made = Value(
            value.name,
            scatter.facts.element_type(value) or scatter.node.inputs[number].stored_type,
            shapes.get(number, shape_of(value)),
            partial(getattr, value, "producer"),
            value.output,
            value.constant,
            producer_type=value.producer_type,
            is_input=value.is_input,
        )
        facts.trust(made)
        return made

    return fragment_like(scatter, known, found.get(Role.DATA))
