"""The contracts of models as JSON."""

from collections.abc import Sequence
from typing import Any

from ir_scatter.contract import Claim, Contract
from ir_scatter.report.characters import as_document, dumps, fields_of


def render(contracts: Sequence[Contract]) -> str:
    return dumps(as_document(models=[_model(contract) for contract in contracts]))


def _model(contract: Contract) -> dict[str, Any]:
    return {
        "path": contract.path,
        "given": [*contract.given],
        "summary": contract.summary,
        "nodes": [
            {
                **fields_of(node, "name scope operator line"),
                "range": {**_claim(node.range), "witness": node.range.witness},
                "distinct": _claim(node.distinct),
            }
            for node in contract.nodes
        ],
        "inputs": [{"name": each.name, "conditions": [*each.conditions]} for each in contract.inputs],
        "sizes": [*contract.sizes],
    }


def _claim(claim: Claim) -> dict[str, Any]:
    return {"status": claim.status, "because": claim.because, "conditions": [*claim.conditions]}
