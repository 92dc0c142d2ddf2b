"""Which nodes are to become what, and in which opset."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ir_scatter.convert.conversion import Refused
from ir_scatter.convert.engine import Engine
from ir_scatter.convert.selection import Candidate, candidates, matching
from ir_scatter.convert.targets import find_sources, find_targets, targets
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import UsageError
from ir_scatter.core.model import ONNX, Model, Node
from ir_scatter.ops.spec import OpSpec
from ir_scatter.rewrites import leads_to
from ir_scatter.rewrites.refusals import Reason

if TYPE_CHECKING:
    from ir_scatter.convert.opset.apply import Move, Obstacle


@dataclass(frozen=True, slots=True)
class Wish:
    """What the caller asks for; see `ir_scatter.convert`."""

    to: str | None = None
    sources: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    opset: int | None = None
    assume: tuple[str, ...] = ()
    keeps_negative: bool = False


class Task(NamedTuple):
    """One node and what it is to become.

    Attributes:
        candidate: the node.
        target: the row that is wanted.
        opset: the opset that its new nodes belong to; None in an IR.
    """

    candidate: Candidate
    target: OpSpec
    opset: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What is to be done.

    Attributes:
        tasks: in the order of the file.
        opset: the opset that an ONNX model moves to; None if it stays.
        move: what that does to other nodes.
        obstacles: nodes that would mean something else there.
    """

    tasks: tuple[Task, ...]
    opset: int | None = None
    move: "Move | None" = None
    obstacles: tuple[Refused, ...] = ()


def make_plan(engine: Engine, wish: Wish) -> Plan:
    """Choose nodes, targets and the opset.

    Raises:
        UsageError: a name, an operator or an opset does not exist.
    """
    model, opset, to, sources, nodes = engine.model, wish.opset, wish.to, wish.sources, wish.nodes
    if opset is not None and model.domain != ONNX:
        raise UsageError("an opset is chosen for ONNX models only: each layer of an IR has its own")
    every = candidates(engine)
    named = matching(every, nodes) if nodes else every
    keys = find_sources(model, sources) if sources else None
    chosen = [one for one in named if keys is None or one.key in keys]
    rows = find_targets(model, to) if to is not None else None
    if model.domain != ONNX:
        is_explicit = bool(sources or nodes)
        return Plan(tuple(_ir_tasks(chosen, rows, is_explicit=is_explicit)))
    from ir_scatter.convert.onnx_plan import OnnxPlanner

    return OnnxPlanner(engine, rows, opset, is_explicit=bool(sources or nodes)).plan(chosen)


def _ir_tasks(
    chosen: Sequence[Candidate], rows: Sequence[OpSpec] | None, *, is_explicit: bool
) -> "list[Task]":
    tasks = []
    for one in chosen:
        spec = one.sites[0].lookup.spec
        target = rows[-1] if rows is not None else successor(spec)
        if target is None:
            continue
        if is_explicit or spec is None or leads_to(spec.key, target.key):
            tasks.append(Task(one, target, None))
    return tasks


def successor(spec: OpSpec | None) -> OpSpec | None:
    """Return the newest row of what replaces a deprecated operator, None if nothing does."""
    if spec is None or spec.deprecated_by is None:
        return None
    wanted = spec.deprecated_by
    fitting = [row for row in targets() if row.key[:2] == wanted[:2]]
    return max(fitting, key=lambda row: row.key.version, default=None)


def moved(plan: Plan, model: Model, opset: int, replaced: Sequence[Node]) -> Plan:
    """Return a plan with the move of the whole model to another opset.

    Args:
        plan: the tasks.
        model: an ONNX model.
        opset: where it moves.
        replaced: the nodes that become nodes of that opset by themselves.
    """
    from ir_scatter.convert.opset.path import plan_move

    move = plan_move(model, opset, ignore=replaced)
    found = tuple(_obstacle(one, model.path) for one in move.obstacles)
    return Plan(plan.tasks, opset, move, found)


def with_left(plan: Plan, model: Model, replaced: Sequence[Node]) -> Plan:
    """Return a plan in which all nodes but some, which are replaced, move as they are."""
    return plan if plan.opset is None else moved(plan, model, plan.opset, replaced)


def _obstacle(found: "Obstacle", path: str) -> Refused:
    """Say that a node would mean something else in the new opset."""
    name, reason = found.scope.rpartition("/")[2], found.reason
    message = reason if reason.startswith(found.type) else f"{found.type}: {reason}"
    return Refused(Reason.OPSET, message, name, Location(path, scope=found.scope), type=found.type)
