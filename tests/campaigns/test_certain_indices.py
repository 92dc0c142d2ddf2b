"""Computed indices that are reported as certainly out of range, against what NumPy computes.

Random graphs of `test_bounds` feed a scatter node. Where validate reports an error, the document forbids the
indices for all inputs that are drawn; where it reports nothing, some graphs are legal and some are not. As a
program, `python -m tests.campaigns.test_certain_indices IR 30000 [SEED]`, it draws as many graphs as asked for.
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import helper

import ir_scatter
from ir_scatter.ops.general_kernels import UnsupportedCase
from tests import scale
from tests.campaigns.test_bounds import OPERATORS, Drawn, Tensor, arrays_of, draw, write

GRAPHS, RUNS = 150, 4
CODES = {"SCT302", "SCT303"}


def _far(graph: Drawn) -> list[Tensor]:
    """Add a number, so that many indices are beyond the end."""
    data = graph.pick("i64", "i32", least=1)
    number = graph.constant(graph.source.choice((4, 6, 9, -6, -9)), data.type)
    return graph.node("Add", [data, number])


def _limited(graph: Drawn) -> list[Tensor]:
    """Limit numbers to a range that may be beyond the end."""
    data = graph.pick("i64", "i32", least=1)
    low = graph.source.choice((0, 2, 4, 5, -3, -8))
    high = low + graph.source.choice((0, 1, 3))
    if not graph.is_onnx:
        ends: dict[str, Any] = {"min": str(low), "max": str(high)}
        return graph.node("Clamp", [data], ends, compute_with=lambda arrays: np.clip(arrays[0], low, high))
    inputs = [data, graph.constant(low, data.type), graph.constant(high, data.type)]
    return graph.node("Clip", inputs, compute_with=lambda arrays: np.clip(*arrays))


MORE: tuple[Callable[[Drawn], list[Tensor]], ...] = (_far, _limited, *OPERATORS)


class Case:
    """A graph whose last tensor is the indices of a scatter node, and the sizes that they count on."""

    def __init__(self, dialect: str, number: int) -> None:
        self.graph = graph = draw(dialect, number)
        source = graph.source
        for _ in range(3):
            with suppress(UnsupportedCase, ValueError, IndexError):
                source.choice(MORE[: 2 + (source.random() < 0.5) * len(OPERATORS)])(graph)
        self.sizes = [source.choice((1, 2, 3, 5)) for _ in range(2)]
        made = [tensor for _, _, tensors, _ in graph.nodes for tensor in tensors]
        self.indices = next((t for t in reversed(made) if t.type == "i64" and t.array.ndim > 0), None)
        shape = () if self.indices is None else self.indices.shape
        self.is_tuples = graph.is_onnx or source.random() < 0.5
        depth = shape[-1] if shape else 0
        is_writable = self.indices is not None and len(shape) < 4 and 0 not in shape
        self.is_usable = is_writable and (depth in {1, 2} or not self.is_tuples)
        self.depth = depth if self.is_tuples else 1
        # negative indices count from the end, but not in ScatterUpdate-3
        self.counts_from_end = self.is_tuples

    def write(self, folder: Path) -> str:
        graph, indices = self.graph, self.indices
        assert indices is not None
        data = [*self.sizes, 2]
        rank = indices.array.ndim
        left = [*indices.shape[:-1], *data[self.depth :]] if self.is_tuples else [*indices.shape, *data[1:]]
        updates = left if indices.is_static else [-1] * len(left)
        if not graph.is_onnx:
            first, second = (
                graph.text.parameter("data", "f32", data),
                graph.text.parameter("new", "f32", updates),
            )
            inputs = [first, indices.ref, second]
            if self.is_tuples:
                made = graph.text.add(
                    "put", "ScatterNDUpdate", "opset15", inputs, [("f32", data)], {"reduction": "none"}
                )
            else:
                axis = graph.text.const("axis", "i64", 0)
                made = graph.text.add("put", "ScatterUpdate", "opset3", [*inputs, axis], [("f32", data)])
            graph.text.add("result", "Result", "opset1", [made], [])
            return write(graph, folder)
        assert rank
        graph.protos.append(helper.make_node("ScatterND", ["data", indices.ref, "new"], ["put"], name="put"))
        path = write(graph, folder)
        model = onnx.load(path)
        rows = ("data", data), ("new", left if indices.is_static else [None] * len(left))
        model.graph.input.extend([helper.make_tensor_value_info(name, 1, dims) for name, dims in rows])
        model.graph.output.append(helper.make_tensor_value_info("put", 1, data))
        onnx.save(model, path)
        return path

    def is_legal(self, indices: npt.NDArray[Any]) -> bool:
        table = indices.reshape(-1, self.depth).astype(np.int64)
        sizes = np.array(self.sizes[: self.depth])
        return bool(((table < sizes) & (table >= (-sizes if self.counts_from_end else 0))).all())


def look(dialect: str, count: int, start: int = 0) -> tuple[int, int, list[str]]:
    """Return how many nodes were checked, how many reported, and which are legal though they were reported."""
    checked, reported, wrong = 0, 0, list[str]()
    with TemporaryDirectory() as folder:
        for number in range(start, start + count):
            case = Case(dialect, number)
            if not case.is_usable:
                continue
            model = ir_scatter.read(case.write(Path(folder)))
            found = [one for one in ir_scatter.validate(model) if one.code in CODES]
            errors = [one for one in found if one.severity == "error"]
            checked, reported = checked + 1, reported + bool(found)
            for run in range(RUNS if found else 0):
                array = arrays_of(case.graph, run).get(id(case.indices))
                if array is None or (array.size == 0 and not errors):
                    continue
                if case.is_legal(array):
                    wrong.append(f"{dialect} graph {number}: {found[0].message}: {array.tolist()} is legal")
    return checked, reported, wrong


@pytest.mark.parametrize("dialect", ["IR", "ONNX"])
@scale.in_part_and_whole
def test_what_is_reported_is_illegal_for_all_inputs(dialect: str, is_whole: bool) -> None:
    count = len(scale.cases(GRAPHS, is_whole))
    checked, reported, wrong = look(dialect, count)
    assert wrong == []
    assert checked > count / 8
    assert reported > count / 40


if __name__ == "__main__":
    checked, reported, wrong = look(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if sys.argv[3:] else 0)
    print(f"{sys.argv[2]} graphs, {checked} nodes, {reported} reported, {len(wrong)} of them legal")
    print("\n".join(wrong[:40]))
