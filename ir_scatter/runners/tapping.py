"""Runs with as many taps as a model bears, and what is answered; in the process of a runtime."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.runners.service import ON_DISK, Failure

HELD = 3
"""So often a value is held that is given out: where the runtime computes it, as an output, and as a copy
that is sent."""

INSIDE = "it is inside a body"
"""The problem of a tap that was left out because outputs of bodies did not work."""


@dataclass(slots=True, eq=False)
class Done:
    """What came of running a model.

    Attributes:
        runs: its outputs, once for each repetition.
        taps: one for each tap, as `tapped.decode` takes them; arrays by their number in `arrays`.
        arrays: the tapped ones.
        seconds: what the first run took, with everything before it.
        too_large: the bytes that are held for taps, if they are more than is allowed.
        is_part: whether there are more taps than were made, or were left for others.
        ran: what ran, for those who want to ask it more.
    """

    runs: list[list[Array]] = field(default_factory=list)
    taps: list[dict[str, Any]] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)
    seconds: float = 0.0
    too_large: int = 0
    is_part: bool = False
    ran: Any = None

    def answer(self, names: Sequence[str]) -> tuple[dict[str, Any], list[Array]]:
        """Return the answer to a question, and the arrays that go with it.

        Args:
            names: of the outputs.
        """
        found = [array for outputs in self.runs for array in outputs]
        runs = [
            {name: run * len(names) + number for number, name in enumerate(names)}
            for run in range(len(self.runs))
        ]
        taps = [shifted(tap, len(found)) for tap in self.taps]
        answer = {
            "status": "ok",
            "runs": runs,
            "seconds": self.seconds,
            "tapped": taps,
            "too_large": self.too_large,
            ON_DISK: self.is_part,
        }
        return answer, found + self.arrays


def with_taps(count: int, attempt: Callable[[bool], Done], plain: Callable[[], Done]) -> Done:
    """Run with all taps; if that fails without those in bodies; and if that fails too without any.

    Args:
        count: of the taps.
        attempt: runs with taps; whether those in bodies are among them.
        plain: runs without.

    Raises:
        Failure: the model does not run without taps either.
    """
    problem = ""
    for bodies in (True, False) if count else ():
        try:
            done = attempt(bodies)
        except Failure as failure:
            problem = failure.message
            continue
        for tap in done.taps:
            if tap.get("problem") == INSIDE:
                tap["problem"] = f"with outputs out of its body the model does not run: {problem}"
        return done
    done = plain()
    reason = f"with its inputs as outputs the model does not run: {problem}"
    done.taps = [{"problem": reason} for _ in range(count)]
    return done


@dataclass(frozen=True, slots=True)
class Batch:
    """Taps that are made at once.

    Attributes:
        count: of them, from the first on.
        is_whole: whether they are all that were asked for, in one question.
        bytes: what the process holds for them; None if that cannot be known.
        limit: what it may hold.
    """

    count: int
    is_whole: bool
    bytes: int | None
    limit: int

    def entered(self, done: Done) -> Done:
        """Return what was done, with what is to be said of this."""
        done.is_part = not self.is_whole
        held = HELD * sum(array.nbytes for array in done.arrays) if self.bytes is None else self.bytes
        done.too_large = held if held > self.limit else 0
        return done


def part_of(
    count: int, values_of: Callable[[], Sequence[Mapping[Any, int]] | None], asked: Mapping[str, Any]
) -> Batch:
    """Return how many taps are made at once: those that memory allows, but at least one.

    Args:
        count: of those that are asked for.
        values_of: gives of each tap the bytes of the values that must be given out, by what they are called;
            None if that cannot be known: then each is made alone.
        asked: the question.
    """
    limit, is_first = asked["tap_memory"], not asked["part"]
    try:
        known = values_of()
    except Failure:  # the run itself will say it
        known = None
    if known is None:
        return Batch(1, is_first and count == 1, None, limit)
    held: dict[Any, int] = {}
    for number, values in enumerate(known):
        more = {**held, **values}
        if number and HELD * sum(more.values()) > limit:
            return Batch(number, False, HELD * sum(held.values()), limit)
        held = more
    return Batch(count, is_first, HELD * sum(held.values()), limit)


def shifted(tap: dict[str, Any], by: int) -> dict[str, Any]:
    """Count the arrays of a tap from another start."""
    if "problem" in tap:
        return tap

    def shift(value: list[Any] | None) -> list[Any] | None:
        return value if value is None or value[0] == "feed" else [value[0], value[1] + by, *value[2:]]

    return {
        "runs": [
            {
                **run,
                "inputs": [shift(value) for value in run["inputs"]],
                "output": shift(run["output"]),
                "markers": [[number + by, depth] for number, depth in run["markers"]],
            }
            for run in tap["runs"]
        ]
    }
