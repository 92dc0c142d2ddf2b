"""Settings of hypothesis for every test, the options of all, and the figures of campaigns."""

import os
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings

_SLOW = [HealthCheck.too_slow]
_FIGURES = "figures"

settings.register_profile("ci", max_examples=60, derandomize=True, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("nightly", max_examples=5000, deadline=None, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the outputs that tests compare with anew"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the campaigns of the long profile the time they need."""
    if os.environ.get("HYPOTHESIS_PROFILE") == "nightly":
        for item in items:
            if "campaigns" in item.path.parts:
                item.add_marker(pytest.mark.timeout(0))


@pytest.fixture
def figures(record_property: Callable[[str, object], None]) -> Iterator[Counter[str]]:
    """Counts by name; they are printed at the end of the run, whether the test passes or fails."""
    counted: Counter[str] = Counter()
    yield counted
    record_property(_FIGURES, ", ".join(f"{name} {count:,}" for name, count in counted.items()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for found in terminalreporter.stats.values() for report in found]
    lines = {
        f"{report.nodeid.rpartition('::')[2]}: {value}"
        for report in reports
        if isinstance(report, pytest.TestReport)
        for name, value in report.user_properties
        if name == _FIGURES and value
    }
    if lines:
        terminalreporter.section("campaigns")
        for line in sorted(lines):
            terminalreporter.write_line(line)
