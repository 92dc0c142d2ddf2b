"""Proofs about the indices of scatter nodes, for rules, defects and rewrites.

    proofs = proofs_of(scatter)
    proofs.range.status is ProofStatus.PROVEN        every index is in range, for all inputs

Where dimensions of inputs have one name in the file, it is taken at its word: the model declares that their
sizes are equal. `make_contract` says where a proof needs that.
"""

from collections.abc import Sequence

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.symbolic.givens import Given, read_givens
from ir_scatter.analysis.symbolic.linear import Linear, Symbol, SymbolKind
from ir_scatter.analysis.symbolic.targets import ProofStatus, TargetProofs, prove_node
from ir_scatter.analysis.symbolic.walker import Walker
from ir_scatter.core.model import Node


class IndexProofs:
    """The proofs of the nodes of one model, each made once, with what `facts.given` says of inputs.

    Attributes:
        exact: takes every dimension of every input for a size of its own.
        merging: takes dimensions of inputs for equal that have one name.
        givens: what is given.
    """

    def __init__(self, facts: Facts) -> None:
        self.exact, self.merging = Walker(facts), Walker(facts, merges_names=True)
        self.givens: Sequence[Given] = read_givens(self.exact, facts.given)
        read_givens(self.merging, facts.given)
        self._proofs: dict[Node, TargetProofs] = {}

    def of(self, scatter: ScatterNode) -> TargetProofs:
        """Return the proofs of a node, with dimensions of one name taken for equal."""
        if scatter.node not in self._proofs:
            self._proofs[scatter.node] = prove_node(self.merging, scatter)
        return self._proofs[scatter.node]

    def admitted(self, scatter: ScatterNode) -> list[Linear]:
        """Return conditions of a node's range that something is given about, and that it does not ensure."""
        proof = self.of(scatter).range
        if proof.status is not ProofStatus.CONDITIONAL:
            return []
        return [condition for condition in proof.conditions if is_admitted(condition, self.givens)]

    def status_of(self, scatter: ScatterNode) -> ProofStatus:
        """Return how far it is known that the indices of a node are in range."""
        return self.of(scatter).range.status


def is_admitted(condition: Linear, givens: Sequence[Given]) -> bool:
    """Return whether something is given about the elements or sizes of a condition, and leaves it open."""
    kinds = {(symbol.value, symbol.kind is SymbolKind.SIZE) for symbol in leaves(condition)}
    symbols = [symbol for given in givens for symbol in given.symbols()]
    mentioned = {(symbol.value, symbol.kind is SymbolKind.SIZE) for symbol in symbols}
    return bool(kinds & mentioned)


def leaves(condition: Linear) -> list[Symbol]:
    """Return the symbols of an expression; those of the dividend instead of a quotient."""
    symbols = []
    for symbol in condition.symbols():
        symbols += [symbol] if symbol.dividend is None else leaves(symbol.dividend)
    return symbols


def proofs_of(scatter: ScatterNode) -> TargetProofs:
    """Return what is proven of the indices of a node; see `IndexProofs`."""
    return scatter.facts.result_of(IndexProofs).of(scatter)
