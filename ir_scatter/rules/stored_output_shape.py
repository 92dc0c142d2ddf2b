"""The file stores an output shape that is not that of data.

Why: tools that trust the file see another model than the runtime, which computes the shape anew.
Applies to: every operator: the output has the shape of data.
Runtimes: OpenVINO and onnxruntime compute the shape and ignore the stored one.
Example: data [4, 5], output port [4, 6].
Fix: save the model again with the runtime that reads it.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.shapes import agree, show
from ir_scatter.rules.base import OF_STORED, Finding, Findings, Rule


@Rule("SCT501", "stored-output-shape", Severity.WARNING, reads=OF_STORED, is_legality=False)
def stored_output_shape(scatter: ScatterNode) -> Findings:
    if scatter.data is None or not scatter.node.outputs:
        return
    stored, data = scatter.node.outputs[0].stored_shape, scatter.data_shape
    if not agree(stored, data):
        message = f"the stored shape of {scatter.spec.output} is {show(stored)}, expected {show(data)}"
        yield Finding(f"{message} like {scatter.data.port.name}", port=scatter.spec.output)
