"""Fragments: new nodes, in memory, that will replace a node of a model.

A fragment is a graph: rules check its nodes, kernels compute them, and a rewrite can rewrite its nodes again.
It refers to inputs of the replaced node by number, so that one fragment can replace many nodes with equal
facts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.model import Graph, Input, Node, Value
from ir_scatter.core.tensors import Constant

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array
    from ir_scatter.core.element_types import ElementType

_PLACE = Location("")


@dataclass(frozen=True, slots=True, eq=False)
class NewNode:
    """A new node of a fragment.

    Attributes:
        label: the last part of its name, after the result that it computes: "indices_unsqueezed".
        opset: the opset of a layer in an IR ("opset3"), of the model in ONNX (18).
        inputs: values of the fragment, None for an omitted one.
        attributes: as the file format writes them: text in an IR, Python values in ONNX.
    """

    label: str
    domain: str
    type: str
    opset: str | int
    inputs: tuple[Value | None, ...]
    attributes: Mapping[str, Any]
    output: Value


class Patch(NamedTuple):
    """One node of a model and its replacement; the last new node keeps the name of the old one."""

    node: Node
    fragment: "Fragment"


def free_name(preferred: str, used: set[str]) -> str:
    """Return `preferred`, with a number appended if it is in `used`; add the result to `used`."""
    name, number = preferred, 2
    while name in used:
        name, number = f"{preferred}_{number}", number + 1
    used.add(name)
    return name


class Fragment(Graph):
    """New nodes, producers before consumers.

    Attributes:
        given: the inputs of the replaced node, in the order of its ports.
        constants: the new constants that the nodes read, each once, in order of first use.
    """

    def __init__(self, given: Sequence[Value | None], news: Iterable[NewNode]) -> None:
        self.given = tuple(given)
        self.news = tuple(news)
        self._by_output = {id(new.output): new for new in self.news}
        self._given = {id(value): number for number, value in reversed([*enumerate(self.given)]) if value}
        self.nodes: tuple[Node, ...] = tuple(
            Node(self, new.domain, new.type, new.opset, new.label, new) for new in self.news
        )
        constants: dict[int, Value] = {}
        for value in (value for new in self.news for value in new.inputs if value):
            if isinstance(value.constant, NewConstant) and id(value) not in self._given:
                constants.setdefault(id(value), value)
        self.constants = tuple(constants.values())

    @property
    def result(self) -> NewNode:
        """Return the node whose output replaces the output of the old node."""
        return self.news[-1]

    def number_given(self, value: Value) -> int | None:
        """Return the number of the replaced node's input that a value is; None for other values."""
        return self._given.get(id(value))

    def producer(self, value: Value) -> NewNode | None:
        """Return the new node that computes a value; None for a constant or an input of the replaced node."""
        return self._by_output.get(id(value))

    def connected(self) -> tuple[Node, ...]:
        """Set each node as the producer of its output, as graphs of files do; return the nodes."""
        for node in self.nodes:
            node.handle.output._producer = node
        return self.nodes

    def substituted(self, node: Node, replacement: "Fragment") -> "Fragment":
        """Return a copy in which another fragment replaces a node; earlier nodes are shared."""
        old: NewNode = node.handle
        used = {new.label for new in self.news}
        news: list[NewNode] = []
        for new in self.news:
            if new is not old:
                inputs = [replacement.result.output if value is old.output else value for value in new.inputs]
                news.append(replace(new, inputs=tuple(inputs)) if old.output in new.inputs else new)
                continue
            for step in replacement.news[:-1]:
                news.append(replace(step, label=free_name(step.label, used)))
            news.append(replace(replacement.result, label=old.label))
        return Fragment(self.given, news)

    def walk(self, types: frozenset[str] | None = None) -> Iterator[Node]:
        yield from (node for node in self.nodes if types is None or node.type in types)

    def inputs_of(self, node: Node) -> tuple[Input, ...]:
        return tuple(Input(value, is_present=value is not None) for value in node.handle.inputs)

    def outputs_of(self, node: Node) -> tuple[Value, ...]:
        return (node.handle.output,)

    def attributes_of(self, node: Node) -> Mapping[str, Any]:
        return dict(node.handle.attributes)

    def bodies_of(self, node: Node) -> Mapping[str, Graph]:
        return {}

    def location_of(self, node: Node) -> Location:
        return _PLACE


class NewConstant(Constant):
    """A constant of a fragment; `label` becomes the last part of its name: "axes"."""

    __slots__ = ("array", "label")

    def __init__(self, label: str, element_type: "ElementType", array: "Array") -> None:
        super().__init__(_PLACE, element_type, array.shape, lambda: array, label)
        self.label = label
        self.array = array
