import subprocess
import sys
from pathlib import Path

import pytest

from ir_scatter.core.errors import UsageError
from ir_scatter.report import findings_text, registry
from tests.report.reports import REPORT

# Print the modules that rendering adds to those of a report.
_PROBE = """
import sys
import ir_scatter.report.registry
from ir_scatter.core.diagnostics import Diagnostic, Location, Severity
from ir_scatter.lint import FileResult, Report
found = Diagnostic("SCT203", "rule", Severity.ERROR, "message", Location("m.xml", 1, 2))
report = Report((FileResult("m.xml", "openvino-ir", True, 1, (found,), {1: "\\t<layer>"}),))
before = set(sys.modules)
ir_scatter.report.registry.render("findings", sys.argv[1], report, statistics=True, color=True)
print(*sorted(set(sys.modules) - before))
"""
OPTIONS = {"color": True, "quiet": True, "statistics": True, "strict": True, "width": None}


def test_formats_are_found_by_the_names_of_modules() -> None:
    assert registry.formats("findings") == ("text", "concise", "json", "sarif", "junit", "github")
    assert registry.formats("comparison") == ("text", "json", "html")
    for result in ("conversion", "devices", "inspection", "outputs", "routes"):
        assert registry.formats(result) == ("text", "json")


@pytest.mark.parametrize("name", registry.formats("findings"))
def test_every_format_takes_every_option(name: str) -> None:
    assert registry.render("findings", name, REPORT, **OPTIONS)


def test_options_reach_the_renderer() -> None:
    shown = registry.render("findings", "text", REPORT, quiet=True)
    assert shown == findings_text.render(REPORT, quiet=True) != findings_text.render(REPORT)
    assert registry.render("findings", "text", REPORT, strict=True) == findings_text.render(REPORT)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(UsageError, match="the format is 'html', expected one of text, concise,"):
        registry.render("findings", "html", REPORT)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("text", {"characters", "phrases", "findings_text"}),
        ("concise", {"characters", "findings_concise", "phrases"}),
        ("github", {"characters", "findings_github"}),
    ],
)
def test_a_format_for_people_imports_its_own_modules_only(name: str, expected: set[str]) -> None:
    command = [sys.executable, "-c", _PROBE, name]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, check=True, text=True, cwd=root)
    output = done.stdout
    assert set(output.split()) == {f"ir_scatter.report.{module}" for module in expected}
