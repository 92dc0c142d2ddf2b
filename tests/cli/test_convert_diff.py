"""`ir-scatter convert --diff`: what is shown is what is written, byte for byte."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, Cli, copy_sample
from tests.cli.scatter_models import deprecated, files, onnx_model, slices

_NESTED = "nested/branch.xml"
_SPELLINGS: dict[str, Callable[[str], bytes]] = {
    "plain": str.encode,
    "crlf": lambda text: text.replace("\n", "\r\n").encode(),
    "old mac": lambda text: text.replace("\n", "\r").encode(),
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "one line": lambda text: re.sub(r">\s+<", "><", text).encode(),
    "one line with a mark": lambda text: b"\xef\xbb\xbf" + re.sub(r">\s+<", "><", text).encode(),
    "no last line end": lambda text: text.rstrip().encode(),
    "version 10": lambda text: text.replace('version="11"', 'version="10"', 1).encode(),
    "comments": lambda text: (
        text.replace("<layer ", '<!-- <layer id="0"> --><layer ')
        .replace("<edge ", "<!-- an edge -->\n<edge ")
        .encode()
    ),
    "other quotation marks": lambda text: text.replace('"', "'").encode(),
    "unicode": lambda text: text.replace("scatter", "größe/é 語").encode(),
}


def _spelled(name: str, folder: Path) -> Path:
    source = copy_sample("kv_cache/decoder.xml", folder)
    source.write_bytes(_SPELLINGS[name](source.read_text()))
    return source


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs the program patch")
@pytest.mark.parametrize("target", ["ScatterNDUpdate-3", "ScatterElementsUpdate"])
@pytest.mark.parametrize("name", _SPELLINGS)
def test_patch_makes_the_converted_text(name: str, target: str, cli: Cli, elsewhere: Path) -> None:
    source = _spelled(name, elsewhere)
    assert cli("convert", source, "--to", target, "-o", "new.xml").code == 0
    assert cli("validate", "new.xml", "-q").code == 0
    document = json.loads(cli("convert", source, "--to", target, "--diff", "--format", "json").out)
    shown = cli("convert", source, "--to", target, "--diff")
    assert shown.out == document["diff"]
    assert "2 nodes converted" in shown.err
    subprocess.run(["patch", "-p0", "--binary"], input=shown.out.encode(), check=True, capture_output=True)
    assert source.read_bytes() == Path("new.xml").read_bytes()


def test_nothing_else_is_shown(cli: Cli, elsewhere: Path) -> None:
    source = copy_sample(_NESTED, elsewhere)
    result = cli("convert", source, "--to", "ScatterNDUpdate", "--node", "*else*/scatter", "--diff")
    assert result.code == 0
    removed = [
        line for line in result.out.splitlines() if line.startswith("-") and not line.startswith("---")
    ]
    text = source.read_text().splitlines()
    assert all(line[1:] in text for line in removed)
    assert result.err.splitlines()[-1] == "1 node converted, verified on 8 cases each; nothing written"


def test_a_diff_is_shown_and_written(cli: Cli) -> None:
    source = slices()
    result = cli("convert", source, "--to", "ScatterNDUpdate", "--diff", "-o", "new.xml")
    assert result.code == 0
    assert result.out.startswith("--- model.xml\n+++ model.xml\n@@ ")
    assert result.err.endswith("new.xml written\n")
    before = Path("new.xml").read_bytes()
    assert cli("convert", source, "--to", "ScatterNDUpdate", "--diff", "--in-place").out == result.out
    assert source.read_bytes() == before
    again = cli("convert", source, "--to", "ScatterNDUpdate", "--diff")
    assert (again.code, again.out, again.err) == (0, "", "nothing to convert; nothing written\n")


def test_a_list_of_nodes_for_onnx(cli: Cli) -> None:
    source = deprecated(9)
    before = files()
    result = cli("convert", source, "--diff")
    assert result.code == 0
    assert result.out.splitlines() == [
        "-opset 9",
        "+opset 11",
        "@@ first",
        "-a = Scatter(data, at, rows)",
        "+a = ScatterElements<axis=0>(data, at, rows)",
        "@@ second",
        "-out = Scatter<axis=-2>(a, at, rows)",
        "+out = ScatterElements<axis=-2>(a, at, rows)",
    ]
    assert files() == before


def test_what_a_call_gives_is_shown(cli: Cli) -> None:
    source = onnx_model("""
        <ir_version: 8, opset_import: ["" : 13, "own" : 1]>
        g (float[4,5] data, int64[2,5] at, float[2,5] rows) => (float[4,5] out) {
          a = own.F <where = 0> (data, at, rows)
          out = own.F <where = -2> (a, at, rows)
        }
        <domain: "own", opset_import: ["" : 13]>
        F <where> (data, at, rows) => (o) { o = Scatter <axis: int = @where> (data, at, rows) }
    """)
    assert cli("convert", source, "--diff").out.splitlines() == [
        "@@ own::F/o",
        "-o = Scatter<axis=@where>(data, at, rows)",
        "+o = ScatterElements<axis=@where>(data, at, rows)",
    ]


def test_long_constants_are_not_shown(cli: Cli) -> None:
    source = onnx_model("""
        <ir_version: 10, opset_import: ["" : 18]>
        g (float[4,500] data, int64[1,500] at, float[1,500] rows) => (float[4,500] out) {
          out = ScatterElements (data, at, rows)
        }
    """)
    result = cli("convert", source, "--to", "ScatterND", "--diff")
    assert result.code == 0
    assert max(map(len, result.out.splitlines())) < 200


def test_a_terminal_is_kept_safe(elsewhere: Path) -> None:
    source = slices()
    text = source.read_text().replace('name="scatter"', 'name="red\x85next"')
    source.write_text(text, encoding="utf-8")
    options: list[str | Path] = [COMMAND, "convert", source, "--to", "ScatterNDUpdate", "--diff"]
    first, second = pty.openpty()
    child = subprocess.Popen(options, stdout=second, stderr=subprocess.DEVNULL)
    os.close(second)
    shown = b""
    while piece := _read(first):
        shown += piece
    assert child.wait(60) == 0
    os.close(first)
    assert b"\x1b[32m+" in shown
    assert "\x85".encode() not in shown
    assert b"red\\x85next" in shown
    plain = subprocess.run(options, capture_output=True, check=True, timeout=60).stdout
    assert "red\x85next".encode() in plain
    assert b"\x1b" not in plain


def _read(file: int) -> bytes:
    try:
        return os.read(file, 1 << 16)
    except OSError:  # the other end was closed
        return b""


if sys.platform == "win32":
    pytestmark = pytest.mark.skip(reason="needs pseudo-terminals")
