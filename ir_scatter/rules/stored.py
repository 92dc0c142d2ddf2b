"""What a file stores of shapes and types, which runtimes compute anew."""

from dataclasses import replace

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.diagnostics import Part, Severity, Side
from ir_scatter.core.shapes import agree, differing_dim, excludes, show
from ir_scatter.rules.base import Finding, Findings, Rule

_AGAIN = "store {} here, or save the model again with the runtime that reads it"
_READS = frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES, Fact.TYPES, Fact.STORED})
"""What it takes to hold what a file stores against what is computed."""


@Rule("SCT501", "stored-output-shape", Severity.WARNING, reads=_READS, is_legality=False)
def stored_output_shape(scatter: ScatterNode) -> Findings:
    """The file stores an output shape that is not that of data.

    Why: tools that trust the file see another model than the runtime, which computes the shape anew.
    Applies to: every operator: the output has the shape of data.
    Runtimes: OpenVINO and onnxruntime compute the shape and ignore the stored one.
    Example: data [4, 5], output port [4, 6].
    Fix: save the model again with the runtime that reads it.
    """
    if scatter.data is None or not scatter.node.outputs:
        return
    stored, data = scatter.node.outputs[0].stored_shape, scatter.data_shape
    if not agree(stored, data):
        message = f"the stored shape of {scatter.spec.output} is {show(stored)}, expected {show(data)}"
        part = Part(Side.OUTPUT, 0, "shape", differing_dim(stored, data))
        help = _AGAIN.format(show(data))
        message = f"{message} like {scatter.data.port.name}"
        yield Finding(message, port=scatter.spec.output, part=part, help=help)


@Rule("SCT502", "stored-output-type", Severity.WARNING, reads=_READS, is_legality=False)
def stored_output_type(scatter: ScatterNode) -> Findings:
    """The file stores an output type that is not that of data.

    Why: tools that trust the file see another model than the runtime, which computes the type anew.
    Applies to: every operator: the output has the type of data. An error in ONNX models, but for functions.
    Runtimes: OpenVINO computes the type and ignores the stored one; onnxruntime refuses the model.
    Example: data f32, output port FP16.
    Fix: save the model again with the runtime that reads it.
    """
    if scatter.data is None or scatter.data.element_type is None or not scatter.node.outputs:
        return
    stored, data = scatter.node.outputs[0].stored_type, scatter.data.element_type
    if stored is not None and stored != data:
        shown, expected = scatter.spec.show_type(stored), scatter.spec.show_type(data)
        message = f"the stored type of {scatter.spec.output} is {shown}, expected {expected}"
        message, help = f"{message} like {scatter.data.port.name}", _AGAIN.format(expected)
        part, is_refused = Part(Side.OUTPUT, 0, "type"), scatter.refuses_types
        yield Finding(message, port=scatter.spec.output, part=part, help=help, is_refused=is_refused)


@Rule("SCT503", "stored-input-shape", Severity.WARNING, reads=_READS, is_legality=False)
def stored_input_shape(scatter: ScatterNode) -> Findings:
    """The file stores an input shape that contradicts the producer's.

    Why: one of the two is stale; whoever reads the wrong one draws wrong conclusions.
    Applies to: every input of every operator. A Const's and a Parameter's own declaration counts as
    right.
    Runtimes: OpenVINO and onnxruntime compute the shapes and ignore the stored ones.
    Example: an input port [2] fed by a Const of shape [3].
    Fix: save the model again with the runtime that reads it.
    """
    for operand in scatter.operands():
        stored = operand.stored.stored_shape
        if excludes(operand.shape, stored):
            message = (
                f"the stored shape of {operand.port.name} is {show(stored)}, "
                f"but what flows in is {show(operand.shape)}"
            )
            dim = differing_dim(stored, operand.shape)
            part = Part(Side.INPUT, operand.index, "shape", dim)
            found = Finding(message, role=operand.port.role, aspect="shape", dim=dim, part=part)
            yield replace(found, help=_AGAIN.format(show(operand.shape)))


@Rule("SCT504", "stored-input-type", Severity.WARNING, reads=_READS, is_legality=False)
def stored_input_type(scatter: ScatterNode) -> Findings:
    """The file stores an input type that contradicts the producer's.

    Why: one of the two is stale; whoever reads the wrong one draws wrong conclusions.
    Applies to: every input of every operator. A Const's and a Parameter's own declaration counts as
    right. An error in ONNX models for what a node computes, but for functions.
    Runtimes: OpenVINO computes the types and ignores the stored ones; onnxruntime refuses the model.
    Example: an input port I32 fed by a Const of i64.
    Fix: save the model again with the runtime that reads it.
    """
    for operand in scatter.operands():
        stored, found = operand.stored.stored_type, operand.element_type
        if stored is not None and found is not None and stored != found:
            shown, flows = scatter.spec.show_type(stored), scatter.spec.show_type(found)
            message = f"the stored type of {operand.port.name} is {shown}, but what flows in is {flows}"
            part = Part(Side.INPUT, operand.index, "type")
            is_refused = scatter.refuses_types and operand.value.constant is None
            yield Finding(
                message,
                operand.port.role,
                aspect="type",
                part=part,
                help=_AGAIN.format(flows),
                is_refused=is_refused,
            )
