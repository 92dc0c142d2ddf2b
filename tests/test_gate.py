"""What the test suite guarantees about itself: the same cases in every run, and no unexplained skip."""

import importlib.util
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scale import thinned

ROOT = Path(__file__).resolve().parent.parent


def drawn_integers() -> list[int]:
    """Return what hypothesis draws for one test."""
    drawn = []

    @settings(max_examples=300)
    @given(st.integers(0, 2**62))
    def record(number: int) -> None:
        drawn.append(number)

    record()
    return drawn


def test_drawn_cases_do_not_depend_on_imported_modules(tmp_path: Path) -> None:
    """Hypothesis also draws literals of imported modules, which depend on the tests that ran before."""
    before = drawn_integers()
    assert drawn_integers() == before
    path = Path(__file__).with_name("models") / "cases.py"
    spec = importlib.util.spec_from_file_location("a_module_of_this_checkout", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        assert drawn_integers() == before
    finally:
        del sys.modules[spec.name]


SKIPPING = """
import pytest

def test_allowed():
    pytest.skip("needs the folder of real models beside the checkout")

@pytest.mark.skipif(True, reason="some other reason")
def test_marked():
    pass

def test_imported():
    pytest.importorskip("no_such_package")

@pytest.mark.xfail(reason="some other reason", strict=True)
def test_expected_failure():
    assert False
"""


@pytest.mark.parametrize("option", thinned(["", "--allow-skips"], 2))
def test_a_skip_without_a_listed_reason_fails(option: str, tmp_path: Path) -> None:
    (tmp_path / "test_skipping.py").write_text(SKIPPING)
    (tmp_path / "test_module.py").write_text('import pytest\npytest.importorskip("no_such_package")\n')
    told = tmp_path / "told.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0"]
    command += ["-c", f"{ROOT / 'pyproject.toml'}", f"--confcutdir={tmp_path}", "-p", "tests.conftest"]
    command += ["--continue-on-collection-errors", f"--junit-xml={told}", *filter(None, [option])]
    subprocess.run([*command, str(tmp_path)], cwd=ROOT, timeout=120, check=False)
    outcomes = {
        case.get("name", ""): next((child.tag for child in case), "passed")
        for case in ElementTree.parse(told).iter("testcase")
    }
    failure, error = ("skipped", "skipped") if option else ("failure", "error")
    assert outcomes == {
        "test_module": error,
        "test_allowed": "skipped",
        "test_marked": error,
        "test_imported": failure,
        "test_expected_failure": "skipped",  # as JUnit calls it
    }
