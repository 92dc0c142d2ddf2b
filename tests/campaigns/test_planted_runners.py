"""Runners that are wrong on purpose, over drawn models: each fault is named, and no other is.

What a contested element can reach is told by an oracle of its own: arrays of objects that know whether
they are open, and of which updates they may be, moved by NumPy and by the loops over elements that are
written from the documents.
"""

import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from ir_scatter import runners
from ir_scatter.compare import request as jobs
from ir_scatter.compare.request import Sources
from ir_scatter.runners.base import Status
from ir_scatter_cli.main import main
from tests.compare.planted import Planted, at, elsewhere, fake_numbers, largest
from tests.models.ir_text import IrText, Output
from tests.ops import naive_scatter
from tests.scale import cases, generator, in_part_and_whole

Array = Any
MODELS, RANDOM_MODELS = 300, 100
DIFFERENCES = {"mismatch", "nondeterministic"}


@dataclass(frozen=True)
class Mark:
    """Whether the document allows more than one value, and which; None if something was computed from it."""

    is_open: bool = False
    choices: tuple[Any, ...] | None = None


CERTAIN, COMPUTED = Mark(), Mark(True)


@dataclass
class Value:
    """A tensor of a model: its name, its elements, and their marks."""

    name: str
    array: Array
    marks: Array
    port: Output | None = None


def marks(shape: Sequence[int], mark: Mark = CERTAIN) -> Array:
    found = np.empty(shape, object)
    found.fill(mark)
    return found


def declared(name: str, array: Array) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


@dataclass
class Draft:
    """A model while it is drawn, in one of the two formats."""

    chance: random.Random
    is_ir: bool
    opset: int
    type: Any
    ir: IrText = field(default_factory=IrText)
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    feeds: dict[str, Array] = field(default_factory=dict)
    drawn: list[Any] = field(default_factory=list)
    scatters: dict[str, dict[str, Any]] = field(default_factory=dict)
    count: int = 0

    @property
    def word(self) -> str:
        return {"int32": "i32", "int64": "i64", "float32": "f32", "float64": "f64", "float16": "f16"}[
            self.type.name
        ]

    def name(self, what: str) -> str:
        self.count += 1
        return f"{what}{self.count}"

    def input(self, array: Array) -> Value:
        name = self.name("input")
        self.feeds[name] = array
        type = "i64" if array.dtype == np.int64 and self.type != np.int64 else self.word
        port = self.ir.parameter(name, type, array.shape) if self.is_ir else None
        self.inputs.append(declared(name, array))
        return Value(name, array, marks(array.shape), port)

    def constant(self, values: Any, shape: Sequence[int] | None = None, word: str = "i64") -> Value:
        array = np.array(values, {"i64": np.int64, "boolean": np.bool_}.get(word, self.type))
        array = array if shape is None else array.reshape(shape)
        name = self.name("constant")
        port = self.ir.const(name, word, array, array.shape) if self.is_ir else None
        self.constants.append(numpy_helper.from_array(array, name))
        return Value(name, array, marks(array.shape), port)

    def add(
        self,
        onnx_type: str,
        ir_type: tuple[str, str],
        inputs: Sequence[Value],
        result: tuple[Array, Array],
        attributes: dict[str, Any] | None = None,
        ir_attributes: dict[str, str] | None = None,
    ) -> Value:
        array, found = result
        name = self.name(onnx_type.lower())
        port = None
        if self.is_ir:
            ports = [one.port for one in inputs]
            assert None not in ports
            outputs = [(self.word, array.shape)]
            port = self.ir.add(name, *ir_type, ports, outputs, ir_attributes)  # type: ignore[arg-type]
        else:
            names = [one.name for one in inputs]
            self.nodes.append(helper.make_node(onnx_type, names, [name], name=name, **(attributes or {})))
        return Value(name, array, found, port)

    def numbers(self, *shape: int) -> Array:
        """Small numbers, no two the same as far as that goes, and no sum of a few of them rounded."""
        size = int(np.prod(shape))
        found = np.array(self.chance.sample(range(1, max(size + 1, 120)), size)).reshape(shape)
        return (found / 4 if self.type.kind == "f" else found).astype(self.type)

    def write(self, folder: Path, outputs: Sequence[Value]) -> Path:
        if self.is_ir:
            for one in outputs:
                assert one.port is not None
                self.ir.add(f"result_{one.name}", "Result", "opset1", [one.port], [])
            return Path(self.ir.write(folder))
        made = [declared(one.name, one.array) for one in outputs]
        graph = helper.make_graph(
            self.nodes, "drawn", self.inputs, made, self.constants, value_info=self.drawn
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)
        path = folder / "model.onnx"
        onnx.save(model, path)
        return path


# The scatter operators.

SCATTERS = {
    "Scatter": (False, 10, ("none",)),
    "ScatterElements": (False, 18, ("none", "none", "add", "mul", "max", "min")),
    "ScatterND": (False, 18, ("none", "none", "add", "mul", "max", "min")),
    "TensorScatter": (False, 24, ("none",)),
    "ScatterUpdate": (True, 3, ("none",)),
    "ScatterElementsUpdate-3": (True, 3, ("none",)),
    "ScatterElementsUpdate-12": (True, 12, ("none", "none", "sum", "prod", "min", "max", "mean")),
    "ScatterNDUpdate-3": (True, 4, ("none",)),
    "ScatterNDUpdate-15": (True, 15, ("none", "none", "sum", "sub", "prod", "min", "max")),
}


def scatter(draft: Draft, operator: str, data: Value, moved: Value | None = None) -> Value:
    """Add a scatter node whose indices repeat now and then; `moved` may be its updates."""
    chance, shape = draft.chance, data.array.shape
    type, word = operator.split("-")[0], chance.choice(SCATTERS[operator][2])
    axis = 0
    attributes: dict[str, Any] = {}
    indices, of_updates = _indices(chance, type, shape)
    if type == "TensorScatter":
        attributes["mode"] = chance.choice(["linear", "circular"])
        if attributes["mode"] == "linear":
            indices = indices % (shape[1] - of_updates[1] + 1)
        attributes["axis"] = axis = 1
    elif "Elements" in type or type in {"Scatter", "ScatterUpdate"}:
        axis = chance.randrange(len(shape)) if type != "ScatterUpdate" else 0
        indices = indices % shape[axis]
        attributes["axis"] = axis
    if moved is not None and moved.array.shape != of_updates:
        data, moved = moved, None
    if moved is None:
        numbers = draft.numbers(*of_updates)
        is_fill = numbers.size > 1 and chance.random() < 0.2
        updates = draft.input(np.full_like(numbers, numbers.flat[0]) if is_fill else numbers)
    else:
        updates = moved
    keeps = operator != "ScatterElementsUpdate-12" or word == "none" or chance.random() < 0.7
    if word != "none":
        attributes["reduction"] = word
    places = draft.constant(indices) if chance.random() < 0.5 else draft.input(indices)
    given = [data, updates, places] if type == "TensorScatter" else [data, places, updates]
    known = {"type": type, "data": data, "indices": indices, "updates": updates, "axis": axis,
             "word": word, "keeps": keeps, "mode": attributes.get("mode", "linear")}  # fmt: skip
    if draft.is_ir:
        written = {"reduction": word} if operator.endswith(("-12", "-15")) else {}
        if operator == "ScatterElementsUpdate-12":
            written["use_init_val"] = str(keeps).lower()
        version = f"opset{SCATTERS[operator][1]}"
        if "ND" not in type:
            given.append(draft.constant(axis))
        found = draft.add(type, (type, version), given, scattered(known), None, written)
    else:
        found = draft.add(type, ("", ""), given, scattered(known), attributes)
    draft.scatters[found.name] = known
    return found


def _indices(chance: random.Random, type: str, shape: tuple[int, ...]) -> tuple[Array, tuple[int, ...]]:
    few = chance.randrange(1, 4)
    if "ND" in type:
        depth = chance.randrange(1, len(shape) + 1)
        rows = [[chance.randrange(size) for size in shape[:depth]] for _ in range(few)]
        return np.array(rows, np.int64), (few, *shape[depth:])
    if type == "ScatterUpdate":
        return np.array([chance.randrange(shape[0]) for _ in range(few)]), (few, *shape[1:])
    if type == "TensorScatter":
        length = chance.randrange(1, shape[1] + 1)
        starts = np.array([chance.randrange(shape[1]) for _ in range(shape[0])])
        return starts, (shape[0], length, *shape[2:])
    part = tuple(chance.randrange(1, size + 1) for size in shape)
    return np.array([chance.randrange(99) for _ in range(int(np.prod(part)))]).reshape(part), part


def scattered(known: dict[str, Any]) -> tuple[Array, Array]:
    """What the loop over elements makes of a node, and what it leaves open."""
    data, updates, type = known["data"], known["updates"], known["type"]
    axis, mode, word = known["axis"], known["mode"], known["word"]
    values = naive_scatter.scatter(
        type, data.array, known["indices"], updates.array, axis, word, known["keeps"], mode
    )
    by_target: dict[tuple[int, ...], list[Mark]] = {}
    arrays: dict[tuple[int, ...], list[Any]] = {}
    for table, source in ((by_target, updates.marks), (arrays, updates.array)):
        for position, one in naive_scatter.hits(type, data.array, known["indices"], source, axis, mode):
            table.setdefault(position, []).append(one)
    found = data.marks.copy()
    for position, met in by_target.items():
        if word != "none":
            old = [data.marks[position]] if known["keeps"] else []
            found[position] = COMPUTED if any(one.is_open for one in (*old, *met)) else CERTAIN
        elif len(met) == 1:
            found[position] = met[0]
        elif any(one.is_open for one in met):
            found[position] = COMPUTED
        elif len({np.asarray(one).tobytes() for one in arrays[position]}) == 1:
            found[position] = CERTAIN  # whichever stays is the same
        else:
            found[position] = Mark(True, tuple(arrays[position]))
    return values, found


def lost_update(known: dict[str, Any]) -> Array | None:
    """What comes out of a reduction that forgets its last update; None if that changes nothing."""
    data, updates = known["data"].array, known["updates"].array
    met = naive_scatter.hits(known["type"], data, known["indices"], updates, known["axis"])
    if known["word"] not in {"add", "sum", "sub"} or len(met) < 2:
        return None
    values, _ = scattered(known)
    position, update = met[-1]
    if sum(place == position for place, _ in met) < 2:
        return None
    values[position] = values[position] - update if known["word"] != "sub" else values[position] + update
    return values


# General operators.


def by_element(*found: Array) -> Array:
    join = np.frompyfunc(lambda *all: COMPUTED if any(one.is_open for one in all) else CERTAIN, len(found), 1)
    return np.asarray(join(*found), object)


def negated(draft: Draft, one: Value) -> Value:
    return draft.add("Neg", ("Negative", "opset1"), [one], (-one.array, by_element(one.marks)))


def added(draft: Draft, one: Value) -> Value:
    other = draft.input(draft.numbers(*one.array.shape[-1:]))
    return draft.add(
        "Add", ("Add", "opset1"), [one, other], (one.array + other.array, by_element(one.marks, other.marks))
    )


def reshaped(draft: Draft, one: Value) -> Value:
    shape = draft.constant([-1, *one.array.shape[:1]] if one.array.ndim > 1 else [1, -1])
    moved = [array.reshape(shape.array) for array in (one.array, one.marks)]
    return draft.add(
        "Reshape", ("Reshape", "opset1"), [one, shape], tuple(moved), None, {"special_zero": "false"}
    )


def transposed(draft: Draft, one: Value) -> Value:
    order = list(range(one.array.ndim))
    draft.chance.shuffle(order)
    moved = [array.transpose(order) for array in (one.array, one.marks)]
    given = [one, draft.constant(order)] if draft.is_ir else [one]
    return draft.add("Transpose", ("Transpose", "opset1"), given, tuple(moved), {"perm": order})


def joined(draft: Draft, one: Value) -> Value:
    other = draft.input(draft.numbers(*one.array.shape))
    pair = [one, other] if draft.chance.random() < 0.5 else [other, one]
    moved = [np.concatenate([getattr(each, what) for each in pair]) for what in ("array", "marks")]
    return draft.add("Concat", ("Concat", "opset1"), pair, tuple(moved), {"axis": 0}, {"axis": "0"})  # type: ignore[arg-type]


def picked(draft: Draft, one: Value) -> Value:
    size = one.array.shape[0]
    places = draft.constant([draft.chance.randrange(size) for _ in range(draft.chance.randrange(1, 5))])
    moved = [array[places.array] for array in (one.array, one.marks)]
    given = [one, places, draft.constant(0)] if draft.is_ir else [one, places]
    return draft.add("Gather", ("Gather", "opset8"), given, tuple(moved), {"axis": 0})


def repeated(draft: Draft, one: Value) -> Value:
    times = draft.constant([2] + [1] * (one.array.ndim - 1))
    moved = [np.tile(array, times.array) for array in (one.array, one.marks)]
    return draft.add("Tile", ("Tile", "opset1"), [one, times], tuple(moved))  # type: ignore[arg-type]


def chosen(draft: Draft, one: Value) -> Value:
    other = draft.input(draft.numbers(*one.array.shape))
    taken = draft.constant(
        [draft.chance.random() < 0.5 for _ in range(one.array.size)], one.array.shape, "boolean"
    )
    moved = [np.where(taken.array, getattr(one, what), getattr(other, what)) for what in ("array", "marks")]
    return draft.add("Where", ("Select", "opset1"), [taken, one, other], tuple(moved))


def summed(draft: Draft, one: Value) -> Value:
    """Behind a sum everything is open, as far as a referee that knows no more of it can tell."""
    axes = draft.constant([0])
    array = one.array.sum(axis=0, keepdims=True, dtype=one.array.dtype)
    mark = COMPUTED if any(each.is_open for each in one.marks.flat) else CERTAIN
    given, attributes = ([one, axes], {}) if draft.is_ir or draft.opset > 12 else ([one], {"axes": [0]})
    result, keeps = (array, marks(array.shape, mark)), {"keep_dims": "true"}
    return draft.add(
        "ReduceSum", ("ReduceSum", "opset1"), given, result, {**attributes, "keepdims": 1}, keeps
    )


GENERAL: list[Callable[[Draft, Value], Value]] = [
    negated, added, added, reshaped, transposed, joined, picked, repeated, chosen, summed,
]  # fmt: skip


@dataclass
class Drawn:
    """A model, its inputs, and what is right."""

    path: Path
    draft: Draft
    outputs: list[Value]

    @property
    def scopes(self) -> list[str]:
        return list(self.draft.scatters)


_DRAWS = ("RandomUniform", "RandomNormal", "RandomUniformLike", "RandomNormalLike", "Bernoulli")
_BERNOULLI_SINCE = 15


def with_random_numbers(draft: Draft, one: Value) -> Value:
    """Return a value to which random numbers are added, so that no document says what it is."""
    shape = one.array.shape
    is_early = draft.opset < _BERNOULLI_SINCE
    type = "RandomUniform" if draft.is_ir else draft.chance.choice(_DRAWS[: -1 if is_early else None])
    attributes: dict[str, Any] = {"dtype": helper.np_dtype_to_tensor_dtype(draft.type)}
    given: list[Value] = []
    if draft.is_ir:
        bounds = [draft.constant([limit], word=draft.word) for limit in (0, 2)]
        given = [draft.constant(shape), *bounds]
    elif type.startswith("Random") and not type.endswith("Like"):
        attributes["shape"] = shape
    else:
        given = [one]
    result = fake_numbers(shape, draft.type), marks(shape, COMPUTED)
    words = {"output_type": draft.word, "global_seed": "0", "op_seed": "0"}
    numbers = draft.add(type, (type, "opset8"), given, result, attributes, words)
    draft.drawn.append(declared(numbers.name, numbers.array))
    both = one.array + numbers.array, by_element(one.marks, numbers.marks)
    return draft.add("Add", ("Add", "opset1"), [one, numbers], both)


def draw(chance: random.Random, folder: Path, *, is_random: bool = False) -> Drawn:
    operator = chance.choice(list(SCATTERS))
    is_ir, opset, _ = SCATTERS[operator]
    types = [np.float32, np.float64, np.float16] if is_random else [
        np.int32, np.int64, np.float32, np.float64, np.float16
    ]  # fmt: skip
    draft = Draft(chance, is_ir, opset, np.dtype(chance.choice(types)))
    sizes = (
        chance.sample([1, 2, 3, 4], 3)
        if operator == "TensorScatter"
        else chance.sample([2, 3, 4], chance.choice([1, 2, 2]))
    )
    data = draft.input(draft.numbers(*sizes))
    if is_random:
        data = with_random_numbers(draft, data)
    value = scatter(draft, operator, data)
    outputs = [value] if chance.random() < 0.4 else []
    for _ in range(chance.randrange(4)):
        if chance.random() < 0.25 and operator != "TensorScatter":
            fresh = draft.input(draft.numbers(*value.array.shape))
            value = scatter(draft, operator, *((value,) if chance.random() < 0.5 else (fresh, value)))
        elif value.array.size < 200:
            value = chance.choice(GENERAL)(draft, value)
    if value not in outputs:
        outputs.append(value)
    folder.mkdir()
    return Drawn(draft.write(folder, outputs), draft, outputs)


# Faults.


@dataclass
class Fault:
    """A runner, and what must be said of it."""

    kind: str
    runner: Planted
    required: list[tuple[str, str, set[str]]] = field(default_factory=list)
    """Level, tensor or node, and the verdicts of which one must be there."""
    allowed: set[tuple[str, str]] = field(default_factory=set)
    """Level and tensor or node of what else may differ."""
    code: int | None = None
    repeat: int = 1
    status: str = "ok"
    not_tapped: set[str] = field(default_factory=set)


def is_excused(mark: Mark, value: Any) -> bool:
    """Tell whether the document cannot be held against a value."""
    if not mark.is_open:
        return False
    return mark.choices is None or any(abs(float(value) - float(one)) < 1e-2 for one in mark.choices)


def plant(chance: random.Random, drawn: Drawn) -> Fault:
    order = chance.choice(["last", "first"])
    kind = chance.choice(list(FAULTS))
    return FAULTS[kind](kind, chance, drawn, order)


def right(kind: str, chance: random.Random, drawn: Drawn, order: str) -> Fault:
    return Fault(kind, Planted(order=order, sums="reversed"), repeat=1, code=0)


def element(chance: random.Random, of: Value) -> tuple[int, Mark, Any]:
    place = chance.randrange(of.array.size)
    wrong = elsewhere(of.array.reshape(-1)[place], largest(of.array))
    if of.array.dtype.kind == "f" and chance.random() < 0.2:
        wrong = of.array.dtype.type(np.nan)
    return place, of.marks.reshape(-1)[place], wrong


def wrong_output(kind: str, chance: random.Random, drawn: Drawn, order: str) -> Fault:
    """One element of an output: always, or only with taps, only without, or in one run of three."""
    output = chance.choice(drawn.outputs)
    place, mark, value = element(chance, output)
    tapped = {"with taps": True, "without taps": False}.get(kind.removeprefix("output "))
    run = chance.randrange(3) if kind == "output in one run" else None
    runs = None if run is None else [run]
    change = at(place, name=output.name, value=value, tapped=tapped if run is None else False, runs=runs)
    fault = Fault(kind, Planted(order=order, output=change), repeat=1 if run is None else 3)
    is_expected = bool(drawn.draft.drawn)  # random numbers change from run to run
    if is_expected and any(one.is_open for one in output.marks.flat):
        return fault  # of such an output it is not told which elements are certain
    if run is None and is_excused(mark, value):
        fault.code = 0
        return fault
    if is_expected:  # NumPy does not compute the model, so that a run is compared with another one
        verdicts = DIFFERENCES
    else:
        verdicts = {"nondeterministic"} if tapped or run else DIFFERENCES if run == 0 else {"mismatch"}
    fault.required = [("model", output.name, verdicts)]
    fault.allowed = {("model", output.name)}
    fault.code = 1
    return fault


def wrong_tap(kind: str, chance: random.Random, drawn: Drawn, order: str) -> Fault:
    """One element that is told of a node: always, or in one run of three."""
    scope = chance.choice(drawn.scopes)
    array, found = scattered(drawn.draft.scatters[scope])
    place, mark, value = element(chance, Value(scope, array, found))
    run = chance.randrange(3) if kind == "tap in one run" else None
    runs = None if run is None else [run]
    runner = Planted(order=order, tap=at(place, name=scope, value=value, runs=runs))
    fault = Fault(kind, runner, repeat=1 if run is None else 3)
    if is_excused(mark, value) and mark.choices is not None:
        fault.code = 0
        return fault
    fault.required = [("node", scope, {"mismatch"})]
    fault.allowed = {("node", scope)}
    fault.code = 1
    return fault


def wrong_node(kind: str, chance: random.Random, drawn: Drawn, order: str) -> Fault:
    """One element of the result of a node, and all that comes of it."""
    scope = chance.choice(drawn.scopes)
    known = drawn.draft.scatters[scope]
    array, found = scattered(known)
    place, mark, value = element(chance, Value(scope, array, found))
    change = at(place, name=scope, value=value)
    if kind == "lost update":
        lost = lost_update(known)
        if lost is None or any(one.is_open for one in found.flat):
            return right("right", chance, drawn, order)
        change = lambda name, array, *_: lost if name == scope else array  # noqa: E731
        mark = CERTAIN
    fault = Fault(kind, Planted(order=order, node=change), code=1)
    if is_excused(mark, value) and mark.choices is not None:
        fault.code = None
        return fault
    fault.required = [("node", scope, {"mismatch"})]
    fault.allowed = {("node", scope), *(("model", one.name) for one in drawn.outputs)}
    return fault


def racing(kind: str, chance: random.Random, drawn: Drawn, order: str) -> Fault:
    """The result of a node in one run of three with taps, and in none without."""
    fault = wrong_node("wrong node", chance, drawn, order)
    node, run = fault.runner.node, chance.randrange(3)
    fault.runner.node = lambda name, array, is_tapped, number: (
        node(name, array, is_tapped, number) if is_tapped and number == run else array
    )
    fault.kind, fault.repeat = kind, 3
    return fault


def ending(kind: str, chance: random.Random, drawn: Drawn, order: str) -> Fault:
    status = {"dies": Status.CRASHED, "answers late": Status.TIMEOUT, "refuses": Status.REFUSED}[
        kind.removesuffix(" with taps")
    ]
    with_taps = kind.endswith("with taps")
    runner = Planted(order=order, ending=lambda is_tapped, _: status if is_tapped is with_taps else Status.OK)
    if with_taps:
        return Fault(kind, runner, code=0, not_tapped=set(drawn.scopes))
    return Fault(kind, runner, code=4, status=status.value)


def misshapen(kind: str, chance: random.Random, drawn: Drawn, order: str) -> Fault:
    output = chance.choice(drawn.outputs)
    changes: dict[str, Callable[[Array], Array | None]] = {
        "wrong shape": lambda array: np.concatenate([array.reshape(-1), array.reshape(-1)]),
        "wrong type": lambda array: array.astype(np.int8),
        "missing output": lambda _: None,
    }
    change = lambda name, array, *_: changes[kind](array) if name == output.name else array  # noqa: E731
    allowed = {("model", output.name)}
    return Fault(
        kind, Planted(order=order, output=change), [("model", output.name, {"mismatch"})], allowed, code=1
    )


def misshapen_tap(kind: str, chance: random.Random, drawn: Drawn, order: str) -> Fault:
    scope = chance.choice(drawn.scopes)
    change = lambda name, array, *_: array.reshape(1, *array.shape) if name == scope else array  # noqa: E731
    return Fault(
        kind, Planted(order=order, tap=change), [("node", scope, {"mismatch"})], {("node", scope)}, code=1
    )


def silent(kind: str, chance: random.Random, drawn: Drawn, order: str) -> Fault:
    scope = chance.choice(drawn.scopes)
    return Fault(kind, Planted(order=order, silent=[scope]), code=0, not_tapped={scope})


FAULTS: dict[str, Callable[[str, random.Random, Drawn, str], Fault]] = {
    **dict.fromkeys(("right", "right again"), right),
    **dict.fromkeys(
        ("output always", "output with taps", "output without taps", "output in one run"), wrong_output
    ),
    **dict.fromkeys(("wrong tap", "tap in one run"), wrong_tap),
    **dict.fromkeys(("wrong node", "lost update"), wrong_node),
    "racing node": racing,
    **dict.fromkeys(("dies", "dies with taps", "answers late", "refuses"), ending),
    **dict.fromkeys(("wrong shape", "wrong type", "missing output"), misshapen),
    "misshapen tap": misshapen_tap,
    "silent tap": silent,
}


def compared(
    drawn: Drawn, fault: Fault, monkeypatch: pytest.MonkeyPatch, others: Sequence[Planted], numpy: bool
) -> tuple[int, dict[str, Any]]:
    """Compare as a user does: the command line, its exit code and its JSON."""
    voices = Sources((fault.runner, *others), numpy)
    monkeypatch.setattr(jobs, "find_sources", lambda *_, **__: voices)
    monkeypatch.setattr(runners, "find", lambda name, *_: name)  # the command line looks a name up first
    inputs = drawn.path.with_suffix(".npz")
    with inputs.open("wb") as file:
        np.savez(file, **drawn.draft.feeds)
    output = drawn.path.with_suffix(".json")
    words = [
        "compare",
        drawn.path,
        "--on",
        "planted",
        "--inputs",
        inputs,
        "--format",
        "json",
        "-o",
        output,
        "--overwrite",
    ]
    words += ["--repeat", fault.repeat]
    monkeypatch.setattr(sys, "argv", ["ir-scatter", *map(str, words)])
    monkeypatch.setenv("IR_SCATTER_DEBUG", "1")
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code, json.loads(output.read_text())


def examine(fault: Fault, code: int, found: dict[str, Any], *, numpy: bool) -> str:
    """Return what is wrong with a report on a planted fault; "" if nothing is."""
    rows = [row for row in found["comparisons"] if row["verdict"] in DIFFERENCES]
    named = [(row["level"], row["node"] or row["tensor"], row["verdict"]) for row in rows]
    for level, tensor, verdicts in fault.required:
        if not any(one[:2] == (level, tensor) and one[2] in verdicts for one in named):
            return f"{level} {tensor} is not named"
    for row, one in zip(rows, named, strict=True):
        # without NumPy the wrong one, which is asked first, is the reference of the right one
        if row["subject"] != "planted" and (numpy or row["reference"] != "planted"):
            return f"{row['subject']} is accused"
        if fault.code is not None and one[:2] not in fault.allowed:
            return f"{one} is invented"
    if fault.code not in {None, code}:
        return f"the exit code is {code}, expected {fault.code}"
    (outcome,) = [one for one in found["outcomes"] if one["runner"] == "planted"]
    if outcome["status"] != fault.status:
        return f"the status is {outcome['status']}, expected {fault.status}"
    listed = {one["node"] for one in found["not_tapped"] if one["runner"] == "planted"}
    if listed != fault.not_tapped:
        return f"not tapped are {listed}, expected {fault.not_tapped}"
    is_lonely = numpy and fault.kind == "output always" and bool(fault.required)
    if is_lonely and ["planted"] not in [one["runners"] for one in found["odd"]]:
        return "who is wrong is not said"
    return ""


@in_part_and_whole
def test_planted_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Counter[str], is_whole: bool
) -> None:
    for number in cases(MODELS, is_whole):
        chance = generator("planted runners", number)
        drawn = draw(chance, tmp_path / str(number))
        fault = plant(chance, drawn)
        numpy = chance.random() < 0.8
        code, found = compared(drawn, fault, monkeypatch, [Planted("right", order=fault.runner.order)], numpy)
        problem = examine(fault, code, found, numpy=numpy)
        assert not problem, f"case {number}, {fault.kind} in {drawn.path}: {problem}"
        figures["models"] += 1
        figures["named"] += bool(fault.required)
        figures["endings"] += fault.status != "ok" or bool(fault.not_tapped)
        figures["excused or right"] += not fault.required and fault.status == "ok" and not fault.not_tapped
        figures["with contested elements"] += any(
            one.is_open for each in drawn.outputs for one in each.marks.flat
        )


def test_models_with_every_kind_of_mark_are_drawn(tmp_path: Path) -> None:
    seen = set()
    for number in range(40):
        drawn = draw(generator("planted runners", number), tmp_path / str(number))
        for value in drawn.outputs:
            assert value.array.shape == value.marks.shape
            seen |= {(one.is_open, one.choices is None) for one in value.marks.flat}
    assert seen == {(False, True), (True, True), (True, False)}


@in_part_and_whole
def test_planted_faults_after_random_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Counter[str], is_whole: bool
) -> None:
    """A runner that draws other numbers is not to blame; a node that is wrong for its own inputs is."""
    for number in cases(RANDOM_MODELS, is_whole):
        chance = generator("planted runners, random numbers", number)
        drawn = draw(chance, tmp_path / str(number), is_random=True)
        fault = plant(chance, drawn)
        others = [Planted("right", order=fault.runner.order, seed=chance.choice([0, 3]))]
        numpy = chance.random() < 0.8
        code, found = compared(drawn, fault, monkeypatch, others, numpy)
        problem = examine(fault, code, found, numpy=False)
        assert not problem, f"case {number}, {fault.kind} in {drawn.path}: {problem}"
        figures["models"] += 1
        figures["named"] += bool(fault.required)
        figures["excused or right"] += not fault.required and fault.status == "ok" and not fault.not_tapped
