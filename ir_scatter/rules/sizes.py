"""Rules about dynamic dimensions that have only one legal size, or a least one."""

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
    """A dynamic dimension can have only one size.

    Why: the model was exported for one batch size or length. It declares any size, but fails with all others.
    Applies to: updates, indices and data of every operator, if the shape formula of updates equates a dynamic
    dimension with a symbol and a static one. In an IR, which has no symbols, only dynamic dimensions of
    updates that constant indices determine. An error if a symbol must have two sizes, or if an earlier node
    requires another size of the same dimension of the same value.
    Runtimes: they load the model, and refuse other sizes at inference.
    Example: ScatterElements with indices [1, 1] and updates [batch, 1]: batch must be 1.
    Fix: export the static input with a dynamic dimension too, or make the dynamic one static.
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
    """A dynamic dimension of data may be too small for constant indices.

    Why: the indices were exported for one size. The model declares any size, but fails with a smaller one.
    Applies to: every operator (TensorScatter in linear mode), if a dynamic dimension limits constant indices.
    In an ONNX model the dimension must have a symbol. An error if updates require a smaller size of the same
    symbol, or if an earlier node requires a smaller size of the same dimension of the same value.
    Runtimes: see SCT302, at inference.
    Example: data [N, 5] and indices 0 to 8: N must be 9 or more.
    Fix: compute the indices from the shape of data, or make the dimension static.
    """
    exact_sizes = {exact.name: exact for exact in fixed_sizes(scatter)}
    for requirement in least_sizes(scatter):
        exact, finding = exact_sizes.get(requirement.name), _finding(requirement)
        if exact is not None and exact.size < requirement.size:
            message = f"{requirement}, as {requirement.reason}, and {exact.size}, as {exact.reason}"
            finding = replace(finding, message=message, is_refused=True)
        yield finding
