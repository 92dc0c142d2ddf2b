"""The contract of a large network, against validating it in the same run.

pytest tests/benchmarks/test_contract.py --benchmark-only -s
"""

from pathlib import Path
from typing import Any

import ir_scatter
from ir_scatter.contract import Contract, make_contract
from tests.benchmarks.networks import transformer
from tests.benchmarks.timing import medians

_LAYERS = 16_000
_SCATTER_NODES = 500


def test_against_validate(benchmark: Any, tmp_path: Path) -> None:
    path = str(transformer(tmp_path / "network.xml", _LAYERS))

    def contract() -> Contract:
        return make_contract(ir_scatter.read(path))

    assert len(contract().nodes) == _SCATTER_NODES
    ours, validate = medians([contract, lambda: ir_scatter.validate(ir_scatter.read(path))])
    print(f"\ncontract: {ours * 1000:.0f} ms, {ours / validate:.2f} x validate")
    benchmark.extra_info["validate"] = ours / validate
    benchmark.pedantic(contract, rounds=3)
