"""One scatter node on the inputs that its runner gave it, held against NumPy on those same inputs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ir_scatter.compare.tensors import measure
from ir_scatter.compare.tolerances import FRACTION_BITS, PRECISION_BITS, Tolerances
from ir_scatter.compare.verdicts import Comparison, Guarded, Level
from ir_scatter.errors import Error, IllegalCase, IllegalIndex
from ir_scatter.evaluate import evaluate_detailed
from ir_scatter.facts import Facts
from ir_scatter.graphs.nodes import arguments_of, by_role
from ir_scatter.model import Model, Node
from ir_scatter.ops import find, scatter_types
from ir_scatter.runners.outcome import Execution, Tapped
from ir_scatter.site import Site

if TYPE_CHECKING:
    from ir_scatter.constants import Array

REFERENCE = "numpy"


@dataclass(frozen=True, slots=True, eq=False)
class TappedNode:
    """A scatter node that can be judged.

    Attributes:
        node: the node.
        site: seen by role.
    """

    node: Node
    site: Site

    @property
    def operator(self) -> str:
        """Return type and version."""
        return str(self.site.spec.key)


def scatter_nodes(model: Model) -> Iterator[TappedNode]:
    """Yield the scatter nodes of a model whose opset contains them, bodies included."""
    facts = Facts()
    for node in model.walk(scatter_types(model.domain)):
        lookup = find(node.domain, node.type, node.opset)
        if lookup is not None and lookup.spec is not None:
            yield TappedNode(node, Site(node, lookup, facts))


class NodeJudge:
    """Judges what came out of taps."""

    def __init__(self, nodes: Mapping[str, TappedNode], tolerances: Tolerances) -> None:
        """Make a judge.

        Args:
            nodes: by scope.
            tolerances: how far elements may be apart.
        """
        self.nodes, self.tolerances = nodes, tolerances
        self.contested: set[str] = set()

    def judge(
        self, tapped: Tapped, runner: str, case: int, precision: str
    ) -> "Iterator[Comparison | Guarded]":
        """Yield what is to be said of every execution of a node."""
        known = self.nodes[tapped.tap.scope]
        for execution in tapped.executions:
            yield from self._execution(known, execution, runner, case, precision)

    def _execution(
        self, known: TappedNode, execution: Execution, runner: str, case: int, precision: str
    ) -> "Iterator[Comparison | Guarded]":
        scope = known.node.scope
        operands = by_role(known.site.lookup, execution.inputs)
        operator, arguments = arguments_of(known.site, operands)
        try:
            expected = evaluate_detailed(operator, **arguments)
        except Error as error:
            yield Guarded(runner, scope, known.operator, case, _kind(error), str(error))
            return
        if expected.contested.any():
            self.contested.add(scope)
            yield _repeated(runner, known, case, int(expected.contested.sum()), expected.values.size)
        got = execution.output
        is_comparable = got.shape == expected.values.shape and got.dtype == expected.values.dtype
        names = (known.node.outputs[0].name if known.node.outputs else None, known.node.name, scope)
        found = measure(
            got,
            expected.values,
            self.tolerances.find(names, expected.values, precision, is_node=True),
            bound=2 * expected.rounding_bound * _coarser(expected.values, precision),
            contested=expected.allows(got) if is_comparable else None,
        )
        yield Comparison(
            Level.NODE,
            scope,
            names[0] or known.node.name,
            case,
            runner,
            REFERENCE,
            found,
            execution.place,
            known.operator,
            got,
            expected.values,
            execution.inputs,
        )


def _repeated(runner: str, known: TappedNode, case: int, count: int, total: int) -> Guarded:
    message = f"several updates meet in {count} of {total} elements without a reduction"
    return Guarded(runner, known.node.scope, known.operator, case, "repeated", message, is_illegal=False)


def _kind(error: Error) -> str:
    """Return in a word what is wrong with indices, "illegal" if it is something else."""
    if isinstance(error, IllegalIndex):
        return "negative" if error.code == "SCT303" else "out-of-range"
    return "illegal" if isinstance(error, IllegalCase) else "unknown"


def _coarser(array: "Array", precision: str) -> float:
    """Return how much coarser the precision is than the element type."""
    bits = FRACTION_BITS.get(array.dtype.name)
    if bits is None:
        return 1.0
    return float(np.exp2(max(bits - PRECISION_BITS.get(precision, bits), 0)))
