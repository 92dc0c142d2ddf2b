"""Both whole models on a device, before the new one is written."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ir_scatter import runners
from ir_scatter.compare.guard import Sight
from ir_scatter.compare.judge import compare_outputs
from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.numpy_source import Reference
from ir_scatter.compare.result import CompareSettings, Comparison
from ir_scatter.compare.run import run_both
from ir_scatter.convert.conversion import Conversion, Done, Refused
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
"""On how many generated inputs whole models are compared."""

_DRAWS = 3
"""After so many draws everything that indices may be was tried; the first one has negative ones."""

_SETTINGS = CompareSettings()
_CANNOT_TELL = frozenset({Status.UNAVAILABLE, Status.TIMEOUT})


def verify_on(done: Done, devices: Sequence[str], before: str | None = None) -> Done:
    """Run the model before and after on devices and compare the outputs, in processes of their own.

    What comes of it has a refusal more for each device where outputs differ or the new model fails. The
    model before is the source if no other one is named.
    """
    found = {runner.name: runner for runner in map(runners.find, devices)}
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
            failed, found = dict.fromkeys(found, f"no inputs could be drawn: {error}"), {}
        reference = Reference(models[0])
        for name, runner in found.items():
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
    """Return what inputs keep to, by node: for others the new model need not be right."""
    return {one.node.scope: frozenset(one.assumptions) for one in conversion.converted}


def against_numpy(outcome: Outcome, documented: Outcome, sight: Sight) -> tuple[Verdict, str]:
    """Return the worst verdict on outputs of the new model, and how they differ from the documented ones."""
    return _worst_of(compare_outputs(outcome, documented, 0, _SETTINGS.tolerances, lambda: sight.open or {}))


def _worst_of(comparisons: Iterable[Comparison]) -> tuple[Verdict, str]:
    order = list(Verdict)
    found = max(comparisons, key=lambda one: order.index(one.measure.verdict), default=None)
    if found is None or not (found.measure.worst or found.measure.remark):
        return Verdict.EQUAL, ""
    measure, got, expected = found.measure, found.got, found.expected
    if measure.verdict is Verdict.CLOSE and not measure.max_abs:  # zeros of another sign
        return Verdict.EQUAL, ""
    how = "is gone" if got is None else measure.remark.replace(", the other ", ", expected ")
    if measure.worst is not None and got is not None and expected is not None:
        place = measure.worst.index
        how = f"is {got[place]} at {show_numbers(place)}, expected {expected[place]}"
    return measure.verdict, f"output {found.tensor} {how}"


def _judge(
    before: Outcome,
    after: Outcome,
    comparisons: Sequence[Comparison],
    reference: Reference,
    case: int,
    feeds: "Mapping[str, Array]",
) -> tuple[str, str]:
    """Say whether both models are "equal" on a runner, "different", or "failed", and what there is to say.

    Where the old one does not run, or gives what is not documented, and the new one does what NumPy says,
    something is "gained".
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
            _, sight = reference.start(feeds)(_SETTINGS.timeout)
            node = next(iter(sorted(sight.contested)), "a node")
            return "failed", f"{difference}, but targets of {node} repeat in any order (case {case})"
        if verdict.is_difference:
            documented, sight = reference.start(feeds)(_SETTINGS.timeout)
            if documented.status is Status.OK:
                was, wrong = against_numpy(before, documented, sight)
                now, _ = against_numpy(after, documented, sight)
                if was.is_difference and not now.is_difference:
                    return "gained", f"before, {wrong} in NumPy; now it gives what NumPy gives"
            return "different", f"{difference} (case {case})"
        return "equal", "outputs are equal but for rounding" if difference else ""
    gained = f"the model before is {_shown(before)}; the converted one runs"
    documented, sight = reference.start(feeds)(_SETTINGS.timeout)
    if documented.status is not Status.OK:
        return "gained", f"{gained}, and there is nothing to compare it with"
    verdict, difference = against_numpy(after, documented, sight)
    if verdict.is_difference:
        return "different", f"{gained}, but {difference} in NumPy"
    is_open = verdict is Verdict.CONTESTED
    how = "but not as NumPy, targets repeat" if is_open else "and gives what NumPy gives"
    return "gained", f"{gained}, {how}"


def _shown(outcome: Outcome) -> str:
    return f"{outcome.status}: {outcome.message}" if outcome.message else str(outcome.status)
