"""Two models on the same runners and inputs: a conversion, or two exports."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ir_scatter.compare.session import Compared, Settings, make_cases
from ir_scatter.compare.tensors import measure
from ir_scatter.compare.verdicts import Comparison, Level, Measure, Verdict
from ir_scatter.compare.voices import NumpyVoice
from ir_scatter.errors import BadFeed
from ir_scatter.runners.outcome import Outcome, Status
from ir_scatter.validate import read

if TYPE_CHECKING:
    from ir_scatter.constants import Array
    from ir_scatter.runners.runner import Runner


def compare_two(
    before: "str | Path",
    after: "str | Path",
    runners: "Sequence[Runner]",
    settings: Settings,
    *,
    with_numpy: bool = True,
    feeds: "Sequence[Mapping[str, Array]] | None" = None,
) -> Compared:
    """Run two models on the same inputs and compare their outputs by name, on each runner for itself.

    Args:
        before: the reference.
        after: the subject; it must take the same inputs.
        runners: in the order in which they were named.
        settings: what is wanted.
        with_numpy: whether NumPy is one of the voices.
        feeds: the inputs by the names of the first model; None to generate them for it.

    Raises:
        UnreadableModel: a model cannot be read.
        BadFeed: the second model does not take the inputs of the first.
        NoInputs: no legal inputs were found.
    """
    first, second = read(before), read(after)
    given = tuple(feeds) if feeds is not None else tuple(make_cases(first, settings))
    pairs = [_Voices(runner.name, _runner(runner, before, after, settings)) for runner in runners]
    if with_numpy:
        old, new = NumpyVoice(before), NumpyVoice(after)
        pairs.insert(0, _Voices("numpy", lambda feeds: (old.run(feeds), new.run(feeds))))
    outcomes: dict[str, Outcome] = {}
    comparisons: list[Comparison] = []
    for number, case in enumerate(given):
        _demand_same_inputs(case, second.inputs, str(after))
        for pair in pairs:
            left, right = pair.run(case)
            comparisons += _compared(left, right, number, settings, (str(before), str(after)))
            worse = right if left.status is Status.OK else left
            if pair.name not in outcomes or outcomes[pair.name].status is Status.OK:
                outcomes[pair.name] = worse
    return Compared(
        str(before), settings, tuple(outcomes.values()), tuple(comparisons), feeds=given, other=str(after)
    )


class _Voices:
    """One runner on both models."""

    def __init__(self, name: str, run: "_Run") -> None:
        self.name, self.run = name, run


def _runner(runner: "Runner", before: "str | Path", after: "str | Path", settings: Settings) -> "_Run":
    def run(feeds: "Mapping[str, Array]") -> tuple[Outcome, Outcome]:
        options = {"precision": settings.precision, "timeout": settings.timeout}
        left = runner.run(before, feeds, repeat=settings.repeat, **options)  # type: ignore[arg-type]
        if left.status is Status.UNAVAILABLE:
            return left, left
        return left, runner.run(after, feeds, repeat=settings.repeat, **options)  # type: ignore[arg-type]

    return run


def _compared(
    left: Outcome, right: Outcome, case: int, settings: Settings, models: tuple[str, str]
) -> Iterator[Comparison]:
    """Yield a comparison for each output of the first model."""
    if left.status is not Status.OK or right.status is not Status.OK:
        return
    for name, expected in left.outputs.items():
        got = right.outputs.get(name)
        if got is None:
            remark = "is no output of the second model"
            found = Measure(Verdict.MISMATCH, expected.size, expected.size, remark=remark)
        else:
            found = measure(got, expected, settings.tolerances.find((name,), expected, right.precision))
        one = Comparison(
            Level.MODEL, None, name, case, right.runner, left.runner, found, got=got, expected=expected
        )
        yield replace(one, subject_model=models[1], reference_model=models[0])


def _demand_same_inputs(feeds: "Mapping[str, Array]", inputs: Sequence[frozenset[str]], path: str) -> None:
    for names in inputs:
        if not names & feeds.keys():
            known = ", ".join(sorted(feeds)) or "none"
            raise BadFeed(f"{path} has an input {min(names)}, expected those of the first model: {known}")


if TYPE_CHECKING:
    from collections.abc import Callable

    _Run = Callable[[Mapping[str, Array]], tuple[Outcome, Outcome]]
