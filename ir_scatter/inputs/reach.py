"""Which values of a model have a part in positions, sizes and conditions, at first sight."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ir_scatter.analysis.interpreter import Plan, Plans, Step, UnknownOp
from ir_scatter.core.dataflow import Call, Choice, Dataflow, Key, Repeat, Source
from ir_scatter.ops.general import GeneralOp, constraints_of
from ir_scatter.ops.lookup import Lookup
from ir_scatter.ops.spec import Role

Asked: TypeAlias = Callable[[Step], Iterator[Key]]
"""Yields the inputs of a node that are looked for."""

Passes: TypeAlias = Callable[[Step], bool]
"""Tells whether the inputs of a node count if an output of it does."""


def values_of_positions(plan: Plan, plans: Plans) -> set[Key]:
    """Return the values of the main graph that some node may use as positions, or compute them from.

    What goes into an operator that is not computed does not count.
    """
    return Backward(plans, _positions, _is_computed).values(plan)


def values_of_trips(plan: Plan, plans: Plans) -> set[Key]:
    """Return the values of the main graph that say how often loops run, or from which that is computed."""
    return Backward(plans, _trips, _is_computed).values(plan)


def values_that_matter(plan: Plan, plans: Plans) -> set[Key]:
    """Return the values of the main graph that must be known to know positions, sizes and conditions."""
    return Backward(plans, _deciding, _is_computed, asks_conditions=True).values(plan)


def values_that_decide(plan: Plan, plans: Plans) -> set[Key]:
    """Return the values of the main graph from which positions, sizes or conditions may follow."""
    return Backward(plans, _deciding, reads_values, asks_conditions=True).values(plan)


@dataclass(frozen=True, slots=True)
class Backward:
    """Goes from certain values back to everything that they are computed from, in all graphs.

    Attributes:
        plans: of all graphs.
        asked: what is looked for.
        passes: which nodes are gone through.
        asks_conditions: whether that on which a loop goes on is looked for.
    """

    plans: Plans
    asked: Asked
    passes: Passes
    asks_conditions: bool = False
    _known: dict[Step, tuple[Key, ...]] = field(default_factory=dict)

    def values(self, plan: Plan, outputs: Sequence[int] = ()) -> set[Key]:
        """Return the values of one graph.

        Args:
            plan: of the graph.
            outputs: numbers of its outputs that are looked for as well.
        """
        found: set[Key] = {plan.outputs[number].key for number in outputs}
        for step in reversed(plan.steps):
            if not found.isdisjoint(step.outputs) and self.passes(step):
                found.update(key for key in step.inputs if key is not None)
            found.update(self.asked(step))
            if not isinstance(step.work, GeneralOp | Lookup | UnknownOp):
                found.update(self._inside(step))
        return found

    def _inside(self, step: Step) -> tuple[Key, ...]:
        """Look into the bodies of a node once, however often the graph around it is gone through."""
        if step not in self._known:
            self._known[step] = tuple(self._of_bodies(step))
        return self._known[step]

    def _of_bodies(self, step: Step) -> Iterator[Key]:
        """Yield the inputs of a node with bodies that are looked for inside."""
        work = step.work
        if isinstance(work, Repeat):
            yield from self._of_loop(step, work)
            return
        calls = (
            [work] if isinstance(work, Call) else work.branches.values() if isinstance(work, Choice) else ()
        )
        for call in calls:
            inner = self.values(self.plans[call.body])
            yield from self._outside(step, call.body, call.inputs, inner)

    def _of_loop(self, step: Step, work: Repeat) -> Iterator[Key]:
        """What one iteration makes may be looked for in the next."""
        plan = self.plans[work.body]
        is_asked = self.asks_conditions and work.goes_on is not None
        wanted: set[int] = {work.goes_on or 0} if is_asked else set()
        while True:
            inner = self.values(plan, sorted(wanted))
            carried = {
                input.successor
                for input, declared in zip(work.inputs, plan.inputs, strict=True)
                if input.source is Source.CARRIED and input.successor is not None and declared.key in inner
            }
            if carried <= wanted:
                break
            wanted |= carried
        yield from self._outside(step, work.body, [input.outer for input in work.inputs], inner)

    def _outside(
        self, step: Step, body: Dataflow, numbers: Sequence[int | None], inner: set[Key]
    ) -> Iterator[Key]:
        """Yield what the values inside a body are outside of it."""
        plan = self.plans[body]
        for number, declared in zip(numbers, plan.inputs, strict=True):
            key = None if number is None else step.inputs[number]
            if key is not None and declared.key in inner:
                yield key
        yield from (key for key in plan.captured if key in inner)


def reads_values(step: Step) -> bool:
    """Tell whether a node looks at the numbers of its inputs, and not at their shapes alone."""
    return not (isinstance(step.work, GeneralOp) and step.work.reads_shapes_only)


def _is_computed(step: Step) -> bool:
    return not isinstance(step.work, UnknownOp) and reads_values(step)


def _deciding(step: Step) -> Iterator[Key]:
    """Yield the inputs of a node that hold positions, sizes or conditions."""
    yield from _positions(step)
    work = step.work
    numbers: Sequence[int | None] = ()
    if isinstance(work, Choice):
        numbers = (work.condition,)
    elif isinstance(work, Repeat):
        numbers = (work.trips, work.condition)
    keys = (step.inputs[number] for number in numbers if number is not None)
    yield from (key for key in keys if key is not None)


def _trips(step: Step) -> Iterator[Key]:
    """Yield the input of a loop that says how often it runs."""
    key = (
        step.inputs[step.work.trips]
        if isinstance(step.work, Repeat) and step.work.trips is not None
        else None
    )
    if key is not None:
        yield key


def _positions(step: Step) -> Iterator[Key]:
    """Yield the inputs of a node that hold positions or sizes."""
    work = step.work
    if isinstance(work, Lookup):
        assert work.spec is not None
        roles = {port.role: key for port, key in zip(work.spec.ports, step.inputs, strict=False)}
        wanted = (roles.get(role) for role in (Role.INDICES, Role.AXIS))
        yield from (key for key in wanted if key is not None)
        return
    ports = {need.port for need in constraints_of(step.node.domain, step.node.type)}
    yield from (key for port, key in enumerate(step.inputs) if port in ports and key is not None)
