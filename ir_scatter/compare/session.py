"""One model on several runners: inputs, runs, taps, and what is said of them."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ir_scatter.compare.downstream import downstream_outputs
from ir_scatter.compare.nodes import NodeJudge, TappedNode, scatter_nodes
from ir_scatter.compare.outputs import compare_outputs, find_odd
from ir_scatter.compare.tensors import measure
from ir_scatter.compare.tolerances import EXACT, Tolerances
from ir_scatter.compare.verdicts import Comparison, Guarded, Odd, Verdict
from ir_scatter.compare.voices import NUMPY, NumpyVoice
from ir_scatter.model import Model
from ir_scatter.runners.outcome import NodeFacts, Outcome, Status, Tapped, tap_of
from ir_scatter.shapes import Shape
from ir_scatter.validate import read

if TYPE_CHECKING:
    from ir_scatter.constants import Array
    from ir_scatter.runners.runner import Runner

SAVED = "saved:"
"""What stands before the name of a runner whose results were saved."""

TIME_LIMIT = 600.0
TAP_MEMORY = 1 << 30


@dataclass(frozen=True, slots=True)
class Settings:
    """What is wanted of a comparison.

    Attributes:
        seed: for generated inputs.
        cases: on how many inputs.
        repeat: how often each runner runs each of them.
        values: "plain" or "edge".
        input_shapes: shapes for inputs of the model by name.
        tolerances: how far elements may be apart.
        precision: what runners should compute in.
        pairwise: whether every pair of runners is compared at level model.
        timeout: in seconds, for each run.
        tap_memory: bytes of tapped tensors that may be held at once.
    """

    seed: int = 0
    cases: int = 1
    repeat: int = 1
    values: str = "plain"
    input_shapes: Mapping[str, Shape] = field(default_factory=dict)
    tolerances: Tolerances = field(default_factory=Tolerances)
    precision: str = "f32"
    pairwise: bool = False
    timeout: float = TIME_LIMIT
    tap_memory: int = TAP_MEMORY


@dataclass(frozen=True, slots=True)
class NotTapped:
    """A node whose inputs could not be had on a runner, and why."""

    runner: str
    node: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """What came of the comparison of one model, or of two.

    Attributes:
        model: the path; of two models the first.
        settings: what was wanted.
        outcomes: one for each runner, the first that was not ok if there is one.
        comparisons: of outputs, then of nodes.
        guarded: what is to be said of indices.
        odd: who says something else than two others.
        not_tapped: nodes without a level of their own.
        remarks: what else there is to say.
        facts: what each runner made of the scatter nodes.
        feeds: the inputs of each case.
        runs: for each case the outcomes of all runners, for saving.
        other: the second model, "" if there is none.
    """

    model: str
    settings: Settings
    outcomes: tuple[Outcome, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    guarded: tuple[Guarded, ...] = ()
    odd: tuple[Odd, ...] = ()
    not_tapped: tuple[NotTapped, ...] = ()
    remarks: tuple[str, ...] = ()
    facts: Mapping[str, tuple[NodeFacts, ...]] = field(default_factory=dict)
    feeds: "tuple[Mapping[str, Array], ...]" = ()
    runs: tuple[tuple[Outcome, ...], ...] = ()
    other: str = ""

    @property
    def differs(self) -> bool:
        """Tell whether something differs, changes from run to run, or got illegal indices."""
        found = any(one.measure.verdict.is_difference for one in self.comparisons)
        return found or any(one.is_illegal for one in self.guarded)

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """Return the runners that could not run; that NumPy does not know an operator is no failure."""
        return tuple(
            one
            for one in self.outcomes
            if one.status is not Status.OK
            and not one.runner.startswith(SAVED)
            and not (one.runner == NUMPY and one.status is Status.UNSUPPORTED)
        )


def compare(
    path: "str | Path",
    runners: "Sequence[Runner]",
    settings: Settings,
    *,
    with_numpy: bool = True,
    feeds: "Sequence[Mapping[str, Array]] | None" = None,
) -> Compared:
    """Run a model on NumPy and on runners, compare outputs, and every scatter node for itself.

    Args:
        path: of the model.
        runners: in the order in which they were named.
        settings: what is wanted.
        with_numpy: whether NumPy is one of the voices.
        feeds: the inputs; None to generate them.

    Raises:
        UnreadableModel: the model cannot be read.
        BadFeed: a feed is missing, superfluous, or of the wrong type or shape.
        NoInputs: no legal inputs were found.
    """
    model = read(path)
    given = tuple(feeds) if feeds is not None else tuple(make_cases(model, settings))
    session = Session(model, str(path), runners, settings, with_numpy=with_numpy)
    for number, case in enumerate(given):
        session.run_case(number, case)
    return session.result(given)


def make_cases(model: Model, settings: Settings) -> "Iterator[dict[str, Array]]":
    """Draw the inputs of each case."""
    from ir_scatter.cases import make_feeds

    for number in range(settings.cases):
        yield make_feeds(model, settings.seed + number, settings.input_shapes, settings.values)


class Session:
    """Collects what runners say of one model."""

    def __init__(
        self, model: Model, path: str, runners: "Sequence[Runner]", settings: Settings, *, with_numpy: bool
    ) -> None:
        self.model, self.path, self.runners, self.settings = model, path, runners, settings
        self.numpy = NumpyVoice(path) if with_numpy else None
        self.nodes: dict[str, TappedNode] = {one.node.scope: one for one in scatter_nodes(model)}
        self.taps = [tap_of(one.node, model.format) for one in self.nodes.values()]
        self.judge = NodeJudge(self.nodes, settings.tolerances)
        self.outcomes: dict[str, Outcome] = {}
        self.of_outputs: list[Comparison] = []
        self.of_nodes: list[Comparison] = []
        self.guarded: list[Guarded] = []
        self.odd: list[Odd] = []
        self.not_tapped: dict[tuple[str, str], NotTapped] = {}
        self.remarks: dict[str, None] = {}
        self.facts: dict[str, tuple[NodeFacts, ...]] = {}
        self.runs: list[tuple[Outcome, ...]] = []

    def run_case(self, number: int, feeds: "Mapping[str, Array]") -> None:
        """Run all voices on one set of inputs; NumPy computes while the others do."""
        with ThreadPoolExecutor(1) as pool:
            numpy = pool.submit(self.numpy.run, feeds) if self.numpy else None
            found = [self._run(runner, number, feeds) for runner in self.runners]
            outcomes = [*self._finished(numpy), *found]
        for outcome in outcomes:
            known = self.outcomes.get(outcome.runner)
            if known is None or (known.status is Status.OK and outcome.status is not Status.OK):
                self.outcomes[outcome.runner] = outcome
        contested = downstream_outputs(self.model, self.judge.contested)
        compared = list(
            compare_outputs(
                outcomes,
                number,
                self.settings.tolerances,
                contested=contested,
                pairwise=self.settings.pairwise,
            )
        )
        self.of_outputs += compared
        self.odd += find_odd(compared, outcomes)
        self.odd += find_odd([one for one in self.of_nodes if one.case == number], outcomes)
        self.runs.append(tuple(outcomes))

    @staticmethod
    def _finished(numpy: "Future[Outcome] | None") -> list[Outcome]:
        return [] if numpy is None else [numpy.result()]

    def _run(self, runner: "Runner", number: int, feeds: "Mapping[str, Array]") -> Outcome:
        """Run one runner, without taps and with them."""
        settings = self.settings
        known = self.outcomes.get(runner.name)
        if known is not None and known.status is Status.UNAVAILABLE:
            return known
        outcome = runner.run(
            self.path,
            feeds,
            precision=settings.precision,
            repeat=settings.repeat,
            profile=number == 0,
            timeout=settings.timeout,
        )
        if outcome.facts:
            self.facts[runner.name] = outcome.facts
        if outcome.status is Status.OK and self.taps:
            outcome = self._tap(runner, number, feeds, outcome)
        return outcome

    def _tap(self, runner: "Runner", number: int, feeds: "Mapping[str, Array]", plain: Outcome) -> Outcome:
        """Run it again with taps, and judge each node."""
        settings = self.settings
        tapped = runner.run(
            self.path,
            feeds,
            taps=self.taps,
            precision=settings.precision,
            tap_memory=settings.tap_memory,
            timeout=settings.timeout,
        )
        if tapped.status is not Status.OK:
            self.remarks[f"{runner.name}: with taps: {tapped.status} {tapped.message}".rstrip()] = None
            return plain
        self._compare_taps(plain, tapped)
        for one in tapped.tapped:
            self.judge_tap(one, runner.name, number, plain.precision)
        return replace(plain, tapped=tapped.tapped)

    def _compare_taps(self, plain: Outcome, tapped: Outcome) -> None:
        """Note outputs that taps have changed."""
        for name, expected in plain.outputs.items():
            got = tapped.outputs.get(name)
            if got is not None and measure(got, expected, EXACT).verdict is not Verdict.EQUAL:
                message = f"{plain.runner}: output {name} changes when nodes are tapped: fusions differ"
                self.remarks[message] = None

    def judge_tap(self, tapped: Tapped, runner: str, number: int, precision: str) -> None:
        """Enter what is to be said of a tapped node; one that the model does not have is passed over."""
        scope = tapped.tap.scope
        if scope not in self.nodes:
            return
        if tapped.problem:
            self.not_tapped.setdefault((runner, scope), NotTapped(runner, scope, tapped.problem))
            return
        for found in self.judge.judge(tapped, runner, number, precision):
            if isinstance(found, Guarded):
                self.guarded.append(found)
            else:
                self.of_nodes.append(found)

    def result(self, feeds: "tuple[Mapping[str, Array], ...]") -> Compared:
        """Return what was found."""
        return Compared(
            self.path,
            self.settings,
            tuple(self.outcomes.values()),
            (*self.of_outputs, *self.of_nodes),
            tuple(self.guarded),
            tuple(self.odd),
            tuple(self.not_tapped.values()),
            tuple(self.remarks),
            self.facts,
            feeds,
            tuple(self.runs),
        )
