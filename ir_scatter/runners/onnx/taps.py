"""Adds the inputs and outputs of tapped nodes to an ONNX model as model outputs, in the child process.

A tap is a request for the inputs and the output of one node (`runners.base.Tap`). A value in a body or a
function is lifted level by level to the main graph: to a stacked output of a loop, an output of an If, or
an output of a call.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple, TypeAlias

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType
from ir_scatter.core.process import Failure
from ir_scatter.formats.onnx.index import DEFAULT_DOMAINS, function_key, graphs_of, text
from ir_scatter.runners.base import Tap
from ir_scatter.runners.engine import IN_BODY, Loaded, TappedSize, TapRun, Value

_PREFIX = "ir_scatter_tap"
_AXES_INPUT_SINCE = 13
"""The opset since which the axes of Squeeze and Unsqueeze are an input instead of an attribute."""

MAIN, FUNCTION, BRANCH, LOOP, SCAN = "main", "function", "branch", "loop", "scan"
_KINDS = {"If": BRANCH, "Loop": LOOP, "Scan": SCAN}
OTHER = "other"
"""The kind of a body whose node is not If, Loop or Scan."""

Call: TypeAlias = tuple[int, ...]
"""A call chain: the calls that lead from the main graph to a function, outermost first.

A call is the number of its node among all calls of the same function, such as 0 and 1. () outside of
functions.
"""


@dataclass(slots=True, eq=False)
class TappedGraph:
    """A graph, body or function definition, to which outputs are added."""

    proto: "GraphProto | FunctionProto"
    kind: str
    parent: "TappedGraph | None" = None
    """The surrounding graph; None for the main graph and for functions."""
    owner: NodeProto | None = None
    body: str = ""
    """The name of the owner's attribute that contains this body, such as "then_branch"."""
    defined: set[str] = field(default_factory=set)
    calls: "list[tuple[TappedGraph, NodeProto, str]]" = field(default_factory=list)
    """For a function: each call as (graph of the call, calling node, path to that node)."""
    marker: str = ""
    """For a branch: the name of a value in the branch that is always 1."""

    def around(self) -> "list[TappedGraph]":
        """Return the main graph or function, the surrounding bodies, and last this graph."""
        graphs: list[TappedGraph] = []
        level: TappedGraph | None = self
        while level is not None:
            graphs.insert(0, level)
            level = level.parent
        return graphs

    def contexts(self) -> "Iterator[tuple[Call, list[tuple[TappedGraph, Call]]]]":
        """Yield each call chain that leads to this graph, with the surrounding graphs.

        These are (graph, its own call chain), from the main graph inwards, across calls.
        """
        chain = self.around()
        if chain[0].kind == MAIN:
            yield (), [(level, ()) for level in chain]
            return
        for number, (caller, _, _) in enumerate(chain[0].calls):
            for call, outside in caller.contexts():
                whole = (*call, number)
                yield whole, [*outside, *((level, whole) for level in chain)]

    def caller(self, call: Call) -> str:
        """Return the path of the node that calls the function around this graph; "" outside of functions."""
        return self.around()[0].calls[call[-1]][2] if call else ""

    def definer(self, name: str) -> "TappedGraph":
        """Return the graph that defines a name used in this graph: this graph, or one around it."""
        return next((level for level in reversed(self.around()) if name in level.defined), self)


class PlacedNode(NamedTuple):
    """A node and the graph that contains it."""

    node: NodeProto
    level: TappedGraph


def find_nodes(model: ModelProto) -> dict[tuple[str, str], list[PlacedNode]]:
    """Return all nodes by (scope, name of the first output). A key has several nodes only if names repeat."""
    places = defaultdict[tuple[str, str], list[PlacedNode]](list)
    functions = {
        function_key(function): TappedGraph(function, FUNCTION) for function in reversed(model.functions)
    }

    def walk(level: TappedGraph, scope: str) -> None:
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
            places[name, text(node.output[0]) if node.output else ""].append(PlacedNode(node, level))
            called = functions.get(function_key(node))
            if called is not None:
                called.calls.append((level, node, name))
            for attribute in node.attribute:
                for body, graph in graphs_of(attribute):
                    kind = OTHER if node.domain else _KINDS.get(node.op_type, OTHER)
                    walk(TappedGraph(graph, kind, level, node, body), f"{name}:{body}/")

    walk(TappedGraph(model.graph, MAIN), "")
    for key, level in functions.items():
        domain, name, overload = map(text, key)
        label = f"{domain}::{name}"[0 if domain else 2 :] + (f":{overload}" if overload else "")
        walk(level, f"{label}/")
    return places


_Lifted: TypeAlias = dict[Call, tuple[str, int]]
"""For each call chain of a graph: (name of the model output, number of loops that stack the value)."""


def add_taps(
    model: ModelProto, taps: Sequence[Tap], feeds: Collection[str], *, bodies: bool, loops_join: bool = False
) -> Loaded:
    """Add model outputs for the inputs and outputs of tapped nodes; model inputs need none.

    `loops_join` adapts them to a runtime that concatenates scan outputs of a Loop instead of stacking them.
    """
    tapper = _Tapper(model, feeds, loops_join)
    tapper.loaded.taps += [tapper.tap(tap, bodies) for tap in taps]
    return tapper.loaded


def shape_model(model: ModelProto, names: Sequence[str]) -> tuple[ModelProto, list[str]]:
    """Return a model whose outputs are the shapes of some values of another model, and the output names."""
    copy = ModelProto()
    copy.CopyFrom(model)
    additions = _Additions(copy)
    del copy.graph.output[:]
    outputs = [additions.add(copy.graph, "Shape", [name]) for name in names]
    for name in outputs:
        copy.graph.output.append(helper.make_tensor_value_info(name, TensorProto.INT64, None))
    return copy, outputs


class _Additions:
    """Adds nodes and outputs to a model, with names that the model does not use yet."""

    def __init__(self, model: ModelProto) -> None:
        self._model = model
        self._count = 0
        self._prefix = _PREFIX
        data = model.SerializeToString()
        while self._prefix.encode() in data:
            self._prefix += "_"

    def name(self) -> str:
        self._count += 1
        return f"{self._prefix}_{self._count}"

    def add(
        self, graph: "GraphProto | FunctionProto", type: str, inputs: list[str], **attributes: Any
    ) -> str:
        """Add a node and return its output."""
        output = self.name()
        graph.node.append(helper.make_node(type, inputs, [output], **attributes))
        return output

    def add_copy_as_output(self, graph: GraphProto, name: str) -> None:
        """Add a copy of a value as an output: a graph must not return a value of an outer graph directly."""
        graph.output.add().name = self.add(graph, "Identity", [name])

    def add_output(self, node: NodeProto, number: int) -> str:
        """Extend the outputs of a node up to this number; return the name of the last."""
        node.output.extend(self.name() for _ in range(number + 1 - len(node.output)))
        return str(node.output[number])

    def with_axes(self, level: TappedGraph, type: str, name: str, axes: list[int]) -> str:
        """Add a Squeeze or Unsqueeze in the form of the model's opset, and return its output."""
        function = level.around()[0].proto
        imports = self._model.opset_import if isinstance(function, GraphProto) else function.opset_import
        opset = next((opset_id.version for opset_id in imports if opset_id.domain in DEFAULT_DOMAINS), 0)
        if opset < _AXES_INPUT_SINCE:
            return self.add(level.proto, type, [name], axes=axes)
        tensor = TensorProto(dims=[len(axes)], data_type=TensorProto.INT64, int64_data=axes)
        return self.add(level.proto, type, [name, self.add(level.proto, "Constant", [], value=tensor)])


_MARKER = TappedSize("i64", (1,))


class _Tapper:
    def __init__(self, model: ModelProto, feeds: Collection[str], loops_join: bool) -> None:
        self.loaded = Loaded(model)
        self._model = model
        self._loops_join = loops_join
        self._feeds = feeds
        self._nodes = find_nodes(model)
        self._additions = _Additions(model)
        self._lifted: dict[tuple[int, str], _Lifted] = {}
        self._outputs = {output.name for output in model.graph.output}

    def tap(self, tap: Tap, bodies: bool) -> list[TapRun] | str:
        """Add outputs for one tap; return the places of its values, or the reason why that is impossible."""
        places = self._nodes.get((tap.scope, tap.output), ())
        if len(places) != 1:
            count = "no node" if not places else f"{len(places)} nodes"
            return f"the model has {count} of this name and output"
        if places[0].level.kind != MAIN and not bodies:
            return IN_BODY
        try:
            return self._runs(places[0], tap)
        except Failure as failure:
            return failure.message

    def _runs(self, place: PlacedNode, tap: Tap) -> list[TapRun]:
        """Return the places of a tap's values, one record for each call chain."""
        names = [*place.node.input, place.node.output[0]]
        hints = [TappedSize(*pair) for pair in zip(tap.types, tap.shapes, strict=True)]
        if tap.outputs_only:
            names, hints = names[-1:], hints[-1:]
        if len(hints) != len(names):
            hints = [TappedSize()] * len(names)
        values: list[_Lifted | str | None] = []
        for name, hint in zip(names, hints, strict=True):
            definer = place.level.definer(name)
            if not name:
                values.append(None)
            elif definer.kind == MAIN and name in self._feeds:
                values.append(name)
            else:
                values.append(self._lift(definer, name, hint))
        runs = []
        for call, levels in place.level.contexts():
            caller = place.level.caller(call)
            if tap.callers and caller not in tap.callers:
                continue
            placed = [self._placed(value, call, hint) for value, hint in zip(values, hints, strict=True)]
            markers: list[Value] = []
            for number, (level, of_level) in enumerate(levels):
                if level.kind == BRANCH:
                    name, _ = self._lift(level, self._marker(level), _MARKER)[of_level]
                    markers.append((name, sum(outer.kind in {LOOP, SCAN} for outer, _ in levels[:number])))
            output = placed.pop()
            assert output is not None
            runs.append(TapRun(placed, output, markers, caller=caller))
        return runs

    def _placed(self, value: "_Lifted | str | None", call: Call, hint: TappedSize) -> Value | None:
        if value is None:
            return None
        if isinstance(value, str):
            return value, None
        name, loops = value[call]
        known = self.loaded.sizes.get(name, TappedSize())
        shape = None if loops else known.shape or hint.shape
        self.loaded.sizes[name] = TappedSize(known.type or hint.type, shape, loops)
        return name, loops

    def _lift(self, level: TappedGraph, name: str, hint: TappedSize) -> _Lifted:
        """Pass a value through all bodies and functions to a model output; a repeated call adds nothing."""
        key = (id(level), name)
        if key not in self._lifted:
            if level.kind == MAIN:
                if name not in self._outputs:
                    self._outputs.add(name)
                    self._model.graph.output.add().name = name
                self._lifted[key] = {(): (name, 0)}
            elif level.kind == FUNCTION:
                self._lifted[key] = self._out_of_function(level, name, hint)
            else:
                self._lifted[key] = self._out_of_body(level, name, hint)
        return self._lifted[key]

    def _out_of_body(self, level: TappedGraph, name: str, hint: TappedSize) -> _Lifted:
        assert level.parent is not None
        assert level.owner is not None
        if level.kind == OTHER:
            raise Failure(
                "unsupported", f"it is in a body of {level.owner.op_type}, which cannot return more values"
            )
        is_loop = level.kind != BRANCH
        if is_loop:
            outer, hint = self._out_of_loop(level, level.parent, level.owner, name), TappedSize(hint.type)
        else:
            outer = self._out_of_branch(level, level.owner, name, hint)
        level.parent.defined.add(outer)
        lifted = self._lift(level.parent, outer, hint)
        return {call: (output, loops + is_loop) for call, (output, loops) in lifted.items()}

    def _out_of_loop(self, level: TappedGraph, parent: TappedGraph, owner: NodeProto, name: str) -> str:
        """Add a loop output with the values of all iterations, and return its name."""
        assert isinstance(level.proto, GraphProto)
        is_joined = self._loops_join and level.kind == LOOP
        if is_joined:
            name = self._additions.with_axes(level, "Unsqueeze", name, [0, 1])
        self._additions.add_copy_as_output(level.proto, name)
        condition = 1 if level.kind == LOOP else 0
        outer = self._additions.add_output(owner, len(level.proto.output) - condition - 1)
        for attribute in owner.attribute if level.kind == SCAN else ():
            if attribute.name in {"scan_output_axes", "scan_output_directions"}:
                attribute.ints.append(0)
        return self._additions.with_axes(parent, "Squeeze", outer, [1]) if is_joined else outer

    def _out_of_function(self, level: TappedGraph, name: str, hint: TappedSize) -> _Lifted:
        assert isinstance(level.proto, FunctionProto)
        imports = level.proto.opset_import
        # the function only calls other functions
        if not any(opset_id.domain in DEFAULT_DOMAINS for opset_id in imports):
            imports.append(
                next(opset_id for opset_id in self._model.opset_import if opset_id.domain in DEFAULT_DOMAINS)
            )
        level.proto.output.append(self._additions.add(level.proto, "Identity", [name]))
        lifted_by_call = {}
        for number, (caller, node, _) in enumerate(level.calls):
            outer = self._additions.add_output(node, len(level.proto.output) - 1)
            caller.defined.add(outer)
            for call, lifted in self._lift(caller, outer, hint).items():
                lifted_by_call[(*call, number)] = lifted
        return lifted_by_call

    def _out_of_branch(self, level: TappedGraph, owner: NodeProto, name: str, hint: TappedSize) -> str:
        """Add an If output with a value of one branch, and return its name.

        If the other branch is executed, the output is empty; inside a loop it consists of zeros.
        """
        is_stacked = any(
            outer.kind in {LOOP, SCAN} for _, levels in level.contexts() for outer, _ in levels[:-1]
        )
        row = ELEMENT_TYPES.get(hint.type)
        if row is None or row.onnx_number is None:
            raise Failure("unsupported", "it is in a branch, and the element type of a value is unknown")
        if is_stacked and hint.shape is None:
            raise Failure(
                "unsupported", "it is in a branch inside a loop, and the shape of a value is unknown"
            )
        shape = hint.shape if hint.shape is not None and (is_stacked or hint == _MARKER) else (0,)
        for attribute in owner.attribute:
            if text(attribute.name) == level.body:
                self._additions.add_copy_as_output(attribute.g, name)
            elif attribute.HasField("g"):
                nothing = self._additions.add(attribute.g, "Constant", [], value=_zeros(row, shape))
                attribute.g.output.add().name = nothing
        return self._additions.add_output(owner, len(owner.output))

    def _marker(self, level: TappedGraph) -> str:
        """Return the name of a value that is 1 in a branch.

        As a model output it is 0 if the branch was not executed.
        """
        if not level.marker:
            one = TensorProto(dims=[1], data_type=TensorProto.INT64, int64_data=[1])
            level.marker = self._additions.add(level.proto, "Constant", [], value=one)
            level.defined.add(level.marker)
        return level.marker


def _zeros(row: ElementType, shape: tuple[int, ...]) -> TensorProto:
    """Return a tensor of zeros, or of empty strings."""
    found = TensorProto(dims=shape, data_type=row.onnx_number)
    if row.kind == "string":
        found.string_data.extend([b""] * prod(shape))
    else:
        found.raw_data = bytes(row.byte_size(prod(shape)))
    return found
