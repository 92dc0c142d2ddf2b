"""Runs a model and follows, element by element, where its indices come from."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ir_scatter.analysis.interpreter import Plan, Plans, Step, UnknownOp
from ir_scatter.core.dataflow import Key
from ir_scatter.core.errors import EvaluationFailed, UnreadableModel
from ir_scatter.evaluate.model import compute_node
from ir_scatter.inputs import arithmetic
from ir_scatter.inputs.asked import Asked, is_unclear
from ir_scatter.inputs.cells import Cell, Shapeless, Stuck, Traced, cell_of, hollow
from ir_scatter.inputs.mending import named_positions
from ir_scatter.inputs.nested import NestedTracing
from ir_scatter.inputs.targets import scatter_use
from ir_scatter.inputs.terms import NO_TERM, Constraint, Terms, Use
from ir_scatter.inputs.uses import need_uses, repaired
from ir_scatter.ops.general import GeneralOp, constraints_of
from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.ops.general_shapes import ShapesDiffer
from ir_scatter.ops.lookup import Lookup
from ir_scatter.ops.spec import Reduction, Role

_FREE = Constraint()
_FEW = 64
"""Up to so many elements numbers are computed even if nobody needs them."""


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """How a model is traced.

    Attributes:
        symbols: the sizes of dimensions by their symbols.
        is_strict: whether a node that cannot be computed ends the run.
        main: the main graph.
        mattering: the values of the main graph whose numbers must be known; None for all.
        constraints: what indices must be beyond what their operators demand, by scatter node.
    """

    symbols: Mapping[str, int]
    is_strict: bool
    main: Plan
    mattering: Collection[Key] | None = None
    constraints: Mapping[str, Constraint] = field(default_factory=dict)


class TracingMachine(NestedTracing):
    """Runs plans on arrays and terms.

    An index that is not legal is noted, and a legal one takes its place, so that one run finds out
    about all of them.

    Attributes:
        terms: of this run.
        uses: every place where positions are asked for.
        stuck: the nodes that could not be computed.
        is_blind: whether some shape was not known.
        too_small: sizes that positions in the model itself exceed, with how large they must be.
    """

    def __init__(self, plans: Plans, terms: Terms, scope: Scope) -> None:
        super().__init__(plans)
        self.terms = terms
        self.scope = scope
        self.symbols = scope.symbols
        self.is_strict = scope.is_strict
        self.uses: list[Use] = []
        self.is_blind = False
        self.too_small: list[tuple[int, int]] = []
        self._shapes_only = frozenset(
            step
            for step in scope.main.steps
            if scope.mattering is not None and not any(key in scope.mattering for key in step.outputs)
        )

    def fetch(self, plan: Plan, values: dict[Key, Cell | None], key: Key) -> Cell | None:
        """Return the cell of a key; of a constant that does not matter, or is not there, the shape."""
        constant = plan.constants.get(key)
        if constant is None:
            return values.get(key)
        mattering = self.scope.mattering
        if plan is self.scope.main and mattering is not None and key not in mattering:
            return cell_of(constant.shape, constant.element_type)
        try:
            return super().fetch(plan, values, key)
        except UnreadableModel:
            if self.is_strict:
                raise
            return cell_of(constant.shape, constant.element_type)

    def lift(self, array: Array) -> Cell:
        """Make a cell without terms."""
        return Traced(array)

    def move(self, function: Callable[..., Array], *cells: Cell) -> Cell:
        """Move numbers and terms alike."""
        known = [cell for cell in cells if isinstance(cell, Traced)]
        if len(known) < len(cells):
            return Shapeless()
        array = function(*(cell.array for cell in known))
        is_traced = any(cell.terms is not None for cell in known)
        terms = function(*map(_terms, known)) if is_traced else None
        return Traced(array, terms, _is_any(known, "is_opaque"), _is_any(known, "is_input"))

    def compute(self, step: Step, cells: list[Cell | None]) -> Sequence[Cell | None]:
        """Return the outputs of a node without bodies."""
        self.computed += 1
        if step in self._shapes_only and isinstance(step.work, GeneralOp):
            first = cells[0] if cells else None
            if step.work.keeps_shape and isinstance(first, Traced) and first.array.size > _FEW:
                return Asked(step, cells, self.symbols).outputs_of_shapes([first.array.shape])
        asked = Asked(step, cells, self.symbols)
        self._note_uses(asked)
        if isinstance(step.work, UnknownOp) or self._is_hidden(asked):
            found = self._unknown(asked)
            self.is_blind = self.is_blind or any(isinstance(cell, Shapeless) for cell in found)
            return found
        try:
            outputs = compute_node(step, asked.arrays)
        except EvaluationFailed as error:
            self._note_stuck(Stuck(step, asked.arrays, error), error)
            return asked.outputs_of_shapes(asked.named_shapes())
        return self._cells(asked, outputs)

    def _note_stuck(self, stuck: Stuck, error: Exception) -> None:
        if self.is_strict:
            raise stuck from error
        self.stuck.append(stuck)

    def _is_hidden(self, asked: Asked) -> bool:
        """Tell whether an operator that NumPy computes cannot be: for lack of shapes and sizes."""
        if any(isinstance(cell, Shapeless) for cell in asked.cells):
            return True
        if isinstance(asked.step.work, Lookup) or not any(map(is_unclear, asked.cells)):
            return False
        node = asked.step.node
        return any(
            need.decides_shape and need.port < len(asked.cells) and is_unclear(asked.cells[need.port])
            for need in constraints_of(node.domain, node.type)
        )

    def _unknown(self, asked: Asked) -> Sequence[Cell | None]:
        """Return the outputs of a node that NumPy does not compute."""
        try:
            return asked.unknown_outputs()
        except ShapesDiffer as error:
            node = asked.step.node
            failed = EvaluationFailed(f"{node.type} {node.scope}: {error}", node.location)
            stuck = Stuck(asked.step, asked.arrays, failed)
            stuck.pairs, stuck.least = error.pairs, error.least
            self._note_stuck(stuck, failed)
            return asked.outputs_of_shapes()

    def _cells(self, asked: Asked, outputs: Sequence[Array]) -> Sequence[Cell | None]:
        """Return outputs with what is known of their numbers."""
        step, work = asked.step, asked.step.work
        if isinstance(work, GeneralOp) and work.reads_shapes_only:
            return [Traced(array) for array in outputs]
        cells = [cell for cell in asked.cells if isinstance(cell, Traced)]
        is_input = _is_any(cells, "is_input")
        is_opaque = _is_any(cells, "is_opaque")
        if all(cell.terms is None for cell in cells):
            if is_opaque or step in self._shapes_only:
                return [hollow(array.shape, array.dtype) for array in outputs]
            return [Traced(array, None, False, is_input) for array in outputs]
        terms = self._output_terms(asked, outputs, is_opaque=is_opaque)
        found = zip(outputs, terms, strict=True)
        return [Traced(array, of_array, is_opaque, is_input) for array, of_array in found]

    def _note_uses(self, asked: Asked) -> None:
        """Note where positions are asked for, and put legal ones in the place of others."""
        step = asked.step
        if isinstance(step.work, Lookup):
            found = scatter_use(asked, self.scope.constraints.get(step.node.scope, _FREE))
        else:
            needs = constraints_of(step.node.domain, step.node.type)
            found = list(need_uses(asked, needs)) if needs else []
            self.too_small += named_positions(asked, needs)
        for port, use in found:
            cell, array = asked.cells[port], asked.arrays[port]
            assert isinstance(cell, Traced)
            if use.has_terms or cell.is_input:
                self.uses.append(use)
            if array is not None and (not use.is_legal or is_unclear(cell)):
                asked.arrays[port] = repaired(use, array)

    def _output_terms(
        self, asked: Asked, outputs: Sequence[Array], *, is_opaque: bool
    ) -> Sequence[Array | None]:
        step, cells = asked.step, asked.cells
        nothing: list[Array | None] = [None] * len(outputs)
        if isinstance(step.work, Lookup):
            return self._scattered(asked) or nothing
        assert isinstance(step.work, GeneralOp)
        if step.work.copies:
            return [_maybe(cells[0])]
        moved = step.work.moved_inputs(len(cells))
        if moved:
            return compute_node(step, _replaced(asked, moved))
        if is_opaque:
            return nothing
        operands = list(zip(asked.arrays, map(_maybe, cells), strict=True))
        found = arithmetic.combine(self.terms, step.node.type, operands, outputs)
        return nothing if found is None else [found]

    def _scattered(self, asked: Asked) -> Sequence[Array] | None:
        """Return where a scatter node without reduction has put the elements."""
        step, lookup = asked.step, asked.step.work
        assert isinstance(lookup, Lookup)
        assert lookup.spec is not None
        word = lookup.spec.attribute("reduction")
        written = None if word is None else str(step.node.attributes.get("reduction", word.default)).lower()
        if written is not None and lookup.spec.reductions.get(written) is not Reduction.NONE:
            return None
        numbers = [lookup.spec.port_index(role) for role in (Role.DATA, Role.UPDATES)]
        return compute_node(step, _replaced(asked, [n for n in numbers if n is not None]))


def _is_any(cells: Sequence[Traced], name: str) -> bool:
    return any(getattr(cell, name) for cell in cells)


def _terms(cell: Traced) -> Array:
    return np.full(cell.array.shape, NO_TERM, np.int64) if cell.terms is None else cell.terms


def _maybe(cell: Cell | None) -> Array | None:
    return cell.terms if isinstance(cell, Traced) else None


def _replaced(asked: Asked, moved: Sequence[int]) -> list[Array | None]:
    """Return the inputs with terms in the place of the elements that are only moved."""
    return [
        _terms(cell) if number in moved and isinstance(cell, Traced) else array
        for number, (cell, array) in enumerate(zip(asked.cells, asked.arrays, strict=True))
    ]
