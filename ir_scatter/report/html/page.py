"""What the page says, in the order in which it says it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ir_scatter.compare.request import Failure
from ir_scatter.compare.result import NUMPY, Compared, Comparison, Level
from ir_scatter.compare.tolerance import Tolerance
from ir_scatter.report.comparison_json import summary
from ir_scatter.report.html import notes
from ir_scatter.report.html.command import Source
from ir_scatter.report.html.difference import Difference, describe, group
from ir_scatter.report.html.matrix import Matrix, make_matrix
from ir_scatter.report.phrases import counted
from ir_scatter.runners.gpu_on_cpu import FIDELITY, NAME
from ir_scatter.runners.outcome import Outcome, Status
from ir_scatter.runners.runner import Availability

_ON_CPU = "@cpu"
"""What the name of a runner ends with that runs another device's plugin on the CPU."""
_STATES = ("differs", "illegal", "failed", "nothing", "agrees")
"""How it may go; of many models the worst come first."""
_NAMES = {NUMPY: "the evaluator of ir-scatter: what the documents say"}
_MOST_DETAILED = 20
"""Differences of a model that are shown in full."""
_LEAST_OUTPUTS = 5
"""Places among them that nodes do not take from outputs."""
_MOST_ON_PAGE = 60


@dataclass(frozen=True, slots=True)
class Around:
    """What is known beside the comparison.

    Attributes:
        versions: of the packages.
        devices: what the runners are, by their long names.
        failures: models that were not compared.
        skipped: runners that were passed over, and why.
        source: where the inputs came from.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    devices: Mapping[str, Availability] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    source: Source = field(default_factory=Source)


@dataclass(frozen=True, slots=True)
class RunnerRow:
    """A runner in the table of runners."""

    outcome: Outcome
    device: str
    versions: str

    @property
    def is_ok(self) -> bool:
        """Tell whether it computed the model."""
        return self.outcome.status is Status.OK


@dataclass(frozen=True, slots=True, eq=False)
class ModelPage:
    """What the page says of one model, or of two that are compared with each other."""

    anchor: str
    found: Compared
    counts: Mapping[str, int]
    headline: str
    state: str
    runners: tuple[RunnerRow, ...]
    fidelity: tuple[tuple[str, tuple[str, ...]], ...]
    outputs: Matrix
    nodes: Matrix
    differences: tuple[Difference, ...]
    more: int
    indices: tuple[notes.Remark, ...]
    blames: tuple[notes.Blame, ...]
    not_tapped: tuple[notes.Remark, ...]
    kernels: tuple[notes.Kernel, ...]
    tolerances: tuple[tuple[str, str, Tolerance], ...]
    feeds: tuple[tuple[str, str], ...]
    source: Source

    @property
    def anchors(self) -> Mapping[tuple[Level, str, str, str], str]:
        """Return where differences are shown in full."""
        return {one.key: one.anchor for one in self.differences}


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """The whole page."""

    models: tuple[ModelPage, ...]
    counts: Mapping[str, int]
    headline: str
    state: str
    around: Around

    @property
    def fidelity(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return what must be known to judge the results of runners, once for all models."""
        return tuple(dict.fromkeys(said for model in self.models for said in model.fidelity))

    @property
    def illegal(self) -> int:
        """Return how often a node got illegal indices."""
        return sum(one.is_illegal for model in self.models for one in model.found.guarded)


def make_page(found: Sequence[Compared], around: Around) -> Page:
    """Return what the page says, pictures included."""
    differing = sum(one.differs for one in found)
    share = max(1, min(_MOST_DETAILED, _MOST_ON_PAGE // max(differing, 1)))
    ordered = sorted(found, key=lambda one: _STATES.index(_state(one)))
    models = tuple(
        _model(one, f"m{number}", share if number < _MOST_ON_PAGE else 0, around)
        for number, one in enumerate(ordered)
    )
    if len(models) == 1 and not around.failures:
        only = models[0]
        return Page(models, only.counts, only.headline, only.state, around)
    return Page(
        models,
        summary([comparison for one in found for comparison in one.comparisons]),
        _headline_of_many(models, around.failures),
        _worst_state([*(model.state for model in models), *("failed" for _ in around.failures)]),
        around,
    )


def _model(found: Compared, anchor: str, most: int, around: Around) -> ModelPage:
    groups = group(found)
    chosen = _chosen(groups, most)
    return ModelPage(
        anchor,
        found,
        summary(found.comparisons),
        _headline(found),
        _state(found),
        tuple(_runner(outcome, around.devices) for outcome in found.outcomes),
        _fidelity(found, around.devices),
        make_matrix(found, Level.MODEL),
        make_matrix(found, Level.NODE),
        tuple(
            describe(found, alike, f"{anchor}d{number}", around.source) for number, alike in enumerate(chosen)
        ),
        len(groups) - len(chosen),
        notes.indices(found),
        notes.blames(found),
        notes.not_tapped(found),
        notes.kernels(found),
        notes.tolerances(found),
        tuple(notes.feeds(found)),
        around.source,
    )


def _chosen(groups: Sequence[list[Comparison]], most: int) -> list[list[Comparison]]:
    """Return what is shown in full: nodes first, but not nodes alone."""
    nodes = [one for one in groups if one[0].level is Level.NODE]
    outputs = [one for one in groups if one[0].level is Level.MODEL]
    kept = min(len(outputs), max(most - len(nodes), min(_LEAST_OUTPUTS, most // 3)))
    return [*nodes[: most - kept], *outputs[:kept]]


def _runner(outcome: Outcome, devices: Mapping[str, Availability]) -> RunnerRow:
    known = devices.get(outcome.runner)
    device = known.full_name if known else _NAMES.get(outcome.runner, "")
    if not device and outcome.runner.lower().endswith(_ON_CPU):
        device = NAME
    versions = outcome.versions or (known.versions if known else {})
    return RunnerRow(outcome, device, ", ".join(f"{name} {version}" for name, version in versions.items()))


def _fidelity(
    found: Compared, devices: Mapping[str, Availability]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return what must be known to judge the results of a runner."""
    said = []
    for outcome in found.outcomes:
        known = devices.get(outcome.runner)
        remarks = dict.fromkeys(known.remarks if known else ())
        if outcome.runner.lower().endswith(_ON_CPU):
            remarks |= dict.fromkeys(FIDELITY)
        if remarks and outcome.status is not Status.UNAVAILABLE:
            said.append((outcome.runner, tuple(remarks)))
    return tuple(said)


def _state(found: Compared) -> str:
    """Return in a word how it went."""
    if any(one.measure.verdict.is_difference for one in found.comparisons):
        return "differs"
    if found.differs:
        return "illegal"
    if found.failed:
        return "failed"
    return "agrees" if found.comparisons else "nothing"


def _worst_state(states: Sequence[str]) -> str:
    return min(states, key=_STATES.index, default="nothing")


def _headline(found: Compared) -> str:
    """Return the result in a sentence."""
    if not found.differs:
        failed = ", ".join(f"{one.runner} {one.status}" for one in found.failed)
        if not found.comparisons:
            return f"Nothing was compared: {failed}" if failed else "Nothing was compared"
        return f"No difference, but {failed}" if failed else "No difference"
    parts = []
    for level, noun in ((Level.NODE, "node"), (Level.MODEL, "output")):
        all_of = {one.node or one.tensor for one in found.comparisons if one.level is level}
        wrong = {
            one.node or one.tensor
            for one in found.comparisons
            if one.level is level and one.measure.verdict.is_difference
        }
        if wrong:
            parts.append(f"{len(wrong)} of {counted(len(all_of), noun)}")
    illegal = len({one.node for one in found.guarded if one.is_illegal})
    text = " and ".join(parts)
    if text:
        single = len(parts) == 1 and text.startswith("1 of")
        text += " differs" if single else " differ"
    if illegal:
        text = f"{text}; " if text else ""
        text += f"illegal indices at {counted(illegal, 'node')}"
    return text[0].upper() + text[1:]


def _headline_of_many(models: Sequence[ModelPage], failures: Sequence[Failure]) -> str:
    total = counted(len(models), "model")
    parts = []
    differing = sum(model.state == "differs" for model in models)
    illegal = sum(any(one.is_illegal for one in model.found.guarded) for model in models)
    if differing:
        parts.append(f"{differing} of {total} {'differs' if differing == 1 else 'differ'}")
    elif models:
        parts.append(f"No difference in {total}")
    if illegal:
        parts.append(f"illegal indices in {illegal}")
    if failures:
        parts.append(f"{counted(len(failures), 'model')} could not be compared")
    text = "; ".join(parts) or "There are no models"
    return text[0].upper() + text[1:]
