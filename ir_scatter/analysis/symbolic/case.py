"""What a rule receives: one output of one node, and the queries for facts of its inputs."""

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
    """A request of a rule for the symbolic dimensions of a value, or for the facts about its elements."""

    value: Value
    asks_dims: bool


class SymbolSource(ABC):
    """The part of the walker that rules and texts use: symbols, knowledge about them, and model inputs.

    Attributes:
        facts: facts about the values of the model.
        knowledge: ranges of symbols and inequalities between them, including the user's conditions.
        inputs: the inputs of the model, by value.
        cast_inputs: float inputs that are cast to integers, by the value after the cast.
    """

    facts: Facts
    knowledge: Knowledge
    inputs: dict[Value, GraphInput]
    cast_inputs: dict[Value, Value]

    @abstractmethod
    def symbol(self, kind: SymbolKind, value: Value, axis: int = -1) -> Linear:
        """Return a symbol as an expression; its range by type or shape is added to the knowledge."""

    @abstractmethod
    def size(self, value: Value, axis: int) -> Linear:
        """Return the size of a dimension as a symbol."""

    @abstractmethod
    def input_numbers(self, value: Value, dims: Dims) -> TensorNumbers:
        """Return the facts about the elements of an input: two symbols bound them.

        These are the least and the greatest element.
        """

    @abstractmethod
    def dims(self, value: Value) -> Dims:
        """Return the symbolic dimensions of a value, None if its rank is unknown."""

    @abstractmethod
    def name(self, value: Value) -> str:
        """Return the name of a model input; for a value that an input is cast to, the name of that input."""


@dataclass(frozen=True, slots=True)
class NodeCase:
    """One output of one node, for which a rule computes facts."""

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
        """Return the integers of a constant input as a list; None if it is missing or not constant."""
        value = self.value(port)
        array = None if value is None else self.walker.facts.whole_numbers(value)
        return None if array is None else [int(number) for number in array.reshape(-1)]

    def vector(self, port: int) -> "Generator[Query, Any, list[Linear] | None]":
        """Return the elements of a scalar or short 1-D input as expressions; None if one is unknown."""
        numbers = yield from self.numbers(port)
        return numbers.vector()


def type_range(element_type: ElementType | None) -> tuple[float, float]:
    """Return the least and greatest number of an integer or boolean type; infinite ends for others."""
    if element_type is None or element_type.kind not in {"signed", "unsigned", "boolean"}:
        return -inf, inf
    if element_type.kind == "boolean":
        return 0, 1
    bits = element_type.bits
    return (0, 2**bits - 1) if element_type.kind == "unsigned" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def varying(dims: Sequence[Linear]) -> list[int]:
    """Return the axes whose size may be other than 1."""
    return [axis for axis, dim in enumerate(dims) if dim != Linear(1)]
