"""A model as it was read: graphs of nodes and values, never changed afterwards.

`Graph` is what a reader implements; a node asks its graph for its inputs, outputs and bodies only
when somebody wants them, so that a model of 15,000 nodes costs what its scatter nodes cost.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from ir_scatter.core.diagnostics import Location, Part, Related, Span
from ir_scatter.core.display import record, record_html, record_repr, short_repr
from ir_scatter.core.element_types import ElementType
from ir_scatter.core.shapes import Shape
from ir_scatter.core.tensors import Constant

OPENVINO = "openvino"
ONNX = ""


class OpKey(NamedTuple):
    """Identity of an operator: domain ("openvino", or "" for ONNX), type, since-version."""

    domain: str
    type: str
    version: int

    def __str__(self) -> str:
        return f"{self.type}-{self.version}"


@dataclass(slots=True, eq=False)
class Value:
    """A tensor flowing in a graph: what is known of it, and what the file stores for it, if anything."""

    __repr__, _repr_html_ = record_repr, record_html

    _name: str | None
    element_type: ElementType | None
    shape: Shape
    _producer: "Node | Callable[[], Node] | None" = None
    output: int = 0
    """The number of the producer's output, from 0."""
    constant: Constant | None = None
    """Set if the file holds the value itself."""
    location: Location | None = None
    stored_type: ElementType | None = None
    stored_shape: Shape = None
    producer_type: str | None = None
    """Where that is known without making the node."""
    is_input: bool = False
    """Whether it is known to be an input of the graph, so that it is no constant."""

    @property
    def producer(self) -> "Node | None":
        """Return the node it comes from; None for an input, an initializer, or a name nobody produces."""
        if callable(self._producer):
            self._producer = self._producer()
        return self._producer

    @property
    def name(self) -> str:
        if self._name is None:
            producer = self.producer
            self._name = producer.name if producer else ""
        return self._name


@dataclass(slots=True, eq=False)
class Input:
    """An input port of a node, and what an IR stores at it."""

    __repr__, _repr_html_ = record_repr, record_html

    value: Value | None
    """None if nothing is connected, or if it comes from something that does not exist."""
    is_present: bool = True
    """False for an optional input that was left out."""
    stored_type: ElementType | None = None
    stored_shape: Shape = None


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """One use of an operator in a graph.

    Attributes:
        domain: OPENVINO, ONNX, or a custom domain of an ONNX model.
        opset: as written: an IR's word ("opset3"), an ONNX model's number, None if it has none.
        name: as written; that of its first output if it has none.
        handle: what the reader knows it by.
    """

    graph: "Graph"
    domain: str
    type: str
    opset: str | int | None
    name: str
    handle: Any
    _inputs: tuple[Input, ...] | None = field(default=None, init=False)
    _outputs: tuple[Value, ...] | None = field(default=None, init=False)
    _attributes: Mapping[str, Any] | None = field(default=None, init=False)

    @property
    def scope(self) -> str:
        """Return the path to the node, its own name included."""
        return self.graph.scope + self.name

    @property
    def inputs(self) -> tuple[Input, ...]:
        if self._inputs is None:
            self._inputs = self.graph.inputs_of(self)
        return self._inputs

    @property
    def outputs(self) -> tuple[Value, ...]:
        if self._outputs is None:
            self._outputs = self.graph.outputs_of(self)
        return self._outputs

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Return the attributes as written: text in an IR; int, float, str, lists in ONNX."""
        if self._attributes is None:
            self._attributes = self.graph.attributes_of(self)
        return self._attributes

    @property
    def bodies(self) -> "Mapping[str, Graph]":
        """Return the graphs inside the node by the name the format gives them."""
        return self.graph.bodies_of(self)

    @property
    def location(self) -> Location:
        return self.graph.location_of(self)

    def __repr__(self) -> str:
        return short_repr(self, f"{self.scope} {self.type}")


class OperatorUse(NamedTuple):
    """One use of an operator, as far as it is known: what decides what it gives, and whether it is allowed.

    Attributes:
        opset: the word or the number that stands for it.
        numbers: gives the whole numbers of an input.
    """

    type: str
    opset: str | int | None
    attributes: Mapping[str, Any]
    types: Sequence[ElementType | None]
    shapes: Sequence[Shape]
    numbers: Callable[[int], list[int] | None]
    output_count: int = 1


class Graph(ABC):
    """Nodes that belong together: a model, a body, or one use of a function.

    Attributes:
        scope: what stands before the name of a node: "" or "If_23:then_body/".
        calls: for a function, the places that call it with this signature.
    """

    name: str = ""
    scope: str = ""
    calls: tuple[Related, ...] = ()

    @property
    def output_names(self) -> frozenset[str]:
        """Return the names of values that the graph gives; none where nodes stand for its outputs."""
        return frozenset()

    @property
    def refuses_types(self) -> bool:
        """Whether a runtime refuses a model if the element type stored for what a node makes is wrong."""
        return False

    def key_of(self, node: Node, indices: int, spelled: frozenset[int]) -> tuple[Hashable, list[int]] | None:
        """Return what decides all that can be known of a node but its name and the numbers of constants.

        A short cut to what can be read from the values of its inputs, which are not made for it.

        Beside the key the few numbers of the input `indices` are returned; those of `spelled` belong to
        the key. None where it takes the values: what stands in front of the node tells more of their shapes.
        """
        return None

    def is_dropped(self, node: Node) -> bool:
        """Tell whether a runtime drops a node, because nothing that the graph gives depends on it."""
        return False

    @abstractmethod
    def walk(self, types: frozenset[str] | None = None) -> Iterator[Node]:
        """Yield every node, or those of some types, in bodies too, in the order of the file."""

    @abstractmethod
    def inputs_of(self, node: Node) -> tuple[Input, ...]: ...

    @abstractmethod
    def outputs_of(self, node: Node) -> tuple[Value, ...]: ...

    @abstractmethod
    def attributes_of(self, node: Node) -> Mapping[str, Any]: ...

    @abstractmethod
    def bodies_of(self, node: Node) -> "Mapping[str, Graph]": ...

    @abstractmethod
    def location_of(self, node: Node) -> Location: ...

    def span_of(self, node: Node, part: Part) -> Span | None:
        """Return where a part of a node stands; None where the format has no lines."""
        return None

    def inferred_shape(self, value: Value) -> Shape:
        """Return what a reader infers of the shape of an output without what the file stores for it."""
        return None


@record(eq=False)
class FileDefect:
    """Something a reader found broken in the file itself."""

    kind: str
    """The name of the rule that it breaks, "duplicate-id"."""
    message: str
    location: Location
    node: Node | None = None
    port_index: int | None = None
    related: tuple[Related, ...] = ()
    is_always_read: bool = False
    """Whether a runtime reads what is broken even of nodes that it drops."""
    span: Span | None = None
    """What is broken; None for the whole node, or where the format has no lines."""
    help: str = ""
    """How to mend it, if more can be said than what the rule says."""
    is_refused: bool = False
    """Whether a runtime refuses the file because of it, though the rule is a warning elsewhere."""
    is_tolerated: bool = False
    """Whether all runtimes accept the file with the meaning intended: a warning, whatever the rule says."""
    refused_by: str = ""
    """The runtime that refuses the file although the specification allows it, "onnxruntime".

    Such a defect is a warning, and an error where the model must run there.
    """


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function of an ONNX model: its definition, and one graph per signature it is called with."""

    name: str
    definition: Graph
    instances: tuple[Graph, ...]


@dataclass(frozen=True, eq=False)
class Model:
    """A file that was read.

    Attributes:
        path: as the caller named it.
        format: "openvino-ir" or "onnx".
        domain: that of the format's own operators.
        inputs: the names by which each input of the main graph may be called.
        opset_imports: ONNX domains and versions.
        find_defects: tells what is broken in the file itself.
        find_contradictions: tells where shapes or types that the file stores contradict each other.
        find_limits: tells what was not looked at so far, because it would take too long.
        find_feeding: gives loops that cut, and nodes that scatter nodes depend on, of an IR; of these all,
            or those where something looks wrong. Of ONNX the nodes that are suspected of misuse.
        source: what a writer edits.
        identity: inode, time and size of the file before it was read; None if it came from elsewhere.
    """

    path: str
    format: str
    domain: str
    graph: Graph
    functions: tuple[Function, ...] = ()
    inputs: tuple[frozenset[str], ...] = ()
    opset_imports: Mapping[str, int] = field(default_factory=dict)
    find_defects: Callable[[], Iterable[FileDefect]] = tuple
    find_contradictions: Callable[[], Iterable[FileDefect]] = tuple
    find_limits: Callable[[], Iterable[FileDefect]] = tuple
    find_feeding: Callable[[bool], Iterable[Node]] = lambda _: ()
    source: Any = None
    identity: tuple[int, int, int] | None = None

    def __repr__(self) -> str:
        return short_repr(self, f"{self.path}: {self.format}")

    @cached_property
    def defects(self) -> tuple[FileDefect, ...]:
        """What is broken in the file itself; only who validates it has to know."""
        return (*self.find_defects(), *self.contradictions)

    @cached_property
    def contradictions(self) -> tuple[FileDefect, ...]:
        """Where what is stored cannot be right: below these places shapes and types are propagated."""
        return tuple(self.find_contradictions())

    def walk(self, types: frozenset[str] | None = None) -> Iterator[Node]:
        """Yield every node: the main graph with its bodies, then each use of each function."""
        yield from self.graph.walk(types)
        for function in self.functions:
            for instance in function.instances:
                yield from instance.walk(types)

    def definitions(self, types: frozenset[str] | None = None) -> Iterator[Node]:
        """Yield every node as written: a function's nodes once, however often it is called."""
        yield from self.graph.walk(types)
        for function in self.functions:
            yield from function.definition.walk(types)


def exactly(attributes: Mapping[str, Any]) -> Hashable | None:
    """Return attributes so that 1, 1.0 and True differ; None if one holds a tensor or a graph."""
    for value in attributes.values():
        parts = value if isinstance(value, list) else (value,)
        if not all(isinstance(part, int | float | str | bytes) for part in parts):
            return None
    return tuple([(name, repr(value)) for name, value in attributes.items()])
