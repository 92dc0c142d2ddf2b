"""Two machines whose OpenVINO is of different releases: who computed what, and what differs between them.

The other release is installed by `ir-scatter devices --install`.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("distributed")
pytest.importorskip("cryptography")
pytest.importorskip("jinja2")
pytest.importorskip("openvino")

from tests.jobs.commands import ROOT, Lab

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
    done = lab.run("compare", *words, "--format", "json", "--report", "page.html", *lab.fleet)
    assert done.returncode in {0, 1}, done.stderr
    return json.loads(done.stdout), (lab.folder / "page.html").read_text()


def test_machines_are_told_apart_and_those_alike_together(lab: Lab) -> None:
    text = lab.run("devices", *lab.fleet).stdout
    lines = " ".join(text.split())
    assert "new, newer: " in lines
    assert "new and old differ in openvino " in lines
    groups = json.loads(lab.run("devices", "--format", "json", *lab.fleet).stdout)["machines"]
    assert [one["names"] for one in groups] == [["new", "newer"], ["old"]]
