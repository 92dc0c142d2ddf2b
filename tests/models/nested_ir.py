"""IRs with bodies, written as text, and what they give."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.models.ir_text import Dims, IrText, Output

PARTS = ' axis="0" start="0" end="-1" stride="1" part_size="1"'
ITERATION, CONDITION = ' purpose="current_iteration"', ' purpose="execution_condition"'


def result(body: IrText, source: Output) -> int:
    """Add a Result; return its number."""
    body.add(f"result{body.count}", "Result", "opset1", [source], [])
    return body.count - 1


def results(ir: IrText, made: Output, *others: Dims, type: str = "f32") -> None:
    """Give every output of a layer, the ones behind the first of these dimensions."""
    result(ir, made)
    for number, dims in enumerate(others, 1):
        result(ir, Output(made.layer, made.port + number, type, dims))


def put_in(outer: int, inner: Output, attributes: str = "") -> str:
    return f'<input external_port_id="{outer}" internal_layer_id="{inner.layer}"{attributes}/>'


def put_out(outer: int, inner: int, attributes: str = "") -> str:
    return f'<output external_port_id="{outer}" internal_layer_id="{inner}"{attributes}/>'


def carried(pairs: Iterable[tuple[int, Output]]) -> str:
    """Return the edges from results to the parameters of the next iteration."""
    edges = (f'<edge from-layer="{new}" to-layer="{old.layer}"/>' for new, old in pairs)
    return f"<back_edges>{''.join(edges)}</back_edges>"


def _maps(inputs: Sequence[str], outputs: Sequence[str], tag: str = "port_map") -> str:
    return f"<{tag}>{''.join([*inputs, *outputs])}</{tag}>"


def write_branch(folder: Path) -> str:
    """Write an If whose branches take their inputs in different orders; else swaps the outputs."""
    ir = IrText()
    flag, a, b = (
        ir.parameter("flag", "boolean"),
        ir.parameter("a", shape=(2, 3)),
        ir.parameter("b", shape=(2, 3)),
    )
    bodies = []
    for name, first, second in (("then", 1, 2), ("else", 2, 1)):
        body = IrText(ir.weights)
        left, right = body.parameter("left", shape=(2, 3)), body.parameter("right", shape=(2, 3))
        difference = body.add("difference", "Subtract", "opset1", [left, right], [("f32", (2, 3))])
        same = result(body, left)
        changed = result(body, difference)
        outputs = [put_out(3, changed), put_out(4, same)]
        inputs = [put_in(second, right), put_in(first, left)]
        bodies.append(_maps(inputs, outputs, f"{name}_port_map") + body.body(f"{name}_body"))
    chosen = ir.add(
        "chosen", "If", "opset8", [flag, a, b], [("f32", (2, 3)), ("f32", (2, 3))], inside="".join(bodies)
    )
    results(ir, chosen, (2, 3))
    return ir.write(folder, "branch")


def write_iterator(folder: Path, *, is_backward: bool, part: int = 2) -> str:
    """Write a TensorIterator that adds up parts of two rows, and gives each sum."""
    ir = IrText()
    rows, start = ir.parameter("rows", shape=(6, 3)), ir.parameter("start", shape=(part, 3))
    body = IrText(ir.weights)
    mine, old = body.parameter("mine", shape=(part, 3)), body.parameter("old", shape=(part, 3))
    new = body.add("new", "Add", "opset1", [mine, old], [("f32", (part, 3))])
    total, each = result(body, new), result(body, new)
    stride = -part if is_backward else part
    ends = 'start="-1" end="0"' if is_backward else 'start="0" end="-1"'
    cut = f' axis="0" {ends} stride="{stride}" part_size="{part}"'
    maps = _maps([put_in(0, mine, cut), put_in(1, old)], [put_out(2, each, cut), put_out(3, total)])
    outputs: list[tuple[str, Sequence[int]]] = [("f32", (6, 3)), ("f32", (part, 3))]
    inside = maps + carried([(total, old)]) + body.body("body")
    done = ir.add("done", "TensorIterator", "opset1", [rows, start], outputs, inside=inside)
    results(ir, done, (part, 3))
    return ir.write(folder, f"iterator_{'backward' if is_backward else 'forward'}")


def write_loop(folder: Path, trips: int, *, starts: bool = True) -> str:
    """Write a Loop that stores rows in a cache at the iteration's number while it is below 4."""
    ir = IrText()
    cache, row = ir.parameter("cache", shape=(7, 5)), ir.parameter("row", shape=(1, 5))
    count, start = ir.const("count", "i64", trips), ir.const("start", "boolean", starts)
    body = IrText(ir.weights)
    step, old = body.parameter("step", "i64", (1,)), body.parameter("old", shape=(7, 5))
    new = body.parameter("new", shape=(1, 5))
    axis = body.const("axis", "i64", 0)
    limit = body.const("limit", "i64", [4])
    written = body.add("written", "ScatterUpdate", "opset3", [old, step, new, axis], [("f32", (7, 5))])
    again = body.add("again", "Less", "opset1", [step, limit], [("boolean", (1,))])
    kept, goes_on = result(body, written), result(body, again)
    steps = result(body, step)
    maps = _maps(
        [put_in(-1, step, ITERATION), put_in(2, old), put_in(3, new)],
        [put_out(4, kept), put_out(-1, goes_on, CONDITION), put_out(5, steps, PARTS)],
    )
    outputs: list[tuple[str, Sequence[int | str]]] = [("f32", (7, 5)), ("i64", (-1,))]
    inside = maps + carried([(kept, old)]) + body.body("body")
    loop = ir.add("loop", "Loop", "opset5", [count, start, cache, row], outputs, inside=inside)
    results(ir, loop, (-1,), type="i64")
    return ir.write(folder, f"loop_{trips}_{starts}")


def floats(*shape: int) -> npt.NDArray[Any]:
    """Return numbers that differ."""
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 4


def looped(cache: npt.NDArray[Any], row: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """Return the cache after some iterations."""
    found = cache.copy()
    found[:count] = row
    return found
