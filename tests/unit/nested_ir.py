"""IRs with bodies, written as text, and what they give."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.rules.ir_text import IrText, Output

Feeds = Mapping[str, npt.NDArray[Any]]


def _result(body: IrText, name: str, source: Output) -> int:
    body.add(name, "Result", "opset1", [source], [])
    return body.count - 1


def _input(outer: int | str, inner: Output, attributes: str = "") -> str:
    return f'<input external_port_id="{outer}" internal_layer_id="{inner.layer}"{attributes}/>'


def _output(outer: int | str, inner: int, attributes: str = "") -> str:
    return f'<output external_port_id="{outer}" internal_layer_id="{inner}"{attributes}/>'


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
        same = _result(body, "same", left)
        changed = _result(body, "changed", difference)
        outputs = [_output(3, changed), _output(4, same)]
        inputs = [_input(second, right), _input(first, left)]
        bodies.append(_maps(inputs, outputs, f"{name}_port_map") + body.body(f"{name}_body"))
    chosen = ir.add(
        "chosen", "If", "opset8", [flag, a, b], [("f32", (2, 3)), ("f32", (2, 3))], inside="".join(bodies)
    )
    ir.add("r0", "Result", "opset1", [chosen], [])
    ir.add("r1", "Result", "opset1", [Output(chosen.layer, chosen.port + 1, "f32", (2, 3))], [])
    return ir.write(folder, "branch")


def write_iterator(folder: Path, *, is_backward: bool, part: int = 2) -> str:
    """Write a TensorIterator that adds up parts of two rows, and gives each sum."""
    ir = IrText()
    rows, start = ir.parameter("rows", shape=(6, 3)), ir.parameter("start", shape=(part, 3))
    body = IrText(ir.weights)
    mine, old = body.parameter("mine", shape=(part, 3)), body.parameter("old", shape=(part, 3))
    new = body.add("new", "Add", "opset1", [mine, old], [("f32", (part, 3))])
    total, each = _result(body, "total", new), _result(body, "each", new)
    stride = -part if is_backward else part
    ends = 'start="-1" end="0"' if is_backward else 'start="0" end="-1"'
    cut = f' axis="0" {ends} stride="{stride}" part_size="{part}"'
    maps = _maps([_input(0, mine, cut), _input(1, old)], [_output(2, each, cut), _output(3, total)])
    edges = f'<back_edges><edge from-layer="{total}" to-layer="{old.layer}"/></back_edges>'
    outputs: list[tuple[str, Sequence[int]]] = [("f32", (6, 3)), ("f32", (part, 3))]
    inside = maps + edges + body.body("body")
    done = ir.add("done", "TensorIterator", "opset1", [rows, start], outputs, inside=inside)
    ir.add("r0", "Result", "opset1", [done], [])
    ir.add("r1", "Result", "opset1", [Output(done.layer, done.port + 1, "f32", (part, 3))], [])
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
    kept, goes_on = _result(body, "kept", written), _result(body, "goes_on", again)
    steps = _result(body, "steps", step)
    maps = _maps(
        [
            _input(-1, step, ' purpose="current_iteration"'),
            _input(2, old),
            _input(3, new),
        ],
        [
            _output(4, kept),
            _output(-1, goes_on, ' purpose="execution_condition"'),
            _output(5, steps, ' axis="0" start="0" end="-1" stride="1" part_size="1"'),
        ],
    )
    edges = f'<back_edges><edge from-layer="{kept}" to-layer="{old.layer}"/></back_edges>'
    outputs: list[tuple[str, Sequence[int | str]]] = [("f32", (7, 5)), ("i64", (-1,))]
    inside = maps + edges + body.body("body")
    loop = ir.add("loop", "Loop", "opset5", [count, start, cache, row], outputs, inside=inside)
    ir.add("r0", "Result", "opset1", [loop], [])
    ir.add("r1", "Result", "opset1", [Output(loop.layer, loop.port + 1, "i64", (-1,))], [])
    return ir.write(folder, f"loop_{trips}_{starts}")


def floats(*shape: int) -> npt.NDArray[Any]:
    """Return numbers that differ."""
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 4


def looped(cache: npt.NDArray[Any], row: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """Return the cache after some iterations."""
    found = cache.copy()
    found[:count] = row
    return found
