"""How to say that a node cannot be computed."""

from ir_scatter.core.errors import EvaluationFailed
from ir_scatter.evaluate.plan import Step, show_place


def failure(step: Step, message: str, *, breaks_rule: bool = False) -> EvaluationFailed:
    """Name the node and its place.

    Args:
        step: the node.
        message: what is, then what was expected.
        breaks_rule: whether the document of a scatter operator forbids it.
    """
    location = step.node.location
    text = f"{step.node.type} {show_place(location)}: {message}"
    return EvaluationFailed(text, location, breaks_rule=breaks_rule)
