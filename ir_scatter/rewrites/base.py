"""What a rewrite is, and the scatter node as it sees it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from ir_scatter.analysis.conditions import Condition, Proof, Verdict, judge
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import REMEMBERED, SIGNATURE, Fact
from ir_scatter.core.fragment import Fragment, NewNode
from ir_scatter.core.model import Value
from ir_scatter.core.shapes import Shape, agree_dims
from ir_scatter.ops.spec import OpSpec, Reduction, Role
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.refusals import Refusal

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

BY_SIGNATURE = SIGNATURE | REMEMBERED
"""What a rewrite may read whose new form serves other nodes as well."""


@dataclass(frozen=True, slots=True)
class Promises:
    """What the user vouches for: conditions, and whether negative indices may reach what forbids them."""

    conditions: frozenset[Condition] = frozenset()
    keeps_negative: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One scatter node, and what is known and promised of it.

    What is asked here of the numbers of its indices is remembered, so that it is known which other
    nodes the new form is right for: the conditions that were `judged`, with the first answer, and the inputs
    whose numbers, not only what holds for them, the new form is made of. It has `relied_on` promises.
    """

    scatter: ScatterNode
    promises: Promises = Promises()
    relied_on: set[Condition] = field(default_factory=set)
    judged: dict[Condition, Proof] = field(default_factory=dict)
    numbers_of: set[Role] = field(default_factory=set)
    _proofs: dict[Condition, Proof] = field(default_factory=dict)

    def proof(self, condition: Condition) -> Proof:
        """Return what the file says of a condition."""
        if condition not in self._proofs:
            self._proofs[condition] = judge(condition, self.scatter)
        proof = self._proofs[condition]
        self.judged.setdefault(condition, proof)
        return proof

    def holds(self, condition: Condition) -> bool:
        """Tell whether a condition is proven, or unknown and promised."""
        verdict = self.proof(condition).verdict
        if verdict is Verdict.UNKNOWN and condition in self.promises.conditions:
            self.relied_on.add(condition)
            return True
        return verdict is Verdict.PROVEN

    def index_numbers(self) -> "Array | None":
        """Return the numbers of constant indices; what is made of them is right for no others."""
        array = self.scatter.index_array
        if array is not None:
            self.numbers_of.add(Role.INDICES)
        return array

    @property
    def may_be_negative(self) -> bool:
        """Tell whether an index may count from the end."""
        return not self.holds(Condition.NON_NEGATIVE)

    @property
    def reduction(self) -> Reduction:
        assert self.scatter.reduction is not None
        return self.scatter.reduction

    @property
    def keeps_initial(self) -> bool:
        """Tell whether the old value takes part in the reduction."""
        is_dropped = self.scatter.attribute("use_init_val") is False and self.reduction is not Reduction.NONE
        return not is_dropped

    @property
    def data(self) -> Value:
        return self._value(Role.DATA)

    @property
    def indices(self) -> Value:
        return self._value(Role.INDICES)

    @property
    def updates(self) -> Value:
        return self._value(Role.UPDATES)

    def _value(self, role: Role) -> Value:
        operand = self.scatter.operand(role)
        assert operand is not None
        return operand.value

    @property
    def given_axis(self) -> Value | int:
        """The axis as the node has it: an input, or else the number that is written."""
        operand = self.scatter.operand(Role.AXIS)
        return operand.value if operand else self.scatter.written_axis or 0

    @property
    def depth(self) -> int | None:
        """How many dimensions of data each tuple counts on; told by the ranks if nothing else does."""
        shapes = [value.shape for value in (self.data, self.indices, self.updates)]
        if self.scatter.depth is not None or None in shapes:
            return self.scatter.depth
        data, indices, updates = (len(shape or ()) for shape in shapes)
        is_one = bool(updates) and all(agree_dims(dim, 1) for dim in self.updates.shape or ())
        if indices == 1 and is_one and self.scatter.spec.scalar_updates:
            return None  # one tuple of any length may name one element
        depth = indices - 1 + data - updates
        return depth if 0 <= depth <= data else None


Build: TypeAlias = Callable[[View, Builder, OpSpec], Value | Refusal]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """An edge between two rows of the table of operators.

    Attributes:
        target: the row of the scatter node that comes instead.
        build: makes the new nodes and returns the value that replaces the output, or says why not.
        carries: attributes of the source that it takes care of; any other one at a value that is not
            its default is a refusal. None where all stay as they are written.
        requires: the conditions under which both forms are equal, for one node.
        is_done: whether a node needs no rewriting, where source and target are the same row.
        reads: all that build, requires and is_done look at. Within `BY_SIGNATURE`, what it makes of one node
            serves all nodes of whom the same holds; with more, each is handled for itself.
        conditions: what the table of routes prints.
    """

    name: str
    source: OpSpec
    target: OpSpec
    build: Build
    carries: frozenset[str] | None = frozenset()
    requires: Callable[[View, OpSpec], tuple[Condition, ...]] = lambda _view, _target: ()
    is_done: Callable[[View, OpSpec], bool] = lambda _view, _target: False
    reads: frozenset[Fact] = BY_SIGNATURE
    conditions: str = ""


Family: TypeAlias = tuple[OpSpec, ...]
"""All versions of an operator, oldest first."""


def between(
    name: str, families: Iterable[tuple[Family, Family]], build: Build, **more: Any
) -> tuple[Rewrite, ...]:
    """Return a rewrite of each version of some operators to each version of what they become, newest first.

    `more` are the other fields of a `Rewrite`.
    """
    pairs = [(old, new) for olds, news in families for old in reversed(olds) for new in reversed(news)]
    is_to_itself = "is_done" in more
    return tuple(
        Rewrite(name, old, new, build, **more) for old, new in pairs if old is not new or is_to_itself
    )


def fragment_like(scatter: ScatterNode, make: Callable[[int, Value], Value], shape: Shape) -> Fragment:
    """Return a node as a fragment, each value of its inputs made anew, and this shape of its output."""
    node, data, made = scatter.node, scatter.data, dict[int, Value]()
    values = [port.value for port in node.inputs]
    for number, value in enumerate(values):
        if value is not None and id(value) not in made:
            made[id(value)] = make(number, value)
    given = [made.get(id(value)) for value in values]
    output = Value("output", data.element_type if data else None, shape)
    assert node.opset is not None
    new = NewNode("scatter", node.domain, node.type, node.opset, tuple(given), node.attributes, output)
    return Fragment(given, [new])
