"""Draws graphs that compute indices, and holds what the contract proves of them against runs in NumPy.

A graph is grown value by value: an operator is drawn, and kept if it runs on the arrays that its inputs have for
one choice of sizes. The last value becomes the indices of a scatter node.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from ir_scatter.contract import Contract, make_contract
from ir_scatter.core.errors import Error
from ir_scatter.evaluate.model import Program, prepare
from ir_scatter.reading import read

_OPSET, _IR_VERSION = 18, 9
_TYPES = {
    "int64": TensorProto.INT64,
    "int32": TensorProto.INT32,
    "bool": TensorProto.BOOL,
    "float32": TensorProto.FLOAT,
}
_EDGES = (0, 1, -1, 2, 3, -2, 7, 8, 127, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63))
_MOST_RANK = 3


@dataclass
class Drawn:
    """A graph that is being grown.

    Attributes:
        arrays: one array for each value, for the sizes that were drawn first.
        inputs: declared dimensions of each input: numbers or names.
    """

    rng: np.random.Generator
    sizes: dict[str, int]
    arrays: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    inputs: dict[str, tuple[str, tuple[int | str, ...]]] = field(default_factory=dict)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    used: Counter[str] = field(default_factory=Counter)

    def pick(self, accepts: Callable[[np.ndarray[Any, Any]], bool]) -> str | None:
        names = [name for name, array in self.arrays.items() if accepts(array)]
        if not names:
            return None
        weights = np.arange(1, len(names) + 1, dtype=float)  # later values more often
        return str(self.rng.choice(names, p=weights / weights.sum()))

    def constant(self, array: Any, dtype: str = "int64") -> str:
        name = f"c{len(self.initializers)}"
        values = np.asarray(array, dtype)
        self.initializers.append(
            helper.make_tensor(name, _TYPES[dtype], values.shape, values.reshape(-1).tolist())
        )
        self.arrays[name] = values
        return name

    def add(self, type: str, inputs: list[str], count: int = 1, **attributes: Any) -> list[str]:
        """Add a node if it runs; return the names of its outputs, none if it does not."""
        names = [f"v{len(self.nodes)}_{number}" for number in range(count)]
        node = helper.make_node(type, inputs, names, **attributes)
        try:
            outputs = _run_node(node, [self.arrays[name] if name else None for name in inputs])
        except Exception:  # an operator that does not fit
            return []
        if any(array.ndim > _MOST_RANK + 1 or array.size > 400 for array in outputs):
            return []
        self.nodes.append(node)
        self.used[type] += 1
        self.arrays |= dict(zip(names, outputs, strict=True))
        return names

    def model(self, extra: list[onnx.NodeProto], outputs: list[str]) -> onnx.ModelProto:
        inputs = [
            helper.make_tensor_value_info(name, _TYPES[dtype], dims)
            for name, (dtype, dims) in self.inputs.items()
        ]
        results = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph([*self.nodes, *extra], "g", inputs, results, self.initializers)
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION
        )


def _run_node(node: onnx.NodeProto, arrays: list[Any]) -> list[np.ndarray[Any, Any]]:
    from onnx.reference import ReferenceEvaluator

    names = [name for name in node.input if name]
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in dict(zip(node.input, arrays, strict=True)).items() if name
    ]  # fmt: skip
    graph = helper.make_graph(
        [node], "g", infos, [helper.make_empty_tensor_value_info(n) for n in node.output]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
    feeds = {name: array for name, array in zip(node.input, arrays, strict=True) if name in names}
    with np.errstate(all="ignore"):
        return [np.asarray(array) for array in ReferenceEvaluator(model).run(None, feeds)]


def _whole(array: np.ndarray[Any, Any]) -> bool:
    return array.dtype in (np.int64, np.int32)


def _step(graph: Drawn) -> list[str]:
    """Add one drawn node."""
    rng = graph.rng
    steps: list[Callable[[Drawn], list[str]]] = [
        _binary, _binary, _binary, _unary, _cast, _reshape, _unsqueeze, _squeeze, _transpose, _shape, _range,
        _gather, _gather, _slice, _concat, _concat, _expand, _where, _where, _clip, _non_zero, _top, _arg,
        _reduce, _cumsum, _split, _tile, _unique, _gather_elements, _scatter, _size, _constant, _filtered,
        _wrapped, _mesh, _unravelled, _masked_sum, _loop,
    ]  # fmt: skip
    return steps[int(rng.integers(len(steps)))](graph)


def _binary(graph: Drawn) -> list[str]:
    type = str(graph.rng.choice(["Add", "Add", "Sub", "Mul", "Div", "Mod", "Min", "Max"]))
    left = graph.pick(_whole)
    if left is None:
        return []
    dtype = graph.arrays[left].dtype
    if graph.rng.random() < 0.5:
        right: str | None = graph.constant(int(graph.rng.choice([1, 2, 3, 4, -1, 0, 5, 16])), dtype.name)
    else:
        right = graph.pick(lambda array: array.dtype == dtype)
    if right is None:
        return []
    if type in {"Div", "Mod"} and not graph.arrays[right].all():
        return []
    inputs = [left, right] if graph.rng.random() < 0.7 or type in {"Div", "Mod"} else [right, left]
    attributes = {"fmod": int(graph.rng.integers(2))} if type == "Mod" else {}
    return graph.add(type, inputs, **attributes)


def _unary(graph: Drawn) -> list[str]:
    name = graph.pick(_whole)
    return [] if name is None else graph.add(str(graph.rng.choice(["Neg", "Abs", "Identity"])), [name])


def _cast(graph: Drawn) -> list[str]:
    name = graph.pick(lambda array: array.dtype != np.bool_ or graph.rng.random() < 0.5)
    to = str(graph.rng.choice(["int64", "int32", "float32"]))
    if name is None:
        return []
    if graph.arrays[name].dtype == np.float32 and to == "float32":
        return []
    return graph.add("Cast", [name], to=_TYPES[to])


def _reshape(graph: Drawn) -> list[str]:
    name = graph.pick(lambda array: array.dtype != np.float32 or graph.rng.random() < 0.2)
    if name is None:
        return []
    shape = graph.arrays[name].shape
    targets: list[list[int]] = [[-1], [1, -1], [-1, 1], [0, -1], [*shape, 1], [-1, 2]]
    target = targets[int(graph.rng.integers(len(targets)))]
    return graph.add("Reshape", [name, graph.constant(target)])


def _unsqueeze(graph: Drawn) -> list[str]:
    name = graph.pick(lambda array: array.ndim <= 2)
    if name is None:
        return []
    axis = int(graph.rng.integers(-1, graph.arrays[name].ndim + 1))
    return graph.add("Unsqueeze", [name, graph.constant([axis])])


def _squeeze(graph: Drawn) -> list[str]:
    name = graph.pick(lambda array: 1 in array.shape)
    if name is None:
        return []
    axes = [axis for axis, size in enumerate(graph.arrays[name].shape) if size == 1]
    return graph.add("Squeeze", [name, graph.constant([int(graph.rng.choice(axes))])])


def _transpose(graph: Drawn) -> list[str]:
    name = graph.pick(lambda array: array.ndim >= 2)
    if name is None:
        return []
    order = graph.rng.permutation(graph.arrays[name].ndim)
    return graph.add("Transpose", [name], perm=[int(axis) for axis in order])


def _shape(graph: Drawn) -> list[str]:
    name = graph.pick(lambda array: array.ndim >= 1)
    if name is None:
        return []
    shape = graph.add("Shape", [name])
    if shape and graph.rng.random() < 0.7:
        axis = int(graph.rng.integers(graph.arrays[name].ndim))
        return graph.add("Gather", [shape[0], graph.constant(axis)], axis=0)
    return shape


def _size(graph: Drawn) -> list[str]:
    name = graph.pick(lambda array: True)
    return [] if name is None else graph.add("Size", [name])


def _range(graph: Drawn) -> list[str]:
    stop = graph.pick(lambda array: array.dtype == np.int64 and array.ndim == 0 and -3 <= int(array) < 20)
    if stop is None:
        return []
    start = (
        graph.constant(0)
        if graph.rng.random() < 0.6
        else graph.pick(lambda array: array.dtype == np.int64 and array.ndim == 0 and abs(int(array)) < 20)
    )
    step = graph.constant(int(graph.rng.choice([1, 1, 1, 2, -1])))
    return [] if start is None else graph.add("Range", [start, stop, step])


def _gather(graph: Drawn) -> list[str]:
    name = graph.pick(lambda array: array.ndim >= 1 and array.dtype != np.float32)
    if name is None:
        return []
    axis = int(graph.rng.integers(graph.arrays[name].ndim))
    size = graph.arrays[name].shape[axis]
    if not size:
        return []
    if graph.rng.random() < 0.5:
        places: str | None = graph.constant(
            graph.rng.integers(-size, size, graph.rng.choice([0, 1, 2])) if graph.rng.random() < 0.5
            else int(graph.rng.integers(size))
        )  # fmt: skip
    else:
        places = graph.pick(
            lambda array: (
                _whole(array) and bool(((array < size) & (array >= -size)).all()) and array.ndim <= 2
            )
        )
    return [] if places is None else graph.add("Gather", [name, places], axis=axis)


def _slice(graph: Drawn) -> list[str]:
    name = graph.pick(lambda array: array.ndim >= 1 and array.dtype != np.float32)
    if name is None:
        return []
    axis = int(graph.rng.integers(graph.arrays[name].ndim))
    ends = [0, 1, 2, -1, 2**31 - 1, 2**63 - 1]
    start: str | None = graph.constant([int(graph.rng.choice([0, 0, 1, -2]))])
    end: str | None = graph.constant([int(graph.rng.choice(ends[1:]))])
    if graph.rng.random() < 0.3:
        end = graph.pick(lambda array: array.dtype == np.int64 and array.shape == (1,)) or end
    step = graph.constant([int(graph.rng.choice([1, 1, 1, 2, -1]))])
    assert start is not None
    assert end is not None
    return graph.add("Slice", [name, start, end, graph.constant([axis]), step])


def _concat(graph: Drawn) -> list[str]:
    first = graph.pick(lambda array: array.ndim >= 1 and _whole(array))
    if first is None:
        return []
    dtype, rank = graph.arrays[first].dtype, graph.arrays[first].ndim
    axis = rank - 1 if graph.rng.random() < 0.7 else int(graph.rng.integers(rank))
    second = graph.pick(lambda array: array.dtype == dtype and array.ndim == rank)
    return [] if second is None else graph.add("Concat", [first, second], axis=axis)


def _expand(graph: Drawn) -> list[str]:
    name = graph.pick(_whole)
    target = graph.pick(
        lambda array: array.dtype == np.int64 and array.ndim == 1 and 0 < array.size <= 3
        and bool(((array >= 0) & (array < 8)).all())
    )  # fmt: skip
    return [] if name is None or target is None else graph.add("Expand", [name, target])


def _where(graph: Drawn) -> list[str]:
    compared = graph.pick(_whole)
    if compared is None:
        return []
    dtype = graph.arrays[compared].dtype
    limit = (
        graph.constant(int(graph.rng.choice([0, 1, 3, -1])), dtype.name)
        if graph.rng.random() < 0.7
        else (graph.pick(lambda array: array.dtype == dtype and array.ndim == 0) or compared)
    )
    type = str(graph.rng.choice(["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"]))
    condition = graph.add(type, [compared, limit] if graph.rng.random() < 0.8 else [limit, compared])
    if not condition:
        return []
    if graph.rng.random() < 0.2:
        condition = graph.add("Not", condition) or condition
    if graph.rng.random() < 0.2:
        other = graph.pick(lambda array: array.dtype == np.bool_)
        assert other is not None
        condition = graph.add(str(graph.rng.choice(["And", "Or"])), [condition[0], other]) or condition
    choices = []
    for _ in range(2):
        if graph.rng.random() < 0.4:
            choices.append(compared)
        else:
            other = graph.pick(lambda array: array.dtype == dtype)
            choices.append(other or compared)
    return graph.add("Where", [condition[0], *choices])


def _clip(graph: Drawn) -> list[str]:
    name = graph.pick(_whole)
    if name is None:
        return []
    dtype = graph.arrays[name].dtype
    ends = []
    for number in (0, 3):
        other = graph.pick(lambda array: array.dtype == dtype and array.ndim == 0)
        constant = graph.constant(number + int(graph.rng.integers(3)), dtype.name)
        ends.append(constant if other is None or graph.rng.random() < 0.6 else other)
    if graph.rng.random() < 0.2:
        ends[0] = ""
    return graph.add("Clip", [name, *ends])


def _non_zero(graph: Drawn) -> list[str]:
    name = graph.pick(lambda array: array.dtype == np.bool_ and array.ndim >= 1)
    if name is None:
        return []
    places = graph.add("NonZero", [name])
    return graph.add("Transpose", places, perm=[1, 0]) if places and graph.rng.random() < 0.6 else places


def _top(graph: Drawn) -> list[str]:
    name = graph.pick(lambda array: array.ndim >= 1 and array.dtype != np.bool_ and 0 not in array.shape)
    if name is None:
        return []
    axis = int(graph.rng.integers(graph.arrays[name].ndim))
    kept = graph.constant([int(graph.rng.integers(1, graph.arrays[name].shape[axis] + 1))])
    return graph.add("TopK", [name, kept], 2, axis=axis)


def _arg(graph: Drawn) -> list[str]:
    name = graph.pick(lambda array: array.ndim >= 1 and array.dtype != np.bool_ and 0 not in array.shape)
    if name is None:
        return []
    axis = int(graph.rng.integers(graph.arrays[name].ndim))
    type = str(graph.rng.choice(["ArgMax", "ArgMin"]))
    return graph.add(type, [name], axis=axis, keepdims=int(graph.rng.integers(2)))


def _reduce(graph: Drawn) -> list[str]:
    name = graph.pick(lambda array: array.ndim >= 1 and _whole(array))
    if name is None:
        return []
    axes = graph.constant([int(graph.rng.integers(graph.arrays[name].ndim))])
    type = str(graph.rng.choice(["ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd"]))
    return graph.add(type, [name, axes], keepdims=int(graph.rng.integers(2)))


def _cumsum(graph: Drawn) -> list[str]:
    name = graph.pick(lambda array: array.ndim >= 1 and _whole(array))
    if name is None:
        return []
    axis = graph.constant(int(graph.rng.integers(graph.arrays[name].ndim)))
    return graph.add(
        "CumSum", [name, axis], exclusive=int(graph.rng.integers(2)), reverse=int(graph.rng.integers(2))
    )


def _split(graph: Drawn) -> list[str]:
    name = graph.pick(lambda array: array.ndim >= 1 and _whole(array) and array.shape[-1] in {2, 3})
    if name is None:
        return []
    size = graph.arrays[name].shape[-1]
    return graph.add("Split", [name, graph.constant([1, size - 1])], 2, axis=-1)


def _tile(graph: Drawn) -> list[str]:
    name = graph.pick(lambda array: array.ndim >= 1 and _whole(array))
    if name is None:
        return []
    repeats = graph.rng.integers(1, 3, graph.arrays[name].ndim)
    return graph.add("Tile", [name, graph.constant(repeats)])


def _unique(graph: Drawn) -> list[str]:
    name = graph.pick(lambda array: array.ndim >= 1 and _whole(array))
    return [] if name is None else graph.add("Unique", [name], 4)


def _gather_elements(graph: Drawn) -> list[str]:
    name = graph.pick(lambda array: array.ndim >= 1 and _whole(array))
    if name is None:
        return []
    rank, axis = graph.arrays[name].ndim, int(graph.rng.integers(graph.arrays[name].ndim))
    size = graph.arrays[name].shape[axis]
    places = graph.pick(
        lambda array: _whole(array) and array.ndim == rank and bool(((array < size) & (array >= -size)).all())
    )
    return [] if places is None else graph.add("GatherElements", [name, places], axis=axis)


def _scatter(graph: Drawn) -> list[str]:
    name = graph.pick(lambda array: array.ndim >= 1 and array.dtype == np.int64)
    if name is None:
        return []
    rank, axis = graph.arrays[name].ndim, int(graph.rng.integers(graph.arrays[name].ndim))
    size = graph.arrays[name].shape[axis]
    places = graph.pick(
        lambda array: array.dtype == np.int64 and array.ndim == rank
        and bool(((array < size) & (array >= -size)).all())
    )  # fmt: skip
    if places is None:
        return []
    shape = graph.arrays[places].shape
    updates = graph.pick(lambda array: array.dtype == np.int64 and array.shape == shape)
    reduction = str(graph.rng.choice(["none", "none", "add", "max"]))
    return (
        []
        if updates is None
        else graph.add("ScatterElements", [name, places, updates], axis=axis, reduction=reduction)
    )


def _constant(graph: Drawn) -> list[str]:
    shape = tuple(int(size) for size in graph.rng.integers(1, 4, int(graph.rng.integers(3))))
    dtype = str(graph.rng.choice(["int64", "int64", "int32"]))
    return [graph.constant(graph.rng.integers(-3, 5, shape), dtype)]


def _filtered(graph: Drawn) -> list[str]:
    """Select the elements that are in a range, as a mode that drops the others does."""
    name = graph.pick(lambda array: array.ndim == 1 and array.dtype == np.int64)
    if name is None:
        return []
    low = graph.add("GreaterOrEqual", [name, graph.constant(0)])
    high = graph.add("Less", [name, graph.constant(int(graph.rng.integers(1, 6)))])
    both = graph.add("And", [*low, *high])
    places = graph.add("NonZero", both)
    flat = graph.add("Squeeze", [*places, graph.constant([0])])
    return graph.add("Gather", [name, *flat], axis=0) if flat else []


def _wrapped(graph: Drawn) -> list[str]:
    """Count negative positions from the end: Where (i < 0, i + n, i)."""
    name = graph.pick(lambda array: array.dtype == np.int64)
    size = graph.pick(lambda array: array.dtype == np.int64 and array.ndim == 0 and 0 <= int(array) < 9)
    if name is None or size is None:
        return []
    negative = graph.add("Less", [name, graph.constant(0)])
    moved = graph.add("Add", [name, size])
    if graph.rng.random() < 0.2:
        moved = graph.add("Mod", [*moved, size]) or moved
    return graph.add("Where", [*negative, *moved, name]) if negative and moved else []


def _mesh(graph: Drawn) -> list[str]:
    """Join positions of two axes to tuples, as advanced indexing with a mesh does."""
    lists = [
        graph.pick(lambda array: array.dtype == np.int64 and array.ndim == 1 and array.size < 8)
        for _ in range(2)
    ]
    if None in lists:
        return []
    first, second = [str(name) for name in lists]
    rows = graph.add("Unsqueeze", [first, graph.constant([1])])
    sizes = [graph.add("Shape", [name]) for name in (first, second)]
    shape = graph.add("Concat", [*sizes[0], *sizes[1]], axis=0)
    columns = []
    for name in (*rows, second):
        wide = graph.add("Expand", [name, *shape])
        if graph.rng.random() < 0.3 and wide:
            wide = graph.add("Reshape", [*wide, graph.constant([-1])])
        columns += graph.add("Unsqueeze", [*wide, graph.constant([-1])]) if wide else []
    return graph.add("Concat", columns, axis=-1) if len(columns) == 2 else []


def _unravelled(graph: Drawn) -> list[str]:
    """Split flat positions into rows and columns: i / w and i % w."""
    name = graph.pick(lambda array: array.dtype == np.int64 and array.ndim >= 1)
    if name is None:
        return []
    width = graph.constant(int(graph.rng.integers(1, 5)))
    parts = [graph.add("Div", [name, width]), graph.add("Mod", [name, width])]
    if graph.rng.random() < 0.3:
        parts.append(graph.add("Mul", [*parts[0], width]))
        return graph.add("Add", [*parts[2], *parts[1]])
    columns = [
        name for part in parts if part for name in graph.add("Unsqueeze", [*part, graph.constant([-1])])
    ]
    return graph.add("Concat", columns, axis=-1) if len(columns) == 2 else []


def _masked_sum(graph: Drawn) -> list[str]:
    """Number the true elements of a mask: CumSum (mask) - 1."""
    mask = graph.pick(lambda array: array.dtype == np.bool_ and array.ndim >= 1)
    if mask is None:
        return []
    numbers = graph.add("Cast", [mask], to=TensorProto.INT64)
    total = graph.add("CumSum", [*numbers, graph.constant(0)])
    return graph.add("Sub", [*total, graph.constant(1)])


def _loop(graph: Drawn) -> list[str]:
    """Count in a Loop: the last counter, and all of them."""
    trips = graph.pick(lambda array: array.dtype == np.int64 and array.ndim == 0 and 0 <= int(array) < 9)
    start = graph.pick(lambda array: array.dtype == np.int64 and array.ndim == 0)
    if trips is None or start is None:
        return []
    step = int(graph.rng.choice([1, 2, -1, 0]))
    number = len(graph.nodes)
    names = [f"b{number}_{part}" for part in ("i", "cond", "x", "cond_out", "next", "step", "seen")]
    info = helper.make_tensor_value_info
    source = names[int(graph.rng.choice([0, 2]))]
    body = helper.make_graph(
        [
            helper.make_node("Identity", [names[1]], [names[3]]),
            helper.make_node("Add", [names[2], names[5]], [names[4]]),
            helper.make_node("Identity", [source], [names[6]]),
        ],
        "body",
        [info(names[0], TensorProto.INT64, []), info(names[1], TensorProto.BOOL, []), info(names[2], TensorProto.INT64, [])],
        [info(names[3], TensorProto.BOOL, []), info(names[4], TensorProto.INT64, []), info(names[6], TensorProto.INT64, [])],
        [helper.make_tensor(names[5], TensorProto.INT64, [], [step])],
    )  # fmt: skip
    return graph.add("Loop", [trips, "", start], 2, body=body)


def draw(seed: int) -> tuple[Drawn, onnx.ModelProto, onnx.ModelProto, str, int] | None:
    """Draw a graph; return it, its model, one that returns indices and data instead, operator and axis."""
    rng = np.random.default_rng(seed)
    sizes = {name: int(rng.integers(1, 5)) for name in "BNM"}
    graph = Drawn(rng, sizes)
    kinds = [
        ("x", "float32", (_dim(rng, "B"), _dim(rng, "N"))), ("p", "int64", ()), ("q", "int32", (1,)),
        ("v", "int64", (_dim(rng, "N"),)), ("t", "int64", (_dim(rng, "M"), 2)),
        ("m", "bool", (_dim(rng, "B"), _dim(rng, "N"))), ("k", "bool", (_dim(rng, "N"),)),
        ("f", "float32", (_dim(rng, "M"),)),
    ]  # fmt: skip
    for name, dtype, dims in kinds:
        graph.inputs[name] = (dtype, dims)
        graph.arrays[name] = _elements(rng, dtype, [_size_of(dim, sizes) for dim in dims], calm=True)
    for _ in range(int(rng.integers(2, 14))):
        _step(graph)
    type = str(rng.choice(["ScatterND", "ScatterElements"]))
    data = graph.pick(lambda array: array.dtype == np.float32 and array.ndim >= 1)
    if data is None:
        return None
    rank = graph.arrays[data].ndim
    if type == "ScatterND":
        indices = graph.pick(
            lambda array: array.dtype == np.int64 and array.ndim >= 1 and 1 <= array.shape[-1] <= rank
        )
    else:
        indices = graph.pick(lambda array: array.dtype == np.int64 and array.ndim == rank)
    if indices is None or indices in {each.name for each in graph.initializers}:
        return None
    axis = int(rng.integers(rank))
    shape = _updates_shape(graph, type, data, indices)
    if shape is None:
        return None
    updates = graph.add(
        "ConstantOfShape", [shape], value=helper.make_tensor("z", TensorProto.FLOAT, [1], [0.0])
    )
    if not updates:
        return None
    attributes: dict[str, Any] = {"axis": axis} if type == "ScatterElements" else {}
    node = helper.make_node(type, [data, indices, *updates], ["y"], name="scatter", **attributes)
    return graph, graph.model([node], ["y"]), graph.model([], [indices, data]), type, axis


def _updates_shape(graph: Drawn, type: str, data: str, indices: str) -> str | None:
    if type == "ScatterElements":
        return graph.add("Shape", [indices])[0]
    depth = graph.arrays[indices].shape[-1]
    first = graph.add("Shape", [indices], end=-1)
    last = graph.add("Shape", [data], start=depth)
    joined = graph.add("Concat", [*first, *last], axis=0)
    return joined[0] if joined else None


def _dim(rng: np.random.Generator, name: str) -> int | str:
    return name if rng.random() < 0.6 else int(rng.integers(1, 5))


def _size_of(dim: int | str, sizes: dict[str, int]) -> int:
    return dim if isinstance(dim, int) else sizes[dim]


def _elements(rng: np.random.Generator, dtype: str, shape: list[int], *, calm: bool) -> np.ndarray[Any, Any]:
    if dtype == "bool":
        return np.asarray(rng.random(shape) < rng.choice([0.0, 0.5, 1.0]))
    if dtype == "float32":
        return (rng.integers(-40, 40, shape) / 4).astype(np.float32)
    low, high = ((0, 4), (-5, 9), (0, 3))[int(rng.integers(3))]
    array = rng.integers(low, high, shape)
    if not calm and rng.random() < 0.3:
        limits = np.iinfo(dtype)
        edges = [edge for edge in _EDGES if limits.min <= edge <= limits.max]
        array = np.where(rng.random(shape) < 0.4, rng.choice(edges, shape), array)
    if rng.random() < 0.3 and array.size:
        array = rng.permutation(max(array.size, 1))[: array.size].reshape(shape)
    return array.astype(dtype)


def feeds_of(graph: Drawn, rng: np.random.Generator) -> dict[str, np.ndarray[Any, Any]]:
    """Draw inputs: sizes from 0 to 5, of one name the same or not, and numbers small or at the ends of types."""
    shared = rng.random() < 0.6
    sizes = {name: int(rng.integers(0, 6)) for name in "BNM"}
    feeds = {}
    for name, (dtype, dims) in graph.inputs.items():
        own = sizes if shared else {key: int(rng.integers(0, 6)) for key in "BNM"}
        feeds[name] = _elements(rng, dtype, [_size_of(dim, own) for dim in dims], calm=False)
    return feeds


def violations(seed: int, runs: int = 50, figures: "Counter[str] | None" = None) -> Iterator[str]:
    """Yield each claim about the graph of a seed that a run breaks.

    Figures count graphs, runs, and of the graphs with a conditional range those for which some inputs break a
    condition, and those for which such inputs break an index, too.
    """
    figures = Counter() if figures is None else figures
    drawn = draw(seed)
    if drawn is None:
        return
    graph, model, plain, type, axis = drawn
    contract = make_contract(read("g.onnx", model.SerializeToString()))
    node = next(each for each in contract.nodes if each.name == "scatter")
    figures["graphs"] += 1
    figures[f"range {node.range.status}"] += 1
    figures[f"distinct {node.distinct.status}"] += 1
    if node.range.status in {"unknown"} and node.distinct.status == "unknown":
        return
    try:
        program: Program = prepare(read("g.onnx", plain.SerializeToString()))
    except Error:
        return
    rng = np.random.default_rng(seed + 1_000_000_007)
    outcomes = Counter[tuple[bool, bool]]()
    for _ in range(runs):
        feeds = feeds_of(graph, rng)
        try:
            with np.errstate(all="ignore"):
                indices, data = program.run(feeds).values()
        except Error:
            continue
        figures["runs"] += 1
        if indices.size and node.range.status == "conditional":
            outcomes[_holds_for(contract, feeds), _is_legal(indices, data, type, axis)] += 1
        yield from _broken(contract, feeds, indices, data, type, axis, seed)
    if outcomes[False, True] or outcomes[False, False]:
        figures["conditions broken"] += 1
        figures["which broke an index"] += bool(outcomes[False, False])


def _holds_for(contract: Contract, feeds: dict[str, Any]) -> bool:
    try:
        contract.check(feeds)
    except ValueError:
        return False
    return True


def _limits(indices: Any, data: Any, type: str, axis: int) -> list[int]:
    return list(data.shape[: indices.shape[-1]]) if type == "ScatterND" else [data.shape[axis]]


def _is_legal(indices: Any, data: Any, type: str, axis: int) -> bool:
    limits = _limits(indices, data, type, axis)
    rows = indices.reshape(-1, len(limits))
    return bool(((rows >= [-limit for limit in limits]) & (rows < limits)).all())


def _broken(
    contract: Contract, feeds: dict[str, Any], indices: Any, data: Any, type: str, axis: int, seed: int
) -> Iterator[str]:
    node = next(each for each in contract.nodes if each.name == "scatter")
    limits = _limits(indices, data, type, axis)
    if (type == "ScatterND" and len(limits) < indices.shape[-1]) or not indices.size:
        return
    rows = indices.reshape(-1, len(limits))
    is_legal, holds = _is_legal(indices, data, type, axis), _holds_for(contract, feeds)
    if node.range.status in {"proven", "conditional"} and holds and not is_legal:
        yield f"{seed}: range {node.range.status}, {node.range.conditions}: {_shown(feeds)} gives {rows.tolist()} of {limits}"
    if node.range.status == "refuted" and is_legal and indices.size:
        yield f"{seed}: range refuted: {_shown(feeds)} gives {rows.tolist()} of {limits}"
    if (
        node.distinct.status in {"proven", "conditional"}
        and is_legal
        and holds_all(node.distinct.conditions, feeds)
        and _repeats(indices, rows, limits, type, axis)
    ):
        yield (
            f"{seed}: distinct {node.distinct.status}, {node.distinct.conditions}: "
            f"{_shown(feeds)} gives {indices.tolist()} of {limits}"
        )


def _repeats(indices: Any, rows: Any, limits: list[int], type: str, axis: int) -> bool:
    wrapped = np.where(rows < 0, rows + np.array(limits), rows)
    if type == "ScatterND":
        return len({tuple(row) for row in wrapped.tolist()}) < len(wrapped)
    return _repeats_along(wrapped.reshape(indices.shape), axis)


def _repeats_along(array: Any, axis: int) -> bool:
    if not array.size:
        return False
    lanes = np.moveaxis(array, axis, -1).reshape(-1, array.shape[axis])
    return any(len({*lane}) < len(lane) for lane in lanes.tolist())


def holds_all(conditions: tuple[str, ...], feeds: dict[str, Any]) -> bool:
    """Return whether inputs satisfy conditions, read from their text by an evaluator of its own."""
    return all(_holds(text, feeds) for text in conditions)


def _holds(text: str, feeds: dict[str, Any]) -> bool:
    import re

    if match := re.fullmatch(r"rows of (\S+) distinct", text):
        array = feeds[match[1]]
        rows = array.reshape(-1, array.shape[-1]).tolist() if array.size else []
        return len({tuple(row) for row in rows}) == len(rows)
    if match := re.fullmatch(r"(\S+) distinct(?: along axis (\d+))?", text):
        array = feeds[match[1]]
        if match[2] is None:
            return bool(np.unique(array).size == array.size)
        return not _repeats_along(array, int(match[2]))
    parts = re.fullmatch(r"(.+) in (.+)\.\.(.+)", text)
    pairs = [(parts[2], parts[1]), (parts[1], parts[3])] if parts else []
    if not pairs:
        left, mark, right = re.split(r" (<=|>=) ", text)
        pairs = [(left, right) if mark == "<=" else (right, left)]
    return all(_at_most(left, right, feeds) for left, right in pairs)


def _at_most(left: str, right: str, feeds: dict[str, Any]) -> bool:
    """Return whether left <= right for all elements of the tensors in both."""
    import re

    greatest = _number(left, feeds, np.max)
    least = _number(right, feeds, np.min)
    names = [name for name in feeds if re.search(rf"(?<![\w.]){name}(?![\w.(])", f"{left} {right}")]
    if any(feeds[name].size == 0 for name in names):
        return True
    return greatest is None or least is None or greatest <= least


def _number(text: str, feeds: dict[str, Any], pick: Callable[..., Any]) -> int | None:
    import re

    def replace(match: "re.Match[str]") -> str:
        word = match[0]
        if word.startswith("count("):
            return str(int(np.count_nonzero(feeds[word[6:-1]])))
        if ".shape[" in word:
            name, axis = word[:-1].split(".shape[")
            return str(feeds[name].shape[int(axis)])
        negative = re.search(r"- (?:\d+ \* )?$", text[: match.start()]) or text[: match.start()].endswith("-")
        column = re.search(r"\[\.\.\., (\d+)\]", word)
        array = feeds[word.split("[")[0]]
        part = array[..., int(column[1])] if column else array
        if not part.size:
            return "0"
        chosen = (np.min if pick is np.max else np.max) if negative else pick
        return f"({int(chosen(part))})"

    source = re.sub(r"count\(\w+\)|[A-Za-z_]\w*(?:\.shape\[\d+\]|\[\.\.\., \d+\])?", replace, text)
    return int(eval(source.replace("/", "//"), {"__builtins__": {}}))


def _shown(feeds: dict[str, Any]) -> str:
    return ", ".join(
        f"{name}{list(array.shape)}={array.tolist()}" for name, array in feeds.items() if array.size < 12
    )
