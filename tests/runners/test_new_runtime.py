"""A runtime is one folder: found by its name, and used, without a line anywhere else."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ir_scatter import runners
from ir_scatter.runners.base import Status

RUNNER = """
from ir_scatter.runners.base import Family, Runner


class Doubling(Runner):
    name = "doubling"
    module = "ir_scatter.runners.doubling.child"
    packages = ()
    install = "nothing"


FAMILIES = (Family.of_one("doubling", Doubling, 90),)
"""
CHILD = """
from functools import partial

from ir_scatter.runners.engine import Engine, Loaded, run


class Doubles(Engine):
    names = ["doubled"]

    @classmethod
    def read(cls, path):
        return None

    @classmethod
    def add_taps(cls, path, model, taps, fed, bodies):
        return Loaded(model, ["it has no nodes" for _ in taps])

    def shapes(self, tapped, keys):
        return {}

    def infer(self, loaded, keys):
        return [2 * self.feeds["x"]]


def handlers():
    return {"run": partial(run, Doubles), "describe": lambda device: {"full_name": "Doubler"}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    package = tmp_path / "doubling"
    package.mkdir()
    for name, text in (("__init__", ""), ("runner", RUNNER), ("child", CHILD)):
        (package / f"{name}.py").write_text(text)
    (tmp_path / "sitecustomize.py").write_text(
        f"import ir_scatter.runners as runners\nrunners.__path__.append({str(tmp_path)!r})\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(runners, "__path__", [*runners.__path__, str(tmp_path)])
    runners._families.cache_clear()
    yield
    runners.find("doubling").close()
    runners._families.cache_clear()
    runners._RUNNERS.pop("doubling", None)


def test_a_folder_is_a_runtime(folder: None, tmp_path: Path) -> None:
    assert "doubling" in runners.known()
    runner = runners.find("Doubling")
    assert runner.availability().full_name == "Doubler"
    outcome = runner.run(tmp_path / "any.xml", {"x": np.arange(3)}, repeat=2)
    assert (outcome.status, outcome.message) == (Status.OK, "")
    assert [run["doubled"].tolist() for run in outcome.runs] == [[0, 2, 4]] * 2
