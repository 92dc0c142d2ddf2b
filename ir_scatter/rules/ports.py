"""Rules about the number of inputs and outputs of a node."""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.diagnostics import Part, Side
from ir_scatter.core.words import counted
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule("SCT101", "missing-input", reads={Fact.OPERATOR, Fact.INPUTS})
def missing_input(scatter: ScatterNode) -> Findings:
    """A required input is missing.

    Why: the runtime refuses the model, usually with a message that names neither the input nor the node.
    Applies to: every operator; optional inputs (write_indices of TensorScatter) may be left out.
    Runtimes: OpenVINO: "node index is out of range" or "is inconsistent". onnxruntime: INVALID_GRAPH.
    Example: a ScatterUpdate with data, indices and updates: expected the fourth input, axis.
    Fix: connect the input; if an exporter omitted the axis, it is usually 0, but check that.
    """
    inputs = scatter.node.inputs
    for index, port in enumerate(scatter.spec.ports):
        if not port.is_optional and (index >= len(inputs) or not inputs[index].is_present):
            count = counted(len(inputs), "input")
            message = f"{port.name} is missing: {count}, expected {scatter.spec.input_names()}"
            help = f"connect {port.name} as input {index}"
            yield Finding(message, role=port.role, help=help)


@Rule("SCT102", "superfluous-input", reads={Fact.OPERATOR, Fact.INPUTS})
def superfluous_input(scatter: ScatterNode) -> Findings:
    """Too many inputs: the operator does not have this input.

    Why: the input has no effect, or the runtime refuses the model.
    Applies to: every operator.
    Runtimes: OpenVINO reports "node index is out of range" or ignores it; onnxruntime refuses the
    model.
    Example: a ScatterNDUpdate with a fourth input, an axis: ND operators do not have one.
    Fix: remove the input, or use the operator that has it.
    """
    expected = len(scatter.spec.ports)
    # an omitted input (empty name) is superfluous too
    for index in range(expected, len(scatter.node.inputs)):
        message = f"input {index} is superfluous, expected {scatter.spec.input_names()} only"
        help = f"remove input {index}"
        yield Finding(message, port=f"input {index}", port_index=index, help=help)


@Rule("SCT109", "outputs", reads={Fact.OPERATOR, Fact.INPUTS})
def outputs(scatter: ScatterNode) -> Findings:
    """Wrong number of outputs.

    Why: runtimes refuse the model, or ignore an output that another node may read.
    Applies to: every operator: each has exactly one output, with the shape and type of data.
    Runtimes: onnx.checker and onnxruntime refuse the model; OpenVINO fails if a layer reads the second one.
    Example: outputs ["y", "mask"] on ScatterElements.
    Fix: keep exactly one output.
    """
    count = len(scatter.node.outputs)
    if count != 1:
        message = f"the node has {count} outputs, expected 1: {scatter.spec.output}"
        help = f"keep the first output, {scatter.spec.output}" if count else ""
        yield Finding(message, part=Part(Side.OUTPUT, 1 if count else 0), help=help)
