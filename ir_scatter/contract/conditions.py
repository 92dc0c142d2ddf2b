"""One condition of a contract, with the node that requires it."""

from dataclasses import dataclass

from ir_scatter.analysis.symbolic.linear import Linear, SymbolKind
from ir_scatter.analysis.symbolic.proofs import leaves
from ir_scatter.analysis.symbolic.walker import Walker
from ir_scatter.analysis.symbolic.words import as_texts, input_of


@dataclass(frozen=True, eq=False)
class ContractCondition:
    """One condition of one node: an expression over inputs that must be at least 0.

    Attributes:
        condition: the expression.
        walker: the walker that created its symbols.
        node: the scope of the scatter node.
        inputs: the names of the inputs whose elements are in it; empty for a condition on sizes alone.
    """

    condition: Linear
    walker: Walker
    node: str
    inputs: tuple[str, ...]

    @classmethod
    def of(cls, condition: Linear, walker: Walker, node: str) -> "ContractCondition":
        names: dict[str, None] = {}
        for symbol in leaves(condition):
            value = input_of(symbol, walker)
            if value is not None and symbol.kind is not SymbolKind.SIZE:
                names[walker.name(value)] = None
        return cls(condition, walker, node, tuple(names))

    @property
    def text(self) -> str:
        return as_texts([self.condition], self.walker)[0]
