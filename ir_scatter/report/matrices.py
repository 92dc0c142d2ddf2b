"""Tables of a comparison: verdicts by tensor and runner, operators by runner, kernels by node."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from ir_scatter import runners
from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.result import Compared, Comparison, Level, Outlier, short_names
from ir_scatter.core.words import counted
from ir_scatter.report.characters import Table, TableCell
from ir_scatter.report.comparison_json import conversion
from ir_scatter.runners.base import OTHER_FORMAT, Outcome, Status
from ir_scatter.runners.defaults import NUMPY

_COLORS = {
    Verdict.EQUAL: "green",
    Verdict.CLOSE: "green",
    Verdict.CONTESTED: "yellow",
    Verdict.NONDETERMINISTIC: "red",
    Verdict.PRECISION: "yellow",
    Verdict.UNKNOWN: "yellow",
    Verdict.MISMATCH: "red",
}
VERDICTS = list(Verdict)
"""Verdicts from best to worst."""
MOST_ROWS = 40
"""Maximum rows of a table or lines of a list; the rest is counted."""
FEW_ROWS = 6
"""Rows that are shown even if their verdicts are equal; maximum kernels that are listed one by one."""

Column: TypeAlias = tuple[str, str]
"""A column: (runner, reference that it is compared with)."""
Row: TypeAlias = dict[Column, list[Comparison]]

WORKS, REFUSES, DIFFERS = "works", "refuses", "differs"
NOT_APPLICABLE = "n/a"


def tensor_of(comparison: Comparison) -> str:
    """Return the name of a row: the scope of the node, or the name of the output."""
    return comparison.tensor if comparison.node is None else comparison.node


def name_of(comparison: Comparison) -> str:
    """Return the name of a tensor for a sentence: the output, or the node with its operator."""
    return comparison.tensor if comparison.node is None else f"{comparison.node} ({comparison.operator})"


def status_words(compared: Compared, outcome: Outcome) -> str:
    """Return the status of a runner on each of two models: "ok, n/a"; equal ones once: "ok"."""
    outcomes = compared.by_model.get(outcome.runner) or (outcome,)
    words = (NOT_APPLICABLE if each.reason == OTHER_FORMAT else each.status.value for each in outcomes)
    return ", ".join(dict.fromkeys(words))


def outputs_are_nodes(compared: Compared) -> bool:
    """Return whether the model is one node, so that its output's verdicts only repeat the node's."""
    verdicts: dict[Level, set[tuple[int, str, Verdict]]] = {Level.MODEL: set(), Level.NODE: set()}
    for comparison in compared.comparisons:
        verdicts[comparison.level].add((comparison.case, comparison.subject, comparison.measure.verdict))
    return compared.is_one_node and verdicts[Level.MODEL] <= verdicts[Level.NODE]


def unmentioned_outliers(compared: Compared, headline: str) -> list[Outlier]:
    """Return the outliers that are stated neither by the verdicts nor by the headline."""
    wrong = {
        (comparison.node, comparison.tensor, comparison.case, comparison.subject)
        for comparison in compared.comparisons
        if comparison.measure.verdict.is_difference and comparison.subject != comparison.reference
    }
    unmentioned = []
    for outlier in compared.outliers:
        accused = {(outlier.node, outlier.tensor, outlier.case, runner) for runner in outlier.runners}
        if outlier.message not in headline and (outlier.tapped or compared.other or not accused <= wrong):
            unmentioned.append(outlier)
    return unmentioned


def by_tensor(comparisons: Sequence[Comparison]) -> tuple[list[Column], dict[str, Row]]:
    """Arrange the comparisons of one level in columns, and in rows by tensor.

    A comparison of a runner with itself goes into the runner's column, if it has one.
    """
    pairs: dict[str, Column] = {}
    for comparison in comparisons:
        if comparison.subject != comparison.reference:
            pairs.setdefault(comparison.subject, (comparison.subject, comparison.reference))
    columns: dict[Column, None] = {}
    rows: dict[str, Row] = {}
    for comparison in comparisons:
        column = (comparison.subject, comparison.reference)
        if comparison.subject == comparison.reference:
            column = pairs.get(comparison.subject, column)
        columns[column] = None
        rows.setdefault(tensor_of(comparison), {}).setdefault(column, []).append(comparison)
    return list(columns), rows


def groups_of(compared: Compared, level: Level) -> list[tuple[str, list[Comparison]]]:
    """Return the comparisons of each table, with the noun of its rows.

    A single model has one table. Two models have up to three: the second model against the first, on each
    runner; then each model against NumPy.
    """
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for comparison in compared.comparisons:
        if comparison.level is level:
            groups.setdefault((comparison.subject_model, comparison.reference_model), []).append(comparison)
    named = []
    for (subject, reference), members in groups.items():
        noun = "output" if level is Level.MODEL else "node"
        if compared.other:
            first, second = short_names(compared.other, compared.model)
            names = {compared.other: first, compared.model: second}
            noun += f" of {names.get(subject, subject)}"
            noun += f", against {names.get(reference, reference)}" if subject != reference else ""
        named.append((noun, members))
    return named


def worst_of(comparisons: Iterable[Comparison]) -> Verdict:
    return max((comparison.measure.verdict for comparison in comparisons), key=VERDICTS.index)


def verdict_matrix(comparisons: Sequence[Comparison], noun: str) -> Table:
    """Return the table of one level, the worst rows first; equal or very many rows are joined to one."""
    columns, by_name = by_tensor(comparisons)
    rows = sorted(by_name.values(), key=lambda row: VERDICTS.index(worst_of(_all(row))), reverse=True)
    loud = sum(worst_of(_all(row)) is not Verdict.EQUAL for row in rows)
    count = min(max(loud, FEW_ROWS), MOST_ROWS)
    table_rows: list[tuple[object, ...]] = [
        (
            TableCell(name_of(_all(row)[0]), narrow=tensor_of(_all(row)[0])),
            *(_worst_cell(row.get(column, ())) for column in columns),
        )
        for row in rows[:count]
    ]
    rest = rows[count:]
    if rest:
        joined = [[comparison for row in rest for comparison in row.get(column, ())] for column in columns]
        cells = [_worst_cell(same, counts=False) for same in joined]
        is_equal = all(cell.text in {"", Verdict.EQUAL.value} for cell in cells)
        table_rows.append((f"and {len(rest)} more{'' if is_equal else ', at worst'}", *cells))
    names, references = [subject for subject, _ in columns], {reference for _, reference in columns}
    if any(subject != reference for subject, reference in columns):
        if len(references) == 1:
            noun += f", against {references.pop()}"
        else:
            names = [f"{subject} against {reference}" for subject, reference in columns]
    return Table((noun, *map(_runner_cell, names)), table_rows)


def _runner_cell(name: str) -> TableCell:
    """Return the header of a runner's column; in narrow tables it is the short name."""
    return TableCell(name, narrow=runners.short(name))


def _all(row: Row) -> list[Comparison]:
    return [comparison for cell in row.values() for comparison in cell]


def _worst_cell(comparisons: Sequence[Comparison], *, counts: bool = True) -> TableCell:
    if not comparisons:
        return TableCell("")
    verdict = worst_of(comparisons)
    same = sum(comparison.measure.verdict is verdict for comparison in comparisons)
    text, narrow = verdict.value, verdict.value
    if counts and same < len(comparisons):
        text, narrow = f"{verdict} ({same} of {len(comparisons)})", f"{verdict} {same}/{len(comparisons)}"
    return TableCell(text, _COLORS[verdict], narrow)


def operator_counts(
    models: Sequence[Compared],
) -> tuple[list[str], dict[str, defaultdict[str, Counter[str]]]]:
    """Return the runners, and by operator and runner the number of nodes that work, are refused or differ.

    A node works if the runner's result agrees with the specification. All nodes of a model that a runner does
    not run count as refused, for whatever reason; if the runner does not support the model's format, they
    count as not applicable. Nodes without a comparison do not count.
    """
    operators = defaultdict[str, defaultdict[str, Counter[str]]](lambda: defaultdict(Counter))
    runners: dict[str, None] = {}
    for model in models:
        for outcome in model.outcomes:
            if outcome.runner == NUMPY:
                continue
            runners.setdefault(outcome.runner)
            if outcome.status is not Status.OK:
                word = NOT_APPLICABLE if outcome.reason == OTHER_FORMAT else REFUSES
                for operator in model.operators.values():
                    operators[operator][outcome.runner][word] += 1
        nodes: dict[tuple[str, str, str | None], bool] = {}
        for comparison in model.comparisons:
            if comparison.level is Level.NODE:
                node = (comparison.operator, comparison.subject, comparison.node)
                nodes[node] = nodes.get(node, False) or comparison.measure.verdict.is_difference
        for (operator, runner, _), is_wrong in nodes.items():
            operators[operator][runner][DIFFERS if is_wrong else WORKS] += 1
    return list(runners), dict(sorted(operators.items()))


def operator_matrix(models: Sequence[Compared]) -> Table:
    """Return the table of `operator_counts`, with a row for each operator."""
    runners, operators = operator_counts(models)
    rows: list[tuple[object, ...]] = [
        (name, *(_counts(words[runner]) for runner in runners)) for name, words in operators.items()
    ]
    return Table(("operator", *map(_runner_cell, runners)), rows)


def _counts(counts: Mapping[str, int]) -> str:
    words = [f"{word} {counts[word]}" for word in (WORKS, REFUSES, DIFFERS) if counts.get(word)]
    return ", ".join(words) or (NOT_APPLICABLE if counts else "")


def kernel_table(compared: Compared) -> Table:
    """Return the table of kernels: nodes that differ first; many nodes with equal cells share a row."""
    compared_nodes = {comparison.node for comparison in compared.comparisons}
    loud = {
        comparison.node for comparison in compared.comparisons if comparison.measure.verdict.is_difference
    }
    rows = []
    for runner, all_facts in compared.facts.items():
        for facts in all_facts:
            nodes = [name for name in facts.originals if name in compared_nodes]
            if nodes:
                kernel = (runner, facts.kernel, facts.precision, conversion(facts, compared.types))
                rows.append((nodes, kernel, facts.microseconds))
    rows.sort(key=lambda row: loud.isdisjoint(row[0]))
    groups: dict[object, list[tuple[list[str], tuple[str, ...], float | None]]] = {}
    for number, row in enumerate(rows):
        is_alone = len(rows) <= FEW_ROWS or not loud.isdisjoint(row[0])
        groups.setdefault(number if is_alone else row[1], []).append(row)
    table_rows: list[tuple[object, ...]] = []
    for members in list(groups.values())[:MOST_ROWS]:
        names = [name for nodes, _, _ in members for name in nodes]
        times = [time for _, _, time in members if time is not None]
        label = ", ".join(names) if len(names) < 4 else counted(len(names), "node")
        table_rows.append((label, *members[0][1], f"{sum(times):.0f} us" if times else ""))
    if len(groups) > MOST_ROWS:
        table_rows.append((f"and {len(groups) - MOST_ROWS} more", "", "", "", "", ""))
    return Table(("node", "runner", "kernel", "precision", "converts", "time"), table_rows)
