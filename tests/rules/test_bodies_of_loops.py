"""Scatter nodes in bodies that contradict what flows in: what OpenVINO refuses, before or after it looks at that."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ir_scatter import validate
from tests.campaigns.children import Child
from tests.models import nested_ir
from tests.models.ir_text import Dims, IrText

DECLARED, FIRST, EACH = "with the declared shapes of its inputs", "at the first iteration", "data[axis+1:]"
"""What messages end with; one that holds at each iteration says no more than what is expected."""


@pytest.fixture(scope="module")
def is_refused() -> Iterator[Callable[[str], bool]]:
    pytest.importorskip("openvino")
    child = Child("tests.campaigns.test_ir_reader", "theirs")
    yield lambda path: (child.ask(Path(path)) or {"said": "the process ended"})["said"] != ""
    child.close()


def write(
    folder: Path, data: Dims, inner: Dims, updates: Dims, type: str = "i64", *, grows: bool = False
) -> str:
    """Write an iterator that carries data on; a body declares other data, updates or indices than flow in.

    Data is as it was at each iteration, unless it `grows`.
    """
    ir, body = IrText(), IrText()
    outer = [
        ir.parameter("data", "f32", data),
        ir.parameter("at", "i64", (2,)),
        ir.parameter("new", "f32", (2, 3)),
    ]
    old, at, new = (
        body.parameter("old", "f32", inner),
        body.parameter("at", type, (2,)),
        body.parameter("new", "f32", updates),
    )
    body.weights = ir.weights
    axis = body.const("axis", "i64", 0)
    made = body.add("scatter", "ScatterUpdate", "opset3", [old, at, new, axis], [("f32", inner)])
    if grows:
        made = body.add("twice", "Concat", "opset1", [made, made], [("f32", (8, 6))], {"axis": "1"})
    last = nested_ir.result(body, made)
    maps = [nested_ir.put_in(number, one) for number, one in enumerate((old, at, new))]
    inside = f"<port_map>{''.join([*maps, nested_ir.put_out(3, last)])}</port_map>"
    inside += nested_ir.carried([(last, old)]) + body.body("body")
    made = ir.add("loop", "TensorIterator", "opset1", outer, [("f32", data)], inside=inside)
    nested_ir.results(ir, made)
    return ir.write(folder)


@pytest.mark.openvino
@pytest.mark.parametrize(
    ("data", "inner", "updates", "type", "grows", "found"),
    [
        ((8, 3), (8, 3), (2, 3), "i64", False, []),
        ((9, 3), (8, 3), (2, 3), "i64", False, []),
        ((8, 3), (8, 3), (7, 3), "i64", False, [("SCT203", DECLARED)]),
        ((8, 3), (8, 3), (2, 3), "f16", False, [("SCT204", DECLARED)]),
        ((8, 4), (8, 3), (2, 3), "i64", False, [("SCT203", EACH)]),
        ((8, 4), (8, 3), (2, 3), "i64", True, [("SCT203", FIRST)]),
    ],
)
def test_bodies_apart_and_at_first(
    data: Dims, inner: Dims, updates: Dims, type: str, grows: bool, found: list[tuple[str, str]],
    tmp_path: Path, is_refused: Callable[[str], bool],
) -> None:  # fmt: skip
    path = write(tmp_path, data, inner, updates, type, grows=grows)
    errors = [one for one in validate(path) if one.severity == "error"]
    assert [one.code for one in errors] == [code for code, _ in found]
    assert all(one.message.endswith(when) for one, (_, when) in zip(errors, found, strict=True))
    assert is_refused(path) == bool(found)
