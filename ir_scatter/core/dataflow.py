"""Dataflow: how values flow through a graph and the bodies of its nodes; what running a model needs.

Formats describe this in different ways (port maps, names, signatures); each translates it to these records. A
key identifies a value inside one graph; its type depends on the format.
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
    """The value if the caller passes none; None if it is required."""
    kind: str = "tensor"
    """Or "sequence", "optional", "map" ...: an input that cannot be an array."""


@dataclass(frozen=True, slots=True, eq=False)
class GraphOutput:
    """An output of a graph, with the best known type and shape."""

    key: Key
    name: str
    element_type: ElementType | None
    shape: Shape
    aliases: tuple[str, ...] = ()
    """Its other names."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.name, *self.aliases


def feeds_by_input(inputs: Sequence[tuple[Sequence[str], bool]], feeds: Collection[str]) -> list[str]:
    """Return the name of the feed of each input, "" if it has none.

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
    """A node and the keys of its values in the order of the specification, None for an omitted one."""

    node: Node
    inputs: tuple[Key | None, ...]
    outputs: tuple[Key | None, ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """How a loop slices an array into one part per iteration, or concatenates such parts.

    Attributes:
        axis: the sliced axis; a negative axis, start or end counts from the end.
        end: the last position that belongs to a part.
        stride: the step from one part to the next; if negative, the last part comes first.
        keeps_axis: False if a part has one dimension less.
    """

    axis: int
    start: int = 0
    end: int = -1
    stride: int = 1
    part: int = 1
    keeps_axis: bool = True


class BodySource(StrEnum):
    """The kinds of inputs of a body."""

    ITERATION = "the number of the iteration"
    CONDITION = "whether the loop goes on"
    WHOLE = "an input of the node"
    CARRIED = "an input of the node, then what the last iteration made"
    PART = "a part of an input of the node"


@dataclass(frozen=True, slots=True)
class BodyInput:
    """Where an input of a body comes from."""

    source: BodySource
    outer: int | None = None
    """The number of the node's input."""
    successor: int | None = None
    """The number of the body's output that is the next value."""
    slice: Slice | None = None


@dataclass(frozen=True, slots=True)
class BodyOutput:
    """The number of the body's output that an output of a loop is."""

    inner: int
    slice: Slice | None = None
    """How the parts are concatenated; None for the value of the last iteration."""


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A node that computes a graph once: a function, or a branch of a choice."""

    body: "Dataflow"
    inputs: tuple[int | None, ...]
    """The number of the node's input for each input of the body; None if left out."""
    outputs: tuple[int, ...]
    """The number of the body's output for each output of the node."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A node that computes one of two graphs; the input number `condition` chooses."""

    condition: int
    branches: Mapping[bool, Call]


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """A loop: a node that computes a graph repeatedly.

    Attributes:
        trips: the number of the input that holds the maximum number of iterations.
        condition: the number of the input that holds whether to begin.
        goes_on: the number of the body's output that holds whether to continue.
    """

    body: "Dataflow"
    inputs: tuple[BodyInput, ...]
    outputs: tuple[BodyOutput, ...]
    trips: int | None = None
    condition: int | None = None
    goes_on: int | None = None


Nested: TypeAlias = Call | Choice | Repeat


class Dataflow(ABC):
    """How the values of one graph flow."""

    graph: Graph
    inputs: tuple[GraphInput, ...]
    outputs: tuple[GraphOutput, ...]
    captured: tuple[Key, ...] = ()
    """Values that come from the graphs around this one."""
    assigned: Mapping[str, Key] = MappingProxyType({})
    """The values that state variables hold in the next inference, by variable name."""

    @abstractmethod
    def constant(self, key: Key) -> Constant | None:
        """Return the constant of a key, None for any other value."""

    @abstractmethod
    def value(self, key: Key) -> Value | None:
        """Return the value of a key as the file declares it, None if nothing produces it."""

    @abstractmethod
    def link(self, key: Key) -> Link | None:
        """Return the node that produces a value, None for an input or a captured value."""

    @abstractmethod
    def nested(self, node: Node) -> Nested | None:
        """Return the connections of a node to its bodies, None if it has none.

        Raises:
            UnreadableModel: the connections are inconsistent.
        """


def inflows(
    wiring: Callable[[Any], Dataflow], node: Node
) -> Iterator[tuple[GraphInput, BodyInput, Value | None, Shape]]:
    """Yield for each input of the bodies of a loop or a choice: input, source, outer value, shape inside.

    `wiring` makes the dataflow of the node's graph. Yields nothing if the connections are inconsistent.
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
