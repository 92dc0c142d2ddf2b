"""One scatter node as a rewrite sees it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ir_scatter.core.model import Value
from ir_scatter.ops.spec import Reduction, Role
from ir_scatter.rewrites.conditions import Condition, Proof, Verdict, judge

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import ScatterNode
    from ir_scatter.core.tensors import Array


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One scatter node, and what is known and promised of it.

    What is asked here of the numbers of its indices is remembered, so that it is known which other
    nodes the new form is right for.

    Attributes:
        site: the node.
        promises: conditions that the user vouches for.
        keeps_negative: whether the user vouches for negative indices where the target forbids them.
        relied_on: promises that something was built on.
        judged: the conditions that anybody has asked for, and what was answered first.
        numbers_of: inputs whose numbers, not only what holds for them, the rewritten form is made of.
    """

    site: "ScatterNode"
    promises: frozenset[Condition] = frozenset()
    keeps_negative: bool = False
    relied_on: set[Condition] = field(default_factory=set)
    judged: dict[Condition, Proof] = field(default_factory=dict)
    numbers_of: set[Role] = field(default_factory=set)
    _proofs: dict[Condition, Proof] = field(default_factory=dict)

    def proof(self, condition: Condition) -> Proof:
        """Return what the file says of a condition."""
        if condition not in self._proofs:
            self._proofs[condition] = judge(condition, self.site)
        proof = self._proofs[condition]
        self.judged.setdefault(condition, proof)
        return proof

    def holds(self, condition: Condition) -> bool:
        """Tell whether a condition is proven, or unknown and promised."""
        verdict = self.proof(condition).verdict
        if verdict is Verdict.UNKNOWN and condition in self.promises:
            self.relied_on.add(condition)
            return True
        return verdict is Verdict.PROVEN

    def take_for_granted(self, condition: Condition) -> None:
        """Rely on a condition that nobody has to promise, and say so unless it is proven."""
        if self.proof(condition).verdict is not Verdict.PROVEN:
            self.relied_on.add(condition)

    def index_numbers(self) -> "Array | None":
        """Return the numbers of constant indices; what is made of them is right for no others."""
        array = self.site.index_array
        if array is not None:
            self.numbers_of.add(Role.INDICES)
        return array

    @property
    def may_be_negative(self) -> bool:
        """Tell whether an index may count from the end."""
        return not self.holds(Condition.NON_NEGATIVE)

    @property
    def reduction(self) -> Reduction:
        """Return how updates meet old values; a node with a word that means nothing is not rewritten."""
        assert self.site.reduction is not None
        return self.site.reduction

    @property
    def keeps_initial(self) -> bool:
        """Tell whether the old value takes part in the reduction."""
        is_dropped = self.site.attribute("use_init_val") is False and self.reduction is not Reduction.NONE
        return not is_dropped

    @property
    def data(self) -> Value:
        """Return what is written to."""
        assert self.site.data is not None
        return self.site.data.value

    @property
    def indices(self) -> Value:
        """Return where is written."""
        assert self.site.indices is not None
        return self.site.indices.value

    @property
    def updates(self) -> Value:
        """Return what is written."""
        assert self.site.updates is not None
        return self.site.updates.value

    @property
    def depth(self) -> int | None:
        """Return how many dimensions of data each tuple counts on; told by the ranks if nothing else does."""
        shapes = [value.shape for value in (self.data, self.indices, self.updates)]
        if self.site.depth is not None or None in shapes:
            return self.site.depth
        data, indices, updates = (len(shape or ()) for shape in shapes)
        if indices == 1 and updates and self.site.spec.scalar_updates:
            return None  # one tuple of any length may name one element
        depth = indices - 1 + data - updates
        return depth if 0 <= depth <= data else None
