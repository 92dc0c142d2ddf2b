"""A contract as the source of a function that checks inputs."""

from collections.abc import Sequence

from ir_scatter.contract import Contract
from ir_scatter.core.errors import UsageError


def render(contracts: Sequence[Contract]) -> str:
    """Return Python source for the contract of a single model.

    Raises:
        UsageError: there are several models.
    """
    if len(contracts) != 1:
        raise UsageError(f"a check is written for one model, not for {len(contracts)}")
    return contracts[0].python()
