"""Takes every node that is meant through planning, rewriting and proof."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ir_scatter.analysis.conditions import Condition
from ir_scatter.convert.conversion import Conversion, Converted, Refused, Verified
from ir_scatter.convert.output import source_files
from ir_scatter.convert.request import Task, make_plan, moved
from ir_scatter.convert.rewriter import Promises, Rewriter, Rewritten
from ir_scatter.core.errors import UnreadableModel, UsageError
from ir_scatter.core.model import Model, collector_paused
from ir_scatter.reading import read
from ir_scatter.rewrites.refusals import Reason, Refusal

if TYPE_CHECKING:
    from ir_scatter.convert.proof import Proven


def run(
    model: "Model | str | Path",
    assume: Iterable[str],
    keeps_negative: bool,
    cases: int,
    seed: int,
    **meant: Any,
) -> Conversion:
    """Convert a model; see `ir_scatter.convert`, and `make_plan` for what is meant."""
    promises = Promises(frozenset(map(_condition, assume)), keeps_negative)
    converted, refused, verified = list[Converted](), list[Refused](), list[Verified]()
    proofs: dict[Rewritten, Proven | Refusal] = {}  # nodes that look the same are proven once
    with collector_paused():
        known = read(model) if isinstance(model, str | Path) else model
        with suppress(UnreadableModel):  # said when the model is written
            source_files(known)  # what is copied later must still be the same as now
        rewriter = Rewriter(known, promises)
        plan = make_plan(rewriter, **meant)
        for task in plan.tasks:
            node, key, target = task.candidate.node, task.candidate.key, task.target.key
            outcome = rewriter.rewrite(task.candidate.sites, task.target, task.opset)
            if isinstance(outcome, Rewritten) and cases > 0:
                if outcome not in proofs:
                    proofs[outcome] = _prove(rewriter, task, outcome, cases, seed)
                proof = proofs[outcome]
                if isinstance(proof, Refusal):
                    outcome = proof
                else:
                    verified.append(Verified(node, proof.cases))
            if isinstance(outcome, Refusal):
                place = node.location
                refused.append(
                    Refused(outcome.code, outcome.message, node.name, place, key, target, node.type)
                )
            elif outcome is not None:
                assert key is not None
                names = tuple([rewrite.name for rewrite in outcome.way])
                converted.append(Converted(node, key, target, names, outcome.assumptions, outcome.fragment))
        if refused and plan.move is not None:  # those that are left move as they are
            plan = moved(plan.tasks, known, plan.move.opset, [one.node for one in converted])
    told = {one.location.scope for one in refused}
    refused += [one for one in plan.obstacles if one.location.scope not in told]
    return Conversion(known, tuple(converted), tuple(refused), tuple(verified), plan.move, seed)


def _prove(rewriter: Rewriter, task: Task, outcome: Rewritten, cases: int, seed: int) -> "Proven | Refusal":
    """Compare both forms; those of a node like it where its own inputs are too large."""
    from ir_scatter.convert.proof import prove
    from ir_scatter.convert.smaller import smaller
    from ir_scatter.inputs.node import TooLarge

    site = task.candidate.sites[0]
    try:
        return prove(outcome, site, rewriter.promises, cases, seed)
    except TooLarge as error:
        problem = Refusal(Reason.NOT_EQUAL, f"could not be verified: {error}")
    like = smaller(rewriter, site, outcome, task.opset)
    try:
        return prove(like.rewritten, like.site, like.promises, cases, seed) if like else problem
    except TooLarge:
        return problem


def _condition(text: str) -> Condition:
    try:
        return Condition(text)
    except ValueError:
        known = ", ".join(Condition)
        raise UsageError(f"{text!r} cannot be assumed, expected one of {known}") from None
