"""Graphs of whole models, as IR and as ONNX, that compute their own expected outputs.

Every value carries the array that it has for the inputs that the model is drawn with, computed by a NumPy
function that stands beside the operator: an oracle that shares no code with the evaluator.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.models.ir_text import IrText, Output
from tests.models.nested_ir import CONDITION, ITERATION, PARTS, carried, put_in, put_out, result

Array: TypeAlias = npt.NDArray[Any]
Env: TypeAlias = "dict[Value, Array]"
Values: TypeAlias = "list[Value]"
Body: TypeAlias = "Callable[[Graph, Value | None, Values, Values], Values]"
"""Takes the body, the number of the iteration, states and invariants; returns the new states."""
Way: TypeAlias = "Callable[[Graph, Values], Values]"
"""Takes a branch or function and the values that flow in; returns its outputs."""

DTYPES: dict[str, npt.DTypeLike] = {
    "f32": "float32", "f16": "float16", "f64": "float64", "i8": "int8", "i16": "int16", "i32": "int32",
    "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "boolean": "bool",
}  # fmt: skip
ONNX_TYPES = {
    "f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "f64": TensorProto.DOUBLE, "i8": TensorProto.INT8,
    "i16": TensorProto.INT16, "i32": TensorProto.INT32, "i64": TensorProto.INT64, "u8": TensorProto.UINT8,
    "u16": TensorProto.UINT16, "u32": TensorProto.UINT32, "u64": TensorProto.UINT64,
    "boolean": TensorProto.BOOL,
}  # fmt: skip


@dataclass(eq=False)
class Value:
    """A tensor of a graph that is being written, with the array that it has for the drawn inputs."""

    ref: Any
    type: str
    array: Array
    is_open: bool = False
    """Whether the file leaves dimensions unknown."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape


@dataclass
class Drawing:
    """What all graphs of one model share."""

    chance: random.Random
    opset: int = 0
    same_names: bool = False
    """Whether sibling graphs of an ONNX model use the same value names."""
    minus_one: bool = False
    """Whether open dimensions of an ONNX model are -1 instead of names."""
    open_share: float = 0.0
    words: list[str] = field(default_factory=list)
    feeds: dict[str, Array] = field(default_factory=dict)
    count: int = 0
    weights: bytearray = field(default_factory=bytearray)
    functions: list[onnx.FunctionProto] = field(default_factory=list)

    def number(self) -> int:
        self.count += 1
        return self.count


class Graph:
    """A graph of either format: `op` writes a node and computes it."""

    is_onnx: bool

    def __init__(self, drawing: Drawing, depth: int = 0) -> None:
        self.drawing, self.depth, self.chance = drawing, depth, drawing.chance
        self.steps: list[Callable[[Env], None]] = []
        self.env: Env = {}

    def op(
        self,
        onnx_type: str,
        ir_type: str,
        inputs: Values,
        function: Callable[..., Any],
        *,
        attributes: Mapping[str, Any] | None = None,
        data: Mapping[str, str] | None = None,
        type: str = "",
        is_open: bool | None = None,
    ) -> Value:
        """Add a node of one output: "Add", "Add-opset1", and the NumPy function that gives it."""
        type = type or inputs[0].type

        def compute(arrays: Sequence[Array]) -> Array:
            return np.asarray(function(*arrays)).astype(DTYPES[type], copy=False)

        array = compute([value.array for value in inputs])
        is_open = any(value.is_open for value in inputs) if is_open is None else is_open
        ref = self.emit(onnx_type, ir_type, inputs, type, array.shape, is_open, attributes or {}, data or {})
        made = Value(ref, type, array, is_open)

        def step(env: Env) -> None:
            env[made] = compute([env.get(value, value.array) for value in inputs])

        self.steps.append(step)
        return made

    def emit(
        self, onnx_type: str, ir_type: str, inputs: Values, type: str, shape: tuple[int, ...],
        is_open: bool, attributes: Mapping[str, Any], data: Mapping[str, str],
    ) -> Any:  # fmt: skip
        raise NotImplementedError

    def input(self, array: Array, type: str, *, declare: bool = True) -> Value:
        raise NotImplementedError

    def const(self, values: Any, type: str) -> Value:
        raise NotImplementedError

    def branch(self, flag: Value, given: Values, ways: Sequence[Way]) -> Values:
        raise NotImplementedError

    def loop(
        self, trips: Value, begins: Value, states: Values, fixed: Values, body: Body, **how: Any
    ) -> Values:
        raise NotImplementedError

    def scan(self, states: Values, parts: Values, fixed: Values, body: Body) -> Values:
        raise NotImplementedError

    # Operators that both formats have.

    def ints(self, values: Any) -> Value:
        return self.const(values, "i64")

    def add(self, left: Value, right: Value) -> Value:
        return self.op("Add", "Add-opset1", [left, right], np.add, data={"auto_broadcast": "numpy"})

    def subtract(self, left: Value, right: Value) -> Value:
        return self.op("Sub", "Subtract-opset1", [left, right], np.subtract, data={"auto_broadcast": "numpy"})

    def multiply(self, left: Value, right: Value) -> Value:
        return self.op("Mul", "Multiply-opset1", [left, right], np.multiply, data={"auto_broadcast": "numpy"})

    def cast(self, value: Value, type: str) -> Value:
        return self.op(
            "Cast", "Convert-opset1", [value], lambda x: x.astype(DTYPES[type]), type=type,
            attributes={"to": ONNX_TYPES[type]}, data={"destination_type": type},
        )  # fmt: skip

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        target = self.ints(list(shape))
        return self.op(
            "Reshape", "Reshape-opset1", [value, target], lambda x, _: x.reshape(tuple(shape)),
            attributes={"allowzero": 1} if 0 in shape else {}, data={"special_zero": "false"},
            is_open=False,
        )  # fmt: skip

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        if self.is_onnx:
            return self.op("Transpose", "", [value], lambda x: x.transpose(order), attributes={"perm": order})
        places = self.ints(list(order))
        return self.op("", "Transpose-opset1", [value, places], lambda x, _: x.transpose(order))

    def unsqueeze(self, value: Value, axis: int) -> Value:
        if self.is_onnx and self.drawing.opset < 13:
            attributes = {"axes": [axis]}
            return self.op("Unsqueeze", "", [value], lambda x: np.expand_dims(x, axis), attributes=attributes)
        axes = self.ints([axis])
        return self.op("Unsqueeze", "Unsqueeze-opset1", [value, axes], lambda x, _: np.expand_dims(x, axis))

    def squeeze(self, value: Value, axis: int) -> Value:
        if self.is_onnx and self.drawing.opset < 13:
            attributes = {"axes": [axis]}
            return self.op("Squeeze", "", [value], lambda x: x.squeeze(axis), attributes=attributes)
        axes = self.ints([axis])
        version = "opset15" if self.chance.random() < 0.2 else "opset1"
        return self.op("Squeeze", f"Squeeze-{version}", [value, axes], lambda x, _: x.squeeze(axis))

    def cut(self, value: Value, begin: int, end: int, axis: int) -> Value:
        numbers = [self.ints([number]) for number in (begin, end)]
        if not self.is_onnx:
            numbers.append(self.ints([1]))
        numbers.append(self.ints([axis]))
        place = (slice(None),) * axis + (slice(begin, end),)
        return self.op("Slice", "Slice-opset8", [value, *numbers], lambda x, *_: x[place])

    def concat(self, values: Values, axis: int) -> Value:
        return self.op(
            "Concat", "Concat-opset1", values, lambda *arrays: np.concatenate(arrays, axis),
            attributes={"axis": axis}, data={"axis": str(axis)},
        )  # fmt: skip

    def broadcast(self, value: Value, shape: Sequence[int]) -> Value:
        target = self.ints(list(shape))
        return self.op(
            "Expand", "Broadcast-opset3", [value, target], lambda x, _: np.broadcast_to(x, tuple(shape)),
            data={"mode": "numpy"}, is_open=False,
        )  # fmt: skip

    def shape_of(self, value: Value) -> Value:
        return self.op(
            "Shape", "ShapeOf-opset3", [value], lambda x: np.array(x.shape, np.int64), type="i64",
            data={"output_type": "i64"}, is_open=False,
        )  # fmt: skip

    def extreme(self, word: str, left: Value, right: Value) -> Value:
        function = np.minimum if word == "Min" else np.maximum
        data = {"auto_broadcast": "numpy"}
        return self.op(word, f"{word}imum-opset1", [left, right], function, data=data)


class OnnxGraph(Graph):
    """A graph of an ONNX model; bodies name the values around them."""

    is_onnx = True

    def __init__(self, drawing: Drawing, depth: int = 0, *, is_function: bool = False) -> None:
        super().__init__(drawing, depth)
        self.is_function = is_function
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self.infos: list[onnx.ValueInfoProto] = []
        self._count = 0

    def name(self) -> str:
        if not self.drawing.same_names or not self.depth:
            return f"v{self.drawing.number()}"
        self._count += 1
        return f"d{self.depth}_{self._count}"

    def info(self, name: str, type: str, shape: Sequence[int], is_open: bool) -> onnx.ValueInfoProto:
        dims: list[int | str] = list(shape)
        if is_open:
            dims = [-1 if self.drawing.minus_one else f"s{self.drawing.number()}" for _ in dims]
        return helper.make_tensor_value_info(name, ONNX_TYPES[type], dims)

    def input(self, array: Array, type: str, *, declare: bool = True) -> Value:
        name = self.name()
        is_open = array.ndim > 0 and self.chance.random() < self.drawing.open_share
        if self.is_function:
            return Value(name, type, array, True)
        info = self.info(name, type, array.shape, is_open)
        if not declare:
            info = helper.make_tensor_value_info(name, ONNX_TYPES[type], None)
        self.inputs.append(info)
        if not self.depth:
            self.drawing.feeds[name] = array
        return Value(name, type, array, is_open or not declare)

    def const(self, values: Any, type: str) -> Value:
        array, name = np.array(values, DTYPES[type]), self.name()
        if self.is_function or self.chance.random() < 0.5:
            tensor = numpy_helper.from_array(array)
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        else:
            self.tensors.append(numpy_helper.from_array(array, name))
        return Value(name, type, array)

    def emit(
        self, onnx_type: str, ir_type: str, inputs: Values, type: str, shape: tuple[int, ...],
        is_open: bool, attributes: Mapping[str, Any], data: Mapping[str, str],
    ) -> str:  # fmt: skip
        name, refs = self.name(), [value.ref for value in inputs]
        if onnx_type == "Reshape" and self.drawing.opset < 14:
            attributes = {}
        self.nodes.append(helper.make_node(onnx_type, refs, [name], name=f"n_{name}", **attributes))
        if self.drawing.minus_one and shape and not self.is_function and self.chance.random() < 0.3:
            dims = [-1 if self.chance.random() < 0.5 else dim for dim in shape]
            self.infos.append(helper.make_tensor_value_info(name, ONNX_TYPES[type], dims))
        return name

    def many(self, type: str, inputs: Values, likes: Iterable[Value], **attributes: Any) -> Values:
        made = [Value(self.name(), like.type, like.array, True) for like in likes]
        names = [value.ref for value in made]
        refs = [value.ref for value in inputs]
        self.nodes.append(helper.make_node(type, refs, names, name=f"n_{names[0]}", **attributes))
        return made

    def identity(self, value: Value) -> Value:
        return self.op("Identity", "", [value], lambda x: x)

    def finished(self, outputs: Values) -> onnx.GraphProto:
        made = []
        for value in outputs:
            info = self.info(value.ref, value.type, value.shape, value.is_open)
            if self.depth and self.chance.random() < 0.5:
                info = helper.make_tensor_value_info(value.ref, ONNX_TYPES[value.type], None)
            made.append(info)
        names = {info.name for info in made}
        infos = [info for info in self.infos if info.name not in names]
        name = f"g{self.drawing.number()}"
        return helper.make_graph(self.nodes, name, self.inputs, made, self.tensors, value_info=infos)

    def branch(self, flag: Value, given: Values, ways: Sequence[Way]) -> Values:
        graphs, bodies, ends = [], list[OnnxGraph](), list[Values]()
        for way in ways:
            inner = OnnxGraph(self.drawing, self.depth + 1)
            outputs = [inner.identity(value) for value in way(inner, given)]
            graphs.append(inner.finished(outputs))
            bodies.append(inner)
            ends.append(outputs)
        taken = 0 if flag.array.item() else 1
        made = self.many("If", [flag], ends[taken], then_branch=graphs[0], else_branch=graphs[1])

        def step(env: Env) -> None:
            number = 0 if env.get(flag, flag.array).item() else 1
            inner = run_steps(bodies[number], env)
            for value, end in zip(made, ends[number], strict=True):
                env[value] = inner.get(end, end.array)

        self.steps.append(step)
        return made

    def loop(
        self, trips: Value, begins: Value, states: Values, fixed: Values, body: Body, **how: Any
    ) -> Values:
        inner = OnnxGraph(self.drawing, self.depth + 1)
        declare = self.chance.random() < 0.7
        number = inner.input(np.array(0, np.int64), "i64")
        again = inner.input(np.array(True), "boolean")
        olds = [inner.input(value.array, value.type, declare=declare) for value in states]
        news = [inner.identity(value) for value in body(inner, number, olds, fixed)]
        goes_on = inner.const(True, "boolean") if how.get("constant") else inner.identity(again)
        graph = inner.finished([inner.identity(goes_on) if how.get("constant") else goes_on, *news])
        made = self.many("Loop", [trips, begins, *states], states, body=graph)
        self._iterate(inner, trips, begins, number, states, olds, news, made)
        return made

    def _iterate(
        self, inner: Graph, trips: Value, begins: Value, number: Value | None, states: Values, olds: Values,
        news: Values, made: Values,
    ) -> None:  # fmt: skip
        add_iterations(self, inner, trips, begins, number, states, olds, news, made)

    def scan(self, states: Values, parts: Values, fixed: Values, body: Body) -> Values:
        if self.chance.random() < 0.9:  # OpenVINO's frontend reads no Scan that names values around it
            count = len(states)

            def passing(graph: Graph, step: Value | None, all: Values, _: Values) -> Values:
                kept = all[count : count + len(fixed)]
                return [*body(graph, step, [*all[:count], *all[count + len(fixed) :]], kept), *kept]

            return self._scan([*states, *fixed], parts, [], passing)[:count]
        return self._scan(states, parts, fixed, body)

    def _scan(self, states: Values, parts: Values, fixed: Values, body: Body) -> Values:
        inner = OnnxGraph(self.drawing, self.depth + 1)
        olds = [inner.input(value.array, value.type) for value in states]
        cut = [inner.input(value.array[0], value.type) for value in parts]
        news = [inner.identity(value) for value in body(inner, None, [*olds, *cut], fixed)]
        graph = inner.finished(news)
        made = self.many("Scan", [*states, *parts], states, body=graph, num_scan_inputs=len(parts))
        add_parts(self, inner, states, parts, olds, cut, news, made)
        return made

    def call(self, given: Values, way: Way) -> Values:
        """Put nodes into a function, and call that."""
        number = self.drawing.number()
        inner = OnnxGraph(self.drawing, self.depth + 1, is_function=True)
        names = [f"p{port}" for port in range(len(given))]
        inside = [
            Value(name, value.type, value.array, True) for name, value in zip(names, given, strict=True)
        ]
        outputs = way(inner, inside)
        function = helper.make_function(
            "own", f"F{number}", names, [value.ref for value in outputs], inner.nodes,
            [helper.make_opsetid("", self.drawing.opset), helper.make_opsetid("own", 1)],
        )  # fmt: skip
        self.drawing.functions.append(function)
        made = self.many(f"F{number}", given, outputs, domain="own")

        def step(env: Env) -> None:
            arrays = {name: env.get(value, value.array) for name, value in zip(inside, given, strict=True)}
            ends = run_steps(inner, {**env, **arrays})
            for value, end in zip(made, outputs, strict=True):
                env[value] = ends.get(end, end.array)

        self.steps.append(step)
        step_env: Env = {}
        step(step_env)
        for value in made:
            value.array = step_env[value]
        return made


def run_steps(graph: Graph, env: Env) -> Env:
    inner = dict(env)
    for step in graph.steps:
        step(inner)
    return inner


def add_iterations(
    graph: Graph, inner: Graph, trips: Value, begins: Value, number: Value | None, states: Values,
    olds: Values, news: Values, made: Values,
) -> None:  # fmt: skip
    """Add the step that iterates a body, and compute it once."""

    def step(env: Env) -> None:
        arrays = [env.get(value, value.array) for value in states]
        count = int(env.get(trips, trips.array).item()) if env.get(begins, begins.array).item() else 0
        for turn in range(count):
            start = dict(env)
            start.update(zip(olds, arrays, strict=True))
            if number is not None:
                start[number] = np.full(number.shape, turn, np.int64)
            ends = run_steps(inner, start)
            arrays = [ends.get(value, value.array) for value in news]
        env.update(zip(made, arrays, strict=True))

    graph.steps.append(step)
    done: Env = {}
    step(done)
    for value in made:
        value.array = done[value]


def add_parts(
    graph: Graph, inner: Graph, states: Values, parts: Values, olds: Values, cut: Values, news: Values,
    made: Values,
) -> None:  # fmt: skip
    """Add the step that iterates a body over parts, and compute it once."""

    def step(env: Env) -> None:
        arrays = [env.get(value, value.array) for value in states]
        whole = [env.get(value, value.array) for value in parts]
        for turn in range(len(whole[0])):
            start = dict(env)
            start.update(zip(olds, arrays, strict=True))
            for value, array in zip(cut, whole, strict=True):
                start[value] = array[turn].reshape(value.shape)
            ends = run_steps(inner, start)
            arrays = [ends.get(value, value.array) for value in news]
        env.update(zip(made, arrays, strict=True))

    graph.steps.append(step)
    done: Env = {}
    step(done)
    for value in made:
        value.array = done[value]


class IrGraph(Graph):
    """A graph of an IR; what flows into a body is mapped to its parameters."""

    is_onnx = False

    def __init__(self, drawing: Drawing, depth: int = 0) -> None:
        super().__init__(drawing, depth)
        self.text = IrText(drawing.weights)
        self.sinks: list[Output] = []

    def name(self, word: str) -> str:
        return f"{word}_{self.text.count}"

    def ports(self, shape: Sequence[int], is_open: bool) -> list[int]:
        return [-1] * len(shape) if is_open else list(shape)

    def input(self, array: Array, type: str, *, declare: bool = True) -> Value:
        share = self.drawing.open_share
        shape: list[int | str] = ["?" if self.chance.random() < share else dim for dim in array.shape]
        is_open = "?" in shape
        name = self.name("in")
        if not self.depth:
            self.drawing.feeds[name] = array
        return Value(self.text.parameter(name, type, shape), type, array, is_open)

    def parameter(self, value: Value) -> Value:
        """Add a Parameter of a body that is declared as what flows in."""
        shape: list[int | str] = ["?" if value.is_open else dim for dim in value.shape]
        made = self.text.parameter(self.name("p"), value.type, shape)
        return Value(made, value.type, value.array, value.is_open)

    def const(self, values: Any, type: str) -> Value:
        array = np.array(values, DTYPES[type])
        made = self.text.const(self.name("c"), type, array)
        return Value(made, type, array)

    def emit(
        self, onnx_type: str, ir_type: str, inputs: Values, type: str, shape: tuple[int, ...],
        is_open: bool, attributes: Mapping[str, Any], data: Mapping[str, str],
    ) -> Output:  # fmt: skip
        op, version = ir_type.split("-")
        refs = [value.ref for value in inputs]
        return self.text.add(
            self.name(op.lower()), op, version, refs, [(type, self.ports(shape, is_open))], data
        )

    def many(self, made: Output, likes: Iterable[Value]) -> Values:
        found = []
        for number, like in enumerate(likes):
            ref = Output(made.layer, made.port + number, like.type, self.ports(like.shape, True))
            found.append(Value(ref, like.type, like.array, True))
        return found

    def branch(self, flag: Value, given: Values, ways: Sequence[Way]) -> Values:
        inside, bodies, params, ends = "", list[IrGraph](), list[Values](), list[Values]()
        for name, way in zip(("then", "else"), ways, strict=True):
            inner = IrGraph(self.drawing, self.depth + 1)
            olds = [inner.parameter(value) for value in given]
            outputs = way(inner, olds)
            numbers = [result(inner.text, value.ref) for value in outputs]
            maps = "".join(put_in(port, value.ref) for port, value in enumerate(olds, 1))
            maps += "".join(put_out(port, number) for port, number in enumerate(numbers, len(given) + 1))
            inside += f"<{name}_port_map>{maps}</{name}_port_map>{inner.text.body(f'{name}_body')}"
            bodies.append(inner)
            params.append(olds)
            ends.append(outputs)
        refs = [value.ref for value in (flag, *given)]
        taken = 0 if flag.array.item() else 1
        outs = [(end.type, self.ports(end.shape, True)) for end in ends[taken]]
        layer = self.text.add(self.name("if"), "If", "opset8", refs, outs, inside=inside)
        made = self.many(layer, ends[taken])

        def step(env: Env) -> None:
            number = 0 if env.get(flag, flag.array).item() else 1
            start = dict(env)
            for value, old in zip(given, params[number], strict=True):
                start[old] = env.get(value, value.array)
            inner = run_steps(bodies[number], start)
            for value, end in zip(made, ends[number], strict=True):
                env[value] = inner.get(end, end.array)

        self.steps.append(step)
        return made

    def loop(
        self, trips: Value, begins: Value, states: Values, fixed: Values, body: Body, **how: Any
    ) -> Values:
        inner = IrGraph(self.drawing, self.depth + 1)
        number = inner.parameter(Value(None, "i64", np.zeros(1, np.int64)))
        olds = [inner.parameter(value) for value in states]
        kept = [inner.parameter(value) for value in fixed]
        news = body(inner, number, olds, kept)
        numbers = [result(inner.text, value.ref) for value in news]
        given = [trips, begins, *states, *fixed]
        maps = [put_in(-1, number.ref, ITERATION)]
        maps += [put_in(port, value.ref) for port, value in enumerate([*olds, *kept], 2)]
        maps += [put_out(port, layer) for port, layer in enumerate(numbers, len(given))]
        maps.append(put_out(-1, result(inner.text, inner.const(True, "boolean").ref), CONDITION))
        edges = carried((layer, old.ref) for layer, old in zip(numbers, olds, strict=True))
        inside = f"<port_map>{''.join(maps)}</port_map>{edges}{inner.text.body('body')}"
        outs = [(value.type, self.ports(value.shape, True)) for value in states]
        refs = [value.ref for value in given]
        layer = self.text.add(self.name("loop"), "Loop", "opset5", refs, outs, inside=inside)
        made = self.many(layer, states)
        add_iterations(self, _Bound(inner, kept, fixed), trips, begins, number, states, olds, news, made)
        return made

    def scan(self, states: Values, parts: Values, fixed: Values, body: Body) -> Values:
        inner = IrGraph(self.drawing, self.depth + 1)
        olds = [inner.parameter(value) for value in states]
        cut = [inner.parameter(Value(None, value.type, value.array[:1], value.is_open)) for value in parts]
        kept = [inner.parameter(value) for value in fixed]
        flat = [inner.squeeze(value, 0) for value in cut]
        news = body(inner, None, [*olds, *flat], kept)
        numbers = [result(inner.text, value.ref) for value in news]
        given = [*states, *parts, *fixed]
        maps = [
            put_in(port, value.ref, PARTS if value in cut else "")
            for port, value in enumerate([*olds, *cut, *kept])
        ]
        maps += [put_out(port, layer) for port, layer in enumerate(numbers, len(given))]
        edges = carried((layer, old.ref) for layer, old in zip(numbers, olds, strict=True))
        inside = f"<port_map>{''.join(maps)}</port_map>{edges}{inner.text.body('body')}"
        outs = [(value.type, self.ports(value.shape, True)) for value in states]
        refs = [value.ref for value in given]
        layer = self.text.add(self.name("iterator"), "TensorIterator", "opset1", refs, outs, inside=inside)
        made = self.many(layer, states)
        add_parts(self, _Bound(inner, kept, fixed), states, parts, olds, cut, news, made)
        return made

    def state(self, start: Value, name: str) -> Value:
        """Add a ReadValue, which gives its start at the first run."""
        dims = ",".join("?" if start.is_open else str(dim) for dim in start.shape)
        data = {"variable_id": name, "variable_type": start.type, "variable_shape": dims}
        return self.op("", "ReadValue-opset6", [start], lambda x: x, data=data)

    def assign(self, value: Value, name: str) -> None:
        self.op("", "Assign-opset6", [value], lambda x: x, data={"variable_id": name})


class _Bound(Graph):
    """A body whose parameters take what flows in from around it."""

    def __init__(self, body: Graph, kept: Values, fixed: Values) -> None:
        super().__init__(body.drawing, body.depth)

        def bind(env: Env) -> None:
            for inner, outer in zip(kept, fixed, strict=True):
                env[inner] = env.get(outer, outer.array)

        self.steps = [bind, *body.steps]


def write_model(graph: Graph, outputs: Values, folder: Path, name: str) -> Path:
    """Write the model of a main graph and its outputs."""
    if isinstance(graph, OnnxGraph):
        drawing = graph.drawing
        imports = [helper.make_opsetid("", drawing.opset)]
        if drawing.functions:
            imports.append(helper.make_opsetid("own", 1))
        model = helper.make_model(
            graph.finished(outputs), opset_imports=imports, functions=drawing.functions, ir_version=10
        )
        path = folder / f"{name}.onnx"
        path.write_bytes(model.SerializeToString())
        return path
    assert isinstance(graph, IrGraph)
    for value in outputs:
        result(graph.text, value.ref)
    return Path(graph.text.write(folder, name))
