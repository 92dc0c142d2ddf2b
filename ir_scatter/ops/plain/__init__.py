"""Plain operators: what exporters and conversions put around scatter operators, in NumPy.

    op = find(node.domain, node.type)
    outputs = compute(op, inputs, node.attributes, opset=18, element_limit=1_000_000)

To add an operator, write its kernel in the module of what it does, and one row in the table of
its dialect.
"""

from ir_scatter.model import ONNX, OPENVINO
from ir_scatter.ops.plain import onnx_table, openvino_table
from ir_scatter.ops.plain.case import UnsupportedCase
from ir_scatter.ops.plain.plain_op import PlainOp, compute

__all__ = ["PlainOp", "UnsupportedCase", "compute", "find"]

_OPENVINO_ROWS = {row.name.lower(): row for row in openvino_table.ROWS}
_ONNX_ROWS = {row.name: row for row in onnx_table.ROWS}


def find(domain: str, type: str) -> PlainOp | None:
    """Find a plain operator, None if there is none of this name.

    Args:
        domain: "openvino", or "" and "ai.onnx" for ONNX.
        type: the type as written; in an IR in any case.
    """
    if domain == OPENVINO:
        return _OPENVINO_ROWS.get(type.lower())
    if domain in {ONNX, "ai.onnx"}:
        return _ONNX_ROWS.get(type)
    return None
