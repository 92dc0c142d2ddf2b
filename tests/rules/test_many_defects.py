"""Many defects in one file: all are found, in the same order, in time that grows with the file."""

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from ir_scatter import read, validate
from ir_scatter.core.diagnostics import Diagnostic
from tests.operations import executed_lines
from tests.scale import thinned

_LAYERS = "".join(
    f'<layer id="{id}" name="p{id}" type="Parameter" version="opset1"><data element_type="f32" shape="2"/>'
    '<output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>'
    for id in (0, 1)
)


def write(path: Path, edges: list[str]) -> str:
    text = "".join(edges)
    path.write_text(f'<net name="m" version="11"><layers>{_LAYERS}</layers><edges>{text}</edges></net>')
    return str(path)


def edge(to: int, port: int = 0) -> str:
    return f'<edge from-layer="0" from-port="0" to-layer="{to}" to-port="{port}"/>'


@pytest.mark.parametrize("to_missing_layers", thinned([True, False], 2))
def test_many_wrong_edges(to_missing_layers: bool, tmp_path: Path) -> None:
    def defects(count: int) -> Sequence[Diagnostic]:
        edges = [edge(9_000_000 - n) if to_missing_layers else edge(1, n) for n in range(1, count + 1)]
        return validate(read(write(tmp_path / "m.xml", edges)))

    few, many = (executed_lines(partial(defects, count)) for count in (500, 2_000))
    assert many < 5 * few
    diagnostics = defects(20_000)
    assert {diagnostic.code for diagnostic in diagnostics} == {"SCT925" if to_missing_layers else "SCT923"}
    assert len(diagnostics) == 20_000


def test_the_order_is_that_of_the_file_whatever_the_seed(tmp_path: Path) -> None:
    path = write(tmp_path / "m.xml", [edge(to) for to in (7, 11, 8, 9, 10)])
    code = (
        f"from ir_scatter import read, validate\n"
        f"print([one.message.split()[5] for one in validate(read({path!r}))])"
    )
    orders = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        orders.add(done.stdout.strip())
    assert orders == {"['7,', '11,', '8,', '9,', '10,']"}
