"""Findings of the fuzzer as an HTML page."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

from ir_scatter.core.words import counted
from ir_scatter.defects import by_code
from ir_scatter.defects.base import Symptom
from ir_scatter.fuzz.campaign import Campaign
from ir_scatter.report.page import document, name_span, plain

MOST_SHOWN = 1_000
"""Findings that a page shows: each takes 3 kB, and browsers do not open pages of tens of thousands."""


def render(campaign: Campaign) -> str:
    record = campaign.as_json()
    return document(_headline(record), _body(record))


def _headline(record: Mapping[str, Any]) -> str:
    return f"{counted(len(record['findings']), 'finding')} in {counted(record['cases'], 'case')}"


def _body(record: Mapping[str, Any]) -> Iterator[str]:
    state = "differs" if record["findings"] else "agrees"
    yield '<header class="page"><p class="brand">ir-scatter fuzz</p>'
    yield f"<h1>{plain(', '.join(record['runners']))}</h1>"
    yield f'<p class="banner {state}">{plain(_headline(record))}</p></header>'
    yield '<main id="found" tabindex="-1">'
    yield from _matrix(record)
    total = len(record["findings"])
    if total > MOST_SHOWN:
        yield f"<p>{plain(f'Showing the first {MOST_SHOWN:,} of {total:,} findings; JSON contains all.')}</p>"
    for number, finding in enumerate(record["findings"][:MOST_SHOWN]):
        yield from _card(number, finding)
    yield "<section><h2>Generated cases</h2>"
    forms, batches = record["rates"]["forms"], record["rates"]["batches"]
    rates = f"{forms:g} cases/s one form at a time, {batches:g} in mixed batches"
    kind = "illegal" if record["illegal"] else "legal"
    yield f"<p>{record['cases']} {kind} cases in {record['seconds']:g} s, seed {record['seed']}; {rates}; "
    yield f"{record['coverage']['pairs']} pairs of features.</p>"
    yield _table(("Feature", "Values and numbers of cases"), _coverage(record), "Coverage of features")
    yield "</section></main>"
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    yield f"<footer>{plain(versions)}</footer>"


def _coverage(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, values in record["coverage"]["features"].items():
        yield plain(name), plain(", ".join(f"{value}: {count}" for value, count in values.items()))


def _matrix(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table of operators and runners."""
    runners = record["runners"]
    badges = defaultdict[str, defaultdict[str, str]](lambda: defaultdict(str))
    for number, finding in enumerate(record["findings"][:MOST_SHOWN]):
        badges[finding["operator"]][finding["runner"]] += f" {_badge(finding['symptom'], f'#f{number}')}"
    rows = [
        (name_span(operator), *(cells[runner].lstrip() for runner in runners))
        for operator, cells in sorted(badges.items())
    ]
    if rows:
        yield "<section><h2>Operators and runners</h2>"
        yield _table(("Operator", *map(plain, runners)), rows, "Findings by operator and runner")
        symptoms = {finding["symptom"] for finding in record["findings"]}
        yield '<ul class="plain">'
        yield from (
            f"<li>{_badge(symptom)} {plain(symptom.meaning)}</li>"
            for symptom in Symptom
            if symptom in symptoms
        )
        yield "</ul></section>"


def _card(number: int, finding: Mapping[str, Any]) -> Iterator[str]:
    minimal = finding["minimal"]
    yield f'<article class="difference" id="f{number}"><header>'
    subject = f"{name_span(finding['operator'])} on {name_span(finding['runner'])}"
    yield f"<h2>{_badge(finding['symptom'])} {subject}</h2>"
    yield f'<p class="lead">{plain(finding["when"])}</p></header>'
    yield f"<p>{plain(finding['message'])}</p>"
    defects = " and ".join(
        f"{code} {by_code()[code].name}" for code in finding["defects"] if code in by_code()
    )
    yield f"<p>{plain(f'Known as {defects}.' if defects else 'Like no known defect.')}</p>"
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
    if finding["others"]:
        rows = [(name_span(name), plain(outcome)) for name, outcome in finding["others"].items()]
        yield _table(("Runner", "On the same case"), rows, "Results of other runners")
    if finding["twins"]:
        rows = [(plain(name), plain(outcome)) for name, outcome in finding["twins"].items()]
        yield _table(
            ("Variant of the case", "On this runner"), rows, "Variants with the same expected result"
        )
    if finding["path"]:
        folder = escape(finding["signature"], quote=True)
        links = [(f"{folder}/{name}", name) for name in ("report.md", "repro.py")]
        yield "<p>" + " ".join(f'<a href="{link}">{name}</a>' for link, name in links) + "</p>"
    yield f'<p class="soft">{name_span(finding["signature"])}</p></article>'


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]], caption: str) -> str:
    """Return a table from cells of HTML; the first column has the row headers."""
    top = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in rest) + "</tr>"
        for first, *rest in rows
    )
    return (
        f'<div class="scroll"><table><caption>{plain(caption)}</caption><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _badge(symptom: str, link: str = "") -> str:
    badge = f'<span class="badge {Symptom(symptom).style}">{plain(symptom)}</span>'
    return f'<a href="{link}">{badge}</a>' if link else badge
