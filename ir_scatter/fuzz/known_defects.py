"""Matches findings with known defects, and reports since which release a defect exists."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from ir_scatter import runners
from ir_scatter.analysis.scatter_node import ScatterNode, scatter_nodes
from ir_scatter.cases.case import Case
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.temporary import temporary_folder
from ir_scatter.defects import all_defects, by_code
from ir_scatter.defects.base import Defect, Meeting, Result, Symptom
from ir_scatter.defects.evidence import Row, Target, evidence, history, order, result_of
from ir_scatter.formats import FORMATS
from ir_scatter.ops.spec import Role
from ir_scatter.portability import concerns
from ir_scatter.reading import read
from ir_scatter.rules import all_rules
from ir_scatter.runners.base import plain_name
from ir_scatter.validate import Check


def known_defects(
    case: Case, runner: str, release: str, symptom: Symptom, *, inferences: int = 1
) -> tuple[str, ...]:
    """Return the codes of the known defects that explain the symptom of a runner on a case.

    A defect is excluded if it was measured to be absent from the release; for an unmeasured release, the
    latest measured one before it counts. Refusals are explained by refusals only; other symptoms by all
    others, as an out-of-bounds write may cause a wrong value, a changing one or a crash. A defect that
    depends on values counts unless the values of the case rule it out. `inferences` is the number of
    consecutive runs of the model without a reset of its states.
    """
    target = Target(plain_name(runner.rpartition("/")[2]), release)
    is_refused = symptom is Symptom.REFUSED
    candidates = [
        defect for defect in all_defects()
        if concerns(target, defect) and (defect.symptom is Symptom.REFUSED) == is_refused
        and _may_explain(defect, case) and defect.inferences <= inferences
    ]  # fmt: skip
    static = replace(case, shapes="static")
    constant = replace(static, constants=frozenset(Role))
    meetings = {
        defect.code: meeting
        for defect, meeting in _meetings(case, candidates)
        if _is_present(defect, target, meeting)
    }
    uncertain = [code for code, meeting in meetings.items() if meeting.when]
    if uncertain:
        static_codes = {defect.code for defect, _ in _meetings(static, candidates)}
        constant_codes = {defect.code for defect, _ in _meetings(constant, candidates)}
        excluded = static_codes - constant_codes
        return tuple(code for code in meetings if code not in uncertain or code not in excluded)
    return tuple(meetings)


def _is_present(defect: Defect, target: Target, meeting: Meeting) -> bool:
    earlier = [row.release for row in _rows_of(target.runner) if order(row.release) <= order(target.release)]
    for release in (target.release, max(earlier, key=order, default="")):
        latest = evidence(
            defect,
            target._replace(release=release),
            (),
            history(),
            meeting.probes,
            runners.emulator(target.runner),
        )
        if latest.result is not None:
            return latest.is_bad
    return True


def _may_explain(defect: Defect, case: Case) -> bool:
    """Return whether the defect can occur: the case breaks a rule, or the defect has a legal probe."""
    return case.broken is not None or any(not probe.breaks for probe in defect.probes)


def _meetings(case: Case, defects: list[Defect]) -> Iterator[tuple[Defect, Meeting]]:
    with temporary_folder() as folder:
        files = FORMATS[case.format].nodes([case.node()])
        for suffix, data in files.items():
            (Path(folder) / f"model{suffix}").write_bytes(data)
        try:
            model = read(Path(folder) / f"model{next(iter(files))}")
        except UnreadableModel:  # some illegal cases give no readable model
            return
        check = Check(model, [rule for rule in all_rules() if rule.is_legality])
        for scatter in scatter_nodes(model, check.facts):
            if scatter.lookup.spec is not None:
                yield from _meetings_of_node(scatter, check, defects)


def _meetings_of_node(
    scatter: ScatterNode, check: Check, defects: list[Defect]
) -> Iterator[tuple[Defect, Meeting]]:
    diagnostics = check.node(scatter, scatter.node.graph)
    broken = {diagnostic.rule for diagnostic in diagnostics if diagnostic.severity is Severity.ERROR}
    for defect in defects:
        if defect.affects is not None and defect.breaks.issuperset(broken):
            meeting = defect.affects(scatter)
            if meeting is not None:
                yield defect, meeting


def defect_history(code: str, runner: str) -> str:
    """Describe the measured releases: "DEV105 ...: right in 2023.1.0, wrong in 2024.1.0 to 2026.4.1"."""
    spans = [
        f"{by_code()[code].word_of(result)} in {_release_span(releases)}"
        for result, releases in _results_by_release(code, runner)
    ]
    return f"{code} {by_code()[code].name}: " + (", ".join(spans) or "not measured")


def is_regression(code: str, runner: str, release: str) -> bool | None:
    """Return whether an earlier measured release was right; None if no earlier one was measured."""
    earlier = [
        result
        for result, releases in _results_by_release(code, runner)
        if order(releases[0]) < order(release)
    ]
    return Result.RIGHT in earlier if earlier else None


def _results_by_release(code: str, runner: str) -> list[tuple[Result, list[str]]]:
    name, defect = plain_name(runner.rpartition("/")[2]), by_code()[code]
    rows = sorted(_rows_of(name), key=lambda row: order(row.release))
    results = [(result, row.release) for row in rows if (result := result_of(defect, row)) is not None]
    return [
        (result, [release for _, release in group])
        for result, group in groupby(results, lambda pair: pair[0])
    ]


def _rows_of(runner: str) -> list[Row]:
    """Return the measurements of a runner; without any, those of the emulator of its device."""
    rows = [row for row in history() if row.runner == runner]
    return rows or [row for row in history() if row.runner == runners.emulator(runner)]


def _release_span(releases: list[str]) -> str:
    return releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"
