"""One model on several runners: inputs, runs, taps, and what is said of them."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ir_scatter.compare.background import Background
from ir_scatter.compare.contested import OpenOutput
from ir_scatter.compare.nodes import NodeJudge, Unjudged, nodes_by_tap
from ir_scatter.compare.odd import find_odd
from ir_scatter.compare.outputs import compare_outputs, compare_runs
from ir_scatter.compare.precision import computed_in, facts_about
from ir_scatter.compare.repeats import by_repetition, merged
from ir_scatter.compare.said import foreseen_by, is_guard_wanted
from ir_scatter.compare.session import NEVER, Compared, NotTapped, Settings, without_arrays, worse
from ir_scatter.compare.tap_changes import Changed, TapChanges, changed_by_taps
from ir_scatter.compare.verdicts import Comparison, Guarded, Odd, Verdict
from ir_scatter.compare.voices import NUMPY, NumpyVoice
from ir_scatter.compare.watching import Sight
from ir_scatter.core.errors import BadFeed
from ir_scatter.core.model import Model, Node
from ir_scatter.runners.outcome import NodeFacts, Outcome, Status, Tapped
from ir_scatter.validate import read

if TYPE_CHECKING:
    from ir_scatter.core.constants import Array
    from ir_scatter.runners.runner import Availability, Runner

_HOPELESS = frozenset({Status.UNAVAILABLE, Status.TIMEOUT})
"""Whoever ends like this is not asked again."""


UNANSWERED = "the runner gave no answer for it"
"""Why a node has no level of its own that was asked for, and of which nothing came."""

_Said = list[Comparison | Guarded | NotTapped | Unjudged]


def compare(
    path: "str | Path",
    runners: "Sequence[Runner]",
    settings: Settings,
    *,
    with_numpy: bool = True,
    feeds: "Mapping[str, Array] | None" = None,
    model: Model | None = None,
) -> Compared:
    """Run a model on NumPy and on runners, compare outputs, and every scatter node for itself.

    Args:
        path: of the model.
        runners: in the order in which they were named.
        settings: what is wanted.
        with_numpy: whether NumPy is one of the voices.
        feeds: the inputs of the first case; None to generate them as those of the others are.
        model: as it was read, if it was.

    Raises:
        UnreadableModel: the model cannot be read.
        BadFeed: a feed is missing, superfluous, or of the wrong type or shape.
        NoInputs: no legal inputs were found.
    """
    known = read(path) if model is None else model
    for runner in runners[:1]:
        runner.prepare(path, precision=settings.precision, timeout=settings.timeout)
    cases = tuple(make_cases(known, settings, feeds))
    session = Session(known, str(path), runners, settings, with_numpy=with_numpy)
    try:
        for number, case in enumerate(cases):
            session.run_case(number, case)
        return session.result(cases)
    finally:
        session.close()


def make_cases(
    model: Model, settings: Settings, given: "Mapping[str, Array] | None" = None
) -> "Iterator[Mapping[str, Array]]":
    """Return the inputs of each case: those that were given are the first.

    Raises:
        BadFeed: they are not what the model asks for.
    """
    from ir_scatter.evaluate.feeds import check_feeds
    from ir_scatter.evaluate.plan import wire
    from ir_scatter.inputs.model import make_feeds

    if given is not None:
        check_feeds(wire(model).inputs, given)
        yield given
    for number in range(0 if given is None else 1, settings.cases):
        yield make_feeds(model, settings.seed + number, settings.input_shapes, settings.values)


def names_of(model: Model) -> set[str]:
    """Return the names that a tolerance may be given for: of outputs and of scatter nodes."""
    from ir_scatter.evaluate.plan import wire

    outputs = {output.name for output in wire(model).outputs}
    return outputs.union(*(one.names for one in nodes_by_tap(model).values()))


class Session:
    """Collects what runners say of one model."""

    def __init__(
        self, model: Model, path: str, runners: "Sequence[Runner]", settings: Settings, *, with_numpy: bool
    ) -> None:
        self.model, self.path, self.runners, self.settings = model, path, runners, settings
        self.numpy = NumpyVoice(model, is_wanted=with_numpy)
        self.nodes = nodes_by_tap(model)
        self.judge = NodeJudge(self.nodes, settings.tolerances)
        self.outcomes: dict[str, Outcome] = {}
        self.of_outputs: list[Comparison] = []
        self.of_nodes: list[Comparison] = []
        self.guarded: list[Guarded] = []
        self.odd: list[Odd] = []
        self.not_tapped: dict[tuple[str, str], NotTapped] = {}
        self.remarks: dict[str, None] = {}
        self.facts: dict[str, tuple[NodeFacts, ...]] = {}
        self.devices: dict[str, Availability] = {}
        self.about: dict[str, tuple[str, ...]] = {}
        self.runs: list[tuple[Outcome, ...]] = []
        self._judging = Background()
        self._feeds: dict[int, Mapping[str, Array]] = {}
        self._sights: dict[int, Sight] = {}
        self._open: dict[int, Mapping[str, OpenOutput]] = {}
        self._precisions: dict[str, str] = {}
        self._scopes = {name: one.node.scope for one in self.nodes.values() for name in one.names}

    def run_case(self, number: int, feeds: "Mapping[str, Array]") -> tuple[Outcome, ...]:
        """Run all voices on one set of inputs; NumPy computes and judges while the others run."""
        running = self.numpy.start(feeds) if self.numpy.is_wanted else None
        judging, found = list[tuple[Outcome, list[Future[list[_Said]]]]](), list[Outcome]()
        changes: list[Changed] = []
        for runner in self.runners:
            try:
                plain = self._run(runner, feeds)
            except BadFeed as error:  # the feeds fit the model: this is between the runner and itself
                plain = Outcome(runner.name, Status.REFUSED, str(error))
            futures = list[Future[list[_Said]]]()
            kept = [plain]
            for tapped in self._runs_with_taps(runner, feeds, plain):
                changes += changed_by_taps(plain, tapped)
                whole = replace(plain, tapped=tapped.tapped)
                futures.append(self._judging.submit(partial(self._judged, whole, number)))
                if self.settings.keeps_runs:
                    kept.append(tapped)
            judging.append((plain, futures))
            found.append(_with_taps(*kept))
        said = [
            one
            for plain, futures in judging
            for one in merged([said for future in futures for said in future.result()], plain.runner, number)
        ]
        is_changed = any(
            one.measured(self.settings.tolerances).verdict is Verdict.MISMATCH for one in changes
        )
        if running is None and (is_changed or is_guard_wanted(found, said)):
            running = self.numpy.start(feeds)
        outcomes, sight, numpy = found, Sight(), None
        if running is not None:
            numpy = self.numpy.finish(running, self.settings.timeout)
            outcomes = [numpy, *found] if self.numpy.is_wanted else found
            sight = Sight() if numpy.status is Status.TIMEOUT else running.sight
        self._feeds[number], self._sights[number] = feeds, sight
        self._enter(number, outcomes, [*foreseen_by(sight, number), *said], changes, numpy)
        if self.settings.keeps_runs:
            self.runs.append(tuple(outcomes))
        return tuple(outcomes)

    def again(
        self, number: int, feeds: "Mapping[str, Array]", outcomes: Sequence[Outcome], *, with_outputs: bool
    ) -> None:
        """Judge what was saved.

        Args:
            number: of the case.
            feeds: its inputs.
            outcomes: of all runners in that case.
            with_outputs: whether to compare their outputs with each other, too.
        """
        self._feeds.setdefault(number, feeds)
        said: _Said = []
        for one in outcomes:
            said += merged(self._judged(one, number), one.runner, number)
        changes = [
            change
            for one in outcomes
            for run in one.tapped_runs
            for change in changed_by_taps(one, replace(one, runs=(run,)))
        ]
        numpy = next((one for one in outcomes if one.runner.endswith(NUMPY)), None)
        self._enter(number, outcomes, said, changes, numpy, with_outputs=with_outputs)

    def close(self) -> None:
        """End the threads when they have nothing more to do."""
        self.numpy.close()
        self._judging.close()

    def _run(self, runner: "Runner", feeds: "Mapping[str, Array]") -> Outcome:
        """Run one runner without taps."""
        settings = self.settings
        known = self.outcomes.get(runner.name)
        if known is not None and known.status in _HOPELESS:
            return known
        plain = runner.run(self.path, feeds, repeat=settings.repeat, profile=True, **self._options)
        if plain.facts and runner.name not in self.facts:
            self.facts[runner.name] = facts_about(plain.facts, self._scopes)
            self._precisions[runner.name] = computed_in(plain.facts)
        if settings.describes and plain.status is Status.OK and runner.name not in self.devices:
            self.devices[runner.name] = runner.availability()
        if plain.precision == "default":
            plain = replace(plain, precision=self._precisions.get(runner.name) or plain.precision)
        self._note(plain)
        if plain.status is Status.UNAVAILABLE:
            return replace(plain, message=_with_remedy(runner, plain.message))
        remarks: tuple[str, ...] = getattr(runner, "remarks", ())
        if remarks and plain.status is Status.OK:
            self.about[runner.name] = remarks
        return plain

    def _runs_with_taps(
        self, runner: "Runner", feeds: "Mapping[str, Array]", plain: Outcome
    ) -> Iterator[Outcome]:
        """Run one runner with taps, as often as without, until it fails."""
        taps = tuple(self.nodes)
        for _ in range(self.settings.repeat if plain.status is Status.OK and taps else 0):
            tapped = runner.run(
                self.path, feeds, taps=taps, tap_memory=self.settings.tap_memory, **self._options
            )
            self._note(tapped)
            if tapped.status is not Status.OK:
                reason = f"the run with taps: {tapped.status} {tapped.message}".rstrip()
                yield replace(tapped, runs=(), tapped=tuple(Tapped(tap, problem=reason) for tap in taps))
                return
            answered = {one.tap for one in tapped.tapped}
            silent = tuple(Tapped(tap, problem=UNANSWERED) for tap in taps if tap not in answered)
            yield replace(tapped, tapped=(*tapped.tapped, *silent))

    @property
    def _options(self) -> dict[str, Any]:
        return {"precision": self.settings.precision, "timeout": self.settings.timeout}

    def _note(self, outcome: Outcome) -> None:
        """Enter what else a runner has to say of a run."""
        for remark in outcome.remarks:
            self.remarks[f"{outcome.runner}: {remark}"] = None

    def _judged(self, outcome: Outcome, number: int) -> "list[_Said]":
        """Return what is to be said of tapped nodes, for each run with taps.

        A node that the model does not have is passed over.
        """
        return [
            [one for tapped in repetition for one in self._judged_node(tapped, outcome, number)]
            for repetition in by_repetition(outcome.tapped)
        ]

    def _judged_node(self, tapped: Tapped, outcome: Outcome, number: int) -> "_Said":
        said: _Said = []
        if not self.judge.knows(tapped.tap):
            return said
        if tapped.problem or not tapped.executions:
            said.append(NotTapped(outcome.runner, tapped.tap.scope, tapped.problem or NEVER))
        for found in self.judge.judge(tapped, outcome.runner, number, outcome.precision):
            if isinstance(found, Unjudged):
                said.append(NotTapped(outcome.runner, tapped.tap.scope, found.reason))
            said.append(without_arrays(found) if isinstance(found, Comparison) else found)
        return said

    def _enter(
        self,
        number: int,
        outcomes: Sequence[Outcome],
        said: "_Said",
        changes: Sequence[Changed],
        numpy: Outcome | None,
        *,
        with_outputs: bool = True,
    ) -> None:
        """Enter what is to be said of one case."""
        for outcome in outcomes:
            self.outcomes[outcome.runner] = worse(self.outcomes.get(outcome.runner), outcome)
        settings = self.settings
        self._open.pop(number, None)
        of_nodes = [one for one in said if isinstance(one, Comparison)]
        of_outputs = list(self._of_outputs(number, outcomes)) if with_outputs else []
        odd = [
            one for found in (of_outputs, of_nodes) for one in find_odd(found, outcomes, settings.tolerances)
        ]
        told = TapChanges(number, settings.tolerances, numpy, of_outputs, odd, said).tell(
            changes, lambda: self.open_outputs(number)
        )
        of_outputs += told.comparisons
        self.odd += [*odd, *told.odd]
        self.remarks |= dict.fromkeys(told.remarks)
        self.of_outputs += map(without_arrays, of_outputs)
        self.of_nodes += of_nodes
        for one in said:
            if isinstance(one, NotTapped):
                self.not_tapped.setdefault((one.runner, one.node), one)
        guarded = dict.fromkeys(one for one in said if isinstance(one, Guarded))
        self.guarded += guarded
        if any(one.is_illegal for one in guarded):
            for runner in self.runners:  # some plugins write outside of their memory then
                runner.close()

    def _of_outputs(self, number: int, outcomes: Sequence[Outcome]) -> Iterator[Comparison]:
        """Yield the comparisons of outputs of one case."""
        settings = self.settings
        found = list(compare_outputs(outcomes, number, settings.tolerances, pairwise=settings.pairwise))
        if any(one.measure.verdict is Verdict.MISMATCH for one in found):
            open = self.open_outputs(number)
            if open:
                found = list(
                    compare_outputs(
                        outcomes, number, settings.tolerances, open=open, pairwise=settings.pairwise
                    )
                )
        yield from found
        for voice in outcomes:
            yield from compare_runs(voice, number)

    def open_outputs(self, number: int) -> Mapping[str, OpenOutput]:
        """Return the outputs of which the document leaves something open for the inputs of a case."""
        if number not in self._open:
            sight, seeds = self._sights.get(number, Sight()), self.judge.contested.get(number, {})
            is_open = sight.contested or seeds or sight.open
            self._open[number] = (
                self.numpy.open_outputs(self._feeds[number], sight, seeds, self.settings.timeout)
                if is_open
                else {}
            )
        return self._open[number]

    def result(self, feeds: "tuple[Mapping[str, Array], ...]") -> Compared:
        """Return what was found."""
        judged = {(one.subject, one.node) for one in self.of_nodes}
        return Compared(
            self.path,
            self.settings,
            tuple(self.outcomes.values()),
            (*self.of_outputs, *self.of_nodes),
            tuple(self.guarded),
            tuple(self.odd),
            tuple(one for key, one in self.not_tapped.items() if one.reason != NEVER or key not in judged),
            tuple(self.remarks),
            self.facts,
            feeds,
            tuple(self.runs),
            types={tap.scope: _type(one.node) for tap, one in self.nodes.items()},
            operators={tap.scope: one.operator for tap, one in self.nodes.items()},
            devices=self.devices,
            about=self.about,
        )


def _with_remedy(runner: "Runner", reason: str) -> str:
    """Say what to install where something is missing."""
    remedy = getattr(runner, "remedy", None)
    found = remedy(reason) if remedy is not None else ""
    return f"{reason}; {found}" if found else reason


def _type(node: Node) -> str:
    """Return the element type of the output, "" if it is not known."""
    type = node.outputs[0].element_type if node.outputs else None
    return "" if type is None else type.name


def _with_taps(plain: Outcome, *tapped: Outcome) -> Outcome:
    """Return an outcome with all that came of runs with taps."""
    if not tapped:
        return plain
    return replace(
        plain,
        tapped=tuple(one for run in tapped for one in run.tapped),
        tapped_runs=tuple(run.outputs for run in tapped if run.outputs),
    )
