"""What can be proven of values."""

from pathlib import Path

import numpy as np
import pytest

from ir_scatter.analysis.constants import MAX_NODES, Facts
from ir_scatter.core.model import Node, Value
from ir_scatter.formats import read as read_any
from ir_scatter.reading import read
from ir_scatter.validate import validate
from tests.models.ir_text import IrText, Output


def last_input(ir: IrText, output: Output, folder: Path) -> Value:
    """Return the value of an output, as the Result behind it sees it."""
    ir.add("result", "Result", "opset1", [output], [])
    node = next(node for node in read_any(ir.write(folder)).walk() if node.name == "result")
    return value_of(node)


def value_of(node: Node) -> Value:
    value = node.inputs[0].value
    assert value is not None
    return value


def add(ir: IrText, left: Output, right: Output) -> Output:
    data = {"auto_broadcast": "numpy"}
    return ir.add(f"add{ir.count}", "Add", "opset1", [left, right], [("i64", ())], data)


def test_a_constant_is_itself_even_at_an_odd_offset(tmp_path: Path) -> None:
    ir = IrText(bytearray(b"\1" * 9))
    value = last_input(ir, ir.const("c", "i64", [3, 5]), tmp_path)
    facts = Facts()
    array = facts.array(value)
    assert array is not None
    assert array.dtype == np.int64
    assert array.tolist() == [3, 5]
    assert facts.array(value) is array
    assert facts.shape(value) == (2,)
    assert facts.origin(value) is value.constant
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


def test_a_value_used_twice_is_computed(tmp_path: Path) -> None:
    ir = IrText()
    total = ir.const("one", "i64", 1)
    for _ in range(20):
        total = add(ir, total, total)
    array = Facts().array(last_input(ir, total, tmp_path))
    assert array is not None
    assert int(array) == 2**20


def test_a_long_chain_is_followed(tmp_path: Path) -> None:
    ir = IrText()
    total = one = ir.const("one", "i64", 1)
    for _ in range(2000):
        total = add(ir, total, one)
    array = Facts().array(last_input(ir, total, tmp_path))
    assert array is not None
    assert int(array) == 2001


def found_in(ir: IrText, indices: Output, axis: Output, folder: Path) -> list[tuple[str, str]]:
    """Return what is found at a ScatterUpdate with updates [3, 3] on data [5, 3]."""
    inputs = [ir.parameter("data", "f32", (5, 3)), indices, ir.parameter("updates", "f32", (3, 3)), axis]
    made = ir.add("put", "ScatterUpdate", "opset3", inputs, [("f32", (5, 3))])
    ir.add("result", "Result", "opset1", [made], [])
    return [(one.code, one.message) for one in validate(read(ir.write(folder)))]


@pytest.mark.long
def test_a_chain_that_is_too_long_is_told(tmp_path: Path) -> None:
    ir = IrText()
    last = zero = ir.const("zero", "i64", [0, 0, 9])
    for number in range(MAX_NODES + 1):
        last = ir.add(f"max{number}", "Maximum", "opset1", [last, zero], [("i64", (3,))])
    message = (
        "the numbers of 1 value were not computed: a value depends on more than 10000 others, or 8388608 "
        "elements were computed"
    )
    found = found_in(ir, last, ir.const("axis", "i64", 0), tmp_path)
    assert found == [("SCT941", message), ("SCT302", "indices is 9, expected 0 to 4")]  # bounds are known


def packed(ir: IrText, type: str, numbers: list[int]) -> Output:
    """Add a Const of numbers of four bits, the first one in the low half of a byte."""
    halves = [number & 15 for number in [*numbers, 0]]
    data = bytes(low | high << 4 for low, high in zip(halves[::2], halves[1::2], strict=False))
    place = {"offset": str(len(ir.weights)), "size": str(len(data))}
    ir.weights += data
    attributes = {"element_type": type, "shape": str(len(numbers)), **place}
    return ir.add(f"c{ir.count}", "Const", "opset1", [], [(type, (len(numbers),))], attributes)


@pytest.mark.parametrize(
    ("type", "numbers", "axis", "expected"),
    [
        ("i4", [0, 4, 3], [0], []),
        ("i4", [0, -1, 3], [0], [("SCT303", "indices[1] is -1, expected 0 to 4 in ScatterUpdate-3")]),
        ("u4", [4, 3, 15], [0], [("SCT302", "indices[2] is 15, expected 0 to 4")]),
        ("i4", [0, 1, 2], [-3], [("SCT301", "axis is -3, expected -2 to 1 for data [5, 3]")]),
        ("u4", [0, 1, 2], [8], [("SCT301", "axis is 8, expected -2 to 1 for data [5, 3]")]),
    ],
)
def test_four_bits(
    type: str, numbers: list[int], axis: list[int], expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    ir = IrText()
    assert found_in(ir, packed(ir, type, numbers), packed(ir, type, axis), tmp_path) == expected


def test_a_cycle_is_unknown(tmp_path: Path) -> None:
    ir = IrText()
    ir.const("one", "i64", 1)
    first = Output(2, 2, "i64", ())
    second = add(ir, first, Output(0, 0, "i64", ()))
    add(ir, second, second)
    ir.add("result", "Result", "opset1", [second], [])
    nodes = {node.name: node for node in read_any(ir.write(tmp_path)).walk()}
    facts = Facts()
    assert facts.array(value_of(nodes["result"])) is None
    assert facts.shape(value_of(nodes["result"])) in ((), None)


def test_a_cycle_of_shapes_ends(tmp_path: Path) -> None:
    ir = IrText()
    ir.add("a", "Abs", "opset1", [Output(1, 1, "f32", ("?",))], [("f32", ("?",))])
    second = ir.add("b", "Abs", "opset1", [Output(0, 1, "f32", ("?",))], [("f32", ("?",))])
    value = last_input(ir, second, tmp_path)
    assert Facts().shape(value) is not None


def test_a_node_behind_a_cycle_is_looked_at(tmp_path: Path) -> None:
    ir = IrText()
    ir.add("a", "Abs", "opset1", [Output(1, 1, "f32", (4, 4))], [("f32", (4, 4))])
    second = ir.add("b", "Abs", "opset1", [Output(0, 1, "f32", (4, 4))], [("f32", (5, 5))])
    inputs = [ir.parameter("data", "f32", (5, 3)), ir.parameter("at", "i64", (2,)), second]
    made = ir.add("put", "ScatterUpdate", "opset3", [*inputs, ir.const("axis", "i64", 0)], [("f32", (5, 4))])
    ir.add("result", "Result", "opset1", [made], [])
    codes = {one.code for one in validate(read(ir.write(tmp_path)))}
    assert {"SCT926", "SCT203"} <= codes


def test_what_keeps_the_shape_has_it(tmp_path: Path) -> None:
    """The stored dimensions are unknown, those of the source are not."""
    ir = IrText()
    value = ir.parameter("x", shape=(5, 3))
    for number in range(3000):
        value = ir.add(f"abs{number}", "Abs", "opset1", [value], [("f32", ("?", "?"))])
    half = ir.add("half", "Convert", "opset1", [value], [("f16", ("?", 3))], {"destination_type": "f16"})
    assert Facts().shape(last_input(ir, half, tmp_path)) == (5, 3)


def test_constants_that_are_too_large_are_skipped(tmp_path: Path) -> None:
    ir = IrText()
    value = last_input(ir, ir.const("c", "i64", [3, 5, 7]), tmp_path)
    facts = Facts(max_elements=2)
    assert facts.array(value) is None
    assert facts.skipped == {value.constant}
    assert not Facts(max_elements=3).skipped


def test_a_shape_of_is_known_without_the_values(tmp_path: Path) -> None:
    ir = IrText()
    source = ir.parameter("x", shape=(1 << 40, 3))
    shape = ir.add("shape", "ShapeOf", "opset3", [source], [("i64", (2,))], {"output_type": "i64"})
    array = Facts().array(last_input(ir, shape, tmp_path))
    assert array is not None
    assert array.tolist() == [1 << 40, 3]


@pytest.mark.parametrize("weights", [b"", None])
def test_missing_weights_are_never_zeros(weights: bytes | None, tmp_path: Path) -> None:
    ir = IrText()
    value = ir.const("c", "i64", [3, 5])
    ir.add("result", "Result", "opset1", [value], [])
    path = Path(ir.write(tmp_path))
    path.with_suffix(".bin").unlink()
    if weights is not None:
        path.with_suffix(".bin").write_bytes(weights)
    node = next(node for node in read_any(str(path)).walk() if node.name == "result")
    assert Facts().array(value_of(node)) is None
    assert Facts().shape(value_of(node)) == (2,)
