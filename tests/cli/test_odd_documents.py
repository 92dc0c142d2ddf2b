"""Baselines, settings, inputs and saved results that are none: a sentence and an exit code, whatever they hold."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Cli, copy_sample

DEEP = 100_000

JSON = {
    "deep lists": "[" * DEEP,
    "deep tables": '{"a":' * DEEP,
    "deep and whole": "[" * DEEP + "]" * DEEP,
    "deep inside": f'{{"schema": 1, "findings": {"[" * DEEP}{"]" * DEEP}}}',
    "a long number": f'{{"schema": {"9" * 5000}}}',
    "no number": '{"schema": NaN}',
    "zeros": "\0" * 1000,
    "no text": "\ud800",
    "half": '{"schema": 1, "find',
}


def entry(**changes: object) -> dict[str, object]:
    return {"code": "SCT203", "path": "m.xml", "scope": "s", "node": "n", "count": 1} | changes


BASELINES = {
    **JSON,
    "an endless count": json.dumps({"schema": 1, "findings": [entry(count=1e999)]}),
    "no count": json.dumps({"schema": 1, "findings": [entry(count=float("nan"))]}),
    "half a count": json.dumps({"schema": 1, "findings": [entry(count=1.5)]}),
    "a negative count": json.dumps({"schema": 1, "findings": [entry(count=-1)]}),
    "a count of text": json.dumps({"schema": 1, "findings": [entry(count="1")]}),
    "a count of nothing": json.dumps({"schema": 1, "findings": [entry(count=None)]}),
    "a true count": json.dumps({"schema": 1, "findings": [entry(count=True)]}),
    "a code that is a list": json.dumps({"schema": 1, "findings": [entry(code=["SCT203"])]}),
    "a node that is a number": json.dumps({"schema": 1, "findings": [entry(node=1)]}),
    "a true schema": json.dumps({"schema": True, "findings": []}),
    "findings by name": json.dumps({"schema": 1, "findings": {"a": entry()}}),
    "findings of text": json.dumps({"schema": 1, "findings": "none"}),
    "no findings": json.dumps({"schema": 1}),
    "a list": "[]",
    "nothing": "",
}


def demand_sentence(code: int, err: str, *words: str, expected: int = 2) -> None:
    text = " ".join(err.split())
    assert code == expected, text[-500:]
    assert "Traceback" not in text
    assert "bug in ir-scatter" not in text
    for word in words:
        assert word in text
    assert len(text) < 1000


@pytest.mark.parametrize("name", BASELINES)
def test_no_baseline(cli: Cli, broken: Path, name: str) -> None:
    Path("known.json").write_bytes(BASELINES[name].encode("utf-8", "surrogatepass"))
    result = cli("validate", broken, "--baseline", "known.json")
    demand_sentence(result.code, result.err, "known.json: ", "baseline")
    assert result.out == ""


@pytest.mark.parametrize("count", [0, 1, 10**400])
def test_counts_of_a_baseline(cli: Cli, broken: Path, count: int) -> None:
    text = f'{{"schema": 1, "findings": [], "findings": [{json.dumps(entry())[:-2]}{count}}}]}}'
    Path("known.json").write_text(text)
    assert cli("validate", broken, "--baseline", "known.json").code == 1


SETTINGS = {
    "deep lists": "a = " + "[" * DEEP,
    "deep and whole": "a = " + "[" * DEEP + "]" * DEEP,
    "deep tables": "a = " + "{b = " * DEEP,
    "no text": "a = '\ud800'",
    "a date": "jobs = 1979-05-27",
    "a list": "jobs = [1]",
    "a table": "jobs = {a = 1}",
    "endless": "jobs = inf",
    "no number": "jobs = nan",
    "half": "jobs = 1.5",
    "a wrong number": "jobs = 0",
    "a wrong word": "jobs = 'many'",
    "a list for a switch": "strict = [true]",
    "a number for a switch": "strict = 7",
    "a table for a switch": "quiet = {a = 1}",
    "a date for a switch": "statistics = 1979-05-27",
    "a list for a word": "format = ['text']",
    "a table for a word": "min-severity = {a = 1}",
    "a number for a word": "format = 7",
    "a number for a file": "baseline = 7",
    "a list for a file": "baseline = ['known.json']",
    "a word for a list": "select = 'SCT2'",
    "a list of lists": "select = [['SCT2']]",
    "a shape that is none": "input-shape = ['x=a']",
    "ignores that are none": "node-ignores = 7",
    "ignores of numbers": "node-ignores = [7]",
    "codes that are a number": "[[tool.ir-scatter.node-ignores]]\ncodes = 7",
    "the same key twice": "jobs = 1\njobs = 2",
}


@pytest.mark.parametrize("name", SETTINGS)
def test_no_settings(cli: Cli, broken: Path, name: str) -> None:
    text = f"[tool.ir-scatter]\n{SETTINGS[name]}\n"
    Path("pyproject.toml").write_bytes(text.encode("utf-8", "surrogatepass"))
    result = cli("validate", broken)
    demand_sentence(result.code, result.err)
    assert result.out == ""


@pytest.mark.parametrize(
    "text",
    [
        "jobs = '1'",
        "jobs = 1.0",
        "strict = 'false'",
        "strict = 'no'",
        "max-index-elements = 99999999999999999999999",
    ],
)
def test_settings_that_mean_something(cli: Cli, clean: Path, text: str) -> None:
    Path("pyproject.toml").write_text(f"[tool.ir-scatter]\n{text}\n")
    assert cli("validate", clean).code == 0


def npy(header: str) -> bytes:
    data = header.encode() + b"\n"
    return b"\x93NUMPY\x02\x00" + len(data).to_bytes(4, "little") + data


def archive(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        zipped.writestr("x.npy", content)
    return file.getvalue()


INPUTS = {
    "deep": archive(npy("(" * 9000)),
    "deep and whole": archive(npy("{'descr': " + "[" * 3000 + "]" * 3000 + "}")),
    "a long header": archive(
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1," * 40000 + ")}")
    ),
    "endless": archive(npy(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({2**62},)}}")),
    "more than endless": archive(npy(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({2**80},)}}")),
    "negative": archive(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}")),
    "no type": archive(npy("{'descr': 7, 'fortran_order': False, 'shape': (1,)}")),
    "a text": archive(b"text"),
    "an object": archive(npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}")),
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


SAVED = {
    **JSON,
    "no cases": '{"schema": 1, "model": "m", "cases": 7, "versions": {}, "facts": {}}',
    "deep cases": f'{{"schema": 1, "model": "m", "versions": {{}}, "facts": {{}}, "cases": {"[" * 900}{"]" * 900}}}',
    "a list": "[]",
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
