"""Files and nodes that cannot be edited in place: a refusal with its code, never a traceback."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.scatter_models import chain, files, onnx_model, operators, slices

_TO = ("--to", "ScatterNDUpdate")


def _rewritten(source: Path, **changes: tuple[str, str]) -> Path:
    text = source.read_text()
    for old, new in changes.values():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    source.write_text(text)
    return source


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1"])
def test_other_encodings(encoding: str, cli: Cli) -> None:
    source = chain("model", ["a", "b"])
    text = f'<?xml version="1.0" encoding="{encoding}"?>\n' + source.read_text().replace('"a"', '"ä"')
    source.write_bytes(text.encode(encoding))
    assert cli("validate", source).code == 0
    before = files()
    for options in ([], ["--partial"], ["--dry-run"], ["--diff"]):
        result = cli("convert", source, "-o", "new.xml", *_TO, *options)
        assert result.code == 1
        lines = (result.out + result.err).splitlines()
        assert lines[0].split() == ["model.xml", "refused:", "CVT111"]
        assert lines[1] == "    model.xml is written in another encoding, expected UTF-8"
        assert lines[-1].endswith("; nothing written")
        assert files() == before


def test_the_document(cli: Cli) -> None:
    source = chain("model", ["a", "b"])
    source.write_bytes(('<?xml version="1.0" encoding="utf-16"?>\n' + source.read_text()).encode("utf-16"))
    result = cli("convert", source, "-o", "new.xml", *_TO, "--format", "json")
    assert (result.code, result.err) == (1, "")
    document = json.loads(result.out)
    assert document["output"] is None
    assert document["refused"] == [
        {
            "node": "",
            "scope": "",
            "line": None,
            "from": None,
            "to": None,
            "code": "CVT111",
            "reason": "model.xml is written in another encoding, expected UTF-8",
        }
    ]


def test_one_node_that_cannot_be_replaced(cli: Cli) -> None:
    source = chain("model", ["a", "b", "c"])
    # a second <data> is one that a reader must choose from
    data = '<layer id="5" name="b" type="ScatterUpdate" version="opset3">'
    _rewritten(source, more=(data, f"{data}<data/><data/>"))
    result = cli("convert", source, "-o", "new.xml", *_TO)
    assert result.code == 1
    assert [line.split("  ")[-1] for line in result.out.splitlines() if "-> " in line] == [
        "safe",
        "refused: CVT111",
        "safe",
    ]
    assert "    b cannot be replaced: it has <data> 2 times, expected once\n" in result.out
    assert not Path("new.xml").exists()
    result = cli("convert", source, "-o", "new.xml", *_TO, "--partial")
    assert result.code == 1
    assert result.out.endswith("2 nodes converted, 1 refused, verified on 8 cases each; new.xml written\n")
    assert operators(Path("new.xml")) == ["ScatterNDUpdate-15", "ScatterUpdate-3", "ScatterNDUpdate-15"]


def test_a_node_alone_that_cannot_be_replaced(cli: Cli) -> None:
    source = slices()
    data = '<layer id="4" name="scatter" type="ScatterUpdate" version="opset3">'
    _rewritten(source, more=(data, f"{data}<data/><data/>"))
    before = files()
    for options in ([], ["--partial"], ["--in-place"]):
        output = [] if options == ["--in-place"] else ["-o", "new.xml"]
        result = cli("convert", source, *output, *_TO, *options)
        assert result.code == 1
        assert "CVT111\n    scatter cannot be replaced: it has <data> 2 times" in result.out
        assert files() == before


def test_calls_of_a_function_that_give_different_attributes(cli: Cli) -> None:
    source = onnx_model("""
        <ir_version: 8, opset_import: ["" : 18, "own" : 1]>
        g (float[4,5] data, int64[2,5] at, float[2,5] rows) => (float[4,5] out) {
          a = own.F <where = 0> (data, at, rows)
          out = own.F <where = 1> (a, at, rows)
        }
        <domain: "own", opset_import: ["" : 18]>
        F <where> (data, at, rows) => (o) { o = ScatterElements <axis: int = @where> (data, at, rows) }
    """)
    before = files()
    result = cli("convert", source, "-o", "new.onnx", "--to", "ScatterND")
    assert (result.code, result.err) == (1, "")
    assert "refused: CVT1" in result.out
    assert files() == before
