"""Shape inference in a child process.

onnx's inference is native code: files exist that end the process (an assertion in Slice), that ask
for all memory (Concat of a shape with itself, again and again) or for years (functions that call
functions twice). A forked child with limits keeps that away from the reader.
"""

import contextlib
import os
import select
import signal
import struct
import time
import warnings
from typing import NoReturn

import onnx
from onnx import GraphProto, ModelProto

from ir_scatter.formats.onnx_attributes import is_graph
from ir_scatter.formats.onnx_index import graphs_of

CPU_SECONDS = 20
"""What one inference may take."""

TOTAL_SECONDS = 60.0
"""What all inferences of one model may take."""

_LENGTH = struct.Struct("<Q")
_CHUNK = 1 << 20
_BASE_MEMORY = 1 << 29
_MEMORY_PER_BYTE = 16


class InferenceBudget:
    """Runs inferences until their time is used up."""

    def __init__(self) -> None:
        self._seconds = TOTAL_SECONDS

    def infer(self, model: ModelProto) -> ModelProto | None:
        """Return the model with inferred types, None if inference fails or may not go on.

        Where it fails with data propagation, it is tried without.
        """
        request = model.SerializeToString()
        for propagate in (True, False):
            if self._seconds <= 0:
                return None
            start = time.monotonic()
            answer = _infer_bytes(request, propagate, self._seconds)
            self._seconds -= time.monotonic() - start
            if answer is not None:
                result = ModelProto()
                result.ParseFromString(answer)
                return result
        return None


def _infer_bytes(request: bytes, propagate: bool, seconds: float) -> bytes | None:
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
        _answer_and_exit(request, propagate, writer)
    os.close(writer)
    try:
        return _read_answer(reader, min(seconds, 2.0 * CPU_SECONDS))
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


def _answer_and_exit(request: bytes, propagate: bool, writer: int) -> NoReturn:
    """Infer, write the answer and leave at once: nothing of the parent may run here."""
    try:
        _silence()
        _limit(len(request))
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


def _limit(size: int) -> None:
    """Bound processor time and memory, the latter beyond what the parent has mapped already."""
    import resource

    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
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
