"""A model as read from a file: graphs of nodes and values, never changed afterwards.

Each file format implements `Graph`. A node gets its inputs, outputs and bodies from its graph on first
access. So reading a model of 15,000 nodes costs little more than reading its scatter nodes.
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
    """The identity of an operator version: domain ("openvino", or "" for ONNX), type, since-version."""

    domain: str
    type: str
    version: int

    def __str__(self) -> str:
        return f"{self.type}-{self.version}"


@dataclass(slots=True, eq=False)
class Value:
    """A tensor in a graph, with its computed type and shape, and those that the file stores."""

    __repr__, _repr_html_ = record_repr, record_html

    _name: str | None
    element_type: ElementType | None
    shape: Shape
    _producer: "Node | Callable[[], Node] | None" = None
    output: int = 0
    """The number of the producer's output, from 0."""
    constant: Constant | None = None
    """The constant, if the file stores the elements of this value; else None."""
    location: Location | None = None
    stored_type: ElementType | None = None
    stored_shape: Shape = None
    producer_type: str | None = None
    """The operator type of the producer, if it is known before the producer node is created."""
    is_input: bool = False
    """Whether the value is certainly an input of the graph, and so no constant."""

    @property
    def producer(self) -> "Node | None":
        """Return the node that computes the value; None for an input, an initializer or an undefined name."""
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
    """An input port of a node, with the type and shape that an IR stores at the port."""

    __repr__, _repr_html_ = record_repr, record_html

    value: Value | None
    """The connected value; None if nothing is connected, or if the source does not exist."""
    is_present: bool = True
    """False for an optional input that is omitted."""
    stored_type: ElementType | None = None
    stored_shape: Shape = None


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """One use of an operator in a graph.

    Attributes:
        domain: OPENVINO, ONNX, or a custom domain of an ONNX model.
        opset: as written: an IR's word ("opset3"), an ONNX model's number, None if it has none.
        name: as written; the name of the first output if the node has none.
        handle: identifies the node for the reader of its format.
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
        """Return the path to the node, including its name."""
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
        """Return the attributes as the format stores them: text in an IR; int, float, str, lists in ONNX."""
        if self._attributes is None:
            self._attributes = self.graph.attributes_of(self)
        return self._attributes

    @property
    def bodies(self) -> "Mapping[str, Graph]":
        """Return the graphs inside the node, by the format's names such as "then_branch"."""
        return self.graph.bodies_of(self)

    @property
    def location(self) -> Location:
        return self.graph.location_of(self)

    def __repr__(self) -> str:
        return short_repr(self, f"{self.scope} {self.type}")


class OperatorUse(NamedTuple):
    """The facts about a node that decide its output shapes and types, and whether it is legal.

    Attributes:
        opset: the word of an IR ("opset3") or the number of an ONNX model.
        numbers: a function that returns the integers of a constant input by its number, None if unknown.
    """

    type: str
    opset: str | int | None
    attributes: Mapping[str, Any]
    types: Sequence[ElementType | None]
    shapes: Sequence[Shape]
    numbers: Callable[[int], list[int] | None]
    output_count: int = 1


class Graph(ABC):
    """The nodes of a main graph, a body, or a function for one signature of its calls.

    Attributes:
        scope: the prefix of the paths of its nodes: "" or "If_23:then_body/".
        calls: for a function, the places that call it with this signature.
    """

    name: str = ""
    scope: str = ""
    calls: tuple[Related, ...] = ()

    @property
    def output_names(self) -> frozenset[str]:
        """Return the names of the graph's outputs; empty in an IR, where Result nodes mark them instead."""
        return frozenset()

    @property
    def refuses_types(self) -> bool:
        """Whether runtimes refuse the model if the stored element type of an output is wrong."""
        return False

    def key_of(self, node: Node, indices: int, spelled: frozenset[int]) -> tuple[Hashable, list[int]] | None:
        """Return a key of all facts about a node, except its name and the values of its constants.

        Nodes with equal keys are interchangeable. The key is read from the file without creating `Value`
        objects.

        Args:
            node: the node.
            indices: the number of an input whose values, if few, are returned in addition to the key.
            spelled: the numbers of inputs whose values are part of the key.

        Returns:
            The key and the values of `indices`; None if the shapes of its inputs depend on nodes upstream.
        """
        return None

    def is_dropped(self, node: Node) -> bool:
        """Return whether runtimes remove a node because no output of the graph depends on it."""
        return False

    @abstractmethod
    def walk(self, types: frozenset[str] | None = None) -> Iterator[Node]:
        """Yield all nodes, or those of some types, in file order, including nodes in bodies."""

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
        """Return the range of a part of a node in the file; None if the format has no lines."""
        return None

    def inferred_shape(self, value: Value) -> Shape:
        """Return the shape of an output as inferred by the reader, not the stored one; None if unknown."""
        return None


@record(eq=False)
class FileDefect:
    """A fault that a reader has found in the file itself."""

    kind: str
    """The name of the rule that is broken, "duplicate-id"."""
    message: str
    location: Location
    node: Node | None = None
    port_index: int | None = None
    related: tuple[Related, ...] = ()
    is_always_read: bool = False
    """Whether runtimes read the faulty part even of nodes that they remove."""
    span: Span | None = None
    """The range of the fault; None for the whole node, or if the format has no lines."""
    help: str = ""
    """How to fix it, if that can be more specific than the rule's text; else ""."""
    is_refused: bool = False
    """Whether runtimes refuse the file because of it: an error, even if the rule is a warning."""
    is_tolerated: bool = False
    """Whether all runtimes accept the file and do what it intends: then it is only a warning."""
    refused_by: str = ""
    """The runtime that refuses the file although the specification allows it, "onnxruntime".

    Such a defect is a warning, and an error where the model must run there.
    """


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A local function of an ONNX model: its definition, and one graph per signature of its calls."""

    name: str
    definition: Graph
    instances: tuple[Graph, ...]


@dataclass(frozen=True, eq=False)
class Model:
    """A model as read from a file.

    Attributes:
        path: as the caller named it.
        format: "openvino-ir" or "onnx".
        domain: the domain of the format's own operators.
        inputs: for each input of the main graph all its names.
        opset_imports: ONNX domains and versions.
        find_defects: returns the faults of the file itself.
        find_contradictions: returns the places where stored shapes or types contradict each other.
        find_limits: returns the parts that were not analysed, because that would take too long.
        find_feeding: returns the nodes to check for illegal use (`analysis/misuse`). In an IR these are loops
            that slice, and nodes upstream of scatter nodes: all of them with True, otherwise only suspicious
            ones. In ONNX they are suspicious nodes.
        source: data of the reader that the writer needs.
        identity: inode, time and size of the file before it was read; None without a file.
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
        """The faults of the file itself; computed on first access, as only validation needs them."""
        return (*self.find_defects(), *self.contradictions)

    @cached_property
    def contradictions(self) -> tuple[FileDefect, ...]:
        """The stored shapes or types that cannot be right; downstream of them, inferred ones are used."""
        return tuple(self.find_contradictions())

    def walk(self, types: frozenset[str] | None = None) -> Iterator[Node]:
        """Yield every node: those of the main graph and its bodies, then those of functions.

        Functions are walked once per signature of their calls.
        """
        yield from self.graph.walk(types)
        for function in self.functions:
            for instance in function.instances:
                yield from instance.walk(types)

    def definitions(self, types: frozenset[str] | None = None) -> Iterator[Node]:
        """Yield every node as written: those of a function once, even if it is called several times."""
        yield from self.graph.walk(types)
        for function in self.functions:
            yield from function.definition.walk(types)


def exact_key(attributes: Mapping[str, Any]) -> Hashable | None:
    """Return a hashable key of attributes in which 1, 1.0 and True differ.

    None if one of them is a tensor or a graph.
    """
    for value in attributes.values():
        parts = value if isinstance(value, list) else (value,)
        if not all(isinstance(part, int | float | str | bytes) for part in parts):
            return None
    return tuple([(name, repr(value)) for name, value in attributes.items()])
