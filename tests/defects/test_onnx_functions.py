"""Models with functions, which OpenVINO does not read."""

from pathlib import Path

import onnx
import pytest

from ir_scatter.core.diagnostics import Severity
from ir_scatter.defects.evidence import Target
from ir_scatter.portability import Portability, diagnose
from ir_scatter.reading import read

_HEAD = """<ir_version: 10, opset_import: ["" : 18, "own" : 1, "com.microsoft" : 1]>
main (float[4] x, int64[2] i, float[2] u, bool c) => (float[4] y) {{ {} }}
<domain: "own", opset_import: ["" : 18]>
Write (a, b, c) => (r) {{ r = ScatterElements <axis = 0> (a, b, c) }}
<domain: "own", opset_import: ["" : 18, "own" : 1]>
Twice (a, b, c) => (r) {{ q = own.Write (a, b, c)  r = own.Write (q, b, c) }}
<domain: "com.microsoft", opset_import: ["" : 18]>
Gelu (a) => (r) {{ r = Identity (a) }}
"""
_BRANCH = "then_branch = t () => (float[4] p) {{ p = {} }}, else_branch = e () => (float[4] q) {{ q = {} }}"

MODELS = {
    "called": ("y = own.Write (x, i, u)", {"own::Write/r"}, True),
    "called by a function": ("y = own.Twice (x, i, u)", {"own::Write/r"}, True),
    "beside a node": (
        "z = own.Write (x, i, u)  y = ScatterElements <axis = 0> (z, i, u)", {"own::Write/r", "y"}, True,
    ),
    "in a branch that is not taken": (
        "d = Constant <value = bool {0}> () "
        f"y = If (d) <{_BRANCH.format('own.Write (x, i, u)', 'Identity (x)')}>",
        {"own::Write/r"}, True,
    ),
    "never called": ("y = ScatterElements <axis = 0> (x, i, u)", set[str](), False),
    "called for nothing": (
        "z = own.Write (x, i, u)  y = ScatterElements <axis = 0> (x, i, u)", set[str](), False,
    ),
    "named like an operator of OpenVINO": (
        "z = com.microsoft.Gelu (x)  y = ScatterElements <axis = 0> (z, i, u)", {"y"}, False,
    ),
}  # fmt: skip
"""The main graph, the nodes that meet DEV117, and whether that is certain."""


@pytest.mark.parametrize("name", MODELS)
def test_nodes_of_models_that_call_functions(name: str, tmp_path: Path) -> None:
    body, scopes, is_certain = MODELS[name]
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(_HEAD.format(body)), path)
    diagnostics = diagnose(read(path), Portability([Target("openvino:CPU", "2026.4.1")], []))
    found = [one for one in diagnostics if one.code == "DEV117"]
    assert {one.location.scope for one in found} == scopes
    assert {one.severity for one in found} <= {Severity.ERROR if is_certain else Severity.WARNING}


@pytest.mark.openvino
@pytest.mark.parametrize("name", MODELS)
def test_openvino_refuses_the_models_that_certainly_meet_it(name: str, tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    from ir_scatter.runners.openvino.runner import export

    body, _, is_certain = MODELS[name]
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(_HEAD.format(body)), path)
    problem = export(str(path), str(tmp_path / "model.xml"))
    assert ("No conversion rule found for operations: own." in problem) == is_certain, problem
