"""No option that names a file to be written may name one that is read."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import COMMAND, Cli, copy_sample
from tests.models.onnx_graph import OnnxGraph


@pytest.fixture
def outside(elsewhere: Path) -> Path:
    """An ONNX model whose updates are in a file of its own."""
    graph = OnnxGraph()
    x = graph.input("x", shape=[4])
    i, u = graph.constant("i", [0, 1, 2, 3] * 200), graph.constant("u", np.zeros(800, np.float32))
    graph.output(graph.add("ScatterElements", [x, i, u], "y"), shape=[4])
    path = graph.write(Path("outside.onnx"), save_as_external_data=True, location="weights", size_threshold=0)
    assert Path("weights").exists()
    return path


def linked(name: str, make: Callable[[Path], None]) -> Path:
    make(Path(name))
    return Path(name)


SPELLINGS: dict[str, Callable[[Path], Path]] = {
    "as it is": lambda path: path,
    "longer": lambda path: linked("folder", Path.mkdir) / ".." / path,
    "absolute": Path.resolve,
    "symbolic": lambda path: linked("link", lambda link: link.symlink_to(path)),
    "hard": lambda path: linked("hard_link", lambda link: link.hardlink_to(path)),
    "through a folder": lambda path: linked("other", lambda link: link.symlink_to(".")) / path,
}
COMMANDS = (
    ("validate", "-o"), ("validate", "--write-baseline"), ("inspect", "-o"), ("run", "-o"),
    ("compare", "-o"), ("compare", "--report"),
)  # fmt: skip


def contents() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(("command", "option"), COMMANDS)
@pytest.mark.parametrize("kind", ["model", "weights of onnx", "weights of ir"])
def test_neither_the_model_nor_its_weights_are_an_output(
    cli: Cli, outside: Path, kind: str, command: str, option: str, spelling: str
) -> None:
    model = copy_sample("kv_cache/decoder.xml", Path.cwd()) if kind == "weights of ir" else outside
    files = {"model": model, "weights of onnx": Path("weights"), "weights of ir": Path("decoder.bin")}
    written = SPELLINGS[spelling](files[kind])
    before = contents()
    result = cli(command, model, option, written)
    assert result.code == 2
    what = "is the model itself, expected another file" if kind == "model" else "is "
    assert f"{option}: {written} {what}" in " ".join(result.err.split())
    assert contents() == before


@pytest.mark.parametrize("model", ["decoder.xml", "*.xml", "."])
def test_neither_is_a_model_that_is_found(cli: Cli, clean: Path, model: str) -> None:
    before = contents()
    for command in ("validate", "inspect"):
        assert cli(command, model, "-o", clean).code == 2
    assert contents() == before


def test_inputs_and_baselines_are_no_outputs(cli: Cli, clean: Path) -> None:
    np.savez("inputs.npz", x=np.zeros(3, np.float32))
    assert cli("validate", clean, "--write-baseline", "known.json").code == 0
    before = contents()
    assert cli("validate", clean, "--baseline", "known.json", "-o", "known.json").code == 2
    assert cli("run", clean, "--inputs", "inputs.npz", "-o", "./inputs.npz").code == 2
    assert cli("compare", clean, "--inputs", "inputs.npz", "--report", "inputs.npz").code == 2
    assert contents() == before
    assert cli("validate", clean, "--baseline", "known.json", "--write-baseline", "known.json").code == 0


def test_what_was_saved_is_not_saved_over(cli: Cli, clean: Path) -> None:
    assert cli("compare", clean, "--on", "numpy", "--save", "saved").code in {0, 4}
    before = contents()
    for more in (["--against", "saved"], ["--inputs", "saved/case_0.npz"]):
        assert cli("compare", clean, "--on", "numpy", *more, "--save", "folder/../saved/").code == 2
        assert cli("compare", clean, "--on", "numpy", *more, "--save", "./saved").code == 2
        assert cli("compare", clean, "--on", "numpy", *more, "-o", "saved/case_0.npz").code == 2
    assert contents() == before


def test_what_was_extracted_is_not_extracted_over(cli: Cli, clean: Path) -> None:
    place = Path("extracted/node__numpy")
    place.mkdir(parents=True)
    clean.rename(place / "model.xml")
    clean.with_suffix(".bin").rename(place / "model.bin")
    before = contents()
    result = cli("compare", place / "model.xml", "--on", "numpy", "--extract", "extracted")
    assert result.code == 2
    assert "--extract: model.xml in extracted is the model itself" in " ".join(result.err.split())
    assert contents() == before


def test_devices_may_be_written_and_other_files_are_replaced_on_demand(
    cli: Cli, clean: Path, outside: Path
) -> None:
    for device in ("/dev/null", "/dev/stdout"):
        for command in ("validate", "inspect"):
            assert cli(command, clean, "-o", device).code == 0
    Path("report.txt").write_text("old")
    assert cli("validate", clean, outside, "-o", "report.txt", "--overwrite").code == 0
    assert Path("report.txt").read_text() != "old"


@pytest.mark.skipif(not os.path.islink("/dev/stdout"), reason="needs /dev/stdout as Linux has it")
def test_standard_output_is_written_into_wherever_it_leads(clean: Path) -> None:
    """It may be a file with more in it; a link in /dev is never replaced by one."""
    Path("log").write_text("before\n")
    link = os.readlink("/dev/stdout")
    with open("log", "ab") as log:
        done = subprocess.run(
            [COMMAND, "validate", clean, "-o", "/dev/stdout"], stdout=log, timeout=60, check=False
        )
    assert done.returncode == 0
    assert Path("log").read_text().startswith("before\nno findings in 1 file")
    assert os.readlink("/dev/stdout") == link


def test_what_is_there_is_replaced_if_asked_for_only(cli: Cli) -> None:
    model = copy_sample("documented/scatter_1.onnx", Path.cwd())
    compare = ("compare", model, "--on", "numpy", "--save")
    for command, written, kept in (
        (("run", model, "-o"), "out.npz", Path("out.npz")),
        (compare, "saved", Path("saved/results.json")),
        ((*compare[:2], "--each", *compare[2:]), "each", Path("each/scatter_1/results.json")),
    ):
        code = cli(*command, written).code
        assert code == (0 if command[0] == "run" else 4)  # of one runner nothing is compared
        kept.write_bytes(b"mine")
        result = cli(*command, written)
        assert (result.code, result.out) == (2, "")
        assert f"{kept} exists, expected a" in result.err
        assert "--overwrite" in result.err
        assert kept.read_bytes() == b"mine"
        assert cli(*command, written, "--overwrite").code == code
        assert kept.read_bytes() != b"mine"
    assert cli("run", model, "-o", os.devnull).code == 0


def test_standard_input_is_no_output(clean: Path) -> None:
    before = clean.read_bytes()
    with clean.open("rb") as file:
        done = subprocess.run(
            [COMMAND, "validate", "-", "-o", clean], stdin=file, capture_output=True, timeout=60, check=False
        )
    assert done.returncode == 2
    assert clean.read_bytes() == before


def test_two_options_name_two_files_and_settings_are_none(cli: Cli, clean: Path) -> None:
    Path("pyproject.toml").write_text("[tool.ir-scatter]\nquiet = true\n")
    before = contents()
    for options, message in (
        (
            ("-o", "x.json", "--write-baseline", "x.json"),
            "x.json is also the file of -o, expected another file",
        ),
        (("-o", "pyproject.toml"), "the file of the settings"),
    ):
        result = cli("validate", clean, *options)
        assert result.code == 2
        assert message in " ".join(result.err.split())
    assert contents() == before
