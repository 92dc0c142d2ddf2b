"""Every verdict leads on: to the known defect that explains it and its fix, or to a report of a new one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pytest

from ir_scatter.compare.known import lines_of, target_of, upstream_of
from ir_scatter.compare.request import ComparedModels
from ir_scatter.compare.result import Compared, CompareSettings, Lead, Level
from ir_scatter.compare.run import compare
from ir_scatter.convert.fixes import with_fixes
from ir_scatter.core.parameters import spelled
from ir_scatter.reading import read
from ir_scatter.runners.base import Runner, Status
from ir_scatter.runners.defaults import NUMPY
from ir_scatter_cli.spelling import OptionSpelling
from tests.compare.planted import Planted
from tests.models.onnx_text import save

Array = npt.NDArray[Any]

PLUGINS = Path(__file__).parents[2] / "samples/plugins"
REFUSED, NEGATIVE = PLUGINS / "scalar_index.xml", PLUGINS / "last_position.onnx"

TWO = """<ir_version: 10, opset_import: ["" : 18]>
g (float[5,2] data, float[5,2] other, float[1,2] updates) => (float[5,2] left, float[5,2] right) {
  at = Constant <value = int64[1,2] {-1, -1}> ()
  first = ScatterElements <axis = 0> (data, at, updates)
  left = Neg (first)
  second = ScatterElements <axis = 0> (other, at, updates)
  right = Relu (second)
}"""


def plus_one(name: str, array: Array, is_tapped: bool, number: int) -> Array:
    return array + 1


def wrong_at(*nodes: str) -> Any:
    def change(name: str, array: Array, is_tapped: bool, number: int) -> Array:
        return array + 1 if name in nodes else array

    return change


def judge(path: Path, runner: Runner, **settings: Any) -> Compared:
    return compare(path, [runner], CompareSettings(**settings))


def codes(compared: Compared) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the codes of all differences by level and name."""
    return {
        (str(each.level), each.node or each.tensor): each.known_as
        for each in compared.comparisons
        if each.measure.verdict.is_difference
    }


def leads(compared: Compared) -> Mapping[str, Lead]:
    return {lead.runner: lead for lead in compared.leads}


def commands(lead: Lead) -> list[str]:
    with spelled(OptionSpelling("compare").spell):
        return lines_of(lead)


def test_a_wrong_node_is_known_by_a_condition_that_the_verdict_confirms() -> None:
    found = judge(NEGATIVE, Planted("openvino:GPU@cpu", node=plus_one))
    assert codes(found) == {("model", "written"): ("DEV306",), ("node", "written"): ("DEV306",)}
    assert found.known_as == {"openvino:GPU@cpu": ("DEV306",)}
    [lead] = found.leads
    assert (lead.nodes, lead.codes, lead.device) == (("written",), ("DEV306",), "GPU@cpu")


def test_another_runner_does_not_have_that_defect() -> None:
    found = judge(NEGATIVE, Planted("openvino:fold", node=plus_one))
    assert codes(found) == {("model", "written"): (), ("node", "written"): ()}
    assert found.known_as == {}
    first, *steps = commands(found.leads[0])
    assert first.startswith("written on openvino:fold: not a known defect of openvino:fold 20")
    assert steps == [
        f"for a bug report, a one-node model: ir-scatter compare {NEGATIVE} --on fold --extract wrong",
        "to learn when it happens: ir-scatter fuzz --operator ScatterND-18 --on fold",
    ]


def test_nothing_is_looked_up_where_runners_agree() -> None:
    found = judge(NEGATIVE, Planted("openvino:GPU@cpu"))
    assert (found.leads, found.known_as) == ((), {})


def test_a_refusal_is_known_and_names_its_node() -> None:
    found = judge(REFUSED, Planted("openvino:CPU", ending=lambda *_: Status.REFUSED))
    assert found.known_as == {"openvino:CPU": ("DEV101",)}
    [lead] = with_fixes(ComparedModels((found,))).found[0].leads
    assert commands(lead) == [
        "openvino:CPU refuses the model at scatter: known as DEV101: ir-scatter explain DEV101",
        f"fix: ir-scatter convert {REFUSED} --for CPU -o NEW.xml",
    ]


def test_a_crash_is_no_known_refusal() -> None:
    found = judge(REFUSED, Planted("openvino:CPU", ending=lambda *_: Status.CRASHED))
    assert found.known_as == {}
    assert found.leads[0].codes == ()
    assert commands(found.leads[0])[0].startswith("openvino:CPU crashes: not a known defect of openvino:CPU ")


def test_a_refusal_that_is_not_known_names_the_node_of_the_message() -> None:
    class Refusing(Planted):
        def run(self, *arguments: Any, **options: Any) -> Any:
            self.message = "Check 'axis' failed at node 'written'"
            return super().run(*arguments, **options)

    found = judge(NEGATIVE, Refusing("openvino:fold", ending=lambda *_: Status.REFUSED))
    assert found.leads[0].nodes == ("written",)
    assert found.leads[0].operator == "ScatterND-18"


def test_no_defect_is_found_of_runners_that_have_none() -> None:
    found = judge(NEGATIVE, Planted("planted", node=plus_one))
    assert (found.leads, found.known_as) == ((), {})


def test_a_fix_is_named_only_if_the_conversion_avoids_the_defect(tmp_path: Path) -> None:
    found = judge(PLUGINS / "large_numbers.xml", Planted("openvino:CPU", node=plus_one), values="edge")
    assert found.known_as == {"openvino:CPU": ("DEV120",)}
    [lead] = with_fixes(ComparedModels((found,))).found[0].leads
    assert lead.is_fixed is False
    assert commands(lead)[1].startswith("to avoid it: keep all values within the range of i32")


@pytest.mark.parametrize(("wrong", "output"), [("first", "left"), ("second", "right")])
def test_an_output_is_known_by_the_nodes_before_it(wrong: str, output: str, tmp_path: Path) -> None:
    path = save(TWO, tmp_path / "two.onnx")
    found = judge(path, Planted("openvino:GPU@cpu", node=wrong_at(wrong), silent=[wrong]))
    of_output = codes(found)[Level.MODEL, output]
    is_upstream = upstream_of(read(path), output)
    assert [is_upstream(name) for name in ("first", "second")] == [wrong == "first", wrong == "second"]
    assert {scope for lead in found.leads for scope in lead.nodes} <= {wrong}
    assert of_output == found.known_as.get("openvino:GPU@cpu", ())


def test_machines_and_saved_results_have_the_defects_of_their_release() -> None:
    versions = {"openvino": "2025.1.0"}
    for name in ("openvino:CPU", "lab/openvino:CPU", "saved:openvino:CPU"):
        assert target_of(name, versions) == ("openvino:CPU", "2025.1.0")
    assert target_of(NUMPY, {}) is None
    assert target_of("saved:numpy", {}) is None
