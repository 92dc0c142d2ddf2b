"""What each device does with the probes of known defects: what is new or gone first, then what is here."""

from collections.abc import Iterator, Sequence

from ir_scatter.core.words import counted
from ir_scatter.defects.base import Symptom
from ir_scatter.defects.evidence import Basis
from ir_scatter.doctor import Checked, Diagnosis
from ir_scatter.report.characters import visible, wrapped

_LONGEST = 120
"""Some drivers tell how they were compiled."""


def render(found: Sequence[Diagnosis], *, width: int | None = None, verbose: bool = False) -> str:
    return "\n".join("".join(f"{line}\n" for line in _device(one, width, verbose)) for one in found)


def _device(one: Diagnosis, width: int | None, verbose: bool) -> Iterator[str]:
    about = ", ".join(filter(None, [one.device.full_name, one.release, shortened(one.device.driver)]))
    yield wrapped(visible(": ".join(filter(None, (one.device.runner, about)))), width)
    if not one.device.is_available:
        yield wrapped(visible(f"  does not run here: {one.device.reason}"), width, "  ")
        return
    if one.device.capabilities and verbose:
        yield wrapped(f"  {' '.join(one.device.capabilities)}", width, "  ")
    yield f"  {summary(one)}"
    for title, several in groups(one, verbose=verbose):
        yield f"  {title}"
        for checked in several:
            told = f"{checked.defect.code} {checked.defect.name}: {state(checked)}"
            yield wrapped(visible(f"    {told}"), width, "           ")


def shortened(driver: str) -> str:
    return driver if len(driver) <= _LONGEST else f"{driver[:_LONGEST]}..."


def summary(one: Diagnosis) -> str:
    """Return how many defects are here, and how many are not as recorded or were not recorded."""
    here = sum(checked.is_here for checked in one.defects)
    different = sum(checked.differs for checked in one.defects)
    known = counted(len(one.defects), "known defect")
    unknown = sum(checked.before.basis is Basis.UNTESTED for checked in one.defects)
    more = f", {unknown} untested before" if unknown else ""
    return f"{here} of {known} here, {different} not as recorded{more}"


def groups(one: Diagnosis, *, verbose: bool) -> Iterator[tuple[str, list[Checked]]]:
    """Yield what is not as recorded first, then defects by what a device does; all of them if `verbose`."""
    different = [checked for checked in one.defects if checked.differs]
    if different:
        yield "not as recorded", different
    for title in dict.fromkeys(symptom.group for symptom in Symptom):
        several = [
            checked
            for checked in one.defects
            if checked.defect.symptom.group == title
            and (checked.is_here or verbose)
            and checked not in different
        ]
        if several:
            yield title, several


def state(one: Checked) -> str:
    """Return what a device did, and what is new of that: "new: crashed", "gone, recorded: wrong"."""
    is_other = one.differs and not one.missed
    if one.result is None:
        told = "not told"
    elif not is_other:
        told = "here" if one.is_here else "not here"
    elif one.is_here:
        told = f"{'here' if one.before.is_bad else 'new'}: {one.result}"
    else:
        told = "gone"
    if is_other or (one.differs and one.result is None):
        told += f", recorded: {one.before.result}"
    if one.before.basis is Basis.UNTESTED:
        told += ", untested before"
    if one.is_unlike:
        told += f", depends on the instruction set ({one.other_processor})"
    if one.missed:
        told += f", and larger than known: {', '.join(one.missed)}"
    return told
