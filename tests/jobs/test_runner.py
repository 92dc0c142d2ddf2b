"""Runners of machines: what they say of who computed."""

from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("distributed")
pytest.importorskip("openvino")

from ir_scatter.compare.request import CompareRequest, run_job
from ir_scatter.jobs.runner import FleetRunners
from ir_scatter.report.comparison_html import render
from tests.jobs.lab import lab
from tests.scale import thinned

MODEL = Path(__file__).parents[2] / "samples" / "operators" / "scatter_update_3_axis_0.xml"


@pytest.mark.openvino
@pytest.mark.parametrize(("name", "is_told"), thinned([("openvino:CPU", True), ("a/openvino:CPU", False)], 2))
def test_a_value_is_tied_to_the_machine_that_computed_it(name: str, is_told: bool, tmp_path: Path) -> None:
    with lab(tmp_path, "tcp") as made:
        made.worker("a")
        with closing(made.fleet()) as fleet:
            done = run_job(
                CompareRequest((str(MODEL),), (name,)), executor=fleet, directory=FleetRunners(fleet)
            )
    (found,) = done.found
    assert [one.runner for one in found.outcomes] == ["numpy", name]
    assert (f"{name}: computed on a" in found.remarks) is is_told
    page = render(done)
    assert ("computed on a" in page) is is_told
    assert "a: a processor, avx2, openvino 2026.4.1, doctor has not run" in page
