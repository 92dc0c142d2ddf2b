"""Mistakes of a new user: each gets one sentence that says what is, and what to do; nothing is written."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from ir_scatter.runners import find
from tests.cli.conftest import Cli, copy_sample
from tests.models.onnx_graph import OnnxGraph


class Mistake(NamedTuple):
    """What somebody types, how it ends, and what stands in the sentence."""

    what: str
    line: str
    code: int
    sentence: str


MISTAKES = [
    Mistake("a misspelt command", "valdate ir.xml", 2, "there is no command 'valdate' (did you mean validate?)"),
    Mistake("no command", "ir.xml", 2, "no command 'ir.xml' (did you mean ir-scatter validate ir.xml?)"),
    Mistake(
        "an option before the command",
        "--format json validate ir.xml",
        2,
        "No such option '--format'; options of a command come after its name",
    ),
    Mistake("a misspelt option", "validate ir.xml --formt json", 2, "--format"),
    Mistake("a forgotten value", "validate ir.xml --select", 2, "Option '--select' requires an argument"),
    Mistake("a forgotten model", "inspect", 2, "Missing argument 'PATH...'"),
    Mistake("an unknown format", "validate ir.xml --format jsn", 2, "'jsn' is not one of text, concise, json, sarif, "
            "junit, github, html (did you mean json?)"),
    Mistake("no number", "validate ir.xml -j many", 2, "'-j' / '--jobs': 'many' is not a whole number"),
    Mistake("a misspelt file", "validate irr.xml", 3, "no such file or directory (did you mean ir.xml?)"),
    Mistake("a name without its end", "run node", 3, "no such file or directory (did you mean node.onnx?)"),
    Mistake("a misspelt folder", "inspect modles/node.onnx", 3, "no folder modles (did you mean models?)"),
    Mistake("a pattern that matches nothing", "validate models/*.xml", 3, "no file matches this pattern"),
    Mistake("a folder for a model", "run models", 3, "it is a folder, expected a model, such as models/node.onnx"),
    Mistake("a folder for a model", "convert models -o new.onnx", 3, "models: cannot be read: it is a folder"),
    Mistake("a folder without models", "validate empty", 3, "empty: no .xml or .onnx file in this folder"),
    Mistake("the weights for the model", "validate ir.bin", 3, "a .bin contains weights, expected the model that they "
            "belong to (did you mean ir.xml?)"),
    Mistake("the weights for the model", "validate ir.bin --quiet", 3, "help: pass the .xml or .onnx file, "
            "or fix the file extension"),
    Mistake("a model without its .bin", "run alone.xml", 3, "alone.bin cannot be read (no such file or directory)"),
    Mistake("a model without its .bin", "convert alone.xml --to ScatterNDUpdate -o new.xml", 1, "alone.bin cannot be "
            "read (no such file or directory): new constants cannot be appended"),
    Mistake("an .onnx renamed .xml", "validate renamed.xml", 3, "the file contains a model of ONNX, expected a name that "
            "ends in .onnx"),
    Mistake("an .onnx renamed .xml", "validate renamed.xml --quiet", 3, "help: pass the .xml or .onnx file, or fix the file extension"),
    Mistake("a text file", "validate notes.txt", 3, "the file is neither XML nor protobuf, expected an "
            "OpenVINO IR or an ONNX model"),
    Mistake("an empty file", "inspect empty.onnx", 3, "empty.onnx: the file is empty"),
    Mistake("XML of another kind", "validate project.xml", 3, "expected <net>"),
    Mistake("an unknown code", "validate ir.xml --select SCT2033", 2, "there is no rule 'SCT2033' (did you mean "
            "SCT203?)"),
    Mistake("a misspelt rule", "validate ir.xml --ignore index-out-of-rage", 2, "there is no rule 'index-out-of-rage' "
            "(did you mean index-out-of-range?)"),
    Mistake("an unknown code", "explain SCT230", 2, "did you mean SCT203"),
    Mistake("a misspelt operator", "explain ScaterND", 2, "did you mean ScatterND"),
    Mistake("an unknown target", "convert node.onnx --to ScaterND -o new.onnx", 2, "'ScaterND' is no target (did you "
            "mean ScatterND?)"),
    Mistake("the target of another dialect", "convert node.onnx --to ScatterNDUpdate -o new.onnx", 2,
            "'ScatterNDUpdate' is not a target in ONNX, expected one of ScatterElements-11, "),
    Mistake("a misspelt node", "convert ir.xml --to ScatterNDUpdate --node scater --diff", 2, "no scatter node is "
            "named 'scater' (did you mean scatter?); `ir-scatter inspect` lists them"),
    Mistake("an unknown condition", "convert ir.xml --to ScatterNDUpdate --assume uniqe-indices --diff", 2,
            "'uniqe-indices' cannot be assumed (did you mean unique-indices?)"),
    Mistake("an opset as a word", "convert node.onnx --opset eleven -o new.onnx", 2, "'eleven' is not a whole number"),
    Mistake("an opset that is none", "convert node.onnx --opset 99 -o new.onnx", 2, "the opset is 99, expected 1 to"),
    Mistake("an opset for an IR", "convert ir.xml --opset 13 -o new.xml", 2, "an opset can be chosen for ONNX models only"),
    Mistake("nowhere to write", "convert node.onnx", 2, "-o FILE is missing, expected it, --in-place, --diff or "
            "--dry-run"),
    Mistake("the same file in and out", "convert node.onnx -o ./node.onnx", 2, "node.onnx is a file of the model "
            "itself, expected another one or --in-place"),
    Mistake("an IR to ONNX", "convert ir.xml -o new.onnx", 2, "an IR cannot become an ONNX model, expected an output "
            "that ends in .xml"),
    Mistake("no scatter in the model", "convert relu.onnx --dry-run", 0, "nothing to convert"),
    Mistake("no scatter in the model", "inspect relu.onnx", 0, "no scatter nodes in 1 file"),
    Mistake("an output in a folder that is missing", "convert node.onnx -o out/new.onnx", 3, "out/new.onnx cannot be "
            "written: there is no folder out"),
    Mistake("an output in a folder that is missing", "validate ir.xml -o out/found.json", 3, "out/found.json cannot "
            "be written: there is no folder out"),
    Mistake("a folder as output", "run node.onnx -o models", 2, "-o: 'models' is a folder, expected the name of a "
            "file"),
    Mistake("an output that is there", "run node.onnx -o inputs.npz", 2, "-o: inputs.npz exists, expected a path that "
            "is free or --overwrite"),
    Mistake("results that are there", "compare node.onnx --on numpy --save saved", 2, "saved/results.json exists, "
            "expected a folder without results or --overwrite"),
    Mistake("a misspelt runner", "compare node.onnx --on onnxruntme", 2, "there is no runner 'onnxruntme' (did you "
            "mean onnxruntime?)"),
    Mistake("a runtime that reads another format", "compare ir.xml --on onnxruntime", 4, "nothing was compared: "
            "onnxruntime: the file is OpenVINO IR, expected ONNX"),
    Mistake("inputs that are missing", "run node.onnx --inputs inptus.npz", 2, "no such file or directory (did you "
            "mean inputs.npz?)"),
    Mistake("inputs of other names", "run node.onnx --inputs names.npz", 2, "the model has no input 'dta' (did you "
            "mean data?), expected data, updates"),
    Mistake("inputs of another shape", "run node.onnx --inputs shape.npz", 2, "data has shape [3, 4], expected [3, 3]"),
    Mistake("inputs of another type", "run node.onnx --inputs type.npz", 2, "data is int64, expected float32"),
    Mistake("inputs that are no npz", "run node.onnx --inputs notes.txt", 2, "notes.txt: not an npz file"),
    Mistake("a shape without a name", "run node.onnx --input-shape 3,3", 2, "'3,3' is not an input shape, expected "
            "NAME=1,3,?"),
    Mistake("a shape of another rank", "validate node.onnx --input-shape data=3", 2, "data has shape [3, 3] of rank 2, "
            "which [3] of rank 1 does not fit"),
    Mistake("a shape for no input", "validate node.onnx --input-shape dta=3,3", 2, "no model has an input 'dta' (did "
            "you mean data?)"),
    Mistake("a size without a unit that is one", "compare node.onnx --tap-memory 1G", 2, "'1G' is not a size, expected a "
            "number of bytes, or 500MB, 1.5GiB"),
    Mistake("results that are not there", "compare node.onnx --against svaed", 2, "there is no folder svaed (did you "
            "mean saved?)"),
    Mistake("a misspelt operator", "fuzz --operator ScaterND --on CPU", 2, "operator is 'ScaterND' (did you mean "
            "ScatterND?)"),
    Mistake("three models", "compare node.onnx ir.xml relu.onnx", 2, "there are 3 models, expected one or two, or "
            "--each"),
    Mistake("standard input for two runtimes", "compare -", 2, "standard input cannot be compared, expected the path "
            "of a model"),
]  # fmt: skip


@pytest.fixture
def belongings(elsewhere: Path) -> Path:
    """What somebody has in a folder."""
    for name, new in (
        ("scatter_update_2.xml", "ir.xml"),
        ("scatter_update_2.bin", "ir.bin"),
        ("scatter_1.onnx", ""),
    ):
        copy_sample(f"documented/{name}", elsewhere).rename(new or "node.onnx")
    for folder in ("models", "empty", "saved"):
        Path(folder).mkdir()
    Path("models/node.onnx").write_bytes(Path("node.onnx").read_bytes())
    Path("renamed.xml").write_bytes(Path("node.onnx").read_bytes())
    Path("alone.xml").write_bytes(Path("ir.xml").read_bytes())
    Path("project.xml").write_text("<project/>")
    Path("notes.txt").write_text("to do\n")
    Path("saved/results.json").write_text("{}")
    Path("empty.onnx").touch()
    data, updates = np.zeros((3, 3), np.float32), np.zeros((2, 3), np.float32)
    np.savez("inputs.npz", data=data, updates=updates)
    np.savez("names.npz", dta=data, updates=updates)
    np.savez("shape.npz", data=np.zeros((3, 4), np.float32), updates=updates)
    np.savez("type.npz", data=data.astype(np.int64), updates=updates)
    graph = OnnxGraph()
    graph.output(graph.add("Relu", [graph.input("x", shape=[3])], "y"), shape=[3])
    graph.write(Path("relu.onnx"))
    return elsewhere


def _contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.line)
def test_a_mistake_gets_a_sentence(cli: Cli, belongings: Path, mistake: Mistake) -> None:
    before = _contents(belongings)
    result = cli(*mistake.line.split())
    assert (result.code, "Traceback" in result.err, "bug" in result.err) == (mistake.code, False, False)
    said = " ".join((result.out + result.err).split())
    assert " ".join(mistake.sentence.split()) in said
    if mistake.code == 2:
        first, *others = result.err.splitlines()
        assert first.startswith(("Error: ", "ir-scatter: "))
        assert others in (
            [],
            [f"Try 'ir-scatter {mistake.line.split()[0]} --help'."],
            ["Try 'ir-scatter --help'."],
        )
        assert result.out == ""
    assert _contents(belongings) == before


def test_they_are_many_and_different() -> None:
    assert len({mistake.what for mistake in MISTAKES}) >= 25
    assert len({mistake.line for mistake in MISTAKES}) == len(MISTAKES)


@pytest.fixture
def no_gpu() -> None:
    runner = find("GPU")
    is_here = runner.availability().is_available
    runner.close()
    if is_here:
        pytest.skip("there is a GPU here")


@pytest.mark.openvino
def test_a_gpu_that_is_not_there(cli: Cli, belongings: Path, no_gpu: None) -> None:
    result = cli("compare", "node.onnx", "--on", "GPU")
    assert result.code == 4
    assert "openvino:GPU does not run here: " in result.out.splitlines()[0]
    assert "; needed: an Intel GPU and intel-opencl-icd; without: openvino:GPU@cpu" in result.out
