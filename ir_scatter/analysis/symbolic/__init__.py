"""Symbolic facts about the integers in tensors, valid for every legal input of a model.

    linear     linear expressions over sizes and input elements, and proofs of inequalities between them
    numbers    the domain: bounds by cases, distinct elements along axes, distinct index tuples
    walker     computes the facts of a value on demand, through bodies and functions
    rules      compute the facts of each operator's outputs from those of its inputs
    targets    proves that the indices of a scatter node are in range, and its targets distinct
    givens     parses the conditions that a user gives for inputs
    proofs     the proofs about all nodes of a model, each made once
    feeds      checks the arrays of one run against conditions

Rules, defects and rewrites use only the functions below. These import the modules when they are called, as
most models have no indices that need a proof.

Equal names of dimensions do not make the sizes of two inputs equal. Only warnings about devices assume that
(`as_declared`), see `proofs`.
"""

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import ScatterNode, scatter_nodes
from ir_scatter.core.model import Model


def is_always_in_range(scatter: ScatterNode, *, as_declared: bool = False) -> bool:
    """Return whether every index of a node is proven to be in range, under the user's conditions.

    With `as_declared`, dimensions of the same name are assumed to have the same size.
    """
    from ir_scatter.analysis.symbolic.proofs import proofs_of

    return proofs_of(scatter, as_declared=as_declared).range.is_proven


def is_never_negative(scatter: ScatterNode, *, as_declared: bool = False) -> bool:
    """Return whether every index of a node is proven to be at least 0.

    With `as_declared`, dimensions of the same name are assumed to have the same size.
    """
    from ir_scatter.analysis.symbolic.proofs import proofs_of

    return proofs_of(scatter, as_declared=as_declared).non_negative.is_proven


def is_never_repeated(scatter: ScatterNode) -> bool:
    """Return whether the targets of a node are proven to be distinct."""
    from ir_scatter.analysis.symbolic.proofs import proofs_of

    return proofs_of(scatter).distinct.is_proven


def has_equal_sizes(scatter: ScatterNode, axis: int) -> bool:
    """Return whether data and indices of a node are proven to have the same size on an axis."""
    from ir_scatter.analysis.symbolic.proofs import IndexProofs

    walker = scatter.facts.result_of(IndexProofs).exact
    operands = scatter.data, scatter.indices
    shapes = [None if each is None else walker.dims(each.value) for each in operands]
    sizes = [shape[axis] for shape in shapes if shape is not None and axis < len(shape)]
    return len(sizes) == len(operands) and sizes[0] == sizes[1]


def breach_of_range(scatter: ScatterNode) -> tuple[str, bool]:
    """Return how indices leave their range under the user's conditions, and whether some inputs surely do so.

    The text is "reach 31, expected 0 to 15", or for unknown sizes "may be out of range, expected p <= n - 1".
    It is "" if the user's conditions exclude it, or mention none of the inputs concerned.
    """
    from ir_scatter.analysis.symbolic.proofs import IndexProofs

    breach = scatter.facts.result_of(IndexProofs).breach(scatter)
    return ("", False) if breach is None else (breach.text, breach.is_certain)


def range_conditions(scatter: ScatterNode, *, as_declared: bool = False) -> list[str]:
    """Return the conditions on inputs under which the indices of a node are in range; [] if unknown.

    With `as_declared`, dimensions of the same name may be assumed to have the same size; the last text then
    says so.
    """
    from ir_scatter.analysis.symbolic.proofs import IndexProofs
    from ir_scatter.analysis.symbolic.words import as_texts

    proofs = scatter.facts.result_of(IndexProofs)
    conditions = proofs.of(scatter).range.conditions
    if conditions or not as_declared:
        return as_texts(conditions, proofs.exact)
    declared = as_texts(proofs.declared(scatter).range.conditions, proofs.merging)
    return [*declared, "dimensions of one name have one size"] if declared else []


def proof_in_words(scatter: ScatterNode) -> str:
    """Return the range proof of a node's indices in words: "in range if position in 0..15"."""
    from ir_scatter.analysis.symbolic.proofs import IndexProofs
    from ir_scatter.analysis.symbolic.targets import ProofStatus

    status = scatter.facts.result_of(IndexProofs).status_of(scatter)
    if status is ProofStatus.CONDITIONAL:
        return f"in range if {' and '.join(range_conditions(scatter))}"
    if status is ProofStatus.UNKNOWN:
        return "range unknown"
    return "in range" if status is ProofStatus.PROVEN else "out of range"


def count_proofs(model: Model, facts: Facts) -> dict[str, int]:
    """Return the number of scatter nodes for each status of their range proof.

    Nodes without a specification do not count.
    """
    from ir_scatter.analysis.symbolic.proofs import IndexProofs
    from ir_scatter.analysis.symbolic.targets import ProofStatus

    counts = dict.fromkeys((status.value for status in ProofStatus), 0)
    proofs = facts.result_of(IndexProofs)
    for scatter in scatter_nodes(model, facts):
        if scatter.lookup.spec is not None:
            counts[proofs.status_of(scatter).value] += 1
    return counts


def count_declared(model: Model, facts: Facts) -> int:
    """Return the number of nodes whose range proof needs that dimensions of the same name are equal."""
    from ir_scatter.analysis.symbolic.proofs import IndexProofs

    proofs = facts.result_of(IndexProofs)
    return sum(
        proofs.declared(scatter).range.is_proven and not proofs.of(scatter).range.is_proven
        for scatter in scatter_nodes(model, facts)
        if scatter.lookup.spec is not None
    )


def demand_givens(facts: Facts) -> None:
    """Raise BadGiven if a condition of the user cannot be read, names no input, or cannot hold."""
    from ir_scatter.analysis.symbolic.proofs import IndexProofs

    facts.result_of(IndexProofs)
