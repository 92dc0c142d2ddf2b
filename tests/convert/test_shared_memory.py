"""What is said of new nodes that update memory which a loop shares, on a device where that is a known defect."""

from dataclasses import replace
from pathlib import Path

import pytest

from ir_scatter.cases.from_probe import case_of
from ir_scatter.convert.pipeline import convert
from ir_scatter.defects import by_code
from ir_scatter.formats import FORMATS
from ir_scatter.ops.spec import Role
from tests.models.onnx_text import save

_LOOP = next(probe for probe in by_code()["DEV112"].probes if probe.name == "tuples")
_FED_TRIPS = """<ir_version: 10, opset_import: ["": 18]>
g (float[4] x, float[1] u, int64 n) => (float[4] z) {{
  c = Constant <value = bool {{1}}> () i = Constant <value = int64[1, 1] {{2}}> ()
  z = Loop (n, c, x)
    <body = b (int64 it, bool ci, float[4] st) => (bool co, float[4] out) {{
      co = Identity (ci) w = {view} (x) y = ScatterND <reduction = "add"> (w, i, u) out = Identity (y)
    }}>
}}"""


@pytest.mark.parametrize(
    ("before", "is_copied"), [(("Unsqueeze", "Squeeze"), True), ((), True), (("Abs",), False)]
)
def test_a_new_node_that_certainly_shares_memory_gets_a_copy(
    before: tuple[str, ...], is_copied: bool, tmp_path: Path
) -> None:
    probe = replace(_LOOP, before=before, constants=frozenset({Role.INDICES, Role.AXIS}))
    for end, content in FORMATS["openvino-ir"].nodes([case_of(probe).node()]).items():
        (tmp_path / f"model{end}").write_bytes(content)
    found = convert(tmp_path / "model.xml", "ScatterElementsUpdate-12", targets=("CPU",))
    assert not found.refused
    (converted,) = found.converted
    assert ("copied-before" in converted.rewrites) is is_copied
    assert not found.risks


@pytest.mark.parametrize(("view", "codes"), [("Identity", ["DEV112"]), ("Neg", [])])
def test_a_new_node_that_may_share_memory_is_told_of(view: str, codes: list[str], tmp_path: Path) -> None:
    path = save(_FED_TRIPS.format(view=view), tmp_path / "model.onnx")
    found = convert(path, "ScatterElements", targets=("CPU",))
    assert found.converted
    assert [risk.defect for risk in found.risks] == codes
