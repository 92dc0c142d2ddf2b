"""Findings of the fuzzer as an HTML page."""

from collections.abc import Iterator, Mapping
from typing import Any

from ir_scatter.core.words import counted
from ir_scatter.defects import by_code
from ir_scatter.defects.base import Symptom
from ir_scatter.fuzz.campaign import Campaign
from ir_scatter.report.page import render_page

MOST_SHOWN = 1_000
"""Maximum findings on a page: each takes 3 kB, and browsers do not open pages of tens of thousands."""


def render(campaign: Campaign) -> str:
    record = campaign.as_json()
    total = len(record["findings"])
    present = {finding["symptom"] for finding in record["findings"]}
    return render_page(
        "fuzz.html.j2",
        headline=f"{counted(total, 'finding')} in {counted(record['cases'], 'case')}",
        runners=record["runners"],
        findings=[_finding(number, row) for number, row in enumerate(record["findings"][:MOST_SHOWN])],
        limit=f"Showing the first {MOST_SHOWN:,} of {total:,} findings; JSON contains all."
        if total > MOST_SHOWN
        else "",
        symptoms=[symptom for symptom in Symptom if symptom in present],
        cases=_cases(record),
        coverage=[
            (name, ", ".join(f"{value}: {count}" for value, count in values.items()))
            for name, values in record["coverage"]["features"].items()
        ],
    )


def _cases(record: Mapping[str, Any]) -> str:
    """Return a sentence about the cases: their number, speed and variety."""
    forms, batches = record["rates"]["forms"], record["rates"]["batches"]
    kind = "illegal" if record["illegal"] else "legal"
    return (
        f"{record['cases']} {kind} cases in {record['seconds']:g} s, seed {record['seed']}; "
        f"{forms:g} cases/s one form at a time, {batches:g} in mixed batches; "
        f"{record['coverage']['pairs']} pairs of features."
    )


def _finding(number: int, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a finding's fields, its symptom's style, and a sentence about known defects."""
    defects = " and ".join(f"{code} {by_code()[code].name}" for code in row["defects"] if code in by_code())
    return {
        **row,
        "number": number,
        "symptom": Symptom(row["symptom"]),
        "known": f"Known as {defects}." if defects else "Like no known defect.",
        "facts": list(_facts(row["minimal"])),
    }


def _facts(minimal: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (name, value) for each fact about the smallest case."""
    for name, shape in minimal.get("shapes", {}).items():
        yield name, str(shape)
    yield (
        "element types",
        ", ".join(f"{name}: {type}" for name, type in minimal.get("element_types", {}).items()),
    )
    for name, value in minimal.get("attributes", {}).items():
        yield name, str(value)
    yield "constant", ", ".join(minimal.get("constants", [])) or "nothing"
    if minimal.get("iterations"):
        yield "iterations of a loop around it", str(minimal["iterations"])
