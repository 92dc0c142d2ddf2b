"""What the test suite guarantees about itself: the same cases in every run, and no unexplained skip."""

import importlib.util
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st


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
