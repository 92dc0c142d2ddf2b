"""What a rule sees: one output of one node, and the questions that it may ask."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple, TypeAlias

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.symbolic.linear import Knowledge, Linear, SymbolKind
from ir_scatter.analysis.symbolic.numbers import TensorNumbers
from ir_scatter.core.dataflow import GraphInput
from ir_scatter.core.element_types import ElementType
from ir_scatter.core.model import OPENVINO, Node, Value
from ir_scatter.ops.general import GeneralOp

Dims: TypeAlias = tuple[Linear, ...] | None
"""The symbolic size of each dimension; None for an unknown rank."""


class Query(NamedTuple):
    """A question of a rule: the dimensions of a value, or its numbers."""

    value: Value
    asks_dims: bool


class SymbolSource(ABC):
    """What rules and texts need of the walker: symbols, what is known of them, and the inputs of the model.

    Attributes:
        knowledge: what is known of symbols; what a user gives is added to it.
        inputs: the inputs of the model, by value.
        cast_inputs: values that an input of floats becomes when it is cast to integers, with that input.
    """

    facts: Facts
    knowledge: Knowledge
    inputs: dict[Value, GraphInput]
    cast_inputs: dict[Value, Value]

    @abstractmethod
    def symbol(self, kind: SymbolKind, value: Value, axis: int = -1) -> Linear:
        """Return a symbol as an expression, and record the range that follows from type or shape."""

    @abstractmethod
    def size(self, value: Value, axis: int) -> Linear:
        """Return the size of a dimension as a symbol of its own."""

    @abstractmethod
    def fed(self, value: Value, dims: Dims) -> TensorNumbers:
        """Return the numbers of a tensor whose elements are only known to be between two symbols."""

    @abstractmethod
    def dims(self, value: Value) -> Dims:
        """Return the symbolic dimensions of a value, None if its rank is unknown."""

    @abstractmethod
    def name(self, value: Value) -> str:
        """Return the name of an input, or of a value that an input is cast to."""


@dataclass(frozen=True, slots=True)
class NodeCase:
    """One output of one node, as rules see it."""

    walker: SymbolSource
    node: Node
    op: GeneralOp
    output: int

    @property
    def knowledge(self) -> Knowledge:
        return self.walker.knowledge

    @property
    def is_openvino(self) -> bool:
        return self.node.domain == OPENVINO

    def value(self, port: int) -> Value | None:
        return self.node.inputs[port].value if port < len(self.node.inputs) else None

    def values(self) -> list[Value | None]:
        return [port.value for port in self.node.inputs]

    def dims(self, port: int) -> "Generator[Query, Any, Dims]":
        value = self.value(port)
        answer: Dims = (yield Query(value, True)) if value is not None else None
        return answer

    def numbers(self, port: int) -> "Generator[Query, Any, TensorNumbers]":
        value = self.value(port)
        answer: TensorNumbers = (yield Query(value, False)) if value is not None else TensorNumbers()
        return answer

    def output_dims(self) -> "Generator[Query, Any, Dims]":
        answer: Dims = yield Query(self.node.outputs[self.output], True)
        return answer

    def constants(self, port: int) -> list[int] | None:
        """Return the whole numbers of a constant input; None if it is missing or not constant."""
        value = self.value(port)
        array = None if value is None else self.walker.facts.whole_numbers(value)
        return None if array is None else [int(number) for number in array.reshape(-1)]

    def vector(self, port: int) -> "Generator[Query, Any, list[Linear] | None]":
        """Return the elements of a short list or scalar, each as an expression; None if one is unknown."""
        numbers = yield from self.numbers(port)
        return numbers.vector()


def type_range(element_type: ElementType | None) -> tuple[float, float]:
    """Return the least and the greatest number of a type; infinite for floats and unknown types."""
    if element_type is None or element_type.kind not in {"signed", "unsigned", "boolean"}:
        return -inf, inf
    if element_type.kind == "boolean":
        return 0, 1
    bits = element_type.bits
    return (0, 2**bits - 1) if element_type.kind == "unsigned" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def varying(dims: Sequence[Linear]) -> list[int]:
    """Return the axes that may have more than one position."""
    return [axis for axis, dim in enumerate(dims) if dim != Linear(1)]
