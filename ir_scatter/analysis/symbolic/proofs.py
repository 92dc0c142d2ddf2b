"""Proofs about the indices of scatter nodes, for rules, defects and rewrites.

    proofs = proofs_of(scatter)
    proofs.range.status is ProofStatus.PROVEN        every index is in range, for all inputs

Dimensions of two inputs that have the same name in the file may differ: runtimes accept N = 3 and N = 5 in
one call. So proofs do not use the names. Only warnings about devices assume that such dimensions are equal
(`declared`), as the file declares it.
"""

from collections.abc import Sequence
from functools import cached_property

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.symbolic.givens import Given, read_givens
from ir_scatter.analysis.symbolic.linear import Linear, Symbol, SymbolKind
from ir_scatter.analysis.symbolic.targets import Breach, ProofStatus, TargetProofs, breach_of, prove_node
from ir_scatter.analysis.symbolic.walker import Walker
from ir_scatter.analysis.symbolic.words import as_texts
from ir_scatter.core.errors import BadGiven
from ir_scatter.core.model import Node
from ir_scatter.core.shapes import Bounds
from ir_scatter.core.words import listed


class IndexProofs:
    """The proofs about all scatter nodes of one model, each made once, under the user's conditions.

    Attributes:
        exact: the walker for which every dimension of every input has a size of its own.
        merging: the walker for which dimensions of the same name have the same size.
        givens: the user's conditions, from `facts.given`.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts, self.exact = facts, Walker(facts)
        self.givens: Sequence[Given] = read_givens(self.exact, facts.given)
        self._proofs: dict[Node, TargetProofs] = {}
        self._declared: dict[Node, TargetProofs] = {}

    @cached_property
    def merging(self) -> Walker:
        """The walker for which dimensions of the same name are equal.

        It is `exact` if a condition of the user excludes that.
        """
        walker = Walker(self._facts, merges_names=True)
        try:
            read_givens(walker, self._facts.given)
        except BadGiven:
            return self.exact
        return walker

    def of(self, scatter: ScatterNode) -> TargetProofs:
        """Return the proofs about a node, without assuming that sizes of two inputs are equal."""
        if scatter.node not in self._proofs:
            self._proofs[scatter.node] = prove_node(self.exact, scatter)
        return self._proofs[scatter.node]

    def declared(self, scatter: ScatterNode) -> TargetProofs:
        """Return the proofs about a node that may assume equal sizes for dimensions of the same name."""
        if scatter.node not in self._declared:
            proofs = self.of(scatter)
            is_open = not (proofs.range.is_proven and proofs.non_negative.is_proven)
            self._declared[scatter.node] = prove_node(self.merging, scatter) if is_open else proofs
        return self._declared[scatter.node]

    def admitted(self, scatter: ScatterNode) -> list[Linear]:
        """Return the conditions of a range proof that the user's conditions mention, but do not ensure."""
        proof = self.of(scatter).range
        if proof.status is not ProofStatus.CONDITIONAL:
            return []
        return [condition for condition in proof.conditions if is_admitted(condition, self.givens)]

    def breach(self, scatter: ScatterNode) -> Breach | None:
        """Return how inputs that satisfy the user's conditions break an index; None if these exclude it.

        None also if no conditions are given, or if all inputs break it.
        """
        proof, admitted = self.of(scatter).range, self.admitted(scatter)
        is_for_all = scatter.computed_outside is not None or scatter.out_of_range is not None
        if not self.givens or is_for_all or (not admitted and proof.status is not ProofStatus.REFUTED):
            return None
        breach = breach_of(self.exact, scatter, self.names)
        if proof.status is ProofStatus.REFUTED:
            return Breach(breach.text.removeprefix("may ") or "are out of range for all of them", True)
        if breach.text:
            return breach
        words = "are out of range for some of them" if breach.is_certain else "may be out of range"
        return Breach(f"{words}, expected {listed(as_texts(admitted, self.exact))}", breach.is_certain)

    @cached_property
    def names(self) -> dict[Symbol, str]:
        """The names of the dimensions of inputs, by the symbol of their size."""
        return {
            Symbol(SymbolKind.SIZE, value, axis): dim.symbol
            for value in self.exact.inputs
            for axis, dim in enumerate(self._facts.shape(value) or ())
            if isinstance(dim, Bounds) and dim.symbol
        }

    def status_of(self, scatter: ScatterNode) -> ProofStatus:
        """Return the status of the proof that the indices of a node are in range."""
        return self.of(scatter).range.status


def is_admitted(condition: Linear, givens: Sequence[Given]) -> bool:
    """Return whether the user's conditions mention an input or size in `condition`, but do not ensure it."""
    kinds = {(symbol.value, symbol.kind is SymbolKind.SIZE) for symbol in leaves(condition)}
    symbols = [symbol for given in givens for symbol in given.symbols()]
    mentioned = {(symbol.value, symbol.kind is SymbolKind.SIZE) for symbol in symbols}
    return bool(kinds & mentioned)


def leaves(condition: Linear) -> list[Symbol]:
    """Return the symbols of an expression; for a quotient those of its dividend."""
    symbols = []
    for symbol in condition.symbols():
        symbols += [symbol] if symbol.dividend is None else leaves(symbol.dividend)
    return symbols


def proofs_of(scatter: ScatterNode, *, as_declared: bool = False) -> TargetProofs:
    """Return the proofs about the indices of a node.

    With `as_declared`, dimensions of the same name are assumed to have the same size.
    """
    proofs = scatter.facts.result_of(IndexProofs)
    return proofs.declared(scatter) if as_declared else proofs.of(scatter)
