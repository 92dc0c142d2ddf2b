"""Kernels that slide windows over images: convolutions, transposed convolutions and pooling.

A place is a position within a window; a 3 by 3 window has nine places.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product as combinations
from math import ceil, prod
from typing import Any

import numpy as np

from ir_scatter.core.arrays import Array, extreme
from ir_scatter.core.shapes import show
from ir_scatter.ops.attributes import Attributes
from ir_scatter.ops.general_kernels.base import (
    NUMERIC,
    REAL,
    WHOLE,
    KernelCase,
    UnsupportedCase,
    narrow,
    require_kind,
    require_same_type,
    widen,
)

_MOST_COLUMNS = 1 << 26
"""Limit of elements of the matrix of all windows. Above it, products are computed place by place."""
_FEW_PLACES = 32
"""Limit of places up to which the matrix of all windows is not needed if there are many channels."""
_ALL_2: tuple[Any, ...] = (slice(None),) * 2
_ALL_3: tuple[Any, ...] = (slice(None),) * 3
"""Index of all elements of the first three axes."""


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of a padded image, with one entry per spatial dimension.

    Attributes:
        before: padding before the first element. A negative number crops elements.
        after: padding after the last element, including elements that `ceil_mode` adds.
        pads_end: padding after the last element, as in the attributes.
        counts: number of windows.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    pads_end: tuple[int, ...]
    counts: tuple[int, ...]

    def view(self, padded: Array) -> Array:
        """Return [..., *counts, *kernel]: all windows of a padded image, without a copy."""
        rank = len(self.kernel)
        front = padded.ndim - rank
        steps = padded.strides[front:]
        shape = (*padded.shape[:front], *self.counts, *self.kernel)
        strides = (
            *padded.strides[:front],
            *(step * stride for step, stride in zip(steps, self.strides, strict=True)),
            *(step * dilation for step, dilation in zip(steps, self.dilations, strict=True)),
        )
        return np.lib.stride_tricks.as_strided(padded, shape, strides, writeable=False)

    def places(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Yield each place, with the slices of the padded image that contain this place of all windows."""
        for place in combinations(*map(range, self.kernel)):
            yield (
                place,
                tuple(
                    slice(offset * dilation, offset * dilation + (count - 1) * stride + 1, stride)
                    for offset, dilation, count, stride in zip(
                        place, self.dilations, self.counts, self.strides, strict=True
                    )
                ),
            )

    def pad(self, data: Array, number: Any) -> Array:
        """Return an image padded with a number."""
        front = data.ndim - len(self.kernel)
        if min(*self.before, *self.after, 0) < 0:
            cut = [slice(None)] * front + [
                slice(max(0, -before), size - max(0, -after))
                for before, after, size in zip(self.before, self.after, data.shape[front:], strict=True)
            ]
            data = data[tuple(cut)]
        widths = [(0, 0)] * front + [
            (max(0, before), max(0, after)) for before, after in zip(self.before, self.after, strict=True)
        ]
        if not any(map(any, widths)):
            return data
        return np.pad(data, widths, constant_values=number)


def make_windows(case: KernelCase, spatial: Sequence[int], kernel: Sequence[int]) -> Windows:
    """Return the windows of a node by its attributes: strides, dilations, pads, and rounding of counts."""
    rank, attributes = len(spatial), case.attributes
    if len(kernel) != rank or not rank or min(kernel) < 1:
        raise UnsupportedCase(f"a window is {show(tuple(kernel))} for {show(tuple(spatial))}")
    strides = attributes.integers("strides", [1] * rank) or [1] * rank
    dilations = attributes.integers("dilations", [1] * rank) or [1] * rank
    before, after = _pads(case, rank)
    if not len(strides) == len(dilations) == len(before) == len(after) == rank:
        raise UnsupportedCase("strides, dilations or pads do not have one number for each dimension")
    if min(*strides, *dilations) < 1:
        raise UnsupportedCase("a stride or a dilation is below 1")
    reach = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    rounding = attributes.text("rounding_type", "floor", {"floor", "ceil", "ceil_torch"})
    rounds_up = attributes.boolean("ceil_mode", False) or rounding.startswith("ceil")
    mode = auto_pad(case)
    counts = []
    for axis, size in enumerate(spatial):
        stride = strides[axis]
        if mode.startswith("same"):
            count = -(-size // stride)
            total = max(0, (count - 1) * stride + reach[axis] - size)
            small = total // 2
            before[axis], after[axis] = (
                (small, total - small) if mode == "same_upper" else (total - small, small)
            )
        room = size + before[axis] + after[axis] - reach[axis]
        if room < 0:
            raise UnsupportedCase(f"no window of {reach[axis]} fits into {size} positions and their padding")
        steps = -(-room // stride) if rounds_up else room // stride
        if rounds_up and rounding != "ceil" and steps * stride >= size + before[axis]:
            steps -= 1
        counts.append(steps + 1)
    needed = [
        (count - 1) * stride + width - size - begin
        for count, stride, width, size, begin in zip(counts, strides, reach, spatial, before, strict=True)
    ]
    full = [max(written, least) for written, least in zip(after, needed, strict=True)]
    return Windows(*map(tuple, (kernel, strides, dilations, before, full, after, counts)))


def auto_pad(case: KernelCase) -> str:
    words = {"notset", "explicit", "valid", "same_upper", "same_lower"}
    return case.attributes.text("auto_pad", "notset", words)


def _pads(case: KernelCase, rank: int) -> tuple[list[int], list[int]]:
    zeros = [0] * rank
    if auto_pad(case) == "valid":
        return list(zeros), list(zeros)
    if case.is_onnx:
        pads = case.attributes.integers("pads", zeros * 2) or zeros * 2
        return pads[: len(pads) // 2], pads[len(pads) // 2 :]
    return case.attributes.integers("pads_begin", zeros), case.attributes.integers("pads_end", zeros)


# Convolutions.


def convolution(case: KernelCase) -> Array:
    """Convolve [batch, channels, ...] with [out, channels / groups, ...]; ONNX may add a bias."""
    data, weights = case.arrays(2)
    require_kind(NUMERIC, data, weights)
    type = require_same_type(data, weights)
    bias = case.array(2) if case.is_onnx and case.has(2) else None
    groups = case.attributes.integer("group", 1)
    return _convolved(case, data, weights, bias, groups, type)


def group_convolution(case: KernelCase) -> Array:
    """Compute GroupConvolution; weights are [groups, out / groups, channels / groups, ...]."""
    data, weights = case.arrays(2)
    require_kind(NUMERIC, data, weights)
    type = require_same_type(data, weights)
    joined = weights.reshape(weights.shape[0] * weights.shape[1], *weights.shape[2:])
    return _convolved(case, data, joined, None, weights.shape[0], type)


def _convolved(
    case: KernelCase, data: Array, weights: Array, bias: Array | None, groups: int, type: np.dtype[Any]
) -> Array:
    kernel = case.attributes.integers("kernel_shape", weights.shape[2:]) or weights.shape[2:]
    if tuple(kernel) != weights.shape[2:]:
        raise UnsupportedCase(f"kernel_shape is {show(tuple(kernel))}, and weights {show(weights.shape)}")
    windows = make_windows(case, data.shape[2:], weights.shape[2:])
    output = convolve(case, widen(data), widen(weights), windows, groups)
    if bias is not None:
        output = output + widen(bias).reshape((1, -1) + (1,) * len(windows.counts))
    return narrow(output, type)


def convolve(case: KernelCase, data: Array, weights: Array, windows: Windows, groups: int) -> Array:
    """Return [batch, out, *counts], with zero padding."""
    batch, channels = data.shape[:2]
    if groups < 1 or channels != groups * weights.shape[1] or weights.shape[0] % groups:
        raise UnsupportedCase(f"data is {show(data.shape)}, weights {show(weights.shape)}, groups {groups}")
    case.reserve((batch, weights.shape[0], *windows.counts))
    padded = windows.pad(data, data.dtype.type(0))
    each, out = channels // groups, weights.shape[0] // groups
    places, positions = prod(windows.kernel), prod(windows.counts)
    is_few = places <= _FEW_PLACES and (each == 1 or each >= 16)
    if is_few or batch * channels * places * positions > _MOST_COLUMNS:
        return _by_places(padded, weights, windows, groups)
    rank = len(windows.kernel)
    view = windows.view(padded)  # [batch, channels, *counts, *kernel]
    grouped = view.reshape(batch, groups, each, *view.shape[2:]) if groups > 1 else view[:, None]
    order = (0, 1, 2, *range(3 + rank, 3 + 2 * rank), *range(3, 3 + rank))
    columns = grouped.transpose(order).reshape(batch, groups, each * places, positions)
    matrix = weights.reshape(groups, out, each * places)
    return np.asarray(np.matmul(matrix, columns)).reshape(batch, groups * out, *windows.counts)


def _by_places(padded: Array, weights: Array, windows: Windows, groups: int) -> Array:
    """Convolve by adding up one product for each place."""
    batch, positions = padded.shape[0], prod(windows.counts)
    each, out = weights.shape[1], weights.shape[0] // groups
    output = np.zeros((batch, groups, out, positions), padded.dtype)
    split = weights.reshape(groups, out, each, *windows.kernel)
    for place, slices in windows.places():
        part = padded[(*_ALL_2, *slices)].reshape(batch, groups, each, positions)
        factor = split[(*_ALL_3, *place)]
        output += factor * part if each == 1 else np.matmul(factor, part)
    return output.reshape(batch, groups * out, *windows.counts)


def convolution_integer(case: KernelCase) -> Array:
    """Convolve 8-bit integers, after subtracting their zero points, with an i32 result."""
    data, weights = case.arrays(2)
    require_kind(WHOLE, data, weights)
    return integer_convolution(case, data, weights, (2, 3)).astype(np.int32)


def integer_convolution(case: KernelCase, data: Array, weights: Array, points: tuple[int, int]) -> Array:
    """Convolve integers exactly, after subtracting their zero points; padding is the zero point."""
    left, right = (
        operand.astype(np.float64) - _point(case, port, operand)
        for operand, port in zip((data, weights), points, strict=True)
    )
    windows = make_windows(case, data.shape[2:], weights.shape[2:])
    output = convolve(case, left, right, windows, case.attributes.integer("group", 1))
    return np.rint(output).astype(np.int64)


def _point(case: KernelCase, port: int, operand: Array) -> Array:
    if not case.has(port):
        return np.zeros(())
    point = widen(case.array(port)).astype(np.float64)
    return point.reshape(()) if point.size == 1 else point.reshape((-1,) + (1,) * (operand.ndim - 1))


def transposed_convolution(case: KernelCase) -> Array:
    """Compute ConvTranspose; weights are [channels, out / groups, ...]."""
    data, weights = case.arrays(2)
    require_kind(REAL, data, weights)
    type = require_same_type(data, weights)
    groups = case.attributes.integer("group", 1)
    split = weights.reshape(groups, weights.shape[0] // groups, *weights.shape[1:])
    shape = case.attributes.integers("output_shape", ())
    output = _spread(case, widen(data), widen(split), shape)
    if case.has(2):
        output = output + widen(case.array(2)).reshape((1, -1) + (1,) * (data.ndim - 2))
    return narrow(output, type)


def convolution_backprop(case: KernelCase) -> Array:
    """Compute ConvolutionBackpropData; weights are [channels, out, ...], input 2 is the output shape."""
    data, weights = case.arrays(2)
    require_kind(REAL, data, weights)
    type = require_same_type(data, weights)
    shape = case.integers(2, default=())
    return narrow(_spread(case, widen(data), widen(weights)[None], shape), type)


def group_convolution_backprop(case: KernelCase) -> Array:
    """Compute GroupConvolutionBackpropData; weights are [groups, channels / groups, out / groups, ...]."""
    data, weights = case.arrays(2)
    require_kind(REAL, data, weights)
    type = require_same_type(data, weights)
    shape = case.integers(2, default=())
    return narrow(_spread(case, widen(data), widen(weights), shape), type)


def _spread(case: KernelCase, data: Array, weights: Array, shape: Sequence[int]) -> Array:
    """Add each element of data, times the weights, to a window of the output; then crop the pads.

    `weights` is [groups, channels / groups, out / groups, *kernel].
    """
    groups, each, out, *kernel = weights.shape
    batch, channels, *spatial = data.shape
    rank = len(spatial)
    if channels != groups * each or len(kernel) != rank or not rank:
        raise UnsupportedCase(f"data is {show(data.shape)}, and the weights are of another shape")
    attributes, ones, zeros = case.attributes, [1] * rank, [0] * rank
    strides = attributes.integers("strides", ones) or ones
    dilations = attributes.integers("dilations", ones) or ones
    added = attributes.integers("output_padding", zeros) or zeros
    before, after = _pads(case, rank)
    if any(len(numbers) != rank for numbers in (strides, dilations, added, before, after)):
        raise UnsupportedCase("strides, dilations or pads do not have one number for each dimension")
    reach = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    full = [(size - 1) * stride + width for size, stride, width in zip(spatial, strides, reach, strict=True)]
    mode = auto_pad(case)
    if len(shape) == rank + 2:
        shape = shape[2:]
    if mode.startswith("same") and not shape and case.is_onnx:
        shape = [size * stride for size, stride in zip(spatial, strides, strict=True)]
    if shape:
        for axis, size in enumerate(shape):
            total = full[axis] + added[axis] - size
            small, large = total // 2, total - total // 2
            # the dialects put the odd element on opposite sides
            is_small_first = (mode == "same_upper") == case.is_onnx
            before[axis], after[axis] = (small, large) if is_small_first else (large, small)
    sizes = [
        size + extra - begin - end for size, extra, begin, end in zip(full, added, before, after, strict=True)
    ]
    case.reserve((batch, groups * out, *sizes))
    if min(sizes) < 1:
        raise UnsupportedCase(f"the output would be {show(tuple(sizes))}")
    canvas = np.zeros(
        (batch, groups, out, *[max(a + b, a) for a, b in zip(full, added, strict=True)]), data.dtype
    )
    columns = data.reshape(batch, groups, each, -1)
    for place in combinations(*map(range, kernel)):
        factor = weights[(*_ALL_3, *place)]  # [groups, each, out]
        part = np.matmul(factor.swapaxes(-1, -2), columns).reshape(batch, groups, out, *spatial)
        where = tuple(
            slice(offset * dilation, offset * dilation + (size - 1) * stride + 1, stride)
            for offset, dilation, size, stride in zip(place, dilations, spatial, strides, strict=True)
        )
        canvas[(*_ALL_3, *where)] += part
    cut = []
    widths = [(0, 0)] * 3
    for begin, size, canvas_size in zip(before, sizes, canvas.shape[3:], strict=True):
        first, last = begin, begin + size
        cut.append(slice(max(0, first), min(canvas_size, last)))
        widths.append((max(0, -first), max(0, last - canvas_size)))
    output = canvas[(*_ALL_3, *cut)]
    if any(map(any, widths)):
        output = np.pad(output, widths)
    return output.reshape(batch, groups * out, *sizes)


def deformable_convolution(case: KernelCase) -> Array:
    """Compute DeformConv of images: the places are moved by offsets and weighted by a mask."""
    data, weights, offsets = case.arrays(3)
    require_kind(REAL, data, weights, offsets)
    type = require_same_type(data, weights, offsets)
    if data.ndim != 4:
        raise UnsupportedCase(f"data is {show(data.shape)}, expected [batch, channels, height, width]")
    windows = make_windows(case, data.shape[2:], weights.shape[2:])
    groups, parts = (case.attributes.integer(name, 1) for name in ("group", "offset_group"))
    (batch, channels), out = data.shape[:2], weights.shape[0]
    rows, columns = windows.counts
    if channels % parts or channels != groups * weights.shape[1] or out % groups:
        raise UnsupportedCase(f"data is {show(data.shape)}, and weights {show(weights.shape)}")
    case.reserve((batch, out, rows, columns))
    wide, factors = widen(data), widen(weights).reshape(groups, out // groups, -1, prod(windows.kernel))
    moved = widen(offsets).reshape(batch, parts, prod(windows.kernel), 2, rows, columns)
    mask = widen(case.array(4)).reshape(batch, parts, -1, rows, columns) if case.has(4) else None
    picture = wide.reshape(batch, parts, channels // parts, -1)
    output = np.zeros((batch, groups, out // groups, rows * columns), wide.dtype)
    for number, place in enumerate(combinations(*map(range, windows.kernel))):
        first, second = np.ix_(*_positions_at(windows, place))
        shares = _sampled(
            picture, data.shape[2:], first + moved[:, :, number, 0], second + moved[:, :, number, 1]
        )
        if mask is not None:
            shares = shares * mask[:, :, None, number]
        column = shares.reshape(batch, groups, channels // groups, rows * columns)
        output += np.matmul(factors[..., number], column)
    result = output.reshape(batch, out, rows, columns)
    if case.has(3):
        result = result + widen(case.array(3)).reshape(1, -1, 1, 1)
    return narrow(result, type)


def deformable_convolution_ir(case: KernelCase) -> Array:
    """Compute OpenVINO's DeformableConvolution; places outside are zero unless pads are interpolated."""
    data, offsets, weights = case.arrays(3)
    type, rank = data.dtype, data.ndim - 2
    parts, groups = (case.attributes.integer(name, 1) for name in ("deformable_group", "group"))
    before, after = _pads(case, rank)
    windows = make_windows(case, data.shape[2:], weights.shape[2:])
    pads = [*before, *after] if auto_pad(case) not in {"same_upper", "same_lower"} else []
    written = {
        "strides": windows.strides, "dilations": windows.dilations, "group": groups, "offset_group": parts,
        "pads": pads or [*windows.before, *windows.after],
    }  # fmt: skip
    mask = case.array(3) if case.has(3) else None
    if not case.attributes.boolean("bilinear_interpolation_pad", False):
        offsets, kept = _held_inside(windows, data.shape[2:], widen(offsets), parts)
        mask = kept.astype(offsets.dtype) if mask is None else widen(mask) * kept
    arrays = [widen(data), widen(weights), widen(offsets), None, mask]
    inner = KernelCase(
        tuple(arrays), Attributes(written), True, 22, case.output_count, case.element_limit
    )  # fmt: skip
    return narrow(deformable_convolution(inner), type)


def _held_inside(windows: Windows, sizes: Sequence[int], offsets: Array, parts: int) -> tuple[Array, Array]:
    """Return offsets that keep places at or before the last element, and a mask of the places inside."""
    batch = offsets.shape[0]
    moves = offsets.reshape(batch, parts, prod(windows.kernel), 2, *windows.counts).copy()
    inside = np.ones((batch, parts, prod(windows.kernel), *windows.counts), np.bool_)
    for number, place in enumerate(combinations(*map(range, windows.kernel))):
        bases = np.ix_(*_positions_at(windows, place))
        for axis, (base, size) in enumerate(zip(bases, sizes, strict=True)):
            position = base + moves[:, :, number, axis]
            inside[:, :, number] &= (position >= 0) & (position < size)
            moves[:, :, number, axis] = np.minimum(position, size - 1) - base
    return moves.reshape(offsets.shape), inside.reshape(batch, -1, *windows.counts)


def binary_convolution(case: KernelCase) -> Array:
    """Compute BinaryConvolution: the number of signs that match the weights' bits, minus all others."""
    data, weights = case.array(0), case.array(1)
    case.attributes.text("mode", None, {"xnor-popcount"})
    bits = widen(weights)
    windows = make_windows(case, data.shape[2:], weights.shape[2:])
    if any(dilation != 1 for dilation in windows.dilations):
        raise UnsupportedCase("dilations other than 1 are not computed")
    pad = case.attributes.number("pad_value", 0.0)
    signs = np.where(windows.pad(widen(data), pad) > 0, 1.0, -1.0)
    none = (0,) * len(windows.kernel)
    inner = replace(windows, before=none, after=none, pads_end=none)
    return narrow(convolve(case, signs, np.where(bits > 0, 1.0, -1.0), inner, 1), data.dtype)


def _sampled(picture: Array, sizes: Sequence[int], rows: Array, columns: Array) -> Array:
    """Interpolate between the four neighbours of positions [batch, parts, ...]; outside are zeros.

    `picture` is [batch, parts, channels, height * width].
    """
    low = [np.floor(positions) for positions in (rows, columns)]
    shares = [positions - floor for positions, floor in zip((rows, columns), low, strict=True)]
    output: Any = 0
    for steps in combinations((0, 1), (0, 1)):
        places = [floor + step for floor, step in zip(low, steps, strict=True)]
        weight: Any = 1
        is_inside: Any = True
        for place, share, step, size in zip(places, shares, steps, sizes, strict=True):
            weight = weight * (share if step else 1 - share)
            is_inside = is_inside & (place >= 0) & (place <= size - 1)
        first, second = (
            np.clip(np.nan_to_num(place), 0, size - 1).astype(np.int64)
            for place, size in zip(places, sizes, strict=True)
        )
        flat = (first * sizes[1] + second).reshape(*rows.shape[:2], 1, -1)
        chosen = np.take_along_axis(picture, flat, 3).reshape(*picture.shape[:3], *rows.shape[2:])
        output = output + np.where(is_inside, weight, 0).astype(picture.dtype)[:, :, None] * chosen
    return np.asarray(output)


# Pooling.


def _pooled(case: KernelCase, data: Array) -> Windows:
    name = "kernel_shape" if case.is_onnx else "kernel"
    if data.ndim < 3:
        raise UnsupportedCase(f"data is {show(data.shape)}, expected [batch, channels, ...]")
    windows = make_windows(case, data.shape[2:], case.attributes.integers(name))
    case.reserve((*data.shape[:2], *windows.counts))
    return windows


def max_pool(case: KernelCase) -> tuple[Array, ...]:
    """Return the maxima of windows, and their positions in the flat tensor, or from an `axis` on."""
    data = case.array(0)
    require_kind(NUMERIC, data)
    windows, wide = _pooled(case, data), widen(data)
    if 0 in data.shape:
        raise UnsupportedCase("the maximum of an empty window is undefined")
    padded = windows.pad(wide, extreme(wide.dtype, is_lowest=True))
    shape = (*data.shape[:2], *windows.counts)
    highest = np.full(shape, extreme(wide.dtype, is_lowest=True), wide.dtype)
    needs_places = case.output_count > 1
    places = np.full(shape, -1, np.int64)
    for place, slices in windows.places():
        part = padded[(*_ALL_2, *slices)]
        if needs_places:
            is_higher = part > highest
            if (places < 0).any():
                is_higher |= (places < 0) & _inside(windows, place, data.shape[2:])
            places[is_higher] = np.broadcast_to(_flat_places(case, windows, place, data.shape), shape)[
                is_higher
            ]
            highest = np.where(is_higher, part, highest)
        else:
            highest = np.maximum(highest, part)
    outputs = [narrow(highest, data.dtype)]
    if needs_places:
        outputs.append(_numbered(case, places, data.shape))
    return tuple(outputs)


def _positions_at(windows: Windows, place: Sequence[int]) -> list[Array]:
    """Return, per spatial axis, the position in data of a place of each window."""
    return [
        np.arange(count) * stride + offset * dilation - before
        for count, stride, offset, dilation, before in zip(
            windows.counts, windows.strides, place, windows.dilations, windows.before, strict=True
        )
    ]


def _inside(windows: Windows, place: Sequence[int], spatial: Sequence[int]) -> Array:
    inside = [
        (positions >= 0) & (positions < size)
        for positions, size in zip(_positions_at(windows, place), spatial, strict=True)
    ]
    return np.asarray(np.all(np.stack(np.meshgrid(*inside, indexing="ij")), axis=0))


def _flat_places(case: KernelCase, windows: Windows, place: Sequence[int], shape: Sequence[int]) -> Array:
    grids = np.ix_(*_positions_at(windows, place))
    flat: Any = 0
    spatial = shape[2:]
    order = range(len(spatial))
    if case.attributes.boolean("storage_order", False):
        order = order[::-1]
    for axis in order:
        flat = flat * spatial[axis] + grids[axis]
    return np.asarray(flat)


def _numbered(case: KernelCase, places: Array, shape: Sequence[int]) -> Array:
    """Return flat positions in the tensor. OpenVINO counts from `axis` on and names the element type."""
    area = prod(shape[2:])
    axis = 0 if case.is_onnx else case.attributes.integer("axis", 0) % len(shape)
    grid: Any = 0
    for dim in range(axis, 2):
        numbers = np.arange(shape[dim]).reshape([-1 if other == dim else 1 for other in range(len(shape))])
        grid = grid * shape[dim] + numbers
    if axis > 2:
        raise UnsupportedCase(f"axis is {axis}, expected 0 to 2")
    flat = np.asarray(grid * area + places)
    return flat.astype(np.int64 if case.is_onnx else case.dtype("index_element_type", "i64"))


def average_pool(case: KernelCase) -> Array:
    """Return the means of windows; padding counts as zeros only if an attribute says so.

    Elements that rounding up adds after the padding never count.
    """
    data = case.array(0)
    require_kind(REAL, data)
    windows, wide = _pooled(case, data), widen(data)
    if case.is_onnx:
        counts_pads = case.attributes.boolean("count_include_pad", False)
    else:
        counts_pads = not case.attributes.boolean("exclude-pad")
    padded = windows.pad(wide, wide.dtype.type(0))
    total = np.zeros((*data.shape[:2], *windows.counts), wide.dtype)
    for _, slices in windows.places():
        total += padded[(*_ALL_2, *slices)]
    return narrow(total / _divisor(windows, data.shape[2:], counts_pads).astype(wide.dtype), data.dtype)


def _divisor(windows: Windows, spatial: Sequence[int], counts_pads: bool) -> Array:
    """Return the number of counted elements of each window."""
    counts = []
    for axis, size in enumerate(spatial):
        offsets = np.arange(windows.kernel[axis]) * windows.dilations[axis]
        starts = np.arange(windows.counts[axis]) * windows.strides[axis] - windows.before[axis]
        positions = starts[:, None] + offsets
        low, high = (-windows.before[axis], size + windows.pads_end[axis]) if counts_pads else (0, size)
        counts.append(((positions >= low) & (positions < high)).sum(1))
    return np.asarray(np.prod(np.stack(np.meshgrid(*counts, indexing="ij")), axis=0))


def lp_pool(case: KernelCase) -> Array:
    """Return the norms of windows."""
    data = case.array(0)
    require_kind(REAL, data)
    windows, wide = _pooled(case, data), widen(data)
    order = wide.dtype.type(case.attributes.number("p", 2))
    padded = windows.pad(np.power(np.abs(wide), order), wide.dtype.type(0))
    total = np.zeros((*data.shape[:2], *windows.counts), wide.dtype)
    for _, slices in windows.places():
        total += padded[(*_ALL_2, *slices)]
    return narrow(np.power(total, 1 / order), data.dtype)


def _everywhere(data: Array) -> tuple[int, ...]:
    require_kind(REAL, data)
    return tuple(range(2, data.ndim))


def global_average_pool(case: KernelCase) -> Array:
    data = case.array(0)
    return narrow(widen(data).mean(_everywhere(data), keepdims=True), data.dtype)


def global_max_pool(case: KernelCase) -> Array:
    data = case.array(0)
    return narrow(widen(data).max(_everywhere(data), keepdims=True), data.dtype)


def global_lp_pool(case: KernelCase) -> Array:
    data = case.array(0)
    axes, wide = _everywhere(data), widen(data)
    order = wide.dtype.type(case.attributes.number("p", 2))
    total = np.power(np.abs(wide), order).sum(axes, keepdims=True)
    return narrow(np.power(total, 1 / order), data.dtype)


def adaptive_average_pool(case: KernelCase) -> Array:
    """Return the means of windows that divide data evenly; input 1 is the number of windows."""
    data = case.array(0)
    require_kind(REAL, data)
    output = widen(data)
    for axis, count in enumerate(_adaptive_counts(case, data), 2):
        parts = [output.take(part, axis).mean(axis) for part in _even_parts(data.shape[axis], count)]
        output = np.stack(parts, axis)
    return narrow(output, data.dtype)


def adaptive_max_pool(case: KernelCase) -> tuple[Array, ...]:
    """Return the maxima of windows that divide data evenly, and their positions in each channel."""
    data = case.array(0)
    require_kind(NUMERIC, data)
    counts, wide = _adaptive_counts(case, data), widen(data)
    spatial = data.shape[2:]
    numbers = np.arange(prod(spatial)).reshape(spatial)
    highest = np.empty((*data.shape[:2], *counts), wide.dtype)
    places = np.empty(highest.shape, np.int64)
    parts = [list(_even_parts(size, count)) for size, count in zip(spatial, counts, strict=True)]
    for window in combinations(*map(range, counts)):
        grid = np.ix_(*[part[number] for part, number in zip(parts, window, strict=True)])
        chosen = wide[(*_ALL_2, *grid)].reshape(*data.shape[:2], -1)
        best = chosen.argmax(-1)
        highest[(*_ALL_2, *window)] = chosen.max(-1)
        places[(*_ALL_2, *window)] = numbers[grid].reshape(-1)[best]
    return narrow(highest, data.dtype), places.astype(case.dtype("index_element_type", "i64"))


def _adaptive_counts(case: KernelCase, data: Array) -> list[int]:
    counts = case.integers(1)
    if len(counts) != data.ndim - 2 or min(counts, default=0) < 1 or 0 in data.shape:
        raise UnsupportedCase(f"the output shape is {counts} for data of shape {show(data.shape)}")
    case.reserve((*data.shape[:2], *counts))
    return counts


def _even_parts(size: int, count: int) -> Iterator[Array]:
    return (np.arange(number * size // count, ceil((number + 1) * size / count)) for number in range(count))


def max_unpool(case: KernelCase) -> Array:
    """Write maxima back to their positions; other elements are zero."""
    data, places = case.arrays(2)
    require_kind(REAL, data)
    kernel = case.attributes.integers("kernel_shape")
    rank = len(kernel)
    strides, pads = (
        case.attributes.integers("strides", [1] * rank),
        case.attributes.integers("pads", [0] * rank * 2),
    )
    inferred = [
        (size - 1) * stride - pads[axis] - pads[axis + rank] + width
        for axis, (size, stride, width) in enumerate(zip(data.shape[2:], strides, kernel, strict=True))
    ]
    shape = case.integers(2, default=[*data.shape[:2], *inferred])
    case.reserve(shape)
    flat = places.reshape(-1)
    if tuple(shape[:2]) != data.shape[:2]:
        raise UnsupportedCase(f"output_shape is {shape}, and data {show(data.shape)}")
    # indices are flat positions in the pooled tensor, which has the inferred shape
    output = np.zeros(prod([*data.shape[:2], *inferred]), data.dtype)
    if flat.size and not (flat.min() >= 0 and flat.max() < output.size):
        raise UnsupportedCase(f"an index is out of range, expected 0 to {output.size - 1}")
    output[flat] = data.reshape(-1)
    result = np.zeros(shape, data.dtype)
    inner = output.reshape(*data.shape[:2], *inferred)
    result[tuple(slice(0, size) for size in inner.shape)] = inner
    return result
