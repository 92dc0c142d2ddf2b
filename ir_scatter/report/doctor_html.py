"""What each device does with the probes of known defects, as a page in the style of all others."""

from collections.abc import Iterator, Sequence

from ir_scatter.core.words import counted
from ir_scatter.defects.base import Result
from ir_scatter.defects.evidence import Basis
from ir_scatter.doctor import Checked, Diagnosis
from ir_scatter.report.doctor_text import groups, shortened, state, summary
from ir_scatter.report.page import document, named, plain
from ir_scatter.version import versions

_BADGES = {
    Result.RIGHT: "equal", Result.WRONG: "mismatch", Result.REFUSED: "refused", Result.CRASHED: "crashed",
    Result.ACCEPTED: "illegal", Result.ABSENT: "none", None: "not-tapped",
}  # fmt: skip
"""The class of an outcome in the style sheet."""


def render(found: Sequence[Diagnosis], *, verbose: bool = False) -> str:
    names = [one.device.runner for one in found]
    return document(f"ir-scatter doctor: {', '.join(names)}", _body(found, verbose))


def _body(found: Sequence[Diagnosis], verbose: bool) -> Iterator[str]:
    different = sum(checked.differs for one in found for checked in one.defects)
    known = {checked.before.basis is not Basis.UNTESTED for one in found for checked in one.defects}
    if different:
        kind, headline = "differs", f"{counted(different, 'outcome')} not as recorded"
    elif True in known:
        kind, headline = "agrees", "all as recorded"
    else:
        kind, headline = "nothing", "nothing was recorded of that before"
    if not all(one.device.is_available for one in found):
        kind = "failed" if kind != "differs" else kind
        headline += ", and not every device runs here"
    yield '<header class="page"><p class="brand">ir-scatter doctor</p>'
    yield f"<h1>{plain(', '.join(one.device.runner for one in found)) or 'no device'}</h1>"
    yield f'<p class="banner {kind}">{plain(headline)}</p></header>'
    yield '<main id="found" tabindex="-1">'
    for one in found:
        yield from _device(one, verbose)
    shown = ", ".join(f"{name} {version}" for name, version in versions().items())
    yield f"</main><footer>{plain(shown)}</footer>"


def _device(one: Diagnosis, verbose: bool) -> Iterator[str]:
    device = one.device
    yield f'<article class="difference"><header><h2>{named(device.runner)}</h2>'
    told = summary(one) if device.is_available else f"does not run here: {device.reason}"
    yield f'<p class="lead">{plain(told)}</p></header>'
    facts = {
        "device": device.full_name,
        "release": one.release,
        "driver": shortened(device.driver),
        "capabilities": " ".join(device.capabilities),
    }
    yield '<dl class="facts">'
    yield from (f"<div><dt>{name}</dt><dd>{plain(text)}</dd></div>" for name, text in facts.items() if text)
    yield "</dl>"
    for title, several in groups(one, verbose=verbose):
        yield f'<section class="blame"><h3>{title}</h3><ul>'
        yield from map(_item, several)
        yield "</ul></section>"
    yield "</article>"


def _item(one: Checked) -> str:
    badge = f'<span class="badge {_BADGES[one.result]}">{plain(one.result or "not told")}</span>'
    words = f"{named(one.defect.code)} {plain(one.defect.name.replace('-', ' '))}"
    known = f"{state(one)} ({one.before.basis}, {one.before.told})" if one.before.told else state(one)
    avoid = f'<span class="sub">{plain(one.defect.avoid)}</span>' if one.defect.avoid and one.is_here else ""
    return f'<li>{badge} {words}<span class="sub">{plain(known)}</span>{avoid}</li>'
