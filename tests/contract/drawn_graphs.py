"""Draws graphs that compute indices, and holds what the contract proves of them against runs in NumPy.

A graph is grown value by value: an operator is drawn, and kept if it runs on the arrays that its inputs have for
one choice of sizes. The last value becomes the indices of a scatter node.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from ir_scatter.contract import Contract, make_contract
from ir_scatter.core.errors import Error
from ir_scatter.core.model import Model
from ir_scatter.evaluate.model import Program, prepare
from ir_scatter.reading import read

_OPSET, _IR_VERSION = 18, 9
_TYPES = {
    "int64": TensorProto.INT64,
    "int32": TensorProto.INT32,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "bool": TensorProto.BOOL,
    "float16": TensorProto.FLOAT16,
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
}
_WHOLE = (np.int64, np.int32, np.int8, np.uint8)
_STRANGE = (
    float("nan"),
    float("inf"),
    -float("inf"),
    0.5,
    -0.5,
    2.0**24 + 2,
    2.0**31,
    2.0**63,
    -(2.0**63),
    1e30,
)
"""Floating-point numbers whose cast to integers is a limit, rounded, or beyond the type."""
_EDGES = (0, 1, -1, 2, 3, -2, 7, 8, 127, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63))
_MOST_RANK = 3
_LAST = 2**31 - 1
"""The end of a slice that takes all that is left."""


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
        values = np.asarray(array).astype(dtype)
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
    return array.dtype in _WHOLE


def _step(graph: Drawn) -> list[str]:
    """Add one drawn node."""
    rng = graph.rng
    steps: list[Callable[[Drawn], list[str]]] = [
        _binary, _binary, _binary, _unary, _cast, _reshape, _unsqueeze, _squeeze, _transpose, _shape, _range,
        _gather, _gather, _slice, _concat, _concat, _expand, _where, _where, _clip, _non_zero, _top, _arg,
        _reduce, _cumsum, _split, _tile, _unique, _gather_elements, _scatter, _size, _constant, _filtered,
        _wrapped, _mesh, _unravelled, _masked_sum, _loop, _scan, _branches, _narrowed, _empty,
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
    to = str(graph.rng.choice(["int64", "int64", "int32", "int8", "uint8", "float16", "float32", "float64"]))
    if name is None:
        return []
    if graph.arrays[name].dtype.kind == "f" and to.startswith("float"):
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


def _scan(graph: Drawn) -> list[str]:
    """Count over the rows of a tensor in a Scan: the last counter, all of them, and each row plus a counter."""
    rows = graph.pick(lambda array: array.dtype == np.int64 and array.ndim == 1 and array.size > 0)
    start = graph.pick(lambda array: array.dtype == np.int64 and array.ndim == 0)
    if rows is None or start is None:
        return []
    number = len(graph.nodes)
    names = [f"s{number}_{part}" for part in ("state", "row", "next", "seen", "sum", "step")]
    info = helper.make_tensor_value_info
    step = int(graph.rng.choice([1, 2, -1, 0]))
    body = helper.make_graph(
        [
            helper.make_node("Add", [names[0], names[5]], [names[2]]),
            helper.make_node("Identity", [names[0]], [names[3]]),
            helper.make_node("Add", [names[0], names[1]], [names[4]]),
        ],
        "body",
        [info(name, TensorProto.INT64, []) for name in names[:2]],
        [info(name, TensorProto.INT64, []) for name in names[2:5]],
        [helper.make_tensor(names[5], TensorProto.INT64, [], [step])],
    )
    return graph.add("Scan", [start, rows], 3, body=body, num_scan_inputs=1)


def _branches(graph: Drawn) -> list[str]:
    """Choose one of two values by an If, whose branches read them from around it."""
    first = graph.pick(_whole)
    if first is None:
        return []
    dtype, rank = graph.arrays[first].dtype, graph.arrays[first].ndim
    second = graph.pick(lambda array: array.dtype == dtype and array.ndim == rank)
    number, info = len(graph.nodes), graph.add("Shape", [first])
    size = graph.add("Size", info)
    condition = graph.add(
        str(graph.rng.choice(["Less", "Greater"])),
        [graph.pick(lambda array: array.dtype == np.int64 and array.ndim == 0) or size[0], *size],
    )
    if second is None or not condition:
        return []
    type = _TYPES[dtype.name]
    branches = {}
    for branch, source in (("then_branch", first), ("else_branch", second)):
        name = f"i{number}_{branch}"
        value = helper.make_tensor_value_info(name, type, [None] * rank)
        branches[branch] = helper.make_graph(
            [helper.make_node("Identity", [source], [name])], branch, [], [value]
        )
    chosen = graph.arrays[first if bool(graph.arrays[condition[0]]) else second]
    name = f"v{len(graph.nodes)}_0"
    graph.nodes.append(helper.make_node("If", condition, [name], **branches))
    graph.used["If"] += 1
    graph.arrays[name] = chosen
    return [name]


def _narrowed(graph: Drawn) -> list[str]:
    """Compute in a narrow type, where sums overflow, and cast back."""
    name = graph.pick(_whole)
    if name is None:
        return []
    to = str(graph.rng.choice(["int8", "uint8", "float16", "int32"]))
    narrow = graph.add("Cast", [name], to=_TYPES[to])
    if not narrow:
        return []
    number = int(graph.rng.choice([1, 2, 100, 127]))
    type = str(graph.rng.choice(["Add", "Sub", "Mul"]))
    moved = graph.add(type, [*narrow, graph.constant(number, to)])
    return graph.add("Cast", moved, to=TensorProto.INT64) if moved else []


def _empty(graph: Drawn) -> list[str]:
    """Cut a tensor so that no elements may be left."""
    name = graph.pick(lambda array: array.ndim >= 1 and _whole(array))
    if name is None:
        return []
    axis = int(graph.rng.integers(graph.arrays[name].ndim))
    ends = [
        graph.constant([number])
        for number in (int(graph.rng.choice([0, 1, 2])), int(graph.rng.choice([0, 1, 3])))
    ]
    return graph.add("Slice", [name, *ends, graph.constant([axis])])


@dataclass
class Case:
    """A drawn graph with a scatter node.

    Attributes:
        model, plain: the graph with the node, and one that returns its indices and its data.
        layout: "ScatterND", "ScatterElements", or "ScatterUpdate" in an IR.
        is_stacked: whether the first axis of the indices that `plain` returns counts iterations.
        counts_from_end: whether negative indices are legal.
    """

    graph: Drawn
    model: onnx.ModelProto
    plain: onnx.ModelProto
    layout: str
    axis: int
    is_stacked: bool = False
    counts_from_end: bool = True
    ir: "tuple[Path, Path] | None" = None

    def read(self) -> tuple[Model, Model]:
        """Return the model, and the one that returns indices and data."""
        if self.ir is not None:
            model, plain = self.ir
            return read(str(model)), read(str(plain))
        return (
            read("g.onnx", self.model.SerializeToString()), read("g.onnx", self.plain.SerializeToString())
        )  # fmt: skip


def draw(seed: int, folder: "Path | None" = None) -> Case | None:
    """Draw a graph with a scatter node: at the top, in a branch or in a loop; with a folder maybe as an IR."""
    rng = np.random.default_rng(seed)
    sizes = {name: int(rng.integers(1, 5)) for name in "BNM"}
    graph = Drawn(rng, sizes)
    kinds = [
        ("x", "float32", (_dim(rng, "B"), _dim(rng, "N"))), ("p", "int64", ()), ("q", "int32", (1,)),
        ("v", "int64", (_dim(rng, "N"),)), ("t", "int64", (_dim(rng, "M"), 2)),
        ("m", "bool", (_dim(rng, "B"), _dim(rng, "N"))), ("k", "bool", (_dim(rng, "N"),)),
        ("f", "float32", (_dim(rng, "M"),)), ("a", "int8", (_dim(rng, "N"),)),
        ("o", "uint8", (_dim(rng, "M"),)), ("h", "float16", (_dim(rng, "N"),)),
        ("z", "int64", (_dim(rng, "B"), 0)),
    ]  # fmt: skip
    for name, dtype, dims in kinds:
        graph.inputs[name] = (dtype, dims)
        graph.arrays[name] = _elements(rng, dtype, [_size_of(dim, sizes) for dim in dims], calm=True)
    for _ in range(int(rng.integers(2, 14))):
        _step(graph)
    is_ir = folder is not None and rng.random() < 0.3
    layout = str(rng.choice(["ScatterND", "ScatterElements", *(["ScatterUpdate"] if is_ir else [])]))
    data = graph.pick(lambda array: array.dtype == np.float32 and array.ndim >= 1)
    if data is None:
        return None
    rank = graph.arrays[data].ndim
    ranks = {"ScatterND": range(1, 9), "ScatterElements": (rank,), "ScatterUpdate": range(3)}[layout]
    indices = graph.pick(
        lambda array: array.dtype == np.int64 and array.ndim in ranks
        and (layout != "ScatterND" or 1 <= array.shape[-1] <= rank)
    )  # fmt: skip
    if indices is None or indices in {each.name for each in graph.initializers}:
        return None
    axis = int(rng.integers(rank))
    if is_ir:
        assert folder is not None
        return _as_ir(graph, layout, axis, indices, data, folder / str(seed))
    place = str(rng.choice(["top", "top", "branch", "loop"]))
    if place == "loop":
        return _in_loop(graph, layout, axis, indices, data)
    updates = _updates(graph, layout, data, indices)
    if not updates:
        return None
    attributes: dict[str, Any] = {"axis": axis} if layout == "ScatterElements" else {}
    node = helper.make_node(layout, [data, indices, updates], ["y"], name="scatter", **attributes)
    if place == "branch":
        node = _in_branch(graph, node, data)
    model = graph.model([node], [node.output[0]])
    return Case(graph, model, graph.model([], [indices, data]), layout, axis)


def _in_branch(graph: Drawn, node: onnx.NodeProto, data: str) -> onnx.NodeProto:
    """Return an If one branch of which has the scatter node; the condition is an input."""
    graph.inputs["choice"] = ("bool", ())
    rank = graph.arrays[data].ndim
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * rank) for name in ("y", "kept")]
    node.output[0] = "y"
    branches = {
        "then_branch": helper.make_graph([node], "then", [], info[:1]),
        "else_branch": helper.make_graph(
            [helper.make_node("Identity", [data], ["kept"])], "else", [], info[1:]
        ),
    }
    for graph_of_branch in branches.values():
        graph_of_branch.output[0].name = graph_of_branch.node[-1].output[0]
    return helper.make_node("If", ["choice"], ["result"], **branches)


def _in_loop(graph: Drawn, layout: str, axis: int, indices: str, data: str) -> Case | None:
    """Write in each iteration of a Loop, to indices that are the same or count with it."""
    rng, info = graph.rng, helper.make_tensor_value_info
    rank = graph.arrays[data].ndim
    trips = graph.pick(lambda array: array.dtype == np.int64 and array.ndim == 0 and 0 <= int(array) < 9)
    if trips is None or rng.random() < 0.5:
        trips = graph.constant(int(rng.integers(0, 4)))
    kind = str(rng.choice(["same", "plus", "counter"] if layout == "ScatterND" else ["same", "plus"]))
    columns = graph.constant([0])
    if kind == "counter":  # tuples [counter, place]
        place = graph.constant([int(number) for number in rng.integers(0, 3, rank - 1)])
        graph.arrays["tuple"] = np.zeros((1, rank), np.int64)
        updates = _updates(graph, layout, data, "tuple", is_made=True)
        inner = [
            helper.make_node("Unsqueeze", ["i", columns], ["first"]),
            helper.make_node("Concat", ["first", place], ["row"], axis=0),
            helper.make_node("Unsqueeze", ["row", columns], ["used"]),
        ]
        index_rank = 2
        del graph.arrays["tuple"]
    else:
        updates = _updates(graph, layout, data, indices)
        inner = [
            helper.make_node(
                *(("Add", [indices, "i"]) if kind == "plus" else ("Identity", [indices])), ["used"]
            )
        ]
        index_rank = graph.arrays[indices].ndim
    if not updates:
        return None
    attributes: dict[str, Any] = {"axis": axis} if layout == "ScatterElements" else {}

    def loop(writes: bool) -> onnx.NodeProto:
        last = (
            helper.make_node(layout, ["d", "used", updates], ["d_out"], name="scatter", **attributes) if writes
            else helper.make_node("Identity", ["d"], ["d_out"])
        )  # fmt: skip
        body = helper.make_graph(
            [helper.make_node("Identity", ["c"], ["c_out"]), *inner, last,
             helper.make_node("Identity", ["used"], ["seen"])],
            "body",
            [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []),
             info("d", TensorProto.FLOAT, [None] * rank)],
            [info("c_out", TensorProto.BOOL, []), info("d_out", TensorProto.FLOAT, [None] * rank),
             info("seen", TensorProto.INT64, [None] * index_rank)],
        )  # fmt: skip
        return helper.make_node("Loop", [trips, "", data], ["y", "all"], body=body)

    model = graph.model([loop(True)], ["y"])
    return Case(graph, model, graph.model([loop(False)], ["all", data]), layout, axis, is_stacked=True)


def _as_ir(graph: Drawn, layout: str, axis: int, indices: str, data: str, folder: Path) -> Case | None:
    """Return the graph as OpenVINO reads it from ONNX, with a scatter node of OpenVINO; None if it does not."""
    import openvino
    from openvino import opset3, opset4, opset12, opset15

    plain = graph.model([], [indices, data])
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(plain, folder / "plain.onnx")
    try:
        read_model = openvino.Core().read_model(folder / "plain.onnx")
    except RuntimeError:
        return None
    openvino.save_model(read_model, folder / "plain.xml", compress_to_fp16=False)
    places, written = [result.input_value(0) for result in read_model.get_results()]
    of_places, of_data = opset15.shape_of(places), opset15.shape_of(written)

    def part(shape: Any, start: int, stop: int) -> Any:
        return opset15.slice(shape, *[opset15.constant(np.array([number])) for number in (start, stop, 1)])

    depth = graph.arrays[indices].shape[-1] if layout == "ScatterND" else 0
    pieces = {
        "ScatterND": [part(of_places, 0, -1), part(of_data, depth, _LAST)],
        "ScatterElements": [of_places],
        "ScatterUpdate": [part(of_data, 0, axis), of_places, part(of_data, axis + 1, _LAST)],
    }[layout]
    updates = opset15.broadcast(opset15.constant(np.float32(0)), opset15.concat(pieces, 0))
    counts_from_end = layout != "ScatterUpdate"
    if layout == "ScatterND":
        is_new = bool(graph.rng.random() < 0.5)
        make = opset15.scatter_nd_update if is_new else opset4.scatter_nd_update
        node, counts_from_end = make(written, places, updates), is_new
    elif layout == "ScatterElements":
        constant = opset15.constant(np.int64(axis))
        node = opset12.scatter_elements_update(written, places, updates, constant)
    else:
        node = opset3.scatter_update(written, places, updates, opset15.constant(np.int64(axis)))
    node.set_friendly_name("scatter")
    whole = openvino.Model([opset15.result(node)], read_model.get_parameters(), "g")
    openvino.save_model(whole, folder / "model.xml", compress_to_fp16=False)
    files = folder / "model.xml", folder / "plain.xml"
    return Case(graph, plain, plain, layout, axis, counts_from_end=counts_from_end, ir=files)


def _updates(graph: Drawn, layout: str, data: str, indices: str, *, is_made: bool = False) -> str | None:
    """Return a value of zeros that has the shape of updates; None if it cannot be made."""
    if is_made:
        shape = graph.add(
            "Concat",
            [graph.constant([1]), *graph.add("Shape", [data], start=graph.arrays[data].ndim)],
            axis=0,
        )
    else:
        name = _updates_shape(graph, layout, data, indices)
        shape = [] if name is None else [name]
    zeros = helper.make_tensor("z", TensorProto.FLOAT, [1], [0.0])
    updates = graph.add("ConstantOfShape", shape, value=zeros) if shape else []
    return updates[0] if updates else None


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
    if dtype.startswith("float"):
        numbers = rng.integers(-40, 40, shape) / 4
        if rng.random() < 0.5:
            numbers = np.floor(numbers)
        if not calm and rng.random() < 0.3:
            numbers = np.where(rng.random(shape) < 0.3, rng.choice(_STRANGE, shape), numbers)
        with np.errstate(over="ignore"):
            return np.asarray(numbers.astype(dtype))
    low, high = ((0, 4), (0 if dtype == "uint8" else -5, 9), (0, 3))[int(rng.integers(3))]
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


def violations(
    seed: int, runs: int = 50, figures: "Counter[str] | None" = None, folder: "Path | None" = None
) -> Iterator[str]:
    """Yield each claim about the graph of a seed that a run breaks.

    Figures count graphs, runs, and of the graphs with a conditional range those for which some inputs break a
    condition, and those for which such inputs break an index, too; of refuted ones those with a witness that
    breaks an index when it is run. With a folder some graphs are IRs, written to it.
    """
    figures = Counter() if figures is None else figures
    case = draw(seed, folder)
    if case is None:
        return
    model, plain = case.read()
    contract = make_contract(model)
    node = next(each for each in contract.nodes if each.name == "scatter")
    figures["graphs"] += 1
    figures["IRs"] += case.ir is not None
    figures["in bodies"] += ":" in node.scope
    figures[f"range {node.range.status}"] += 1
    figures[f"distinct {node.distinct.status}"] += 1
    if node.range.status in {"unknown"} and node.distinct.status == "unknown":
        return
    try:
        program: Program = prepare(plain)
    except Error:
        return
    if node.range.status == "refuted":
        figures["refuted with a witness"] += node.range.witness is not None
    rng = np.random.default_rng(seed + 1_000_000_007)
    outcomes = Counter[tuple[bool, bool]]()
    for number in range(4 * runs):
        # Whether a broken condition breaks an index may need a rare input: five elements of which the last is new.
        is_undecided = outcomes[False, True] and not outcomes[False, False]
        if number >= runs and not is_undecided:
            break
        feeds = feeds_of(case.graph, rng)
        try:
            with np.errstate(all="ignore"):
                result, data = program.run(feeds).values()
        except Error:
            continue
        figures["runs"] += 1
        for indices in result if case.is_stacked else [result]:
            if indices.size and node.range.status == "conditional":
                outcomes[_holds_for(contract, feeds), _is_legal(indices, data, case)] += 1
            broken = [*_broken(contract, feeds, indices, data, case, seed)]
            yield from broken
            if broken:
                return
    figures["runs that break a condition"] += outcomes[False, True] + outcomes[False, False]
    figures["runs that break an index, too"] += outcomes[False, False]
    if outcomes[False, True] or outcomes[False, False]:
        figures["conditions broken"] += 1
        figures["which broke an index"] += bool(outcomes[False, False])
        if not outcomes[False, False]:
            figures[f"never exact: {seed}"] += 1


def _holds_for(contract: Contract, feeds: dict[str, Any]) -> bool:
    try:
        contract.check(feeds)
    except ValueError:
        return False
    return True


def _limits(indices: Any, data: Any, case: Case) -> list[int]:
    if case.layout == "ScatterND":
        return list(data.shape[: indices.shape[-1]])
    return [data.shape[case.axis]]


def _is_legal(indices: Any, data: Any, case: Case) -> bool:
    limits = _limits(indices, data, case)
    rows = indices.reshape(-1, len(limits))
    lows = [-limit if case.counts_from_end else 0 for limit in limits]
    return bool(((rows >= lows) & (rows < limits)).all())


def _broken(
    contract: Contract, feeds: dict[str, Any], indices: Any, data: Any, case: Case, seed: int
) -> Iterator[str]:
    node = next(each for each in contract.nodes if each.name == "scatter")
    limits = _limits(indices, data, case)
    if (case.layout == "ScatterND" and len(limits) < indices.shape[-1]) or not indices.size:
        return
    rows = indices.reshape(-1, len(limits))
    is_legal, holds = _is_legal(indices, data, case), _holds_for(contract, feeds)
    if node.range.status in {"proven", "conditional"} and holds and not is_legal:
        yield f"{seed}: range {node.range.status}, {node.range.conditions}: {_shown(feeds)} gives {rows.tolist()} of {limits}"
    if node.range.status == "refuted" and is_legal and not node.range.witness:
        yield f"{seed}: range refuted: {_shown(feeds)} gives {rows.tolist()} of {limits}"
    repeats = _repeats(indices, rows, limits, case)
    if node.distinct.status == "refuted" and is_legal and not repeats:
        yield f"{seed}: distinct refuted: {_shown(feeds)} gives {indices.tolist()} of {limits}"
    if (
        node.distinct.status in {"proven", "conditional"}
        and is_legal
        and holds_all(node.distinct.conditions, feeds)
        and repeats
    ):
        yield (
            f"{seed}: distinct {node.distinct.status}, {node.distinct.conditions}: "
            f"{_shown(feeds)} gives {indices.tolist()} of {limits}"
        )


def _repeats(indices: Any, rows: Any, limits: list[int], case: Case) -> bool:
    wrapped = np.where(rows < 0, rows + np.array(limits), rows)
    if case.layout == "ScatterND":
        return len({tuple(row) for row in wrapped.tolist()}) < len(wrapped)
    if case.layout == "ScatterUpdate":
        return bool(np.unique(wrapped).size < wrapped.size)
    return _repeats_along(wrapped.reshape(indices.shape), case.axis)


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
