"""Computed indices that are reported as certainly out of range, against what NumPy computes.

Random graphs of `test_bounds` feed a scatter node. Where validate reports an error, the document forbids the
indices for all inputs that are drawn; where it reports nothing, some graphs are legal and some are not. Others
compute indices from the shape of data that is open, or count in a loop. As a program,
`python -m tests.campaigns.test_certain_indices IR 30000 [SEED]`, it draws as many graphs as asked for.
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
from ir_scatter.analysis.interpreter import make_plans
from ir_scatter.evaluate.model import Program
from ir_scatter.formats import dataflow_of
from ir_scatter.ops.general_kernels import UnsupportedCase
from tests import scale
from tests.campaigns.test_bounds import OPERATORS, Drawn, Tensor, arrays_of, draw, write
from tests.models.ir_text import IrText
from tests.models.nested_ir import CONDITION, PARTS, carried, put_in, put_out, result

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


class OpenCase:
    """A graph that computes indices from the shape of data, whose sizes are open, or of an input like it."""

    def __init__(self, dialect: str, number: int) -> None:
        source = scale.generator(f"open {dialect}", number)
        is_onnx = dialect == "ONNX"
        self.graph = graph = Drawn(source, is_onnx, 18 if is_onnx else 0)
        self.data = graph.input("f32", (3, 4), is_static=False)
        self.other = graph.input("f32", (3, 4), is_static=False)
        self.reads_other = source.random() < 0.2
        self.target = self._like_data() if source.random() < 0.5 else self.data
        with suppress(UnsupportedCase, ValueError, IndexError):
            self._draw()
        made = [tensor for _, _, tensors, _ in graph.nodes for tensor in tensors]
        numbers = [tensor for tensor in made if tensor.type in {"i64", "i32"}]
        self.indices = self._column(numbers[-1]) if numbers else None

    def _like_data(self) -> Tensor:
        """Return a value with the sizes of data, or one more position."""
        graph, way = self.graph, self.graph.source.choice(("moved", "filled", "longer"))
        if way == "moved":
            number = graph.constant(1, "f32")
            return graph.node("Add", [self.data, number])[0]
        (shape,) = self._shape(self.data)
        if way == "longer":
            (shape,) = graph.node("Add", [shape, graph.constant([1, 0])])
        if not graph.is_onnx:
            fill = graph.constant(0, "f32")
            return graph.node("Broadcast", [fill, shape], {"mode": "numpy"}, version="opset3")[0]
        return graph.node("ConstantOfShape", [shape], compute_with=lambda arrays: np.zeros(arrays[0], "f4"))[
            0
        ]

    def _shape(self, tensor: Tensor) -> list[Tensor]:
        if self.graph.is_onnx:
            return self.graph.node("Shape", [tensor])
        return self.graph.node("ShapeOf", [tensor], {"output_type": "i64"}, version="opset3")

    def _draw(self) -> None:
        """Take a size, change it, count up to it, and change the numbers."""
        graph, choice = self.graph, self.graph.source.choice
        (shape,) = self._shape(self.other if self.reads_other else choice((self.data, self.target)))
        place = graph.constant(choice((0, 0, 0, 0, 1)))
        inputs, attributes = ([shape, place], {"axis": 0}) if graph.is_onnx else (None, {})
        inputs = inputs or [shape, place, graph.constant(0)]
        (size,) = graph.node("Gather", inputs, attributes, version="opset8")
        for _ in range(choice((0, 1, 1, 2))):
            size = self._changed(size)
        if choice((True, True, False)):
            start = choice((0, 0, 1, 2, size))
            ends = [start if isinstance(start, Tensor) else graph.constant(start, size.type), size]
            if isinstance(start, Tensor):
                ends[1] = self._changed(size)
            step = choice((1, 1, 1, 2, -1))
            ends = ends[::-1] if step < 0 else ends
            types = {} if graph.is_onnx else {"output_type": size.type}
            inputs = [*ends, graph.constant(step, size.type)]
            (size,) = graph.node("Range", inputs, types, version="opset4", is_static=False)
        for _ in range(choice((0, 1, 1, 2))):
            size = self._changed(size)

    def _changed(self, numbers: Tensor) -> Tensor:
        graph, choice = self.graph, self.graph.source.choice
        ways = ("reversed", "size", "Mod", "Max", "Concat", "Concat", "Sub")
        way = choice(("Add", *ways)) if graph.source.random() < 0.5 else "Add"
        if way == "size":
            (shape,) = self._shape(choice((self.data, self.target)))
            if shape.type == numbers.type:
                reduced = graph.node("ReduceMin", [shape, graph.constant([0])], {}, **_KEEPS[graph.is_onnx])
                return graph.node("Add", [numbers, reduced[0]])[0]
            return numbers
        if way == "Concat":
            number = graph.constant([choice((0, 1, 9))], numbers.type)
            if numbers.array.ndim != 1:
                return numbers
            return graph.node("Concat", choice(([numbers, number], [number, numbers])), {"axis": 0})[0]
        number = graph.constant(choice((1, 1, 2, 3)), numbers.type)
        names = {"Sub": "Subtract", "Mod": "FloorMod", "Max": "Maximum", "reversed": "Subtract"}
        type = {"reversed": "Sub"}.get(way, way) if graph.is_onnx else names.get(way, way)
        inputs = [number, numbers] if way == "reversed" else [numbers, number]
        return graph.node(type, inputs)[0]

    def _column(self, numbers: Tensor) -> Tensor:
        """Return numbers as tuples with one coordinate, or in an IR as a list."""
        graph = self.graph
        if graph.is_onnx:
            (numbers,) = graph.node("Cast", [numbers], {"to": 7})
        dims = graph.constant([-1, 1] if graph.is_onnx else [-1])
        return graph.node("Reshape", [numbers, dims], {} if graph.is_onnx else {"special_zero": "false"})[0]

    def write(self, folder: Path) -> str:
        graph, indices = self.graph, self.indices
        assert indices is not None
        if not graph.is_onnx:
            new = graph.text.parameter("new", "f32", [-1, -1])
            inputs = [self.target.ref, indices.ref, new, graph.text.const("axis", "i64", 0)]
            made = graph.text.add("put", "ScatterUpdate", "opset3", inputs, [("f32", [-1, -1])])
            graph.text.add("result", "Result", "opset1", [made], [])
            return write(graph, folder)
        node = helper.make_node("ScatterND", [self.target.ref, indices.ref, "new"], ["put"], name="put")
        graph.protos.append(node)
        path = write(graph, folder)
        model = onnx.load(path)
        model.graph.input.append(helper.make_tensor_value_info("new", 1, [None, None]))
        model.graph.output.append(helper.make_tensor_value_info("put", 1, [None, None]))
        onnx.save(model, path)
        return path

    def runs(self) -> list[tuple[npt.NDArray[Any], int]]:
        """Return the indices, and the size that they count on, for several sizes of data."""
        found = []
        sizes = [(first, second) for first in (0, 1, 2, 5) for second in (1, 3, 6)]
        for run, shape in enumerate(sizes):
            shapes = {id(self.data): shape, id(self.other): sizes[(5 * run + 2) % len(sizes)]}
            arrays = arrays_of(self.graph, run, shapes)
            indices, target = arrays.get(id(self.indices)), arrays.get(id(self.target))
            if indices is not None and target is not None:
                found.append((indices, target.shape[0]))
        return found


_KEEPS: dict[bool, dict[str, Any]] = {
    is_onnx: {"compute_with": lambda arrays: arrays[0].min(keepdims=True)} for is_onnx in (False, True)
}


def look_at_open(dialect: str, count: int, start: int = 0) -> tuple[int, int, list[str]]:
    """Return the same as `look` of graphs whose data is open."""
    checked, reported, wrong = 0, 0, list[str]()
    with TemporaryDirectory() as folder:
        for number in range(start, start + count):
            case = OpenCase(dialect, number)
            if case.indices is None:
                continue
            model = ir_scatter.read(case.write(Path(folder)))
            found = [one for one in ir_scatter.validate(model) if one.code in CODES]
            is_error = any(one.severity == "error" for one in found)
            checked, reported = checked + 1, reported + bool(found)
            for indices, size in case.runs() if found else ():
                least = -size if case.graph.is_onnx else 0
                is_legal = bool(((indices < size) & (indices >= least)).all())
                if is_legal and (is_error or indices.size):
                    numbers = f"{indices.reshape(-1).tolist()} of {size}"
                    wrong.append(f"open {dialect} {number}: {found[0].message}: {numbers} is legal")
    return checked, reported, wrong


class LoopCase:
    """A loop that writes at a number it counts by hand."""

    def __init__(self, dialect: str, number: int) -> None:
        source = scale.generator(f"loop {dialect}", number)
        self.is_onnx = dialect == "ONNX"
        self.start, self.step = source.choice((0, 0, 1, 3, -2)), source.choice((1, 1, 1, 2, -1))
        self.trips = source.choice((1, 2, 4, 5, 6, 9))
        self.end, self.shift = source.choice((2, 3, 4, 5, 6, 8)), source.choice((0, 0, 1, -1))
        self.condition = source.choice(("always", "next", "now", "at most"))
        self.is_guarded = self.is_onnx and source.random() < 0.3
        self.is_cut = not self.is_onnx and source.random() < 0.4
        self.updates_of_next = source.random() < 0.3

    def write(self, folder: Path) -> str:
        if not self.is_onnx:
            return self._write_ir(folder)
        goes_on = {
            "always": "Identity (ci)", "next": "Less (next, end)", "now": "Less (i, end)",
            "at most": "LessOrEqual (next, end)",
        }[self.condition]  # fmt: skip
        put = f"""place = Add ({"next" if self.updates_of_next else "i"}, shift)
            at = Reshape (place, column)
            written = ScatterND (before, at, row)"""
        if self.is_guarded:
            put = f"""small = Less (i, end)
            written = If (small) <
                then_branch = t () => (float[5, 3] inner) {{ {put.replace("written", "inner")} }},
                else_branch = f () => (float[5, 3] same) {{ same = Identity (before) }}
            >"""
        model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 18]>
        case (float[5, 3] data) => (int64 last, float[5, 3] y)
        <int64 trips = {{{self.trips}}}, bool yes = {{1}}, int64 start = {{{self.start}}},
         int64 step = {{{self.step}}}, int64 end = {{{self.end}}}, int64 shift = {{{self.shift}}},
         int64[2] column = {{1, 1}}, float[1, 3] row = {{1, 2, 3}}>
        {{
            last, y = Loop (trips, yes, start, data) <
                body = b (int64 k, bool ci, int64 i, float[5, 3] before)
                    => (bool goes, int64 next, float[5, 3] written)
                {{
                    next = Add (i, step)
                    goes = {goes_on}
                    {put}
                }}
            >
        }}""")
        path = folder / "loop.onnx"
        onnx.save(model, path)
        return str(path)

    def _write_ir(self, folder: Path) -> str:
        ir = IrText()
        data, start = ir.parameter("data", shape=(5, 3)), ir.const("start", "i64", [self.start])
        body = IrText(ir.weights)
        i, before = body.parameter("i", "i64", (1,)), body.parameter("before", shape=(5, 3))
        rows = body.parameter("row", shape=(1, 3)) if self.is_cut else body.const("row", "f32", [[1, 2, 3]])
        one, boolean = [("i64", [1])], [("boolean", [1])]
        after = body.add("next", "Add", "opset1", [i, body.const("step", "i64", [self.step])], one)
        shift, end = body.const("shift", "i64", [self.shift]), body.const("end", "i64", [self.end])
        at = body.add("at", "Add", "opset1", [after if self.updates_of_next else i, shift], one)
        inputs = [before, at, rows, body.const("axis", "i64", 0)]
        put = body.add("put", "ScatterUpdate", "opset3", inputs, [("f32", (5, 3))])
        back = carried([(result(body, after), i), (result(body, put), before)])
        last = body.count - 1
        if self.is_cut:
            whole = ir.parameter("rows", shape=(self.trips, 3))
            maps = [put_in(0, rows, PARTS), put_in(1, i), put_in(2, before), put_out(3, last)]
            type, version, outer = "TensorIterator", "opset1", [whole, start, data]
        else:
            comparison = {"at most": "LessEqual"}.get(self.condition, "Less")
            compared = i if self.condition == "now" else after
            goes_on = (
                body.const("goes", "boolean", [True])
                if self.condition == "always"
                else body.add("goes", comparison, "opset1", [compared, end], boolean)
            )
            number = result(body, goes_on)
            maps = [put_in(2, i), put_in(3, before), put_out(4, last), put_out(-1, number, CONDITION)]
            type, version = "Loop", "opset5"
            outer = [ir.const("trips", "i64", self.trips), ir.const("yes", "boolean", True), start, data]
        inside = f"<port_map>{''.join(maps)}</port_map>{back}" + body.body("body")
        made = ir.add("loop", type, version, outer, [("f32", (5, 3))], inside=inside)
        result(ir, made)
        return ir.write(folder, "loop")

    def inputs(self) -> dict[str, npt.NDArray[Any]]:
        rows = {"rows": np.ones((self.trips, 3), np.float32)} if self.is_cut else {}
        return {"data": np.zeros((5, 3), np.float32), **rows}


def look_at_loops(dialect: str, count: int, start: int = 0) -> tuple[int, int, list[str]]:
    """Return how many loops were run, how many reported, and which reports are wrong or missing."""
    reported, wrong = 0, list[str]()
    with TemporaryDirectory() as folder:
        for number in range(start, start + count):
            case = LoopCase(dialect, number)
            model = ir_scatter.read(case.write(Path(folder)))
            found = [one for one in ir_scatter.validate(model) if one.code in CODES]
            main = dataflow_of(model)
            plans = make_plans(main, model.path)
            try:  # without the rules, which refuse what is reported
                Program(model.path, plans[main], plans).run(case.inputs())
                is_legal = True
            except (ir_scatter.EvaluationFailed, ir_scatter.IllegalIndex):
                is_legal = False
            reported += bool(found)
            if is_legal and found:
                wrong.append(f"loop {dialect} {number}: {found[0].message}, but it is legal")
            if not is_legal and not found and not case.is_guarded:
                wrong.append(f"loop {dialect} {number}: nothing is reported")
    return count, reported, wrong


LOOKS = {"graphs": look, "open": look_at_open, "loops": look_at_loops}


@pytest.mark.parametrize("look", [look_at_open, look_at_loops], ids=["open", "loops"])
@pytest.mark.parametrize("dialect", ["IR", "ONNX"])
@scale.in_part_and_whole
def test_indices_that_follow_sizes_and_counters(
    look: Callable[[str, int], tuple[int, int, list[str]]], dialect: str, is_whole: bool
) -> None:
    count = len(scale.cases(GRAPHS, is_whole))
    checked, reported, wrong = look(dialect, count)
    assert wrong == []
    assert checked > count / 2
    assert reported > count / 10


@pytest.mark.parametrize("dialect", ["IR", "ONNX"])
@scale.in_part_and_whole
def test_what_is_reported_is_illegal_for_all_inputs(dialect: str, is_whole: bool) -> None:
    count = len(scale.cases(GRAPHS, is_whole))
    checked, reported, wrong = look(dialect, count)
    assert wrong == []
    assert checked > count / 8
    assert reported > count / 40


if __name__ == "__main__":
    for kind, look_at in LOOKS.items():
        checked, reported, wrong = look_at(
            sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if sys.argv[3:] else 0
        )
        print(f"{sys.argv[2]} {kind}, {checked} nodes, {reported} reported, {len(wrong)} of them wrong")
        print("\n".join(wrong[:40]))
