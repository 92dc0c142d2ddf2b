"""Tables of a comparison: verdicts by tensor and runner, operators by runner, kernels that ran the nodes."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.result import NUMPY, Compared, Comparison, Level, Outlier, short_names
from ir_scatter.core.words import counted
from ir_scatter.report.characters import Cell, Table
from ir_scatter.report.comparison_json import conversion
from ir_scatter.runners.base import OTHER_FORMAT, Outcome, Status
from ir_scatter.runners.openvino.runner import PREFIX

_COLORS = {
    Verdict.EQUAL: "green",
    Verdict.CLOSE: "green",
    Verdict.CONTESTED: "yellow",
    Verdict.NONDETERMINISTIC: "red",
    Verdict.MISMATCH: "red",
}
VERDICTS = list(Verdict)
"""The better ones first."""
MOST_ROWS = 40
"""Rows of a table, and lines of a list; more are counted."""
FEW_ROWS = 6
"""So many rows are drawn even if all verdicts in them are equal, and so many kernels one by one."""

Column: TypeAlias = tuple[str, str]
"""A runner, and the one that it is held against."""
Row: TypeAlias = dict[Column, list[Comparison]]

WORKS, REFUSES, DIFFERS = "works", "refuses", "differs"
NOT_APPLICABLE = "n/a"


def tensor_of(one: Comparison) -> str:
    """Return what a row is called: the scope of the node, or the output."""
    return one.tensor if one.node is None else one.node


def name_of(one: Comparison) -> str:
    """Return what a tensor is called: the output, or the node with its operator."""
    return one.tensor if one.node is None else f"{one.node} ({one.operator})"


def status_words(found: Compared, outcome: Outcome) -> str:
    """Return how a runner ended on each of two models, once if it is the same: "ok", "ok, n/a"."""
    each = found.by_model.get(outcome.runner) or (outcome,)
    words = (NOT_APPLICABLE if one.reason == OTHER_FORMAT else one.status.value for one in each)
    return ", ".join(dict.fromkeys(words))


def outputs_are_nodes(found: Compared) -> bool:
    """Tell whether a model is one node, and each verdict on its output is one on the node as well."""
    verdicts: dict[Level, set[tuple[int, str, Verdict]]] = {Level.MODEL: set(), Level.NODE: set()}
    for one in found.comparisons:
        verdicts[one.level].add((one.case, one.subject, one.measure.verdict))
    return found.is_one_node and verdicts[Level.MODEL] <= verdicts[Level.NODE]


def untold_outliers(found: Compared, told: str) -> list[Outlier]:
    """Return who is wrong where neither verdicts nor what was told say it."""
    wrong = {
        (one.node, one.tensor, one.case, one.subject)
        for one in found.comparisons
        if one.measure.verdict.is_difference and one.subject != one.reference
    }
    untold = []
    for one in found.outliers:
        named = {(one.node, one.tensor, one.case, name) for name in one.runners}
        if one.message not in told and (one.tapped or found.other or not named <= wrong):
            untold.append(one)
    return untold


def by_tensor(found: Sequence[Comparison]) -> tuple[list[Column], dict[str, Row]]:
    """Put comparisons of one level into columns, and rows by tensor.

    What a runner is against itself goes where the runner is judged anyway.
    """
    pairs: dict[str, Column] = {}
    for one in found:
        if one.subject != one.reference:
            pairs.setdefault(one.subject, (one.subject, one.reference))
    columns: dict[Column, None] = {}
    rows: dict[str, Row] = {}
    for one in found:
        column = (one.subject, one.reference)
        if one.subject == one.reference:
            column = pairs.get(one.subject, column)
        columns[column] = None
        rows.setdefault(tensor_of(one), {}).setdefault(column, []).append(one)
    return list(columns), rows


def groups_of(found: Compared, level: Level) -> list[tuple[str, list[Comparison]]]:
    """Return what goes into one table each, with what its rows are: of two models there are up to three.

    First the second model against the first, on each runner; then each of them against NumPy.
    """
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for one in found.comparisons:
        if one.level is level:
            groups.setdefault((one.subject_model, one.reference_model), []).append(one)
    named = []
    for (subject, reference), members in groups.items():
        noun = "output" if level is Level.MODEL else "node"
        if found.other:
            first, second = short_names(found.other, found.model)
            names = {found.other: first, found.model: second}
            noun += f" of {names.get(subject, subject)}"
            noun += f", against {names.get(reference, reference)}" if subject != reference else ""
        named.append((noun, members))
    return named


def worst_of(found: Iterable[Comparison]) -> Verdict:
    return max((one.measure.verdict for one in found), key=VERDICTS.index)


def verdict_matrix(found: Sequence[Comparison], noun: str) -> Table:
    """Return the table of one level, the worst rows first; what is behind so many rows is counted."""
    columns, by_name = by_tensor(found)
    rows = sorted(by_name.values(), key=lambda row: VERDICTS.index(worst_of(_all(row))), reverse=True)
    loud = sum(worst_of(_all(row)) is not Verdict.EQUAL for row in rows)
    shown = min(max(loud, FEW_ROWS), MOST_ROWS)
    drawn: list[tuple[object, ...]] = [
        (
            Cell(name_of(_all(row)[0]), narrow=tensor_of(_all(row)[0])),
            *(_worst_cell(row.get(column, ())) for column in columns),
        )
        for row in rows[:shown]
    ]
    rest = rows[shown:]
    if rest:
        joined = [[one for row in rest for one in row.get(column, ())] for column in columns]
        cells = [_worst_cell(same, counts=False) for same in joined]
        is_equal = all(cell.text in {"", Verdict.EQUAL.value} for cell in cells)
        drawn.append((f"and {len(rest)} more{'' if is_equal else ', at worst'}", *cells))
    names, references = [subject for subject, _ in columns], {reference for _, reference in columns}
    if any(subject != reference for subject, reference in columns):
        if len(references) == 1:
            noun += f", against {references.pop()}"
        else:
            names = [f"{subject} against {reference}" for subject, reference in columns]
    return Table((noun, *map(_runner_cell, names)), drawn)


def _runner_cell(name: str) -> Cell:
    """Return the header of a runner's column; in a narrow one its short name, which `--on` takes as well."""
    return Cell(name, narrow=name.replace(PREFIX, ""))


def _all(row: Row) -> list[Comparison]:
    return [one for same in row.values() for one in same]


def _worst_cell(found: Sequence[Comparison], *, counts: bool = True) -> Cell:
    if not found:
        return Cell("")
    verdict = worst_of(found)
    same = sum(one.measure.verdict is verdict for one in found)
    text, narrow = verdict.value, verdict.value
    if counts and same < len(found):
        text, narrow = f"{verdict} ({same} of {len(found)})", f"{verdict} {same}/{len(found)}"
    return Cell(text, _COLORS[verdict], narrow)


def operator_counts(found: Sequence[Compared]) -> tuple[list[str], dict[str, defaultdict[str, Counter[str]]]]:
    """Return runners, and by operator and runner of the nodes of all models how many the runner gets right.

    A node works on a runner if what the runner gives for it agrees with the document, or is one of
    several values that the document allows. A runner refuses all nodes of a model that it does not
    run, for whatever reason, but a format that is not the runner's is not applicable; a node that could
    not be looked at does not count.
    """
    operators = defaultdict[str, defaultdict[str, Counter[str]]](lambda: defaultdict(Counter))
    runners: dict[str, None] = {}
    for one in found:
        for outcome in one.outcomes:
            if outcome.runner == NUMPY:
                continue
            runners.setdefault(outcome.runner)
            if outcome.status is not Status.OK:
                word = NOT_APPLICABLE if outcome.reason == OTHER_FORMAT else REFUSES
                for operator in one.operators.values():
                    operators[operator][outcome.runner][word] += 1
        nodes: dict[tuple[str, str, str | None], bool] = {}
        for case in one.comparisons:
            if case.level is Level.NODE:
                node = (case.operator, case.subject, case.node)
                nodes[node] = nodes.get(node, False) or case.measure.verdict.is_difference
        for (operator, runner, _), is_wrong in nodes.items():
            operators[operator][runner][DIFFERS if is_wrong else WORKS] += 1
    return list(runners), dict(sorted(operators.items()))


def operator_matrix(found: Sequence[Compared]) -> Table:
    """Return a row for each operator, of what `operator_counts` says."""
    runners, operators = operator_counts(found)
    rows: list[tuple[object, ...]] = [
        (name, *(_counts(words[runner]) for runner in runners)) for name, words in operators.items()
    ]
    return Table(("operator", *map(_runner_cell, runners)), rows)


def _counts(counts: Mapping[str, int]) -> str:
    words = [f"{word} {counts[word]}" for word in (WORKS, REFUSES, DIFFERS) if counts.get(word)]
    return ", ".join(words) or (NOT_APPLICABLE if counts else "")


def kernel_table(found: Compared) -> Table:
    """Return the table: first the nodes that differ, then the others, together if they are many and alike."""
    compared = {one.node for one in found.comparisons}
    loud = {one.node for one in found.comparisons if one.measure.verdict.is_difference}
    rows = []
    for runner, facts in found.facts.items():
        for one in facts:
            nodes = [name for name in one.originals if name in compared]
            if nodes:
                what = (runner, one.kernel, one.precision, conversion(one, found.types))
                rows.append((nodes, what, one.microseconds))
    rows.sort(key=lambda row: loud.isdisjoint(row[0]))
    groups: dict[object, list[tuple[list[str], tuple[str, ...], float | None]]] = {}
    for number, row in enumerate(rows):
        is_alone = len(rows) <= FEW_ROWS or not loud.isdisjoint(row[0])
        groups.setdefault(number if is_alone else row[1], []).append(row)
    drawn: list[tuple[object, ...]] = []
    for members in list(groups.values())[:MOST_ROWS]:
        names = [name for nodes, _, _ in members for name in nodes]
        times = [time for _, _, time in members if time is not None]
        named = ", ".join(names) if len(names) < 4 else counted(len(names), "node")
        drawn.append((named, *members[0][1], f"{sum(times):.0f} us" if times else ""))
    if len(groups) > MOST_ROWS:
        drawn.append((f"and {len(groups) - MOST_ROWS} more", "", "", "", "", ""))
    return Table(("node", "runner", "kernel", "precision", "converts", "time"), drawn)
