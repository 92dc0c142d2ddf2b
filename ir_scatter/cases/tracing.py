"""Runs a model and follows, element by element, where its indices come from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ir_scatter.cases import arithmetic
from ir_scatter.cases.movement import copies, moved_inputs, positions
from ir_scatter.cases.targets import scatter_use
from ir_scatter.cases.terms import NO_TERM, Terms, Use
from ir_scatter.cases.uses import holds_positions, range_use, repaired
from ir_scatter.errors import EvaluationFailed
from ir_scatter.graphs.machine import Machine
from ir_scatter.graphs.nodes import compute_node
from ir_scatter.graphs.plan import Plans, Step
from ir_scatter.ops import Lookup
from ir_scatter.ops.plain import PlainOp
from ir_scatter.ops.plain.case import Array
from ir_scatter.ops.spec import Reduction, Role


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """An array, and which elements of inputs its numbers are made of.

    Attributes:
        array: the numbers of this run.
        terms: a term for each number; None if there is none in all of them.
    """

    array: Array
    terms: Array | None = None


class Stuck(Exception):
    """A node cannot be computed with the shapes and values of this run."""

    def __init__(self, step: Step, arrays: Sequence[Array | None], error: EvaluationFailed) -> None:
        super().__init__(str(error))
        self.step = step
        self.arrays = arrays
        self.error = error


class TracingMachine(Machine[Traced]):
    """Runs plans on arrays and terms.

    An index that is not legal is noted, and a legal one takes its place, so that one run finds out
    about all of them.

    Attributes:
        terms: of this run.
        uses: every place where positions are asked for.
    """

    def __init__(self, plans: Plans, terms: Terms) -> None:
        super().__init__(plans)
        self.terms = terms
        self.uses: list[Use] = []

    def lift(self, array: Array) -> Traced:
        """Make a cell without terms."""
        return Traced(array)

    def array(self, cell: Traced) -> Array:
        """Return the numbers."""
        return cell.array

    def move(self, function: Callable[..., Array], *cells: Traced) -> Traced:
        """Move numbers and terms alike."""
        array = function(*(cell.array for cell in cells))
        if all(cell.terms is None for cell in cells):
            return Traced(array)
        return Traced(array, function(*map(_terms, cells)))

    def compute(self, step: Step, cells: list[Traced | None]) -> Sequence[Traced | None]:
        """Return the outputs of a node without bodies."""
        arrays = [None if cell is None else cell.array for cell in cells]
        try:
            self._note_uses(step, cells, arrays)
            outputs = compute_node(step, arrays)
        except EvaluationFailed as error:
            raise Stuck(step, arrays, error) from error
        if all(cell is None or cell.terms is None for cell in cells):
            return [Traced(array) for array in outputs]
        terms = self._output_terms(step, cells, arrays, outputs)
        return [Traced(array, term) for array, term in zip(outputs, terms, strict=True)]

    def _note_uses(self, step: Step, cells: Sequence[Traced | None], arrays: list[Array | None]) -> None:
        """Note where positions are asked for, and put legal ones in the place of others."""
        if isinstance(step.work, Lookup):
            found = scatter_use(step, [None if cell is None else _terms(cell) for cell in cells], arrays)
        else:
            found = [
                range_use(step, place, cell.array, _terms(cell))
                for place in positions(step.node.type, *_axis_and_batch(step, arrays), arrays)
                if place.port < len(cells)
                and (cell := cells[place.port]) is not None
                and holds_positions(cell.array)
            ]
        for port, use in found:
            self.uses.append(use)
            array = arrays[port]
            if not use.is_legal and array is not None:
                arrays[port] = repaired(use, array)

    def _output_terms(
        self,
        step: Step,
        cells: Sequence[Traced | None],
        arrays: Sequence[Array | None],
        outputs: Sequence[Array],
    ) -> Sequence[Array | None]:
        nothing: list[Array | None] = [None] * len(outputs)
        if isinstance(step.work, Lookup):
            return self._scattered(step, cells, arrays) or nothing
        assert isinstance(step.work, PlainOp)
        first = cells[0]
        if copies(step.node.type):
            return nothing if first is None else [first.terms]
        moved = moved_inputs(step.node.type, len(cells))
        if moved:
            return compute_node(step, _replaced(cells, arrays, moved))
        operands = list(zip(arrays, map(_maybe, cells), strict=True))
        found = arithmetic.combine(self.terms, step.node.type, operands, outputs)
        return nothing if found is None else [found]

    def _scattered(
        self, step: Step, cells: Sequence[Traced | None], arrays: Sequence[Array | None]
    ) -> Sequence[Array] | None:
        """Return where a scatter node without reduction has put the elements."""
        lookup = step.work
        assert isinstance(lookup, Lookup)
        assert lookup.spec is not None
        word = lookup.spec.attribute("reduction")
        written = None if word is None else str(step.node.attributes.get("reduction", word.default)).lower()
        if written is not None and lookup.spec.reductions.get(written) is not Reduction.NONE:
            return None
        numbers = [lookup.spec.port_index(role) for role in (Role.DATA, Role.UPDATES)]
        return compute_node(step, _replaced(cells, arrays, [n for n in numbers if n is not None]))


def _terms(cell: Traced) -> Array:
    return np.full(cell.array.shape, NO_TERM, np.int64) if cell.terms is None else cell.terms


def _maybe(cell: Traced | None) -> Array | None:
    return None if cell is None else cell.terms


def _replaced(
    cells: Sequence[Traced | None], arrays: Sequence[Array | None], moved: Sequence[int]
) -> list[Array | None]:
    """Return the inputs with terms in the place of the elements that are only moved."""
    return [
        _terms(cell) if number in moved and cell is not None else array
        for number, (cell, array) in enumerate(zip(cells, arrays, strict=True))
    ]


def _axis_and_batch(step: Step, arrays: Sequence[Array | None]) -> tuple[int, int]:
    """Return the axis, which may be the third input, and the batch dimensions of a node."""
    written = step.node.attributes
    axis = written.get("axis")
    third = arrays[2] if axis is None and len(arrays) > 2 else None
    if third is not None and third.size == 1 and third.dtype.kind in "iu":
        axis = int(third.reshape(-1)[0])
    return int(axis or 0), int(written.get("batch_dims", 0))
