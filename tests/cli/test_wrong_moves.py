"""Wrong moves of users: each gets one sentence that helps, and the right exit code.

A row has the arguments, the exit code, and a part of the sentence. Files are made by `files`.
"""

import gzip
import io
import os
import shlex
import shutil
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import SAMPLES, Cli

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 2048\n"
WEIGHTS = (56).to_bytes(8, "little") + b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  ' + bytes(4)


def zipped(name: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(name, b"x")
    return data.getvalue()


def tarred() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("model.xml"))
    return data.getvalue()


def of_numpy() -> bytes:
    data = io.BytesIO()
    np.save(data, np.zeros(3))
    return data.getvalue()


FILES = {
    "net.pt": zipped("archive/data.pkl"),
    "net.pth": b"\x80\x02}q\x00.",
    "net.keras": zipped("model.weights.h5"),
    "net.h5": b"\x89HDF\r\n\x1a\n" + bytes(40),
    "net.tflite": b"\x1c\0\0\0TFL3" + bytes(40),
    "net.pb": b"\x0a\x10\x0a\x01x\x12\x0bPlaceholder",
    "net.safetensors": WEIGHTS,
    "net.gguf": b"GGUF\x03\0\0\0" + bytes(40),
    "net.blob": bytes(range(200)),
    "net.mlmodel": b"\x08\x01\x12\x04abcd",
    "net.npy": of_numpy(),
    "net.npz": zipped("data.npy"),
    "net.zip": zipped("model.xml"),
    "net.xml.gz": gzip.compress(b"<net/>"),
    "net.tar": tarred(),
    "page.onnx": b"<!DOCTYPE html><html></html>",
    "empty.xml": b"",
    "pointer.xml": POINTER,
    "pointer.onnx": POINTER,
    "weights.bin": POINTER,
    "report.json": b"{}",
    "hub/model.safetensors": WEIGHTS,
    "saved/saved_model.pb": b"abc",
}


@pytest.fixture
def files(elsewhere: Path) -> Path:
    """Make the files that rows name, in the current folder."""
    for name, data in FILES.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(data)
    shutil.copy(SAMPLES / "operators/scatter_9.onnx", "model.onnx")
    shutil.copy(SAMPLES / "kv_cache/decoder.xml", "model.xml")
    shutil.copy(SAMPLES / "kv_cache/decoder.bin", "model.bin")
    shutil.copy("model.xml", "weights.xml")
    shutil.copy("model.xml", "alone.xml")
    Path("cut.xml").write_bytes(Path("model.xml").read_bytes()[:300])
    Path("cut.onnx").write_bytes(Path("model.onnx").read_bytes()[:-40])
    shutil.copy("model.onnx", "named.xml")
    Path("folder").mkdir()
    os.mkfifo("pipe")
    return elsewhere


EXPORT = "export it with `torch.onnx.export("
OVC = "convert it with `ovc "
MOVES = [
    # commands
    ("validat model.xml", 2, "there is no command 'validat' (did you mean validate?)"),
    ("check model.xml", 2, "did you mean validate?"),
    ("lint model.xml", 2, "did you mean validate?"),
    ("diff model.xml model.onnx", 2, "did you mean compare?"),
    ("fix model.xml", 2, "did you mean convert?"),
    ("show model.xml", 2, "did you mean inspect?"),
    ("model.xml", 2, "did you mean ir-scatter validate model.xml?"),
    ("help nothing", 2, "there is no command 'nothing'"),
    ("--verbose validate model.xml", 2, "options of a command come after its name"),
    ("explain SCT203x", 2, "did you mean"),
    ("explain scatter nd updates", 2, "did you mean"),
    # options and their values
    ("validate", 2, "Missing argument 'PATH...'"),
    ("validate -d CPU model.xml", 2, "did you mean --for?"),
    ("validate --device CPU model.xml", 2, "did you mean --for?"),
    ("compare model.xml --target CPU", 2, "did you mean --on?"),
    ("convert model.xml --force -o new.xml", 2, "No such option '--force' (did you mean --overwrite?)"),
    ("run model.xml --input x.npz", 2, "did you mean --inputs?"),
    ("validate model.xml --verbos", 2, "--verbose"),
    ("validate model.xml --format jsn", 2, "did you mean json?"),
    ("validate model.xml --min-severity info", 2, "is not one of error, warning, note"),
    ("validate model.xml --select index-out-of-rang", 2, "did you mean index-out-of-range?"),
    ("validate model.xml --input-shape x=a", 2, "'a' is not a dimension, expected a number"),
    ("validate model.xml --input-shape positio=1", 2, "did you mean position?"),
    ("validate model.xml --jobs many", 2, "'many' is not a whole number"),
    ("validate model.xml --baseline none.json", 2, "none.json: cannot be read: no such file"),
    ("validate model.xml --baseline report.json", 2, "is not a baseline of ir-scatter"),
    ("validate model.xml --prune-baseline", 2, "--prune-baseline goes with --baseline FILE"),
    ("validate model.xml --given nonsense", 2, "nonsense"),
    ("compare model.xml --on CPU --report r.pdf", 2, "expected a name that ends in .html"),
    ("compare model.xml --on CPU --tolerance x", 2, "x"),
    ("compare model.xml --on ort", 2, "did you mean onnxruntime?"),
    ("compare model.xml --on cuda", 2, "did you mean onnxruntime?"),
    ("validate model.xml --for cuda", 2, "did you mean onnxruntime?"),
    ("compare model.xml --on onnxruntime,nobody", 2, "there is no runner 'nobody'"),
    ("compare model.xml --on CPU,GPU@cpu,nobody", 2, "there is no runner 'nobody'"),
    ("fuzz --on numpy --operator Scatter5", 2, "did you mean Scatter?"),
    ("fuzz --replay folder", 2, "holds no findings, expected a folder that `fuzz -o` wrote"),
    ("doctor --on AUTO", 2, "distributes work to other devices, expected those: CPU, GPU"),
    ("devices --install 2099", 2, "expected one like openvino@2025.4"),
    ("rules SCT3", 2, "rules accepts no arguments"),
    # numbers of models, and outputs
    ("convert model.xml", 2, "-o FILE is missing, expected it, --in-place, --diff or --dry-run"),
    ("convert model.xml model.onnx -o new.xml", 2, "convert accepts MODEL"),
    ("convert model.xml -o model.xml", 2, "is a file of the model itself, expected another one or --in-place"),
    ("convert model.xml -o new.pt", 2, "expected an output that ends in .xml"),
    ("convert model.onnx -o new.blob", 2, "the output is 'new.blob', expected a name that ends in .xml or .onnx"),
    ("convert model.xml --to Scater -o new.xml", 2, "'Scater' is no target, expected one of"),
    ("compare model.xml model.onnx model.xml", 2, "there are 3 models, expected one or two, or --each"),
    ("compare folder --on numpy", 2, "with --each every model in it is compared separately"),
    ("validate model.xml -o folder", 2, "'folder' is a folder, expected the name of a file"),
    ("validate model.xml -o none/x", 3, "none/x cannot be written: there is no folder none"),
    ("validate model.xml -o model.xml", 2, "is the model itself, expected another file"),
    # paths
    ("validate mode.xml", 3, "no such file or directory (did you mean model.xml?)"),
    ("validate ~/nothing_here_31.xml", 3, "no such file or directory"),
    ("validate folder", 3, "folder: no .xml or .onnx file in this folder"),
    ("inspect folder", 3, "folder: no .xml or .onnx file in this folder"),
    ("run folder", 3, "it is a folder, expected a model"),
    ("validate hub", 3, "model.safetensors is a safetensors file of weights only: export their model"),
    ("validate saved", 3, "saved_model.pb is a TensorFlow graph: convert it with `ovc saved`"),
    ("validate pipe", 3, "it is a pipe, expected a file, or - for standard input"),
    ("compare pipe --on numpy", 3, "it is a pipe, expected a file, or - for standard input"),
    ("convert pipe -o new.xml", 3, "it is a pipe, expected a file, or - for standard input"),
    ("validate https://example.org/model.onnx", 3, "this is a URL, expected a file"),
    ("compare s3://bucket/model.onnx --on numpy", 3, "this is a URL, expected a file; download it first"),
    ("run file:///data/a%20b.xml", 3, "this is a URL, expected a path; pass /data/a b.xml"),
    ("run microsoft/phi-2", 3, "download it first: hf download microsoft/phi-2 --local-dir FOLDER"),
    ("inspect meta-llama/Llama-3.2-1B", 3, "hf download meta-llama/Llama-3.2-1B --local-dir FOLDER"),
    # files that are not what they seem
    ("validate net.pt", 3, EXPORT),
    ("compare net.pt --on numpy", 3, EXPORT),
    ("convert net.pth -o new.xml", 3, EXPORT),
    ("validate net.keras", 3, "`model.export('folder')`, run `ovc folder`"),
    ("run net.h5", 3, "`model.export('folder')`, run `ovc folder`"),
    ("inspect net.tflite", 3, f"{OVC}net.tflite`"),
    ("validate net.pb", 3, f"{OVC}net.pb`"),
    ("validate net.safetensors", 3, "optimum-cli export openvino --model FOLDER OUTPUT"),
    ("validate net.gguf", 3, "optimum-cli export openvino --model NAME OUTPUT"),
    ("validate net.blob", 3, "pass the .xml or .onnx file that it was compiled from"),
    ("validate net.mlmodel", 3, "a Core ML model"),
    ("validate net.npy", 3, "a NumPy array"),
    ("validate net.npz", 3, "an archive of NumPy arrays"),
    ("validate net.zip", 3, "unpack it, and pass the .xml or .onnx file in it"),
    ("validate net.xml.gz", 3, "compressed by gzip"),
    ("validate net.tar", 3, "a tar archive"),
    ("validate page.onnx", 3, "download the file itself, not the page that shows it"),
    ("validate report.json", 3, "a JSON file"),
    ("validate empty.xml", 3, "the file is empty"),
    ("validate pointer.xml", 3, "fetch it with `git lfs pull`"),
    ("run pointer.onnx", 3, "a Git LFS pointer to a file of 2,048 bytes, not the file itself; fetch it with"),
    ("validate weights.xml", 1, "weights.bin cannot be read (it is a Git LFS pointer to a file of 2,048 bytes"),
    ("validate alone.xml", 1, "alone.bin cannot be read (no such file or directory)"),
    ("run alone.xml", 3, "alone.bin cannot be read (no such file or directory)"),
    ("validate model.bin", 3, "a .bin contains weights, expected the model that they belong to (did you mean model.xml?)"),
    ("validate named.xml", 3, "the file contains a model of ONNX, expected a name that ends in .onnx"),
    ("validate cut.xml", 3, "not well-formed XML"),
    ("validate cut.onnx", 3, "not a complete protobuf message"),
]  # fmt: skip


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("line", "code", "sentence"), MOVES, ids=[move[0] for move in MOVES])
def test_a_wrong_move_gets_a_sentence(cli: Cli, line: str, code: int, sentence: str) -> None:
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    done = cli(*shlex.split(line))
    assert done.code == code, done
    assert sentence in " ".join((done.err + done.out).split()), done
    assert "Traceback" not in done.err
    assert "bug" not in done.err
    assert len(done.err.splitlines()) <= 2  # the sentence, and where help is
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*")} == before  # nothing is written
