"""Bytes that somebody changed: a model or UnreadableModel, nothing else."""

import random
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, parser

from ir_scatter.convert.pipeline import convert
from ir_scatter.core.errors import UnreadableModel, UsageError
from ir_scatter.reading import read
from ir_scatter.validate import validate
from tests.formats import onnx_patches

SEED = parser.parse_model("""
    <ir_version: 10, opset_import: ["" : 18, "my" : 1]>
    main (float[N, 4] x, bool c, int64 trip) => (float[N, 4] y, z, q)
        <float[2, 2] w = {1, 2, 3, 4}, int64[2] i = {0, 1}, float[N, 4] twice> {
        shape = Constant <value = int64[2] {8, 2}> ()
        once = my.f <alpha = 2.0> (x, shape)
        twice = my.f <alpha = 2.0> (once, shape)
        y = If (c) <
            then_branch = yes () => (a) { t = my.g (twice) a = Reshape (t, shape) },
            else_branch = no () => (b) { b = ScatterND <reduction = "add"> (w, i, x) }>
        z = Loop (trip, c, x) <
            body = step (int64 n, bool go, float[2, 3] s) => (next, out) {
                next = Identity (go)
                out = my.f (s, shape)
            }>
        q = ScatterElements <axis = 1> (w, i, w)
    }
    <domain: "my", opset_import: ["" : 18, "my" : 1]>
    f <alpha> (v, k) => (r) {
        t = LeakyRelu <alpha: float = @alpha> (v)
        s = my.g (t)
        r = Reshape (s, k)
    }
    <domain: "my", opset_import: ["" : 18]>
    g (v) => (r) { r = Slice (v, v, v) }
""").SerializeToString()


def look_at_everything(data: bytes) -> None:
    """Read a model and ask for all that it can tell."""
    try:
        model = onnx_patches.read(data)
    except UnreadableModel:
        return
    for defect in model.defects:
        defect.message.encode()
    for node in (*model.walk(), *model.definitions()):
        node.scope.encode()
        assert node.location.path == "model.onnx"
        values = [port.value for port in node.inputs if port.value is not None]
        for value in (*values, *node.outputs):
            value.name.encode()
            if value.constant is not None:
                value.constant.load()
        assert repr(node.attributes)


@settings(max_examples=3 * settings().max_examples, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, len(SEED) - 1), st.integers(0, 255)), max_size=4))
def test_changed_bytes(changes: list[tuple[int, int]]) -> None:
    data = bytearray(SEED)
    for position, byte in changes:
        data[position] = byte
    look_at_everything(bytes(data))


@settings(max_examples=2 * settings().max_examples)
@given(st.integers(0, len(SEED)), st.integers(0, len(SEED)))
def test_bytes_cut_out(start: int, end: int) -> None:
    look_at_everything(SEED[:start] + SEED[end:])


@settings(max_examples=2 * settings().max_examples, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_names_exchanged(seed: int) -> None:
    chance = random.Random(seed)
    model = ModelProto.FromString(SEED)
    graphs = [*[model.graph] * 3, *model.functions, model.graph.node[3].attribute[0].g]
    names = ["", "x", "w", "i", "shape", "once", "twice", "a", "t", "r", "nobody"]
    for _ in range(chance.randint(1, 5)):
        node = chance.choice(chance.choice(graphs).node)
        target = chance.choice([node.input, node.output])
        if len(target):
            target[chance.randrange(len(target))] = chance.choice(names)
        else:
            node.op_type = chance.choice(["f", "g", "If", "Constant", "ScatterND"])
    look_at_everything(model.SerializeToString())


def test_deeply_nested_bodies() -> None:
    text = "y = Abs (x)"
    for _ in range(25):
        text = f"y = If (c) <then_branch = t () => (y) {{ {text} }}, else_branch = e () => (x) {{}}>"
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 18]> g (float[2] x, bool c) => (y) {{ {text} }}'
    )
    look_at_everything(model.SerializeToString())


HUGE = (-(2**63), -(2**31) - 1, -1, 0, 2**31 - 1, 2**31, 2**32, 2**63 - 1)


@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize("reduction", ["", "add"])
@pytest.mark.parametrize(
    "where", ["opset", "opset of the function", "ir_version", "dimension", "axis", "type"]
)
def test_numbers_that_no_runtime_counts_to(where: str, reduction: str, number: int, tmp_path: Path) -> None:
    """What has 64 bits in the file has 32 in onnx: it is no opset, and no reason to break."""
    model = ModelProto.FromString(SEED)
    scatter = model.graph.node[-1]
    if reduction:
        scatter.attribute.add(name="reduction", type=3, s=reduction.encode())
    match where:
        case "opset":
            model.opset_import[0].version = number
        case "opset of the function":
            model.functions[0].opset_import[0].version = number
        case "ir_version":
            model.ir_version = number
        case "dimension":
            model.graph.initializer[1].dims[0] = number
        case "axis":
            scatter.attribute[0].i = number
        case "type":
            model.graph.input[0].type.tensor_type.elem_type = max(-(2**31), min(number, 2**31 - 1))
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    found = read(path)
    codes = {one.code for one in validate(found)}
    assert "SCT999" not in codes
    if where == "opset" and number <= 0:
        assert "SCT403" in codes
    for opset in (None, 18):
        with suppress(UsageError):
            convert(found, opset=opset, verify=0)
    with suppress(UsageError):
        convert(found, "ScatterND", verify=0)
