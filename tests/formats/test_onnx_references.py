"""Attributes that each call of a function gives: kept, written as a value, or refused."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, parser

from ir_scatter.core.errors import NotEditable
from ir_scatter.core.fragment import Fragment, Patch
from ir_scatter.core.model import Model, Node
from ir_scatter.formats.onnx.writer import write_onnx
from tests.formats.onnx_patches import (
    Sketch,
    check_equal_in_onnxruntime,
    in_place,
    integers,
    patched,
    read,
    rows_as_nd,
)
from tests.models.onnx_text import NESTED


@pytest.mark.onnxruntime
def test_a_function_called_with_many_reductions_stays_one(tmp_path: Path) -> None:
    text, feeds = NESTED["functions"]
    source = parser.parse_model(text)
    written, _ = patched(read(source), "ScatterND", in_place("ScatterND", reduction="none"))
    (store, _, _) = ModelProto.FromString(written).functions
    assert [(attribute.name, attribute.ref_attr_name) for attribute in store.node[3].attribute] == [
        ("reduction", "how")
    ]
    check_equal_in_onnxruntime(tmp_path, source.SerializeToString(), written, list(feeds.values()))


def calls(*axes: int | None, default: int | None = None, node: str = "axis: int = @dim") -> ModelProto:
    """Return a model that calls a function with each of some axes."""
    lines = [
        f"y{at} = own.Put{'' if axis is None else f' <dim = {axis}>'} (data, indices, updates)"
        for at, axis in enumerate(axes)
    ]
    outputs = ", ".join(f"float[4, 5] y{at}" for at in range(len(axes)))
    parameter = "dim" if default is None else f"dim: int = {default}"
    if not axes:
        lines, outputs = ["out = Relu (data)"], "float[4, 5] out"
    return parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 18, "own" : 1]>
        main (float[4, 5] data, int64[2, 5] indices, float[2, 5] updates) => ({outputs}) {{ {" ".join(lines)} }}
        <domain: "own", opset_import: ["" : 18]> Put <{parameter}> (d, i, u) => (y) {{
            y = ScatterElements <{node}, reduction: string = "add"> (d, i, u)
        }}
    """)


def written_axis(model: Model, fragment: Fragment, node: Node | None = None) -> Any:
    node = node or next(model.definitions(frozenset({"ScatterElements"})))
    written = write_onnx(model, [Patch(node, fragment)])
    (function,) = ModelProto.FromString(written).functions
    found = [attribute for attribute in function.node[-1].attribute if attribute.name == "axis"]
    if not found:
        return None
    return found[0].ref_attr_name or found[0].i


def with_axis(axis: int, type: str = "ScatterElements") -> Fragment:
    return in_place(type, axis=axis, reduction="add")


def many(axis: int) -> Fragment:
    sketch = Sketch()
    copy = sketch.add("copied", "Identity", sketch.given[0])
    sketch.add("scatter", "ScatterElements", copy, *sketch.given[1:], axis=axis, reduction="add")
    return sketch.fragment()


def with_constant(axis: int) -> Fragment:
    sketch = Sketch()
    indices = integers("indices", np.zeros((2, 5)))
    data, _, updates = sketch.given
    sketch.add("scatter", "ScatterElements", data, indices, updates, axis=axis, reduction="add")
    return sketch.fragment()


@pytest.mark.parametrize(
    ("model", "fragment", "expected"),
    [
        (calls(1, 0), with_axis(0), "dim"),  # not given: what was seen is the operator's default
        (calls(1, 0), in_place("ScatterElements", reduction="add"), "dim"),
        (calls(None, 0, default=1), with_axis(1), "dim"),
        (calls(None, 1, default=1), many(1), "dim"),
        (calls(None, 1, default=1), with_axis(-1), -1),
        (calls(None, 1, default=1), rows_as_nd("add"), None),
        (calls(default=1), many(1), "dim"),
        (calls(default=1), rows_as_nd("add"), None),
        (calls(0, 1, node="axis = 1"), with_axis(0), 0),
    ],
)
def test_references_that_need_not_be_lost(model: ModelProto, fragment: Fragment, expected: object) -> None:
    assert written_axis(read(model), fragment) == expected


@pytest.mark.parametrize(
    ("model", "fragment"),
    [
        (calls(1), with_axis(1)),  # the definition has no value: 1 is not what it was made for
        (calls(1), with_axis(-2)),
        (calls(1), many(0)),
        (calls(1, 0), in_place("ScatterND", reduction="add")),
        (calls(1, 0), with_axis(1)),
        (calls(None, 0, default=1), with_axis(-1)),
        (calls(None, 0, default=1), many(1)),
        (calls(None, 0, default=1), with_constant(1)),
        (calls(None, 0, default=1), rows_as_nd("add")),
        (calls(*range(-70, 0), default=1), many(1)),
    ],
)
def test_references_to_what_differs_between_calls(model: ModelProto, fragment: Fragment) -> None:
    message = (
        r"^own::Put/y: 'axis' refers to 'dim', which may differ between calls of the function, expected the same value "
        rf"in all calls, as the new {fragment.result.type} can have only one$"
    )
    with pytest.raises(NotEditable, match=message):
        written_axis(read(model), fragment)


IN_A_BODY = """
    <ir_version: 10, opset_import: ["" : 18, "own" : 1]>
    main (float[4, 5] data, int64[2, 5] indices, float[2, 5] updates, bool c) => (float[4, 5] p, float[4, 5] q) {
        p = own.Put <dim = 1> (data, indices, updates, c)
        q = own.Put (data, indices, updates, c)
    }
    <domain: "own", opset_import: ["" : 18]> Put <dim: int = 0> (d, i, u, c) => (y) {
        y = If (c) <
            then_branch = then () => (x) { x = ScatterElements <axis: int = @dim> (d, i, u) },
            else_branch = other () => (z) { z = Identity (d) }
        >
    }
"""


def test_references_in_a_body_of_a_function() -> None:
    model = read(parser.parse_model(IN_A_BODY))
    written, _ = patched(model, "ScatterElements", in_place("ScatterElements", axis=0))
    (function,) = ModelProto.FromString(written).functions
    (axis,) = function.node[0].attribute[0].g.node[0].attribute
    assert (axis.name, axis.ref_attr_name) == ("axis", "dim")
    with pytest.raises(NotEditable, match=r"^own::Put/y:then_branch/x: 'axis' refers to 'dim'"):
        patched(model, "ScatterElements", rows_as_nd())


def test_more_signatures_than_are_told_apart() -> None:
    """Those that are told apart all give axis 1; the last call does not."""
    lines = [f"y{at} = own.Put <dim = 1, other = {at}> (data, indices, updates)" for at in range(65)]
    source = parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 18, "own" : 1]>
        main (float[4, 5] data, int64[2, 5] indices, float[2, 5] updates) => (float[4, 5] last) {{
            {" ".join(lines)} last = own.Put <dim = 0, other = 65> (data, indices, updates)
        }}
        <domain: "own", opset_import: ["" : 18]> Put <dim: int = 1, other: int = 0> (d, i, u) => (y) {{
            number = Constant <value_int: int = @other> ()
            y = ScatterElements <axis: int = @dim, reduction: string = "add"> (d, i, u)
        }}
    """)
    with pytest.raises(NotEditable, match="expected the same value in all calls"):
        written_axis(read(source), many(1))


def test_a_node_as_its_only_signature_sees_it() -> None:
    model = read(calls(1, 1))
    (instance,) = model.functions[0].instances
    node = next(instance.walk(frozenset({"ScatterElements"})))
    assert node.attributes["axis"] == 1
    assert written_axis(model, with_axis(1), node) == "dim"
    assert written_axis(model, with_axis(-1), node) == -1
    assert written_axis(model, many(1), node) == "dim"


@pytest.mark.onnxruntime
def test_a_kept_reference_computes_the_same(tmp_path: Path) -> None:
    source = calls(1, 0, 1)
    fragment = with_axis(0)
    written, _ = patched(read(source), "ScatterElements", fragment)
    indices = np.array([[0, 1, 2, 3, 0], [3, 2, 1, 0, 1]])
    inputs = [np.ones((4, 5), np.float32), indices, np.arange(10, dtype=np.float32).reshape(2, 5)]
    check_equal_in_onnxruntime(tmp_path, source.SerializeToString(), written, inputs)
    onnx.checker.check_model(written, full_check=True)


def test_a_function_that_is_defined_twice() -> None:
    """Of two definitions the first counts; the other one stays as it is."""
    source = calls(1, default=1)
    source.functions.append(source.functions[0])
    source.functions[1].node[0].name = "untouched"
    model = read(source)
    node = next(model.definitions(frozenset({"ScatterElements"})))
    first, second = ModelProto.FromString(write_onnx(model, [Patch(node, many(1))])).functions
    assert second == source.functions[1]
    assert [node.op_type for node in first.node] == ["Identity", "ScatterElements"]
