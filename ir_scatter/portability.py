"""Finds the nodes of a model that are affected by known defects of devices and releases, without running it.

`validate --for`, `convert --for` and `compare` use it. A target is a runner and a release.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ir_scatter import runners
from ir_scatter.analysis.constants import MAX_CONSTANT_ELEMENTS, Facts
from ir_scatter.analysis.reachability import Extent, Folding, Reach, SkipReason, UseKind, reachability_of
from ir_scatter.analysis.scatter_node import ScatterNode, scatter_nodes
from ir_scatter.core.diagnostics import Diagnostic, Location, NodeRef, Part, Severity, Side
from ir_scatter.core.errors import UsageError
from ir_scatter.core.files import cache_folder
from ir_scatter.core.model import Graph, Model
from ir_scatter.core.parameters import Invocation, Parameter
from ir_scatter.core.words import counted
from ir_scatter.defects import all_defects, by_code
from ir_scatter.defects.base import Defect, Meeting, Result, Stage
from ir_scatter.defects.evidence import Basis, Evidence, Row, Target, evidence, history, read_rows
from ir_scatter.formats import FORMATS
from ir_scatter.rewrites.existing_guards import is_needed
from ir_scatter.rewrites.guard import Guard
from ir_scatter.rules import all_rules
from ir_scatter.rules.index_values import index_out_of_range, negative_index
from ir_scatter.runners.base import plain_name
from ir_scatter.validate import Check, file_diagnostic

_RELEASE = re.compile(r"@(\d[\w.]*)")
_DOES = {
    Result.WRONG: "gives wrong values",
    Result.REFUSED: "refuses it",
    Result.CRASHED: "crashes",
    Result.ACCEPTED: "silently accepts it",
    Result.ABSENT: "does not support it",
}
"""Predicate for a device by recorded result, if that differs from the defect's usual symptom."""
_STOPS = frozenset({Result.REFUSED, Result.ABSENT, Result.CRASHED})

_RUNS = {
    SkipReason.NOT_TAKEN: Stage.COMPILE,
    SkipReason.FOLDED_CHOICE: Stage.COMPILE,
    SkipReason.NO_TRIPS: Stage.RUN,
    SkipReason.SKIPPED: Stage.RUN,
    SkipReason.CHOICE: Stage.RUN,
    SkipReason.TRIPS: Stage.RUN,
}
"""The stage from which a runtime ignores a body that never runs; loop bodies are compiled even then."""

_NOT_INFERRED = "only the output's shape is read, and the device does not infer it"
"""Condition if only the output's shape is read: this library infers it without the node, a device may not."""

_STATE_READ = "the state that it is written to is read; no output depends on it"
"""Condition under which wrong numbers matter if they only go into a state."""

_OnTarget: TypeAlias = tuple[Target, Evidence]


def find_targets(texts: Sequence[str]) -> tuple[Target, ...]:
    """Parse the devices and releases that the user names, separated by commas.

    Args:
        texts: names of runners, long or short, with a release after "@", or without one for the installed
            release: "CPU", "GPU@2025.4", "openvino@2025.4:CPU", "onnxruntime".

    Raises:
        UsageError: there is no such runner, or it distributes work to other devices.
    """
    targets: dict[Target, None] = {}
    for text in texts:
        words = [word.strip() for word in text.split(",")]
        for word in filter(None, words):
            release = _RELEASE.search(word)
            if len(_RELEASE.findall(word)) > 1:
                raise UsageError(f"{word} names more than one release, expected one after a device")
            runner = runners.find(_RELEASE.sub("", word, count=1))
            if runner.is_virtual:
                raise UsageError(f"{word} distributes work to other devices, expected those: CPU, GPU")
            installed = next(iter(runner.versions.values()), "")
            targets[Target(plain_name(runner.name), release[1] if release else installed)] = None
    if not targets:
        expected = f"CPU, GPU or another device that `{Invocation('devices', {})}` lists"
        raise UsageError(f"{Parameter('targets')} names no device, expected {expected}")
    return tuple(targets)


def hidden_by_taps(model: Model, runner: str) -> dict[str, str]:
    """Return the nodes with a defect that disappears when `compare` taps them: {scope of the node: code}.

    Args:
        model: the model whose scatter nodes are checked.
        runner: the long name of the runner, "openvino:CPU".
    """
    target, codes = Target(plain_name(runner.rpartition("/")[2]), ""), dict[str, str]()
    defects = [defect for defect in all_defects() if defect.taps_hide and concerns(target, defect)]
    for scatter in scatter_nodes(model.graph, Facts(model=model)) if defects else ():
        for defect in defects if scatter.lookup.spec is not None else ():
            if defect.affects is not None and defect.affects(scatter) is not None:
                codes.setdefault(scatter.node.scope, defect.code)
    return codes


def concerns(target: Target, defect: Defect) -> bool:
    """Return whether a target, or the device that it emulates, is among the runners of a defect."""
    return runners.original(target.runner) in defect.runners


def cache_file() -> Path | None:
    """Return the file in which `doctor` caches results of this machine; None without a cache folder."""
    folder = cache_folder()
    return None if folder is None else folder / "doctor.json"


class Met(NamedTuple):
    """A defect that affects a node, and the evidence for each target that has the defect."""

    defect: Defect
    meeting: Meeting
    on_targets: tuple[_OnTarget, ...]

    @property
    def is_certain(self) -> bool:
        """Whether the failure is unconditional, and was measured on the target, not on an emulator."""
        is_measured = any(evidence.basis is not Basis.STAND_IN for _, evidence in self.on_targets)
        return is_measured and not self.meeting.when

    @property
    def is_of_legal_inputs(self) -> bool:
        """Whether some probe (test input) that shows the defect is legal."""
        names = self.meeting.probes
        return any(not probe.breaks for probe in self.defect.probes if not names or probe.name in names)

    @property
    def is_risk(self) -> bool:
        """Whether a target fails on legal inputs whose result the specification defines."""
        return self.is_of_legal_inputs and not self.meeting.is_unspecified


class Portability:
    """The known defects of some targets (runners and releases); finds those that affect a node.

    Args:
        targets: from `find_targets`.
        here: results of probes on this machine; None for the results that `doctor` cached.
        recorded: results on other machines; None for the history in this package.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        here: Sequence[Row] | None = None,
        recorded: Sequence[Row] | None = None,
    ) -> None:
        self.targets = tuple(targets)
        self._here = read_rows(cache_file()) if here is None else here
        self._recorded = history() if recorded is None else recorded
        self._with_devices: Portability | None = None
        self._evidence: dict[tuple[str, tuple[str, ...], bool], tuple[_OnTarget, ...]] = {}

    def with_devices(self) -> "Portability":
        """Return a Portability whose targets include the devices that complement constant folding.

        "openvino:fold" only computes nodes with constant inputs; all other nodes run on a device such as
        "openvino:CPU", which is added to the targets.
        """
        if self._with_devices is None:
            pairs = [(target, runners.find(target.runner).leaves_to) for target in self.targets]
            devices = [target._replace(runner=device) for target, device in pairs if device]
            more = [device for device in devices if device not in self.targets]
            targets = (*self.targets, *more)
            self._with_devices = Portability(targets, self._here, self._recorded) if more else self
        return self._with_devices

    def evidence(
        self, defect: Defect, probes: tuple[str, ...] = (), is_folded: bool = False
    ) -> tuple[_OnTarget, ...]:
        """Return the evidence for a defect on each target that it concerns, from all or the named probes.

        If the node may be folded, defects of the runner that folds for a target count as well.
        """
        key = defect.code, probes, is_folded
        if key not in self._evidence:  # targets may share the runner that folds for them: count it once
            self._evidence[key] = tuple(dict.fromkeys(self._look_up(*key)))
        return self._evidence[key]

    def _look_up(self, code: str, probes: tuple[str, ...], is_folded: bool) -> Iterator[_OnTarget]:
        defect = by_code()[code]
        for target in self.targets:
            folder = runners.find(target.runner).folded_by
            if concerns(target, defect):
                subject = target
            elif is_folded and folder in defect.runners:
                subject = target._replace(runner=folder)
            else:
                continue
            emulator = runners.emulator(subject.runner)
            yield subject, evidence(defect, subject, self._here, self._recorded, probes, emulator)

    def met(self, scatter: ScatterNode, broken: Collection[str] = ()) -> Iterator[Met]:
        """Yield the defects of some target that affect a node.

        If the node breaks rules, only defects about the same rules are yielded. If a target always refuses
        the node, its defects that depend on a condition are left out.
        """
        every = [*self._met(scatter, broken)]
        stopped = {
            target
            for met in every
            for target, evidence in met.on_targets
            if not met.meeting.when and evidence.result in _STOPS
        }
        for met in every:
            running = tuple([pair for pair in met.on_targets if pair[0] not in stopped])
            if running or not met.meeting.when:
                yield met._replace(on_targets=running) if met.meeting.when else met

    def _met(self, scatter: ScatterNode, broken: Collection[str]) -> Iterator[Met]:
        is_guarded = _guarded(scatter)
        reachability = scatter.facts.result_of(reachability_of)
        folding = Folding.NO if reachability is None else reachability.folds(scatter.node)
        may_fold = folding is not Folding.NO
        for defect in all_defects():
            if not defect.breaks.issuperset(broken):
                continue
            on_targets = self.evidence(defect, (), may_fold)
            meeting = defect.affects(scatter) if on_targets and defect.affects is not None else None
            if meeting is None:
                continue
            if meeting.when and is_guarded(defect):
                continue  # the guard checks sizes at run time
            if meeting.probes:
                on_targets = self.evidence(defect, meeting.probes, may_fold)
            bad = tuple([(target, evidence) for target, evidence in on_targets if evidence.is_bad])
            folders = {runners.find(target.runner).folded_by for target, _ in bad}
            if may_fold and "" not in folders:
                if folders.isdisjoint(defect.runners):
                    meeting = _only_when(meeting, "it is not folded")
                elif folding is Folding.MAYBE and all(target.runner in folders for target, _ in bad):
                    meeting = _only_when(meeting, "it is folded")
            if bad:
                reach = Reach() if reachability is None else reachability.reach(scatter.node)
                yield from _split_by_condition(Met(defect, meeting, bad), reach)

    def surely_met(self, scatter: ScatterNode) -> list[str]:
        """Return the codes of defects that affect a node for all inputs, on a target or its emulator."""
        return [met.defect.code for met in self.met(scatter) if not met.meeting.when]

    def maybe_met(self, scatter: ScatterNode) -> set[str]:
        """Return the codes of defects that affect a node for some legal inputs only."""
        return {met.defect.code for met in self.met(scatter) if met.meeting.when and met.is_risk}

    def nearly_met(self, scatter: ScatterNode) -> set[str]:
        """Return the codes of defects that affect a node for nearly all legal inputs."""
        possible = [met for met in self.met(scatter) if met.meeting.when and met.is_risk]
        return {met.defect.code for met in possible if met.meeting.is_likely}

    def untested(self, model: Model) -> Iterator[Diagnostic]:
        """Yield a note for each target on which some known defects, or all, were never tested."""
        for target in self.targets:
            pairs = [pair for defect in all_defects() for pair in self.evidence(defect)]
            of_target = [evidence for subject, evidence in pairs if subject == target]
            missing = sum(evidence.basis is Basis.UNTESTED for evidence in of_target)
            if model.format not in runners.find(target.runner).formats:
                reason = f"it does not read {FORMATS[model.format].title}"
            elif missing == len(of_target):
                reason = "this release was never tested"
            elif missing:
                verb = "was" if missing == 1 else "were"
                reason = f"{missing} of {counted(len(of_target), 'known defect')} {verb} not tested there"
            else:
                continue
            message = f"{target} is untested: {reason}, so no finding does not mean no defect"
            yield file_diagnostic("untested-device", message, Location(model.path))


def _only_when(meeting: Meeting, when: str) -> Meeting:
    return meeting._replace(when=" and ".join(filter(None, (meeting.when, when))))


def _split_by_condition(met: Met, reach: Reach) -> Iterator[Met]:
    """Yield the defect once for each condition under which targets compute the node.

    Nothing is yielded if they never compute it.
    """
    if reach.extent is Extent.ALWAYS and UseKind.NUMBERS in reach.uses:
        yield met
        return
    by_condition: dict[str, list[_OnTarget]] = {}
    for target, measured in met.on_targets:
        when = _strikes_when(met, target, reach)
        if when is not None:
            by_condition.setdefault(when, []).append((target, measured))
    for when, on_targets in by_condition.items():
        meeting = _only_when(met.meeting, when) if when else met.meeting
        yield met._replace(meeting=meeting, on_targets=tuple(on_targets))


def _strikes_when(met: Met, target: Target, reach: Reach) -> str | None:
    """Return the condition under which a defect shows at a node: "" if always, None if never."""
    strikes = met.meeting.strikes or met.defect.strikes
    optimizations = runners.find(target.runner).optimizations()
    is_of_state = met.defect.symptom.is_of_numbers and UseKind.NUMBERS not in reach.uses
    if is_of_state and UseKind.STATE not in reach.uses:
        return None
    is_inferred, uses = UseKind.INFERRED_SHAPE in reach.uses, reach.uses & ~UseKind.INFERRED_SHAPE
    stages = [
        optimizations.dropped.get(use) for use in (uses | UseKind.STATIC_SHAPE if is_inferred else uses)
    ]
    is_removed = bool(stages) and all(_is_at_most(stage, strikes) for stage in stages)
    if is_removed and not is_inferred:
        return None
    starts = {**_RUNS, SkipReason.SKIPPED: optimizations.skipped_loops or Stage.RUN}
    kinds = [body.reason for body in reach.skippable if _is_at_most(starts[body.reason], strikes)]
    if any(kind.is_certain for kind in kinds):
        return None
    whens = [_NOT_INFERRED] if is_removed else [_STATE_READ] if is_of_state else []
    return " and ".join(dict.fromkeys([*whens, *(kind.value for kind in kinds)]))


def _is_at_most(stage: Stage | None, limit: Stage) -> bool:
    return stage is not None and stage.is_at_most(limit)


@cache
def portability_to(targets: tuple[str, ...]) -> Portability:
    """Return the `Portability` of the devices and releases that the user names; see `find_targets`."""
    return Portability(find_targets(targets))


def meetings(
    model: Model,
    portability: Portability,
    max_index_elements: int = MAX_CONSTANT_ELEMENTS,
    is_meant: Callable[[str], bool] = lambda scope: True,
    check: Check | None = None,
) -> Iterator[tuple[ScatterNode, Graph, Met]]:
    """Yield (node, its graph, defect) for each known defect that affects a node.

    The arguments are those of `diagnose`. A node of a function is yielded once per signature of its calls.
    """
    if check is None or not check.knows_legality:
        check = Check(model, [rule for rule in all_rules() if rule.is_legality], max_index_elements)
    graphs = [model.graph]
    graphs += [graph for function in model.functions for graph in function.instances or [function.definition]]
    for graph in graphs:
        for scatter in scatter_nodes(graph, check.facts):
            if scatter.lookup.spec is not None and is_meant(scatter.node.scope):
                broken = check.broken_rules(scatter, graph)
                yield from ((scatter, graph, met) for met in portability.met(scatter, broken))


def nodes_by_target(
    check: Check, targets: Sequence[Target], is_meant: Callable[[str], bool] = lambda code: True
) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return which nodes of a model each target gets wrong or refuses: {target: (scope, code of a defect)}.

    Args:
        check: a check of the model.
        targets: from `find_targets`.
        is_meant: returns whether a defect counts, by its code.
    """
    maximum = check.facts.max_elements
    return {
        str(target): tuple(
            sorted(
                {
                    (scatter.node.scope, met.defect.code)
                    for scatter, _, met in meetings(check.model, Portability([target]), maximum, check=check)
                    if is_meant(met.defect.code)
                }
            )
        )
        for target in targets
    }


def diagnose(
    model: Model,
    portability: Portability,
    max_index_elements: int = MAX_CONSTANT_ELEMENTS,
    is_meant: Callable[[str], bool] = lambda scope: True,
    check: Check | None = None,
) -> list[Diagnostic]:
    """Return diagnostics for the nodes of a model that known defects of the targets affect.

    A node that breaks a rule has no specified result; only defects about that rule are reported for it.

    Args:
        model: from `read`.
        portability: the known defects of the targets.
        max_index_elements: constants with more elements are not read.
        is_meant: returns whether to check the node with this scope.
        check: a finished check of the same model, whose results are reused if it included all legality rules.
    """
    diagnostics: dict[tuple[str, str], Diagnostic] = {}
    scopes: dict[tuple[str, str], set[str]] = {}
    for scatter, graph, met in meetings(model, portability, max_index_elements, is_meant, check):
        once = None if met.is_certain else met.defect.per_model
        severity = once or (Severity.ERROR if met.is_certain else Severity.WARNING)
        place = met.defect.code, scatter.node.scope if once is None else ""
        scopes.setdefault(place, set()).add(scatter.node.scope)
        first = diagnostics.get(place)
        if first is None or severity.rank < first.severity.rank:  # another call of the function
            diagnostics[place] = _diagnostic(scatter, met, graph, severity)
    for place, diagnostic in diagnostics.items():
        message = and_others(diagnostic.message, len(scopes[place]) - 1)
        diagnostics[place] = replace(diagnostic, message=message)
    return [*diagnostics.values(), *portability.untested(model)]


def _guarded(scatter: ScatterNode) -> Callable[[Defect], bool]:
    """Return a predicate on defects: whether a node's indices are guarded or proven against it."""
    is_safe: dict[Guard, bool] = {}

    def is_guarded(defect: Defect) -> bool:
        if defect.breaks.isdisjoint({index_out_of_range.name, negative_index.name}):
            return False
        guard = Guard.CLAMP if index_out_of_range.name in defect.breaks else Guard.WRAP
        if guard not in is_safe:
            is_safe[guard] = not is_needed(scatter, guard)
        return is_safe[guard]

    return is_guarded


def and_others(message: str, count: int) -> str:
    """Append the number of other nodes that the message is also about."""
    return f"{message}; {counted(count, 'other node')} as well" if count else message


def _diagnostic(scatter: ScatterNode, met: Met, graph: Graph, severity: Severity) -> Diagnostic:
    node, spec, defect, meeting = scatter.node, scatter.spec, met.defect, met.meeting
    index = None if meeting.role is None else spec.port_index(meeting.role)
    part = meeting.part or (Part(Side.NODE) if index is None else Part(Side.INPUT, index))
    texts = [_describe(defect, target, evidence) for target, evidence in met.on_targets]
    when = f", if {meeting.when}" if meeting.when else ""
    return Diagnostic(
        defect.code,
        defect.name,
        severity,
        f"{meeting.reason}{when}: {'; '.join(texts)}",
        node.location,
        NodeRef(node.name, scatter.lookup.type, spec.key.version),
        None if index is None else spec.ports[index].name,
        index,
        graph.calls,
        defect.fixed_by,
        node.graph.span_of(node, part),
        defect.name.replace("-", " "),
        defect.avoid,
    )


def _describe(defect: Defect, target: Target, evidence: Evidence) -> str:
    """Return what a target does, with the source: "openvino:CPU 2026.4.1 crashes (recorded, ...)"."""
    assert evidence.result is not None
    is_usual = evidence.result is defect.symptom.result
    verb = defect.symptom.does if is_usual else _DOES[evidence.result]
    basis = f"{evidence.basis}, {evidence.told}" if evidence.told else str(evidence.basis)
    return f"{target} {verb} ({basis})"
