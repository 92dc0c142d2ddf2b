"""Files made to hang or to fill the memory: time and memory in proportion to the file, and a sentence."""

import os
import resource
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.formats.ir_files import (
    FRAME,
    ROOT,
    SIMPLE,
    WEIGHTS,
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
from tests.operations import executed_lines

Make: TypeAlias = Callable[[int], "str | bytes"]
INDEX_OF_77 = struct.pack("<qqq", 0, 77, 5)
DIMENSION = "9223372036854775807"


def behind_chain(count: int, kind: str, data: str = "") -> str:
    """Indices behind layers with ids 10 and up, each fed twice by the one before."""
    layers = [layer(10 + n, kind, data, [port(0), port(1)], [port(2)]) for n in range(count)]
    edges = [edge(9 + n if n else 1, 2 if n else 0, 10 + n, end) for n in range(count) for end in (0, 1)]
    return indices_from(constant(1, "1", 8, 8) + "".join(layers), "".join(edges), 9 + count, 2)


def unsorted_chain(count: int, edges: int = -1) -> str:
    """Layers of which each is fed by the next."""
    layers = "".join(layer(n, "A", "", [port(0)], [port(1)]) for n in range(count))
    return net(layers, "".join(edge((n + 1) % count, 1, n, 0) for n in range(count + edges)))


def many_inputs(count: int) -> str:
    reader = layer(1, "A", "", [port(n, "FP32") for n in range(count)], [port(count)])
    return net(parameter(0, "") + reader, "".join(edge(0, 0, 1, n) for n in range(count)))


def many_outputs(count: int) -> str:
    """Each of many scatter nodes reads three of many ports of one layer."""
    nodes = [
        layer(n + 1, "ScatterNDUpdate", "", map(port, range(3)), [port(3)], version="opset4")
        for n in range(count)
    ]
    edges = [edge(0, abs(n - end) % count, n + 1, end) for n in range(count) for end in range(3)]
    many = layer(0, "A", "", (), map(port, range(count)), version="extension")
    return net(many + "".join(nodes), "".join(edges))


def shared_constant(count: int) -> str:
    """The first layer holds the bad index of all the scatter nodes, which stand far behind it."""
    filler = "".join(layer(1000 + n, "A") for n in range(count))
    nodes = "".join(scatter(1000 + count + n) for n in range(count))
    sources = enumerate((0, 1, 2, 3))
    edges = [edge(origin, 0, 1000 + count + n, end) for end, origin in sources for n in range(count)]
    return net(constant(1, "1", 8, 8) + FRAME + filler + nodes, "".join(edges))


def one_line(text: str) -> str:
    return text.replace("\n", "")


def bodies(count: int) -> str:
    ports = "".join(f'<input external_port_id="{n}" internal_layer_id="{n}"/>' for n in range(count))
    inner = "".join(parameter(n, "?,?") for n in range(count)) + scatter(count)
    inside = f"<port_map>{ports}</port_map><body><layers>{inner}</layers><edges>{edge(0, 0, count, 0)}</edges></body>"
    reader = layer(1, "TensorIterator", "", [port(n, "FP32") for n in range(count)], (), inside=inside)
    return net(parameter(0, "?,?") + reader, "".join(edge(0, 0, 1, n) for n in range(count)))


def self_fed(count: int) -> str:
    """Port maps that name themselves, and each other in circles."""
    maps = "".join(
        f'<input external_port_id="{n % 3}" internal_layer_id="{n % 5}"/><output external_port_id="3"/>'
        for n in range(count)
    )
    inner = f"<layers>{''.join(parameter(n, '?') for n in range(4))}{scatter(4)}</layers><edges>"
    inner += "".join(edge(n, 0, 4, n) for n in range(4)) + edge(4, 4, 4, 0) + "</edges>"
    inside = f"<then_port_map>{maps}</then_port_map><then_body>{inner}</then_body>"
    return net(
        layer(0, "If", "", map(port, range(3)), [port(3)], inside=inside), edge(0, 3, 0, 0) + edge(0, 3, 0, 1)
    )


def nested_bodies(depth: int) -> str:
    opening = '<layers><layer id="0" name="a" type="If" version="opset8"><body>'
    return f'<net version="11">{opening * depth}{"</body></layer></layers>" * depth}</net>'


CIRCULAR = {
    "SCT937",
    "SCT936",
    "SCT204",
    "SCT205",
    "SCT501",
    "SCT503",
    "SCT504",
    "SCT922",
    "SCT924",
    "SCT926",
}

PROPORTIONAL: Mapping[str, tuple[Make, int, set[str]]] = {
    "nested, closed": (lambda n: f"<net version='11'><layers>{'<a>' * n}{'</a>' * n}</layers></net>", 250_000, {"SCT907"}),
    "nested, open": (lambda n: "<net version='11'><layers>" + "<a>" * n, 250_000, {"SCT907"}),
    "nested bodies": (nested_bodies, 2_000, {"SCT907"}),
    "siblings": (lambda n: f"<net version='11'><layers>{'<a/>' * n}</layers></net>", 60_000, set()),
    "layers": (lambda n: net("".join(layer(id, "A") for id in range(n))), 5_000, set()),
    "empty layers": (lambda n: net("<layer/>" * n), 700, {"SCT920", "SCT928", "SCT929", "SCT935"}),
    "one id": (lambda n: net(layer(0, "A") * n), 1_500, {"SCT920"}),
    "edges to nowhere": (lambda n: SIMPLE.replace("</edges>", "".join(edge(0, 0, 9 + m, m) for m in range(n)) + "</edges>"), 2_000, {"SCT925"}),
    "edges to one port": (lambda n: SIMPLE.replace("</edges>", edge(0, 0, 4, 0) * n + "</edges>"), 8_000, {"SCT924"}),
    "edges from nowhere": (lambda n: SIMPLE.replace("</edges>", "".join(edge(9 + m, 0, 4, 9 + m) for m in range(n)) + "</edges>"), 1_500, {"SCT921", "SCT923"}),
    "edges on one line": (lambda n: one_line(SIMPLE).replace("</edges>", one_line("".join(edge(0, 0, 9 + m, m) for m in range(n))) + "</edges>"), 2_000, {"SCT925"}),
    "inputs": (many_inputs, 10_000, set()),
    "inputs of nothing": (lambda n: net(layer(0, "A", "", [port(m) for m in range(n)])), 2_000, {"SCT922"}),
    "inputs of one id": (lambda n: net(layer(0, "A", "", [port(0)] * n)), 2_000, {"SCT920", "SCT922"}),
    "outputs": (many_outputs, 1_500, set()),
    "constants": (lambda n: net("".join(constant(m, "2", 10**12 + m, 16) for m in range(n))), 1_500, {"SCT931"}),
    "bad constants": (lambda n: net("".join(constant(m, f"x{m}", "y", 16) for m in range(n))), 700, {"SCT928"}),
    "shared constant": (shared_constant, 600, {"SCT302"}),
    "shared constant on one line": (lambda n: one_line(shared_constant(n)), 600, {"SCT302"}),
    "folded chain": (lambda n: behind_chain(n, "Add"), 2_000, set()),
    "folded doubling": (lambda n: behind_chain(n, "Concat", 'axis="0"'), 500, {"SCT941"}),
    "unsorted chain": (unsorted_chain, 4_000, {"SCT922"}),
    "cycle": (lambda n: unsorted_chain(n, 0), 2_000, {"SCT926"}),
    "bodies": (lambda n: net(layer(0, "If", inside="".join(f"<b{m}body><layers/></b{m}body>" for m in range(n)))), 3_000, {"SCT936"}),
    "repeated bodies": (lambda n: net(layer(0, "If", inside="<body><layers/></body>" * n)), 10_000, {"SCT936"}),
    "port map": (bodies, 1_000, {"SCT922"}),
    "circular port map": (self_fed, 4_000, CIRCULAR),
    "spaces": (lambda n: SIMPLE.replace("<layers>", "<layers>" + " " * n), 2_500_000, set()),
    "spaces everywhere": (lambda n: SIMPLE.replace(">", ">" + " " * n), 20_000, set()),
    "only spaces": (lambda n: " " * n, 2_500_000, {"SCT903"}),
    "comments": (lambda n: SIMPLE.replace("<net", "<!---->" * n + "<net"), 100_000, set()),
    "opened comments": (lambda n: "<!--" * n, 500_000, {"SCT903"}),
    "opened tags": (lambda n: "<" * n, 2_000_000, {"SCT903"}),
    "quotes": (lambda n: '<net "' + '"' * n, 1_000_000, {"SCT903"}),
    "attributes": (lambda n: SIMPLE.replace("<net", "<net " + " ".join(f'a{m}=">"' for m in range(n))), 8_000, set()),
    "one attribute": (lambda n: SIMPLE.replace('name="n4"', f'name="{"x" * n}"'), 1_250_000, set()),
    "references": (lambda n: SIMPLE.replace('name="n4"', f'name="{"&#65;" * n}"'), 100_000, set()),
    "text": (lambda n: SIMPLE.replace("<input>", f"{'x' * n}<!-- --><input>"), 2_500_000, set()),
    "doctype": (lambda n: "<!DOCTYPE net [" + "".join(f"<!ENTITY a{m} '&b;&b;'>" for m in range(n)) + "]><net/>", 20_000, {"SCT906"}),
    "nothing": (lambda n: b"\0" * n, 2_000_000, {"SCT903"}),
    "no text": (lambda n: b"<net>" + b"\xff" * n, 2_000_000, {"SCT903"}),
    "half characters": (lambda n: b"\xff\xfe" + b"\x00\xd8" * n, 1_000_000, {"SCT903"}),
    "wide": (lambda n: SIMPLE.replace("<layers>", "<layers>" + " " * n).encode("utf-16"), 500_000, set()),
    "dimensions": (lambda n: SIMPLE.replace('shape="4,5"', f'shape="{f"{DIMENSION}," * n}1"'), 25_000, {"SCT928"}),
    "dimensions of a constant": (lambda n: SIMPLE.replace('shape="1"', f'shape="{f"{DIMENSION}," * n}1"'), 25_000, {"SCT928"}),
    "dimensions of a port": (lambda n: SIMPLE.replace("<dim>4</dim>", f"<dim>{DIMENSION}</dim>" * n), 10_000, set()),
    "digits": (lambda n: SIMPLE.replace('"4"', f'"{"4" * n}"'), 250_000, {"SCT928"}),
    "digits of the version": (lambda n: SIMPLE.replace('"11"', f'"{"1" * n}"'), 1_000_000, {"SCT908"}),
    "junk": (lambda n: SIMPLE.replace("</net>", f"<rt_info>{'<layer/><edges><edge/></edges><body/>' * n}</rt_info></net>"), 20_000, set()),
}  # fmt: skip


@pytest.mark.parametrize("name", PROPORTIONAL)
def test_hostile_files_have_their_findings(name: str, tmp_path: Path) -> None:
    make, count, expected = PROPORTIONAL[name]
    checked = check(write(tmp_path, make(count // 16), INDEX_OF_77 if "shared" in name else WEIGHTS))
    assert set(codes(checked)) == expected


@pytest.mark.long
@pytest.mark.parametrize("name", PROPORTIONAL)
def test_work_in_proportion(name: str, tmp_path: Path) -> None:
    """Four times the file executes about four times the lines, not sixteen times; a far larger file still has its findings."""
    make, count, expected = PROPORTIONAL[name]
    weights = INDEX_OF_77 if "shared" in name else WEIGHTS
    check(write(tmp_path, make(count // 256), weights, "imports"))
    small, large = (
        executed_lines(partial(check, write(tmp_path, make(n), weights, str(n))))
        for n in (count // 256, count // 64)
    )
    assert large < 5 * small + 1000
    checked = check(write(tmp_path, make(4 * count), weights))
    assert set(codes(checked)) == expected
    assert all(len(one.message) < 600 for one in checked.diagnostics)


MEMORY = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from pathlib import Path
from ir_scatter.lint import Options, check_file
from ir_scatter.core.files import Source
from tests.formats.ir_files import SIMPLE, write
from tests.formats.test_ir_hostile import PROPORTIONAL
folder = Path(sys.argv[1])
before = 0
for name, (make, count, _) in PROPORTIONAL.items():
    path = write(folder, make(count))
    if not before:
        check_file(Source(str(path)), Options())
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = path.stat().st_size
    assert check_file(Source(str(path)), Options()).bug == "", name
    used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    assert used < 40 * size + (64 << 20), f"{name}: {used >> 20} MB for {size >> 10} KB"
"""


def test_memory_in_proportion(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr[-300:]) == (0, "")


# At and past the limits.


@pytest.mark.parametrize("kind", ["Range", "Broadcast", "Tile"])
@pytest.mark.parametrize("size", [5, 10**6, 10**9, 10**12, 2**62, 2**63 - 1, -1])
def test_astronomic_numbers_in_front_of_indices(kind: str, size: int, tmp_path: Path) -> None:
    is_range = kind == "Range"
    data = {"Range": 'output_type="i64"', "Broadcast": 'mode="numpy"', "Tile": ""}[kind]
    inputs, shape = [5, 1, 6] if is_range else [5, 1], "" if is_range else "1"
    version = "opset4" if is_range else "opset1"
    layers = constant(1, shape, 8, 8) + constant(5, shape, 0, 8) + constant(6, "", 16, 8)
    layers += layer(10, kind, data, map(port, range(len(inputs))), [port(3)], version=version)
    text = indices_from(layers, "".join(edge(id, 0, 10, n) for n, id in enumerate(inputs)), 10, 3)
    path = write(tmp_path, text, struct.pack("<qqq", 0, size, 1))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = set(codes(check(path)))
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
        assert "65 dimensions" in checked.diagnostics[0].message


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
    assert checked.is_readable
    assert checked.scatter_nodes == 1
    assert checked.diagnostics[-1].location.scope.count(":body/") == depth
    render_all(checked)


def test_a_port_inside_of_something_else_is_none(tmp_path: Path) -> None:
    text = SIMPLE.replace("<output>", "<output><input>", 1).replace("</output>", "</input></output>", 1)
    assert codes(check(write(tmp_path, text))) == ["SCT921"]


def test_long_names_are_kept_once(tmp_path: Path) -> None:
    """Many findings at a node of a long name take no memory each."""
    inputs = [port(n) for n in range(4_000)]
    path = write(tmp_path, net(layer(0, "A", "", inputs, name="x" * 1_000_000)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    checked = check(path)
    assert codes(checked) == ["SCT922"] * 4_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (Path.mkdir, "SCT901"),
        (lambda path: None, "SCT901"),
        (lambda path: path.symlink_to("nowhere"), "SCT901"),
        (Path.touch, "SCT902"),
    ],
)
def test_inputs_that_are_no_files(make: Callable[[Path], object], code: str, tmp_path: Path) -> None:
    make(tmp_path / "model.xml")
    assert codes(check(tmp_path / "model.xml")) == [code]


def test_a_pipe_is_read(tmp_path: Path) -> None:
    """A shell passes `<(command)` as a pipe in /dev/fd; other pipes may have no writer."""
    reading, writing = os.pipe()
    os.write(writing, SIMPLE.encode())  # less than the pipe holds
    os.close(writing)
    checked = check(Path(f"/dev/fd/{reading}"))
    os.close(reading)
    assert codes(checked) == ["SCT930"]
