"""No output option replaces a file unasked, but for those of our own that are documented to be brought up to date."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ir_scatter import runners
from ir_scatter_cli.main import group
from tests.cli.conftest import Cli, copy_sample
from tests.cli.test_fuzz import Here

MODEL = "scatter_1.onnx"
OUTPUTS = (
    ["validate", MODEL, "-o"], ["validate", MODEL, "--write-baseline"], ["inspect", MODEL, "-o"], ["contract", MODEL, "-o"],
    ["run", MODEL, "-o"], ["convert", MODEL, "-o"], ["compare", MODEL, "--on", "numpy", "-o"],
    ["compare", MODEL, "--on", "numpy", "--report"], ["routes", "-o"], ["rules", "-o"], ["devices", "-o"],
    ["doctor", "--on", "onnx-reference", "-o"],
)  # fmt: skip


@pytest.fixture(autouse=True)
def model(elsewhere: Path) -> Path:
    return copy_sample(f"documented/{MODEL}", elsewhere)


def test_every_option_that_names_an_output_is_here() -> None:
    """A new one is added above, or has a test of its own."""
    known = {(line[0], line[-1]) for line in OUTPUTS}
    known |= {
        ("compare", "--save"),
        ("compare", "--extract"),
        ("fuzz", "-o"),
        ("worker", "--make-certificates"),
    }
    found = set()
    for name in group.list_commands(None):  # type: ignore[arg-type]
        command = group.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        for param in command.params:
            names = set(param.opts) & {"-o", "--write-baseline", "--report", "--save", "--extract"}
            found |= {(name, one) for one in names | (set(param.opts) & {"--make-certificates"})}
            if names:
                assert any("--overwrite" in other.opts for other in command.params)
    assert found == known


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, marks=[pytest.mark.long] if line[0] == "devices" else [])  # asks every runtime
        for line in OUTPUTS
    ],
    ids=lambda line: f"{line[0]} {line[-1]}",
)
def test_a_file_that_exists_stays(cli: Cli, line: list[str]) -> None:
    Path("taken").write_text("mine")
    Path("link").symlink_to("nowhere")
    for name in ("taken", "link"):
        done = cli(*line, name)
        assert done.code == 2
        assert f"{name} exists, expected a path that is free or --overwrite" in done.err
        assert done.out == ""
    assert Path("taken").read_text() == "mine"
    assert not Path("nowhere").exists()
    assert cli(*line, "new").code in {0, 1, 4}  # NumPy alone compares nothing, but writes
    assert cli(*line, "taken", "--overwrite").code in {0, 1, 4}  # NumPy alone compares nothing, but writes
    assert Path("taken").read_bytes() != b"mine"


def test_a_baseline_of_ours_is_brought_up_to_date(cli: Cli) -> None:
    assert cli("validate", MODEL, "--write-baseline", "known.json").code == 0
    Path("known.json").write_text('{"schema": 1, "findings": []}')
    assert cli("validate", MODEL, "--write-baseline", "known.json").code == 0
    assert json.loads(Path("known.json").read_text())["findings"]


def test_what_is_saved_or_extracted_is_not_replaced(cli: Cli) -> None:
    line = ("compare", MODEL, "--on", "numpy")
    assert cli(*line, "--save", "saved").code == 4  # as NumPy alone compares nothing
    assert "saved/results.json exists" in cli(*line, "--save", "saved").err
    assert cli(*line, "--save", "saved", "--overwrite").code == 4
    Path("models/mine").mkdir(parents=True)
    Path("models/mine/model.onnx").write_text("mine")
    done = cli(*line, "--extract", "models")
    assert (done.code, done.out) == (2, "")
    assert "models/mine/model.onnx exists" in done.err
    assert cli(*line, "--extract", "models", "--overwrite").code == 4
    Path("models/mine/README.txt").touch()  # as in a folder that was extracted
    assert cli(*line, "--extract", "models").code == 4


def test_a_page_that_is_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners, "find", lambda name, also=(): Here())
    line = ["fuzz", "--on", "planted", "--operator", "ScatterUpdate-3", "--cases", "20", "-o", "folder"]

    def fuzz(*more: str) -> str:
        done = CliRunner().invoke(group, [*line, *more], standalone_mode=False)
        return f"{done.exception or ''}{done.stderr}"

    page = Path("folder/index.html")
    page.parent.mkdir()
    page.write_text("<h1>mine</h1>")
    for more in ((), ("--resume",)):
        assert "folder/index.html exists, expected a folder without one or --overwrite" in fuzz(*more)
        assert page.read_text() == "<h1>mine</h1>"
        assert [one.name for one in page.parent.iterdir()] == ["index.html"]
    assert "index.html" not in fuzz("--overwrite")
    assert "ir-scatter fuzz" in page.read_text()
    assert "index.html" not in fuzz("--resume")  # its own page is brought up to date
    page.unlink()
    page.symlink_to("/dev/zero")
    assert "folder/index.html exists" in fuzz("--resume")
