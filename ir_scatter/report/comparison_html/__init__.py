"""What a comparison found as a page with pictures: one file that needs neither a network nor a script.

Templates say it in the order in which they are filled in here.
"""

import importlib.util
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from operator import itemgetter
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeAlias

from ir_scatter.compare.headline import State, headline, headline_of_many, is_single
from ir_scatter.compare.measure import Tolerance, Verdict
from ir_scatter.compare.request import Done
from ir_scatter.compare.result import NUMPY, Compared, Comparison, Level, Outlier
from ir_scatter.core.errors import UsageError
from ir_scatter.core.words import counted
from ir_scatter.report.characters import visible
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
from ir_scatter.runners.base import Outcome, Status
from ir_scatter.runners.gpu_on_cpu.runner import FIDELITY, NAME
from ir_scatter.version import versions

if TYPE_CHECKING:
    from jinja2 import Environment

_Parts: TypeAlias = dict[str, Any]
"""What a template fills in, by the names that it uses."""

_ON_CPU = "@cpu"
"""What the name of a runner ends with that runs another device's plugin on the CPU."""
_USES = (WORKS, REFUSES, DIFFERS, NOT_APPLICABLE)
_NAMES = {NUMPY: "the evaluator of ir-scatter: what the documents say"}
_MOST_DETAILED = 20
"""Differences of a model that are shown in full."""
_LEAST_OUTPUTS = 5
"""Places among them that nodes do not take from outputs."""
_MOST_ON_PAGE = 60
MOST_ROWS = 1_000
"""Rows that each table shows, the worst first: 10,000 nodes took 7 MB."""
_HEAD, _TAIL = 56, 28
"""Letters of a long name that are shown."""
_ILLEGAL, _NOT_TAPPED = "illegal", "not-tapped"
_MEANINGS = {
    Verdict.MISMATCH.value: "beyond the tolerance",
    Verdict.NONDETERMINISTIC.value: "not the same in every run",
    Verdict.CONTESTED.value: "the document leaves the value open, and allows this one",
    Verdict.CLOSE.value: "within the tolerance",
    Verdict.EQUAL.value: "the same bits, NaN like NaN",
    _ILLEGAL: "indices that the document forbids",
    _NOT_TAPPED: "the runner does not show what went into the node",
    Status.REFUSED.value: "the runtime rejects the model or its inputs, in its own words",
    Status.UNSUPPORTED.value: "the runtime does not know an operator, opset or type of the model",
    Status.UNAVAILABLE.value: "not installed, or the device is missing",
    Status.CRASHED.value: "its process ended",
    Status.TIMEOUT.value: "no answer within the time limit",
}
"""What the page says of the words that it uses."""
_WORDS = {_ILLEGAL: "illegal indices", _NOT_TAPPED: "not tapped"}
_QUIET = {"", Verdict.EQUAL.value, Verdict.CLOSE.value, _NOT_TAPPED}
"""What is no difference."""
_ORDER = ["", Verdict.EQUAL.value, _NOT_TAPPED, *(one.value for one in VERDICTS[1:]), _ILLEGAL]


def require_packages() -> None:
    """Raise UsageError if the package is missing that a report needs."""
    if importlib.util.find_spec("jinja2") is None:
        raise UsageError(
            "an HTML report needs jinja2, which is not installed: pip install 'ir-scatter[report]'"
        )


def render(
    done: Done,
    *,
    inputs: str | None = None,
    against: str | None = None,
    command: str = "",
    date: str = "",
    host: str = "",
) -> str:
    """The page, always the same for a comparison and what is told of the circumstances.

    It names the file that inputs came from, or the folder with earlier results; the command, the date and
    the machine, if they are told.
    """
    require_packages()
    template = _environment().get_template("page.html.j2")
    told = [("Command", command), ("Date", date), ("Machine", host)]
    told += [("Fleet", line) for line in lines_of_machines(done.machines)]
    page = _page(done, inputs, against) | {"told": [(name, text) for name, text in told if text]}
    return template.render(page=page, style=_text("style.css")) + "\n"


def _page(done: Done, inputs: str | None, against: str | None) -> _Parts:
    differing = sum(one.differs for one in done.found)
    share = max(1, min(_MOST_DETAILED, _MOST_ON_PAGE // max(differing, 1)))
    order = list(State)
    ordered = sorted(done.found, key=lambda one: order.index(headline(one).state))
    models = [
        _model(one, f"m{number}", share if number < _MOST_ON_PAGE else 0, inputs, against)
        for number, one in enumerate(ordered)
    ]
    head = headline_of_many(done)
    return {
        "counts": summary([one for found in done.found for one in _at_one_level(found)]),
        "state": head.state.value,
        "headline": head.sentence,
        "single": models[0] if is_single(done) else None,
        "models": models,
        "operators": _operators(done.found),
        "versions": versions(),
        "failures": done.failures,
        "skipped": done.skipped,
        "fidelity": list(dict.fromkeys(remark for model in models for remark in model["fidelity"])),
        "illegal": sum(one.is_illegal for found in done.found for one in found.guarded),
    }


def _at_one_level(found: Compared) -> list[Comparison]:
    """Return what is shown: a model of one node is not shown at two levels."""
    is_twice = outputs_are_nodes(found)
    return [one for one in found.comparisons if one.level is Level.NODE or not is_twice]


def _operators(found: Sequence[Compared]) -> _Parts:
    runners, operators = operator_counts(found)
    rows = []
    for name, words in operators.items():
        counts = [words[runner] for runner in runners]
        cells = [[(word, each[word]) for word in _USES if each[word]] for each in counts]
        rows.append({"name": name, "cells": cells, "is_quiet": not any(each[DIFFERS] for each in counts)})
    return {"runners": runners, "rows": rows}


def _model(found: Compared, anchor: str, most: int, inputs: str | None, against: str | None) -> _Parts:
    head, shown = headline(found), _at_one_level(found)
    groups = group(shown)
    nodes = [one for one in groups if one[0].level is Level.NODE]
    outputs = [one for one in groups if one[0].level is Level.MODEL]
    places = min(len(outputs), max(most - len(nodes), min(_LEAST_OUTPUTS, most // 3)))
    chosen = [*nodes[: most - places], *outputs[:places]]
    differences = [
        describe(found, alike, f"{anchor}d{number}", repeat_command(found, alike[0], inputs, against))
        for number, alike in enumerate(chosen)
    ]
    compared = {one.node for one in found.comparisons}
    loud = {one.node for one in found.comparisons if one.measure.verdict.is_difference}
    kernels = [
        {"runner": runner, "facts": one, "is_quiet": loud.isdisjoint(one.originals)}
        for runner, facts in found.facts.items()
        for one in facts
        if not compared.isdisjoint(one.originals)
    ]
    kernels.sort(key=itemgetter("is_quiet"))
    return {
        "anchor": anchor,
        "found": found,
        "counts": summary(shown),
        "headline": head.sentence,
        "state": head.state.value,
        "cases": counted(len(found.feeds), "case"),
        "runners": [_runner(found, outcome) for outcome in found.outcomes],
        "statuses": [
            status.value
            for status in Status
            if any((one.status, one.reason) == (status, None) for one in found.outcomes)
            and status.value in _MEANINGS
        ],
        "fidelity": _fidelity(found),
        "outputs": []
        if outputs_are_nodes(found)
        else [_matrix(found, *group) for group in groups_of(found, Level.MODEL)],
        "nodes": _nodes(found),
        "differences": differences,
        "anchors": {one["cell"]: one["anchor"] for one in differences},
        "more": len(groups) - len(chosen),
        "indices": _indices(found),
        "blames": _blames(found),
        "kernels": kernels[:MOST_ROWS],
        "all_kernels": len(kernels),
        "most": MOST_ROWS,
        "tolerances": _tolerances(found),
        "feeds": [(name, kind_of(array)) for name, array in (found.feeds[0] if found.feeds else {}).items()],
        "inputs": inputs,
        "against": against,
    }


def _nodes(found: Compared) -> list[_Parts]:
    groups = groups_of(found, Level.NODE)
    if not groups and not found.other and (found.not_tapped or any(one.is_illegal for one in found.guarded)):
        groups = [("node", [])]
    return [_matrix(found, noun, chosen, is_node=True) for noun, chosen in groups]


def _matrix(found: Compared, noun: str, chosen: Sequence[Comparison], *, is_node: bool = False) -> _Parts:
    """A row for each tensor and a column for each runner: the worst rows first, the quiet apart.

    A cell is a verdict, "illegal", "not-tapped", or "" where there is nothing to say.
    """
    level = Level.NODE if is_node else Level.MODEL
    columns, rows = by_tensor(chosen)
    operators = {one.node: one.operator for one in chosen}
    others: dict[tuple[str, str], str] = {}
    if level is Level.NODE:
        for illegal in found.guarded:
            if illegal.is_illegal:
                operators.setdefault(illegal.node, illegal.operator)
                others[illegal.node, illegal.runner] = _ILLEGAL
        for hidden in found.not_tapped:
            others.setdefault((hidden.node, hidden.runner), _NOT_TAPPED)
    reference = columns[0][1] if columns else ""
    models = (chosen[0].subject_model, chosen[0].reference_model) if chosen else ("", "")
    known = {subject for subject, _ in columns}
    columns += [
        (runner, reference) for runner in dict.fromkeys(at[1] for at in others) if runner not in known
    ]
    made: list[_Parts] = []
    for name in dict.fromkeys((*rows, *(at[0] for at in others))):
        row = rows.get(name, {})
        cells = [_cell(row.get(at, ()), at, others.get((name, at[0]))) for at in columns]
        worst = max(1, *(_ORDER.index(cell["kind"]) for cell in cells))
        made.append(
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
    made.sort(key=itemgetter("worst"), reverse=True)
    loud = len(made) if len(made) <= FEW_ROWS else sum(row["worst"] > 1 for row in made)
    references = list(dict.fromkeys(reference for _, reference in columns))
    return {
        "noun": noun[:1].upper() + noun[1:],
        "columns": columns,
        "references": references,
        "is_of_two": models[0] != models[1],
        "rows": made[: min(loud, MOST_ROWS)],
        "quiet": made[loud:MOST_ROWS],
        "quiet_count": len(made) - loud,
        "limited": _limited(len(made), noun),
    }


def _limited(total: int, noun: str) -> str:
    """Say how many rows of a table the page shows, and where all of them are; "" if it shows all."""
    if total <= MOST_ROWS:
        return ""
    return f"Showing {MOST_ROWS:,} of {total:,} {noun}s, the worst first; JSON contains all."


def _cell(found: Sequence[Comparison], column: Column, other: str | None) -> _Parts:
    own = [one for one in found if one.subject == one.reference and column[0] != column[1]]
    if other == _ILLEGAL or (other is not None and len(own) == len(found)):
        return {"kind": other, "word": _WORDS[other], "note": ""}
    if not found:
        return {"kind": "", "note": ""}
    verdict = worst_of(found)
    alike = [one for one in found if one.measure.verdict is verdict]
    total = len(own) if all(one in own for one in alike) else len(found) - len(own)
    notes = [_note(verdict, alike, total)]
    if own and not any(one in alike for one in own):
        notes.append("changes from run to run")
    return {"kind": verdict.value, "word": verdict.value, "note": ", ".join(filter(None, notes))}


def _note(verdict: Verdict, alike: Sequence[Comparison], total: int) -> str:
    if verdict is Verdict.EQUAL:
        return ""
    if total > 1 and len(alike) < total:
        return f"in {len(alike)} of {total}"
    measures = [one.measure for one in alike]
    if any(measure.remark for measure in measures):
        return "another shape or type" if all(one.got is not None for one in alike) else "missing"
    if verdict is Verdict.CONTESTED:
        count = max(measure.contested or measure.mismatched for measure in measures)
    else:
        count = max(measure.mismatched for measure in measures)
    elements = max(measure.elements for measure in measures)
    return f"{count:,} of {elements:,}" if count else ""


def _runner(found: Compared, outcome: Outcome) -> _Parts:
    known = found.devices.get(outcome.runner)
    device = known.full_name if known else _NAMES.get(outcome.runner, "")
    if not device and outcome.runner.lower().endswith(_ON_CPU):
        device = NAME
    packages = outcome.versions or (known.versions if known else {})
    shown = ", ".join(f"{name} {version}" for name, version in packages.items())
    return {
        "outcome": outcome,
        "device": device,
        "driver": known.driver if known else "",
        "versions": shown,
        "is_ok": outcome.status is Status.OK,
        "words": status_words(found, outcome),
    }


def _fidelity(found: Compared) -> list[tuple[str, tuple[str, ...]]]:
    """What must be known to judge the results of runners."""
    notes = []
    for outcome in found.outcomes:
        known = found.devices.get(outcome.runner)
        remarks = dict.fromkeys(known.remarks if known else ())
        if outcome.runner.lower().endswith(_ON_CPU):
            remarks |= dict.fromkeys(FIDELITY)
        if remarks and outcome.status is not Status.UNAVAILABLE:
            notes.append((outcome.runner, tuple(remarks)))
    return notes


def _indices(found: Compared) -> list[_Parts]:
    groups: dict[tuple[bool, str, str, str], list[str]] = {}
    for one in found.guarded:
        node = f"{one.node} in {one.model}" if one.model else one.node
        key = (not one.is_illegal, node, one.runner, one.kind)
        groups.setdefault(key, []).append(one.message)
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


def _blames(found: Compared) -> list[_Parts]:
    """Who departs from whom, once for all cases; of a model of one node not of its output as well."""
    of_nodes = {one.runners for one in found.outliers if one.level is Level.NODE and outputs_are_nodes(found)}
    groups: dict[tuple[str, str, tuple[str, ...]], list[Outlier]] = {}
    for one in found.outliers:
        if one.level is Level.NODE or one.runners not in of_nodes:
            groups.setdefault((one.level, one.node or one.tensor, one.runners), []).append(one)
    return [
        {"subject": name, "message": alike[0].message, "cases": {one.case for one in alike}}
        for (_, name, _), alike in sorted(groups.items(), key=lambda item: item[1][0].node is None)
    ]


def time_text(microseconds: float | None) -> str:
    if microseconds is None:
        return ""
    return "< 1 µs" if microseconds < 1 else f"{microseconds:,.0f} µs"


def _tolerances(found: Compared) -> list[tuple[str, str, Tolerance]]:
    rows = dict.fromkeys(
        (
            "outputs" if one.node is None else "nodes",
            kind_of(one.expected).split("[")[0],
            one.measure.tolerance,
        )
        for one in found.comparisons
        if one.expected is not None and not one.measure.remark and one.measure.verdict is not Verdict.EQUAL
    )
    return sorted(rows, key=lambda row: row[:2])


@cache
def _environment() -> "Environment":
    """An environment in which no text of a model can become a tag or hide itself."""
    from jinja2 import DictLoader, Environment, StrictUndefined

    names = ("page.html.j2", "model.html.j2", "parts.html.j2", "pictures.html.j2")
    environment = Environment(
        autoescape=True,
        finalize=_shown,
        loader=DictLoader({name: _text(name) for name in names}),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "short": short,
        "size": size_text,
        "steps": steps_text,
        "time": time_text,
        "file": lambda path: PurePath(path).name,
    }
    environment.globals |= {"policy": POLICY, "implicit": IMPLICIT, "meanings": _MEANINGS}
    return environment


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _shown(value: Any) -> Any:
    """Spell out what cannot be seen, in every text that is not markup of our own."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def short(text: str) -> str:
    """Return a name without its middle if it is long."""
    text = visible(text)
    return text if len(text) <= _HEAD + _TAIL + 1 else f"{text[:_HEAD]}…{text[-_TAIL:]}"
