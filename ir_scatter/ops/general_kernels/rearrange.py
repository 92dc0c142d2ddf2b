"""Kernels that rearrange or pad elements: Pad, Roll, SpaceToDepth, Col2Im and their kin."""

from math import prod
from typing import Any

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.core.shapes import show
from ir_scatter.ops.general_kernels.base import (
    Kernel,
    KernelCase,
    UnsupportedCase,
    narrow,
    normalize_axes,
    normalize_axis,
    require_same_type,
    widen,
)
from ir_scatter.ops.general_kernels.layout import range_of

_MODES = {"constant", "edge", "reflect", "symmetric", "wrap"}


def pad(case: KernelCase) -> Array:
    """Pad data in the modes of both dialects; negative pads crop it."""
    data = case.array(0)
    rank = data.ndim
    if case.is_onnx:
        written = case.integers(1, "paddings" if "paddings" in case.attributes else "pads", may_be_long=True)
        axes = normalize_axes(case.integers(3, default=range(rank)), rank)
        if len(written) != 2 * len(axes):
            raise UnsupportedCase(f"there are {len(written)} pads for {len(axes)} axes")
        before, after = [0] * rank, [0] * rank
        for place, axis in enumerate(axes):
            before[axis], after[axis] = written[place], written[place + len(axes)]
        mode = case.attributes.text("mode", "constant", _MODES)
        if mode == "symmetric":
            raise UnsupportedCase("mode is symmetric, which ONNX does not have")
    else:
        before, after = case.integers(1), case.integers(2)
        mode = case.attributes.text("pad_mode", None, _MODES - {"wrap"})
    if len(before) != rank or len(after) != rank:
        raise UnsupportedCase(f"there are {len(before)} pads for {rank} axes")
    case.reserve([max(0, size + sum(ends)) for size, *ends in zip(data.shape, before, after, strict=True)])
    cut = data[
        tuple(
            slice(max(0, -begin), max(0, size - max(0, -end)))
            for begin, end, size in zip(before, after, data.shape, strict=True)
        )
    ]
    widths = [(max(0, begin), max(0, end)) for begin, end in zip(before, after, strict=True)]
    if mode == "constant":
        return np.pad(cut, widths, constant_values=_padding(case, data))
    if not any(map(any, widths)):
        return cut
    if mode in {"reflect", "symmetric"}:
        spare = 1 if mode == "reflect" else 0
        if any(max(ends) > size - spare for ends, size in zip(widths, cut.shape, strict=True) if any(ends)):
            raise UnsupportedCase(f"pads are longer than {show(cut.shape)} allows in mode {mode}")
    if any(size == 0 and any(ends) for ends, size in zip(widths, cut.shape, strict=True)):
        raise UnsupportedCase(f"{show(cut.shape)} has no elements to repeat")
    return np.pad(cut, widths, mode=mode)  # type: ignore[call-overload,no-any-return]


def _padding(case: KernelCase, data: Array) -> Any:
    port = 2 if case.is_onnx else 3
    if case.has(port):
        number = case.array(port)
        require_same_type(data, number)
        if number.size != 1:
            raise UnsupportedCase(f"input {port} has shape {show(number.shape)}, expected a scalar")
        return number.reshape(())
    value = case.attributes.number("value", 0.0) if case.is_onnx else 0.0
    return np.zeros((), data.dtype) if value == 0 else np.array(value).astype(data.dtype)


def center_crop_pad(case: KernelCase) -> Array:
    """Crop data to its centre, or pad it with zeros around, to a shape."""
    data = case.array(0)
    target = case.integers(1)
    axes = normalize_axes(case.attributes.integers("axes", range(data.ndim)), data.ndim)
    if len(axes) != len(target):
        raise UnsupportedCase(f"shape has {len(target)} numbers for {len(axes)} axes")
    shape = list(data.shape)
    for axis, size in zip(axes, target, strict=True):
        shape[axis] = size
    case.reserve(shape)
    for axis, size in zip(axes, target, strict=True):
        old = data.shape[axis]
        if size < old:
            first = (old - size) // 2
            data = data[(slice(None),) * axis + (slice(first, first + size),)]
        elif size > old:
            widths = [(0, 0)] * data.ndim
            first = (size - old) // 2
            widths[axis] = (first, size - old - first)
            data = np.pad(data, widths, constant_values=np.zeros((), data.dtype))
    return data


def roll(case: KernelCase) -> Array:
    """Rotate elements along axes; elements beyond one end reappear at the other."""
    data = case.array(0)
    shifts, axes = (case.integers(port, may_be_scalar=True, may_be_long=True) for port in (1, 2))
    places = [normalize_axis(axis, data.ndim) for axis in axes]
    if len(shifts) == 1:
        shifts = shifts * len(places)
    for shift, axis in zip(shifts, places, strict=True):
        size = data.shape[axis]
        data = np.roll(data, shift % size if size else 0, axis)
    return data


def reverse(case: KernelCase) -> Array:
    """Reverse axes. Input 1 contains their numbers, or a boolean for each axis (Reverse-1)."""
    data = case.array(0)
    if case.attributes.text("mode", "index", {"index", "mask"}) == "mask":
        axes = [axis for axis, is_reversed in enumerate(case.array(1).reshape(-1)) if is_reversed]
    else:
        axes = case.integers(1, default=range(data.ndim), may_be_scalar=True)
    return np.flip(data, normalize_axes(axes, data.ndim))


def reverse_sequence(case: KernelCase) -> Array:
    """Reverse the first elements along the time axis; input 1 is their number for each batch."""
    data, lengths = case.array(0), case.array(1)
    if case.is_onnx:
        batch, time = case.attributes.integer("batch_axis", 1), case.attributes.integer("time_axis", 0)
    else:
        batch, time = case.attributes.integer("batch_axis", 0), case.attributes.integer("seq_axis", 1)
    batch, time = normalize_axis(batch, data.ndim), normalize_axis(time, data.ndim)
    lengths = widen(lengths).astype(np.int64)
    size = data.shape[time]
    if batch == time or lengths.shape != (data.shape[batch],):
        raise UnsupportedCase(f"lengths has shape {show(lengths.shape)}, expected [{data.shape[batch]}]")
    if lengths.size and not (lengths.min() >= 0 and lengths.max() <= size):
        raise UnsupportedCase(f"a length is out of range, expected at most {size}")
    steps = np.arange(size)
    places = np.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)  # [batch, time]
    if batch > time:
        places = places.T
    shape = [data.shape[axis] if axis in {batch, time} else 1 for axis in range(data.ndim)]
    return np.take_along_axis(data, places.reshape(shape), time)


def triangle(case: KernelCase) -> Array:
    """Keep the upper or lower triangle of matrices; other elements become zero."""
    data = case.array(0)
    offset = case.integer(1) if case.has(1) else 0
    if data.ndim < 2:
        raise UnsupportedCase(f"data is {show(data.shape)}, expected matrices")
    rows, columns = data.shape[-2:]
    offset = min(max(offset, -rows - columns), rows + columns)
    is_upper = case.attributes.boolean("upper", True)
    mask = np.tri(rows, columns, offset - 1 if is_upper else offset, dtype=np.bool_)
    return np.where(~mask if is_upper else mask, data, np.zeros((), data.dtype))


def eye_like(case: KernelCase) -> Array:
    data = case.array(0)
    if data.ndim != 2:
        raise UnsupportedCase(f"data is {show(data.shape)}, expected a matrix")
    type = case.dtype("dtype") if "dtype" in case.attributes else data.dtype
    rows, columns = data.shape
    return np.eye(rows, columns, case.attributes.integer("k", 0)).astype(type)


def eye(case: KernelCase) -> Array:
    """Return identity matrices, optionally with a shifted diagonal and batch dimensions."""
    rows, columns, offset = (case.integer(port) for port in range(3))
    batch = case.integers(3, default=())
    case.reserve((*batch, rows, columns))
    offset = min(max(offset, -rows - 1), columns + 1)
    matrix = np.eye(rows, columns, offset).astype(case.dtype("output_type"))
    return np.broadcast_to(matrix, (*batch, rows, columns))


def _block(case: KernelCase, name: str = "block_size") -> int:
    block = case.attributes.integer("blocksize" if case.is_onnx else name, None if case.is_onnx else 1)
    if block < 1:
        raise UnsupportedCase(f"the block size is {block}, expected 1 or more")
    return block


def depth_to_space(case: KernelCase) -> Array:
    """Move blocks of channels into the spatial dimensions."""
    data, block = case.array(0), _block(case)
    modes = {"dcr", "crd"} if case.is_onnx else {"blocks_first", "depth_first"}
    mode = case.attributes.text("mode", "dcr" if case.is_onnx else None, modes)
    batch, channels, *spatial = data.shape
    rank = len(spatial)
    if not rank or channels % block**rank:
        raise UnsupportedCase(f"data is {show(data.shape)}, expected channels divisible by {block}**{rank}")
    rest = channels // block**rank
    if mode in {"dcr", "blocks_first"}:
        split = data.reshape(batch, *[block] * rank, rest, *spatial)
        order = [0, rank + 1]
        for axis in range(rank):
            order += [rank + 2 + axis, 1 + axis]
    else:
        split = data.reshape(batch, rest, *[block] * rank, *spatial)
        order = [0, 1]
        for axis in range(rank):
            order += [rank + 2 + axis, 2 + axis]
    return split.transpose(order).reshape(batch, rest, *(size * block for size in spatial))


def space_to_depth(case: KernelCase) -> Array:
    """Move blocks of the spatial dimensions into the channels."""
    data, block = case.array(0), _block(case)
    modes = {"dcr", "crd"} if case.is_onnx else {"blocks_first", "depth_first"}
    default = "dcr" if case.is_onnx else None
    is_blocks_first = case.attributes.text("mode", default, modes) in {"blocks_first", "dcr"}
    batch, channels, *spatial = data.shape
    rank = len(spatial)
    if not rank or any(size % block for size in spatial):
        raise UnsupportedCase(f"data is {show(data.shape)}, expected dimensions divisible by {block}")
    shape = [batch, channels]
    for size in spatial:
        shape += [size // block, block]
    split = data.reshape(shape)
    outer, inner = range(2, 2 + 2 * rank, 2), range(3, 3 + 2 * rank, 2)
    order = [0, *inner, 1, *outer] if is_blocks_first else [0, 1, *inner, *outer]
    return split.transpose(order).reshape(batch, channels * block**rank, *(size // block for size in spatial))


def shuffle_channels(case: KernelCase) -> Array:
    """Interleave groups along an axis."""
    data = case.array(0)
    axis = normalize_axis(case.attributes.integer("axis", 1), data.ndim)
    groups = case.attributes.integer("group", 1)
    size = data.shape[axis]
    if groups < 1 or size % groups:
        raise UnsupportedCase(f"group is {groups}, expected a divisor of {size}")
    split = data.reshape(*data.shape[:axis], groups, size // groups, *data.shape[axis + 1 :])
    return split.swapaxes(axis, axis + 1).reshape(data.shape)


def space_to_batch(case: KernelCase) -> Array:
    """Pad with zeros, and move blocks into the batch."""
    data = case.array(0)
    block, begin, end = (case.integers(port) for port in (1, 2, 3))
    if not len(block) == len(begin) == len(end) == data.ndim or min(block) < 1 or block[0] != 1:
        raise UnsupportedCase(f"the block is {block}")
    widths = list(zip(begin, end, strict=True))
    padded = np.pad(data, widths, constant_values=np.zeros((), data.dtype))
    rank = data.ndim
    shape: list[int] = []
    for size, part in zip(padded.shape, block, strict=True):
        if size % part:
            raise UnsupportedCase(f"{size} is not divisible by {part}")
        shape += [size // part, part]
    order = [*range(1, 2 * rank, 2), *range(0, 2 * rank, 2)]
    sizes = [size // part for size, part in zip(padded.shape, block, strict=True)]
    return padded.reshape(shape).transpose(order).reshape(prod(block) * sizes[0], *sizes[1:])


def batch_to_space(case: KernelCase) -> Array:
    """Move parts of the batch into blocks, and crop."""
    data = case.array(0)
    block, begin, end = (case.integers(port) for port in (1, 2, 3))
    rank = data.ndim
    if not len(block) == len(begin) == len(end) == rank or min(block) < 1 or data.shape[0] % prod(block):
        raise UnsupportedCase(f"the block is {block}")
    sizes = [data.shape[0] // prod(block), *data.shape[1:]]
    split = data.reshape(*block, *sizes)
    order: list[int] = []
    for axis in range(rank):
        order += [rank + axis, axis]
    whole = split.transpose(order).reshape([size * part for size, part in zip(sizes, block, strict=True)])
    return whole[
        tuple(slice(first, size - last) for first, last, size in zip(begin, end, whole.shape, strict=True))
    ]


def slice_scatter(case: KernelCase) -> Array:
    """Write updates into ranges of data: SliceScatter-15."""
    data, updates = case.arrays(2)
    require_same_type(data, updates)
    starts, stops, steps = (case.integers(port) for port in (2, 3, 4))
    axes = normalize_axes(case.integers(5, default=range(len(starts))), data.ndim)
    chosen = [slice(None)] * data.ndim
    for start, stop, step, axis in zip(starts, stops, steps, axes, strict=True):
        if step == 0:
            raise UnsupportedCase("step is 0, expected any other number")
        if step < 0 and start < -data.shape[axis]:
            raise UnsupportedCase(f"start is {start}, expected -{data.shape[axis]} or more")
        chosen[axis] = range_of(start, stop, step, data.shape[axis])
    output = data.copy()
    output[tuple(chosen)] = np.broadcast_to(updates, output[tuple(chosen)].shape)
    return output


def gather_tree(case: KernelCase) -> Array:
    """Follow beams back from the last step: OpenVINO's GatherTree."""
    steps, parents = case.arrays(2)
    lengths = case.array(2).astype(np.int64)
    end = case.array(3).reshape(-1)[0]
    most, batch, width = steps.shape
    output = np.full(steps.shape, end, steps.dtype)
    beams = np.arange(width)
    for sample in range(batch):
        last = min(most, int(lengths[sample]))
        if last <= 0:
            continue
        places = beams
        for level in range(last - 1, -1, -1):
            if places.min() < 0 or places.max() >= width:
                raise UnsupportedCase("a parent is out of range")
            output[level, sample] = steps[level, sample, places]
            places = parents[level, sample, places].astype(np.int64)
        for beam in range(width):
            ends = np.flatnonzero(output[:last, sample, beam] == end)
            if len(ends):
                output[ends[0] :, sample, beam] = end
    return output


def column_to_image(case: KernelCase) -> Array:
    """Arrange the columns of blocks as an image; overlapping elements are added."""
    data = case.array(0)
    image, block = case.integers(1), case.integers(2)
    rank = len(image)
    attributes, ones, zeros = case.attributes, [1] * rank, [0] * rank
    strides, dilations = (attributes.integers(name, ones) for name in ("strides", "dilations"))
    if case.is_onnx:
        pads = attributes.integers("pads", zeros * 2)
        begin, end = pads[:rank], pads[rank:]
    else:
        begin, end = attributes.integers("pads_begin", zeros), attributes.integers("pads_end", zeros)
    counts = [
        (size + first + last - dilation * (width - 1) - 1) // stride + 1
        for size, first, last, dilation, width, stride in zip(
            image, begin, end, dilations, block, strides, strict=True
        )
    ]
    is_bare = not case.is_onnx and data.ndim == 2
    columns = widen(data)[None] if is_bare else widen(data)
    batch, rows, positions = columns.shape
    channels = rows // prod(block)
    if positions != prod(counts) or rows % prod(block):
        raise UnsupportedCase(f"data is {show(data.shape)}, expected {prod(counts)} columns")
    case.reserve((batch, channels, *image))
    split = columns.reshape(batch, channels, *block, *counts)
    canvas = np.zeros(
        (
            batch,
            channels,
            *[size + first + last for size, first, last in zip(image, begin, end, strict=True)],
        ),
        columns.dtype,
    )
    for place in np.ndindex(*block):
        where = tuple(
            slice(offset * dilation, offset * dilation + (count - 1) * stride + 1, stride)
            for offset, dilation, count, stride in zip(place, dilations, counts, strides, strict=True)
        )
        canvas[(slice(None), slice(None), *where)] += split[(slice(None), slice(None), *place)]
    picture = canvas[
        (
            slice(None),
            slice(None),
            *(slice(first, first + size) for first, size in zip(begin, image, strict=True)),
        )
    ]
    return narrow(picture[0] if is_bare else picture, data.dtype)


def extract_patches(case: KernelCase) -> Array:
    """Return the patches of an image as channels: OpenVINO's ExtractImagePatches."""
    data = case.array(0)
    sizes, strides, rates = (case.attributes.integers(name) for name in ("sizes", "strides", "rates"))
    mode = case.attributes.text("auto_pad", None, {"valid", "same_upper", "same_lower"})
    widths, counts = [(0, 0), (0, 0)], []
    for size, width, stride, rate in zip(data.shape[2:], sizes, strides, rates, strict=True):
        reach = (width - 1) * rate + 1
        count = (size - reach) // stride + 1 if mode == "valid" else -(-size // stride)
        total = 0 if mode == "valid" else max(0, (count - 1) * stride + reach - size)
        small, large = total // 2, total - total // 2
        widths.append((small, large) if mode != "same_lower" else (large, small))
        counts.append(max(0, count))
    padded = np.pad(data, widths, constant_values=np.zeros((), data.dtype))
    parts = []
    for row, column in np.ndindex(*sizes):
        first = row * rates[0], column * rates[1]
        slices = [
            slice(start, start + (count - 1) * stride + 1, stride)
            for start, count, stride in zip(first, counts, strides, strict=True)
        ]
        parts.append(padded[(slice(None), slice(None), *slices)])
    return np.concatenate(parts, 1)


# Colours.

_FROM_YUV = np.array([[1.164, 0.0, 1.596], [1.164, -0.391, -0.813], [1.164, 2.018, 0.0]])
"""Rows: red, green, blue. Columns: brightness minus 16, and the two colour planes minus 128."""


def from_planes(type: str) -> Kernel:
    """Return the kernel that converts YUV planes of an image, in one tensor or several, to RGB or BGR."""
    is_joined, is_reversed = type.startswith("NV12"), type.endswith("BGR")

    def kernel(case: KernelCase) -> Array:
        planes = case.arrays()
        bright, colours = _planes(planes, is_joined=is_joined)
        spread = colours.repeat(2, 1).repeat(2, 2)
        whole = np.concatenate([widen(bright), widen(spread)], -1)
        work = whole.astype(np.result_type(whole.dtype, np.float32)) - np.array([16, 128, 128], np.float32)
        output = np.clip(work @ _FROM_YUV.astype(work.dtype).T, 0, 255)
        if planes[0].dtype == np.uint8:
            output = np.rint(output)
        return narrow(output[..., ::-1] if is_reversed else output, planes[0].dtype)

    return kernel


def _planes(planes: list[Array], *, is_joined: bool) -> tuple[Array, Array]:
    """Return brightness [batch, rows, columns, 1] and colours [batch, rows / 2, columns / 2, 2]."""
    if len(planes) > 1:
        return planes[0], np.concatenate(planes[1:], -1)
    (whole,) = planes
    batch, total, columns, _ = whole.shape
    rows = total * 2 // 3
    rest = whole[:, rows:].reshape(batch, -1)
    if is_joined:
        return whole[:, :rows], rest.reshape(batch, rows // 2, columns // 2, 2)
    halves = rest.reshape(batch, 2, rows // 2, columns // 2)
    return whole[:, :rows], halves.transpose(0, 2, 3, 1)
