"""A comparison as JSON."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ir_scatter.compare.headline import headline, headline_of_many
from ir_scatter.compare.known import explanation, next_steps
from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.pairing import Pairing
from ir_scatter.compare.request import ComparedModels
from ir_scatter.compare.result import Compared, Comparison, Guarded, Lead, Outlier
from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.report.characters import as_document, dumps, fields_of
from ir_scatter.report.devices_json import machine_groups
from ir_scatter.runners.base import NodeFacts, Outcome

REACHED = "contested elements of an upstream node were propagated there"
"""Default reason for single elements of an output without a verdict."""


def render(done: ComparedModels, *, each: bool = False) -> str:
    """Return one JSON object: the comparison of the only model, or with `each` a list of all."""
    machines = {"machines": machine_groups(done.machines)} if done.machines else {}
    if not each:
        return dumps(document(done.found[0], done.skipped) | machines)
    reports = [document(compared, done.skipped) for compared in done.found]
    failures = [
        {"model": failure.model, "message": failure.message, "readable": not failure.is_unreadable}
        for failure in done.failures
    ]
    total = summary([comparison for compared in done.found for comparison in compared.comparisons])
    verdict = headline_of_many(done)
    outcome = {"headline": verdict.sentence, "state": verdict.state, "interrupted": done.interrupted or None}
    return dumps(as_document(**outcome, **machines, reports=reports, failures=failures, summary=total))


def document(compared: Compared, skipped: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
    """Return the JSON document of the comparison of one model.

    JSON has no NaN and infinities. They become null in numbers (max_abs, tolerance), and the strings "nan",
    "inf", "-inf" in elements.
    """
    verdict = headline(compared)
    document = as_document(
        headline=verdict.sentence,
        state=verdict.state,
        interrupted=compared.interrupted or None,
        model=compared.model,
        other=compared.other or None,
        seed=compared.settings.seed,
        cases=len(compared.feeds),
        precision=compared.settings.precision,
        outcomes=[
            fields_of(item, "runner status reason message precision implicit")
            | {"known_as": compared.known_as.get(item.runner, ())}
            | {"seconds": round(item.seconds, 6)}
            | ({"not_computed": item.not_computed} if item.not_computed else {})
            | _of_models(item, compared)
            for item in compared.outcomes
        ],
        comparisons=[_comparison(item) for item in compared.comparisons],
        guard=[
            fields_of(item, "runner node operator case kind is_illegal message") | _of_model(item)
            for item in compared.guarded
        ],
        odd=[
            fields_of(item, "level node tensor case runners message") | _of_model(item)
            for item in compared.outliers
        ],
        first_differences=[
            fields_of(item, "runner case nodes operators message") for item in compared.first_differences
        ],
        next_steps=[_next_steps(lead) for lead in compared.leads],
        not_tapped=[fields_of(item, "runner node reason") for item in compared.not_tapped],
        not_run=[name.partition(" ")[2] for name in compared.not_run],
        not_tried=compared.not_tried,
        facts={
            runner: [_facts(item, compared.types) for item in facts]
            for runner, facts in compared.facts.items()
        },
        skipped=[{"runner": runner, "reason": reason} for runner, reason in skipped],
        matching=compared.pairing and _matching(compared.pairing),
        remarks=compared.remarks,
        about=dict(compared.about),
        summary=summary(compared.comparisons),
    )
    if compared.machine:
        document["machine"] = compared.machine
    for item in compared.outcomes:
        document["versions"].update(item.versions)
    return document


def _next_steps(lead: Lead) -> dict[str, Any]:
    return {
        **fields_of(lead, "runner model nodes"),
        "known_as": lead.codes,
        "message": explanation(lead),
        "steps": [
            {
                "purpose": step.purpose,
                "command": None if step.call is None else str(step.call),
                "text": step.text or None,
            }
            for step in next_steps(lead)
        ],
    }


def _of_model(item: Guarded | Outlier) -> dict[str, str]:
    return {"model": item.model} if item.model else {}


def _of_models(outcome: Outcome, compared: Compared) -> dict[str, Any]:
    """Return how the run of each of two models ended; {} for a single model."""
    outcomes = compared.by_model.get(outcome.runner)
    if outcomes is None:
        return {}
    pairs = zip((compared.model, compared.other), outcomes, strict=False)
    return {"models": [{"model": path, **fields_of(each, "status reason message")} for path, each in pairs]}


def _matching(pairing: Pairing) -> dict[str, Any]:
    """Return the pairs of inputs and outputs of two models, how they were matched, and differing types."""
    inputs = [(pair.first.names[0], pair.second.names[0], pair.by, pair.types) for pair in pairing.inputs]
    outputs = [(pair.first.name, pair.second.name, pair.by, pair.types) for pair in pairing.outputs]
    names = ("first", "second", "by", "element_types")
    return {
        noun: [dict(zip(names, row, strict=True)) for row in rows]
        for noun, rows in (("inputs", inputs), ("outputs", outputs))
    }


def summary(comparisons: Sequence[Comparison]) -> dict[str, int]:
    counts = Counter(comparison.measure.verdict for comparison in comparisons)
    return {verdict.value: counts[verdict] for verdict in Verdict if verdict in counts}


def _comparison(comparison: Comparison) -> dict[str, Any]:
    measure, worst, excuse = comparison.measure, comparison.measure.worst, comparison.measure.excuse
    required = {"abs": _size(measure.max_abs), "rel": _size(measure.max_rel)}
    document: dict[str, Any] = {
        **fields_of(comparison, "level node tensor case subject reference relation"),
        **fields_of(measure, "verdict elements mismatched contested"),
        "known_as": comparison.known_as,
        "max_abs": required["abs"],
        "max_rel": required["rel"],
        "max_ulp": measure.max_ulp,
        "required": required,
        "tolerance": {"abs": _size(measure.tolerance.absolute), "rel": _size(measure.tolerance.relative)},
        "worst": worst
        and {"index": list(worst.index), "got": _element(worst.got), "expected": _element(worst.expected)},
        **fields_of(measure, "nans infinities remark"),
        # elements without a verdict; their number is null if even the shape is unspecified
        "excuse": excuse
        and {"whole": excuse.is_whole, "elements": excuse.elements, "reason": excuse.why or REACHED},
    }
    if measure.explanation is not None:
        explanation = measure.explanation
        document["rounding"] = {
            **fields_of(explanation, "precision differing"),
            "bound": _size(explanation.bound),
        }
    for name in ("operator", "caller", "place", "tapped"):
        if value := getattr(comparison, name):
            document[name] = value
    if comparison.wrong_runs is not None:
        document["wrong_runs"] = {"wrong": comparison.wrong_runs[0], "of": comparison.wrong_runs[1]}
    if comparison.subject_model:
        document |= fields_of(comparison, "subject_model reference_model")
    if measure.unspecified_in:
        document["unspecified_in"] = getattr(comparison, f"{measure.unspecified_in}_model")
    return document


def _facts(node: NodeFacts, types: Mapping[str, str]) -> dict[str, Any]:
    return {
        **fields_of(node, "name originals kind kernel precision outputs"),
        "converts": conversion(node, types) or None,
        "microseconds": node.microseconds,
    }


def conversion(node: NodeFacts, types: Mapping[str, str]) -> str:
    """Return how a runtime changed the element type of a node, "i64 -> i32"; "" if it did not."""
    declared = next((types[name] for name in node.originals if types.get(name)), "")
    used = node.precision.lower()
    return f"{declared} -> {used}" if declared and used in ELEMENT_TYPES and used != declared else ""


def _size(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _element(element: Any) -> Any:
    if isinstance(element, complex):
        return str(element)
    if isinstance(element, float) and not math.isfinite(element):
        return "nan" if math.isnan(element) else "inf" if element > 0 else "-inf"
    return element
