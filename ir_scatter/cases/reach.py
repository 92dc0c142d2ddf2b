"""Which inputs of a model have a part in positions, at first sight."""

from collections.abc import Iterator

from ir_scatter.cases.movement import asks_for_positions
from ir_scatter.graphs.plan import Plan, Plans, Step, bodies_of
from ir_scatter.ops import Lookup
from ir_scatter.ops.plain import PlainOp
from ir_scatter.ops.spec import Role
from ir_scatter.wiring import Key


def inputs_that_reach_positions(plan: Plan, plans: Plans) -> set[Key]:
    """Return the values of the main graph that some node may use as positions, or compute them from.

    What goes into a node with bodies counts if a body uses positions, or if what comes out counts.
    """
    found: set[Key] = set()
    for step in reversed(plan.steps):
        inputs = [key for key in step.inputs if key is not None]
        if isinstance(step.work, PlainOp) and step.work.reads_shapes_only:
            continue
        if not found.isdisjoint(step.outputs):
            found.update(inputs)
        found.update(_asked_for(step, plans))
    return found


def _asked_for(step: Step, plans: Plans) -> Iterator[Key]:
    """Yield the inputs of a node that hold positions."""
    work = step.work
    if isinstance(work, Lookup):
        assert work.spec is not None
        roles = {port.role: key for port, key in zip(work.spec.ports, step.inputs, strict=False)}
        wanted = (roles.get(role) for role in (Role.INDICES, Role.AXIS))
        yield from (key for key in wanted if key is not None)
    elif isinstance(work, PlainOp):
        ports = asks_for_positions(step.node.type)
        yield from (key for port, key in enumerate(step.inputs) if port in ports and key is not None)
    elif _has_positions(step, plans):
        yield from (key for key in step.inputs if key is not None)


def _has_positions(step: Step, plans: Plans) -> bool:
    """Tell whether some graph inside a node asks for positions."""
    pending, seen = list(bodies_of(step.work)), set()
    while pending:
        body = pending.pop()
        if body in seen:
            continue
        seen.add(body)
        for inner in plans[body].steps:
            if isinstance(inner.work, Lookup) or asks_for_positions(inner.node.type):
                return True
            pending += bodies_of(inner.work)
    return False
