"""Outputs that are not the same in another version."""

from ir_scatter.ops.opset_facts import Redefined
from ir_scatter.opsets.draft import Draft, Refused


def give_up(fact: Redefined, draft: Draft) -> None:
    """Take away an output that means something else in the other version, if nobody reads it."""
    name = draft.output(fact.output)
    if not name:
        return
    if draft.place.is_used(name):
        raise Refused(f"its output {fact.output} is read, and is {fact.reason} in the other version")
    del draft.proto.output[fact.output :]
    draft.gone.append(name)
