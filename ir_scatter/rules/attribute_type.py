"""An attribute holds another kind of value than documented.

Why: runtimes refuse the model, or read the default in its place.
Applies to: attributes of ONNX nodes, which carry a type: axis is an int, reduction and mode are
strings.
Runtimes: onnx.checker and onnxruntime refuse the model.
Example: axis = 1.0.
Fix: write the attribute with its documented type.
"""

from typing import Any

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.shapes import with_article
from ir_scatter.core.tensors import Constant
from ir_scatter.ops.spec import Kind
from ir_scatter.rules.base import Finding, Findings, Rule

_TYPES: dict[Kind, type[Any]] = {Kind.INT: int, Kind.WORD: str, Kind.BOOLEAN: bool}
_SHOWN = {int, float, str, list, Constant}
_NAMES = {Kind.INT: "an int", Kind.WORD: "a string", Kind.BOOLEAN: "a boolean"}


@Rule("SCT107", "attribute-type", reads={Fact.OPERATOR, Fact.ATTRIBUTES})
def attribute_type(scatter: ScatterNode) -> Findings:
    for row in scatter.spec.attributes:
        written = scatter.node.attributes.get(row.name)
        if written is None or scatter.spec.drops_attributes or isinstance(written, _TYPES[row.kind]):
            continue
        kind = type(written)
        shown = with_article(kind.__name__) if kind in _SHOWN else "neither number nor text"
        yield Finding(f"{row.name} is {shown}, expected {_NAMES[row.kind]}")
