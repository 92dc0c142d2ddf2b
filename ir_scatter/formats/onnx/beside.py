"""The files beside an ONNX model that its tensors are in: what has to go along with a copy."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.model import Model
from ir_scatter.core.replacement_journal import Identity
from ir_scatter.formats.onnx.attributes import WITHOUT_TENSORS
from ir_scatter.formats.onnx.external import Problem, is_external, span_of
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.formats.onnx.index import GraphIndex

_EXTERNAL = TensorProto.EXTERNAL


@dataclass(frozen=True, slots=True)
class ExternalFile:
    """A file beside a model.

    Attributes:
        location: as tensors name it, relative to the model's folder: "sub/../weights.bin".
        name: the same without detours, "weights.bin". Locations of one name are one file.
        path: the file, links resolved.
        identity: what tells it from a file that is put in its place.
    """

    location: str
    name: str
    path: Path
    identity: Identity = field(default=None, compare=False)


def external_files(model: Model, missing: list[str] | None = None) -> list[ExternalFile]:
    """Return every place outside of the file that a tensor of a model names, in the order of use.

    Args:
        model: an ONNX model.
        missing: if it is given, files that are not there are left out, and a sentence is added for each.

    Raises:
        UnreadableModel: a file is missing or outside of the model's folder, a tensor names no file,
            or two files could not be told apart beside a copy of the model.
    """
    assert isinstance(model.graph, OnnxGraph)
    files = model.graph.shared.tensors.files
    found: dict[str, ExternalFile | None] = {}
    by_name: dict[str, ExternalFile] = {}
    for tensor in _external_tensors(model.source, model.graph.index):
        span = span_of(tensor)
        if isinstance(span, Problem):
            raise _unreadable(model, span)
        if span.location in found:
            continue
        weights = files._file(span.location)
        if isinstance(weights, Problem):
            if missing is None or weights.kind != "weights-missing":
                raise _unreadable(model, weights)
            missing.append(weights.message)
            found[span.location] = None
            continue
        file = ExternalFile(span.location, os.path.normpath(span.location), weights.path, weights.identity)
        _refuse_detours(model, file, by_name.setdefault(file.name, file))
        found[span.location] = file
    return [file for file in found.values() if file is not None]


def _refuse_detours(model: Model, file: ExternalFile, other: ExternalFile) -> None:
    """Refuse `link/../weights.bin`, which is another file where the link is a folder."""
    if file.name.split(os.sep)[0] == os.pardir or other.path != file.path:
        message = f"external data is at {file.location!r}, which leads through a link and back"
        raise _unreadable(model, Problem("external-data-path", f"{message}, expected a path without '..'"))


def _external_tensors(model: ModelProto, main: GraphIndex) -> Iterator[TensorProto]:
    """Yield the tensors in other files: of graphs, functions, bodies, attributes and what trains a model."""
    yield from _of_graph(model.graph, [main.nodes[position] for position in main.holders])
    for training in model.training_info:
        yield from _of_graph(training.initialization)
        yield from _of_graph(training.algorithm)
    for function in model.functions:
        yield from _of_attributes(function.attribute_proto)
        for node in function.node:
            yield from _of_attributes(node.attribute)


def _of_graph(graph: GraphProto, holders: Iterable[NodeProto] | None = None) -> Iterator[TensorProto]:
    """Yield those of a graph; `holders` are its nodes that may hold any, where they are known."""
    yield from [tensor for tensor in graph.initializer if tensor.data_location == _EXTERNAL]
    yield from _of_sparse(graph.sparse_initializer)
    for node in graph.node if holders is None else holders:
        yield from _of_attributes(node.attribute)


def _of_attributes(attributes: Iterable[AttributeProto]) -> Iterator[TensorProto]:
    for attribute in attributes:
        if attribute.type in WITHOUT_TENSORS:
            continue
        yield from filter(is_external, (attribute.t, *attribute.tensors))
        yield from _of_sparse([attribute.sparse_tensor, *attribute.sparse_tensors])
        for graph in (attribute.g, *attribute.graphs):
            yield from _of_graph(graph)


def _of_sparse(tensors: Iterable[SparseTensorProto]) -> Iterator[TensorProto]:
    for sparse in tensors:
        yield from filter(is_external, (sparse.values, sparse.indices))


def _unreadable(model: Model, problem: Problem) -> UnreadableModel:
    return UnreadableModel(problem.kind, problem.message, Location(model.path))
