"""A comparison as an HTML page with pictures: self-contained, without scripts.

The functions here compute values for the templates, in the order of the page.
"""

from collections.abc import Sequence
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from ir_scatter.compare.headline import State, headline, headline_of_many, is_single
from ir_scatter.compare.known import explanation, next_steps
from ir_scatter.compare.measure import Tolerance, Verdict
from ir_scatter.compare.request import ComparedModels
from ir_scatter.compare.result import Compared, Comparison, Level, Outlier
from ir_scatter.core.words import counted
from ir_scatter.report.comparison_html.difference import (
    describe,
    group,
    kind_of,
    repeat_command,
    size_text,
    steps_text,
)
from ir_scatter.report.comparison_json import summary
from ir_scatter.report.comparison_text import IMPLICIT, POLICY
from ir_scatter.report.devices_text import lines_of_machines
from ir_scatter.report.matrices import (
    DIFFERS,
    FEW_ROWS,
    NOT_APPLICABLE,
    REFUSES,
    VERDICTS,
    WORKS,
    Column,
    by_tensor,
    groups_of,
    operator_counts,
    outputs_are_nodes,
    status_words,
    worst_of,
)
from ir_scatter.report.page import environment
from ir_scatter.runners.base import Outcome, Status
from ir_scatter.runners.defaults import NUMPY
from ir_scatter.runners.gpu_on_cpu.runner import FIDELITY, NAME

if TYPE_CHECKING:
    from jinja2 import Environment

_Parts: TypeAlias = dict[str, Any]
"""Values for a template, by name."""

_ON_CPU = "@cpu"
"""Suffix of runners that run another device's plugin on the CPU."""
_USES = (WORKS, REFUSES, DIFFERS, NOT_APPLICABLE)
_NAMES = {NUMPY: "the evaluator of ir-scatter, which follows the specification"}
_MOST_DETAILED = 20
"""Maximum differences of one model that are shown in full."""
_LEAST_OUTPUTS = 5
"""Number of these reserved for model outputs, however many nodes differ."""
_MOST_ON_PAGE = 60
"""Maximum differences on a page, over all models, that are shown in full."""
MOST_ROWS = 1_000
"""Maximum rows of each table, the worst first: a table of 10,000 nodes took 7 MB."""
_ILLEGAL, _NOT_TAPPED = "illegal", "not-tapped"
_MEANINGS = {
    Verdict.MISMATCH.value: "beyond the tolerance and what rounding explains",
    Verdict.NONDETERMINISTIC.value: "changes from run to run",
    Verdict.UNKNOWN.value: "rounding explains any difference of this size",
    Verdict.PRECISION.value: "explained by the precision in which the runner may compute",
    Verdict.CONTESTED.value: "one of several values that the specification allows",
    Verdict.CLOSE.value: "within the tolerance, or what rounding explains",
    Verdict.EQUAL.value: "the same bits; NaN equals NaN",
    _ILLEGAL: "indices that the specification forbids",
    _NOT_TAPPED: "the runner does not show the inputs of the node",
    Status.REFUSED.value: "the runtime rejects the model or its inputs, with this error",
    Status.UNSUPPORTED.value: "the runtime does not support an operator, opset or type of the model",
    Status.UNAVAILABLE.value: "not installed, or the device is missing",
    Status.CRASHED.value: "its process crashed",
    Status.TIMEOUT.value: "no answer within the time limit",
    Status.INPUTS_DO_NOT_FIT.value: "the model fails on the drawn inputs, wherever it is accepted",
}
"""Explanations of verdicts and statuses, by their words."""
_WORDS = {_ILLEGAL: "illegal indices", _NOT_TAPPED: "not tapped"}
_QUIET = {"", Verdict.EQUAL.value, Verdict.CLOSE.value, _NOT_TAPPED}
"""Words in table cells that mean no difference."""
_ORDER = ["", Verdict.EQUAL.value, _NOT_TAPPED, *(verdict.value for verdict in VERDICTS[1:]), _ILLEGAL]


def render(
    done: ComparedModels,
    *,
    inputs: str | None = None,
    against: str | None = None,
    command: str = "",
    date: str = "",
    host: str = "",
) -> str:
    """Return the page; the same arguments always give the same page.

    Args:
        done: the comparison.
        inputs: the path of the inputs, for the commands that repeat a case.
        against: the folder of saved results that were compared with.
        command: the command line, for the header; "" to omit it, like date and host.
        date: when the comparison was run.
        host: where it was run.
    """
    circumstances = [("Command", command), ("Date", date), ("Machine", host)]
    circumstances += [("Fleet", line) for line in lines_of_machines(done.machines)]
    page = _page(done, inputs, against) | {
        "circumstances": [(name, text) for name, text in circumstances if text]
    }
    return _environment().get_template("comparison.html.j2").render(page=page) + "\n"


def _page(done: ComparedModels, inputs: str | None, against: str | None) -> _Parts:
    differing = sum(compared.differs for compared in done.found)
    share = max(1, min(_MOST_DETAILED, _MOST_ON_PAGE // max(differing, 1)))
    order = list(State)
    ordered = sorted(done.found, key=lambda compared: order.index(headline(compared).state))
    models = [
        _model(compared, f"m{number}", share if number < _MOST_ON_PAGE else 0, inputs, against)
        for number, compared in enumerate(ordered)
    ]
    head = headline_of_many(done)
    return {
        "counts": summary([comparison for compared in done.found for comparison in _at_one_level(compared)]),
        "state": head.state.value,
        "headline": head.sentence,
        "single": models[0] if is_single(done) else None,
        "models": models,
        "operators": _operators(done.found),
        "failures": done.failures,
        "skipped": done.skipped,
        "fidelity": list(dict.fromkeys(remark for model in models for remark in model["fidelity"])),
        "illegal": sum(violation.is_illegal for compared in done.found for violation in compared.guarded),
    }


def _at_one_level(compared: Compared) -> list[Comparison]:
    """Return the comparisons to show; outputs that only repeat the single node's verdicts are left out."""
    is_twice = outputs_are_nodes(compared)
    return [
        comparison for comparison in compared.comparisons if comparison.level is Level.NODE or not is_twice
    ]


def _operators(models: Sequence[Compared]) -> _Parts:
    runners, operators = operator_counts(models)
    rows = []
    for name, words in operators.items():
        counts = [words[runner] for runner in runners]
        cells = [[(word, counter[word]) for word in _USES if counter[word]] for counter in counts]
        rows.append(
            {"name": name, "cells": cells, "is_quiet": not any(counter[DIFFERS] for counter in counts)}
        )
    return {"runners": runners, "rows": rows}


def _model(compared: Compared, anchor: str, most: int, inputs: str | None, against: str | None) -> _Parts:
    head, comparisons = headline(compared), _at_one_level(compared)
    groups = group(comparisons)
    nodes = [alike for alike in groups if alike[0].level is Level.NODE]
    outputs = [alike for alike in groups if alike[0].level is Level.MODEL]
    places = min(len(outputs), max(most - len(nodes), min(_LEAST_OUTPUTS, most // 3)))
    chosen = [*nodes[: most - places], *outputs[:places]]
    differences = [
        describe(compared, alike, f"{anchor}d{number}", repeat_command(compared, alike[0], inputs, against))
        for number, alike in enumerate(chosen)
    ]
    compared_nodes = {comparison.node for comparison in compared.comparisons}
    loud = {
        comparison.node for comparison in compared.comparisons if comparison.measure.verdict.is_difference
    }
    kernels = [
        {"runner": runner, "facts": facts, "is_quiet": loud.isdisjoint(facts.originals)}
        for runner, all_facts in compared.facts.items()
        for facts in all_facts
        if not compared_nodes.isdisjoint(facts.originals)
    ]
    kernels.sort(key=itemgetter("is_quiet"))
    return {
        "anchor": anchor,
        "compared": compared,
        "counts": summary(comparisons),
        "headline": head.sentence,
        "state": head.state.value,
        "cases": counted(len(compared.feeds), "case"),
        "runners": [_runner(compared, outcome) for outcome in compared.outcomes],
        "statuses": [
            status.value
            for status in Status
            if any((outcome.status, outcome.reason) == (status, None) for outcome in compared.outcomes)
            and status.value in _MEANINGS
        ],
        "fidelity": _fidelity(compared),
        "outputs": []
        if outputs_are_nodes(compared)
        else [_matrix(compared, *group) for group in groups_of(compared, Level.MODEL)],
        "nodes": _nodes(compared),
        "differences": differences,
        "anchors": {difference["cell"]: difference["anchor"] for difference in differences},
        "more": len(groups) - len(chosen),
        "indices": _indices(compared),
        "blames": _blames(compared),
        "leads": [{"explanation": explanation(lead), "steps": next_steps(lead)} for lead in compared.leads],
        "kernels": kernels[:MOST_ROWS],
        "all_kernels": len(kernels),
        "most": MOST_ROWS,
        "tolerances": _tolerances(compared),
        "feeds": [
            (name, kind_of(array)) for name, array in (compared.feeds[0] if compared.feeds else {}).items()
        ],
        "inputs": inputs,
        "against": against,
    }


def _nodes(compared: Compared) -> list[_Parts]:
    groups = groups_of(compared, Level.NODE)
    if (
        not groups
        and not compared.other
        and (compared.not_tapped or any(violation.is_illegal for violation in compared.guarded))
    ):
        groups = [("node", [])]
    return [_matrix(compared, noun, comparisons, is_node=True) for noun, comparisons in groups]


def _matrix(
    compared: Compared, noun: str, comparisons: Sequence[Comparison], *, is_node: bool = False
) -> _Parts:
    """Return a table with a row for each tensor and a column for each runner.

    The worst rows come first; rows in which all verdicts are equal are separate. A cell is a verdict,
    "illegal", "not-tapped", or "".
    """
    level = Level.NODE if is_node else Level.MODEL
    columns, rows = by_tensor(comparisons)
    operators = {comparison.node: comparison.operator for comparison in comparisons}
    states: dict[tuple[str, str], str] = {}
    if level is Level.NODE:
        for illegal in compared.guarded:
            if illegal.is_illegal:
                operators.setdefault(illegal.node, illegal.operator)
                states[illegal.node, illegal.runner] = _ILLEGAL
        for hidden in compared.not_tapped:
            states.setdefault((hidden.node, hidden.runner), _NOT_TAPPED)
    reference = columns[0][1] if columns else ""
    models = (comparisons[0].subject_model, comparisons[0].reference_model) if comparisons else ("", "")
    subjects = {subject for subject, _ in columns}
    columns += [
        (runner, reference)
        for runner in dict.fromkeys(place[1] for place in states)
        if runner not in subjects
    ]
    table_rows: list[_Parts] = []
    for name in dict.fromkeys((*rows, *(place[0] for place in states))):
        row = rows.get(name, {})
        cells = [_cell(row.get(place, ()), place, states.get((name, place[0]))) for place in columns]
        worst = max(1, *(_ORDER.index(cell["kind"]) for cell in cells))
        table_rows.append(
            {
                "is_quiet": _ORDER[worst] in _QUIET,
                "name": name,
                "operator": operators.get(name, ""),
                "level": level,
                "models": models,
                "cells": cells,
                "worst": worst,
            }
        )
    table_rows.sort(key=itemgetter("worst"), reverse=True)
    loud = len(table_rows) if len(table_rows) <= FEW_ROWS else sum(row["worst"] > 1 for row in table_rows)
    references = list(dict.fromkeys(reference for _, reference in columns))
    return {
        "noun": noun[:1].upper() + noun[1:],
        "columns": columns,
        "references": references,
        "is_of_two": models[0] != models[1],
        "rows": table_rows[: min(loud, MOST_ROWS)],
        "quiet": table_rows[loud:MOST_ROWS],
        "quiet_count": len(table_rows) - loud,
        "limited": _limited(len(table_rows), noun),
    }


def _limited(total: int, noun: str) -> str:
    """Return a note that a table shows only some rows; "" if it shows all."""
    if total <= MOST_ROWS:
        return ""
    return f"Showing {MOST_ROWS:,} of {total:,} {noun}s, the worst first; JSON contains all."


def _cell(comparisons: Sequence[Comparison], column: Column, state: str | None) -> _Parts:
    repeats = [
        comparison
        for comparison in comparisons
        if comparison.subject == comparison.reference and column[0] != column[1]
    ]
    if state == _ILLEGAL or (state is not None and len(repeats) == len(comparisons)):
        return {"kind": state, "word": _WORDS[state], "note": ""}
    if not comparisons:
        return {"kind": "", "note": ""}
    verdict = worst_of(comparisons)
    alike = [comparison for comparison in comparisons if comparison.measure.verdict is verdict]
    total = (
        len(repeats)
        if all(comparison in repeats for comparison in alike)
        else len(comparisons) - len(repeats)
    )
    notes = [_note(verdict, alike, total)]
    if repeats and not any(comparison in alike for comparison in repeats):
        notes.append("changes from run to run")
    return {"kind": verdict.value, "word": verdict.value, "note": ", ".join(filter(None, notes))}


def _note(verdict: Verdict, alike: Sequence[Comparison], total: int) -> str:
    if verdict is Verdict.EQUAL:
        return ""
    if total > 1 and len(alike) < total:
        return f"in {len(alike)} of {total}"
    measures = [comparison.measure for comparison in alike]
    if any(measure.remark for measure in measures):
        return (
            "another shape or type" if all(comparison.got is not None for comparison in alike) else "missing"
        )
    if verdict in {Verdict.PRECISION, Verdict.UNKNOWN}:
        count = max(measure.explanation.differing for measure in measures if measure.explanation)
    elif verdict is Verdict.CONTESTED:
        count = max(measure.contested or measure.mismatched for measure in measures)
    else:
        count = max(measure.mismatched for measure in measures)
    elements = max(measure.elements for measure in measures)
    return f"{count:,} of {elements:,}" if count else ""


def _runner(compared: Compared, outcome: Outcome) -> _Parts:
    device = compared.devices.get(outcome.runner)
    title = device.full_name if device else _NAMES.get(outcome.runner, "")
    if not title and outcome.runner.lower().endswith(_ON_CPU):
        title = NAME
    packages = outcome.versions or (device.versions if device else {})
    packages_text = ", ".join(f"{name} {version}" for name, version in packages.items())
    return {
        "outcome": outcome,
        "device": title,
        "driver": device.driver if device else "",
        "versions": packages_text,
        "is_ok": outcome.status is Status.OK,
        "words": status_words(compared, outcome),
    }


def _fidelity(compared: Compared) -> list[tuple[str, tuple[str, ...]]]:
    """Return (runner, remarks) pairs: remarks on the limits of a runner's results."""
    notes = []
    for outcome in compared.outcomes:
        device = compared.devices.get(outcome.runner)
        remarks = dict.fromkeys(device.remarks if device else ())
        if outcome.runner.lower().endswith(_ON_CPU):
            remarks |= dict.fromkeys(FIDELITY)
        if remarks and outcome.status is not Status.UNAVAILABLE:
            notes.append((outcome.runner, tuple(remarks)))
    return notes


def _indices(compared: Compared) -> list[_Parts]:
    groups: dict[tuple[bool, str, str, str], list[str]] = {}
    for violation in compared.guarded:
        node = f"{violation.node} in {violation.model}" if violation.model else violation.node
        key = (not violation.is_illegal, node, violation.runner, violation.kind)
        groups.setdefault(key, []).append(violation.message)
    return [
        {
            "node": node,
            "runner": runner,
            "kind": kind if is_legal else f"illegal: {kind}",
            "message": messages[0],
            "times": len(messages),
        }
        for (is_legal, node, runner, kind), messages in sorted(groups.items(), key=lambda item: item[0][0])
    ]


def _blames(compared: Compared) -> list[_Parts]:
    """Return the runners that differ from the majority, once for all cases.

    Outputs that only repeat the single node of a model are omitted.
    """
    of_nodes = {
        outlier.runners
        for outlier in compared.outliers
        if outlier.level is Level.NODE and outputs_are_nodes(compared)
    }
    groups: dict[tuple[str, str, tuple[str, ...]], list[Outlier]] = {}
    for outlier in compared.outliers:
        if outlier.level is Level.NODE or outlier.runners not in of_nodes:
            groups.setdefault((outlier.level, outlier.node or outlier.tensor, outlier.runners), []).append(
                outlier
            )
    return [
        {"subject": name, "message": alike[0].message, "cases": {outlier.case for outlier in alike}}
        for (_, name, _), alike in sorted(groups.items(), key=lambda item: item[1][0].node is None)
    ]


def time_text(microseconds: float | None) -> str:
    if microseconds is None:
        return ""
    return "< 1 µs" if microseconds < 1 else f"{microseconds:,.0f} µs"


def _tolerances(compared: Compared) -> list[tuple[str, str, Tolerance]]:
    rows = dict.fromkeys(
        (
            "outputs" if comparison.node is None else "nodes",
            kind_of(comparison.expected).split("[")[0],
            comparison.measure.tolerance,
        )
        for comparison in compared.comparisons
        if comparison.expected is not None
        and not comparison.measure.remark
        and comparison.measure.verdict is not Verdict.EQUAL
    )
    return sorted(rows, key=lambda row: row[:2])


@cache
def _environment() -> "Environment":
    """Return the Jinja environment of all pages, with the functions that this page's templates use."""
    extended = environment()
    extended.filters |= {"size": size_text, "steps": steps_text, "time": time_text}
    extended.globals |= {"policy": POLICY, "implicit": IMPLICIT, "meanings": _MEANINGS}
    return extended
