"""Builds small ONNX models one node at a time, as `ir_text` does IRs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, helper, numpy_helper

from ir_scatter.core.element_types import ELEMENT_TYPES

Shape = Sequence[int | str | None]


@dataclass
class OnnxGraph:
    """The nodes, inputs, outputs and initializers of one graph; names stand for values.

    Element types are "f32", "i64", ...; None is an output whose type is not declared.
    """

    opset: int = 18
    name: str = "g"
    ir_version: int = 8
    graph: onnx.GraphProto = field(default_factory=onnx.GraphProto)

    def input(self, name: str, type: str = "f32", shape: Shape | None = None) -> str:
        """Add an input; `None` for a shape is an unknown rank, for a size an unknown one."""
        self.graph.input.append(_declared(name, type, shape))
        return name

    def constant(self, name: str, values: Any, type: Any = None) -> str:
        """Add an initializer of a NumPy type, that of the values without one."""
        self.graph.initializer.append(numpy_helper.from_array(np.asarray(values, type), name))
        return name

    def add(
        self, type: str, inputs: Sequence[str], output: str | Sequence[str], name: str = "", **attributes: Any
    ) -> str:
        """Add a node; return its first output."""
        outputs = [output] if isinstance(output, str) else list(output)
        self.graph.node.append(helper.make_node(type, inputs, outputs, name, **attributes))
        return outputs[0]

    def output(self, name: str, type: str | None = "f32", shape: Shape | None = None) -> str:
        self.graph.output.append(_declared(name, type, shape))
        return name

    def model(self) -> ModelProto:
        self.graph.name = self.name
        imports = [helper.make_opsetid("", self.opset)]
        return helper.make_model(self.graph, opset_imports=imports, ir_version=self.ir_version)

    def write(self, path: Path, **options: Any) -> Path:
        """Write the model; options are those of `onnx.save`."""
        onnx.save(self.model(), path, **options)
        return path


def _declared(name: str, type: str | None, shape: Shape | None) -> onnx.ValueInfoProto:
    number = 0 if type is None else ELEMENT_TYPES[type].onnx_number
    assert number is not None, f"ONNX has no {type}"
    return helper.make_tensor_value_info(name, number, shape)
