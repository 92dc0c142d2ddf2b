import subprocess
import sys
from pathlib import Path

import pytest

from ir_scatter.core.errors import UsageError
from ir_scatter.report import formats, text
from tests.report.reports import REPORT

# Print the modules that rendering adds to those of a report.
_PROBE = """
import sys
import ir_scatter.report.formats
from ir_scatter.core.diagnostics import Diagnostic, Location, Severity
from ir_scatter.lint import FileResult, Report
found = Diagnostic("SCT203", "rule", Severity.ERROR, "message", Location("m.xml", 1, 2))
report = Report((FileResult("m.xml", "openvino-ir", True, 1, (found,), {1: "\\t<layer>"}),))
before = set(sys.modules)
ir_scatter.report.formats.render(report, sys.argv[1], statistics=True, color=True)
print(*sorted(set(sys.modules) - before))
"""


@pytest.mark.parametrize("name", formats.FORMATS)
def test_every_format_takes_every_option(name: str) -> None:
    options = {option for chosen in formats.FORMATS.values() for option in chosen.options}
    assert options == {"color", "quiet", "statistics", "strict"}
    assert formats.render(REPORT, name, **dict.fromkeys(options, True))


def test_options_reach_the_renderer() -> None:
    assert formats.render(REPORT, "text", quiet=True) == text.render(REPORT, quiet=True)
    assert formats.render(REPORT, "text", quiet=False, strict=True) == text.render(REPORT)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(UsageError, match="the format is 'html', expected one of text, concise,"):
        formats.render(REPORT, "html")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("text", {"characters", "excerpt", "phrases", "text"}),
        ("concise", {"characters", "concise", "phrases"}),
        ("github", {"characters", "github"}),
    ],
)
def test_a_format_for_people_imports_its_own_modules_only(name: str, expected: set[str]) -> None:
    command = [sys.executable, "-c", _PROBE, name]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, check=True, text=True, cwd=root)
    output = done.stdout
    assert set(output.split()) == {f"ir_scatter.report.{module}" for module in expected}
