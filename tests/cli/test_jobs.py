"""`-j`: the same output in the same order."""

from pathlib import Path

import pytest

from tests.cli.conftest import SAMPLES, Cli

MIXED = [SAMPLES / "nested", "no_such.xml", SAMPLES / "broken", SAMPLES / "kv_cache"]


@pytest.mark.parametrize("format", ["text", "json"])
def test_two_processes_say_what_one_says(script: Cli, elsewhere: Path, format: str) -> None:
    (elsewhere / "notes.xml").write_text("<notes/>")
    one = script("validate", *MIXED, ".", "-v", "--format", format)
    two = script("validate", *MIXED, ".", "-v", "--format", format, "-j", "2")
    assert one == two
    assert one.code == 3
    assert "notes.xml: passed over" in two.err


def test_baseline_and_ignores_with_processes(script: Cli, elsewhere: Path) -> None:
    arguments = ["--ignore", "SCT3", "--statistics"]
    assert script("validate", SAMPLES, *arguments) == script("validate", SAMPLES, *arguments, "-j", "2")
