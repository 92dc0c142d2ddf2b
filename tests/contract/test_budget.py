"""Analysis of graphs built to explode ends within a counted budget, as unknown; no clock is read."""

from pathlib import Path

import numpy as np
import pytest

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.symbolic import linear
from ir_scatter.analysis.symbolic.linear import MOST_TOTAL_TRIES, Knowledge, Symbol, SymbolKind, of_symbol
from ir_scatter.analysis.symbolic.proofs import IndexProofs
from ir_scatter.contract import make_contract
from ir_scatter.reading import read
from tests.models.onnx_graph import OnnxGraph

_LAYERS = 5_000


def _wide_joins(path: Path) -> Path:
    """Write a graph of 10,000 nodes: each layer joins the last two, on paths that double in number."""
    graph = OnnxGraph()
    choice, data = graph.input("choice", "boolean", [1, 1]), graph.input("data", shape=[8, 4])
    before, last = graph.input("a", "i64", [1, 1]), graph.input("b", "i64", [1, 1])
    for layer in range(_LAYERS):
        join = graph.add("Where", [choice, last, before], f"join{layer}")
        before, last = last, graph.add("Add", [join, before], f"sum{layer}")
    row = graph.constant("row", np.zeros((1, 4), np.float32))
    graph.output(graph.add("ScatterND", [data, last, row], "y", "write"), shape=[8, 4])
    graph.write(path)
    return path


@pytest.mark.long
def test_wide_joins_end_as_unknown(tmp_path: Path) -> None:
    path = _wide_joins(tmp_path / "joins.onnx")
    (node,) = make_contract(path).nodes
    assert node.range.status == "unknown", node.range
    proofs = Facts(model=read(path)).result_of(IndexProofs)
    assert proofs.exact.knowledge.total_tries <= MOST_TOTAL_TRIES


def test_proofs_share_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of knowledge count together; without tries left the ranges of symbols still decide."""
    monkeypatch.setattr(linear, "MOST_TOTAL_TRIES", 3)
    knowledge = Knowledge()
    size, position, start = (of_symbol(Symbol(SymbolKind.OTHER, None, axis)) for axis in range(3))
    knowledge.add(size.minus(position))
    knowledge.add(position.minus(start))
    knowledge.add(start)
    assert knowledge.proves(size.minus(start))
    copy = Knowledge(knowledge)
    for number in range(3):
        copy.proves(start.minus(size).plus(-number))
        copy.proves(size.minus(start).plus(number + 1))
    assert not knowledge.proves(size.minus(start).plus(9))
    assert knowledge.proves(size.minus(start)), "an answer is kept"
    assert knowledge.proves(start)
