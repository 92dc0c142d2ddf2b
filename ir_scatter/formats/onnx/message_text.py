"""Parses ONNX models that are text: the syntax of `onnx.printer`, or protobuf's text format.

<ir_version: 8, opset_import: ["" : 17]>          ir_version: 8
g (float[2] x) => (float[2] y) {                  graph { node { input: "x" output: "y" op_type: "Relu" } }
    y = Relu (x)
}
"""

import re

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.files import open_regular

_HEAD = 4096
"""Number of bytes at the start of a file that are examined: comments may come first."""
_COMMENTS = rb"(?:\s|#[^\n]*\n|//[^\n]*\n)*"
_PRINTED = re.compile(_COMMENTS + rb"<\s*(?:ir_version|opset_import|producer_name|domain)\s*:")
_FIELDS = (
    rb"ir_version|opset_import|producer_name|producer_version|domain|model_version|doc_string|graph|"
    rb"metadata_props|functions"
)
_PROTOBUF = re.compile(_COMMENTS + rb"(?:" + _FIELDS + rb")\s*[:{<]")


def is_printed(head: bytes) -> bool:
    """Return whether a file that begins with these bytes has the syntax of `onnx.printer`."""
    return _PRINTED.match(head) is not None


def is_text(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is an ONNX model in either text syntax."""
    return is_printed(head) or _PROTOBUF.match(head) is not None


def to_message(path: str, data: bytes) -> bytes:
    """Convert a model in a text syntax to the binary message; other data is returned unchanged.

    Raises:
        UnreadableModel: the text cannot be parsed.
    """
    if not is_text(data[:_HEAD]):
        return data
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableModel(
            "malformed-protobuf", f"the text is not UTF-8: {error.reason}", Location(path)
        ) from None
    message: bytes = _parse_printed(path, text) if is_printed(data[:_HEAD]) else _parse_protobuf(path, text)
    return message


def _parse_printed(path: str, text: str) -> bytes:
    from onnx import parser

    try:
        message: bytes = parser.parse_model(text).SerializeToString()
        return message
    except Exception as error:  # ParseError, which onnx does not document
        reason = str(error.args[0] if error.args and isinstance(error.args[0], str) else error)
        if isinstance(error.args[:1] and error.args[0], bytes):
            reason = error.args[0].decode("utf-8", "replace")
        place = re.search(r"line: *(\d+) *column: *(\d+)", reason)
        where = f" in line {place[1]}, column {place[2]}" if place else ""
        detail = reason.strip().splitlines()[-1].strip(" .")
        problem = f"the text of the model cannot be parsed{where}: {detail}"
        raise UnreadableModel("malformed-protobuf", problem, Location(path)) from None


def _parse_protobuf(path: str, text: str) -> bytes:
    from google.protobuf import text_format
    from onnx import ModelProto

    try:
        message: bytes = text_format.Parse(text, ModelProto()).SerializeToString()
        return message
    except text_format.ParseError as error:
        problem = f"the text of the model cannot be parsed: {error}"
        raise UnreadableModel("malformed-protobuf", problem, Location(path)) from None


def is_text_file(path: str) -> bool:
    """Return whether a file is an ONNX model in a text syntax; False if it cannot be read."""
    try:
        with open_regular(path) as file:
            return is_text(file.read(_HEAD))
    except (OSError, ValueError):
        return False
