"""The simplest case that shows the same: decisions are left out or made smaller, then numbers simpler.

Most of what is tried fails to fail, so attempts go to the runner many at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from ir_scatter.cases.case import Case
from ir_scatter.core.arrays import Array, kind
from ir_scatter.fuzz.rounds import again

_AT_ONCE = 48
_NOTHING = 12
"""So many elements are no worse than none."""


def shrink(
    case: Case,
    shows: Callable[[Sequence[Case]], list[bool]],
    is_over: Callable[[], bool],
    at_once: int = _AT_ONCE,
) -> Case:
    """Return a case at least as simple that shows the same.

    Args:
        case: the one to begin with.
        shows: tells for each of some cases whether it shows the symptom, under the same condition.
        is_over: tells when to stop; what was found by then counts.
        at_once: how many cases are tried together.
    """
    seen = {case.decisions}

    def first(attempts: Iterator[Case]) -> Case | None:
        """Return the first attempt that shows it."""
        while not is_over():
            chunk = [attempt for _, attempt in zip(range(at_once), attempts, strict=False)]
            if not chunk:
                return None
            for attempt, is_shown in zip(chunk, shows(chunk), strict=True):
                if is_shown:
                    return attempt  # those behind it are tried again, on what it leads to
                seen.add(attempt.decisions)
        return None

    for attempts in (lambda one: _simpler(one, seen), _plainer):
        while (found := first(attempts(case))) is not None:
            case = found
    return case


def size(case: Case) -> tuple[int, ...]:
    """Return how much there is to read, the weightiest first; where there is nothing, little is shown."""
    indices = 0 if case.indices is None else case.indices.size
    ranks = case.data.ndim + case.updates.ndim + (0 if case.indices is None else case.indices.ndim)
    return (
        case.data.size + case.updates.size + indices + _NOTHING * (case.data.size == 0),
        ranks,
        sum(1 for one in case.decisions if one),
    )


def _simpler(case: Case, seen: set[tuple[int, ...]]) -> Iterator[Case]:
    """Yield cases of fewer or smaller decisions, the greatest leaps first."""
    made, told = case.decisions, set[tuple[int, ...]]()
    for decisions in _reduced(made):
        found = again(case, decisions)
        if found is None or found.decisions in seen or found.decisions in told:
            continue
        told.add(found.decisions)
        if (size(found), found.decisions) < (size(case), made):
            yield found


def _reduced(made: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    count = len(made)
    length = count // 2
    while length:
        for start in range(0, count, length):
            stop = start + length
            yield made[:start] + (0,) * len(made[start:stop]) + made[stop:]
            yield made[:start] + made[stop:]
        length //= 2
    for place, number in enumerate(made):
        for smaller in dict.fromkeys((0, 1, 2, number // 2, number - 1)):
            if 0 <= smaller < number:
                yield (*made[:place], smaller, *made[place + 1 :])


def _plainer(case: Case) -> Iterator[Case]:
    """Yield the same case with plainer numbers: 1, 2, 3 in data, 10, 20, 30 in updates, 0 in indices."""
    for role, array, step in (("data", case.data, 1), ("updates", case.updates, 10)):
        plain = _counted(array, step)
        if plain is None or np.array_equal(plain, array):
            continue
        attempts = [plain]
        for place in np.ndindex(array.shape if array.size <= _AT_ONCE else (0,)):
            if array[place] != plain[place]:
                attempts.append(array.copy())
                attempts[-1][place] = plain[place]
        for attempt in attempts:
            yield replace(case, data=attempt) if role == "data" else replace(case, updates=attempt)


def _counted(array: Array, step: int) -> Array | None:
    """Return the multiples of a step in the place of the elements; None where a type has them not."""
    if kind(array) not in {"float", "signed", "unsigned"}:
        return None
    with np.errstate(all="ignore"):
        plain = (np.arange(1, array.size + 1) * step).reshape(array.shape)
        found: Array = plain.astype(np.float32).astype(array.dtype)
        is_exact = bool((found.astype(np.float64) == plain).all())
    return found if is_exact else None
