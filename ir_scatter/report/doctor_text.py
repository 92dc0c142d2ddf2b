"""What each device does with the probes of known defects: what is new or gone first, then what is here."""

from collections.abc import Iterator, Sequence

from ir_scatter.core.shapes import counted
from ir_scatter.defects.base import Symptom
from ir_scatter.defects.evidence import Basis
from ir_scatter.doctor import Checked, Diagnosis
from ir_scatter.report.characters import visible, wrapped

_GROUPS = {
    "wrong values": {Symptom.WRONG_VALUE, Symptom.NONDETERMINISTIC},
    "refusals": {Symptom.REFUSED},
    "crashes": {Symptom.CRASHED, Symptom.HUNG},
    "illegal input accepted": {Symptom.ACCEPTED_ILLEGAL},
}
_LONGEST = 120
"""Some drivers tell how they were compiled."""


def render(diagnoses: Sequence[Diagnosis], *, width: int | None = None, verbose: bool = False) -> str:
    return "\n".join(
        "".join(f"{line}\n" for line in _device(diagnosis, width, verbose)) for diagnosis in diagnoses
    )


def _device(diagnosis: Diagnosis, width: int | None, verbose: bool) -> Iterator[str]:
    about = ", ".join(
        filter(None, [diagnosis.device.full_name, diagnosis.release, shortened(diagnosis.device.driver)])
    )
    yield wrapped(visible(": ".join(filter(None, (diagnosis.device.runner, about)))), width)
    if not diagnosis.device.is_available:
        yield wrapped(visible(f"  does not run here: {diagnosis.device.reason}"), width, "  ")
        return
    if diagnosis.device.capabilities and verbose:
        yield wrapped(f"  {' '.join(diagnosis.device.capabilities)}", width, "  ")
    yield f"  {summary(diagnosis)}"
    for title, checks in groups(diagnosis, verbose=verbose):
        yield f"  {title}"
        for checked in checks:
            line = f"{checked.defect.code} {checked.defect.name}: {state(checked)}"
            yield wrapped(visible(f"    {line}"), width, "           ")


def shortened(driver: str) -> str:
    return driver if len(driver) <= _LONGEST else f"{driver[:_LONGEST]}..."


def summary(diagnosis: Diagnosis) -> str:
    """Return how many defects are here, and how many are not as recorded or were not recorded."""
    here = sum(checked.is_here for checked in diagnosis.defects)
    different = sum(checked.differs for checked in diagnosis.defects)
    total = counted(len(diagnosis.defects), "known defect")
    unknown = sum(checked.before.basis is Basis.UNTESTED for checked in diagnosis.defects)
    more = f", {unknown} untested before" if unknown else ""
    return f"{here} of {total} here, {different} not as recorded{more}"


def groups(diagnosis: Diagnosis, *, verbose: bool) -> Iterator[tuple[str, list[Checked]]]:
    """Yield what is not as recorded first, then defects by what a device does; all of them if `verbose`."""
    different = [checked for checked in diagnosis.defects if checked.differs]
    if different:
        yield "not as recorded", different
    for title, symptoms in _GROUPS.items():
        checks = [
            checked
            for checked in diagnosis.defects
            if checked.defect.symptom in symptoms
            and (checked.is_here or verbose)
            and checked not in different
        ]
        if checks:
            yield title, checks


def state(checked: Checked) -> str:
    """Return what a device did, and what is new of that: "new: crashed", "gone, recorded: wrong"."""
    is_other = checked.differs and not checked.missed
    if checked.result is None:
        words = "not told"
    elif not is_other:
        words = "here" if checked.is_here else "not here"
    elif checked.is_here:
        words = f"{'here' if checked.before.is_bad else 'new'}: {checked.result}"
    else:
        words = "gone"
    if is_other or (checked.differs and checked.result is None):
        words += f", recorded: {checked.before.result}"
    if checked.before.basis is Basis.UNTESTED:
        words += ", untested before"
    if checked.is_unlike:
        words += f", depends on the instruction set ({checked.other_processor})"
    if checked.missed:
        words += f", and larger than known: {', '.join(checked.missed)}"
    return words
