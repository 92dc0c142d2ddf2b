"""Both whole models on a device, before the new one is written."""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ir_scatter.analysis.conditions import Condition
from ir_scatter.compare.guard import Reference, Sight
from ir_scatter.compare.judge import compare_outputs
from ir_scatter.compare.result import Comparison, Settings, Verdict
from ir_scatter.compare.run import Pair, run_both
from ir_scatter.convert.conversion import Conversion, Refused
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import Error
from ir_scatter.core.shapes import show_numbers
from ir_scatter.formats import FORMATS
from ir_scatter.inputs.constraints import IndexConstraint
from ir_scatter.inputs.model import draw_feeds
from ir_scatter.reading import read
from ir_scatter.rewrites.refusals import Reason
from ir_scatter.runners.base import Outcome, Status

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array
    from ir_scatter.runners.base import Runner

CASES = 2
"""On how many generated inputs whole models are compared."""

_SETTINGS = Settings()
_CANNOT_TELL = frozenset({Status.UNAVAILABLE, Status.TIMEOUT})


@dataclass(frozen=True, slots=True, eq=False)
class OnDevices:
    """What both models gave on devices.

    Attributes:
        conversion: with a refusal more for each device where outputs differ or the new model fails.
        equal: on how many inputs outputs were equal, by runner.
        failed: runners that could not tell, and why.
        remarks: what else there is to say.
    """

    conversion: Conversion
    equal: Mapping[str, int]
    failed: Mapping[str, str]
    remarks: tuple[str, ...]


def verify_on(conversion: Conversion, devices: Sequence[str], before: str | None = None) -> OnDevices:
    """Run the model before and after on devices and compare the outputs, in processes of their own.

    Args:
        conversion: the nodes that were rewritten.
        devices: the names of runners.
        before: the model that is the one before; None for the source.

    Raises:
        UsageError: there is no such device.
        CannotWrite: there is no room for the new model among the temporary files.
    """
    from ir_scatter import runners

    found = list({runner.name: runner for runner in map(runners.find, devices)}.values())
    old = before or conversion.origin or conversion.model.path
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder) / f"converted{FORMATS[conversion.model.format].suffix}"
        conversion.write(new, partial=True)
        return compare_models(conversion, old, new, found)


def compare_models(conversion: Conversion, old: str, new: Path, found: "Sequence[Runner]") -> OnDevices:
    """Run two models on runners and compare their outputs; see `verify_on`."""
    models = read(old), read(new)
    equal, failed, refused = dict[str, int](), dict[str, str](), list(conversion.refused)
    remarks: dict[str, None] = {}
    try:
        constraints = constraints_of(conversion)
        seeds = range(conversion.seed, conversion.seed + CASES)
        cases = [draw_feeds(models[0], seed, constraints=constraints).feeds for seed in seeds]
    except Error as error:
        failed, found = {runner.name: f"no inputs could be drawn: {error}" for runner in found}, ()
    reference = Reference(models[0])
    for runner in found:
        name = runner.name
        for pair in run_both(models, [runner], _SETTINGS, cases):
            judged = _judge(pair, reference, cases[pair.case])
            if judged.remark:
                remarks[f"{name}: {judged.remark}"] = None
            if judged.is_equal:
                equal[name] = equal.get(name, 0) + 1
            if judged.difference:
                place = Location(conversion.origin or conversion.model.path)
                refused.append(Refused(Reason.NOT_EQUAL, f"{name}: {judged.difference}", "", place))
            if judged.failure:
                failed[name] = judged.failure
            if judged.difference or judged.failure:
                equal.pop(name, None)
                break
        runner.close()
    told = replace(conversion, refused=tuple(refused))
    return OnDevices(told, equal, failed, (*remarks, *(f"{name}: {why}" for name, why in failed.items())))


def constraints_of(conversion: Conversion) -> Mapping[str, IndexConstraint]:
    """Return what inputs keep to, by node: for others the new model need not be right."""
    return {
        one.node.scope: IndexConstraint(
            are_unique=Condition.UNIQUE in one.assumptions,
            are_non_negative=Condition.NON_NEGATIVE in one.assumptions,
            are_equal=Condition.EQUAL in one.assumptions,
        )
        for one in conversion.converted
        if one.assumptions
    }


def _worst_of(comparisons: Iterable[Comparison]) -> tuple[Verdict, str]:
    """Return the worst verdict on the outputs of two models, and how the output differs that has it."""
    order = list(Verdict)
    found = max(comparisons, key=lambda one: order.index(one.measure.verdict), default=None)
    if found is None or not (found.measure.worst or found.measure.remark):
        return Verdict.EQUAL, ""
    measure, got, expected = found.measure, found.got, found.expected
    if measure.verdict is Verdict.CLOSE and not measure.max_abs:  # zeros of another sign
        return Verdict.EQUAL, ""
    how = "is gone" if got is None else measure.remark
    if measure.worst is not None and got is not None and expected is not None:
        place = measure.worst.index
        how = f"is {got[place]} at {show_numbers(place)}, expected {expected[place]}"
    return measure.verdict, f"output {found.tensor} {how}"


def against_numpy(outcome: Outcome, documented: Outcome, sight: Sight) -> tuple[Verdict, str]:
    """Return the worst verdict on outputs that are held against NumPy's, and how they differ.

    Args:
        outcome: of the new model.
        documented: what NumPy makes of the old one.
        sight: what it saw.
    """
    return _worst_of(compare_outputs(outcome, documented, 0, _SETTINGS.tolerances, lambda: sight.open or {}))


class _Judged(NamedTuple):
    """What a runner says of both models on the same inputs.

    Attributes:
        difference: how they differ; "" if they do not.
        failure: why the runner cannot tell; "" if it can.
        remark: what else there is to say.
        is_equal: whether the outputs are equal.
    """

    difference: str = ""
    failure: str = ""
    remark: str = ""
    is_equal: bool = False


def _judge(pair: Pair, reference: Reference, feeds: "Mapping[str, Array]") -> _Judged:
    before, after = pair.before, pair.after
    if before.status in _CANNOT_TELL:
        return _Judged(failure=_shown(before))
    if after.status is not Status.OK:
        if before.status is Status.OK and after.status not in _CANNOT_TELL:
            return _Judged(f"the converted model is {_shown(after)}")
        return _Judged(failure=f"neither model runs: {_shown(after)}")
    if before.status is not Status.OK:
        return _gained(pair, reference, feeds)
    verdict, difference = _worst_of(pair.comparisons)
    if verdict is Verdict.CONTESTED:
        _, sight = reference.start(feeds)(_SETTINGS.timeout)
        node = next(iter(sorted(sight.contested)), "a node")
        return _Judged(failure=f"{difference}, but targets of {node} repeat in any order (case {pair.case})")
    if verdict.is_difference:
        return _Judged(f"{difference} (case {pair.case})")
    return _Judged(remark="outputs are equal but for rounding" if difference else "", is_equal=True)


def _gained(pair: Pair, reference: Reference, feeds: "Mapping[str, Array]") -> _Judged:
    """Hold the new model against NumPy where the old one does not run."""
    gained = f"the model before is {_shown(pair.before)}; the converted one runs"
    documented, sight = reference.start(feeds)(_SETTINGS.timeout)
    if documented.status is not Status.OK:
        return _Judged(remark=f"{gained}, and there is nothing to compare it with")
    verdict, difference = against_numpy(pair.after, documented, sight)
    if verdict.is_difference:
        return _Judged(f"{gained}, but {difference} in NumPy")
    is_open = verdict is Verdict.CONTESTED
    told = "but not as NumPy, targets repeat" if is_open else "and gives what NumPy gives"
    return _Judged(remark=f"{gained}, {told}")


def _shown(outcome: Outcome) -> str:
    return f"{outcome.status}: {outcome.message}" if outcome.message else str(outcome.status)
