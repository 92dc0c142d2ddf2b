"""The contracts of models as text."""

from collections.abc import Sequence

from ir_scatter.contract import Contract
from ir_scatter.core.words import counted


def render(contracts: Sequence[Contract]) -> str:
    parts = [str(contract) for contract in contracts]
    if len(contracts) > 1:
        totals = {status: sum(each.summary[status] for each in contracts) for status in contracts[0].summary}
        nodes = counted(sum(totals.values()), "scatter node")
        counts = ", ".join(f"{count} {status}" for status, count in totals.items() if count)
        parts.append(f"{nodes} in {len(contracts)} models: {counts}\n" if counts else f"{nodes}\n")
    return "\n".join(parts)
