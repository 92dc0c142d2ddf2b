"""Operators in front of scatter nodes of an IR: outputs that are stale, and uses that a runtime refuses."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ir_scatter import Diagnostic, read, validate
from ir_scatter.core.model import Model
from tests.models.ir_text import IrText, Output

ROWS, STALE = 16, 8
"""How many rows data has, and how many the file remembers; the index is one in between."""


class Made(NamedTuple):
    """An operator that makes [ROWS, 3]: its attributes, and its inputs as shapes of Parameters or numbers."""

    type: str
    opset: str
    inputs: Sequence[Any]
    attributes: Mapping[str, str] = {}
    outputs: int = 1


class Whole(list[int]):
    """The numbers of a constant."""


BY_SHAPES = [
    Made("ReLU", "opset1", [(ROWS, 3)]),
    Made("Add", "opset1", [(ROWS, 3), (1, 3)], {"auto_broadcast": "numpy"}),
    Made("Concat", "opset1", [(9, 3), (7, 3)], {"axis": "0"}),
    Made("MatMul", "opset1", [(ROWS, 5), (5, 3)], {"transpose_a": "false", "transpose_b": "false"}),
    Made("Select", "opset1", [(ROWS, 3), (ROWS, 3), (3,)], {"auto_broadcast": "numpy"}),
]
BY_NUMBERS = [
    Made("Transpose", "opset1", [(3, ROWS), Whole([1, 0])]),
    Made("Reshape", "opset1", [(8, 6), Whole([-1, 3])], {"special_zero": "false"}),
    Made("Gather", "opset8", [(20, 3), Whole(range(ROWS)), Whole([0])], {"batch_dims": "0"}),
    Made("Broadcast", "opset3", [(1, 3), Whole([ROWS, 3])], {"mode": "numpy"}),
    Made("Tile", "opset1", [(4, 3), Whole([4, 1])]),
    Made("Unsqueeze", "opset1", [(3,), Whole([0])]),
    Made("ReduceSum", "opset1", [(ROWS, 2, 3), Whole([1])], {"keep_dims": "false"}),
    Made("Slice", "opset8", [(20, 3), Whole([4]), Whole([20]), Whole([1]), Whole([0])]),
    Made("Split", "opset1", [(2 * ROWS, 3), Whole([0])], {"num_splits": "2"}, 2),
]


def model_of(made: Made, folder: Path, *, rows: int = STALE, type: str = "f32") -> Model:
    """Write a model whose operator stores other rows at its output, and read it."""
    ir = IrText()
    sources = list[Output]()
    for number, one in enumerate(made.inputs):
        if isinstance(one, Whole):
            is_axis = made.type in {"Gather", "Split"} and number == len(made.inputs) - 1
            sources.append(ir.const(f"c{number}", "i64", one[0] if is_axis else one))
        else:
            is_condition = made.type == "Select" and number == 0
            sources.append(ir.parameter(f"p{number}", "boolean" if is_condition else "f32", one))
    outputs = [(type, [rows, 3])] * made.outputs
    x = ir.add("x", made.type, made.opset, sources, outputs, made.attributes)
    return scattered(ir, x, folder, type=type)


def scattered(
    ir: IrText, x: Output, folder: Path, *, updates: str = "f32", type: str = "f32", row: int = 12
) -> Model:
    """Scatter into a value that has [ROWS, 3] and remembers less, and read what is written."""
    inputs = [x, ir.const("indices", "i64", [row]), ir.parameter("updates", updates, [1, 3])]
    node = ir.add("y", "ScatterUpdate", "opset3", [*inputs, ir.const("axis", "i64", 0)], [(type, x.dims)])
    ir.add("result", "Result", "opset1", [node], [])
    return read(ir.write(folder))


def told(model: Model) -> list[tuple[str, str]]:
    return [(one.code, one.message) for one in validate(model)]


def codes(found: Sequence[Diagnostic]) -> set[str]:
    return {one.code for one in found}


@pytest.mark.parametrize("made", [one for one in BY_SHAPES + BY_NUMBERS if one.type != "Unsqueeze"], ids=str)
def test_a_stale_output(made: Made, tmp_path: Path) -> None:
    found = told(model_of(made, tmp_path))
    port = len(made.inputs)
    message = f"x computes [{ROWS}, 3] from its inputs, its output port {port} stores [{STALE}, 3]"
    assert ("SCT505", message) in found
    assert "SCT302" not in {code for code, _ in found}
    (tmp_path / "legal").mkdir()
    assert told(model_of(made, tmp_path / "legal", rows=ROWS)) == []


@pytest.mark.parametrize("made", BY_SHAPES + BY_NUMBERS, ids=str)
def test_a_stale_precision(made: Made, tmp_path: Path) -> None:
    rows = 1 if made.type == "Unsqueeze" else ROWS
    found = told(model_of(made, tmp_path, rows=rows, type="f16"))
    assert (
        "SCT505",
        f"x computes f32 from its inputs, its output port {len(made.inputs)} stores f16",
    ) in found
    assert "SCT202" not in {code for code, _ in found}


def test_the_type_that_convert_names_wins(tmp_path: Path) -> None:
    """What its port stores may hide that types differ, as well as make it up."""
    for name, stored, is_wrong in (("f32", "f16", False), ("f16", "f32", True)):
        ir = IrText()
        x = ir.parameter("x", "f64", [ROWS, 3])
        cast = ir.add("cast", "Convert", "opset1", [x], [(stored, [ROWS, 3])], {"destination_type": name})
        found = validate(scattered(ir, cast, tmp_path, type=stored))
        message = f"cast computes {name} from its inputs, its output port 1 stores {stored}"
        assert [one.message for one in found if one.code == "SCT505"] == [message]
        assert ("SCT202" in codes(found)) == is_wrong


def test_a_shape_behind_computed_numbers(tmp_path: Path) -> None:
    """No error rests on what ports store: what really follows is worked out before one is told."""
    ir = IrText()
    x = ir.parameter("x", "f32", [ROWS, 3])
    shape = ir.add("shape", "ShapeOf", "opset3", [x], [("i64", [2])], {"output_type": "i64"})
    same = ir.add("same", "Reshape", "opset1", [x, shape], [("f32", [STALE, 3])], {"special_zero": "false"})
    found = validate(scattered(ir, same, tmp_path))
    assert codes(found) == {"SCT501", "SCT503"}
    assert codes(validate(scattered(ir, same, tmp_path, row=ROWS))) >= {"SCT302", "SCT503"}


def test_many_contradictions_of_one_kind_are_told_once(tmp_path: Path) -> None:
    ir = IrText()
    x = ir.parameter("x", "f32", [ROWS, 3])
    for number in range(300):  # every second one has a stale output, which the next one does not believe
        rows = STALE if number % 2 else ROWS
        made = ir.add(f"n{number}", "ReLU", "opset1", [x], [("f32", [rows, 3])])
        x = Output(made.layer, made.port, "f32", (ROWS, 3))
    found = [one for one in validate(scattered(ir, x, tmp_path)) if one.code == "SCT505"]
    assert len(found) == 10
    assert (
        found[0].message == f"n1 computes [{ROWS}, 3] from its inputs, its output port 1 stores [{STALE}, 3]"
    )
    assert found[-1].message.endswith("; 140 more contradictions of this kind")


def test_nothing_is_told_of_what_leads_to_no_scatter_node(tmp_path: Path) -> None:
    ir = IrText()
    x = ir.parameter("x", "f32", [ROWS, 3])
    wrong = ir.add("wrong", "Add", "opset1", [x], [("f32", [ROWS, 3])])
    ir.add("wrong_result", "Result", "opset1", [wrong], [])
    assert told(scattered(ir, x, tmp_path)) == []


def test_what_is_dropped_is_a_warning(tmp_path: Path) -> None:
    ir = IrText()
    x = ir.parameter("x", "f32", [ROWS, 3])
    wrong = ir.add("wrong", "Add", "opset1", [x], [("f32", [ROWS, 3])])
    index, axis = ir.const("index", "i64", [1]), ir.const("zero", "i64", 0)
    rows = ir.parameter("rows", "f32", [1, 3])
    ir.add("loose", "ScatterUpdate", "opset3", [wrong, index, rows, axis], [("f32", [ROWS, 3])])
    found = validate(scattered(ir, x, tmp_path))
    assert [(one.code, one.severity) for one in found] == [("SCT937", "warning")]


def computed_step(ir: IrText, x: Output) -> Output:
    """Cut by a step that is computed from constants, and is 0."""
    step = ir.add(
        "step", "Multiply", "opset1", [ir.const("a", "i64", [3]), ir.const("b", "i64", [0])],
        [("i64", [1])], {"auto_broadcast": "numpy"},
    )  # fmt: skip
    numbers = [
        ir.const("start", "i64", [0]),
        ir.const("end", "i64", [ROWS]),
        step,
        ir.const("dim", "i64", [0]),
    ]
    return ir.add("cut", "Slice", "opset8", [x, *numbers], [("f32", [ROWS, 3])])


def unknown_starts(ir: IrText, x: Output) -> Output:
    """Cut along an axis that is none, from where nobody knows."""
    start = ir.parameter("start", "i64", [1])
    numbers = [
        start,
        ir.const("end", "i64", [ROWS]),
        ir.const("one", "i64", [1]),
        ir.const("dim", "i64", [7]),
    ]
    return ir.add("cut", "Slice", "opset8", [x, *numbers], [("f32", [ROWS, 3])])


def twice(ir: IrText, x: Output) -> Output:
    """Far in front of the scatter node, and used in two ways."""
    other = ir.parameter("other", "f32", [ROWS, 4])
    x = ir.add("sum", "Add", "opset1", [x, other], [("f32", [ROWS, 3])], {"auto_broadcast": "numpy"})
    for number in range(40):
        x = ir.add(f"n{number}", "ReLU", "opset1", [x], [("f32", [ROWS, 3])])
    return x


def scalars(ir: IrText, x: Output) -> Output:
    """Put together what has no dimension, which a port tells from an unknown rank by nothing."""
    ends = [ir.parameter(name, "f32") for name in ("left", "right")]
    return ir.add("both", "Concat", "opset1", ends, [("f32", [ROWS, 3])], {"axis": "0"})


def unlike(ir: IrText, x: Output) -> Output:
    """Take a remainder of what is not to be repeated."""
    three = ir.parameter("three", "f32", [3])
    return ir.add("rest", "FloorMod", "opset1", [x, three], [("f32", [ROWS, 3])], {"auto_broadcast": "none"})


def batches(ir: IrText, x: Output, count: str = "1") -> Output:
    """Take rows, as if there were batches of them."""
    rows, axis = ir.const("rows", "i64", [0] * ROWS), ir.const("dim", "i64", 0)
    return ir.add("some", "Gather", "opset8", [x, rows, axis], [("f32", [ROWS, 3])], {"batch_dims": count})


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (scalars, "scalars have no dimension"),
        (unlike, "their ranks differ"),
        (batches, "batch_dims is 1, expected 0 to 0"),
        (partial(batches, count="+0"), "attribute batch_dims of Gather is '+0', expected a number"),
        (computed_step, "a step is 0"),
        (unknown_starts, "axis 7 is out of range for 2 dimensions"),
        (twice, "3 and 4 differ"),
    ],
)
def test_misuses(add: Callable[[IrText, Output], Output], message: str, tmp_path: Path) -> None:
    ir = IrText()
    x = ir.parameter("x", "f32", [ROWS, 3])
    found = validate(scattered(ir, add(ir, x), tmp_path))
    assert [(one.code, one.severity) for one in found] == [("SCT937", "error")]
    assert found[0].message.endswith(message)


def test_a_use_is_judged_by_what_follows(tmp_path: Path) -> None:
    """Stored shapes may hide that inputs do not fit, as well as make it up."""
    for true, stored, is_wrong in ((4, 3, True), (3, 4, False)):
        ir = IrText()
        x, other = ir.parameter("x", "f32", [ROWS, 3]), ir.parameter("other", "f32", [ROWS, true])
        other = Output(other.layer, other.port, "f32", (ROWS, stored))
        sum = ir.add("sum", "Add", "opset1", [x, other], [("f32", [ROWS, 3])], {"auto_broadcast": "numpy"})
        found = codes(validate(scattered(ir, sum, tmp_path)))
        assert ("SCT937" in found) == is_wrong
        assert "SCT505" in found


def test_a_parameter_without_a_shape_is_a_scalar(tmp_path: Path) -> None:
    ir = IrText()
    axis = ir.parameter("axis", "i64", [])
    ir.layers[0] = ir.layers[0].replace(' shape=""', "")
    inputs = [
        ir.parameter("x", "f32", [ROWS, 3]),
        ir.const("at", "i64", [1]),
        ir.parameter("u", "f32", [1, 3]),
    ]
    node = ir.add("y", "ScatterUpdate", "opset3", [*inputs, axis], [("f32", [ROWS, 3])])
    ir.add("result", "Result", "opset1", [node], [])
    assert told(read(ir.write(tmp_path))) == []


def test_a_list_is_repeated_no_times_below_zero(tmp_path: Path) -> None:
    ir = IrText()
    x, times = ir.parameter("x", "f32", [ROWS, 3]), ir.const("times", "i64", [-1, 1])
    found = scattered(ir, ir.add("tile", "Tile", "opset1", [x, times], [("f32", [ROWS, 3])]), tmp_path)
    assert ("SCT505", "tile computes [0, 3] from its inputs, its output port 2 stores [16, 3]") in told(found)
