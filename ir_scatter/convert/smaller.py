"""The same node with smaller inputs, for the proof of a node whose own would be too large to compute."""

from dataclasses import replace
from typing import NamedTuple

from ir_scatter.analysis.conditions import Condition, Verdict
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.convert.rewriter import Promises, Rewriter, Rewritten, with_unknown_sizes
from ir_scatter.rewrites.base import View
from ir_scatter.rewrites.refusals import Refusal


class Smaller(NamedTuple):
    """A node that is like another one, but for its large dimensions, which are unknown.

    Attributes:
        site: the node.
        rewritten: its new form, made by the same rewrites.
        promises: what holds for the other node is promised for this one.
    """

    site: ScatterNode
    rewritten: Rewritten
    promises: Promises


def smaller(engine: Rewriter, site: ScatterNode, rewritten: Rewritten, opset: int | None) -> Smaller | None:
    """Rewrite the same node with smaller inputs; None if the same rewrites have no form for it.

    Args:
        engine: has rewritten the node.
        site: the node.
        rewritten: its new form.
        opset: that of the ONNX model that is written.
    """
    view = View(site, engine.promises.conditions, engine.promises.keeps_negative)
    proven = {condition for condition in Condition if view.proof(condition).verdict is Verdict.PROVEN}
    promises = replace(engine.promises, conditions=engine.promises.conditions | proven)
    other = Rewriter(engine.model, promises)
    found = other.site(with_unknown_sizes(site).nodes[0])
    assert found is not None
    form = other.along(found, rewritten.way, opset)
    return None if isinstance(form, Refusal) else Smaller(found, form, promises)
