"""Two models on the same runners and inputs: a conversion, or two exports."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from ir_scatter.compare.contested import OpenOutput, excused
from ir_scatter.compare.guard import Seeds, Sight
from ir_scatter.compare.nodes import NodeJudge, nodes_by_tap
from ir_scatter.compare.one_model import make_cases
from ir_scatter.compare.outputs import compare_pair, compare_runs
from ir_scatter.compare.session import Compared, Settings, without_arrays, worse
from ir_scatter.compare.verdicts import Comparison, Verdict
from ir_scatter.compare.voices import NumpyVoice
from ir_scatter.core.errors import BadFeed, Error
from ir_scatter.core.model import Model
from ir_scatter.runners.base import Outcome, Status

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array
    from ir_scatter.runners.base import Runner

    _Feeds = Mapping[str, Array]


def compare_two(
    models: Sequence[Model],
    runners: "Sequence[Runner]",
    settings: Settings,
    *,
    with_numpy: bool = True,
    feeds: "_Feeds | None" = None,
) -> Compared:
    """Run two models on the same inputs and compare their outputs by name, on each runner for itself.

    Args:
        models: the reference, and the subject, which must take the same inputs.
        runners: in the order in which they were named.
        settings: what is wanted.
        with_numpy: whether NumPy is one of the voices.
        feeds: the inputs of the first case by the names of the first model; None to generate them.

    Raises:
        BadFeed: the second model does not take the inputs of the first.
        NoInputs: no legal inputs were found.
    """
    before, after = models
    cases = tuple(make_cases(before, settings, feeds))
    voices: list[_Voice] = [_RunnerVoice(runner, models, settings) for runner in runners]
    if with_numpy:
        voices.insert(0, _NumpyVoice(models, settings))
    outcomes: dict[str, Outcome] = {}
    comparisons: list[Comparison] = []
    remarks: dict[str, None] = {}
    for number, case in enumerate(cases):
        feeds_of = (case, _fitting(case, models))
        for voice in voices:
            pair, found = _on(voice, feeds_of, number, settings, models)
            for outcome in pair:
                outcomes[outcome.runner] = worse(outcomes.get(outcome.runner), outcome)
                remarks.update((f"{outcome.runner}: {remark}", None) for remark in outcome.remarks)
            comparisons += map(without_arrays, found)
    return Compared(
        before.path,
        settings,
        tuple(outcomes.values()),
        tuple(comparisons),
        remarks=tuple(remarks),
        feeds=cases,
        other=after.path,
    )


def _on(
    voice: "_Voice", feeds: "Sequence[_Feeds]", case: int, settings: Settings, models: Sequence[Model]
) -> tuple[list[Outcome], list[Comparison]]:
    """Return what a runner makes of both models, and how that differs."""
    pair = voice.run(feeds)
    found = list(_compared(pair, case, settings, models))
    if any(one.measure.verdict is Verdict.MISMATCH and one.expected is not None for one in found):
        before, after = (voice.open_outputs(*both) for both in zip(models, feeds, strict=True))
        found = [_excused(one, after, before) for one in found]
    told = [
        outcome if outcome.status is Status.OK else _at(model, outcome)
        for model, outcome in zip(models, pair, strict=True)
    ]
    return told, found


class _Voice(ABC):
    """One runner on both models."""

    def __init__(self, models: Sequence[Model], settings: Settings) -> None:
        self.models, self.settings = models, settings
        self.evaluators = {model: NumpyVoice(model, is_wanted=True) for model in models}

    @abstractmethod
    def run(self, feeds: "Sequence[_Feeds]") -> list[Outcome]:
        """Return what comes of the first model, and of the second."""

    @abstractmethod
    def open_outputs(self, model: Model, feeds: "_Feeds") -> Mapping[str, OpenOutput]:
        """Return the outputs of a model of which the document leaves something open for these inputs."""


class _NumpyVoice(_Voice):
    """The evaluator."""

    def __init__(self, models: Sequence[Model], settings: Settings) -> None:
        super().__init__(models, settings)
        self._sights: dict[Model, Sight] = {}

    def run(self, feeds: "Sequence[_Feeds]") -> list[Outcome]:
        found = []
        for model, given in zip(self.models, feeds, strict=True):
            running = self.evaluators[model].start(given)
            found.append(self.evaluators[model].finish(running, self.settings.timeout))
            self._sights[model] = Sight() if found[-1].status is Status.TIMEOUT else running.sight
        return found

    def open_outputs(self, model: Model, feeds: "_Feeds") -> Mapping[str, OpenOutput]:
        return self.evaluators[model].open_outputs(feeds, self._sights[model], {}, self.settings.timeout)


class _RunnerVoice(_Voice):
    """A runtime."""

    def __init__(self, runner: "Runner", models: Sequence[Model], settings: Settings) -> None:
        super().__init__(models, settings)
        self._runner = runner

    def run(self, feeds: "Sequence[_Feeds]") -> list[Outcome]:
        found: list[Outcome] = []
        for model, given in zip(self.models, feeds, strict=True):
            if found and found[0].status is Status.UNAVAILABLE:
                return [*found, found[0]]
            found.append(self._run(model, given))
        return found

    def _run(self, model: Model, feeds: "_Feeds") -> Outcome:
        settings = self.settings
        try:
            return self._runner.run(
                model.path,
                feeds,
                precision=settings.precision,
                repeat=settings.repeat,
                timeout=settings.timeout,
            )
        except BadFeed as error:  # the feeds fit both models: this is between the runner and itself
            return Outcome(self._runner.name, Status.REFUSED, str(error))

    def open_outputs(self, model: Model, feeds: "_Feeds") -> Mapping[str, OpenOutput]:
        """Ask NumPy, and where it cannot compute the model tap the nodes; only when something differs."""
        evaluator, timeout = self.evaluators[model], self.settings.timeout
        running, sight = evaluator.start(feeds), Sight()
        with suppress(Error):
            if evaluator.finish(running, timeout).status is not Status.TIMEOUT:
                sight = running.sight
        seeds = {} if sight.open is not None else self._seeds(model, feeds)
        return evaluator.open_outputs(feeds, sight, seeds, timeout)

    def _seeds(self, model: Model, feeds: "_Feeds") -> Seeds:
        nodes = nodes_by_tap(model)
        judge = NodeJudge(nodes, self.settings.tolerances)
        precision = self.settings.precision
        outcome = self._runner.run(
            model.path, feeds, taps=tuple(nodes), precision=precision, timeout=self.settings.timeout
        )
        for tapped in outcome.tapped:
            list(judge.judge(tapped, outcome.runner, 0, outcome.precision))
        return judge.contested.get(0, {})


def _at(model: Model, outcome: Outcome) -> Outcome:
    """Say of which model a runner says something."""
    if outcome.status is Status.UNAVAILABLE:
        return outcome
    return replace(outcome, message=f"{model.path}: {outcome.message}" if outcome.message else model.path)


def _compared(
    pair: Sequence[Outcome], case: int, settings: Settings, models: Sequence[Model]
) -> Iterator[Comparison]:
    """Yield a comparison for each output of the models, and of each model's runs with each other."""
    reference, subject = pair
    before, after = (model.path for model in models)
    if reference.status is Status.OK and subject.status is Status.OK:
        for one in compare_pair(subject, reference, case, settings.tolerances, {}, {}):
            yield replace(one, subject_model=after, reference_model=before)
    for outcome, path in ((reference, before), (subject, after)):
        if outcome.status is Status.OK:
            for one in compare_runs(outcome, case):
                yield replace(one, subject_model=path, reference_model=path)


def _excused(
    one: Comparison, open: Mapping[str, OpenOutput], open_before: Mapping[str, OpenOutput]
) -> Comparison:
    if one.got is None or one.expected is None or one.measure.verdict is not Verdict.MISMATCH:
        return one
    of_both = open.get(one.tensor), open_before.get(one.tensor)
    return replace(one, measure=excused(one.measure, one.got, one.expected, *of_both))


def _fitting(feeds: "_Feeds", models: Sequence[Model]) -> "_Feeds":
    """Return the feeds of the first model by names that the second model knows.

    Raises:
        BadFeed: it has another input, or lacks one, or takes another type or shape.
    """
    from ir_scatter.analysis.interpreter import wire
    from ir_scatter.evaluate.model import check_feeds

    first, second = (wire(model).inputs for model in models)
    known = {name for input in second for name in input.names}
    renamed = {}
    for name, array in feeds.items():
        own = next((input.names for input in first if name in input.names), (name,))
        renamed[next((other for other in (name, *own) if other in known), name)] = array
    try:
        check_feeds(second, renamed)
    except BadFeed as error:
        raise BadFeed(f"{models[1].path}, with the inputs of the first model: {error}") from None
    return renamed
