"""Explains results by known defects of the runners, and states what a user can do next.

From the file alone, `validate` reports the defects of a runner that may affect a node. A result of a run then
confirms some of them:

    wrong at "scatter"             known defects of "scatter" that give wrong values
    wrong at output "y"            those of nodes upstream of "y" that were not compared as right
    refuses the model, crashes     those of any node with that symptom
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import NamedTuple

from ir_scatter import runners
from ir_scatter.compare.result import SAVED, Compared, Comparison, Guarded, Lead, Level, Relation
from ir_scatter.core.dataflow import Choice, Dataflow, Key
from ir_scatter.core.errors import Error
from ir_scatter.core.model import Model, Node
from ir_scatter.core.parameters import Invocation
from ir_scatter.core.words import counted, listed
from ir_scatter.defects import all_defects, by_code
from ir_scatter.defects.base import Result, Symptom
from ir_scatter.defects.evidence import Basis, Target
from ir_scatter.formats import dataflow_of
from ir_scatter.ops.general import find as find_general
from ir_scatter.ops.lookup import find, is_scatter
from ir_scatter.portability import Met, Portability, concerns, meetings
from ir_scatter.rules.index_values import index_out_of_range, negative_index
from ir_scatter.runners.base import OTHER_FORMAT, Outcome, Status, plain_name
from ir_scatter.runners.defaults import NUMPY

_MOST_NAMES = 3
"""Maximum nodes named in a line; further ones are only counted."""

_STOPS: Mapping[Status, frozenset[Result]] = {
    Status.REFUSED: frozenset({Result.REFUSED, Result.ABSENT}),
    Status.UNSUPPORTED: frozenset({Result.REFUSED, Result.ABSENT}),
    Status.CRASHED: frozenset({Result.CRASHED, Result.ACCEPTED}),
    Status.TIMEOUT: frozenset({Result.CRASHED}),
}
"""Recorded results of a defect that explain a failure, by its status; an accepted illegal write may crash."""

_WRONG = frozenset({Result.WRONG, Result.ACCEPTED})
"""The recorded results of a defect that explain a wrong result."""
_BROKEN = {"out-of-range": index_out_of_range.name, "negative": negative_index.name}
"""The rule that indices break, by the kind of remark on them."""


def target_of(name: str, versions: Mapping[str, str]) -> Target | None:
    """Return the device and release of a runner; None for a runner without known defects.

    Args:
        name: "openvino:CPU", "lab/openvino:CPU" on a machine of a fleet, or the name of saved results.
        versions: the packages that ran.
    """
    long_name = name.removeprefix(SAVED).rpartition("/")[2]
    runner = None if long_name == NUMPY else runners.find_or_none(long_name)
    if runner is None or runner.is_virtual:
        return None
    installed = next(iter(runner.versions.items()), ("", ""))
    return Target(plain_name(runner.name), versions.get(installed[0], "") or installed[1])


def device_of(target: Target) -> str:
    """Return a device as users name it for `convert`: "GPU", or "GPU@RELEASE" if that is not installed."""
    runner = runners.find(target.runner)
    is_installed = target.release in {"", *runner.versions.values()}
    return runners.short(target.runner) + ("" if is_installed else f"@{target.release}")


def portability_of(name: str, target: Target) -> Portability:
    """Return the known defects of a runner; on a machine of a fleet, without measurements made here."""
    return Portability((target,), () if "/" in name else None)


class _Suspect(NamedTuple):
    """A known defect that may affect a node on a runner."""

    scope: str
    met: Met

    @property
    def code(self) -> str:
        return self.met.defect.code

    @property
    def results(self) -> set[Result]:
        """The recorded results of the defect on the targets."""
        return {evidence.result for _, evidence in self.met.on_targets if evidence.result is not None}

    def shows_as(self, comparison: Comparison) -> bool:
        """Return whether the defect can cause this difference on legal inputs."""
        if not self.met.is_of_legal_inputs:
            return False
        if comparison.relation is Relation.REPEAT:
            return self.met.defect.symptom is Symptom.NONDETERMINISTIC or self.met.defect.taps_hide
        return not _WRONG.isdisjoint(self.results)


@dataclass(slots=True, eq=False)
class _Side:
    """One of the compared models, and the defects that may affect its nodes on each runner."""

    model: Model
    versions: Mapping[str, Mapping[str, str]]
    suspects: dict[Target, list[_Suspect]] = field(default_factory=dict)

    def of_runner(self, name: str) -> list[_Suspect]:
        """Return the known defects of a runner that may affect nodes of the model, in the order of nodes."""
        target = self.target(name)
        if target is None:
            return []
        if target not in self.suspects:
            met = meetings(self.model, portability_of(name, target))
            self.suspects[target] = [_Suspect(scatter.node.scope, each) for scatter, _, each in met]
        return self.suspects[target]

    def target(self, name: str) -> Target | None:
        return target_of(name, self.versions.get(name, {}))


def explain_results(compared: Compared, models: Sequence[Model]) -> Compared:
    """Return the comparison with the known defects that explain its differences and failures, and with leads.

    Defects are only looked up where runners differ or fail.
    """
    versions = {outcome.runner: outcome.versions for outcome in compared.outcomes}
    return _Explainer(compared, [_Side(model, versions) for model in models]).run()


class _Explainer:
    """Matches the differences and failures of a comparison with known defects of its nodes."""

    def __init__(self, compared: Compared, sides: Sequence[_Side]) -> None:
        self.compared, self.sides = compared, sides
        self.differing = [each for each in compared.comparisons if each.measure.verdict.is_difference]
        self.leads: dict[Lead, dict[str, None]] = {}
        """Each lead, without its nodes, with the scopes of its nodes (keys of a dict, in order)."""

    def run(self) -> Compared:
        known: dict[int, tuple[str, ...]] = {}
        by_runner: dict[str, dict[str, None]] = {}
        self.differing.sort(key=lambda each: each.level is Level.MODEL)  # nodes explain outputs
        for comparison in self.differing:
            is_node = comparison.level is Level.NODE
            codes = self._of_node(comparison) if is_node else self._of_output(comparison, known)
            known[id(comparison)] = codes
            by_runner.setdefault(comparison.subject, {}).update(dict.fromkeys(codes))
        for outcome in self.compared.outcomes:
            by_runner.setdefault(outcome.runner, {}).update(dict.fromkeys(self._of_outcome(outcome)))
        return replace(
            self.compared,
            comparisons=tuple(
                [
                    replace(each, known_as=codes) if (codes := known.get(id(each), ())) else each
                    for each in self.compared.comparisons
                ]
            ),
            known_as={name: tuple(sorted(codes)) for name, codes in by_runner.items() if codes},
            leads=tuple([replace(lead, nodes=tuple(scopes)) for lead, scopes in self.leads.items()]),
        )

    def _of_node(self, comparison: Comparison) -> tuple[str, ...]:
        """Return the codes of defects that explain a scatter node's wrong or changing result."""
        side = self.sides[0]
        fitting = [
            each
            for each in side.of_runner(comparison.subject)
            if each.scope == comparison.node and each.shows_as(comparison)
        ]
        return self._enter(comparison.subject, side, fitting, [comparison.node or ""])

    def _of_output(self, comparison: Comparison, known: Mapping[int, tuple[str, ...]]) -> tuple[str, ...]:
        """Return the codes of defects that explain a wrong or changing output of the model."""
        names = [comparison.subject]
        if comparison.relation is Relation.RUNNERS:
            names.append(comparison.reference)
        codes: dict[str, None] = {}
        for side in self._deviating(comparison):
            is_upstream = upstream_of(side.model, comparison.tensor)
            of_nodes = [each for each in self.differing if each.level is Level.NODE]
            at_nodes = [each for each in of_nodes if each.subject in names and is_upstream(each.node or "")]
            if at_nodes:  # these have their own leads
                codes.update(dict.fromkeys(code for each in at_nodes for code in known[id(each)]))
                continue
            suspects = {
                name: [
                    each
                    for each in side.of_runner(name)
                    if is_upstream(each.scope)
                    and each.shows_as(comparison)
                    and (each.met.defect.taps_hide or not self._is_right(name, each.scope))
                ]
                for name in names
            }
            is_known = any(suspects.values())
            for name, fitting in suspects.items():
                if fitting or not is_known:
                    codes.update(dict.fromkeys(self._enter(name, side, _certain_or_all(fitting))))
        return tuple(sorted(codes))

    def _deviating(self, comparison: Comparison) -> list[_Side]:
        """Return the models that may cause a difference: those that deviate from NumPy, or all if unknown."""
        paths = {comparison.subject_model or self.sides[0].model.path}
        if comparison.relation is Relation.MODELS:
            paths = {
                each.subject_model
                for each in self.differing
                if each.relation is Relation.DOCUMENT and each.subject == comparison.subject
            }
        return [side for side in self.sides if side.model.path in paths] or [*self.sides]

    def _is_right(self, name: str, scope: str) -> bool:
        """Return whether a node was compared on a runner without a difference."""
        of_node = [each for each in self.compared.comparisons if (each.subject, each.node) == (name, scope)]
        return bool(of_node) and not any(each.measure.verdict.is_difference for each in of_node)

    def _of_outcome(self, outcome: Outcome) -> tuple[str, ...]:
        """Return the codes of defects that explain a failure, or the acceptance of illegal indices."""
        by_model = self.compared.by_model.get(outcome.runner, (outcome,))
        codes: dict[str, None] = {}
        for side, of_side in zip(self.sides, by_model, strict=False):
            if of_side.status in _STOPS and of_side.reason != OTHER_FORMAT and outcome.runner != NUMPY:
                codes.update(dict.fromkeys(self._of_failure(of_side, side)))
            elif of_side.status is Status.OK:
                accepted = [
                    each
                    for each in (side.of_runner(outcome.runner) if self._illegal(side) else [])
                    if not _WRONG.isdisjoint(each.results) and self._saw_illegal(each, outcome.runner, side)
                ]
                codes.update(dict.fromkeys(self._enter(outcome.runner, side, accepted) if accepted else ()))
        return tuple(codes)

    def _of_failure(self, outcome: Outcome, side: _Side) -> tuple[str, ...]:
        suspects = _certain_or_all(
            [
                each
                for each in side.of_runner(outcome.runner)
                if not _STOPS[outcome.status].isdisjoint(each.results)
                and (not each.met.defect.breaks or self._saw_illegal(each, None, side))
            ]
        )
        suspects = [each for each in suspects if _names(outcome.message, each.scope)] or suspects
        nodes = [] if suspects else named_nodes(side.model, outcome.message)
        return self._enter(outcome.runner, side, suspects, nodes, outcome.status)

    def _illegal(self, side: _Side) -> list[Guarded]:
        path = side.model.path
        return [each for each in self.compared.guarded if each.is_illegal and each.model in {"", path}]

    def _saw_illegal(self, suspect: _Suspect, name: str | None, side: _Side) -> bool:
        """Return whether a node got indices that break the defect's rules; name None: on any runner."""
        return any(
            each.node == suspect.scope
            and name in {None, each.runner}
            and (each.kind == "illegal" or _BROKEN.get(each.kind) in suspect.met.defect.breaks)
            for each in self._illegal(side)
        )

    def _enter(
        self,
        name: str,
        side: _Side,
        suspects: Sequence[_Suspect],
        nodes: Sequence[str] = (),
        status: Status = Status.OK,
    ) -> tuple[str, ...]:
        """Add a lead for a result; return the codes of the defects that explain it.

        Args:
            name: the runner.
            side: the model.
            suspects: the defects that explain the result; empty if none does.
            nodes: the nodes that the result is about, listed after the nodes of the defects.
            status: how the run ended.
        """
        target = side.target(name)
        if target is None:
            return ()
        codes = tuple(sorted({each.code for each in suspects}))
        scopes = dict.fromkeys([*(each.scope for each in suspects), *nodes])
        first = next(iter(scopes), "")
        node = next((each for each in side.model.walk() if each.scope == first), None)
        lookup = None if node is None else find(node.domain, node.type, node.opset)
        lead = Lead(
            runner=name,
            model=side.model.path,
            codes=codes,
            status=status,
            target=str(target),
            device=device_of(target),
            operator="" if lookup is None or lookup.spec is None else str(lookup.spec.key),
            untested=0 if codes else untested(name, target),
        )
        self.leads.setdefault(lead, {}).update(scopes)
        return codes


def _certain_or_all(suspects: list[_Suspect]) -> list[_Suspect]:
    """Return the defects that affect their nodes for all inputs; if there are none, return all."""
    return [each for each in suspects if not each.met.meeting.when] or suspects


def untested(name: str, target: Target) -> int:
    """Return how many known defects of a device were never tested on its release."""
    portability = portability_of(name, target)
    pairs = [
        pair for defect in all_defects() if concerns(target, defect) for pair in portability.evidence(defect)
    ]
    return sum(evidence.basis is Basis.UNTESTED for subject, evidence in pairs if subject == target)


def _names(message: str, scope: str) -> bool:
    name = re.escape(scope.rpartition("/")[2])
    return bool(name) and re.search(rf"(?<![\w/.]){name}(?![\w/.])", message) is not None


def named_nodes(model: Model, message: str) -> list[str]:
    """Return the scopes of scatter nodes that a message names; if it names none, of the first other node."""
    named = [node for node in model.walk() if _names(message, node.scope)]
    scatters = [node for node in named if is_scatter(node.type)]
    return [node.scope for node in scatters or named[:1]]


def upstream_of(model: Model, output: str) -> Callable[[str], bool]:
    """Return a predicate on node scopes: whether the output may depend on that node.

    A node in a body counts like the node that contains the body; nodes of functions always count.
    """
    try:
        flow = dataflow_of(model)
        ends = [end for end in flow.outputs if output in end.names] or [*flow.outputs]
        upstream = {node.scope for node in _upstream(flow, [end.key for end in ends])}
    except Error:
        return lambda scope: True
    others = {node.scope for node in model.walk() if node.graph is model.graph} - upstream
    bodies = tuple(f"{scope}:" for scope in others)
    return lambda scope: scope not in others and not scope.startswith(bodies)


def _upstream(flow: Dataflow, keys: Iterable[Key]) -> Iterator[Node]:
    """Yield the nodes of a graph on which values depend, directly or through states."""
    waiting, seen = [*keys], set[Key]()
    while waiting:
        key = waiting.pop()
        link = None if key in seen else flow.link(key)
        seen.add(key)
        if link is None:
            continue
        yield link.node
        waiting += [key for key in link.inputs if key is not None]
        nested, op = flow.nested(link.node), find_general(link.node.domain, link.node.type)
        if isinstance(nested, Choice):
            waiting += [key for call in nested.branches.values() for key in call.body.captured]
        elif nested is not None:
            waiting += nested.body.captured
        if op is not None and op.state:
            waiting += flow.assigned.values()


# Sentences


def explanation(lead: Lead) -> str:
    """Return a sentence with the known defects of a result, or one that says that no defect is known."""
    where = _where(lead)
    if lead.codes:
        calls = [str(Invocation("explain", {}, (code,))) for code in lead.codes]
        return f"{where}: known as {', '.join(lead.codes)}: {', '.join(calls)}"
    line = f"{where}: not a known defect of {lead.target}"
    if lead.untested:
        test = Invocation("doctor", {"on": lead.device})
        line += (
            f", {counted(lead.untested, 'other')} of which {_was(lead.untested)} never tested there: {test}"
        )
    return line


class NextStep(NamedTuple):
    """A suggestion to the user: a command, or a sentence if no command helps."""

    purpose: str
    call: Invocation | None
    text: str = ""

    @property
    def action(self) -> str:
        return self.text if self.call is None else str(self.call)


def next_steps(lead: Lead) -> list[NextStep]:
    """Return suggestions to the user, the most useful first."""
    if lead.codes and lead.is_fixed:
        return [NextStep("fix", fix_of(lead))]
    if lead.codes:
        return [NextStep("to avoid it", None, by_code()[code].advice(lead.model)) for code in lead.codes]
    device = {"on": runners.short(lead.runner)}
    steps = list[NextStep]()
    if lead.status is Status.OK:
        extract = Invocation("compare", {**device, "extract": "wrong"}, (lead.model,))
        steps.append(NextStep("for a bug report, a one-node model", extract))
    if lead.operator:
        search = Invocation("fuzz", {"operators": lead.operator, **device})
        steps.append(NextStep("to learn when it happens", search))
    return steps


def fix_of(lead: Lead) -> Invocation:
    """Return the `convert` command that avoids the known defects of a device."""
    return Invocation("convert", {"targets": lead.device}, (lead.model,), f"NEW{PurePath(lead.model).suffix}")


def lines_of(lead: Lead) -> list[str]:
    """Return the explanation and the suggestions of a lead, a line each."""
    return [explanation(lead), *(f"{step.purpose}: {step.action}" for step in next_steps(lead))]


_ENDS = {
    Status.REFUSED: "refuses the model",
    Status.UNSUPPORTED: "does not support the model",
    Status.CRASHED: "crashes",
    Status.TIMEOUT: "exceeds the time limit",
}


def _where(lead: Lead) -> str:
    nodes = lead.nodes
    more = f" and {counted(len(nodes) - _MOST_NAMES, 'other node')}" if len(nodes) > _MOST_NAMES else ""
    names = f"{', '.join(nodes[:_MOST_NAMES])}{more}" if more else listed(nodes)
    if lead.status is Status.OK:
        return f"{names} on {lead.runner}" if nodes else lead.runner
    return f"{lead.runner} {_ENDS[lead.status]}" + (f" at {names}" if nodes else "")


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
