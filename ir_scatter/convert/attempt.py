"""Takes every node that is meant through planning, rewriting and proof."""

from pathlib import Path
from typing import TYPE_CHECKING

from ir_scatter.convert.conversion import Conversion, Converted, Refused, Verified
from ir_scatter.convert.engine import Engine, Promises, Rewritten
from ir_scatter.convert.plan import Task, Wish, make_plan, with_left
from ir_scatter.core.errors import UsageError
from ir_scatter.core.memory import collector_paused
from ir_scatter.core.model import Model
from ir_scatter.rewrites.conditions import Condition
from ir_scatter.rewrites.refusals import Reason, Refusal
from ir_scatter.validate import read

if TYPE_CHECKING:
    from ir_scatter.convert.proof import Proven


def attempt(model: "Model | str | Path", wish: Wish, cases: int, seed: int) -> Conversion:
    """Convert a model; see `ir_scatter.convert`."""
    promises = Promises(frozenset(map(_condition, wish.assume)), wish.keeps_negative)
    with collector_paused():
        known = read(model) if isinstance(model, str | Path) else model
        engine = Engine(known, promises)
        plan = make_plan(engine, wish)
        found = _Attempt(engine, cases, seed)
        for task in plan.tasks:
            found.take(task, engine.rewrite(task.candidate.sites, task.target, task.opset))
        if found.refused and plan.move is not None:
            plan = with_left(plan, known, [one.node for one in found.converted if one.fragment])
    told = {one.location.scope for one in found.refused}
    refused = (*found.refused, *(one for one in plan.obstacles if one.location.scope not in told))
    return Conversion(
        known, tuple(found.converted), refused, tuple(found.verified), plan.opset, plan.move, seed
    )


class _Attempt:
    """Collects what becomes of each node; nodes that look the same are proven once."""

    def __init__(self, engine: Engine, cases: int, seed: int) -> None:
        self.engine, self.cases, self.seed = engine, cases, seed
        self.converted: list[Converted] = []
        self.refused: list[Refused] = []
        self.verified: list[Verified] = []
        self._proofs: dict[Rewritten, Proven | Refusal] = {}

    def take(self, task: Task, outcome: Rewritten | Refusal | None) -> None:
        """Enter what became of one node."""
        if outcome is None:
            return
        if isinstance(outcome, Refusal):
            self._refuse(task, outcome)
            return
        if self.cases > 0:
            proof = self._proof(task, outcome)
            if isinstance(proof, Refusal):
                self._refuse(task, proof)
                return
            self.verified.append(Verified(task.candidate.node, proof.cases))
        self.converted.append(_converted(task, outcome))

    def _proof(self, task: Task, outcome: Rewritten) -> "Proven | Refusal":
        known = self._proofs.get(outcome)
        if known is None:
            known = self._proofs[outcome] = self._prove(task, outcome)
        return known

    def _prove(self, task: Task, outcome: Rewritten) -> "Proven | Refusal":
        """Compare both forms; those of a node like it where its own inputs are too large."""
        from ir_scatter.convert.proof import prove
        from ir_scatter.convert.smaller import smaller
        from ir_scatter.inputs.node import TooLarge

        site, engine = task.candidate.sites[0], self.engine
        try:
            return prove(outcome, site, engine.promises, self.cases, self.seed)
        except TooLarge as error:
            problem = Refusal(Reason.NOT_EQUAL, f"could not be verified: {error}")
        like = smaller(engine, site, outcome, task.opset)
        try:
            return prove(like.rewritten, like.site, like.promises, self.cases, self.seed) if like else problem
        except TooLarge:
            return problem

    def _refuse(self, task: Task, refusal: Refusal) -> None:
        node, key = task.candidate.node, task.candidate.key
        self.refused.append(
            Refused(refusal.code, refusal.message, node.name, node.location, key, task.target.key, node.type)
        )


def _converted(task: Task, outcome: Rewritten) -> Converted:
    node, key = task.candidate.node, task.candidate.key
    assert key is not None
    return Converted(node, key, task.target.key, outcome.names, outcome.assumptions, outcome.fragment)


def _condition(text: str) -> Condition:
    try:
        return Condition(text)
    except ValueError:
        known = ", ".join(Condition)
        raise UsageError(f"{text!r} cannot be assumed, expected one of {known}") from None
