"""Symbolic facts about the integers in a tensor, for every legal input of a model.

linear     linear expressions over sizes and input elements, and what follows from facts about them
numbers    the domain: bounds by cases, distinct elements along axes, distinct index tuples
walker     the facts of one value, on demand, through bodies and functions
rules      how each operator makes the facts of its outputs from those of its inputs
targets    whether the indices of a scatter node are in range, and its targets distinct
givens     what a user says of inputs, read from text
proofs     the proofs of all nodes of a model, each made once
feeds      whether the arrays of one run satisfy what is given or required

The functions below are the way in for rules, defects and rewrites. They import the modules when they are
called, as most models have no indices that need a proof.
"""

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import ScatterNode, scatter_nodes
from ir_scatter.core.model import Model


def is_always_in_range(scatter: ScatterNode) -> bool:
    """Return whether every index of a node is proven to be in range, for all inputs that are given."""
    from ir_scatter.analysis.symbolic.proofs import proofs_of

    return proofs_of(scatter).range.is_proven


def is_never_negative(scatter: ScatterNode) -> bool:
    """Return whether every index of a node is proven to be at least 0."""
    from ir_scatter.analysis.symbolic.proofs import proofs_of

    return proofs_of(scatter).non_negative.is_proven


def is_never_repeated(scatter: ScatterNode) -> bool:
    """Return whether the targets of a node are proven to be distinct."""
    from ir_scatter.analysis.symbolic.proofs import proofs_of

    return proofs_of(scatter).distinct.is_proven


def breach_of_range(scatter: ScatterNode) -> str:
    """Return how indices leave their range for inputs that are given; "" if what is given excludes that.

    "reach 31, expected 0 to 15", or with sizes that are unknown "may be out of range, expected p <= n - 1".
    Only conditions count that something is given about.
    """
    from ir_scatter.analysis.symbolic.proofs import IndexProofs
    from ir_scatter.analysis.symbolic.targets import reach_of
    from ir_scatter.analysis.symbolic.words import as_texts
    from ir_scatter.core.words import listed

    proofs = scatter.facts.result_of(IndexProofs)
    admitted = proofs.admitted(scatter)
    if not admitted:
        return ""
    reach = reach_of(proofs.merging, scatter)
    return reach or f"may be out of range, expected {listed(as_texts(admitted, proofs.merging))}"


def range_conditions(scatter: ScatterNode) -> list[str]:
    """Return what inputs must satisfy so that the indices of a node are in range; empty if unknown."""
    from ir_scatter.analysis.symbolic.proofs import IndexProofs
    from ir_scatter.analysis.symbolic.words import as_texts

    proofs = scatter.facts.result_of(IndexProofs)
    return as_texts(proofs.of(scatter).range.conditions, proofs.merging)


def proof_in_words(scatter: ScatterNode) -> str:
    """Return what is known of the range of a node's indices: "in range if position in 0..15"."""
    from ir_scatter.analysis.symbolic.proofs import IndexProofs
    from ir_scatter.analysis.symbolic.targets import ProofStatus

    status = scatter.facts.result_of(IndexProofs).status_of(scatter)
    if status is ProofStatus.CONDITIONAL:
        return f"in range if {' and '.join(range_conditions(scatter))}"
    if status is ProofStatus.UNKNOWN:
        return "range unknown"
    return "in range" if status is ProofStatus.PROVEN else "out of range"


def count_proofs(model: Model, facts: Facts) -> dict[str, int]:
    """Return the number of scatter nodes by how far it is known that their indices are in range.

    Nodes that have no specification do not count.
    """
    from ir_scatter.analysis.symbolic.proofs import IndexProofs
    from ir_scatter.analysis.symbolic.targets import ProofStatus

    counts = dict.fromkeys((status.value for status in ProofStatus), 0)
    proofs = facts.result_of(IndexProofs)
    for scatter in scatter_nodes(model, facts):
        if scatter.lookup.spec is not None:
            counts[proofs.status_of(scatter).value] += 1
    return counts


def demand_givens(facts: Facts) -> None:
    """Raise BadGiven for a text that cannot be read, names no input, or cannot hold."""
    from ir_scatter.analysis.symbolic.proofs import IndexProofs

    facts.result_of(IndexProofs)
