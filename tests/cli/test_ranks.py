"""Arrays of more dimensions than NumPy has."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from ir_scatter.core.arrays import LARGEST_RANK
from tests.cli.conftest import Cli
from tests.models.onnx_text import save

RANK = LARGEST_RANK + 7
ONES = ", ".join(["1"] * RANK)
_HEADER = '<ir_version: 9, opset_import: ["" : 18]>\n'
_SENTENCE = f"has {RANK} dimensions, NumPy has at most {LARGEST_RANK}"

INPUTS = _HEADER + (
    f"g (float[{ONES}] d, int64[{ONES}] i, float[{ONES}] u) => (float[{ONES}] o)"
    " { o = ScatterElements <axis = -1> (d, i, u) }"
)
_NARROW = "g (float[4] d, int64[1] i, float[1] u) => (float[4] o, float[N] p) <CONSTANTS> {" + (
    " o = ScatterElements (d, i, u) BODY }"
)


def narrow(body: str, constants: str = "float zero = {0}") -> str:
    return _HEADER + _NARROW.replace("CONSTANTS", constants).replace("BODY", body)


INSIDE = {
    "reshape": narrow(
        "shape = Expand (one, count) wide = Reshape (u, shape) p = Relu (wide)",
        f"int64[1] one = {{1}}, int64[1] count = {{{RANK}}}",
    ),
    "constant": narrow("p = Add (d, wide)", f"float[{ONES}] wide = {{2}}"),
}


@pytest.mark.parametrize("command", [["run"], ["compare"], ["compare", "--no-reference", "--on", "numpy"]])
def test_inputs(cli: Cli, elsewhere: Path, command: list[str]) -> None:
    path = save(INPUTS, elsewhere / "model.onnx")
    result = cli(*command, path)
    assert (result.code, result.out) == (4, "")
    assert result.err.strip().endswith(f"input d {_SENTENCE}")


@pytest.mark.parametrize("name", INSIDE)
def test_values_inside(cli: Cli, elsewhere: Path, name: str) -> None:
    path = save(INSIDE[name], elsewhere / "model.onnx")
    result = cli("run", path)
    assert result.code in {2, 4}, result
    assert f"NumPy has at most {LARGEST_RANK}" in result.err or "more than any rank" in result.err


def test_what_cannot_be_verified_is_not_written(cli: Cli, elsewhere: Path) -> None:
    path = save(INPUTS.replace("-1", "0"), elsewhere / "model.onnx")
    result = cli("convert", path, "--to", "ScatterND", "-o", "new.onnx")
    assert result.code == 1, result
    assert _SENTENCE in result.out
    assert not Path("new.onnx").exists()


def test_a_loop_that_stacks(cli: Cli, elsewhere: Path) -> None:
    rank = LARGEST_RANK
    ones = ", ".join(["1"] * rank)
    text = _HEADER + (
        f"g (float[{ones}] d, int64 trips, bool on) => (float[1, {ones}] all) {{"
        f" all = Loop (trips, on) <body = b (int64 step, bool again) => (bool more, float[{ones}] part)"
        " { more = Identity (again) part = Relu (d) }> }"
    )
    path = save(text, elsewhere / "model.onnx")
    np.savez("in.npz", d=np.ones((1,) * rank, np.float32), trips=np.array(1), on=np.array(True))
    result = cli("run", path, "--inputs", "in.npz")
    assert result.code == 4, result
    assert f"has {rank + 1} dimensions, NumPy has at most {rank}" in result.err


def test_what_needs_no_arrays_goes_on(cli: Cli, elsewhere: Path) -> None:
    path = save(INPUTS, elsewhere / "model.onnx")
    assert cli("validate", path).code == 0
    assert json.loads(cli("inspect", path, "--format", "json").out)
    assert cli("validate", path, "--for", "CPU").code in {0, 1}
    assert cli("convert", path, "-o", "new.onnx").code == 0
    assert onnx.load("new.onnx").graph.node[0].op_type == "ScatterElements"
