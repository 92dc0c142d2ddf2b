"""Runs onnx's shape inference in a child process, for `inference.py`.

The inference is native code. Some files crash it (an assertion in Slice), exhaust memory (repeated Concat
of a shape with itself) or take years (functions that call functions twice). So a forked process with
limits gets copies without stored shapes and weights. The process is kept for the next model, because a
fork takes longer than the inference of a small one.
"""

import contextlib
import faulthandler
import os
import signal
import warnings
from collections.abc import Collection, Iterator, Mapping
from enum import Enum, auto
from functools import cache
from math import prod
from typing import Any

import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto

from ir_scatter.formats.onnx.index import graphs_of

with contextlib.suppress(ImportError):  # on systems that also lack fork
    import resource

_IDLE_SECONDS = 10.0
"""Seconds without a question after which the child process ends."""

_BASE_MEMORY = 1 << 29
"""Bytes of memory that an inference may use in any case, beyond the inherited memory: 512 MiB."""

_MEMORY_PER_BYTE = 16
"""Additional bytes of memory for each byte of the model without weights."""

NUMBERED = "ir_scatter:"
"""Prefix of the node names that replace the original ones after an error, so that the next error names a
node.
"""

BARRIER = "ir_scatter: barrier"
"""The doc_string of a barrier: an Identity node that hides elements from data propagation."""

_MOST_ROUNDS = 4
"""Limit of inference rounds that each add barriers. After the last, data propagation is turned off."""

REFUSED_TYPE = "an element type"
"""The text that replaces any error message about an element type."""

_WHOLE = frozenset({TensorProto.INT32, TensorProto.INT64})
_HOLDING_SIZES = _WHOLE | {TensorProto.FLOAT, TensorProto.DOUBLE}
"""Element types to which a Cast keeps tensor sizes unchanged."""


class _Child:
    """A forked child process that infers one model after another."""

    def __init__(self) -> None:
        from multiprocessing.connection import Pipe

        self._connection, child_end = Pipe()
        with warnings.catch_warnings():
            # forking with threads warns since Python 3.12
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        if self._pid == 0:
            try:
                _serve(child_end)
            finally:
                os._exit(0)
        child_end.close()

    def ask(self, question: tuple[bytes, bool, int], seconds: float) -> bytes | None:
        """Return the answer; None if the process crashes or exceeds the time limit in seconds.

        Raises:
            OSError: the process had ended before the question.
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
"""Idle child processes, one for each thread that reads models. They end with this process, because it holds
the other ends of their pipes.
"""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)


def ask(question: tuple[bytes, bool, int], seconds: float) -> bytes | None:
    """Infer a serialized model; return None or empty bytes if inference fails.

    `question` is (serialized model, whether to propagate data, limit in seconds of CPU time). `seconds` is
    the limit of wall time. The answer contains only the graph with inferred types.
    """
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
    """Answer questions until the parent ends or is idle; no code of the parent may run here.

    The process closes inherited files, so that no reader waits for it, and writes nothing to the terminal.
    A signal ends it after the time limit. The memory limit is the inherited memory plus a fixed amount and
    an amount in proportion to the model.
    """
    faulthandler.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)
    nowhere, descriptor = os.open(os.devnull, os.O_RDWR), connection.fileno()
    for standard in range(3):
        os.dup2(nowhere, standard)
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, os.sysconf("SC_OPEN_MAX"))
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
    """Return the serialized model with inferred types.

    If strict inference refuses a node, all nodes get numbered names. `doc_string` then holds the error
    without data propagation, `producer_name` the error with it.
    """
    try:
        for _ in range(_MOST_ROUNDS if propagate else 0):
            model = _infer_with_errors(request, propagate=True)
            hidden = _insert_barriers(request, model)
            if hidden is None:
                break
            request = hidden
        else:
            model = _infer_with_errors(request, propagate=False)
        del model.graph.initializer[:]  # only the types are needed
        del model.functions[:]
        return bytes(model.SerializeToString())
    except Exception:
        # Any failure of the native code: the stored shapes are used.
        return b""


def _infer_with_errors(request: bytes, *, propagate: bool) -> ModelProto:
    try:
        model = _inferred(request, propagate, check_type=True, strict_mode=True)
        model.ClearField("doc_string")
        model.ClearField("producer_name")
        return model
    except onnx.shape_inference.InferenceError:
        numbered = ModelProto.FromString(request)
        for number, node in enumerate(_all_nodes(numbered.graph)):
            node.name = f"{NUMBERED}{number}"
        request = numbered.SerializeToString()
        refused, suspected = _strict_error(request, propagate=False), ""
        if propagate:
            suspected = _strict_error(request, propagate=True)
        model = _inferred(request, propagate)
        model.doc_string, model.producer_name = refused, suspected
        return model


def _strict_error(request: bytes, *, propagate: bool) -> str:
    """Return the first error of strict inference about shapes; `REFUSED_TYPE` for one about element types.

    Returns "" without an error.
    """
    try:
        _inferred(request, propagate, strict_mode=True)
    except onnx.shape_inference.InferenceError as error:
        return str(error)
    try:
        _inferred(request, propagate, check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError:
        return REFUSED_TYPE  # inference stops at the first wrong type; operators.py checks all
    return ""


def _insert_barriers(request: bytes, inferred: ModelProto) -> bytes | None:
    """Return the model with barriers where data propagation is wrong; None if it needs no new ones.

    Data propagation stores a matrix as a list of its elements. An example of the consequence:

        p = Unsqueeze (q, 0)           # [[3, 4]], as q is [3, 4]
        s = Gather (p, 0)              # [3, 4], but 3 in data propagation
        y = Reshape (x, s)             # has 2 dimensions, but 1 in data propagation

    Values in a function have no types, so a function gets a barrier wherever a matrix is possible.
    """
    hidden, is_changed = ModelProto.FromString(request), False
    scopes: list[tuple[GraphProto | FunctionProto, GraphProto | FunctionProto]] = [
        (inferred.graph, hidden.graph),
        *zip(inferred.functions, hidden.functions, strict=True),
    ]
    for scope, target in scopes:
        misleading = {name for name in _misleading(scope) if not name.startswith(BARRIER)}
        for graph in _all_graphs(target) if misleading else ():
            is_changed |= _add_barriers(graph, misleading)
    return hidden.SerializeToString() if is_changed else None


def _add_barriers(graph: GraphProto | FunctionProto, misleading: Collection[str]) -> bool:
    """Insert a barrier after each misleading value that has none; return whether any was inserted."""
    nodes = list[NodeProto]()
    for node in graph.node:
        nodes.append(node)
        name = node.output[0] if node.output else ""
        if name in misleading and node.doc_string != BARRIER:
            inner = f"{BARRIER} {name}"
            barrier = NodeProto(op_type="Identity", input=[inner], output=[name], doc_string=BARRIER)
            node.output[0] = inner
            nodes.append(barrier)
    if len(nodes) == len(graph.node):
        return False
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    return True


def _misleading(scope: GraphProto | FunctionProto) -> Iterator[str]:
    """Yield the names of values that data propagation may get wrong.

    These are matrices (only Unsqueeze creates them), results of Slice with dynamic bounds (which count as 0),
    and results of Cast to a type that cannot hold tensor sizes. Only values that data propagation computes
    matter: those computed from constants and shapes by operators with data propagation.
    """
    constants, ranks = dict[str, int | None](), dict[str, int]()
    followed = {*scope.input} if isinstance(scope, FunctionProto) else set[str]()
    for inner in _all_graphs(scope):
        types: dict[str, TypeProto.Tensor] | None = None
        if isinstance(inner, GraphProto):
            constants.update((tensor.name, prod(tensor.dims)) for tensor in inner.initializer)
            followed.update(tensor.name for tensor in inner.initializer)
            followed.update(tensor.name for tensor in inner.input if inner is not scope)
            ranks.update((tensor.name, len(tensor.dims)) for tensor in inner.initializer)
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
                    types = {info.name: info.type.tensor_type for info in values}
                type = types.get(node.output[0])
                if type is not None and type.HasField("shape"):
                    rank = len(type.shape.dim)
                is_misleading = (rank is None or rank > 1) and (type is None or type.elem_type in _WHOLE)
            elif node.op_type == "Slice":
                is_misleading = not constants.keys() >= {*filter(None, node.input[1:])}
            elif node.op_type == "Cast":
                is_misleading = not any(attribute.i in _HOLDING_SIZES for attribute in node.attribute)
            if is_misleading:
                yield node.output[0]


def _dims_of(constant: NodeProto) -> list[int] | None:
    """Return the shape of a Constant; None if unknown."""
    (held,) = constant.attribute[:1] or (AttributeProto(),)
    if held.ref_attr_name:
        return None
    if held.name in {"value_ints", "value_floats"}:
        return [len(held.ints) + len(held.floats)]
    return (
        [*held.t.dims] if held.name == "value" else [] if held.name in {"value_int", "value_float"} else None
    )


def _rank_of(node: NodeProto, ranks: Mapping[str, int], constants: Mapping[str, int | None]) -> int | None:
    """Return the rank of a node's result; None if unknown.

    `ranks` are those of its inputs, `constants` the element counts of constant inputs, by name.
    """
    inputs = [ranks.get(name) for name in node.input]
    known_ranks = [rank for rank in inputs if rank is not None]
    if node.op_type in {"Shape", "Size"}:
        return int(node.op_type == "Shape")
    if not inputs or inputs[0] is None:
        return None
    if node.op_type in {"Cast", "Concat", "Slice"}:
        return inputs[0]
    if node.op_type == "Unsqueeze":
        axes = sum(len(attribute.ints) for attribute in node.attribute) or None
        count = constants.get(node.input[1]) if len(node.input) > 1 else axes
        return None if count is None else inputs[0] + count
    if node.op_type == "Squeeze":
        return 0 if inputs[0] < 2 else None
    if len(known_ranks) < 2:
        return None
    if node.op_type == "Gather":
        return known_ranks[0] + known_ranks[1] - 1
    return max(known_ranks) if node.op_type in {"Add", "Mul", "Sub"} else None


class _Propagation(Enum):
    """The inputs that must be known for data propagation to compute the outputs of an operator."""

    NONE = auto()
    OF_FIRST = auto()
    """The first input must be known, maybe others too."""
    OF_ANY = auto()
    """At least one input must be known."""
    ALWAYS = auto()


_OF_SHAPES = frozenset({"Constant", "Shape", "Size"})
"""Operators whose outputs do not depend on the elements of an input."""


@cache
def _propagation_of(domain: str, op_type: str) -> _Propagation:
    """Return the inputs that data propagation needs for an operator; ALWAYS for a call of a function.

    The newest version decides: no operator has lost its data propagation.
    """
    if not onnx.defs.has(op_type, domain) or (not domain and op_type in _OF_SHAPES):
        return _Propagation.ALWAYS
    schema = onnx.defs.get_schema(op_type, domain)
    if any(getattr(schema, name, True) for name in ("has_function", "has_context_dependent_function")):
        return _Propagation.OF_ANY
    if schema.has_data_propagation_function:
        return _Propagation.OF_FIRST
    has_bodies = any(
        attribute.type == onnx.defs.OpSchema.AttrType.GRAPH for attribute in schema.attributes.values()
    )
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
