"""Both whole models on a device, before the new one is written."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ir_scatter.convert.conversion import Conversion, Refused
from ir_scatter.diagnostics import Location
from ir_scatter.errors import Error
from ir_scatter.formats import IR
from ir_scatter.rewrites.refusals import Reason
from ir_scatter.runners.outcome import Outcome, Status
from ir_scatter.shapes import show, show_numbers

if TYPE_CHECKING:
    from ir_scatter.constants import Array
    from ir_scatter.runners.runner import Runner

CASES = 2
"""On how many generated inputs whole models are compared."""

_Found = tuple[Conversion, dict[str, int], dict[str, str]]


def verify_on(conversion: Conversion, devices: Sequence[str]) -> _Found:
    """Run the model before and after on devices and compare the outputs, in processes of their own.

    Returns:
        The conversion, with a refusal more if outputs differ or the new model is refused; on how
        many inputs they were equal; and which devices could not tell, and why.

    Raises:
        UsageError: there is no such device.
    """
    from ir_scatter import runners

    found = [runners.find(name) for name in devices]
    with tempfile.TemporaryDirectory() as folder:
        suffix = ".xml" if conversion.model.format == IR else ".onnx"
        new = Path(folder) / f"converted{suffix}"
        conversion.write(new, partial=True)
        return compare_models(conversion, conversion.model.path, new, found)


def compare_models(conversion: Conversion, old: str, new: Path, found: "Sequence[Runner]") -> _Found:
    """Run two models on runners and compare their outputs; see `verify_on`."""
    equal: dict[str, int] = {}
    failed: dict[str, str] = {}
    try:
        feeds = _feeds(conversion, old)
    except Error as error:
        return conversion, {}, {runner.name: f"could not be verified: {error}" for runner in found}
    refused = list(conversion.refused)
    for runner in found:
        problem, reason = _compare(runner, old, new, feeds)
        runner.close()
        if reason:
            failed[runner.name] = reason
        elif problem:
            message = f"{runner.name}: {problem}"
            refused.append(Refused(Reason.NOT_EQUAL, message, "", Location(conversion.model.path)))
        else:
            equal[runner.name] = len(feeds)
    return replace(conversion, refused=tuple(refused)), equal, failed


def _feeds(conversion: Conversion, old: str) -> "list[Mapping[str, Array]]":
    from ir_scatter.cases import make_feeds

    return [make_feeds(old, conversion.seed + case) for case in range(CASES)]


def _compare(
    runner: "Runner", old: str, new: Path, feeds: "Sequence[Mapping[str, Array]]"
) -> tuple[str, str]:
    """Return how the outputs differ, and why the runner cannot tell; both empty if they are equal."""
    for number, case in enumerate(feeds):
        before = runner.run(old, case)
        if before.status in {Status.UNAVAILABLE, Status.TIMEOUT}:
            return "", _shown(before)
        after = runner.run(new, case)
        if after.status is not Status.OK:
            if before.status is Status.OK:
                return f"the converted model is {_shown(after)}", ""
            return "", f"neither model runs: {_shown(after)}"
        if before.status is Status.OK:
            difference = _difference(before, after)
            if difference:
                return f"{difference} (case {number})", ""
    return "", ""


def _shown(outcome: Outcome) -> str:
    return f"{outcome.status}: {outcome.message}" if outcome.message else str(outcome.status)


def _difference(before: Outcome, after: Outcome) -> str:
    for name, old in before.outputs.items():
        new = after.outputs.get(name)
        if new is None:
            return f"output {name} is gone"
        if new.shape != old.shape or new.dtype != old.dtype:
            return f"output {name} is {new.dtype} {show(new.shape)}, expected {old.dtype} {show(old.shape)}"
        with np.errstate(all="ignore"):
            same = (new == old) | ((new != new) & (old != old))
        if not np.all(same):
            worst = tuple(int(part) for part in np.argwhere(~np.asarray(same))[0])
            return f"output {name} is {new[worst]} at {show_numbers(worst)}, expected {old[worst]}"
    return ""
