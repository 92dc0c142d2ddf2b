"""Results of the probes for known defects on each device, as an HTML page."""

from collections.abc import Iterator, Sequence

from ir_scatter.core.words import counted
from ir_scatter.defects.base import Result
from ir_scatter.defects.evidence import Basis
from ir_scatter.doctor import DefectCheck, Diagnosis
from ir_scatter.report.doctor_text import groups, shorten_driver, state, summary
from ir_scatter.report.page import document, name_span, plain
from ir_scatter.version import versions

_BADGES = {
    Result.RIGHT: "equal", Result.WRONG: "mismatch", Result.REFUSED: "refused", Result.CRASHED: "crashed",
    Result.ACCEPTED: "illegal", Result.ABSENT: "none", None: "not-tapped",
}  # fmt: skip
"""CSS class of each probe result."""


def render(diagnoses: Sequence[Diagnosis], *, verbose: bool = False) -> str:
    names = [diagnosis.device.runner for diagnosis in diagnoses]
    return document(f"ir-scatter doctor: {', '.join(names)}", _body(diagnoses, verbose))


def _body(diagnoses: Sequence[Diagnosis], verbose: bool) -> Iterator[str]:
    different = sum(checked.differs for diagnosis in diagnoses for checked in diagnosis.defects)
    is_recorded = {
        checked.before.basis is not Basis.UNTESTED for diagnosis in diagnoses for checked in diagnosis.defects
    }
    if different:
        kind, headline = "differs", f"{counted(different, 'result')} changed since recorded"
    elif True in is_recorded:
        kind, headline = "agrees", "all as recorded"
    else:
        kind, headline = "nothing", "no earlier results to compare with"
    if not all(diagnosis.device.is_available for diagnosis in diagnoses):
        kind = "failed" if kind != "differs" else kind
        headline += ", and not every device is available"
    yield '<header class="page"><p class="brand">ir-scatter doctor</p>'
    yield f"<h1>{plain(', '.join(diagnosis.device.runner for diagnosis in diagnoses)) or 'no device'}</h1>"
    yield f'<p class="banner {kind}">{plain(headline)}</p></header>'
    yield '<main id="found" tabindex="-1">'
    for diagnosis in diagnoses:
        yield from _device(diagnosis, verbose)
    packages = ", ".join(f"{name} {version}" for name, version in versions().items())
    yield f"</main><footer>{plain(packages)}</footer>"


def _device(diagnosis: Diagnosis, verbose: bool) -> Iterator[str]:
    device = diagnosis.device
    yield f'<article class="difference"><header><h2>{name_span(device.runner)}</h2>'
    lead = summary(diagnosis) if device.is_available else f"not available: {device.reason}"
    yield f'<p class="lead">{plain(lead)}</p></header>'
    facts = {
        "device": device.full_name,
        "release": diagnosis.release,
        "driver": shorten_driver(device.driver),
        "capabilities": " ".join(device.capabilities),
    }
    yield '<dl class="facts">'
    yield from (f"<div><dt>{name}</dt><dd>{plain(text)}</dd></div>" for name, text in facts.items() if text)
    yield "</dl>"
    for title, checks in groups(diagnosis, verbose=verbose):
        yield f'<section class="blame"><h3>{title}</h3><ul>'
        yield from map(_item, checks)
        yield "</ul></section>"
    yield "</article>"


def _item(checked: DefectCheck) -> str:
    badge = f'<span class="badge {_BADGES[checked.result]}">{plain(checked.result or "no answer")}</span>'
    words = f"{name_span(checked.defect.code)} {plain(checked.defect.name.replace('-', ' '))}"
    history = (
        f"{state(checked)} ({checked.before.basis}, {checked.before.told})"
        if checked.before.told
        else state(checked)
    )
    avoid = (
        f'<span class="sub">{plain(str(checked.defect.avoid))}</span>'
        if checked.defect.avoid and checked.is_here
        else ""
    )
    return f'<li>{badge} {words}<span class="sub">{plain(history)}</span>{avoid}</li>'
