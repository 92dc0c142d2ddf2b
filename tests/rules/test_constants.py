"""Indices that are constant in effect: plain operators, bodies, captures, functions."""

from collections.abc import Callable
from pathlib import Path

import pytest
from onnx import parser

from ir_scatter import Diagnostic, read, validate
from tests.rules.ir_text import Dims, IrText, Output

Build = Callable[[IrText], Output]


def scatter(ir: IrText, indices: Output, data: Dims = (5, 3), name: str = "scatter") -> Output:
    """Add a ScatterUpdate on axis 0, whose updates are of any shape."""
    source = ir.parameter(f"{name}.data", shape=data)
    updates = ir.parameter(f"{name}.updates", shape=None)
    axis = ir.const(f"{name}.axis", "i64", 0)
    return ir.add(name, "ScatterUpdate", "opset3", [source, indices, updates, axis], [("f32", data)])


def op(
    ir: IrText, type: str, inputs: list[Output], shape: Dims, opset: str = "opset1", **data: str
) -> Output:
    precision = data.pop("precision", "i64")
    return ir.add(f"{type}{ir.count}", type, opset, inputs, [(precision, shape)], data)


def numbers(ir: IrText, *values: int, shape: list[int] | None = None) -> Output:
    return ir.const(f"const{ir.count}", "i64", list(values), shape)


def number(ir: IrText, value: int) -> Output:
    return ir.const(f"const{ir.count}", "i64", value)


def _converted(ir: IrText) -> Output:
    half = ir.const("half", "f16", [1.0, 7.0])
    return op(ir, "Convert", [half], (2,), destination_type="i64")


def _shape_of(ir: IrText) -> Output:
    other = ir.parameter("other", shape=(1, 7))
    return op(ir, "ShapeOf", [other], (2,), "opset3", output_type="i64")


def _chain(ir: IrText) -> Output:
    """Add a Range over the end of a shape, as exporters write it."""
    other = ir.parameter("other", shape=(8, 2))
    shape = op(ir, "ShapeOf", [other], (2,), "opset3", output_type="i64")
    end = op(ir, "Gather", [shape, number(ir, 0), number(ir, 0)], (), "opset8", batch_dims="0")
    start = op(ir, "Add", [end, number(ir, -1)], (), auto_broadcast="numpy")
    return op(ir, "Range", [start, end, number(ir, 1)], ("?",), "opset4", output_type="i64")


IR_BUILDERS = (_converted, _shape_of, _chain)
"""What each operator computes the tests of the interpreter say."""


def codes(found: list[Diagnostic]) -> list[str]:
    return [one.code for one in found]


@pytest.mark.parametrize("build", IR_BUILDERS, ids=lambda build: build.__name__)
def test_plain_operators_of_an_ir(build: Build, tmp_path: Path) -> None:
    """Each gives the index 7, which data of 8 has and data of 5 has not."""
    ir = IrText()
    scatter(ir, build(ir))
    found = validate(read(ir.write(tmp_path)))
    assert [one.code for one in found if one.code != "SCT304"] == ["SCT302"]
    assert " is 7, expected 0 to 4" in found[0].message
    legal = IrText()
    scatter(legal, build(legal), (8, 3))
    assert set(codes(validate(read(legal.write(tmp_path))))) <= {"SCT304"}


def _of_a_parameter(ir: IrText) -> Output:
    return op(ir, "Add", [ir.parameter("free", "i64", (2,)), number(ir, 100)], (2,), auto_broadcast="numpy")


def _of_an_unknown_shape(ir: IrText) -> Output:
    return op(ir, "ShapeOf", [ir.parameter("free", shape=("?", 100))], (2,), "opset3", output_type="i64")


def _of_an_unknown_operator(ir: IrText) -> Output:
    return op(ir, "Mine", [numbers(ir, 100, 100)], (2,), "extension")


@pytest.mark.parametrize("build", [_of_a_parameter, _of_an_unknown_shape, _of_an_unknown_operator])
def test_what_is_not_constant_is_unknown(build: Build, tmp_path: Path) -> None:
    ir = IrText()
    scatter(ir, build(ir))
    assert validate(read(ir.write(tmp_path))) == []


def test_the_constant_is_named(tmp_path: Path) -> None:
    ir = IrText()
    scatter(ir, _converted(ir))
    path = ir.write(tmp_path)
    (found,) = validate(read(path))
    (note,) = found.related
    assert note.message == 'indices comes from Const "half": 7 at [1], 1 in all'
    assert note.location.scope == "half"
    assert note.location.line is not None
    assert 'name="half"' in Path(path).read_text().splitlines()[note.location.line - 1]


def _inner(indices: int | None, weights: bytearray) -> IrText:
    """Return a body of one scatter node; its indices are 7, or its first Parameter."""
    body = IrText(weights)
    source = body.parameter("given", "i64", (1,)) if indices is None else numbers(body, indices)
    result = scatter(body, source, name="inner")
    body.add("result", "Result", "opset1", [result], [])
    return body


def _map(tag: str, *entries: str) -> str:
    return f"<{tag}>{''.join(entries)}</{tag}>"


def _fed(port: int, layer: int, extra: str = "") -> str:
    return f'<input external_port_id="{port}" internal_layer_id="{layer}"{extra}/>'


def if_model(folder: Path, then: IrText, other: IrText, ir: IrText, outside: Output) -> list[Diagnostic]:
    condition = ir.parameter("condition", "boolean", ())
    inside = (
        _map("then_port_map", _fed(1, 0))
        + _map("else_port_map", _fed(1, 0))
        + then.body("then_body")
        + other.body("else_body")
    )
    ir.add("choice", "If", "opset8", [condition, outside], [("f32", (5, 3))], inside=inside)
    return validate(read(ir.write(folder)))


def test_a_constant_in_the_bodies_of_an_if(tmp_path: Path) -> None:
    ir = IrText()
    outside = numbers(ir, 0)
    found = if_model(tmp_path, _inner(7, ir.weights), _inner(4, ir.weights), ir, outside)
    assert [(one.code, one.location.scope) for one in found] == [("SCT302", "choice:then_body/inner")]


def test_a_constant_fed_through_the_port_map_of_an_if(tmp_path: Path) -> None:
    ir = IrText()
    outside = numbers(ir, 7)
    found = if_model(tmp_path, _inner(None, ir.weights), _inner(None, ir.weights), ir, outside)
    assert [(one.code, one.location.scope) for one in found] == [
        ("SCT302", "choice:then_body/inner"),
        ("SCT302", "choice:else_body/inner"),
    ]
    for one in found:
        assert [note.message for note in one.related] == [
            f'indices comes from Const "const{outside.layer}": 7 at [0], 1 in all'
        ]


def test_a_computed_value_fed_through_the_port_map_of_an_if(tmp_path: Path) -> None:
    ir = IrText()
    outside = op(ir, "Add", [numbers(ir, 3), number(ir, 4)], (1,), auto_broadcast="numpy")
    found = if_model(tmp_path, _inner(None, ir.weights), _inner(None, ir.weights), ir, outside)
    assert codes(found) == ["SCT302", "SCT302"]


def loop_model(folder: Path, entry: str, back_edges: str, indices: int | None = None) -> list[Diagnostic]:
    """Return what is found in a Loop around one scatter node, fed with the index 7."""
    ir = IrText()
    count, condition = number(ir, 3), ir.const("again", "boolean", True)
    outside = numbers(ir, 7)
    body = _inner(indices, ir.weights)
    inside = _map("port_map", entry) + back_edges + body.body("body")
    ir.add("loop", "Loop", "opset5", [count, condition, outside], [("f32", (5, 3))], inside=inside)
    return validate(read(ir.write(folder)))


def test_an_invariant_input_of_a_loop_is_constant(tmp_path: Path) -> None:
    assert codes(loop_model(tmp_path, _fed(2, 0), "<back_edges/>")) == ["SCT302"]


def test_a_sliced_input_of_a_loop_is_not_constant(tmp_path: Path) -> None:
    assert loop_model(tmp_path, _fed(2, 0, ' axis="0"'), "<back_edges/>") == []


def test_an_input_that_a_back_edge_replaces_is_not_constant(tmp_path: Path) -> None:
    back = '<back_edges><edge from-layer="3" to-layer="0"/></back_edges>'
    assert loop_model(tmp_path, _fed(2, 0), back) == []


# Nodes that compute indices, and the initializers that they need.
ONNX_PLAIN = {
    "Cast": ("indices = Cast <to = 7> (c)", "<int32[2, 1] c = {1, 7}>"),
    "Range": (
        "r = Range (c, d, e)\n indices = Unsqueeze (r, axes)",
        "<int64 c = {4}, int64 d = {8}, int64 e = {3}, int64[1] axes = {1}>",
    ),
    "Shape": ("s = Shape (o)\n indices = Unsqueeze (s, a)", "<int64[1] a = {1}>"),
    "Constant": ("indices = Constant <value = int64[2, 1] {1, 7}> ()", ""),
}


def onnx_model(text: str, folder: Path) -> list[Diagnostic]:
    path = folder / "model.onnx"
    path.write_bytes(parser.parse_model(text).SerializeToString())
    return validate(read(path))


@pytest.mark.parametrize("name", ONNX_PLAIN)
@pytest.mark.parametrize("size", [5, 8])
def test_plain_operators_of_onnx(name: str, size: int, tmp_path: Path) -> None:
    nodes, constants = ONNX_PLAIN[name]
    found = onnx_model(
        f"""<ir_version: 10, opset_import: ["" : 18]>
        m (float[{size}, 3] data, float[2, 3] updates, float[1, 7] o) => (float[{size}, 3] y)
        {constants}
        {{
            {nodes}
            y = ScatterND (data, indices, updates)
        }}""",
        tmp_path,
    )
    left = [one for one in found if one.code != "SCT304"]
    assert codes(left) == (["SCT302"] if size == 5 else [])
    assert all(" is 7, expected -5 to 4" in one.message for one in left)


BODIES = """<ir_version: 10, opset_import: ["" : 18]>
m (bool c, int64 n, float[5, 3] data, float[1, 3] updates) => (float[5, 3] y, float[5, 3] z)
<int64[1, 1] outside = {7}>
{
    [choice] y = If (c) <
        then_branch = yes () => (float[5, 3] t)
            <int64[1, 1] inside = {6}>
            { [then] t = ScatterND (data, inside, updates) },
        else_branch = no () => (float[5, 3] e)
            { [captured] e = ScatterND (data, outside, updates) }
    >
    [loop] z = Loop (n, c, data) <
        body = inner (int64 i, bool again_in, float[5, 3] state_in) => (bool again, float[5, 3] state)
            {
                again = Identity (again_in)
                moved = Neg (outside)
                [carried] state = ScatterND (state_in, moved, updates)
            }
    >
}"""


def test_bodies_of_onnx_and_captured_constants(tmp_path: Path) -> None:
    found = onnx_model(BODIES, tmp_path)
    assert [(one.code, one.location.scope, one.message[:22]) for one in found] == [
        ("SCT302", "choice:then_branch/then", "indices[0, 0] is 6, ex"),
        ("SCT302", "choice:else_branch/captured", "indices[0, 0] is 7, ex"),
        ("SCT302", "loop:body/carried", "indices[0, 0] is -7, e"),
    ]
    assert [one.related[0].location.scope for one in found] == [
        "choice:then_branch/inside",
        "outside",
        "outside",
    ]


def test_a_state_of_a_loop_is_not_constant(tmp_path: Path) -> None:
    found = onnx_model(
        """<ir_version: 10, opset_import: ["" : 18]>
        m (bool c, int64 n, float[5, 3] data, float[1, 3] updates) => (int64[1, 1] y)
        <int64[1, 1] start = {7}>
        {
            y = Loop (n, c, start) <
                body = inner (int64 i, bool go_in, int64[1, 1] at_in) => (bool go, int64[1, 1] at)
                    {
                        go = Identity (go_in)
                        unused = ScatterND (data, at_in, updates)
                        at = Add (at_in, at_in)
                    }
            >
        }""",
        tmp_path,
    )
    assert found == []


FUNCTION = """<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
m (float[5, 3] five, float[11, 3] eleven, float[1, 3] updates) => (y, z, w)
<int64[1, 1] seven = {7}, int64[1, 1] one = {1}>
{
    [first] y = own.put (five, seven, updates)
    [second] z = own.put (eleven, seven, updates)
    [third] w = own.put (five, one, updates)
}
<domain: "own", opset_import: ["" : 18]>
put (data, indices, updates) => (out)
{
    [inner] out = ScatterND (data, indices, updates)
}"""


def test_a_function_is_judged_by_each_call(tmp_path: Path) -> None:
    (found,) = onnx_model(FUNCTION, tmp_path)
    assert (found.code, found.location.scope) == ("SCT302", "own::put/inner")
    assert found.message == "indices[0, 0] is 7, expected -5 to 4"
    assert [note.message for note in found.related][-1:] == ["called from first"]
    assert not any("second" in note.message or "third" in note.message for note in found.related)


def test_findings_of_calls_are_merged(tmp_path: Path) -> None:
    """Both calls break the same rule at the same node: one finding that names both."""
    (found,) = onnx_model(FUNCTION.replace("float[11, 3]", "float[7, 3]"), tmp_path)
    assert found.code == "SCT302"
    calls = [note for note in found.related if note.message.startswith("called from")]
    assert [note.message for note in calls] == ["called from first", "called from second"]
    assert [note.location.scope for note in calls] == ["first", "second"]


def test_a_function_that_a_function_calls(tmp_path: Path) -> None:
    text = (
        FUNCTION.replace("put (five, seven", "through (five, seven", 1)
        + """
    <domain: "own", opset_import: ["" : 18, "own" : 1]>
    through (a, b, c) => (d) { [deep] d = own.put (a, b, c) }"""
    )
    (found,) = onnx_model(text, tmp_path)
    assert (found.code, found.location.scope) == ("SCT302", "own::put/inner")
    assert found.related[-1].message == "called from own::through/deep"


def test_an_attribute_that_the_call_gives(tmp_path: Path) -> None:
    found = onnx_model(
        """<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
        m (float[5, 3] data, int64[2, 3] indices, float[2, 3] updates) => (y, z)
        {
            [good] y = own.put <at = 1> (data, indices, updates)
            [bad] z = own.put <at = 2> (data, indices, updates)
        }
        <domain: "own", opset_import: ["" : 18]>
        put <at> (data, indices, updates) => (out)
        {
            [inner] out = ScatterElements <axis: int = @at> (data, indices, updates)
        }""",
        tmp_path,
    )
    assert codes(found) == ["SCT301"]
    assert [note.message for note in found[0].related] == ["called from bad"]


def test_too_many_indices_are_a_note(tmp_path: Path) -> None:
    """SCT307: what was not looked at is said."""
    ir = IrText()
    scatter(ir, _converted(ir))
    model = read(ir.write(tmp_path))
    (found,) = validate(model, max_index_elements=1)
    assert (found.code, found.severity) == ("SCT307", "note")
    assert found.message == "the values of indices were not checked: more than 1 element"
    assert codes(validate(model, max_index_elements=2)) == ["SCT302"]


def test_what_flows_through_scatter_has_the_shape_of_data(tmp_path: Path) -> None:
    """The stored shape in between is stale; data of the second node is the first node's data."""
    ir = IrText()
    first = scatter(ir, numbers(ir, 1), name="first")
    stale = Output(first.layer, first.port, "f32", (11, 3))
    updates, axis = ir.parameter("u", shape=(1, 3)), number(ir, 0)
    inputs = [stale, numbers(ir, 7), updates, axis]
    ir.add("second", "ScatterUpdate", "opset3", inputs, [("f32", (5, 3))])
    found = validate(read(ir.write(tmp_path)))
    assert sorted(codes(found)) == ["SCT302", "SCT503"]
