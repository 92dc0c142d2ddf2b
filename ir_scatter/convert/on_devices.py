"""Runs the original and the converted model on devices and compares them before anything is written."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ir_scatter import runners
from ir_scatter.compare.guard import Observations
from ir_scatter.compare.judge import compare_outputs
from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.numpy_source import Reference
from ir_scatter.compare.result import CompareSettings, Comparison
from ir_scatter.compare.run import run_both
from ir_scatter.convert.conversion import Conversion, ConversionRun, Refused
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import Error
from ir_scatter.core.shapes import show_numbers
from ir_scatter.core.temporary import temporary_folder
from ir_scatter.formats import FORMATS
from ir_scatter.inputs.constraints import Conditions
from ir_scatter.inputs.model import draw_feeds
from ir_scatter.reading import read
from ir_scatter.rewrites.refusals import Reason
from ir_scatter.runners.base import Outcome, Status

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

CASES = 2
"""Number of random inputs on which whole models are compared; each runs twice on every device."""

_DRAWS = 3
"""Number of kinds of index values among the inputs; the first kind has negative indices."""

_SETTINGS = CompareSettings()
_CANNOT_TELL = frozenset({Status.UNAVAILABLE, Status.TIMEOUT})


def verify_on(done: ConversionRun, devices: Sequence[str], before: str | None = None) -> ConversionRun:
    """Run the original and the converted model on devices, in child processes, and compare the outputs.

    The returned result has an additional refusal for each device on which outputs differ or the new model
    fails. `before`, if not None, is the path of another original model.
    """
    named_runners = {runner.name: runner for runner in map(runners.find, devices)}
    conversion = done.conversion
    path = conversion.origin or conversion.model.path
    equal, failed, refused = dict[str, int](), dict[str, str](), list(conversion.refused)
    remarks: dict[tuple[str, str], str] = {}
    with temporary_folder() as folder:
        new = Path(folder) / f"converted{FORMATS[conversion.model.format].suffix}"
        conversion.write(new, partial=True)
        models = read(before or path), read(new)
        try:
            constraints = constraints_of(conversion)
            first = _DRAWS * conversion.seed
            seeds = range(first, first + CASES)
            cases = [draw_feeds(models[0], seed, constraints=constraints).feeds for seed in seeds]
        except Error as error:
            failed, named_runners = dict.fromkeys(named_runners, f"no inputs could be generated: {error}"), {}
        reference = Reference(models[0])
        for name, runner in named_runners.items():
            for number, pair in enumerate(run_both(models, runner, _SETTINGS, cases)):
                state, text = _judge(*pair, reference, number, cases[number])
                if state in {"equal", "gained"}:
                    remarks = ({(name, state): f"{name}: {text}"} if text else {}) | remarks
                    equal |= {name: equal.get(name, 0) + 1} if state == "equal" else {}
                    continue
                if state == "different":
                    refused.append(Refused(Reason.NOT_EQUAL, f"{name}: {text}", "", Location(path)))
                else:
                    failed[name] = text
                equal.pop(name, None)
                break
            runner.close()
    return replace(
        done,
        conversion=replace(conversion, refused=tuple(refused)),
        devices={**done.devices, **equal},
        failed_devices=failed,
        remarks=(*done.remarks, *remarks.values(), *(f"{name}: {why}" for name, why in failed.items())),
    )


def constraints_of(conversion: Conversion) -> Mapping[str, Conditions]:
    """Return the conditions on inputs that the new model depends on, by node."""
    return {converted.node.scope: frozenset(converted.assumptions) for converted in conversion.converted}


def against_numpy(outcome: Outcome, documented: Outcome, observations: Observations) -> tuple[Verdict, str]:
    """Return the worst verdict on outputs of the new model, and their difference from the specification."""
    return _worst_of(
        compare_outputs(outcome, documented, 0, _SETTINGS.tolerances, lambda: observations.unspecified or {})
    )


def _worst_of(comparisons: Iterable[Comparison]) -> tuple[Verdict, str]:
    order = list(Verdict)
    worst = max(comparisons, key=lambda comparison: order.index(comparison.measure.verdict), default=None)
    if worst is None or not (worst.measure.worst or worst.measure.remark):
        return Verdict.EQUAL, ""
    measure, got, expected = worst.measure, worst.got, worst.expected
    if measure.verdict is Verdict.CLOSE and not measure.max_abs:  # they differ in the sign of zeros only
        return Verdict.EQUAL, ""
    how = "is missing" if got is None else measure.remark.replace(", the other ", ", expected ")
    if measure.worst is not None and got is not None and expected is not None:
        place = measure.worst.index
        how = f"is {got[place]} at {show_numbers(place)}, expected {expected[place]}"
    return measure.verdict, f"output {worst.tensor} {how}"


def _judge(
    before: Outcome,
    after: Outcome,
    comparisons: Sequence[Comparison],
    reference: Reference,
    case: int,
    feeds: "Mapping[str, Array]",
) -> tuple[str, str]:
    """Return a state and its explanation: "equal", "different", "failed" or "gained" on one runner.

    "gained": the original model fails or has a wrong result, and the new model agrees with NumPy.
    """
    if before.status in _CANNOT_TELL:
        return "failed", _shown(before)
    if after.status is not Status.OK:
        if before.status is Status.OK and after.status not in _CANNOT_TELL:
            return "different", f"the converted model is {_shown(after)}"
        return "failed", f"neither model runs: {_shown(after)}"
    if before.status is Status.OK:
        verdict, difference = _worst_of(comparisons)
        if verdict is Verdict.CONTESTED:
            _, observations = reference.start(feeds)(_SETTINGS.timeout)
            node = next(iter(sorted(observations.contested)), "a node")
            return (
                "failed",
                f"{difference}, but repeated targets of {node} have no specified order (case {case})",
            )
        if verdict.is_difference:
            documented, observations = reference.start(feeds)(_SETTINGS.timeout)
            if documented.status is Status.OK:
                was, wrong = against_numpy(before, documented, observations)
                now, _ = against_numpy(after, documented, observations)
                if was.is_difference and not now.is_difference:
                    return "gained", f"before, {wrong} in NumPy; now it agrees with NumPy"
            return "different", f"{difference} (case {case})"
        return "equal", "outputs are equal except for rounding" if difference else ""
    gained = f"the original model is {_shown(before)}; the converted one runs"
    documented, observations = reference.start(feeds)(_SETTINGS.timeout)
    if documented.status is not Status.OK:
        return "gained", f"{gained}, but no result is available for comparison"
    verdict, difference = against_numpy(after, documented, observations)
    if verdict.is_difference:
        return "different", f"{gained}, but {difference} in NumPy"
    is_open = verdict is Verdict.CONTESTED
    how = "but differs from NumPy, which repeated targets allow" if is_open else "and agrees with NumPy"
    return "gained", f"{gained}, {how}"


def _shown(outcome: Outcome) -> str:
    return f"{outcome.status}: {outcome.message}" if outcome.message else str(outcome.status)
