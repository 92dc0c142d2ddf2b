"""What a runtime really computed in."""

from collections.abc import Sequence

from ir_scatter.compare.tolerances import PRECISION_BITS, coarser
from ir_scatter.runners.outcome import NodeFacts


def computed_in(facts: Sequence[NodeFacts]) -> str:
    """Return the coarsest floating-point precision of any node; "" if nothing is known."""
    found = {one.precision.lower() for one in facts} & PRECISION_BITS.keys()
    return coarser(*sorted(found)) if found else ""
