"""Reads an OpenVINO IR, an `.xml` file with its `.bin`, into a Model."""

import re
from pathlib import Path
from threading import Thread

from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.model import OPENVINO, Model
from ir_scatter.core.tensors import LongerWeights, Weights
from ir_scatter.formats.base import IR, ReadOptions
from ir_scatter.formats.openvino.checks import Checks
from ir_scatter.formats.openvino.graph import PARAMETER, IrFile, IrGraph
from ir_scatter.formats.openvino.index import Body, exact_index, quick_index
from ir_scatter.formats.openvino.xml_text import XmlText, attribute_place, attributes, decoded, show_text

VERSIONS = (10, 11)

_PLAINLY = ReadOptions()
_INTEGER = re.compile(r"\s*\+?[0-9]{1,19}\s*")


def read(path: str, raw: bytes, options: ReadOptions = _PLAINLY) -> Model:
    """Read an IR from the bytes of its `.xml`. The `.bin` must be in the same folder as `path`.

    Raises:
        UnreadableModel: the file is not XML, not an IR, or an IR of an unsupported version.
    """
    text = XmlText(path, raw)
    is_model, root, start = True, None, 0
    try:
        root = text.root()
        is_model, start = root is not None and root[2] == b"net", root.start() if root else 0
        net = _check_and_index(text, start)
        if root is None or not is_model:
            name = show_text(decoded(root[2])) if root else "unknown"
            message = f"the root element is <{name}>, expected <net>"
            raise UnreadableModel("not-a-model", message, text.location(start))
        problem = _version_problem(attributes(text.data, *root.span()).get(b"version"))
        if problem:
            raise UnreadableModel("unsupported-ir-version", problem, text.location(start))
        net = net or exact_index(text.data)
        if not net.has_layers:
            message = "<net> has no <layers>, expected a graph"
            raise UnreadableModel("no-graph", message, text.location(start))
    except UnreadableModel as error:
        error.is_model = is_model
        if root is not None and error.location == text.location(start):
            attribute = b"version" if error.defect == "unsupported-ir-version" else b""
            error.span = text.span(*attribute_place(text.data, *root.span(), attribute))
        if error.location.line is not None:
            place = error.span[:2] if error.span else (error.location.line, error.location.column or 1)
            error.excerpts[place] = text.excerpt(*place)
        raise
    bin = Path(path).with_suffix(".bin")
    stored = LongerWeights(bin, options.appended) if options.appended else Weights(bin)
    weights = stored if options.has_folder else None
    graph = IrGraph(IrFile(text, weights, options), net)
    checks = Checks(graph)
    return Model(
        path=path,
        format=IR,
        domain=OPENVINO,
        graph=graph,
        inputs=tuple(map(graph.parameter_names, graph.keys_of(PARAMETER))),
        find_defects=checks.defects,
        find_contradictions=checks.contradictions,
        find_feeding=checks.suspects,
        source=text,
    )


def _check_and_index(text: XmlText, start: int) -> Body | None:
    """Check that the XML is well-formed; return its quick index, or None for an unusual form.

    libxml2 checks the XML without the interpreter's lock, while a thread builds the index. The index of a
    file that is not well-formed is discarded.
    """
    index: list[Body | None] = []
    thread = Thread(target=lambda: index.append(quick_index(text.data, start)))
    thread.start()
    try:
        text.check_well_formed()
    finally:
        thread.join()
    return None if text.has_asides else index[0]


def _version_problem(version: bytes | None) -> str | None:
    expected = " or ".join(map(str, VERSIONS))
    if version is None:
        return f"<net> has no version, expected {expected}"
    text = decoded(version)
    number = int(text) if _INTEGER.fullmatch(text) else None
    if number in VERSIONS:
        return None
    is_old = number is not None and number < min(VERSIONS)
    again = "; convert the original model again with a recent OpenVINO" if is_old else ""
    return f"the IR's version is {show_text(text)!r}, expected {expected}{again}"
