"""DEV109: booleans that are subtracted from more than once, by one node or by several."""

from pathlib import Path

import numpy as np
import pytest

from ir_scatter import evaluate_model, runners
from ir_scatter.core.diagnostics import Severity
from ir_scatter.defects.evidence import Target
from ir_scatter.portability import Portability, diagnose
from ir_scatter.reading import read
from ir_scatter.runners.base import Status
from tests.models.ir_text import IrText, Output

CPU = Target("openvino:CPU", "2026.4.1")


def subtract(ir: IrText, data: Output, number: int) -> Output:
    indices = ir.const(f"at{number}", "i64", [[0], [1]])
    updates = ir.parameter(f"new{number}", "boolean", (2,))
    attributes = {"reduction": "sub"}
    inputs = [data, indices, updates]
    return ir.add(f"sub{number}", "ScatterNDUpdate", "opset15", inputs, [("boolean", (2,))], attributes)


def write_chain(between: str, folder: Path) -> str:
    ir = IrText()
    first = subtract(ir, ir.parameter("x", "boolean", (2,)), 0)
    if between == "reshape":
        shape = ir.const("shape", "i64", [2])
        words = {"special_zero": "false"}
        first = ir.add("again", "Reshape", "opset1", [first, shape], [("boolean", (2,))], words)
    elif between == "not":
        first = ir.add("again", "LogicalNot", "opset1", [first], [("boolean", (2,))])
    last = first if between == "one" else subtract(ir, first, 1)
    ir.add("result", "Result", "opset1", [last], [])
    return ir.write(folder)


@pytest.mark.openvino
@pytest.mark.parametrize(
    ("between", "is_wrong"), [("one", False), ("nothing", True), ("reshape", True), ("not", False)]
)
def test_differences_of_differences(between: str, is_wrong: bool, tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    path = write_chain(between, tmp_path)
    diagnostics = diagnose(read(path), Portability([CPU], [], None))
    expected = [Severity.WARNING] if is_wrong else []
    assert [diagnostic.severity for diagnostic in diagnostics if diagnostic.code == "DEV109"] == expected
    feeds = {"x": np.array([False, True]), "new0": np.array([True, True]), "new1": np.array([True, True])}
    feeds = {name: feeds[name] for name in (["x", "new0"] if between == "one" else feeds)}
    outcome = runners.find("CPU").run(Path(path), feeds, timeout=60)
    assert outcome.status is Status.OK
    (computed,), (specified,) = outcome.outputs.values(), evaluate_model(path, feeds).values()
    assert np.array_equal(computed, specified) is not is_wrong
