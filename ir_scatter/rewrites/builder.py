"""Writes the new nodes of a fragment, in the words of the dialect that the model is in.

Operators are named as in an IR; their rows in `ops/general.py` spell them.

What can be computed from constants of the fragment itself and from known shapes is computed at once
and becomes a constant; a shape that is known never becomes a node. Nothing is computed from the
numbers of the model's own constants, so that one fragment serves every node that looks the same.
What has been made of the same inputs before is not made again.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype
from ir_scatter.core.fragment import Fragment, NewConstant, NewNode
from ir_scatter.core.model import ONNX, Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Shape, static
from ir_scatter.ops.general import Emitted, GeneralOp, named
from ir_scatter.ops.general_kernels import UnsupportedCase, compute
from ir_scatter.ops.spec import OpSpec, Role
from ir_scatter.rewrites.folding import array_of, named_for
from ir_scatter.rewrites.new_shapes import broadcast_shapes, reduced, reshaped, spans

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array

I64 = ELEMENT_TYPES["i64"]
BOOLEAN = ELEMENT_TYPES["boolean"]

LARGEST_FOLDED = 1024
"""Elements up to which a computed constant is stored; larger ones are cheaper to compute."""


class Builder:
    """Makes one fragment.

    Attributes:
        domain: the dialect.
        opset: that of the ONNX model that is written; None for an IR.
    """

    def __init__(self, given: Sequence[Value | None], domain: str, opset: int | None) -> None:
        self.domain = domain
        self.opset = opset
        self._given = tuple(given)
        self._news: list[NewNode] = []
        self._constants: dict[tuple[object, ...], tuple[str, NewConstant, Value]] = {}
        self._made: dict[tuple[object, ...], Value] = {}
        self._labels: set[str] = set()

    def fragment(self, result: Value) -> Fragment:
        """Return the nodes that a result needs; the one that computes it comes last."""
        needed, kept = {id(result)}, []
        for new in reversed(self._news):
            if id(new.output) in needed:
                kept.append(new)
                needed.update(map(id, new.inputs))
        return Fragment(self._given, reversed(kept))

    def constant(self, content: Any, label: str, type: ElementType = I64) -> Value:
        """Make a constant, once for each content; one of two uses is named for its numbers."""
        array = np.asarray(content, dtype(type))
        key = (type.name, array.shape, array.tobytes())
        first, constant, value = self._constants.get(key, (label, None, None))
        if constant is None or value is None:
            constant = NewConstant(self._new_label(label), type, array)
            value = Value(constant.label, type, array.shape, constant=constant)
        elif first not in {label, ""}:
            self._labels.discard(constant.label)
            constant.label, first = self._new_label(named_for(array) or first), ""
        self._constants[key] = first, constant, value
        return value

    def scatter(
        self,
        spec: OpSpec,
        inputs: Mapping[Role, Value | None],
        attributes: Mapping[str, Any],
        label: str = "updated",
        axis: int = 0,
    ) -> Value:
        """Make a scatter node.

        Args:
            spec: its row.
            inputs: by role; where there is no axis among them, the number is written.
            attributes: without the axis.
            label: what it is.
            axis: where it is a number.
        """
        is_onnx = spec.key.domain == ONNX
        known, attributes = dict(inputs), dict(attributes)
        if spec.axis is not None and spec.axis.attribute is not None:
            attributes = {spec.axis.attribute: axis, **attributes}
        elif spec.axis is not None and known.get(Role.AXIS) is None:
            known[Role.AXIS] = self.constant(axis, "axis")
        data = known[Role.DATA]
        assert data is not None
        opset = self.opset if is_onnx and self.opset is not None else spec.opsets[0]
        values = [known.get(port.role) for port in spec.ports]
        return self._add(spec.key.type, opset, values, attributes, data.element_type, data.shape, label)

    def shape_of(self, value: Value, label: str) -> Value:
        """Return the shape of a value as whole numbers."""
        known = static(value.shape)
        if known is not None:
            return self.constant(list(known), label)
        rank = UNKNOWN_DIM if value.shape is None else len(value.shape)
        return self._make("ShapeOf", [value], I64, (rank,), label)

    def reshape(
        self, value: Value, target: "Value | Sequence[int]", label: str, shape: Shape = None
    ) -> Value:
        """Give a value another shape; as it is if it has it already.

        Args:
            value: what.
            target: the new shape, where one dimension may be -1.
            label: what it is.
            shape: the best that is known of the new shape.
        """
        if not isinstance(target, Value):
            target = self.constant(list(target), f"{label}_shape")
        numbers = array_of(target)
        found = reshaped(value.shape, numbers, target.shape, shape)
        if static(found) is not None and found == value.shape:
            return value
        if numbers is not None and numbers.tolist() == [-1] and value.shape and len(value.shape) == 1:
            return value
        if self._is_misread(value, target):
            return self._reshaped_empty(value, target, found, label)
        return self._make(
            "Reshape", [value, target], value.element_type, found, label,
        )  # fmt: skip

    def _is_misread(self, value: Value, target: Value) -> bool:
        """Tell whether a 0 in a target would copy a dimension that is not known to be 0."""
        numbers = array_of(target)
        if numbers is None or 0 not in numbers:
            return False
        if named("Reshape").emit(self.domain, self.opset, {}).attributes:  # they say what a 0 means
            return False
        shape = value.shape or ()
        zeros = [place for place, number in enumerate(numbers) if number == 0]
        return any(place >= len(shape) or shape[place] != 0 for place in zeros)

    def _reshaped_empty(self, value: Value, target: Value, shape: Shape, label: str) -> Value:
        """Give a value without elements a shape: flat, then a column of no elements, repeated."""
        numbers = array_of(target)
        assert numbers is not None
        place = numbers.tolist().index(0)
        flat = self.reshape(value, [-1], f"{label}_flat", (0,))
        column = self.unsqueeze(
            flat, [axis for axis in range(len(numbers)) if axis != place], f"{label}_column"
        )
        return self.broadcast(column, target, label, shape)

    def unsqueeze(self, value: Value, axes: Sequence[int], label: str) -> Value:
        """Insert dimensions of 1; `axes` count from 0 in the result."""
        if not axes:
            return value
        shape = value.shape
        if shape is not None:
            dims = list(shape)
            for axis in sorted(axes):
                dims.insert(axis, 1)
            shape = tuple(dims)
        return self._make(
            "Unsqueeze", [value], value.element_type, shape, label,
            axes=list(axes),
        )  # fmt: skip

    def broadcast(self, value: Value, target: Value, label: str, shape: Shape = None) -> Value:
        """Repeat a value along dimensions of 1 until it has a shape."""
        found = reshaped(None, array_of(target), target.shape, shape)
        if static(found) is not None and found == value.shape:
            return value
        return self._make(
            "Broadcast", [value, target], value.element_type, found, label,
        )  # fmt: skip

    def concat(self, values: Sequence[Value], axis: int, label: str, shape: Shape) -> Value:
        """Join values along an axis."""
        if len(values) == 1:
            return values[0]
        return self._make(
            "Concat", values, values[0].element_type, shape, label,
            axis=axis,
        )  # fmt: skip

    def range(self, stop: Value, label: str) -> Value:
        """Count from 0 to a scalar."""
        start, step = self.constant(0, "start"), self.constant(1, "step")
        known = array_of(stop)
        size = UNKNOWN_DIM if known is None else int(known)
        return self._make("Range", [start, stop, step], I64, (size,), label)

    def gather(self, value: Value, index: Value, axis: int, label: str, shape: Shape) -> Value:
        """Take positions along an axis."""
        return self._make(
            "Gather", [value, index], value.element_type, shape, label,
            axis=axis,
        )  # fmt: skip

    def gather_elements(self, value: Value, indices: Value, axis: int, label: str) -> Value:
        """Take the elements that a scatter with these indices would write to."""
        inputs, type = [value, indices], value.element_type
        return self._make("GatherElements", inputs, type, indices.shape, label, axis=axis)

    def gather_nd(self, value: Value, indices: Value, label: str, shape: Shape) -> Value:
        """Take the slices that a scatter with these tuples would write to."""
        return self._make("GatherND", [value, indices], value.element_type, shape, label)

    def slice(
        self, value: Value, start: Value, stop: Value, axes: Sequence[int], label: str, shape: Shape
    ) -> Value:
        """Cut pieces out along axes; start and stop are lists of one number for each axis."""
        return self._make(
            "Slice", [value, start, stop], value.element_type, shape, label,
            step=[1] * len(axes), axes=list(axes),
        )  # fmt: skip

    def transpose(self, value: Value, order: Value, label: str, shape: Shape = None) -> Value:
        """Put the axes in another order."""
        known = array_of(order)
        if known is not None and value.shape is not None:
            if known.tolist() == sorted(known.tolist()):
                return value
            shape = tuple(value.shape[int(axis)] for axis in known)
        if self.domain != ONNX:
            return self._make("Transpose", [value, order], value.element_type, shape, label)
        assert known is not None
        numbers = known.tolist()
        return self._make("Transpose", [value], value.element_type, shape, label, order=numbers)

    def select(self, condition: Value, left: Value, right: Value, label: str) -> Value:
        """Take elements of `left` where a condition holds, of `right` elsewhere."""
        shape = broadcast_shapes(condition.shape, left.shape, right.shape)
        both = broadcast_shapes(left.shape, right.shape)
        if self.domain != ONNX and not spans(both, condition.shape):
            # There a condition is repeated to the two values, and those not to it.
            right = self.broadcast(right, self.shape_of(condition, "condition_shape"), "elsewhere", shape)
        values = [condition, left, right]
        return self._make("Select", values, left.element_type, shape, label)

    def binary(self, operation: str, left: Value, right: Value, label: str) -> Value:
        """Join two values element by element: "Add", "Subtract", "Multiply", "Equal", "Less", ..."""
        shape = broadcast_shapes(left.shape, right.shape)
        type = BOOLEAN if operation in {"Equal", "Less"} else left.element_type
        return self._make(operation, [left, right], type, shape, label)

    def negative(self, value: Value, label: str) -> Value:
        """Change the sign."""
        return self._make("Negative", [value], value.element_type, value.shape, label)

    def convert(self, value: Value, type: ElementType, label: str) -> Value:
        """Change the element type; as it is if it has it already."""
        if value.element_type is type:
            return value
        return self._make("Convert", [value], type, value.shape, label, type=type)

    def non_zero(self, value: Value, label: str) -> Value:
        """Return the positions of all elements that are not zero, a column for each."""
        rank = UNKNOWN_DIM if value.shape is None else len(value.shape)
        shape = (rank, UNKNOWN_DIM)
        return self._make("NonZero", [value], I64, shape, label)

    def reduce(self, operation: str, value: Value, axis: int, label: str, *, keeps: bool = False) -> Value:
        """Reduce along one axis: "ReduceSum" or "ReduceProd"."""
        return self._make(
            operation, [value], value.element_type, reduced(value.shape, axis, keeps=keeps), label,
            axes=[axis], keeps=keeps,
        )  # fmt: skip

    def _make(
        self,
        operation: str,
        values: Sequence[Value],
        element_type: ElementType | None,
        shape: Shape,
        label: str,
        **told: Any,
    ) -> Value:
        op = named(operation)
        new = op.emit(self.domain, self.opset, told)
        folded = self._folded(op, new, [array_of(value) for value in values])
        if folded is not None and element_type is not None:
            return self.constant(folded, label, element_type)
        behind = [self.constant(numbers, name) for name, numbers in new.inputs.items()]
        return self._add(new.type, new.opset, [*values, *behind], new.attributes, element_type, shape, label)

    def _folded(self, op: GeneralOp, new: Emitted, arrays: "Sequence[Array | None]") -> "Array | None":
        """Compute a node of which all inputs are constants of the fragment, and whose output is small."""
        if any(array is None for array in arrays):
            return None
        inputs = [*arrays, *map(np.asarray, new.inputs.values())]
        opset = int(str(new.opset).removeprefix("opset"))
        try:
            return compute(
                op, self.domain, inputs, new.attributes, opset=opset, element_limit=LARGEST_FOLDED
            )[0]
        except UnsupportedCase:
            return None

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
        label = self._new_label(label)
        output = self._made[key] = Value(label, type, shape)
        self._news.append(NewNode(label, self.domain, node_type, opset, tuple(values), attributes, output))
        return output

    def _new_label(self, label: str) -> str:
        found, number = label, 2
        while found in self._labels:
            found, number = f"{label}_{number}", number + 1
        self._labels.add(found)
        return found
