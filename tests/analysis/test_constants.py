"""What can be proven of values."""

from pathlib import Path

import numpy as np
import pytest

from ir_scatter.analysis.constants import Facts
from ir_scatter.core.model import Node, Value
from ir_scatter.formats import read as read_any
from tests.rules.ir_text import IrText, Output


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


def test_a_constant_is_itself(tmp_path: Path) -> None:
    ir = IrText()
    value = last_input(ir, ir.const("c", "i64", [3, 5]), tmp_path)
    facts = Facts()
    array = facts.array(value)
    assert array is not None
    assert array.tolist() == [3, 5]
    assert facts.array(value) is array
    assert facts.shape(value) == (2,)
    assert facts.origin(value) is value.constant
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


def test_a_value_used_twice_is_computed(tmp_path: Path) -> None:
    ir = IrText()
    one = ir.const("one", "i64", 1)
    total = one
    for _ in range(20):
        total = add(ir, total, total)
    array = Facts().array(last_input(ir, total, tmp_path))
    assert array is not None
    assert int(array) == 2**20


def test_a_long_chain_is_given_up(tmp_path: Path) -> None:
    ir = IrText()
    one = ir.const("one", "i64", 1)
    total = one
    for _ in range(2000):
        total = add(ir, total, one)
    value = last_input(ir, total, tmp_path)
    facts = Facts()
    assert facts.array(value) is None
    assert facts.shape(value) is None


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


def test_what_keeps_the_shape_has_it(tmp_path: Path) -> None:
    """The stored dimensions are unknown, those of the source are not."""
    ir = IrText()
    source = ir.parameter("x", shape=(5, 3))
    half = ir.add("half", "Convert", "opset1", [source], [("f16", ("?", "?"))], {"destination_type": "f16"})
    back = ir.add("back", "Convert", "opset1", [half], [("f32", ("?", 3))], {"destination_type": "f32"})
    assert Facts().shape(last_input(ir, back, tmp_path)) == (5, 3)


def test_a_long_chain_of_shapes(tmp_path: Path) -> None:
    ir = IrText()
    value = ir.parameter("x", shape=(5, 3))
    for number in range(3000):
        value = ir.add(f"abs{number}", "Abs", "opset1", [value], [("f32", ("?", "?"))])
    assert Facts().shape(last_input(ir, value, tmp_path)) == (5, 3)


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


def test_a_constant_at_an_odd_offset(tmp_path: Path) -> None:
    ir = IrText(bytearray(b"\1" * 9))
    array = Facts().array(last_input(ir, ir.const("c", "i64", [3, 5]), tmp_path))
    assert array is not None
    assert array.tolist() == [3, 5]
    assert array.dtype == np.int64
