"""OpenVINO IR: `.xml` and `.bin` to a Model."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from threading import Thread
from xml.parsers.expat import ErrorString, ExpatError

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.model import OPENVINO, Model
from ir_scatter.core.shapes import Shape
from ir_scatter.core.tensors import Weights
from ir_scatter.formats import UNKNOWN_OPERATORS, Operators
from ir_scatter.formats.openvino.checks import find_defects
from ir_scatter.formats.openvino.file import IrFile
from ir_scatter.formats.openvino.graph import IrGraph
from ir_scatter.formats.openvino.index import Body
from ir_scatter.formats.openvino.xml_characters import unescaped
from ir_scatter.formats.openvino.xml_exact import exact_index
from ir_scatter.formats.openvino.xml_quick import quick_index
from ir_scatter.formats.openvino.xml_text import XmlText, shown

FORMAT = "openvino-ir"
VERSIONS = (10, 11)

_LARGE = 1 << 18
_ATTRIBUTE = re.compile(rb"""([^\s="']+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_INTEGER = re.compile(r"\s*\+?[0-9]{1,19}\s*")


def read(
    path: str,
    raw: bytes,
    operators: Operators = UNKNOWN_OPERATORS,
    *,
    has_folder: bool = True,
    shapes: Mapping[str, tuple[Shape, ...]] | None = None,
    input_shapes: Mapping[str, Shape] | None = None,
) -> Model:
    """Read an IR from the bytes of its `.xml`.

    Args:
        path: as the caller named it; the `.bin` is looked for beside it.
        raw: the bytes of the `.xml`.
        operators: what is known of them.
        has_folder: False if the bytes came from a stream, so that there is no `.bin`.
        shapes: propagated shapes of the outputs of nodes, by the node's scope.
        input_shapes: shapes of the main graph's inputs, by any of their names.

    Raises:
        UnreadableModel: the file is no XML, no IR, or an IR of a version that is not supported.
    """
    text = XmlText(path, raw)
    net = _read_index(text)
    weights = Weights(Path(path).with_suffix(".bin")) if has_folder else None
    file = IrFile(text, weights, shapes or {}, input_shapes or {}, operators.scatter)
    graph = IrGraph(file, net)
    return Model(
        path=path,
        format=FORMAT,
        domain=OPENVINO,
        graph=graph,
        inputs=tuple(graph.parameter_names()),
        find_defects=partial(find_defects, graph),
        source=text,
    )


def _read_index(text: XmlText) -> Body:
    try:
        return _index(text)
    except UnreadableModel as error:
        if error.location.line is not None:
            error.lines[error.location.line] = text.line(error.location.line)
        raise


def _index(text: XmlText) -> Body:
    root = text.root()
    is_model = root is not None and root.name == "net"
    start = 0 if root is None else root.start
    try:
        net = _check_and_index(text, start)
    except UnreadableModel as error:
        error.is_model = is_model
        raise
    if root is None or not is_model:
        name = root.name if root else "unknown"
        raise UnreadableModel(
            "not-a-model",
            f"the root element is <{shown(name)}>, expected <net>",
            text.location(start),
            is_model=False,
        )
    _check_version(root.attributes, text.location(start))
    net = net or _exact_index(text)
    if not net.has_layers:
        raise UnreadableModel("no-graph", "<net> has no <layers>, expected a graph", text.location(start))
    return net


def _check_and_index(text: XmlText, start: int) -> Body | None:
    """Demand well-formed XML, and index it if it is written the usual way.

    libxml2 works without the interpreter's lock, so a large file is checked in a thread meanwhile.
    The quick index of a file that is not well-formed is thrown away.
    """
    if len(text.data) < _LARGE:
        text.check_well_formed()
        return None if text.has_asides else quick_index(text.data, start)
    problems: list[Exception] = []

    def check() -> None:
        try:
            text.check_well_formed()
        except Exception as error:  # raised again in the caller's thread
            problems.append(error)

    thread = Thread(target=check)
    thread.start()
    try:
        net = quick_index(text.data, start)
    finally:
        thread.join()
    if problems:
        raise problems[0]
    return None if text.has_asides else net


def _exact_index(text: XmlText) -> Body:
    """Index the file with expat, which knows fewer characters of names than libxml2."""
    try:
        return exact_index(text.data)
    except ExpatError as error:
        place = Location(text.path, error.lineno, error.offset + 1)
        reason = ErrorString(error.code).removeprefix("not well-formed ").strip("()")
        raise UnreadableModel("malformed-xml", f"not well-formed XML: {reason}", place) from None


def _check_version(attributes: bytes, location: Location) -> None:
    found = {match[1]: match[2] or match[3] or b"" for match in _ATTRIBUTE.finditer(attributes)}
    version = found.get(b"version")
    expected = " or ".join(map(str, VERSIONS))
    if version is None:
        message = f"<net> has no version, expected {expected}"
        raise UnreadableModel("unsupported-ir-version", message, location)
    text = unescaped(version).decode("utf-8", "replace")
    if not _INTEGER.fullmatch(text) or int(text) not in VERSIONS:
        message = f"the IR's version is {shown(text)!r}, expected {expected}"
        if _INTEGER.fullmatch(text) and int(text) < min(VERSIONS):
            message += "; convert the original model again with a recent OpenVINO"
        raise UnreadableModel("unsupported-ir-version", message, location)
