"""Results of the probes for known defects on each device, as an HTML page."""

from collections.abc import Sequence
from typing import Any

from ir_scatter.core.words import counted
from ir_scatter.defects.evidence import Basis
from ir_scatter.doctor import DefectCheck, Diagnosis
from ir_scatter.report.doctor_text import differences, groups, shorten_driver, state, summary
from ir_scatter.report.page import render_page


def render(diagnoses: Sequence[Diagnosis], *, verbose: bool = False) -> str:
    kind, headline = _headline(diagnoses)
    return render_page(
        "doctor.html.j2",
        names=", ".join(diagnosis.device.runner for diagnosis in diagnoses),
        kind=kind,
        headline=headline,
        differences=differences(diagnoses),
        devices=[_device(diagnosis, verbose) for diagnosis in diagnoses],
    )


def _headline(diagnoses: Sequence[Diagnosis]) -> tuple[str, str]:
    """Return the CSS class and the sentence of the banner."""
    checks = [checked for diagnosis in diagnoses for checked in diagnosis.defects]
    different = sum(checked.differs for checked in checks)
    if different:
        kind, headline = "differs", f"{counted(different, 'result')} changed since recorded"
    elif any(checked.before.basis is not Basis.UNTESTED for checked in checks):
        kind, headline = "agrees", "all as recorded"
    else:
        kind, headline = "nothing", "no earlier results to compare with"
    if not all(diagnosis.device.is_available for diagnosis in diagnoses):
        kind = "failed" if kind != "differs" else kind
        headline += ", and not every device is available"
    return kind, headline


def _device(diagnosis: Diagnosis, verbose: bool) -> dict[str, Any]:
    device = diagnosis.device
    return {
        "name": device.runner,
        "summary": summary(diagnosis) if device.is_available else f"not available: {device.reason}",
        "facts": {
            "device": device.full_name,
            "release": diagnosis.release,
            "driver": shorten_driver(device.driver),
            "capabilities": " ".join(device.capabilities),
        },
        "groups": [
            (title, [_check(checked) for checked in checks])
            for title, checks in groups(diagnosis, verbose=verbose)
        ],
    }


def _check(checked: DefectCheck) -> dict[str, Any]:
    before, defect = checked.before, checked.defect
    history = f"{state(checked)} ({before.basis}, {before.told})" if before.told else state(checked)
    return {
        "result": defect.word_of(checked.result) if checked.result else "no answer",
        "code": defect.code,
        "name": defect.name.replace("-", " "),
        "history": history,
        "avoid": defect.advice() if checked.is_here else "",
    }
