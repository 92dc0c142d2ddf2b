"""Which nodes a device lets write into a state; what is expected was measured."""

from dataclasses import replace
from pathlib import Path

import pytest

from ir_scatter.cases.from_probe import case_of
from ir_scatter.defects import by_code
from ir_scatter.defects.base import Result
from ir_scatter.defects.evidence import Row, Target
from ir_scatter.formats import FORMATS
from ir_scatter.portability import Portability, diagnose
from ir_scatter.reading import read

_ROW = Row("openvino", "9", "CPU", {"DEV116/elements": Result.WRONG, "DEV112/elements": Result.WRONG})
_ELEMENTS = by_code()["DEV116"].probes[0]


def _codes(text: bytes, weights: bytes, folder: Path) -> set[str]:
    (folder / "model.xml").write_bytes(text)
    (folder / "model.bin").write_bytes(weights)
    model = read(folder / "model.xml")
    return {found.code for found in diagnose(model, Portability([Target("openvino:CPU", "9")], [_ROW], []))}


@pytest.mark.parametrize(
    ("before", "is_met"),
    [
        ((), True),
        (("Reshape",), True),
        (("Unsqueeze", "Squeeze"), True),
        (("Slice", "Transpose", "Tile"), True),
        (("Abs",), False),
        (("Slice", "Roll"), False),
    ],
)
def test_a_state_behind_operators(before: tuple[str, ...], is_met: bool, tmp_path: Path) -> None:
    node = replace(case_of(_ELEMENTS).node(), before=before)
    files = FORMATS["openvino-ir"].nodes([node])
    assert ("DEV116" in _codes(files[".xml"], files[".bin"], tmp_path)) is is_met


def test_what_is_assigned_and_who_reads(tmp_path: Path) -> None:
    files = FORMATS["openvino-ir"].nodes([case_of(_ELEMENTS).node()])
    text, weights = files[".xml"], files[".bin"]
    written = text.partition(b'name="written"')[0].rpartition(b'id="')[2].partition(b'"')[0]
    node = text.partition(b'name="node"')[0].rpartition(b'id="')[2].partition(b'"')[0]
    read_edge = next(line for line in text.split(b"\n") if b'to-layer="' + written in line)
    port = next(line for line in text.split(b"\n") if b'from-layer="' + node in line)
    port = port.partition(b'from-port="')[2].partition(b'"')[0]
    result = b'from-layer="%b" from-port="%b" to-layer="%b" to-port="0"' % (node, port, written)
    of_result = text.replace(read_edge.strip(), b"<edge %b />" % result)
    assert of_result != text
    assert "DEV116" not in _codes(of_result, weights, tmp_path)  # the state becomes what is computed
    assert "DEV116" in _codes(text, weights, tmp_path)
