"""Attributes that became inputs: an attribute as an array, an array as an attribute."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ir_scatter.elements import dtype
from ir_scatter.ops.opset_facts import Empty, Form, Moved
from ir_scatter.opsets.draft import Draft, Refused

if TYPE_CHECKING:
    from ir_scatter.constants import Array

_DTYPES = {
    Form.LIST: np.int64,
    Form.ONE: np.int64,
    Form.SCALAR: np.int64,
    Form.FLOATS: np.float32,
    Form.FLOAT: np.float32,
}
_LISTS = frozenset({Form.LIST, Form.FLOATS})


def move_in(fact: Moved, draft: Draft) -> None:
    """Turn the attribute of a node into an input."""
    value = _meant(fact, draft)
    if value is None or _is_left_out(fact, draft, value):
        draft.erase(fact.attribute)
        return
    array = _array(fact, draft, value)
    draft.erase(fact.attribute)
    draft.connect(fact.input, draft.make_constant(fact.attribute, array))


def move_out(fact: Moved, draft: Draft) -> None:
    """Turn the input of a node into an attribute."""
    name = draft.input(fact.input)
    if not name:
        _move_out_absent(fact, draft)
        return
    array = draft.constant(name)
    if array is None:
        raise Refused(f"its input {fact.attribute} is not constant, and an attribute before")
    draft.connect(fact.input, "")
    value = _value(fact, array)
    if value == [] and fact.empty is not Empty.KEPT:
        _refuse_unsaid(fact)
        return
    draft.write(fact.attribute, value)


def _meant(fact: Moved, draft: Draft) -> Any:
    """Return what the attribute means; None for nothing that an input could say."""
    value = draft.attribute(fact.attribute)
    if value is None and fact.counts:
        return list(range(len(draft.attribute(fact.counts, []))))
    if value is None:
        return fact.absent
    if value == [] and fact.empty is not Empty.KEPT:
        _refuse_unsaid(fact)
        return None
    return value


def _refuse_unsaid(fact: Moved) -> None:
    if fact.empty is Empty.UNSAID:
        raise Refused(f"its {fact.attribute} is an empty list, and the document does not say what that means")


def _is_left_out(fact: Moved, draft: Draft, value: Any) -> bool:
    """Tell whether leaving the input out means the value."""
    return value == fact.default and _has_default(fact, draft)


def _has_default(fact: Moved, draft: Draft) -> bool:
    if fact.default_types is None:
        return True
    element_type = draft.place.element_type(draft.input(0))
    return element_type is not None and element_type.name in fact.default_types


def _array(fact: Moved, draft: Draft, value: Any) -> "Array":
    if fact.form is Form.ONE:
        value = [value]
    if fact.form is not Form.LIKE_DATA:
        try:
            return np.array(value, _DTYPES[fact.form])
        except (TypeError, ValueError):
            raise Refused(f"its {fact.attribute} is not what the operator documents") from None
    element_type = draft.place.element_type(draft.input(0))
    data_type = None if element_type is None else dtype(element_type)
    if data_type is None or element_type is None or element_type.kind != "float":
        raise Refused(
            f"its {fact.attribute} must become an input of the type of its data, which is not known"
        )
    with np.errstate(over="ignore"):
        return np.array(value, np.float64).astype(data_type)


def _move_out_absent(fact: Moved, draft: Draft) -> None:
    if fact.default == fact.absent and _has_default(fact, draft):
        return
    if fact.default is None or not _has_default(fact, draft):
        raise Refused(f"its input {fact.attribute} is left out, and must be said before")
    draft.write(fact.attribute, int(fact.default) if fact.form is Form.SCALAR else fact.default)


def _value(fact: Moved, array: "Array") -> Any:
    """Return what the attribute must say to mean a constant."""
    if fact.form in _LISTS:
        return array.reshape(-1).tolist()
    if array.size != 1:
        raise Refused(f"its input {fact.attribute} has {array.size} elements, expected 1")
    value = array.reshape(-1)[0]
    if fact.form in (Form.ONE, Form.SCALAR):
        return int(value)
    with np.errstate(over="ignore"):
        if np.float32(value) != value:
            raise Refused(f"its {fact.attribute} {value} is no float32 number, and an attribute must be one")
    return float(value)
