"""OpenVINO IR: `.xml` and `.bin` to a Model."""

import re
from functools import partial
from pathlib import Path
from threading import Thread

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.model import OPENVINO, Model
from ir_scatter.core.tensors import Weights
from ir_scatter.formats.base import IR, ReadOptions
from ir_scatter.formats.openvino.checks import find_defects
from ir_scatter.formats.openvino.graph import PARAMETER, IrFile, IrGraph
from ir_scatter.formats.openvino.index import Body, exact_index, quick_index
from ir_scatter.formats.openvino.xml_text import XmlText, attributes, shown

VERSIONS = (10, 11)

_LARGE = 1 << 18
_PLAINLY = ReadOptions()
_INTEGER = re.compile(r"\s*\+?[0-9]{1,19}\s*")


def read(path: str, raw: bytes, options: ReadOptions = _PLAINLY) -> Model:
    """Read an IR from the bytes of its `.xml`; the `.bin` is looked for beside `path`.

    Raises:
        UnreadableModel: the file is no XML, no IR, or an IR of a version that is not supported.
    """
    text = XmlText(path, raw)
    net = _read_index(text)
    weights = Weights(Path(path).with_suffix(".bin")) if options.has_folder else None
    graph = IrGraph(IrFile(text, weights, options), net)
    return Model(
        path=path,
        format=IR,
        domain=OPENVINO,
        graph=graph,
        inputs=tuple(map(graph.parameter_names, graph.keys_of(PARAMETER))),
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
    is_model = root is not None and root.name == b"net"
    start = 0 if root is None else root.start
    try:
        net = _check_and_index(text, start)
    except UnreadableModel as error:
        error.is_model = is_model
        raise
    place = text.location(start)
    if root is None or not is_model:
        name = shown(root.name.decode("utf-8", "replace")) if root else "unknown"
        message = f"the root element is <{name}>, expected <net>"
        raise UnreadableModel("not-a-model", message, place, is_model=False)
    _check_version(attributes(text.data, root.start, root.end).get(b"version"), place)
    net = net or exact_index(text.data)
    if not net.has_layers:
        raise UnreadableModel("no-graph", "<net> has no <layers>, expected a graph", place)
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
    for problem in problems:
        raise problem
    return None if text.has_asides else net


def _check_version(version: bytes | None, location: Location) -> None:
    expected = " or ".join(map(str, VERSIONS))
    if version is None:
        message = f"<net> has no version, expected {expected}"
        raise UnreadableModel("unsupported-ir-version", message, location)
    text = version.decode("utf-8", "replace")
    if not _INTEGER.fullmatch(text) or int(text) not in VERSIONS:
        message = f"the IR's version is {shown(text)!r}, expected {expected}"
        if _INTEGER.fullmatch(text) and int(text) < min(VERSIONS):
            message += "; convert the original model again with a recent OpenVINO"
        raise UnreadableModel("unsupported-ir-version", message, location)
