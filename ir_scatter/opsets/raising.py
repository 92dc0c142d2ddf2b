"""Nodes at a newer version of their operator, so that they mean what they meant."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ir_scatter.ops.opset_facts import (
    Added,
    Barrier,
    Coerced,
    Counted,
    Exclusive,
    ForZeros,
    Listed,
    Misread,
    Moved,
    Redefined,
    Removed,
    Renamed,
    Sampled,
    Switch,
    Words,
    Wrapped,
)
from ir_scatter.opsets.coercion import protect, separate
from ir_scatter.opsets.conditions import holds, is_never_negative
from ir_scatter.opsets.draft import Draft, Refused
from ir_scatter.opsets.inputs import move_in
from ir_scatter.opsets.outputs import give_up
from ir_scatter.opsets.passage import Step

_WRAPPING_TYPES = frozenset({"i32", "i64"})


def raise_node(draft: Draft, step: Step) -> None:
    """Take a node to the next version of its operator.

    Raises:
        Refused: the next version has nothing that means the same.
    """
    for fact in step.facts:
        _RAISERS[type(fact)](fact, draft)


def _barrier(fact: Barrier, draft: Draft) -> None:
    if fact.up and all(holds(condition, draft) for condition in fact.conditions):
        raise Refused(fact.reason)


def _added(fact: Added, draft: Draft) -> None:
    if fact.same is not None and not fact.is_list_of_same:
        draft.write(fact.attribute, fact.same)


def _removed(fact: Removed, draft: Draft) -> None:
    value = draft.attribute(fact.attribute, fact.value)
    if value != fact.value:
        raise Refused(f"{fact.attribute} can only be {fact.value} since, and is {value}")
    draft.erase(fact.attribute)


def _words(fact: Words, draft: Draft) -> None:
    word = draft.attribute(fact.attribute)
    if word is None:
        return
    if word not in fact.up:
        raise Refused(f"nothing means the {fact.attribute} {word!r} since")
    if fact.up[word] != word:
        draft.write(fact.attribute, fact.up[word])


def _renamed(fact: Renamed, draft: Draft) -> None:
    draft.proto.op_type = fact.type
    draft.only_enlarges = fact.only_enlarges


def _counted(fact: Counted, draft: Draft) -> None:
    if not draft.input(1):
        draft.write(fact.attribute, len(draft.proto.output))


def _sampled(fact: Sampled, draft: Draft) -> None:
    mode = draft.attribute(fact.mode, fact.nearest)
    if mode not in (fact.nearest, fact.linear):
        raise Refused(f"the {fact.mode} {mode!r} is none of its version")
    scales = draft.input(1)
    if mode == fact.nearest:
        attribute, enlarging, shrinking = fact.rounding
        word = enlarging if draft.only_enlarges else _rounding(draft, scales, enlarging, shrinking)
        draft.write(attribute, word)
    draft.write(*fact.coordinates)
    draft.connect(1, draft.make_constant("roi", np.zeros(0, np.float32)))
    draft.connect(2, scales)


def _rounding(draft: Draft, scales: str, enlarging: str, shrinking: str) -> str:
    array = draft.constant(scales)
    if array is None:
        raise Refused("whether it rounds up or down depends on its scales, which are not constant")
    if bool((array >= 1).all()):
        return enlarging
    if bool((array <= 1).all()):
        return shrinking
    raise Refused("it rounds up where it shrinks and down where it enlarges, which cannot be said since")


def _exclusive(fact: Exclusive, draft: Draft) -> None:
    if not draft.input(fact.other) or not draft.input(fact.empty):
        return
    array = draft.constant(draft.input(fact.empty))
    if array is not None and array.size:
        raise Refused(f"both its inputs {fact.empty} and {fact.other} have elements, expected one of them")
    draft.connect(fact.empty, "")


def _wrapped(_fact: Wrapped, draft: Draft) -> None:
    if is_never_negative(draft, 0):
        return
    indices = draft.input(0)
    element_type = draft.place.element_type(indices)
    if element_type is None or element_type.name not in _WRAPPING_TYPES:
        raise Refused("negative indices count from the end since, and were out of range before")
    number = np.int32 if element_type.name == "i32" else np.int64
    zero = draft.make_constant("zero", np.array(0, number))
    beyond = draft.make_constant("out_of_range", np.array(np.iinfo(number).max, number))
    is_negative = draft.make_node("Less", [indices, zero], "is_negative")
    draft.connect(0, draft.make_node("Where", [is_negative, beyond, indices], "not_negative"))


def _nothing(_fact: Any, _draft: Draft) -> None:
    """Leave the node as it is: it says nothing that the newer version would read otherwise."""


_RAISERS: Mapping[type, Callable[[Any, Draft], None]] = {
    Barrier: _barrier,
    Moved: move_in,
    Added: _added,
    Removed: _removed,
    Words: _words,
    Renamed: _renamed,
    Redefined: give_up,
    Coerced: separate,
    Misread: protect,
    Counted: _counted,
    Sampled: _sampled,
    Exclusive: _exclusive,
    Wrapped: _wrapped,
    Listed: _nothing,
    ForZeros: _nothing,
    Switch: _nothing,
}
