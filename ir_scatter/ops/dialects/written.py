"""One operation as a dialect writes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Written:
    """One operation as a dialect writes it.

    Attributes:
        type: the operator.
        opset: an IR's word or an ONNX model's number.
        attributes: as the dialect writes them.
        extra: inputs that follow those of the operation: label and whole numbers, a list or one number.
    """

    type: str
    opset: str | int
    attributes: Mapping[str, Any] = field(default_factory=dict)
    extra: tuple[tuple[str, int | Sequence[int]], ...] = ()
