"""Reads attributes of an operator, from an IR or an ONNX model; for kernels and rules."""

import operator
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ir_scatter.core.element_types import ElementType, from_element_type, from_onnx_number

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


class Attributes:
    """Reads attributes: text in an IR ("0, 1", "true", "i64"), Python values in ONNX.

    Every method raises ValueError or TypeError if a value has the wrong type, or if a required attribute is
    missing.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    @property
    def values(self) -> Mapping[str, Any]:
        return self._values

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def integer(self, name: str, default: int | None = None) -> int:
        return _integer(self.value(name, default), name)

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """Return a list of integers; empty text is an empty list."""
        value = self.value(name, default)
        if isinstance(value, str):
            value = value.split(",") if value.strip() else []
        return [_integer(number, name) for number in value]

    def number(self, name: str, default: float | None = None) -> float:
        return float(self.value(name, default))

    def numbers(self, name: str, default: Sequence[float] | None = None) -> list[float]:
        """Return a list of numbers; empty text is an empty list."""
        value = self.value(name, default)
        if isinstance(value, str):
            value = value.split(",") if value.strip() else []
        return [float(number) for number in value]

    def boolean(self, name: str, default: bool | None = None) -> bool:
        """Return a boolean, written as "true" and "false" in any case, or as 1 and 0."""
        return _BOOLEANS[self.text(name, None if default is None else str(default), _BOOLEANS)]

    def text(self, name: str, default: str | None, choices: Collection[str]) -> str:
        """Return a text in lower case, which must be one of `choices`."""
        value = str(self.value(name, default)).strip().lower()
        if value not in choices:
            raise ValueError(f"{name} is {value}, expected {', '.join(sorted(choices))}")
        return value

    def element_type(self, name: str, default: str | None = None) -> ElementType:
        """Return an element type, written as a name in an IR, or a number in ONNX."""
        value = self.value(name, default)
        if isinstance(value, str):
            element_type = from_element_type(value.strip())
        else:
            element_type = from_onnx_number(_integer(value, name))
        if element_type is None:
            raise ValueError(f"{name} is {value}, expected an element type")
        return element_type

    def value(self, name: str, default: Any = None) -> Any:
        value = self._values.get(name, default)
        if value is None:
            raise ValueError(f"attribute {name} is missing")
        return value


def _integer(value: Any, name: str) -> int:
    if isinstance(value, str):
        if not _INTEGER.fullmatch(value.strip()):
            raise ValueError(f"{name} is {value!r}, expected whole numbers")
        value = int(value)
    number = operator.index(value)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{name} is {number}, expected 64 bits")
    return number


def zero_copies(attributes: Attributes, *, is_onnx: bool) -> bool:
    """Whether 0 in a Reshape's target copies a dimension, by `special_zero` (IR) or `allowzero` (ONNX)."""
    return not attributes.boolean("allowzero", False) if is_onnx else attributes.boolean("special_zero")
