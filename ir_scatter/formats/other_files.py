"""Recognises files that are not models of a supported format, and advises how to get such a model.

    by_content("net.pt", ...)        "the file is a PyTorch model, ...", "export it with ..."

A new kind of file is a row of `_ROWS`. It is recognised by its first bytes, by the names of the files in
a zip, or by its suffix.
"""

import re
from pathlib import Path
from shlex import quote
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from ir_scatter.core.files import LFS_HELP, is_lfs_pointer, show_lfs_pointer

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,15}://?[^/]")
_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_HEAD = 1024
"""Number of bytes at the start of a file that are examined."""

_EXPORT = "export it with `torch.onnx.export(model, inputs, 'model.onnx', dynamo=True)`"
_OVC = "convert it with `ovc {path}`"
_UNPACK = "unpack it, and pass the .xml or .onnx file in it"


class OtherFile(NamedTuple):
    """A kind of file that is not a supported model.

    Attributes:
        title: "a TensorFlow Lite model".
        help: advice how to get a model from it; `{path}` is its path.
        starts: bytes at the offset `at` by which the file is recognised; b"" if there are none.
        suffixes: file suffixes, used if the content is not recognised.
        inside: for a zip, the end of the path of a file in it.
    """

    title: str
    help: str
    starts: bytes = b""
    at: int = 0
    suffixes: tuple[str, ...] = ()
    inside: str = ""

    @property
    def makes_model(self) -> bool:
        """Whether a model can be made of it."""
        return self.help.startswith(("export", "load", "convert", "unpack"))


_ROWS = (
    OtherFile("a TensorFlow Lite model", _OVC, b"TFL3", 4, (".tflite",)),
    OtherFile(
        "a safetensors file of weights only", "export their model, for example with `optimum-cli export "
        "openvino --model FOLDER OUTPUT`", suffixes=(".safetensors",),
    ),
    OtherFile(
        "a GGUF file of llama.cpp", "export the original model, with `optimum-cli export openvino "
        "--model NAME OUTPUT`", b"GGUF", 0, (".gguf",),
    ),
    OtherFile(
        "a Keras model in HDF5", "load it in Keras, call `model.export('folder')`, run `ovc folder`",
        b"\x89HDF\r\n\x1a\n", 0, (".h5", ".hdf5"),
    ),
    OtherFile(
        "a Keras model", "load it in Keras, call `model.export('folder')`, run `ovc folder`",
        suffixes=(".keras",), inside="model.weights.h5",
    ),
    OtherFile("a PyTorch model", _EXPORT, suffixes=(".pt", ".pth", ".pt2", ".ckpt"), inside="data.pkl"),
    OtherFile("a pickle file, maybe a PyTorch model", _EXPORT, b"\x80", 0, (".pkl", ".pickle")),
    OtherFile("a NumPy array", "pass a model; arrays are its inputs", b"\x93NUMPY", 0, (".npy",)),
    OtherFile(
        "an archive of NumPy arrays", "pass a model; arrays are its inputs", suffixes=(".npz",), inside=".npy"
    ),
    OtherFile("a TensorFlow graph", _OVC, suffixes=(".pb", ".meta")),
    OtherFile(
        "a Core ML model", "export the original model to ONNX or OpenVINO IR",
        suffixes=(".mlmodel", ".mlpackage"),
    ),
    OtherFile(
        "a compiled model, which holds no graph", "pass the .xml or .onnx file that it was compiled from",
        suffixes=(".blob", ".engine", ".plan", ".trt"),
    ),
    OtherFile("a PaddlePaddle model", _OVC, suffixes=(".pdmodel",)),
    OtherFile("a zip archive", _UNPACK, b"PK\x03\x04", 0, (".zip",)),
    OtherFile("an empty zip archive", _UNPACK, b"PK\x05\x06"),
    OtherFile("compressed by gzip", _UNPACK, b"\x1f\x8b", 0, (".gz", ".tgz")),
    OtherFile("compressed by bzip2", _UNPACK, b"BZh", 0, (".bz2",)),
    OtherFile("compressed by xz", _UNPACK, b"\xfd7zXZ", 0, (".xz",)),
    OtherFile("compressed by zstd", _UNPACK, b"\x28\xb5\x2f\xfd", 0, (".zst",)),
    OtherFile("a 7z archive", _UNPACK, b"7z\xbc\xaf\x27\x1c", 0, (".7z",)),
    OtherFile("a tar archive", _UNPACK, b"ustar", 257, (".tar",)),
    OtherFile("a PDF document", "pass a model", b"%PDF-"),
    OtherFile("an image", "pass a model", b"\x89PNG\r\n"),
    OtherFile("a program", "pass a model", b"\x7fELF"),
    OtherFile("a Jupyter notebook", "pass the model that it exports", suffixes=(".ipynb",)),
    OtherFile("a Python file", "pass the model that it exports", suffixes=(".py",)),
    OtherFile("a JSON file", "pass a model", suffixes=(".json",)),
)  # fmt: skip


class Advice(NamedTuple):
    """A message and advice: "the file is a zip archive, not an OpenVINO IR ...", "unpack it ..."."""

    message: str
    help: str


def by_content(path: str, data: bytes) -> Advice | None:
    """Recognise a file by its first bytes, and a zip by the names in it; None for unknown content."""
    if is_lfs_pointer(data):
        return Advice(show_lfs_pointer("the file", data[:_HEAD]), LFS_HELP)
    if data[8:9] == b"{" and b'"dtype"' in data[:_HEAD]:
        return _advice(next(row for row in _ROWS if ".safetensors" in row.suffixes), path)
    for row in _ROWS:
        if row.starts and data[row.at : row.at + len(row.starts)] == row.starts:
            return _advice(_in_zip(data) or row if row.starts.startswith(b"PK") else row, path)
    if data[:_HEAD].lstrip()[:15].lower().startswith((b"<!doctype html", b"<html")):
        return Advice(
            "the file is a web page, not a model", "download the file itself, not the page that shows it"
        )
    return None


def by_name(path: str) -> Advice | None:
    """Recognise a file by its suffix; None for an unknown suffix."""
    suffix = Path(path).suffix.lower()
    return next((_advice(row, path) for row in _ROWS if suffix in row.suffixes), None)


def not_a_path(text: str) -> Advice | None:
    """Return what a text is that is no path: a URL or a name on a model hub; else None."""
    if text.startswith("file:/"):
        return Advice("this is a URL, expected a path", f"pass {unquote(urlsplit(text).path)}")
    if _URL.match(text):
        return Advice("this is a URL, expected a file", "download it first")
    is_file = Path(text).suffix[1:].isalpha()  # unlike "Llama-3.2-1B"
    if _HUB.fullmatch(text) and not Path(text).parent.exists() and not is_file:
        help = f"download it first: hf download {text} --local-dir FOLDER"
        return Advice("this may be a name on Hugging Face, expected a file", help)
    return None


def in_folder(folder: str) -> str:
    """Return what a file in a folder is, and how to make a model of it; "" if no file is of another kind."""
    for path in sorted(Path(folder).iterdir()):
        for row in _ROWS:
            if path.suffix.lower() in row.suffixes and row.makes_model:
                return f"{path.name} is {row.title}: {_help(row, str(path))}"
    return ""


def is_other_suffix(path: str) -> bool:
    """Return whether files with this suffix are of another kind."""
    return any(Path(path).suffix.lower() in row.suffixes for row in _ROWS)


def _advice(row: OtherFile, path: str) -> Advice:
    return Advice(f"the file is {row.title}, not an OpenVINO IR or an ONNX model", _help(row, path))


def _help(row: OtherFile, path: str) -> str:
    name = str(Path(path).parent) if Path(path).name == "saved_model.pb" else path
    return row.help.format(path=quote(name))


def _in_zip(data: bytes) -> OtherFile | None:
    """Return the kind of file that a zip contains; None if unknown."""
    import io
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return None
    return next(
        (row for row in _ROWS if row.inside and any(name.endswith(row.inside) for name in names)), None
    )
