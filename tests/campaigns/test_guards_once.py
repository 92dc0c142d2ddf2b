"""Guards together with a target or devices: one guard for each node, found again by a second run.

As a program it checks a range of models, and prints what differs:
`python -m tests.campaigns.test_guards_once 0 1000`.
"""

import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from ir_scatter import convert, evaluate_model
from ir_scatter.convert.conversion import Conversion
from ir_scatter.core.arrays import Array
from ir_scatter.core.errors import EvaluationFailed
from ir_scatter.rewrites.guard import NAMES
from tests.campaigns.test_conversions import ROUTES
from tests.rewrites.ir_models import given, held, one_onnx, one_scatter
from tests.scale import cases, generator, in_part_and_whole

Sizes = Sequence[int | None]

OPERATORS: Mapping[str, Sequence[tuple[str, Any]]] = {
    "ir": (
        ("ScatterUpdate", "opset3"), ("ScatterElementsUpdate", "opset3"), ("ScatterElementsUpdate", "opset12"),
        ("ScatterNDUpdate", "opset4"), ("ScatterNDUpdate", "opset15"),
    ),
    "onnx": (
        ("ScatterElements", 11), ("ScatterElements", 18), ("ScatterND", 13), ("ScatterND", 18), ("TensorScatter", 24),
    ),
}  # fmt: skip
REDUCTIONS: Mapping[Any, Sequence[str]] = {
    "opset12": ("none", "sum", "mean", "max"), "opset15": ("none", "sum", "sub"), 18: ("none", "add", "max"),
}  # fmt: skip
TARGETS = (("CPU",), ("GPU",), ("onnxruntime",), ("CPU", "GPU"))
PROMISES = ("equal-indices", "full-indices", "unique-indices")


class Drawn(NamedTuple):
    """A model of one node, the sizes of its inputs when it runs, and those that its indices count on."""

    path: Path
    data: Sequence[int]
    indices: Sequence[int]
    updates: Sequence[int]
    counted_on: Sequence[int]
    index_type: str
    is_run: bool
    is_circular: bool


def draw(chance: random.Random, folder: Path) -> Drawn:
    """Draw a model of one node; its file has all sizes, some, none, or no ranks."""
    dialect = chance.choice(["ir", "onnx"])
    type, opset = chance.choice(OPERATORS[dialect])
    data = [chance.choice([2, 3, 5]) for _ in range(chance.randint(1 + (type == "TensorScatter"), 4))]
    axis, openness = chance.randrange(len(data)), chance.choice([0, 0.3, 1])
    more: dict[str, Any] = {}
    depth, counted_on = None, [data[axis]]
    if "ND" in type:
        depth = chance.randint(1, len(data))
        leading = [chance.randint(1, 2) for _ in range(chance.choice([1, 1, 2]))]
        indices, updates, counted_on = [*leading, depth], [*leading, *data[depth:]], data[:depth]
    elif type == "ScatterUpdate":
        indices = [chance.randint(1, 2) for _ in range(chance.choice([0, 1, 1, 2]))]
        updates = [*data[:axis], *indices, *data[axis + 1 :]]
    elif type == "TensorScatter":
        axis = chance.randint(1, len(data) - 1)
        updates = [*data]
        updates[axis] = chance.randint(1, data[axis])
        indices, counted_on = data[:1], [data[axis] - updates[axis] + 1]
        more["axis"] = axis - chance.choice([0, len(data)])
        more |= {"mode": "circular"} if chance.random() < 0.3 else {}
    else:
        updates = [chance.randint(1, size) for size in data]
        indices = updates
    word = chance.choice(REDUCTIONS.get(opset, ("none",)))
    more |= {} if word == "none" else {"reduction": word}

    def written(sizes: Sequence[int]) -> list[int | None]:
        return [None if chance.random() < openness else size for size in sizes]

    shapes = [written(sizes) for sizes in (data, indices, updates)]
    if depth is not None and chance.random() < 0.8:
        shapes[1][-1] = depth
    index_type, is_circular = "i64", "mode" in more
    if dialect == "onnx":
        more |= {"axis": axis} if type == "ScatterElements" else {}
        names = iter("abcdefghijklmnop")
        symbols = [[next(names) if size is None else size for size in sizes] for sizes in shapes]
        path = folder / "before.onnx"
        path.write_bytes(one_onnx(type, opset, *symbols, **more))
    else:
        index_type, has_ranks = chance.choice(["i64", "i32"]), chance.random() < 0.9
        dims = [[-1 if size is None else size for size in sizes] if has_ranks else None for sizes in shapes]
        data_shape, indices_shape, updates_shape = dims
        sources = (
            given("data", "f32", data_shape),
            given("indices", index_type, indices_shape),
            given("updates", "f32", updates_shape),
        )
        axis_input = None if depth is not None else held(axis, name="axis")
        path = Path(one_scatter(folder, type, opset, *sources, axis_input, more))
    return Drawn(path, data, indices, updates, counted_on, index_type, type == "TensorScatter", is_circular)


def feeds(chance: random.Random, drawn: Drawn, guard: str) -> Mapping[str, Array]:
    """Draw inputs: indices around the ends of their range, those of a wrap within it; equal updates."""
    distance = 0 if guard == "wrap" or drawn.is_circular else 2
    low = 0 if drawn.is_circular or (drawn.is_run and guard == "wrap") else 1  # else the run need not fit
    sizes = drawn.counted_on if len(drawn.counted_on) > 1 else drawn.counted_on[0]
    limits = np.broadcast_to(sizes, drawn.indices).reshape(-1).tolist()
    numbers = [chance.randint(-size * low - distance, size - 1 + distance) for size in limits]
    return {
        "data": np.arange(1, np.prod(drawn.data) + 1, dtype=np.float32).reshape(drawn.data),
        "indices": np.array(numbers, drawn.index_type.replace("i", "int")).reshape(drawn.indices),
        "updates": np.full(drawn.updates, 100, np.float32),
    }


def problems(number: int, folder: Path, figures: "Counter[str]") -> list[str]:
    """Guard and convert a drawn model; return what is wrong with the result."""
    chance = generator("guards once", number)
    drawn, guard = draw(chance, folder), chance.choice(["clamp", "drop", "wrap"])
    routes = ROUTES["ir" if drawn.path.suffix == ".xml" else "onnx"]
    to: str | None = chance.choice([*routes, None])
    targets: tuple[str, ...] = ()
    if chance.random() < 0.2:
        to, targets = None, chance.choice(TARGETS)

    def convert_with_guard(path: Path) -> Conversion:
        return convert(path, to, guard=guard, targets=targets, verify=0, assume=PROMISES)

    conversion = convert_with_guard(drawn.path)
    if conversion.refused or conversion.is_empty:
        figures[f"refused {conversion.refused[0].code}" if conversion.refused else "unchanged"] += 1
        return []
    found = list[str]()
    (converted,) = conversion.converted
    figures["converted"] += 1
    guards = [name for name in converted.rewrites if name in NAMES.values()]
    if len(guards) > 1:
        found.append(f"guarded {len(guards)} times: {converted.rewrites}")
    after, guarded = (folder / f"{name}{drawn.path.suffix}" for name in ("after", "guarded"))
    conversion.write(after, overwrite=True)
    again = convert_with_guard(after)
    if again.refused or not again.is_empty:
        found.append(f"changed again: {[*again.refused, *(node.rewrites for node in again.converted)]}")
    only_guarded = convert(drawn.path, guard=guard, verify=0)
    only_guarded.write(guarded, overwrite=True)
    fed = feeds(chance, drawn, guard)
    (expected,) = evaluate_model(guarded, fed).values()
    if converted.assumptions:  # the inputs need not keep these promises
        return [f"{number}, {guard} to {to or targets}: {problem}" for problem in found]
    try:
        (result,) = evaluate_model(after, fed).values()
    except EvaluationFailed as error:
        found.append(f"{error}, {converted.rewrites}")
    else:
        if not np.allclose(result, expected):
            found.append(f"gives {result.tolist()}, expected {expected.tolist()}")
    return [f"{number}, {guard} to {to or targets}: {one}" for one in found]


@in_part_and_whole
def test_guarded_once(tmp_path: Path, figures: "Counter[str]", is_whole: bool) -> None:
    found = [one for number in cases(80, is_whole) for one in problems(number, tmp_path, figures)]
    assert found == []


if __name__ == "__main__":
    counted = Counter[str]()
    with TemporaryDirectory() as name:
        for case in range(int(sys.argv[1]), int(sys.argv[2])):
            print("\n".join(problems(case, Path(name), counted)))
    print(dict(counted))
