"""The OpenVINO IR format: lazy reading through an index of the bytes, and writing by text edits."""

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ir_scatter.core.model import Model
from ir_scatter.formats.base import IR, FileBeside, Format, OneNode, OpsetMove, ReadOptions, Written

if TYPE_CHECKING:
    from ir_scatter.core.dataflow import Dataflow
    from ir_scatter.core.fragment import Patch


_ONNX_TEXT = re.compile(rb"<\s*\w+\s*:")
"""Pattern of the first line of an ONNX model in text syntax: `<ir_version: 8`. No XML tag matches it."""


class OpenVinoIr:
    """The OpenVINO IR format: an `.xml` file, with weights in the `.bin` beside it. See `base.Format`."""

    name = IR
    title = "OpenVINO IR"
    suffix = ".xml"

    def sniff(self, head: bytes) -> bool:
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return True
        start = head.removeprefix(codecs.BOM_UTF8).lstrip()
        return start.startswith(b"<") and not _ONNX_TEXT.match(start)

    def read(self, path: str, data: bytes, options: ReadOptions) -> Model:
        from ir_scatter.formats.openvino.reader import read

        return read(path, data, options)

    def dataflow(self, model: Model) -> "Dataflow":
        from ir_scatter.formats.openvino.dataflow import IrWiring

        return IrWiring(model.graph)

    def write(self, model: Model, patches: "Sequence[Patch]", move: OpsetMove | None = None) -> Written:
        from ir_scatter.formats.openvino.writer import write_ir

        assert move is None, "an IR has no opset for the whole file"
        return write_ir(model, patches)

    def files_beside(self, model: Model, path: Path) -> Sequence[FileBeside]:
        from ir_scatter.formats.openvino.writer import weights_beside

        return [weights_beside(model, path)]

    def diff(self, model: Model, patches: "Sequence[Patch]", path: str) -> Iterator[str]:
        from ir_scatter.formats.text_edits import Edit, unified_diff

        source, shift = model.source, len(model.source.mark)
        written = self.write(model, patches).edits
        edits = [Edit(edit.start + shift, edit.end + shift, edit.text) for edit in written]
        return unified_diff(source.mark + source.data, edits, path, path)

    def nodes(self, nodes: Sequence[OneNode]) -> Mapping[str, bytes]:
        from ir_scatter.formats.openvino.one_node import write_nodes

        text, weights = write_nodes(nodes)
        return {".xml": text, ".bin": weights}


FORMAT: Format = OpenVinoIr()
