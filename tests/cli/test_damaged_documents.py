"""Inputs and saved results that are none: a sentence and an exit code, whatever they hold."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Cli, copy_sample

DEEP = 100_000


def demand_sentence(code: int, err: str, *words: str, expected: int = 2) -> None:
    text = " ".join(err.split())
    assert code == expected, text[-500:]
    assert "Traceback" not in text
    assert "bug in ir-scatter" not in text
    for word in words:
        assert word in text
    assert len(text) < 1000


def npy(header: str) -> bytes:
    data = header.encode() + b"\n"
    return b"\x93NUMPY\x02\x00" + len(data).to_bytes(4, "little") + data


def archive(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        zipped.writestr("x.npy", content)
    return file.getvalue()


def headed(shape: str, descr: str = "'<f4'") -> bytes:
    return archive(npy(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}"))


INPUTS = {
    "deep": archive(npy("(" * 9000)),
    "deep and whole": archive(npy("{'descr': " + "[" * 3000 + "]" * 3000 + "}")),
    "a long header": headed("(" + "1," * 40000 + ")"),
    "endless": headed(f"({2**62},)"),
    "more than endless": headed(f"({2**80},)"),
    "negative": headed("(-1,)"),
    "no type": headed("(1,)", "7"),
    "an object": headed("(1,)", "'|O'"),
    "a text": archive(b"text"),
    "the same name twice": b"",
    "nothing": b"",
    "a folder": b"",
}


@pytest.mark.parametrize("command", ["run", "compare"])
@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_no_inputs(cli: Cli, elsewhere: Path, name: str, command: str) -> None:
    model = copy_sample("documented/scatter_update_1.xml", elsewhere)
    path = Path("inputs.npz")
    path.write_bytes(INPUTS[name])
    if name == "the same name twice":
        with zipfile.ZipFile(path, "w") as zipped:
            for value in (0, 1):
                file = io.BytesIO()
                np.save(file, np.full(3, value, np.float32))
                zipped.writestr("hidden.npy", file.getvalue())
    if name == "a folder":
        path.unlink()
        path.mkdir()
    more = ["--on", "numpy"] if command == "compare" else []
    result = cli(command, model, "--inputs", path, *more)
    demand_sentence(result.code, result.err)


HEAD = '{"schema": 1, "model": "m", "versions": {}, "facts": {}, "cases": '
SAVED = {
    "deep lists": "[" * DEEP,
    "deep tables": '{"a":' * DEEP,
    "deep and whole": "[" * DEEP + "]" * DEEP,
    "deep inside": f'{{"schema": 1, "findings": {"[" * DEEP}{"]" * DEEP}}}',
    "a long number": f'{{"schema": {"9" * 5000}}}',
    "no number": '{"schema": NaN}',
    "zeros": "\0" * 1000,
    "no text": "\ud800",
    "half": '{"schema": 1, "find',
    "no cases": f"{HEAD}7}}",
    "deep cases": f"{HEAD}{'[' * 900}{']' * 900}}}",
    "a list": "[]",
    "nothing": "",
    "null": "null",
    "another schema": '{"schema": [[[]]]}',
    "endless": '{"schema": 1e999}',
}


@pytest.mark.parametrize("name", SAVED)
def test_nothing_saved(cli: Cli, clean: Path, name: str) -> None:
    Path("saved").mkdir()
    Path("saved/results.json").write_bytes(SAVED[name].encode("utf-8", "surrogatepass"))
    result = cli("compare", clean, "--on", "numpy", "--against", "saved")
    demand_sentence(result.code, result.err, "results.json: ")


@pytest.mark.parametrize(
    "given",
    [
        ("--input-shape", f"hidden={'9' * 5000}"),
        ("--input-shape", "hidden=99999999999999999999,3,8"),
        ("--input-shape", "hidden=-1"),
        ("--input-shape", "hidden=" + "1," * 5000 + "1"),
    ],
)
@pytest.mark.parametrize("command", ["validate", "run", "compare"])
def test_numbers_of_options(cli: Cli, clean: Path, command: str, given: tuple[str, str]) -> None:
    more = ["--on", "numpy"] if command == "compare" else []
    result = cli(command, clean, *given, *more)
    assert result.code in {0, 1, 2, 4}
    assert "bug in ir-scatter" not in result.err


@pytest.mark.parametrize("text", ["nan,0", "-1,0", "a=b=c", "y=1"])
def test_tolerances(cli: Cli, clean: Path, text: str) -> None:
    result = cli("compare", clean, "--on", "numpy", "--tolerance", text)
    demand_sentence(result.code, result.err)
