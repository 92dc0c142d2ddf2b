"""Reading and validating, against what other readers take for the same file in the same run.

    pytest tests/benchmarks/test_validate.py --benchmark-only -s

Nothing is asserted about seconds: machines differ, ratios say what matters.
"""

import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree

import ir_scatter
from ir_scatter.core.files import Source
from ir_scatter.lint import Options, check_files
from ir_scatter.portability import Portability, diagnose, find_targets
from tests.benchmarks.networks import Network, Port, every_fifth, transformer
from tests.benchmarks.timing import medians, process, processes
from tests.models.onnx_graph import OnnxGraph

OURS = "import ir_scatter, sys; ir_scatter.validate(ir_scatter.read(sys.argv[1]))"
READER = "import openvino, sys; m = openvino.Core().read_model(sys.argv[1])"
PARSER = "import lxml.etree, sys; t = lxml.etree.parse(sys.argv[1])"
NETWORKS = pytest.mark.parametrize(("network", "layers"), [(transformer, 16_000), (every_fifth, 15_000)])


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


@pytest.mark.openvino
@NETWORKS
def test_against_other_readers(
    benchmark: Any, tmp_path: Path, network: Callable[[Path, int], Path], layers: int
) -> None:
    openvino = pytest.importorskip("openvino")
    path = str(network(tmp_path / "network.xml", layers))
    core = openvino.Core()

    def ours() -> object:
        return ir_scatter.validate(ir_scatter.read(path))

    assert ours() == []
    mine, reader, parser = medians([ours, lambda: core.read_model(path), lambda: etree.parse(path)])
    print(
        f"\n{network.__name__}: {mine * 1000:.0f} ms, {mine / reader:.2f} x read_model, "
        f"{mine / parser:.2f} x lxml.etree.parse"
    )
    benchmark.extra_info["read_model"] = mine / reader
    benchmark.extra_info["lxml"] = mine / parser
    benchmark.pedantic(ours, rounds=3)


@pytest.mark.openvino
@NETWORKS
def test_as_processes(
    benchmark: Any, tmp_path: Path, network: Callable[[Path, int], Path], layers: int
) -> None:
    """Each reader in a process of its own: nothing is warm, as on the command line."""
    pytest.importorskip("openvino")
    path = str(network(tmp_path / "network.xml", layers))
    commands = [python(code, path) for code in (OURS, READER, PARSER)]
    (mine, _), (reader, _), (parser, _) = processes(*commands)
    print(
        f"\n{network.__name__} in a process: {mine / reader:.2f} x read_model, "
        f"{mine / parser:.2f} x lxml.etree.parse"
    )
    benchmark.pedantic(lambda: ir_scatter.read(path), rounds=3)


def test_four_times_the_layers(benchmark: Any, tmp_path: Path) -> None:
    small = str(transformer(tmp_path / "small.xml", 4_000))
    large = str(transformer(tmp_path / "large.xml", 16_000))
    works = [lambda path=path: ir_scatter.validate(ir_scatter.read(path)) for path in (small, large)]
    one, four = medians(works)
    print(f"\nfour times the layers: {four / one:.2f} times the time")
    benchmark.pedantic(lambda: ir_scatter.read(large), rounds=3)


def test_memory(benchmark: Any, tmp_path: Path) -> None:
    path = str(transformer(tmp_path / "network.xml", 16_000))
    (_, mine), (_, parser) = processes(python(OURS, path), python(PARSER, path), rounds=1)
    print(f"\npeak memory: {mine / 1024:.0f} MiB, {mine / parser:.2f} x lxml.etree.parse")
    benchmark.pedantic(lambda: ir_scatter.read(path), rounds=3)


def test_weights_are_not_read(benchmark: Any, tmp_path: Path) -> None:
    small, large = tmp_path / "small.xml", tmp_path / "large.xml"
    for path, size in ((small, 1 << 20), (large, 1 << 30)):
        every_fifth(path, 1_000)
        with path.with_suffix(".bin").open("r+b") as file:
            file.truncate(size)
    (time, memory), (time_large, memory_large) = processes(python(OURS, str(small)), python(OURS, str(large)))
    print(
        f"\n1 GiB of weights against 1 MiB: {time_large / time:.2f} x the time, "
        f"{memory_large / memory:.2f} x the memory"
    )
    benchmark.pedantic(lambda: ir_scatter.read(str(large)), rounds=3)


@pytest.mark.openvino
def test_whole_process(benchmark: Any, tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    path = str(every_fifth(tmp_path / "small.xml", 20))
    mine = [sys.executable, "-m", "ir_scatter_cli", "validate", path]
    (ours, _), (reader, _) = processes(mine, python(READER, path))
    print(f"\nvalidate as a process: {ours / reader:.2f} x a process that reads the model with openvino")
    benchmark.pedantic(lambda: process(*mine), rounds=3)


SMALL_MODELS = 200
REAL_MODELS = Path(__file__).resolve().parents[2].parent / "shared" / "models"


def small_models(folder: Path) -> list[str]:
    """Write small models with matrices and scatters in turn; those of the real ones that are small come along."""
    folder.mkdir()
    for number in range(SMALL_MODELS):
        rows, is_slices = 2 + number % 5, number % 2 == 0
        graph = OnnxGraph((13, 16, 18)[number % 3])
        weights = graph.constant("weights", np.eye(8, dtype=np.float32))
        indices = np.zeros((1, 1), np.int64) if is_slices else np.arange(2).repeat(24).reshape(2, 3, 8)
        name = graph.input("x", shape=[rows, 3, 8])
        updates = graph.input("updates", shape=[1 if is_slices else 2, 3, 8])
        for position in range(5 + number % 20):
            type, operands = ("MatMul", [name, weights]) if position % 2 else ("Relu", [name])
            name = graph.add(type, operands, f"value_{position}")
        type = "ScatterND" if is_slices else "ScatterElements"
        scattered = graph.add(type, [name, graph.constant("indices", indices), updates], "scattered")
        graph.output(graph.add("Neg", [scattered], "y"))
        graph.write(folder / f"{number}.onnx")
    real = [path for path in REAL_MODELS.glob("**/*.onnx") if path.stat().st_size < 200_000]
    for number, path in enumerate(real):
        shutil.copy(path, folder / f"real_{number}.onnx")
    return sorted(map(str, folder.iterdir()))


@pytest.mark.openvino
def test_a_folder_of_small_onnx_models(benchmark: Any, tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    core = openvino.Core()

    def read_with_openvino(path: str) -> None:
        with suppress(RuntimeError):
            core.read_model(path)

    every = small_models(tmp_path / "models")
    sources = [Source(path) for path in every]

    def read_all() -> None:
        for path in every:
            read_with_openvino(path)

    other, mine = medians([read_all, lambda: check_files(sources, Options())])
    print(
        f"\n{len(every)} small ONNX models in one process: {mine / other:.2f} x read_model (asked for: 1.3)"
    )
    code = "import openvino, sys; core = openvino.Core()\nfor path in sys.argv[1:]:\n"
    code += "    try: core.read_model(path)\n    except RuntimeError: pass"
    command = [sys.executable, "-m", "ir_scatter_cli", "validate", "-q", str(tmp_path / "models"), "-j"]
    (plain, _), (one, _), (two, _) = processes(python(code, *every), [*command, "1"], [*command, "2"])
    print(
        f"as processes: {one / plain:.2f} x read_model with one job (asked for: 1.3), "
        f"{two / plain:.2f} x with two (asked for: 1.0)"
    )
    benchmark.pedantic(lambda: check_files(sources, Options()), rounds=1)


def behind_one_chain(path: Path, moves: int, scatters: int) -> str:
    """Write scatter nodes whose indices all come through one chain of operators that move them."""
    network, shape = Network(), ("I64", (1,))
    indices: Port = ("I64", (3,))
    index = network.layer("Parameter", "opset1", 'shape="3" element_type="i64"', output=indices)
    data = network.layer("Parameter", "opset1", 'shape="50" element_type="f32"', output=("FP32", (50,)))
    updates = network.layer("Parameter", "opset1", 'shape="3" element_type="f32"', output=("FP32", (3,)))
    target, axis = network.constant(np.array([3])), network.constant(np.array(0))
    for _ in range(moves):
        inputs: list[tuple[tuple[int, int], Port]] = [(index, indices), (target, shape)]
        index = network.layer("Reshape", "opset1", 'special_zero="false"', inputs, indices)
    for _ in range(scatters):
        ports: list[Port] = [("FP32", (50,)), indices, ("FP32", (3,)), ("I64", ())]
        pairs = [*zip((data, index, updates, axis), ports, strict=True)]
        options = 'reduction="none" use_init_val="true"'
        data = network.layer("ScatterElementsUpdate", "opset12", options, pairs, ("FP32", (50,)))
    network.layer("Result", "opset1", "", [(data, ("FP32", (50,)))])
    return str(network.write(path))


def test_portability_of_nodes_behind_one_chain(benchmark: Any, tmp_path: Path) -> None:
    """Bounds of index values are those of one model: four times the model costs four times as much."""
    portability = Portability(find_targets(["CPU"]), [], [])
    small = behind_one_chain(tmp_path / "small.xml", 250, 375)
    large = behind_one_chain(tmp_path / "large.xml", 1_000, 1_500)
    works = [lambda path=path: diagnose(ir_scatter.read(path), portability) for path in (small, large)]
    one, four = medians(works, rounds=3)
    print(f"\n--for CPU, four times the nodes and the chain: {four / one:.2f} times the time")
    guards = [lambda path=path: ir_scatter.convert(path, guard="clamp", verify=0) for path in (small, large)]
    one, four = medians(guards, rounds=1)
    print(f"--guard clamp, four times the nodes and the chain: {four / one:.2f} times the time")
    benchmark.pedantic(lambda: diagnose(ir_scatter.read(large), portability), rounds=1)
