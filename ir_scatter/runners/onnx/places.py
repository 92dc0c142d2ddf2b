"""The graphs of an ONNX model that hold nodes: what is in them, around them, and who calls them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from ir_scatter.formats.onnx.index import FunctionKey, function_key, graphs_of, text

MAIN, FUNCTION, BRANCH, LOOP, SCAN = "main", "function", "branch", "loop", "scan"
_KINDS = {"If": BRANCH, "Loop": LOOP, "Scan": SCAN}
OTHER = "other"
"""A body of a node of which we do not know how it is computed."""

Call: TypeAlias = tuple[int, ...]
"""The numbers of the calls that lead to a function, the outermost first; () outside of functions."""


@dataclass(slots=True, eq=False)
class Level:
    """One graph, or the definition of a function, in the model: taps are added to it."""

    proto: "GraphProto | FunctionProto"
    kind: str
    parent: "Level | None" = None
    """The graph around it, None for the main graph and for functions."""
    owner: NodeProto | None = None
    body: str = ""
    """The name of the owner's attribute that holds it."""
    defined: set[str] = field(default_factory=set)
    calls: "list[tuple[Level, NodeProto, str]]" = field(default_factory=list)
    """For a function: the graphs and the nodes that call it, and the paths to these."""

    def around(self) -> "list[Level]":
        """Return this graph and those around it, up to the main graph or a function, from outside in."""
        found: list[Level] = []
        level: Level | None = self
        while level is not None:
            found.insert(0, level)
            level = level.parent
        return found

    def contexts(self) -> "Iterator[tuple[Call, list[tuple[Level, Call]]]]":
        """Yield for each way to call it the graphs it is in, from outside in, and how they are called."""
        chain = self.around()
        if chain[0].kind == MAIN:
            yield (), [(level, ()) for level in chain]
            return
        for number, (caller, _, _) in enumerate(chain[0].calls):
            for call, outside in caller.contexts():
                whole = (*call, number)
                yield whole, [*outside, *((level, whole) for level in chain)]

    def caller(self, call: Call) -> str:
        """Return the path to the node that calls the function which this belongs to."""
        return self.around()[0].calls[call[-1]][2] if call else ""

    def definer(self, name: str) -> "Level":
        """Return the graph in which a name that is used here is defined."""
        return next((level for level in reversed(self.around()) if name in level.defined), self)


class Found(NamedTuple):
    """A node, and the graph that it is in."""

    node: NodeProto
    level: Level


class Places:
    """The nodes of a model by scope and name of the first output."""

    def __init__(self, model: ModelProto) -> None:
        self._nodes: dict[tuple[str, str], list[Found]] = {}
        self._functions: dict[FunctionKey, Level] = {
            function_key(function): Level(function, FUNCTION) for function in reversed(model.functions)
        }
        self._walk(Level(model.graph, MAIN), "")
        for key, level in self._functions.items():
            domain, name, overload = map(text, key)
            shown = f"{domain}::{name}"[0 if domain else 2 :] + (f":{overload}" if overload else "")
            self._walk(level, f"{shown}/")

    def find(self, scope: str, output: str) -> list[Found]:
        """Return the nodes of a scope and a name of the first output: one, unless names repeat."""
        return self._nodes.get((scope, output), [])

    def _walk(self, level: Level, scope: str) -> None:
        proto = level.proto
        if isinstance(proto, FunctionProto):
            level.defined.update(proto.input)
        else:
            level.defined.update(value.name for value in proto.input)
            level.defined.update(tensor.name for tensor in proto.initializer)
            level.defined.update(tensor.values.name for tensor in proto.sparse_initializer)
        for node in proto.node:
            level.defined.update(node.output)
        for position, node in enumerate(proto.node):
            first = next((name for name in node.output if name), f"{text(node.op_type)}_{position}")
            name = scope + text(node.name or first)
            self._nodes.setdefault((name, text(node.output[0]) if node.output else ""), []).append(
                Found(node, level)
            )
            called = self._functions.get(function_key(node))
            if called is not None:
                called.calls.append((level, node, name))
            for attribute in node.attribute:
                for body, graph in graphs_of(attribute):
                    kind = OTHER if node.domain else _KINDS.get(node.op_type, OTHER)
                    self._walk(Level(graph, kind, level, node, body), f"{name}:{body}/")
