"""Runs a model forward and follows, element by element, where its indices come from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ir_scatter.analysis.interpreter import Forward, Plan, Plans, Step, declared_scalar, part_of
from ir_scatter.core.arrays import Array
from ir_scatter.core.dataflow import BodyInput, Choice, GraphInput, Key, Repeat, Source
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import EvaluationFailed, UnreadableModel
from ir_scatter.core.shapes import Shape
from ir_scatter.evaluate.model import compute_node, scatter_node_of
from ir_scatter.inputs.constraints import IndexConstraint, NodeInRun, Use, uses_of
from ir_scatter.inputs.provenance import Cell, Terms, combine, direct_of, known, origins_of, unknown
from ir_scatter.ops.general import GeneralOp, constraints_of, output_shapes
from ir_scatter.ops.general_shapes import ShapesDiffer
from ir_scatter.ops.lookup import Lookup
from ir_scatter.ops.spec import Reduction, Role

_MOST_ITERATIONS = (256, 16, 4)
"""A loop that runs longer is followed through its body once: for a loop in no other, in one, in two.

So is every loop inside of these. One that has few nodes may run longer.
"""

_MOST_INSIDE = 20_000
"""Up to so many nodes of bodies are computed in one run before loops may not run longer."""

_WEIGHTS = 1 << 16
"""Constants with more elements are no positions; where nothing is computed to the end they stay unread."""


class _Unclear(EvaluationFailed):
    """Something must be known of a value that comes from an operator which is not computed."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not known", Location(""))


@dataclass(frozen=True, slots=True, eq=False)
class Stuck:
    """A node that cannot be computed with the shapes and values of this run; None for one with a body."""

    node: NodeInRun | None
    error: Exception


@dataclass(slots=True, eq=False)
class Inputs:
    """Inputs of the model, one bit for each, by what becomes of them.

    Attributes:
        positions: positions and sizes are computed from them.
        trips: it is computed from them how often a loop runs.
        decisive: they have some part in positions, sizes and conditions, or become whole numbers.
        written: data or updates of a scatter node are computed from them.
        reaching: they have some part in data or updates of a scatter node.
    """

    positions: int = 0
    trips: int = 0
    decisive: int = 0
    written: int = 0
    reaching: int = 0

    def add(self, other: "Inputs") -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) | getattr(other, field.name))


class Tracer(Forward[Cell]):
    """Runs plans on arrays and terms; what cannot be computed gives unknown values.

    An index that is not legal is noted, and a legal one takes its place, so that one run finds out
    about all of them. `is_blind` says that some shape was not known; `too_small` are sizes that positions in
    the model itself exceed, with how large they must be.
    """

    def __init__(
        self,
        plans: Plans,
        terms: Terms,
        symbols: Mapping[str, int],
        constraints: Mapping[str, IndexConstraint],
        *,
        is_sketch: bool,
    ) -> None:
        """Take the sizes of dimensions by their symbols; `is_sketch` lets large constants stay unknown."""
        super().__init__(plans)
        self._terms, self._symbols, self._constraints = terms, symbols, constraints
        self._is_sketch = is_sketch
        self.uses: list[Use] = []
        self.stuck: list[Stuck] = []
        self.inputs = Inputs()
        self.is_blind = False
        self.too_small: list[tuple[int, int]] = []
        self.computed = self._depth = 0

    def fetch(self, plan: Plan, values: dict[Key, Cell | None], key: Key) -> Cell | None:
        """Return the cell of a key; of a constant that is weights, or is not there, the shape."""
        constant = plan.constants.get(key)
        if constant is None:
            return values.get(key)
        if not self._is_sketch:
            return super().fetch(plan, values, key)
        try:
            if np.prod(constant.shape, dtype=np.float64) <= _WEIGHTS:
                return super().fetch(plan, values, key)
        except UnreadableModel:
            pass
        return unknown(constant.shape, constant.element_type)

    def lift(self, array: Array) -> Cell:
        return known(array)

    def array(self, cell: Cell) -> Array:
        if cell.array is None:
            raise _Unclear("the shape of a value")
        return cell.array

    def move(self, function: Callable[..., Array], *cells: Cell) -> Cell:
        """Move numbers and terms alike."""
        origins, direct = origins_of(cells), direct_of(cells)
        if any(cell.array is None for cell in cells):
            return unknown(None, None, origins, direct)
        array = function(*(cell.array for cell in cells))
        is_traced = any(cell.terms is not None for cell in cells)
        terms = function(*(cell.all_terms for cell in cells)) if is_traced else None
        return Cell(array, array.shape, terms, any(cell.is_opaque for cell in cells), origins, direct)

    def scalar(self, step: Step, cell: Cell | None, what: str) -> Any:
        if cell is not None:
            self.inputs.decisive |= cell.origins
            if cell.is_unclear:
                raise _Unclear(what)
        return super().scalar(step, cell, what)

    def endless(self, step: Step, iterations: int) -> EvaluationFailed:
        return _Unclear("the end of a loop") if self._is_sketch else super().endless(step, iterations)

    def compute(self, step: Step, cells: list[Cell | None]) -> Sequence[Cell | None]:
        """Return the outputs of a node without bodies; of one whose outputs nobody needs, none."""
        self.computed += 1
        node = NodeInRun(step, cells, self._symbols, self._constraints.get(step.node.scope))
        ports = ports_of_positions(step)
        asked = [cell for port, cell in enumerate(cells) if port in ports]
        if isinstance(step.work, Lookup):
            data = [cell for port, cell in enumerate(cells) if port not in ports]
            self.inputs.written |= direct_of(data)
            self.inputs.reaching |= origins_of(data)
        self.inputs.positions |= direct_of(asked)
        self.inputs.decisive |= origins_of(asked) | (origins_of(cells) if _makes_whole(step) else 0)
        for port, use in uses_of(node):
            cell, array = node.cells[port], node.arrays[port]
            assert cell is not None
            if use.has_terms or cell.direct:
                self.uses.append(use)
            if array is not None and (not use.is_legal or cell.is_unclear):
                node.arrays[port] = use.repaired(array)
        self.too_small += node.too_small()
        if not step.outputs:
            if any(node.unmet()):
                self.stuck.append(Stuck(node, _Unclear("the output")))
            return []
        if step.work is None or self._is_hidden(node):
            return self._unknown(node)
        try:
            return self._traced(node, compute_node(step, node.arrays))
        except EvaluationFailed as error:
            self.stuck.append(Stuck(node, error))
            return self._of_shapes(node)

    def _is_hidden(self, node: NodeInRun) -> bool:
        """Tell whether an operator that NumPy computes cannot be, or need not be: nothing is known anyway."""
        there, work = [cell for cell in node.cells if cell is not None], node.step.work
        if any(cell.array is None for cell in there):
            return True
        if not isinstance(work, GeneralOp) or not any(cell.is_unclear for cell in there):
            return False
        if work.shape is not None and all(cell.is_opaque and cell.terms is None for cell in there):
            return True
        cells = [node.cell(need.port) for need in node.needs if need.decides_shape]
        return any(cell is not None and cell.is_unclear for cell in cells)

    def _unknown(self, node: NodeInRun) -> Sequence[Cell | None]:
        step = node.step
        try:
            shapes = output_shapes(step.node.domain, step.node.type, node.shape_case)
        except ShapesDiffer as error:
            message = f"{step.node.type} {step.node.scope}: {error}"
            self.stuck.append(Stuck(node, EvaluationFailed(message, step.node.location)))
            shapes = []
        found = self._of_shapes(node, shapes or ())
        self.is_blind = self.is_blind or any(cell.array is None for cell in found)
        return found

    def _of_shapes(self, node: NodeInRun, computed: Sequence["tuple[int, ...] | None"] = ()) -> list[Cell]:
        """Return outputs of which nothing is known but shapes, and for the rest what the model says."""
        values, origins, found = node.step.node.outputs, origins_of(node.cells), []
        direct = 0 if node.step.work is None else direct_of(node.cells)
        for number in range(len(node.step.outputs)):
            shape: Shape = computed[number] if number < len(computed) else None
            if shape is None and number < len(values):
                shape = node.declared[number]
            type = values[number].element_type if number < len(values) else None
            found.append(unknown(shape, type, origins, direct))
        return found

    def _traced(self, node: NodeInRun, outputs: Sequence[Array]) -> list[Cell]:
        """Return computed outputs with what is known of their numbers."""
        if reads_shapes_only(node.step):
            return [known(array) for array in outputs]
        origins, direct = origins_of(node.cells), direct_of(node.cells)
        is_opaque = any(cell is not None and cell.is_opaque for cell in node.cells)
        terms: Sequence[Array | None] = [None] * len(outputs)
        if any(cell is not None and cell.terms is not None for cell in node.cells):
            terms = self._terms_of(node, outputs, is_opaque=is_opaque)
        elif is_opaque:
            return [unknown(array.shape, array.dtype, origins, direct) for array in outputs]
        return [
            Cell(array, array.shape, own, is_opaque, origins, direct)
            for array, own in zip(outputs, terms, strict=True)
        ]

    def _terms_of(
        self, node: NodeInRun, outputs: Sequence[Array], *, is_opaque: bool
    ) -> Sequence[Array | None]:
        work, cells = node.step.work, node.cells
        moved = _scattered(node.step) if isinstance(work, Lookup) else ()
        if isinstance(work, GeneralOp):
            moved = work.moved_inputs(len(cells))
            if work.copies:
                return [None if cells[0] is None else cells[0].all_terms]
        if moved:
            arrays = [
                cell.all_terms if number in moved and cell is not None else array
                for number, (cell, array) in enumerate(zip(cells, node.arrays, strict=True))
            ]
            return compute_node(node.step, arrays)
        if is_opaque or not isinstance(work, GeneralOp):
            return [None] * len(outputs)
        terms = [None if cell is None else cell.terms for cell in cells]
        pairs = list(zip(node.arrays, terms, strict=True))
        return [combine(self._terms, work.arithmetic, pairs, outputs[0]), *[None] * (len(outputs) - 1)]

    def step(self, step: Step, cells: list[Cell | None]) -> Sequence[Cell | None]:
        """Compute a node; where a condition or a trip count is not known what follows from none."""
        work = step.work
        if isinstance(work, Repeat):
            return self._repeat(step, work, cells)
        condition = cells[work.condition] if isinstance(work, Choice) else None
        try:
            if isinstance(work, Choice) and condition is not None and condition.is_unclear:
                self.inputs.decisive |= condition.origins
                found = [self.call(step, call, cells) for _, call in sorted(work.branches.items())]
                return [_merged(cells) for cells in zip(*found, strict=True)]
            return super().step(step, cells)
        except EvaluationFailed as error:
            self._note_stuck(error)
        return list(self._of_shapes(NodeInRun(step, cells, self._symbols)))

    def _note_stuck(self, error: EvaluationFailed) -> None:
        if not isinstance(error, _Unclear):
            self.stuck.append(Stuck(None, error))

    def _repeat(self, step: Step, work: Repeat, cells: list[Cell | None]) -> Sequence[Cell | None]:
        """Compute a loop, or if that is not possible its body once."""
        trips = cells[work.trips] if work.trips is not None else None
        self.inputs.trips |= 0 if trips is None else trips.direct
        self._depth += 1
        around = self.most_iterations
        try:
            if self._depth <= len(_MOST_ITERATIONS) or not self._is_sketch:
                if self._is_sketch:
                    room = (_MOST_INSIDE - self.computed) // max(len(self.plans[work.body].steps), 1)
                    self.most_iterations = max(_MOST_ITERATIONS[self._depth - 1], room)
                return super().step(step, cells)
        except EvaluationFailed as error:
            self._note_stuck(error)
        finally:
            self._depth -= 1
            self.most_iterations = around
        plan = self.plans[work.body]
        given = [
            self._body_input(step, input, declared, cells)
            for input, declared in zip(work.inputs, plan.inputs, strict=True)
        ]
        outputs = self.graph(plan, [*given, *self.captured(step, plan, cells)])
        whole = self._of_shapes(NodeInRun(step, cells, self._symbols))
        return [  # what the body carries may be another value after more iterations
            _merged([outputs[output.inner]]) if output.slice is None else cell
            for output, cell in zip(work.outputs, whole, strict=False)
        ]

    def _body_input(
        self, step: Step, input: BodyInput, declared: GraphInput, cells: list[Cell | None]
    ) -> Cell | None:
        if input.source is Source.ITERATION:
            return known(declared_scalar(0, declared, np.dtype(np.int64)))
        if input.source is Source.CONDITION:
            return known(declared_scalar(1, declared, np.dtype(np.bool_)))
        cell = None if input.outer is None else cells[input.outer]
        if input.slice is None:
            return cell
        try:
            if cell is not None and cell.array is not None:
                return self.move(part_of(step, input.slice, cell.array.shape, 0), cell)
        except (EvaluationFailed, LookupError):
            pass
        return unknown(declared.shape, declared.element_type, origins_of([cell]))


def ports_of_positions(step: Step) -> set[int | None]:
    """Return the numbers of the inputs of a node that hold positions or sizes."""
    if isinstance(step.work, Lookup):
        assert step.work.spec is not None
        return {step.work.spec.port_index(role) for role in (Role.INDICES, Role.AXIS)}
    return {need.port for need in constraints_of(step.node.domain, step.node.type)}


def reads_shapes_only(step: Step) -> bool:
    return isinstance(step.work, GeneralOp) and step.work.reads_shapes_only


def _merged(cells: Sequence[Cell | None]) -> Cell | None:
    """Return what several cells have in common: a shape and a type."""
    arrays = [cell.array for cell in cells if cell is not None and cell.array is not None]
    kinds = {(array.shape, array.dtype) for array in arrays}
    is_one = len(arrays) == len(cells) and len(kinds) == 1
    shape, type = kinds.pop() if is_one else (None, None)
    return unknown(shape, type, origins_of(cells), direct_of(cells))


def _scattered(step: Step) -> tuple[int | None, ...]:
    """Return the inputs whose elements a scatter node puts into its output: none with a reduction."""
    scatter = scatter_node_of(step)
    ports = scatter.spec.port_index(Role.DATA), scatter.spec.port_index(Role.UPDATES)
    return ports if scatter.reduction is Reduction.NONE else ()


def _makes_whole(step: Step) -> bool:
    """Tell whether a node makes whole numbers of others, which is not defined for all of them."""
    if not isinstance(step.work, GeneralOp) or not step.work.copies:
        return False
    value = step.node.inputs[0].value if step.node.inputs else None
    before = None if value is None else value.element_type
    after = step.node.outputs[0].element_type if step.node.outputs else None
    if after is None or after.kind not in {"signed", "unsigned"}:
        return False
    return before is None or before.kind != after.kind or before.bits > after.bits
