"""The file stores an output type that is not that of data.

Why: tools that trust the file see another model than the runtime, which computes the type anew.
Applies to: every operator: the output has the type of data.
Runtimes: OpenVINO computes the type and ignores the stored one; onnxruntime refuses the model.
Example: data f32, output port FP16.
Fix: save the model again with the runtime that reads it.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.base import OF_STORED, Finding, Findings, Rule


@Rule("SCT502", "stored-output-type", Severity.WARNING, reads=OF_STORED, is_legality=False)
def stored_output_type(scatter: ScatterNode) -> Findings:
    if scatter.data is None or scatter.data.element_type is None or not scatter.node.outputs:
        return
    stored, data = scatter.node.outputs[0].stored_type, scatter.data.element_type
    if stored is not None and stored != data:
        shown, expected = scatter.spec.show_type(stored), scatter.spec.show_type(data)
        message = f"the stored type of {scatter.spec.output} is {shown}, expected {expected}"
        yield Finding(f"{message} like {scatter.data.port.name}", port=scatter.spec.output)
