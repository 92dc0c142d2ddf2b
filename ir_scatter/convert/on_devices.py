"""Both whole models on a device, before the new one is written."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ir_scatter.convert.conversion import Conversion, Refused
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import Error
from ir_scatter.core.shapes import show, show_numbers
from ir_scatter.formats.base import IR
from ir_scatter.reading import read
from ir_scatter.rewrites.conditions import Condition
from ir_scatter.rewrites.refusals import Reason
from ir_scatter.runners.base import Outcome, Status
from ir_scatter.validate import validate

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array
    from ir_scatter.inputs.constraints import IndexConstraint
    from ir_scatter.inputs.model import Drawn
    from ir_scatter.runners.base import Runner

CASES = 2
"""On how many generated inputs whole models are compared."""

_CLOSE = 1e-5
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
        suffix = ".xml" if conversion.model.format == IR else ".onnx"
        new = Path(folder) / f"converted{suffix}"
        conversion.write(new, partial=True)
        return compare_models(conversion, old, new, found)


def compare_models(conversion: Conversion, old: str, new: Path, found: "Sequence[Runner]") -> OnDevices:
    """Run two models on runners and compare their outputs; see `verify_on`."""
    try:
        constraints = constraints_of(conversion)
        cases = [_draw(old, conversion.seed + number, constraints) for number in range(CASES)]
    except Error as error:
        failed = {runner.name: f"no inputs could be drawn: {error}" for runner in found}
        return OnDevices(conversion, {}, failed, tuple(_said(failed)))
    equal, failed, refused = dict[str, int](), dict[str, str](), list(conversion.refused)
    remarks: list[str] = []
    place = Location(conversion.origin or conversion.model.path)
    for runner in found:
        pair = _Pair(runner, old, new)
        pair.run(cases)
        runner.close()
        if pair.failure:
            failed[runner.name] = pair.failure
        elif pair.difference:
            message = f"{runner.name}: {pair.difference}"
            refused.append(Refused(Reason.NOT_EQUAL, message, "", place))
        elif pair.equal:
            equal[runner.name] = pair.equal
        remarks += (f"{runner.name}: {remark}" for remark in dict.fromkeys(pair.remarks))
    told = replace(conversion, refused=tuple(refused))
    return OnDevices(told, equal, failed, (*remarks, *_said(failed)))


def constraints_of(conversion: Conversion) -> "Mapping[str, IndexConstraint]":
    """Return what inputs keep to, by node: for others the new model need not be right."""
    from ir_scatter.inputs.constraints import IndexConstraint

    return {
        one.node.scope: IndexConstraint(
            are_unique=Condition.UNIQUE in one.assumptions,
            are_non_negative=Condition.NON_NEGATIVE in one.assumptions,
            are_equal=Condition.EQUAL in one.assumptions,
        )
        for one in conversion.converted
        if one.assumptions
    }


def _draw(path: str, seed: int, constraints: "Mapping[str, IndexConstraint]") -> "Drawn":
    """Draw inputs; nodes whose constant indices repeat a target are told with those that inputs make so."""
    from ir_scatter.inputs.model import draw_feeds
    from ir_scatter.rules.repeated_targets import repeated_targets

    drawn = draw_feeds(path, seed, constraints=constraints)
    constant = (
        one.node.name for one in validate(read(path)) if one.code == repeated_targets.code and one.node
    )
    return replace(drawn, repeated=tuple(dict.fromkeys((*drawn.repeated, *constant))))


def _said(failed: Mapping[str, str]) -> Iterator[str]:
    for name, reason in failed.items():
        yield f"{name}: {reason}"


class _Pair:
    """Two models on one runner.

    Attributes:
        equal: on how many inputs the outputs are equal.
        difference: how they differ; "" if they do not.
        failure: why the runner cannot tell; "" if it can.
        remarks: what else there is to say.
    """

    def __init__(self, runner: "Runner", old: str, new: Path) -> None:
        self.runner, self.old, self.new = runner, old, new
        self.equal = 0
        self.difference = self.failure = ""
        self.remarks: list[str] = []

    def run(self, cases: "Sequence[Drawn]") -> None:
        """Run both models on all inputs, up to the first that tells them apart."""
        for number, case in enumerate(cases):
            before = self.runner.run(self.old, case.feeds)
            if before.status in _CANNOT_TELL:
                self.failure = _shown(before)
                return
            after = self.runner.run(self.new, case.feeds)
            self._judge(number, case, before, after)
            if self.difference or self.failure:
                return

    def _judge(self, number: int, case: "Drawn", before: Outcome, after: Outcome) -> None:
        if after.status is not Status.OK:
            if before.status is Status.OK and after.status not in _CANNOT_TELL:
                self.difference = f"the converted model is {_shown(after)}"
            else:
                self.failure = f"neither model runs: {_shown(after)}"
            return
        if before.status is not Status.OK:
            self._against_numpy(case, before, after)
            return
        difference = _difference(before.outputs, after.outputs)
        if difference and case.repeated:
            self.failure = (
                f"{difference}, but targets of {case.repeated[0]} repeat in any order (case {number})"
            )
        elif difference:
            self.difference = f"{difference} (case {number})"
        else:
            self.equal += 1
            if _difference(before.outputs, after.outputs, 0):
                self.remarks.append("outputs are equal but for rounding")

    def _against_numpy(self, case: "Drawn", before: Outcome, after: Outcome) -> None:
        """Hold the new model against NumPy where the old one does not run."""
        from ir_scatter.evaluate.model import prepare

        gained = f"the model before is {_shown(before)}; the converted one runs"
        outputs: Mapping[str, Array] = {}
        with suppress(Error):
            outputs = prepare(self.old).run(case.feeds)
        if not outputs:
            self.remarks.append(f"{gained}, and there is nothing to compare it with")
            return
        difference = _difference(outputs, after.outputs)
        is_vague = difference and case.repeated
        told = "but not as NumPy, targets repeat" if is_vague else "and gives what NumPy gives"
        if difference and not is_vague:
            self.difference = f"{gained}, but {difference} in NumPy"
        else:
            self.remarks.append(f"{gained}, {told}")


def _shown(outcome: Outcome) -> str:
    return f"{outcome.status}: {outcome.message}" if outcome.message else str(outcome.status)


def _difference(before: "Mapping[str, Array]", after: "Mapping[str, Array]", close: float = _CLOSE) -> str:
    """Return how outputs differ, "" if they are the same within a tolerance."""
    for name, old in before.items():
        new = after.get(name)
        if new is None:
            return f"output {name} is gone"
        if new.shape != old.shape or new.dtype != old.dtype:
            return f"output {name} is {new.dtype} {show(new.shape)}, expected {old.dtype} {show(old.shape)}"
        with np.errstate(all="ignore"):
            same = (new == old) | ((new != new) & (old != old))
            if old.dtype.kind == "f" and close:
                near = max(close, 4 * float(np.finfo(old.dtype).eps))
                same |= np.isclose(new, old, near, near)
        if not np.all(same):
            worst = tuple(int(part) for part in np.argwhere(~np.asarray(same))[0])
            return f"output {name} is {new[worst]} at {show_numbers(worst)}, expected {old[worst]}"
    return ""
