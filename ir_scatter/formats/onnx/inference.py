"""Types and shapes that the file does not say, or says wrongly: onnx's shape inference, kept at a distance.

It also tells which nodes have inputs that their operator does not take, as runtimes infer in the same way.
It is native code: files exist that end the process (an assertion in Slice), that ask for all memory
(Concat of a shape with itself, again and again) or for years (functions that call functions twice).
So it is given copies without stored shapes and weights, in a forked process with limits. That process
is kept for the next model: to fork takes longer than to infer a small one.

Inference can follow the numbers of small tensors (data propagation), which many shapes depend on. What it
raises then is no proof: it keeps the numbers of all graphs of a model in one table by name, and the numbers
of a matrix as a list. So names are unique in the copies, what it has wrong is hidden from it, and a node
counts as refused only if inference without data propagation refuses it. Other refusals are suspicions, about
which our own shape rules decide (`analysis/misuse.py`).
"""

import contextlib
import faulthandler
import math
import os
import re
import signal
import time
import warnings
from collections.abc import Collection, Iterator, Mapping
from enum import Enum, auto
from functools import cache
from math import prod
from typing import Any, NamedTuple

import onnx
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
)

from ir_scatter.core.element_types import ElementType, from_onnx_number
from ir_scatter.core.model import Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Bounds, Dim, Shape, excludes, narrow
from ir_scatter.formats.onnx.index import (
    ONLY_CONSTANTS,
    Bindings,
    Definition,
    Definitions,
    GraphIndex,
    bound,
    graphs_of,
    is_graph,
    normal_domain,
    schema_of,
    text,
)
from ir_scatter.formats.onnx.tensors import held_type, shape_of

with contextlib.suppress(ImportError):  # where there is no fork either
    import resource

CPU_SECONDS = 20
"""What one inference may take at most."""

MOST_CALLS = 20_000
"""Inference walks a function anew for every call. Functions that call functions twice each soon stand for
more calls, and are left out then."""

_SECONDS_PER_BYTE = 2e-5
"""What an inference may take for each byte of the model without its weights, but for the first second: a
hundred times what it takes where functions do not multiply."""

_TOTAL_PER_ONE = 2.5
"""How many times as much all inferences of a model may take together."""

_IDLE_SECONDS = 10.0
_BASE_MEMORY = 1 << 29
_MEMORY_PER_BYTE = 16

_SEEN = 256
"""Elements of a constant up to which inference sees it: it reads shapes, axes and the like."""

_IR_VERSION = 10
"""Of what is inferred: initializers need not be inputs, functions may have overloads."""

_NUMBERED = "ir_scatter:"
_STAND_IN = "ir_scatter: unknown"
_BARRIER = "ir_scatter: barrier"
_RENAMED = re.compile(r"ir_scatter:\d+:(.*)", re.DOTALL)
"""A value of a body whose name another graph of the model has too, as `make_unique` writes it."""

_MOST_ROUNDS = 4
"""How often inference is repeated to hide numbers from data propagation; after that it goes without."""

_WITHOUT_CONTENTS = re.compile(r"Data size mismatch\. Tensor:|Cannot parse data from external tensors")
"""What inference says of a node that needs the numbers of a constant that the copy does not have."""

_REFUSED_TYPE = "an element type"
"""What stands for the complaint about an element type."""

_WHOLE = frozenset({TensorProto.INT32, TensorProto.INT64})
_HOLDING_SIZES = _WHOLE | {TensorProto.FLOAT, TensorProto.DOUBLE}
"""Element types that the sizes of tensors can be cast to, and remain what they are."""
_REFUSAL = re.compile(
    rf"[^\n]*?, node name: ({_NUMBERED}\d+)\): ((?:\[\w+Error\] )*+)(?!Inference error)(.*\S.*)", re.DOTALL
)
"""What strict inference says of one node, where it is about that node and not about those in it."""

_OF_NO_TYPE = "null"
"""How a sentence ends that says no more than that the type of an input is not known."""

_OF_TYPES = "[TypeInferenceError]"
"""How a sentence about types begins: no proof where a type is not known, as after a custom operator."""

_INVENTED_SYMBOL = re.compile(r"unk__\d+")


class TensorType(NamedTuple):
    """What is known of a value: None where nothing is."""

    element_type: ElementType | None
    shape: Shape


UNKNOWN = TensorType(None, None)


def declared(value_info: ValueInfoProto | None) -> TensorType:
    return UNKNOWN if value_info is None else described(value_info.type)


def described(type: TypeProto) -> TensorType:
    """Return what a type says; a symbol that inference made up is an unknown dimension."""
    message = tensor_message(type)
    if message is None:
        return UNKNOWN
    shape = tuple(map(_dim, message.shape.dim)) if message.HasField("shape") else None
    return TensorType(from_onnx_number(message.elem_type), shape)


def type_held(tensor: TensorProto) -> TensorType:
    return TensorType(from_onnx_number(tensor.data_type), shape_of(tensor))


def _dim(dim: onnx.TensorShapeProto.Dimension) -> Dim:
    size = dim.dim_value
    if size > 0 or (size == 0 and dim.HasField("dim_value")):
        return size
    symbol = text(dim.dim_param)
    return Bounds(symbol=symbol) if symbol and not _INVENTED_SYMBOL.fullmatch(symbol) else UNKNOWN_DIM


def best_of(found: TensorType, stored: TensorType) -> TensorType:
    """Return what is known when inference and the file both speak; inference wins a dispute."""
    shape = found.shape if excludes(found.shape, stored.shape) else narrow(found.shape, stored.shape)
    return TensorType(found.element_type or stored.element_type, shape)


def differ(found: TensorType, stored: TensorType) -> bool:
    """Tell whether not both can be right."""
    types = {found.element_type, stored.element_type} - {None}
    return len(types) > 1 or excludes(found.shape, stored.shape)


def is_alike(left: TypeProto, right: TypeProto) -> bool:
    """Tell at a glance that two types differ in symbols at most."""
    if left == right:
        return True
    one, other = left.tensor_type, right.tensor_type
    sizes = [[dim.dim_value for dim in tensor.shape.dim] for tensor in (one, other)]
    return one.elem_type == other.elem_type and sizes[0] == sizes[1]


def tensor_message(type: TypeProto) -> TypeProto.Tensor | None:
    """Return the part of a type that holds dimensions; None for a sequence, a map and the like."""
    return type.tensor_type if type.HasField("tensor_type") else None


class Inferred(NamedTuple):
    """What shape inference found out about a graph, and about the graphs in nodes by position and name.

    `refusals` is what onnx says of nodes whose inputs or attributes contradict each other, by position;
    `suspicions` what it says of others with data propagation only, which is often wrong.
    Where all `is_sound`, it refuses nothing, nor the element type of any input.
    """

    types: Mapping[str, TypeProto]
    bodies: Mapping[tuple[int, str], "Inferred"]
    refusals: Mapping[int, str]
    suspicions: Mapping[int, str]
    is_sound: bool


NOTHING = Inferred({}, {}, {}, {}, True)


class Inference:
    """Infers the graphs of one model, until its time is used up.

    `cut_short` of `count` graphs were not looked at to the end, because it would have taken too long.
    """

    def __init__(self, definitions: Definitions, ir_version: int, *, is_wanted: bool) -> None:
        """Take the functions; `is_wanted` is False if nobody will ask for a type."""
        self.count = self.cut_short = 0
        self._definitions = definitions
        self._are_inputs_defaults = ir_version >= ONLY_CONSTANTS
        self._is_wanted = is_wanted
        self._prepared = cache(_prepared)
        self._left = 0.0
        self._propagates = True

    def infer(
        self,
        index: GraphIndex,
        opsets: Mapping[str, int],
        *,
        input_shapes: Mapping[str, Shape] | None = None,
        arguments: Mapping[str, Value | None] | None = None,
        bindings: Bindings | None = None,
    ) -> Inferred:
        """Infer the main graph or one use of a function, and the bodies in it.

        `input_shapes` replace those of inputs in the file; `arguments` and `bindings` are the inputs and
        the attributes of a function as the call gives them.
        """
        if not self._is_wanted:
            return NOTHING
        model = ModelProto(ir_version=_IR_VERSION)
        try:
            inputs, constants = dict(index.inputs), dict[str, TensorProto]()
            for name, shape in (input_shapes or {}).items():
                one = inputs.get(name)
                if one is not None and one.type.tensor_type.elem_type:
                    inputs[name] = _typed(name, one.type.tensor_type.elem_type, shape)
            for name, value in (arguments or {}).items():
                constant = None if value is None else value.constant
                is_seen = constant is not None and prod(constant.shape) <= _SEEN
                array = constant.load() if constant is not None and is_seen else None
                if array is not None:
                    constants[name] = onnx.numpy_helper.from_array(array)
                if value is None or array is not None:
                    del inputs[name]
                else:
                    number = value.element_type.onnx_number if value.element_type is not None else None
                    inputs[name] = _typed(name, number, value.shape)
            self._fill(model.graph, index, opsets, inputs, constants, bindings or {})
            _import(model, opsets, index)
            are_too_many = self._definitions.count_calls(index) > MOST_CALLS
            for definition in () if are_too_many else self._definitions.needed_by(index):
                model.functions.append(self._prepared(definition))
            make_unique(model)
            result, is_late = self._run(model.SerializeToString())
            self.count += 1
            self.cut_short += is_late or are_too_many
            if result is None:
                return NOTHING
            refusals = _refusals(result.doc_string)
            suspicions = _refusals(result.producer_name)
            return _read_back(result.graph, index, refusals, suspicions, is_sound=not result.doc_string)
        except Exception:
            # Names that are not UTF-8, more than protobuf can hold: the stored types remain.
            return NOTHING

    def _run(self, request: bytes) -> tuple[ModelProto | None, bool]:
        """Return the model with inferred types, None if inference fails; and whether time was up.

        Where it fails with data propagation, it is tried without; once that has used up its time, all
        others are tried without at once.
        """
        limit = min(CPU_SECONDS, max(1, math.ceil(len(request) * _SECONDS_PER_BYTE)))
        if not self.count:
            self._left = _TOTAL_PER_ONE * limit
        is_late = False
        for propagate in (True, False) if self._propagates else (False,):
            if self._left <= 0:
                return None, True
            start = time.monotonic()
            answer = _ask((request, propagate, limit), min(self._left, 2.0 * limit))
            took = time.monotonic() - start
            if answer:
                self._left -= took
                return ModelProto.FromString(answer), False
            is_late = took >= min(limit, self._left) * 0.9
            self._left -= took
            self._propagates = self._propagates and not is_late
        return None, is_late

    def _fill(
        self,
        target: GraphProto,
        index: GraphIndex,
        opsets: Mapping[str, int],
        inputs: Mapping[str, ValueInfoProto | None],
        around: Mapping[str, TensorProto],
        bindings: Bindings,
        *,
        is_body: bool = False,
    ) -> None:
        """Copy a graph for inference: its inputs, small constants, outputs, and nodes in topological order.

        Stored types stay out, because they may be stale: only those of outputs that inference cannot
        know are kept. Weights stay out as well, their types are declared instead; a Constant of more than
        _SEEN elements becomes an Identity of a value that is only declared. Small constants from `around`
        come along, as inference does not look for them there. An input of a body with an initializer is
        a constant, as nothing but the node gives a body its inputs.
        """
        are_defaults = self._are_inputs_defaults and not is_body
        types, constants = dict[str, ValueInfoProto](), dict(around)
        calls = {*index.calls}
        unknown = [
            at
            for usage, places in index.usages.items()
            if schema_of(usage.domain, usage.type, opsets) is None
            for at in places
            if at not in calls
        ]
        copies = {at: _stand_in(index.nodes[at]) for at in unknown}
        for at in unknown:
            types.update(
                (name, index.stored[name]) for name in index.nodes[at].output if name in index.stored
            )
        held = [
            (name, tensor)
            for name, tensor in index.initializers.items()
            if not (name in index.inputs and are_defaults)
        ]
        held += [
            (name, tensor) for at, tensor in index.tensors.items() for name in index.nodes[at].output[:1]
        ]
        for name, tensor in held:
            if prod(tensor.dims) <= _SEEN and held_type(tensor):
                constants[name] = tensor
            else:
                types[name] = _typed(name, tensor.data_type, shape_of(tensor))
        for name, tensor in constants.items():
            if name not in index.producers:
                target.initializer.append(tensor)
                if tensor.name != name:
                    target.initializer[-1].name = name
        for name, sparse in index.sparse_initializers.items():
            types[name] = _typed(name, sparse.values.data_type, tuple(sparse.dims))
        for name, one in inputs.items():
            default = index.initializers.get(name)
            if default is None or are_defaults:
                if default is not None and (one is None or not one.HasField("type")):
                    one = _typed(name, default.data_type, shape_of(default))
                target.input.append(ValueInfoProto(name=name) if one is None else one)
        for position, node in enumerate(index.nodes):
            if position in copies:
                continue  # inference would tell of nothing behind a node that it does not know
            if position in index.bodies or any(one.ref_attr_name for one in node.attribute):
                copies[position] = self._bound(index, position, opsets, constants, bindings)
            elif position in index.tensors and not constants.keys() >= {*node.output}:
                copies[position] = _stand_in(node)
                name = next((name for name in node.output[:1] if name in types), "")
                if name and held_type(index.tensors[position]):
                    ghost = _typed(f"{_NUMBERED}{position} of ", None, None)
                    ghost.name += name
                    ghost.type.CopyFrom(types[name].type)
                    types[ghost.name] = ghost
                    copies[position] = NodeProto(op_type="Identity", input=[ghost.name], output=node.output)
        target.node.extend([copies.get(at, index.nodes[at]) for at in index.sorted_positions()])
        for name in index.outputs:
            one = types.pop(name, None)
            if one is None and name not in index.producers:
                one = index.stored.get(name)
            target.output.append(ValueInfoProto(name=name) if one is None else one)
        target.value_info.extend(types.values())
        for node in target.node if "ai.onnx" in index.domains else ():
            node.domain = normal_domain(node.domain)
        for one in (*target.input, *target.output, *target.value_info):
            message = tensor_message(one.type)
            for dim in () if message is None else message.shape.dim:
                if dim.dim_value < 0:  # inference would calculate with it
                    dim.ClearField("dim_value")

    def _bound(
        self,
        index: GraphIndex,
        position: int,
        opsets: Mapping[str, int],
        constants: Mapping[str, TensorProto],
        bindings: Bindings,
    ) -> NodeProto:
        node, bodies = index.nodes[position], index.bodies.get(position, {})
        copy = NodeProto(op_type=node.op_type, domain=node.domain, name=node.name, overload=node.overload)
        copy.input.extend(node.input)
        copy.output.extend(node.output)
        for name, attribute in bound(node, bindings):
            written = copy.attribute.add()
            if not is_graph(attribute):
                written.CopyFrom(attribute)
                written.name = name
                continue
            written.name, written.type = attribute.name, attribute.type
            for label, graph in graphs_of(attribute):
                if label in bodies:
                    body, inner = written.g if label == name else written.graphs.add(), bodies[label]
                    body.name = graph.name
                    taken = sorted(inner.captured & constants.keys(), key=repr)
                    small = {one: constants[one] for one in taken}
                    self._fill(body, inner, opsets, inner.inputs, small, bindings, is_body=True)
        return copy


def _import(target: ModelProto | FunctionProto, opsets: Mapping[str, int], index: GraphIndex) -> None:
    domains = set().union(*(graph.domains for graph in index.all_graphs())) - {"ai.onnx"}
    for domain in sorted({*opsets, *domains}, key=repr):
        target.opset_import.add(domain=domain, version=opsets.get(domain, 1))


def _prepared(definition: Definition) -> FunctionProto:
    """Return a function that inference can read: each domain imported, no large constants."""
    copy, index = FunctionProto(), definition.index
    copy.CopyFrom(definition.proto)
    del copy.opset_import[:]
    _import(copy, definition.opsets, index)
    for position, tensor in index.tensors.items():
        if prod(tensor.dims) > _SEEN or not held_type(tensor):
            del copy.node[position].attribute[:]
            if held_type(tensor):
                typed = TensorProto(data_type=tensor.data_type, dims=tensor.dims)
                copy.node[position].attribute.add(name="value", type=AttributeProto.TENSOR).t.CopyFrom(typed)
    for node in copy.node if "ai.onnx" in index.domains else ():
        node.domain = normal_domain(node.domain)
    make_unique(copy)
    return copy


def make_unique(target: ModelProto | FunctionProto) -> None:
    """Give the values of bodies other names where another graph of the model, or the function, has them.

        If (c) <then = {s = Shape (a)}, else = {s = Shape (b)}>
    becomes
        If (c) <then = {s = Shape (a)}, else = {ir_scatter:1:s = Shape (b)}>

    Inference keeps the numbers it follows in one table for all graphs, so that the second `s` would be
    refused, or taken for the first.
    """
    graph = target.graph if isinstance(target, ModelProto) else target
    bodies = [body for node in graph.node for one in node.attribute for _, body in graphs_of(one)]
    if not bodies:
        return
    taken = _names_of(graph)
    waiting: list[tuple[GraphProto, Mapping[str, str]]] = [(body, {}) for body in reversed(bodies)]
    while waiting:
        body, around = waiting.pop()
        names = dict(around)
        for name in sorted(_names_of(body)):
            names[name] = f"{_NUMBERED}{len(taken)}:{name}" if name in taken else name
            taken.add(names[name])
        for one in (*body.input, *body.output, *body.initializer, *body.value_info):
            one.name = names.get(one.name, one.name)
        for sparse in body.sparse_initializer:
            sparse.values.name = names.get(sparse.values.name, sparse.values.name)
        for node in body.node:
            for group in (node.input, node.output):
                group[:] = [names.get(name, name) for name in group]
            inner = [one for attribute in node.attribute for _, one in graphs_of(attribute)]
            waiting += [(one, names) for one in inner]


def _names_of(graph: GraphProto | FunctionProto) -> set[str]:
    """Return the names that a graph gives to values."""
    names = {name for node in graph.node for name in node.output}
    if isinstance(graph, FunctionProto):
        return names | {*graph.input}
    names.update(one.name for one in (*graph.input, *graph.initializer))
    names.update(one.values.name for one in graph.sparse_initializer)
    return names - {""}


def _stand_in(node: NodeProto) -> NodeProto:
    """Return a node of which inference learns nothing about the outputs."""
    return NodeProto(op_type="Constant", output=node.output, doc_string=_STAND_IN)


class _Refusal(NamedTuple):
    """What inference says of a node, and whether it is about types."""

    words: str
    is_of_types: bool


def _refusals(said: str) -> dict[str, _Refusal]:
    """Return what inference says of single nodes, by the name that `_judged` gave them."""
    parts = [_REFUSAL.match(part) for part in said.split("(op_type:")]
    found = {
        part[1]: _Refusal(" ".join(part[3].split()), _OF_TYPES in part[2])
        for part in reversed(parts)
        if part is not None
    }
    return {
        name: refusal
        for name, refusal in found.items()
        if not refusal.words.endswith(_OF_NO_TYPE) and not _WITHOUT_CONTENTS.match(refusal.words)
    }


def _read_back(
    graph: GraphProto,
    index: GraphIndex,
    refusals: Mapping[str, _Refusal],
    suspicions: Mapping[str, _Refusal],
    *,
    is_sound: bool,
    around: Collection[str] = (),
) -> Inferred:
    """Collect what inference wrote into a graph and into the bodies of its nodes.

    `around` are the values around a body whose types are known.
    """
    types: dict[str, TypeProto] = {}
    typed = {"", *around, *index.initializers, *(one.name for one in graph.initializer)}
    has_complaints, is_walked = bool(refusals or suspicions), index.bodies or refusals or suspicions
    for group in (graph.input, graph.output, graph.value_info):
        for value in group:
            if value.HasField("type"):
                types[_original(value.name)] = value.type
                if has_complaints and _is_known(value.type):
                    typed.add(value.name)
    bodies, refused, suspected = {}, dict[int, str](), dict[int, str]()
    nodes = [node for node in graph.node if node.doc_string != _BARRIER] if is_walked else []
    for node, position in zip(nodes, index.sorted_positions(), strict=False):
        inside = index.bodies.get(position, {})
        for attribute in node.attribute if inside else ():
            for name, body in graphs_of(attribute):
                if name in inside:
                    inner = _read_back(
                        body, inside[name], refusals, suspicions, is_sound=is_sound, around=typed
                    )
                    bodies[position, name] = inner
        if node.doc_string == _STAND_IN:
            continue
        for source, target in ((suspicions, suspected), (refusals, refused)):
            refusal = source.get(node.name)
            if refusal is not None and (not refusal.is_of_types or typed.issuperset(node.input)):
                target[position] = refusal.words
    suspected = {position: words for position, words in suspected.items() if position not in refused}
    return Inferred(types, bodies, refused, suspected, is_sound)


def _is_known(type: TypeProto) -> bool:
    """Tell whether a type says what elements a tensor has, or what other kind of value it is."""
    message = tensor_message(type)
    return type.WhichOneof("value") is not None and (message is None or message.elem_type != 0)


def _original(name: str) -> str:
    """Return a name as the file has it."""
    renamed = _RENAMED.fullmatch(name) if name.startswith(_NUMBERED) else None
    return name if renamed is None else renamed[1]


def _typed(name: str, onnx_number: int | None, shape: Shape) -> ValueInfoProto:
    written = ValueInfoProto(name=name)
    if onnx_number is not None:
        written.type.tensor_type.elem_type = onnx_number
    if onnx_number is not None and shape is not None:
        written.type.tensor_type.shape.SetInParent()
        for dim in shape:
            added = written.type.tensor_type.shape.dim.add()
            if isinstance(dim, int):
                added.dim_value = dim
            elif dim.symbol is not None:
                added.dim_param = dim.symbol
    return written


# The process that infers


class _Child:
    """A forked process that infers one model after another."""

    def __init__(self) -> None:
        from multiprocessing.connection import Pipe

        self._connection, other = Pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # fork with threads: 3.12 on
            self._pid = os.fork()
        if self._pid == 0:
            try:
                _serve(other)
            finally:
                os._exit(0)
        other.close()

    def ask(self, question: tuple[bytes, bool, int], seconds: float) -> bytes | None:
        """Return the answer, None if there is none in time.

        Raises:
            OSError: the process has ended, so that it was not asked.
        """
        self._connection.send(question)
        try:
            return self._connection.recv_bytes() if self._connection.poll(seconds) else None
        except (EOFError, OSError):
            return None

    def end(self) -> None:
        self._connection.close()
        with contextlib.suppress(OSError):
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)


_idle: list[_Child] = []
"""Processes that nothing is asked of at the moment: one, or one for each thread that reads models.

They end with this process, which holds the other ends of their pipes.
"""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)


def _ask(question: tuple[bytes, bool, int], seconds: float) -> bytes | None:
    """Return the serialized graph with inferred types; None or nothing if that does not work."""
    if not hasattr(os, "fork"):
        return _answer(*question[:2])
    while True:
        is_kept = bool(_idle)
        try:
            child = _idle.pop() if is_kept else _Child()
        except OSError:
            return None
        try:
            answer = child.ask(question, seconds)
        except OSError:
            child.end()
            if is_kept:
                continue
            return None
        if answer is None:
            child.end()
        else:
            _idle.append(child)
        return answer


def _serve(connection: Any) -> None:
    """Answer until the parent ends, or asks nothing for long: nothing of the parent may run here.

    The process lets go of files that others wait for, and keeps its last words off the terminal.
    Processor time is bounded by a signal that ends it, and so is memory beyond what is used already.
    """
    faulthandler.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)
    nowhere, kept = os.open(os.devnull, os.O_RDWR), connection.fileno()
    for standard in range(3):
        os.dup2(nowhere, standard)
    os.closerange(3, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while connection.poll(_IDLE_SECONDS):
        request, propagate, seconds = connection.recv()
        signal.setitimer(signal.ITIMER_PROF, seconds)
        with contextlib.suppress(OSError, ValueError):
            with open("/proc/self/statm", encoding="ascii") as file:
                mapped = int(file.read().split()[0]) * resource.getpagesize()
            most = mapped + _BASE_MEMORY + _MEMORY_PER_BYTE * len(request)
            resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))
        connection.send_bytes(_answer(request, propagate))


def _answer(request: bytes, propagate: bool) -> bytes:
    """Return the model with inferred types.

    If nodes are refused, they have numbers for names. `doc_string` says then why they are refused, and
    `producer_name` what data propagation adds to that.
    """
    try:
        for _ in range(_MOST_ROUNDS if propagate else 0):
            model = _judged(request, propagate=True)
            hidden = _hide_numbers(request, model)
            if hidden is None:
                break
            request = hidden
        else:
            model = _judged(request, propagate=False)
        del model.graph.initializer[:]  # the types are asked for
        del model.functions[:]
        return bytes(model.SerializeToString())
    except Exception:
        # Whatever it is that native code does not like: the stored shapes remain.
        return b""


def _judged(request: bytes, *, propagate: bool) -> ModelProto:
    try:
        model = _inferred(request, propagate, check_type=True, strict_mode=True)
        model.ClearField("doc_string")
        model.ClearField("producer_name")
        return model
    except onnx.shape_inference.InferenceError:
        numbered = ModelProto.FromString(request)
        for number, node in enumerate(_all_nodes(numbered.graph)):
            node.name = f"{_NUMBERED}{number}"
        request = numbered.SerializeToString()
        refused, suspected = _complaint(request, propagate=False), ""
        if propagate:
            suspected = _complaint(request, propagate=True)
        model = _inferred(request, propagate)
        model.doc_string, model.producer_name = refused, suspected
        return model


def _complaint(request: bytes, *, propagate: bool) -> str:
    """Return what strict inference raises of shapes; of element types only that it refuses one."""
    try:
        _inferred(request, propagate, strict_mode=True)
    except onnx.shape_inference.InferenceError as error:
        return str(error)
    try:
        _inferred(request, propagate, check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError:
        return _REFUSED_TYPE  # which ends inference at the first: operators.py looks at all
    return ""


def _hide_numbers(request: bytes, inferred: ModelProto) -> bytes | None:
    """Return the request with barriers where data propagation would follow wrong numbers, None if it has all.

    It keeps a matrix as the list of its numbers, for example, and computes as if it were that:

        p = Unsqueeze (q, 0)           # q is [3, 4], so that p is [[3, 4]]
        s = Gather (p, 0)              # is [3, 4]; to data propagation 3
        y = Reshape (x, s)             # has two dimensions; to data propagation one

    A barrier is an Identity, which it does not look through. In a function, whose values have no types, it
    also stands where a matrix is not excluded.
    """
    hidden, is_changed = ModelProto.FromString(request), False
    scopes: list[tuple[GraphProto | FunctionProto, GraphProto | FunctionProto]] = [
        (inferred.graph, hidden.graph),
        *zip(inferred.functions, hidden.functions, strict=True),
    ]
    for scope, target in scopes:
        misleading = {name for name in _misleading(scope) if not name.startswith(_BARRIER)}
        for graph in _all_graphs(target) if misleading else ():
            is_changed |= _add_barriers(graph, misleading)
    return hidden.SerializeToString() if is_changed else None


def _add_barriers(graph: GraphProto | FunctionProto, misleading: Collection[str]) -> bool:
    """Put barriers behind values, but not behind barriers; return whether there is a new one."""
    nodes = list[NodeProto]()
    for node in graph.node:
        nodes.append(node)
        name = node.output[0] if node.output else ""
        if name in misleading and node.doc_string != _BARRIER:
            inner = f"{_BARRIER} {name}"
            barrier = NodeProto(op_type="Identity", input=[inner], output=[name], doc_string=_BARRIER)
            node.output[0] = inner
            nodes.append(barrier)
    if len(nodes) == len(graph.node):
        return False
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    return True


def _misleading(scope: GraphProto | FunctionProto) -> Iterator[str]:
    """Yield the values whose numbers data propagation has wrong, as far as can be seen at their nodes.

    Matrices, which only Unsqueeze makes of what it follows; slices whose bounds are not constant, for which
    it takes 0; and what Cast makes of numbers that the new type may not hold. Only values whose
    numbers it may follow count: those made of constants and shapes by operators that it knows.
    """
    constants, ranks = dict[str, int | None](), dict[str, int]()
    followed = {*scope.input} if isinstance(scope, FunctionProto) else set[str]()
    for inner in _all_graphs(scope):
        types: dict[str, TypeProto.Tensor] | None = None
        if isinstance(inner, GraphProto):
            constants.update((one.name, prod(one.dims)) for one in inner.initializer)
            followed.update(one.name for one in inner.initializer)
            followed.update(one.name for one in inner.input if inner is not scope)
            ranks.update((one.name, len(one.dims)) for one in inner.initializer)
        for node in inner.node:
            if not node.output:
                continue
            kind = _propagation_of(node.domain, node.op_type)
            if kind is _Propagation.NONE:
                continue
            if kind is _Propagation.OF_FIRST and node.input[0:1] and node.input[0] not in followed:
                continue
            if kind is _Propagation.OF_ANY and followed.isdisjoint(node.input):
                continue
            followed.update(node.output)
            if node.domain:
                continue
            if node.op_type == "Constant":
                dims = _dims_of(node)
                constants[node.output[0]] = None if dims is None else prod(dims)
                if dims is not None:
                    ranks[node.output[0]] = len(dims)
                continue
            rank, is_misleading = _rank_of(node, ranks, constants), False
            if rank is not None:
                ranks[node.output[0]] = rank
            if node.op_type == "Unsqueeze":
                if types is None:
                    values = (*inner.value_info, *inner.output) if isinstance(inner, GraphProto) else ()
                    types = {one.name: one.type.tensor_type for one in values}
                type = types.get(node.output[0])
                if type is not None and type.HasField("shape"):
                    rank = len(type.shape.dim)
                is_misleading = (rank is None or rank > 1) and (type is None or type.elem_type in _WHOLE)
            elif node.op_type == "Slice":
                is_misleading = not constants.keys() >= {*filter(None, node.input[1:])}
            elif node.op_type == "Cast":
                is_misleading = not any(one.i in _HOLDING_SIZES for one in node.attribute)
            if is_misleading:
                yield node.output[0]


def _dims_of(constant: NodeProto) -> list[int] | None:
    """Return the shape of what a Constant holds, None if the node does not say."""
    (held,) = constant.attribute[:1] or (AttributeProto(),)
    if held.ref_attr_name:
        return None
    if held.name in {"value_ints", "value_floats"}:
        return [len(held.ints) + len(held.floats)]
    return (
        [*held.t.dims] if held.name == "value" else [] if held.name in {"value_int", "value_float"} else None
    )


def _rank_of(node: NodeProto, ranks: Mapping[str, int], constants: Mapping[str, int | None]) -> int | None:
    """Return the rank of what data propagation follows through a node, if it follows from those of inputs.

    Of constants the number of elements is known.
    """
    inputs = [ranks.get(name) for name in node.input]
    known = [rank for rank in inputs if rank is not None]
    if node.op_type in {"Shape", "Size"}:
        return int(node.op_type == "Shape")
    if not inputs or inputs[0] is None:
        return None
    if node.op_type in {"Cast", "Concat", "Slice"}:
        return inputs[0]
    if node.op_type == "Unsqueeze":
        attribute = sum(len(one.ints) for one in node.attribute) or None
        count = constants.get(node.input[1]) if len(node.input) > 1 else attribute
        return None if count is None else inputs[0] + count
    if node.op_type == "Squeeze":
        return 0 if inputs[0] < 2 else None
    if len(known) < 2:
        return None
    if node.op_type == "Gather":
        return known[0] + known[1] - 1
    return max(known) if node.op_type in {"Add", "Mul", "Sub"} else None


class _Propagation(Enum):
    """When data propagation may know the numbers of the outputs of an operator."""

    NONE = auto()
    OF_FIRST = auto()
    """Where it knows those of the first input, and maybe must know those of others too."""
    OF_ANY = auto()
    """Where it knows those of an input."""
    ALWAYS = auto()


_OF_SHAPES = frozenset({"Constant", "Shape", "Size"})
"""Operators that make numbers of no other numbers."""


@cache
def _propagation_of(domain: str, op_type: str) -> _Propagation:
    """Return what data propagation may know of an operator; anything of one without schema: a function.

    The newest version decides: no operator lost its data propagation.
    """
    if not onnx.defs.has(op_type, domain) or (not domain and op_type in _OF_SHAPES):
        return _Propagation.ALWAYS
    schema = onnx.defs.get_schema(op_type, domain)
    if any(getattr(schema, name, True) for name in ("has_function", "has_context_dependent_function")):
        return _Propagation.OF_ANY
    if schema.has_data_propagation_function:
        return _Propagation.OF_FIRST
    has_bodies = any(one.type == onnx.defs.OpSchema.AttrType.GRAPH for one in schema.attributes.values())
    return _Propagation.ALWAYS if has_bodies else _Propagation.NONE


def _inferred(request: bytes, propagate: bool, **checks: bool) -> ModelProto:
    return onnx.shape_inference.infer_shapes(request, data_prop=propagate, **checks)


def _all_graphs(graph: GraphProto | FunctionProto) -> Iterator[GraphProto | FunctionProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for _, body in graphs_of(attribute):
                yield from _all_graphs(body)


def _all_nodes(graph: GraphProto) -> Iterator[NodeProto]:
    return (node for inner in _all_graphs(graph) for node in inner.node)
