"""Guesses the content of a network's input from its uses: a mask, positive numbers, or a picture.

    mask      compared with 0 or 1, converted to booleans, subtracted from 1, counted, or used as a condition
    numbers   input of a square root, a logarithm, a divisor: ranges from `ops/general_preferences`
    picture   input of windows with strides: spatial sizes are multiples of the product of all strides

Roles are preferences; the solver may draw other numbers. An input that reaches a scatter node gets no role,
so that data, indices and updates are tested with all kinds of numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import lcm
from typing import Any

import numpy as np

from ir_scatter.analysis.interpreter import Plan, Step
from ir_scatter.core.arrays import Array
from ir_scatter.core.dataflow import GraphInput, Key
from ir_scatter.core.element_types import ElementType
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.value_ranges import ValueRange
from ir_scatter.ops.attributes import Attributes
from ir_scatter.ops.general import find
from ir_scatter.ops.general_preferences import preferred_numbers
from ir_scatter.ops.general_shapes import normalized, transposed
from ir_scatter.ops.lookup import Lookup

_MOST_PIXELS = 128
"""Maximum multiple for spatial dimensions: larger pictures take more time and test nothing more."""

_ONES_SHARE = 0.75
"""Fraction of ones in a mask."""

_WHOLE, _NUMBERS = {"signed", "unsigned"}, {"signed", "unsigned", "float"}
_COMPARISONS = frozenset(
    {
        *("Equal", "NotEqual", "Less", "LessEqual", "LessOrEqual"),
        *("Greater", "GreaterEqual", "GreaterOrEqual"),
    }
)
_CONVERSIONS = frozenset({"Cast", "Convert"})
_COUNTS = frozenset({"CumSum", "ReduceSum"})
_CHOICES = frozenset({"Where", "Select"})
_DIFFERENCES = frozenset({"Sub", "Subtract"})
_WINDOWS = frozenset(
    {*("Conv", "ConvInteger", "QLinearConv", "Convolution", "GroupConvolution"),
     *("MaxPool", "AveragePool", "AvgPool", "LpPool")}
)  # fmt: skip

_Source = tuple[int, int, int]
"""Where a dimension comes from: (input number, dimension, ratio of the input dimension to this one)."""


@dataclass(slots=True)
class Roles:
    """The guessed content of inputs, by input number.

    Attributes:
        masks: inputs that hold zeros and ones.
        ranges: preferred ranges of floating-point inputs.
        multiples: (input, dimension) -> the size should be a multiple of this number.
    """

    masks: set[int] = field(default_factory=set)
    ranges: dict[int, ValueRange] = field(default_factory=dict)
    multiples: dict[tuple[int, int], int] = field(default_factory=dict)


def roles_of(plan: Plan, inputs: Sequence[GraphInput]) -> Roles:
    """Return the roles of inputs in the main graph of a model."""
    roles, written = Roles(), set[int]()
    types = [input.element_type for input in inputs]
    sources: dict[Key | None, int] = {input.key: number for number, input in enumerate(inputs)}
    axes: dict[Key | None, tuple[_Source | None, ...]] = {
        input.key: tuple((number, axis, 1) for axis in range(len(input.shape)))
        for number, input in enumerate(inputs)
        if input.shape is not None
    }
    for step in plan.steps:
        _follow_axes(plan, step, axes, roles)
        for port, key in enumerate(step.inputs):
            number = sources.get(key)
            if number is None:
                continue
            if isinstance(step.work, Lookup):
                written.add(number)
                continue
            type = types[number]
            if type is not None:
                _note_use(plan, step, port, number, type, roles)
        op = find(step.node.domain, step.node.type)
        moved = () if op is None else op.moved_inputs(len(step.inputs))
        first = step.inputs[0] if step.inputs and moved[:1] == (0,) and len(moved) == 1 else None
        if first in sources and len(step.outputs) == 1:
            sources[step.outputs[0]] = sources[first]
    for number in written:
        roles.masks.discard(number)
        roles.ranges.pop(number, None)
    for number in roles.masks:
        roles.ranges.pop(number, None)
    return roles


def _note_use(plan: Plan, step: Step, port: int, number: int, type: ElementType, roles: Roles) -> None:
    """Add to `roles` the role that an input has at one port of a node."""
    node = step.node
    if type.kind == "float" and port in (preferred := preferred_numbers(node.domain, node.type)):
        low, high = preferred[port]
        before = roles.ranges.get(number, (low, high))
        roles.ranges[number] = max(low, before[0]), min(high, before[1])
    if _shows_mask(plan, step, port, type):
        roles.masks.add(number)


def _shows_mask(plan: Plan, step: Step, port: int, type: ElementType) -> bool:
    node, kind = step.node, type.kind
    if node.type in _CHOICES and port == 0:
        return kind == "boolean"
    if node.type in _DIFFERENCES:
        return port == 1 and kind in _NUMBERS and _constant(plan, step.inputs[0]) == 1
    if kind not in _WHOLE:
        return False
    if node.type in _CONVERSIONS:
        return _converts_to_booleans(Attributes(node.attributes))
    if node.type in _COUNTS:
        return port == 0
    return node.type in _COMPARISONS and _constant(plan, step.inputs[1 - port]) in {0, 1}


def _converts_to_booleans(attributes: Attributes) -> bool:
    name = "to" if "to" in attributes else "destination_type"
    try:
        return attributes.element_type(name).kind == "boolean"
    except (TypeError, ValueError):
        return False


def _constant(plan: Plan, key: Key | None) -> Any:
    """Return the number in a constant of one element; None for larger constants and other values."""
    constant = None if key is None else plan.constants.get(key)
    if constant is None or any(dim != 1 for dim in constant.shape):
        return None
    try:
        array = constant.load()
    except UnreadableModel:
        return None
    return None if array is None or array.dtype.kind not in "iufb" else array.reshape(-1)[0].item()


def _follow_axes(
    plan: Plan, step: Step, axes: dict[Key | None, tuple[_Source | None, ...]], roles: Roles
) -> None:
    """Trace input dimensions through a node; windows with strides add to the multiples of `roles`."""
    op, first = find(step.node.domain, step.node.type), axes.get(step.inputs[0]) if step.inputs else None
    if op is None or not step.outputs:
        return
    if op.is_elementwise:
        known = [axes[key] for key in step.inputs if key in axes]
        rank = max(map(len, known), default=0)
        longest = [shape for shape in known if len(shape) == rank]
        first = longest[0] if longest else None
    if first is None:
        return
    if step.node.type in _WINDOWS:
        first = _window_axes(step, first, roles)
    elif op.shape is transposed:
        first = _permuted(plan, step, first)
    elif not (op.keeps_shape or op.is_elementwise or op.shape is normalized or op.joins):
        return
    axes[step.outputs[0]] = first


def _window_axes(step: Step, before: tuple[_Source | None, ...], roles: Roles) -> tuple[_Source | None, ...]:
    spatial = before[2:]
    try:
        strides = Attributes(step.node.attributes).integers("strides", [1] * len(spatial))
    except (TypeError, ValueError):
        return before[:1]
    after = list[_Source | None]()
    for source, stride in zip(spatial, strides, strict=False):
        if source is None:
            after.append(None)
            continue
        number, axis, factor = source
        place, factor = (number, axis), factor * max(stride, 1)
        multiple = lcm(roles.multiples.get(place, 1), factor)
        if multiple <= _MOST_PIXELS:
            roles.multiples[place] = multiple
        after.append((number, axis, factor))
    return (before[0], None, *after)


def _permuted(plan: Plan, step: Step, before: tuple[_Source | None, ...]) -> tuple[_Source | None, ...]:
    order: Any = step.node.attributes.get("perm")
    if order is None and len(step.inputs) > 1:
        constant = plan.constants.get(step.inputs[1]) if step.inputs[1] is not None else None
        try:
            array = None if constant is None else constant.load()
        except UnreadableModel:
            array = None
        order = None if array is None else array.reshape(-1).tolist()
    if order is None or sorted(order) != [*range(len(before))]:
        return ()
    return tuple(before[place] for place in order)


def draw_mask(random: np.random.Generator, shape: Sequence[int], numpy_type: "np.dtype[Any]") -> Array:
    """Return random zeros and ones; every row begins and ends with a one."""
    mask = random.random(tuple(shape)) < _ONES_SHARE
    if mask.ndim and mask.shape[-1]:
        mask[..., 0] = mask[..., -1] = True
    return mask.astype(np.float32 if numpy_type.type.__module__ != "numpy" else numpy_type).astype(numpy_type)
