"""Nodes at an older version of their operator, if they say nothing that it cannot say."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx

from ir_scatter.elements import ELEMENT_TYPES, dtype
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
from ir_scatter.opsets.coercion import unite
from ir_scatter.opsets.conditions import holds, is_never_negative
from ir_scatter.opsets.draft import Draft, Refused
from ir_scatter.opsets.inputs import move_out
from ir_scatter.opsets.outputs import give_up
from ir_scatter.opsets.passage import Step, show


def lower_node(draft: Draft, step: Step) -> None:
    """Take a node to the version of its operator before.

    Raises:
        Refused: the version before has nothing that means the same.
    """
    for fact in step.facts:
        _LOWERERS[type(fact)](fact, draft)
    _drop_defaults(draft, step)


def _drop_defaults(draft: Draft, step: Step) -> None:
    """Take away the attributes that the older version does not know, if they say what it does."""
    for name, attribute in step.newer.attributes.items():
        if name in step.older.attributes or not draft.has(name):
            continue
        value, default = draft.attribute(name), attribute.default_value
        same = onnx.helper.get_attribute_value(default) if default.name else None
        if isinstance(same, bytes):
            same = same.decode()
        if same is None or value != same:
            raise Refused(f"its attribute {name} is {value}, which {show(step.older)} cannot say")
        draft.erase(name)


def _barrier(fact: Barrier, draft: Draft) -> None:
    if fact.down and all(holds(condition, draft) for condition in fact.conditions):
        raise Refused(fact.reason)


def _added(fact: Added, draft: Draft) -> None:
    value = draft.attribute(fact.attribute)
    if fact.is_idle:
        draft.erase(fact.attribute)
    elif fact.is_list_of_same:
        if value is not None and any(item != fact.same for item in value):
            raise Refused(f"its {fact.attribute} is {value}, which can only be {fact.same} before")
        draft.erase(fact.attribute)
    elif value != fact.same:
        raise Refused(f"its {fact.attribute} is not {fact.same!r}, which is all that can be meant before")
    else:
        draft.erase(fact.attribute)


def _for_zeros(fact: ForZeros, draft: Draft) -> None:
    array = draft.constant(draft.input(fact.input))
    if array is not None and bool(array.all()):
        draft.erase(fact.attribute)


def _switch(fact: Switch, draft: Draft) -> None:
    name = draft.input(fact.input)
    if name:
        array = draft.constant(name)
        if array is None or bool(array.any()):
            raise Refused(fact.reason)
        draft.connect(fact.input, "")


def _nothing(_fact: Any, _draft: Draft) -> None:
    """Leave the node as it is: it says nothing that the older version would read otherwise."""


def _words(fact: Words, draft: Draft) -> None:
    word = draft.attribute(fact.attribute)
    if word is None:
        return
    if word not in fact.down:
        raise Refused(f"nothing means the {fact.attribute} {word!r} before")
    if fact.down[word] != word:
        draft.write(fact.attribute, fact.down[word])


def _counted(fact: Counted, draft: Draft) -> None:
    if draft.input(1):
        return
    parts = draft.attribute(fact.attribute)
    shape = draft.place.shape(draft.input(0))
    axis = draft.attribute(fact.axis, 0)
    if shape is None or not -len(shape) <= axis < len(shape):
        raise Refused("whether its parts are of one length is not known, and all that can be meant before")
    dim = shape[axis]
    if parts != len(draft.proto.output) or not isinstance(dim, int) or dim % parts:
        raise Refused("its parts are not known to be of one length, which is all that can be meant before")
    draft.erase(fact.attribute)


def _exclusive(fact: Exclusive, draft: Draft) -> None:
    for number in fact.optional:
        if not draft.input(number):
            draft.connect(number, draft.make_constant(f"none_{number}", np.zeros(0, np.float32)))


def _wrapped(_fact: Wrapped, draft: Draft) -> None:
    if not is_never_negative(draft, 0):
        raise Refused("negative indices are out of range before, and count from the end since")


def _sampled(fact: Sampled, draft: Draft) -> None:
    raise Refused(f"{fact.coordinates[0]} cannot be said before")


def _renamed(fact: Renamed, draft: Draft) -> None:
    raise Refused(f"{fact.type} does not exist before")


def _listed(fact: Listed, draft: Draft) -> None:
    for name, element_type in fact.others:
        value = draft.attribute(name)
        if value is not None:
            array = np.array(value, dtype(ELEMENT_TYPES[element_type]))
            draft.erase(name)
            draft.write(fact.tensor, onnx.numpy_helper.from_array(array, draft.proto.output[0]))


_LOWERERS: Mapping[type, Callable[[Any, Draft], None]] = {
    Barrier: _barrier,
    Moved: move_out,
    Added: _added,
    Removed: _nothing,
    Words: _words,
    Renamed: _renamed,
    Redefined: give_up,
    Coerced: unite,
    Misread: _nothing,
    Counted: _counted,
    Sampled: _sampled,
    Exclusive: _exclusive,
    Wrapped: _wrapped,
    Listed: _listed,
    ForZeros: _for_zeros,
    Switch: _switch,
}
