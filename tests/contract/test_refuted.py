"""What is refuted: `validate` and `contract` agree, and a run confirms the witness."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

from ir_scatter.contract import make_contract
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.errors import EvaluationFailed
from ir_scatter.evaluate.model import prepare
from ir_scatter.reading import read
from ir_scatter.validate import validate

_HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'
_POSITION = """g (float[16,4] d, int64[1] p, float[1,4] u) => (float[16,4] y) {
    last = Constant<value = int64[1] {-1}>()
    i = Unsqueeze(p, last)
    [write] y = ScatterND(d, i, u)
}"""
_WINDOW = """g (float[16] d, int64 p, float[S] u) => (float[16] y) {
    zero = Constant<value = int64 {0}>()
    one = Constant<value = int64 {1}>()
    shape = Shape(u)
    n = Squeeze(shape)
    steps = Range(zero, n, one)
    i = Add(p, steps)
    [write] y = ScatterElements<axis=0>(d, i, u)
}"""
_GROWN = """g (float[C] d, int64 p, float[S] u) => (float[C] y) {
    zero = Constant<value = int64 {0}>()
    one = Constant<value = int64 {1}>()
    shape = Shape(u)
    n = Squeeze(shape)
    steps = Range(zero, n, one)
    i = Add(p, steps)
    [write] y = ScatterElements<axis=0>(d, i, u)
}"""
_CLIPPED = """g (float[16] d, int64[6] p, float[6] u) => (float[16] y) {
    low = Constant<value = int64 {16}>()
    high = Constant<value = int64 {31}>()
    i = Clip(p, low, high)
    [write] y = ScatterElements<axis=0>(d, i, u)
}"""
_DIFFERENCE = """g (float[16] d, int64[3] p, float[3] u) => (float[16] y) {
    i = Sub(p, p)
    [write] y = ScatterElements<axis=0>(d, i, u)
}"""
_PART = """g (float[4] d, float[N] e, float[4] u) => (float[4] y) {
    zero = Constant<value = int64 {0}>()
    one = Constant<value = int64 {1}>()
    shape = Shape(e)
    many = Squeeze(shape)
    all = Range(zero, many, one)
    start = Constant<value = int64[1] {0}>()
    end = Constant<value = int64[1] {4}>()
    first = Slice(all, start, end)
    [write] y = ScatterElements<axis=0>(d, first, u)
}"""
_NEVER = """g (float[16] d, int64[6] p, float[6] u) => (float[16] r) {
    low = Constant<value = int64 {16}>()
    high = Constant<value = int64 {31}>()
    i = Clip(p, low, high)
    [write] y = ScatterElements<axis=0>(d, i, u)
    r = Relu(d)
}"""
_CASES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "beyond": (_POSITION, ("p in 20..31",), "refuted"),
    "one too many": (_POSITION, ("p in 0..16",), "refuted"),
    "inside": (_POSITION, ("p in 0..15",), "proven"),
    "no upper end": (_POSITION, ("p >= 14",), "refuted"),
    "no lower end": (_POSITION, ("p <= 3",), "refuted"),
    "one sign": (_POSITION, ("p <= 15", "p >= -16"), "proven"),
    "sum": (_WINDOW, ("p >= 0", "p + u.shape[0] <= 17"), "refuted"),
    "sum inside": (_WINDOW, ("p >= 0", "p + u.shape[0] <= 16"), "proven"),
    "size": (_GROWN, ("p in 0..3", "S <= 4", "C >= 6"), "refuted"),
    "size inside": (_GROWN, ("p in 0..3", "S <= 4", "C >= 7"), "proven"),
    "nothing given of it": (_POSITION, ("d.shape[0] >= 1",), "conditional"),
    "for all inputs": (_CLIPPED, (), "refuted"),
    "for all inputs, something given": (_CLIPPED, ("p in 0..3",), "refuted"),
    "never runs": (_NEVER, (), "proven"),
}


def _written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "model.onnx"
    onnx.save(parser.parse_model(_HEAD + text), path)
    return str(path)


@pytest.mark.parametrize("name", [*_CASES])
def test_validate_and_contract_agree(tmp_path: Path, name: str) -> None:
    text, given, status = _CASES[name]
    path = _written(tmp_path, text)
    (node,) = make_contract(path, given).nodes
    assert node.range.status == status
    errors = {each.code for each in validate(read(path), given=given) if each.severity is Severity.ERROR}
    assert bool(errors & {"SCT302", "SCT303", "SCT310"}) is (status == "refuted"), errors
    assert bool(node.breach) is (status == "refuted")


@pytest.mark.parametrize("name", [name for name, (_, _, status) in _CASES.items() if status == "refuted"])
def test_a_run_confirms_the_witness(tmp_path: Path, name: str) -> None:
    """Inputs of a witness satisfy what is given, and break an index."""
    text, given, _ = _CASES[name]
    path = _written(tmp_path, text)
    (node,) = make_contract(path, given).nodes
    assert node.range.witness is not None
    feeds: dict[str, Any] = {}
    program = prepare(path, ignore=("index-out-of-range",))
    for input in program.inputs:
        array = np.array(node.range.witness["inputs"][input.names[0]])
        if array.dtype.kind == "U":  # too large to be listed
            array = np.zeros(node.range.witness["sizes"][input.names[0]])
        feeds[input.names[0]] = array.astype("int64" if input.names[0] == "p" else "float32")
    with pytest.raises(EvaluationFailed) as caught:
        program.run(feeds)
    assert caught.value.breaks_rule


@pytest.mark.parametrize(("text", "given"), [(_DIFFERENCE, "p in 0..31"), (_PART, "N in 4..31")])
def test_bounds_that_no_input_reaches_are_no_error(tmp_path: Path, text: str, given: str) -> None:
    """p - p is 0, and the first 4 of 16 positions end at 3: bounds of parts are not reached together."""
    path = _written(tmp_path, text)
    (node,) = make_contract(path, [given]).nodes
    assert node.range.status in {"unknown", "conditional"}
    severities = {each.severity for each in validate(read(path), given=[given])}
    assert Severity.ERROR not in severities


def test_distinct_targets_are_refuted_by_copies(tmp_path: Path) -> None:
    text = """g (float[16] d, int64[1] p, float[N] u) => (float[16] y) {
        shape = Shape(u)
        i = Expand(p, shape)
        [write] y = ScatterElements<axis=0>(d, i, u)
    }"""
    sized = text.replace("float[N]", "float[3]")
    (node,) = make_contract(_written(tmp_path, sized)).nodes
    assert node.distinct.status == "refuted"
    path = _written(tmp_path, text)  # u may have one element
    (node,) = make_contract(path).nodes
    assert node.distinct.status != "refuted"
    assert validate(read(path)) == []
