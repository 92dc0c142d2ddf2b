"""Bounds of values: which operators keep them, which columns are combined, and that each is computed once."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

from ir_scatter import convert, read
from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.ranges import bounds_of
from ir_scatter.analysis.scatter_node import scatter_nodes
from ir_scatter.core.arrays import Array
from ir_scatter.core.model import Value
from ir_scatter.portability import Portability, diagnose, find_targets
from tests.models.ir_text import IrText, Output

I32 = (-(2**31), 2**31 - 1)
TABLE = (5, 9)


def value_of(path: str, name: str) -> tuple[Facts, Value]:
    model = read(path)
    (node,) = [node for node in model.graph.walk() if node.name == name]
    return Facts(model=model), node.outputs[0]


def bounds(text: IrText, folder: Path, name: str, count: int = 1) -> Sequence[tuple[float, float]]:
    facts, value = value_of(text.write(folder), name)
    return [(one.low, one.high) for one in bounds_of(facts, value, count)]


def within(text: IrText, number: Output, low: int, high: int) -> Output:
    """Limit numbers that only a run tells."""
    written = {"min": str(low), "max": str(high)}
    return text.add("limited", "Clamp", "opset1", [number], [("i64", number.dims)], written)


GATHERS = {
    "Gather-1": ("Gather", "opset1", (3,), None, 0),
    "Gather-7": ("Gather", "opset7", (3,), {"batch_dims": "0"}, 0),
    "Gather-8": ("Gather", "opset8", (3,), {"batch_dims": "0"}, -2),
    "GatherND-5": ("GatherND", "opset5", (3, 1), {"batch_dims": "0"}, 0),
    "GatherND-8": ("GatherND", "opset8", (3, 1), {"batch_dims": "0"}, -2),
    "GatherElements-6": ("GatherElements", "opset6", (3,), {"axis": "0"}, 0),
}


@pytest.mark.parametrize("name", GATHERS)
@pytest.mark.parametrize("slack", [None, (0, 0), (-1, 0), (0, 1)], ids=["any", "inside", "below", "above"])
def test_a_table_is_no_bound_unless_indices_are_in_range(
    name: str, slack: tuple[int, int] | None, tmp_path: Path
) -> None:
    """Gather-8 gives 0 out of range, and OpenVINO's CPU plugin what is in memory beside the table."""
    type, opset, shape, data, low = GATHERS[name]
    text = IrText()
    table, indices = text.const("table", "i32", TABLE), text.parameter("indices", "i64", shape)
    if slack is not None:
        indices = within(text, indices, low + slack[0], 1 + slack[1])
    inputs = [table, indices, *([text.const("axis", "i64", 0)] if type == "Gather" else [])]
    text.add("gathered", type, opset, inputs, [("i32", (3,))], data)
    assert bounds(text, tmp_path, "gathered") == [TABLE if slack == (0, 0) else I32]


@pytest.mark.parametrize("line", ["Gather(t, g)", "GatherElements(t, g)", "GatherND(t, c)"])
def test_tables_of_onnx(line: str, tmp_path: Path) -> None:
    """The document calls indices out of range an error, but not every runtime refuses them."""
    for limit, expected in (("one", TABLE), ("two", I32)):
        text = f"""
            <ir_version: 8, opset_import: ["" : 18]>
            graph (int64[3] x) => (int32[3] y, int64[3] g, int64[3, 1] c)
            <int32[2] t = {{5, 9}}, int64 zero = {{0}}, int64 one = {{1}}, int64 two = {{2}}, int64[1] last = {{-1}}>
            {{ g = Clip(x, zero, {limit}) c = Unsqueeze(g, last) [wanted] y = {line} }}"""
        onnx.save(parser.parse_model(text), path := tmp_path / "model.onnx")
        facts, value = value_of(str(path), "wanted")
        assert bounds_of(facts, value) == (expected,)


@pytest.mark.parametrize("rule", ["numpy", "none", "pdpd", "PDPD"])
def test_columns_are_combined_where_last_dimensions_are_aligned(rule: str, tmp_path: Path) -> None:
    text = IrText()
    numbers, pairs = text.parameter("numbers", "i64", (2, 2)), text.const("sizes", "i64", [[1, 6], [1, 6]])
    aligned = {"auto_broadcast": "numpy"}
    columns = text.add("columns", "FloorMod", "opset1", [numbers, pairs], [("i64", (2, 2))], aligned)
    other = text.const("other", "i64", [[0, 100], [0, 100]] if rule == "none" else [0, 100])
    text.add("sum", "Add", "opset1", [columns, other], [("i64", (2, 2))], {"auto_broadcast": rule})
    expected = [(0, 105)] * 2 if rule.lower() == "pdpd" else [(0, 0), (100, 105)]
    assert bounds(text, tmp_path, "sum", 2) == expected


def test_columns_before_opset_7_of_onnx(tmp_path: Path) -> None:
    """The attribute `axis` aligns input 1 with other dimensions than the last ones."""
    text = """
        <ir_version: 8, opset_import: ["" : 6]>
        graph (int64[2, 2] x) => (int64[2, 2] z)
        <int64[2] a = {0, 100}, int64[2, 2] b = {0, 7, 0, 7}>
        { c = Min(x, b) [wanted] z = Add<axis=0, broadcast=1>(b, a) }"""
    text = text.replace("Add<axis=0, broadcast=1>(b, a)", "Sub<axis=0, broadcast=1>(c, a)").replace(
        "Min", "Max"
    )
    onnx.save(parser.parse_model(text), path := tmp_path / "model.onnx")
    facts, value = value_of(str(path), "wanted")
    first, second = bounds_of(facts, value, 2)
    assert first == second
    assert first.low <= -100


def test_the_lesser_of_two_is_compared_with_itself(tmp_path: Path) -> None:
    """A comparison that is aligned differently compares other elements than those that are chosen."""
    for rule, high in (("numpy", 3), ("pdpd", 2**63 - 1)):
        text = IrText()
        numbers, ends = text.parameter("numbers", "i64", (2, 2)), text.const("ends", "i64", [2, 3])
        less = text.add(
            "less", "Less", "opset1", [numbers, ends], [("boolean", (2, 2))], {"auto_broadcast": rule}
        )
        text.add("chosen", "Select", "opset1", [less, numbers, ends], [("i64", (2, 2))])
        ((_, found),) = bounds(text, tmp_path, "chosen")
        assert found == high


def scattering(text: IrText, indices: Output, folder: Path) -> str:
    data, updates = text.parameter("data", "f32", (5, 4)), text.parameter("updates", "f32", (3, 4))
    inputs = [data, indices, updates, text.const("axis", "i64", 0)]
    node = text.add("scatter", "ScatterUpdate", "opset3", inputs, [("f32", (5, 4))])
    text.add("result", "Result", "opset1", [node], [])
    return text.write(folder)


def test_a_gathered_index_is_guarded_and_reported(tmp_path: Path) -> None:
    """A table of 5 and 9 gives 0 for k = 7: less 5 that is -5, which OpenVINO's CPU plugin writes to."""
    text = IrText()
    table, indices = text.const("table", "i64", [5, 9]), text.parameter("k", "i64", (3,))
    inputs = [table, indices, text.const("gather_axis", "i64", 0)]
    gathered = text.add("gather", "Gather", "opset8", inputs, [("i64", (3,))], {"batch_dims": "0"})
    less = [gathered, text.const("five", "i64", [5])]
    path = scattering(text, text.add("index", "Subtract", "opset1", less, [("i64", (3,))]), tmp_path)
    (converted,) = convert(path, guard="clamp").converted
    assert converted.rewrites == ("indices-clamped",)
    told = {one.code for one in diagnose(read(path), Portability(find_targets(["CPU"])))}
    assert told & {"DEV140", "DEV143"}


@pytest.mark.parametrize("type", ["i64", "i8"])
def test_a_guard_before_a_narrower_type_is_none(type: str, tmp_path: Path) -> None:
    """What is below a dimension that only a run tells may be negative as an i8."""
    text = IrText()
    declared = (("data", "f32", (-1, 4)), ("k", type, (3,)), ("updates", "f32", (3, 4)))
    inputs = [text.parameter(*one) for one in declared]
    axis = text.const("axis", "i64", 0)
    text.add("scatter", "ScatterUpdate", "opset3", [*inputs, axis], [("f32", (-1, 4))])
    path, guarded = Path(text.write(tmp_path)), tmp_path / "guarded.xml"
    convert(path, guard="clamp", verify=0).write(guarded)
    assert convert(guarded, guard="clamp", verify=0).is_empty
    guarded.write_text(_converted(guarded.read_text(), "scatter", type))
    assert convert(guarded, guard="clamp", verify=0).is_empty is (type == "i64")


def _converted(layers: str, name: str, type: str) -> str:
    """Put a Convert before input 1 of a layer of an IR."""
    id = re.search(rf'<layer id="(\d+)" name="{name}"', layers)
    assert id is not None
    edge = re.search(
        rf'<edge from-layer="(\d+)" from-port="(\d+)" to-layer="{id[1]}" to-port="1" ?/>', layers
    )
    assert edge is not None
    precision = type.upper()
    layer = (
        f'<layer id="900" name="narrow" type="Convert" version="opset1"><data destination_type="{type}"/>'
        '<input><port id="0" precision="I64"><dim>3</dim></port></input>'
        f'<output><port id="1" precision="{precision}"><dim>3</dim></port></output></layer></layers>'
    )
    edges = (
        f'<edge from-layer="{edge[1]}" from-port="{edge[2]}" to-layer="900" to-port="0"/>'
        f'<edge from-layer="900" from-port="1" to-layer="{id[1]}" to-port="1"/>'
    )
    return layers.replace(edge[0], edges).replace("</layers>", layer)


class CountingFacts(Facts):
    """Counts how often the numbers of each value are asked for, which computing its bounds does once."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.asked = Counter[Value]()

    def whole_numbers(self, value: Value) -> Array | None:
        self.asked[value] += 1
        return super().whole_numbers(value)


def test_bounds_are_computed_once_for_all_nodes(tmp_path: Path) -> None:
    nodes, moves = 30, 40
    text = IrText()
    index, shape = text.parameter("index", "i64", (3,)), text.const("shape", "i64", [3])
    for number in range(moves):
        index = text.add(
            f"move_{number}", "Reshape", "opset1", [index, shape], [("i64", (3,))], {"special_zero": "false"}
        )
    data, updates = text.parameter("data", "f32", (5,)), text.parameter("updates", "f32", (3,))
    axis = text.const("axis", "i64", 0)
    for number in range(nodes):
        data = text.add(
            f"scatter_{number}",
            "ScatterElementsUpdate",
            "opset12",
            [data, index, updates, axis],
            [("f32", (5,))],
        )
    text.add("result", "Result", "opset1", [data], [])
    model = read(text.write(tmp_path))
    facts = CountingFacts(model=model)
    scatters = [*scatter_nodes(model, facts)]
    assert len(scatters) == nodes
    for scatter in scatters:
        assert scatter.indices is not None
        for are_legal in (False, True):
            bounds_of(facts, scatter.indices.value, are_legal=are_legal)
    readers = [*[*model.graph.walk(frozenset({"Reshape"}))][1:], scatters[0].node]
    moved = [node.inputs[number].value for node, number in zip(readers, [0] * (moves - 1) + [1], strict=True)]
    assert [facts.asked[value] for value in moved if value is not None] == [2] * moves


def test_the_length_of_a_chain_hides_nothing(tmp_path: Path) -> None:
    """Bounds are those behind a chain of any length, whichever value is asked for first."""
    text = IrText()
    index = within(text, text.parameter("index", "i64", (3,)), 0, 4)
    shape = text.const("shape", "i64", [3])
    for number in range(10_100):
        index = text.add(
            f"move_{number}", "Reshape", "opset1", [index, shape], [("i64", (3,))], {"special_zero": "false"}
        )
    model = read(text.write(tmp_path))
    nodes = {node.name: node for node in model.graph.walk()}
    values = [nodes[name].outputs[0] for name in ("move_10099", "move_20")]
    for order in (values, values[::-1]):
        facts = Facts(model=model)
        assert [bounds_of(facts, value) for value in order] == [((0, 4),)] * 2


def test_a_constant_has_bounds_for_each_column(tmp_path: Path) -> None:
    text = IrText()
    text.const("pairs", "i64", np.array([[0, 9], [3, -1]]))
    assert bounds(text, tmp_path, "pairs", 2) == [(0, 3), (-1, 9)]
    assert bounds(text, tmp_path, "pairs") == [(-1, 9)]
