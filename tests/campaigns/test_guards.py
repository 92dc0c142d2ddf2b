"""Guarded models on illegal indices: what NumPy gives against a loop, and where runtimes write."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter import convert, runners
from ir_scatter.core.arrays import Array
from ir_scatter.runners.base import Runner, Status
from tests.rewrites.test_guard import Form, computed, ir, of_onnx, with_drops, with_indices
from tests.scale import cases, generator, in_part_and_whole

RUNNERS = {"ir": "CPU", "onnx": "onnxruntime"}
HUGE = (2**31, 2**32 + 1, 2**40 + 1, -(2**31) - 1, -(2**40) - 1, 2**63 - 1, -(2**63))
OPERATORS: Mapping[str, tuple[tuple[str, Any], ...]] = {
    "ir": (
        ("ScatterUpdate", "opset3"), ("ScatterElementsUpdate", "opset3"), ("ScatterElementsUpdate", "opset12"),
        ("ScatterNDUpdate", "opset4"), ("ScatterNDUpdate", "opset15"),
    ),
    "onnx": (("ScatterElements", 11), ("ScatterElements", 18), ("ScatterND", 13), ("ScatterND", 18)),
}  # fmt: skip
REDUCTIONS = {
    "opset12": ("none", "sum", "prod", "min", "max", "mean"),
    "opset15": ("none", "sum", "sub", "prod", "min", "max"),
    18: ("none", "add", "mul", "min", "max"),
}


@pytest.fixture(scope="module")
def open_runners() -> Iterator[Mapping[str, Runner]]:
    found = {dialect: runners.find(name) for dialect, name in RUNNERS.items()}
    yield found
    for runner in found.values():
        runner.close()


@pytest.mark.openvino
@pytest.mark.onnxruntime
@pytest.mark.parametrize("dialect", ["onnx", "ir"])
@in_part_and_whole
def test_guarded_models(
    dialect: str, tmp_path: Path, figures: "Counter[str]", open_runners: Mapping[str, Runner], is_whole: bool
) -> None:
    pytest.importorskip("openvino")
    pytest.importorskip("onnxruntime")
    for number in cases(40, is_whole):
        chance = generator(f"guards of {dialect}", number)
        form, keywords = _form(chance, dialect, tmp_path)
        guard = chance.choice(["clamp", "drop", "wrap"])
        found, after = (
            convert(form.path, guard=guard, verify=2, seed=number),
            tmp_path / f"new{Path(form.path).suffix}",
        )
        assert not found.refused, (number, [one.message for one in found.refused])
        found.write(after, overwrite=True)
        assert convert(after, guard=guard, verify=0).is_empty, number
        figures[guard] += 1
        for indices in _drawn(chance, form, guard):
            fed = with_indices(form, indices)
            expected = _expected(form, keywords, guard, indices)
            np.testing.assert_allclose(
                computed(after, fed), expected, 1e-5, err_msg=f"case {number}, {guard}"
            )
            outcome = open_runners[dialect].run(after, fed, timeout=60)
            figures["runs"] += 1
            assert outcome.status is Status.OK, (number, outcome.message)
            (given,) = outcome.outputs.values()
            if dialect == "onnx" or np.abs(indices.astype(np.float64)).max() < 2**31:
                np.testing.assert_allclose(given, expected, 1e-5, err_msg=f"case {number}, {guard}")
            else:  # cut to 32 bits, and guarded then
                assert given.shape == expected.shape


def _form(chance: random.Random, dialect: str, folder: Path) -> tuple[Form, Any]:
    """Draw an operator, sizes, whether they are known, and a reduction; return its model and its arguments."""
    type, opset = chance.choice(OPERATORS[dialect])
    sizes = [chance.choice([2, 3, 5]), chance.choice([3, 4])]
    word = chance.choice(REDUCTIONS.get(opset, ("none",)))
    more: dict[str, Any] = {} if word == "none" else {"reduction": word}
    if opset == "opset12" and chance.random() < 0.5:
        more["use_init_val"] = "false"
    count = chance.randint(1, 4)
    counted_on: Any = sizes[0]
    if "ND" in type:
        depth = chance.randint(1, 2)
        indices: Any = np.zeros((count, depth))
        updates, counted_on = (count, *sizes[depth:]), tuple(sizes[:depth])
    elif type == "ScatterUpdate":
        indices, updates = np.zeros(count), (count, sizes[1])
        more["axis"] = 0
    else:
        width, count = chance.randint(1, sizes[1]), min(count, sizes[0])
        indices, updates = np.zeros((count, width)), (count, width)
        more["axis"] = 0
    arguments = {"indices": indices, "data": tuple(sizes), "updates": updates, "sizes": counted_on, **more}
    if dialect == "onnx":
        form = of_onnx(folder, type, opset, is_static=chance.random() < 0.5, **arguments)
    else:
        is_counted = opset in {"opset12", "opset15"}
        type_of_indices, known = chance.choice(["i64", "i32"]), chance.choice(["static", "dynamic"])
        arguments |= {"index_type": type_of_indices, "known": known, "is_wrapping": is_counted}
        form = ir(folder, type, opset, **arguments)
    if word == "none":  # which of several stays, no document says
        form.feeds["updates"][...] = 100
    else:
        form.feeds["data"] += 1
        form.feeds["updates"] /= 64
    return form, {"type": type, "opset": opset, **arguments}


def _drawn(chance: random.Random, form: Form, guard: str) -> Iterator[Array]:
    """Draw indices around the ends of their ranges, huge ones among them; of a wrap negative ones in range."""
    indices = form.feeds["indices"]
    sizes = np.broadcast_to(form.sizes, indices.shape).reshape(-1).tolist()
    for _ in range(3):
        numbers = [
            chance.randint(-size, size - 1)
            if guard == "wrap"
            else chance.choice(HUGE)
            if indices.dtype == np.int64 and chance.random() < 0.1
            else chance.randint(-size - 2, size + 1)
            for size in sizes
        ]
        yield np.array(numbers, indices.dtype).reshape(indices.shape)


class _Arguments:
    """The arguments of a form as `with_drops` reads them."""

    def __init__(self, keywords: Mapping[str, Any]) -> None:
        self.keywords = keywords

    def __str__(self) -> str:
        return str(self.keywords["opset"])


def _expected(form: Form, keywords: Mapping[str, Any], guard: str, indices: Array) -> Array:
    """Return what a guarded model gives: legal indices, in place of these, written one after the other."""
    if guard == "clamp":
        indices = form.clamped(indices)
    if guard == "wrap":
        indices = form.wrapped(indices)
    return with_drops(form, _Arguments(keywords), indices)
