"""Machines that behave differently on the same device: first it is said what differs between them."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("distributed")

from ir_scatter.compare import request as jobs
from ir_scatter.compare.headline import headline
from ir_scatter.compare.request import Sources
from tests.compare.planted import Planted, at, unchanged
from tests.compare.test_tapped_runs import model
from tests.jobs.lab import MACHINE


class Engine:
    """A fleet of two machines that have nothing to do."""

    def __init__(self, packages: dict[str, str]) -> None:
        self.machines = [replace(MACHINE, name="a"), replace(MACHINE, name="b", packages=packages)]


@pytest.mark.parametrize(
    ("version", "is_wrong", "begin"),
    [
        (
            "2025.4.0",
            True,
            "a and b behave differently on planted; they also differ in openvino 2026.4.1, 2025.4.0; ",
        ),
        ("2026.4.1", True, "a and b behave differently on planted; the machines report no difference; "),
        ("2025.4.0", False, ""),
    ],
)
def test_what_differs(
    version: str, is_wrong: bool, begin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runners = Planted("a/planted"), Planted("b/planted", node=at(3) if is_wrong else unchanged)
    monkeypatch.setattr(jobs, "find_sources", lambda *_, **__: Sources(runners, True))
    engine = Engine({"openvino": version})
    (found,) = jobs.run_job(jobs.CompareRequest((str(model(tmp_path)),)), executor=engine).found  # type: ignore[arg-type]
    told = headline(found).sentence
    assert found.differs is is_wrong
    assert told.startswith(begin) if begin else "machines" not in told and found.apart == ""
