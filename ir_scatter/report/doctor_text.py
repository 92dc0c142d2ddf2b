"""What each device does with the probes of known defects: what is new or gone first, then what is here."""

from collections.abc import Iterator, Sequence

from ir_scatter.core.shapes import counted
from ir_scatter.defects.base import Symptom
from ir_scatter.defects.evidence import Basis, Result
from ir_scatter.doctor import Checked, Diagnosis
from ir_scatter.report.characters import visible, wrapped

_GROUPS = {
    "wrong values": {Symptom.WRONG_VALUE, Symptom.NONDETERMINISTIC},
    "refusals": {Symptom.REFUSED},
    "crashes": {Symptom.CRASHED, Symptom.HUNG},
    "illegal input accepted": {Symptom.ACCEPTED_ILLEGAL},
}


def render(
    found: Sequence[Diagnosis], *, color: bool = False, width: int | None = None, verbose: bool = False
) -> str:
    return "\n".join("".join(f"{line}\n" for line in _device(one, width, verbose)) for one in found)


def _device(one: Diagnosis, width: int | None, verbose: bool) -> Iterator[str]:
    about = [one.device.full_name, one.release, one.device.driver]
    yield wrapped(visible(f"{one.device.runner}: {', '.join(filter(None, about))}"), width)
    if not one.device.is_available:
        yield wrapped(visible(f"  does not run here: {one.device.reason}"), width, "  ")
        return
    if one.device.capabilities and verbose:
        yield wrapped(f"  {' '.join(one.device.capabilities)}", width, "  ")
    here = [checked for checked in one.defects if checked.is_here]
    different = [checked for checked in one.defects if checked.differs]
    known = counted(len(one.defects), "known defect")
    yield f"  {len(here)} of {known} here, {len(different)} not as recorded"
    groups = {"not as recorded": different} if different else {}
    for title, symptoms in _GROUPS.items():
        groups[title] = [
            checked
            for checked in one.defects
            if checked.defect.symptom in symptoms
            and (checked.is_here or verbose)
            and checked not in different
        ]
    for title, several in groups.items():
        if several:
            yield f"  {title}"
            for checked in several:
                yield wrapped(visible(f"    {_line(checked)}"), width, "           ")


def _line(one: Checked) -> str:
    state = "here" if one.is_here else "not here" if one.result is Result.RIGHT else "not told"
    if one.differs and not one.missed:
        state += f", recorded: {one.before.result}"
    if one.before.basis is Basis.UNTESTED:
        state += ", untested before"
    if one.missed:
        state += f", and larger than known: {', '.join(one.missed)}"
    return f"{one.defect.code} {one.defect.name}: {state}"
