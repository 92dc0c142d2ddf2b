"""Runners by operators over many models: what works, what is refused, what differs."""

from collections import Counter
from collections.abc import Sequence

from ir_scatter.compare.result import NUMPY, Compared, Level, Verdict
from ir_scatter.report.tables import Table, render
from ir_scatter.runners.outcome import OTHER_FORMAT, Status

WORKS, REFUSES, DIFFERS = "works", "refuses", "differs"
NOT_APPLICABLE = "n/a"


def by_operator(found: Sequence[Compared], *, color: bool = False, width: int | None = None) -> str:
    """Return the table as text."""
    return render(matrix(found), color=color, width=width)


def matrix(found: Sequence[Compared]) -> Table:
    """Return a row for each operator: of the nodes of all models, how many each runner gets right.

    A node works on a runner if what the runner gives for it agrees with the document, or is one of
    several values that the document allows. A runner refuses all nodes of a model that it does not
    run, for whatever reason, but a format that is not the runner's is not applicable; a node that could
    not be looked at does not count.
    """
    counts: dict[tuple[str, str], Counter[str]] = {}
    runners: dict[str, None] = {}
    for one in found:
        for outcome in one.outcomes:
            if outcome.runner == NUMPY:
                continue
            runners.setdefault(outcome.runner)
            if outcome.status is not Status.OK:
                word = NOT_APPLICABLE if outcome.reason == OTHER_FORMAT else REFUSES
                for operator in one.operators.values():
                    counts.setdefault((operator, outcome.runner), Counter())[word] += 1
        for (operator, runner), word in _words(one).items():
            counts.setdefault((operator, runner[0]), Counter())[word] += 1
    names = sorted({operator for operator, _ in counts})
    rows: list[tuple[object, ...]] = [
        (name, *(_cell(counts.get((name, runner))) for runner in runners)) for name in names
    ]
    return Table(("operator", *runners), rows)


def _words(one: Compared) -> dict[tuple[str, tuple[str, str]], str]:
    """Return what happened to each node on each runner, the worst of all cases."""
    found: dict[tuple[str, tuple[str, str]], str] = {}
    for comparison in one.comparisons:
        if comparison.level is not Level.NODE:
            continue
        key = comparison.operator, (comparison.subject, comparison.node or "")
        is_wrong = comparison.measure.verdict in {Verdict.MISMATCH, Verdict.NONDETERMINISTIC}
        if is_wrong or key not in found:
            found[key] = DIFFERS if is_wrong else WORKS
    return found


def _cell(counts: Counter[str] | None) -> str:
    if not counts:
        return ""
    words = [f"{word} {counts[word]}" for word in (WORKS, REFUSES, DIFFERS) if counts[word]]
    return ", ".join(words) or NOT_APPLICABLE
