"""Which values of a model have a part in positions and sizes, at first sight."""

from collections.abc import Callable, Iterable, Iterator

from ir_scatter.graphs.plan import Plan, Plans, Step, UnknownOp, bodies_of
from ir_scatter.ops import Lookup
from ir_scatter.ops.needs import needs_of
from ir_scatter.ops.plain import PlainOp
from ir_scatter.ops.spec import Role
from ir_scatter.wiring import Choice, Key, Repeat


def values_of_positions(plan: Plan, plans: Plans) -> set[Key]:
    """Return the values of the main graph that some node may use as positions, or compute them from.

    What goes into a node with bodies counts if a body uses positions, or if what comes out counts.
    What goes into an operator that is not computed does not count.
    """
    return _backward(plan, lambda step: _positions(step, plans), through_unknown=False)


def values_that_matter(plan: Plan, plans: Plans) -> set[Key]:
    """Return the values of the main graph that must be known to know positions, sizes and conditions."""
    return _backward(plan, lambda step: _deciding(step, plans), through_unknown=False)


def values_that_decide(plan: Plan, plans: Plans) -> set[Key]:
    """Return the values of the main graph from which positions, sizes or conditions may follow."""
    return _backward(plan, lambda step: _deciding(step, plans), through_unknown=True)


def _backward(plan: Plan, asked: Callable[[Step], Iterable[Key]], *, through_unknown: bool) -> set[Key]:
    """Return what is asked for, and everything that it is computed from."""
    found: set[Key] = set()
    for step in reversed(plan.steps):
        if isinstance(step.work, PlainOp) and step.work.reads_shapes_only:
            continue
        is_passed = through_unknown or not isinstance(step.work, UnknownOp)
        if is_passed and not found.isdisjoint(step.outputs):
            found.update(key for key in step.inputs if key is not None)
        found.update(asked(step))
    return found


def _deciding(step: Step, plans: Plans) -> Iterator[Key]:
    """Yield the inputs of a node that hold positions, sizes or conditions."""
    yield from _positions(step, plans)
    if isinstance(step.work, Choice):
        condition = step.inputs[step.work.condition]
        yield from () if condition is None else (condition,)
    elif isinstance(step.work, Repeat):
        yield from (key for key in step.inputs if key is not None)


def _positions(step: Step, plans: Plans) -> Iterator[Key]:
    """Yield the inputs of a node that hold positions or sizes."""
    work = step.work
    if isinstance(work, Lookup):
        assert work.spec is not None
        roles = {port.role: key for port, key in zip(work.spec.ports, step.inputs, strict=False)}
        wanted = (roles.get(role) for role in (Role.INDICES, Role.AXIS))
        yield from (key for key in wanted if key is not None)
    elif bodies_of(work) and _has_positions(step, plans):
        yield from (key for key in step.inputs if key is not None)
    else:
        ports = {need.port for need in needs_of(step.node.domain, step.node.type)}
        yield from (key for port, key in enumerate(step.inputs) if port in ports and key is not None)


def _has_positions(step: Step, plans: Plans) -> bool:
    """Tell whether some graph inside a node asks for positions."""
    pending, seen = list(bodies_of(step.work)), set()
    while pending:
        body = pending.pop()
        if body in seen:
            continue
        seen.add(body)
        for inner in plans[body].steps:
            if isinstance(inner.work, Lookup) or needs_of(inner.node.domain, inner.node.type):
                return True
            pending += bodies_of(inner.work)
    return False
