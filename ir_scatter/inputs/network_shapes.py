"""Output shapes of network operators, for choosing input sizes: resizing, transposed convolution, recurrence.

The rules of `ops/general_shapes` also serve diagnostics, so they must hold for every version of an operator.
The rules here only need to lead to sizes that a runtime is likely to accept.
"""

from collections.abc import Callable, Mapping, Sequence
from math import floor
from typing import TypeAlias

from ir_scatter.core.model import OPENVINO
from ir_scatter.ops.general import output_shapes
from ir_scatter.ops.general_shapes import ShapeCase, ShapesDiffer

Floats: TypeAlias = Callable[[int], "list[float] | None"]
"""Returns the numbers of a floating-point input by port; None if they are unknown or omitted."""

_Shape: TypeAlias = "tuple[int, ...] | None"
_Rule: TypeAlias = Callable[[ShapeCase, Floats], "list[_Shape]"]


def shapes_of_outputs(domain: str, type: str, case: ShapeCase, floats: Floats) -> "list[_Shape] | None":
    """Return the shapes of the first outputs of a node, None for unknown ones.

    Raises:
        ShapesDiffer: the input shapes do not fit each other.
    """
    shapes = output_shapes(domain, type, case)
    rule = (_OPENVINO if domain == OPENVINO else _ONNX).get(type)
    if shapes is not None or rule is None:
        return shapes
    try:
        return rule(case._replace(is_onnx=domain != OPENVINO), floats)
    except (LookupError, TypeError, ValueError, ZeroDivisionError):
        return None


def _require_equal(*pairs: tuple[int, int]) -> None:
    if any(left != right for left, right in pairs):
        raise ShapesDiffer(pairs)


def _suppressed(case: ShapeCase, floats: Floats) -> list[_Shape]:
    """NonMaxSuppression: boxes [batch, boxes, 4], scores [batch, classes, boxes].

    The output shapes are unknown, as they depend on the scores.
    """
    boxes, scores = case.shape(0), case.shape(1)
    _require_equal((boxes[0], scores[0]), (boxes[1], scores[2]))
    return []


def _resized(case: ShapeCase, floats: Floats) -> list[_Shape]:
    """ONNX Resize: input 3 holds the new sizes, input 2 (before opset 11: input 1) the scale factors."""
    data = case.shape(0)
    if str(case.attributes.get("keep_aspect_ratio_policy", "stretch")) not in {"stretch", "b'stretch'"}:
        return [None]
    axes = case.written.integers("axes", range(len(data)))
    sizes = case.numbers(3) if case.is_given(3) else None
    factors = floats(2) or floats(1) if sizes is None else None
    return [_with_sizes(data, axes, sizes, factors)]


def _interpolated(case: ShapeCase, floats: Floats) -> list[_Shape]:
    """OpenVINO Interpolate: new sizes or scale factors for the axes that the last input names.

    Input 1 holds the new sizes; scale factors are in input 2, or else in input 1.
    """
    data = list(case.shape(0))
    for name in ("pads_begin", "pads_end"):
        pads = case.written.integers(name, ())
        data = [size + pad for size, pad in zip(data, [*pads, *[0] * len(data)], strict=False)]
    last = len(case.shapes) - 1
    axes = case.numbers(last) if last > 1 and floats(last) is None else [*range(len(data))]
    mode = str(case.attributes.get("shape_calculation_mode", "sizes")).lower()
    sizes = case.numbers(1) if mode == "sizes" else None
    factors = None if sizes is not None else floats(2) or floats(1)
    return [None if axes is None else _with_sizes(data, axes, sizes, factors)]


def _with_sizes(
    data: Sequence[int], axes: Sequence[int], sizes: Sequence[int] | None, factors: Sequence[float] | None
) -> _Shape:
    new_sizes = sizes
    if sizes is None and factors is not None:
        new_sizes = [floor(data[axis] * factor) for axis, factor in zip(axes, factors, strict=True)]
    if new_sizes is None:
        return None
    shape = list(data)
    for axis, size in zip(axes, new_sizes, strict=True):
        shape[axis] = size
    return tuple(shape)


def _transposed_windows(case: ShapeCase, *, groups: int, channels: int, kernel: Sequence[int]) -> _Shape:
    """Return [batch, groups * channels, ...] for a transposed convolution with windows of size `kernel`."""
    data, written = case.shape(0), case.written
    spatial = data[2:]
    ones, zeros = [1] * len(spatial), [0] * len(spatial)
    strides, dilations = written.integers("strides", ones), written.integers("dilations", ones)
    if str(case.attributes.get("auto_pad", "")).lower().removeprefix("b'").startswith("same"):
        return (
            data[0], groups * channels,
            *(size * stride for size, stride in zip(spatial, strides, strict=True)),
        )  # fmt: skip
    if case.is_onnx and "output_shape" in case.attributes:
        return (data[0], groups * channels, *written.integers("output_shape"))
    pads = written.integers("pads", []) or [
        *written.integers("pads_begin", zeros), *written.integers("pads_end", zeros)
    ]  # fmt: skip
    more = written.integers("output_padding", zeros)
    sizes = [
        strides[axis] * (size - 1) + more[axis] + (kernel[axis] - 1) * dilations[axis] + 1
        - pads[axis] - pads[axis + len(spatial)]
        for axis, size in enumerate(spatial)
    ]  # fmt: skip
    return (data[0], groups * channels, *sizes)


def _conv_transpose(case: ShapeCase, floats: Floats) -> list[_Shape]:
    data, weights = case.shape(0), case.shape(1)
    _require_equal((data[1], weights[0]))
    groups = case.written.integer("group", 1)
    return [_transposed_windows(case, groups=groups, channels=weights[1], kernel=weights[2:])]


def _backprop(case: ShapeCase, floats: Floats) -> list[_Shape]:
    data, weights = case.shape(0), case.shape(1)
    _require_equal((data[1], weights[0]))
    if case.is_given(2):  # the spatial dimensions of the output
        sizes = case.numbers(2)
        return [None if sizes is None else (data[0], weights[1], *sizes)]
    return [_transposed_windows(case, groups=1, channels=weights[1], kernel=weights[2:])]


def _group_backprop(case: ShapeCase, floats: Floats) -> list[_Shape]:
    data, weights = case.shape(0), case.shape(1)
    _require_equal((data[1], weights[0] * weights[1]))
    if case.is_given(2):
        sizes = case.numbers(2)
        return [None if sizes is None else (data[0], weights[0] * weights[2], *sizes)]
    return [_transposed_windows(case, groups=weights[0], channels=weights[2], kernel=weights[3:])]


def _recurrent(case: ShapeCase, floats: Floats) -> list[_Shape]:
    """ONNX LSTM, GRU, RNN: data [time, batch, in], lengths [batch], states [directions, batch, hidden].

    With layout 1 the batch is the first dimension.
    """
    data, weights, recurrence = case.shape(0), case.shape(1), case.shape(2)
    is_batch_first = case.written.integer("layout", 0) == 1
    time, batch = data[:2][::-1] if is_batch_first else data[:2]
    pairs = [(data[2], weights[2])]
    if case.is_given(4):
        pairs.append((case.shape(4)[0], batch))
    of_batch = 0 if is_batch_first else 1
    pairs += [(case.shape(port)[of_batch], batch) for port in (5, 6) if case.is_given(port)]
    _require_equal(*pairs)
    directions, hidden = weights[0], recurrence[2]
    if is_batch_first:
        return [(batch, time, directions, hidden), *[(batch, directions, hidden)] * 2]
    return [(time, directions, batch, hidden), *[(directions, batch, hidden)] * 2]


def _recurrent_in_order(case: ShapeCase, states: int) -> list[_Shape]:
    """OpenVINO sequences: [batch, time, in], states [batch, directions, hidden], lengths [batch], weights."""
    data, state, weights = case.shape(0), case.shape(1), case.shape(states + 2)
    of_states = [(case.shape(port + 1)[0], data[0]) for port in range(states)]
    _require_equal((data[2], weights[2]), *of_states, (case.shape(states + 1)[0], data[0]))
    return [(data[0], state[1], data[1], state[2]), *[(data[0], state[1], state[2])] * states]


_ONNX: Mapping[str, _Rule] = {
    "Resize": _resized,
    "Upsample": _resized,
    "ConvTranspose": _conv_transpose,
    "NonMaxSuppression": _suppressed,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "RNN": _recurrent,
}
_OPENVINO: Mapping[str, _Rule] = {
    "Interpolate": _interpolated,
    "ConvolutionBackpropData": _backprop,
    "GroupConvolutionBackpropData": _group_backprop,
    "NonMaxSuppression": _suppressed,
    "LSTMSequence": lambda case, floats: _recurrent_in_order(case, 2),
    "GRUSequence": lambda case, floats: _recurrent_in_order(case, 1),
    "RNNSequence": lambda case, floats: _recurrent_in_order(case, 1),
}
