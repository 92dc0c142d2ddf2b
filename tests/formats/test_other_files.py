"""Files that are no OpenVINO IR and no ONNX model are named, with the way to a model."""

import gzip
import os
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from google.protobuf import text_format

from ir_scatter.core.errors import UnreadableModel
from ir_scatter.reading import read
from ir_scatter.validate import validate

_TEXT = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[4] x, int64[1] i, float[1] u) => (float[4] y) { y = ScatterElements <axis = 0> (x, i, u) }
"""
_POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 2048\n"


def _archive(path: Path, *names: str) -> bytes:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, b"content")
    return path.read_bytes()


def _tar(path: Path) -> bytes:
    (path.parent / "inner").write_bytes(b"content")
    with tarfile.open(path, "w") as archive:
        archive.add(path.parent / "inner", "inner")
    return path.read_bytes()


def _array(path: Path) -> bytes:
    np.save(path.with_suffix(".npy"), np.zeros(3))
    return path.with_suffix(".npy").read_bytes()


@pytest.mark.parametrize(
    ("name", "make", "title", "help"),
    [
        ("net.pt", lambda path: _archive(path, "net/data.pkl"), "a PyTorch model", "torch.onnx.export"),
        ("net.keras", lambda path: _archive(path, "model.weights.h5"), "a Keras model", "model.export"),
        ("net.zip", lambda path: _archive(path, "net.onnx"), "a zip archive", "unpack"),
        ("net.onnx", lambda path: _archive(path, "net.xml"), "a zip archive", "unpack"),
        ("net.onnx.gz", lambda _: gzip.compress(b"content"), "compressed by gzip", "unpack"),
        ("net.tar", _tar, "a tar archive", "unpack"),
        ("net.tflite", lambda _: b"\x1c\0\0\0TFL3" + bytes(64), "a TensorFlow Lite model", "ovc"),
        ("net.pb", lambda _: b"\x0a\x03abc\xff", "a TensorFlow graph", "ovc"),
        ("net.h5", lambda _: b"\x89HDF\r\n\x1a\n" + bytes(64), "a Keras model in HDF5", "model.export"),
        ("w.safetensors", lambda _: (40).to_bytes(8, "little") + b'{"a":{"dtype":"F32"}}', "safetensors", "optimum"),
        ("net.gguf", lambda _: b"GGUF" + bytes(64), "a GGUF file", "optimum-cli"),
        ("net.blob", lambda _: bytes(range(256)), "a compiled model", "compiled from"),
        ("net.mlmodel", lambda _: b"\x08\x01", "a Core ML model", "export"),
        ("x.npy", _array, "a NumPy array", "inputs"),
        ("net.onnx", lambda _: b"<!DOCTYPE html><html></html>", "a web page", "download"),
        ("net.onnx", lambda _: _POINTER.encode(), "a Git LFS pointer to a file of 2,048 bytes", "git lfs pull"),
        ("net.xml", lambda _: _POINTER.encode(), "a Git LFS pointer to a file of 2,048 bytes", "git lfs pull"),
    ],
)  # fmt: skip
def test_other_files_are_named(name: str, make: object, title: str, help: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(make(path))  # type: ignore[operator]
    with pytest.raises(UnreadableModel) as caught:
        read(path)
    assert title in caught.value.message
    assert help in caught.value.help


@pytest.mark.parametrize("name", ["net.txt", "net.onnx", "net.textproto"])
@pytest.mark.parametrize("is_printed", [True, False])
def test_onnx_text_is_read(name: str, is_printed: bool, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(_TEXT)
    path = tmp_path / name
    path.write_text("# a comment\n" + text_format.MessageToString(model) if not is_printed else _TEXT)
    assert not validate(read(path))
    assert [node.type for node in read(path).graph.walk()] == ["ScatterElements"]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (_TEXT.replace("ScatterElements <", "Scatter Elements <"), "in line 3"),
        ('ir_version: 8\ngraph { node { op_type: } }\n', "2:"),
    ],
)  # fmt: skip
def test_wrong_text_has_a_place(text: str, where: str, tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_text(text)
    with pytest.raises(UnreadableModel, match=where):
        read(tmp_path / "net.onnx")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("https://example.org/net.onnx", "this is a URL"),
        ("file:///net.onnx", "expected a path; pass /net.onnx"),
        ("owner/model-7b", "hf download owner/model-7b"),
    ],
)
def test_names_that_are_no_paths(text: str, reason: str) -> None:
    with pytest.raises(UnreadableModel, match=reason):
        read(text)


def test_pipes_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "net.onnx")
    with pytest.raises(UnreadableModel, match="it is a pipe"):
        read(tmp_path / "net.onnx")


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "net.txt").write_text(_TEXT)
    assert read("~/net.txt").format == "onnx"


def test_a_pointer_in_place_of_weights_is_named(tmp_path: Path) -> None:
    source = Path(__file__).parents[2] / "samples" / "operators" / "scatter_update_3_axis_0.xml"
    (tmp_path / "net.xml").write_bytes(source.read_bytes())
    (tmp_path / "net.bin").write_text(_POINTER)
    (finding,) = [each for each in validate(read(tmp_path / "net.xml")) if each.code == "SCT930"]
    assert "a Git LFS pointer to a file of 2,048 bytes" in finding.message
    assert finding.severity == "error"
