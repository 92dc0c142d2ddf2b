"""Random whole models around scatter nodes, all of them legal, with inputs and expected outputs.

Nodes stand in the main graph, in branches, loops and functions; their data, indices and updates are inputs,
constants, or come from operators that move nothing, make constants, or prove a range; their outputs are
read, read for their shape alone, or not at all.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from tests.campaigns.model_graphs import (
    DTYPES,
    Array,
    Drawing,
    Graph,
    IrGraph,
    OnnxGraph,
    Value,
    Values,
    write_model,
)

_ONNX_OPSETS = (9, 11, 13, 16, 18, 18, 20, 21, 24)
_FLOATS = ("f32", "f16", "f64")
_WHOLE = ("i32", "i64", "i8", "u8", "i16", "u16", "u32", "u64")
_PLAIN_OPSET = 13
"""Before this opset, axes are attributes and whole numbers have few operators: less is drawn."""


@dataclass(frozen=True)
class WholeModel:
    """A legal model: its file, inputs by name, expected outputs in order, and what was drawn."""

    path: Path
    feeds: dict[str, Array]
    expected: list[Array]
    words: tuple[str, ...]
    is_onnx: bool


@dataclass(frozen=True)
class Form:
    """What one scatter node is."""

    operator: str
    kind: str
    """"elements", "tuples", "slices", "cache"."""
    type: str
    index_type: str
    shape: tuple[int, ...]
    reduction: str = "none"
    use_init: bool = True
    wraps: bool = False
    axis: int = 0
    mode: str = "linear"


@dataclass(frozen=True)
class Operands:
    """The arrays of one scatter node."""

    form: Form
    data: Array
    indices: Array
    updates: Array
    is_fill: bool = False


def scatter_array(form: Form, data: Array, indices: Array, updates: Array) -> Array:
    """Compute a scatter node one element at a time, as the specification says."""
    writes: list[tuple[tuple[int, ...], Any]] = []
    axis = form.axis % max(data.ndim, 1)
    if form.kind == "elements":
        for place in np.ndindex(indices.shape):
            target = [*place]
            target[axis] = int(indices[place]) % data.shape[axis]
            writes.append((tuple(target), updates[place]))
    elif form.kind == "tuples":
        depth = indices.shape[-1]
        for place in np.ndindex(indices.shape[:-1]):
            sizes = data.shape[:depth]
            head = tuple(int(index) % size for index, size in zip(indices[place], sizes, strict=True))
            for rest in np.ndindex(data.shape[depth:]):
                writes.append(((*head, *rest), updates[(*place, *rest)]))
    elif form.kind == "slices":
        for before in np.ndindex(data.shape[:axis]):
            for place in np.ndindex(indices.shape):
                for rest in np.ndindex(data.shape[axis + 1 :]):
                    index = int(indices[place]) % data.shape[axis]
                    writes.append(((*before, index, *rest), updates[(*before, *place, *rest)]))
    else:
        for place in np.ndindex(updates.shape):
            target = [*place]
            target[axis] += int(indices[place[0]])
            if form.mode == "circular":
                target[axis] %= data.shape[axis]
            writes.append((tuple(target), updates[place]))
    return _reduced(form, data, writes)


def _reduced(form: Form, data: Array, writes: Sequence[tuple[tuple[int, ...], Any]]) -> Array:
    groups: dict[tuple[int, ...], list[Any]] = {}
    for target, update in writes:
        groups.setdefault(target, []).append(update)
    made = data.copy()
    for target, numbers in groups.items():
        if form.reduction == "none":
            made[target] = numbers[-1]
            continue
        every = [data[target], *numbers] if form.use_init else numbers
        total = every[0]
        for number in every[1:]:
            total = _REDUCTIONS[form.reduction](total, number, form.type == "boolean")
        if form.reduction == "mean":
            is_float = form.type in _FLOATS
            total = total / len(every) if is_float else int(total) // len(every)
        made[target] = total
    return made


_REDUCTIONS = {
    "sum": lambda a, b, is_bool: a | b if is_bool else a + b,
    "sub": lambda a, b, is_bool: a ^ b if is_bool else a - b,
    "prod": lambda a, b, is_bool: a & b if is_bool else a * b,
    "min": lambda a, b, is_bool: min(a, b),
    "max": lambda a, b, is_bool: max(a, b),
    "mean": lambda a, b, is_bool: a + b,
}


class _Writer:
    """Draws one model."""

    def __init__(self, chance: random.Random, *, is_onnx: bool) -> None:
        self.chance, self.is_onnx = chance, is_onnx
        opset = chance.choice(_ONNX_OPSETS) if is_onnx else 0
        self.drawing = Drawing(
            chance, opset, same_names=chance.random() < 0.5, minus_one=chance.random() < 0.1,
            open_share=chance.choice([0.0, 0.0, 0.3, 1.0]),
        )  # fmt: skip
        self.words = self.drawing.words
        self.main: Graph = OnnxGraph(self.drawing) if is_onnx else IrGraph(self.drawing)
        self.is_plain = is_onnx and opset < _PLAIN_OPSET
        self.outputs: Values = []
        self.is_high = chance.random() < 0.12
        self.random_beside = chance.random() < 0.05
        self.is_small = chance.random() < 0.3
        self.states: list[str] = []

    def draw(self) -> None:
        count = 1 if self.is_small else self.chance.choice([1, 1, 1, 2, 2])
        last: Value | None = None
        for _ in range(count):
            last = self._site(last)
            self._read(last)
        if self.chance.random() < 0.1:
            self._dead()
        if not self.outputs:
            self.outputs.append(self.view(self.supply(self.main, self.numbers((2, 3), "f32"), "f32", True)))

    # What a node is.

    def numbers(self, shape: Sequence[int], type: str) -> Array:
        """Draw small numbers, which every type holds and few products exceed."""
        low, high = (0, 1) if type == "boolean" else (0, 3) if type.startswith("u") else (-2, 3)
        drawn = [self.chance.randint(low, high) for _ in range(prod(shape))]
        return np.array(drawn).reshape(tuple(shape)).astype(DTYPES[type])

    def form(self, like: Value | None) -> Form:
        chance, opset = self.chance, self.drawing.opset
        rank = chance.choice([5, 5, 6, 7, 8]) if self.is_high else chance.choice([1, 1, 2, 2, 3, 4])
        sizes = [1, 1, 2, 2, 3] if self.is_high or self.is_small else [1, 2, 3, 4, 5]
        shape = tuple(0 if chance.random() < 0.02 else chance.choice(sizes) for _ in range(rank))
        type = chance.choice(["f32", "f32", "f32", "i32", "i64", "f16", chance.choice([*_FLOATS, *_WHOLE])])
        if like is not None and chance.random() < 0.6 and like.array.ndim:
            shape, type = like.shape, like.type
        index_type, reduction, use_init, wraps = chance.choice(["i64", "i32"]), "none", True, True
        axis = chance.randrange(len(shape))
        if self.is_onnx:
            operators = ["ScatterElements", "ScatterND"] if opset >= 11 else ["Scatter"]
            if opset >= 24 and len(shape) >= 2 and chance.random() < 0.4 and 0 not in shape:
                operators = ["TensorScatter"]
            operator = chance.choice(operators)
            words = ["none", "none"]
            if opset >= 16 and operator in {"ScatterElements", "ScatterND"}:
                words += ["sum", "prod"] + (["min", "max"] if opset >= 18 else [])
            reduction = chance.choice(words)
            if operator == "ScatterND":
                index_type, wraps = "i64", opset >= 13
            wraps = wraps and operator != "Scatter"
            if reduction == "none" and like is None and chance.random() < 0.08:
                type = "boolean"
        else:
            operator = chance.choice(
                ["ScatterUpdate-3", "ScatterElementsUpdate-3", "ScatterElementsUpdate-12",
                 "ScatterElementsUpdate-12", "ScatterNDUpdate-3", "ScatterNDUpdate-15", "ScatterNDUpdate-15"]
            )  # fmt: skip
            words = ["none", "none"]
            if operator == "ScatterElementsUpdate-12":
                words += ["sum", "prod", "min", "max", "mean"]
            if operator == "ScatterNDUpdate-15":
                words += ["sum", "prod", "min", "max", "sub"]
            reduction = chance.choice(words)
            if reduction == "mean" and type == "boolean":
                reduction = "sum"
            if operator == "ScatterElementsUpdate-12":
                use_init = reduction == "none" or chance.random() < 0.6
            wraps = operator[-2:] in {"12", "15"}
            if wraps and like is None and reduction != "mean" and chance.random() < 0.08:
                type = "boolean"
            if type == "boolean" and not wraps:
                operator, wraps, reduction = "ScatterElementsUpdate-12", True, "none"
        kind = {"Scat": "elements", "Tens": "cache"}[operator[:4]]
        if "ND" in operator:
            kind = "tuples"
        elif operator.startswith("ScatterUpdate"):
            kind = "slices"
        if reduction == "sub" and type.startswith("u"):
            reduction = "sum"
        mode = chance.choice(["linear", "circular"])
        if kind == "cache":
            index_type, axis = "i64", chance.randrange(1, len(shape))
        return Form(operator, kind, type, index_type, shape, reduction, use_init, wraps, axis, mode)

    def operands(self, form: Form) -> Operands:
        """Draw legal indices; their targets differ unless a reduction or equal updates allow repeats."""
        chance, shape, axis = self.chance, form.shape, form.axis
        is_fill = form.kind != "cache" and chance.random() < 0.12
        may_repeat = is_fill or form.reduction != "none"
        is_whole = chance.random() < 0.1
        is_empty = chance.random() < 0.05

        def some(size: int, count: int) -> list[int]:
            if size == 0:
                return []
            if may_repeat and chance.random() < 0.7:
                return [chance.randrange(size) for _ in range(count)]
            return chance.sample(range(size), min(size, count))

        if form.kind == "cache":
            size = shape[axis]
            length = chance.randint(1, size)
            limit = size if form.mode == "circular" else size - length + 1
            indices = np.array([chance.randrange(limit) for _ in range(shape[0])], np.int64)
            update_shape = (*shape[:axis], length, *shape[axis + 1 :])
        elif form.kind == "elements":
            dims = [size if is_whole else chance.randint(1, size) if size else 0 for size in shape]
            if is_empty:
                dims[chance.randrange(len(dims))] = 0
            lane = dims[axis]
            outer = [*dims[:axis], *dims[axis + 1 :]]
            lanes = [some(shape[axis], lane) for _ in range(prod(outer))]
            indices = np.moveaxis(np.array(lanes, np.int64).reshape(*outer, lane), -1, axis)
            update_shape = indices.shape
        elif form.kind == "slices":
            size = shape[axis]
            count = (
                0 if is_empty else size if is_whole else chance.randint(0 if not size else 1, max(size, 1))
            )
            found = some(size, count)
            dims = [len(found)]
            if len(found) == 1 and chance.random() < 0.15:
                dims = []
            elif chance.random() < 0.25:
                dims = [1, len(found)] if chance.random() < 0.5 else [len(found), 1]
            indices = np.array(found, np.int64).reshape(dims)
            update_shape = (*shape[:axis], *dims, *shape[axis + 1 :])
        else:
            depth = chance.randint(1, len(shape))
            sizes = shape[:depth]
            size = prod(sizes)
            count = (
                0 if is_empty else min(size, 12) if is_whole else chance.randint(min(size, 1), min(size, 5))
            )
            flat = some(size, count)
            tuples = np.stack(np.unravel_index(np.array(flat, np.int64), sizes), -1) if size else (
                np.zeros((0, depth), np.int64)
            )  # fmt: skip
            dims = [len(flat)]
            if len(flat) == 1 and chance.random() < 0.2:
                dims = []
            elif chance.random() < 0.25:
                dims = [1, len(flat)] if chance.random() < 0.5 else [len(flat), 1]
            indices = tuples.reshape(*dims, depth)
            update_shape = (*dims, *shape[depth:])
        if form.wraps and form.kind != "cache" and chance.random() < 0.3:
            indices = self._negative(form, indices)
        data, updates = self.numbers(shape, form.type), self.numbers(update_shape, form.type)
        if is_fill:
            updates = np.full(update_shape, self.numbers((), form.type))
            self.words.append("fill")
        if 0 in update_shape:
            self.words.append("empty")
        return Operands(form, data, indices.astype(DTYPES[form.index_type]), updates, is_fill)

    def _negative(self, form: Form, indices: Array) -> Array:
        sizes: Any = form.shape[form.axis]
        if form.kind == "tuples":
            sizes = np.array(form.shape[: indices.shape[-1]])
        is_all = self.chance.random() < 0.6
        mask = np.array([is_all or self.chance.random() < 0.5 for _ in range(indices.size)], bool)
        self.words.append("negative")
        return np.where(mask.reshape(indices.shape), indices - sizes, indices)

    # Where values come from.

    def view(self, value: Value, graph: Graph | None = None) -> Value:
        """Put operators after a value that move nothing."""
        for _ in range(1 if self.is_small else self.chance.choice([1, 1, 2])):
            value = self._view(graph or self.main, value)
        return value

    def _view(self, g: Graph, value: Value) -> Value:
        shape, rank = value.shape, len(value.shape)
        words = ["reshape", "convert", "transpose"] if rank else ["reshape", "convert"]
        if not self.is_plain:
            words += ["squeeze", *(["slice", "concat", "broadcast", "split"] if rank else [])]
            words += ["identity"] if self.is_onnx else (["strided"] if rank else [])
        if 0 in shape:
            words = [word for word in words if word not in {"split", "strided"}]
        word = self.chance.choice(words)
        self.words.append(f"view {word}")
        axis = self.chance.randrange(rank) if rank else 0
        if word == "reshape":
            return g.reshape(value, shape)
        if word == "convert":
            return g.cast(value, value.type)
        if word == "transpose":
            return g.transpose(value, range(rank))
        if word == "squeeze":
            place = self.chance.randint(0, rank)
            return g.squeeze(g.unsqueeze(value, place), place)
        if word == "slice":
            return g.cut(value, 0, 2**31 - 1, axis)
        if word == "broadcast":
            return g.broadcast(value, shape)
        if word == "identity":
            return g.op("Identity", "", [value], lambda x: x)
        if word == "strided":
            return self._strided(g, value)
        if word == "split" and shape[axis] >= 2:
            return self._split_and_joined(g, value, axis)
        if self.chance.random() < 0.5 and rank and shape[axis] >= 2 and not self.is_plain:
            half = shape[axis] // 2
            return g.concat([g.cut(value, 0, half, axis), g.cut(value, half, 2**31 - 1, axis)], axis)
        return g.concat([value], axis)

    def _strided(self, g: Graph, value: Value) -> Value:
        """Take everything with StridedSlice, by masks: one of them also adds and drops a dimension."""
        rank = len(value.shape)
        numbers = [g.ints([9] * rank), g.ints([1] * rank), g.ints([1] * rank)]
        ones = ",".join("1" * rank)
        data = {
            "begin_mask": ones,
            "end_mask": ones,
            "new_axis_mask": "",
            "shrink_axis_mask": "",
            "ellipsis_mask": "",
        }
        if self.chance.random() < 0.3:
            numbers = [g.ints([0, 7]), g.ints([0, 7]), g.ints([1, 1])]
            data = {
                "begin_mask": "0,0",
                "end_mask": "0,0",
                "new_axis_mask": "1,0",
                "shrink_axis_mask": "0,0",
                "ellipsis_mask": "0,1",
            }
            widened = g.op("", "StridedSlice-opset1", [value, *numbers], lambda x, *_: x[None], data=data)
            return g.squeeze(widened, 0)
        return g.op("", "StridedSlice-opset1", [value, *numbers], lambda x, *_: x, data=data)

    def _split_and_joined(self, g: Graph, value: Value, axis: int) -> Value:
        """Split into single parts and put them together again."""
        size = value.shape[axis]
        parts = [g.cut(value, number, number + 1, axis) for number in range(size)]
        return g.concat(parts, axis)

    def supply(self, g: Graph, array: Array, type: str, may_feed: bool) -> Value:
        """Return a value of these numbers: an input, a constant, or made of one."""
        chance = self.chance
        if may_feed and g is self.main and chance.random() < 0.5:
            value = g.input(array, type)
            return self.view(value, g) if chance.random() < 0.2 else value
        value = g.const(array, type)
        if chance.random() < 0.4:
            self.words.append("behind a constant")
            value = self.view(value, g)
        return value

    def data(self, g: Graph, operands: Operands, may_feed: bool) -> Value:
        """Return data for a node; its numbers may differ from those drawn."""
        form, chance, array = operands.form, self.chance, operands.data
        word = chance.choice(
            [
                "",
                "",
                "",
                "scattered",
                "roll",
                "sin",
                "one number",
                "padded",
                "gather8",
                "state",
                "unbroadcast",
            ]
        )
        is_float = form.type in _FLOATS
        if self.is_onnx and word in {"roll", "gather8", "state", "unbroadcast"}:
            word = ""
        if self.is_plain and word in {"one number", "padded"}:
            word = ""
        if word in {"sin", "roll", "scattered"}:
            may_feed = may_feed and chance.random() < 0.3
        if word:
            self.words.append(f"data {word}")
        if word == "scattered":
            source = self.supply(g, array, form.type, may_feed)
            plain = replace(form, reduction="none", use_init=True, wraps=False)
            return self.node(g, plain, source, self._again(g, plain), None)
        if word == "roll" and array.ndim:
            source = self.supply(g, np.roll(array, -1, 0), form.type, may_feed)
            return g.op("", "Roll-opset7", [source, g.ints([1]), g.ints([0])], lambda x, *_: np.roll(x, 1, 0))
        if word == "sin" and (form.type == "f32" if self.is_onnx else is_float):
            return g.op("Sin", "Sin-opset1", [self.supply(g, array, form.type, may_feed)], np.sin)
        if word == "one number":
            return g.broadcast(g.const(self.numbers((), form.type), form.type), form.shape)
        if word == "padded" and array.ndim and min(form.shape) >= 3 and form.type in {"f32", "i32"}:
            return self._padded(g, array, form.type, may_feed)
        if word == "gather8" and array.ndim >= 2 and form.shape[0] >= 2 and form.type in {"f32", "i32"}:
            # An index out of range gives 0.
            places = [*range(form.shape[0])]
            places[chance.randrange(len(places))] = chance.choice([99, -99, form.shape[0]])
            source = self.supply(g, array, form.type, may_feed)
            at, axis = g.const(places, "i32"), g.const(0, "i32")

            def gathered(x: Array, at: Array, _: Array) -> Array:
                return np.stack([x[i] if -len(x) <= i < len(x) else np.zeros_like(x[0]) for i in at])

            return g.op("", "Gather-opset8", [source, at, axis], gathered, data={"batch_dims": "0"})
        if word == "state" and isinstance(g, IrGraph) and not g.depth and form.type in {"f32", "i32"}:
            name = f"state{len(self.states)}"
            self.states.append(name)
            return g.state(self.supply(g, array, form.type, may_feed), name)
        if word == "unbroadcast" and is_float:
            source, other = self.supply(g, array, form.type, may_feed), self.numbers(form.shape, form.type)
            inputs = [source, g.const(other, form.type)]
            return g.op("", "Add-opset1", inputs, np.add, data={"auto_broadcast": "none"})
        if (
            self.random_beside
            and (not self.is_onnx or self.drawing.opset < 22)
            and is_float
            and array.ndim
            and not g.depth
        ):
            return g.add(self.supply(g, array, form.type, may_feed), self._nothing(g, form))
        return self.supply(g, array, form.type, may_feed)

    def _nothing(self, g: Graph, form: Form) -> Value:
        """Return zeros: random numbers below 1, rounded down."""
        self.words.append("random")
        shape = form.shape
        type = "f32"

        def zeros(*_: Array) -> Array:
            return np.zeros(shape)

        if self.is_onnx:
            drawn = g.op("RandomUniform", "", [], zeros, type=type, attributes={"shape": shape, "dtype": 1})
        else:
            data = {"output_type": type, "global_seed": "0", "op_seed": "7"}
            inputs = [g.ints(list(shape)), g.const(0, type), g.const(1, type)]
            drawn = g.op("", "RandomUniform-opset8", inputs, zeros, type=type, data=data, is_open=False)
        made = g.op("Floor", "Floor-opset1", [drawn], np.floor)
        return made if form.type == type else g.cast(made, form.type)

    def _padded(self, g: Graph, array: Array, type: str, may_feed: bool) -> Value:
        """Cut the ends of the first dimension off and pad them again."""
        rank = array.ndim
        inner = self.supply(g, array[1:-1], type, may_feed)
        modes = {"constant": "constant", "edge": "edge"}
        if array.shape[0] >= 4:
            modes["reflect"] = "reflect"
        if not self.is_onnx:
            modes["symmetric"] = "symmetric"
        word = self.chance.choice([*modes])
        pads = [1] + [0] * (rank - 1)
        mode: Any = modes[word]

        def padded(x: Array, *_: Array) -> Array:
            return np.pad(x, [(pad, pad) for pad in pads], mode)

        if self.is_onnx:
            return g.op("Pad", "", [inner, g.ints([*pads, *pads])], padded, attributes={"mode": word})
        inputs = [inner, g.ints(pads), g.ints(pads), g.const(0, type)]
        return g.op("", "Pad-opset1", inputs, padded, data={"pad_mode": word})

    def _again(self, g: Graph, form: Form) -> Operands:
        """Draw constant operands for one more node of the same form."""
        return self.operands(form)

    def indices(self, g: Graph, operands: Operands, may_feed: bool) -> Value:
        """Return indices of just these numbers."""
        form, array, chance = operands.form, operands.indices, self.chance
        type = form.index_type
        may_feed = may_feed and g is self.main
        word = chance.choice(["", "", "", "shifted", "clipped", "arg", "range", "shape", "gathered", "cast"])
        if self.is_plain or not array.size:
            word = ""
        if word == "shifted":
            self.words.append("indices shifted")
            return g.add(self.supply(g, array - 1, type, may_feed), g.const(1, type))
        if word == "cast":
            other = "i32" if type == "i64" else "i64"
            return g.cast(self.supply(g, array.astype(DTYPES[other]), other, may_feed), type)
        if word == "clipped" and form.kind in {"elements", "tuples"} and (array < 0).all():
            self.words.append("indices clipped")
            source = self.supply(g, array, type, may_feed)
            size: Any = form.shape[form.axis]
            if form.kind == "tuples":
                size = np.array(form.shape[: array.shape[-1]])
            elif self.is_onnx and chance.random() < 0.5:
                ends = [g.const(-size, type), g.const(-1, type)]
                return g.op("Clip", "", [source, *ends], lambda x, *_: x.clip(-size, -1))
            return g.extreme("Min", g.extreme("Max", source, g.const(-size, type)), g.const(-1, type))
        if word == "arg" and self.is_onnx and form.kind == "elements" and array.ndim:
            self.words.append("indices arg")
            size = form.shape[form.axis]
            flat = array.reshape(-1) % size
            hot = np.zeros((len(flat), size), np.float32)
            hot[np.arange(len(flat)), flat] = 1
            source = self.supply(g, hot, "f32", may_feed)
            best = g.op(
                "ArgMax", "", [source], lambda x: x.argmax(1), type="i64",
                attributes={"axis": 1, "keepdims": 0},
            )  # fmt: skip
            if (array < 0).all():
                best = g.subtract(best, g.ints(size))
            elif (array < 0).any():
                return self.supply(g, array, type, may_feed)
            made = g.reshape(best, array.shape)
            return made if type == "i64" else g.cast(made, type)
        flat = array.reshape(-1)
        if word == "range" and np.array_equal(flat, np.arange(len(flat)) + flat[0]):
            self.words.append("indices range")
            shift = int(flat[0])
            ends = [g.ints(0), g.ints(len(flat)), g.ints(1)]
            made = g.op(
                "Range", "Range-opset4", ends, lambda a, b, _: np.arange(a, b), data={"output_type": "i64"},
                is_open=True,
            )  # fmt: skip
            made = g.reshape(g.add(made, g.ints(shift)), array.shape)
            return made if type == "i64" else g.cast(made, type)
        if word == "shape" and array.size == 1 and flat[0] >= 0:
            self.words.append("indices shape")
            thing = self.supply(g, np.zeros(int(flat[0]) + 1, np.float32), "f32", may_feed)
            made = g.reshape(g.subtract(g.shape_of(thing), g.ints(1)), array.shape)
            return made if type == "i64" else g.cast(made, type)
        if word == "gathered" and not self.is_onnx and 0 in flat:
            self.words.append("indices gathered")
            # An index out of range gives 0; of a row of whole numbers the CPU plugin reads other memory instead.
            table = self.supply(g, np.where(flat == 0, flat.max(), flat)[:, None], type, may_feed)
            places = np.where(flat == 0, 99, np.arange(len(flat)))
            made = g.op(
                "", "Gather-opset8", [table, g.const(places, "i32"), g.const(0, "i32")],
                lambda x, at, _: np.stack([x[i] if i < len(x) else x[0] * 0 for i in at]), data={"batch_dims": "0"},
            )  # fmt: skip
            return g.reshape(made, array.shape)
        return self.supply(g, array, type, may_feed)

    def updates(self, g: Graph, operands: Operands, may_feed: bool) -> Value:
        form, array = operands.form, operands.updates
        if operands.is_fill and self.chance.random() < 0.7 and not self.is_plain:
            number = array.reshape(-1)[:1].reshape(()) if array.size else np.zeros((), array.dtype)
            return g.broadcast(self.supply(g, number, form.type, may_feed), array.shape)
        return self.supply(g, array, form.type, may_feed)

    # Nodes.

    def node(
        self, g: Graph, form: Form, data: Value, operands: Operands | None, ready: "Values | None"
    ) -> Value:
        """Add a scatter node; indices and updates are ready, or made of operands by constants here."""
        if ready is None:
            assert operands is not None
            ready = [self.indices(g, operands, False), self.updates(g, operands, False)]
        indices, updates = ready

        def compute(x: Array, at: Array, new: Array, *_: Array) -> Array:
            return scatter_array(form, x, at, new)

        axis = form.axis if self.chance.random() < 0.7 else form.axis - len(form.shape)
        if self.is_onnx:
            type, attributes = form.operator, dict[str, Any]()
            if form.reduction != "none":
                attributes["reduction"] = {"sum": "add", "prod": "mul"}.get(form.reduction, form.reduction)
            if form.kind == "elements":
                attributes["axis"] = axis
            if form.kind == "cache":
                attributes |= {"axis": axis, "mode": form.mode}
                return g.op(
                    type,
                    "",
                    [data, updates, indices],
                    lambda x, new, at: compute(x, at, new),
                    attributes=attributes,
                )
            return g.op(
                type, "", [data, indices, updates], compute, attributes=attributes, is_open=data.is_open
            )
        name, version = form.operator.split("-")
        opset = f"opset{4 if name == 'ScatterNDUpdate' and version == '3' else version}"
        words = {"reduction": form.reduction} if version in {"12", "15"} else {}
        if version == "12":
            words["use_init_val"] = str(form.use_init).lower()
        inputs = [data, indices, updates]
        if form.kind != "tuples":
            number = [axis] if self.chance.random() < 0.3 else axis
            axis_type = self.chance.choice(["i32", "i64"])
            if g is self.main and self.chance.random() < 0.04:
                self.words.append("axis fed")
                inputs.append(g.input(np.array(number, DTYPES[axis_type]), axis_type))
            else:
                inputs.append(g.const(number, axis_type))
        return g.op("", f"{name}-{opset}", inputs, compute, data=words, is_open=data.is_open)

    def _site(self, last: Value | None) -> Value:
        """Add one scatter node or two somewhere; return what comes out of there."""
        form = self.form(last)
        operands = self.operands(form)
        words = ["main", "main", "main", "if", "if", "loop", "loop", "scan"]
        if self.is_onnx:
            words += ["function"] if not self.is_plain else []
        if self.is_plain:
            words = ["main"]
        word = self.chance.choice(words)
        self.words += [
            form.operator,
            form.type,
            word,
            *([form.reduction] if form.reduction != "none" else []),
        ]
        main = self.main
        if last is not None and last.shape == form.shape and last.type == form.type:
            data = self.view(last) if self.chance.random() < 0.3 else last
        else:
            data = self.data(main, operands, True)
        ready = [self.indices(main, operands, True), self.updates(main, operands, True)]
        if word == "main":
            made = self.node(main, form, data, None, ready)
        elif word == "function":
            made = self._in_function(form, data, operands, ready)
        elif word == "if":
            made = self._in_branch(main, form, data, operands, ready)
        elif word == "loop":
            made = self._in_loop(form, data, operands, ready)
        else:
            made = self._in_scan(form, data, operands, ready)
        if self.states and isinstance(main, IrGraph) and self.chance.random() < 0.8:
            name = self.states.pop()
            main.assign(made if made.shape == data.shape else data, name)
        elif self.states and isinstance(main, IrGraph):
            main.assign(data, self.states.pop())
        return made

    def _inside(self, g: Graph, form: Form, data: Value, operands: Operands, ready: Values) -> Value:
        """Add the node in a body; indices or updates may be constants of the body."""
        indices, updates = ready
        if self.chance.random() < 0.25:
            indices = self.indices(g, operands, False)
        if self.chance.random() < 0.25:
            updates = self.updates(g, operands, False)
        data = self.view(data, g) if self.chance.random() < 0.3 else data
        made = self.node(g, form, data, None, [indices, updates])
        if self.chance.random() < 0.15:
            g.shape_of(made)  # nothing reads it
        return made

    def _in_function(self, form: Form, data: Value, operands: Operands, ready: Values) -> Value:
        assert isinstance(self.main, OnnxGraph)
        given = [data, *ready]
        found = self.main.call(given, lambda g, all: [self._inside(g, form, all[0], operands, all[1:])])
        if self.chance.random() < 0.4:
            again = self.main.call(given, lambda g, all: [self._inside(g, form, all[0], operands, all[1:])])
            self._read(again[0])
        return found[0]

    def _flag(self, truth: bool) -> Value:
        word = self.chance.choice(["constant", "fed", "fed", "behind"])
        self.words.append(f"condition {word}")
        if word == "fed":
            return self.main.input(np.array(truth), "boolean")
        flag = self.main.const(truth, "boolean")
        return self.view(flag) if word == "behind" else flag

    def _in_branch(self, g: Graph, form: Form, data: Value, operands: Operands, ready: Values) -> Value:
        flag = self._flag(self.chance.random() < 0.5)
        has_shape, other = self.chance.random() < 0.4, self.chance.choice(["same", "scatter", "scatter"])

        def shaped(inner: Graph, value: Value) -> Value:
            if not has_shape or not value.shape:
                return value
            self.words.append("Shape in branches")
            sizes = inner.shape_of(value)
            return inner.op(
                "Reshape", "Reshape-opset1", [value, sizes], lambda x, _: x, data={"special_zero": "false"},
                attributes={"allowzero": 1} if 0 in value.shape else {},
            )  # fmt: skip

        def scattered(inner: Graph, all: Values) -> Values:
            return [shaped(inner, self._inside(inner, form, all[0], operands, all[1:]))]

        def kept(inner: Graph, all: Values) -> Values:
            return [shaped(inner, inner.reshape(all[0], all[0].shape))]

        ways = [scattered, scattered if other == "scatter" else kept]
        self.chance.shuffle(ways)
        return g.branch(flag, [data, *ready], ways)[0]

    def _in_loop(self, form: Form, data: Value, operands: Operands, ready: Values) -> Value:
        main, chance = self.main, self.chance
        count, begins = chance.choice([0, 1, 1, 2, 2, 3, 3]), chance.random() < 0.9
        word = chance.choice(["constant", "constant", "fed"])
        self.words += [f"trips {word} {count}", *([] if count and begins else ["no trips"])]
        shape = () if self.is_onnx or chance.random() < 0.5 else (1,)
        array = np.full(shape, count, np.int64)
        trips = main.input(array, "i64") if word == "fed" else main.const(array, "i64")
        start = self._flag(begins)
        is_fixed = self._adds(form.type) and chance.random() < 0.5

        def carried(inner: Graph, _: Value | None, states: Values, fixed: Values) -> Values:
            return [self._inside(inner, form, states[0], operands, fixed[-2:])]

        def invariant(inner: Graph, _: Value | None, states: Values, fixed: Values) -> Values:
            made = self._inside(inner, form, fixed[0], operands, fixed[-2:])
            return [inner.add(states[0], made)]

        how = {"constant": chance.random() < 0.3}
        if not is_fixed:
            return main.loop(trips, start, [data], ready, carried, **how)[0]
        self.words.append("invariant data")
        total = main.const(np.zeros(form.shape), form.type)
        return main.loop(trips, start, [total], [data, *ready], invariant, **how)[0]

    def _adds(self, type: str) -> bool:
        """Tell whether Add takes a type."""
        is_narrow = type in {"i8", "u8", "i16", "u16"}
        return type != "boolean" and not (self.is_onnx and is_narrow and self.drawing.opset < 14)

    def _in_scan(self, form: Form, data: Value, operands: Operands, ready: Values) -> Value:
        main, count = self.main, self.chance.choice([1, 2, 3])
        is_fixed = self._adds(form.type) and self.chance.random() < 0.5
        parts = np.stack([operands.updates] * count)
        fed = self.supply(main, parts, form.type, True)

        def body(inner: Graph, _: Value | None, states: Values, fixed: Values) -> Values:
            old, part = states[0], states[-1]
            table = fixed[0] if is_fixed else old
            indices = self.indices(inner, operands, False) if self.chance.random() < 0.3 else fixed[-1]
            table = self.view(table, inner) if self.chance.random() < 0.3 else table
            made = self.node(inner, form, table, None, [indices, part])
            return [inner.add(old, made) if is_fixed else made]

        if is_fixed:
            self.words.append("invariant data")
            total = main.const(np.zeros(form.shape), form.type)
            return main.scan([total], [fed], [data, ready[0]], body)[0]
        return main.scan([data], [fed], [ready[0]], body)[0]

    # What reads the outputs.

    def _read(self, made: Value) -> None:
        word = self.chance.choice(["result"] * 6 + ["more", "shape", "empty", "dead", "twice"])
        if word in {"shape", "empty"} and (not made.shape or self.is_plain):
            word = "result"
        if word != "result":
            self.words.append(f"read {word}")
        if word == "more" and made.type in {*_FLOATS, "i32", "i64"}:
            self.outputs.append(self.main.add(made, self.main.const(1, made.type)))
        elif word == "shape":
            self.outputs.append(self.main.shape_of(made))
        elif word == "empty":
            self.outputs.append(self.main.cut(made, 0, 0, 0))
        elif word == "twice":
            self.outputs += [
                self.main.cast(made, made.type),
                self.main.reshape(made, (-1,) if made.array.size else made.shape),
            ]
        elif word != "dead":
            # OpenVINO's frontend mixes up outputs of If where a branch names a constant that is an output.
            self.outputs.append(self.main.cast(made, made.type) if self.is_onnx else made)

    def _dead(self) -> None:
        """Add a scatter node that nothing reads."""
        self.words.append("dead")
        form = self.form(None)
        operands = self.operands(form)
        self.node(self.main, form, self.data(self.main, operands, False), operands, None)


def draw_model(chance: random.Random, folder: Path, *, is_onnx: bool, name: str = "model") -> WholeModel:
    """Draw and write a legal model; the file and its expected outputs depend on the chance alone."""
    writer = _Writer(chance, is_onnx=is_onnx)
    writer.draw()
    outputs = list[Value]()
    for value in writer.outputs:
        is_input = isinstance(value.ref, str) and value.ref in writer.drawing.feeds
        if is_input or any(value.ref == other.ref for other in outputs):
            value = writer.main.reshape(value, value.shape)
        outputs.append(value)
    path = write_model(writer.main, outputs, folder, name)
    expected = [value.array for value in outputs]
    return WholeModel(path, dict(writer.drawing.feeds), expected, tuple(writer.words), is_onnx)
