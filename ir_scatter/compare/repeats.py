"""What is said of nodes that were computed several times, by runs with taps on the same inputs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from ir_scatter.compare.nodes import Unjudged
from ir_scatter.compare.tensors import are_equal, measure
from ir_scatter.compare.tolerances import default_tolerance
from ir_scatter.compare.verdicts import Comparison, Level, Verdict
from ir_scatter.runners.base import Tap, Tapped

_ORDER = list(Verdict)
_T = TypeVar("_T")


def by_repetition(tapped: Sequence[Tapped]) -> list[list[Tapped]]:
    """Divide what was tapped: of each node the first answer, the second, and so on."""
    seen = Counter[tuple[Tap, ...]]()
    found: list[list[Tapped]] = []
    for one in tapped:
        key = (one.tap,)
        if seen[key] == len(found):
            found.append([])
        found[seen[key]].append(one)
        seen[key] += 1
    return found


def merged(runs: Sequence[Sequence[_T]], runner: str, case: int) -> list[_T | Comparison]:
    """Say once what was found in several runs: of each computation the worst.

    A result that NumPy has nothing to say of is compared with that of the other runs.

    Args:
        runs: what was found in each.
        runner: whose they are.
        case: the number of the inputs.
    """
    if len(runs) == 1:
        return [one for one in runs[0] if not isinstance(one, Unjudged)]
    rest: list[_T | Comparison] = []
    judged: dict[tuple[object, ...], list[Comparison]] = {}
    untold: dict[tuple[object, ...], list[Unjudged]] = {}
    for run in runs:
        count = Counter[tuple[object, ...]]()
        for one in run:
            if isinstance(one, Comparison):
                key: tuple[object, ...] = (one.node, one.tensor, one.place, one.caller)
                judged.setdefault((*key, count[key]), []).append(one)
            elif isinstance(one, Unjudged):
                key = (one.node, one.execution.place, one.execution.caller)
                untold.setdefault((*key, count[key]), []).append(one)
            else:
                rest.append(one)
                continue
            count[key] += 1
    changed = [found for same in untold.values() for found in _changes(same, runner, case)]
    return [*rest, *map(_worst, judged.values()), *changed]


def _worst(found: Sequence[Comparison]) -> Comparison:
    worst = max(found, key=lambda one: (_ORDER.index(one.measure.verdict), one.measure.mismatched))
    wrong = sum(one.measure.verdict is Verdict.MISMATCH for one in found)
    return replace(worst, wrong_runs=(wrong, len(found))) if 0 < wrong < len(found) else worst


def _changes(found: Sequence[Unjudged], runner: str, case: int) -> list[Comparison]:
    """Return how a result changes that had the same inputs."""
    first = found[0].execution
    for one in found[1:]:
        other = one.execution
        pairs = zip(first.inputs, other.inputs, strict=False)
        if not all(a is b or (a is not None and b is not None and are_equal(a, b)) for a, b in pairs):
            continue
        measured = measure(other.output, first.output, default_tolerance(first.output, is_node=True))
        if measured.verdict is Verdict.MISMATCH:
            return [
                Comparison(
                    Level.NODE,
                    one.node,
                    one.tensor,
                    case,
                    runner,
                    runner,
                    replace(measured, verdict=Verdict.NONDETERMINISTIC),
                    first.place,
                    one.operator,
                    other.output,
                    first.output,
                    first.inputs,
                    caller=first.caller,
                )
            ]
    return []
