"""Results of the probes for known defects on each device as text: changes first, then defects present."""

from collections.abc import Iterator, Sequence

from ir_scatter.core.words import counted
from ir_scatter.defects.base import Symptom
from ir_scatter.defects.evidence import Basis
from ir_scatter.doctor import DefectCheck, Diagnosis
from ir_scatter.report.characters import visible, wrap_line
from ir_scatter.report.phrases import changes
from ir_scatter.runners.base import plain_name

_LONGEST = 120
"""Maximum characters of a driver's version: some drivers append their build options."""


def render(diagnoses: Sequence[Diagnosis], *, width: int | None = None, verbose: bool = False) -> str:
    blocks = [[*_device(diagnosis, width, verbose)] for diagnosis in diagnoses]
    if lines := [wrap_line(line, width, "  ") for line in differences(diagnoses)]:
        blocks.append(lines)
    return "\n".join("".join(f"{line}\n" for line in block) for block in blocks)


def differences(diagnoses: Sequence[Diagnosis]) -> list[str]:
    """Return how devices differ from the first one: "new in 2026.4.1: DEV134; gone: none; same: 22"."""
    tested = [diagnosis for diagnosis in diagnoses if diagnosis.device.is_available]
    sets = [{check.defect.code for check in diagnosis.defects if check.is_here} for diagnosis in tested]
    names = [_label(diagnosis, tested) for diagnosis in tested]
    return [f"{changes(names[at], sets[0], sets[at])} (as in {names[0]})" for at in range(1, len(tested))]


def _label(diagnosis: Diagnosis, others: Sequence[Diagnosis]) -> str:
    """Return the release of a device if all are of one kind, else its name."""
    kinds = {plain_name(other.device.runner) for other in others}
    releases = {other.release for other in others}
    is_by_release = len(kinds) == 1 and len(releases) == len(others)
    return diagnosis.release if is_by_release else diagnosis.device.runner


def _device(diagnosis: Diagnosis, width: int | None, verbose: bool) -> Iterator[str]:
    about = ", ".join(
        filter(None, [diagnosis.device.full_name, diagnosis.release, shorten_driver(diagnosis.device.driver)])
    )
    yield wrap_line(visible(": ".join(filter(None, (diagnosis.device.runner, about)))), width)
    if not diagnosis.device.is_available:
        yield wrap_line(visible(f"  not available: {diagnosis.device.reason}"), width, "  ")
        return
    if diagnosis.device.capabilities and verbose:
        yield wrap_line(f"  {' '.join(diagnosis.device.capabilities)}", width, "  ")
    yield f"  {summary(diagnosis)}"
    for title, checks in groups(diagnosis, verbose=verbose):
        yield f"  {title}"
        for checked in checks:
            line = f"{checked.defect.code} {checked.defect.name}: {state(checked)}"
            yield wrap_line(visible(f"    {line}"), width, "           ")


def shorten_driver(driver: str) -> str:
    return driver if len(driver) <= _LONGEST else f"{driver[:_LONGEST]}..."


def summary(diagnosis: Diagnosis) -> str:
    """Return "23 of 24 known defects present; 2 changed since recorded, 1 untested before"."""
    here = sum(checked.is_here for checked in diagnosis.defects)
    different = sum(checked.differs for checked in diagnosis.defects)
    total = counted(len(diagnosis.defects), "known defect")
    unknown = sum(checked.before.basis is Basis.UNTESTED for checked in diagnosis.defects)
    more = f", {unknown} untested before" if unknown else ""
    return f"{here} of {total} present; {different} changed since recorded{more}"


def groups(diagnosis: Diagnosis, *, verbose: bool) -> Iterator[tuple[str, list[DefectCheck]]]:
    """Yield groups of defects: changed ones, then those present by symptom; if `verbose`, absent ones."""
    different = [checked for checked in diagnosis.defects if checked.differs]
    if different:
        yield "changed since recorded", different
    for title in dict.fromkeys(symptom.group for symptom in Symptom):
        checks = [
            checked
            for checked in diagnosis.defects
            if checked.defect.symptom.group == title
            and (checked.is_here or verbose)
            and checked not in different
        ]
        if checks:
            yield title, checks


def state(checked: DefectCheck) -> str:
    """Return the result on a device and its change: "new: crashed", "gone, recorded: wrong"."""
    is_other = checked.differs and not checked.missed
    if checked.result is None:
        words = "no answer"
    elif not is_other:
        words = "present" if checked.is_here else "absent"
    elif checked.is_here:
        words = f"{'present' if checked.before.is_bad else 'new'}: {checked.defect.word_of(checked.result)}"
    else:
        words = "gone"
    if is_other or (checked.differs and checked.result is None):
        words += f", recorded: {checked.defect.word_of(checked.before.result)}"
    if checked.before.basis is Basis.UNTESTED:
        words += ", untested before"
    if checked.is_unlike:
        words += f", depends on the instruction set ({checked.other_processor})"
    if checked.missed:
        words += f", also affects: {', '.join(checked.missed)}"
    return words
