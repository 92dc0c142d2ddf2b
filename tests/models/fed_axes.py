"""IRs of a scatter node whose axis is an input."""

import random
from collections.abc import Sequence
from pathlib import Path

from tests.models.ir_text import Dims, IrText
from tests.models.nested_ir import PARTS, carried, put_in, put_out, result


def write_flat(folder: Path, type: str, version: str, shapes: Sequence[Dims]) -> str:
    """Write a model of the node alone; the shapes are those of data, indices and updates."""
    ir = IrText()
    data, indices, updates = shapes
    refs = [
        ir.parameter("data", "f32", data), ir.parameter("indices", "i64", indices),
        ir.parameter("updates", "f32", updates), ir.parameter("axis", "i64", ()),
    ]  # fmt: skip
    result(ir, ir.add("scatter", type, version, refs, [("f32", _ports(data))]))
    return ir.write(folder, "flat")


def write_loop(folder: Path, type: str, version: str, shapes: Sequence[Dims]) -> str:
    """Write a TensorIterator that stores updates of its own in each of two iterations."""
    data, indices, updates = shapes
    ir = IrText()
    outer = [
        ir.parameter("data", "f32", data), ir.parameter("indices", "i64", indices),
        ir.parameter("updates", "f32", (2, *updates)), ir.parameter("axis", "i64", ()),
    ]  # fmt: skip
    body = IrText(ir.weights)
    old, at = body.parameter("old", "f32", data), body.parameter("at", "i64", indices)
    part, axis = body.parameter("part", "f32", (1, *updates)), body.parameter("place", "i64", ())
    first = body.const("first", "i64", [0])
    new = body.add("squeezed", "Squeeze", "opset1", [part, first], [("f32", _ports(updates))])
    written = body.add("scatter", type, version, [old, at, new, axis], [("f32", _ports(data))])
    number = result(body, written)
    maps = [put_in(0, old), put_in(1, at), put_in(2, part, PARTS), put_in(3, axis), put_out(4, number)]
    inside = f"<port_map>{''.join(maps)}</port_map>{carried([(number, old)])}{body.body('body')}"
    result(ir, ir.add("loop", "TensorIterator", "opset1", outer, [("f32", _ports(data))], inside=inside))
    return ir.write(folder, "loop")


def draw_shapes(chance: random.Random, type: str) -> list[Dims]:
    """Draw shapes of data, indices and updates that fit along some axis; some dimensions are dynamic."""
    rank = chance.randint(1, 3)
    data, axis = [chance.randint(1, 5) for _ in range(rank)], chance.randrange(rank)
    if type == "ScatterUpdate":
        indices = [chance.randint(1, data[axis])]
        updates = [*data[:axis], *indices, *data[axis + 1 :]]
    else:
        indices = [chance.randint(1, size) for size in data]
        updates = list(indices)
    return [[dim if chance.random() < 0.75 else "?" for dim in shape] for shape in (data, indices, updates)]


def _ports(dims: Dims) -> list[int]:
    return [dim if isinstance(dim, int) else -1 for dim in dims]
