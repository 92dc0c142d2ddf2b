"""Files that cannot be read at all: the defect, the place and the sentence."""

import os
from dataclasses import dataclass
from pathlib import Path

import onnx
import pytest

from ir_scatter import UnreadableModel, read, validate
from ir_scatter.core.files import Source
from ir_scatter.lint import Options, check_file
from ir_scatter.rules import by_name
from ir_scatter.validate import file_diagnostic

NET = '<net name="m" version="11"><layers></layers><edges></edges></net>'


@dataclass(frozen=True)
class Bad:
    """Bytes, and what must be said of them."""

    code: str
    name: str
    data: bytes
    line: int | None = None
    column: int | None = None
    words: str = ""


BAD_XML = (
    Bad("SCT902", "empty", b"", words="the file is empty"),
    Bad("SCT903", "open", b'<net name="m" version="11">\n  <layers>\n', 3, words="not well-formed XML"),
    Bad("SCT903", "encoding", b'<?xml version="1.0" encoding="nonsense"?><net/>', 1, 1, "nonsense"),
    Bad("SCT905", "other_root", b"<!-- a -->\n  <project/>", 2, 3, "<project>, expected <net>"),
    Bad("SCT906", "doctype", b'<?xml version="1.0"?>\n  <!DOCTYPE net>\n<net/>', 2, 3, "DOCTYPE"),
    Bad(
        "SCT907",
        "deep",
        b'<net version="11"><layers>' + b"<a>" * 1000 + b"</a>" * 1000 + b"</layers></net>",
        1,
    ),
    Bad("SCT907", "deep_and_open", b'<net version="11">\n<layers>' + b"<a>" * 1_000_000, 2),
    Bad("SCT908", "version_7", b'\n\n <net name="m" version="7">\n<layers/></net>', 3, 2, "version is '7'"),
    Bad("SCT908", "version_12", b'<net name="m" version="12"><layers/></net>', 1, 1, "expected 10 or 11"),
    Bad("SCT908", "no_version", b'<net name="m"><layers/></net>', 1, 1, "has no version"),
    Bad("SCT909", "no_layers", b'<net name="m" version="11"/>', 1, 1, "no <layers>"),
    Bad("SCT909", "layers_elsewhere", b'<net version="11"><a><layers/></a></net>', 1, 1, "no <layers>"),
)
BAD_PROTOBUF = (
    Bad("SCT902", "empty", b"", words="the file is empty"),
    Bad("SCT904", "text", b"this is no model", words="not a complete protobuf message"),
    Bad("SCT904", "garbage", bytes(range(200, 256)), words="not a complete protobuf message"),
    Bad("SCT904", "half", b"\xfa\x3e\x03abc", words="none of the fields"),
    Bad("SCT904", "zeros", bytes(64), words="not a complete protobuf message"),
    Bad("SCT904", "pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", words="Git LFS"),
    Bad("SCT909", "no_graph", onnx.ModelProto(ir_version=10).SerializeToString(), words="no graph"),
)


def caught(path: Path) -> UnreadableModel:
    with pytest.raises(UnreadableModel) as found:
        read(path)
    return found.value


@pytest.mark.parametrize(
    ("bad", "suffix"),
    [(bad, ".xml") for bad in BAD_XML] + [(bad, ".onnx") for bad in BAD_PROTOBUF],
    ids=[f"{bad.code}_{bad.name}" for bad in (*BAD_XML, *BAD_PROTOBUF)],
)
def test_what_is_said(bad: Bad, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"model{suffix}"
    path.write_bytes(bad.data)
    error = caught(path)
    assert by_name()[error.defect].code == bad.code
    assert bad.words in error.message
    assert error.location.path == str(path)
    assert error.location.line == bad.line
    if bad.column is not None or bad.line is None:
        assert error.location.column == bad.column
    diagnostic = file_diagnostic(error.defect, error.message, error.location)
    assert (diagnostic.code, diagnostic.severity) == (bad.code, "error")
    assert "\n" not in diagnostic.message
    assert len(diagnostic.message) < 300


@pytest.mark.parametrize(
    "text",
    [
        NET,
        f"\n\n<?pi x?><!-- <!DOCTYPE net> -->{NET.replace('<layers>', '<layers><![CDATA[<layer>]]>')}",
        NET.replace("11", "10"),
        NET.replace('version="11"', "version = ' 11 '"),
        NET.replace('version="11"', 'version="+11"'),
        NET.replace('version="11"', 'version="011"'),
        NET.replace("<layers></layers>", "<rt_info/><edges/><layers/>"),
        '<net version="11"><layers/>' + "<a>" * 250 + "</a>" * 250 + "</net>",
        f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>{NET}',
        f'<?xml version="1.0" encoding="iso-8859-1"?>{NET}',
    ],
)
def test_unusual_and_readable(text: str, tmp_path: Path) -> None:
    """The negative cases of SCT903 to SCT909."""
    path = tmp_path / "model.xml"
    path.write_text(text)
    assert validate(read(path)) == []


@pytest.mark.parametrize("name", ["missing.xml", "folder.xml", "link.onnx", "forbidden.xml"])
def test_files_that_cannot_be_opened(name: str, tmp_path: Path) -> None:
    """SCT901."""
    path = tmp_path / name
    (tmp_path / "folder.xml").mkdir()
    (tmp_path / "link.onnx").symlink_to("nowhere")
    (tmp_path / "forbidden.xml").touch(0)
    if name == "forbidden.xml" and os.access(path, os.R_OK):
        pytest.skip("the superuser may read every file")
    error = caught(path)
    assert error.defect == "unreadable-file"
    assert (error.location.path, error.location.line) == (str(path), None)
    assert error.message.startswith("cannot be read: ")
    result = check_file(Source(str(path)), Options())
    assert [one.code for one in result.diagnostics] == ["SCT901"]
    assert not result.is_readable
