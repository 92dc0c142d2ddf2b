"""What a comparison found, for programs."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ir_scatter.compare.headline import headline, headline_of_many
from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.pairing import Pairing
from ir_scatter.compare.request import Done
from ir_scatter.compare.result import Compared, Comparison, Guarded, Outlier
from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.report.characters import as_document, dumps, fields_of
from ir_scatter.report.devices_json import machine_groups
from ir_scatter.runners.base import NodeFacts, Outcome

REACHED = "operators that move elements or work on each of them carry contested elements there"
"""Why single elements are excused."""


def render(done: Done, *, each: bool = False) -> str:
    """One JSON object, with a list of reports if every model was compared for itself."""
    machines = {"machines": machine_groups(done.machines)} if done.machines else {}
    if not each:
        return dumps(document(done.found[0], done.skipped) | machines)
    reports = [document(one, done.skipped) for one in done.found]
    failures = [
        {"model": one.model, "message": one.message, "readable": not one.is_unreadable}
        for one in done.failures
    ]
    total = summary([comparison for one in done.found for comparison in one.comparisons])
    verdict = headline_of_many(done)
    told = {"headline": verdict.sentence, "state": verdict.state, "interrupted": done.interrupted or None}
    return dumps(as_document(**told, **machines, reports=reports, failures=failures, summary=total))


def document(found: Compared, skipped: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
    """What is written of one comparison.

    Numbers that JSON has no word for are null where a size is meant, and words ("nan", "inf",
    "-inf") where they are elements.
    """
    verdict = headline(found)
    document = as_document(
        headline=verdict.sentence,
        state=verdict.state,
        interrupted=found.interrupted or None,
        model=found.model,
        other=found.other or None,
        seed=found.settings.seed,
        cases=len(found.feeds),
        precision=found.settings.precision,
        outcomes=[
            fields_of(one, "runner status reason message precision implicit")
            | {"seconds": round(one.seconds, 6)}
            | _of_models(one, found)
            for one in found.outcomes
        ],
        comparisons=[_comparison(one) for one in found.comparisons],
        guard=[
            fields_of(one, "runner node operator case kind is_illegal message") | _of_model(one)
            for one in found.guarded
        ],
        odd=[
            fields_of(one, "level node tensor case runners message") | _of_model(one)
            for one in found.outliers
        ],
        not_tapped=[fields_of(one, "runner node reason") for one in found.not_tapped],
        not_run=[name.partition(" ")[2] for name in found.not_run],
        not_tried=found.not_tried,
        facts={runner: [_facts(one, found.types) for one in facts] for runner, facts in found.facts.items()},
        skipped=[{"runner": runner, "reason": reason} for runner, reason in skipped],
        matching=found.pairing and _matching(found.pairing),
        remarks=found.remarks,
        about=dict(found.about),
        summary=summary(found.comparisons),
    )
    if found.machine:
        document["machine"] = found.machine
    for one in found.outcomes:
        document["versions"].update(one.versions)
    return document


def _of_model(one: Guarded | Outlier) -> dict[str, str]:
    return {"model": one.model} if one.model else {}


def _of_models(outcome: Outcome, found: Compared) -> dict[str, Any]:
    """What a runner made of each of two models."""
    each = found.by_model.get(outcome.runner)
    if each is None:
        return {}
    pairs = zip((found.model, found.other), each, strict=False)
    return {"models": [{"model": path, **fields_of(one, "status reason message")} for path, one in pairs]}


def _matching(found: Pairing) -> dict[str, Any]:
    """Which inputs and outputs of two models are the same, how that is known, and types that differ."""
    inputs = [(one.first.names[0], one.second.names[0], one.by, one.types) for one in found.inputs]
    outputs = [(one.first.name, one.second.name, one.by, one.types) for one in found.outputs]
    names = ("first", "second", "by", "element_types")
    return {
        noun: [dict(zip(names, row, strict=True)) for row in rows]
        for noun, rows in (("inputs", inputs), ("outputs", outputs))
    }


def summary(comparisons: Sequence[Comparison]) -> dict[str, int]:
    counts = Counter(one.measure.verdict for one in comparisons)
    return {verdict.value: counts[verdict] for verdict in Verdict if verdict in counts}


def _comparison(one: Comparison) -> dict[str, Any]:
    found, worst, excuse = one.measure, one.measure.worst, one.measure.excuse
    required = {"abs": _size(found.max_abs), "rel": _size(found.max_rel)}
    document: dict[str, Any] = {
        **fields_of(one, "level node tensor case subject reference relation"),
        **fields_of(found, "verdict elements mismatched contested"),
        "max_abs": required["abs"],
        "max_rel": required["rel"],
        "max_ulp": found.max_ulp,
        "required": required,
        "tolerance": {"abs": _size(found.tolerance.absolute), "rel": _size(found.tolerance.relative)},
        "worst": worst
        and {"index": list(worst.index), "got": _element(worst.got), "expected": _element(worst.expected)},
        **fields_of(found, "nans infinities remark"),
        # of an output that is not judged as a whole; no number of elements if even the shape is open
        "excuse": excuse
        and {"whole": excuse.is_whole, "elements": excuse.elements, "reason": excuse.why or REACHED},
    }
    for name in ("operator", "caller", "place", "tapped"):
        if value := getattr(one, name):
            document[name] = value
    if one.wrong_runs is not None:
        document["wrong_runs"] = {"wrong": one.wrong_runs[0], "of": one.wrong_runs[1]}
    if one.subject_model:
        document |= fields_of(one, "subject_model reference_model")
    if found.open_once:
        document["unspecified_in"] = getattr(one, f"{found.open_once}_model")
    return document


def _facts(one: NodeFacts, types: Mapping[str, str]) -> dict[str, Any]:
    return {
        **fields_of(one, "name originals kind kernel precision outputs"),
        "converts": conversion(one, types) or None,
        "microseconds": one.microseconds,
    }


def conversion(one: NodeFacts, types: Mapping[str, str]) -> str:
    """Return which element type a scatter node was given instead of its own, "i64 -> i32"; "" if none."""
    own = next((types[name] for name in one.originals if types.get(name)), "")
    used = one.precision.lower()
    return f"{own} -> {used}" if own and used in ELEMENT_TYPES and used != own else ""


def _size(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _element(element: Any) -> Any:
    if isinstance(element, complex):
        return str(element)
    if isinstance(element, float) and not math.isfinite(element):
        return "nan" if math.isnan(element) else "inf" if element > 0 else "-inf"
    return element
