"""Converting, against what must be done anyway: parsing, copying, loading and saving.

    pytest tests/benchmarks/test_convert.py --benchmark-only -s

Nothing is asserted about seconds: machines differ, ratios say what matters.
"""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from lxml import etree
from onnx import TensorProto, helper, numpy_helper

import ir_scatter
from tests.benchmarks.networks import every_fifth
from tests.benchmarks.timing import ROUNDS, medians, process, processes

GIBIBYTE = 1 << 30


@pytest.mark.parametrize("to", ["ScatterNDUpdate", "ScatterElementsUpdate"])
def test_three_thousand_nodes_of_an_ir(benchmark: Any, tmp_path: Path, to: str) -> None:
    path = every_fifth(tmp_path / "network.xml", 15_000)

    def convert_and_write() -> None:
        conversion = ir_scatter.convert(str(path), to, verify=0)
        assert len(conversion.converted) == 3_000
        conversion.write(tmp_path / "out.xml", overwrite=True)

    parse, whole = medians([lambda: etree.parse(str(path)), convert_and_write])
    print(f"\n3,000 ScatterUpdate to {to}: {whole / parse:.2f} x lxml.etree.parse (asked for: 6)")
    benchmark.pedantic(convert_and_write, rounds=3)


def test_a_gigabyte_of_weights(benchmark: Any, tmp_path: Path) -> None:
    """The copy of the `.bin`, real bytes and no hole, against `cp` and `fsync`."""
    path = every_fifth(tmp_path / "network.xml", 100)
    noise = np.random.default_rng(0).bytes(1 << 24)
    with path.with_suffix(".bin").open("ab") as file:
        while file.tell() < GIBIBYTE:
            file.write(noise)
    out = tmp_path / "out.xml"
    mine = [sys.executable, "-m", "ir_scatter_cli", "convert", str(path), "-o", str(out), "--verify", "0",
            "--overwrite", "--to", "ScatterNDUpdate"]  # fmt: skip
    copy = f"cp {path.with_suffix('.bin')} {tmp_path / 'copy.bin'} && sync {tmp_path / 'copy.bin'}"
    start_only = [sys.executable, "-m", "ir_scatter_cli", "routes"]
    (seconds, memory), (plain, _), (start, _) = processes(mine, ["sh", "-c", copy], start_only, rounds=5)
    print(
        f"\n1 GiB of weights: {seconds / (plain + start):.2f} x cp, fsync and the start of the process "
        f"(asked for: 1.2), peak memory {memory / 1024:.0f} MiB (asked for: 200)"
    )
    benchmark.pedantic(lambda: process(*mine), rounds=1)


def onnx_network(path: Path, nodes: int, every: int = 4, between: str = "Relu") -> Path:
    """Write a chain in which every so manyth node is a Scatter of opset 10, the others `between`."""
    random = np.random.default_rng(0)
    graph_nodes: list[onnx.NodeProto] = []
    initializers = [numpy_helper.from_array(np.eye(64, dtype=np.float32), "weights")]
    name = "input"
    while len(graph_nodes) < nodes:
        number = len(graph_nodes)
        if number % every == every - 1:
            columns = random.permutation(64)[:8].reshape(1, 8)
            initializers.append(numpy_helper.from_array(columns, f"indices_{number}"))
            initializers.append(numpy_helper.from_array(np.ones((1, 8), np.float32), f"updates_{number}"))
            inputs = [name, f"indices_{number}", f"updates_{number}"]
            node = helper.make_node("Scatter", inputs, [f"value_{number}"], f"node_{number}", axis=1)
        else:
            inputs = [name, "weights"] if between == "MatMul" and number % 2 else [name]
            type = between if len(inputs) == 2 else "Relu"
            node = helper.make_node(type, inputs, [f"value_{number}"], f"node_{number}")
        graph_nodes.append(node)
        name = f"value_{number}"
    types = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 64]) for n in ("input", name)]
    graph = helper.make_graph(graph_nodes, "chain", types[:1], types[1:], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 10)], ir_version=5)
    onnx.save(model, path)
    return path


NETWORKS = pytest.mark.parametrize(
    ("every", "between", "to", "verify"),
    [
        (4, "Relu", None, 0),
        (4, "Relu", None, 8),
        (100, "Relu", None, 8),
        (1, "Relu", None, 8),
        (4, "MatMul", None, 8),
        (4, "Relu", "ScatterND", 0),
    ],
)


@NETWORKS
def test_four_thousand_nodes_of_onnx(
    benchmark: Any, tmp_path: Path, every: int, between: str, to: str | None, verify: int
) -> None:
    """As `test_four_thousand_nodes_as_processes`, when everything is imported and warm."""
    path = onnx_network(tmp_path / "network.onnx", 4_000, every, between)

    def load_and_save() -> None:
        onnx.save(onnx.load(str(path)), str(tmp_path / "same.onnx"))

    def convert_and_write() -> None:
        conversion = ir_scatter.convert(str(path), to, verify=verify)
        assert len(conversion.converted) == 4_000 // every, conversion.refused[:3]
        conversion.write(tmp_path / "out.onnx", overwrite=True)

    plain, mine = medians([load_and_save, convert_and_write])
    print(
        f"\n{4_000 // every:,} Scatter to {to or 'ScatterElements'} among 4,000 nodes with {between}, "
        f"{verify} cases: {mine / plain:.2f} x onnx.load and onnx.save"
    )
    benchmark.pedantic(convert_and_write, rounds=ROUNDS)


@NETWORKS
def test_four_thousand_nodes_as_processes(
    benchmark: Any, tmp_path: Path, every: int, between: str, to: str | None, verify: int
) -> None:
    path, out = onnx_network(tmp_path / "network.onnx", 4_000, every, between), str(tmp_path / "out.onnx")
    load_and_save = f"import onnx; onnx.save(onnx.load({str(path)!r}), {out!r})"
    mine = [sys.executable, "-m", "ir_scatter_cli", "convert", str(path), "-o", out, "--overwrite",
            "--verify", str(verify), *(["--to", to] if to else [])]  # fmt: skip
    (seconds, _), (plain, _) = processes(mine, [sys.executable, "-c", load_and_save])
    print(
        f"\n{4_000 // every:,} Scatter to {to or 'ScatterElements'} among 4,000 nodes with {between}, {verify} "
        f"cases, as processes: {seconds / plain:.2f} x onnx.load and onnx.save (asked for: 3)"
    )
    benchmark.pedantic(lambda: process(*mine), rounds=1)


def test_nothing_is_left_behind(benchmark: Any, tmp_path: Path) -> None:
    """The cost of writing whole files or none, for a small model."""
    path = every_fifth(tmp_path / "network.xml", 10)

    def convert_and_write() -> None:
        ir_scatter.convert(str(path), "ScatterNDUpdate").write(tmp_path / "out.xml", overwrite=True)

    benchmark.pedantic(convert_and_write, rounds=3)
    assert sorted(os.listdir(tmp_path)) == ["network.bin", "network.xml", "out.bin", "out.xml"]
