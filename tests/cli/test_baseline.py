"""`--baseline` and `--write-baseline`."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, codes, copy_sample


@pytest.fixture
def known(cli: Cli, broken: Path) -> Path:
    """A baseline of everything in the broken model."""
    assert cli("validate", broken, "--write-baseline", "known.json").code == 0
    return Path("known.json")


def test_writing_excuses_everything_at_once(cli: Cli, broken: Path) -> None:
    result = cli("validate", broken, "--write-baseline", "known.json")
    assert (result.code, result.out) == (0, "no findings in 1 file (6 scatter nodes)\n")


def test_the_file_names_findings_without_lines(known: Path) -> None:
    document = json.loads(known.read_text())
    assert document["schema"] == 1
    assert len(document["findings"]) == 6
    assert {"code": "SCT203", "path": "scatter_update.xml", "scope": "too_many_rows"}.items() <= next(
        entry for entry in document["findings"] if entry["code"] == "SCT203"
    ).items()
    assert "line" not in known.read_text()


def test_the_same_findings_give_the_same_file(cli: Cli, known: Path, broken: Path) -> None:
    before = known.read_bytes()
    cli("validate", broken, "--write-baseline", "known.json")
    assert known.read_bytes() == before


@pytest.mark.parametrize("format", ["text", "concise", "json", "sarif", "junit", "github"])
def test_what_is_known_does_not_fail(cli: Cli, known: Path, broken: Path, format: str) -> None:
    result = cli("validate", broken, "--baseline", known, "--format", format, "--strict")
    assert result.code == 0
    assert "SCT203" not in result.out


def test_lines_may_move(cli: Cli, known: Path, broken: Path) -> None:
    broken.write_text(broken.read_text().replace("\t<layers>", "\n\n\n<!-- moved -->\n\t<layers>"))
    result = cli("validate", broken, "--baseline", known, "--format", "concise")
    assert (result.code, result.out) == (0, "")


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


def test_the_same_finding_at_another_node_is_new(cli: Cli, known: Path, broken: Path) -> None:
    broken.write_text(broken.read_text().replace('name="too_many_rows"', 'name="renamed"'))
    result = cli("validate", broken, "--baseline", known, "--format", "concise")
    assert codes(result.out) == ["SCT203"]


def test_the_same_finding_in_another_file_is_new(
    cli: Cli, known: Path, broken: Path, elsewhere: Path
) -> None:
    (elsewhere / "copy").mkdir()
    copy_sample("broken/scatter_update.xml", elsewhere / "copy")
    result = cli("validate", ".", "--baseline", known, "--format", "concise")
    assert result.code == 1
    assert all(line.startswith("./copy/") for line in result.out.splitlines())
    assert len(result.out.splitlines()) == 6


def test_paths_are_those_of_the_folder_of_the_baseline(
    cli: Cli, known: Path, broken: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (elsewhere / broken, Path(".") / broken, Path("deep") / ".." / broken):
        (elsewhere / "deep").mkdir(exist_ok=True)
        assert cli("validate", path, "--baseline", known).code == 0
    monkeypatch.chdir(elsewhere / "deep")
    assert cli("validate", Path("..") / broken, "--baseline", Path("..") / known).code == 0


def test_one_known_finding_excuses_one(cli: Cli, broken: Path) -> None:
    attributes = 'name="twice" type="ScatterUpdate" version="opset3">\n\t\t\t<data colour="red" size="5" />'
    broken.write_text(
        broken.read_text().replace('name="twice" type="ScatterUpdate" version="opset3">', attributes)
    )
    cli("validate", broken, "--select", "SCT103", "--write-baseline", "known.json")
    document = json.loads(Path("known.json").read_text())
    (entry,) = document["findings"]
    assert entry["count"] == 2
    entry["count"] = 1
    Path("known.json").write_text(json.dumps(document))
    result = cli("validate", broken, "--select", "SCT103", "--baseline", "known.json", "--format", "concise")
    assert codes(result.out) == ["SCT103"]


def test_an_unreadable_file_is_never_known(cli: Cli) -> None:
    result = cli("validate", "no.xml", "--write-baseline", "known.json", "--format", "concise")
    assert result.code == 3
    assert cli("validate", "no.xml", "--baseline", "known.json").code == 3


@pytest.mark.parametrize(
    "content",
    [
        None,
        "",
        "no json",
        "[]",
        "{}",
        "null",
        '{"schema": 1}',
        '{"schema": 2, "findings": []}',
        '{"schema": 1, "findings": [1]}',
        '{"schema": 1, "findings": [{"code": "SCT203"}]}',
        '{"schema": 1, "findings": 7}',
        '{"schema": 1, "findings": null}',
        '{"schema": 1, "findings": [{"code": [], "path": "a", "scope": "", "node": ""}]}',
        '{"schema": 1, "findings": [{"code": "SCT203", "path": "a", "scope": "", "node": "", "count": "x"}]}',
        "\udcff",
    ],
    ids=range(15),
)
def test_a_baseline_that_is_none(cli: Cli, broken: Path, content: str | None) -> None:
    if content is not None:
        Path("known.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    result = cli("validate", broken, "--baseline", "known.json")
    assert (result.code, result.out) == (2, "")
    assert "known.json" in result.err


def test_a_baseline_that_cannot_be_written(cli: Cli, broken: Path) -> None:
    result = cli("validate", broken, "--write-baseline", "no/such/folder/known.json")
    assert result.code not in {0, 1, 70}
    assert "cannot be written" in result.err
