"""Fragments made by hand, and what may differ between a model and its patched copy."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, parser

from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.core.fragment import Fragment, NewConstant, NewNode, Patch
from ir_scatter.core.model import Model, Node, Value
from ir_scatter.core.shapes import show
from ir_scatter.formats.base import ReadOptions
from ir_scatter.formats.onnx import reader as onnx_model
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.formats.onnx.writer import write_onnx
from tests.models.runtimes import Arrays, run_all

I64 = ELEMENT_TYPES["i64"]
OPSET = 18
_PLAINLY = ReadOptions(has_folder=False)


def placeholder(label: str) -> Value:
    return Value(label, None, None)


def integers(label: str, numbers: Any) -> Value:
    array = np.array(numbers, np.int64)
    return Value(label, I64, array.shape, constant=NewConstant(label, I64, array))


class Sketch:
    """Writes a fragment down line by line."""

    def __init__(self, given: int = 3) -> None:
        self.given = [placeholder(f"given {number}") for number in range(given)]
        self.news: list[NewNode] = []

    def add(
        self, label: str, type: str, *inputs: Value | None, opset: int = OPSET, **attributes: Any
    ) -> Value:
        output = placeholder(label)
        self.news.append(NewNode(label, "", type, opset, inputs, attributes, output))
        return output

    def fragment(self) -> Fragment:
        return Fragment(self.given, self.news)


def in_place(type: str, *, opset: int = OPSET, given: int = 3, **attributes: Any) -> Fragment:
    sketch = Sketch(given)
    sketch.add("scatter", type, *sketch.given, opset=opset, **attributes)
    return sketch.fragment()


def trivial(node: Node) -> Fragment:
    """Put an Identity before a node and leave it as it is."""
    sketch = Sketch(len(node.inputs))
    first = sketch.add("copied", "Identity", sketch.given[0])
    opset = node.opset if isinstance(node.opset, int) else OPSET
    sketch.add("scatter", node.type, first, *sketch.given[1:], opset=opset, **node.attributes)
    return sketch.fragment()


def rows_as_nd(reduction: str = "none") -> Fragment:
    """Return ScatterElements along axis 0 of two as ScatterND on the grid of coordinates."""
    sketch = Sketch()
    data, indices, updates = sketch.given
    last = integers("last", [-1])
    shape = sketch.add("indices_shape", "Shape", indices)
    columns = sketch.add("columns", "Gather", shape, integers("one", 1), axis=0)
    counted = sketch.add("column", "Range", integers("zero", 0), columns, integers("one", 1))
    repeated = sketch.add("column_repeated", "Expand", counted, shape)
    pairs = [sketch.add(f"{part}_unsqueezed", "Unsqueeze", value, last) for part, value in
             (("row", indices), ("column", repeated))]  # fmt: skip
    tuples = sketch.add("tuples", "Concat", *pairs, axis=-1)
    sketch.add("scatter", "ScatterND", data, tuples, updates, reduction=reduction)
    return sketch.fragment()


def read(source: bytes | str | ModelProto, options: ReadOptions = _PLAINLY) -> Model:
    """Read a model from its bytes, its text or its message."""
    proto = parser.parse_model(source) if isinstance(source, str) else source
    return onnx_model.read(
        "model.onnx", proto if isinstance(proto, bytes) else proto.SerializeToString(), options
    )


def named(model: Model, scope: str) -> Node:
    return next(node for node in model.walk() if node.scope == scope)


def shapes(model: Model) -> dict[str, str]:
    return {node.scope: show(node.outputs[0].shape) for node in model.walk()}


def content(value: Value | None) -> Any:
    """Return what a constant holds, None where that cannot be had."""
    assert value is not None
    assert value.constant is not None
    array = value.constant.load()
    return None if array is None else array.tolist()


def model_of(
    nodes: Sequence[NodeProto], *tensors: TensorProto, **inputs: tuple[int, list[Any]]
) -> ModelProto:
    """Return a model of these nodes and initializers; inputs by name, each its type and its shape."""
    declared = [helper.make_tensor_value_info(name, *known) for name, known in inputs.items()]
    graph = helper.make_graph(nodes, "g", declared, [], list(tensors))
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("my", 1)]
    return helper.make_model(graph, ir_version=10, opset_imports=opsets)


def patched(
    model: Model, types: str | Sequence[str], make: Fragment | Callable[[Node], Fragment]
) -> tuple[bytes, list[Node]]:
    """Replace every node of some types; the model as read stays as it is, and all else in it."""
    wanted = frozenset([types] if isinstance(types, str) else types)
    nodes = list(model.definitions(wanted))
    patches = [Patch(node, make if isinstance(make, Fragment) else make(node)) for node in nodes]
    before = model.source.SerializeToString()
    written = write_onnx(model, patches)
    assert model.source.SerializeToString() == before
    assert write_onnx(model, patches) == written
    check_untouched(model, nodes, written)
    return written, nodes


def check_untouched(model: Model, nodes: Sequence[Node], written: bytes) -> None:
    """Demand that two models are equal but for the nodes of the patches."""
    source, result = ModelProto(), ModelProto()
    source.CopyFrom(model.source)
    result.ParseFromString(written)
    replaced = {id(proto_of(node)) for node in nodes}
    graphs = [list(every_graph(proto)) for proto in (model.source, source, result)]
    for read_nodes, old_nodes, new_nodes in zip(*graphs, strict=True):
        known = {(proto.name, *proto.output) for proto in read_nodes}
        for at in reversed(range(len(new_nodes))):
            if (new_nodes[at].name, *new_nodes[at].output) not in known:
                del new_nodes[at]
        for at, proto in reversed([*enumerate(read_nodes)]):
            if id(proto) in replaced:
                _check_identity(proto, new_nodes[at])
                del old_nodes[at], new_nodes[at]
    assert result.SerializeToString(deterministic=True) == source.SerializeToString(deterministic=True)


def new_names(source: Model, written: bytes) -> list[str]:
    """Return the names of the nodes that patches put in, in the order of the file."""
    known = {proto.output[0] for proto in every_node(source.source)}
    return [
        proto.name for proto in every_node(ModelProto.FromString(written)) if proto.output[0] not in known
    ]


def _check_identity(before: NodeProto, after: NodeProto) -> None:
    assert (after.name, list(after.output)) == (before.name, list(before.output))
    assert after.doc_string == before.doc_string
    assert list(after.metadata_props) == list(before.metadata_props)


def proto_of(node: Node) -> NodeProto:
    assert isinstance(node.graph, OnnxGraph)
    proto: NodeProto = node.graph.index.nodes[node.handle]
    return proto


def every_graph(model: ModelProto) -> Iterator[Any]:
    """Yield the nodes of each graph and function."""
    yield from _graphs(model.graph.node)
    for function in model.functions:
        yield from _graphs(function.node)


def _graphs(nodes: Any) -> Iterator[Any]:
    yield nodes
    for node in nodes:
        for attribute in node.attribute:
            graphs: list[GraphProto] = [
                *([attribute.g] if attribute.HasField("g") else []),
                *attribute.graphs,
            ]
            for graph in graphs:
                yield from _graphs(graph.node)


def every_node(model: ModelProto) -> Iterator[NodeProto]:
    for nodes in every_graph(model):
        yield from nodes


def by_name(data: bytes) -> Mapping[str, NodeProto]:
    return {node.name: node for node in every_node(ModelProto.FromString(data))}


def table(name: str = "scatter", body: str = "", opset: int = 18) -> ModelProto:
    """Return a model with one ScatterElements, or with what `body` says."""
    text = body or 'out = ScatterElements <axis = 0, reduction = "none"> (data, indices, updates)'
    model = parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : {opset}]>
        main (float[4, 5] data, int64[2, 5] indices, float[2, 5] updates) => (float[4, 5] out) {{ {text} }}
    """)
    for node in model.graph.node:
        if node.output[0] == "out":
            node.name = name
    return model


def feeds() -> list[npt.NDArray[Any]]:
    indices = np.array([[0, 1, 2, 3, 0], [3, 2, 1, 0, 1]])
    return [np.zeros((4, 5), np.float32), indices, np.arange(1, 11, dtype=np.float32).reshape(2, 5)]


def check_equal_in_onnxruntime(folder: Path, source: bytes, result: bytes, inputs: Arrays) -> None:
    check_all_equal_in_onnxruntime(folder, {"model": (source, result, inputs)})


def check_all_equal_in_onnxruntime(folder: Path, models: Mapping[str, tuple[bytes, bytes, Arrays]]) -> None:
    """Demand that pairs of models compute the same."""
    pytest.importorskip("onnxruntime")
    jobs = {}
    for number, (name, (*pair, inputs)) in enumerate(models.items()):
        for word, data in zip(("source", "result"), pair, strict=True):
            path = folder / f"{number}-{word}.onnx"
            path.write_bytes(data)
            jobs[f"{word} of {name}"] = (path, inputs)
    found = run_all("onnxruntime", jobs, folder)
    for name in models:
        source, result = found[f"source of {name}"], found[f"result of {name}"]
        assert (source.error, result.error) == ("", ""), name
        for old, new in zip(source.outputs, result.outputs, strict=True):
            assert (old.dtype, old.shape, old.tobytes()) == (new.dtype, new.shape, new.tobytes()), name
