"""Patches in bodies and functions, and in models that others wrote."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper, parser

from ir_scatter import formats
from ir_scatter.core.errors import Error
from ir_scatter.core.fragment import Fragment
from ir_scatter.evaluate.model import prepare
from ir_scatter.formats.base import ONNX_FORMAT
from ir_scatter.inputs.model import make_feeds
from tests.formats.onnx_patches import (
    Sketch,
    by_name,
    check_all_equal_in_onnxruntime,
    check_equal_in_onnxruntime,
    every_graph,
    integers,
    patched,
    read,
    rows_as_nd,
    trivial,
)
from tests.unit.nested_onnx import NESTED

MODELS = Path(__file__).resolve().parents[2].parent / "shared" / "models"
SCATTER = ("Scatter", "ScatterElements", "ScatterND", "TensorScatter")

DEEP = """
    <ir_version: 10, opset_import: ["" : 18, "own" : 1]>
    main (float[4, 5] data, int64[2, 5] indices, float[2, 5] updates, bool c) => (float[4, 5] out, float[4, 5] b)
    <int64 trips = {2}, bool yes = {1}> {
        out = Loop (trips, yes, data) <body = body (int64 step, bool again, float[4, 5] old)
            => (bool again, float[4, 5] new) {
                doubled = Add (old, old)
                new = If (c) <
                    then_branch = then () => (float[4, 5] x) {
                        start = Relu (doubled)
                        x = ScatterElements (start, indices, updates)
                    },
                    else_branch = other () => (float[4, 5] y) {
                        y = ScatterElements <reduction = "add"> (doubled, indices, updates)
                    }
                >
            }
        >
        b = own.Outer (out, indices, updates)
    }
    <domain: "own", opset_import: ["" : 18, "own" : 1]> Outer (d, i, u) => (y) {
        first = own.Inner (d, i, u)
        y = ScatterElements (first, i, u)
    }
    <domain: "own", opset_import: ["" : 18]> Inner (d, i, u) => (y) {
        yes = Constant <value = bool {1}> ()
        y = If (yes) <
            then_branch = then () => (x) { x = ScatterElements (d, i, u) },
            else_branch = other () => (z) { z = Identity (d) }
        >
    }
"""


def deep_feeds(c: bool) -> list[Any]:
    rng = np.random.default_rng(5)
    indices = np.argsort(rng.random((4, 5)), axis=0)[:2]
    return [rng.random((4, 5), np.float32), indices, rng.random((2, 5), np.float32), np.array(c)]


@pytest.mark.onnxruntime
@pytest.mark.parametrize("c", [True, False])
def test_bodies_and_functions(tmp_path: Path, c: bool) -> None:
    source = parser.parse_model(DEEP)
    written, nodes = patched(
        read(source),
        "ScatterElements",
        lambda node: rows_as_nd("add" if node.attributes.get("reduction") == "add" else "none"),
    )
    assert [node.scope for node in nodes] == [
        "out:body/new:then_branch/x",
        "out:body/new:else_branch/y",
        "own::Outer/y",
        "own::Inner/y:then_branch/x",
    ]
    onnx.checker.check_model(written, full_check=True)
    check_equal_in_onnxruntime(tmp_path, source.SerializeToString(), written, deep_feeds(c))
    counts = [len(nodes) for nodes in every_graph(ModelProto.FromString(written))]
    assert counts == [2, 2, 13, 12, 13, 2, 12, 1]


def test_graphs_in_lists_and_attributes_of_one_name() -> None:
    """A custom operator may hold graphs in any way; each keeps its own nodes."""
    source = parser.parse_model(DEEP)
    body = source.graph.node[0].attribute[0].g.node[1].attribute[0].g
    node = source.graph.node.add(op_type="Many", domain="own", name="many", output=["unused"])
    for number in range(2):
        helper_graph = helper.make_graph(list(body.node), f"g{number}", [], [])
        for inner in helper_graph.node:
            inner.output[0] += f"_{number}"
        helper_graph.node[1].input[0] += f"_{number}"
        helper_graph.node[0].input[0] = "data"
        node.attribute.add(name="graphs", type=onnx.AttributeProto.GRAPHS)
        node.attribute[0].graphs.append(helper_graph)
    del node.attribute[1]
    written, nodes = patched(read(source), "ScatterElements", trivial)
    scopes = [node.scope for node in nodes if "many" in node.scope]
    assert scopes == ["many:graphs[0]/x_0", "many:graphs[1]/x_1"]
    result = by_name(written)["many"].attribute[0].graphs
    assert [[node.op_type for node in graph.node] for graph in result] == [
        ["Relu", "Identity", "ScatterElements"]
    ] * 2


@pytest.mark.onnxruntime
@pytest.mark.parametrize("name", ["then", "else", "loop_by_trips", "loop_by_condition"])
def test_nested_models_compute_the_same(tmp_path: Path, name: str) -> None:
    text, feeds = NESTED[name]
    source = parser.parse_model(text)
    written, nodes = patched(read(source), SCATTER, trivial)
    assert nodes
    check_equal_in_onnxruntime(tmp_path, source.SerializeToString(), written, list(feeds.values()))


def append_rows(given: int) -> Fragment:
    """Return TensorScatter as ScatterElements along axis 2 of four."""
    sketch = Sketch(3)
    past, update, starts = sketch.given
    size = sketch.add("sizes", "Shape", update, opset=24)
    rows = sketch.add("rows", "Gather", size, integers("sequence", 2), opset=24, axis=0)
    counted = sketch.add("count", "Range", integers("zero", 0), rows, integers("one", 1), opset=24)
    column = sketch.add("column", "Reshape", counted, integers("column_shape", [1, 1, -1, 1]), opset=24)
    if given == 3:
        start = sketch.add("start", "Reshape", starts, integers("start_shape", [-1, 1, 1, 1]), opset=24)
        column = sketch.add("place", "Add", start, column, opset=24)
    places = sketch.add("places", "Expand", column, size, opset=24)
    sketch.add("scatter", "ScatterElements", past, places, update, opset=24, axis=2)
    return sketch.fragment()


@pytest.mark.parametrize("given", [2, 3])
def test_a_cache_for_older_runtimes(tmp_path: Path, given: int) -> None:
    names = ", ".join(["past", "update", "starts"][:given])
    source = parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 24]>
        main (float[2, 3, 6, 4] past, float[2, 3, 2, 4] update, int64[2] starts) => (float[2, 3, 6, 4] present)
        {{ present = TensorScatter <mode = "linear"> ({names}) }}
    """)
    written, _ = patched(read(source), "TensorScatter", append_rows(given))
    onnx.checker.check_model(written, full_check=True)
    rng = np.random.default_rng(1)
    past, update = rng.random((2, 3, 6, 4), np.float32), rng.random((2, 3, 2, 4), np.float32)
    feeds = {"past": past, "update": update, "starts": np.array([1, 4])}
    for data in (source.SerializeToString(), written):
        path = tmp_path / "model.onnx"
        path.write_bytes(data)
        (found,) = prepare(path).run(feeds).values()
        for batch, start in enumerate([1, 4] if given == 3 else [0, 0]):
            past[batch, :, start : start + 2] = update[batch]
        np.testing.assert_array_equal(found, past)


def _real_models() -> list[Path]:
    return sorted(MODELS.glob("**/*.onnx"))


@pytest.mark.models
@pytest.mark.skipif(not MODELS.is_dir(), reason="needs the folder of real models beside the checkout")
def test_real_models_are_equal_but_for_the_patched_nodes() -> None:
    count = 0
    for path in _real_models():
        model = formats.read(str(path), format=ONNX_FORMAT)
        written, nodes = patched(model, SCATTER, trivial)
        count += len(nodes)
        assert read(written).defects == ()
    assert count > 150


@pytest.mark.models
@pytest.mark.onnxruntime
@pytest.mark.skipif(not MODELS.is_dir(), reason="needs the folder of real models beside the checkout")
def test_real_models_compute_the_same(tmp_path: Path) -> None:
    jobs = {}
    for path in _real_models():
        try:
            feeds = make_feeds(prepare(path), 0)
        except Error:
            continue
        written, _ = patched(formats.read(str(path), format=ONNX_FORMAT), SCATTER, trivial)
        jobs[str(path)] = (path.read_bytes(), written, list(feeds.values()))
    assert len(jobs) > 30
    check_all_equal_in_onnxruntime(tmp_path, jobs)
