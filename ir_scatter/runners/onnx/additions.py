"""Adds nodes and outputs to an ONNX model, under names that it does not have yet."""

from math import prod
from typing import Any

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from ir_scatter.core.element_types import ElementType
from ir_scatter.formats.onnx.index import DEFAULT_DOMAINS
from ir_scatter.runners.onnx.places import Level

_PREFIX = "ir_scatter_tap"
_AXES_ARE_AN_INPUT = 13
"""The opset from which on Squeeze and Unsqueeze have no attribute."""


class Additions:
    """Adds to one model."""

    def __init__(self, model: ModelProto) -> None:
        self._model = model
        self._count = 0
        self._prefix = _PREFIX
        data = model.SerializeToString()
        while self._prefix.encode() in data:
            self._prefix += "_"

    def name(self) -> str:
        """Return a new name."""
        self._count += 1
        return f"{self._prefix}_{self._count}"

    def give_out(self, graph: Any, name: str) -> None:
        """Add an output to a graph: a copy, as what comes from outside cannot be one."""
        given = self.name()
        graph.node.append(helper.make_node("Identity", [name], [given]))
        graph.output.add().name = given

    def with_axes(self, level: Level, type: str, name: str, axes: list[int]) -> str:
        """Add a node with axes, which are an input from opset 13 on, and return its output."""
        function = level.around()[0].proto
        imports = self._model.opset_import if isinstance(function, GraphProto) else function.opset_import
        opset = next((one.version for one in imports if one.domain in DEFAULT_DOMAINS), 0)
        given = self.name()
        if opset < _AXES_ARE_AN_INPUT:
            level.proto.node.append(helper.make_node(type, [name], [given], axes=axes))
            return given
        tensor = TensorProto(dims=[len(axes)], data_type=TensorProto.INT64, int64_data=axes)
        constant = self.name()
        level.proto.node.append(helper.make_node("Constant", [], [constant], value=tensor))
        level.proto.node.append(helper.make_node(type, [name, constant], [given]))
        return given

    def import_default_domain(self, function: Any) -> None:
        """Let a function use Identity: one that only calls others may import no operators."""
        if not any(one.domain in DEFAULT_DOMAINS for one in function.opset_import):
            found = next(one for one in self._model.opset_import if one.domain in DEFAULT_DOMAINS)
            function.opset_import.append(found)


def zeros(row: ElementType, shape: tuple[int, ...]) -> TensorProto:
    """Return a tensor of zeros, or of empty strings."""
    found = TensorProto(dims=shape, data_type=row.onnx_number)
    if row.kind == "string":
        found.string_data.extend([b""] * prod(shape))
    else:
        found.raw_data = bytes(row.byte_size(prod(shape)))
    return found


def complete_scan(node: NodeProto) -> None:
    """Say of one more output of a Scan that it is stacked on axis 0, in order."""
    for attribute in node.attribute:
        if attribute.name in {"scan_output_axes", "scan_output_directions"}:
            attribute.ints.append(0)
