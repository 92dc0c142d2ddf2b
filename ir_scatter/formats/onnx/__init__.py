"""The ONNX format: lazy reading, and writing by node replacement in a copy of the protobuf message."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.model import Model
from ir_scatter.formats.base import ONNX_FORMAT, FileBeside, Format, OneNode, OpsetMove, ReadOptions, Written
from ir_scatter.formats.onnx.message_text import is_text, to_message

if TYPE_CHECKING:
    from ir_scatter.core.dataflow import Dataflow
    from ir_scatter.core.fragment import Patch


class Onnx:
    """The ONNX format: a protobuf message, with optional external weight files. See `base.Format`."""

    name = ONNX_FORMAT
    title = "ONNX"
    suffix = ".onnx"

    def sniff(self, head: bytes) -> bool:
        return is_text(head)  # the binary message has no magic bytes

    def read(self, path: str, data: bytes, options: ReadOptions) -> Model:
        try:
            from ir_scatter.formats.onnx.reader import read
        except Exception as error:  # a broken installation of onnx may raise anything
            reason = f"the package onnx cannot be imported: {type(error).__name__}: {error}"
            raise UnreadableModel("unreadable-file", reason, Location(path)) from None
        return read(path, to_message(path, data), options)

    def dataflow(self, model: Model) -> "Dataflow":
        from ir_scatter.formats.onnx.dataflow import wire

        return wire(model)

    def write(self, model: Model, patches: "Sequence[Patch]", move: OpsetMove | None = None) -> Written:
        from ir_scatter.formats.onnx.writer import remark_on_shapes, write_onnx

        return Written(write_onnx(model, patches, move), remark=remark_on_shapes(model, patches))

    def files_beside(self, model: Model, path: Path) -> Sequence[FileBeside]:
        from ir_scatter.formats.onnx.graph import OnnxGraph

        assert isinstance(model.graph, OnnxGraph)
        return model.graph.shared.tensors.files_beside(model.source)

    def diff(self, model: Model, patches: "Sequence[Patch]", path: str) -> Iterator[str]:
        from ir_scatter.formats.onnx.writer import node_lines, shape_lines

        for patch in patches:
            yield from node_lines(patch)
        yield from shape_lines(model, patches)

    def nodes(self, nodes: Sequence[OneNode]) -> Mapping[str, bytes]:
        from ir_scatter.formats.onnx.writer import write_nodes

        return {".onnx": write_nodes(nodes)}


FORMAT: Format = Onnx()
