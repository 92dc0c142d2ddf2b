"""Bounds of values against what NumPy computes: random graphs of general operators, as IR and as ONNX.

Every element of every value is within the bounds that are stated for its column, whatever the inputs hold.
As a program, `python -m tests.campaigns.test_bounds IR 30000 [SEED]`, it draws as many graphs as asked for.
"""

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import helper, numpy_helper

import ir_scatter
from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.ranges import bounds_of
from ir_scatter.core.model import ONNX, OPENVINO, Value
from ir_scatter.ops.general import find_computed
from ir_scatter.ops.general_kernels import UnsupportedCase, compute
from tests import scale
from tests.models.ir_text import IrText, Output

Array = npt.NDArray[Any]
Compute = Callable[[Sequence[Array]], Array | tuple[Array, ...]]

GRAPHS, RUNS, MOST_NODES, MOST_ELEMENTS = 750, 3, 7, 400
DTYPES: dict[str, np.dtype[Any]] = {
    "i64": np.dtype(np.int64), "i32": np.dtype(np.int32), "i8": np.dtype(np.int8), "u8": np.dtype(np.uint8),
    "f32": np.dtype(np.float32), "boolean": np.dtype(np.bool_),
}  # fmt: skip
WHOLE = ("i64", "i32", "i8", "u8")
SMALL = (0, 1, 2, 3, 4, 5, 6, 9, -1, -2, -3, -5, -7)


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value of the graph: where it comes from, its type, and whether its shape is known when it is read."""

    ref: Any
    type: str
    array: Array
    is_static: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape


@dataclass
class Drawn:
    """A graph: nodes with the tensors they read and make, and how each is computed."""

    source: random.Random
    is_onnx: bool
    opset: int
    inputs: list[Tensor] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    nodes: list[tuple[str, list[Tensor], list[Tensor], Callable[[Sequence[Array]], Sequence[Array]]]] = field(
        default_factory=list
    )
    text: IrText = field(default_factory=IrText)
    protos: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def random_array(self, type: str, shape: Sequence[int]) -> Array:
        """Return numbers that are mostly small, and sometimes the ends of the type."""
        dtype, numbers = DTYPES[type], [*SMALL]
        if type == "boolean":
            numbers = [0, 1]
        elif type == "f32":
            numbers += [100, -100]
        else:
            limits = np.iinfo(dtype)
            extremes = [int(limits.min), int(limits.max)] if self.source.random() < 0.3 else []
            numbers = [n for n in (*numbers, *extremes) if limits.min <= n <= limits.max]
            if self.source.random() < 0.4:
                numbers = [n for n in numbers if 0 <= n < 6]
        count = int(np.prod(shape))
        return np.array(self.source.choices(numbers, k=count), dtype).reshape(shape)

    def name(self) -> str:
        return f"t{len(self.tensors)}"

    def input(self, type: str, shape: Sequence[int], *, is_static: bool = True) -> Tensor:
        array, name = self.random_array(type, shape), self.name()
        dims = [*shape] if is_static else [-1] * len(shape)
        ref = name if self.is_onnx else self.text.parameter(name, type, dims)
        self.inputs.append(tensor := Tensor(ref, type, array, is_static))
        self.tensors.append(tensor)
        return tensor

    def constant(self, values: Any, type: str = "i64") -> Tensor:
        array, name = np.array(values, DTYPES[type]), self.name()
        if self.is_onnx:
            self.constants.append(numpy_helper.from_array(array, name))
        ref = name if self.is_onnx else self.text.const(name, type, array)
        self.tensors.append(tensor := Tensor(ref, type, array))
        return tensor

    def node(
        self,
        type: str,
        inputs: Sequence[Tensor],
        attributes: dict[str, Any] | None = None,
        *,
        version: str = "opset1",
        compute_with: Compute | None = None,
        count: int = 1,
        makes: str = "",
        is_static: bool = True,
    ) -> list[Tensor]:
        """Add a node, unless it refuses the inputs that were drawn first."""
        attributes = attributes or {}
        domain, opset = (ONNX, self.opset) if self.is_onnx else (OPENVINO, int(version.removeprefix("opset")))
        op = find_computed(domain, type)

        def run(arrays: Sequence[Array]) -> Sequence[Array]:
            if compute_with is not None:
                made = compute_with(arrays)
                return made if isinstance(made, tuple) else (made,)
            assert op is not None, type
            options: dict[str, Any] = {"opset": opset, "output_count": count, "element_limit": MOST_ELEMENTS}
            return compute(op, domain, arrays, attributes, **options)

        with np.errstate(all="ignore"):
            arrays = run([tensor.array for tensor in inputs])
        if len(arrays) != count or any(array.size > MOST_ELEMENTS or array.ndim > 4 for array in arrays):
            raise UnsupportedCase("not what is wanted")
        is_known = is_static and all(tensor.is_static for tensor in inputs)
        types = [
            makes or next(name for name, dtype in DTYPES.items() if dtype == array.dtype) for array in arrays
        ]
        name = self.name()
        refs: list[Any] = [f"{name}_{number}" for number in range(count)]
        if self.is_onnx:
            node = helper.make_node(type, [t.ref for t in inputs], refs, name=name, **attributes)
            self.protos.append(node)
        else:
            shapes = [[*array.shape] if is_known else [-1] * array.ndim for array in arrays]
            outputs = [*zip(types, shapes, strict=True)]
            written = {key: str(value) for key, value in attributes.items()}
            first = self.text.add(name, type, version, [t.ref for t in inputs], outputs, written)
            refs = [Output(first.layer, first.port + n, *output) for n, output in enumerate(outputs)]
        made = [Tensor(*row, is_known) for row in zip(refs, types, arrays, strict=True)]
        self.nodes.append((name, [*inputs], made, run))
        self.tensors += made
        return made

    # What is drawn

    def pick(self, *types: str, rank: int | None = None, least: int = 0) -> Tensor:
        """Return a tensor of the graph, mostly a late one, or a new input if there is none that fits."""
        fitting = [
            t
            for t in self.tensors
            if (not types or t.type in types) and rank in (None, t.array.ndim) and t.array.ndim >= least
        ]
        if fitting and self.source.random() < 0.85:
            return fitting[-1 - min(int(self.source.expovariate(0.7)), len(fitting) - 1)]
        shape = [
            self.source.choice((1, 2, 2, 2, 3, 3, 0)) for _ in range(rank if rank is not None else least + 1)
        ]
        type = self.source.choice(types or tuple(DTYPES))
        if self.source.random() < 0.4:
            return self.constant(self.random_array(type, shape), type)
        return self.input(type, shape, is_static=self.source.random() < 0.8)

    def fitting(self, tensor: Tensor) -> Tensor:
        """Return a tensor of the same type that broadcasts with another one."""
        others = [t for t in self.tensors if t.type == tensor.type and _broadcasts(t.shape, tensor.shape)]
        if others and self.source.random() < 0.6:
            return self.source.choice(others)
        first = self.source.randint(0, len(tensor.shape))
        shape = [dim if self.source.random() < 0.7 else 1 for dim in tensor.shape[first:]]
        if self.source.random() < 0.7:
            return self.constant(self.random_array(tensor.type, shape), tensor.type)
        return self.input(tensor.type, shape)

    def axis(self, tensor: Tensor) -> int:
        return self.source.randrange(-tensor.array.ndim, tensor.array.ndim)


def _broadcasts(*shapes: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


def _aligned(function: Callable[..., Array], axis: int) -> Compute:
    """Compute with input 1 aligned to input 0 at an axis, as "pdpd" and ONNX before opset 7 do."""

    def run(arrays: Sequence[Array]) -> Array:
        *first, last = arrays
        rank = max(array.ndim for array in arrays)
        behind = rank - axis - last.ndim
        if behind < 0:
            raise UnsupportedCase("it does not fit")
        padded = last.reshape(last.shape + (1,) * behind)
        return np.asarray(function(*first, padded))

    return run


_BINARY: dict[str, tuple[str, Callable[..., Array]]] = {
    "Add": ("Add", np.add), "Subtract": ("Sub", np.subtract), "Multiply": ("Mul", np.multiply),
    "Minimum": ("Min", np.minimum), "Maximum": ("Max", np.maximum), "FloorMod": ("Mod", np.remainder),
    "Less": ("Less", np.less),
}  # fmt: skip


def binary(graph: Drawn, name: str = "") -> list[Tensor]:
    source = graph.source
    name = name or source.choice(sorted(_BINARY))
    left = graph.pick(*WHOLE, least=1)
    if name == "FloorMod" and source.random() < 0.8:
        last = left.shape[-1:] if source.random() < 0.5 else ()
        right = graph.constant(
            np.full(last, 1) + np.arange(int(np.prod(last)) or 1).reshape(last or ()), left.type
        )
    else:
        right = graph.fitting(left)
    if source.random() < 0.25:
        return _aligned_elsewhere(graph, name, left)
    if source.random() < 0.3 and name != "FloorMod":
        left, right = right, left
    if graph.is_onnx:
        if graph.opset < 7:
            raise UnsupportedCase("only equal shapes")
        fmod = {"fmod": source.randint(0, 1)} if name == "FloorMod" else {}
        return graph.node(_BINARY[name][0], [left, right], fmod)
    rule = source.choice(({}, {"auto_broadcast": "numpy"}, {"auto_broadcast": "NUMPY"}))
    if left.shape == right.shape and source.random() < 0.3:
        rule = {"auto_broadcast": "none"}
    return graph.node(name, [left, right], rule)


def columns(graph: Drawn) -> list[Tensor]:
    """Make numbers whose bounds differ from column to column."""
    shape = graph.source.choice(((2, 2), (3, 2), (2, 3), (3, 3), (1, 2, 2)))
    numbers = graph.input("i64", shape, is_static=graph.source.random() < 0.8)
    sizes = graph.constant(graph.source.sample((1, 3, 6, 20), shape[-1]))
    return graph.node("Mod" if graph.is_onnx else "FloorMod", [numbers, sizes])


def _aligned_elsewhere(graph: Drawn, name: str, left: Tensor) -> list[Tensor]:
    """Add a node whose input 1 lies along the first axes of input 0."""
    onnx_name, function = _BINARY[name]
    if name == "FloorMod":
        raise UnsupportedCase("it may divide by 0")
    axis = graph.source.randrange(len(left.shape))
    count = graph.source.randint(1, len(left.shape) - axis)
    shape = left.shape[axis : axis + count]
    right = graph.constant(graph.random_array(left.type, shape), left.type)
    if graph.is_onnx:
        if graph.opset > 6 or onnx_name in {"Min", "Max"}:
            raise UnsupportedCase("this version has no axis")
        attributes = {"axis": axis, "broadcast": 1}
        return graph.node(onnx_name, [left, right], attributes, compute_with=_aligned(function, axis))
    rule = {"auto_broadcast": graph.source.choice(("pdpd", "PDPD"))}
    return graph.node(name, [left, right], rule, compute_with=_aligned(function, axis))


def select(graph: Drawn) -> list[Tensor]:
    then = graph.pick(*WHOLE, least=1)
    other = graph.fitting(then)
    condition = graph.input("boolean", np.broadcast_shapes(then.shape, other.shape))
    return graph.node("Where" if graph.is_onnx else "Select", [condition, then, other])


def extreme_of_pair(graph: Drawn) -> list[Tensor]:
    """Choose the lesser or greater of two tensors, by a comparison that may be aligned differently."""
    left = graph.pick(*WHOLE, least=1)
    right = graph.fitting(left)
    compared = [left, right] if graph.source.random() < 0.5 else [right, left]
    options: dict[str, Any] = {}
    if not graph.is_onnx and graph.source.random() < 0.4 and len(compared[1].shape) < len(compared[0].shape):
        function = _aligned(np.less, 0)
        options = {"attributes": {"auto_broadcast": "pdpd"}, "compute_with": function}
    (condition,) = graph.node("Less", compared, **options)
    chosen = [left, right] if graph.source.random() < 0.5 else [right, left]
    return graph.node("Where" if graph.is_onnx else "Select", [condition, *chosen])


def from_front(graph: Drawn) -> list[Tensor]:
    """Count negative numbers from the end, or nearly so."""
    numbers = graph.pick(*WHOLE, least=1)
    size = graph.fitting(numbers)
    zero = graph.constant(graph.source.choice((0, 0, 0, 1)), numbers.type)
    (condition,) = graph.node("Less", [numbers, zero])
    (added,) = graph.node("Add", [numbers, size])
    return graph.node("Where" if graph.is_onnx else "Select", [condition, added, numbers])


def convert(graph: Drawn) -> list[Tensor]:
    data, type = graph.pick(), graph.source.choice(tuple(DTYPES))
    if graph.is_onnx:
        number = {"i64": 7, "i32": 6, "i8": 3, "u8": 2, "f32": 1, "boolean": 9}[type]
        return graph.node("Cast", [data], {"to": number})
    return graph.node("Convert", [data], {"destination_type": type})


def convert_like(graph: Drawn) -> list[Tensor]:
    return graph.node("CastLike" if graph.is_onnx else "ConvertLike", [graph.pick(), graph.pick()])


def clamp(graph: Drawn) -> list[Tensor]:
    data, (low, high) = graph.pick(*WHOLE), sorted(graph.source.sample(range(-4, 9), 2))
    if not graph.is_onnx:
        low = max(low, 0) if data.type == "u8" else low
        high = max(high, low)
        bounds = {"min": str(low), "max": str(high)}
        return graph.node("Clamp", [data], bounds, compute_with=lambda arrays: np.clip(arrays[0], low, high))
    low, high = max(low, 0), max(high, 0)
    ends = [graph.constant(low, data.type), graph.constant(high, data.type)]
    if graph.source.random() < 0.3:
        ends[1] = graph.input(data.type, ())
    return graph.node(
        "Clip", [data, *ends], compute_with=lambda arrays: np.minimum(np.maximum(*arrays[:2]), arrays[2])
    )


def reshape(graph: Drawn) -> list[Tensor]:
    data = graph.pick(least=1)
    shapes = [[-1], [data.array.size], [*reversed(data.shape)], [1, *data.shape], [*data.shape, 1]]
    shape = graph.constant(graph.source.choice(shapes))
    return graph.node("Reshape", [data, shape], {} if graph.is_onnx else {"special_zero": "false"})


def squeeze(graph: Drawn) -> list[Tensor]:
    data = graph.pick(least=1)
    ones = [axis for axis, dim in enumerate(data.shape) if dim == 1]
    if not ones:
        raise UnsupportedCase("nothing to squeeze")
    return graph.node("Squeeze", [data, graph.constant([graph.source.choice(ones)])])


def unsqueeze(graph: Drawn) -> list[Tensor]:
    data = graph.pick()
    axis = graph.source.randint(-data.array.ndim - 1, data.array.ndim)
    return graph.node("Unsqueeze", [data, graph.constant([axis])])


def transpose(graph: Drawn) -> list[Tensor]:
    data = graph.pick(least=2)
    order = graph.source.sample(range(data.array.ndim), data.array.ndim)
    if graph.is_onnx:
        return graph.node("Transpose", [data], {"perm": order})
    return graph.node("Transpose", [data, graph.constant(order)])


def broadcast(graph: Drawn) -> list[Tensor]:
    data = graph.pick(least=1)
    target = [2, *[dim if dim != 1 else graph.source.choice((1, 2, 0)) for dim in data.shape]]
    if graph.is_onnx:
        return graph.node("Expand", [data, graph.constant(target)])
    mode = graph.source.choice(("numpy", "bidirectional", "explicit"))
    inputs = [data, graph.constant(target)]
    if mode == "explicit":
        target = [*data.shape, 2]
        inputs = [data, graph.constant(target), graph.constant([*range(data.array.ndim)])]
    return graph.node("Broadcast", inputs, {"mode": mode}, version="opset3")


def tile(graph: Drawn) -> list[Tensor]:
    data = graph.pick(least=1)
    return graph.node("Tile", [data, graph.constant([graph.source.choice((0, 1, 2)) for _ in data.shape])])


def concat(graph: Drawn) -> list[Tensor]:
    data = graph.pick(*WHOLE, least=1)
    axis = graph.axis(data)

    def part() -> Tensor:
        shape = [*data.shape]
        shape[axis] = graph.source.choice((0, 1, 2))
        same = [t for t in graph.tensors if t.type == data.type and t.shape == data.shape]
        if same and graph.source.random() < 0.5:
            return graph.source.choice(same)
        return graph.constant(graph.random_array(data.type, shape), data.type)

    parts = [data, *[part() for _ in range(graph.source.randint(0, 2))]]
    graph.source.shuffle(parts)
    return graph.node("Concat", parts, {"axis": axis})


def split(graph: Drawn) -> list[Tensor]:
    data = graph.pick(least=1)
    axis = graph.axis(data)
    size = data.shape[axis]
    first = graph.source.randint(0, size)
    lengths = [first, size - first]
    if graph.is_onnx:
        return graph.node("Split", [data, graph.constant(lengths)], {"axis": axis}, count=2)
    inputs = [data, graph.constant(axis), graph.constant(lengths)]
    return graph.node("VariadicSplit", inputs, count=2)


def gather(graph: Drawn) -> list[Tensor]:
    data = graph.pick(*WHOLE, least=1)
    indices, axis = graph.pick("i64", "i32"), graph.axis(data)
    if graph.is_onnx:
        return graph.node("Gather", [data, indices], {"axis": axis})
    version = graph.source.choice(("opset1", "opset7", "opset8", "opset8", "opset8"))
    batch = {} if version == "opset1" else {"batch_dims": graph.source.choice((0, 0, 1))}
    return graph.node("Gather", [data, indices, graph.constant(axis)], batch, version=version)


def gather_nd(graph: Drawn) -> list[Tensor]:
    data, indices = graph.pick(*WHOLE, least=1), graph.pick("i64", "i32", least=1)
    version = graph.source.choice(("opset5", "opset8"))
    return graph.node(
        "GatherND", [data, indices], {"batch_dims": graph.source.choice((0, 0, 1))}, version=version
    )


def gather_elements(graph: Drawn) -> list[Tensor]:
    data = graph.pick(*WHOLE, least=1)
    shape = [*data.shape]
    axis = graph.axis(data)
    shape[axis] = graph.source.choice((1, 2, 3))
    same = [t for t in graph.tensors if t.type == "i64" and t.shape == tuple(shape)]
    indices = graph.source.choice(same) if same else graph.input("i64", shape)
    return graph.node("GatherElements", [data, indices], {"axis": axis}, version="opset6")


def cut(graph: Drawn) -> list[Tensor]:
    data = graph.pick(least=1)
    axis, step = graph.axis(data), graph.source.choice((1, 1, 2, -1))
    start, stop = graph.source.choice(((0, 1), (1, 9), (-1, -9), (-2, 9), (9, -9)))
    starts, stops, steps, axes = [graph.constant([n]) for n in (start, stop, step, axis)]
    order = [axes, steps] if graph.is_onnx else [steps, axes]
    return graph.node("Slice", [data, starts, stops, *order], version="opset8")


def strided_slice(graph: Drawn) -> list[Tensor]:
    data = graph.pick(least=1)
    if graph.is_onnx:
        raise UnsupportedCase("ONNX has none")
    rank = graph.source.randint(1, data.array.ndim)

    def mask(chance: float) -> str:
        return ",".join(str(int(graph.source.random() < chance)) for _ in range(rank))

    masks = {"begin_mask": mask(0.4), "end_mask": mask(0.6), "new_axis_mask": mask(0.2),
             "shrink_axis_mask": mask(0.15), "ellipsis_mask": mask(0.1)}  # fmt: skip
    begin, end = [[graph.source.choice((0, 1, 2, -1)) for _ in range(rank)] for _ in range(2)]
    strides = [graph.source.choice((1, 1, 2, -1)) for _ in range(rank)]
    return graph.node("StridedSlice", [data, *map(graph.constant, (begin, end, strides))], masks)


def shape_of(graph: Drawn) -> list[Tensor]:
    if graph.is_onnx:
        return graph.node("Shape", [graph.pick()])
    return graph.node(
        "ShapeOf", [graph.pick()], {"output_type": graph.source.choice(("i32", "i64"))}, version="opset3"
    )


def number_range(graph: Drawn) -> list[Tensor]:
    type = graph.source.choice(("i64", "i32"))
    ends = [graph.pick(type, rank=0), graph.pick(type, rank=0)]
    if max(abs(int(t.array)) for t in ends) > 50:
        raise UnsupportedCase("too long")
    step = graph.constant(graph.source.choice((1, 1, 2, -1)), type)
    attributes = {} if graph.is_onnx else {"output_type": graph.source.choice(("i32", "i64", "i8"))}
    return graph.node("Range", [*ends, step], attributes, version="opset4", is_static=False)


def non_zero(graph: Drawn) -> list[Tensor]:
    attributes = {} if graph.is_onnx else {"output_type": "i64"}
    return graph.node("NonZero", [graph.pick(least=1)], attributes, version="opset3", is_static=False)


def reduce(graph: Drawn) -> list[Tensor]:
    data, name = graph.pick(*WHOLE, least=1), graph.source.choice(("Sum", "Sum", "Prod", "Max", "Min"))
    axis, keeps = graph.axis(data), graph.source.random() < 0.5
    if graph.is_onnx and (name == "Sum" or graph.opset >= 18):
        return graph.node(f"Reduce{name}", [data, graph.constant([axis])], {"keepdims": int(keeps)})
    if graph.is_onnx:
        return graph.node(f"Reduce{name}", [data], {"keepdims": int(keeps), "axes": [axis]})
    inputs = [data, graph.constant(graph.source.choice(([axis], axis)))]
    return graph.node(f"Reduce{name}", inputs, {"keep_dims": str(keeps).lower()})


def sums(graph: Drawn) -> list[Tensor]:
    data = graph.pick("i64", "i32", least=1)
    flags = {name: graph.source.randint(0, 1) for name in ("exclusive", "reverse")}
    written: dict[str, Any] = flags if graph.is_onnx else {n: str(bool(f)).lower() for n, f in flags.items()}
    return graph.node("CumSum", [data, graph.constant(graph.axis(data))], written, version="opset3")


def unary(graph: Drawn) -> list[Tensor]:
    names = ("Abs", "Neg", "Relu") if graph.is_onnx else ("Abs", "Negative", "ReLU")
    return graph.node(graph.source.choice(names), [graph.pick("i64", "i32", "i8")])


def arg(graph: Drawn) -> list[Tensor]:
    data = graph.pick(*WHOLE, least=1)
    axis = graph.axis(data)
    if not graph.is_onnx or 0 in data.shape:
        raise UnsupportedCase("an IR has none")
    return graph.node(
        "ArgMax", [data], {"axis": axis, "keepdims": 1},
        compute_with=lambda arrays: np.expand_dims(arrays[0].argmax(axis), axis),
    )  # fmt: skip


def top(graph: Drawn) -> list[Tensor]:
    data = graph.pick(*WHOLE, least=1)
    axis = graph.axis(data) % data.array.ndim
    if data.shape[axis] == 0:
        raise UnsupportedCase("there is nothing to choose")

    def run(arrays: Sequence[Array]) -> tuple[Array, Array]:
        positions = np.expand_dims(arrays[0].argmax(axis), axis)
        return np.take_along_axis(arrays[0], positions, axis), positions

    attributes: dict[str, Any] = {"axis": axis}
    attributes |= {} if graph.is_onnx else {"mode": "max", "sort": "value", "index_element_type": "i64"}
    count = graph.constant([1] if graph.is_onnx else 1)
    return graph.node("TopK", [data, count], attributes, version="opset11", compute_with=run, count=2)


def pad(graph: Drawn) -> list[Tensor]:
    """Elements that are moved, and others."""
    data, fill = graph.pick(*WHOLE, rank=1), graph.source.choice((0, 7))
    value = graph.constant(fill, data.type)

    def run(arrays: Sequence[Array]) -> Array:
        return np.pad(arrays[0], ((1, 2),), constant_values=fill)

    if graph.is_onnx:
        return graph.node(
            "Pad", [data, graph.constant([1, 2]), value], {"mode": "constant"}, compute_with=run
        )
    inputs = [data, graph.constant([1]), graph.constant([2]), value]
    return graph.node("Pad", inputs, {"pad_mode": "constant"}, compute_with=run)


def one_hot(graph: Drawn) -> list[Tensor]:
    indices = graph.pick("i64", least=0)
    values = [graph.constant(n, "i32") for n in (5, 9)]
    if graph.is_onnx:
        values = [graph.constant([9, 5], "i32")]

    def run(arrays: Sequence[Array]) -> Array:
        return np.where(arrays[0][..., None] == np.arange(3), 5, 9).astype(np.int32)

    inputs = [indices, graph.constant(3), *values]
    return graph.node("OneHot", inputs, {"axis": -1}, compute_with=run)


def roll(graph: Drawn) -> list[Tensor]:
    if graph.is_onnx:
        raise UnsupportedCase("ONNX has none")
    data = graph.pick(*WHOLE, rank=1)
    inputs = [data, graph.constant([1]), graph.constant([0])]
    return graph.node("Roll", inputs, version="opset7", compute_with=lambda arrays: np.roll(arrays[0], 1))


OPERATORS: tuple[Callable[[Drawn], list[Tensor]], ...] = (
    *[columns] * 6, *[binary] * 8, *[partial(binary, name="FloorMod")] * 3, *[clamp] * 3, *[gather] * 4, *[concat] * 3, *[reduce] * 3,
    select, select, extreme_of_pair, extreme_of_pair, from_front, from_front, convert, convert, convert_like, reshape,
    squeeze, unsqueeze, transpose, broadcast, tile, split, gather_nd, gather_nd, gather_elements, gather_elements, cut,
    strided_slice, shape_of, number_range, non_zero, sums, unary, arg, top, pad, one_hot, roll,
)  # fmt: skip


def draw(dialect: str, number: int) -> Drawn:
    """Return a graph with at least one node."""
    source = scale.generator(f"bounds {dialect}", number)
    is_onnx = dialect == "ONNX"
    graph = Drawn(source, is_onnx, source.choice((6, 13, 18, 21)) if is_onnx else 0)
    wanted = source.randint(1, MOST_NODES)
    for _ in range(60):
        if len(graph.nodes) >= wanted:
            break
        try:
            source.choice(OPERATORS)(graph)
        except (UnsupportedCase, ValueError, IndexError):
            continue
    return graph


def write(graph: Drawn, folder: Path) -> str:
    if not graph.is_onnx:
        return graph.text.write(folder)
    types = {"i64": 7, "i32": 6, "i8": 3, "u8": 2, "f32": 1, "boolean": 9}
    inputs = [
        helper.make_tensor_value_info(t.ref, types[t.type], t.shape if t.is_static else [None] * t.array.ndim)
        for t in graph.inputs
    ]
    made = [t for _, _, outputs, _ in graph.nodes for t in outputs]
    outputs = [helper.make_tensor_value_info(t.ref, types[t.type], None) for t in made]
    proto = helper.make_graph(graph.protos, "bounds", inputs, outputs, graph.constants)
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", graph.opset)], ir_version=8)
    path = folder / "model.onnx"
    onnx.save(model, path)
    return str(path)


def arrays_of(
    graph: Drawn, run: int, shapes: Mapping[int, tuple[int, ...]] = MappingProxyType({})
) -> dict[Any, Array]:
    """Compute every tensor for other inputs; without those that are refused, and what rests on them.

    The shapes of some inputs, by their id, are other ones than those that were drawn first.
    """
    arrays = {id(t): t.array for t in graph.tensors if t not in graph.inputs}
    for _, _, outputs, _ in graph.nodes:
        for tensor in outputs:
            del arrays[id(tensor)]
    for tensor in graph.inputs:
        shape = shapes.get(id(tensor), tensor.shape)
        is_first = run == 0 and shape == tensor.shape
        again = tensor.array if is_first else graph.random_array(tensor.type, shape)
        arrays[id(tensor)] = again
    for _, inputs, outputs, compute_with in graph.nodes:
        if all(id(t) in arrays for t in inputs):
            try:
                with np.errstate(all="ignore"):
                    found = compute_with([arrays[id(t)] for t in inputs])
            except (UnsupportedCase, ValueError, IndexError):
                continue
            arrays.update({id(t): array for t, array in zip(outputs, found, strict=True)})
    return arrays


def faults(graph: Drawn, folder: Path) -> tuple[int, int, list[str]]:
    """Return how many values were compared, how many have bounds below their type's, and what is outside."""
    model = ir_scatter.read(write(graph, folder))
    nodes = {node.name: node for node in model.graph.walk()}
    asked = Facts(model=model), Facts(model=model)
    compared, narrower, wrong = 0, 0, list[str]()
    values, kinds = dict[int, Value](), dict[int, str]()
    for name, _, outputs, _ in graph.nodes:
        for tensor, value in zip(outputs, nodes[name].outputs, strict=True):
            if tensor.array.dtype.kind in "iu":
                values[id(tensor)], kinds[id(tensor)] = value, nodes[name].type
    for run in range(RUNS):
        arrays = arrays_of(graph, run)
        # the answers of one are the same whatever was asked before
        orders = zip(asked, ([*values.items()], [*reversed(values.items())]), strict=True)
        for facts, pairs in orders:
            for key, value in pairs:
                array = arrays.get(key)
                if array is None or array.size == 0:
                    continue
                compared += 1
                width = array.shape[-1] if array.ndim else 1
                for count in {1, width}:
                    columns = bounds_of(facts, value, count)
                    table = array.reshape(-1, count)
                    limits = np.iinfo(array.dtype)
                    narrower += all(limits.min < one.low and one.high < limits.max for one in columns)
                    ends = zip(table.min(0).tolist(), table.max(0).tolist(), columns, strict=True)
                    wrong += [
                        f"{kinds[key]} {value.name}: {low} to {high}, expected {bounds}"
                        for low, high, bounds in ends
                        if not bounds.low <= low <= high <= bounds.high
                    ]
    for value in values.values():
        for count in (1, 2):
            first, second = (bounds_of(facts, value, count) for facts in asked)
            if first != second:
                wrong.append(f"{value.name}: {first}, or {second} if it is asked for first")
    return compared, narrower, wrong


def look(dialect: str, count: int, start: int = 0) -> tuple[int, int, list[str]]:
    compared, narrower, wrong = 0, 0, list[str]()
    with TemporaryDirectory() as folder:
        for number in range(start, start + count):
            try:
                graph = draw(dialect, number)
                if not graph.nodes:
                    continue
                found = faults(graph, Path(folder))
            except Exception as error:
                error.add_note(f"in graph {number} of {dialect}")
                raise
            compared, narrower = compared + found[0], narrower + found[1]
            wrong += [f"graph {number}: {text}" for text in found[2]]
    return compared, narrower, wrong


@pytest.mark.parametrize("dialect", ["IR", "ONNX"])
@scale.in_part_and_whole
def test_every_element_is_within_its_bounds(dialect: str, is_whole: bool) -> None:
    count = len(scale.cases(GRAPHS, is_whole))
    compared, narrower, wrong = look(dialect, count)
    assert wrong == []
    assert compared > count
    assert narrower > count / 2


if __name__ == "__main__":
    compared, narrower, wrong = look(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if sys.argv[3:] else 0)
    print(
        f"{sys.argv[2]} graphs, {compared} comparisons, {narrower} narrower than their type, {len(wrong)} wrong"
    )
    print("\n".join(wrong[:40]))
