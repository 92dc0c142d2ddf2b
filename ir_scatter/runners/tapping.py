"""Runs with as many taps as a model bears, and what is answered; in the process of a runtime."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ir_scatter.ops.plain.case import Array
from ir_scatter.runners.service import Failure

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
        ran: what ran, for those who want to ask it more.
    """

    runs: list[list[Array]] = field(default_factory=list)
    taps: list[dict[str, Any]] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)
    seconds: float = 0.0
    ran: Any = None

    def add(self, other: "Done") -> None:
        """Take in the taps of another batch; the outputs stay those of the first."""
        if not self.taps:
            self.runs, self.ran = other.runs, other.ran
        self.taps += [shifted(tap, len(self.arrays)) for tap in other.taps]
        self.arrays += other.arrays
        self.seconds += other.seconds

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
        answer = {"status": "ok", "runs": runs, "seconds": self.seconds, "tapped": taps}
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


def batches(bytes_of: Sequence[int], limit: int) -> Iterator[slice]:
    """Cut taps where together they would take more than is allowed."""
    start, total = 0, 0
    for number, size in enumerate(bytes_of):
        if total + size > limit and number > start:
            yield slice(start, number)
            start, total = number, 0
        total += size
    yield slice(start, len(bytes_of))


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
