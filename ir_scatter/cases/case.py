"""Defines a case (inputs and attributes for one operator), and makes the model node that computes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, from_dtype
from ir_scatter.core.model import ONNX
from ir_scatter.core.shapes import UNKNOWN_DIM, Bounds, Dim
from ir_scatter.formats.base import IR, ONNX_FORMAT, OneInput, OneNode
from ir_scatter.ops import index_values
from ir_scatter.ops.kernels.targets import Operation, Task
from ir_scatter.ops.names import OperatorName
from ir_scatter.ops.spec import IndexRange, Layout, OpSpec, Reduction, Role

LARGEST_RANK, LARGEST_DIM = 4, 5


@dataclass(frozen=True, slots=True)
class Limits:
    """The kinds of cases that may be drawn.

    Attributes:
        reductions, element_types, index_types: allowed ones; None allows all of the operator version.
        may_repeat: whether targets may repeat if there is no reduction.
        ranks: the largest rank of data; ranks above `LARGEST_RANK` are drawn rarely.
        is_wild: whether index tuples may have zero coordinates.
        constants: whether inputs other than the axis may be constant.
        shapes: the ways to declare shapes: "static", "bounded", "dynamic".
        values: "plain" numbers, "edge" values such as infinity, or "any" of both.
        elements: approximate upper bound of the elements of data. Large data has many updates per target,
            which exposes races. With 0, each dimension is at most `LARGEST_DIM`.
        loops: whether the node of an IR may be in a loop whose iterations all get the same inputs.
    """

    reductions: frozenset[Reduction] | None = None
    element_types: frozenset[str] | None = None
    index_types: frozenset[str] | None = None
    may_repeat: bool = True
    ranks: int = LARGEST_RANK
    is_wild: bool = False
    constants: bool = True
    shapes: tuple[str, ...] = ("static",)
    values: str = "any"
    elements: int = 0
    loops: bool = False


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Case:
    """Inputs and attributes for one operator.

    Attributes:
        spec: the operator version.
        data: the input of role data.
        indices: the input of role indices; None if the case omits optional indices.
        updates: the input of role updates.
        axis: the axis of the attribute or input, maybe negative; None for operators without axis.
        attributes: the attributes of the node, without the axis; others have their defaults.
        element_type: the type of data and updates.
        index_type: the type of indices.
        reduction: how updates are combined with old values.
        broken: the rule that the case breaks on purpose; None if the case is legal.
        constants, shapes, axis_shape, iterations, within: how the model is built; see `draw.Form`.
        before, keeps_state, in_function: what surrounds the node; see `OneNode`.
        twin: how the case was changed after it was drawn: a key of `TWINS`, or "".
        decisions: the recorded decisions from which `draw` makes the case again.
    """

    spec: OpSpec
    data: Array
    indices: Array | None
    updates: Array
    axis: int | None
    attributes: Mapping[str, Any]
    element_type: ElementType
    index_type: ElementType
    reduction: Reduction
    broken: str | None = None
    constants: frozenset[Role] = frozenset({Role.AXIS})
    shapes: str = "static"
    axis_shape: tuple[int, ...] = ()
    iterations: int = 0
    before: tuple[str, ...] = ()
    keeps_state: bool = False
    in_function: bool = False
    within: Limits = Limits()
    twin: str = ""
    decisions: tuple[int, ...] = field(default=(), repr=False)

    @property
    def operator(self) -> OperatorName:
        return cast(OperatorName, str(self.spec.key))

    @property
    def axis_from_front(self) -> int:
        """The non-negative axis; 0 for operators without axis."""
        return 0 if self.axis is None else self.axis % max(self.data.ndim, 1)

    @property
    def format(self) -> str:
        return ONNX_FORMAT if self.spec.key.domain == ONNX else IR

    def attribute(self, name: str) -> Any:
        """Return the value of an attribute: that of the node, or the default."""
        row = self.spec.attribute(name)
        return self.attributes.get(name, row.default if row else None)

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of `ir_scatter.evaluate`."""
        arguments: dict[str, Any] = {role.value: array for role, array in self.arrays().items()}
        if self.axis is not None:
            arguments[Role.AXIS.value] = self.axis
        return {**arguments, **self.attributes}

    def arrays(self) -> dict[Role, Array | None]:
        """Return the inputs by role, without the axis."""
        return {Role.DATA: self.data, Role.INDICES: self.indices, Role.UPDATES: self.updates}

    def operation(self) -> Operation:
        """Return a legal case as arguments of the NumPy kernels."""
        task = Task(
            self.spec.layout,
            self.axis_from_front,
            self.reduction,
            keeps_initial=self.attribute("use_init_val") is not False,
            wraps=self.spec.index_range is IndexRange.WRAPPING,
            is_circular=self.attribute("mode") == "circular",
        )
        return Operation(task, self.data, self.indices, self.updates)

    @property
    def limits(self) -> list[int | None]:
        """The size of the dimension that each column of indices refers to; [None] if every index is legal."""
        layout, axis, run = self.spec.layout, self.axis_from_front, 1
        if layout is Layout.SEQUENCE:
            if self.attribute("mode") != "linear":
                return [None]
            run = self.updates.shape[axis]
        shape = () if self.indices is None else self.indices.shape
        return index_values.sizes(layout, self.data.shape, axis, shape, run)

    def node(self, prefix: str = "") -> OneNode:
        """Return the case as a node for a model.

        Inputs are named prefix + role, such as "n3_data".
        """
        spec, attributes, inputs = self.spec, dict(self.attributes), list[OneInput | None]()
        arrays = {
            Role.DATA: (self.data, self.element_type),
            Role.INDICES: (self.indices, self.index_type),
            Role.UPDATES: (self.updates, self.element_type),
            Role.AXIS: (
                None if self.axis is None else np.full(self.axis_shape, self.axis, np.int64),
                ELEMENT_TYPES["i64"],
            ),
        }
        for port in spec.ports:
            array, type = arrays[port.role]
            if array is None:
                inputs.append(None)
                continue
            type = from_dtype(array.dtype) or type  # a broken case may differ
            is_constant = port.role in self.constants
            shape = None if is_constant else declared_shape(array.shape, self.shapes)
            inputs.append(OneInput(f"{prefix}{port.role.value}", type, array, is_constant, shape))
        if spec.axis is not None and spec.axis.attribute is not None:
            attributes[spec.axis.attribute] = self.axis
        shape = declared_shape(self.data.shape, self.shapes)
        type_and_opset = spec.key.type, spec.opsets[0]
        return OneNode(
            *type_and_opset,
            attributes,
            inputs,
            self.element_type,
            shape,
            iterations=self.iterations,
            before=self.before,
            keeps_state=self.keeps_state,
            in_function=self.in_function,
        )

    def feeds(self, prefix: str = "") -> dict[str, Array]:
        """Return the inputs of a model with this node by name, without constants of the model."""
        node = self.node(prefix)
        return {
            input.name: input.array for input in node.inputs if input is not None and not input.is_constant
        }


def declared_shape(shape: Sequence[int], shapes: str) -> tuple[Dim, ...]:
    if shapes == "static":
        return tuple(shape)
    return tuple(
        [Bounds(0, max(2 * LARGEST_DIM, dim)) if shapes == "bounded" else UNKNOWN_DIM for dim in shape]
    )


def repeats_targets(case: Case) -> bool:
    """Return whether two updates of a legal case have the same target."""
    layout, axis, indices = case.spec.layout, case.axis_from_front, case.indices
    if indices is None or not indices.size or not case.updates.size:
        return False
    return index_values.repeats(layout, axis, indices, case.limits, wraps=True) is not None
