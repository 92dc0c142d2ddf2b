"""Words and options of other tools lead to those that mean the same here."""

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.scatter_models import slices


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        (["-V"], "ir-scatter "),
        (["version"], "ir-scatter "),
        (["help"], "Usage: ir-scatter "),
        (["help", "validate"], "Usage: ir-scatter validate "),
        (["explain", "index", "out", "of", "range"], "SCT302"),
    ],
)
def test_usual_spellings_are_read(arguments: list[str], start: str, cli: Cli) -> None:
    result = cli(*arguments)
    assert result.code == 0
    assert start in result.out


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["validate", "-d", "CPU", "x.xml"], "did you mean --for?"),
        (["validate", "--device", "CPU", "x.xml"], "did you mean --for?"),
        (["compare", "--device", "CPU", "x.xml"], "did you mean --on?"),
        (["convert", "--force", "x.xml"], "did you mean --overwrite?"),
        (["compare", "MODEL", "--on", "ort"], "did you mean onnxruntime?"),
        (["validate", "MODEL", "--for", "cuda"], "did you mean onnxruntime?"),
        (["compare", "MODEL", "--on", "CPU", "--report", "r.pdf"], "ends in .html"),
    ],
)
def test_wrong_words_get_the_right_one(arguments: list[str], hint: str, cli: Cli, elsewhere: Path) -> None:
    model = str(slices())
    result = cli(*[model if word == "MODEL" else word for word in arguments])
    assert result.code == 2
    assert hint in result.err
    assert not list(elsewhere.glob("r.pdf"))


def test_runners_are_separated_by_commas(cli: Cli, elsewhere: Path) -> None:
    result = cli("compare", str(slices()), "--on", "onnxruntime,nobody")
    assert result.code == 2
    assert "there is no runner 'nobody'" in result.err


@pytest.mark.parametrize("command", ["validate", "inspect"])
def test_an_empty_folder_is_an_error(command: str, cli: Cli, elsewhere: Path) -> None:
    (elsewhere / "models").mkdir()
    result = cli(command, "models")
    assert result.code == 3
    assert "no .xml or .onnx file in this folder" in result.err
