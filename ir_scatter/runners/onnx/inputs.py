"""Holds feeds against the inputs of an ONNX model; runs in the process of a runtime."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ir_scatter.core.element_types import ElementType, dtype
from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.runners.service import Failure


@dataclass(frozen=True, slots=True)
class Expected:
    """An input of a model.

    Attributes:
        name: of the input.
        type: None if it is no tensor, or one of a type that we do not know.
        shape: a number, a name or None for each dimension; None if the rank is not known.
        is_optional: whether it has a value if it is not given.
    """

    name: str
    type: ElementType | None
    shape: tuple[Any, ...] | None
    is_optional: bool = False


def check(inputs: Sequence[Expected], feeds: Mapping[str, Array]) -> None:
    """Hold feeds against the inputs of a model.

    Raises:
        Failure: one is missing, superfluous, or of the wrong type or shape.
    """
    names = [input.name for input in inputs]
    for name in feeds:
        if name not in names:
            known = ", ".join(input.name for input in inputs if not input.is_optional) or "none"
            raise Failure("refused", f"the model has no input {name!r}, expected {known}")
    missing = [input.name for input in inputs if input.name not in feeds and not input.is_optional]
    if missing:
        raise Failure("refused", f"no array is given for {', '.join(missing)}")
    for input in inputs:
        if input.name in feeds:
            _check_one(input, feeds[input.name])


def _check_one(input: Expected, array: Array) -> None:
    expected = None if input.type is None else dtype(input.type)
    if expected is None:
        raise Failure("unsupported", f"input {input.name} is no tensor of a type that NumPy has")
    if array.dtype != expected:
        raise Failure("refused", f"{input.name} is {array.dtype.name}, expected {expected.name}")
    if input.shape is None:
        return
    if len(input.shape) != array.ndim or any(
        isinstance(dim, int) and dim != size for dim, size in zip(input.shape, array.shape, strict=True)
    ):
        shown = ", ".join("?" if dim is None else str(dim) for dim in input.shape)
        raise Failure("refused", f"{input.name} has shape {list(array.shape)}, expected [{shown}]")
