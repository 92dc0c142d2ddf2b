"""Which known defect a finding shows, and since when: a plugin engineer's first two questions."""

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
    """Return the codes of those defects that explain what a runner does with a case.

    What its release was measured to get right is none, or the latest release before it if nobody measured it.
    What is refused is explained by refusals only, and the rest by the rest, as who writes where he should
    not may give a wrong value, another one each time, or none. What may be met counts, unless the numbers of
    the case exclude it. It ran so many inferences in a row without a reset of states.
    """
    target = Target(plain_name(runner.rpartition("/")[2]), release)
    is_refused = symptom is Symptom.REFUSED
    alike = [
        one for one in all_defects()
        if concerns(target, one) and (one.symptom is Symptom.REFUSED) == is_refused
        and _is_legal(one, case) and one.inferences <= inferences
    ]  # fmt: skip
    static = replace(case, shapes="static")
    stored = replace(static, constants=frozenset(Role))
    met = {one.code: meeting for one, meeting in _meetings(case, alike) if _is_there(one, target, meeting)}
    maybe = [code for code, meeting in met.items() if meeting.when]
    if maybe:
        of_static = {one.code for one, _ in _meetings(static, alike)}
        of_stored = {one.code for one, _ in _meetings(stored, alike)}
        excluded = of_static - of_stored
        return tuple(code for code in met if code not in maybe or code not in excluded)
    return tuple(met)


def _is_there(defect: Defect, target: Target, meeting: Meeting) -> bool:
    earlier = [row.release for row in _rows(target.runner) if order(row.release) <= order(target.release)]
    for release in (target.release, max(earlier, key=order, default="")):
        found = evidence(
            defect,
            target._replace(release=release),
            (),
            history(),
            meeting.probes,
            runners.emulator(target.runner),
        )
        if found.result is not None:
            return found.is_bad
    return True


def _is_legal(defect: Defect, case: Case) -> bool:
    """Tell whether a defect has a probe that breaks no rule, if the case breaks none."""
    return case.broken is not None or any(not probe.breaks for probe in defect.probes)


def _meetings(case: Case, defects: list[Defect]) -> Iterator[tuple[Defect, Meeting]]:
    with temporary_folder() as folder:
        files = FORMATS[case.format].nodes([case.node()])
        for suffix, data in files.items():
            (Path(folder) / f"model{suffix}").write_bytes(data)
        try:
            model = read(Path(folder) / f"model{next(iter(files))}")
        except UnreadableModel:  # what is illegal may be so
            return
        check = Check(model, [rule for rule in all_rules() if rule.is_legality])
        for scatter in scatter_nodes(model, check.facts):
            if scatter.lookup.spec is not None:
                yield from _of_node(scatter, check, defects)


def _of_node(scatter: ScatterNode, check: Check, defects: list[Defect]) -> Iterator[tuple[Defect, Meeting]]:
    found = check.node(scatter, scatter.node.graph)
    broken = {one.rule for one in found if one.severity is Severity.ERROR}
    for defect in defects:
        if defect.affects is not None and defect.breaks.issuperset(broken):
            meeting = defect.affects(scatter)
            if meeting is not None:
                yield defect, meeting


def told_since(code: str, runner: str) -> str:
    """Say what was measured of a defect: "DEV105 ...: right in 2023.1.0, wrong in 2024.1.0 to 2026.4.1"."""
    spans = [f"{result} in {_span(releases)}" for result, releases in _measured(code, runner)]
    return f"{code} {by_code()[code].name}: " + (", ".join(spans) or "not measured")


def is_regression(code: str, runner: str, release: str) -> bool | None:
    """Tell whether an earlier release was right; None if none was measured."""
    earlier = [result for result, releases in _measured(code, runner) if order(releases[0]) < order(release)]
    return Result.RIGHT in earlier if earlier else None


def _measured(code: str, runner: str) -> list[tuple[Result, list[str]]]:
    name, defect = plain_name(runner.rpartition("/")[2]), by_code()[code]
    rows = sorted(_rows(name), key=lambda row: order(row.release))
    known = [(result, row.release) for row in rows if (result := result_of(defect, row)) is not None]
    return [(result, [release for _, release in each]) for result, each in groupby(known, lambda one: one[0])]


def _rows(runner: str) -> list[Row]:
    """Return what was measured of a runner, or of the one that stands in for it."""
    own = [row for row in history() if row.runner == runner]
    return own or [row for row in history() if row.runner == runners.emulator(runner)]


def _span(releases: list[str]) -> str:
    return releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"
