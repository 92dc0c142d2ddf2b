"""What there is to say beside the comparisons: of taps that change outputs, of indices that NumPy saw."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ir_scatter.compare.nodes import kind_of, left_open
from ir_scatter.compare.session import NEVER, NotTapped
from ir_scatter.compare.tensors import are_equal, measure
from ir_scatter.compare.tolerances import EXACT
from ir_scatter.compare.verdicts import Guarded, Measure
from ir_scatter.compare.voices import NUMPY
from ir_scatter.compare.watching import Sight
from ir_scatter.runners.outcome import Outcome, Status


@dataclass(frozen=True, slots=True)
class Changed:
    """An output that is not the same when nodes are tapped.

    Attributes:
        runner: whose output it is.
        output: its name.
        measure: how it differs.
    """

    runner: str
    output: str
    measure: Measure

    def sentence(self, *, is_contested: bool) -> str:
        """Return what is said of it.

        Args:
            is_contested: whether the document leaves the output open.
        """
        found = self.measure
        why = "indices repeat before it" if is_contested else "fusions differ"
        how = found.remark or f"by up to {found.max_abs:.3g}"
        return f"{self.runner}: output {self.output} changes {how} when nodes are tapped: {why}"


def changed_by_taps(plain: Outcome, tapped: Outcome) -> Iterator[Changed]:
    """Yield the outputs that taps have changed."""
    for name, expected in plain.outputs.items():
        got = tapped.outputs.get(name)
        if got is not None and not are_equal(got, expected):
            yield Changed(plain.runner, name, measure(got, expected, EXACT))


def is_guard_wanted(outcomes: Sequence[Outcome], said: Sequence[object]) -> bool:
    """Tell whether NumPy must look at indices itself, as runners did not show all of them."""
    is_failed = any(one.status not in {Status.OK, Status.UNAVAILABLE} for one in outcomes)
    return is_failed or any(isinstance(one, NotTapped) and one.reason != NEVER for one in said)


def foreseen_by(sight: Sight, case: int) -> Iterator[Guarded]:
    """Yield what NumPy saw of indices while it computed the model."""
    for one in sight.seen.values():
        if one.error is not None:
            yield Guarded(NUMPY, one.scope, one.operator, case, kind_of(one.error), str(one.error))
        elif one.contested:
            yield left_open(
                NUMPY, one.scope, one.operator, case, one.contested, one.elements, is_nan=one.is_nan
            )
