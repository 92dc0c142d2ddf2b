"""Port maps, back edges and bodies changed in one thing: what OpenVINO's reader refuses is an error."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ir_scatter import read, validate
from tests.models import nested_ir

WRITERS: dict[str, Callable[[Path], str]] = {
    "If": nested_ir.write_branch,
    "TensorIterator": lambda folder: nested_ir.write_iterator(folder, is_backward=False),
    "Loop": lambda folder: nested_ir.write_loop(folder, 5),
}
ITERATION = '<input external_port_id="-1" internal_layer_id="0" purpose="current_iteration"/>'
CONDITION = '<output external_port_id="-1" internal_layer_id="8" purpose="execution_condition"/>'

# The first match of a pattern in the layer is replaced; what is found, "" for nothing.
TABLE = [
    ("Loop", "<body>.*</body>", "", "SCT936 there is no <body> with <layers>, expected one"),
    ("Loop", "<body>.*</body>", "<body/>", "SCT936 there is no <body> with <layers>, expected one"),
    ("Loop", "<body>.*</body>", "<body><layers/></body>", "SCT936 internal_layer_id of an input of a port map is '0', expected"),
    ("Loop", "<port_map>.*</port_map>", "", "SCT936 no input of <port_map> refers to port 2, expected one"),
    ("Loop", "<port_map>", "<port_map/><port_map>", "SCT936 no output of <port_map> refers to port 4, expected"),
    ("Loop", "<back_edges>.*</back_edges>", "", ""),
    ("Loop", ITERATION, "", ""),
    ("Loop", '<input [^>]*"2"[^>]*>', "", "SCT936 no input of <port_map> refers to port 2, expected one"),
    ("Loop", CONDITION, "", "SCT936 no output of <port_map> has purpose='execution_condition'"),
    ("Loop", '(<output [^>]*_id=)"4"', '\\1"99"', "SCT925 external_port_id of an output of a port map is '99'"),
    ("Loop", '(<output [^>]*_id=)"4"', '\\1"-1"', "SCT936 no output of <port_map> refers to port 4, expected one"),
    ("Loop", '(<output [^>]*_id=)"4"', '\\1"x"', "SCT936 external_port_id of an output of a port map is 'x'"),
    ("Loop", '"7"/>', '"99"/>', "SCT936 internal_layer_id of an output of a port map is '99', expected the id"),
    ("Loop", 'from-layer="7"', 'from-layer="0"', "SCT936 from-layer of a back edge is '0', expected the id of"),
    ("Loop", 'to-layer="1"', 'to-layer="99"', "SCT925 to-layer of a back edge is '99', expected the id of a"),
    ("Loop", 'to-layer="1"', 'to-layer="x"', "SCT936 to-layer of a back edge is 'x', expected the id of a"),
    ("Loop", 'to-layer="1"', "", "SCT936 to-layer of a back edge is missing, expected the id of a Parameter"),
    ("Loop", 'to-layer="1"', 'to-layer="0"', "SCT936 a back edge goes to Parameter 0 of the body, which no input"),
    ("Loop", 'stride="1"', 'stride=""', "SCT936 stride of an output of a port map is '', expected a number"),
    ("TensorIterator", "<body>.*</body>", "", "SCT936 there is no <body> with <layers>, expected one"),
    ("TensorIterator", '_id="1"', '_id="x"', "SCT936 external_port_id of an input of a port map is 'x'"),
    ("TensorIterator", '_id="1"', '_id="-1"', "SCT936 no input of <port_map> refers to port 1, expected one"),
    ("TensorIterator", 'internal_layer_id="0"', "", "SCT936 internal_layer_id of an input of a port map is missing"),
    ("TensorIterator", '<input external_port_id="1"[^>]*>', "", "SCT936 no input of <port_map> refers to port 1"),
    ("TensorIterator", 'axis="0"', 'axis="7"', "SCT936 axis of an input of a port map is 7, expected one of"),
    ("TensorIterator", 'axis="0"', 'axis="-1"', "SCT936 axis of an input of a port map is '-1', expected a number"),
    ("TensorIterator", '(<output [^>]*axis=)"0"', '\\1"7"', "SCT936 axis of an output of a port map is 7, expected"),
    ("TensorIterator", 'part_size="2"', 'part_size="0"', "SCT936 part_size of an input of a port map is '0'"),
    ("TensorIterator", 'start="0"', 'start="1.5"', "SCT936 start of an input of a port map is '1.5', expected a"),
    ("If", "<then_body>.*</then_body>", "", "SCT936 there is no <then_body> with <layers>, expected one"),
    ("If", "<else_body>.*</else_body>", "", "SCT936 there is no <else_body> with <layers>, expected one"),
    ("If", "<else_port_map>.*</else_port_map>", "", "SCT936 no output of <else_port_map> refers to port 3"),
    ("If", '<input external_port_id="1"[^>]*>', "", ""),
    ("If", '<input external_port_id="1"', '<input external_port_id="-1"', ""),
    ("If", '<input external_port_id="1"', '<input external_port_id="9"', "SCT936 external_port_id of an input of"),
    ("If", '<output external_port_id="3"[^>]*>', "", "SCT936 no output of <then_port_map> refers to port 3"),
]  # fmt: skip


@pytest.mark.parametrize(("type", "old", "new", "sentence"), TABLE)
def test_one_thing_is_changed(type: str, old: str, new: str, sentence: str, tmp_path: Path) -> None:
    path = Path(WRITERS[type](tmp_path))
    assert not validate(read(path))
    start = path.read_text().index(f'type="{type}"')
    text = path.read_text()
    changed, count = re.subn(old, new, text[start:], count=1, flags=re.DOTALL)
    assert count == 1
    path.write_text(text[:start] + changed)
    found = [one for one in validate(read(path)) if not one.code.startswith("SCT5")]
    assert bool(found) == bool(sentence)
    if sentence:
        assert any(f"{one.code} {one.message}".startswith(sentence) for one in found), found
        assert {(one.code, one.severity) for one in found} <= {("SCT936", "error"), ("SCT925", "warning")}
