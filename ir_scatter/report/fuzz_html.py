"""What the fuzzer found as a page over all findings, in the style of the page of a comparison."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

from ir_scatter.core.words import counted
from ir_scatter.defects import by_code
from ir_scatter.defects.base import Symptom
from ir_scatter.fuzz.campaign import Campaign
from ir_scatter.report.page import document, named, plain

MOST_SHOWN = 1_000
"""Findings that a page shows: each takes 3 kB, and tens of thousands no browser opens."""


def render(found: Campaign) -> str:
    told = found.as_json()
    return document(_headline(told), _body(told))


def _headline(told: Mapping[str, Any]) -> str:
    return f"{counted(len(told['findings']), 'finding')} in {counted(told['cases'], 'case')}"


def _body(told: Mapping[str, Any]) -> Iterator[str]:
    state = "differs" if told["findings"] else "agrees"
    yield '<header class="page"><p class="brand">ir-scatter fuzz</p>'
    yield f"<h1>{plain(', '.join(told['runners']))}</h1>"
    yield f'<p class="banner {state}">{plain(_headline(told))}</p></header>'
    yield '<main id="found" tabindex="-1">'
    yield from _matrix(told)
    total = len(told["findings"])
    if total > MOST_SHOWN:
        yield f"<p>{plain(f'Showing the first {MOST_SHOWN:,} of {total:,} findings; JSON contains all.')}</p>"
    for number, one in enumerate(told["findings"][:MOST_SHOWN]):
        yield from _card(number, one)
    yield "<section><h2>What was drawn</h2>"
    rates = f"{told['rates']['forms']:g} cases/s of forms, {told['rates']['batches']:g} of batches"
    kind = "illegal" if told["illegal"] else "legal"
    yield f"<p>{told['cases']} {kind} cases in {told['seconds']:g} s, seed {told['seed']}; {rates}; "
    yield f"{told['coverage']['pairs']} pairs of features.</p>"
    yield _table(
        ("Feature", "Values and how many cases"), _coverage(told), "How often each feature was drawn"
    )
    yield "</section></main>"
    versions = ", ".join(f"{name} {version}" for name, version in told["versions"].items())
    yield f"<footer>{plain(versions)}</footer>"


def _coverage(told: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, values in told["coverage"]["features"].items():
        yield plain(name), plain(", ".join(f"{value}: {count}" for value, count in values.items()))


def _matrix(told: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table of operators and runners."""
    runners = told["runners"]
    badges = defaultdict[str, defaultdict[str, str]](lambda: defaultdict(str))
    for number, one in enumerate(told["findings"]):
        if number < MOST_SHOWN:
            badges[one["operator"]][one["runner"]] += f" {_badge(one['symptom'], f'#f{number}')}"
    rows = [
        (named(operator), *(cells[runner].lstrip() for runner in runners))
        for operator, cells in sorted(badges.items())
    ]
    if rows:
        yield "<section><h2>Operators and runners</h2>"
        yield _table(("Operator", *map(plain, runners)), rows, "Findings by operator and runner")
        used = [symptom for symptom in Symptom if any(one["symptom"] == symptom for one in told["findings"])]
        yield '<ul class="plain">'
        yield from (f"<li>{_badge(symptom)} {plain(symptom.meaning)}</li>" for symptom in used)
        yield "</ul></section>"


def _card(number: int, one: Mapping[str, Any]) -> Iterator[str]:
    minimal = one["minimal"]
    yield f'<article class="difference" id="f{number}"><header>'
    yield f"<h2>{_badge(one['symptom'])} {named(one['operator'])} on {named(one['runner'])}</h2>"
    yield f'<p class="lead">{plain(one["when"])}</p></header>'
    yield f"<p>{plain(one['message'])}</p>"
    known = " and ".join(f"{code} {by_code()[code].name}" for code in one["defects"] if code in by_code())
    yield f"<p>{plain(f'Known as {known}.' if known else 'Like no known defect.')}</p>"
    shapes = [(plain(name), plain(str(shape))) for name, shape in minimal.get("shapes", {}).items()]
    types = ", ".join(f"{name}: {type}" for name, type in minimal.get("element_types", {}).items())
    facts = [*shapes, ("element types", plain(types))]
    facts += [(plain(name), plain(str(value))) for name, value in minimal.get("attributes", {}).items()]
    facts.append(("constant", plain(", ".join(minimal.get("constants", [])) or "nothing")))
    if minimal.get("iterations"):
        facts.append(("iterations of a loop around it", plain(str(minimal["iterations"]))))
    yield '<dl class="facts">'
    yield from (f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)
    yield "</dl>"
    if one["others"]:
        rows = [(named(name), plain(told)) for name, told in one["others"].items()]
        yield _table(("Runner", "On the same case"), rows, "What the others do with it")
    if one["twins"]:
        rows = [(plain(name), plain(told)) for name, told in one["twins"].items()]
        yield _table(("The same case", "On this runner"), rows, "What must give the same, or data as it is")
    if one["path"]:
        folder = escape(one["signature"], quote=True)
        links = [(f"{folder}/{name}", name) for name in ("report.md", "repro.py")]
        yield "<p>" + " ".join(f'<a href="{link}">{name}</a>' for link, name in links) + "</p>"
    yield f'<p class="soft">{named(one["signature"])}</p></article>'


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]], caption: str) -> str:
    """Return a table of cells that are HTML, whose first column names the rows."""
    top = "".join(f'<th scope="col">{one}</th>' for one in head)
    body = "".join(
        f'<tr><th scope="row">{first}</th>' + "".join(f"<td>{one}</td>" for one in rest) + "</tr>"
        for first, *rest in rows
    )
    return (
        f'<div class="scroll"><table><caption>{plain(caption)}</caption><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _badge(symptom: str, link: str = "") -> str:
    badge = f'<span class="badge {Symptom(symptom).style}">{plain(symptom)}</span>'
    return f'<a href="{link}">{badge}</a>' if link else badge
