"""IRs at and past the limits: astronomic numbers, cycles, depth, inputs that are no files."""

import os
import resource
import struct
import threading
import time
from pathlib import Path

import pytest

from tests.formats.ir_files import (
    SIMPLE,
    check,
    codes,
    constant,
    edge,
    indices_from,
    layer,
    net,
    parameter,
    port,
    render_all,
    scatter,
    write,
)
from tests.formats.test_ir_hostile import DIMENSION, nested_bodies


def number_of(kind: str) -> tuple[str, bytes]:
    """Return a node that makes indices from a number of elements, and the weights."""
    inputs = {"Range": "Range", "Broadcast": "Broadcast", "Tile": "Tile"}[kind]
    data = 'output_type="i64"' if kind == "Range" else 'mode="numpy"' if kind == "Broadcast" else ""
    ports = [port(0), port(1), port(2)] if kind == "Range" else [port(0), port(1)]
    made = layer(10, inputs, data, ports, [port(3)], version="opset4" if kind == "Range" else "opset1")
    shape = "" if kind == "Range" else "1"
    layers = constant(1, shape, 8, 8) + constant(5, "" if kind == "Range" else "1", 0, 8) + made
    edges = edge(5, 0, 10, 0) + edge(1, 0, 10, 1) + (edge(6, 0, 10, 2) if kind == "Range" else "")
    step = constant(6, "", 16, 8)
    return indices_from(layers + (step if kind == "Range" else ""), edges, 10, 3), b""


@pytest.mark.parametrize("kind", ["Range", "Broadcast", "Tile"])
@pytest.mark.parametrize("size", [5, 10**6, 10**9, 10**12, 2**62, 2**63 - 1, -1])
def test_astronomic_numbers_in_front_of_indices(kind: str, size: int, tmp_path: Path) -> None:
    text, _ = number_of(kind)
    path = write(tmp_path, text, struct.pack("<qqq", 0, size, 1))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    found = set(codes(check(path)))
    assert time.perf_counter() - start < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 700_000
    assert "SCT203" in found or size > 10**6 or size < 1


@pytest.mark.parametrize("rank", [3, 60, 64])
@pytest.mark.parametrize("dim", [0, 10**6, 2**63 - 1])
def test_shapes_of_shapes(rank: int, dim: int, tmp_path: Path) -> None:
    shape = ",".join([str(dim)] * rank)
    reader = layer(10, "ShapeOf", 'output_type="i64"', [port(0)], [port(1)], version="opset3")
    path = write(tmp_path, indices_from(parameter(1, shape) + reader, edge(1, 0, 10, 0), 10, 1))
    render_all(check(path))


@pytest.mark.parametrize(
    "shape", ["0,99999999999", f"0,{DIMENSION},{DIMENSION}", ",".join("0" * 64), ",".join("1" * 64)]
)
def test_constants_of_odd_shapes(shape: str, tmp_path: Path) -> None:
    path = write(tmp_path, SIMPLE.replace('shape="1"', f'shape="{shape}"'))
    checked = check(path)
    assert "SCT203" in codes(checked)
    render_all(checked)


def test_a_shape_of_too_many_dimensions(tmp_path: Path) -> None:
    ones = ",".join("1" * 65)
    for shape in ('shape="1"', 'shape="4,5"', 'shape="1,5"'):
        checked = check(write(tmp_path, SIMPLE.replace(shape, f'shape="{ones}"')))
        assert codes(checked) == ["SCT928"]
        assert checked.result is not None
        assert "65 dimensions" in checked.result.diagnostics[0].message


@pytest.mark.parametrize("length", range(1, 8))
@pytest.mark.parametrize(
    "kind", ["Add", "ShapeOf", "Reshape", "Relu", "ScatterUpdate", "Unsqueeze", "Convert", "If"]
)
def test_indices_that_depend_on_themselves(length: int, kind: str, tmp_path: Path) -> None:
    nodes = "".join(
        layer(10 + n, kind, "", [port(0), port(1)], [port(2)], version="opset3") for n in range(length)
    )
    edges = [edge(10 + (n + 1) % length, 2, 10 + n, end) for n in range(length) for end in (0, 1)]
    checked = check(write(tmp_path, indices_from(nodes, "".join(edges), 10, 2)))
    assert "SCT926" in codes(checked)
    render_all(checked)


def test_bodies_as_deep_as_may_be(tmp_path: Path) -> None:
    depth = 83
    text = nested_bodies(depth).replace("<body></body>", f"<body><layers>{scatter(0)}</layers></body>")
    checked = check(write(tmp_path, text))
    assert checked.result is not None
    assert checked.result.is_readable
    assert checked.result.scatter_nodes == 1
    assert checked.result.diagnostics[-1].location.scope.count(":body/") == depth
    render_all(checked)


def test_long_names_are_kept_once(tmp_path: Path) -> None:
    """Many findings at a node of a long name take no memory each."""
    inputs = [port(n) for n in range(4_000)]
    path = write(tmp_path, net(layer(0, "A", "", inputs, name="x" * 1_000_000)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    checked = check(path)
    assert codes(checked) == ["SCT922"] * 4_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


@pytest.mark.parametrize("kind", ["folder", "missing", "dangling", "empty"])
def test_inputs_that_are_no_files(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    if kind == "folder":
        path.mkdir()
    elif kind == "dangling":
        path.symlink_to("nowhere")
    elif kind == "empty":
        path.write_bytes(b"")
    assert codes(check(path)) == ["SCT902" if kind == "empty" else "SCT901"]


def test_a_pipe_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(SIMPLE,))
    writer.start()
    checked = check(path)
    writer.join()
    assert codes(checked) == ["SCT930"]
