"""What the graphs of one ONNX model have in common, and what was inferred about each."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from onnx import TypeProto

from ir_scatter.formats.base import UNKNOWN_OPERATORS, Operators
from ir_scatter.formats.onnx.attributes import Bindings
from ir_scatter.formats.onnx.tensors import Tensors


@dataclass(frozen=True, slots=True, eq=False)
class Inferred:
    """What shape inference found out about a graph.

    Attributes:
        types: by name of a value.
        bodies: what it found out about the graphs inside nodes, by position and name.
    """

    types: Mapping[str, TypeProto] = field(default_factory=dict)
    bodies: Mapping[tuple[int, str], "Inferred"] = field(default_factory=dict)


NOTHING = Inferred()


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """What all graphs of one model, or of one use of a function, share.

    Attributes:
        path: the file.
        tensors: makes constants.
        ir_version: below 4 every initializer is an input too, and a constant all the same.
        opsets: the versions by domain.
        bindings: what a call gives for the attributes of a function.
        operators: what the reader was told of them.
    """

    path: str
    tensors: Tensors
    ir_version: int
    opsets: Mapping[str, int]
    bindings: Bindings = field(default_factory=dict)
    operators: Operators = UNKNOWN_OPERATORS

    @property
    def has_defaults(self) -> bool:
        """Tell whether an initializer that is an input too is only the input's default."""
        return self.ir_version >= 4
