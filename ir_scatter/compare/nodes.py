"""One scatter node on the inputs that its runner gave it, held against NumPy on those same inputs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.compare.tensors import are_equal, measure
from ir_scatter.compare.tolerances import FRACTION_BITS, Tolerances, computed_bits, default_tolerance
from ir_scatter.compare.verdicts import Comparison, Guarded, Level, Measure, Verdict
from ir_scatter.core.errors import Error, IllegalCase, IllegalIndex
from ir_scatter.core.model import Model, Node
from ir_scatter.core.shapes import counted
from ir_scatter.evaluate import evaluate, evaluate_detailed
from ir_scatter.evaluate.model import arguments_of, by_role
from ir_scatter.ops.lookup import find, scatter_types
from ir_scatter.ops.spec import Reduction
from ir_scatter.runners.base import Execution, Tap, Tapped, tap_of

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array

REFERENCE = "numpy"


@dataclass(frozen=True, slots=True, eq=False)
class TappedNode:
    """A scatter node that can be judged.

    Attributes:
        node: the node.
        site: seen by role.
    """

    node: Node
    site: ScatterNode

    @property
    def operator(self) -> str:
        """Return type and version."""
        return str(self.site.spec.key)

    @property
    def output(self) -> str:
        """Return the name of the output."""
        named = self.node.outputs[0].name if self.node.outputs else ""
        return named or self.node.name

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that a tolerance may be given for."""
        return self.output, self.node.name, self.node.scope


@dataclass(frozen=True, slots=True)
class Unjudged:
    """An execution that NumPy has nothing to say of, and why."""

    reason: str
    node: str
    tensor: str
    operator: str
    execution: Execution


def scatter_nodes(model: Model) -> Iterator[TappedNode]:
    """Yield the scatter nodes of a model whose opset contains them, bodies included."""
    facts = Facts()
    for node in model.walk(scatter_types(model.domain)):
        lookup = find(node.domain, node.type, node.opset)
        if lookup is not None and lookup.spec is not None:
            yield TappedNode(node, ScatterNode(node, lookup, facts))


def nodes_by_tap(model: Model) -> dict[Tap, TappedNode]:
    """Return the nodes that can be judged by what asks for them."""
    return {tap_of(one.node, model.format): one for one in scatter_nodes(model)}


class NodeJudge:
    """Judges what came out of taps.

    Attributes:
        contested: by the number of the inputs, the nodes whose result the document leaves open: where
            that is in each of their computations.
    """

    def __init__(self, nodes: Mapping[Tap, TappedNode], tolerances: Tolerances) -> None:
        """Make a judge.

        Args:
            nodes: by what asks for them.
            tolerances: how far elements may be apart.
        """
        self._nodes = {(tap.scope, tap.output, tap.callers): one for tap, one in nodes.items()}
        self._tolerances = tolerances
        self.contested: dict[int, dict[str, list[Array]]] = {}

    def knows(self, tap: Tap) -> bool:
        """Tell whether the model has the node."""
        return (tap.scope, tap.output, tap.callers) in self._nodes

    def judge(
        self, tapped: Tapped, runner: str, case: int, precision: str
    ) -> "Iterator[Comparison | Guarded | Unjudged]":
        """Yield what is to be said of every execution of a node.

        Args:
            tapped: what came out of it.
            runner: who computed it.
            case: the number of the inputs.
            precision: what it was computed in.
        """
        known = self._nodes[tapped.tap.scope, tapped.tap.output, tapped.tap.callers]
        for execution in tapped.executions:
            yield from self._execution(known, execution, runner, case, precision)

    def _execution(
        self, known: TappedNode, execution: Execution, runner: str, case: int, precision: str
    ) -> "Iterator[Comparison | Guarded | Unjudged]":
        scope = known.node.scope
        try:
            operands = by_role(known.site.lookup, execution.inputs)
            operator, arguments = arguments_of(known.site, operands)
            found, expected, contested = self._measured(known, execution, operator, arguments, precision)
        except Error as error:
            if isinstance(error, IllegalCase):
                yield Guarded(runner, scope, known.operator, case, kind_of(error), str(error))
            else:
                yield Unjudged(str(error), scope, known.output, known.operator, execution)
            return
        if contested is not None:
            self._keep(case, scope, contested)
            count = int(np.count_nonzero(contested))
            is_nan = known.site.reduction is not Reduction.NONE
            yield left_open(runner, scope, known.operator, case, count, expected.size, is_nan=is_nan)
        yield Comparison(
            Level.NODE,
            scope,
            known.output,
            case,
            runner,
            REFERENCE,
            found,
            execution.place,
            known.operator,
            execution.output,
            expected,
            execution.inputs,
            caller=execution.caller,
        )

    def _keep(self, case: int, scope: str, contested: "Array") -> None:
        """Remember where a node is contested, each place once."""
        seen = self.contested.setdefault(case, {}).setdefault(scope, [])
        if not any(np.array_equal(contested, one) for one in seen):
            seen.append(contested)

    def _measured(
        self,
        known: TappedNode,
        execution: Execution,
        operator: str,
        arguments: dict[str, Any],
        precision: str,
    ) -> "tuple[Measure, Array, Array | None]":
        """Return how an output differs, what was expected, and where it is contested, None for nowhere.

        Raises:
            Error: the inputs break the document.
        """
        got = execution.output
        asked = self._tolerances.find(known.names)
        reduction = known.site.reduction
        if reduction is not Reduction.NONE:
            values = evaluate(operator, **arguments)
            if are_equal(got, values) and not may_hold_nan(reduction, values):
                tolerance = asked or default_tolerance(values, precision, is_node=True)
                return Measure(Verdict.EQUAL, values.size, tolerance=tolerance), values, None
        expected = evaluate_detailed(operator, **arguments)
        values = expected.values
        contested = expected.contested if expected.contested.any() else None
        tolerance = asked or default_tolerance(values, precision, is_node=True)
        if reduction is not Reduction.NONE and are_equal(got, values):
            return Measure(Verdict.EQUAL, values.size, tolerance=tolerance), values, contested
        is_comparable = got.shape == values.shape and got.dtype == values.dtype
        allowed = expected.allows(got, tolerance.absolute, tolerance.relative) if is_comparable else None
        found = measure(
            got,
            values,
            tolerance,
            bound=None if asked else expected.bound_from_values(_coarser(values, precision)),
            contested=allowed,
        )
        return found, values, contested


def may_hold_nan(reduction: Reduction | None, values: "Array") -> bool:
    """Tell whether the result of a min or max holds NaN, of which no document says what becomes."""
    return reduction in {Reduction.MIN, Reduction.MAX} and bool((values != values).any())


def left_open(
    runner: str, scope: str, operator: str, case: int, count: int, total: int, *, is_nan: bool
) -> Guarded:
    """Say that values meet where the document leaves open which one stays.

    Args:
        runner: who gave them to the node.
        scope: of the node.
        operator: "ScatterUpdate-3".
        case: the number of the inputs.
        count: in how many elements.
        total: how many elements there are.
        is_nan: whether NaN and numbers meet in a reduction; if not, updates without one.
    """
    elements = f"{counted(count, 'element')} of {total}"
    message = f"several updates meet in {elements} without a reduction"
    if is_nan:
        message = f"NaN and numbers meet in {elements}, and no document says which one stays"
    return Guarded(runner, scope, operator, case, "nan" if is_nan else "repeated", message, is_illegal=False)


def kind_of(error: IllegalCase) -> str:
    """Return in a word what is wrong with indices, "illegal" if it is something else."""
    if isinstance(error, IllegalIndex):
        return "negative" if error.code == "SCT303" else "out-of-range"
    return "illegal"


def _coarser(array: "Array", precision: str) -> float:
    """Return how much coarser the precision is than the element type."""
    bits = FRACTION_BITS.get(array.dtype.name)
    return 1.0 if bits is None else float(np.exp2(bits - computed_bits(bits, precision)))
