"""Rules about shapes and types in the file that differ from the computed ones."""

from dataclasses import replace

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.diagnostics import Part, Severity, Side
from ir_scatter.core.shapes import agree, differing_dim, excludes, show
from ir_scatter.rules.base import Finding, Findings, Rule

_HELP = "store {} here, or save the model again with the runtime that reads it"
_READS = frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES, Fact.TYPES, Fact.STORED})
"""The facts needed to compare stored with computed shapes and types."""


@Rule("SCT501", "stored-output-shape", Severity.WARNING, reads=_READS, is_legality=False)
def stored_output_shape(scatter: ScatterNode) -> Findings:
    """The stored output shape differs from the shape of data.

    Why: tools that trust the stored shape see a different model than the runtime, which recomputes it.
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
        help = _HELP.format(show(data))
        message = f"{message} like {scatter.data.port.name}"
        yield Finding(message, port=scatter.spec.output, part=part, help=help)


@Rule("SCT502", "stored-output-type", Severity.WARNING, reads=_READS, is_legality=False)
def stored_output_type(scatter: ScatterNode) -> Findings:
    """The stored output type differs from the type of data.

    Why: tools that trust the stored type see a different model than the runtime, which recomputes it.
    Applies to: every operator: the output has the type of data. An error in ONNX models, except in functions.
    Runtimes: OpenVINO computes the type and ignores the stored one; onnxruntime refuses the model.
    Example: data f32, output port FP16.
    Fix: save the model again with the runtime that reads it.
    """
    if scatter.data is None or scatter.data.element_type is None or not scatter.node.outputs:
        return
    stored, data = scatter.node.outputs[0].stored_type, scatter.data.element_type
    if stored is not None and stored != data:
        actual, expected = scatter.spec.show_type(stored), scatter.spec.show_type(data)
        message = f"the stored type of {scatter.spec.output} is {actual}, expected {expected}"
        message, help = f"{message} like {scatter.data.port.name}", _HELP.format(expected)
        part, is_refused = Part(Side.OUTPUT, 0, "type"), scatter.refuses_types
        yield Finding(message, port=scatter.spec.output, part=part, help=help, is_refused=is_refused)


@Rule("SCT503", "stored-input-shape", Severity.WARNING, reads=_READS, is_legality=False)
def stored_input_shape(scatter: ScatterNode) -> Findings:
    """The stored input shape contradicts the shape that the input receives.

    Why: one of the two is stale; tools that read the stale one see a different model.
    Applies to: every input of every operator. The shape that a Const or Parameter declares is assumed to be
    correct.
    Runtimes: OpenVINO and onnxruntime compute the shapes and ignore the stored ones.
    Example: an input port [2] fed by a Const of shape [3].
    Fix: save the model again with the runtime that reads it.
    """
    for operand in scatter.operands():
        stored = operand.stored.stored_shape
        if excludes(operand.shape, stored):
            message = (
                f"the stored shape of {operand.port.name} is {show(stored)}, "
                f"but the input receives {show(operand.shape)}"
            )
            dim = differing_dim(stored, operand.shape)
            part = Part(Side.INPUT, operand.index, "shape", dim)
            finding = Finding(message, role=operand.port.role, aspect="shape", dim=dim, part=part)
            yield replace(finding, help=_HELP.format(show(operand.shape)))


@Rule("SCT504", "stored-input-type", Severity.WARNING, reads=_READS, is_legality=False)
def stored_input_type(scatter: ScatterNode) -> Findings:
    """The stored input type contradicts the type that the input receives.

    Why: one of the two is stale; tools that read the stale one see a different model.
    Applies to: every input of every operator. The type that a Const or Parameter declares is assumed to be
    correct. An error in ONNX models for inputs that a node computes, except in functions.
    Runtimes: OpenVINO computes the types and ignores the stored ones; onnxruntime refuses the model.
    Example: an input port I32 fed by a Const of i64.
    Fix: save the model again with the runtime that reads it.
    """
    for operand in scatter.operands():
        stored, actual = operand.stored.stored_type, operand.element_type
        if stored is not None and actual is not None and stored != actual:
            stored_name, actual_name = scatter.spec.show_type(stored), scatter.spec.show_type(actual)
            message = (
                f"the stored type of {operand.port.name} is {stored_name}, "
                f"but the input receives {actual_name}"
            )
            part = Part(Side.INPUT, operand.index, "type")
            is_refused = scatter.refuses_types and operand.value.constant is None
            yield Finding(
                message,
                operand.port.role,
                aspect="type",
                part=part,
                help=_HELP.format(actual_name),
                is_refused=is_refused,
            )
