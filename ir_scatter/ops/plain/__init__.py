"""Plain operators: what exporters and conversions put around scatter operators, in NumPy.

    op = find(node.domain, node.type)
    outputs = compute(op, inputs, node.attributes, opset=18, element_limit=1_000_000)

To add an operator, write its kernel in the module of what it does, and one row in the table of
its dialect.
"""

from collections.abc import Mapping
from functools import cache

from ir_scatter.model import ONNX, OPENVINO
from ir_scatter.ops.plain.case import UnsupportedCase
from ir_scatter.ops.plain.plain_op import PlainOp, compute

__all__ = ["PlainOp", "UnsupportedCase", "compute", "find"]


def find(domain: str, type: str) -> PlainOp | None:
    """Find a plain operator, None if there is none of this name.

    Args:
        domain: "openvino", or "" and "ai.onnx" for ONNX.
        type: the type as written; in an IR in any case.
    """
    if domain == OPENVINO:
        return _openvino_rows().get(type.lower())
    return _onnx_rows().get(type) if domain in {ONNX, "ai.onnx"} else None


@cache
def _openvino_rows() -> Mapping[str, PlainOp]:
    from ir_scatter.ops.plain.openvino_table import ROWS

    return {row.name.lower(): row for row in ROWS}


@cache
def _onnx_rows() -> Mapping[str, PlainOp]:
    from ir_scatter.ops.plain.onnx_table import ROWS

    return {row.name: row for row in ROWS}
