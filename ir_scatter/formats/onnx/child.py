"""Shape inference in a child process.

onnx's inference is native code: files exist that end the process (an assertion in Slice), that ask
for all memory (Concat of a shape with itself, again and again) or for years (functions that call
functions twice). A forked child with limits keeps that away from the reader.
"""

import contextlib
import math
import os
import select
import signal
import struct
import time
import warnings
from typing import NoReturn

import onnx
from onnx import GraphProto, ModelProto

from ir_scatter.formats.onnx.attributes import is_graph
from ir_scatter.formats.onnx.index import graphs_of

CPU_SECONDS = 20
"""What one inference may take at most."""

TOTAL_SECONDS = 60.0
"""What all inferences of one model may take at most."""

_SECONDS_PER_BYTE = 2e-5
"""What an inference may take for each byte of the model without its weights, but for the first second: a
hundred times what it takes where functions do not multiply."""

_TOTAL_PER_ONE = 2.5
"""How many times as much all inferences of a model may take together."""

_LENGTH = struct.Struct("<Q")
_CHUNK = 1 << 20
_BASE_MEMORY = 1 << 29
_MEMORY_PER_BYTE = 16


class InferenceBudget:
    """Runs inferences until their time is used up."""

    def __init__(self) -> None:
        self._used = 0.0
        self._total = 0.0
        self._propagates = True

    def infer(self, model: ModelProto) -> tuple[ModelProto | None, bool]:
        """Return the model with inferred types, None if inference fails; and whether time was up.

        Where it fails with data propagation, it is tried without; once that has used up its time, all
        others are tried without at once.
        """
        request = model.SerializeToString()
        limit = min(CPU_SECONDS, max(1, math.ceil(len(request) * _SECONDS_PER_BYTE)))
        self._total = max(self._total, min(TOTAL_SECONDS, _TOTAL_PER_ONE * limit))
        is_late = False
        for propagate in (True, False) if self._propagates else (False,):
            left = self._total - self._used
            if left <= 0:
                is_late = True
                break
            start = time.monotonic()
            answer = _infer_bytes(request, propagate, left, limit)
            took = time.monotonic() - start
            self._used += took
            if answer is not None:
                result = ModelProto()
                result.ParseFromString(answer)
                return result, False
            is_late = took >= min(limit, left) * 0.9
            self._propagates = self._propagates and not is_late
        return None, is_late


def _infer_bytes(request: bytes, propagate: bool, seconds: float, limit: int) -> bytes | None:
    """Return the serialized model with inferred types, None if that does not work."""
    if not hasattr(os, "fork"):
        return _infer_here(request, propagate)
    reader, writer = os.pipe()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # fork with threads: 3.12 on
            child = os.fork()
    except OSError:
        os.close(reader)
        os.close(writer)
        return None
    if child == 0:
        _answer_and_exit(request, propagate, writer, limit)
    os.close(writer)
    try:
        return _read_answer(reader, min(seconds, 2.0 * limit))
    finally:
        os.close(reader)
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.waitpid(child, 0)


def _infer_here(request: bytes, propagate: bool) -> bytes | None:
    try:
        inferred = onnx.shape_inference.infer_shapes(
            request, check_type=False, strict_mode=False, data_prop=propagate
        )
        del inferred.functions[:]
        _trim(inferred.graph)
        return bytes(inferred.SerializeToString())
    except Exception:
        # Whatever it is that native code does not like: the stored shapes remain.
        return None


def _trim(graph: GraphProto) -> None:
    """Keep what inference found out: types, and graphs inside nodes at their positions."""
    del graph.initializer[:]
    holders = [node for node in graph.node if node.attribute and any(map(is_graph, node.attribute))]
    if not holders:
        del graph.node[:]
    for node in graph.node:
        inner = [attribute for attribute in node.attribute if is_graph(attribute)]
        if not inner:
            node.Clear()
        for attribute in inner:
            for _, body in graphs_of(attribute):
                _trim(body)


def _answer_and_exit(request: bytes, propagate: bool, writer: int, limit: int) -> NoReturn:
    """Infer, write the answer and leave at once: nothing of the parent may run here."""
    try:
        _silence()
        _limit(len(request), limit)
        answer = _infer_here(request, propagate)
        if answer is not None:
            rest = memoryview(_LENGTH.pack(len(answer)) + answer)
            while rest:
                rest = rest[os.write(writer, rest) :]
    finally:
        os._exit(0)


def _silence() -> None:
    """Keep the last words of a process that is killed off the caller's terminal."""
    import faulthandler

    faulthandler.disable()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _limit(size: int, seconds: int) -> None:
    """Bound processor time and memory, the latter beyond what the parent has mapped already."""
    import resource

    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    with contextlib.suppress(OSError, ValueError):
        with open("/proc/self/statm", encoding="ascii") as file:
            mapped = int(file.read().split()[0]) * resource.getpagesize()
        memory = mapped + _BASE_MEMORY + _MEMORY_PER_BYTE * size
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _read_answer(reader: int, seconds: float) -> bytes | None:
    """Read until the child closes its end; None if it ends early or time is up."""
    deadline = time.monotonic() + seconds
    received = bytearray()
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not _is_readable(reader, left):
            return None
        chunk = os.read(reader, _CHUNK)
        if not chunk:
            break
        received += chunk
    if len(received) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(received)
    return bytes(received[_LENGTH.size :]) if len(received) == _LENGTH.size + length else None


def _is_readable(reader: int, seconds: float) -> bool:
    waiter = select.poll()
    waiter.register(reader, select.POLLIN | select.POLLHUP)
    return bool(waiter.poll(seconds * 1000))
