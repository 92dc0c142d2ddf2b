"""An attribute's word is none that this version documents.

Why: runtimes disagree on what an unknown word means; one of them computes something else.
Applies to: every attribute with documented words (reduction, mode). A warning for words that the
version does not document and runtimes take as meant: max and min at ONNX opset 16 and 17, and an
IR's words in another case.
Runtimes: onnxruntime and the reference evaluator run an unknown reduction as "none" without a
word; OpenVINO refuses it.
Example: reduction="add" in an IR, where the word is sum; reduction="sum" in ONNX, where it is
add.
Fix: write the word of this dialect and version.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.ops.spec import Kind
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule("SCT105", "attribute-value", reads={Fact.OPERATOR, Fact.ATTRIBUTES})
def attribute_value(scatter: ScatterNode) -> Findings:
    for row in scatter.spec.attributes:
        written = scatter.node.attributes.get(row.name)
        if row.kind is not Kind.WORD or not isinstance(written, str) or written in row.choices:
            continue
        is_tolerated = scatter.attribute(row.name) in {*row.choices, *row.undocumented}
        message = f"{row.name} is {written!r}, expected {', '.join(row.choices)}"
        yield Finding(message, is_tolerated=is_tolerated)
