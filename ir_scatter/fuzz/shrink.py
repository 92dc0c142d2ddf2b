"""Shrinks a failing case: removes and reduces random decisions, then simplifies numbers.

A case is drawn from a sequence of random decisions, which are reduced like the choice sequences of
Hypothesis. Most attempts do not fail, so they are run in batches:

    decisions   3 0 7 5 2       fails
    in halves   0 0 7 5 2, 7 5 2, ...    zeroed or removed, then quarters, single decisions
    one by one  7 -> 0, 1, 2, 3, 6
    numbers     data 1 2 3, updates 10 20 30, whole or element by element

Each attempt that still fails becomes the new case.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from ir_scatter.cases.case import Case
from ir_scatter.core.arrays import Array, kind
from ir_scatter.fuzz.rounds import redraw

_BATCH = 48
"""Attempts that run together."""
_EMPTY_SIZE = 12
"""An empty case counts as this many elements when sizes are compared."""


def shrink(
    case: Case,
    shows: Callable[[Sequence[Case]], list[bool]],
    is_over: Callable[[], bool],
    at_once: int = _BATCH,
) -> Case:
    """Return a case that shows the same failure and is at least as simple.

    Args:
        case: the case to start with.
        shows: returns for each case of a list whether it shows the failure.
        is_over: returns whether to stop; the simplest case so far is then the result.
        at_once: number of cases that run together.
    """
    seen = {case.decisions}

    def first(attempts: Iterator[Case]) -> Case | None:
        """Return the first attempt that shows the failure."""
        while not is_over():
            chunk = [attempt for _, attempt in zip(range(at_once), attempts, strict=False)]
            if not chunk:
                return None
            for attempt, is_shown in zip(chunk, shows(chunk), strict=True):
                if is_shown:
                    return attempt  # later attempts are made again from the new case
                seen.add(attempt.decisions)
        return None

    for attempts in (lambda current: _simpler(current, seen), _plainer):
        while (smaller := first(attempts(case))) is not None:
            case = smaller
    return case


def size(case: Case) -> tuple[int, ...]:
    """Return the size of a case as a sort key: elements, ranks, decisions that are not the simplest."""
    indices = 0 if case.indices is None else case.indices.size
    ranks = case.data.ndim + case.updates.ndim + (0 if case.indices is None else case.indices.ndim)
    return (
        case.data.size + case.updates.size + indices + _EMPTY_SIZE * (case.data.size == 0),
        ranks,
        sum(1 for decision in case.decisions if decision),
    )


def _simpler(case: Case, seen: set[tuple[int, ...]]) -> Iterator[Case]:
    """Yield cases with fewer or smaller decisions, the largest reductions first."""
    decisions, yielded = case.decisions, set[tuple[int, ...]]()
    for reduced in _reduced(decisions):
        simpler = redraw(case, reduced)
        if simpler is None or simpler.decisions in seen or simpler.decisions in yielded:
            continue
        yielded.add(simpler.decisions)
        if (size(simpler), simpler.decisions) < (size(case), decisions):
            yield simpler


def _reduced(decisions: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    count = len(decisions)
    length = count // 2
    while length:
        for start in range(0, count, length):
            stop = start + length
            yield decisions[:start] + (0,) * len(decisions[start:stop]) + decisions[stop:]
            yield decisions[:start] + decisions[stop:]
        length //= 2
    for position, number in enumerate(decisions):
        for smaller in dict.fromkeys((0, 1, 2, number // 2, number - 1)):
            if 0 <= smaller < number:
                yield (*decisions[:position], smaller, *decisions[position + 1 :])


def _plainer(case: Case) -> Iterator[Case]:
    """Yield copies of the case with simple numbers instead of random ones.

    For example data 1, 2, 3 and updates 10, 20, 30.
    """
    for role, array, step in (("data", case.data, 1), ("updates", case.updates, 10)):
        plain = _counting(array, step)
        if plain is None or np.array_equal(plain, array):
            continue
        attempts = [plain]
        for position in np.ndindex(array.shape if array.size <= _BATCH else (0,)):
            if array[position] != plain[position]:
                attempts.append(array.copy())
                attempts[-1][position] = plain[position]
        for attempt in attempts:
            yield replace(case, data=attempt) if role == "data" else replace(case, updates=attempt)


def _counting(array: Array, step: int) -> Array | None:
    """Return an array of the same shape with step, 2 * step, 3 * step, ....

    None if its type cannot represent them.
    """
    if kind(array) not in {"float", "signed", "unsigned"}:
        return None
    with np.errstate(all="ignore"):
        plain = (np.arange(1, array.size + 1) * step).reshape(array.shape)
        counting: Array = plain.astype(np.float32).astype(array.dtype)
        is_exact = bool((counting.astype(np.float64) == plain).all())
    return counting if is_exact else None
