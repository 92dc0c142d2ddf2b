"""Which nodes of a model meet the known defects of devices and releases; nothing is run to tell."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ir_scatter import runners
from ir_scatter.analysis.constants import MAX_CONSTANT_ELEMENTS, Facts
from ir_scatter.analysis.reachability import BarrierKind, Extent, Folding, Reach, Use, reachability_of
from ir_scatter.analysis.scatter_node import ScatterNode, scatter_nodes
from ir_scatter.core.diagnostics import Diagnostic, Location, NodeRef, Part, Severity, Side
from ir_scatter.core.errors import UsageError
from ir_scatter.core.files import cache_folder
from ir_scatter.core.model import Graph, Model
from ir_scatter.core.words import counted
from ir_scatter.defects import all_defects, by_code
from ir_scatter.defects.base import Defect, Meeting, Result, Stage
from ir_scatter.defects.evidence import Basis, Evidence, Row, Target, evidence, history, read_rows
from ir_scatter.formats import FORMATS
from ir_scatter.rewrites.guard import Guard, is_needed
from ir_scatter.rules import all_rules
from ir_scatter.rules.index_values import index_out_of_range, negative_index
from ir_scatter.runners.base import plain_name
from ir_scatter.validate import Check, file_diagnostic

_RELEASE = re.compile(r"@(\d[\w.]*)")
_DOES = {
    Result.WRONG: "computes that wrong",
    Result.REFUSED: "refuses that",
    Result.CRASHED: "ends the process",
    Result.ACCEPTED: "takes it without a word",
    Result.ABSENT: "does not know it",
}
_STOPS = frozenset({Result.REFUSED, Result.ABSENT, Result.CRASHED})

_RUNS = {
    BarrierKind.NOT_TAKEN: Stage.COMPILE,
    BarrierKind.FOLDED_CHOICE: Stage.COMPILE,
    BarrierKind.NO_TRIPS: Stage.RUN,
    BarrierKind.SKIPPED: Stage.RUN,
    BarrierKind.CHOICE: Stage.RUN,
    BarrierKind.TRIPS: Stage.RUN,
}
"""From which stage on a runtime leaves a body alone that does not run: bodies of loops are compiled."""

_NOT_INFERRED = "the device does not infer the shape of the output, which alone is read"
"""When a node is computed for the shape of its output alone, which the file leaves open and we infer."""

_Known: TypeAlias = tuple[Target, Evidence]


def find_targets(texts: Sequence[str]) -> tuple[Target, ...]:
    """Return the devices and releases that `--for` names, with commas between them.

    Args:
        texts: names of runners, long or short, with a release behind "@" or without one for the release
            that is installed: "CPU", "GPU@2025.4", "openvino@2025.4:CPU", "onnxruntime".

    Raises:
        UsageError: there is no such runner, or it distributes work to other devices.
    """
    found: dict[Target, None] = {}
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
            found[Target(plain_name(runner.name), release[1] if release else installed)] = None
    if not found:
        raise UsageError("--for names no device, expected CPU, GPU or another name of --on")
    return tuple(found)


def hidden_by_taps(model: Model, runner: str) -> dict[str, str]:
    """Return the codes of known defects that taps hide, by the scopes of the nodes that meet them.

    Args:
        model: whose scatter nodes are looked at.
        runner: the long name of who ran it, "openvino:CPU".
    """
    target, found = Target(plain_name(runner.rpartition("/")[2]), ""), dict[str, str]()
    defects = [one for one in all_defects() if one.taps_hide and concerns(target, one)]
    for scatter in scatter_nodes(model.graph, Facts(model=model)) if defects else ():
        for defect in defects if scatter.lookup.spec is not None else ():
            if defect.affects is not None and defect.affects(scatter) is not None:
                found.setdefault(scatter.node.scope, defect.code)
    return found


def concerns(target: Target, defect: Defect) -> bool:
    """Return whether a defect is one of a target, or of the device that the target emulates."""
    return runners.original(target.runner) in defect.runners


def cache_file() -> Path | None:
    """Return where what was probed on this machine is kept; None if there is no folder for that."""
    folder = cache_folder()
    return None if folder is None else folder / "doctor.json"


class Met(NamedTuple):
    """A defect that a node meets, and what is known of it on those targets that have it."""

    defect: Defect
    meeting: Meeting
    known: tuple[_Known, ...]

    @property
    def is_certain(self) -> bool:
        """Whether some target fails on this node for sure, as far as anybody saw."""
        is_seen = any(found.basis is not Basis.STAND_IN for _, found in self.known)
        return is_seen and not self.meeting.when

    @property
    def is_of_legal_inputs(self) -> bool:
        """Whether a probe that tells of it breaks no rule."""
        names = self.meeting.probes
        return any(not one.breaks for one in self.defect.probes if not names or one.name in names)


class Portability:
    """What is known of some targets, and which nodes of models meet it.

    Args:
        targets: as `find_targets` gives them.
        here: what this machine probed; None for what is kept of it.
        recorded: what others measured; None for the history.
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
        self._known: dict[tuple[str, tuple[str, ...], bool], tuple[_Known, ...]] = {}

    def known(
        self, defect: Defect, probes: tuple[str, ...] = (), is_folded: bool = False
    ) -> tuple[_Known, ...]:
        """Return what is known of a defect on the targets that it concerns, by all of its probes or some.

        A device of OpenVINO gets nothing to compute where it is folded.
        """
        key = defect.code, probes, is_folded
        if key not in self._known:
            self._known[key] = tuple(dict.fromkeys(self._looked_up(*key)))  # of folding once for all devices
        return self._known[key]

    def _looked_up(self, code: str, probes: tuple[str, ...], is_folded: bool) -> Iterator[_Known]:
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
        """Yield the defects that a node meets on some target; if it breaks rules, those of these rules.

        Where a target refuses the node for certain, nothing hangs on a run there.
        """
        found = [*self._met(scatter, broken)]
        stopped = {
            target
            for one in found
            for target, seen in one.known
            if not one.meeting.when and seen.result in _STOPS
        }
        for one in found:
            left = [(target, seen) for target, seen in one.known if target not in stopped]
            if left or not one.meeting.when:
                yield one._replace(known=tuple(left)) if one.meeting.when else one

    def _met(self, scatter: ScatterNode, broken: Collection[str]) -> Iterator[Met]:
        is_guarded = _guarded(scatter)
        reachability = scatter.facts.derived(reachability_of)
        folding = Folding.NO if reachability is None else reachability.folds(scatter.node)
        may_fold = folding is not Folding.NO
        for defect in all_defects():
            if not defect.breaks.issuperset(broken):
                continue
            known = self.known(defect, (), may_fold)
            meeting = defect.affects(scatter) if known and defect.affects is not None else None
            if meeting is None:
                continue
            if meeting.when and is_guarded(defect):
                continue  # sizes that only a run tells are looked after there
            told = self.known(defect, meeting.probes, may_fold) if meeting.probes else known
            bad = tuple([(target, found) for target, found in told if found.is_bad])
            folders = {runners.find(target.runner).folded_by for target, _ in bad}
            if may_fold and "" not in folders:
                if folders.isdisjoint(defect.runners):
                    meeting = _only_when(meeting, "it is not folded")
                elif folding is Folding.MAYBE and all(target.runner in folders for target, _ in bad):
                    meeting = _only_when(meeting, "it is folded")
            if bad:
                reach = Reach() if reachability is None else reachability.reach(scatter.node)
                yield from _where_it_strikes(Met(defect, meeting, bad), reach)

    def surely_met(self, scatter: ScatterNode) -> list[str]:
        """Return the codes of what a node meets whatever its inputs are, on some target or its stand-in."""
        return [met.defect.code for met in self.met(scatter) if not met.meeting.when]

    def maybe_met(self, scatter: ScatterNode) -> set[str]:
        """Return the codes of what a node may meet with legal inputs."""
        found = [met for met in self.met(scatter) if met.meeting.when and met.is_of_legal_inputs]
        return {met.defect.code for met in found if met.defect.per_model is not Severity.NOTE}

    def untested(self, model: Model) -> Iterator[Diagnostic]:
        """Yield a note for each target of which nothing, or not everything, is known."""
        for target in self.targets:
            every = [self.known(defect) for defect in all_defects()]
            known = [found for both in every for one, found in both if one == target]
            missing = sum(found.basis is Basis.UNTESTED for found in known)
            if model.format not in runners.find(target.runner).formats:
                what = f"it does not read {FORMATS[model.format].title}"
            elif missing == len(known):
                what = "nobody has probed it, here or elsewhere"
            elif missing:
                what = f"{counted(missing, 'known defect')} of {len(known)} nobody probed there"
            else:
                continue
            message = f"{target} is untested: {what}, so that silence says nothing"
            yield file_diagnostic("untested-device", message, Location(model.path))


def _only_when(meeting: Meeting, when: str) -> Meeting:
    return meeting._replace(when=" and ".join(filter(None, (meeting.when, when))))


def _where_it_strikes(met: Met, reach: Reach) -> Iterator[Met]:
    """Yield what is left of a defect where a node is not always computed, by the targets' conditions."""
    if reach.extent is Extent.ALWAYS and Use.NUMBERS in reach.uses:
        yield met
        return
    by_condition: dict[str, list[_Known]] = {}
    for target, found in met.known:
        when = _strikes_when(met, target, reach)
        if when is not None:
            by_condition.setdefault(when, []).append((target, found))
    for when, known in by_condition.items():
        meeting = _only_when(met.meeting, when) if when else met.meeting
        yield met._replace(meeting=meeting, known=tuple(known))


def _strikes_when(met: Met, target: Target, reach: Reach) -> str | None:
    """Return when a defect strikes a node on a target; "" if always, None if never."""
    strikes = met.meeting.strikes or met.defect.strikes
    optimizations = runners.find(target.runner).optimizations()
    if met.defect.symptom.is_of_numbers and Use.NUMBERS not in reach.uses:
        return None
    is_inferred, uses = Use.INFERRED_SHAPE in reach.uses, reach.uses & ~Use.INFERRED_SHAPE
    stages = [optimizations.dropped.get(use) for use in (uses | Use.STATIC_SHAPE if is_inferred else uses)]
    is_removed = bool(stages) and all(_is_at_most(stage, strikes) for stage in stages)
    if is_removed and not is_inferred:
        return None
    starts = {**_RUNS, BarrierKind.SKIPPED: optimizations.skipped_loops or Stage.RUN}
    kinds = [barrier.kind for barrier in reach.barriers if _is_at_most(starts[barrier.kind], strikes)]
    if any(kind.is_certain for kind in kinds):
        return None
    whens = [_NOT_INFERRED] if is_removed else []
    return " and ".join(dict.fromkeys([*whens, *(kind.value for kind in kinds)]))


def _is_at_most(stage: Stage | None, limit: Stage) -> bool:
    return stage is not None and stage.is_at_most(limit)


@cache
def portability_to(targets: tuple[str, ...]) -> Portability:
    """Return what is known of the devices and releases that `--for` names; see `find_targets`."""
    return Portability(find_targets(targets))


def diagnose(
    model: Model,
    portability: Portability,
    max_index_elements: int = MAX_CONSTANT_ELEMENTS,
    is_meant: Callable[[str], bool] = lambda scope: True,
    check: Check | None = None,
) -> list[Diagnostic]:
    """Return which nodes of a model will be refused, wrong or fatal on the targets.

    Of a node that breaks a rule no document says what is right: only what is known of that fault is told.

    Args:
        model: as `read` gives it.
        portability: what is known of the targets.
        max_index_elements: constants with more elements are not looked at.
        is_meant: tells by its scope whether to look at a node.
        check: one of the same model that has run, whose judgements of nodes are used again; None for a new
            one, which is also made if that one lacks rules of legality.
    """
    if check is None or not check.knows_legality:
        check = Check(model, [rule for rule in all_rules() if rule.is_legality], max_index_elements)
    diagnostics: dict[tuple[str, str], Diagnostic] = {}
    scopes: dict[tuple[str, str], set[str]] = {}

    def of_graph(graph: Graph) -> None:
        for scatter in scatter_nodes(graph, check.facts):
            if scatter.lookup.spec is None or not is_meant(scatter.node.scope):
                continue
            for met in portability.met(scatter, check.broken_rules(scatter, graph)):
                once = None if met.is_certain else met.defect.per_model
                severity = once or (Severity.ERROR if met.is_certain else Severity.WARNING)
                place = met.defect.code, scatter.node.scope if once is None else ""
                scopes.setdefault(place, set()).add(scatter.node.scope)
                first = diagnostics.get(place)
                if first is None or severity.rank < first.severity.rank:  # another call of the function
                    diagnostics[place] = _diagnostic(scatter, met, graph, severity)

    of_graph(model.graph)
    for function in model.functions:
        for graph in function.instances or [function.definition]:
            of_graph(graph)
    for place, diagnostic in diagnostics.items():
        message = and_others(diagnostic.message, len(scopes[place]) - 1)
        diagnostics[place] = replace(diagnostic, message=message)
    return [*diagnostics.values(), *portability.untested(model)]


def _guarded(scatter: ScatterNode) -> Callable[[Defect], bool]:
    """Return what tells whether a node is proven or guarded against the indices that a defect is about."""
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
    """Say of how many nodes more a message is true."""
    return f"{message}; {counted(count, 'other node')} as well" if count else message


def _diagnostic(scatter: ScatterNode, met: Met, graph: Graph, severity: Severity) -> Diagnostic:
    node, spec, defect, meeting = scatter.node, scatter.spec, met.defect, met.meeting
    index = None if meeting.role is None else spec.port_index(meeting.role)
    part = meeting.part or (Part(Side.NODE) if index is None else Part(Side.INPUT, index))
    told = "; ".join(_told(target, found) for target, found in met.known)
    when = f", if {meeting.when}" if meeting.when else ""
    return Diagnostic(
        defect.code,
        defect.name,
        severity,
        f"{meeting.reason}{when}: {told}",
        node.location,
        NodeRef(node.name, scatter.lookup.type, spec.key.version),
        None if index is None else spec.ports[index].name,
        index,
        graph.calls,
        None,
        node.graph.span_of(node, part),
        defect.name.replace("-", " "),
        defect.avoid,
    )


def _told(target: Target, found: Evidence) -> str:
    assert found.result is not None
    seen = f"{found.basis}, {found.told}" if found.told else str(found.basis)
    return f"{target} {_DOES[found.result]} ({seen})"
