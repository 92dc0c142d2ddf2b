"""ONNX files: bytes to a Model."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from onnx import ModelProto

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.model import ONNX, Defect, Function, Model
from ir_scatter.core.shapes import Shape
from ir_scatter.formats.base import UNKNOWN_OPERATORS, Operators
from ir_scatter.formats.onnx.checks import find_defects, function_defects
from ir_scatter.formats.onnx.definitions import Definitions, opsets_of
from ir_scatter.formats.onnx.external import ExternalFiles
from ir_scatter.formats.onnx.functions import INSTANCES, Instances
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.formats.onnx.index import GraphIndex, index_graph
from ir_scatter.formats.onnx.inference import Inference
from ir_scatter.formats.onnx.scope import Scope
from ir_scatter.formats.onnx.tensors import Tensors
from ir_scatter.formats.onnx.types import text

_LFS_POINTER = b"version https://git-lfs"
_FIRST_WITH_OPSETS = 3


def read(
    path: str,
    data: bytes | None = None,
    types: frozenset[str] | None = None,
    operators: Operators = UNKNOWN_OPERATORS,
    *,
    has_folder: bool | None = None,
    input_shapes: Mapping[str, Shape] | None = None,
) -> Model:
    """Read an ONNX model; the bytes of external data only when somebody asks for a constant.

    Args:
        path: the file, as it is to be named in findings.
        data: its bytes where they did not come from `path`.
        types: shapes are inferred if a node has one of these types; None for all.
        operators: what is known of them, so that some outputs need no inference.
        has_folder: whether external data stands beside `path`; None if so unless `data` is given.
        input_shapes: shapes of inputs that replace those of the file, by name.

    Raises:
        UnreadableModel: it cannot be read, is no protobuf message, or holds no graph.
    """
    proto = _parse(path, Path(path).read_bytes() if data is None else data)
    files = ExternalFiles(path, has_folder=data is None if has_folder is None else has_folder)
    shared = Scope(path, Tensors(files), proto.ir_version, _opsets(proto), operators=operators)
    return _model(proto, shared, types, input_shapes or {})


def _model(
    proto: ModelProto, shared: Scope, types: frozenset[str] | None, input_shapes: Mapping[str, Shape]
) -> Model:
    definitions = Definitions(proto)
    index = index_graph(proto.graph, definitions.keys)
    inference = Inference(proto.ir_version, is_wanted=_has_any(types, index, definitions))
    graph = _main_graph(proto, index, shared, definitions, inference, input_shapes)
    instances = Instances(definitions, shared, inference)
    functions = instances.functions(graph)
    names = [text(name) for name in index.inputs if name not in index.initializers]
    return Model(
        path=shared.path,
        format="onnx",
        domain=ONNX,
        graph=graph,
        functions=functions,
        inputs=tuple(frozenset({name}) for name in names),
        opset_imports={text(domain): version for domain, version in shared.opsets.items()},
        find_defects=partial(_defects, graph, functions, definitions),
        find_limits=partial(_limits, shared.path, instances, inference),
        source=proto,
    )


def _has_any(types: frozenset[str] | None, main: GraphIndex, definitions: Definitions) -> bool:
    indices = [main, *(definition.index for definition in definitions)]
    return types is None or any(index.has_any(types) for index in indices)


def _main_graph(
    proto: ModelProto,
    index: GraphIndex,
    shared: Scope,
    definitions: Definitions,
    inference: Inference,
    input_shapes: Mapping[str, Shape],
) -> OnnxGraph:
    return OnnxGraph(
        index,
        shared,
        lambda: inference.main_graph(index, shared.opsets, definitions, input_shapes),
        name=text(proto.graph.name),
        input_shapes=input_shapes,
    )


def _parse(path: str, data: bytes) -> ModelProto:
    location = Location(path)
    if not data:
        raise UnreadableModel("empty-file", "the file is empty", location)
    if data.startswith(_LFS_POINTER):
        message = "the file is a Git LFS pointer, expected the model that it stands for"
        raise UnreadableModel("malformed-protobuf", message, location)
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except Exception:
        # DecodeError, but not of every protobuf: older ones raise for text that is not UTF-8.
        message = "the file is no protobuf message, or not all of one: expected an ONNX model"
        raise UnreadableModel("malformed-protobuf", message, location) from None
    if model.HasField("graph"):
        return model
    if not model.ListFields():
        message = "the file has none of the fields of an ONNX model"
        raise UnreadableModel("malformed-protobuf", message, location)
    raise UnreadableModel("no-graph", "the model has no graph, expected one", location)


def _opsets(model: ModelProto) -> dict[str, int]:
    opsets = opsets_of(list(model.opset_import))
    if not opsets and model.ir_version < _FIRST_WITH_OPSETS:
        return {"": 1}
    return opsets


def _limits(path: str, instances: Instances, inference: Inference) -> Iterator[Defect]:
    """Yield what was not looked at because functions call functions too often, or in too many ways."""
    location = Location(path)
    if instances.shared_calls:
        count, known = len(instances.shared_calls), f"more than {INSTANCES} kinds of inputs and attributes"
        calls = "1 call of a function is" if count == 1 else f"{count} calls of functions are"
        message = f"{calls} not looked at one by one: a function is called with {known}"
        yield Defect("not-looked-at", message, location)
    if inference.cut_short:
        graphs = f"{inference.cut_short} of {inference.count} graphs and uses of functions"
        message = f"shapes in {graphs} are not known: to infer them takes longer than a file of this size may"
        yield Defect("not-looked-at", message, location)


def _defects(graph: OnnxGraph, functions: tuple[Function, ...], definitions: Definitions) -> Iterator[Defect]:
    yield from find_defects(graph)
    for function in functions:
        assert isinstance(function.definition, OnnxGraph)
        yield from find_defects(function.definition)
    yield from function_defects(definitions, graph.shared.path)
    yield from graph.shared.tensors.files.defects()
