"""Wires between a node and its bodies that do not fit together."""

from pathlib import Path

import numpy as np
import pytest

from ir_scatter import BrokenModel, Error, EvaluationFailed, UnreadableModel, evaluate_model
from tests.models import nested_ir
from tests.models.onnx_text import save

_HEADER = '<ir_version: 10, opset_import: ["" : 18]>\n'


def test_a_parameter_that_nothing_flows_into(tmp_path: Path) -> None:
    path = Path(nested_ir.write_branch(tmp_path))
    text = path.read_text()
    entry = '<input external_port_id="1" internal_layer_id="0"/>'
    assert entry in text
    path.write_text(text.replace(entry, ""))
    with pytest.raises(UnreadableModel, match="the port map lacks a Parameter"):
        evaluate_model(path, {})


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('stride="2"', 'stride="1"', r"the stride is 1, expected the size of a part, 2"),
        (
            'axis="0"',
            'axis="5"',
            r"axis of an input of a port map is 5, expected one of 2 dimensions of \[6, 3\]",
        ),
        (
            'start="0"',
            'start="6"',
            r"the loop slices positions 6 to -1, expected positions from -6 to 5 on axis 0",
        ),
        (
            'end="-1"',
            'end="-7"',
            r"the loop slices positions 0 to -7, expected positions from -6 to 5 on axis 0",
        ),
    ],
)
def test_parts(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    path = Path(nested_ir.write_iterator(tmp_path, is_backward=False))
    path.write_text(path.read_text().replace(old, new, 1))
    feeds = {"rows": nested_ir.floats(6, 3), "start": nested_ir.floats(2, 3)}
    with pytest.raises((BrokenModel, EvaluationFailed), match=sentence):
        evaluate_model(path, feeds)


_BRANCH = "then_branch = a () => (float[2, 3] p) { p = Relu (x) }"
TEXTS: list[tuple[str, str, type[Error], str]] = [
    (
        "a body that gives too little",
        f"""g (float[2, 3] x, bool flag) => (float[2, 3] y, float[2, 3] z) {{
          y, z = If (flag) <{_BRANCH},
            else_branch = b () => (float[2, 3] q, float[2, 3] r) {{ q = Relu (x) r = Relu (x) }}> }}""",
        UnreadableModel, "y: inputs and outputs of the body do not fit",
    ),
    (
        "a loop whose body takes too little",
        """g (float[2, 3] x) => (float[2, 3] y) <int64 trips = {1}, bool true = {1}> {
          y = Loop (trips, true, x) <body = b (int64 step, bool again) => (bool again) {}> }""",
        Error, "do not fit",
    ),
    (
        "a missing branch",
        f"g (float[2, 3] x, bool flag) => (float[2, 3] y) {{ y = If (flag) <{_BRANCH}> }}",
        UnreadableModel, "y has no else_branch, expected a graph",
    ),
    (
        "conditions of several elements",
        f"""g (float[2, 3] x, bool[N] flags) => (float[2, 3] y) {{
          y = If (flags) <{_BRANCH}, else_branch = b () => (float[2, 3] q) {{ q = Neg (x) }}> }}""",
        EvaluationFailed, r"the condition is an array of 2 elements, expected one",
    ),
    (
        "an output that the operator does not have",
        "g (float[2, 3] x) => (float[2, 3] y, float[2, 3] z) { y, z = Relu (x) }",
        EvaluationFailed, r"Relu y .*: output 1 is requested, but there is 1",
    ),
    (
        "parts of different shapes",
        """g (float[2, 3] x) => (float[M, N] y)
        <int64 trips = {2}, bool true = {1}, int64[1] zero = {0}, int64[1] one = {1}> {
          y = Loop (trips, true) <
            body = b (int64 step, bool again) => (bool again, float[N] part) {
              end = Unsqueeze (step, zero)
              last = Add (end, one)
              flat = Flatten <axis = 0> (x)
              row = Squeeze (flat, zero)
              part = Slice (row, zero, last)
            }> }""",
        EvaluationFailed, r"the parts of an output have shapes \[1\], \[2\], expected equal",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("what", "text", "kind", "sentence"), TEXTS)
def test_graphs_that_do_not_fit(
    what: str, text: str, kind: type[Error], sentence: str, tmp_path: Path
) -> None:
    feeds = {"x": np.zeros((2, 3), np.float32)} | ({"flags": np.zeros(2, bool)} if "flags" in text else {})
    with pytest.raises(kind, match=sentence):
        evaluate_model(save(_HEADER + text, tmp_path / "m.onnx"), feeds)


def test_a_scan_of_an_old_opset(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 8]>
      g (float[2, 3] x) => (float[2, 3] y) {
        y = Scan ("", x) <num_scan_inputs = 1, body = b (float[3] r) => (float[3] s) { s = Identity (r) }> }"""
    with pytest.raises(UnreadableModel, match="y: a Scan before opset 9 is not computed"):
        evaluate_model(save(text, tmp_path / "m.onnx"), {"x": np.zeros((2, 3), np.float32)})
