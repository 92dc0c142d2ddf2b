"""View rules: when an operator returns the elements of one input unchanged and in order.

A runtime may skip such a node, or share the memory of input and output. The rules require static dimensions
where OpenVINO's CPU plugin does, as measured.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ir_scatter.core.shapes import Shape, is_static

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array


class InputView(NamedTuple):
    """The output has the elements of input `port`, under the condition `when`; "" means always."""

    port: int
    when: str = ""


class ViewCase(NamedTuple):
    """Known facts about a node and one of its outputs.

    Attributes:
        shapes: shapes of the inputs.
        types: names of the inputs' element types; "" if unknown.
        shape: shape of the output.
        type: element type of the output.
        array: returns the elements of an input that is constant in effect; None for other inputs.
        attributes: as in the file.
        output: the number of the output.
        is_onnx: whether inputs have the order of ONNX.
    """

    shapes: Sequence[Shape]
    types: Sequence[str]
    shape: Shape
    type: str
    array: "Callable[[int], Array | None]"
    attributes: Mapping[str, Any]
    output: int
    is_onnx: bool

    def numbers(self, port: int) -> list[int] | None:
        array = self.array(port) if port < len(self.shapes) else None
        return None if array is None else [int(number) for number in array.reshape(-1)]

    def holds_only(self, port: int, number: float) -> bool:
        """Return whether all elements of an input are known to be `number`."""
        array = self.array(port) if port < len(self.shapes) else None
        return array is not None and bool((array == number).all())


ViewRule: TypeAlias = Callable[[ViewCase], InputView | None]
"""Returns None if the output is certainly not a view."""

_WHOLE = "it gives its whole input"


def always(case: ViewCase) -> InputView | None:
    return InputView(0)


def same_type(case: ViewCase) -> InputView | None:
    """A conversion to the input's own type."""
    if not case.types[0] or not case.type:
        return InputView(0, "the element type stays the same")
    return InputView(0) if case.types[0] == case.type else None


def inference_only(case: ViewCase) -> InputView | None:
    """Dropout, unless its third input, `training_mode`, may be true."""
    return InputView(0) if len(case.shapes) < 3 or case.holds_only(2, 0) else None


def same_shape(case: ViewCase) -> InputView | None:
    """An operator that can only enlarge its input, without changing the shape."""
    return _of_shapes(case, 0)


def taken_whole(case: ViewCase) -> InputView | None:
    """A slice of the whole input with step 1."""
    masks = (case.attributes.get("new_axis_mask", ""), case.attributes.get("shrink_axis_mask", ""))
    steps = _STEP_OF_ONNX if case.is_onnx else _STEP
    has_steps = steps < len(case.shapes)
    if any("1" in str(mask) for mask in masks) or (has_steps and not case.holds_only(steps, 1)):
        return None
    return InputView(0) if _is_unlimited(case) else _of_shapes(case, 0)


def _is_unlimited(case: ViewCase) -> bool:
    """Return whether a slice begins at 0 and has no end, so that it is whole whatever the sizes are.

    The end is masked, or the largest number of 64 bits; measured: another end is not enough, not even the
    largest of 32 bits.
    """
    if "1" in str(case.attributes.get("ellipsis_mask", "")):
        return False
    for port, attribute, mask, allowed in (
        (1, "starts", "begin_mask", {0}),
        (2, "ends", "end_mask", {_NO_END}),
    ):
        written = case.attributes.get(attribute)
        numbers = [*written] if isinstance(written, list | tuple) else case.numbers(port)
        masked = re.findall("[01]", str(case.attributes.get(mask, "")))
        if numbers is None:
            return False
        masked += ["0"] * (len(numbers) - len(masked))
        if any(number not in allowed and bit == "0" for number, bit in zip(numbers, masked, strict=False)):
            return False
    return True


_STEP, _STEP_OF_ONNX = 3, 4
_NO_END = 2**63 - 1


def once(case: ViewCase) -> InputView | None:
    """Tile with repeats of 1."""
    return InputView(0) if case.holds_only(1, 1) else None


def nothing_added(case: ViewCase) -> InputView | None:
    """Pad with pads of 0."""
    written = case.attributes.get("pads")
    if isinstance(written, list):
        return None if any(written) else InputView(0)
    ports = (1,) if case.is_onnx else (1, 2)
    return InputView(0) if all(case.holds_only(port, 0) for port in ports) else None


def same_order(case: ViewCase) -> InputView | None:
    """Transpose that only moves dimensions of size 1."""
    shape = case.shapes[0]
    written = case.attributes.get("perm")
    order = written if isinstance(written, list) else None if case.is_onnx else case.numbers(1)
    if case.is_onnx and order is None:
        order = None if shape is None else [*range(len(shape))][::-1]
    if not order:
        return None
    moved_axes = [axis for axis in order if shape is None or len(shape) != len(order) or shape[axis] != 1]
    return InputView(0) if moved_axes == sorted(moved_axes) else None


def outermost_part(case: ViewCase) -> InputView | None:
    """A part of a split along the first dimension above 1, which is contiguous in memory."""
    shape = case.shapes[0]
    axes = [case.attributes.get("axis", 0)] if case.is_onnx else case.numbers(1)
    if shape is None or not axes or not -len(shape) <= axes[0] < len(shape):
        return None
    axis = axes[0] % len(shape)
    is_outermost = all(dim == 1 for dim in shape[:axis])
    return InputView(0) if is_outermost and isinstance(shape[axis], int) else None


def all_positions(case: ViewCase) -> InputView | None:
    """Gather of every position of an axis in order; the size of the axis must be static."""
    shape, positions = case.shapes[0], case.array(1)
    axes = [case.attributes.get("axis", 0)] if case.is_onnx else case.numbers(2)
    if shape is None or positions is None or not axes or not -len(shape) <= axes[0] < len(shape):
        return None
    size = shape[axes[0]]
    is_whole = isinstance(size, int) and positions.size == size and positions.ndim <= 1
    return InputView(0) if is_whole and positions.reshape(-1).tolist() == [*range(positions.size)] else None


def neutral(number: int, *, commutes: bool) -> ViewRule:
    """Return the rule for arithmetic with a neutral constant, such as adding 0.

    The output is a view unless the constant enlarges the input.
    """

    def rule(case: ViewCase) -> InputView | None:
        for port, constant_port in ((0, 1), (1, 0))[: 1 + commutes]:
            if case.holds_only(constant_port, number):
                shape, constant = case.shapes[port], case.array(constant_port)
                assert constant is not None
                is_scalar = constant.size == 1 and (shape is None or constant.ndim <= len(shape))
                return InputView(port) if is_scalar else _of_shapes(case, port)
        return None

    return rule


def chosen(case: ViewCase) -> InputView | None:
    """Select or Where with a constant condition that is all true or all false."""
    for port, truth in ((1, 1), (2, 0)):
        if case.holds_only(0, truth):
            return _of_shapes(case, port)
    return None


def only_input(case: ViewCase) -> InputView | None:
    """Concat with exactly one input that has elements."""
    filled = [port for port, shape in enumerate(case.shapes) if shape is None or 0 not in shape]
    return InputView(filled[0]) if len(filled) == 1 else None


def single(case: ViewCase) -> InputView | None:
    """A variadic operator with exactly one input."""
    return InputView(0) if len(case.shapes) == 1 else None


def _of_shapes(case: ViewCase, port: int) -> InputView | None:
    before, after = case.shapes[port], case.shape
    if before is None or after is None:
        return InputView(port, _WHOLE)
    return InputView(port) if is_static(before) and before == after else None
