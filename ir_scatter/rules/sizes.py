"""Which sizes dimensions must have that the model leaves open."""

from dataclasses import replace

from ir_scatter.analysis.requirements import Requirement, fixed_sizes, least_sizes
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.base import Finding, Findings, Rule

_OF_SHAPES = frozenset({Fact.OPERATOR, Fact.ATTRIBUTES, Fact.AXIS, Fact.INPUTS, Fact.SHAPES, Fact.CONSTANCY})


def _finding(requirement: Requirement) -> Finding:
    message = f"{requirement}: {requirement.reason}"
    return Finding(message, role=requirement.role, aspect="shape", dim=requirement.dim)


@Rule("SCT215", "open-dimension-fixed", Severity.NOTE, reads=_OF_SHAPES)
def open_dimension_fixed(scatter: ScatterNode) -> Findings:
    """A dimension that the model leaves open can have one size only.

    Why: the model was exported for one batch or one length: it promises any size, and fails at another one.
    Applies to: updates, indices and data of every operator, where the formula of updates ties an open
    dimension with a symbol to a static one. In an IR, which has no symbols, only open dimensions of updates
    that constant indices fix. An error where the same symbol must be two sizes, or where an earlier node
    demands another size of the same dimension of the same value.
    Runtimes: they load the model, and refuse other sizes when it runs.
    Example: ScatterElements with indices [1, 1] and updates [batch, 1]: batch must be 1.
    Fix: export the static input with an open dimension too, or fix the open one.
    """
    sizes: dict[str, Requirement] = {}
    for requirement in fixed_sizes(scatter):
        first = sizes.setdefault(requirement.name, requirement)
        if first is requirement:
            yield _finding(requirement)
        elif first.size != requirement.size:
            message = f"{requirement.name} must be {first.size} and {requirement.size}: {requirement.reason}"
            yield replace(_finding(requirement), message=message, is_refused=True)


@Rule("SCT308", "least-size", Severity.NOTE, reads=_OF_SHAPES | {Fact.INDEX_FAULTS})
def least_size(scatter: ScatterNode) -> Findings:
    """Constant indices name positions that data may not have, as the model leaves its size open.

    Why: the indices were exported for one size: the model promises any size, and fails at a smaller one.
    Applies to: every operator where the constant indices count on an open dimension (TensorScatter in
    linear mode). In an ONNX model the dimension must have a symbol. An error where the same symbol must be
    smaller for updates, or where an earlier node demands a smaller size of the same dimension of the same
    value.
    Runtimes: see SCT302; what they do is known when the model runs.
    Example: data [N, 5] and indices 0 to 8: N must be 9 or more.
    Fix: compute the indices from the shape of data, or fix the size of the dimension.
    """
    sizes = {one.name: one for one in fixed_sizes(scatter)}
    for requirement in least_sizes(scatter):
        exact, found = sizes.get(requirement.name), _finding(requirement)
        if exact is not None and exact.size < requirement.size:
            message = f"{requirement}, as {requirement.reason}, and {exact.size}, as {exact.reason}"
            found = replace(found, message=message, is_refused=True)
        yield found
