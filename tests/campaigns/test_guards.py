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
from tests.campaigns.test_conversions import failures
from tests.rewrites.test_guard import Form, computed, ir, of_onnx, with_drops, with_indices
from tests.scale import cases, generator, in_part_and_whole

RUNNERS = {"ir": "CPU", "onnx": "onnxruntime", "deep": "GPU@cpu"}
"""By dialect; a "deep" model is an IR with static shapes, whose data and indices have any rank from 1 to 8."""
LARGEST_RANK = 8
HUGE = (2**31, 2**32 + 1, 2**40 + 1, -(2**31) - 1, -(2**40) - 1, 2**63 - 1, -(2**63))
_OF_IR = (
    ("ScatterUpdate", "opset3"), ("ScatterElementsUpdate", "opset3"), ("ScatterElementsUpdate", "opset12"),
    ("ScatterNDUpdate", "opset4"), ("ScatterNDUpdate", "opset15"),
)  # fmt: skip
OPERATORS: Mapping[str, tuple[tuple[str, Any], ...]] = {
    "ir": _OF_IR,
    "deep": _OF_IR,
    "onnx": (("ScatterElements", 11), ("ScatterElements", 18), ("ScatterND", 13), ("ScatterND", 18)),
}  # fmt: skip
REDUCTIONS = {
    "opset12": ("none", "sum", "prod", "min", "max", "mean"),
    "opset15": ("none", "sum", "sub", "prod", "min", "max"),
    18: ("none", "add", "mul", "min", "max"),
}


@pytest.fixture(scope="module")
def open_runners() -> Iterator[dict[str, Runner]]:
    found = dict[str, Runner]()
    yield found
    for runner in found.values():
        runner.close()


@pytest.mark.openvino
@pytest.mark.onnxruntime
@pytest.mark.parametrize("dialect", RUNNERS)
@in_part_and_whole
def test_guarded_models(
    dialect: str, tmp_path: Path, figures: "Counter[str]", open_runners: dict[str, Runner], is_whole: bool
) -> None:
    pytest.importorskip("openvino")
    pytest.importorskip("onnxruntime")
    runner = open_runners.setdefault(dialect, runners.find(RUNNERS[dialect]))
    if not runner.availability().is_available:
        pytest.skip(f"{runner.name} does not run here")
    for number in cases(10 if dialect == "deep" else 40, is_whole):
        check(dialect, number, tmp_path, figures, runner)


def check(dialect: str, number: int, folder: Path, figures: "Counter[str]", runner: Runner) -> None:
    """Guard a model, and demand what a loop gives of NumPy and a runtime."""
    chance = generator(f"guards of {dialect}", number)
    form, keywords = (_deep_form if dialect == "deep" else _form)(chance, dialect, folder)
    guard = chance.choice(["clamp", "drop", "wrap"])
    found, after = (
        convert(form.path, guard=guard, verify=2, seed=number),
        folder / f"new{Path(form.path).suffix}",
    )
    assert not found.refused, (number, [one.message for one in found.refused])
    found.write(after, overwrite=True)
    assert convert(after, guard=guard, verify=0).is_empty, number
    figures[guard] += 1
    is_known = dialect == "deep" and bool(failures(runner.name, after))
    if dialect == "deep":
        figures[f"rank {form.feeds['data'].ndim}"] += 1
        figures["known to fail"] += is_known
    for indices in _drawn(chance, form, guard):
        fed = with_indices(form, indices)
        expected = _expected(form, keywords, guard, indices)
        np.testing.assert_allclose(computed(after, fed), expected, 1e-5, err_msg=f"case {number}, {guard}")
        if is_known:
            continue
        outcome = runner.run(after, fed, timeout=60)
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
    _settle(form, word)
    return form, {"type": type, "opset": opset, **arguments}


def _settle(form: Form, word: str) -> None:
    """Give updates numbers by which a result depends on no order."""
    if word == "none":  # which of several stays, no document says
        form.feeds["updates"][...] = 100
    else:
        form.feeds["data"] += 1
        form.feeds["updates"] /= 64


def _deep_form(chance: random.Random, dialect: str, folder: Path) -> tuple[Form, Any]:
    """Draw an operator on data of any rank, all of whose sizes the file says; return model and arguments."""
    type, opset = chance.choice(OPERATORS[dialect])
    rank = chance.randint(1, LARGEST_RANK)
    sizes = tuple(chance.choice([1, 2, 3] if rank <= 4 else [1, 2, 2]) for _ in range(rank))
    word = chance.choice(REDUCTIONS.get(opset, ("none",)))
    more: dict[str, Any] = {} if word == "none" else {"reduction": word}
    if opset == "opset12" and chance.random() < 0.5:
        more["use_init_val"] = "false"
    counted_on: Any
    if "ND" in type:
        depth = chance.randint(1, rank)
        largest = (
            min(LARGEST_RANK, LARGEST_RANK + depth - rank) - 1
        )  # so that updates have 8 dimensions at most
        leading = [chance.randint(1, 2) for _ in range(chance.randint(1, largest))]
        indices, updates = np.zeros((*leading, depth)), (*leading, *sizes[depth:])
        counted_on = sizes[:depth]
    else:
        axis = chance.randrange(rank)
        counted_on, more["axis"] = sizes[axis], axis
        if type == "ScatterUpdate":
            count = chance.randint(1, 3)
            indices, updates = np.zeros(count), (*sizes[:axis], count, *sizes[axis + 1 :])
        else:
            updates = tuple(chance.randint(1, size) for size in sizes)
            indices = np.zeros(updates)
    index_type = chance.choice(["i64", "i32"])
    arguments = {"indices": indices, "data": sizes, "updates": updates, "sizes": counted_on, **more}
    arguments |= {"index_type": index_type, "is_wrapping": opset in {"opset12", "opset15"}}
    form = ir(folder, type, opset, **arguments)
    _settle(form, word)
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
