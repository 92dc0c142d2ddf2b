"""What a comparison found, for programs."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ir_scatter.compare.request import Done
from ir_scatter.compare.result import Compared, Comparison, Excuse, Guarded, Outlier, Verdict
from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.report.characters import as_document, dumps
from ir_scatter.runners.base import NodeFacts, Outcome

REACHED = "operators that move elements or work on each of them carry contested elements there"
"""Why single elements are excused."""


def render(done: Done, *, each: bool = False, versions: Mapping[str, str] | None = None) -> str:
    """One JSON object.

    Args:
        done: what came of one call.
        each: whether every model was compared for itself, so that there is a list of reports.
        versions: of the packages; None for those that are installed.
    """
    if not each:
        return dumps(document(done.found[0], versions, done.skipped))
    reports = [document(one, versions, done.skipped) for one in done.found]
    failures = [
        {"model": one.model, "message": one.message, "readable": not one.is_unreadable}
        for one in done.failures
    ]
    total = summary([comparison for one in done.found for comparison in one.comparisons])
    return dumps(as_document(versions, reports=reports, failures=failures, summary=total))


def document(
    found: Compared, versions: Mapping[str, str] | None, skipped: Sequence[tuple[str, str]] = ()
) -> dict[str, Any]:
    """What is written of one comparison.

    Numbers that JSON has no word for are null where a size is meant, and words ("nan", "inf",
    "-inf") where they are elements.

    Args:
        found: the comparison.
        versions: of the packages; None for those that are installed.
        skipped: runners that were passed over, and why.
    """
    document = as_document(
        versions,
        model=found.model,
        other=found.other or None,
        seed=found.settings.seed,
        cases=len(found.feeds),
        precision=found.settings.precision,
        outcomes=[_outcome(one) for one in found.outcomes],
        comparisons=[_comparison(one) for one in found.comparisons],
        guard=[_guarded(one) for one in found.guarded],
        odd=[_odd(one) for one in found.odd],
        not_tapped=[
            {"runner": one.runner, "node": one.node, "reason": one.reason} for one in found.not_tapped
        ],
        facts={runner: [_facts(one, found.types) for one in facts] for runner, facts in found.facts.items()},
        skipped=[{"runner": runner, "reason": reason} for runner, reason in skipped],
        remarks=list(found.remarks),
        about={runner: list(remarks) for runner, remarks in found.about.items()},
        summary=summary(found.comparisons),
    )
    for one in found.outcomes:
        document["versions"].update(one.versions)
    return document


def summary(comparisons: Sequence[Comparison]) -> dict[str, int]:
    """Count the verdicts, those that occur."""
    counts = {verdict.value: 0 for verdict in Verdict}
    for one in comparisons:
        counts[one.measure.verdict] += 1
    return {verdict: count for verdict, count in counts.items() if count}


def _outcome(one: Outcome) -> dict[str, Any]:
    return {
        "runner": one.runner,
        "status": one.status.value,
        "reason": one.reason,
        "message": one.message,
        "precision": one.precision,
        "seconds": round(one.seconds, 6),
    }


def _comparison(one: Comparison) -> dict[str, Any]:
    found, worst = one.measure, one.measure.worst
    document: dict[str, Any] = {
        "level": one.level.value,
        "node": one.node,
        "tensor": one.tensor,
        "case": one.case,
        "subject": one.subject,
        "reference": one.reference,
        "verdict": found.verdict.value,
        "elements": found.elements,
        "mismatched": found.mismatched,
        "contested": found.contested,
        "max_abs": _size(found.max_abs),
        "max_rel": _size(found.max_rel),
        "max_ulp": found.max_ulp,
        "required": {"abs": _size(found.max_abs), "rel": _size(found.max_rel)},
        "tolerance": {"abs": _size(found.tolerance.absolute), "rel": _size(found.tolerance.relative)},
        "worst": worst
        and {"index": list(worst.index), "got": _element(worst.got), "expected": _element(worst.expected)},
        "nans": list(found.nans),
        "infinities": list(found.infinities),
        "remark": found.remark,
        "excuse": found.excuse and _excuse(found.excuse),
    }
    if one.operator:
        document["operator"] = one.operator
    if one.caller:
        document["caller"] = one.caller
    if one.place:
        document["place"] = list(one.place)
    if one.tapped:
        document["tapped"] = True
    if one.wrong_runs is not None:
        document["wrong_runs"] = {"wrong": one.wrong_runs[0], "of": one.wrong_runs[1]}
    if one.subject_model:
        document |= {"subject_model": one.subject_model, "reference_model": one.reference_model}
    return document


def _excuse(one: Excuse) -> dict[str, Any]:
    """Return what of an output is not judged; `elements` is null if even the shape is open."""
    return {"whole": one.is_whole, "elements": one.elements, "reason": one.why or REACHED}


def _guarded(one: Guarded) -> dict[str, Any]:
    return {
        "runner": one.runner,
        "node": one.node,
        "operator": one.operator,
        "case": one.case,
        "kind": one.kind,
        "illegal": one.is_illegal,
        "message": one.message,
    }


def _odd(one: Outlier) -> dict[str, Any]:
    return {
        "level": one.level.value,
        "node": one.node,
        "tensor": one.tensor,
        "case": one.case,
        "runners": list(one.runners),
        "message": one.message,
    }


def _facts(one: NodeFacts, types: Mapping[str, str]) -> dict[str, Any]:
    return {
        "name": one.name,
        "originals": list(one.originals),
        "kind": one.kind,
        "kernel": one.kernel,
        "precision": one.precision,
        "outputs": list(one.outputs),
        "converts": conversion(one, types) or None,
        "microseconds": one.microseconds,
    }


def conversion(one: NodeFacts, types: Mapping[str, str]) -> str:
    """Return which element type a scatter node was given instead of its own, "i64 -> i32"; "" if none.

    Args:
        one: what the runtime made of it.
        types: the element type of each scatter node's output in the model, by scope.
    """
    own = next((types[name] for name in one.originals if types.get(name)), "")
    used = one.precision.lower()
    return f"{own} -> {used}" if own and used in ELEMENT_TYPES and used != own else ""


def _size(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _element(element: Any) -> Any:
    """Return an element as JSON can say it."""
    if isinstance(element, complex):
        return str(element)
    if isinstance(element, float) and not math.isfinite(element):
        return "nan" if math.isnan(element) else "inf" if element > 0 else "-inf"
    return element
