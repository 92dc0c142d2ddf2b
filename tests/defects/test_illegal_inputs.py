"""What is told of inputs that a document forbids: for certain, once per model if a run decides, or nothing."""

from pathlib import Path

import pytest

from ir_scatter.core.diagnostics import Diagnostic, Severity
from ir_scatter.defects.base import Result
from ir_scatter.defects.evidence import Row, Target
from ir_scatter.portability import Portability, diagnose
from ir_scatter.reading import read
from ir_scatter.validate import validate
from tests.models.onnx_text import save

_CPU = Target("openvino:CPU", "9")
_BELOW, _ABOVE = "DEV140/elements-below", "DEV140/elements-above"


def told(
    folder: Path, nodes: str, results: dict[str, Result], indices: str = "int64[2] i"
) -> list[Diagnostic]:
    """Return what is told of defects on a device of which nothing else is known."""
    text = f"""<ir_version: 10, opset_import: ["": 18]>
    g (float[4] x, {indices}, float[2] u) => (float[4] z) {{ {nodes} }}"""
    model = read(save(text, folder / "model.onnx"))
    portability = Portability([_CPU], [Row("openvino", "9", "CPU", results)], [])
    return [one for one in diagnose(model, portability) if one.code.startswith("DEV")]


def test_what_a_run_decides_is_told_once(tmp_path: Path) -> None:
    nodes = "y = ScatterElements (x, i, u) w = ScatterElements (y, i, u) z = ScatterElements (w, i, u)"
    (one,) = told(tmp_path, nodes, {_BELOW: Result.CRASHED})
    assert (one.code, one.severity) == ("DEV140", Severity.WARNING)
    assert "if one is out of range (not if i in -4..3): openvino:CPU 9 crashes" in one.message
    assert one.message.endswith("; 2 other nodes as well")


def test_a_constant_that_is_out_of_range_is_certain(tmp_path: Path) -> None:
    nodes = "j = Constant <value_ints = [{}, 0]> () z = ScatterElements (x, j, u)"
    for index, result, expected in ((-6, Result.ACCEPTED, [Severity.ERROR]), (6, Result.RIGHT, [])):
        results = {_BELOW: result, _ABOVE: result}
        found = told(tmp_path, nodes.replace("{}", str(index)), results)
        assert [one.severity for one in found] == expected
        errors = [
            one.rule for one in validate(read(tmp_path / "model.onnx")) if one.severity is Severity.ERROR
        ]
        assert errors == ["index-out-of-range"]


@pytest.mark.parametrize("index", [-4, 3])
def test_constants_in_range_are_passed_over(tmp_path: Path, index: int) -> None:
    nodes = f"j = Constant <value_ints = [{index}, 0]> () z = ScatterElements (x, j, u)"
    assert told(tmp_path, nodes, {_BELOW: Result.CRASHED, _ABOVE: Result.CRASHED}) == []


@pytest.mark.parametrize(
    ("front", "sides"),
    [
        ("low = Constant <value_int = -4> () high = Constant <value_int = 3> () j = Clip (i, low, high)", ""),
        ("low = Constant <value_int = -4> () j = Clip (i, low)", "above"),
        (
            "low = Constant <value_int = -5> () high = Constant <value_int = 3> () j = Clip (i, low, high)",
            "below",
        ),
        ("size = Constant <value_int = 4> () j = Mod (i, size)", ""),
        ("size = Constant <value_int = 5> () j = Mod (i, size)", "above"),
        ("j = Identity (i)", "below above"),
    ],
)
def test_facts_exclude_what_an_index_cannot_be(tmp_path: Path, front: str, sides: str) -> None:
    """A probe tells of one side alone."""
    for side, key in (("below", _BELOW), ("above", _ABOVE)):
        found = told(tmp_path, f"{front} z = ScatterElements (x, j, u)", {key: Result.ACCEPTED})
        assert bool(found) == (side in sides.split())


def test_an_unsigned_index_is_never_below(tmp_path: Path) -> None:
    nodes = "j = Cast <to = 7> (i) z = ScatterElements (x, j, u)"
    assert told(tmp_path, nodes, {_BELOW: Result.ACCEPTED}, "uint8[2] i") == []
    assert len(told(tmp_path, nodes, {_ABOVE: Result.ACCEPTED}, "uint8[2] i")) == 1


def test_another_fault_than_the_known_one_is_passed_over(tmp_path: Path) -> None:
    """What breaks another rule as well has no documented result."""
    nodes = "j = Constant <value_ints = [-6, 0]> () z = ScatterElements <axis = 3> (x, j, u)"
    assert told(tmp_path, nodes, {_BELOW: Result.ACCEPTED}) == []


def test_a_word_of_no_version_is_certain(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["": 18]>
    g (float[4] x, int64[2] i, float[2] u) => (float[4] z) { z = ScatterElements <reduction = "mean"> (x, i, u) }"""
    model = read(save(text, tmp_path / "model.onnx"))
    row = Row("onnxruntime", "9", "", {"DEV406/elements": Result.ACCEPTED})
    found = diagnose(model, Portability([Target("onnxruntime", "9")], [row], []))
    assert [(one.code, one.severity) for one in found if one.code != "SCT942"] == [("DEV406", Severity.ERROR)]


def test_the_worst_probe_speaks(tmp_path: Path) -> None:
    results = {_BELOW: Result.RIGHT, _ABOVE: Result.ACCEPTED, "DEV140/elements-below-far": Result.CRASHED}
    (one,) = told(tmp_path, "z = ScatterElements (x, i, u)", results)
    assert "crashes" in one.message
