"""`--baseline` and `--write-baseline`."""

from pathlib import Path

import pytest

from tests.cli.conftest import Cli, codes


@pytest.fixture
def known(cli: Cli, broken: Path) -> Path:
    """A baseline of everything in the broken model."""
    assert cli("validate", broken, "--write-baseline", "known.json").code == 0
    return Path("known.json")


def test_writing_excuses_everything_at_once(cli: Cli, broken: Path) -> None:
    result = cli("validate", broken, "--write-baseline", "known.json")
    assert (result.code, result.out) == (0, "no findings in 1 file (6 scatter nodes)\n")


@pytest.mark.parametrize("format", ["text", "concise", "json", "sarif", "junit", "github"])
def test_what_is_known_does_not_fail(cli: Cli, known: Path, broken: Path, format: str) -> None:
    result = cli("validate", broken, "--baseline", known, "--format", format, "--strict")
    assert result.code == 0
    assert "SCT203" not in result.out


def test_a_new_finding_fails(cli: Cli, known: Path, broken: Path) -> None:
    text = broken.read_text()
    assert 'name="twice" type="ScatterUpdate" version="opset3"' in text
    changed = text.replace(
        'name="twice" type="ScatterUpdate" version="opset3"',
        'name="twice" type="ScatterUpdate" version="opset1"',
    )
    broken.write_text(changed)
    result = cli("validate", broken, "--baseline", known, "--format", "concise")
    assert result.code == 1
    assert codes(result.out) == ["SCT402"]
    assert "[twice]" in result.out


def test_an_unreadable_file_is_never_known(cli: Cli) -> None:
    result = cli("validate", "no.xml", "--write-baseline", "known.json", "--format", "concise")
    assert result.code == 3
    assert cli("validate", "no.xml", "--baseline", "known.json").code == 3


def test_a_baseline_that_is_none(cli: Cli, broken: Path) -> None:
    for content in (None, "no json"):
        if content is not None:
            Path("known.json").write_text(content)
        result = cli("validate", broken, "--baseline", "known.json")
        assert (result.code, result.out) == (2, "")
        assert "known.json" in result.err


def test_a_baseline_that_cannot_be_written(cli: Cli, broken: Path) -> None:
    result = cli("validate", broken, "--write-baseline", "no/such/folder/known.json")
    assert result.code not in {0, 1, 70}
    assert "cannot be written" in result.err
