"""Wires between a node and its bodies that do not fit together."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter import Error, EvaluationFailed, UnreadableModel, evaluate_model
from tests.unit import nested_ir
from tests.unit.nested_onnx import save

_HEADER = '<ir_version: 10, opset_import: ["" : 18]>\n'
_FEEDS = {"x": np.zeros((2, 3), np.float32)}


def _evaluate(text: str, folder: Path, **feeds: Any) -> Any:
    return evaluate_model(save(_HEADER + text, folder / "m.onnx"), {**_FEEDS, **feeds})


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('internal_layer_id="1"', 'internal_layer_id="77"', "the port map names 77, which is no such"),
        ('external_port_id="1"', 'external_port_id="x"', "the port map names x, which is no such"),
        ('<input external_port_id="1" internal_layer_id="1"/>', "", "the port map leaves out a Parameter"),
        ('part_size="2"', 'part_size="two"', "an entry of the port map holds no whole numbers"),
    ],
)
def test_port_maps(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    path = Path(nested_ir.write_iterator(tmp_path, is_backward=False))
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UnreadableModel, match=rf"^.*: done: {sentence}"):
        evaluate_model(path, {})


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('stride="2"', 'stride="1"', r"the stride is 1 and a part 2 long"),
        ('axis="0"', 'axis="5"', r"axis is 5 of \[6, 3\]"),
        ('start="0"', 'start="6"', r"parts from 6 to -1 by 2 of 6 positions"),
        ('end="-1"', 'end="-7"', r"parts from 0 to -7 by 2 of 6 positions"),
    ],
)
def test_parts(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    path = Path(nested_ir.write_iterator(tmp_path, is_backward=False))
    path.write_text(path.read_text().replace(old, new, 1))
    feeds = {"rows": nested_ir.floats(6, 3), "start": nested_ir.floats(2, 3)}
    with pytest.raises(EvaluationFailed, match=sentence):
        evaluate_model(path, feeds)


def test_a_body_that_gives_too_little(tmp_path: Path) -> None:
    text = """g (float[2, 3] x, bool flag) => (float[2, 3] y, float[2, 3] z) {
      y, z = If (flag) <
        then_branch = a () => (float[2, 3] p) { p = Relu (x) },
        else_branch = b () => (float[2, 3] q, float[2, 3] r) { q = Relu (x) r = Relu (x) }
      >
    }"""
    with pytest.raises(UnreadableModel, match="y: inputs and outputs of the body do not fit"):
        _evaluate(text, tmp_path)


def test_a_loop_whose_body_takes_too_little(tmp_path: Path) -> None:
    text = """g (float[2, 3] x) => (float[2, 3] y) <int64 trips = {1}, bool true = {1}> {
      y = Loop (trips, true, x) <
        body = b (int64 step, bool again) => (bool again) {}
      >
    }"""
    with pytest.raises(Error, match="do not fit"):
        _evaluate(text, tmp_path)


def test_a_missing_branch(tmp_path: Path) -> None:
    text = """g (float[2, 3] x, bool flag) => (float[2, 3] y) {
      y = If (flag) <then_branch = a () => (float[2, 3] p) { p = Relu (x) }>
    }"""
    with pytest.raises(UnreadableModel, match="y has no else_branch, expected a graph"):
        _evaluate(text, tmp_path)


@pytest.mark.parametrize("flag", [np.zeros(2, bool), np.zeros(0, bool)])
def test_conditions_of_several_elements(flag: Any, tmp_path: Path) -> None:
    text = """g (float[2, 3] x, bool[N] flag) => (float[2, 3] y) {
      y = If (flag) <
        then_branch = a () => (float[2, 3] p) { p = Relu (x) },
        else_branch = b () => (float[2, 3] q) { q = Neg (x) }
      >
    }"""
    with pytest.raises(EvaluationFailed, match=r"the condition is an array of . elements, expected one"):
        _evaluate(text, tmp_path, flag=flag)


def test_a_scan_of_an_old_opset(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 8]>
      g (float[2, 3] x) => (float[2, 3] y) {
        y = Scan ("", x) <
          num_scan_inputs = 1,
          body = b (float[3] row) => (float[3] same) { same = Identity (row) }
        >
      }"""
    path = save(text, tmp_path / "m.onnx")
    with pytest.raises(UnreadableModel, match="y: a Scan before opset 9 is not computed"):
        evaluate_model(path, _FEEDS)


def test_an_output_that_the_operator_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(EvaluationFailed, match=r"Relu y .*: output 1 is asked for, but there is 1"):
        _evaluate("g (float[2, 3] x) => (float[2, 3] y, float[2, 3] z) { y, z = Relu (x) }", tmp_path)


def test_parts_of_different_shapes(tmp_path: Path) -> None:
    text = """g (float[2, 3] x) => (float[M, N] y)
    <int64 trips = {2}, bool true = {1}, int64[1] zero = {0}, int64[1] one = {1}> {
      y = Loop (trips, true) <
        body = b (int64 step, bool again) => (bool again, float[N] part) {
          end = Unsqueeze (step, zero)
          last = Add (end, one)
          flat = Flatten <axis = 0> (x)
          row = Squeeze (flat, zero)
          part = Slice (row, zero, last)
        }
      >
    }"""
    with pytest.raises(EvaluationFailed, match=r"the parts of an output are \[1\], \[2\], expected equal"):
        _evaluate(text, tmp_path)
