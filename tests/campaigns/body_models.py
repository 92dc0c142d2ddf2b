"""Random models whose scatter nodes stand in bodies and functions, as IR and as ONNX.

Legal inputs exist for each of them, but what is legal is settled by what happens inside: parts of an
input, indices that are carried from one iteration to the next, numbers of iterations that are added.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.models.ir_text import IrText, Output
from tests.models.nested_ir import CONDITION, ITERATION, PARTS, carried, put_in, put_out, result

Dim = int | str
Values: TypeAlias = "list[Value]"

_ONNX_TYPES = {
    "f32": TensorProto.FLOAT, "i32": TensorProto.INT32, "i64": TensorProto.INT64, "boolean": TensorProto.BOOL,
}  # fmt: skip
_DTYPES = {"f32": np.float32, "i32": np.int32, "i64": np.int64, "boolean": np.bool_}


@dataclass(frozen=True)
class Value:
    """A tensor in a graph that is being written."""

    ref: Any
    type: str
    dims: tuple[Dim, ...]


Body = Callable[[Any, "Value | None", list[Value], list[Value], list[Value]], list[Value]]
"""Takes the number of the iteration, states, parts and what does not change; returns new states."""


class OnnxGraph:
    """A graph of an ONNX model."""

    def __init__(self, chance: random.Random, opset: int, around: "OnnxGraph | None" = None) -> None:
        self.chance, self.opset, self.around = chance, opset, around
        self.has_reduction = opset >= 16
        self.kinds = ("elements", "pairs", "rows")
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.functions: list[onnx.FunctionProto] = [] if around is None else around.functions
        self.depth: int = 0 if around is None else around.depth + 1
        self.repeats_names: bool = chance.random() < 0.5 if around is None else around.repeats_names
        is_alone = around is None or self.repeats_names
        self._names: list[int] = [0] if around is None or is_alone else around._names

    def name(self) -> str:
        """Return a name; bodies of one depth may have the same names, as some exporters write them."""
        self._names[0] += 1
        return f"{'in' * self.depth if self.repeats_names else ''}v{self._names[0]}"

    def input(self, type: str, dims: Sequence[Dim]) -> Value:
        name = self.name()
        is_told = self.around is None or self.chance.random() < 0.8 or not dims
        written = list(dims) if self.around is None else self._with_minus_one(dims)
        self.inputs.append(
            helper.make_tensor_value_info(name, _ONNX_TYPES[type], written if is_told else None)
        )
        return Value(name, type, tuple(dims))

    def _with_minus_one(self, dims: Sequence[Dim]) -> list[Dim]:
        """Return dimensions as older exporters write them now and then: -1 where one is dynamic."""
        written = [*dims]
        if written and self.chance.random() < 0.15:
            written[self.chance.randrange(len(written))] = -1
        return written

    def const(self, type: str, values: Any) -> Value:
        array: Any = np.array(values, _DTYPES[type])
        made = onnx.numpy_helper.from_array(array)
        return self.node("Constant", [], type, array.shape, value=made)

    def node(self, op: str, inputs: Values, type: str, dims: Sequence[Dim], **attributes: Any) -> Value:
        name = self.name()
        refs = [value.ref for value in inputs]
        self.nodes.append(helper.make_node(op, refs, [name], name=f"{op}_{name}", **attributes))
        return Value(name, type, tuple(dims))

    def apply(self, op: str, left: Value, right: Value) -> Value:
        return self.node(op, [left, right], left.type, left.dims)

    def cast(self, value: Value, type: str) -> Value:
        return self.node("Cast", [value], type, value.dims, to=_ONNX_TYPES[type])

    def scatter(self, kind: str, data: Value, at: Value, new: Value, axis: int, reduction: str) -> Value:
        op = "ScatterElements" if kind == "elements" else "ScatterND"
        new = self.reshaped(new) if self.chance.random() < 0.25 else new
        attributes: dict[str, Any] = {"axis": axis} if kind == "elements" else {}
        if reduction != "none":
            attributes["reduction"] = {"sum": "add", "prod": "mul"}.get(reduction, reduction)
        if self.opset >= 16 and self.chance.random() < 0.15:
            return self._called(op, [data, at, new], attributes)
        return self.node(op, [data, at, new], data.type, data.dims, **attributes)

    def reshaped(self, value: Value) -> Value:
        """Give a value its own shape, computed with broadcasting: sizes [r, 1] + [r], of which a column."""
        rank = len(value.dims)
        sizes = self.node("Shape", [value], "i64", (rank,))
        column = self.node("Unsqueeze", [sizes, self.const("i64", [1])], "i64", (rank, 1))
        square = self.node("Add", [column, self.const("i64", [0] * rank)], "i64", (rank, rank))
        shape = self.node("Gather", [square, self.const("i64", rank - 1)], "i64", (rank,), axis=1)
        return self.node(self.chance.choice(["Reshape", "Expand"]), [value, shape], value.type, value.dims)

    def _called(self, op: str, inputs: Values, attributes: dict[str, Any]) -> Value:
        """Put the node into a function of its own, and call that."""
        name, names = f"Store{len(self.functions)}", ["table", "at", "new"]
        body = helper.make_node(op, names, ["out"], name="inside", **attributes)
        function = helper.make_function(
            "own", name, names, ["out"], [body], [helper.make_opsetid("", self.opset)]
        )
        self.functions.append(function)
        return self.node(name, inputs, inputs[0].type, inputs[0].dims, domain="own")

    def body(self) -> "OnnxGraph":
        return OnnxGraph(self.chance, self.opset, self)

    def finished(self, outputs: Values, *, is_main: bool = False) -> onnx.GraphProto:
        made = []
        for value in outputs:
            dims = self._with_minus_one(value.dims) if is_main else None
            made.append(helper.make_tensor_value_info(value.ref, _ONNX_TYPES[value.type], dims))
        return helper.make_graph(self.nodes, self.name(), self.inputs, made)

    def same(self, value: Value) -> Value:
        return self.node("Identity", [value], value.type, value.dims)

    def loop(
        self, trips: "int | Value | None", states: Values, parts: Values, fixed: Values, body: Body
    ) -> Values:
        inner = self.body()
        if trips is None:
            if self.chance.random() < 0.7:  # some runtimes take nothing from around a Scan
                states, fixed, body = [*states, *fixed], [], _passing_on(body, len(states))
            olds = [inner.input(value.type, value.dims) for value in states]
            cut = [inner.input(value.type, value.dims[1:]) for value in parts]
            news = [inner.same(value) for value in body(inner, None, olds, cut, fixed)]
            graph = inner.finished(news)
            return self._many("Scan", [*states, *parts], news, body=graph, num_scan_inputs=len(parts))
        step, again = inner.input("i64", ()), inner.input("boolean", ())
        olds = [inner.input(value.type, value.dims) for value in states]
        cut = [inner.node("Gather", [value, step], value.type, value.dims[1:], axis=0) for value in parts]
        news = [inner.same(value) for value in body(inner, step, olds, cut, fixed)]
        count = self.const("i64", trips) if isinstance(trips, int) else trips
        graph = inner.finished([inner.same(again), *news])
        return self._many("Loop", [count, self.const("boolean", True), *states], news, body=graph)

    def _many(self, op: str, inputs: Values, likes: Values, **attributes: Any) -> Values:
        names = [self.name() for _ in likes]
        refs = [value.ref for value in inputs]
        self.nodes.append(helper.make_node(op, refs, names, name=f"{op}_{names[0]}", **attributes))
        return [Value(name, like.type, like.dims) for name, like in zip(names, likes, strict=True)]

    def branch(self, flag: Value, given: Values, ways: Sequence[Callable[[Any, Values], Value]]) -> Value:
        graphs, like = [], given[0]
        for way in ways:
            inner = self.body()
            like = inner.same(way(inner, given))
            graphs.append(inner.finished([like]))
        then, other = graphs
        return self.node("If", [flag], like.type, like.dims, then_branch=then, else_branch=other)


class IrGraph:
    """A graph of an IR."""

    def __init__(self, chance: random.Random, weights: "bytearray | None" = None) -> None:
        self.chance, self.has_reduction = chance, True
        self.kinds = ("elements", "pairs", "rows", "slices")
        self.text = IrText() if weights is None else IrText(weights)

    def name(self, word: str) -> str:
        return f"{word}{self.text.count}"

    def input(self, type: str, dims: Sequence[Dim]) -> Value:
        shape = [dim if isinstance(dim, int) else "?" for dim in dims]
        return Value(self.text.parameter(self.name("in"), type, shape), type, tuple(dims))

    def const(self, type: str, values: Any) -> Value:
        made = self.text.const(self.name("c"), type, values)
        return Value(made, type, tuple(made.dims))

    def node(
        self, op: str, version: str, inputs: Values, type: str, dims: Sequence[Dim], **data: str
    ) -> Value:
        refs: list[Output] = [value.ref for value in inputs]
        made = self.text.add(self.name(op.lower()), op, version, refs, [(type, _ports(dims))], data)
        return Value(made, type, tuple(dims))

    def apply(self, op: str, left: Value, right: Value) -> Value:
        word = {"Add": "Add", "Sub": "Subtract", "Mod": "FloorMod"}[op]
        return self.node(word, "opset1", [left, right], left.type, left.dims, auto_broadcast="numpy")

    def cast(self, value: Value, type: str) -> Value:
        return self.node("Convert", "opset1", [value], type, value.dims, destination_type=type)

    def scatter(self, kind: str, data: Value, at: Value, new: Value, axis: int, reduction: str) -> Value:
        is_late = reduction != "none" or self.chance.random() < 0.5
        word = {"reduction": reduction} if is_late else {}
        if kind in {"pairs", "rows"}:
            version = "opset15" if is_late else "opset4"
            return self.node("ScatterNDUpdate", version, [data, at, new], data.type, data.dims, **word)
        op, version = ("ScatterUpdate", "opset3") if kind == "slices" else (
            "ScatterElementsUpdate", "opset12" if is_late else "opset3"
        )  # fmt: skip
        word = {} if kind == "slices" else word
        place = self.const("i32", axis)
        return self.node(op, version, [data, at, new, place], data.type, data.dims, **word)

    def result(self, value: Value) -> int:
        return result(self.text, value.ref)

    def loop(
        self, trips: "int | Value | None", states: Values, parts: Values, fixed: Values, body: Body
    ) -> Values:
        inner = IrGraph(self.chance, self.text.weights)
        step = None if trips is None else inner.input("i64", (1,))
        olds = [inner.input(value.type, value.dims) for value in states]
        cut = [inner.input(value.type, (1, *value.dims[1:])) for value in parts]
        kept = [inner.input(value.type, value.dims) for value in fixed]
        flat = [inner.squeezed(value) for value in cut]
        news = body(inner, step, olds, flat, kept)
        results = [inner.result(value) for value in news]
        before: Values = []
        if trips is not None:
            count = self.const("i64", trips) if isinstance(trips, int) else trips
            before = [count, self.const("boolean", True)]
        given = [*before, *states, *parts, *fixed]
        ports = range(len(before), len(given))
        maps = ["<port_map>"]
        if step is not None:
            maps.append(put_in(-1, step.ref, ITERATION))
        for port, value in zip(ports, [*olds, *cut, *kept], strict=True):
            maps.append(put_in(port, value.ref, PARTS if value in cut else ""))
        maps += [put_out(port, number) for port, number in enumerate(results, len(given))]
        if step is not None:
            maps.append(put_out(-1, inner.result(inner.const("boolean", True)), CONDITION))
        edges = carried((number, old.ref) for number, old in zip(results, olds, strict=True))
        maps.append(f"</port_map>{edges}{inner.text.body('body')}")
        op, version = ("TensorIterator", "opset1") if trips is None else ("Loop", "opset5")
        outputs = [(value.type, _ports(value.dims)) for value in news]
        refs = [value.ref for value in given]
        made = self.text.add(self.name("loop"), op, version, refs, outputs, inside="".join(maps))
        return _outputs(made, news)

    def squeezed(self, value: Value) -> Value:
        place = self.const("i64", [0])
        return self.node("Squeeze", "opset1", [value, place], value.type, value.dims[1:])

    def branch(self, flag: Value, given: Values, ways: Sequence[Callable[[Any, Values], Value]]) -> Value:
        inside, like = "", given[0]
        for name, way in zip(("then", "else"), ways, strict=True):
            inner = IrGraph(self.chance, self.text.weights)
            own = [inner.input(value.type, value.dims) for value in given]
            like = way(inner, own)
            number = inner.result(like)
            maps = "".join(put_in(port, value.ref) for port, value in enumerate(own, 1))
            maps += put_out(len(given) + 1, number)
            inside += f"<{name}_port_map>{maps}</{name}_port_map>{inner.text.body(f'{name}_body')}"
        refs = [value.ref for value in (flag, *given)]
        outputs = [(like.type, _ports(like.dims))]
        made = self.text.add(self.name("if"), "If", "opset8", refs, outputs, inside=inside)
        return Value(made, like.type, like.dims)


Graph = OnnxGraph | IrGraph


def _ports(dims: Sequence[Dim]) -> list[int]:
    return [dim if isinstance(dim, int) else -1 for dim in dims]


def _outputs(made: Output, likes: Values) -> Values:
    return [
        Value(Output(made.layer, made.port + number, like.type, _ports(like.dims)), like.type, like.dims)
        for number, like in enumerate(likes)
    ]


def _passing_on(body: Body, count: int) -> Body:
    """Return a body whose states after the first `count` never change."""

    def passing(graph: Graph, step: Value | None, states: Values, parts: Values, _: Values) -> Values:
        fixed = states[count:]
        return [*body(graph, step, states[:count], parts, fixed), *fixed]

    return passing


@dataclass
class Plan:
    """What a random model is made of."""

    chance: random.Random
    kind: str
    type: str
    index_type: str
    size: int
    reduction: str
    is_dynamic: bool
    trips: int
    words: list[str] = field(default_factory=list)
    ranks: int = 0
    """Every rank of data up to this one is drawn, with static shapes; 0 for two dimensions."""

    def dim(self, size: int, name: str) -> Dim:
        return name if self.is_dynamic and self.chance.random() < 0.5 else size


def write(
    chance: random.Random, folder: Path, *, is_onnx: bool, name: str = "model", ranks: int = 0
) -> tuple[Path, Plan]:
    """Write a random model; return its path and what it is made of."""
    graph: Graph
    opset = chance.choice([13, 16, 17, 18, 20]) if is_onnx else 0
    graph = OnnxGraph(chance, opset) if is_onnx else IrGraph(chance)
    kind = chance.choice(graph.kinds)
    words = ["none", "none"]
    if graph.has_reduction and kind != "slices":
        words += ["sum", "prod", *(("min", "max") if not is_onnx or opset >= 18 else ())]
    plan = Plan(
        chance, kind, chance.choice(["f32", "f32", "i32"]),
        "i64" if is_onnx and kind in {"pairs", "rows"} else chance.choice(["i64", "i32"]),
        chance.randint(3, 6), chance.choice(words), chance.random() < 0.4 and not ranks, chance.randint(1, 3),
        ranks=ranks,
    )  # fmt: skip
    outputs = _main(graph, plan)
    if isinstance(graph, OnnxGraph):
        path = folder / f"{name}.onnx"
        imports = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
        model = helper.make_model(
            graph.finished(outputs, is_main=True),
            opset_imports=imports, functions=graph.functions, ir_version=10,
        )  # fmt: skip
        onnx.checker.check_model(model)
        path.write_bytes(model.SerializeToString())
        return path, plan
    assert isinstance(graph, IrGraph)
    for value in outputs:
        graph.result(value)
    return Path(graph.text.write(folder, name)), plan


def _main(graph: Graph, plan: Plan) -> Values:
    chance = plan.chance
    narrow = chance.randint(1, 3) if plan.kind != "pairs" else 4
    rows, columns, count = plan.dim(plan.size, "S"), plan.dim(narrow, "D"), plan.dim(2, "N")
    dims: tuple[Dim, ...] = (rows, columns)
    lead: tuple[Dim, ...] = (count,)
    if plan.ranks:
        dims, lead = _deep_sizes(plan)
        plan.words.append(f"rank {len(dims)}")
    shapes: dict[str, tuple[tuple[Dim, ...], tuple[Dim, ...]]] = {
        "slices": (lead, (*lead, *dims[1:])),
        "elements": ((count, *dims[1:]), (count, *dims[1:])),
        "rows": ((*lead, 1), (*lead, *dims[1:])),
        "pairs": ((*lead, 2), (*lead, *dims[2:])),
    }
    at_dims, new_dims = shapes[plan.kind]
    data = graph.input(plan.type, dims)
    structures = ["plain", "loop", "loop", "parts", "parts", "if", "nested", "nested_if", "behind"]
    if max(len(at_dims), len(new_dims)) == plan.ranks:  # a loop would cut parts from an input of one more
        structures = ["plain", "if", "behind"]
    structure = chance.choice(structures)
    plan.words.append(structure)
    if structure == "plain":
        at, new = graph.input(plan.index_type, at_dims), graph.input(plan.type, new_dims)
        return [_scatter(graph, plan, data, _arithmetic(graph, plan, at, None), new)]
    if structure == "behind":
        at, new = graph.input(plan.index_type, at_dims), graph.input(plan.type, new_dims)
        (new,) = graph.loop(
            plan.trips,
            [new],
            [],
            [],
            lambda inner, _, states, *__: [inner.apply("Add", states[0], states[0])],
        )
        return [_scatter(graph, plan, data, at, new)]
    if structure == "if":
        return [_branch(graph, plan, graph.input("boolean", ()), data, at_dims, new_dims)]
    least = 2 if plan.kind == "pairs" else plan.size - 1  # another 1 may be added before the node
    is_long = chance.random() < 0.03
    trips = chance.choice([20, 300]) if is_long else plan.trips
    way = chance.choice(["fixed", "parts", "carried", "counted"]) if structure != "parts" else "parts"
    trips = plan.trips if way == "counted" else trips
    plan.words.append(way)
    deep = plan.dim(trips, "T") if way == "parts" else trips
    at = graph.input(plan.index_type, (deep, *at_dims) if way == "parts" else at_dims)
    are_parts = chance.random() < 0.5
    new = graph.input(plan.type, (deep if way == "parts" else trips, *new_dims) if are_parts else new_dims)
    states, parts, fixed = [data], list[Value](), list[Value]()
    (parts if way == "parts" else states if way == "carried" else fixed).append(at)
    (parts if are_parts else fixed).append(new)
    flag = graph.input("boolean", ()) if structure == "nested_if" else None
    fixed += [] if flag is None else [flag]

    def body(inner: Graph, step: Value | None, olds: Values, cut: Values, kept: Values) -> Values:
        rest, some = list(cut), list(kept)
        here = rest.pop(0) if way == "parts" else olds[1] if way == "carried" else some.pop(0)
        what = rest.pop(0) if are_parts else some.pop(0)
        table, used = (
            olds[0],
            _arithmetic(inner, plan, here, step if way == "counted" else None, may_be_0=way == "carried"),
        )
        if structure == "nested":
            (table,) = inner.loop(
                plan.chance.randint(1, 2), [table], [], [used, what],
                lambda deep, count, states, _, more: [_scatter(deep, plan, states[0], more[0], more[1])],
            )  # fmt: skip
        elif structure == "nested_if":
            ways = [
                lambda deep, all: _scatter(deep, plan, all[0], all[1], all[2]),
                lambda deep, all: deep.apply("Add", all[0], all[0]),
            ]
            table = inner.branch(some[0], [table, used, what], plan.chance.sample(ways, 2))
        else:
            table = _scatter(inner, plan, table, used, what)
        if way != "carried":
            return [table]
        one = inner.const(plan.index_type, 1)
        moved = inner.apply("Add", here, one)
        if is_long or plan.chance.random() < 0.5:
            moved = inner.apply("Mod", moved, inner.const(plan.index_type, least))
        return [table, moved]

    needs_trips = way != "parts" or structure != "parts"
    count_: int | Value | None = trips if needs_trips and deep == trips else None
    if count_ is not None and way in {"fixed", "carried"} and plan.chance.random() < 0.3:
        plan.words.append("told")
        count_ = graph.input("i64", ())
    found = graph.loop(count_, states, parts, fixed, body)
    return found


def _deep_sizes(plan: Plan) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Draw the sizes of data of any rank, and the first sizes of indices, which updates begin with too."""
    chance = plan.chance
    replaced = 2 if plan.kind == "pairs" else 1
    rank = chance.randint(replaced, plan.ranks)
    second = 4 if plan.kind == "pairs" else chance.randint(1, 3)
    dims = (plan.size, second, *(chance.randint(1, 2) for _ in range(plan.ranks)))[:rank]
    longest = plan.ranks - max(rank - replaced, plan.kind in {"rows", "pairs"})
    return dims, (2, *(1 for _ in range(chance.choice([0, chance.randint(0, longest - 1)]))))


def _branch(
    graph: Graph, plan: Plan, flag: Value, data: Value, at_dims: Sequence[Dim], new_dims: Sequence[Dim]
) -> Value:
    at, new = graph.input(plan.index_type, at_dims), graph.input(plan.type, new_dims)

    def then(inner: Graph, given: Values) -> Value:
        return _scatter(inner, plan, given[0], _arithmetic(inner, plan, given[1], None), given[2])

    def other(inner: Graph, given: Values) -> Value:
        if plan.chance.random() < 0.5:
            return inner.apply("Add", given[0], given[0])
        return _scatter(inner, plan, given[0], given[1], given[2])

    return graph.branch(flag, [data, at, new], [then, other])


def _arithmetic(graph: Graph, plan: Plan, at: Value, step: Value | None, *, may_be_0: bool = False) -> Value:
    """Put something between an index and its node; one that may be 0 is not made less."""
    if step is not None:
        counted = graph.cast(step, at.type) if at.type != step.type else step
        return graph.apply("Add", at, counted)
    word = plan.chance.choice(["", "", "", "Add", "Mod", *(() if may_be_0 else ("Sub",))])
    plan.words.append(word)
    if not word:
        return at
    number = plan.size if word == "Mod" and plan.kind != "pairs" else 1
    return graph.apply(word, at, graph.const(at.type, number))


def _scatter(graph: Graph, plan: Plan, data: Value, at: Value, new: Value) -> Value:
    return graph.scatter(plan.kind, data, at, new, 0, plan.reduction)
