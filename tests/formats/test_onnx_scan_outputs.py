"""A Scan whose outputs come from replaced nodes runs where it ran before."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser

from ir_scatter.core.fragment import Fragment, Patch
from ir_scatter.formats.onnx.writer import write_onnx
from tests.formats.onnx_patches import Sketch, check_equal_in_onnxruntime, in_place, integers, read

OPSET = 13
"""From 14 on onnxruntime follows shapes that are computed."""


def joined() -> Fragment:
    """Return ScatterND on a table of two dimensions as ScatterElements on one."""
    sketch = Sketch()
    data, indices, updates = sketch.given
    last = integers("last", [-1])
    shape = sketch.add("shape", "Shape", data, opset=OPSET)
    columns = sketch.add("columns", "Gather", shape, integers("column_axis", [1]), opset=OPSET)
    factors = sketch.add("factors", "Concat", columns, integers("one", [1]), opset=OPSET, axis=0)
    scaled = sketch.add("scaled", "Mul", indices, factors, opset=OPSET)
    places = sketch.add("places", "ReduceSum", scaled, last, opset=OPSET, keepdims=0)
    flat = sketch.add("flat", "Reshape", data, last, opset=OPSET)
    stored = sketch.add("stored", "ScatterElements", flat, places, updates, opset=OPSET, axis=0)
    sketch.add("result", "Reshape", stored, shape, opset=OPSET)
    return sketch.fragment()


HEAD = f'<ir_version: 10, opset_import: ["" : {OPSET}, "own" : 1]>'
ARGUMENTS = "(float[S, 4] data, int64[T, 2, 2] at, float[T, 2] new) => (float[A, B] out)"
FUNCTION = f'<domain: "own", opset_import: ["" : {OPSET}, "own" : 1]>'


def scanning(body: str, inputs: str = "float[S, 4] old, int64[2, 2] i, float[2] u") -> str:
    return f"""{HEAD} main {ARGUMENTS} {{
        out = Scan <num_scan_inputs = 2, body = body ({inputs}) => (float result) {{ {body} }}> (data, at, new)
    }}"""


PLAIN = "x = ScatterND (old, i, u) result = Identity (x)"

MODELS = {
    "an output": scanning("result = ScatterND (old, i, u)"),
    "what an output is made of": scanning(PLAIN),
    "untold inputs": scanning(PLAIN, "float old, int64 i, float u"),
    "in a branch": scanning("""
        yes = Constant <value = bool {1}> ()
        x = If (yes) <
            then_branch = then () => (float a) { a = ScatterND (old, i, u) },
            else_branch = other () => (float b) { b = ScatterND (old, i, u) }
        >
        result = Identity (x)
    """),
    "inside of a function": f"{HEAD} main {ARGUMENTS} {{ out = own.All (data, at, new) }}" + f"""
        {FUNCTION} All (data, at, new) => (y) {{
            y = Scan <num_scan_inputs = 2, body = body (float old, int64 i, float u) => (float result)
                {{ {PLAIN} }}> (data, at, new)
        }}
    """,
}  # fmt: skip


def parsed(text: str) -> ModelProto:
    """Read a model, and forget the shapes of values that are called float or int64 and no more."""
    model = parser.parse_model(text)
    for graph in bodies(model):
        for one in [*graph.input, *graph.output]:
            if not one.type.tensor_type.shape.dim:
                one.type.tensor_type.ClearField("shape")
    return model


def bodies(model: ModelProto) -> list[Any]:
    waiting = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    found = []
    while waiting:
        for attribute in waiting.pop().attribute:
            if attribute.HasField("g"):
                found.append(attribute.g)
                waiting += attribute.g.node
    return found


def feeds() -> list[Any]:
    table = np.arange(20, dtype=np.float32).reshape(5, 4)
    at = np.array([[[0, 1], [4, 3]], [[2, 0], [1, 1]], [[3, 3], [0, 0]]])
    return [table, at, -np.arange(1, 7, dtype=np.float32).reshape(3, 2)]


def write(source: ModelProto, fragment: Fragment) -> ModelProto:
    model = read(source)
    nodes = model.definitions(frozenset(["ScatterND"]))
    result = ModelProto()
    result.ParseFromString(write_onnx(model, [Patch(node, fragment) for node in nodes]))
    return result


def ranks(model: ModelProto) -> list[list[int | None]]:
    """Return how many dimensions the outputs of bodies of Scans have, None where that is not said."""
    types = [
        [one.type.tensor_type for one in graph.output] for graph in bodies(model) if graph.name == "body"
    ]
    return [[len(one.shape.dim) if one.HasField("shape") else None for one in outputs] for outputs in types]


@pytest.mark.onnxruntime
@pytest.mark.parametrize("name", MODELS)
def test_what_is_hidden_is_written(tmp_path: Path, name: str) -> None:
    source = parsed(MODELS[name])
    assert ranks(source) == [[None]]
    result = write(source, joined())
    check_equal_in_onnxruntime(tmp_path, source.SerializeToString(), result.SerializeToString(), feeds())
    assert ranks(result) == [[2]]


TWO = """
    x = ScatterND (old, i, u) first = Identity (x) second = Identity (v) third = Identity (x)
"""


def test_what_is_not_hidden_stays() -> None:
    """An output that has a shape keeps it."""
    source = parsed(f"""{HEAD} main {ARGUMENTS} {{
        out, other, third = Scan <num_scan_inputs = 2,
            body = body (float[S, 4] old, float[S, 4] v, int64[2, 2] i, float[2] u)
                => (float[S, 4] first, float second, float third) {{ {TWO} }}
        > (data, data, at, new)
    }}""")
    (before,), (after,) = bodies(source), bodies(write(source, joined()))
    assert ranks(source) == [[2, None, None]]
    assert after.output[0] == before.output[0]
    assert ranks(write(source, joined())) == [[2, 2, 2]]


def test_a_scatter_node_on_the_same_data_hides_nothing() -> None:
    source = parsed(MODELS["an output"])
    fragment = in_place("ScatterND", opset=OPSET)
    assert write(source, fragment) == source


def test_a_loop_needs_nothing() -> None:
    source = parsed(f"""{HEAD} main (float[S, 4] data, int64[2, 2] at, float[2] new) => (float[A, B] out) {{
        trips = Constant <value = int64 {{2}}> ()
        yes = Constant <value = bool {{1}}> ()
        out = Loop (trips, yes, data) <body = body (int64 step, bool go, float[S, 4] old)
            => (bool on, float result) {{ on = Identity (go) result = ScatterND (old, at, new) }}>
    }}""")
    (before,), (after,) = bodies(source), bodies(write(source, joined()))
    assert list(after.output) == list(before.output)


def test_calls_that_disagree_say_nothing() -> None:
    source = parsed(MODELS["inside of a function"])
    more = parser.parse_model(f"""{HEAD} main (float[S, 4, 4] large, int64[T, 2, 2] to, float[T, 2, 4] rows)
        => (float[A, B, C] more) {{ more = own.All (large, to, rows) }}""").graph
    source.graph.node.append(more.node[0])
    source.graph.input.extend(more.input)
    source.graph.output.extend(more.output)
    assert ranks(write(source, joined())) == [[None]]
