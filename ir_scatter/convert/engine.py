"""One node along a route: its fragment, or why there is none."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from ir_scatter.convert.contradictions import contradiction
from ir_scatter.convert.start import start
from ir_scatter.diagnostics import Diagnostic, Severity
from ir_scatter.fragment import Fragment
from ir_scatter.model import Model, Node
from ir_scatter.ops import find
from ir_scatter.ops.spec import OpSpec
from ir_scatter.plain_forms import PlainForms
from ir_scatter.rewrites import leads_to, route
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.conditions import Condition, Verdict
from ir_scatter.rewrites.refusals import Reason, Refusal
from ir_scatter.rewrites.rewrite import Rewrite
from ir_scatter.rewrites.view import View
from ir_scatter.rules import all_rules, negative_index
from ir_scatter.site import Site
from ir_scatter.validate import Check

DEMANDS = ("SCT1", "SCT2", "SCT3")
"""What a node that breaks them has no documented result for."""

KEPT_NEGATIVE = "negative-indices-kept"
"""How the report records that negative indices were vouched for."""

_SETTLED_BY_FORM = {Condition.NON_NEGATIVE, Condition.UNIQUE}
"""Conditions that all plain indices of one form meet, or none."""


@dataclass(frozen=True, slots=True)
class Promises:
    """What the user vouches for.

    Attributes:
        conditions: those named with `--assume`.
        keeps_negative: whether negative indices may reach a target that forbids them.
    """

    conditions: frozenset[Condition] = frozenset()
    keeps_negative: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Rewritten:
    """One node, rewritten.

    Attributes:
        fragment: what replaces it; nodes that look the same share one.
        way: the rewrites, in order.
        names: theirs.
        assumptions: the promises that it stands on.
        is_bound: whether it is made of the numbers of constant indices, and right for no others.
    """

    fragment: Fragment
    way: tuple[Rewrite, ...]
    names: tuple[str, ...]
    assumptions: tuple[str, ...]
    is_bound: bool = False


class Engine:
    """Rewrites nodes of one model; what it finds for one node it finds for all that look the same."""

    def __init__(self, model: Model, promises: Promises) -> None:
        self.model = model
        self.promises = promises
        self.check = Check(model, [rule for rule in all_rules() if rule.code.startswith(DEMANDS)])
        self._known: dict[Hashable, Rewritten | Refusal] = {}
        self._plain = PlainForms()
        self._of_form: dict[Hashable, Rewritten | Refusal | None] = {}
        self._judged: set[Condition] = set()

    def site(self, node: Node) -> Site | None:
        """Return a scatter node seen by role; None for any other node."""
        lookup = find(node.domain, node.type, node.opset)
        return None if lookup is None else Site(node, lookup, self.check.facts)

    def rewrite(
        self, sites: Sequence[Site], target: OpSpec, opset: int | None
    ) -> "Rewritten | Refusal | None":
        """Rewrite one node; None if it is what it should be.

        Args:
            sites: the node, once for each signature of the function that it is in. What they do
                not share is taken as unknown.
            target: the row that is wanted.
            opset: that of the ONNX model that is written.
        """
        form = self._plain.find(sites[0]) if len(sites) == 1 else None
        if form is None:
            return self._closely(sites, target, opset)
        key = form, target.key, opset
        if key in self._of_form:
            return self._of_form[key]
        self._judged.clear()
        outcome = self._closely(sites, target, opset)
        if self._judged <= _SETTLED_BY_FORM:
            self._of_form[key] = outcome
        return outcome

    def _closely(
        self, sites: Sequence[Site], target: OpSpec, opset: int | None
    ) -> "Rewritten | Refusal | None":
        """Rewrite one node, whose values are made and held against the rules."""
        found: list[Diagnostic] = []
        for site in sites:
            if site.lookup.spec is None:
                return Refusal(Reason.BREAKS_RULES, f"{site.lookup.type} is not in {_opset(site.node)}")
            open_input = _open_input(site)
            if open_input:
                return Refusal(Reason.BREAKS_RULES, open_input)
            found += self.check.node(site, site.node.graph)
        for diagnostic in found:
            if diagnostic.severity is Severity.ERROR:
                return Refusal(Reason.BREAKS_RULES, f"breaks {diagnostic.code}: {diagnostic.message}")
        for problem in filter(None, map(contradiction, sites)):
            return Refusal(Reason.BREAKS_RULES, problem)
        site = sites[0]
        if site.spec.key == target.key and not leads_to(target.key, target.key):
            return None
        way = route(site.spec.key, target.key, opset)
        if way is None:
            return Refusal(Reason.NO_ROUTE, f"no rewrite leads from {site.spec.key} to {target.key}")
        if way[0].is_done(self._view(site), way[0].target):
            return None
        key = self._key(site, way)
        if key is None:
            return self.along(site, way, opset, found)
        known = self._known.get(key)
        if known is None:
            known = self.along(site, way, opset, found)
            if not (isinstance(known, Rewritten) and known.is_bound):
                self._known[key] = known
        return known

    def _view(self, site: Site) -> View:
        return View(site, self.promises.conditions, self.promises.keeps_negative, judged=self._judged)

    def _key(self, site: Site, way: tuple[Rewrite, ...]) -> Hashable | None:
        """Return what decides the fragment; None where more than one step looks at the numbers."""
        is_axis_hidden = site.axis is None and site.written_axis is not None
        if len(way) > 1 or is_axis_hidden:
            return None
        view, values = self._view(site), [port.value for port in site.node.inputs]
        wanted = (Condition.NON_NEGATIVE, *way[0].requires(view, way[0].target))
        if not view.keeps_initial:
            wanted += (Condition.UNIQUE,)  # each target is cleared once
        verdicts = tuple((condition, view.proof(condition)) for condition in wanted)
        same = tuple(next(n for n, other in enumerate(values) if other is value) for value in values)
        key = (way[0].name, way[0].target.key, verdicts, same, site.likeness())
        try:
            hash(key)
        except TypeError:  # an attribute that holds a list or a tensor
            return None
        return key

    def along(
        self, site: Site, way: tuple[Rewrite, ...], opset: int | None, found: Sequence[Diagnostic] = ()
    ) -> Rewritten | Refusal:
        """Rewrite a node by these rewrites.

        Args:
            site: the node.
            way: the rewrites, one after the other.
            opset: that of the ONNX model that is written.
            found: what rules have against the node as it is.
        """
        fragment, assumptions, is_bound = start(site), set[str](), False
        for rewrite in way:
            for node in fragment.nodes:
                lookup = find(node.domain, node.type, node.opset)
                if lookup is None or lookup.spec is not rewrite.source:
                    continue
                view = self._view(Site(node, lookup, self.check.facts))
                other = _apply(rewrite, view, opset)
                if isinstance(other, Refusal):
                    return other
                fragment = fragment.substituted(node, other)
                assumptions.update(view.relied_on)
                is_bound |= bool(view.numbers_of)
        if self.promises.keeps_negative and self._relies_on_sign(site, way):
            assumptions.add(KEPT_NEGATIVE)
        known = {diagnostic.code for diagnostic in found}
        broken = self._broken(
            fragment, known | {negative_index.RULE.code} if self.promises.keeps_negative else known
        )
        names = tuple([rewrite.name for rewrite in way])
        return broken or Rewritten(fragment, way, names, tuple(sorted(assumptions)), is_bound)

    def _relies_on_sign(self, site: Site, way: tuple[Rewrite, ...]) -> bool:
        from ir_scatter.rewrites.parts import is_strict

        return any(is_strict(rewrite.target) for rewrite in way) and self._view(site).may_be_negative

    def _broken(self, fragment: Fragment, known: set[str]) -> Refusal | None:
        """Refuse new nodes that break a rule which the old one does not break."""
        for node in fragment.nodes:
            site = self.site(node)
            if site is None:
                continue
            for diagnostic in self.check.node(site, fragment):
                if diagnostic.severity is not Severity.NOTE and diagnostic.code not in known:
                    message = f"the new node would break {diagnostic.code}: {diagnostic.message}"
                    return Refusal(Reason.TARGET_BREAKS_RULES, message)
        return None


def _open_input(site: Site) -> str:
    """Say which input comes from nothing that exists, "" if none does: the file is at fault, not the node."""
    for number, (port, given) in enumerate(zip(site.spec.ports, site.node.inputs, strict=False)):
        if given.is_present and given.value is None:
            return f"input {number}, {port.name}, comes from nothing that exists"
    return ""


def _opset(node: Node) -> str:
    """Return an opset as its dialect says it: "opset2", "opset 8"."""
    return node.opset if isinstance(node.opset, str) else f"opset {node.opset}"


def _apply(rewrite: Rewrite, view: View, opset: int | None) -> Fragment | Refusal:
    """Apply one rewrite to one node of a fragment."""
    lost = _lost_attribute(rewrite, view)
    if lost is not None:
        return lost
    for condition in rewrite.requires(view, rewrite.target):
        if view.holds(condition):
            continue
        proof = view.proof(condition)
        if proof.verdict is Verdict.VIOLATED:
            message = f"{proof.reason}, expected {condition.replace('-', ' ')}"
            return Refusal(Reason.CONDITION_VIOLATED, message)
        what = condition.replace("-", " ")
        message = f"{what} are not known; --assume {condition} promises them"
        return Refusal(Reason.CONDITION_UNKNOWN, message)
    given = [port.value for port in view.site.node.inputs]
    build = Builder(given, view.site.node.domain, opset)
    result = rewrite.build(view, build, rewrite.target)
    return result if isinstance(result, Refusal) else build.fragment(result)


def _lost_attribute(rewrite: Rewrite, view: View) -> Refusal | None:
    """Refuse an attribute that says something and that the rewrite does not take care of."""
    spec = rewrite.source
    for name in view.site.node.attributes:
        row = spec.attribute(name)
        if row is None:
            message = f"{name} is no attribute of {spec.key}, so that it is not known what it means"
            return Refusal(Reason.ATTRIBUTE_LOST, message)
        if name not in rewrite.carries and view.site.attribute(name) != row.default:
            return Refusal(Reason.ATTRIBUTE_LOST, f"{name} is {view.site.attribute(name)}, which is lost")
    return None
