"""Loops whose iterations are computed by bound functions, against the same loops computed node by node."""

import random
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ir_scatter.analysis import interpreter
from ir_scatter.analysis.interpreter import Forward, NotComputed, OutOfTime, Shortcut
from ir_scatter.compare.guard import Observations, Watcher
from ir_scatter.core.arrays import bits_of
from ir_scatter.core.errors import Error
from ir_scatter.evaluate.model import ForwardArrays, Program, check_feeds, prepare
from ir_scatter.evaluate.operator import make_case
from ir_scatter.inputs.model import draw_feeds
from ir_scatter.ops.general import ROWS
from ir_scatter.ops.general_kernels import bind, compute
from ir_scatter.ops.kernels.apply import bind_scatter, scatter
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import Layout
from tests.campaigns.body_models import write
from tests.models.cases import random_case
from tests.models.nested_ir import write_iterator, write_loop
from tests.models.onnx_text import LEGAL, save

ALL, NONE = 1, -1
"""Values of `Forward.first_shortcut`: bind after one iteration, or never."""

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
DTYPES: dict[int, Any] = {F32: np.float32, I64: np.int64, BOOL: np.bool_}


class Body:
    """A random body of a loop: values of f32 [5] and of i64 [] or [1], from the number of the iteration on."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.nodes, self.count = chance, list[onnx.NodeProto](), 0
        self.vectors, self.numbers, self.lists, self.truths = ["x", "table"], ["i", "n"], list[str](), ["c"]

    def add(self, type: str, *inputs: str, **attributes: Any) -> str:
        self.count += 1
        self.nodes.append(helper.make_node(type, inputs, [f"v{self.count}"], **attributes))
        return f"v{self.count}"

    def const(self, values: Any, type: int = I64) -> str:
        return self.add("Constant", value=numpy_helper.from_array(np.array(values, DTYPES[type])))

    def grow(self) -> None:
        """Add one node, or a few that belong together."""
        chance, pick = self.chance, self.chance.choice
        vector, number = pick(self.vectors), pick(self.numbers)
        place = self.add("Mod", number, self.const(pick([5, 4, 3])))
        if chance.random() < 0.3:
            place = self.add("Sub", place, self.const(pick([1, 2, 5])))
        one = self.add("Unsqueeze", place, self.const([0]))
        two = self.add("Concat", one, self.const([pick([0, 1, -1])]), axis=0)
        kinds = ["arithmetic", "gather", "choice", "shape", "cast", "reduce", *["numbers", "scatter"] * 3]
        match pick(kinds):
            case "arithmetic":
                type = pick(["Add", "Sub", "Mul", "Div", "Min", "Max"])
                self.vectors.append(self.add(type, vector, pick(self.vectors)))
                self.vectors.append(self.add(pick(["Neg", "Abs", "Floor", "Ceil", "Relu", "Sqrt"]), vector))
            case "numbers":
                type = pick(["Add", "Sub", "Mul", "Min", "Max"])
                self.numbers.append(self.add(type, number, pick(self.numbers)))
                self.numbers.append(self.add(pick(["Div", "Mod"]), number, self.const(pick([7, -3, 2]))))
                self.numbers.append(self.add("Div", number, pick(self.numbers)))
            case "gather":
                scalar = self.add("Gather", vector, place)
                self.vectors.append(self.add("Add", vector, scalar))
                self.vectors.append(self.add("Mul", vector, self.add("Gather", vector, one)))
                self.vectors.append(self.add("Sub", vector, self.add("GatherElements", vector, one)))
                tuple = self.add("Unsqueeze", one, self.const([0]))
                self.vectors.append(self.add("Add", vector, self.add("GatherND", vector, tuple)))
                pair = self.add("Gather", vector, two)
                self.vectors.append(self.add("Add", vector, self.add("ReduceMax", pair, keepdims=1)))
            case "scatter":
                indices = pick([one, two])
                updates = self.add("Gather", pick(self.vectors), self.add("Neg", indices))
                options = {} if chance.random() < 0.4 else {"reduction": pick(["add", "mul", "min", "max"])}
                self.vectors.append(self.add("ScatterElements", vector, indices, updates, **options))
                tuples = self.add("Unsqueeze", indices, self.const([1]))
                self.vectors.append(self.add("ScatterND", vector, tuples, updates, **options))
            case "choice":
                truth = self.add(pick(["Less", "Equal", "GreaterOrEqual"]), number, pick(self.numbers))
                self.truths.append(self.add(pick(["And", "Or", "Xor"]), truth, pick(self.truths)))
                self.vectors.append(self.add("Where", self.truths[-1], vector, pick(self.vectors)))
                self.numbers.append(self.add("Where", truth, number, pick(self.numbers)))
            case "shape":
                flat = self.add("Reshape", self.add("Unsqueeze", vector, self.const([0])), self.const([-1]))
                self.vectors.append(self.add("Identity", flat))
                square = self.add("Transpose", self.add("Unsqueeze", vector, self.const([0])))
                self.vectors.append(self.add("Squeeze", square))
                size = self.add("Size", vector)
                self.numbers.append(self.add("Add", size, number))
            case "cast":
                number = self.add("Cast", number, to=F32)
                self.vectors.append(self.add("Add", vector, number))
                self.numbers.append(self.add("Cast", self.add("Gather", vector, place), to=I64))
            case _:
                total = self.add("ReduceSum", vector, keepdims=0)
                self.vectors.append(self.add("Add", vector, total))
                self.vectors.append(self.add("CumSum", vector, self.const(0)))


def random_loop(seed: int, folder: Path) -> Path:
    """Write a loop with a carried vector and number, a captured table, and two outputs of parts."""
    chance = random.Random(seed)
    body = Body(chance)
    for _ in range(chance.randrange(1, 6)):
        body.grow()
    body.nodes += [
        helper.make_node("Identity", [chance.choice(body.truths)], ["goes_on"]),
        helper.make_node("Identity", [body.vectors[-1]], ["x_out"]),
        helper.make_node("Identity", [body.numbers[-1]], ["n_out"]),
        helper.make_node("Identity", [chance.choice(body.vectors)], ["part"]),
        helper.make_node("Identity", [chance.choice(body.numbers)], ["count"]),
    ]
    info = helper.make_tensor_value_info
    inner = helper.make_graph(
        body.nodes,
        "body",
        [info("i", I64, []), info("c", BOOL, []), info("x", F32, [5]), info("n", I64, [])],
        [
            info("goes_on", BOOL, []), info("x_out", F32, [5]), info("n_out", I64, []),
            info("part", F32, [5]), info("count", I64, []),
        ],
    )  # fmt: skip
    names = ["y", "m", "parts", "counts"]
    loop = helper.make_node("Loop", ["trips", "", "start", "zero"], names, body=inner)
    graph = helper.make_graph(
        [loop],
        "model",
        [info("start", F32, [5]), info("table", F32, [5])],
        [info("y", F32, [5]), info("m", I64, []), info("parts", F32, [None, 5]), info("counts", I64, [None])],
        [
            numpy_helper.from_array(np.array(chance.choice([3, 12, 30])), "trips"),
            numpy_helper.from_array(np.array(chance.choice([0, 1])), "zero"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    path = folder / f"loop_{seed}.onnx"
    onnx.save(model, path)
    return path


def _result(forward: Any, program: Program, cells: Any) -> Any:
    try:
        return [_plain(cell) for cell in forward.run(program.plan, cells)]
    except Error as error:
        return str(error)


def _plain(cell: Any) -> Any:
    """Return a cell in a form that can be compared: bits of the array, and of the mark."""
    mark = getattr(cell, "mark", None)
    array, end = getattr(cell, "array", cell), getattr(cell, "end", cell)
    marked = None if mark is None else (mark.why, None if mark.origins is None else mark.origins.tolist())
    if isinstance(array, np.ndarray):
        return array.dtype.name, array.shape, array.tobytes(), marked
    return (end.source, marked) if isinstance(end, NotComputed) else cell


class Counting(ForwardArrays):
    """Counts the iterations that bound functions compute."""

    fast_iterations = 0

    def advance(self, *arguments: Any) -> Any:
        progress = super().advance(*arguments)
        if progress is not None:
            self.fast_iterations += progress.done - arguments[6]
        return progress


def _both_ways(path: Path | str, feeds: Any) -> int:
    """Check that both ways give the same results and observations; return the count of fast iterations."""
    program = prepare(path)
    arrays = check_feeds(program.inputs, feeds)
    fast, slow = Counting(program.plans), ForwardArrays(program.plans)
    fast.first_shortcut, slow.first_shortcut = ALL, NONE
    assert _result(fast, program, arrays) == _result(slow, program, arrays)
    assert fast.iterations == slow.iterations
    seen = []
    for first in (ALL, NONE):
        observations = Observations(())
        watcher = Watcher(program.plans, observations)
        watcher.first_shortcut = first
        try:
            cells = [_plain(tensor) for tensor in watcher.watch(program.plan, arrays)]
        except Error as error:
            cells = [str(error)]
        seen.append((cells, observations.guarded, observations.entered))
    assert seen[0] == seen[1]
    return fast.fast_iterations


def _drawn_both_ways(path: Path | str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that both ways draw the same inputs."""
    program, drawn = prepare(path), []
    for first in (ALL, NONE):
        monkeypatch.setattr(Forward, "first_shortcut", first)
        try:
            inputs = draw_feeds(program, 3)
        except Error as error:
            drawn.append(str(error))
            continue
        assert inputs.run is not None
        feeds = {name: array.tolist() for name, array in inputs.feeds.items()}
        drawn.append(repr((feeds, inputs.repeated, inputs.run.computed, inputs.run.entered)))
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, 8))])
def test_random_loops(part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Any) -> None:
    for seed in range(part * 20, part * 20 + 20):
        path = random_loop(seed, tmp_path)
        numbers = np.random.default_rng(seed)
        feeds = {name: numbers.integers(-9, 9, 5).astype(np.float32) / 2 for name in ("start", "table")}
        fast = _both_ways(path, feeds)
        figures["fast iterations"] += fast
        figures["models"] += 1
        figures["models with fast iterations"] += fast > 0
        if seed % 4 == 0:
            _drawn_both_ways(path, monkeypatch)
    assert figures["models with fast iterations"] > 5


HEADER = '<ir_version: 10, opset_import: ["" : 18]>\n'
LATE = {
    "an element is contested in some iterations": (
        "three = Constant <value = int64 {3}> () k = Mod (i, three) zero = Constant <value = int64[1] {0}> ()"
        "one = Constant <value = int64[1] {1}> () kk = Unsqueeze (k, zero)"
        "at = Concat <axis = 0> (kk, one) new = Gather (table, zero_one)"
        "o = ScatterElements (x, at, new)"
    ),
    "NaN meets numbers in some iterations": (
        "ten = Constant <value = int64 {10}> () e = Sub (ten, i) f = Cast <to = 1> (e)"
        "q = Div (f, f) zero = Constant <value = int64[1] {0}> () u = Unsqueeze (q, zero)"
        "o = ScatterElements <reduction = \"max\"> (x, zero, u)"
    ),
    "an index is out of range in the end": (
        "zero = Constant <value = int64[1] {0}> () m = ReduceMax (table) n = Cast <to = 7> (m)"
        "four = Constant <value = int64 {4}> () s = Sub (n, four) ii = Unsqueeze (i, zero) kk = Add (ii, s)"
        "u = Gather (table, zero)"
        "o = ScatterElements (x, kk, u)"
    ),
    "an integer is divided by zero in the end": (
        "ten = Constant <value = int64 {20}> () e = Sub (ten, i) q = Div (ten, e) f = Cast <to = 1> (q)"
        "o = Add (x, f)"
    ),
    "an element is gathered from beyond in the end": (
        "t = Gather (table, i) o = Add (x, t)"
    ),
    "a number does not fit in the end": (
        "big = Constant <value = float {1e17}> () f = Cast <to = 1> (i) p = Mul (f, big) n = Cast <to = 7> (p)"
        "g = Cast <to = 1> (n) o = Add (x, g)"
    ),
    "a carried value grows": "o = Concat <axis = 0> (x, x)",
}  # fmt: skip


@pytest.mark.parametrize("name", LATE)
def test_iterations_that_differ(name: str, tmp_path: Path) -> None:
    trips = 10 if name == "a carried value grows" else 200 if "fit" in name else 30
    text = HEADER + (
        f"g (float[5] x0, float[5] table) => (float[N] y) <int64 trips = {{{trips}}},"
        "int64[2] zero_one = {0, 1}> {"
        "y = Loop (trips, , x0) < body = b (int64 i, bool c, float[N] x) => (bool d, float[N] o)"
        f" {{ d = Identity (c) {LATE[name]} }} > }}"
    )
    path = save(text, tmp_path / "model.onnx")
    fast = _both_ways(path, {"x0": X, "table": X[::-1].copy()})
    assert (fast > 2) is (name != "a carried value grows")


@pytest.mark.parametrize("name", LEGAL)
def test_models_of_other_tests(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(LEGAL[name], tmp_path / "model.onnx")
    _drawn_both_ways(path, monkeypatch)
    _both_ways(path, draw_feeds(prepare(path), 1).feeds)


@pytest.mark.parametrize("is_backward", [False, True])
def test_iterators_of_an_ir(is_backward: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in (1, 2):
        path = write_iterator(tmp_path, is_backward=is_backward, part=part)
        _drawn_both_ways(path, monkeypatch)
        assert _both_ways(path, draw_feeds(prepare(path), 1).feeds)
    path = write_loop(tmp_path, 12)
    _both_ways(path, draw_feeds(prepare(path), 1).feeds)


@pytest.mark.long
@pytest.mark.parametrize("is_onnx", [False, True])
def test_random_bodies(is_onnx: bool, tmp_path: Path) -> None:
    for seed in range(20):
        path, _ = write(random.Random(seed), tmp_path, is_onnx=is_onnx, name=f"model_{seed}")
        program = prepare(path)
        _both_ways(path, draw_feeds(program, seed).feeds)


X = np.array([-2.5, -0.0, 0.0, 1.5, 4.0], np.float32)
N = np.array([-7, -1, 0, 3, 9])
LISTS: list[np.ndarray[Any, Any]] = [np.array([number]) for number in (-6, -5, -1, 0, 2, 5)]
SCALARS: list[np.ndarray[Any, Any]] = [np.array(number) for number in (-6, -5, -1, 0, 2, 5)]

Arrays = list[np.ndarray[Any, Any]]
KERNELS: dict[str, tuple[str, str, dict[str, Any], list[Arrays]]] = {
    "sums": ("", "Add", {}, [[X, X], [X + 1, X[::-1]]]),
    "scalar sums": ("", "Add", {}, [[a, b] for a in SCALARS for b in SCALARS]),
    "scalar products": ("openvino", "Multiply", {}, [[a, b] for a in SCALARS for b in SCALARS]),
    "quotients": ("", "Div", {}, [[a, b] for a in SCALARS for b in SCALARS]),
    "quotients of lists": ("", "Div", {}, [[a, b] for a in LISTS for b in SCALARS]),
    "quotients that round down": ("openvino", "Divide", {}, [[a, b] for a in LISTS for b in SCALARS]),
    "quotients of several": ("", "Div", {}, [[N, b] for b in SCALARS]),
    "quotients of fractions": ("", "Div", {}, [[X, X], [X, X[::-1]]]),
    "remainders": ("", "Mod", {}, [[a, b] for a in SCALARS for b in SCALARS]),
    "remainders of the dividend": ("", "Mod", {"fmod": 1}, [[a, b] for a in LISTS for b in SCALARS]),
    "remainders of an ir": ("openvino", "FloorMod", {}, [[a, b] for a in SCALARS for b in SCALARS]),
    "truncated remainders of an ir": ("openvino", "Mod", {}, [[a, b] for a in SCALARS for b in SCALARS]),
    "narrow numbers": (
        "", "Div", {},
        [[np.array(a, np.int8), np.array(b, np.int8)] for a in (-128, 5) for b in (-1, 3)],
    ),
    "minima": ("", "Min", {}, [[X, X[::-1]], [X, np.full(5, np.nan, np.float32)]]),
    "comparisons": ("", "Less", {}, [[a, b] for a in SCALARS for b in SCALARS]),
    "roots": ("", "Sqrt", {}, [[X], [abs(X)]]),
    "roots of integers": ("openvino", "Sqrt", {}, [[abs(N)], [N]]),
    "absolute values": ("", "Abs", {}, [[a] for a in SCALARS]),
    "rectified": ("", "Relu", {}, [[X], [np.full(5, np.nan, np.float32)]]),
    "choices": (
        "", "Where", {}, [[np.array(truth), a, b] for truth in (True, False) for a, b in [(SCALARS[0], SCALARS[3])]],
    ),
    "gathered": ("", "Gather", {}, [[X, a] for a in SCALARS]),
    "gathered by a list": ("", "Gather", {}, [[X, a] for a in LISTS]),
    "gathered by several": ("", "Gather", {}, [[X, np.array([a, b])] for a in (-6, -5, 0, 4, 5) for b in (0, -1)]),
    "gathered rows": ("", "Gather", {"axis": 1}, [[N.reshape(1, 5), a] for a in (*SCALARS,)]),
    "gathered of an ir": ("openvino", "Gather", {}, [[X, a, np.array(0)] for a in LISTS]),
    "gathered of an ir by several": (
        "openvino", "Gather", {"opset": 7},
        [[X, np.array([a, b]), np.array(0)] for a in (-1, 0, 4) for b in (0, 2)],
    ),
    "elements": ("", "GatherElements", {}, [[X, a] for a in LISTS]),
    "tuples": ("", "GatherND", {}, [[X.reshape(1, 5), np.array([[0, int(a)]])] for a in SCALARS]),
    "reshaped": ("", "Reshape", {}, [[X, np.array([1, -1])], [X, np.array([5, 1])]]),
    "unsqueezed": ("", "Unsqueeze", {}, [[X, np.array([0])], [X, np.array([1])]]),
    "to integers": ("", "Cast", {"to": 7}, [[X], [np.full(5, np.inf, np.float32)]]),
    "to truth": ("", "Cast", {"to": 9}, [[X], [N.astype(np.float32)]]),
    "shapes": ("", "Shape", {}, [[X], [X + 1]]),
    "transposed": ("", "Transpose", {}, [[X.reshape(1, 5)], [N.reshape(1, 5).astype(np.float32)]]),
    "joined": ("", "Concat", {"axis": 0}, [[X, X], [X, X + 1]]),
    "slices": (
        "", "Slice", {}, [[X, np.array([a]), np.array([b])] for a in (0, -3, 9) for b in (2, -1)],
    ),
}  # fmt: skip


def _outcome(function: Any, *arrays: Any) -> Any:
    with np.errstate(all="ignore"):
        try:
            outputs = function(*arrays)
        except Exception as error:
            return type(error)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return [(output.dtype.name, output.shape, output.tobytes()) for output in outputs]


@pytest.mark.parametrize("name", KERNELS)
def test_bound_kernels(name: str) -> None:
    """Bound to each case, and called with every other, a function gives what the kernel does, or nothing."""
    domain, type, attributes, cases = KERNELS[name]
    (op,) = [row for row in ROWS if row.type_in(domain) == type and row.kernel_in(domain)]
    attributes = dict(attributes)
    opset = attributes.pop("opset", 8 if domain else 18)
    options: dict[str, Any] = {"opset": opset, "output_count": 1}
    computed = 0

    def ordinary(*arrays: Any) -> Any:
        return compute(op, domain, arrays, attributes, **options)

    for sample in cases:
        if not isinstance(_outcome(ordinary, *sample), list):
            continue
        for are_fixed in (False, True):
            fixed = [number > 1 or (number > 0 and are_fixed) for number in range(len(sample))]
            kernel = bind(op, domain, sample, attributes, fixed=fixed, **options)
            for case in cases:
                arrays = [
                    of_sample if is_fixed else array
                    for of_sample, array, is_fixed in zip(sample, case, fixed, strict=True)
                ]
                if [array.shape for array in arrays] != [array.shape for array in sample]:
                    continue
                got = _outcome(kernel.function, *arrays)
                expected = _outcome(ordinary, *arrays)
                assert got == expected or not isinstance(got, list), (sample, arrays)
                computed += isinstance(got, list)
                if kernel.is_static and isinstance(got, list):
                    assert [row[:2] for row in got] == [
                        (output.dtype.name, output.shape) for output in kernel.outputs
                    ]
    assert computed > 1


def test_a_loop_that_ends_too_late_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of the first iterations tells how long all of them would take; each look at the clock takes 1 s."""
    seconds = count()
    monkeypatch.setattr(interpreter, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    text = HEADER + (
        "g (float[5] x0) => (float[5] y) <int64 trips = {900000}> {"
        "y = Loop (trips, , x0) < body = b (int64 i, bool c, float[5] x) => (bool d, float[5] o)"
        " { d = Identity (c) o = Neg (x) } > }"
    )
    path = save(text, tmp_path / "model.onnx")
    program = prepare(path)
    forward = ForwardArrays(program.plans)
    forward.deadline = 100
    with pytest.raises(
        OutOfTime, match=r"^Loop y would take \d+ seconds more, after \d+ of 900000 iterations$"
    ):
        forward.run(program.plan, [X])
    assert forward.iterations < 10_000
    forward.deadline = 1e9
    assert _plain(forward.run(program.plan, [X])[0]) == _plain(X)


def test_shortcuts_are_given_up_where_they_bring_little() -> None:
    shortcut, done = Shortcut(1), 1
    while shortcut.next >= 0:
        shortcut.wait(done, done)
        done += 1
    assert done < 40
    shortcut = Shortcut(1)
    for _ in range(1000):
        shortcut.wait(done + 20, done)
        done += 21
    assert shortcut.next == done


SCATTER_ROWS = {str(spec.key): spec for spec in SPECS.values()}


@pytest.mark.parametrize("name", SCATTER_ROWS)
def test_scatter_operators_bound_to_shapes(name: str) -> None:
    """A single index is written without a list of targets."""
    spec, few, chance = SCATTER_ROWS[name], 0, np.random.default_rng(0)
    for _ in range(60):
        drawn = random_case(spec, chance, may_repeat=True)
        case = make_case(drawn.operator, **drawn.arguments())
        function = bind_scatter(case.task, case.data, case.indices, case.updates)
        few += case.indices is not None and case.indices.size == 1
        other = case.data.reshape(-1)[::-1].reshape(case.data.shape).copy()
        for data in (case.data, other):
            expected = scatter(case.task, data, case.indices, case.updates)
            got = function(data, case.indices, case.updates)
            assert got.dtype == expected.dtype
            assert np.array_equal(bits_of(got), bits_of(expected))
    assert few or spec.layout is Layout.SEQUENCE
