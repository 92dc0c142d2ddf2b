"""Two machines whose OpenVINO is of different releases: who computed what, and what differs between them.

The other release is installed by `ir-scatter devices --install`.
"""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("distributed")
pytest.importorskip("cryptography")
pytest.importorskip("openvino")
pytest.importorskip("onnx")

from tests.jobs.commands import ROOT, Lab
from tests.models.onnx_graph import OnnxGraph

pytestmark = [pytest.mark.long, pytest.mark.openvino, pytest.mark.timeout(900)]

OTHER = "2025.4"
MODELS = ROOT / "samples" / "operators"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("lab"))
    try:
        done = made.run("devices", "--install", f"openvino@{OTHER}")
        if done.returncode:
            pytest.skip(done.stderr)
        (record,) = (made.folder / "cache").glob("ir-scatter/releases/*/*/record.json")
        for name in ("new", "newer"):
            made.worker(name)
        made.worker("old", packages=str(record.parent))
        yield made
    finally:
        made.close()


def told(lab: Lab, *words: str) -> tuple[dict[str, Any], str]:
    """Return what `compare` says in JSON, and its page."""
    done = lab.run("compare", *words, "--format", "json", "--report", "page.html", "--overwrite", *lab.fleet)
    assert done.returncode in {0, 4}, done.stderr  # 4 if a runner refuses the model
    return json.loads(done.stdout), (lab.folder / "page.html").read_text()


def test_machines_are_told_apart_and_those_alike_together(lab: Lab) -> None:
    text = lab.run("devices", *lab.fleet).stdout
    lines = " ".join(text.split())
    assert "new, newer: " in lines
    assert "new and old differ in openvino " in lines
    groups = json.loads(lab.run("devices", "--format", "json", *lab.fleet).stdout)["machines"]
    assert [one["names"] for one in groups] == [["new", "newer"], ["old"]]


def test_a_difference_between_machines_begins_with_what_differs_between_them(lab: Lab) -> None:
    """2026 takes an ONNX initializer without elements for a number, and refuses the node; 2025.4 does not."""
    graph = OnnxGraph()
    data = graph.input("data", shape=[3])
    indices, updates = graph.constant("indices", [], np.int64), graph.constant("updates", [], np.float32)
    graph.output(graph.add("ScatterElements", [data, indices, updates], "output", axis=0), shape=[3])
    graph.write(lab.folder / "empty.onnx")
    found, page = told(lab, "empty.onnx", "--on", "new/CPU", "--on", "old/CPU", "--on", "newer/CPU")
    assert {one["runner"]: one["status"] for one in found["outcomes"]} == {
        "numpy": "ok", "new/openvino:CPU": "refused", "newer/openvino:CPU": "refused", "old/openvino:CPU": "ok"
    }  # fmt: skip
    assert found["headline"].startswith(
        "new and old behave differently on openvino:CPU; they also differ in openvino "
    )
    assert "new and old behave differently on openvino:CPU; they also differ in openvino " in page
    assert [one["names"] for one in found["machines"]] == [["new", "newer"], ["old"]]
    text = lab.run("compare", "empty.onnx", "--on", "new/CPU", "--on", "old/CPU", *lab.fleet).stdout
    assert text.startswith("new and old behave differently on openvino:CPU; they also differ in openvino ")


def test_what_any_machine_may_compute_says_which_one_did(lab: Lab) -> None:
    found, page = told(lab, str(next(MODELS.glob("*.xml"))), "--on", "CPU")
    assert [one["runner"] for one in found["outcomes"]] == ["numpy", "openvino:CPU"]
    before, _, machine = next(one for one in found["remarks"] if " computed on " in one).rpartition(" ")
    assert (before, machine in {"new", "newer", "old"}) == ("openvino:CPU: computed on", True)
    assert f"computed on {machine}" in page
