"""Holds the arrays that a caller gives for a model against what the model asks for."""

from collections.abc import Mapping, Sequence
from typing import Any

from ir_scatter.core.dataflow import GraphInput
from ir_scatter.core.element_types import ElementType, dtype, in_own_dtype
from ir_scatter.core.errors import BadFeed
from ir_scatter.core.shapes import agree, show, with_article
from ir_scatter.evaluate.arrays import read_array
from ir_scatter.evaluate.machine import load
from ir_scatter.ops.general_kernels.base import Array

_TEXT_KINDS = "OUST"
"""NumPy's kinds of arrays that can hold strings."""


def check_feeds(inputs: Sequence[GraphInput], feeds: Mapping[str, Any]) -> list[Array]:
    """Return one array for each input of a model, in the own dtype of its element type.

    Args:
        inputs: what the model asks for.
        feeds: arrays by any name of an input.

    Raises:
        BadFeed: one is missing, superfluous, given twice, or of the wrong type or shape.
    """
    if not isinstance(feeds, Mapping):
        raise BadFeed(f"the feeds are {with_article(type(feeds).__name__)}, expected arrays by name")
    numbers = {name: number for number, input in enumerate(inputs) for name in reversed(input.names)}
    given: dict[int, str] = {}
    for name in feeds:
        if name not in numbers:
            known = ", ".join(input.names[0] for input in inputs) or "none"
            raise BadFeed(f"the model has no input {name!r}, expected {known}")
        other = given.setdefault(numbers[name], name)
        if other != name:
            raise BadFeed(f"{other!r} and {name!r} are the same input, expected one of them")
    missing = [
        input.names[0] for number, input in enumerate(inputs) if number not in given and input.default is None
    ]
    if missing:
        raise BadFeed(f"no array is given for {', '.join(missing)}")
    return [_array(input, given.get(number), feeds) for number, input in enumerate(inputs)]


def _array(input: GraphInput, name: str | None, feeds: Mapping[str, Any]) -> Array:
    if name is None:
        assert input.default is not None
        return load(input.default)
    try:
        array = in_own_dtype(read_array(feeds[name]))
    except OverflowError as error:
        raise BadFeed(f"{name} holds {error}") from None
    except Exception as error:  # whatever an object raises that is asked for its array
        raise BadFeed(f"{name} is no array: {error}") from None
    if input.element_type is not None:
        array = _of_type(name, array, input.element_type)
    if not agree(input.shape, array.shape):
        raise BadFeed(f"{name} has shape {show(array.shape)}, expected {show(input.shape)}")
    return array


def _of_type(name: str, array: Array, wanted: ElementType) -> Array:
    expected = dtype(wanted)
    if wanted.kind == "string":
        return _strings(name, array)
    if expected is None:
        raise BadFeed(f"{name} is {wanted.name}, which NumPy has no type for")
    if array.dtype != expected:
        raise BadFeed(f"{name} is {array.dtype.name}, expected {expected.name}")
    return array


def _strings(name: str, array: Array) -> Array:
    """Return strings as objects, which is how they are held everywhere."""
    if array.dtype.kind not in _TEXT_KINDS:
        raise BadFeed(f"{name} is {array.dtype.name}, expected strings")
    found = array.astype(object)
    if not all(isinstance(text, str) for text in found.flat):
        raise BadFeed(f"{name} holds more than strings")
    return found
