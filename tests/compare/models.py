"""Models of one scatter node, and short ways to compare them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ir_scatter import runners
from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.result import Compared, CompareSettings, Comparison, Level
from ir_scatter.compare.run import compare
from ir_scatter.compare.snapshot import type_of
from ir_scatter.formats.base import IR, ONNX_FORMAT, OneInput, OneNode
from tests.formats.ir_files import write_one

Array = npt.NDArray[Any]
Inputs = Mapping[str, Array]

_PORTS = ("data", "indices", "updates", "axis")


def write_node(
    folder: Path,
    type: str,
    opset: str | int,
    inputs: Sequence[Array],
    constants: Sequence[str] = ("axis",),
    **attributes: Any,
) -> tuple[Path, Inputs]:
    """Write a model of one node, of ONNX if the opset is a number; return its path and what is to be fed."""
    named = dict(zip(_PORTS, inputs, strict=False))
    made = [OneInput(name, type_of(array), array, name in constants) for name, array in named.items()]
    data = inputs[0]
    node = OneNode(type, opset, attributes, made, type_of(data), data.shape)
    path = write_one(IR if isinstance(opset, str) else ONNX_FORMAT, node, folder)
    return path, {name: array for name, array in named.items() if name not in constants}


def run(
    path: Path | str,
    names: Sequence[str],
    feeds: Inputs | None = None,
    *,
    with_numpy: bool = True,
    **settings: Any,
) -> Compared:
    """Compare a model; skip the test where a runner is missing."""
    made = [runners.find(name) for name in names]
    for runner in made:
        missing = runner.problem
        if missing:
            pytest.skip(f"{runner.name}: {missing}")
    try:
        return compare(
            path, made, CompareSettings(reference=with_numpy, **settings), with_numpy=with_numpy, feeds=feeds
        )
    finally:
        for runner in made:
            runner.close()


def verdicts(found: Compared, level: Level) -> dict[tuple[str, str], Verdict]:
    """Return the verdicts of a level by output or node, and runner."""
    return {
        (one.tensor if one.node is None else one.node, one.subject): one.measure.verdict
        for one in found.comparisons
        if one.level is level
    }


def only(found: Compared, level: Level, subject: str) -> Comparison:
    """Return the one comparison of a runner at a level."""
    (one,) = [one for one in found.comparisons if one.level is level and one.subject == subject]
    return one


def floats(*shape: int) -> Array:
    """Return numbers that differ, and that every floating-point type can hold."""
    return (np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 1) / 4
