"""Analysis of graphs built to explode ends within a counted budget, as unknown; no clock is read."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.symbolic import linear
from ir_scatter.analysis.symbolic.linear import MOST_TOTAL_TRIES, Knowledge, Symbol, SymbolKind, of_symbol
from ir_scatter.analysis.symbolic.proofs import IndexProofs
from ir_scatter.contract import make_contract
from ir_scatter.reading import read

_LAYERS = 5_000


def _wide_joins(path: Path) -> Path:
    """Write a graph of 10,000 nodes: each layer joins the last two, on paths that double in number."""
    nodes = []
    before, last = "a", "b"
    for layer in range(_LAYERS):
        nodes.append(helper.make_node("Where", ["choice", last, before], [f"join{layer}"]))
        nodes.append(helper.make_node("Add", [f"join{layer}", before], [f"sum{layer}"]))
        before, last = last, f"sum{layer}"
    nodes.append(helper.make_node("ScatterND", ["data", last, "row"], ["y"], "write"))
    inputs = [
        helper.make_tensor_value_info("choice", TensorProto.BOOL, [1, 1]),
        helper.make_tensor_value_info("a", TensorProto.INT64, [1, 1]),
        helper.make_tensor_value_info("b", TensorProto.INT64, [1, 1]),
        helper.make_tensor_value_info("data", TensorProto.FLOAT, [8, 4]),
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, 4])
    row = numpy_helper.from_array(np.zeros((1, 4), np.float32), "row")
    graph = helper.make_graph(nodes, "joins", inputs, [output], [row])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)
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
