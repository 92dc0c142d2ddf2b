"""Builds the new nodes that replace a scatter node, in the format (IR or ONNX opset) of the model.

Operators have their OpenVINO names; their rows in `ops/general.py` translate the names.

The builder folds constants: a node whose inputs are constants of the fragment or known shapes becomes a
constant. It reads no values of the model's own constants, so that all nodes of a group can share the
fragment. Equal nodes with equal inputs are built once.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype
from ir_scatter.core.fragment import Fragment, NewConstant, NewNode, free_name
from ir_scatter.core.model import ONNX, OPENVINO, Node, Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Dim, Shape, element_count, lowest, static
from ir_scatter.ops.general import named
from ir_scatter.ops.general_kernels import UnsupportedCase, compute
from ir_scatter.ops.spec import OpSpec, Reduction, Role

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import ScatterNode
    from ir_scatter.core.arrays import Array

I64 = ELEMENT_TYPES["i64"]
BOOLEAN = ELEMENT_TYPES["boolean"]

LARGEST_FOLDED = 1024
"""Limit of elements of a folded constant: a larger one is cheaper to compute at run time than to store."""

WIDE = 32
"""Minimum bits of an index type that can represent every position of any dimension, and its negative."""
LAST = 1 << 62
"""Stop of a slice that reaches the end of any dimension."""

_GATHERED = frozenset({"i32", "i64"})
"""The index types that `GatherElements` accepts in both formats."""
_FEW = 4
"""Limit of elements of a constant that is named by its values."""
_WORDS = {-1: "minus_one", 0: "zero", 1: "one", 2: "two"}


def array_of(value: Value) -> "Array | None":
    """Return the array of a constant that the builder created; None for any other value."""
    return value.constant.array if isinstance(value.constant, NewConstant) else None


class Builder:
    """Builds one fragment (new nodes and constants) in a dialect.

    `opset` is that of the written ONNX model; None for an IR. Each method builds a node, or a constant, and
    returns its output. `label` names the node after its meaning; `shape` is the best shape that the caller
    knows.
    """

    def __init__(self, inputs: Sequence[Value | None], domain: str, opset: int | None) -> None:
        self.domain = domain
        self.opset = opset
        self._given = tuple(inputs)
        self._news: list[NewNode] = []
        self._constants: dict[tuple[object, ...], tuple[str, NewConstant, Value]] = {}
        self._made: dict[tuple[object, ...], Value] = {}
        self._labels: set[str] = set()

    def fragment(self, result: Value) -> Fragment:
        """Return the nodes that a result depends on; the node that computes it comes last."""
        needed, used = {id(result)}, []
        for new in reversed(self._news):
            if id(new.output) in needed:
                used.append(new)
                needed.update(map(id, new.inputs))
        return Fragment(self._given, reversed(used))

    def constant(self, content: Any, label: str, type: ElementType = I64) -> Value:
        """Return a constant, created once for equal contents. With two labels it is named by its values."""
        array = np.asarray(content, dtype(type))
        key = (type.name, array.shape, array.tobytes())
        first, constant, value = self._constants.get(key, (label, None, None))
        if constant is None or value is None:
            constant = NewConstant(free_name(label, self._labels), type, array)
            value = Value(constant.label, type, array.shape, constant=constant)
        elif first not in {label, ""}:
            self._labels.discard(constant.label)
            constant.label, first = free_name(_name_of_content(array) or first, self._labels), ""
        self._constants[key] = first, constant, value
        return value

    def scatter(
        self,
        spec: OpSpec,
        data: Value,
        indices: Value,
        updates: Value,
        reduction: Reduction = Reduction.NONE,
        *,
        keeps_initial: bool = True,
        axis: Value | int = 0,
        label: str = "updated",
    ) -> Value:
        """Build a scatter node of an operator version that supports the reduction.

        An IR gets all attributes, as OpenVINO writes them; ONNX only those that differ from their default.
        """
        inputs = {Role.DATA: data, Role.INDICES: indices, Role.UPDATES: updates}
        attributes: dict[str, Any] = {}
        if spec.axis is not None and spec.axis.attribute is not None:
            attributes[spec.axis.attribute] = axis
        elif spec.axis is not None:
            inputs[Role.AXIS] = axis if isinstance(axis, Value) else self.constant(axis, "axis")
        row = spec.attribute("reduction")
        if row is not None:
            word = next(word for word, meaning in spec.reductions.items() if meaning is reduction)
            if self.domain == OPENVINO or word != row.default:
                attributes[row.name] = word
        if spec.attribute("use_init_val") is not None:
            attributes["use_init_val"] = "true" if keeps_initial else "false"
        opset = spec.opsets[0] if self.opset is None else self.opset
        values = [inputs.get(port.role) for port in spec.ports]
        return self._add(spec.key.type, opset, values, attributes, data.element_type, data.shape, label)

    def again(self, node: Node, inputs: Mapping[int, Value], output: Value, label: str = "scatter") -> Value:
        """Copy a node of the model with some inputs replaced and the same attributes."""
        values = [inputs.get(number, port.value) for number, port in enumerate(node.inputs)]
        opset = node.opset if node.opset is not None else ""
        return self._add(node.type, opset, values, node.attributes, output.element_type, output.shape, label)

    def rebuilt(
        self,
        scatter: "ScatterNode",
        operands: Mapping[Role, Value],
        reduction: Reduction,
        written: Mapping[str, Any] = MappingProxyType({}),
    ) -> Value:
        """Copy a scatter node with other operands, another reduction and some other attributes.

        Its output has the type of data.
        """
        node, spec = scatter.node, scatter.spec
        values = [operands.get(spec.ports[at].role, port.value) for at, port in enumerate(node.inputs)]
        attributes, row = dict(node.attributes), spec.attribute("reduction")
        if row is not None and reduction is not scatter.reduction:
            word = next(word for word, meaning in spec.reductions.items() if meaning is reduction)
            attributes[row.name] = word
            if reduction is Reduction.NONE and "use_init_val" in attributes:
                attributes["use_init_val"] = "true"
        attributes |= written
        data = operands.get(Role.DATA) or scatter.data.value  # type: ignore[union-attr]
        opset = node.opset if node.opset is not None else ""
        return self._add(node.type, opset, values, attributes, data.element_type, data.shape, "scatter")

    def copy(self, value: Value, label: str) -> Value:
        """Return a copy of a value in separate memory: no runtime removes the node."""
        type = value.element_type
        operation = "LogicalOr" if type is not None and type.kind == "boolean" else "Maximum"
        return self.make(operation, [value, value], value.shape, label)

    def identity(self, value: Value, label: str) -> Value:
        """Return a value under another name, in ONNX."""
        assert self.opset is not None
        return self._add("Identity", self.opset, [value], {}, value.element_type, value.shape, label)

    def empty(self, shape: Sequence[int], type: ElementType, label: str) -> Value:
        """Return a value without elements, in ONNX; not an initializer, which OpenVINO reads as 0-D."""
        assert self.opset is not None
        target = self.constant(list(shape), f"{label}_shape")
        zeros = ELEMENT_TYPES["f32"]
        made = self._add("ConstantOfShape", self.opset, [target], {}, zeros, tuple(shape), label)
        return self.convert(made, type, f"{label}_{type.name}")

    def shape_of(self, value: Value, label: str) -> Value:
        """Return the shape of a value as a list of i64."""
        sizes = static(value.shape)
        if sizes is not None:
            return self.constant(list(sizes), label)
        rank = UNKNOWN_DIM if value.shape is None else len(value.shape)
        return self.make("ShapeOf", [value], (rank,), label, I64)

    def reshape(
        self, value: Value, target: "Value | Sequence[int]", label: str, shape: Shape = None
    ) -> Value:
        """Reshape a value; one dimension may be -1. A value that has the shape already is not changed."""
        if not isinstance(target, Value):
            target = self.constant(list(target), f"{label}_shape")
        numbers, source_shape = array_of(target), value.shape
        result_shape = _reshaped(source_shape, numbers, target.shape, shape)
        if static(result_shape) is not None and result_shape == source_shape:
            return value
        target_dims = [] if numbers is None else numbers.tolist()
        if target_dims == [-1] and source_shape and len(source_shape) == 1:
            return value
        if not named("Reshape").emit(self.domain, self.opset, {}).attributes:
            if numbers is None:
                target = self._without_zeros(target, result_shape, label)
            elif 0 in target_dims and source_shape != result_shape:
                return self._reshaped_to_nothing(value, target_dims, label)
        return self.make("Reshape", [value, target], result_shape, label)

    def _without_zeros(self, target: Value, shape: Shape, label: str) -> Value:
        """Replace 0 by -1 in a computed shape, because 0 copies a dimension before opset 14 of ONNX.

        For a value without elements, -1 becomes 0. A shape with two zeros cannot be written this way.
        """
        if shape is not None and all(lowest(dim) > 0 for dim in shape):
            return target
        is_zero = self.binary("Equal", target, self.constant(0, "zero"), f"{label}_is_0")
        return self.select(is_zero, self.constant(-1, "rest"), target, f"{label}_shape_left")

    def _reshaped_to_nothing(self, value: Value, shape: Sequence[int], label: str) -> Value:
        """Reshape a value without elements to a shape with a 0 that the operator cannot write.

        The 0 is written as -1 first, then sliced to nothing.
        """
        first, *empty_axes = [place for place, size in enumerate(shape) if size == 0]
        sizes = [-1 if place == first else size or 1 for place, size in enumerate(shape)]
        if not empty_axes:
            return self.reshape(value, sizes, label, tuple(shape))
        long = self.reshape(
            value,
            sizes,
            f"{label}_long",
            tuple(size or int(place != first) for place, size in enumerate(shape)),
        )
        ends = self.constant([0] * len(empty_axes), "no_end")
        return self.slice(long, ends, ends, empty_axes, label, tuple(shape))

    def unsqueeze(self, value: Value, axes: Sequence[int], label: str) -> Value:
        """Insert dimensions of 1; `axes` refer to the result and are not negative."""
        if not axes:
            return value
        shape = value.shape
        if shape is not None:
            rank, dims = len(shape) + len(axes), iter(shape)
            shape = tuple([1 if place in axes else next(dims) for place in range(rank)])
        return self.make("Unsqueeze", [value], shape, label, axes=list(axes))

    def broadcast(self, value: Value, target: Value, label: str, shape: Shape = None) -> Value:
        """Broadcast a value to the shape given by `target`."""
        result_shape = _reshaped(None, array_of(target), target.shape, shape)
        whole = static(result_shape)
        if whole is not None and whole == value.shape:
            return value
        if whole is not None and 0 in whole and value.element_type is not None:
            # OpenVINO divides by the number of elements when it folds a Broadcast at load time. It also drops
            # an empty constant from a Concat, and reads an empty initializer as a scalar: rewrites that
            # would need one of those return data unchanged.
            return self.constant(np.empty(whole), label, value.element_type)
        return self.make("Broadcast", [value, target], result_shape, label)

    def repeated_indices(self, column: Value, updates: Value, label: str, shape: Shape = None) -> Value:
        """Broadcast a column of indices to the shape of updates.

        Updates without elements are converted to i64 and serve as indices: runtimes disagree on Expand to a
        dimension of 0, and OpenVINO misreads constants without elements.
        """
        if element_count(updates.shape) == 0:
            return self.convert(updates, I64, label)
        return self.broadcast(column, self.shape_of(updates, "updates_shape"), label, shape)

    def empty_tuples(self, value: Value, updates: Value, depth: int) -> tuple[Value, Value]:
        """Return an empty list of tuples [0, depth], reshaped from an empty value, and matching updates.

        The list is not a constant, because OpenVINO reads an empty initializer as a scalar. It is not a
        Concat of columns, because OpenVINO removes empty inputs of a Concat and infers another shape.
        """
        tuples = self.reshape(self.convert(value, I64, "indices_i64"), [0, depth], "coordinates")
        return tuples, self.reshape(updates, [0], "updates_flat")

    def concat(self, values: Sequence[Value], axis: int, label: str, shape: Shape) -> Value:
        return values[0] if len(values) == 1 else self.make("Concat", values, shape, label, axis=axis)

    def range(self, stop: Value, label: str) -> Value:
        """Return 0, 1, ..., `stop` - 1 for a scalar."""
        start, step, number = self.constant(0, "start"), self.constant(1, "step"), array_of(stop)
        shape = (UNKNOWN_DIM if number is None else int(number),)
        return self.make("Range", [start, stop, step], shape, label, I64)

    def gather(self, value: Value, index: Value, axis: int, label: str, shape: Shape) -> Value:
        return self.make("Gather", [value, index], shape, label, axis=axis)

    def slice(
        self, value: Value, start: Value, stop: Value, axes: Sequence[int], label: str, shape: Shape
    ) -> Value:
        """Slice along axes with step 1; start and stop contain one number for each axis."""
        inputs = [value, start, stop]
        return self.make("Slice", inputs, shape, label, step=[1] * len(axes), axes=list(axes))

    def transpose(self, value: Value, order: Value, label: str, shape: Shape = None) -> Value:
        permutation = array_of(order)
        if permutation is not None and value.shape is not None:
            if permutation.tolist() == sorted(permutation.tolist()):
                return value
            shape = tuple(value.shape[int(axis)] for axis in permutation)
        if self.domain != ONNX:
            return self.make("Transpose", [value, order], shape, label)
        assert permutation is not None
        return self.make("Transpose", [value], shape, label, order=permutation.tolist())

    def select(self, condition: Value, left: Value, right: Value, label: str) -> Value:
        """Select elements of `left` where the condition is true, of `right` elsewhere."""
        shape = _broadcast(condition.shape, left.shape, right.shape)
        both = _broadcast(left.shape, right.shape)
        if self.domain != ONNX and not _spans(both, condition.shape):
            # OpenVINO broadcasts the condition to the values, but not the values to the condition.
            right = self.broadcast(right, self.shape_of(condition, "condition_shape"), "elsewhere", shape)
        return self.make("Select", [condition, left, right], shape, label, left.element_type)

    def binary(self, operation: str, left: Value, right: Value, label: str) -> Value:
        """Apply an elementwise operator to two values: "Add", "Multiply", "Equal", "Less", ..."""
        type = BOOLEAN if operation in {"Equal", "Less"} else left.element_type
        return self.make(operation, [left, right], _broadcast(left.shape, right.shape), label, type)

    def convert(self, value: Value, type: ElementType, label: str) -> Value:
        """Convert to an element type; a value that already has the type is returned unchanged."""
        if value.element_type is type:
            return value
        return self.make("Convert", [value], value.shape, label, type, type=type)

    def reduce(self, operation: str, value: Value, axis: int, label: str, *, keeps: bool = False) -> Value:
        """Reduce along one axis; `operation` is "ReduceSum" or "ReduceProd"."""
        shape = value.shape
        if shape is not None:
            at = axis % max(len(shape), 1)
            shape = (*shape[:at], *([1] if keeps else []), *shape[at + 1 :])
        return self.make(operation, [value], shape, label, axes=[axis], keeps=keeps)

    # Building blocks of several rewrites

    def along(self, mask: Value, value: Value, label: str) -> Value:
        """Reshape a list to lie along the axis where the mask is true, with size 1 on all other axes."""
        rest, unit = self.constant(-1, "rest"), self.constant(1, "one")
        target = self.select(mask, rest, unit, f"{label}_shape")
        return self.make("Reshape", [value, target], _reshaped(value.shape, None, target.shape, None), label)

    def is_first(self, places: Value) -> Value:
        return self.binary("Equal", places, self.constant(0, "zero"), "is_first")

    def count_of(self, value: Value, label: str) -> Value:
        """Return the number of elements as [1]."""
        sizes = static(value.shape)
        if sizes is not None:
            return self.constant([prod(sizes)], label)
        is_list = value.shape is not None and len(value.shape) == 1
        flat = value if is_list else self.reshape(value, [-1], f"{label}_flat", (UNKNOWN_DIM,))
        return self.shape_of(flat, label)

    def fitting_indices(self, indices: Value, target: OpSpec | None = None) -> Value:
        """Convert indices to a type that the target operator accepts; by default one for `GatherElements`."""
        port, type = target.port(Role.INDICES) if target else None, indices.element_type
        allowed = port.element_types if port else _GATHERED
        is_fitting = len(allowed) > len(_GATHERED) if type is None else type.name in allowed
        return indices if is_fitting else self.convert(indices, I64, "indices_i64")

    def in_type(self, numbers: Value, type: ElementType, label: str) -> Value:
        """Convert whole numbers to an index type, which must be wide enough for positions."""
        array = array_of(numbers)
        if array is None:
            return self.convert(numbers, type, f"{label}_converted")
        return self.constant(array.astype("int64").clip(max=(1 << (type.bits - 1)) - 1), label, type)

    def from_front(self, indices: Value, sizes: Value, label: str = "indices_non_negative") -> Value:
        """Add the size of the dimension to negative indices: [2, -1] of size 3 becomes [2, 2].

        Indices out of range stay out of range. `sizes` are the dimensions that indices refer to, broadcast to
        the indices.
        """
        type = indices.element_type
        if type is None or type.bits < WIDE:
            indices, type = self.convert(indices, I64, "indices_i64"), I64
        sizes = self.in_type(sizes, type, "sizes")
        is_negative = self.binary("Less", indices, self.constant(0, "zero", type), "indices_are_negative")
        return self.select(is_negative, self.binary("Add", indices, sizes, "indices_wrapped"), indices, label)

    # Nodes of any operator

    def make(
        self,
        operation: str,
        values: Sequence[Value],
        shape: Shape,
        label: str,
        element_type: ElementType | None = None,
        **parameters: Any,
    ) -> Value:
        """Build a node whose output has an element type, by default that of the first input."""
        op = named(operation)
        new = op.emit(self.domain, self.opset, parameters)
        element_type = element_type or values[0].element_type
        inputs = [*map(array_of, values), *map(np.asarray, new.inputs.values())]
        if element_type is not None and all(array is not None for array in inputs):
            opset, limit = int(str(new.opset).removeprefix("opset")), LARGEST_FOLDED
            with suppress(UnsupportedCase):
                outputs = compute(op, self.domain, inputs, new.attributes, opset=opset, element_limit=limit)
                return self.constant(outputs[0], label, element_type)
        behind = [self.constant(numbers, name) for name, numbers in new.inputs.items()]
        return self._add(new.type, new.opset, [*values, *behind], new.attributes, element_type, shape, label)

    def _add(
        self,
        node_type: str,
        opset: str | int,
        values: Sequence[Value | None],
        attributes: Mapping[str, Any],
        type: ElementType | None,
        shape: Shape,
        label: str,
    ) -> Value:
        key = (node_type, opset, tuple(map(id, values)), repr([*attributes.items()]))
        if key in self._made:
            return self._made[key]
        label = free_name(label, self._labels)
        output = self._made[key] = Value(label, type, shape)
        self._news.append(NewNode(label, self.domain, node_type, opset, tuple(values), attributes, output))
        return output


def _name_of_content(array: "Array") -> str:
    """Return a name from an array's values, "minus_one", "list_0_1"; "" for long arrays or other types."""
    if array.dtype.kind != "i" or not 0 < array.size <= _FEW or array.ndim > 1:
        return ""
    if array.ndim == 0 and int(array) in _WORDS:
        return _WORDS[int(array)]
    numbers = "_".join(str(number).replace("-", "minus_") for number in array.reshape(-1).tolist())
    return f"number_{numbers}" if array.ndim == 0 else f"list_{numbers}"


def _reshaped(source: Shape, target: "Array | None", target_shape: Shape, declared: Shape) -> Shape:
    """Return the shape of the result of a Reshape; for a computed target only the rank is known."""
    if target is None:
        if declared is not None or not target_shape or not isinstance(target_shape[0], int):
            return declared
        return (UNKNOWN_DIM,) * target_shape[0]
    dims: list[Dim] = target.tolist()
    if -1 in dims:
        place, before = dims.index(-1), static(source)
        rest = prod(int(number) for number in target if number != -1)
        if before is not None and rest > 0:
            dims[place] = prod(before) // rest
        else:
            dims[place] = (
                declared[place] if declared is not None and len(declared) == len(dims) else UNKNOWN_DIM
            )
    return tuple(dims)


def _broadcast(*shapes: Shape) -> Shape:
    """Return the broadcast of several shapes."""
    shapes_known = [shape for shape in shapes if shape is not None]
    if len(shapes_known) < len(shapes):
        return None
    rank = max(map(len, shapes_known))
    dims = list[Dim]()
    for column in zip(*[(*(1,) * (rank - len(shape)), *shape) for shape in shapes_known], strict=True):
        larger = [dim for dim in column if dim != 1]
        dims.append(next((dim for dim in larger if isinstance(dim, int)), UNKNOWN_DIM if larger else 1))
    return tuple(dims)


def _spans(shape: Shape, repeated: Shape) -> bool:
    """Return whether a value of shape `repeated` certainly broadcasts to `shape`."""
    if shape is None or repeated is None:
        return shape is None
    pairs = zip(reversed(shape), reversed(repeated), strict=False)
    return len(repeated) <= len(shape) and all(dim != 1 or repeated_dim == 1 for dim, repeated_dim in pairs)
