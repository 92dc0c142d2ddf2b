"""What there is to say of indices that NumPy saw."""

from collections.abc import Iterator, Sequence

from ir_scatter.compare.guard import Sight
from ir_scatter.compare.nodes import kind_of, left_open
from ir_scatter.compare.session import NEVER, NotTapped
from ir_scatter.compare.verdicts import Guarded
from ir_scatter.compare.voices import NUMPY
from ir_scatter.runners.base import OTHER_FORMAT, Outcome, Status


def is_guard_wanted(outcomes: Sequence[Outcome], said: Sequence[object]) -> bool:
    """Tell whether NumPy must look at indices itself, as runners did not show all of them."""
    is_failed = any(
        one.status not in {Status.OK, Status.UNAVAILABLE} and one.reason != OTHER_FORMAT for one in outcomes
    )
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
