"""Dataflow: which node produces each value of a graph, and how bodies are connected.

Formats describe this in different ways (port maps, names, signatures); each translates it to these records
for the interpreters. A *key* identifies a value inside one graph; its type depends on the format.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, TypeAlias

from ir_scatter.core.element_types import ElementType
from ir_scatter.core.errors import BadFeed, UnreadableModel
from ir_scatter.core.model import Graph, Node, Value
from ir_scatter.core.shapes import Shape
from ir_scatter.core.suggestions import did_you_mean
from ir_scatter.core.tensors import Constant

Key: TypeAlias = Hashable


@dataclass(frozen=True, slots=True, eq=False)
class GraphInput:
    """An input of a graph, as declared."""

    key: Key
    names: tuple[str, ...]
    """All names of the input, the usual one first."""
    element_type: ElementType | None
    shape: Shape
    default: Constant | None = None
    """The value that is used if the caller passes none; None if the input is required."""
    kind: str = "tensor"
    """"tensor", or an input that cannot be an array: "sequence", "optional", "map" ..."""


@dataclass(frozen=True, slots=True, eq=False)
class GraphOutput:
    """An output of a graph, with the best known type and shape."""

    key: Key
    name: str
    element_type: ElementType | None
    shape: Shape
    aliases: tuple[str, ...] = ()
    """Other names of the output."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.name, *self.aliases


def feeds_by_input(inputs: Sequence[tuple[Sequence[str], bool]], feeds: Collection[str]) -> list[str]:
    """Return, for each input, the name of its array in `feeds`; "" for an omitted optional input.

    Args:
        inputs: for each input all its names, the usual one first, and whether it is optional.
        feeds: the names of the arrays that the caller passes.

    Raises:
        BadFeed: a feed is missing, superfluous, or given twice.
    """
    numbers = {name: number for number, (names, _) in enumerate(inputs) for name in reversed(names)}
    feed_names = [""] * len(inputs)
    for name in feeds:
        if name not in numbers:
            expected = ", ".join(names[0] for names, _ in inputs) or "none"
            guess = did_you_mean(str(name), numbers)
            raise BadFeed(f"the model has no input {name!r}{guess}, expected {expected}")
        if earlier := feed_names[numbers[name]]:
            raise BadFeed(f"{earlier!r} and {name!r} are the same input, expected one of them")
        feed_names[numbers[name]] = name
    missing = [
        names[0]
        for (names, is_optional), name in zip(inputs, feed_names, strict=True)
        if not (name or is_optional)
    ]
    if missing:
        raise BadFeed(f"no array is given for {', '.join(missing)}")
    return feed_names


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """A node, and the keys of its inputs and outputs in the order of the specification.

    A key is None for an omitted input or output.
    """

    node: Node
    inputs: tuple[Key | None, ...]
    outputs: tuple[Key | None, ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """The slicing of an array into one part per iteration of a loop, or the concatenation of such parts.

    Attributes:
        axis: the sliced axis; a negative axis, start or end counts from the end.
        end: the last position that belongs to a part.
        stride: the step from one part to the next; if negative, the last part comes first.
        part: the size of a part along the axis.
        keeps_axis: whether a part keeps the axis; otherwise it has one dimension less.
    """

    axis: int
    start: int = 0
    end: int = -1
    stride: int = 1
    part: int = 1
    keeps_axis: bool = True


class BodySource(StrEnum):
    """The source of an input of a body."""

    ITERATION = "the number of the iteration"
    CONDITION = "whether the loop goes on"
    WHOLE = "an input of the node"
    CARRIED = "an input of the node, then what the last iteration made"
    PART = "a part of an input of the node"


@dataclass(frozen=True, slots=True)
class BodyInput:
    """The source of one input of a loop body or branch."""

    source: BodySource
    outer: int | None = None
    """The number of the node's input that gives the (first) value."""
    successor: int | None = None
    """For a carried value, the number of the body's output that is the value in the next iteration."""
    slice: Slice | None = None


@dataclass(frozen=True, slots=True)
class BodyOutput:
    """The output of the loop body that gives one output of the loop."""

    inner: int
    slice: Slice | None = None
    """How the parts of all iterations are concatenated; None if the output is the value of the last
    iteration."""


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A node that computes a graph once: a call of a function, or a branch of an If."""

    body: "Dataflow"
    inputs: tuple[int | None, ...]
    """For each input of the body, the number of the node's input; None if omitted."""
    outputs: tuple[int, ...]
    """For each output of the node, the number of the body's output."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """An If: a node that computes one of two graphs, as its input `condition` decides."""

    condition: int
    branches: Mapping[bool, Call]


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """A loop: a node that computes a graph repeatedly.

    Attributes:
        trips: the number of the input with the maximum number of iterations.
        condition: the number of the input that decides whether the first iteration runs.
        goes_on: the number of the body's output that decides whether another iteration follows.
    """

    body: "Dataflow"
    inputs: tuple[BodyInput, ...]
    outputs: tuple[BodyOutput, ...]
    trips: int | None = None
    condition: int | None = None
    goes_on: int | None = None


Nested: TypeAlias = Call | Choice | Repeat


class Dataflow(ABC):
    """The connections of one graph: which node produces each value, and how bodies are connected."""

    graph: Graph
    inputs: tuple[GraphInput, ...]
    outputs: tuple[GraphOutput, ...]
    captured: tuple[Key, ...] = ()
    """Values of outer graphs that this graph reads."""
    assigned: Mapping[str, Key] = MappingProxyType({})
    """The values that state variables hold in the next inference, by variable name."""

    @abstractmethod
    def constant(self, key: Key) -> Constant | None:
        """Return the constant of a key; None if the key belongs to another value."""

    @abstractmethod
    def value(self, key: Key) -> Value | None:
        """Return the declared value of a key; None if no node produces it."""

    @abstractmethod
    def link(self, key: Key) -> Link | None:
        """Return the node that produces the value of a key; None for an input or a captured value."""

    @abstractmethod
    def nested(self, node: Node) -> Nested | None:
        """Return the connections of a node to its bodies, None if it has none.

        Raises:
            UnreadableModel: the connections are inconsistent.
        """


def inflows(
    wiring: Callable[[Any], Dataflow], node: Node
) -> Iterator[tuple[GraphInput, BodyInput, Value | None, Shape]]:
    """Yield (input, source, outer value, shape in the body) for each body input of a loop or an If.

    `wiring` returns the dataflow of a graph. Nothing is yielded if the connections are inconsistent.
    """
    try:
        nested = wiring(node.graph).nested(node)
    except UnreadableModel:
        return
    pairs = list[tuple[GraphInput, BodyInput]]()
    if isinstance(nested, Repeat):
        pairs += zip(nested.body.inputs, nested.inputs, strict=True)
    for call in nested.branches.values() if isinstance(nested, Choice) else ():
        inputs = [BodyInput(BodySource.WHOLE, outer) for outer in call.inputs]
        pairs += zip(call.body.inputs, inputs, strict=True)
    for input, inflow in pairs:
        value = None if inflow.outer is None else node.inputs[inflow.outer].value
        shape, cut = None if value is None else value.shape, inflow.slice
        if cut is not None and shape is not None and -len(shape) <= cut.axis < len(shape):
            axis = cut.axis % len(shape)
            shape = (*shape[:axis], *([abs(cut.part)] if cut.keeps_axis else []), *shape[axis + 1 :])
        yield input, inflow, value, shape
