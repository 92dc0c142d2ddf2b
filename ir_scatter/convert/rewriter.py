"""One node along a route: its fragment, or why there is none."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from ir_scatter.analysis.conditions import Condition, Proof, Verdict
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.diagnostics import Diagnostic, Severity
from ir_scatter.core.fragment import Fragment, NewNode
from ir_scatter.core.model import Model, Node, Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Shape, agree, narrow, show
from ir_scatter.ops.lookup import find
from ir_scatter.ops.spec import Layout, OpSpec, Role
from ir_scatter.rewrites import leads_to, route
from ir_scatter.rewrites.base import BY_SIGNATURE, Promises, Rewrite, View
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.pieces import is_strict
from ir_scatter.rewrites.refusals import Reason, Refusal
from ir_scatter.rules import all_rules
from ir_scatter.rules.negative_index import negative_index
from ir_scatter.validate import Check

KEPT_NEGATIVE = "negative-indices-kept"
"""How the report records that negative indices were vouched for."""

_Known: TypeAlias = "dict[Proof | None, Rewritten | Refusal | None]"
"""What became of nodes of one group, by what is proven of `EQUAL`, None if nobody asked.

All other conditions they meet alike, if their indices have no faults or are the same.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Rewritten:
    """One node, rewritten; nodes that look the same share a fragment.

    If it `is_bound`, it is made of the numbers of constant indices, and right for no others.
    """

    fragment: Fragment
    way: tuple[Rewrite, ...]
    assumptions: tuple[str, ...]
    is_bound: bool = False


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

    def scatter(self, node: Node) -> ScatterNode | None:
        """Return a scatter node seen by role; None for any other node."""
        lookup = find(node.domain, node.type, node.opset)
        return None if lookup is None else ScatterNode(node, lookup, self.check.facts)

    def rewrite(
        self, scatters: Sequence[ScatterNode], target: OpSpec, opset: int | None
    ) -> "Rewritten | Refusal | None":
        """Rewrite one node into what is wanted in an opset; None if it is what it should be.

        There is a scatter for each signature of the function that the node is in. What they do not share is
        taken as unknown.
        """
        self._judged.clear()
        self._numbers_of.clear()
        scatter, way = scatters[0], _way(scatters[0], target, opset) or ()
        is_grouped = not self.check.of_each and all(rewrite.reads <= BY_SIGNATURE for rewrite in way)
        group = self.check.groups.representative(scatter) if len(scatters) == 1 and is_grouped else None
        if group is None:
            return self._closely(scatters, target, opset)
        faults = scatter.index_array if scatter.has_faults(group.limits) else None
        numbers = None if faults is None else (faults.dtype.str, faults.tobytes())
        known = self._known[group, target.key, opset, numbers]
        proof = None
        if known and None not in known:
            first = self.scatter(as_fragment(scatter).nodes[0])
            assert first is not None
            proof = self._view(first).proof(Condition.EQUAL)
        if proof in known:
            return known[proof]
        outcome, proof = self._closely(scatters, target, opset), self._judged.get(Condition.EQUAL)
        if not self._numbers_of and (proof is None or len(way) == 1):
            known[proof] = outcome
        return outcome

    def _closely(
        self, scatters: Sequence[ScatterNode], target: OpSpec, opset: int | None
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
        for diagnostic in found:
            if diagnostic.severity is Severity.ERROR:
                return Refusal(Reason.BREAKS_RULES, f"breaks {diagnostic.code}: {diagnostic.message}")
        for problem in filter(None, map(_contradiction, scatters)):
            return Refusal(Reason.BREAKS_RULES, problem)
        scatter = scatters[0]
        way = _way(scatter, target, opset)
        if way is None:
            return Refusal(Reason.NO_ROUTE, f"no rewrite leads from {scatter.spec.key} to {target.key}")
        if not way or way[0].is_done(self._view(scatter), way[0].target):
            return None
        return self.along(scatter, way, opset, found)

    def _view(self, scatter: ScatterNode) -> View:
        return View(scatter, self.promises, judged=self._judged, numbers_of=self._numbers_of)

    def along(
        self,
        scatter: ScatterNode,
        way: tuple[Rewrite, ...],
        opset: int | None,
        found: Sequence[Diagnostic] = (),
    ) -> Rewritten | Refusal:
        """Rewrite a node by these rewrites, one after the other.

        New nodes may not break a rule that the node as it is does not break; `found` is what rules have
        against that.
        """
        fragment, assumptions = as_fragment(scatter), set[str]()
        for rewrite in way:
            for node in fragment.nodes:
                lookup = find(node.domain, node.type, node.opset)
                if lookup is None or lookup.spec is not rewrite.source:
                    continue
                view = self._view(ScatterNode(node, lookup, self.check.facts))
                other = _apply(rewrite, view, opset)
                if isinstance(other, Refusal):
                    return other
                fragment = fragment.substituted(node, other)
                assumptions.update(view.relied_on)
        known = {diagnostic.code for diagnostic in found}
        if self.promises.keeps_negative:
            known.add(negative_index.code)
            if any(is_strict(rewrite.target) for rewrite in way) and self._view(scatter).may_be_negative:
                assumptions.add(KEPT_NEGATIVE)
        for new in filter(None, map(self.scatter, fragment.nodes)):
            for diagnostic in self.check.node(new, fragment):
                if diagnostic.severity is not Severity.NOTE and diagnostic.code not in known:
                    message = f"the new node would break {diagnostic.code}: {diagnostic.message}"
                    return Refusal(Reason.TARGET_BREAKS_RULES, message)
        return Rewritten(fragment, way, tuple(sorted(assumptions)), bool(self._numbers_of))


def _way(scatter: ScatterNode, target: OpSpec, opset: int | None) -> tuple[Rewrite, ...] | None:
    """Return the rewrites to be applied, () if the node is what it should be; None if none lead there."""
    spec = scatter.lookup.spec
    if spec is None or (spec.key == target.key and not leads_to(target.key, target.key)):
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


def _apply(rewrite: Rewrite, view: View, opset: int | None) -> Fragment | Refusal:
    spec, scatter = rewrite.source, view.scatter
    for name in scatter.node.attributes:
        row = spec.attribute(name)
        if row is None:
            message = f"{name} is no attribute of {spec.key}, so that it is not known what it means"
            return Refusal(Reason.ATTRIBUTE_LOST, message)
        if name not in rewrite.carries and scatter.attribute(name) != row.default:
            return Refusal(Reason.ATTRIBUTE_LOST, f"{name} is {scatter.attribute(name)}, which is lost")
    for condition in rewrite.requires(view, rewrite.target):
        if view.holds(condition):
            continue
        proof, what = view.proof(condition), condition.replace("-", " ")
        if proof.verdict is Verdict.VIOLATED:
            return Refusal(Reason.CONDITION_VIOLATED, f"{proof.reason}, expected {what}")
        message = f"{what} are not known; --assume {condition} promises them"
        return Refusal(Reason.CONDITION_UNKNOWN, message)
    build = Builder([port.value for port in scatter.node.inputs], scatter.node.domain, opset)
    result = rewrite.build(view, build, rewrite.target)
    return result if isinstance(result, Refusal) else build.fragment(result)


def as_fragment(scatter: ScatterNode) -> Fragment:
    """Return the node itself as a fragment, its inputs with the best that is known of them.

    The shapes of elements tell of each other.
    """
    operands = {role: scatter.operand(role) for role in (Role.DATA, Role.INDICES, Role.UPDATES)}
    found = {role: one.shape for role, one in operands.items() if one is not None}
    if scatter.spec.layout is Layout.ELEMENTS:
        indices, updates = found.get(Role.INDICES), found.get(Role.UPDATES)
        if agree(indices, updates):
            found[Role.INDICES] = found[Role.UPDATES] = narrow(indices, updates)
        ranks = [len(shape) for shape in found.values() if shape is not None]
        if ranks:
            unknown = (UNKNOWN_DIM,) * ranks[0]
            found = {role: unknown if dims is None else dims for role, dims in found.items()}
    shapes = {one.index: found[role] for role, one in operands.items() if one is not None}
    given, known = list[Value | None](), dict[int, Value]()
    for number, port in enumerate(scatter.node.inputs):
        value = port.value
        if value is not None and id(value) not in known:
            known[id(value)] = Value(
                value.name,
                value.element_type or port.stored_type,
                shapes.get(number, scatter.facts.shape(value)),
                partial(getattr, value, "producer"),
                value.output,
                value.constant,
                producer_type=value.producer_type,
                is_input=value.is_input,
            )
            scatter.facts.trust(known[id(value)])
        given.append(None if value is None else known[id(value)])
    return fragment_of(scatter, given, scatter.data_shape)


def fragment_of(scatter: ScatterNode, given: Sequence[Value | None], shape: Shape) -> Fragment:
    """Return a node like this one as a fragment, with these inputs and this shape of its output."""
    node, data = scatter.node, scatter.data
    output = Value("output", data.element_type if data else None, shape)
    assert node.opset is not None
    new = NewNode("scatter", node.domain, node.type, node.opset, tuple(given), node.attributes, output)
    return Fragment(given, [new])
